//! Jobs for the shell, and a look at processes from outside.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use ollm_process::{End, Job, Limits, Outcome};
pub(crate) use testkit::{PATIENCE, eventually, runs};

use crate::death::{POLITE, set_signal};

/// Far longer than any test may take, so that waiting for such a sleeper shows.
pub(crate) const ENDLESS: &str = "sleep 300";

/// A shell script under limits that are no part of the test.
pub(crate) fn sh(script: &str) -> Job {
    Job {
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        limits: Limits { timeout: PATIENCE, ..Limits::default() },
        ..Job::new("/bin/sh")
    }
}

/// The same job with another time to run.
pub(crate) fn within(timeout: Duration, job: Job) -> Job {
    Job { limits: Limits { timeout, ..job.limits }, ..job }
}

/// Standard output as words.
pub(crate) fn words(outcome: &Outcome) -> Vec<String> {
    let text = String::from_utf8(outcome.stdout.clone()).unwrap();
    text.split_whitespace().map(String::from).collect()
}

#[track_caller]
pub(crate) fn assert_exited(outcome: &Outcome, code: i32) {
    assert!(matches!(outcome.end, End::Exited(real) if real == code), "{outcome:?}");
}

/// Those who run with this in their environment.
pub(crate) fn bearers(name: &str, value: &str) -> Vec<String> {
    let entry = format!("{name}={value}").into_bytes();
    let bears = |pid: &String| {
        let environ = fs::read(Path::new("/proc").join(pid).join("environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|own| own == entry) && runs(pid)
    };
    let names = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(bears).collect()
}

/// The children of a process, as numbers.
pub(crate) fn children_of(pid: &str) -> Vec<String> {
    let Ok(tasks) = fs::read_dir(Path::new("/proc").join(pid).join("task")) else {
        return Vec::new();
    };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().map(String::from).collect::<Vec<_>>())
        .collect()
}

/// This test program again, to play one role in a process of its own.
pub(crate) fn role(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("ROLE", test);
    command
}

/// Plays a role to its end.
#[track_caller]
pub(crate) fn play(test: &str) {
    assert_played(&role(test).output().unwrap());
}

#[track_caller]
pub(crate) fn assert_played(output: &Output) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stdout.contains("1 passed"), "{}\n{stdout}\n{stderr}", output.status);
}

/// Whether this process was started to play the role, and not by a run of all ignored tests. If so, no signal is ignored,
/// whatever started the tests.
pub(crate) fn plays(test: &str) -> bool {
    let plays = env::var("ROLE").is_ok_and(|role| role == test);
    if plays {
        for signal in POLITE {
            set_signal(signal, libc::SIG_DFL);
        }
    }
    plays
}
