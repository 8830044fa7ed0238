//! What a failed, a missing, and a panicking hook mean for the operation.

use std::time::Duration;

use ollm_engine::{Status, summarise};
use ollm_protocol::hook::action::ShellSpec;
use ollm_protocol::{ActionSpec, Flow, HookSpec, OnFailure, Source};
use serde_json::json;

use crate::support::{
    DIALECTS, World, builtin, command, ends, event, file, go_on, logs, prints, ran, sh, skipped, spoken, within,
};

const POLICIES: [(OnFailure, Flow); 3] =
    [(OnFailure::Allow, Flow::NoOpinion), (OnFailure::Block, Flow::Block), (OnFailure::Ask, Flow::Ask)];

#[test]
fn the_policy_of_a_hook_goes_before_that_of_its_dialect() {
    for (policy, flow) in POLICIES {
        let mut world = World::new();
        let reports = world.four(&event(), |_| HookSpec { on_failure: Some(policy), ..sh("x", "exit 1") });
        assert_eq!(ends(&reports), vec![(Status::Failed, flow); DIALECTS.len()]);
        let spec = |_| within(Duration::from_millis(30), sh("x", "exec sleep 300"));
        let reports = world.four(&event(), |dialect| HookSpec { on_failure: Some(policy), ..spec(dialect) });
        assert_eq!(ends(&reports), vec![(Status::Timeout, flow); DIALECTS.len()]);
    }
}

#[test]
fn a_failure_is_never_dressed_as_a_refusal() {
    let mut world = World::new();
    world.add(HookSpec { on_failure: Some(OnFailure::Block), ..sh("guard", "exit 1") });
    let outcome = world.engine.dispatch(&event());
    assert!(!outcome.continues());
    assert_eq!(outcome.reports[0].status, Status::Failed);
    assert!(!outcome.reports[0].refused);
    assert_eq!(outcome.verdict.reasons, ["user hook `guard` failed: exited with status 1"]);
}

#[test]
fn a_failure_never_stops_the_chain() {
    let mut world = World::new();
    for dialect in DIALECTS {
        let spec = spoken(dialect, sh(&format!("broken-{dialect}"), "exit 1"));
        world.add(HookSpec { on_failure: Some(OnFailure::Block), ..spec });
    }
    world.add(logs("last"));
    let outcome = world.engine.dispatch(&event());
    assert_eq!(outcome.reports.len(), 5);
    assert!(outcome.skipped.is_empty() && !outcome.continues());
    assert_eq!(outcome.verdict.reasons.len(), 4);
    assert_eq!(world.log(), ["last"]);
}

#[test]
fn a_failed_hook_approves_nothing() {
    let world = World::new();
    let approve = prints(&json!({"decision": "approve"}));
    let report = world.run(spoken("agent", sh("x", &approve)), &event());
    assert_eq!((report.status, report.verdict.flow), (Status::Ok, Flow::Allow));
    let report = world.run(spoken("agent", sh("x", &format!("{approve}; exit 1"))), &event());
    assert_eq!((report.status, report.verdict.flow), (Status::Failed, Flow::NoOpinion));
}

#[test]
fn an_answer_with_an_error_failed_and_its_other_fields_count() {
    let world = World::new();
    let answer = json!({"continue": true, "error": "half done", "systemMessage": "note", "data": {"x": 1}});
    let report = world.run(sh("x", &prints(&answer)), &event());
    assert_eq!((report.status, report.error.as_deref()), (Status::Failed, Some("half done")));
    assert_eq!(report.verdict.system_messages, ["note"]);
    assert_eq!(report.verdict.data["x"], 1);
}

#[test]
fn a_panicking_builtin_is_a_failed_hook() {
    for (policy, flow) in POLICIES {
        let mut world = World::new();
        world.add(HookSpec { on_failure: Some(policy), ..builtin("broken", |_| panic!("on purpose")) });
        world.add(logs("last"));
        let outcome = world.engine.dispatch(&event());
        assert_eq!(ends(&outcome.reports), [(Status::Failed, flow), (Status::Ok, Flow::NoOpinion)]);
        assert_eq!(outcome.reports[0].error.as_deref(), Some("it panicked"));
    }
}

/// A hook whose script is not there.
fn without_script(world: &World, id: &str) -> HookSpec {
    file(id, &world.path("gone.sh"))
}

#[test]
fn a_missing_script_is_skipped_where_failures_are_let_through() {
    for dialect in ["ollm", "rpc", "agent"] {
        let mut world = World::new();
        world.add(spoken(dialect, without_script(&world, "guard")));
        world.add(logs("last"));
        let outcome = world.engine.dispatch(&event());
        assert_eq!(skipped(&outcome), [("guard", "missing")]);
        assert!(outcome.skipped[0].detail.contains("gone.sh does not exist"));
        assert!(outcome.continues());
        assert_eq!(ran(&outcome), ["last"]);
    }
}

