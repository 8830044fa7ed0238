//! Hooks that a signal ends, that are off, that have nothing to match, or that run into a limit.

use std::time::{Duration, Instant};

use ollm_protocol::{Event, EventKind, Hook, HookSpec, LimitsSpec, OnFailure, Timeout};

use crate::support::{World, event, ran, sh, skipped};

#[test]
fn hooks_end_when_nobody_wants_them_to_go_on_and_the_reason_is_told() {
    let mut world = World::new();
    world.add(sh("slow", "sleep 1000"));
    let outcome = world.engine.dispatch_until(&event(), &|| true);
    assert_eq!(outcome.reports[0].error.as_deref(), Some("was interrupted"));
    let outcome = world.engine.dispatch_by(&event(), Instant::now(), "nobody waited any longer");
    assert_eq!(outcome.reports[0].error.as_deref(), Some("nobody waited any longer"));
}

#[test]
fn without_the_subject_of_its_matcher_a_gate_has_failed_and_any_other_hook_is_skipped() {
    let mut world = World::new();
    let matching = |id: &str| HookSpec { matcher: Some("shell".to_owned()), ..sh(id, "true") };
    world.add(matching("looks"));
    world.add(HookSpec { on_failure: Some(OnFailure::Block), ..matching("gate") });
    let outcome = world.engine.dispatch(&Event::unchecked(EventKind::BeforeTool, []));
    assert_eq!((ran(&outcome), skipped(&outcome)), (vec!["gate"], vec![("looks", "matcher")]));
    let why = "the event has no `tool_name`, which its matcher `shell` looks at";
    assert_eq!(outcome.reports[0].error.as_deref(), Some(why));
    assert!(!outcome.verdict.flow.continues());
}

#[test]
fn a_hook_that_somebody_switched_off_is_skipped_with_their_words() {
    let mut world = World::new();
    let hook =
        Hook { off: Some("you switched it off".to_owned()), ..Hook::new(sh("off", "true"), &world.rules).unwrap() };
    world.engine.registry.register(hook).unwrap();
    let outcome = world.engine.dispatch(&event());
    assert_eq!(skipped(&outcome), [("off", "disabled")]);
    assert_eq!(outcome.skipped[0].detail, "you switched it off");
}

#[test]
fn the_limit_that_ended_a_hook_is_named() {
    let world = World::new();
    let told = |limits: LimitsSpec, script: &str| {
        world.run(HookSpec { limits, ..sh("limited", script) }, &event()).error.unwrap()
    };
    let cpu = LimitsSpec { cpu: Some(Duration::from_secs(5)), ..LimitsSpec::default() };
    assert!(told(cpu, "kill -XCPU $$").ends_with("; it ran into its limit `cpu` of 5s"));
    let memory = LimitsSpec { memory: Some(1 << 30), ..LimitsSpec::default() };
    let said = told(memory, "echo 'MemoryError' >&2; exit 1");
    assert!(said.ends_with("; it ran into its limit `memory` of 1073741824 bytes"), "{said}");
    let said = told(memory, "echo 'RangeError: Array buffer allocation failed' >&2; exit 1");
    assert!(said.ends_with("; it ran into its limit `memory` of 1073741824 bytes"), "{said}");
    // A shell crashes where it gets no memory, and so may others that it waited for.
    for crash in ["kill -SEGV $$", "kill -ABRT $$", "exit 139", "exit 134", "exit 133"] {
        let said = told(memory, crash);
        assert!(said.ends_with("; perhaps it ran into its limit `memory` of 1073741824 bytes"), "{said}");
    }
    let time = LimitsSpec { time: Some(Timeout::Exact(Duration::from_millis(50))), ..LimitsSpec::default() };
    let said =
        world.run(HookSpec { timeout: None, limits: time, ..sh("limited", "sleep 100") }, &event()).error.unwrap();
    assert!(said.ends_with("; it ran into its limit `time` of 50ms"), "{said}");
}
