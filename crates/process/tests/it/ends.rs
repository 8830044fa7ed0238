//! How jobs end, alone and in company.

use std::path::Path;
use std::thread;

use ollm_process::{Children, End, Job};

use crate::support::{ENDLESS, PATIENCE, assert_exited, eventually, runs, sh, words};

#[test]
fn an_exit_code_is_told() {
    let outcome = Children::new().run(sh("echo out; echo err >&2; exit 7"));
    assert_exited(&outcome, 7);
    assert_eq!((&*outcome.stdout, &*outcome.stderr, outcome.leaky), (&b"out\n"[..], &b"err\n"[..], false));
}

#[test]
fn a_death_by_signal_is_told() {
    for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGSEGV] {
        let outcome = Children::new().run(sh(&format!("kill -{signal} $$")));
        assert!(matches!(outcome.end, End::Signalled(real) if real == signal), "{outcome:?}");
    }
}

#[test]
fn jobs_run_at_once_and_answer_in_order() {
    // Each job waits for a file that the next one writes, so they only end if all of them run.
    let folder = tempfile::tempdir().unwrap();
    let jobs = (0..8).map(|index| Job {
        cwd: Some(folder.path().into()),
        ..sh(&format!(
            "touch {index}; while ! [ -e {} ]; do sleep 0.01; done; echo {index}; exit {index}",
            (index + 1) % 8
        ))
    });
    let outcomes = Children::new().run_all(jobs.collect());
    assert_eq!(outcomes.len(), 8);
    for (index, outcome) in (0..).zip(&outcomes) {
        assert_exited(outcome, index);
        assert_eq!(outcome.stdout, format!("{index}\n").into_bytes());
    }
}

#[test]
fn a_job_that_cannot_start_does_not_disturb_its_neighbours() {
    let outcomes = Children::new().run_all(vec![sh("exit 1"), Job::new("/does/not/exist"), sh("exit 2")]);
    let [first, second, third] = &*outcomes else { panic!("{outcomes:?}") };
    assert_exited(first, 1);
    assert!(matches!(second.end, End::NotStarted(_)));
    assert_exited(third, 2);
}

#[test]
fn no_jobs_have_no_outcomes() {
    assert!(Children::new().run_all(Vec::new()).is_empty());
}

#[test]
fn two_hundred_runs_at_once_from_threads_lose_nothing() {
    let children = Children::new();
    thread::scope(|scope| {
        for index in 0..200 {
            let children = &children;
            scope.spawn(move || {
                let stdin = format!("{index} ").repeat(1000).into_bytes();
                let outcome = children.run(Job { stdin: stdin.clone(), ..sh("cat; exit 3") });
                assert_exited(&outcome, 3);
                assert_eq!(outcome.stdout, stdin);
            });
        }
    });
}

#[test]
fn one_hundred_jobs_of_one_call_lose_nothing() {
    let jobs = (0..100).map(|index| Job { stdin: vec![index; 100_000], ..sh("cat") });
    for (index, outcome) in (0..).zip(Children::new().run_all(jobs.collect())) {
        assert_exited(&outcome, 0);
        assert_eq!(outcome.stdout, vec![index; 100_000]);
    }
}

#[test]
fn the_program_is_reaped() {
    for script in ["echo $$", "echo $$; kill -9 $$"] {
        let outcome = Children::new().run(sh(script));
        assert!(!Path::new("/proc").join(&words(&outcome)[0]).exists(), "{outcome:?}");
    }
}

#[test]
fn what_is_left_of_the_group_dies_with_a_normal_exit() {
    let outcome = Children::new().run(sh(&format!("{ENDLESS} >/dev/null 2>&1 & echo $!")));
    assert_exited(&outcome, 0);
    assert!(!outcome.leaky, "{outcome:?}");
    eventually("the sleeper is gone", || !runs(&words(&outcome)[0]));
}

#[test]
fn a_descendant_that_keeps_a_stream_open_holds_nobody() {
    let outcome = Children::new().run(sh(&format!("{ENDLESS} & echo $!")));
    assert_exited(&outcome, 0);
    assert!(outcome.leaky && outcome.elapsed < PATIENCE, "{outcome:?}");
    eventually("the sleeper is gone", || !runs(&words(&outcome)[0]));
}

#[test]
fn a_daemon_that_keeps_a_stream_open_holds_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let script = "(setsid sh -c 'echo $$; touch ready; exec sleep 300' &); while ! [ -e ready ]; do sleep 0.01; done";
    let children = Children::new();
    let outcome = children.run(Job { cwd: Some(folder.path().into()), ..sh(script) });
    assert_exited(&outcome, 0);
    assert!(outcome.leaky && outcome.elapsed < PATIENCE, "{outcome:?}");
    assert!(runs(&words(&outcome)[0]), "who left the group does not end with the job");
}

#[test]
fn what_a_descendant_writes_within_the_drain_time_is_kept() {
    let mut job = sh("(sleep 0.1; echo late) & echo early");
    job.limits.drain = PATIENCE;
    let outcome = Children::new().run(job);
    assert_exited(&outcome, 0);
    assert_eq!((&*outcome.stdout, outcome.leaky), (&b"early\nlate\n"[..], false));
}

#[test]
fn children_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&Children::new());
}
