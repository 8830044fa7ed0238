//! What goes in and comes out: bytes, all of them, up to the cap.

use std::fs;
use std::time::Duration;

use ollm_process::{Children, End, Job, Stream};
use proptest::prelude::*;

use crate::support::{ENDLESS, PATIENCE, assert_exited, play, plays, sh, within};

const MIB: usize = 1024 * 1024;

#[test]
fn a_program_that_never_reads_its_input_is_no_error() {
    for script in ["exit 0", "sleep 0.2", "exec <&-; sleep 0.2", "head -c 1000 >/dev/null"] {
        let outcome = Children::new().run(Job { stdin: vec![7; 8 * MIB], ..sh(script) });
        assert_exited(&outcome, 0);
    }
}

#[test]
fn the_deadline_covers_the_write_of_input() {
    let job = Job { stdin: vec![7; 8 * MIB], ..sh(ENDLESS) };
    let outcome = Children::new().run(within(Duration::from_millis(300), job));
    assert!(matches!(outcome.end, End::TimedOut) && outcome.elapsed < PATIENCE);
}

#[test]
fn input_is_written_while_output_is_read() {
    let stdin: Vec<u8> = (0..=255).cycle().take(8 * MIB).collect();
    let mut job = Job { stdin: stdin.clone(), ..sh("cat") };
    job.limits.output = stdin.len();
    let outcome = Children::new().run(job);
    assert_exited(&outcome, 0);
    assert!(outcome.stdout == stdin, "the bytes differ");
}

#[test]
fn no_input_is_an_empty_one() {
    let outcome = Children::new().run(sh("cat; echo end"));
    assert_eq!(outcome.stdout, b"end\n");
}

#[test]
fn output_may_fill_its_cap_to_the_last_byte() {
    let outcome = Children::new().run(sh("head -c 1048576 /dev/zero; head -c 1048576 /dev/zero >&2"));
    assert_exited(&outcome, 0);
    assert_eq!((outcome.stdout.len(), outcome.stderr.len()), (MIB, MIB));
}

#[test]
fn one_byte_over_the_cap_overflows() {
    for (redirection, stream) in [("", Stream::Stdout), (">&2", Stream::Stderr)] {
        let outcome = Children::new().run(sh(&format!("head -c 1048577 /dev/zero {redirection}")));
        assert!(matches!(outcome.end, End::Overflowed(real) if real == stream), "{:?}", outcome.end);
    }
}

#[test]
fn output_without_end_is_cut_and_its_writer_killed() {
    for (redirection, stream) in [("", Stream::Stdout), (">&2", Stream::Stderr)] {
        let outcome = Children::new().run(sh(&format!("trap '' TERM PIPE; cat /dev/zero {redirection}; {ENDLESS}")));
        assert!(matches!(outcome.end, End::Overflowed(real) if real == stream), "{:?}", outcome.end);
        assert!(outcome.elapsed < PATIENCE);
        assert_eq!(outcome.stdout.len().max(outcome.stderr.len()), MIB);
    }
}

#[test]
fn a_flood_takes_no_memory() {
    play("streams::flooded");
}

#[test]
#[ignore = "a role that `a_flood_takes_no_memory` starts"]
fn flooded() {
    if !plays("streams::flooded") {
        return;
    }
    let jobs = ["", ">&2"].map(|redirection| sh(&format!("head -c 1000000000 /dev/zero {redirection}")));
    for outcome in Children::new().run_all(jobs.into()) {
        assert!(matches!(outcome.end, End::Overflowed(_)), "{:?}", outcome.end);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 64 * 1024, "{peak}");
}

#[test]
fn bytes_that_are_no_text_arrive_as_they_are() {
    let outcome = Children::new().run(sh(r"printf '\377\000\303('; printf '\200' >&2"));
    assert_eq!((&*outcome.stdout, &*outcome.stderr), (&b"\xff\x00\xc3("[..], &b"\x80"[..]));
}

#[test]
fn characters_written_in_pieces_are_whole() {
    let outcome = Children::new().run(sh(r"printf '\342'; sleep 0.05; printf '\202'; sleep 0.05; printf '\254'"));
    assert_eq!(String::from_utf8(outcome.stdout).unwrap(), "€");
}

#[test]
fn output_in_the_pipe_at_the_exit_is_not_lost() {
    let children = Children::new();
    for _ in 0..50 {
        let jobs = (0..8).map(|_| sh("head -c 60000 /dev/zero; echo verdict >&2")).collect();
        for outcome in children.run_all(jobs) {
            assert_exited(&outcome, 0);
            assert_eq!((outcome.stdout.len(), &*outcome.stderr), (60000, &b"verdict\n"[..]));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_pass_unchanged(stdin in proptest::collection::vec(any::<u8>(), 0..200_000)) {
        let outcome = Children::new().run(Job { stdin: stdin.clone(), ..sh("cat") });
        prop_assert!(matches!(outcome.end, End::Exited(0)));
        prop_assert!(outcome.stdout == stdin);
    }
}
