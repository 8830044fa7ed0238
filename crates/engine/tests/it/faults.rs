//! Real programs that misbehave, each in every dialect at once.

use std::fs;
use std::time::{Duration, Instant};

use ollm_engine::{Report, Status};
use ollm_protocol::{Event, EventKind, Flow, HookSpec};
use serde_json::json;

use crate::support::{
    DIALECTS, PATIENCE, World, cat, ends, event, eventually, everywhere, file, go_on, prints, refuse, runs, sh, spoken,
    within,
};

/// An event that no pipe holds.
fn huge_event() -> Event {
    let args = json!({"content": "x".repeat(8 << 20)});
    Event::unchecked(EventKind::BeforeTool, [("tool_name", "write_file".into()), ("args", args)])
}

fn all(status: Status, flow: Flow) -> Vec<(Status, Flow)> {
    vec![(status, flow); DIALECTS.len()]
}

#[track_caller]
fn assert_error(report: &Report, part: &str) {
    let error = report.error.as_deref().unwrap_or_default();
    assert!(error.contains(part), "`{error}` does not say `{part}`");
}

/// Runs the hook with more and more time until it left the file, so that it was stopped in the state it should be in.
fn until_written(world: &mut World, name: &str, script: &str) -> Vec<Report> {
    for millis in [100, 500, 2000, 10_000] {
        let reports = world.four(&event(), |_| within(Duration::from_millis(millis), sh("x", script)));
        if DIALECTS.iter().all(|dialect| world.path(&format!("{name}-{dialect}")).exists()) {
            return reports;
        }
    }
    panic!("{name} was never written");
}

#[test]
fn a_hook_that_hangs_is_stopped_in_time() {
    let mut world = World::new();
    let started = Instant::now();
    let reports = world.four(&event(), |_| within(Duration::from_millis(30), sh("x", "exec sleep 300")));
    assert!(started.elapsed() < PATIENCE);
    assert_eq!(ends(&reports), everywhere(Status::Timeout));
    assert_error(&reports[0], "did not answer within 30ms and was stopped");
}

#[test]
fn a_hook_that_ignores_the_polite_signal_is_killed_with_its_children() {
    let mut world = World::new();
    let started = Instant::now();
    let script = r#"trap '' TERM; sleep 300 & echo $! >"child-$OLLM_HOOK_ID.tmp"
        mv "child-$OLLM_HOOK_ID.tmp" "child-$OLLM_HOOK_ID"; wait; wait"#;
    let reports = until_written(&mut world, "child", script);
    assert!(started.elapsed() < PATIENCE);
    assert_eq!(ends(&reports), everywhere(Status::Timeout));
    for dialect in DIALECTS {
        let pid = fs::read_to_string(world.path(&format!("child-{dialect}"))).unwrap();
        eventually("the child is gone", || !runs(&pid));
    }
}

#[test]
fn a_daemon_that_keeps_the_pipe_holds_nobody_and_is_told_of() {
    let mut world = World::new();
    let started = Instant::now();
    let reports = world.four(&event(), |dialect| {
        let daemon = r#"setsid sh -c 'echo $$ >"daemon-$OLLM_HOOK_ID"; exec sleep 300' & "#;
        let ready = r#"while ! [ -s "daemon-$OLLM_HOOK_ID" ]; do sleep 0.01; done; "#;
        sh("x", &format!("{daemon}{ready}{}", prints(&go_on(dialect))))
    });
    assert!(started.elapsed() < PATIENCE);
    assert_eq!(ends(&reports), all(Status::Ok, Flow::NoOpinion));
    assert!(reports.iter().all(|report| report.leaky));
    for dialect in DIALECTS {
        let pid = fs::read_to_string(world.path(&format!("daemon-{dialect}"))).unwrap();
        std::process::Command::new("kill").arg(pid.trim()).status().unwrap();
    }
}

