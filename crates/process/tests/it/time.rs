//! Deadlines and the way from a polite signal to the last one.

use std::time::Duration;

use ollm_process::{Children, End, Outcome};

use crate::support::{ENDLESS, PATIENCE, assert_exited, eventually, runs, sh, within, words};

/// Long enough for a shell on a busy machine to get going.
const SHORT: Duration = Duration::from_secs(1);

#[track_caller]
fn assert_timed_out(outcome: &Outcome) {
    assert!(matches!(outcome.end, End::TimedOut), "{outcome:?}");
    assert!(outcome.elapsed >= SHORT && outcome.elapsed < PATIENCE, "{outcome:?}");
}

#[test]
fn a_sleeper_is_ended_at_its_deadline() {
    let outcome = Children::new().run(within(SHORT, sh(&format!("echo $$; {ENDLESS}; echo never"))));
    assert_timed_out(&outcome);
    let [leader] = &*words(&outcome) else { panic!("{outcome:?}") };
    assert!(!runs(leader));
}

#[test]
fn who_ignores_the_polite_signal_is_killed_after_the_grace() {
    let script = format!("trap '' TERM; echo $$; {ENDLESS} & echo $!; wait; {ENDLESS}");
    let outcome = Children::new().run(within(SHORT, sh(&script)));
    assert_timed_out(&outcome);
    assert!(outcome.elapsed >= SHORT + Duration::from_millis(500), "{outcome:?}");
    assert!(!outcome.leaky, "{outcome:?}");
    for pid in words(&outcome) {
        eventually("all of the group are gone", || !runs(&pid));
    }
}

#[test]
fn a_descendant_that_ignores_the_polite_signal_is_killed_with_the_group() {
    let script = format!("(trap '' TERM; exec {ENDLESS}) & echo $!; wait");
    let outcome = Children::new().run(within(SHORT, sh(&script)));
    assert_timed_out(&outcome);
    eventually("the descendant is gone", || !runs(&words(&outcome)[0]));
}

#[test]
fn last_words_within_the_grace_are_kept_but_do_not_make_it_a_success() {
    let mut job = within(SHORT, sh("trap 'echo last words; exit 0' TERM; while :; do sleep 0.01; done"));
    job.limits.grace = PATIENCE;
    let outcome = Children::new().run(job);
    assert_timed_out(&outcome);
    assert_eq!(outcome.stdout, b"last words\n");
}

#[test]
fn a_stopped_program_is_ended_at_its_deadline() {
    let mut job = within(SHORT, sh("kill -STOP $$"));
    job.limits.grace = PATIENCE;
    assert_timed_out(&Children::new().run(job));
}

#[test]
fn a_daemon_that_keeps_a_stream_open_does_not_hold_a_job_that_timed_out() {
    let script = format!("trap '' TERM; setsid {ENDLESS} & echo $!; {ENDLESS}; {ENDLESS}");
    let children = Children::new();
    let outcome = children.run(within(SHORT, sh(&script)));
    assert_timed_out(&outcome);
    assert!(outcome.leaky && runs(&words(&outcome)[0]), "{outcome:?}");
}

#[test]
fn every_job_of_a_call_has_its_own_deadline() {
    let outcomes = Children::new().run_all(vec![
        within(SHORT, sh(ENDLESS)),
        sh("sleep 1.6; exit 4"),
        within(SHORT, sh(&format!("trap '' TERM; {ENDLESS}; {ENDLESS}"))),
    ]);
    let [first, second, third] = &*outcomes else { panic!("{outcomes:?}") };
    assert_timed_out(first);
    assert_exited(second, 4);
    assert_timed_out(third);
}

#[test]
fn a_timeout_beyond_the_clock_is_no_timeout() {
    assert_exited(&Children::new().run(within(Duration::MAX, sh("exit 5"))), 5);
}

#[test]
fn no_time_at_all_ends_a_program_at_once() {
    let outcome = Children::new().run(within(Duration::ZERO, sh(ENDLESS)));
    assert!(matches!(outcome.end, End::TimedOut), "{outcome:?}");
}

#[test]
fn a_job_that_is_not_wanted_any_more_ends_with_its_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let started = folder.path().join("started");
    let script = format!("{ENDLESS} & echo $! $$; : > '{}'; wait", started.display());
    let outcome = Children::new().run_until(within(PATIENCE, sh(&script)), &|| started.exists());
    assert!(matches!(outcome.end, End::Interrupted), "{outcome:?}");
    for pid in words(&outcome) {
        eventually("all of the group are gone", || !runs(&pid));
    }
}
