//! Runs child processes, with groups, deadlines, output caps and resource limits, and cleans up after them.
//!
//! # Theory of operation
//!
//! A [`Job`] says what to run and within which [`Limits`]; [`Children::run`] and [`Children::run_all`] run it and
//! return an [`Outcome`]. Another program's failure is data here, never an `Err`. There are no threads and there is no
//! runtime: one `poll` loop on the calling thread feeds and reads all jobs of a call and checks their deadlines.
//!
//! * **Start.** Every program gets its own session and process group, and no terminal. It gets the default signal
//!   set-up, and no files but its three streams. Its environment is the given one, with one more variable and without
//!   relative entries of `PATH`. On Linux the new process borrows our memory until it becomes the program, so the cost
//!   does not grow with our size.
//! * **Time.** The clock is monotonic and starts before the spawn. At the deadline the whole group gets `SIGTERM`, and
//!   after the grace `SIGKILL`.
//! * **Streams.** Input is written while output is read. A program that does not read its input is no error. Output is
//!   bytes, and no output is lost: it is read until the end of the streams, not only until the exit of the program. If
//!   a stream exceeds its cap, the group is killed.
//! * **End.** Once the program has exited and its streams are closed, the rest of its group is killed. If a descendant
//!   keeps a stream open, we wait at most the drain time; the outcome is then `leaky`.
//! * **Our own death.** The program itself dies with the thread that runs it (parent-death signal). Its group dies with
//!   our process. For that, the first job of a [`Children`] starts a guard process, which waits for our end on a pipe.
//!   It then kills every group that is still registered, and all other processes that bear our mark.
//! * **The mark.** `OLLM_LIFELINE` in the environment of every program holds a random number of its `Children`. It
//!   stands after the numbers that are already in the job's environment. So if another process with a guard started us,
//!   its guard also finds what we started. A descendant that leaves group, session and parent still bears the mark. Two
//!   kinds of descendants are not found, unless they came from a resident: those that clear their environment, and
//!   those whose environment the kernel hides.
//! * **Signals.** A program can hold back the signals that ask it to end while it runs jobs
//!   ([`Children::hold_signals`]): they first end the jobs, and then, by their default effect, the program.
//! * **Daemons.** A descendant that leaves the group lives on after its job, and ends with the `Children` or with us. A
//!   program makes a [`ProcessSetup`] at the start of `main`; its process then adopts such descendants, and its guard
//!   need not search for any. It ends them with [`Children::kill_adopted`] or at the end of `main`.
//! * **Residents.** [`Children::start`] starts a program that stays, such as a server on its standard streams. It has
//!   the same group, environment, limits and guard, but no deadline. Its owner holds a [`Resident`], reads and writes
//!   its streams, and ends it. Only Unix has them. On Linux each runs below a reaper, a small separate process that
//!   adopts the descendants of the program. At the end of the program, or at ours, the reaper kills all of them and
//!   then ends itself. No group, session or environment hides them.
//!
//! The crate knows nothing of hooks, never prints, and reads neither environment nor home.
//!
//! # Platforms
//!
//! Linux has all of the above. Other Unix systems have neither guard nor reapers, mark, parent-death signal or resource
//! limits. Windows also has no process groups. Both are untested; a job that asks for a resource limit there does not
//! start.
//!
//! # Example
//!
//! ```
//! # #[cfg(unix)] {
//! use ollm_process::{Children, End, Job};
//!
//! let children = Children::new();
//! let outcome = children.run(Job {
//!     args: vec!["-c".into(), "cat; exit 3".into()],
//!     env: vec![("PATH".into(), "/usr/bin:/bin".into())],
//!     stdin: b"hello".to_vec(),
//!     ..Job::new("/bin/sh")
//! });
//! assert!(matches!(outcome.end, End::Exited(3)));
//! assert_eq!(outcome.stdout, b"hello");
//! # }
//! ```

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod clock;
mod error;
mod find;
mod job;
mod process_box;
mod setup;
mod spared;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use clock::after;
pub use error::{SpawnError, Stage};
pub use find::{absolute_entries, find_program};
pub use job::{End, Job, Limits, Outcome, Stream};
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[doc(hidden)]
pub use libm as math;
pub use process_box::{BoxAccess, BoxError, BoxMeans, BoxNetwork, BoxRules, BoxWatch, ProcessBox, WatchedAccess};
pub use setup::ProcessSetup;
pub use spared::SparedChild;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[doc(hidden)]
pub use unix::run_program;
#[cfg(unix)]
pub use unix::{Children, PipeShield, Resident, SignalHold, SignalShield, Streams, is_released};
#[cfg(windows)]
pub use windows::{Children, SignalHold, is_released};
