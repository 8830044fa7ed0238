//! What earlier programs of this kind got wrong, by the number of each defect.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use ollm_engine::{Engine, Environment, Registry, Status};
use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{
    ActionSpec, Commands, Event, EventKind, Flow, Hook, HookError, HookSpec, Remedy, Rules, Source, Verdict,
};
use ollm_trust::Trust;
use serde_json::json;

use crate::support::{
    PATIENCE, World, builtin, cat, command, event, eventually, file, logs, prints, ran, refuse, runs, sh, skipped,
    spoken, within,
};

/// A verdict still in the pipe when the program has exited is a verdict.
#[test]
fn h01_no_verdict_is_lost_in_the_pipe() {
    let mut world = World::new();
    let answer = format!("{}{}", " ".repeat(60_000), refuse("ollm", "no"));
    let path = world.file("answer", answer);
    for index in 0..8 {
        world.add(HookSpec { parallel: true, ..cat(&format!("hook-{index}"), &path) });
    }
    for _ in 0..40 {
        let outcome = world.engine.dispatch(&event());
        assert_eq!(outcome.verdict.reasons, vec!["no"; 8]);
    }
}

/// A hook that ignores the polite signal does not hold the event up for its whole life.
#[test]
fn h02_a_hook_that_ignores_term_is_killed() {
    let world = World::new();
    let started = Instant::now();
    let script = "trap '' TERM; while :; do sleep 300; done";
    let report = world.run(within(Duration::from_millis(300), sh("x", script)), &event());
    assert_eq!(report.status, Status::Timeout);
    assert!(started.elapsed() < PATIENCE);
}

/// A hook that does not read its input does no harm to the engine.
#[test]
fn h03_an_unread_event_is_no_error() {
    let world = World::new();
    let huge = Event::unchecked(EventKind::BeforeTool, [("args", json!({"content": "x".repeat(8 << 20)}))]);
    for script in ["echo '{\"continue\":false}'", "exec <&-; echo '{\"continue\":false}'"] {
        assert_eq!(world.run(sh("x", script), &huge).status, Status::Blocked);
    }
}

/// A refusal is in the hands of the caller when the dispatch returns.
#[test]
fn h04_blocking_has_an_effect() {
    let mut world = World::new();
    world.add(sh("guard", &prints(&refuse("ollm", "not now"))));
    let outcome = world.engine.dispatch(&event());
    assert!(!outcome.continues());
    assert_eq!(outcome.verdict.reason().as_deref(), Some("not now"));
}

/// The order of a dispatch is the planned one, not that of registration.
#[test]
fn h05_dispatching_follows_the_plan() {
    let mut world = World::new();
    let workspace = world.add(HookSpec { source: Source::Workspace, ..logs("workspace") });
    world.approve(&workspace);
    world.add(logs("user"));
    world.add(HookSpec { source: Source::Builtin, ..logs("builtin") });
    world.engine.dispatch(&event());
    assert_eq!(world.log(), ["builtin", "user", "workspace"]);
}

/// The approval of a script does not cover another command line.
#[test]
fn h07_another_command_line_needs_another_approval() {
    let world = World::new();
    let script = world.script("guard.sh", "#!/bin/sh\n");
    let base = HookSpec { source: Source::Workspace, ..file("guard", &script) };
    world.approve(&world.hook(base.clone()));
    let path = script.to_str().unwrap().to_owned();
    for (line, args) in [(path.clone(), vec!["--allow-all".to_owned()]), ("/bin/sh".to_owned(), vec![path])] {
        let action = ActionSpec::Command(CommandSpec { command: line, args, script: Some(script.clone()) });
        let skip = world.engine.trusted(&world.hook(HookSpec { action, ..base.clone() })).unwrap_err();
        assert_eq!(skip.reason.name(), "modified");
    }
}

/// Content is hashed as bytes: bytes that are no text differ like any others.
#[test]
fn h08_every_byte_counts() {
    let world = World::new();
    let script = world.script("guard.sh", "");
    fs::write(&script, b"#!/bin/sh\n# \xff\n").unwrap();
    let hook = world.hook(HookSpec { source: Source::Workspace, ..file("guard", &script) });
    world.approve(&hook);
    assert!(world.engine.trusted(&hook).is_ok());
    fs::write(&script, b"#!/bin/sh\n# \xfe\n").unwrap();
    assert_eq!(world.engine.trusted(&hook).unwrap_err().reason.name(), "modified");
}

/// A script that cannot be read is never judged by its command line instead.
#[test]
fn h09_an_unreadable_script_has_no_identity() {
    let mut world = World::new();
    let script = world.script("guard.sh", "#!/bin/sh\n");
    for id in ["approved", "unknown"] {
        world.add(HookSpec { source: Source::Workspace, ..file(id, &script) });
    }
    let approved = world.engine.registry.get("approved").unwrap();
    world.approve(approved);
    fs::remove_file(&script).unwrap();
    fs::create_dir(&script).unwrap();
    assert!(world.engine.trust.identity(&**approved, &world.engine.environment().trust_context()).is_err());
    let outcome = world.engine.dispatch(&event());
    assert_eq!(skipped(&outcome), [("unknown", "untrusted"), ("approved", "unsafe")]);
    // Of what has no approval nothing is looked at.
    assert!(outcome.skipped[1].detail.contains("not a regular file"), "{}", outcome.skipped[1].detail);
}

/// A corrupt approvals file approves nothing and disturbs no other hook.
#[test]
fn h11_a_corrupt_approvals_file_is_isolated() {
    let mut world = World::new();
    world.file("approvals.json", "{\"version\": 1, \"approvals\": [");
    world.add(HookSpec { source: Source::Workspace, ..logs("workspace") });
    world.add(logs("user"));
    let outcome = world.engine.dispatch(&event());
    assert_eq!((ran(&outcome), skipped(&outcome)), (vec!["user"], vec![("workspace", "untrusted")]));
    assert!(outcome.skipped[0].detail.contains("approvals.json"), "{}", outcome.skipped[0].detail);
}

