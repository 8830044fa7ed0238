//! Runs child processes: groups, deadlines, output caps, resource limits, and their end.
//!
//! # Theory of operation
//!
//! A [`Job`] says what to run and within which [`Limits`]; [`Children::run`] and [`Children::run_all`] run it and say
//! in an [`Outcome`] what came of it. Another program's failure is data here, never an `Err`. There are no threads and
//! there is no runtime: one `poll` loop on the calling thread feeds and reads all jobs of a call and keeps their clocks.
//!
//! * **Start.** Every program gets a session and a process group of its own, no terminal, the environment it was
//!   given without relative entries of `PATH` and with one variable more, the default signal set-up and no file but its three streams. On Linux the new process
//!   borrows our memory until it becomes the program, so the cost does not grow with our size.
//! * **Time.** The clock is monotonic and starts before the spawn. At the deadline the whole group gets `SIGTERM`,
//!   and after the grace `SIGKILL`.
//! * **Streams.** Input is written while output is read. A program that does not read its input is no error. Output is
//!   bytes, read until the end of the streams and not only until the exit of the program, so nothing that was written
//!   is lost. A stream over its cap has the group killed.
//! * **End.** Once the program has exited and its streams are closed, what is left of its group is killed. A descendant
//!   that keeps a stream open is waited for no longer than the drain time; the outcome is then `leaky`.
//! * **Our own death.** The program itself dies with the thread that runs it (parent-death signal). Its group dies with
//!   our process: a guard process, started with the first job of a [`Children`], waits for our end on a pipe and kills
//!   every group that is still registered, and then all other processes that bear our mark.
//! * **The mark.** `OLLM_LIFELINE` in the environment of every program holds a random number that belongs to its
//!   `Children`, after those that are in the job's environment already: what our program starts is then also found by the
//!   guard of the one that started our program. A descendant that leaves group, session and parent still bears it; only one
//!   that clears its environment, or has the kernel hide it, is not found, unless it came of a resident.
//! * **Signals.** A program can have the signals that ask it to end held back while it runs jobs
//!   ([`Children::hold_signals`]): they first end the jobs, and then, by their default effect, the program.
//! * **Daemons.** A descendant that leaves the group lives on after its job, and ends with the `Children` or with us. A
//!   program makes a [`ProcessSetup`] at the start of `main`; its process then adopts such descendants, ends them with
//!   [`Children::kill_adopted`] or at the end of `main`, and its guard need not search for any.
//! * **Residents.** [`Children::start`] starts a program that stays, such as a server on its standard streams. It has the
//!   same group, environment, limits and guard, but no clock: its owner holds a [`Resident`], reads and writes its
//!   streams, and ends it. Only Unix has them. On Linux each runs below a reaper, a small process of its own that adopts
//!   the descendants of the program. However the program ends, or we do, the reaper kills all of them, whatever became of
//!   their group, session and environment, and then ends itself.
//!
//! The crate knows nothing of hooks, never prints, and reads neither environment nor home.
//!
//! # Platforms
//!
//! Linux has all of the above. Other Unix systems have neither guard nor reapers, mark, parent-death signal or resource limits;
//! Windows has, beyond that, no process groups. Both are untested; a job that asks for a resource limit there does not
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
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use clock::after;
pub use error::{SpawnError, Stage};
pub use find::{absolute_entries, find_program};
pub use job::{End, Job, Limits, Outcome, Stream};
pub use process_box::{BoxAccess, BoxError, BoxMeans, BoxNetwork, BoxRules, BoxWatch, ProcessBox, WatchedAccess};
pub use setup::ProcessSetup;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[doc(hidden)]
pub use unix::run_program;
#[cfg(unix)]
pub use unix::{Children, PipeShield, Resident, SignalHold, Streams, is_released};
#[cfg(windows)]
pub use windows::{Children, SignalHold, is_released};