#[test]
fn a_missing_script_fails_where_failures_count() {
    for (dialect, policy, flow) in [
        ("gate", None, Flow::Block),
        ("gate", Some(OnFailure::Ask), Flow::Ask),
        ("ollm", Some(OnFailure::Block), Flow::Block),
        ("agent", Some(OnFailure::Ask), Flow::Ask),
    ] {
        let mut world = World::new();
        world.add(HookSpec { on_failure: policy, ..spoken(dialect, without_script(&world, "guard")) });
        world.add(logs("last"));
        let outcome = world.engine.dispatch(&event());
        assert_eq!(ends(&outcome.reports), [(Status::Failed, flow), (Status::Ok, Flow::NoOpinion)]);
        assert!(outcome.reports[0].error.as_deref().unwrap().contains("gone.sh does not exist"));
        assert!(outcome.skipped.is_empty());
    }
}

#[test]
fn a_missing_interpreter_is_treated_like_a_missing_script() {
    let program = |world: &World, name: &str| if name.contains('/') { world.path("python3") } else { name.into() };
    for (name, part) in [("python3", "`python3` is not on PATH"), ("bin/python3", "python3 does not exist")] {
        let mut world = World::with(&[("PATH", "/nowhere")]);
        world.add(spoken("ollm", command("soft", program(&world, name), &["guard.py"])));
        world.add(spoken("gate", command("hard", program(&world, name), &["guard.py"])));
        let outcome = world.engine.dispatch(&event());
        assert_eq!(skipped(&outcome), [("soft", "missing")], "{name}");
        assert!(outcome.skipped[0].detail.contains(part), "{}", outcome.skipped[0].detail);
        assert_eq!(ends(&outcome.reports), [(Status::Failed, Flow::Block)], "{name}");
    }
}

#[test]
fn an_approved_guard_whose_script_cannot_be_read_any_more_does_not_open_the_gate() {
    let mut world = World::new();
    let script = world.script("guard.sh", "#!/bin/sh\necho '{\"allow\":false}'\n");
    let hook = world.add(HookSpec { source: Source::Workspace, ..spoken("gate", file("guard", &script)) });
    world.approve(&hook);
    assert_eq!(world.engine.dispatch(&event()).reports[0].status, Status::Blocked);

    std::fs::remove_file(&script).unwrap();
    std::fs::create_dir(&script).unwrap();
    let outcome = world.engine.dispatch(&event());
    assert_eq!(ends(&outcome.reports), [(Status::Failed, Flow::Block)]);
    std::fs::remove_dir(&script).unwrap();
    let outcome = world.engine.dispatch(&event());
    assert_eq!(ends(&outcome.reports), [(Status::Failed, Flow::Block)]);
}

#[test]
fn a_hook_nobody_approved_cannot_block_by_being_broken() {
    let mut world = World::new();
    std::fs::create_dir(world.path("folder")).unwrap();
    for (id, path) in [("absent", "gone.sh"), ("unreadable", "folder")] {
        let spec = spoken("gate", file(id, &world.path(path)));
        world.add(HookSpec { source: Source::Workspace, ..spec });
    }
    let outcome = world.engine.dispatch(&event());
    assert!(outcome.continues(), "{:?}", outcome.verdict);
    assert_eq!(skipped(&outcome), [("absent", "untrusted"), ("unreadable", "untrusted")]);
}

#[test]
fn the_words_for_how_it_went_are_the_documented_ones() {
    let words = [Status::Ok, Status::Blocked, Status::Failed, Status::Timeout].map(Status::name);
    assert_eq!(words, ["ok", "blocked", "failed", "timeout"]);
}

#[test]
fn a_summary_counts_runs_by_how_they_went() {
    let world = World::new();
    let scripts = ["exit 1", "exit 1", "exit 1", "echo '{\"continue\":false}'", "true", "true"];
    let mut reports: Vec<_> = scripts.iter().map(|script| world.run(sh("x", script), &event())).collect();
    reports.push(world.run(within(Duration::from_millis(20), sh("x", "exec sleep 300")), &event()));
    let summary = summarise(&reports);
    let counts = (summary.total, summary.failed, summary.blocked, summary.timed_out, summary.ok);
    assert_eq!(counts, (7, 3, 1, 1, 2));
    assert_eq!(summary.duration, reports.iter().map(|report| report.duration).sum::<std::time::Duration>());
}

#[test]
fn a_gate_that_goes_on_has_no_opinion() {
    let world = World::new();
    for dialect in DIALECTS {
        let report = world.run(spoken(dialect, sh("x", &prints(&go_on(dialect)))), &event());
        assert_eq!((report.status, report.verdict.flow), (Status::Ok, Flow::NoOpinion), "{dialect}");
    }
}

#[test]
fn a_shell_hook_needs_no_file() {
    let world = World::new();
    let action = ActionSpec::Shell(ShellSpec { script: "echo no >&2; exit 2".to_owned() });
    let report = world.run(spoken("agent", HookSpec { action, ..sh("x", "") }), &event());
    assert_eq!((report.status, report.verdict.reasons), (Status::Blocked, vec!["no".to_owned()]));
}
