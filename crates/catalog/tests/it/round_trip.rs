//! Read, write, read: under any sequence of edits a hook file says what the edits say, in the form it was written in,
//! and no comment is lost that does not belong to what was removed.

use std::collections::BTreeSet;
use std::fmt::Write;

use ollm_catalog::{Form, Syntax, edit};
use ollm_protocol::{HookSpec, Origin};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::world::World;

const EVENTS: &[&str] = &["before_tool", "after_tool", "session_start"];
const KEYS: &[&str] = &["name", "args", "description", "timeout", "enabled", "env", "limits"];

/// How a file is written.
#[derive(Clone, Copy, Debug)]
enum Style {
    /// Maps and lists over several lines.
    Yaml,
    /// Each entry in one line.
    YamlFlow,
    Json,
}

/// One key of an entry, and its comments: above it, and behind it.
#[derive(Clone, Debug)]
struct Field {
    key: String,
    value: Value,
    above: Option<usize>,
    behind: Option<usize>,
}

#[derive(Clone, Debug)]
struct Entry {
    above: Option<usize>,
    fields: Vec<Field>,
    /// Comments that stand in it and belong to no key.
    inner: Vec<usize>,
}

type Hooks = Vec<(String, Vec<Entry>)>;

#[derive(Clone, Debug)]
enum Edit {
    Add(usize, Value, Value),
    Remove(prop::sample::Index),
    Set(prop::sample::Index, Value),
    Unset(prop::sample::Index, usize),
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,24}", "[a-zöß#:'\" \n\t\\-]{0,16}", Just("# no comment".to_owned()), Just("yes".to_owned())]
}

/// A key and a value that is right for it.
fn pair() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-z][a-z0-9 -]{0,8}[a-z]".prop_map(|name| json!({"name": name})),
        prop::collection::vec(text(), 0..3).prop_map(|args| json!({"args": args})),
        text().prop_map(|text| json!({"description": text})),
        prop_oneof![(1..9000).prop_map(Value::from), Just(json!("5s")), Just(json!(0.5))]
            .prop_map(|timeout| json!({"timeout": timeout})),
        any::<bool>().prop_map(|enabled| json!({"enabled": enabled})),
        prop::collection::hash_map("[A-Z]{1,4}", text().prop_map(|text| text.replace('\0', "")), 0..3)
            .prop_map(|env| json!({"env": env})),
        (1..99).prop_map(|files| json!({"limits": {"files": files, "output": "1MiB"}})),
    ]
}

fn only(pair: &Value) -> (String, Value) {
    let (key, value) = pair.as_object().unwrap().iter().next().unwrap();
    (key.clone(), value.clone())
}

fn entry() -> impl Strategy<Value = Entry> {
    let note = || prop::option::weighted(0.5, Just(0));
    (prop::collection::vec((pair(), note(), note()), 0..5), note(), note(), any::<bool>()).prop_map(
        |(pairs, above, behind, first)| {
            let command = Field { key: "command".into(), value: json!("npx"), above: None, behind };
            let mut fields: Vec<Field> = Vec::new();
            for (pair, above, behind) in pairs {
                let (key, value) = only(&pair);
                if fields.iter().all(|field| field.key != key) {
                    fields.push(Field { key, value, above, behind });
                }
            }
            let at = if first { 0 } else { fields.len() };
            fields.insert(at, command);
            Entry { above, fields, inner: Vec::new() }
        },
    )
}

/// Hooks whose comments are numbered.
fn hooks() -> impl Strategy<Value = Hooks> {
    prop::collection::vec(prop::collection::vec(entry(), 1..4), 1..3).prop_map(|lists| {
        let mut hooks: Hooks = EVENTS.iter().map(|&event| event.to_owned()).zip(lists).collect();
        let mut next = 1..;
        for (_, list) in &mut hooks {
            for entry in list {
                entry.above = entry.above.and_then(|_| next.next());
                for (index, field) in entry.fields.iter_mut().enumerate() {
                    // There is no line above the first key of an item.
                    field.above = field.above.filter(|_| index > 0).and_then(|_| next.next());
                    field.behind = field.behind.and_then(|_| next.next());
                }
            }
        }
        hooks
    })
}

