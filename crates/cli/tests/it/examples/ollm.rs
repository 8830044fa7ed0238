//! The examples of the document on the hook system: events with `data`, answers with `continue`.

use serde_json::{Value, json};

use super::{Example, check};
use crate::lab::{Lab, finish};

const ECHO: &str = "import json, sys\nprint(json.dumps({'continue': True, 'data': {'seen': json.load(sys.stdin)}}))\n";

fn model_call() -> Value {
    json!({"event": "before_model", "data": {
        "sessionId": "abc123", "model": "llama2", "messages": [{"role": "user", "content": "Hello"}],
    }})
}

fn shell(command: &str) -> Value {
    json!({"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": command}}})
}

fn echoed(name: &'static str, event: Value) -> Example {
    let kind = event["event"].as_str().unwrap().to_owned();
    let seen = Example::new(name, event).hook(&kind, "home/.ollm/hooks/echo.py", ECHO);
    seen.gives("/data/seen/event", kind)
}

#[test]
fn the_protocols_messages() {
    let answer =
        json!({"continue": true, "systemMessage": "Optional context to add", "data": {"customField": "value"}});
    let refusal = json!({"continue": false, "error": "why"});
    check(vec![
        echoed("input format", model_call())
            // Ruling 5: both spellings are written for either one.
            .gives("/data/seen/data/sessionId", "abc123")
            .gives("/data/seen/data/session_id", "abc123")
            .gives("/data/seen/data/model", "llama2")
            .gives("/data/seen/data/messages", json!([{"role": "user", "content": "Hello"}])),
        Example::new("output format", model_call())
            .answering("before_model", &answer)
            .gives("/continue", true)
            .gives("/systemMessage", "Optional context to add")
            .gives("/data", json!({"customField": "value"})),
        Example::new("output fields: a refusal and an error", model_call())
            .answering("before_model", &refusal)
            .exits(2)
            .gives("/continue", false)
            .gives("/hooks/0/error", "why"),
        echoed("session_start", json!({"event": "session_start", "data": {"session_id": "abc123"}}))
            .gives("/data/seen/data/session_id", "abc123"),
        echoed("before_model", json!({"event": "before_model", "data": {"messages": [], "model": "llama2"}}))
            .gives("/data/seen/data/messages", json!([])),
        echoed(
            "before_tool",
            json!({"event": "before_tool", "data": {"tool_name": "read_file", "args": {"path": "file.txt"}}}),
        )
        .gives("/data/seen/data/tool_name", "read_file")
        .gives("/data/seen/data/args", json!({"path": "file.txt"})),
    ]);
}

#[test]
fn the_hooks_of_the_development_guide() {
    let intercepts = |name, file, script| {
        Example::new(name, model_call())
            .hook("before_model", file, script)
            .gives("/hooks/0/status", "ok")
            .gives("/systemMessage", "Hook executed for model: llama2")
            .gives("/data", json!({"hookExecuted": true}))
    };
    let validates = |name, command, code| {
        let example = Example::new(name, shell(command)).exits(code);
        example.hook("before_tool", "home/.ollm/hooks/validate.js", include_str!("../hooks/validate.js"))
    };
    check(vec![
        // Ruling 2: it prints a line before its answer, which is taken with a warning.
        intercepts("in Node", "home/.ollm/hooks/hook.js", include_str!("../hooks/intercept.js"))
            .gives("/hooks/0/warnings/0", "there is other text in front of the JSON object"),
        intercepts("in Python", "home/.ollm/hooks/hook.py", include_str!("../hooks/intercept.py")),
        Example::new("in Python, without what it needs", json!({"event": "before_model", "data": {}}))
            .hook("before_model", "home/.ollm/hooks/hook.py", include_str!("../hooks/intercept.py"))
            .gives("/continue", true)
            .gives("/hooks/0/status", "failed")
            .gives("/hooks/0/error", "'model'"),
        Example::new("logging hook", model_call())
            .hook("before_model", "home/.ollm/hooks/log.js", include_str!("../hooks/log-all.js"))
            .leaves("hook.log", "before_model: {"),
        validates("validation hook, something else", "ls", 0).gives("/hooks/0/status", "ok"),
        // What the built-in guards do not mind; what they do, they refuse as well.
        validates("validation hook, something dangerous", "echo 'rm -rf'", 2)
            .gives("/reason", "Blocked dangerous command")
            .gives("/systemMessage", "Blocked dangerous command"),
        Example::new("context enhancement hook at another event", json!({"event": "session_start", "data": {}}))
            .hook("session_start", "home/.ollm/hooks/time.js", include_str!("../hooks/time.js"))
            .gives("/continue", true)
            .gives("/systemMessage", Value::Null),
    ]);
    let time = Example::new("context enhancement hook", model_call()).hook(
        "before_model",
        "home/.ollm/hooks/time.js",
        include_str!("../hooks/time.js"),
    );
    let told = time.run(&time.lab()).answer()["systemMessage"].as_str().unwrap().to_owned();
    assert!(told.starts_with("Current time: 20"), "{told}");
}

