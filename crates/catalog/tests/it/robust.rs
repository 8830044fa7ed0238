//! For any bytes, loading does not panic, hang, or lose the file beside them.

use ollm_catalog::edit::{self, EditError};
use ollm_catalog::{Form, Severity, Syntax};
use proptest::prelude::*;

use crate::world::World;

const HOOKS: &str = r#"{"hooks": {"before_tool": [{"name": "guard", "command": "python3", "args": ["-u", "guard.py"],
  "timeout": "5s", "env": {"A": "b"}, "limits": {"memory": "1MiB"}, "inputs": ["a", "../b"], "if": "x", "odd": [1, {}]}],
  "PreToolUse": [{"matcher": "a|b*", "hooks": [{"type": "command", "command": "echo {{tool_name}}"}]}], "no": 1}}"#;

const CONFIG: &str = "hooks: &h\n  enabled: \"true\"\n  timeout: 5s\n  trustWorkspace: [~/x, /y]\n  untrusted: block\n  whitelist: [sh]\n  odd: {a: [1, 2.5, ~]}\nmcp: *h\n";

const YAML: &str = "hooks: # all\n  before_tool:\n    - &a\n      name: guard # x\n      command: python3\n      args: [-u, 'guard.py', \"x\\n\"]\n      description: |+\n        long\n\n    - {command: npx, limits: {memory: 1MiB}}\n    - *a\n  PreToolUse:\n  - matcher: a|b*\n    hooks:\n    - ? command\n      : echo\n";

const WHEN: &str = "{\"name\": \"n\", // c\n \"when\": {\"type\": \"fileEdited\", \"patterns\": [\"*.ts\"]},\n \"then\": {\"type\": \"http\", \"url\": \"https://x/\", \"headers\": {\"a\": \"b\"}}}";

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

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,20}", "[ -~\n\t]{0,20}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_loading_panic(hooks in content(HOOKS), settings in content(HOOKS), config in content(CONFIG)) {
        let world = World::new();
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
    fn no_bytes_of_any_form_make_loading_panic(yaml in content(YAML), when in content(WHEN), script: Vec<u8>) {
        let world = World::new();
        for folder in ["home/.ollm/hooks", "project/.ollm/hooks", "project/.ollm/hooks/trusted"] {
            world.write(&format!("{folder}/a.yaml"), &yaml);
            world.write(&format!("{folder}/b.kiro.hook"), &when);
            world.write(&format!("{folder}/c.json"), &yaml);
            world.write(&format!("{folder}/d.sh"), &script);
        }
        world.write("home/.ollm/hooks/z.yml", "before_tool:\n  - {id: good, command: /bin/true}\n");
        let (catalog, problems) = world.load();
        prop_assert!(catalog.hooks.iter().any(|hook| hook.id() == "good"));
        for problem in &problems {
            prop_assert!(problem.snippet.is_none() || problem.line > 0 && problem.column > 0, "{problem:?}");
        }
    }

    #[test]
    fn no_text_makes_an_edit_panic_and_every_edit_leaves_a_text_that_parses(
        bytes in prop_oneof![content(YAML), content(WHEN), content(HOOKS)],
        syntax in prop::sample::select(vec![Syntax::Json, Syntax::Yaml, Syntax::Either]),
        which in 0..4_usize,
        key in prop::sample::select(vec!["name", "command", "limits.time", "filePatterns", "matcher", "event", "x.y.z"]),
        value in text(),
    ) {
        let text = String::from_utf8_lossy(&bytes);
        let entry = serde_json::json!({"name": value, "command": "npx"}).as_object().cloned().unwrap();
        let value = serde_json::Value::from(value);
        let edits = [
            edit::set(&text, syntax, which, key, &value),
            edit::unset(&text, syntax, which, key),
            edit::remove(&text, syntax, which),
            edit::add(&text, syntax, Form::Events, "before_tool", &entry),
            edit::add(&text, syntax, Form::Agent, "Stop", &entry),
            edit::convert(&text, syntax, Form::Modern),
            edit::convert(&text, syntax, Form::WhenThen),
        ];
        for edited in edits.into_iter().flatten() {
            let again = edit::remove(&edited, syntax, usize::MAX).unwrap_err();
            prop_assert!(matches!(again, EditError::NoSuch), "{again}\n{edited}");
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
