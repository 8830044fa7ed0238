//! Loading for one event gives the hooks that fit it, with the ids they have among all hooks.

use ollm_catalog::{Catalog, Moment, Overrides, Positions, Problem, load, load_for};
use ollm_protocol::{EventKind, Hook, Subject};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::World;

fn everything(world: &World) -> (Catalog, Vec<Problem>) {
    load(&world.places, &|_| None, &Overrides::default(), Positions::OnDemand)
}

fn only(world: &World, moment: &Moment) -> (Catalog, Vec<Problem>) {
    load_for(&world.places, &|_| None, &Overrides::default(), moment)
}

/// The ids of the hooks that fit, in order.
fn fitting(hooks: &[Hook], moment: &Moment) -> Vec<String> {
    let subject = moment.subject.as_deref().map(|name| Subject::new(moment.kind, name));
    let fits = |hook: &&Hook| hook.events.contains(&moment.kind) && hook.matcher.matches(subject);
    hooks.iter().filter(fits).map(|hook| hook.id().to_owned()).collect()
}

fn entry() -> impl Strategy<Value = (&'static str, Value)> {
    let event =
        prop::sample::select(vec!["before_tool", "PreToolUse", "after_tool", "custom:deploy", "on-file-change"]);
    let name = prop::option::of(prop::sample::select(vec!["a", "b"]));
    let matcher = prop::option::of(prop::sample::select(vec![
        "shell",
        "write_*",
        "*",
        "re:^sh",
        "shell|read",
        "builtin:*",
        "Bash",
        "Write|re*",
    ]));
    let id = prop::option::weighted(0.2, prop::sample::select(vec!["one", "two"]));
    (event, name, matcher, id, 0..1000_u32).prop_map(|(event, name, matcher, id, number)| {
        let mut entry = json!({"command": "/bin/true", "args": [number.to_string()]});
        for (key, value) in [("name", name), ("matcher", matcher), ("id", id)] {
            if let Some(value) = value {
                entry[key] = value.into();
            }
        }
        (event, entry)
    })
}

fn moment() -> impl Strategy<Value = Moment> {
    let kind = prop::sample::select(vec![
        EventKind::BeforeTool,
        EventKind::AfterTool,
        EventKind::Custom,
        EventKind::FileEdited,
    ]);
    let subject = prop::option::of(prop::sample::select(vec!["shell", "Bash", "write_file", "deploy", "mcp__x__y"]));
    (kind, subject).prop_map(|(kind, subject)| Moment { kind, subject: subject.map(str::to_owned) })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn what_fits_is_the_same_whether_all_or_only_that_is_loaded(
        entries in prop::collection::vec(entry(), 0..12),
        moment in moment(),
    ) {
        let world = World::new();
        for (file, part) in [("home/.ollm/hooks/x.json", 0), ("project/.ollm/hooks/y.json", 1)] {
            let mut events = serde_json::Map::new();
            for (event, entry) in entries.iter().skip(part).step_by(2) {
                events.entry(*event).or_insert(json!([])).as_array_mut().unwrap().push(entry.clone());
            }
            world.write(file, json!({"hooks": events}).to_string());
        }
        let (all, few) = (everything(&world).0, only(&world, &moment).0);
        prop_assert_eq!(fitting(&few.hooks, &moment), fitting(&all.hooks, &moment));
    }
}

#[test]
fn a_hook_that_fits_and_is_broken_is_told_of_and_one_that_does_not_fit_is_not() {
    let world = World::new();
    let broken =
        |matcher: &str| json!({"name": matcher, "command": "/bin/true", "matcher": matcher, "timeout": "soon"});
    world.write(
        "home/.ollm/hooks/x.json",
        json!({"hooks": {"before_tool": [broken("shell"), broken("other")]}}).to_string(),
    );
    let moment = Moment { kind: EventKind::BeforeTool, subject: Some("shell".to_owned()) };
    let fields: Vec<String> = only(&world, &moment).1.into_iter().map(|problem| problem.field).collect();
    assert_eq!(fields, ["hooks.before_tool[0].timeout"]);
}
