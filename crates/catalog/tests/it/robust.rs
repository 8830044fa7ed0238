//! No bytes whatever make loading panic, hang, or lose the file beside them.

use ollm_catalog::{Positions, Severity};
use proptest::prelude::*;

use crate::world::World;

const HOOKS: &str = r#"{"hooks": {"before_tool": [{"name": "guard", "command": "python3", "args": ["-u", "guard.py"],
  "timeout": "5s", "env": {"A": "b"}, "limits": {"memory": "1MiB"}, "inputs": ["a", "../b"], "if": "x", "odd": [1, {}]}],
  "PreToolUse": [{"matcher": "a|b*", "hooks": [{"type": "command", "command": "echo {{tool_name}}"}]}], "no": 1}}"#;

const CONFIG: &str = "hooks: &h\n  enabled: \"true\"\n  timeout: 5s\n  trustWorkspace: [~/x, /y]\n  untrusted: block\n  whitelist: [sh]\n  odd: {a: [1, 2.5, ~]}\nmcp: *h\n";

/// A valid text with some of its bytes changed, removed, doubled or cut.
fn mutated(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..5u8), 1..6);
    edits.prop_map(move |edits| {
        let mut bytes = text.as_bytes().to_vec();
        for (index, byte, kind) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = index.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                3 => bytes.truncate(at),
                _ => bytes.extend_from_within(at..),
            }
        }
        bytes
    })
}

fn content(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => mutated(text),
        1 => prop::collection::vec(any::<u8>(), 0..400),
        1 => "[\\[\\]{}:,\"a0 \n-]{0,200}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_loading_panic(hooks in content(HOOKS), settings in content(HOOKS), config in content(CONFIG), always: bool) {
        let mut world = World::new();
        world.positions = if always { Positions::Always } else { Positions::OnDemand };
        world.write("home/.ollm/hooks/a.json", &hooks);
        world.write("project/.ollm/hooks/a.json", &hooks);
        world.write("home/.config/agent/settings.json", &settings);
        world.write("home/.ollm/config.yaml", &config);
        world.write("project/.ollm/config.yaml", &config);
        world.write("home/.ollm/hooks/z.json", r#"{"before_tool": [{"id": "good", "command": "/bin/true"}]}"#);
        let (catalog, problems) = world.load();
        prop_assert!(catalog.hooks.iter().any(|hook| hook.id() == "good"));
        for problem in &problems {
            prop_assert!(problem.value.as_ref().is_none_or(|value| value.chars().count() <= 80));
            prop_assert!(problem.snippet.as_ref().is_none_or(|line| line.text.chars().count() <= 160));
            prop_assert!(problem.severity != Severity::Fatal || problem.file.ends_with("config.yaml"));
            if let Some(snippet) = &problem.snippet {
                prop_assert!(problem.line > 0 && problem.column > 0, "{problem:?} {snippet:?}");
            }
        }
    }

    #[test]
    fn the_same_files_give_the_same_ids(hooks in content(HOOKS)) {
        let world = World::new();
        world.write("home/.ollm/hooks/a.json", &hooks);
        let ids = || world.load().0.hooks.iter().map(|hook| hook.id().to_owned()).collect::<Vec<_>>();
        let first = ids();
        let mut unique = first.clone();
        unique.sort_unstable();
        unique.dedup();
        prop_assert_eq!(unique.len(), first.len());
        prop_assert_eq!(ids(), first);
    }
}
