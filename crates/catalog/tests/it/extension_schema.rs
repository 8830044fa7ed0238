//! The JSON Schema of a manifest accepts what is read without a word, and nothing that is refused.

use std::collections::HashSet;
use std::path::PathBuf;

use ollm_catalog::{
    Problem, SERVER_KEYS, ServerKey, ServerKeyKind, Severity, manifest_key_names, manifest_schema, validate_extension,
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
        json!(["*.rs"]),
        json!(["127.0.0.1:80"]),
        json!("ollm"),
        json!("block"),
        json!("critical"),
        json!("main"),
        json!("command"),
        json!("ask_agent"),
        json!("sh x.sh"),
        json!({"type": "http", "url": "http://x"}),
        json!({"perMinute": 1, "cooldown": "5s"}),
        json!({"services": ["x"]}),
        json!([{"command": "sh", "args": ["x.sh"]}]),
        json!([{"command": "sh", "args": ["x.sh"], "action": {"type": "http", "url": "http://x"}}]),
        json!([{"name": "h"}]),
        json!([{"hooks": []}]),
    ]
}

/// A manifest that holds everything but what a server or a hook can have only one of.
fn base() -> Value {
    let hook = |action: Value| json!([{"name": "h", "action": action}]);
    json!({
        "name": "x", "version": "1.0.0", "description": "d", "author": {}, "repository": {},
        "dependencies": {}, "keywords": [],
        "hooks": {
            "before_tool": [{"name": "h", "command": "sh", "args": ["x.sh"], "limits": {}, "rateLimit": {}, "requires": {}}],
            // Not beside `async`, which cannot be held to them.
            "after_agent": [{"name": "h", "command": "sh", "args": ["x.sh"], "permissions": {}}],
            "after_tool": hook(json!({"type": "command", "command": "sh", "args": ["x.sh"]})),
            "session_start": hook(json!({"type": "shell", "command": "true"})),
            "session_end": hook(json!({"type": "askAgent", "prompt": "p"})),
            "promptSubmit": hook(json!({"type": "runCommand", "command": "sh x.sh"})),
            "after_model": hook(json!({"type": "http", "url": "http://x"})),
            "notification": hook(json!({"type": "mcp", "server": "s", "tool": "t"})),
        },
        "settings": [{"name": "s", "description": "d"}],
        "skills": [{"name": "k", "description": "d", "prompt": "p"}],
        "mcpServers": {
            "program": {"command": "x", "limits": {}, "oauth": {}},
            "address": {"url": "http://x"},
        },
    })
}

/// The same with no more than what is around a place.
fn around(place: &str) -> Value {
    let mut manifest = base();
    let parts: Vec<&str> = place.split('/').skip(1).collect();
    if let Some(part) = parts.first() {
        let kept = |key: &str| ["name", "version", "description", part].contains(&key);
        manifest.as_object_mut().unwrap().retain(|key, _| kept(key));
    }
    if let ["hooks", event, ..] = parts[..] {
        manifest["hooks"].as_object_mut().unwrap().retain(|key, _| key == event);
    }
    manifest
}

/// Where a part stands in it.
fn pointer(part: &str) -> &'static str {
    match part {
        "" => "",
        "author" => "/author",
        "repository" => "/repository",
        "settings" => "/settings/0",
        "skills" => "/skills/0",
        "permissions" => "/permissions",
        "hooks" => "/hooks/before_tool/0",
        "hooks.limits" => "/hooks/before_tool/0/limits",
        "hooks.permissions" => "/hooks/after_agent/0/permissions",
        "hooks.rateLimit" => "/hooks/before_tool/0/rateLimit",
        "hooks.requires" => "/hooks/before_tool/0/requires",
        "command" => "/hooks/after_tool/0/action",
        "shell" => "/hooks/session_start/0/action",
        "askAgent" => "/hooks/session_end/0/action",
        "runCommand" => "/hooks/promptSubmit/0/action",
        "http" => "/hooks/after_model/0/action",
        "mcp" => "/hooks/notification/0/action",
        other => panic!("where is `{other}`?"),
    }
}

/// The keys that are probed, by the place they stand at: those the reader names, and some that it does not.
fn keys() -> Vec<(&'static str, Vec<&'static str>)> {
    let known = manifest_key_names().map(|(part, keys)| (pointer(&part), keys));
    let more = MORE.iter().map(|(pointer, keys)| (*pointer, keys.to_vec()));
    known.chain(more).chain(servers()).collect()
}

/// The keys of servers, each under all its names. A secret of a login needs a name beside it.
fn servers() -> Vec<(&'static str, Vec<&'static str>)> {
    let words = |keys: &'static [ServerKey]| -> Vec<&str> {
        let known = keys.iter().filter(|row| !matches!(row.kind, ServerKeyKind::Place) && row.needs.is_none());
        known.flat_map(|row| [&[row.name], row.aliases].concat()).collect()
    };
    let part = |name: &str| words(SERVER_KEYS.iter().find(|row| row.name == name).unwrap().inner());
    vec![
        ("/mcpServers/program", words(SERVER_KEYS)),
        ("/mcpServers/program/limits", part("limits")),
        ("/mcpServers/program/oauth", part("oauth")),
    ]
}

