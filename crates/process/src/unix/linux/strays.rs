//! Descendants that left their group, and whose parent died: they come to the nearest subreaper, which may be us.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, child_subreaper, getpid, kill_process, waitid,
};

/// How long strays that keep coming are fought.
const BOUND: Duration = Duration::from_secs(2);
/// Pause between two looks at strays that are dying.
const PAUSE: Duration = Duration::from_millis(1);

/// Kills and reaps all children that are not `known`, and those that come to us by that; says how many were killed.
pub(in crate::unix) fn reap_strays(known: impl Fn(Pid) -> bool) -> usize {
    if !matches!(child_subreaper(), Ok(Some(_))) {
        return 0;
    }
    let started = Instant::now();
    let mut killed = 0;
    while has_children() && started.elapsed() < BOUND {
        let strays: Vec<_> = children().into_iter().filter(|pid| !known(*pid)).collect();
        if strays.is_empty() {
            break;
        }
        for stray in &strays {
            // The number cannot name anyone else: the stray is our child, and nobody but us reaps it.
            let _ = kill_process(*stray, Signal::KILL);
        }
        let dying = strays.into_iter().filter(|stray| match reap(*stray) {
            Ok(Some(status)) => {
                killed += usize::from(status.terminating_signal() == Some(Signal::KILL.as_raw()));
                false
            }
            Ok(None) => true,
            Err(_) => false,
        });
        if dying.count() > 0 {
            thread::sleep(PAUSE);
        }
    }
    killed
}

/// Whether there is any child but the guard, which does not count for such a wait.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

fn reap(pid: Pid) -> rustix::io::Result<Option<WaitIdStatus>> {
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
}

/// All children of this process, of whichever thread.
fn children() -> Vec<Pid> {
    listed_children().unwrap_or_else(searched_children)
}

/// The kernel's own list, where it keeps one.
fn listed_children() -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    for task in fs::read_dir("/proc/self/task").ok()?.flatten() {
        // A thread that has just ended has handed its children to another one.
        match fs::read_to_string(task.path().join("children")) {
            Ok(list) => children.extend(list.split_whitespace().filter_map(parse)),
            Err(_) if task.path().exists() => return None,
            Err(_) => {}
        }
    }
    Some(children)
}

/// All processes that name us as their parent.
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

/// The second field after the name; the name stands in parentheses and may contain anything.
fn parent(process: &Path) -> Option<Pid> {
    let stat = fs::read(process.join("stat")).ok()?;
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = String::from_utf8_lossy(stat.get(name_end + 1..)?).into_owned();
    parse(fields.split_whitespace().nth(1)?)
}

fn parse(number: &str) -> Option<Pid> {
    Pid::from_raw(number.parse().ok()?)
}
