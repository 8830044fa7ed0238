//! Properties of whole dispatches: which hook stops which, what passes on, and what the settings change.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use ollm_engine::Status;
use ollm_protocol::{Basis, Event, EventKind, HookSpec, Source};
use proptest::prelude::*;
use serde_json::{Map, Value};
use testkit::json_value;

use crate::support::{DIALECTS, World, cases, cat, command, event, go_on, logs, ran, refuse, sh, skipped, spoken};

/// The part of what a hook of a dialect read that holds the event's data.
fn data_read(dialect: &str, wire: &Value) -> Value {
    match dialect {
        "ollm" => wire["data"].clone(),
        "gate" => wire["context"].clone(),
        "rpc" => wire["params"]["event"]["data"].clone(),
        _ => wire.clone(),
    }
}

/// The answer of a dialect that returns data.
fn returning(dialect: &str, data: &Map<String, Value>) -> Value {
    let mut answer = go_on(dialect);
    let place = if dialect == "rpc" { &mut answer["result"]["data"] } else { &mut answer["data"] };
    *place = data.clone().into();
    answer
}

/// Data under names that hooks share, one of which is the event's own.
fn data() -> impl Strategy<Value = Map<String, Value>> {
    let name = prop::sample::select(&["x_a", "x_b", "x_c", "x_own"][..]);
    prop::collection::vec((name.prop_map(str::to_owned), json_value()), 0..4).prop_map(Map::from_iter)
}

#[derive(Clone, Debug)]
struct Declared {
    source: Source,
    enabled: bool,
    /// Whether it relies on the configured timeout to be stopped.
    sleeps: bool,
}

fn declared() -> impl Strategy<Value = Declared> {
    let sources: Vec<_> = Source::NAMES.iter().map(|(source, _)| *source).collect();
    (prop::sample::select(sources), prop::bool::weighted(0.8), any::<bool>())
        .prop_map(|(source, enabled, sleeps)| Declared { source, enabled, sleeps })
}