#[test]
fn a_background_child_that_lets_go_of_the_pipe_is_no_leak() {
    let mut world = World::new();
    let reports =
        world.four(&event(), |dialect| sh("x", &format!("sleep 300 >/dev/null 2>&1 & {}", prints(&go_on(dialect)))));
    assert_eq!(ends(&reports), all(Status::Ok, Flow::NoOpinion));
    assert!(reports.iter().all(|report| !report.leaky));
}

#[test]
fn a_flood_is_cut_off_and_costs_no_memory() {
    let peak = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    };
    let before = peak();
    let mut world = World::new();
    for stream in ["", " >&2"] {
        let script = format!("head -c 268435456 /dev/zero{stream}; exec sleep 300");
        let reports = world.four(&event(), |_| sh("x", &script));
        assert_eq!(ends(&reports), everywhere(Status::Failed));
        assert_error(&reports[0], "wrote more than its limit `output` of 1048576 bytes and was stopped");
    }
    assert!(peak() - before < 1 << 30, "eight floods of 256 MiB must not be kept");
}

#[test]
fn a_hook_sets_its_own_limit_of_output() {
    let world = World::new();
    let mut spec = sh("x", "head -c 2000 /dev/zero; exec sleep 300");
    spec.limits.output = Some(1000);
    assert_error(&world.run(spec, &event()), "more than its limit `output` of 1000 bytes");
}

#[test]
fn a_hook_that_never_reads_a_huge_event_still_answers() {
    let mut world = World::new();
    let reports = world.four(&huge_event(), |dialect| sh("x", &prints(&refuse(dialect, "too large"))));
    assert_eq!(ends(&reports), all(Status::Blocked, Flow::Block));
}

#[test]
fn the_deadline_covers_the_writing_of_the_event() {
    let mut world = World::new();
    let reports = world.four(&huge_event(), |_| within(Duration::from_millis(50), sh("x", "exec sleep 300")));
    assert_eq!(ends(&reports), everywhere(Status::Timeout));
}

#[test]
fn a_hook_that_closes_its_input_early_still_answers() {
    let mut world = World::new();
    let reports = world.four(&huge_event(), |dialect| sh("x", &format!("exec <&-; {}", prints(&go_on(dialect)))));
    assert_eq!(ends(&reports), all(Status::Ok, Flow::NoOpinion));
}

#[test]
fn a_huge_event_arrives_whole() {
    let world = World::new();
    let report = world.run(sh("x", "cat >got; echo '{\"continue\":true}'"), &huge_event());
    assert_eq!(report.status, Status::Ok);
    let got: serde_json::Value = serde_json::from_slice(&fs::read(world.path("got")).unwrap()).unwrap();
    assert_eq!(got["data"]["args"]["content"].as_str().unwrap().len(), 8 << 20);
}

#[test]
fn silence_is_an_answer_where_the_dialect_says_so() {
    let mut world = World::new();
    let reports = world.four(&event(), |_| sh("x", "exit 0"));
    let expected = [
        (Status::Ok, Flow::NoOpinion),
        (Status::Failed, Flow::Block),
        (Status::Failed, Flow::NoOpinion),
        (Status::Ok, Flow::NoOpinion),
    ];
    assert_eq!(ends(&reports), expected);
    assert_eq!(reports[0].warnings, ["the hook answered nothing"]);
}

#[test]
fn a_bad_exit_is_a_failure_with_the_last_words_of_the_hook() {
    let mut world = World::new();
    let reports = world.four(&event(), |_| sh("x", "echo 'first line' >&2; echo 'disk full' >&2; exit 1"));
    assert_eq!(ends(&reports), everywhere(Status::Failed));
    for report in &reports {
        assert_error(report, "exited with status 1: disk full");
        assert!(!report.refused);
    }
}

#[test]
fn a_death_by_signal_is_a_failure_that_names_the_signal() {
    let mut world = World::new();
    for signal in [9, 11, 15] {
        let reports = world.four(&event(), |_| sh("x", &format!("kill -{signal} $$")));
        assert_eq!(ends(&reports), everywhere(Status::Failed));
        assert_error(&reports[3], &format!("was killed by signal {signal}"));
    }
}

