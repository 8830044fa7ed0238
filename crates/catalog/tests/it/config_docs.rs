//! What is written about the configuration: the table of settings and the JSON Schema are generated and kept true here.

use std::fs;
use std::path::{Path, PathBuf};

use ollm_catalog::{ConfigKind, KEYS, config_schema, key_table};

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
    for key in KEYS.iter().filter(|key| key.kind != ConfigKind::Any) {
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

#[test]
fn the_schema_accepts_what_we_accept_and_refuses_what_we_refuse() {
    let schema = jsonschema::validator_for(&config_schema()).unwrap();
    for (text, good) in [
        ("{}", true),
        (r#"{"hooks": null}"#, true),
        (
            r#"{"hooks": {"enabled": true, "timeout": "5s", "trustWorkspace": ["/a"], "guards": ["self-protection"]}}"#,
            true,
        ),
        (r#"{"mcp": {"servers": {"x": {"command": "npx", "args": ["a"]}}}, "model": {"name": "x", "own": [1]}}"#, true),
        (r#"{"extensions": {"settings": {"a": {"b": 5}}}}"#, true),
        (r#"{"hoks": {}}"#, false),
        (r#"{"hooks": {"timout": 5}}"#, false),
        (r#"{"hooks": {"timeout": 0}}"#, false),
        (r#"{"hooks": {"untrusted": "blok"}}"#, false),
        (r#"{"hooks": {"guards": ["none"]}}"#, false),
        (r#"{"mcp": {"servers": {"x": {"args": ["a"]}}}}"#, false),
        (
            r#"{"mcp": {"servers": {"x": {"serverUrl": "https://x", "type": "Streamable-HTTP", "oauth": {"client_id": "x"}}}}}"#,
            true,
        ),
        (
            r#"{"mcp": {"servers": {"x": {"url": "${URL}/x", "includeTools": ["a"], "timeout": "5s", "description": "d"}}}}"#,
            true,
        ),
        (
            r#"{"mcp": {"servers": {"x": {"command": "x", "limits": {"memory": "1MiB"}, "working_directory": "/x"}}}}"#,
            true,
        ),
        (r#"{"mcp": {"servers": {"x": {"command": "x", "url": "https://x"}}}}"#, false),
        (r#"{"mcp": {"servers": {"x": {"command": "x", "limits": {"memory": "much"}}}}}"#, false),
        (r#"{"mcp": {"servers": {"x": {"url": "https://x", "oauth": {"clientSecret": "x"}}}}}"#, false),
        (r#"{"model": {"temperature": 3}}"#, false),
        (r#"{"version": 2}"#, false),
    ] {
        assert_eq!(schema.is_valid(&serde_json::from_str(text).unwrap()), good, "{text}");
        let world = World::new();
        world.write("home/.ollm/config.yaml", text);
        assert_eq!(world.load().1.is_empty(), good, "{text}");
    }
}
