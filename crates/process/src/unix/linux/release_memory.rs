//! A process that is made from ours begins with a copy of all our memory. Both share each page until one of them writes
//! to it, and the new process would keep it for its whole life. This code releases the pages that it does not need.
//!
//! It serves reapers, of which there may be many: it releases the copy of our heap and of our stacks. The memory that a
//! reaper uses itself stays: code and variables of the program and its libraries, its own stack, its thread's data, and
//! shared memory. Nothing is unmapped, so access to released memory is no fault and reads zeros. The code neither
//! allocates nor panics.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, read};

/// Bytes of the memory list per read.
const ROOM: usize = 4 * 1024;

/// This much below a needed address stays: a stack grows down, and a thread's data lies on both sides of its address.
const MARGIN: usize = 64 * 1024;

/// Releases memory, except around these addresses: the margin below each, and the rest of its mapping above it.
///
/// # Safety
///
/// The caller must not use the heap or a stack any more, except around these addresses.
pub(super) unsafe fn release_memory(needed: &[usize]) {
    let Ok(list) = openat(CWD, c"/proc/self/maps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return;
    };
    let mut reader = MapsReader::default();
    let mut room = [0; ROOM];
    loop {
        let count = match read(&list, &mut room) {
            Ok(0) => return,
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(_) => return,
        };
        for byte in room.get(..count).unwrap_or_default() {
            if let Some(place) = reader.step(*byte).map(|place| without(place, needed)) {
                let start = ptr::without_provenance_mut::<c_void>(place.start);
                // SAFETY: as the caller promised, no code uses what is there. The mapping itself stays.
                unsafe { libc::madvise(start, place.len(), libc::MADV_DONTNEED) };
            }
        }
    }
}

/// The part of a range below all needed addresses, in whole pages.
fn without(place: Range<usize>, needed: &[usize]) -> Range<usize> {
    let needed = needed.iter().filter(|address| place.contains(address)).min();
    let end = needed.map_or(place.end, |address| (address / MARGIN * MARGIN).saturating_sub(MARGIN));
    place.start..end.max(place.start)
}

/// Reads the list byte by byte: `start-end rwxp offset device inode name`.
#[derive(Debug, Default)]
struct MapsReader {
    line: MapsLine,
    /// The end of the previous line's range, if that line belongs to a file.
    file_end: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct MapsLine {
    /// The index of the field; the start and the end of a range are one field each.
    field: usize,
    start: usize,
    end: usize,
    /// How many of the letters match private writable memory.
    letters: usize,
    inode: usize,
}

impl MapsReader {
    /// At the end of a line: its range, if it is private memory without a file. Variables of a file are excluded; they
    /// directly follow their file.
    fn step(&mut self, byte: u8) -> Option<Range<usize>> {
        let line = &mut self.line;
        match (line.field, byte) {
            (_, b'\n') => {
                let line = std::mem::take(line);
                let follows = self.file_end == line.start;
                self.file_end = if line.inode > 0 { line.end } else { 0 };
                let private = line.letters == 3 && line.inode == 0;
                return (private && !follows && line.start < line.end).then_some(line.start..line.end);
            }
            (0, b'-') | (1..=5, b' ') => line.field += 1,
            (0, digit) => line.start = line.start.wrapping_mul(16).wrapping_add(value(digit)),
            (1, digit) => line.end = line.end.wrapping_mul(16).wrapping_add(value(digit)),
            (2, letter) => line.letters += usize::from(matches!(letter, b'r' | b'w' | b'p')),
            (5, digit) => line.inode = line.inode.wrapping_mul(10).wrapping_add(value(digit)),
            _ => {}
        }
        None
    }
}

/// The value of a hexadecimal digit.
fn value(digit: u8) -> usize {
    usize::from(match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_of_our_own_without_a_file_is_given_back() {
        let list = "\
555500001000-555500002000 r-xp 00001000 fe:00 1234                       /usr/bin/our program
555500002000-555500003000 rw-p 00002000 fe:00 1234                       /usr/bin/our program
555500003000-555500004000 rw-p 00000000 00:00 0 
555500005000-555500006000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000001000 rw-p 00000000 00:00 0 
7f0000001000-7f0000002000 ---p 00000000 00:00 0 
7f0000002000-7f0000003000 rw-s 00000000 00:01 77                         /dev/zero (deleted)
7f0000004000-7f0000005000 r--p 00000000 00:00 0                          [vvar]
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0                          [stack]
";
        let mut reader = MapsReader::default();
        let found: Vec<_> = list.bytes().filter_map(|byte| reader.step(byte)).collect();
        let heap = 0x5555_0000_5000..0x5555_0000_6000;
        let (anonymous, stack) = (0x7f00_0000_0000..0x7f00_0000_1000, 0x7fff_fffd_e000..0x7fff_ffff_f000);
        assert_eq!(found, [heap, anonymous, stack]);
    }

    #[test]
    fn what_is_needed_stays_with_what_lies_around_it() {
        let place = 0x100_0000..0x200_0000;
        assert_eq!(without(place.clone(), &[0x50, 0x200_0000]), place);
        assert_eq!(without(place.clone(), &[0x1ff_fff0, 0x180_1234]), 0x100_0000..0x17f_0000);
        assert_eq!(without(place, &[0x100_8000]), 0x100_0000..0x100_0000);
    }
}
