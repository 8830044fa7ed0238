//! The JSON Schemas of hook files accept what is loaded without a word, and nothing that is refused.

use ollm_catalog::{
    Form, KEYS, SERVER_KEYS, ServerKeyKind, check_server, config_schema, hook_file_schema, hook_schema,
};
use ollm_protocol::hook::key::{HOOK_KEYS, KeyKind};
use serde_json::{Value, json};

use crate::world::World;

fn complaints(schema: &Value, file: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(file).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn full() -> Value {
    json!({
        "name": "full", "description": "all keys", "command": "python3", "args": ["x.py"], "dialect": "ollm",
        "matcher": "shell|write_*", "filePatterns": ["*.rs"], "if": "event == 'before_tool'", "timeout": "5s",
        "onFailure": "block", "priority": "critical", "parallel": true, "async": false,
        "rateLimit": {"perMinute": 60, "cooldownMs": 5}, "requires": {"commands": ["git"], "files": [".git"], "services": ["127.0.0.1:1"]},
        "scope": "main", "env": {"MODE": "strict"}, "passEnv": ["TOKEN"], "cwd": ".", "inputs": ["rules.json"],
        "limits": {"time": "5s", "cpu": "5s", "memory": "256MiB", "processes": 32, "files": 256, "fileSize": "16MiB", "output": 1024},
        "id": "full", "version": "1.0.0", "enabled": true,
    })
}

#[test]
fn every_schema_is_a_schema() {
    for form in [Form::Events, Form::Modern, Form::WhenThen, Form::Agent] {
        jsonschema::meta::validate(&hook_schema(form)).unwrap();
    }
    jsonschema::meta::validate(&hook_file_schema()).unwrap();
}

/// One file of each form that loads without a word.
fn good() -> Vec<(Form, Value)> {
    let prompt = json!({"type": "askAgent", "prompt": "look"});
    vec![
        (Form::Events, json!({"hooks": {"before_tool": [full()], "custom:deploy": [{"name": "a", "action": prompt}]}})),
        (Form::Modern, json!({"name": "m", "eventType": "fileEdited", "filePatterns": ["*.rs"], "action": prompt})),
        (Form::WhenThen, json!({"name": "w", "when": {"type": "fileEdited", "patterns": ["*.rs"]}, "then": prompt})),
        (
            Form::Agent,
            json!({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "true", "timeout": 5}]}]}}),
        ),
    ]
}

#[test]
fn what_loads_without_a_word_fits_the_schema_of_its_form_and_of_all() {
    for (form, file) in good() {
        assert_eq!(complaints(&hook_schema(form), &file), Vec::<String>::new(), "{form:?}");
        assert_eq!(complaints(&hook_file_schema(), &file), Vec::<String>::new(), "{form:?}");
        let world = World::new();
        world.write("home/.ollm/hooks/x.py", "");
        world.write("home/.ollm/hooks/rules.json", "{\"hooks\": {}}");
        world.write("home/.ollm/hooks/file.json", file.to_string());
        let (catalog, problems) = world.load();
        assert_eq!((problems, catalog.hooks.is_empty()), (Vec::new(), false), "{form:?}");
    }
}

#[test]
fn what_is_refused_or_warned_of_does_not_fit() {
    let wrong = [
        ("timeout", json!([5])),
        ("onFailure", json!("perhaps")),
        ("priority", json!("urgent")),
        ("dialect", json!("klingon")),
        ("parallel", json!("yes please")),
        ("args", json!("x.py")),
        ("limits", json!({"memroy": 1})),
        ("rateLimit", json!({"perMinute": 0})),
        ("scope", json!("everywhere")),
        ("mathcer", json!("shell")),
        ("persistent", json!("sometimes")),
        ("permissions", json!({"read": "everything"})),
    ];
    for (key, value) in wrong {
        let mut entry = full();
        entry[key] = value;
        let file = json!({"hooks": {"before_tool": [entry]}});
        assert_ne!(complaints(&hook_schema(Form::Events), &file), Vec::<String>::new(), "{key}");
    }
    let unknown = json!({"hooks": {"before_tol": [full()]}});
    assert_ne!(complaints(&hook_schema(Form::Events), &unknown), Vec::<String>::new());
}

