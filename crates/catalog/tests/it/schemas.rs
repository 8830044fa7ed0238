//! The JSON Schemas of hook files accept what is loaded without a word, and nothing that is refused.

use ollm_catalog::{Form, hook_file_schema, hook_schema};
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