#[test]
fn log_lines_before_an_answer_are_tolerated_but_by_the_strict() {
    let mut world = World::new();
    let reports = world.four(&event(), |dialect| sh("x", &format!("echo 'starting up'; {}", prints(&go_on(dialect)))));
    let expected: Vec<_> = DIALECTS
        .iter()
        .map(|dialect| if *dialect == "gate" { (Status::Failed, Flow::Block) } else { (Status::Ok, Flow::NoOpinion) })
        .collect();
    assert_eq!(ends(&reports), expected);
    assert_eq!(reports[0].warnings, ["there is other text in front of the JSON object"]);
}

#[test]
fn text_after_an_answer_is_a_failure() {
    let mut world = World::new();
    let reports = world.four(&event(), |dialect| sh("x", &format!("{}; echo done", prints(&go_on(dialect)))));
    assert_eq!(ends(&reports), everywhere(Status::Failed));
}

#[test]
fn two_answers_are_a_failure() {
    let mut world = World::new();
    let reports = world.four(&event(), |dialect| {
        let answer = prints(&go_on(dialect));
        sh("x", &format!("{answer}; echo; {answer}"))
    });
    assert_eq!(ends(&reports), everywhere(Status::Failed));
}

#[test]
fn a_refusal_counts_whatever_stands_around_it() {
    let mut world = World::new();
    for around in ["echo log; REFUSAL", "REFUSAL; echo done", "GO_ON; echo; REFUSAL", "REFUSAL; echo; GO_ON"] {
        let reports = world.four(&event(), |dialect| {
            let script = around.replace("GO_ON", &prints(&go_on(dialect)));
            sh("x", &script.replace("REFUSAL", &prints(&refuse(dialect, "no"))))
        });
        assert!(reports.iter().all(|report| report.refused && report.verdict.flow == Flow::Block), "{around}");
    }
}

#[test]
fn a_refusal_with_a_bad_exit_is_a_refusal() {
    let mut world = World::new();
    for end in ["exit 1", "exit 2", "kill -9 $$"] {
        let reports = world.four(&event(), |dialect| sh("x", &format!("{}; {end}", prints(&refuse(dialect, "no")))));
        assert_eq!(ends(&reports), all(Status::Blocked, Flow::Block), "{end}");
        assert!(reports.iter().all(|report| report.verdict.reasons == ["no"]), "{end}");
    }
}

#[test]
fn a_refusal_before_a_hang_is_a_refusal_that_was_late() {
    let mut world = World::new();
    // Long enough for the answer to be written on any machine; the hook never ends by itself.
    let reports = world.four(&event(), |dialect| {
        within(Duration::from_secs(3), sh("x", &format!("{}; exec sleep 300", prints(&refuse(dialect, "no")))))
    });
    assert_eq!(ends(&reports), all(Status::Timeout, Flow::Block));
    assert!(reports.iter().all(|report| report.refused));
}

