//! Planning one event among many hooks.

use std::hint::black_box;

use ollm_engine::{Facts, Plan, Registry, Surroundings, plan, select};
use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{ActionSpec, Event, EventKind, Hook, HookSpec, Rules};

use crate::measure::{median, timed};

/// Ten thousand hooks, of which one in a hundred is for the shell.
pub(crate) fn crowd() -> Registry {
    let mut registry = Registry::new();
    for index in 0..10_000 {
        let matcher = if index % 100 == 0 { "shell".to_owned() } else { format!("tool_{index}") };
        registry.register(Hook::new(spec(index, &matcher), &Rules::default()).unwrap()).unwrap();
    }
    registry
}

pub(crate) fn spec(index: usize, matcher: &str) -> HookSpec {
    let action =
        ActionSpec::Command(CommandSpec { command: "npx".into(), args: vec![index.to_string()], script: None });
    let spec = HookSpec::new(format!("hook-{index}"), "before_tool", action);
    HookSpec { matcher: Some(matcher.to_owned()), ..spec }
}

/// The plan of an event for hooks that all are approved.
pub(crate) fn planned_for(registry: &Registry, event: &Event, facts: &Facts) -> Plan {
    let candidates = registry.candidates(event.kind, event.subject());
    plan(event.kind, select(candidates, event, |_| None, Surroundings::default), facts)
}

/// Planning is compared with copying the matches, which any planner must do.
pub(crate) fn planning() {
    let registry = crowd();
    let event = Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into())]);
    let facts = Facts::default();
    let planned = planned_for(&registry, &event, &facts);
    assert_eq!(planned.stages.len(), 100);
    let (mut copies, mut plans) = (Vec::new(), Vec::new());
    for _ in 0..20_000 {
        copies.push(timed(&mut || drop(black_box(planned.stages.clone()))));
        plans.push(timed(&mut || drop(black_box(planned_for(&registry, black_box(&event), &facts)))));
    }
    let (copy, whole) = (median(&mut copies), median(&mut plans));
    let beyond = whole.saturating_sub(copy).as_secs_f64() * 1e6;
    let ratio = whole.as_secs_f64() / copy.as_secs_f64();
    println!("\nplanning one event among 10,000 hooks of which 100 match: {ratio:.2} x copying the matches,");
    println!("{beyond:.1} µs beyond it (target 5)");
}
