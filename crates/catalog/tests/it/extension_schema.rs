//! The JSON Schema of a manifest accepts what is read without a word, and nothing that is refused.

use std::path::PathBuf;

use ollm_catalog::{
    LIMIT_KEYS, OAUTH_KEYS, Problem, SERVER_KEYS, ServerKeys, Severity, manifest_schema, validate_extension,
};
use ollm_protocol::Rules;
use serde_json::{Value, json};

use crate::world::World;

/// Values of every kind, of which each key takes some.
fn probes() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(70000),
        json!(""),
        json!(" "),
        json!("x"),
        json!("con"),
        json!("a b"),
        json!("true"),
        json!("5s"),
        json!("1.0.0"),
        json!("1.0.0-beta.1+5"),
        json!("01.0.0"),
        json!("^1.2"),
        json!(">=1.0 <2"),
        json!("256MiB"),
        json!("stdio"),
        json!("StdIO"),
        json!("string"),
        json!("PATH"),
        json!("OLLM_X"),
        json!("http://localhost:80/x"),
        json!("https://example.org/x"),
        json!("http:///x"),
        json!("${URL}/x"),
        json!([]),
        json!(["a"]),
        json!([1]),
        json!([null]),
        json!([[]]),
        json!({}),
        json!({"a": "b"}),
        json!({"a": "1"}),
        json!({"a": null}),
        json!({"a=b": "c"}),
        json!({"nul": "1"}),
        json!({"a": "\0"}),
        json!({"a": "b\nc"}),
        json!({"a": {"command": "x"}}),
        json!({"a": {"url": "http://x", "command": null}}),
        json!({"a": {"url": "http://x", "command": "x"}}),
        json!({"a b": {"command": "x"}}),
        json!({"name": "x", "url": "x"}),
        json!({"name": " "}),
        json!({"url": null}),
        json!({"clientSecret": "x"}),
        json!({"clientSecret": "x", "client_id": "x"}),
        json!({"clientSecret": null}),
        json!({"memory": "1MiB", "cpu": "1s", "files": 1}),
        json!({"cpu": null}),
        json!({"shell": true, "network": ["x"], "env": null}),
        json!({"shell": "yes"}),
    ]
}

/// A manifest that holds everything but what a server can have only one of.
fn base() -> Value {
    json!({
        "name": "x", "version": "1.0.0", "description": "d", "author": {}, "repository": {},
        "dependencies": {}, "keywords": [], "hooks": {},
        "settings": [{"name": "s", "description": "d"}],
        "skills": [{"name": "k", "description": "d", "prompt": "p"}],
        "mcpServers": {
            "program": {"command": "x", "limits": {}, "oauth": {}},
            "address": {"url": "http://x"},
        },
    })
}

/// The keys that are probed, by the place they stand at.
const KEYS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "$schema",
            "manifestVersion",
            "name",
            "version",
            "description",
            "author",
            "license",
            "repository",
            "homepage",
            "keywords",
            "mcpServers",
            "hooks",
            "settings",
            "skills",
            "dependencies",
            "permissions",
        ],
    ),
    ("/author", &["name", "email", "url", "other"]),
    ("/repository", &["url", "type", "directory", "other"]),
    ("/settings/0", &["name", "description", "type", "envVar", "sensitive", "required", "default", "enum", "pattern"]),
    ("/skills/0", &["name", "description", "prompt"]),
    ("/permissions", &["filesystem", "network", "env", "shell", "mcp", "other"]),
    ("/dependencies", &["other", "nul", "a b"]),
    ("/mcpServers", &["s", "a b"]),
    ("/mcpServers/address", &["url", "headers", "command"]),
];

/// The keys of servers, of which the reader has the list.
const SERVERS: &[(&str, ServerKeys)] = &[
    ("/mcpServers/program", SERVER_KEYS),
    ("/mcpServers/program/limits", LIMIT_KEYS),
    ("/mcpServers/program/oauth", OAUTH_KEYS),
];

/// All keys that are probed. A secret of a login needs a name beside it.
fn keys() -> Vec<(&'static str, &'static str)> {
    let words = |(ours, others): &(&'static str, &'static [&'static str])| [&[*ours], *others].concat();
    let of_servers = SERVERS.iter().flat_map(|(at, keys)| keys.iter().flat_map(words).map(|key| (*at, key)));
    let secret = |(_, key): &(&str, &str)| matches!(*key, "clientSecret" | "client_secret");
    let others = KEYS.iter().flat_map(|(at, keys)| keys.iter().map(|key| (*at, *key)));
    others.chain(of_servers.filter(|place| !secret(place))).collect()
}

/// What only the reader knows: it looks at more than one key, or further into a text than a schema can.
fn is_beyond(pointer: &str, key: &str, value: &Value) -> bool {
    match (pointer, key) {
        // A command that holds its arguments.
        ("/mcpServers/program", "command") => *value == "a b" || *value == ">=1.0 <2" || *value == "${URL}/x",
        ("/settings/0", "pattern") => *value == "${URL}/x",
        _ => false,
    }
}

#[test]
fn schema_and_reader_agree_on_every_key() {
    let validator = jsonschema::validator_for(&manifest_schema()).unwrap();
    let world = World::new();
    let (mut agreed, mut differing) = ((0, 0), Vec::new());
    for (pointer, key) in keys() {
        for value in probes() {
            let mut manifest = base();
            if pointer.contains("permissions") || key == "permissions" {
                // What it reaches is held against them, which is beyond a schema.
                manifest["mcpServers"].as_object_mut().unwrap().remove("address");
                manifest["permissions"] = json!({});
            }
            let place = manifest.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
            place.insert(key.to_owned(), value.clone());
            let problems = read(&world, &manifest);
            let refused = problems.iter().any(|problem| problem.severity <= Severity::Error);
            let fits = validator.is_valid(&manifest);
            // What is only warned of may fit or not.
            if problems.is_empty() || (refused && !is_beyond(pointer, key, &value)) {
                match (fits, refused) {
                    (true, false) => agreed.0 += 1,
                    (false, true) => agreed.1 += 1,
                    _ => differing.push((format!("{pointer}/{key}: {value}"), problems)),
                }
            }
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
    assert!(agreed.0 > 300 && agreed.1 > 1000, "{agreed:?}");
}

fn read(world: &World, manifest: &Value) -> Vec<Problem> {
    let file: PathBuf = world.manifest("home", "x", manifest.to_string());
    validate_extension(file.parent().unwrap(), &Rules::default()).1
}

#[test]
fn the_schema_is_a_schema() {
    jsonschema::meta::validate(&manifest_schema()).unwrap();
}