/// There is no side door: every way to run a hook checks it and holds it to its limits.
#[test]
fn h12_every_way_to_run_a_hook_is_the_same() {
    let shell = HookSpec::new(
        "x",
        "before_tool",
        ActionSpec::Command(CommandSpec { command: "sh; rm -rf /".to_owned(), args: Vec::new(), script: None }),
    );
    assert!(matches!(Hook::new(shell, &Rules::default()), Err(HookError::Metacharacters(_))));

    let mut world = World::new();
    let hook = world.add(sh("flood", "head -c 3000000 /dev/zero; exec sleep 300"));
    let trusted = world.engine.trusted(&hook).unwrap();
    let mut reports = vec![world.engine.run_one(&trusted, &event()).unwrap()];
    reports.extend(world.engine.run_many(&[trusted], &event()));
    reports.extend(world.engine.dispatch(&event()).reports);
    assert_eq!(reports.len(), 3);
    for report in reports {
        assert!(
            report.error.unwrap().starts_with("wrote more than its limit `output` of 1048576 bytes and was stopped")
        );
    }
    let stranger = world.hook(HookSpec { source: Source::Workspace, ..logs("stranger") });
    assert_eq!(world.engine.trusted(&stranger).unwrap_err().reason.name(), "untrusted");
}

/// A command with its arguments in one text is refused with the way out, and that way works.
#[test]
fn h13_arguments_in_the_command_are_refused_with_the_way_out() {
    let world = World::new();
    let error = Hook::new(command("x", "sh -c true", &[]), &Rules::default()).unwrap_err();
    let text = "command `sh -c true` holds arguments; name the program alone and put the rest into `args`";
    assert_eq!(error.to_string(), text);
    let report = world.run(spoken("agent", command("x", "sh", &["-c", "exit 2"])), &event());
    assert_eq!(report.status, Status::Blocked);
}

/// Two hooks never share an id, and removing one removes one.
#[test]
fn h14_ids_are_unique() {
    let mut registry = Registry::new();
    let mut add =
        |id: &str| registry.register(Hook::new(builtin(id, |_| Verdict::default()), &Rules::default()).unwrap());
    let first = add("guard").unwrap();
    assert!(add("guard").is_err());
    add("other").unwrap();
    assert!(Arc::ptr_eq(registry.get("guard").unwrap(), &first));
    assert!(registry.unregister("guard"));
    assert_eq!(registry.for_event(EventKind::BeforeTool).iter().map(|hook| hook.id()).collect::<Vec<_>>(), ["other"]);
}

/// The whole family of a hook ends with it.
#[test]
fn h15_grandchildren_do_not_survive_a_timeout() {
    let world = World::new();
    let script = "sh -c 'sleep 300 & echo $! >pid.tmp; mv pid.tmp pid; wait' & wait";
    for millis in [100, 500, 2000, 10_000] {
        let report = world.run(within(Duration::from_millis(millis), sh("x", script)), &event());
        assert_eq!(report.status, Status::Timeout);
        if let Ok(pid) = fs::read_to_string(world.path("pid")) {
            return eventually("the grandchild is gone", || !runs(&pid));
        }
    }
    panic!("the grandchild was never started");
}

/// Characters that are split over reads arrive whole.
#[test]
fn h16_characters_split_over_chunks_stay_whole() {
    let world = World::new();
    for shift in 0..4 {
        let text = format!("{}{}", "x".repeat(shift), "ü€𝄞".repeat(60_000));
        let answer = json!({"continue": true, "data": {"text": text}});
        let report = world.run(cat("x", &world.file("answer", answer.to_string())), &event());
        assert_eq!((report.status, report.verdict.data["text"].as_str()), (Status::Ok, Some(text.as_str())));
    }
}

/// Hooks that wait for approval are told of, with the command that approves them.
#[test]
fn h17_hooks_that_wait_for_approval_are_not_silent() {
    let mut world = World::new();
    world.add(HookSpec { source: Source::Workspace, ..logs("guard") });
    world.engine.trust.commands = Commands::new(|remedy| match remedy {
        Remedy::ApproveHook(id) => Some(format!("mine approve {id}")),
        _ => None,
    });
    let outcome = world.engine.dispatch(&event());
    assert_eq!(skipped(&outcome), [("guard", "untrusted")]);
    assert!(outcome.skipped[0].reason.needs_approval());
    assert_eq!(outcome.skipped[0].detail, "not approved; review and approve it with `mine approve guard`");
}

/// Hooks that are switched off do not run.
#[test]
fn h18_switching_hooks_off_reaches_the_runner() {
    let mut world = World::new();
    world.engine.switched_off = Some("`hooks.enabled` is false".to_owned());
    world.add(logs("guard"));
    let outcome = world.engine.dispatch(&event());
    assert_eq!((ran(&outcome), skipped(&outcome)), (vec![], vec![("guard", "disabled")]));
    assert_eq!(outcome.verdict.flow, Flow::NoOpinion);
    assert!(world.log().is_empty());
}

/// Two dispatches in one moment have two names.
#[test]
fn h19_trace_ids_do_not_collide() {
    let frozen = || UNIX_EPOCH + Duration::from_hours(500_000);
    let trust = Trust::new("approvals.json".into(), frozen);
    let engine = Engine::new(trust, Environment::default());
    let ids: HashSet<_> = (0..10_000).map(|_| engine.dispatch(&event()).trace_id).collect();
    assert_eq!(ids.len(), 10_000);
}
