//! Waiting for what happens in other processes.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits: far shorter than the sleepers of tests, far longer than a noisy machine needs.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until something holds.
///
/// # Panics
/// When it does not hold within [`PATIENCE`].
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "still not: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process runs; a zombie does not.
pub fn runs(pid: &str) -> bool {
    let Ok(stat) = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat")) else {
        return false;
    };
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    !matches!(state, Some("Z" | "X"))
}