#[test]
fn two_hundred_thousand_brackets_are_a_failure_like_any_other() {
    let mut world = World::new();
    let braces = world.file("braces", "{".repeat(200_000));
    let nested = world.file("nested", "{\"a\":".repeat(200_000));
    for path in [braces, nested] {
        assert_eq!(ends(&world.four(&event(), |_| cat("x", &path))), everywhere(Status::Failed));
    }
    let brackets = world.file("brackets", "[".repeat(200_000));
    let reports = world.four(&event(), |_| cat("x", &brackets));
    // What holds no object is plain text to `agent`.
    let expected: Vec<_> =
        everywhere(Status::Failed).into_iter().take(3).chain([(Status::Ok, Flow::NoOpinion)]).collect();
    assert_eq!(ends(&reports), expected);
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_a_failure_to_the_strict() {
    let mut world = World::new();
    let reports = world.four(&event(), |dialect| {
        let answer = go_on(dialect).to_string().replacen('{', r#"{"x":"\377","#, 1).replace(",}", "}");
        sh("x", &format!("printf '{answer}'"))
    });
    let expected: Vec<_> = DIALECTS
        .iter()
        .map(|dialect| if *dialect == "gate" { (Status::Failed, Flow::Block) } else { (Status::Ok, Flow::NoOpinion) })
        .collect();
    assert_eq!(ends(&reports), expected);
    assert_eq!(reports[0].warnings, ["the output is not valid UTF-8"]);
}

#[test]
fn a_refusal_in_bytes_that_are_no_text_refuses() {
    let mut world = World::new();
    let reports = world.four(&event(), |dialect| {
        let answer = refuse(dialect, "no").to_string().replace("no", r"\377");
        sh("x", &format!("printf '{answer}'"))
    });
    assert!(reports.iter().all(|report| report.refused && report.verdict.reasons == ["\u{fffd}"]));
}

#[test]
fn a_file_that_cannot_be_started_is_a_failure_that_names_the_missing_part() {
    let mut world = World::new();
    let plain = world.file("plain.sh", "#!/bin/sh\n");
    let shebang = world.script("shebang", "#!/no/such/interpreter\n");
    let nothing = world.script("nothing", "echo hello\n");
    for (path, part) in [
        (&plain, "is not executable; run `chmod +x"),
        (&shebang, "asks for the interpreter `/no/such/interpreter`, which does not exist"),
        (&nothing, "start its first line with `#!`"),
    ] {
        let reports = world.four(&event(), |_| file("x", path));
        assert_eq!(ends(&reports), everywhere(Status::Failed));
        for report in &reports {
            assert_error(report, part);
        }
    }
}

#[test]
fn a_working_folder_that_is_gone_fails_the_hook_that_asked_for_it() {
    let mut world = World::new();
    let reports = world.four(&event(), |_| HookSpec { cwd: Some("gone".into()), ..sh("x", "exit 0") });
    assert_eq!(ends(&reports), everywhere(Status::Failed));
    assert_error(&reports[0], &format!("its working directory `{}` does not exist", world.path("gone").display()));
}

#[test]
fn an_event_whose_folder_is_gone_takes_no_guard_down() {
    let world = World::new();
    let gone = world.path("gone");
    let event = Event::unchecked(EventKind::BeforeTool, [("cwd", gone.to_str().unwrap().into())]);
    let report = world.run(sh("x", "pwd >where; echo '{\"continue\":false}'"), &event);
    assert_eq!(report.status, Status::Blocked);
    let place = fs::read_to_string(world.path("where")).unwrap();
    assert_eq!(fs::canonicalize(place.trim()).unwrap(), fs::canonicalize(world.path(".")).unwrap());
}

#[test]
fn a_hook_runs_in_the_folder_of_the_event_and_its_own_is_relative_to_that() {
    let world = World::new();
    fs::create_dir_all(world.path("project/sub")).unwrap();
    let event = Event::unchecked(EventKind::BeforeTool, [("cwd", world.path("project").to_str().unwrap().into())]);
    world.run(sh("x", "touch here"), &event);
    world.run(HookSpec { cwd: Some("sub".into()), ..sh("x", "touch there") }, &event);
    assert!(world.path("project/here").exists() && world.path("project/sub/there").exists());
}

#[test]
fn exit_two_refuses_in_the_agent_dialect_whatever_else_is_said() {
    let world = World::new();
    for (script, reasons) in [
        ("echo 'not here' >&2; exit 2", "not here"),
        ("exit 2", "refused by hook `x`"),
        ("echo '{\"decision\":\"approve\"}'; exit 2", "refused by hook `x`"),
        ("echo '{\"continue\":true}'; echo 'still no' >&2; exit 2", "still no"),
    ] {
        let report = world.run(spoken("agent", sh("x", script)), &event());
        assert_eq!((report.status, report.verdict.flow), (Status::Blocked, Flow::Block), "{script}");
        assert_eq!(report.verdict.reasons, [reasons], "{script}");
    }
}

#[test]
fn a_timeout_longer_than_any_clock_counts_is_no_trouble() {
    let world = World::new();
    let report = world.run(within(Duration::MAX, sh("x", "echo '{\"continue\":false}'")), &event());
    assert_eq!(report.status, Status::Blocked);
}
