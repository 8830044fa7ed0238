//! The rows of the keys of a hook entry, each walked: read, approved and described as it says.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use ollm_protocol::hook::key::{Approved, HOOK_KEYS, HookKey, KeyKind, Same, TextForm};
use ollm_protocol::{Hook, dialect};
use serde_json::{Value, json};

use crate::world::World;

/// Values that a key takes; at least one is not what holds without it.
fn samples(row: &HookKey) -> Vec<Value> {
    match row.kind {
        KeyKind::Place => Vec::new(),
        KeyKind::Action => match row.name {
            "command" => vec![json!("/bin/false")],
            "args" => vec![json!(["-x"])],
            "type" => vec![json!("command")],
            _ => vec![json!({"type": "askAgent", "prompt": "Look"})],
        },
        KeyKind::Text(text, _) => match (text.form, row.name) {
            (TextForm::OneOf(names), _) => names().into_iter().take(3).map(Value::from).collect(),
            (TextForm::Expression, _) => vec![json!("data.x == 1")],
            (_, "matcher") => vec![json!("shell|read_*")],
            _ => vec![json!("something")],
        },
        KeyKind::Flag(_) => vec![json!(true), json!(false)],
        KeyKind::Texts(..) => vec![json!(["one", "two"])],
        KeyKind::Services(_) => vec![json!(["127.0.0.1:1"])],
        KeyKind::Patterns(_) => vec![json!(["*.rs"])],
        KeyKind::Variables(_) => vec![json!({"NAME": "value"})],
        KeyKind::Files(_) => vec![json!(["rules.json5"])],
        KeyKind::Time(_) | KeyKind::Span(_) | KeyKind::Pause(_) => vec![json!("7s")],
        KeyKind::Size(_) => vec![json!("3MiB"), json!(5)],
        KeyKind::Count(_) | KeyKind::Positive(_) => vec![json!(3)],
        KeyKind::Choice(names, _) => names().into_iter().map(Value::from).collect(),
        KeyKind::Section(keys, _) => {
            let of = |inner: &HookKey| samples(inner).into_iter().map(|sample| json!({inner.name: sample}));
            keys.iter().flat_map(of).collect()
        }
    }
}

/// The hook of a project with one more key, and what was found wrong.
fn read(world: &World, key: &str, value: &Value) -> (Hook, Vec<String>) {
    world.write("project/.ollm/hooks/rules.json5", "");
    let mut entry = json!({"name": "n", "command": "/bin/true"});
    let fields = entry.as_object_mut().unwrap();
    if key == "action" {
        fields.remove("command");
    }
    fields.insert(key.to_owned(), value.clone());
    world.write("project/.ollm/hooks/a.json", json!({"hooks": {"before_tool": [entry]}}).to_string());
    let (catalog, problems) = world.load();
    let told = problems.iter().map(ToString::to_string).collect();
    (catalog.hooks.into_iter().next().unwrap_or_else(|| panic!("{key}: {value}: {problems:?}")), told)
}

fn plain(world: &World) -> Hook {
    read(world, "name", &json!("n")).0
}

#[test]
fn every_key_takes_what_its_row_says_and_changes_the_hook() {
    let world = World::new();
    let plain = plain(&world);
    for row in HOOK_KEYS {
        let read: Vec<(Hook, Vec<String>)> = samples(row).iter().map(|sample| read(&world, row.name, sample)).collect();
        for problem in read.iter().flat_map(|(_, problems)| problems) {
            let expected = row.unhonoured.is_some_and(|why| problem.contains(why));
            assert!(expected, "{}: {problem}", row.name);
        }
        let told = read.iter().any(|(_, problems)| !problems.is_empty());
        assert_eq!(told, row.unhonoured.is_some(), "`{}` has no effect, and nobody is told", row.name);
        let changes = read.iter().any(|(hook, _)| hook.spec != plain.spec);
        assert!(changes || read.is_empty() || row.name == "type", "`{}` reaches no field", row.name);
    }
}