fn change() -> impl Strategy<Value = Edit> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (0..EVENTS.len(), pair(), pair()).prop_map(|(event, one, other)| Edit::Add(event, one, other)),
        index().prop_map(Edit::Remove),
        (index(), pair()).prop_map(|(which, pair)| Edit::Set(which, pair)),
        (index(), 0..KEYS.len()).prop_map(|(which, key)| Edit::Unset(which, key)),
    ]
}

fn note(open: &str, note: Option<usize>) -> String {
    note.map(|note| format!("{open} <{note}>")).unwrap_or_default()
}

fn write(hooks: &Hooks, style: Style, form: Form) -> String {
    let mut text = String::new();
    let group = form == Form::Agent;
    match style {
        Style::Yaml | Style::YamlFlow => {
            text.push_str("# <0>\nhooks:\n");
            for (event, list) in hooks {
                writeln!(text, "  {event}:").unwrap();
                for entry in list {
                    let pad = if group { "        " } else { "    " };
                    if group {
                        text.push_str("    - matcher: \"*\"\n      hooks:\n");
                    }
                    yaml_entry(&mut text, entry, pad, style);
                }
            }
        }
        Style::Json => {
            text.push_str("{ // <0>\n  \"hooks\": {\n");
            for (index, (event, list)) in hooks.iter().enumerate() {
                writeln!(text, "    \"{event}\": [").unwrap();
                for (index, entry) in list.iter().enumerate() {
                    writeln!(text, "      {}", note("//", entry.above)).unwrap();
                    text.push_str(if group { "      {\"matcher\": \"*\", \"hooks\": [{\n" } else { "      {\n" });
                    json_fields(&mut text, entry);
                    text.push_str(if group { "      }]}" } else { "      }" });
                    text.push_str(if index + 1 < list.len() { ",\n" } else { "\n" });
                }
                text.push_str(if index + 1 < hooks.len() { "    ],\n" } else { "    ]\n" });
            }
            text.push_str("  }\n}\n");
        }
    }
    text
}

fn yaml_entry(text: &mut String, entry: &Entry, pad: &str, style: Style) {
    if entry.above.is_some() {
        writeln!(text, "{pad}{}", note("#", entry.above)).unwrap();
    }
    if matches!(style, Style::YamlFlow) {
        let pairs: Vec<String> = entry.fields.iter().map(|field| format!("{}: {}", field.key, field.value)).collect();
        return writeln!(text, "{pad}- {{{}}}", pairs.join(", ")).unwrap();
    }
    for (index, field) in entry.fields.iter().enumerate() {
        if field.above.is_some() {
            writeln!(text, "{pad}  {}", note("#", field.above)).unwrap();
        }
        let dash = if index == 0 { "- " } else { "  " };
        writeln!(text, "{pad}{dash}{}: {} {}", field.key, field.value, note("#", field.behind)).unwrap();
    }
}

fn json_fields(text: &mut String, entry: &Entry) {
    for (index, field) in entry.fields.iter().enumerate() {
        writeln!(text, "        {}", note("//", field.above)).unwrap();
        let comma = if index + 1 < entry.fields.len() { "," } else { "" };
        let behind = note("//", field.behind);
        writeln!(text, "        \"{}\": {}{comma} {behind}", field.key, field.value).unwrap();
    }
}

/// The comments that are in a file of this style.
fn notes(hooks: &Hooks, style: Style) -> BTreeSet<usize> {
    let inner = !matches!(style, Style::YamlFlow);
    let entries = hooks.iter().flat_map(|(_, list)| list);
    let all = entries.flat_map(|entry| {
        let fields = entry.fields.iter().filter(move |_| inner).flat_map(|field| [field.above, field.behind]);
        std::iter::once(entry.above).chain(fields)
    });
    all.flatten().chain([0]).collect()
}