/// Values of all kinds, right ones and wrong ones.
fn values() -> Vec<Value> {
    let texts = [
        "", "  ", "x", "5s", "0s", "0.0 s", "1d", "+5s", "1e3s", "-1s", ".5h", "5", "0", "true", "no", "30000", "1GiB",
        "256mib", "0B", "+1B", "5KB ", "inf", "infs", "a b", "allow", "block", "Allow", "high", "main", "ollm",
        "claude", "*", "é", "/abs", "../x", "on", "declared", "docker",
    ];
    let others = json!([
        0, 1, -1, 1.5, true, false, null, [], ["a"], [1], [null], ["127.0.0.1:80"], ["localhost:99999"], ["h:65535"],
        ["[::1]:80"], ["h:0080"], ["claude"], ["docker"], {}, {"a": "b"}, {"a": 1}, {"": "x"}, {"a=b": "x"},
    ]);
    texts.into_iter().map(Value::from).chain(others.as_array().unwrap().clone()).collect()
}

/// What only more than the look of a value decides.
const MEANING: &[&str] = &["matcher", "command", "spokenAs", "if", "persistent", "action", "hooks.approvalSerial"];

#[test]
fn every_key_of_a_hook_fits_its_schema_exactly_where_it_is_read_without_a_word() {
    let world = World::new();
    let schema = jsonschema::validator_for(&hook_schema(Form::Events)).unwrap();
    let compare = |name: &str, entry: Value| {
        let file = json!({"hooks": {"before_tool": [entry]}});
        world.write("home/.ollm/hooks/a.json", file.to_string());
        let problems: Vec<String> = world.load().1.iter().map(ToString::to_string).collect();
        assert_eq!(schema.is_valid(&file), problems.is_empty(), "{name}: {file}: {problems:?}");
    };
    for row in HOOK_KEYS.iter().filter(|row| row.is_written() && !MEANING.contains(&row.name)) {
        for value in values() {
            compare(row.name, json!({"name": "n", "command": "/bin/true", row.name: value}));
            let KeyKind::Section(keys) = row.kind else { continue };
            for inner in keys {
                compare(inner.name, json!({"name": "n", "command": "/bin/true", row.name: {inner.name: value}}));
            }
        }
    }
}

#[test]
fn every_key_of_a_server_fits_its_schema_exactly_where_it_is_read_without_a_word() {
    let schema = config_schema().pointer("/properties/mcp/properties/servers/additionalProperties").cloned().unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let compare = |name: &str, server: Value| {
        let problems: Vec<String> = check_server("s", &server).1.iter().map(ToString::to_string).collect();
        assert_eq!(schema.is_valid(&server), problems.is_empty(), "{name}: {server}: {problems:?}");
    };
    let meaning = ["command", "enabled"];
    for row in SERVER_KEYS.iter().filter(|row| !matches!(row.kind, ServerKeyKind::Place)) {
        let remote = ["url", "transport", "headers", "oauth"].contains(&row.name);
        let base = if remote { json!({"url": "https://example.com/mcp"}) } else { json!({"command": "x"}) };
        for value in values() {
            let mut server = base.clone();
            server[row.name] = value.clone();
            if !meaning.contains(&row.name) {
                compare(row.name, server);
            }
            for inner in row.inner().iter().filter(|inner| inner.needs.is_none() && !meaning.contains(&inner.name)) {
                let mut server = base.clone();
                server[row.name] = json!({inner.name: value});
                compare(inner.name, server);
            }
        }
    }
}

#[test]
fn every_setting_fits_its_schema_exactly_where_it_is_read_without_a_word() {
    let schema = jsonschema::validator_for(&config_schema()).unwrap();
    let world = World::new();
    for key in KEYS.iter().filter(|key| !key.path.contains('*') && !MEANING.contains(&key.path)) {
        for value in values() {
            let file = key.path.rsplit('.').fold(value, |inner, name| json!({name: inner}));
            world.write("home/.ollm/config.yaml", file.to_string());
            let problems: Vec<String> = world.load().1.iter().map(ToString::to_string).collect();
            assert_eq!(schema.is_valid(&file), problems.is_empty(), "{file}: {problems:?}");
        }
    }
}
