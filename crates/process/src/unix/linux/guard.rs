//! The guard: a process that waits for our death on a pipe, and then kills every registered group and all other processes
//! that bear our mark.
//!
//! Groups are registered in memory shared with the guard, so registering costs no system call, and a new process can do
//! it for itself before its program runs. The guard is woken only once, by the end of the pipe. Finding the
//! mark means reading all processes of the system; where we know before our end that none is left, we note that in the
//! same memory, and the guard does not search.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use libc::{c_int, pid_t};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, child_subreaper, kill_process_group};

use super::adopted::adopt_if_wanted;
use super::guard_main::{GuardContext, guard_main};
use super::mark::{self, Mark};
use super::memory::{Map, Stack};
use super::signals::BlockedSignals;
use crate::unix::lock;
use crate::unix::pipes::clear_of_stdio;

/// Groups that can be registered at once.
const CAPACITY: usize = 4096;
/// A free place in the table.
const FREE: i32 = 0;
/// A place that is taken, but whose group does not exist yet. Other negative numbers are those of programs that are about
/// to be reaped: still ours, but their group numbers may be reused at any moment.
const TAKEN: i32 = -1;
/// How long a guard that was told to end may take; longer than it looks for anybody.
const LAST_WAIT: Duration = Duration::from_secs(3);
/// How often it is asked whether it has ended.
const ASKING: Duration = Duration::from_micros(500);

/// All guards of this process. Who is a child of ours is a matter of the whole process, so a search for adopted children
/// has to know what other `Children` started.
static GUARDS: Mutex<Vec<Weak<Guard>>> = Mutex::new(Vec::new());

/// A running guard. Dropped, it kills the processes that are left, and then ends.
#[derive(Debug)]
pub(in crate::unix) struct Guard {
    pid: pid_t,
    table: Table,
    /// What those are known by who are started under it.
    mark: Mark,
    /// Whether we adopted descendants already at the first start.
    adopts: bool,
    /// Closed by the kernel when we die; nothing is ever written.
    lifeline: Option<OwnedFd>,
}

impl Guard {
    pub(in crate::unix) fn start() -> io::Result<Arc<Self>> {
        adopt_if_wanted();
        let table = Table::new()?;
        let stack = Stack::new()?;
        let mark = Mark::new()?;
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        let theirs = clear_of_stdio(theirs)?;
        let context = GuardContext { table: table.shared(), mark, lifeline: theirs.as_raw_fd() };
        let blocked = BlockedSignals::all();
        // No exit signal: nobody who waits for "any child" meets the guard. SAFETY: without CLONE_VM the new process
        // runs on its own copy of the stack and of `context`, and `guard_main` only makes system calls.
        let pid = unsafe { libc::clone(guard_main, stack.top(), 0, (&raw const context).cast_mut().cast()) };
        let failure = io::Error::last_os_error();
        drop(blocked);
        if pid == -1 {
            return Err(failure);
        }
        let adopts = matches!(child_subreaper(), Ok(Some(_)));
        let guard = Arc::new(Self { pid, table, mark, adopts, lifeline: Some(ours) });
        let mut guards = lock(&GUARDS);
        guards.retain(|guard| guard.strong_count() > 0);
        guards.push(Arc::downgrade(&guard));
        Ok(guard)
    }

    /// Takes a place for a group that is about to exist.
    pub(in crate::unix) fn register(self: &Arc<Self>) -> io::Result<Slot> {
        adopt_if_wanted();
        let shared = self.table.shared();
        let start = shared.starts.fetch_add(1, Ordering::AcqRel);
        let first = usize::try_from(start % CAPACITY as u64).unwrap_or_default();
        (0..CAPACITY)
            .map(|offset| (first + offset) % CAPACITY)
            .find(|index| shared.places.get(*index).is_some_and(take))
            .map(|index| Slot { guard: Arc::clone(self), index, start })
            .ok_or_else(|| io::Error::other("too many programs are running"))
    }

    /// How many programs were started, if none is registered any more and we adopt their descendants.
    fn starts_if_idle(&self) -> Option<u64> {
        let shared = self.table.shared();
        let starts = shared.starts.load(Ordering::Acquire);
        let is_free = |place: &AtomicI32| place.load(Ordering::Acquire) == FREE;
        (self.adopts && shared.used().iter().all(is_free)).then_some(starts)
    }

