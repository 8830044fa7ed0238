//! Kills all children of this process, and the descendants that it then adopts.
//!
//! It neither allocates nor panics nor takes a lock, because a reaper uses it. A reaper is a subreaper: in the end
//! every descendant of its program is its child. No other process reaps them, so an id belongs to the same child until
//! we reap it. No other process can be hit.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};
use rustix::io::{Errno, read};
use rustix::process::{Pid, Signal, getpid, kill_process};

use super::kill_marked::{knows_us, parse};

/// Bytes of a list per read.
const ROOM: usize = 4 * 1024;
/// Longer than a path below `/proc` to a process's description, and than that description up to the parent.
const LONGEST: usize = 512;

/// Kills all children once; returns whether there was one that we may kill. A child that has ended but is not reaped
/// counts.
pub(super) fn kill_children() -> bool {
    if !knows_us() {
        return false;
    }
    match openat(CWD, c"/proc/thread-self/children", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(list) => kill_listed(&list),
        Err(_) => kill_searched().unwrap_or(false),
    }
}

/// Kills the children in the kernel's own list: numbers, each followed by a space.
fn kill_listed(list: &OwnedFd) -> bool {
    let mut room = [0; ROOM];
    let (mut number, mut killed) = (0_i32, false);
    loop {
        let count = match read(list, &mut room) {
            Ok(0) => return killed,
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(_) => return killed,
        };
        for byte in room.get(..count).unwrap_or_default() {
            if byte.is_ascii_digit() {
                number = number.saturating_mul(10).saturating_add(i32::from(byte - b'0'));
            } else {
                killed |= Pid::from_raw(std::mem::take(&mut number)).is_some_and(kill);
            }
        }
    }
}

/// Kills all processes with us as their parent, for kernels that keep no list.
fn kill_searched() -> Option<bool> {
    let processes = openat(CWD, c"/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut entries = RawDir::new(&processes, &mut room);
    let mut killed = false;
    while let Some(entry) = entries.next() {
        let name = entry.as_ref().ok()?.file_name();
        if let Some(pid) = parse(name.to_bytes())
            && parent(&processes, name) == Some(getpid())
        {
            killed |= kill(pid);
        }
    }
    Some(killed)
}

fn kill(pid: Pid) -> bool {
    kill_process(pid, Signal::KILL).is_ok()
}

/// The parent of a process.
fn parent(processes: &OwnedFd, name: &CStr) -> Option<Pid> {
    let mut path = [0; LONGEST];
    for (place, byte) in path.iter_mut().zip(name.to_bytes().iter().chain(b"/stat\0")) {
        *place = *byte;
    }
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    let file = openat(processes, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut room = [0; LONGEST];
    let count = read(&file, &mut room).ok()?;
    named_parent(room.get(..count)?)
}

/// The parent's id: the second field after the name. The name is in parentheses and may contain anything.
fn named_parent(stat: &[u8]) -> Option<Pid> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    parse(stat.get(end + 2..)?.split(|byte| *byte == b' ').nth(1)?)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_parent_is_found_whatever_the_name_is() {
        for name in ["sh", "a ) R 7 (b", ")", "( )"] {
            assert_eq!(named_parent(format!("12 ({name}) S 34 56").as_bytes()), Pid::from_raw(34), "{name}");
        }
        for odd in ["", "12 (sh", "12 (sh)", "12 (sh) S", "12 (sh) S x"] {
            assert_eq!(named_parent(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn a_process_names_its_parent() {
        let mut child = Command::new("sleep").arg("300").spawn().unwrap();
        let processes = openat(CWD, c"/proc", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let name = std::ffi::CString::new(child.id().to_string()).unwrap();
        assert_eq!(parent(&processes, &name), Some(getpid()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(parent(&processes, &name), None);
    }
}
