//! The guard: a process that waits on a pipe for our death. It then kills every registered group and all other
//! processes that bear our mark.
//!
//! A guard needs its own memory, so that no tool mistakes it for us and it does not die with us. Copying our memory
//! takes a tenth as long as a short program. If this process ends with its jobs, the guard therefore starts in our
//! memory. A guard with its own memory replaces it once a job runs longer.
//!
//! Groups are registered in memory shared with the guard, so registering costs no system call. A new process can even
//! register itself before its program runs. The guard wakes up only once, at the end of the pipe. To find the mark, it
//! must read all processes of the system. If we know before our end that no process is left, we note that in the same
//! memory. Then the guard does not search.

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

/// The most groups that can be registered at the same time.
const CAPACITY: usize = 4096;
/// A free place in the table.
const FREE: i32 = 0;
/// A place that is taken, but whose group does not exist yet. Any other negative number is the negated id of a program
/// that is about to be reaped: it is still ours, but another group may get its id at any moment.
const TAKEN: i32 = -1;
/// How long a guard may take to end after the request; longer than its search for processes.
const LAST_WAIT: Duration = Duration::from_secs(3);
/// How often we check whether it has ended.
const ASKING: Duration = Duration::from_micros(500);

/// All guards of this process. A process has one set of children, so a search for adopted children has to know what
/// other `Children` started.
static GUARDS: Mutex<Vec<Weak<Guard>>> = Mutex::new(Vec::new());

/// A running guard. Dropping it makes it kill the remaining processes and then end.
#[derive(Debug)]
pub(in crate::unix) struct Guard {
    process: Mutex<GuardProcess>,
    table: Table,
    /// The mark of all programs that are started under it.
    mark: Mark,
    /// Whether we already adopted descendants at the first start.
    adopts: bool,
    /// The kernel closes it when we die; nothing is ever written to it.
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

    /// Starts a guard with its own memory in place of this one, if this one shares ours.
    pub(in crate::unix) fn separate(&self) {
        let mut process = lock(&self.process);
        let Some(SharedParts { theirs, .. }) = &process.shared else {
            return;
        };
        // If this fails, the present guard stays.
        let successor = theirs
            .try_clone()
            .and_then(|theirs| GuardProcess::start(GuardMemory::Own, self.table.shared(), self.mark, theirs));
        if let Ok(successor) = successor {
            mem::replace(&mut *process, successor).kill();
        }
    }

    /// Reserves a place for a group that is about to exist.
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

    /// The number of starts, if no program is registered any more and we adopt descendants.
    fn starts_if_idle(&self) -> Option<u64> {
        let shared = self.table.shared();
        let starts = shared.starts.load(Ordering::Acquire);
        let is_free = |place: &AtomicI32| place.load(Ordering::Acquire) == FREE;
        (self.adopts && shared.used().iter().all(is_free)).then_some(starts)
    }

    /// Notes that no descendant of these starts is left, so that the guard need not search.
    pub(in crate::unix) fn settle(&self, starts: u64) {
        self.table.shared().settled.store(starts, Ordering::Release);
    }

    /// Kills every registered group.
    pub(in crate::unix) fn end_all(&self) {
        let groups = self.table.shared().used().iter().map(|place| place.load(Ordering::Acquire));
        for group in groups.filter(|group| *group > 1).filter_map(Pid::from_raw) {
            // A group that has already ended needs no killing.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Makes the guard kill the remaining processes and exit; returns whether it has exited.
    fn shut_down(&mut self) -> bool {
        // A guard that shares our memory would also share the error number of this thread.
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

/// The guards under which no program runs and whose descendants we adopt, each with its number of starts.
pub(in crate::unix) fn idle_guards() -> Vec<(Arc<Guard>, u64)> {
    let guards: Vec<_> = lock(&GUARDS).iter().filter_map(Weak::upgrade).collect();
    guards.into_iter().filter_map(|guard| guard.starts_if_idle().map(|starts| (guard, starts))).collect()
}

/// Whether any guard has a start under way, so that a child may not be registered yet.
pub(super) fn start_in_progress() -> bool {
    any_place(|place| place == TAKEN)
}

/// Whether we started a process, under any guard.
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
        // Each place holds a reference to the guard, so no group is registered any more.
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
    /// The number of its start.
    start: u64,
}

impl Slot {
    /// The mark entry of the program's descendants.
    pub(super) fn entry(&self) -> Vec<u8> {
        self.guard.mark.entry(self.start)
    }

    /// The place itself, for a reaper, which shares only the table with us.
    pub(super) fn place(&self) -> Option<&AtomicI32> {
        self.guard.table.shared().places.get(self.index)
    }

    /// The environment variable with the mark, including the entries that we inherited.
    pub(super) fn variable(&self, inherited: Option<&OsStr>) -> Vec<u8> {
        let mut variable = format!("{}=", mark::VARIABLE).into_bytes();
        variable.append(&mut mark::list(inherited, self.entry()));
        variable
    }

    /// Registers a group. It makes no system call, so a new process can do it for itself.
    pub(super) fn enter(&self, group: pid_t) {
        self.set(group);
    }

    /// Makes sure that the guard has its own memory, because this program runs longer.
    pub(in crate::unix) fn separate_guard(&self) {
        self.guard.separate();
    }

    /// Takes the group off the guard from now on: its leader is about to be reaped, and then another group may get its
    /// id.
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

/// The memory that we share with the guard.
#[repr(C)]
pub(super) struct SharedTable {
    /// The number of starts so far.
    starts: AtomicU64,
    /// The number of starts after which no process was left.
    settled: AtomicU64,
    /// Whether we are alive and wait for the guard to end.
    pub(super) awaited: AtomicBool,
    places: [AtomicI32; CAPACITY],
}

impl SharedTable {
    /// The places that have ever been taken, because starts take one after the other. The rest of the memory stays
    /// untouched.
    pub(super) fn used(&self) -> &[AtomicI32] {
        let starts = usize::try_from(self.starts.load(Ordering::Acquire)).unwrap_or(usize::MAX);
        self.places.get(..starts).unwrap_or(&self.places)
    }

    /// Whether certainly no process is left.
    pub(super) fn is_settled(&self) -> bool {
        self.starts.load(Ordering::Acquire) == self.settled.load(Ordering::Acquire)
    }
}

/// The memory of the table.
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

    /// Closes the lifeline as our death would, and waits for the end of a registered group.
    fn kills_what_is_left(guard: &Arc<Guard>) {
        let slot = guard.register().unwrap();
        let mut child = std::process::Command::new("sleep").arg("300").process_group(0).spawn().unwrap();
        slot.enter(Pid::from_child(&child).as_raw_nonzero().get());
        let (null, lifeline) = (std::fs::File::open("/dev/null").unwrap(), guard.lifeline.as_ref().unwrap());
        // SAFETY: both are open, and no other code uses the lifeline.
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
