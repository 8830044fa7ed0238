//! What Linux needs beyond safe system calls; the only unsafe code of the project.
//!
//! * `entry` starts the program, and `spawn` makes a process that borrows our memory until it becomes the program.
//! * `guard` has a process that outlives us and kills the processes that we leave behind; `guard_process` starts it,
//!   `guard_main` is its code.
//! * `reaper` starts a process between us and a long-running program; `reaper_main` is its code.
//! * `reaper_protocol` has the messages between a reaper and us, `kill_children` kills its children; both are safe
//!   code.
//! * `mark` makes the environment entry that identifies descendants, `kill_marked` kills processes with it; both are
//!   safe code.
//! * `clear_cmdline`, `release_memory` and `files` remove what guard and reapers inherit from us.
//! * `orphans` ends the descendants of a program whose reaper was killed; it is safe code.
//! * `memory` maps their stacks and the table they share with us.
//! * `signals` keeps signals away from them, and `SIGPIPE` away from us.
//! * `held_signals` holds back signals that ask us to end until our children have ended.
//! * `adopted` finds, ends and reaps adopted descendants.
//! * `platform_box` makes a box: `box_plan`, `box_namespace` and `box_mounts`, or `box_landlock`. `box_filter` has its
//!   system calls, a new process enters it by `box_enter`, and `box_watch` and `box_call` record what programs do in
//!   it.
//!
//! The rule for all three kinds of processes: between `clone` and `execve` or `_exit` they allocate nothing, take no
//! lock and cannot panic. They only make system calls on values that were prepared before.

#![expect(unsafe_code, reason = "clone, signal set-up and shared memory have no safe interface")]

mod adopted;
mod attached;
mod box_call;
mod box_enter;
mod box_filter;
mod box_landlock;
mod box_mode;
mod box_mounts;
mod box_namespace;
mod box_plan;
mod box_streams;
mod box_watch;
mod clear_cmdline;
#[cfg(target_env = "gnu")]
mod entry;
mod files;
mod guard;
mod guard_main;
mod guard_process;
mod held_signals;
mod kill_children;
mod kill_marked;
mod mark;
mod memory;
mod orphans;
mod platform_box;
mod reaper;
mod reaper_main;
mod reaper_protocol;
mod release_memory;
mod signals;
mod spawn;
mod vfork;

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::process::Stdio;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::rand::{GetRandomFlags, getrandom};

pub(crate) use self::adopted::adopt_from_first_start;
pub(super) use self::adopted::{kill_adopted, reap_adopted};
pub(super) use self::attached::{PassedSignals, await_end};
#[cfg(target_env = "gnu")]
pub use self::entry::run_program;
pub(super) use self::guard::{Guard, Slot, idle_guards};
pub(super) use self::guard_process::GuardMemory;
pub(super) use self::held_signals::HeldSignals;
pub(super) use self::mark::VARIABLE as MARK_VARIABLE;
pub(crate) use self::platform_box::PlatformBox;
pub(super) use self::reaper::Reaper;
pub(super) use self::signals::let_signals_through;
pub use self::signals::{PipeShield, SignalShield};
pub(super) use self::spawn::Launcher;

/// Keeps our files from the programs that we start, also inherited files without the close-on-exec flag. On kernels
/// without this call, those files stay open in the programs.
pub(super) fn keep_files() {
    // SAFETY: a plain system call that closes nothing now.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Closes our memory and our environment to all users but root. Otherwise the programs that we start, which run as the
/// same user, could read them in `/proc`. A started program is open again. All supported kernels have this call.
pub(crate) fn hide_memory() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Fills a short buffer with random bytes.
fn random(bytes: &mut [u8]) -> io::Result<()> {
    loop {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(count) if count == bytes.len() => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A sealed memory file with these bytes, positioned at its start. It can be read without a writer.
pub(super) fn filled(bytes: &[u8]) -> io::Result<Stdio> {
    let mut file = File::from(memfd_create("input", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(bytes)?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file.into())
}

/// Whether this is the input of a job that [`Children::release`](crate::Children::release) started: a sealed file in
/// memory. No shell can make one, so a pipe or a redirection is never mistaken for it.
pub fn is_released(input: impl AsFd) -> bool {
    fcntl_get_seals(input).is_ok_and(|seals| seals.contains(SealFlags::WRITE))
}
