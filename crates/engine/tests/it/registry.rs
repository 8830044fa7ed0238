//! The registry, and the index that finds the hooks of an event.

use ollm_engine::{Facts, Registry, Surroundings, plan, select};
use ollm_protocol::{Event, EventKind, Hook, HookSpec, Origin, Rules, Subject};
use proptest::prelude::*;

use crate::support::{builtin, cases};

fn hook(id: &str, events: &[&str]) -> Hook {
    let events = events.iter().map(|&event| event.to_owned()).collect();
    Hook::new(HookSpec { events, ..builtin(id, |_| ollm_protocol::Verdict::default()) }, &Rules::default()).unwrap()
}

fn ids(registry: &Registry, kind: EventKind) -> Vec<String> {
    registry.for_event(kind).iter().map(|hook| hook.id().to_owned()).collect()
}

#[test]
fn hooks_of_an_event_come_in_the_order_of_their_registration() {
    let mut registry = Registry::new();
    for id in ["c", "a", "b"] {
        registry.register(hook(id, &["before_tool"])).unwrap();
    }
    assert_eq!(ids(&registry, EventKind::BeforeTool), ["c", "a", "b"]);
    assert!(ids(&registry, EventKind::AfterTool).is_empty());
}

#[test]
fn a_registered_hook_can_be_found_and_removed_by_its_id() {
    let mut registry = Registry::new();
    registry.register(hook("a", &["before_tool", "after_tool"])).unwrap();
    assert!(registry.has("a"));
    assert_eq!(registry.get("a").unwrap().id(), "a");
    assert_eq!(registry.count(), 1);

    assert!(registry.unregister("a"));
    assert!(!registry.unregister("a"));
    assert!(!registry.has("a") && registry.get("a").is_none() && registry.all().is_empty());
    assert_eq!(registry.count(), 0);
}

#[test]
fn all_lists_events_in_table_order_and_only_those_with_hooks() {
    let mut registry = Registry::new();
    registry.register(hook("late", &["custom", "session_start"])).unwrap();
    registry.register(hook("other", &["session_start"])).unwrap();
    let all: Vec<_> = registry.all().iter().map(|(kind, hooks)| (kind.name(), hooks.len())).collect();
    assert_eq!(all, [("session_start", 2), ("custom", 1)]);
}

#[test]
fn clearing_an_event_keeps_what_hooks_have_elsewhere() {
    let mut registry = Registry::new();
    registry.register(hook("both", &["before_tool", "after_tool"])).unwrap();
    registry.register(hook("one", &["before_tool"])).unwrap();
    registry.clear_event(EventKind::BeforeTool);

    assert!(ids(&registry, EventKind::BeforeTool).is_empty());
    assert_eq!(ids(&registry, EventKind::AfterTool), ["both"]);
    assert!(registry.has("both") && !registry.has("one"));
    assert_eq!(registry.count(), 1);
    registry.register(hook("one", &["before_tool"])).unwrap();
    registry.clear_event(EventKind::AfterTool);
    assert_eq!(registry.count(), 1);
}

#[test]
fn clearing_leaves_nothing() {
    let mut registry = Registry::new();
    registry.register(hook("a", &["before_tool"])).unwrap();
    registry.clear();
    assert!(registry.count() == 0 && registry.all().is_empty());
    registry.register(hook("a", &["before_tool"])).unwrap();
}

#[test]
fn a_taken_id_is_refused_and_the_message_names_its_holder() {
    let mut registry = Registry::new();
    let mut first = hook("guard", &["before_tool"]);
    first.spec.origin = Origin { file: "/home/u/.ollm/hooks/guard.json".into(), line: 3, column: 5 };
    registry.register(first).unwrap();
    let error = registry.register(hook("guard", &["after_tool"])).unwrap_err();
    let text = "hook id `guard` is taken by /home/u/.ollm/hooks/guard.json:3:5; give one of the two another `id`";
    assert_eq!(error.to_string(), text);
    assert!(ids(&registry, EventKind::AfterTool).is_empty());

    let mut registry = Registry::new();
    registry.register(hook("guard", &["before_tool"])).unwrap();
    let error = registry.register(hook("guard", &["before_tool"])).unwrap_err();
    assert_eq!(error.holder, "a builtin hook");
}

#[test]
fn the_tool_of_a_server_that_is_not_named_may_be_that_of_any() {
    let mut registry = Registry::new();
    for matcher in ["mcp__git__push", "mcp__git__pull", "mcp__db__*", "shell", "*"] {
        let spec =
            HookSpec { matcher: Some(matcher.to_owned()), ..builtin(matcher, |_| ollm_protocol::Verdict::default()) };
        registry.register(Hook::new(spec, &Rules::default()).unwrap()).unwrap();
    }
    let found = registry.candidates(EventKind::BeforeTool, Some("mcp__unknown__push"));
    assert_eq!(found.iter().map(|hook| hook.id()).collect::<Vec<_>>(), ["mcp__git__push", "mcp__db__*", "*"]);
}

/// Names that share beginnings, one of them inside a character; and names of tools in several vocabularies.
fn name() -> impl Strategy<Value = String> {
    let parts = prop::collection::vec(prop::sample::select(&["a", "b", "ä", "mcp__"][..]), 1..4);
    let tools = &[
        "shell",
        "Bash",
        "exec_command",
        "apply_patch",
        "Edit",
        "write_file",
        "run_",
        "mcp__git__a",
        "mcp__unknown__a",
        "git_a",
        "git-a",
        "git_",
        "MCP:a",
    ][..];
    prop_oneof![
        2 => parts.prop_map(|parts| parts.concat()),
        1 => prop::sample::select(tools).prop_map(str::to_owned),
    ]
}

fn matcher() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        4 => name(),
        4 => name().prop_map(|name| format!("{name}*")),
        1 => Just("builtin:*".to_owned()),
        1 => Just("*".to_owned()),
    ];
    prop_oneof![
        6 => prop::collection::vec(one, 1..4).prop_map(|patterns| patterns.join("|")),
        1 => name().prop_map(|name| format!("re:{name}$")),
        1 => Just(String::new()),
    ]
}

proptest! {
    #![proptest_config(cases())]

    /// The index finds what asking every matcher would find, each hook once and in order.
    #[test]
    fn the_index_finds_exactly_the_hooks_whose_matcher_fits(
        matchers in prop::collection::vec(matcher(), 0..12),
        subject in prop::option::of(name()),
    ) {
        let mut registry = Registry::new();
        let mut expected = Vec::new();
        for (index, matcher) in matchers.into_iter().enumerate() {
            let spec = builtin(&format!("hook-{index}"), |_| ollm_protocol::Verdict::default());
            let hook = Hook::new(HookSpec { matcher: Some(matcher), ..spec }, &Rules::default()).unwrap();
            if hook.matcher.matches(subject.as_deref().map(|name| Subject::new(EventKind::BeforeTool, name))) {
                expected.push(hook.id().to_owned());
            }
            registry.register(hook).unwrap();
        }
        let event = Event::unchecked(EventKind::BeforeTool, subject.map(|subject| ("tool_name", subject.into())));
        let candidates = registry.candidates(event.kind, event.subject());
        let selection = select(candidates, &event, |_| None, Surroundings::default);
        let plan = plan(event.kind, selection, &Facts::default());
        let found: Vec<_> = plan.stages.iter().flatten().map(|hook| hook.id().to_owned()).collect();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(found.len() + registry.unfitting(event.kind, event.subject()).len(), registry.count());
    }
}
