//! Finds all processes of the system that bear a mark, and kills them.
//!
//! It neither allocates nor panics nor takes a lock, because the guard uses it. Still, it is safe code.
//!
//! It sees the environment with which a process's program was started. It does not find a descendant that was started
//! with another environment. Nor does it find one whose environment the kernel hides: a program with more rights than
//! we have, or one that asked to be hidden.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat, readlinkat_raw};
use rustix::io::{Errno, read};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal};

use super::mark::Search;

/// Pauses between searches without a result. Each of these searches, and one more, must find nothing in a row. A
/// process that is just becoming another program shows no environment.
pub(super) const THOROUGH: &[Duration] = &[PAUSE, PAUSE];
/// The same pauses if the parent waits for the guard.
pub(super) const HASTY: &[Duration] = &[Duration::from_millis(1)];
/// Pause between two searches that are not urgent.
const PAUSE: Duration = Duration::from_millis(5);
/// How long it kills processes that keep appearing.
const BOUND: Duration = Duration::from_secs(2);
/// After this time the search is no longer urgent.
const HURRY: Duration = Duration::from_millis(100);
/// Bytes per read of a list of processes, and of an environment.
const ROOM: usize = 8 * 1024;
/// Longer than the path of an environment below that list, and than a process id.
const LONGEST: usize = 32;

/// Kills all processes with an entry that begins with `wanted`, until none is left.
pub(super) fn kill_marked(wanted: &[u8], pauses: &[Duration]) {
    if !knows_us() {
        return;
    }
    let started = Instant::now();
    let mut left = pauses.iter();
    while started.elapsed() < BOUND {
        if kill_found(wanted) == Some(false) {
            match left.next() {
                Some(pause) => thread::sleep(*pause),
                None => return,
            }
        } else {
            left = pauses.iter();
            if started.elapsed() > HURRY {
                thread::sleep(PAUSE);
            }
        }
    }
}

/// Whether the list of processes shows us under our own id. A sandbox may show the list of another namespace, with
/// other ids for the same processes.
pub(super) fn knows_us() -> bool {
    let mut room = [MaybeUninit::uninit(); LONGEST];
    let name = readlinkat_raw(CWD, c"/proc/self", &mut room);
    name.is_ok_and(|(name, _)| parse(name) == Some(getpid()))
}

/// Kills the marked processes in the order of their ids, so it also meets most of their new children. Returns whether
/// there was one; `None` if that is unknown.
fn kill_found(wanted: &[u8]) -> Option<bool> {
    let processes = openat(CWD, c"/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut entries = RawDir::new(&processes, &mut room);
    let mut found = false;
    while let Some(entry) = entries.next() {
        let entry = entry.ok()?;
        if let Some(pid) = parse(entry.file_name().to_bytes())
            && is_marked(&processes, entry.file_name(), wanted)
        {
            found |= kill_if_marked(&processes, entry.file_name(), pid, wanted);
        }
    }
    Some(found)
}

/// Kills a process that bore the mark a moment ago.
///
/// Its id may belong to another process by now. So this opens a pidfd first and then checks the mark once more. If the
/// id changes its owner later, the signal reaches no process.
fn kill_if_marked(processes: &OwnedFd, name: &CStr, pid: Pid, wanted: &[u8]) -> bool {
    if pid == getpid() {
        return false;
    }
    let held = pidfd_open(pid, PidfdFlags::empty());
    if !is_marked(processes, name, wanted) {
        return false;
    }
    match held {
        // Gives up on a process that we may not kill.
        Ok(held) => pidfd_send_signal(&held, Signal::KILL) != Err(Errno::PERM),
        Err(Errno::SRCH) => true,
        // Kernels before 5.3 have no pidfds.
        Err(_) => kill_process(pid, Signal::KILL) != Err(Errno::PERM),
    }
}

/// Whether the environment of a process has the mark. A process that has ended shows no environment.
fn is_marked(processes: &OwnedFd, name: &CStr, wanted: &[u8]) -> bool {
    let mut path = [0; LONGEST];
    for (place, byte) in path.iter_mut().zip(name.to_bytes().iter().chain(b"/environ\0")) {
        *place = *byte;
    }
    let path = CStr::from_bytes_until_nul(&path).unwrap_or_default();
    let Ok(environment) = openat(processes, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    let mut search = Search::new(wanted);
    let mut room = [0; ROOM];
    loop {
        match read(&environment, &mut room) {
            Ok(0) => return false,
            Ok(count) if search.finds(room.get(..count).unwrap_or_default()) => return true,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// The process id in a name, if it is one.
pub(super) fn parse(name: &[u8]) -> Option<Pid> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| i32::from(byte - b'0'));
    let number = name.iter().try_fold(0_i32, |number, byte| number.checked_mul(10)?.checked_add(digit(byte)?))?;
    Pid::from_raw(number)
}