const MORE: &[(&str, &[&str])] = &[
    ("/author", &["other"]),
    ("/repository", &["other"]),
    ("/permissions", &["other"]),
    ("/dependencies", &["other", "nul", "a b"]),
    (
        "/hooks",
        &["before_agent", "PreToolUse", "pre-tool-call", "fileEdited", "custom:x", "before_tol", "custom:", "hooks"],
    ),
    (
        "/hooks/before_tool/0",
        &[
            "file_patterns",
            "on_failure",
            "working_directory",
            "workingDirectory",
            "pass_env",
            "permissions",
            "eventType",
            "when",
            "then",
            "hooks",
            "$schema",
        ],
    ),
    ("/hooks/before_tool/0/limits", &["file_size"]),
    ("/hooks/before_tool/0/rateLimit", &["per_minute", "cooldown_ms"]),
    ("/hooks/before_tool/0/requires", &["service"]),
    ("/hooks/after_tool/0/action", &["prompt", "type"]),
    ("/hooks/session_end/0/action", &["command", "type"]),
    ("/mcpServers", &["s", "a b"]),
    ("/mcpServers/address", &["url", "headers", "command"]),
    ("/mcpServers/program", &["tool_timeout", "working_directory", "allow_tools"]),
    ("/mcpServers/program/oauth", &["client_id", "callback_port"]),
];

/// What only the reader knows: it looks at more than one key, or further into a text than a schema can.
fn is_beyond(pointer: &str, key: &str, value: &Value) -> bool {
    match (pointer, key) {
        // A command that holds its arguments.
        ("/mcpServers/program", "command") => {
            ["a b", ">=1.0 <2", "${URL}/x", "sh x.sh"].iter().any(|text| value == text)
        }
        ("/settings/0", "pattern") => *value == "${URL}/x",
        // Which programs there are, what they need, and languages of their own.
        (place, "command") if place.starts_with("/hooks/") => value.is_string(),
        (place, "args") if place.starts_with("/hooks/") => *value == json!(null) || *value == json!([]),
        (place, "matcher" | "if" | "url" | "spokenAs") if place.starts_with("/hooks/") => value.is_string(),
        _ => false,
    }
}

#[test]
fn schema_and_reader_agree_on_every_key() {
    let validator = jsonschema::validator_for(&manifest_schema()).unwrap();
    let world = World::new();
    let (mut agreed, mut taken, mut differing) = ((0, 0), HashSet::new(), Vec::new());
    for (pointer, keys) in keys() {
        for (key, value) in keys.iter().flat_map(|key| probes().into_iter().map(move |value| (*key, value))) {
            let mut manifest = around(pointer);
            if pointer == "/permissions" || (pointer.is_empty() && key == "permissions") {
                // What it reaches is held against them, which is beyond a schema.
                manifest["mcpServers"] = json!({});
                manifest["hooks"] = json!({});
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
                    (true, false) => {
                        agreed.0 += 1;
                        taken.insert(format!("{pointer}/{key}"));
                    }
                    (false, true) => agreed.1 += 1,
                    _ => differing.push((format!("{pointer}/{key}: {value}"), fits, said(&problems))),
                }
            }
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
    assert!(agreed.0 > 600 && agreed.1 > 2000, "{agreed:?}");
    let all = manifest_key_names()
        .flat_map(|(part, keys)| keys.into_iter().map(move |key| format!("{}/{key}", pointer(&part))));
    // No word fits every dialect.
    let all = all.filter(|key| !key.ends_with("/spokenAs"));
    assert_eq!(all.filter(|key| !taken.contains(key)).collect::<Vec<_>>(), Vec::<String>::new());
}

fn said(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect()
}

fn read(world: &World, manifest: &Value) -> Vec<Problem> {
    let file: PathBuf = world.manifest("home", "x", manifest.to_string());
    validate_extension(file.parent().unwrap(), &Rules::default()).1
}

#[test]
fn the_schema_is_a_schema() {
    jsonschema::meta::validate(&manifest_schema()).unwrap();
}

#[test]
fn a_misspelt_key_does_not_fit() {
    let validator = jsonschema::validator_for(&manifest_schema()).unwrap();
    assert!(validator.is_valid(&base()));
    // Of an author and a repository others write more than we read.
    let parts = manifest_key_names().filter(|(part, _)| !["author", "repository"].contains(&part.as_str()));
    for (part, key) in parts.flat_map(|(part, keys)| keys.into_iter().map(move |key| (part.clone(), key))) {
        let mut manifest = base();
        manifest["permissions"] = json!({});
        let place = manifest.pointer_mut(pointer(&part)).unwrap().as_object_mut().unwrap();
        let value = place.get(key).cloned().unwrap_or(json!("x"));
        place.insert(format!("{key}{}", &key[key.len() - 1..]), value);
        assert!(!validator.is_valid(&manifest), "{part}: {key}");
    }
}
