//! How often hooks may run, also when many processes ask at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use ollm_engine::{Engine, Environment};
use ollm_protocol::{Flow, Hook, HookSpec, OnFailure, Origin, RateLimit, Rules, Source, Verdict};
use ollm_trust::Trust;

use crate::support::{World, builtin, event, logs, ran, sh, skipped};

fn per_minute(count: u32, spec: HookSpec) -> HookSpec {
    HookSpec { rate_limit: RateLimit { per_minute: Some(count), cooldown: None }, ..spec }
}

fn cooldown(pause: Duration, spec: HookSpec) -> HookSpec {
    HookSpec { rate_limit: RateLimit { per_minute: None, cooldown: Some(pause) }, ..spec }
}

#[test]
fn a_hook_runs_as_often_as_its_limit_says_and_the_plan_knows() {
    let mut world = World::new();
    world.add(per_minute(2, logs("limited")));
    world.add(logs("free"));
    let runs: Vec<_> = (0..3).map(|_| ran(&world.engine.dispatch(&event())).len()).collect();
    assert_eq!(runs, [2, 2, 1]);
    let plan = world.engine.plan(&event());
    assert_eq!(plan.skipped.len(), 1);
    let detail = &plan.skipped[0].detail;
    assert!(detail.starts_with("its rate limit of 2 per minute is used up; it may run again in "), "{detail}");
    assert_eq!(world.log(), ["limited", "free", "limited", "free", "free"]);
}

#[test]
fn a_cooldown_passes() {
    let mut world = World::new();
    world.add(cooldown(Duration::from_millis(300), logs("slow")));
    assert_eq!(ran(&world.engine.dispatch(&event())), ["slow"]);
    crate::support::eventually("the cooldown is over", || !ran(&world.engine.dispatch(&event())).is_empty());
    world.engine.registry.clear();
    world.add(cooldown(Duration::from_hours(1), logs("slower")));
    assert_eq!(ran(&world.engine.dispatch(&event())), ["slower"]);
    assert_eq!(skipped(&world.engine.dispatch(&event())), [("slower", "rate_limited")]);
}

#[test]
fn the_clock_comes_in_as_a_value() {
    static NOW: AtomicU64 = AtomicU64::new(1_800_000_000);
    fn clock() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(NOW.load(Ordering::Relaxed))
    }
    let world = World::new();
    let mut engine = Engine::new(Trust::new(world.path("approvals.json"), clock), world.engine.environment().clone());
    engine.registry.register(Hook::new(per_minute(1, logs("a")), &Rules::default()).unwrap()).unwrap();
    let mut runs = |at: u64| {
        NOW.store(1_800_000_000 + at, Ordering::Relaxed);
        !ran(&engine.dispatch(&event())).is_empty()
    };
    assert_eq!([0, 59, 60, 61, 119, 120].map(&mut runs), [true, false, true, false, false, true]);
}

#[test]
fn the_limit_for_all_counts_all_but_builtins_and_gates() {
    let mut world = World::new();
    world.engine.rates.global = RateLimit { per_minute: Some(2), cooldown: None };
    world.add(builtin("builtin", |_| Verdict::default()));
    world.add(logs("one"));
    world.add(HookSpec { on_failure: Some(OnFailure::Block), ..logs("gate") });
    world.add(logs("two"));
    world.add(logs("three"));
    let outcome = world.engine.dispatch(&event());
    assert_eq!(ran(&outcome), ["builtin", "one", "gate", "two"]);
    assert_eq!(skipped(&outcome), [("three", "rate_limited")]);
    assert!(outcome.skipped[0].detail.contains("`hooks.rateLimit`"), "{}", outcome.skipped[0].detail);
    assert_eq!(ran(&world.engine.dispatch(&event())), ["builtin", "gate"]);
}

#[test]
fn a_gate_whose_limit_is_used_up_has_failed_and_refuses() {
    let mut world = World::new();
    world.add(HookSpec { on_failure: Some(OnFailure::Block), ..per_minute(1, logs("gate")) });
    world.add(HookSpec { on_failure: Some(OnFailure::Ask), ..per_minute(1, logs("question")) });
    assert!(world.engine.dispatch(&event()).continues());
    let plan = world.engine.plan(&event());
    let failures: Vec<_> = plan.stages.iter().flatten().map(|planned| planned.failure().is_some()).collect();
    assert_eq!((failures, plan.skipped.len()), (vec![true, true], 0));
    let outcome = world.engine.dispatch(&event());
    let flows: Vec<_> = outcome.reports.iter().map(|report| (report.hook.id(), report.verdict.flow)).collect();
    assert_eq!(flows, [("gate", Flow::Block), ("question", Flow::Ask)]);
    let reason = &outcome.verdict.reasons[0];
    assert!(reason.starts_with("user hook `gate` failed: its rate limit of 1 per minute is used up"), "{reason}");
    assert_eq!(world.log(), ["gate", "question"], "each ran once");
}

