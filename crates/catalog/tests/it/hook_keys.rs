//! The rows of the keys of a hook entry, each walked: read, approved and described as it says.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use ollm_protocol::hook::action::ActionType;
use ollm_protocol::hook::key::{ApprovedPart, HOOK_KEYS, HookKey, KeyKind, SameRule, TextForm, Unknown};
use ollm_protocol::{Hook, Needs, dialect};
use ollm_trust::{Approvable, command_text, unusual_rows};
use serde_json::{Value, json};

use crate::world::World;

/// The keys that change nothing about what a hook does.
const UNAPPROVED: &[&str] = &["id", "description", "enabled"];

/// The keys that two hooks may differ in and still do the same. Such a key says nothing about what the hook does, or
/// that is compared elsewhere.
const NOT_COMPARED: &[&str] = &[
    "name",
    "version",
    "events",
    "action",
    "command",
    "args",
    "type",
    "priority",
    "parallel",
    "filePatterns",
    "if",
    "rateLimit",
    "requires",
    "scope",
    "source",
    "extension",
    "id",
    "description",
    "enabled",
];

/// Values that a key takes; at least one is not what holds without it.
fn samples(row: &HookKey) -> Vec<Value> {
    match row.kind {
        KeyKind::Place => Vec::new(),
        KeyKind::Action => ActionType::of_files().map(|kind| action(kind, None)).filter(is_at_any_event).collect(),
        KeyKind::CommandType => vec![json!("command")],
        KeyKind::Text(text, _) => match (text.form, row.name) {
            (TextForm::OneOf(names), _) => names().into_iter().take(3).map(Value::from).collect(),
            (_, "command") => vec![json!("/bin/false")],
            (TextForm::Expression, _) => vec![json!("data.x == 1")],
            (_, "matcher") => vec![json!("shell|read_*")],
            (_, "spokenAs") => vec![json!("beforeShellExecution")],
            (_, "url") => vec![json!("https://example.com/other")],
            _ => vec![json!("something")],
        },
        KeyKind::Flag(_) => vec![json!(true), json!(false)],
        KeyKind::Texts(..) => vec![json!(["one", "two"])],
        KeyKind::Services(_) => vec![json!(["127.0.0.1:1"])],
        KeyKind::Patterns(_) => vec![json!(["*.rs"])],
        KeyKind::Line(_) => vec![json!("/bin/false 'a b'")],
        KeyKind::Variables(_) => vec![json!({"NAME": "value"})],
        KeyKind::Headers(_) => vec![json!({"X-Name": "value"})],
        KeyKind::Object(_) => vec![json!({"a": {"b": 1}})],
        KeyKind::Files(_) => vec![json!(["rules.json5"])],
        KeyKind::Time(_) | KeyKind::Span(_) | KeyKind::Pause(_) => vec![json!("7s")],
        KeyKind::Size(_) => vec![json!("3MiB"), json!(5)],
        KeyKind::Count(_) | KeyKind::Positive(_) => vec![json!(3)],
        KeyKind::Choice(names, _) => names().into_iter().map(Value::from).collect(),
        KeyKind::Section(keys) => {
            let of = |inner: &HookKey| samples(inner).into_iter().map(|sample| json!({inner.name: sample}));
            keys.iter().flat_map(of).collect()
        }
    }
}

/// An action of this type with what it needs, and one more key or another value of one.
fn action(kind: &ActionType, other: Option<(&str, &Value)>) -> Value {
    let needed = kind.keys.iter().filter(|row| row.required).map(|row| {
        let value = match (row.kind, row.name) {
            (KeyKind::Line(_), _) | (_, "command") => "/bin/true",
            (_, "url") => "https://example.com/",
            _ => "this",
        };
        (row.name, json!(value))
    });
    let other = other.map(|(key, value)| (key, value.clone()));
    let all = [("type", json!(kind.name))].into_iter().chain(needed).chain(other);
    Value::Object(all.map(|(key, value)| (key.to_owned(), value)).collect())
}

fn is_at_any_event(action: &Value) -> bool {
    action["type"] != "runCommand"
}

