//! The guard: a process that waits for our death on a pipe, and then kills every registered group and all other processes
//! that bear our mark.
//!
//! A guard has memory of its own, so that it is not taken for us and does not die with us. To make a copy of ours takes as
//! long as a tenth of a short program. Where a process ends with its jobs, the guard therefore begins in our memory, and one
//! with its own takes its place once a job runs longer.
//!
//! Groups are registered in memory shared with the guard, so registering costs no system call, and a new process can do
//! it for itself before its program runs. The guard is woken only once, by the end of the pipe. Finding the
//! mark means reading all processes of the system; where we know before our end that none is left, we note that in the
//! same memory, and the guard does not search.

use std::ffi::OsStr;
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use libc::pid_t;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, child_subreaper, kill_process_group};

use super::adopted::adopt_if_wanted;
use super::guard_process::{GuardMemory, GuardProcess, SharedParts};
use super::mark::{self, Mark};
use super::memory::Map;
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
    process: Mutex<GuardProcess>,
    table: Table,
    /// What those are known by who are started under it.
    mark: Mark,
    /// Whether we adopted descendants already at the first start.
    adopts: bool,
    /// Closed by the kernel when we die; nothing is ever written.
    lifeline: Option<OwnedFd>,
}

impl Guard {
    pub(in crate::unix) fn start(memory: GuardMemory) -> io::Result<Arc<Self>> {
        adopt_if_wanted();
        let table = Table::new()?;
        let mark = Mark::new()?;
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        let theirs = clear_of_stdio(theirs)?;
        let process = GuardProcess::start(memory, table.shared(), mark, theirs)?;
        let adopts = matches!(child_subreaper(), Ok(Some(_)));
        let guard = Arc::new(Self { process: Mutex::new(process), table, mark, adopts, lifeline: Some(ours) });
        let mut guards = lock(&GUARDS);
        guards.retain(|guard| guard.strong_count() > 0);
        guards.push(Arc::downgrade(&guard));
        Ok(guard)
    }

    /// Has a guard with memory of its own take over, if this one shares ours.
    pub(in crate::unix) fn separate(&self) {
        let mut process = lock(&self.process);
        let Some(SharedParts { theirs, .. }) = &process.shared else {
            return;
        };
        // Where this fails, the one that there is goes on.
        let successor = theirs
            .try_clone()
            .and_then(|theirs| GuardProcess::start(GuardMemory::Own, self.table.shared(), self.mark, theirs));
        if let Ok(successor) = successor {
            mem::replace(&mut *process, successor).kill();
        }
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
        // One that shares our memory would share the error number of this thread, too.
        self.separate();
        self.table.shared().awaited.store(true, Ordering::Release);
        self.lifeline = None;
        let told = Instant::now();
        while told.elapsed() < LAST_WAIT {
            if lock(&self.process).reap(libc::WNOHANG) {
                return true;
            }
            thread::sleep(ASKING);
        }
        false
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
            lock(&self.process).kill();
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

    /// Makes sure that the guard has memory of its own: this program stays.
    pub(in crate::unix) fn separate_guard(&self) {
        self.guard.separate();
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
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn a_full_table_takes_nobody_and_loses_nobody() {
        let guard = Guard::start(GuardMemory::Own).unwrap();
        let mut slots: Vec<_> = (0..CAPACITY).map(|_| guard.register().unwrap()).collect();
        assert!(guard.register().is_err());
        slots.pop();
        assert!(guard.register().is_ok());
    }

    #[test]
    fn whoever_is_guarded_is_known_until_the_place_is_free() {
        let (guard, group) = (Guard::start(GuardMemory::Own).unwrap(), Pid::from_raw(i32::MAX).unwrap());
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
        let guard = Guard::start(GuardMemory::Own).unwrap();
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
        let guard = Guard::start(GuardMemory::Own).unwrap();
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

    /// Ends the lifeline as our death would, and waits for the end of a group that is registered.
    fn kills_what_is_left(guard: &Arc<Guard>) {
        let slot = guard.register().unwrap();
        let mut child = std::process::Command::new("sleep").arg("300").process_group(0).spawn().unwrap();
        slot.enter(Pid::from_child(&child).as_raw_nonzero().get());
        let (null, lifeline) = (std::fs::File::open("/dev/null").unwrap(), guard.lifeline.as_ref().unwrap());
        // SAFETY: both are open, and nobody uses the lifeline.
        assert_ne!(unsafe { libc::dup2(null.as_raw_fd(), lifeline.as_raw_fd()) }, -1);
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_mins(1), "the guard does not kill it");
            thread::yield_now();
        }
    }

    #[test]
    fn a_guard_in_our_memory_kills_what_is_left_of_us() {
        let guard = Guard::start(GuardMemory::Shared).unwrap();
        assert!(lock(&guard.process).shared.is_some());
        kills_what_is_left(&guard);
    }

    #[test]
    fn a_guard_that_leaves_our_memory_is_another_process_with_the_same_duty() {
        let guard = Guard::start(GuardMemory::Shared).unwrap();
        let pid = || lock(&guard.process).pid;
        let first = pid();
        guard.separate();
        let second = pid();
        assert_ne!(second, first);
        assert!(!std::path::Path::new(&format!("/proc/{first}")).exists());
        guard.separate();
        assert_eq!(pid(), second, "it has memory of its own already");
        kills_what_is_left(&guard);
    }

    #[test]
    fn a_guard_in_our_memory_that_is_not_needed_any_more_ends_in_order() {
        let guard = Guard::start(GuardMemory::Shared).unwrap();
        drop(guard.register());
        let pid = lock(&guard.process).pid;
        drop(guard);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn nobody_is_looked_for_where_nobody_can_be_left() {
        let guard = Guard::start(GuardMemory::Own).unwrap();
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
