//! Clears arguments and environment of a process that shares our memory or is a copy of it. Otherwise it would show
//! ours as its own.
//!
//! For the guard: a tool that kills by command line would mistake it for us. A guard above ours would end it while ours
//! must still run. Neither function allocates or panics.

use std::ops::Range;
use std::ptr;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{pwrite, read};

/// The index of the field with the start of the arguments, counted after the name. The next fields are their end, and
/// start and end of the environment.
const ARGUMENTS: usize = 45;
/// More bytes than the kernel's description of a process has.
const ROOM: usize = 2048;
/// The bytes of one write.
const ZEROS: [u8; 1024] = [0; 1024];

/// Overwrites arguments and environment of this process as others see them. If there is space, the arguments become
/// `name`, which ends with a zero byte. Failures are ignored.
pub(super) fn clear_cmdline(name: &[u8]) {
    let Some([arguments, environment]) = places() else {
        return;
    };
    let fits = arguments.end - arguments.start >= name.len() as u64;
    // The environment comes first: a process without our arguments must not show our environment.
    for place in [&environment, &arguments] {
        let mut start = place.start;
        while start < place.end {
            let rest = usize::try_from(place.end - start).unwrap_or(usize::MAX).min(ZEROS.len());
            match overwrite(ZEROS.get(..rest).unwrap_or_default(), start) {
                0 => break,
                count => start += count as u64,
            }
        }
    }
    if fits {
        overwrite(name, arguments.start);
    }
}

/// Lets the kernel write to our memory, and returns the number of bytes written. If the addresses are not valid memory
/// of ours, the kernel refuses, and nothing else happens.
fn overwrite(bytes: &[u8], start: u64) -> usize {
    let Ok(address) = usize::try_from(start) else {
        return 0;
    };
    let source = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let target = libc::iovec { iov_base: ptr::without_provenance_mut(address), iov_len: bytes.len() };
    // SAFETY: it reads `bytes`, and writes to what the kernel itself names as the place of arguments and environment.
    let count = unsafe { libc::process_vm_writev(libc::getpid(), &raw const source, 1, &raw const target, 1, 0) };
    usize::try_from(count).unwrap_or_else(|_| overwrite_by_file(bytes, start))
}

/// Used where that call is forbidden, as in some containers. If our process is closed to others, our own memory file is
/// closed to us too, unless we are root.
fn overwrite_by_file(bytes: &[u8], start: u64) -> usize {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let memory = openat(CWD, c"/proc/self/mem", flags, Mode::empty());
    memory.and_then(|memory| pwrite(&memory, bytes, start)).unwrap_or(0)
}

/// The address ranges of arguments and environment.
fn places() -> Option<[Range<u64>; 2]> {
    let file = openat(CWD, c"/proc/self/stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut room = [0; ROOM];
    let count = read(&file, &mut room).ok()?;
    ranges(room.get(..count)?)
}

/// Reads the ranges from `/proc/self/stat`. The name is in parentheses and may contain anything.
fn ranges(stat: &[u8]) -> Option<[Range<u64>; 2]> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = stat.get(end + 2..)?.split(|byte| *byte == b' ').skip(ARGUMENTS).map(number);
    let mut range = || {
        let (first, last) = (fields.next()??, fields.next()??);
        (first > 0 && first <= last).then_some(first..last)
    };
    Some([range()?, range()?])
}

fn number(digits: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    digits.iter().try_fold(0_u64, |number, byte| number.checked_mul(10)?.checked_add(digit(byte)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_environment_are_where_the_kernel_says() {
        let fields = (3..=52).map(|field| field.to_string()).collect::<Vec<_>>().join(" ");
        let found = ranges(format!("1 (a ) b) c) {fields}\n").as_bytes());
        assert_eq!(found, Some([48..49, 50..51]));
        for unknown in [String::new(), "1 (a".into(), "1 (a)".into(), "1 (a) S 0 0".into(), "0 ".repeat(60)] {
            assert_eq!(ranges(unknown.as_bytes()), None, "{unknown}");
        }
        let hidden = format!("1 (a) S{}", " 0".repeat(60));
        assert_eq!(ranges(hidden.as_bytes()), None, "the kernel does not tell everybody");
    }
}
