//! Makes texts from the table: the reference of all settings, and the JSON Schema of `config.yaml`.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::key::{KEYS, Key, Project, Safety, SetBy, all, map_of};
use super::kind::ConfigKind;

/// All settings as a table in Markdown.
pub fn key_table() -> String {
    let mut text = String::from("| key | value | default | variable | in a project |\n|---|---|---|---|---|\n");
    for key in all() {
        let default =
            if key.default == "null" { String::new() } else { format!("`{}`", key.default.replace(',', ", ")) };
        let variables = key.variable.into_iter().chain(key.older_variable.map(|(name, _)| name));
        let mut variables = variables.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        variables.extend(key.variable_only.map(|only| format!(", only `{}`", only.trim_matches('"'))));
        variables.push_str(match key.set_by {
            SetBy::Anyone => "",
            SetBy::Files => "none: only in the user's file or the policy",
            SetBy::Policy => "none: only in the policy",
        });
        let _ = writeln!(
            text,
            "| `{}`{} | {} {} | {default} | {variables} | {} |",
            key.path,
            mark(key),
            key.about,
            values(key.kind),
            project(key)
        );
    }
    text
}

/// A sign for how much safety depends on a setting.
fn mark(key: &Key) -> &'static str {
    match key.safety {
        Safety::Plain => "",
        Safety::Guarded => " ◆",
        Safety::Critical => " ◆◆",
    }
}

fn project(key: &Key) -> String {
    match key.project {
        Project::Never(_) => "ignored".to_owned(),
        Project::Only(value, _) => format!("only `{}`", value.trim_matches('"')),
        Project::Lower => "only less".to_owned(),
        Project::OwnLower => "only less, for its own hooks".to_owned(),
        Project::More(_) => "only more".to_owned(),
        Project::New(_) => "only new names".to_owned(),
        Project::Any => "yes".to_owned(),
    }
}

/// The valid values, as a sentence.
fn values(kind: ConfigKind) -> String {
    if let ConfigKind::Choice(words) = kind {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ") + ".";
    }
    let text = kind.expected();
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).chain(['.']).collect()
}

/// The JSON Schema of `config.yaml`.
pub fn schema() -> Value {
    let mut root = section();
    for key in KEYS {
        let parts: Vec<&str> = key.path.split('.').collect();
        insert(&mut root, &parts, key);
    }
    root.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    root.insert("title".to_owned(), json!("The configuration of ollm"));
    Value::Object(root)
}

fn section() -> Map<String, Value> {
    let mut section = Map::new();
    section.insert("type".to_owned(), json!(["object", "null"]));
    section.insert("properties".to_owned(), json!({}));
    section.insert("additionalProperties".to_owned(), json!(false));
    section
}

fn insert(section: &mut Map<String, Value>, parts: &[&str], key: &Key) {
    let Some((name, rest)) = parts.split_first() else { return };
    let slot = if *name == "*" {
        section.entry("additionalProperties")
    } else {
        let Some(Value::Object(properties)) = section.get_mut("properties") else { return };
        properties.entry(*name)
    };
    let slot = slot.or_insert(Value::Null);
    if rest.is_empty() {
        *slot = leaf(key);
    } else {
        if !slot.is_object() {
            *slot = Value::Object(self::section());
        }
        if let Value::Object(below) = slot {
            insert(below, rest, key);
        }
    }
}

fn leaf(key: &Key) -> Value {
    if key.kind == ConfigKind::Any {
        return json!(true);
    }
    let Value::Object(mut leaf) = key.kind.schema() else { return json!(true) };
    let parts: Vec<&str> = key.path.split('.').collect();
    if let Some(names) = map_of(&parts) {
        let schema = |setting: &str| KEYS.iter().find(|key| key.path == setting).map(|key| key.kind.schema());
        let names: Map<String, Value> =
            names.iter().filter_map(|(name, setting)| Some(((*name).to_owned(), schema(setting)?))).collect();
        let map = json!({"type": "object", "properties": names, "additionalProperties": false});
        leaf = Map::from_iter([("anyOf".to_owned(), json!([leaf, map]))]);
    }
    leaf.insert("description".to_owned(), json!(key.about));
    if key.default != "null" {
        leaf.insert("default".to_owned(), key.default_value());
    }
    Value::Object(leaf)
}