#[test]
fn the_registration() {
    let registered = json!({"hooks": {"before_model": [{
        "id": "log-model-calls", "name": "Log Model Calls", "command": "node", "args": ["LAB/path/to/hook.js"],
        "source": "user", "sourcePath": "LAB/path/to/hook.js",
    }]}});
    // Ruling 6: not what a file says but where it stands decides whose hook it is. A script elsewhere is named by the
    // absolute path that the document has.
    check(vec![
        Example::new("register the hook", model_call())
            .file("path/to/hook.js", include_str!("../hooks/intercept.js"))
            .file("home/.ollm/hooks/log.json", registered.to_string())
            .gives("/hooks/0/id", "log-model-calls")
            .gives("/hooks/0/name", "Log Model Calls")
            .gives("/hooks/0/source", "user")
            .gives("/data/hookExecuted", true)
            .tells("`source` is ignored: the place of its file says where a hook comes from")
            .tells("`sourcePath` is ignored"),
        // The document's own tests register a hook of this shape, and expect that it continues.
        Example::new("the hook of the tests", json!({"event": "before_model", "data": {"model": "llama2"}}))
            .file("home/.ollm/hooks/hook.js", include_str!("../hooks/intercept.js"))
            .file(
                "home/.ollm/hooks/test.json",
                json!({"hooks": {"before_model": [
                    {"id": "test-hook", "name": "Test Hook", "command": "node", "args": ["hook.js"]},
                ]}})
                .to_string(),
            )
            .gives("/hooks/0/id", "test-hook")
            .gives("/continue", true),
    ]);
}

#[test]
fn a_hook_tried_by_hand_answers_what_it_answers_to_us() {
    let lab = Lab::new();
    lab.user("hook.js", include_str!("../hooks/intercept.js"));
    let mut by_hand = lab.program("node");
    by_hand.arg("hook.js").current_dir(lab.home.join(".ollm/hooks"));
    let ran = finish(by_hand, br#"{"event":"before_model","data":{"model":"llama2"}}"#);
    let answer = ran.stdout.lines().last().unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["systemMessage"], "Hook executed for model: llama2");
}

/// The three examples at the end say `Save as: ~/.ollm/hooks/NAME`; `hook list` then says how each is declared.
#[test]
fn the_examples_that_are_only_saved() {
    let dangerous = shell("echo mkfs");
    let cases = [
        ("log-model-calls.js", include_str!("../hooks/log-model-calls.js"), model_call(), 0),
        ("block-dangerous.js", include_str!("../hooks/block-dangerous.js"), dangerous, 2),
        ("add-context.py", include_str!("../hooks/add-context.py"), model_call(), 0),
    ];
    for (name, script, event, code) in cases {
        let lab = Lab::new().set("USER", "ada");
        lab.user(name, script);
        let listed = lab.run(&["hook", "list"]).stderr;
        let (_, rest) = listed.split_once("help: ollm hook add ").unwrap_or_else(|| panic!("{name}: {listed}"));
        let words: Vec<&str> = rest.lines().next().unwrap().split_whitespace().collect();
        let added = lab.run(&[&["hook", "add"], words.as_slice()].concat());
        assert_eq!(added.code, 0, "{name}: {added:?}");
        let ran = lab.event(event.to_string());
        assert_eq!(ran.code, code, "{name}: {ran:?}");
        match name {
            "log-model-calls.js" => {
                let log = std::fs::read_to_string(lab.home.join(".ollm/model-calls.log")).unwrap();
                assert!(log.ends_with(" - Model: llama2\n"), "{log}");
            }
            "block-dangerous.js" => {
                let reason = ran.answer()["reason"].as_str().unwrap().to_owned();
                assert!(reason.ends_with("Blocked dangerous command: mkfs"), "{reason}");
                assert_eq!(lab.event(shell("ls").to_string()).code, 0);
            }
            _ => {
                let told = ran.answer()["systemMessage"].as_str().unwrap().to_owned();
                let lines: Vec<&str> = told.lines().skip(1).collect();
                let folder = format!("Working directory: {}", lab.project.display());
                assert_eq!(lines, [folder.as_str(), "User: ada"]);
            }
        }
    }
}
