//! The guard: a process that waits for our death on a pipe and then kills every group that is still registered.
//!
//! Groups are registered in memory shared with the guard, so registering costs no system call, and a new process can do
//! it for itself before its program runs. The guard is woken only once, by the end of the pipe.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use libc::{c_int, c_uint, c_void, pid_t};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};

use super::memory::{Map, Stack};
use super::signals::Blocked;

/// Groups that can be registered at once.
const CAPACITY: usize = 4096;
/// A free place in the table.
const FREE: i32 = 0;
/// A place that is taken, but whose group does not exist yet.
const TAKEN: i32 = -1;
/// Where the guard keeps the lifeline, above its standard streams.
const LIFELINE: RawFd = 3;
/// What process lists call the guard.
const NAME: &[u8; 16] = b"children-guard\0\0";

/// A running guard. Dropping it ends the guard without harm to anyone.
#[derive(Debug)]
pub(in crate::unix) struct Guard {
    pid: pid_t,
    table: Table,
    /// Where the search for a free place starts.
    next: AtomicUsize,
    /// Closed by the kernel when we die; nothing is ever written.
    _lifeline: OwnedFd,
}

impl Guard {
    pub(in crate::unix) fn start() -> io::Result<Self> {
        let table = Table::new()?;
        let stack = Stack::new()?;
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        let post = Post { table: table.places(), theirs: theirs.as_raw_fd(), ours: ours.as_raw_fd() };
        let blocked = Blocked::all();
        // No exit signal: nobody who waits for "any child" meets the guard. SAFETY: without CLONE_VM the new process
        // runs on its own copy of the stack and of `post`, and `keep_watch` only makes system calls.
        let pid = unsafe { libc::clone(keep_watch, stack.top(), 0, (&raw const post).cast_mut().cast()) };
        let failure = io::Error::last_os_error();
        drop(blocked);
        if pid == -1 {
            return Err(failure);
        }
        Ok(Self { pid, table, next: AtomicUsize::new(0), _lifeline: ours })
    }

    /// Takes a place for a group that is about to exist.
    pub(in crate::unix) fn register(self: &Arc<Self>) -> io::Result<Slot> {
        let places = self.table.places();
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        (0..CAPACITY)
            .map(|offset| start.wrapping_add(offset) % CAPACITY)
            .find(|index| places.get(*index).is_some_and(take))
            .map(|index| Slot { guard: Arc::clone(self), index })
            .ok_or_else(|| io::Error::other("too many programs are running"))
    }

    /// Kills every registered group.
    pub(in crate::unix) fn end_all(&self) {
        for place in self.table.places() {
            if let Some(group) =
                Pid::from_raw(place.load(Ordering::Acquire)).filter(|group| group.as_raw_nonzero().get() > 1)
            {
                // A group that is gone already needs no killing.
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
    }

    /// Whether a process is the guard or the leader of a registered group.
    pub(in crate::unix) fn knows(&self, pid: Pid) -> bool {
        let pid = pid.as_raw_nonzero().get();
        let is_pid = |place: &AtomicI32| place.load(Ordering::Acquire) == pid;
        pid == self.pid || self.table.places().iter().any(is_pid)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: the guard is our child and not reaped before this line, so its number is its own.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            while libc::waitpid(self.pid, std::ptr::null_mut(), libc::__WALL) == -1
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

/// A place in the guard's table; free again when dropped.
#[derive(Debug)]
pub(in crate::unix) struct Slot {
    guard: Arc<Guard>,
    index: usize,
}

impl Slot {
    /// Enters a group. Makes no system call, so that a new process can do it for itself.
    pub(super) fn enter(&self, group: pid_t) {
        self.set(group);
    }

    fn set(&self, value: i32) {
        if let Some(place) = self.guard.table.places().get(self.index) {
            place.store(value, Ordering::Release);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.set(FREE);
    }
}

fn take(place: &AtomicI32) -> bool {
    place.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Shared memory full of places.
#[derive(Debug)]
struct Table(Map);

impl Table {
    fn new() -> io::Result<Self> {
        Map::shared(CAPACITY * size_of::<AtomicI32>()).map(Self)
    }

    fn places(&self) -> &[AtomicI32] {
        // SAFETY: the mapping is page-aligned, as long as this slice, starts as zeros, which are valid atomics, and is
        // only ever accessed as atomics, here and in the guard.
        unsafe { slice::from_raw_parts(self.0.base().cast(), CAPACITY) }
    }
}

/// What the guard is given.
struct Post<'a> {
    table: &'a [AtomicI32],
    theirs: RawFd,
    ours: RawFd,
}

/// The life of the guard. All signals are blocked from before its birth, so only `SIGKILL` ends it early.
extern "C" fn keep_watch(post: *mut c_void) -> c_int {
    // SAFETY: `Guard::start` passes a `Post` whose copy is valid for the life of the guard.
    let post = unsafe { &*post.cast::<Post<'_>>() };
    // SAFETY: these are plain system calls on valid arguments in a process that shares nothing with ours but the table.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        libc::chdir(c"/".as_ptr());
        settle_files(post.theirs, post.ours);
        let mut byte = 0_u8;
        while libc::read(LIFELINE, (&raw mut byte).cast(), 1) == -1 && *libc::__errno_location() == libc::EINTR {}
        for place in post.table {
            let group = place.load(Ordering::Acquire);
            if group > 1 {
                libc::kill(-group, libc::SIGKILL);
            }
        }
        libc::_exit(0)
    }
}

/// Leaves the lifeline open and nothing else of ours, least of all our end of the lifeline and our standard streams.
///
/// # Safety
///
/// Closes nearly every file of the process: only for a process whose files nobody else uses.
unsafe fn settle_files(theirs: RawFd, ours: RawFd) {
    // SAFETY: as the caller promised; all are plain system calls.
    unsafe {
        if theirs != LIFELINE {
            libc::dup2(theirs, LIFELINE);
        }
        if ours != LIFELINE {
            libc::close(ours);
        }
        let first = LIFELINE + 1;
        if libc::syscall(libc::SYS_close_range, first, c_uint::MAX, 0) == -1 {
            close_from(first);
        }
        for stream in 0..=2 {
            libc::close(stream);
            libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        }
    }
}

/// Closes files one by one, for kernels that cannot close a range; as far as files are likely to be.
///
/// # Safety
///
/// As for [`settle_files`].
unsafe fn close_from(first: RawFd) {
    // SAFETY: as the caller promised.
    unsafe {
        let limit = libc::sysconf(libc::_SC_OPEN_MAX).clamp(1024, 65536);
        for file in first..limit as RawFd {
            libc::close(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_takes_nobody_and_loses_nobody() {
        let guard = Arc::new(Guard::start().unwrap());
        let mut slots: Vec<_> = (0..CAPACITY).map(|_| guard.register().unwrap()).collect();
        assert!(guard.register().is_err());
        slots.pop();
        assert!(guard.register().is_ok());
    }

    #[test]
    fn a_guard_knows_itself_and_whom_it_guards() {
        let guard = Arc::new(Guard::start().unwrap());
        let (itself, group) = (Pid::from_raw(guard.pid).unwrap(), Pid::from_raw(i32::MAX).unwrap());
        let slot = guard.register().unwrap();
        slot.enter(i32::MAX);
        assert!(guard.knows(itself) && guard.knows(group));
        drop(slot);
        assert!(!guard.knows(group));
    }
}