#[test]
fn a_gate_whose_limit_another_process_used_up_since_the_plan_refuses_too() {
    let mut world = World::new();
    let gate = HookSpec { on_failure: Some(OnFailure::Block), parallel: true, ..per_minute(1, logs("gate")) };
    let origin = Origin { file: "/x/hooks.json".into(), line: 1, column: 1 };
    let spec =
        |name: &str| HookSpec { id: "gate".to_owned(), origin: origin.clone(), name: name.to_owned(), ..gate.clone() };
    let twin = Hook::new(spec("gate"), &Rules::default()).unwrap();
    let mut other = World::new().engine;
    other.rates = world.engine.rates.clone();
    other.registry.register(twin).unwrap();
    world.add(builtin("other process", move |event| {
        other.dispatch(event);
        Verdict::default()
    }));
    world.add(spec("gate"));
    let outcome = world.engine.dispatch(&event());
    assert!(!outcome.continues(), "{outcome:?}");
}

#[test]
fn the_cooldown_for_all_is_each_hooks_own() {
    let mut world = World::new();
    world.engine.rates.global = RateLimit { per_minute: None, cooldown: Some(Duration::from_hours(1)) };
    world.add(logs("one"));
    world.add(cooldown(Duration::ZERO, logs("two")));
    assert_eq!(ran(&world.engine.dispatch(&event())), ["one", "two"]);
    assert_eq!(ran(&world.engine.dispatch(&event())), ["two"]);
}

#[test]
fn what_does_not_run_uses_nothing_up() {
    let mut world = World::new();
    world.add(per_minute(1, HookSpec { source: Source::Workspace, ..logs("stranger") }));
    let guard = world.add(builtin("guard", |_| Verdict::block("no")));
    for _ in 0..3 {
        assert_eq!(skipped(&world.engine.dispatch(&event())), [("stranger", "untrusted")]);
    }
    world.engine.registry.unregister(guard.id());
    assert_eq!(skipped(&world.engine.dispatch(&event())), [("stranger", "untrusted")]);
    let hook = world.engine.registry.get("stranger").unwrap().clone();
    world.approve(&hook);
    assert_eq!(ran(&world.engine.dispatch(&event())), ["stranger"]);
}

#[test]
fn the_file_is_touched_only_for_hooks_with_a_limit() {
    let mut world = World::new();
    world.add(logs("free"));
    world.engine.dispatch(&event());
    assert!(!world.path("state/rates").exists());
    world.add(per_minute(1, logs("limited")));
    world.engine.dispatch(&event());
    assert!(world.path("state/rates").exists());
}

#[test]
fn a_broken_file_is_said_and_holds_nothing_up() {
    let mut world = World::new();
    world.add(per_minute(1, logs("limited")));
    fs::create_dir_all(world.path("state")).unwrap();
    fs::write(world.path("state/rates"), "garbage").unwrap();
    let outcome = world.engine.dispatch(&event());
    assert_eq!(ran(&outcome), ["limited"]);
    let warnings = &outcome.reports[0].warnings;
    assert!(warnings.iter().any(|warning| warning.contains("starts afresh")), "{warnings:?}");
    assert_eq!(skipped(&world.engine.dispatch(&event())), [("limited", "rate_limited")]);

    fs::remove_file(world.path("state/rates")).unwrap();
    fs::create_dir(world.path("state/rates")).unwrap();
    let outcome = world.engine.dispatch(&event());
    assert_eq!(ran(&outcome), ["limited"]);
    let warnings = &outcome.reports[0].warnings;
    assert!(warnings.iter().any(|warning| warning.contains("could not be kept")), "{warnings:?}");
}

const FOLDER: &str = "RATE_TEST_FOLDER";
const PROCESSES: usize = 64;
const LIMIT: u32 = 20;

fn limited(folder: &Path) -> Engine {
    let environment = Environment {
        variables: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: folder.to_owned(),
        ..Environment::default()
    };
    let mut engine = Engine::new(Trust::new(folder.join("approvals.json"), SystemTime::now), environment);
    let spec = per_minute(LIMIT, sh("limited", "echo x >>log"));
    engine.registry.register(Hook::new(spec, &Rules::default()).unwrap()).unwrap();
    engine
}

/// One of the many processes; does nothing unless it is started by the test below.
#[test]
fn a_process_of_the_rate_test() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let engine = limited(&folder);
    // All wait for the same door to open.
    crate::support::eventually("the door is open", || folder.join("go").exists());
    for _ in 0..2 {
        engine.dispatch(&event());
    }
}

#[test]
fn sixty_four_processes_at_once_share_one_limit_exactly() {
    let world = World::new();
    let folder = world.path("");
    let me = std::env::current_exe().unwrap();
    let start = || {
        Command::new(&me)
            .args(["--exact", "rate::a_process_of_the_rate_test"])
            .env(FOLDER, &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..PROCESSES).map(|_| start()).collect();
    fs::write(folder.join("go"), "").unwrap();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(world.log().len(), LIMIT as usize);
}