    /// Notes that no descendant of these starts is left, so that the guard need not search for any.
    pub(in crate::unix) fn settle(&self, starts: u64) {
        self.table.shared().settled.store(starts, Ordering::Release);
    }

    /// Kills every registered group.
    pub(in crate::unix) fn end_all(&self) {
        let groups = self.table.shared().used().iter().map(|place| place.load(Ordering::Acquire));
        for group in groups.filter(|group| *group > 1).filter_map(Pid::from_raw) {
            // A group that is gone already needs no killing.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Has the guard kill what is left and exit; whether it has exited.
    fn shut_down(&mut self) -> bool {
        self.table.shared().awaited.store(true, Ordering::Release);
        self.lifeline = None;
        let told = Instant::now();
        while told.elapsed() < LAST_WAIT {
            if self.reap(libc::WNOHANG) {
                return true;
            }
            thread::sleep(ASKING);
        }
        false
    }

    /// Whether the guard has ended. Its number stays its own until it is reaped here.
    fn reap(&self, options: c_int) -> bool {
        loop {
            // SAFETY: no status is asked for.
            match unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::__WALL | options) } {
                0 => return false,
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => return true,
            }
        }
    }
}

/// The guards under which no program runs and whose descendants we adopt, each with the number of its starts.
pub(in crate::unix) fn idle_guards() -> Vec<(Arc<Guard>, u64)> {
    let guards: Vec<_> = lock(&GUARDS).iter().filter_map(Weak::upgrade).collect();
    guards.into_iter().filter_map(|guard| guard.starts_if_idle().map(|starts| (guard, starts))).collect()
}

/// Whether a program of any guard is being started, so that a child may not be registered yet.
pub(super) fn start_in_progress() -> bool {
    any_place(|place| place == TAKEN)
}

/// Whether a process was started by us, under whichever guard.
pub(super) fn is_started_by_us(pid: Pid) -> bool {
    let pid = pid.as_raw_nonzero().get();
    any_place(|place| place != TAKEN && place.checked_abs() == Some(pid))
}

fn any_place(is: impl Fn(i32) -> bool) -> bool {
    let is = |place: &AtomicI32| is(place.load(Ordering::Acquire));
    lock(&GUARDS).iter().filter_map(Weak::upgrade).any(|guard| guard.table.shared().used().iter().any(is))
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Places hold on to the guard, so no group is registered any more.
        if self.table.shared().is_settled() || !self.shut_down() {
            // SAFETY: the guard is our child and not reaped before this line, so its number is its own.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.reap(0);
        }
    }
}

/// A place in the guard's table; free again when dropped.
#[derive(Debug)]
pub(in crate::unix) struct Slot {
    guard: Arc<Guard>,
    index: usize,
    /// Which start it is for.
    start: u64,
}

impl Slot {
    /// What the program's descendants are known by.
    pub(super) fn entry(&self) -> Vec<u8> {
        self.guard.mark.entry(self.start)
    }

    /// The place itself, for a reaper, which shares the table with us but not the slot.
    pub(super) fn place(&self) -> Option<&AtomicI32> {
        self.guard.table.shared().places.get(self.index)
    }

    /// The variable by which they are known, with what was passed on to us.
    pub(super) fn variable(&self, inherited: Option<&OsStr>) -> Vec<u8> {
        let mut variable = format!("{}=", mark::VARIABLE).into_bytes();
        variable.append(&mut mark::list(inherited, self.entry()));
        variable
    }

    /// Enters a group. Makes no system call, so that a new process can do it for itself.
    pub(super) fn enter(&self, group: pid_t) {
        self.set(group);
    }

    /// Has the group outlive us from now on: its leader is about to be reaped, and then its number may be a stranger's.
    pub(in crate::unix) fn spare(&self, group: Pid) {
        if let Some(place) = self.place() {
            spare(place, group);
        }
    }

