//! Background hooks.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ollm_engine::{Engine, Environment, LateResult, Launcher, Status};
use ollm_process::Children;
use ollm_protocol::{Event, EventKind, Flow, Hook, HookSpec, Verdict};
use ollm_trust::Trust;

use crate::support::{World, builtin, event, eventually, file, logs, ran, runs, sh, skipped, spoken, within};

fn detached(spec: HookSpec) -> HookSpec {
    HookSpec { detached: Some(true), ..spec }
}

fn listening(world: &mut World) -> Arc<Mutex<Vec<LateResult>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ears = Arc::clone(&heard);
    world.engine.on_late(move |late| ears.lock().unwrap().push(late));
    heard
}

#[test]
fn nobody_waits_for_an_async_hook_and_it_decides_nothing() {
    let mut world = World::new();
    let heard = listening(&mut world);
    let refuses = "while [ ! -e go ]; do sleep 0.01; done; echo '{\"continue\": false}'";
    world.add(detached(sh("late", refuses)));
    world.add(logs("next"));
    let outcome = world.engine.dispatch(&event());
    assert!(outcome.continues());
    assert_eq!(ran(&outcome), ["late", "next"]);
    let report = &outcome.reports[0];
    assert_eq!((report.status, report.detached, report.verdict.flow), (Status::Ok, true, Flow::NoOpinion));
    assert!(heard.lock().unwrap().is_empty());

    world.file("go", "");
    eventually("it is told", || !heard.lock().unwrap().is_empty());
    let late = heard.lock().unwrap().pop().unwrap();
    assert_eq!((late.trace_id, late.event), (outcome.trace_id, EventKind::BeforeTool));
    assert_eq!((late.report.status, late.report.hook.id()), (Status::Blocked, "late"));
}

#[test]
fn agent_hooks_at_notifications_are_async_unless_they_say_otherwise() {
    let mut world = World::new();
    let spec = |id: &str| HookSpec { events: vec!["notification".to_owned()], ..spoken("agent", logs(id)) };
    world.add(spec("agent"));
    world.add(HookSpec { detached: Some(false), ..spec("waits") });
    world.add(HookSpec { dialect: Some("ollm".to_owned()), ..spec("ollm") });
    let outcome = world.engine.dispatch(&Event::unchecked(EventKind::Notification, [("message", "hi".into())]));
    let waits: Vec<_> = outcome.reports.iter().map(|report| (report.hook.id(), report.detached)).collect();
    assert_eq!(waits, [("agent", true), ("waits", false), ("ollm", false)]);
}

#[test]
fn an_async_closure_decides_nothing_but_may_speak() {
    let mut world = World::new();
    let verdict = Verdict { messages: vec!["seen".to_owned()], ..Verdict::block("no") };
    world.add(detached(builtin("closure", move |_| verdict.clone())));
    let outcome = world.engine.dispatch(&event());
    assert!(outcome.continues());
    assert_eq!(outcome.verdict, Verdict { messages: vec!["seen".to_owned()], ..Verdict::default() });
    assert_eq!(outcome.reports[0].warnings, ["it refused, but it is async and decides nothing"]);
}

#[test]
fn trust_limits_and_refusals_hold_for_async_hooks_too() {
    let mut world = World::new();
    let script = world.script("guest.sh", "#!/bin/sh\ntouch ran\n");
    world.add(detached(HookSpec { source: ollm_protocol::Source::Workspace, ..file("guest", &script) }));
    world.add(builtin("guard", |_| Verdict::block("no")));
    world.add(detached(logs("mine")));
    assert_eq!(skipped(&world.engine.dispatch(&event())), [("guest", "untrusted"), ("mine", "after_block")]);
    world.engine.registry.unregister("guard");
    world.engine.registry.unregister("mine");
    assert_eq!(skipped(&world.engine.dispatch(&event())), [("guest", "untrusted")]);
    assert!(!world.path("ran").exists());
}

#[test]
fn an_async_hook_has_a_deadline() {
    let mut world = World::new();
    let heard = listening(&mut world);
    world.add(within(Duration::from_millis(100), detached(sh("late", "sleep 1000"))));
    world.engine.dispatch(&event());
    eventually("it is ended", || !heard.lock().unwrap().is_empty());
    assert_eq!(heard.lock().unwrap()[0].report.status, Status::Timeout);
}

#[test]
fn more_than_a_few_run_one_after_the_other_and_far_too_many_are_refused() {
    let mut world = World::new();
    world.add(detached(sh("late", "echo $$ >>started; while [ ! -e go ]; do sleep 0.01; done; echo x >>log")));
    let outcomes: Vec<_> = (0..300).map(|_| world.engine.dispatch(&event())).collect();
    let refused: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.reports[0].error.as_deref()).collect();
    assert!(!refused.is_empty() && refused.len() <= 300 - 256, "{} were refused", refused.len());
    assert_eq!(refused[0], "256 hooks wait to run in the background already");
    assert!(outcomes.iter().all(ollm_engine::Outcome::continues));
    world.file("go", "");
    eventually("all have run", || world.log().len() == 300 - refused.len());
}

