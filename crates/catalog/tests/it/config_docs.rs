//! What is written about the configuration: the table of settings and the JSON Schema are generated and kept true here.

use std::fs;
use std::path::{Path, PathBuf};

use ollm_catalog::{KEYS, config_schema, key_table};
use serde_json::Value;

use crate::world::World;

const BEGIN: &str = "<!-- the table of settings: generated, a test keeps it true -->\n";
const END: &str = "<!-- the end of the table -->";

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Compares a document with what it should be, or writes it anew where that is asked for.
fn assert_current(name: &str, wanted: &str) {
    let path = docs(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, wanted).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == wanted,
        "docs/{name} is out of date; write it anew with\n  UPDATE_DOCS=1 cargo test -p ollm-catalog --test it config_docs"
    );
}

#[test]
fn the_table_of_settings_is_up_to_date() {
    let text = fs::read_to_string(docs("configuration.md")).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    assert_current("configuration.md", &format!("{before}{BEGIN}{}{END}{after}", key_table()));
}

#[test]
fn the_schema_has_every_setting_with_its_description() {
    let schema = config_schema();
    for key in KEYS.iter().filter(|key| key.path != "model.*") {
        let found = key.path.split('.').fold(&schema, |at, name| match name {
            "*" => &at["additionalProperties"],
            name => &at["properties"][name],
        });
        assert_eq!(found["description"], key.about, "{}", key.path);
    }
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["model"]["additionalProperties"], true);
}

/// The examples of the guide, each after the name of the file it stands for.
fn examples(text: &str) -> Vec<&str> {
    let blocks = text.split("```yaml\n").skip(1);
    blocks.filter_map(|rest| rest.split_once("```").map(|(example, _)| example)).collect()
}

#[test]
fn every_example_of_the_guide_loads_without_a_problem() {
    let text = fs::read_to_string(docs("configuration.md")).unwrap();
    let examples = examples(&text);
    assert!(examples.len() >= 3, "{examples:?}");
    for example in examples {
        let world = World::new();
        let file = if example.starts_with("# .ollm/config.yaml") { "project" } else { "home" };
        world.write(&format!("{file}/.ollm/config.yaml"), example);
        let (catalog, problems) = world.load();
        assert_eq!(problems, [], "{example}");
        assert_eq!(catalog.config.ignored, [], "{example}");
    }
}

/// A value of the schema that an instance does not fit; a small part of JSON Schema, just what ours uses.
fn fits(schema: &Value, value: &Value) -> bool {
    let Some(schema) = schema.as_object() else { return schema == &Value::Bool(true) };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() || number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is = |word: &Value| word == kind || (word == "number" && kind == "integer");
    schema.iter().all(|(name, rule)| match name.as_str() {
        "type" => rule.as_array().map_or_else(|| is(rule), |words| words.iter().any(is)),
        "enum" => rule.as_array().unwrap().contains(value),
        "anyOf" => rule.as_array().unwrap().iter().any(|rule| fits(rule, value)),
        "required" => rule.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
        "minimum" => value.as_f64().is_none_or(|value| value >= rule.as_f64().unwrap()),
        "exclusiveMinimum" => value.as_f64().is_none_or(|value| value > rule.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|value| value <= rule.as_f64().unwrap()),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| fits(rule, item))),
        "additionalProperties" => value.as_object().is_none_or(|map| {
            let known = schema.get("properties").and_then(Value::as_object);
            map.iter()
                .filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)))
                .all(|(_, value)| fits(rule, value))
        }),
        "properties" => {
            rule.as_object().unwrap().iter().all(|(name, rule)| value.get(name).is_none_or(|value| fits(rule, value)))
        }
        _ => true,
    })
}

#[test]
fn the_schema_accepts_what_we_accept_and_refuses_what_we_refuse() {
    let schema = config_schema();
    for (text, good) in [
        ("{}", true),
        (r#"{"hooks": null}"#, true),
        (
            r#"{"hooks": {"enabled": true, "timeout": "5s", "trustWorkspace": ["/a"], "guards": ["self-protection"]}}"#,
            true,
        ),
        (
            r#"{"mcp": {"servers": {"x": {"command": "npx", "args": ["a"], "own": 1}}}, "model": {"name": "x", "own": [1]}}"#,
            true,
        ),
        (r#"{"extensions": {"settings": {"a": {"b": 5}}}}"#, true),
        (r#"{"hoks": {}}"#, false),
        (r#"{"hooks": {"timout": 5}}"#, false),
        (r#"{"hooks": {"timeout": 0}}"#, false),
        (r#"{"hooks": {"untrusted": "blok"}}"#, false),
        (r#"{"hooks": {"guards": ["none"]}}"#, false),
        (r#"{"mcp": {"servers": {"x": {"args": ["a"]}}}}"#, false),
        (r#"{"model": {"temperature": 3}}"#, false),
        (r#"{"version": 2}"#, false),
    ] {
        assert_eq!(fits(&schema, &serde_json::from_str(text).unwrap()), good, "{text}");
        let world = World::new();
        world.write("home/.ollm/config.yaml", text);
        assert_eq!(world.load().1.is_empty(), good, "{text}");
    }
}