    fn set(&self, value: i32) {
        if let Some(place) = self.place() {
            place.store(value, Ordering::Release);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.set(FREE);
    }
}

/// As [`Slot::spare`].
pub(super) fn spare(place: &AtomicI32, group: Pid) {
    place.store(-group.as_raw_nonzero().get(), Ordering::Release);
}

fn take(place: &AtomicI32) -> bool {
    place.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// What we share with the guard.
#[repr(C)]
pub(super) struct SharedTable {
    /// How many programs were about to start.
    starts: AtomicU64,
    /// After how many of them no process was left.
    settled: AtomicU64,
    /// Whether we live and wait for the guard to end.
    pub(super) awaited: AtomicBool,
    places: [AtomicI32; CAPACITY],
}

impl SharedTable {
    /// The places that have ever been taken: starts take one after the other. The rest of the memory stays untouched.
    pub(super) fn used(&self) -> &[AtomicI32] {
        let starts = usize::try_from(self.starts.load(Ordering::Acquire)).unwrap_or(usize::MAX);
        self.places.get(..starts).unwrap_or(&self.places)
    }

    /// Whether no process is known to be left.
    pub(super) fn is_settled(&self) -> bool {
        self.starts.load(Ordering::Acquire) == self.settled.load(Ordering::Acquire)
    }
}

/// The memory for it.
#[derive(Debug)]
struct Table(Map);

impl Table {
    fn new() -> io::Result<Self> {
        Map::shared(size_of::<SharedTable>()).map(Self)
    }

    fn shared(&self) -> &SharedTable {
        // SAFETY: the mapping is page-aligned, long enough, starts as zeros, which are valid atomics, and is only ever
        // accessed as atomics, here and in the guard.
        unsafe { &*self.0.base().cast() }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn a_full_table_takes_nobody_and_loses_nobody() {
        let guard = Guard::start().unwrap();
        let mut slots: Vec<_> = (0..CAPACITY).map(|_| guard.register().unwrap()).collect();
        assert!(guard.register().is_err());
        slots.pop();
        assert!(guard.register().is_ok());
    }

    #[test]
    fn whoever_is_guarded_is_known_until_the_place_is_free() {
        let (guard, group) = (Guard::start().unwrap(), Pid::from_raw(i32::MAX).unwrap());
        let slot = guard.register().unwrap();
        assert!(start_in_progress());
        slot.enter(i32::MAX);
        assert!(is_started_by_us(group));
        slot.spare(group);
        assert!(is_started_by_us(group));
        drop(slot);
        assert!(!is_started_by_us(group));
    }

    #[test]
    fn whoever_is_about_to_start_or_to_be_reaped_is_not_killed_with_the_others() {
        let guard = Guard::start().unwrap();
        let slots: Vec<_> = (0..3).map(|_| guard.register().unwrap()).collect();
        let mut child = std::process::Command::new("sleep").arg("300").process_group(0).spawn().unwrap();
        slots[1].spare(Pid::from_child(&child));
        guard.end_all();
        assert!(child.try_wait().unwrap().is_none());
        slots[2].enter(Pid::from_child(&child).as_raw_nonzero().get());
        guard.end_all();
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn what_is_written_to_the_lifeline_by_mistake_is_not_our_end() {
        let guard = Guard::start().unwrap();
        let lifeline = guard.lifeline.as_ref().unwrap();
        for _ in 0..3 {
            rustix::io::write(lifeline, b"x").unwrap();
            let began = Instant::now();
            while rustix::io::ioctl_fionread(lifeline).unwrap() > 0 {
                assert!(began.elapsed() < Duration::from_mins(1), "the guard does not read it");
                thread::yield_now();
            }
        }
    }

    #[test]
    fn nobody_is_looked_for_where_nobody_can_be_left() {
        let guard = Guard::start().unwrap();
        let settled = || guard.table.shared().is_settled();
        assert!(settled());
        let slot = guard.register().unwrap();
        assert!(!settled());
        assert_eq!(guard.starts_if_idle(), None, "one is registered");
        drop(slot);
        assert_eq!(guard.starts_if_idle(), None, "nobody comes to us who lost their parent");
        guard.settle(1);
        assert!(settled());
        drop(guard.register());
        assert!(!settled());
    }
}