proptest! {
    #![proptest_config(cases())]

    /// The first refusal of a dialect that stops the chain stops it, every refusal refuses, and the messages of the
    /// hooks that ran reach the conversation in the order of their runs.
    #[test]
    fn property_35_hook_flow_control(
        answers in prop::collection::vec((prop::sample::select(&DIALECTS[..]), prop::bool::weighted(0.25)), 0..6),
    ) {
        let mut world = World::new();
        let (mut expected_runs, mut messages, mut reasons, mut stopped) = (0, Vec::new(), Vec::new(), false);
        for (index, (dialect, refuses)) in answers.iter().enumerate() {
            let text = format!("message {index}");
            let mut answer = if *refuses { refuse(dialect, &text) } else { go_on(dialect) };
            let speaks = matches!(*dialect, "ollm" | "agent");
            if speaks {
                answer["systemMessage"] = text.clone().into();
            }
            if !stopped {
                expected_runs += 1;
                messages.extend(speaks.then(|| text.clone()));
                reasons.extend(refuses.then_some(text));
                stopped = *refuses && *dialect != "agent";
            }
            let file = world.file(&format!("answer-{index}"), answer.to_string());
            world.add(spoken(dialect, cat(&format!("hook-{index}"), &file)));
        }
        let outcome = world.engine.dispatch(&event());

        prop_assert_eq!(outcome.reports.len(), expected_runs);
        prop_assert_eq!(outcome.continues(), reasons.is_empty());
        prop_assert_eq!(&outcome.verdict.reasons, &reasons);
        prop_assert_eq!(&outcome.verdict.system_messages, &messages);
        let expected: Vec<_> = (expected_runs..answers.len()).map(|index| format!("hook-{index}")).collect();
        let expected: Vec<_> = expected.iter().map(|id| (id.as_str(), "after_block")).collect();
        prop_assert_eq!(skipped(&outcome), expected);
    }

    /// What hooks return reaches every later hook, later values win, and the event's own fields stay unchanged.
    #[test]
    fn property_36_hook_data_passing(
        returned in prop::collection::vec((prop::sample::select(&DIALECTS[..]), data()), 1..5),
    ) {
        let mut world = World::new();
        let own = Event::unchecked(EventKind::Notification, [("x_own", "mine".into())]);
        for (index, (dialect, data)) in returned.iter().enumerate() {
            let answer = world.file(&format!("answer-{index}"), returning(dialect, data).to_string());
            let args = ["-c", r#"cat >"$1"; cat "$2""#, "sh", &format!("read-{index}"), answer.to_str().unwrap()];
            let spec = spoken(dialect, command(&format!("hook-{index}"), "/bin/sh", &args));
            world.add(HookSpec { events: vec!["notification".to_owned()], detached: Some(false), ..spec });
        }
        let outcome = world.engine.dispatch(&own);

        let mut passed = Map::new();
        for (index, (dialect, data)) in returned.iter().enumerate() {
            let bytes = fs::read(world.path(&format!("read-{index}"))).unwrap();
            let read = data_read(dialect, &serde_json::from_slice(&bytes).unwrap());
            prop_assert_eq!(&read["x_own"], "mine");
            for name in ["x_a", "x_b", "x_c"] {
                prop_assert_eq!(read.get(name), passed.get(name), "{} of hook {}", name, index);
            }
            passed.extend(data.clone());
        }
        prop_assert_eq!(outcome.verdict.data, passed);
    }

    /// `enabled`, `timeout` and `trustWorkspace` change what they say and nothing else.
    #[test]
    fn property_39_hook_configuration_effects(
        hooks in prop::collection::vec(declared(), 0..6),
        enabled in prop::bool::weighted(0.8),
        timeout in prop::option::of(5..25_u64),
        trust_workspace in any::<bool>(),
    ) {
        let mut world = World::new();
        world.engine.switched_off = (!enabled).then(|| "`hooks.enabled` is false".to_owned());
        world.engine.trust.workspace = trust_workspace;
        world.rules.timeout = timeout.map(Duration::from_millis);
        for (index, declared) in hooks.iter().enumerate() {
            let id = format!("hook-{index}");
            let spec = if declared.sleeps && timeout.is_some() { sh(&id, "exec sleep 60") } else { logs(&id) };
            // A hook's own timeout goes before the configured one.
            let own = spec.timeout.filter(|_| !declared.sleeps);
            let Declared { source, enabled, .. } = *declared;
            let hook = world.add(HookSpec { source, enabled, timeout: own, parallel: true, ..spec });
            let basis = match (declared.sleeps, timeout) {
                (false, _) => Basis::Hook,
                (true, Some(_)) => Basis::Config,
                (true, None) => Basis::Dialect,
            };
            prop_assert_eq!(hook.timeout.basis, basis);
        }
        let outcome = world.engine.dispatch(&event());

        let (mut runs, mut skips) = (HashSet::new(), HashSet::new());
        for (index, declared) in hooks.iter().enumerate() {
            let id = format!("hook-{index}");
            let trusted = match declared.source {
                Source::Builtin | Source::Policy | Source::User => true,
                Source::Workspace => trust_workspace,
                Source::Extension | Source::Downloaded => false,
            };
            // Those of the program itself, and those that are required, are not switched off with the others.
            if (!enabled && !matches!(declared.source, Source::Builtin | Source::Policy)) || !declared.enabled {
                skips.insert((id, "disabled"));
            } else if !trusted {
                skips.insert((id, "untrusted"));
            } else {
                let late = declared.sleeps && timeout.is_some();
                runs.insert((id, if late { Status::Timeout } else { Status::Ok }));
            }
        }
        let ran: HashSet<_> = outcome.reports.iter().map(|report| (report.hook.id().to_owned(), report.status)).collect();
        let skipped: HashSet<_> = skipped(&outcome).into_iter().map(|(id, why)| (id.to_owned(), why)).collect();
        prop_assert_eq!(world.log().len(), runs.iter().filter(|(_, status)| *status == Status::Ok).count());
        prop_assert_eq!(ran, runs);
        prop_assert_eq!(skipped, skips);
        prop_assert!(outcome.continues());
    }
}

#[test]
fn switching_hooks_off_leaves_those_of_the_program_on() {
    let mut world = World::new();
    world.add(crate::support::builtin("guard", |_| ollm_protocol::Verdict::block("no")));
    world.add(logs("other"));
    world.engine.switched_off = Some("`hooks.enabled` is false in config.yaml".to_owned());
    let outcome = world.engine.dispatch(&event());
    assert!(!outcome.continues());
    assert_eq!(ran(&outcome), ["guard"]);
    assert_eq!(outcome.skipped[0].detail, "`hooks.enabled` is false in config.yaml");
}