#[test]
fn what_still_runs_when_the_engine_goes_is_ended() {
    let mut world = World::new();
    world.add(detached(sh("late", "trap '' TERM; echo $$ >pid; while :; do sleep 0.1; done")));
    world.engine.dispatch(&event());
    eventually("it runs", || fs::read_to_string(world.path("pid")).is_ok_and(|pid| pid.ends_with('\n')));
    let pid = fs::read_to_string(world.path("pid")).unwrap();
    let empty = Engine::new(Trust::new(world.path("other.json"), std::time::SystemTime::now), Environment::default());
    drop(std::mem::replace(&mut world.engine, empty));
    eventually("it is gone", || !runs(&pid));
}

/// Hands tasks to a program that keeps them, for the test to run.
fn handing(world: &mut World) {
    let folder = world.path("");
    let script = format!("#!/bin/sh\ncd '{}'; cat >task.part; mv task.part task\n", folder.display());
    let background = Some(Launcher { program: world.script("keep.sh", &script), args: Vec::new() });
    let environment = Environment { background, ..world.engine.environment().clone() };
    let trust = Trust::new(world.path("approvals.json"), std::time::SystemTime::now);
    world.engine = Engine::new(trust, environment);
}

/// The task that was handed over.
fn handed(world: &mut World, spec: HookSpec) -> Vec<u8> {
    handing(world);
    world.add(spec);
    let outcome = world.engine.dispatch(&event());
    assert_eq!(outcome.reports[0].error, None);
    eventually("the task is there", || world.path("task").exists());
    fs::read(world.path("task")).unwrap()
}

#[test]
fn where_nobody_lives_on_another_process_runs_it() {
    let mut world = World::new();
    let script = "cat >seen; echo done >>log; exit 3";
    let task = handed(&mut world, detached(HookSpec { pass_env: vec![], ..sh("late", script) }));
    assert!(world.log().is_empty());
    let done = ollm_engine::run_handed_over(&task, &Children::new()).unwrap();
    assert_eq!((done.hook.as_str(), done.event, done.status), ("late", EventKind::BeforeTool, Status::Failed));
    assert_eq!(done.error.as_deref(), Some("exited with status 3"));
    assert_eq!(world.log(), ["done"]);
    assert!(fs::read_to_string(world.path("seen")).unwrap().contains("\"tool_name\":\"shell\""));
}

#[test]
fn the_process_that_runs_it_keeps_the_deadline_and_hides_secrets() {
    let mut world = World::with(&[("API_TOKEN", "hunter2hunter2")]);
    let leak = HookSpec { pass_env: vec!["API_TOKEN".to_owned()], ..sh("late", "echo $API_TOKEN >&2; exit 1") };
    let task = handed(&mut world, detached(leak));
    let done = ollm_engine::run_handed_over(&task, &Children::new()).unwrap();
    assert!(!done.error.as_ref().unwrap().contains("hunter2"), "{done:?}");

    let mut world = World::new();
    let task = handed(&mut world, within(Duration::from_millis(100), detached(sh("late", "sleep 1000"))));
    let done = ollm_engine::run_handed_over(&task, &Children::new()).unwrap();
    assert_eq!(done.status, Status::Timeout);
}

#[test]
fn a_background_that_cannot_be_started_is_a_failure_that_blocks_nothing() {
    let mut world = World::new();
    handing(&mut world);
    fs::remove_file(world.path("keep.sh")).unwrap();
    // What fails in this dialect refuses, unless the hook is async.
    world.add(detached(spoken("gate", logs("late"))));
    let outcome = world.engine.dispatch(&event());
    assert!(outcome.continues());
    assert_eq!(outcome.reports[0].status, Status::Failed);
    assert!(outcome.reports[0].error.as_ref().unwrap().starts_with("it could not be left to the background"));
}

#[test]
fn whether_a_hook_is_async_depends_on_the_event() {
    let world = World::new();
    let spec =
        HookSpec { events: vec!["Notification".to_owned(), "PreToolUse".to_owned()], ..spoken("agent", logs("both")) };
    let hook: Arc<Hook> = world.hook(spec);
    assert!(hook.detached(EventKind::Notification) && !hook.detached(EventKind::BeforeTool));
}

#[test]
fn a_listener_that_panics_costs_nobody_else_their_turn() {
    let mut world = World::new();
    world.engine.on_late(|_| panic!("broken on purpose"));
    world.add(detached(sh("late", "echo x >>log")));
    for _ in 0..40 {
        assert!(world.engine.dispatch(&event()).continues());
    }
    eventually("all have run", || world.log().len() == 40);
}
