//! Descendants that left their group, and whose parent died: the kernel gives them to the nearest subreaper, which may
//! be us.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libc::pid_t;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, child_subreaper, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper, waitid,
};

use super::guard::{is_started_by_us, start_in_progress};
use super::signals;

/// How long we kill adopted children that keep appearing.
const BOUND: Duration = Duration::from_secs(2);
/// Pause between two checks of adopted children that are dying.
const PAUSE: Duration = Duration::from_millis(1);
/// Stands for this process where a process id is expected.
const OURSELVES: pid_t = 0;
/// Checks whether a child has exited, without reaping it.
const LOOK: WaitIdOptions = WaitIdOptions::EXITED.union(WaitIdOptions::NOHANG).union(WaitIdOptions::NOWAIT);

/// Whether this process becomes a subreaper at the next start. It is one flag per process, like the kernel's own.
static ADOPTION_WANTED: AtomicBool = AtomicBool::new(false);

/// Makes this process adopt its descendants from the next start on.
pub(crate) fn adopt_from_first_start() {
    ADOPTION_WANTED.store(true, Ordering::Relaxed);
}

/// Becomes a subreaper, which adopts descendants when their parents die, if the program wants that. Also keeps the exit
/// statuses of children, in case we were started with `SIGCHLD` ignored.
pub(super) fn adopt_if_wanted() {
    if ADOPTION_WANTED.load(Ordering::Relaxed) && ADOPTION_WANTED.swap(false, Ordering::Relaxed) {
        signals::keep_exit_statuses();
        // If this fails, descendants that outlive their job are reported as `leaky`.
        let _ = set_child_subreaper(Some(getpid()));
    }
}

/// Kills and reaps all children that we did not start and that are not `spared`, and the descendants that then come to
/// us. Returns how many were killed, and whether certainly no child is left. `spared` is called only with existing
/// children.
pub(in crate::unix) fn kill_adopted(spared: impl Fn(Pid) -> bool) -> (usize, bool) {
    if !matches!(child_subreaper(), Ok(Some(_))) {
        return (0, false);
    }
    let started = Instant::now();
    let mut killed = 0;
    while has_children() {
        let children = children();
        if started.elapsed() >= BOUND {
            return (killed, false);
        }
        if start_in_progress() {
            thread::sleep(PAUSE);
            continue;
        }
        let is_adopted = |pid: &Pid| !spared(*pid) && !is_started_by_us(*pid);
        let adopted: Vec<_> = children.into_iter().filter(is_adopted).filter_map(AdoptedChild::find).collect();
        if adopted.is_empty() {
            return (killed, false);
        }
        adopted.iter().for_each(AdoptedChild::kill);
        let mut dying = false;
        for child in adopted {
            match child.reap() {
                Ok(Some(status)) => {
                    killed += usize::from(status.terminating_signal() == Some(Signal::KILL.as_raw()));
                }
                Ok(None) => dying = true,
                Err(_) => {}
            }
        }
        if dying {
            thread::sleep(PAUSE);
        }
    }
    (killed, true)
}

/// A child of ours that we did not start. Its pidfd cannot be mistaken for a later process with the same id.
#[derive(Debug)]
enum AdoptedChild {
    File(OwnedFd),
    /// Kernels before 5.4 have no pidfds, or cannot wait on them.
    Number(Pid),
}

impl AdoptedChild {
    /// `None` if no child with this id can be waited for: another thread has just reaped it, or it is the guard of
    /// other `Children`.
    fn find(pid: Pid) -> Option<Self> {
        let child = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return None,
            Err(_) => Self::Number(pid),
            Ok(held) => Self::File(held),
        };
        match waitid(child.id(), LOOK) {
            Err(Errno::CHILD) => None,
            Err(Errno::INVAL) => Some(Self::Number(pid)),
            Ok(_) | Err(_) => Some(child),
        }
    }

    fn id(&self) -> WaitId<'_> {
        match self {
            Self::File(held) => WaitId::PidFd(held.as_fd()),
            Self::Number(pid) => WaitId::Pid(*pid),
        }
    }

    fn kill(&self) {
        let _ = match self {
            Self::File(held) => pidfd_send_signal(held, Signal::KILL),
            Self::Number(pid) => kill_process(*pid, Signal::KILL),
        };
    }

    fn reap(&self) -> rustix::io::Result<Option<WaitIdStatus>> {
        waitid(self.id(), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
    }
}

/// Reaps exited processes that lost their parent and came to us, mostly members of groups that we ended. If there are
/// none, it costs one system call.
///
/// It never reaps a program that we started, nor a child that other code in this process started. The latter are in our
/// own session.
pub(in crate::unix) fn reap_adopted() {
    while let Some(pid) = first_exited() {
        let foreign = session(pid.as_raw_nonzero().get()).is_some_and(|theirs| session(OURSELVES) != Some(theirs));
        if !foreign
            || start_in_progress()
            || is_started_by_us(pid)
            || AdoptedChild::find(pid).is_none_or(|child| !matches!(child.reap(), Ok(Some(_))))
        {
            return;
        }
    }
}

/// The session of a process. Zero stands for a session that began outside our namespace; in a container that is often
/// our own.
fn session(pid: pid_t) -> Option<pid_t> {
    // SAFETY: any number is a valid argument.
    let session = unsafe { libc::getsid(pid) };
    (session != -1).then_some(session)
}

/// A child that has exited; it stays unreaped.
fn first_exited() -> Option<Pid> {
    // SAFETY: all zeros are a valid value of this plain structure.
    let mut told: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: there is room for what is told.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut told, options) };
    // SAFETY: the call has filled in the number, or left it zero.
    (result == 0).then(|| Pid::from_raw(unsafe { told.si_pid() })).flatten()
}

/// Whether there is any child except the guard, which such a wait does not count.
fn has_children() -> bool {
    !matches!(waitid(WaitId::All, LOOK), Err(Errno::CHILD))
}

/// All children of this process, of all its threads.
fn children() -> Vec<Pid> {
    listed_children().unwrap_or_else(searched_children)
}

/// The children in the kernel's own list, if the kernel keeps one.
fn listed_children() -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    for task in fs::read_dir("/proc/self/task").ok()?.flatten() {
        // A thread that has just ended has passed its children to another thread.
        match fs::read_to_string(task.path().join("children")) {
            Ok(list) => children.extend(list.split_whitespace().filter_map(parse)),
            Err(_) if task.path().exists() => return None,
            Err(_) => {}
        }
    }
    Some(children)
}

/// All processes with us as their parent.
fn searched_children() -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|process| {
            let pid = parse(process.file_name().to_str()?)?;
            (parent(&process.path())? == getpid()).then_some(pid)
        })
        .collect()
}

/// The parent's id: the second field after the name. The name is in parentheses and may contain anything.
fn parent(process: &Path) -> Option<Pid> {
    let stat = fs::read(process.join("stat")).ok()?;
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = String::from_utf8_lossy(stat.get(name_end + 1..)?).into_owned();
    parse(fields.split_whitespace().nth(1)?)
}

fn parse(number: &str) -> Option<Pid> {
    Pid::from_raw(number.parse().ok()?)
}