/// The hook of a project with this action, at an event that every action is for, and what was found wrong.
fn acting(world: &World, action: &Value) -> (Option<Hook>, Vec<String>) {
    let entry = json!({"name": "n", "action": action});
    world.write("project/.ollm/hooks/a.json", json!({"hooks": {"after_agent": [entry]}}).to_string());
    let (catalog, problems) = world.load();
    (catalog.hooks.into_iter().next(), problems.iter().map(ToString::to_string).collect())
}

/// The hook with the least action of each type, and with each of its keys set to something else.
fn with_each_key(world: &World) -> impl Iterator<Item = (&'static HookKey, Hook, Hook)> {
    let hook = |action: Value| match acting(world, &action) {
        (Some(hook), problems) if problems.is_empty() => hook,
        (_, problems) => panic!("{action}: {problems:?}"),
    };
    let rows = |kind: &'static ActionType| kind.keys.iter().filter(|row| row.is_written()).map(move |row| (kind, row));
    ActionType::of_files().flat_map(rows).flat_map(move |(kind, row)| {
        let each = move |sample| (row, hook(action(kind, None)), hook(action(kind, Some((row.name, &sample)))));
        samples(row).into_iter().map(each)
    })
}

/// The hook of a project with one more key, and what was found wrong.
fn read(world: &World, key: &str, value: &Value) -> (Hook, Vec<String>) {
    world.write("project/.ollm/hooks/rules.json5", "");
    let mut entry = json!({"name": "n", "command": "/bin/true"});
    let fields = entry.as_object_mut().unwrap();
    if key == "action" {
        fields.remove("command");
    }
    if matches!(key, "spokenAs" | "spoken_as") {
        fields.insert("dialect".to_owned(), "cursor".into());
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
        assert!(
            changes || read.is_empty() || matches!(row.kind, KeyKind::CommandType),
            "`{}` reaches no field",
            row.name
        );
    }
}

