//! Mapped memory: stacks for new processes, and the table shared with the guard.

use std::io;
use std::ptr::{self, NonNull};

use libc::{
    MAP_ANONYMOUS, MAP_FAILED, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, MAP_STACK, PROT_NONE, PROT_READ, PROT_WRITE,
    c_int, c_void,
};

/// Bytes of a stack. Its deepest user is `execve` of the C library; signals are blocked, so no handler runs on it.
const STACK: usize = 64 * 1024;
/// Unmapped memory below the stack, so that an overflow is a fault and does no damage; at least one page on every
/// machine.
const FENCE: usize = 64 * 1024;

/// A private mapping that serves as the stack of a new process.
#[derive(Debug)]
pub(super) struct Stack(Map);

impl Stack {
    pub(super) fn new() -> io::Result<Self> {
        let map = Map::new(FENCE + STACK, PROT_NONE, MAP_PRIVATE | MAP_STACK | MAP_NORESERVE)?;
        // SAFETY: the range lies within the mapping just made, on whose pages nothing relies yet.
        let opened = unsafe { libc::mprotect(map.end(FENCE), STACK, PROT_READ | PROT_WRITE) };
        if opened == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(map))
    }

    /// The end from which the stack grows down; page-aligned.
    pub(super) fn top(&self) -> *mut c_void {
        self.0.end(FENCE + STACK)
    }
}

/// An anonymous mapping of zeros, unmapped when dropped.
#[derive(Debug)]
pub(super) struct Map {
    base: NonNull<c_void>,
    length: usize,
}

// SAFETY: the mapping is owned by this value alone and is valid on every thread.
unsafe impl Send for Map {}
// SAFETY: shared references only give out addresses; what is done with them is up to their users.
unsafe impl Sync for Map {}

impl Map {
    /// Readable and writable memory that stays shared with a forked process.
    pub(super) fn shared(length: usize) -> io::Result<Self> {
        Self::new(length, PROT_READ | PROT_WRITE, MAP_SHARED)
    }

    fn new(length: usize, protection: c_int, flags: c_int) -> io::Result<Self> {
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags | MAP_ANONYMOUS, -1, 0) };
        if base == MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, length })
    }

    pub(super) fn base(&self) -> *const c_void {
        self.base.as_ptr()
    }

    /// The address `offset` bytes into the mapping, at most its end.
    fn end(&self, offset: usize) -> *mut c_void {
        self.base.as_ptr().wrapping_byte_add(offset.min(self.length))
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows from it any more when its owner is dropped.
        unsafe { libc::munmap(self.base.as_ptr(), self.length) };
    }
}