#[test]
fn an_approval_is_bound_to_exactly_the_keys_whose_rows_say_so() {
    let world = World::new();
    let plain = plain(&world).definition();
    for row in HOOK_KEYS.iter().filter(|row| row.name != "type") {
        let definitions = samples(row).into_iter().map(|sample| read(&world, row.name, &sample).0.definition());
        let changed: Vec<bool> = definitions.map(|definition| definition != plain).collect();
        match row.approved {
            Approved::No => assert!(!changed.contains(&true), "`{}` changes what is approved", row.name),
            _ if matches!(row.kind, KeyKind::Place) => {}
            // Each part of a section counts by itself.
            _ if matches!(row.kind, KeyKind::Section(..)) => {
                assert!(!changed.contains(&false), "a part of `{}` escapes approval: {changed:?}", row.name);
            }
            _ => assert!(changed.contains(&true), "`{}` escapes approval", row.name),
        }
    }
}

#[test]
fn hooks_that_differ_in_what_they_do_are_no_twins() {
    let world = World::new();
    let plain = plain(&world);
    for row in HOOK_KEYS.iter().filter(|row| matches!(row.same, Same::If(_))) {
        let others = samples(row).into_iter().map(|sample| read(&world, row.name, &sample).0);
        let same: Vec<bool> = others.map(|other| row.is_same(&plain, &other)).collect();
        assert!(same.contains(&false), "`{}` is compared and never differs", row.name);
        assert!(row.is_same(&plain, &plain), "`{}` of one hook differs from itself", row.name);
    }
}

#[test]
fn snake_case_and_other_words_mean_the_same_key() {
    let world = World::new();
    for row in HOOK_KEYS.iter().filter(|row| !matches!(row.kind, KeyKind::Place | KeyKind::Action)) {
        let split = |letter: char| letter.is_ascii_uppercase().then_some('_');
        let letters =
            row.name.chars().flat_map(|letter| split(letter).into_iter().chain([letter.to_ascii_lowercase()]));
        let snake: String = letters.collect();
        for sample in samples(row) {
            let wanted = read(&world, row.name, &sample).0.spec;
            for word in row.aliases.iter().copied().chain([snake.as_str()]) {
                assert_eq!(read(&world, word, &sample).0.spec, wanted, "{word}");
            }
        }
    }
}

#[test]
fn a_definition_from_before_the_rows_is_still_the_same_text() {
    // What approvals of earlier versions are bound to: another text would take all of them away.
    let hook = plain(&World::new());
    assert_eq!(hook.dialect.name(), dialect::OLLM.name());
    assert_eq!(
        hook.definition().to_string(),
        r#"{"name":"n","version":"1.0.0","events":["before_tool"],"matcher":"*","action":{"command":"/bin/true","args":[],"script":null},"dialect":"ollm","timeout":null,"onFailure":null,"priority":"normal","parallel":false,"async":null,"filePatterns":[],"if":null,"rateLimit":{"perMinute":null,"cooldown":null},"requires":{"commands":[],"files":[],"services":[]},"scope":null,"env":[],"passEnv":[],"cwd":null,"inputs":[],"limits":{},"source":"workspace","extension":null}"#
    );
}

const BEGIN: &str = "<!-- the table of keys: generated, a test keeps it true -->\n";
const END: &str = "<!-- the end of the table -->";

#[test]
fn the_table_of_keys_in_the_guide_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hooks.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut table = "| key | meaning | without it | part of what is approved |\n|---|---|---|---|\n".to_owned();
    for row in HOOK_KEYS.iter().filter(|row| !matches!(row.kind, KeyKind::Place)) {
        let approved = if matches!(row.approved, Approved::No) { "no" } else { "yes" };
        let mut add = |name: &str, row: &HookKey| {
            let unhonoured = row.unhonoured.map(|why| format!(" (no effect yet: {why})")).unwrap_or_default();
            let words = match row.kind {
                KeyKind::Choice(names, _) => {
                    format!(": {}", names().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
                }
                _ => String::new(),
            };
            let (about, default) = (row.about, row.default);
            let _ = writeln!(table, "| `{name}` | {about}{words}{unhonoured} | {default} | {approved} |");
        };
        add(row.name, row);
        if let KeyKind::Section(keys, _) = row.kind {
            for inner in keys {
                add(&format!("{}.{}", row.name, inner.name), inner);
            }
        }
    }
    let wanted = format!("{before}{BEGIN}{table}{END}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == wanted,
        "docs/hooks.md is out of date; write it anew with\n  UPDATE_DOCS=1 cargo test -p ollm-catalog --test it hook_keys"
    );
}