#[test]
fn an_approval_is_bound_to_exactly_the_keys_whose_rows_say_so() {
    let world = World::new();
    let plain = plain(&world).definition();
    for row in HOOK_KEYS.iter().filter(|row| !matches!(row.kind, KeyKind::CommandType)) {
        let definitions = samples(row).into_iter().map(|sample| read(&world, row.name, &sample).0.definition());
        let changed: Vec<bool> = definitions.map(|definition| definition != plain).collect();
        match row.approved {
            ApprovedPart::No => {
                assert!(!changed.contains(&true), "`{}` changes what is approved", row.name);
                // A row says nothing of approval unless its author thought of it.
                assert!(
                    UNAPPROVED.contains(&row.name),
                    "`{}` is no part of what is approved: is that meant?",
                    row.name
                );
            }
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
fn every_key_that_is_approved_is_shown_before_it_is() {
    let world = World::new();
    // On the screen of one hook, and in the list of what an extension brings, whose lines have the rest.
    let in_line = ["name", "matcher", "action", "command", "args"];
    let shown = |hook: &Hook| (Approvable::rows(hook), (unusual_rows(hook), command_text(hook)));
    let plain = plain(&world);
    let (screen, list) = shown(&plain);
    let is_approved = |row: &&HookKey| row.is_written() && !matches!(row.approved, ApprovedPart::No);
    for row in HOOK_KEYS.iter().filter(is_approved).filter(|row| !matches!(row.kind, KeyKind::CommandType)) {
        let others: Vec<Hook> = samples(row).iter().map(|sample| read(&world, row.name, sample).0).collect();
        let others = others.iter().filter(|other| other.definition() != plain.definition());
        let hidden: Vec<bool> = others
            .map(|other| {
                let (on_screen, in_list) = shown(other);
                on_screen == screen || (in_list == list && !in_line.contains(&row.name))
            })
            .collect();
        // Each part of a section counts by itself.
        let is_section = matches!(row.kind, KeyKind::Section(_));
        let is_shown = if is_section { !hidden.contains(&true) } else { hidden.contains(&false) };
        assert!(is_shown, "`{}` is approved unseen: {hidden:?}", row.name);
    }
}

#[test]
fn hooks_that_differ_in_what_they_do_are_no_twins() {
    let world = World::new();
    let plain = plain(&world);
    for row in HOOK_KEYS {
        // A row says nothing of it unless its author thought of it.
        let is_compared = matches!(row.same, SameRule::If(_));
        assert_ne!(is_compared, NOT_COMPARED.contains(&row.name), "are hooks that differ in `{}` the same?", row.name);
    }
    for row in HOOK_KEYS.iter().filter(|row| matches!(row.same, SameRule::If(_))) {
        let others = samples(row).into_iter().map(|sample| read(&world, row.name, &sample).0);
        let same: Vec<bool> = others.map(|other| row.is_same(&plain, &other)).collect();
        assert!(same.contains(&false), "`{}` is compared and never differs", row.name);
        assert!(row.is_same(&plain, &plain), "`{}` of one hook differs from itself", row.name);
    }
}

#[test]
fn every_key_of_an_action_is_read_and_is_part_of_what_is_approved_and_compared() {
    let world = World::new();
    for (row, least, other) in with_each_key(&world) {
        let kind = least.spec.action.kind().name;
        assert_ne!(other.spec.action, least.spec.action, "`{}` of {kind} reaches no field", row.name);
        assert_ne!(other.definition(), least.definition(), "`{}` of {kind} escapes approval", row.name);
        let is_same = least.spec.action.is_same(&other.spec.action, &|_, _| false);
        assert!(!is_same, "hooks that differ in `{}` of {kind} are twins", row.name);
        assert!(least.spec.action.is_same(&least.spec.action, &|_, _| false));
    }
}

#[test]
fn a_key_about_a_program_is_told_of_where_none_runs_and_a_bound_is_refused() {
    let world = World::new();
    world.write("project/.ollm/hooks/rules.json5", "");
    let read = |row: &HookKey, with: &dyn Fn(Value) -> Value| {
        let sample = with(samples(row).remove(0));
        let mut entry = json!({"name": "n", "action": {"type": "askAgent", "prompt": "p"}});
        entry.as_object_mut().unwrap().extend(sample.as_object().unwrap().clone());
        world.write("project/.ollm/hooks/a.json", json!({"hooks": {"before_tool": [entry]}}).to_string());
        let (catalog, problems) = world.load();
        (catalog.hooks.len(), problems.iter().map(ToString::to_string).collect::<String>())
    };
    let mut told = Vec::new();
    for row in HOOK_KEYS.iter().filter(|row| row.is_written() && !matches!(row.kind, KeyKind::Action)) {
        let keys = if let KeyKind::Section(keys) = row.kind { keys } else { std::slice::from_ref(row) };
        for inner in keys.iter().filter(|inner| !(inner.suits)(Needs::Nothing)) {
            let is_own = std::ptr::eq(inner, row);
            let (hooks, problems) = read(inner, &|sample| {
                if is_own { json!({row.name: sample}) } else { json!({row.name: {inner.name: sample}}) }
            });
            assert!(problems.contains("has no effect: the hook starts no program"), "{}: {problems}", inner.name);
            assert_eq!(hooks, usize::from(inner.unknown == Unknown::Warned), "{}", inner.name);
            told.push(inner.name);
        }
    }
    assert_eq!(told, ["env", "passEnv", "cwd", "inputs", "cpu", "memory", "processes", "files", "fileSize"]);
}

#[test]
fn an_action_without_a_key_that_its_rows_require_is_refused_by_name() {
    let world = World::new();
    for kind in ActionType::of_files() {
        for row in kind.keys.iter().filter(|row| row.required) {
            let mut action = action(kind, None);
            action.as_object_mut().unwrap().remove(row.name);
            let (hook, problems) = acting(&world, &action);
            assert!(hook.is_none(), "{action}");
            let told = problems.iter().any(|problem| problem.contains(&format!("`{}`", row.name)));
            assert!(told, "{action}: {problems:?}");
        }
    }
}

#[test]
fn snake_case_and_other_words_mean_the_same_key() {
    let world = World::new();
    for row in
        HOOK_KEYS.iter().filter(|row| !matches!(row.kind, KeyKind::Place | KeyKind::Action | KeyKind::CommandType))
    {
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
fn a_spelling_that_is_neither_of_the_two_is_no_key() {
    let world = World::new();
    let plain = plain(&world).spec;
    for word in ["timeout_", "_timeout", "pass__env", "pass_env_", "__proto__"] {
        let (hook, told) = read(&world, word, &json!(7));
        assert_eq!(hook.spec, plain, "{word}");
        assert!(told.concat().contains(&format!("unknown key `{word}`")), "{word}: {told:?}");
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

#[test]
fn what_is_approved_of_each_action_is_still_the_same_text() {
    let world = World::new();
    let with = |kind: &str, more: Value| {
        let mut action = action(ActionType::of_files().find(|one| one.name == kind).unwrap(), None);
        action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        acting(&world, &action).0.unwrap().definition()["action"].to_string()
    };
    let script = world.path("project/.ollm/hooks/a.sh").display().to_string();
    let line = json!({"command": "sh a.sh"});
    let run = format!(r#"{{"runCommand":"sh a.sh","script":"{script}"}}"#);
    let cases = [
        ("command", json!({"args": ["a"]}), r#"{"command":"/bin/true","args":["a"],"script":null}"#),
        ("shell", json!({"command": "a | b"}), r#"{"shell":"a | b"}"#),
        ("askAgent", json!({}), r#"{"askAgent":"this"}"#),
        ("runCommand", json!({}), r#"{"runCommand":"/bin/true","script":null}"#),
        ("runCommand", line, &run),
        ("http", json!({"headers": {"A": "b"}}), r#"{"http":"https://example.com/","headers":[["A","b"]]}"#),
        ("mcp", json!({"args": {"a": 1}}), r#"{"mcp":"this","tool":"this","args":{"a":1}}"#),
    ];
    for (kind, more, wanted) in cases {
        assert_eq!(with(kind, more), wanted, "{kind}");
    }
}

const END: &str = "<!-- the end of the table -->";

#[test]
fn the_table_of_keys_in_the_guide_is_up_to_date() {
    let head =
        "| key | meaning | without it | part of what is approved | equal in duplicates |\n|---|---|---|---|---|\n";
    let mut table = head.to_owned();
    for row in HOOK_KEYS.iter().filter(|row| row.is_written()) {
        let approved = if matches!(row.approved, ApprovedPart::No) { "no" } else { "yes" };
        let is_action = matches!(row.approved, ApprovedPart::InAction) || matches!(row.kind, KeyKind::Action);
        let same = if is_action || matches!(row.same, SameRule::If(_)) { "yes" } else { "no" };
        let mut add = |name: &str, row: &HookKey| {
            let unhonoured = row.unhonoured.map(|why| format!(" (no effect yet: {why})")).unwrap_or_default();
            let words = match row.kind {
                KeyKind::Choice(names, _) => {
                    format!(": {}", names().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
                }
                _ => String::new(),
            };
            let (about, default) = (row.about, row.default);
            let _ = writeln!(table, "| `{name}` | {about}{words}{unhonoured} | {default} | {approved} | {same} |");
        };
        add(row.name, row);
        if let KeyKind::Section(keys) = row.kind {
            for inner in keys {
                add(&format!("{}.{}", row.name, inner.name), inner);
            }
        }
    }
    keep("the table of keys", &table);
}

#[test]
fn the_table_of_actions_in_the_guide_is_up_to_date() {
    let mut table = "| type | what it does | key | meaning | without it |\n|---|---|---|---|---|\n".to_owned();
    for kind in ActionType::of_files() {
        let mut head = format!("`{}` | {}", kind.name, kind.about);
        for row in kind.keys.iter().filter(|row| row.is_written()) {
            let default = if row.required { "required" } else { row.default };
            let _ = writeln!(table, "| {head} | `{}` | {} | {default} |", row.name, row.about);
            head = "|".to_owned();
        }
    }
    keep("the table of actions", &table);
}

/// Compares a generated part of the guide; writes it where that is wanted.
fn keep(what: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hooks.md");
    let begin = format!("<!-- {what}: generated, a test keeps it true -->\n");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{begin}{table}{END}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == wanted,
        "docs/hooks.md is out of date; write it anew with\n  UPDATE_DOCS=1 cargo test -p ollm-catalog --test it hook_keys -- --test-threads=1"
    );
}
