//! What extensions are called, remembered: it spares reading, and changes nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ollm_catalog::{Extension, ExtensionState, Extensions, Index};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::extensions::manifest;
use crate::world::World;

/// A world in which everything was written a while ago.
fn later() -> World {
    let mut world = World::new();
    world.now = SystemTime::now() + Duration::from_mins(1);
    world
}

fn file(world: &World) -> PathBuf {
    world.path("home/.ollm/state/names.json")
}

fn index(world: &World) -> Index {
    Index::load(&file(world))
}

/// Those of which nothing was read.
fn unread(extensions: &Extensions) -> Vec<&str> {
    extensions.iter().filter(|one| one.manifest.version.is_empty()).map(|one| one.name.as_str()).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn what_is_known_is_read_only_if_it_has_to_do_with_what_is_wanted() {
    let world = later();
    world.manifest("home", "a", manifest("a", &json!({"dependencies": {"b": "*"}})));
    world.manifest("home", "b", manifest("b", &json!({"dependencies": {"c": "*"}})));
    world.manifest("home", "c", manifest("c", &json!({})));
    world.manifest("home", "d", manifest("d", &json!({"dependencies": {"a": "*"}})));
    world.manifest("project", "z", manifest("a", &json!({})));
    assert_eq!(unread(&world.named(&names(&["a"]), &index(&world))), Vec::<&str>::new());
    index(&world).remember(&world.extensions().0);
    let of = |wanted: &[&str]| world.named(&names(wanted), &index(&world));
    assert_eq!(unread(&of(&["a"])), ["d"]);
    assert_eq!(unread(&of(&["c"])), ["a", "b", "d", "a"]);
    assert_eq!(unread(&of(&["d", "c"])), Vec::<&str>::new());
    // A missing extension is looked for everywhere.
    assert_eq!(unread(&of(&["c", "nobody"])), Vec::<&str>::new());
}

#[test]
fn a_long_way_from_one_to_the_next_is_read_to_its_end() {
    let world = later();
    for number in 0..20 {
        let next = if number < 19 { json!({"dependencies": {format!("e{}", number + 1): "*"}}) } else { json!({}) };
        world.manifest("home", &format!("e{number}"), manifest(&format!("e{number}"), &next));
    }
    index(&world).remember(&world.extensions().0);
    world.switch("e19", false);
    let found = world.named(&names(&["e0"]), &index(&world));
    assert_eq!(unread(&found), Vec::<&str>::new());
    assert!(matches!(found.get("e0").unwrap().state, ExtensionState::Failed(_)));
}

#[test]
fn what_cannot_be_understood_is_known_again_too() {
    let world = later();
    world.manifest("home", "a", manifest("a", &json!({})));
    world.manifest("home", "empty", "");
    world.manifest("home", "half", "{");
    world.manifest("home", "odd", manifest("strange", &json!({"hooks": 1})));
    index(&world).remember(&world.extensions().0);
    let found = world.named(&names(&["a"]), &index(&world));
    let off: Vec<&str> =
        found.iter().filter(|one| matches!(one.state, ExtensionState::Off(_))).map(|one| one.name.as_str()).collect();
    assert_eq!(off, ["empty", "half", "strange"]);
    assert!(world.named(&names(&["half"]), &index(&world)).get("half").unwrap().is_broken());
}

#[test]
fn what_changed_is_read_and_what_was_just_written_is_not_remembered() {
    let mut world = later();
    world.manifest("home", "a", manifest("a", &json!({})));
    let other = world.manifest("home", "b", manifest("b", &json!({})));
    index(&world).remember(&world.extensions().0);
    assert_eq!(unread(&world.named(&names(&["a"]), &index(&world))), ["b"]);
    fs::write(&other, manifest("bee", &json!({}))).unwrap();
    let found = world.named(&names(&["a"]), &index(&world));
    assert_eq!((unread(&found), found.get("b").is_some()), (Vec::<&str>::new(), false));
    // It has just been written: the next change may leave no trace.
    world.now = SystemTime::now();
    index(&world).remember(&world.extensions().0);
    world.now += Duration::from_mins(1);
    assert_eq!(unread(&world.named(&names(&["a"]), &index(&world))), Vec::<&str>::new());
}

#[test]
fn it_is_written_only_when_there_is_news_and_forgets_what_is_gone() {
    let world = later();
    for name in ["a", "b"] {
        world.manifest("home", name, manifest(name, &json!({})));
    }
    index(&world).remember(&world.extensions().0);
    let written = fs::metadata(file(&world)).unwrap().modified().unwrap();
    index(&world).remember(&world.extensions().0);
    assert_eq!(fs::metadata(file(&world)).unwrap().modified().unwrap(), written);
    let text = || fs::read_to_string(file(&world)).unwrap();
    fs::remove_dir_all(world.path("home/.ollm/extensions/b")).unwrap();
    index(&world).forget(&world.path("home/.ollm/extensions/b"));
    assert!(!text().contains("extensions/b\"") && text().contains("extensions/a\""), "{}", text());
    fs::remove_dir_all(world.path("home/.ollm/extensions/a")).unwrap();
    world.manifest("home", "c", manifest("c", &json!({})));
    index(&world).remember(&world.extensions().0);
    assert!(!text().contains("extensions/a\"") && text().contains("extensions/c\""), "{}", text());
}

/// What a person is told of those that are wanted.
fn told(found: &Extensions, wanted: &[String]) -> Vec<(String, PathBuf, ExtensionState, Option<Value>)> {
    let of = |one: &Extension| {
        (one.name.clone(), one.root.clone(), one.state.clone(), one.hooks.first().map(|hook| json!(hook.id())))
    };
    found.iter().filter(|one| wanted.contains(&one.name)).map(of).collect()
}

/// A manifest as it may be written, or written again.
#[derive(Clone, Debug)]
struct Written {
    folder: usize,
    name: usize,
    needs: BTreeSet<usize>,
    kind: usize,
}

impl Written {
    fn any() -> impl Strategy<Value = Written> {
        let parts = (0_usize..6, 0_usize..6, btree_set(0_usize..6, 0..3), 0_usize..4);
        parts.prop_map(|(folder, name, needs, kind)| Written { folder, name, needs, kind })
    }

    fn write(&self, world: &World, end: &str) {
        let needs: Map<String, Value> = self.needs.iter().map(|need| (format!("e{need}"), json!("*"))).collect();
        let more = match self.kind {
            0 => json!({"dependencies": needs, "settings": [{"name": "s", "description": "d", "required": true}]}),
            1 => json!({"dependencies": needs, "hooks": {"nonsense": []}}),
            _ => json!({"dependencies": needs}),
        };
        let whose = if self.folder.is_multiple_of(2) { "home" } else { "project" };
        let text = manifest(&format!("e{}", self.name), &more) + end;
        world.manifest(whose, &format!("f{}", self.folder), text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// For every earlier index and every later change.
    #[test]
    fn of_what_is_wanted_the_same_is_found_as_without_an_index(
        before in vec(Written::any(), 1..7),
        after in vec(Written::any(), 0..4),
        off in btree_set(0_usize..6, 0..2),
        wanted in btree_set(0_usize..6, 1..3),
    ) {
        let world = later();
        for one in &before {
            one.write(&world, "");
        }
        index(&world).remember(&world.extensions().0);
        // What is written twice in one moment must differ in its size at least.
        for one in &after {
            one.write(&world, &" ".repeat(1000));
        }
        for name in &off {
            world.switch(&format!("e{name}"), false);
        }
        let wanted: Vec<String> = wanted.iter().map(|name| format!("e{name}")).collect();
        let found = world.named(&wanted, &index(&world));
        prop_assert_eq!(told(&found, &wanted), told(&world.extensions().0, &wanted));
    }
}