/// What the hooks of a text come to, without what depends on the file.
fn specs(world: &World, name: &str, text: &str) -> Vec<HookSpec> {
    let file = world.write(&format!("home/.ollm/hooks/{name}"), text);
    let hooks = world.hooks();
    std::fs::remove_file(file).unwrap();
    let plain = |spec: HookSpec| HookSpec { id: String::new(), origin: Origin::default(), ..spec };
    hooks.into_iter().map(|hook| plain(hook.spec)).collect()
}

/// The entry and its place, by its number in the file.
fn nth(hooks: &mut Hooks, mut which: usize) -> Option<(&mut Vec<Entry>, usize)> {
    for (_, list) in hooks {
        if which < list.len() {
            return Some((list, which));
        }
        which -= list.len();
    }
    None
}

/// A file, what it should say, and the comments it should have.
struct File {
    text: String,
    syntax: Syntax,
    form: Form,
    hooks: Hooks,
    notes: BTreeSet<usize>,
}

impl File {
    /// The edit, on the text and on the model of it; comments of what is removed go with it.
    fn apply(&mut self, change: &Edit) -> Result<(), edit::EditError> {
        let count: usize = self.hooks.iter().map(|(_, list)| list.len()).sum();
        let File { text, syntax, form, hooks, notes } = self;
        match change {
            Edit::Add(event, one, other) => {
                let mut entry = Map::new();
                entry.insert("command".into(), json!("npx"));
                entry.extend([one, other].map(only));
                entry.retain(|key, _| *form != Form::Agent || key != "args");
                let event = EVENTS[*event];
                *text = edit::add(text, *syntax, *form, event, &entry)?;
                let field = |(key, value)| Field { key, value, above: None, behind: None };
                let fields = entry.into_iter().map(field).collect();
                let entry = Entry { above: None, fields, inner: Vec::new() };
                match hooks.iter_mut().find(|(name, _)| name == event) {
                    Some((_, list)) => list.push(entry),
                    None => hooks.push((event.to_owned(), vec![entry])),
                }
            }
            Edit::Remove(which) if count > 0 => {
                let which = which.index(count);
                *text = edit::remove(text, *syntax, which)?;
                let (list, index) = nth(hooks, which).unwrap();
                let entry = list.remove(index);
                let own = entry.fields.iter().flat_map(|field| [field.above, field.behind]).flatten();
                // In a group the comment above the only entry stands inside of what is removed.
                let above = entry.above.filter(|_| *form == Form::Agent && *syntax == Syntax::Yaml);
                for note in own.chain(entry.inner.iter().copied()).chain(above) {
                    notes.remove(&note);
                }
            }
            Edit::Set(which, pair) if count > 0 => {
                let (which, (key, value)) = (which.index(count), only(pair));
                if *form == Form::Agent && key == "args" {
                    return Ok(());
                }
                *text = edit::set(text, *syntax, which, &key, &value)?;
                let (list, index) = nth(hooks, which).unwrap();
                let fields = &mut list[index].fields;
                match fields.iter_mut().find(|field| field.key == key) {
                    Some(field) => field.value = value,
                    None => fields.push(Field { key, value, above: None, behind: None }),
                }
            }
            Edit::Unset(which, key) if count > 0 => {
                let (which, key) = (which.index(count), KEYS[*key]);
                if *form == Form::Agent && key == "args" {
                    return Ok(());
                }
                *text = edit::unset(text, *syntax, which, key)?;
                let (list, index) = nth(hooks, which).unwrap();
                let entry = &mut list[index];
                if let Some(at) = entry.fields.iter().position(|field| field.key == key) {
                    let field = entry.fields.remove(at);
                    entry.inner.extend(field.above);
                    // Its own comment goes with it, but for one on the line of an item's dash, which stays.
                    if let Some(note) = field.behind {
                        if at > 0 || *syntax == Syntax::Json || !text.contains(&format!("<{note}>")) {
                            notes.remove(&note);
                        } else {
                            entry.inner.push(note);
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What the file should say, in the plainest form.
    fn plain(&self) -> String {
        let mut events = Map::new();
        for (event, list) in &self.hooks {
            let entries: Vec<Value> = list.iter().map(|entry| self.item(entry)).collect();
            events.insert(event.clone(), entries.into());
        }
        json!({ "hooks": events }).to_string()
    }

    fn item(&self, entry: &Entry) -> Value {
        let keys: Map<String, Value> =
            entry.fields.iter().map(|field| (field.key.clone(), field.value.clone())).collect();
        if self.form == Form::Agent { json!({"matcher": "*", "hooks": [keys]}) } else { keys.into() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edits_say_what_they_say_and_lose_no_comment(
        mut hooks in hooks(),
        edits in prop::collection::vec(change(), 1..8),
        style in prop::sample::select(vec![Style::Yaml, Style::YamlFlow, Style::Json]),
        form in prop::sample::select(vec![Form::Events, Form::Agent]),
        windows in prop::bool::weighted(0.2),
    ) {
        if form == Form::Agent {
            for entry in hooks.iter_mut().flat_map(|(_, list)| list) {
                entry.fields.retain(|field| field.key != "args");
                entry.fields[0].above = None;
            }
        }
        let world = World::new();
        let (name, syntax) = if matches!(style, Style::Json) { ("x.json", Syntax::Json) } else { ("x.yaml", Syntax::Yaml) };
        let written = write(&hooks, style, form);
        let text = if windows { written.replace('\n', "\r\n") } else { written };
        let notes = notes(&hooks, style);
        let mut file = File { text, syntax, form, hooks, notes };
        for edit in &edits {
            let before = file.text.clone();
            let done = file.apply(edit);
            prop_assert!(done.is_ok(), "{edit:?}: {}\n{before}", done.unwrap_err());
            for note in &file.notes {
                prop_assert!(file.text.contains(&format!("<{note}>")), "{edit:?} lost <{note}>\n{before}\n{}", file.text);
            }
            prop_assert_eq!(!windows, file.text.contains('\n') && !file.text.contains('\r'), "{}", file.text);
        }
        let (found, wanted) = (specs(&world, name, &file.text), specs(&world, "x.json", &file.plain()));
        prop_assert_eq!(found, wanted, "{}", file.text);
    }

    #[test]
    fn a_hook_of_its_own_file_survives_edits_and_conversions(
        pairs in prop::collection::vec(pair(), 0..6),
        patterns in prop::option::of(prop::collection::vec("(\\*\\.)?[a-z]{1,5}", 1..3)),
        prompt in text().prop_filter("a prompt says something", |text| !text.trim().is_empty()),
        yaml: bool,
        modern: bool,
        conversions in 0..4_usize,
    ) {
        let mut entry = Map::new();
        entry.insert("name".into(), json!("look"));
        entry.extend(patterns.map(|patterns| ("filePatterns".to_owned(), json!(patterns))));
        entry.insert("action".into(), json!({"type": "askAgent", "prompt": "first"}));
        let syntax = if yaml { Syntax::Yaml } else { Syntax::Json };
        let mut form = if modern { Form::Modern } else { Form::WhenThen };
        let mut text = edit::add("", syntax, form, "fileEdited", &entry).unwrap();
        let comment = if yaml { "# kept\n" } else { "// kept\n" };
        text.insert_str(0, comment);
        entry.insert("action".into(), json!({"type": "askAgent", "prompt": prompt}));
        text = edit::set(&text, syntax, 0, "prompt", &json!(prompt)).unwrap();
        // It starts no program.
        let of_program = |pair: &Value| ["args", "env", "limits"].iter().any(|key| pair.get(key).is_some());
        for pair in pairs.iter().filter(|pair| !of_program(pair)) {
            let (key, value) = only(pair);
            text = edit::set(&text, syntax, 0, &key, &value).unwrap();
            entry.insert(key, value);
            if conversions > 0 {
                form = if form == Form::Modern { Form::WhenThen } else { Form::Modern };
                text = edit::convert(&text, syntax, form).unwrap();
            }
        }
        prop_assert!(text.starts_with(comment));
        let world = World::new();
        let name = if yaml { "x.yml" } else { "x.kiro.hook" };
        let plain = json!({"fileEdited": [entry]}).to_string();
        prop_assert_eq!(specs(&world, name, &text), specs(&world, "x.json", &plain), "{}", text);
    }
}
