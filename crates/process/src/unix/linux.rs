//! What Linux needs beyond safe system calls; the only unsafe code of the project.
//!
//! * `spawn` makes a process that borrows our memory until it becomes the program.
//! * `guard` makes a process that outlives us and kills what we left behind; `watch` is its life.
//! * `keeper` makes a process between us and a program that stays, which ends whoever comes of that; `tend` is its life.
//! * `news` is what a keeper and we tell one another, and `cull` kills its children; both are safe code.
//! * `mark` is what those we start are known by, and `sweep` finds them by it; both are safe code.
//! * `blank`, `shed` and `files` have guard and keepers forget what they have of us; `blank` is safe code.
//! * `kin` ends what a program left behind whose keeper was killed; it is safe code.
//! * `memory` maps their stacks and the table they share with us.
//! * `signals` keeps signals away from them, and `SIGPIPE` away from us.
//! * `held` keeps signals that ask us to end until our children have ended.
//! * `strays` finds, ends and reaps adopted descendants.
//!
//! The rule for all three kinds of processes: between `clone` and `execve` or `_exit` they allocate nothing, take no lock and
//! cannot panic; they make plain system calls on values that were ready before.

#![expect(unsafe_code, reason = "clone, signal set-up and shared memory have no safe interface")]

mod blank;
mod cull;
mod files;
mod guard;
mod held;
mod keeper;
mod kin;
mod mark;
mod memory;
mod news;
mod shed;
mod signals;
mod spawn;
mod strays;
mod sweep;
mod tend;
mod watch;

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::process::Stdio;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::Errno;
use rustix::process::{getpid, set_child_subreaper};
use rustix::rand::{GetRandomFlags, getrandom};

pub(super) use self::guard::{Guard, Slot};
pub(super) use self::held::Held;
pub(super) use self::keeper::Keeper;
pub use self::signals::PipeShield;
pub(super) use self::signals::let_signals_through;
pub(super) use self::spawn::Launcher;
pub(super) use self::strays::{reap_adopted, reap_strays};

/// Makes this process the one that adopts its descendants when their parents die, so that
/// [`Children::reap_strays`](crate::Children::reap_strays) can end them.
///
/// Also has the exit statuses of children kept, in case we were started with `SIGCHLD` ignored. Both hold for the whole
/// process, which is why this is for programs and not for libraries.
pub fn become_subreaper() -> io::Result<()> {
    signals::keep_exit_statuses();
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Keeps our files to ourselves, also those that we were given without the flag that does so. Kernels that do not know the
/// call leave those to whom we start.
pub(super) fn keep_files() {
    // SAFETY: a plain system call that closes nothing now.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Fills a short buffer with what nobody can guess.
fn random(bytes: &mut [u8]) -> io::Result<()> {
    loop {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(count) if count == bytes.len() => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A file that holds these bytes for good, to be read from their start; whoever reads it needs nobody to write.
pub(super) fn filled(bytes: &[u8]) -> io::Result<Stdio> {
    let mut file = File::from(memfd_create("input", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(bytes)?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file.into())
}

/// Whether this is the input of a job that [`Children::release`](crate::Children::release) started: a sealed file in
/// memory. No shell can make one, so neither a pipe nor a redirection passes for it.
pub fn is_released(input: impl AsFd) -> bool {
    fcntl_get_seals(input).is_ok_and(|seals| seals.contains(SealFlags::WRITE))
}
