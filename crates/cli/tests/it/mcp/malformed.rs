//! Answers that are not what the protocol says: told with the server's name and the field, and not asked for again.

use std::fs;

use serde_json::{Value, json};

use super::{USER, declare};
use crate::lab::{Lab, python};

/// A server whose answers stand in a file, whole messages without their number.
const WRITTEN: &str = r#"
import json, sys
answers = json.load(open(sys.argv[1]))
for line in sys.stdin:
    asked = json.loads(line)
    with open(sys.argv[2], "a") as log:
        log.write(asked["method"] + "\n")
    if "id" not in asked:
        continue
    answer = answers.get(asked["method"], {"error": {"code": -32601, "message": "no"}})
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"#;

fn greeting() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
        "serverInfo": {"name": "w", "version": "1"},
    })
}

fn lab(answers: &Value) -> Lab {
    let lab = Lab::new();
    let mut all = json!({
        "initialize": {"result": greeting()},
        "tools/list": {"result": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}},
    });
    all.as_object_mut().unwrap().extend(answers.as_object().unwrap().clone());
    let script = lab.write("written.py", WRITTEN);
    let answers = lab.write("answers.json", all.to_string());
    declare(&lab, USER, &json!({"s": {"command": python(), "args": [script, answers, lab.root.join("asked")]}}));
    lab
}

#[test]
fn resources_and_prompts_that_cannot_be_read_are_told() {
    for (method, result, code, stdout, told) in [
        (
            "resources/read",
            json!({"contents": "hi"}),
            5,
            "",
            "`contents` in its answer to `resources/read` must be a list",
        ),
        ("resources/read", json!({}), 5, "", "its answer to `resources/read` has no `contents`"),
        (
            "resources/read",
            json!({"contents": [3]}),
            5,
            "",
            "nothing in its answer to `resources/read` can be read: `contents[0]` must be an object",
        ),
        (
            "resources/read",
            json!({"contents": [{"uri": "a:b", "text": "one"}, {"uri": "a:c", "text": 2}]}),
            1,
            "one\n",
            "a part of its answer to `resources/read` cannot be read: `contents[1]` has neither a `text` nor a `blob` that is text",
        ),
        ("resources/read", json!({"contents": []}), 0, "", ""),
        (
            "prompts/get",
            json!({"messages": {"role": "user"}}),
            5,
            "",
            "`messages` in its answer to `prompts/get` must be a list",
        ),
        ("prompts/get", json!({"description": "x"}), 5, "", "its answer to `prompts/get` has no `messages`"),
        (
            "prompts/get",
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "one"}}, {"role": "user", "content": 7}]}),
            1,
            "user: one\n",
            "a part of its answer to `prompts/get` cannot be read: `messages[1]` has no `content` that is an object",
        ),
    ] {
        let lab = lab(&json!({method: {"result": result}}));
        let command =
            if method == "prompts/get" { ["mcp", "prompts", "s", "p"] } else { ["mcp", "resources", "s", "a:b"] };
        let ran = lab.run(&command);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, stdout), "{result} {ran:?}");
        let told = if told.is_empty() { String::new() } else { format!("MCP server `s`: {told}") };
        assert!(ran.stderr.contains(&told) && ran.stderr.is_empty() == told.is_empty(), "{result} {ran:?}");
        let json = lab.run(&[command.as_slice(), &["--json"]].concat());
        assert_eq!((json.code, json.answer()["error"]["message"].is_string()), (code, code == 5), "{result} {json:?}");
    }
}

#[test]
fn a_greeting_that_is_none_is_told_by_its_field_and_not_asked_for_again() {
    let without = |key: &str| {
        let mut greeting = greeting();
        greeting.as_object_mut().unwrap().remove(key);
        greeting
    };
    let with = |key: &str, value: Value| {
        let mut greeting = greeting();
        greeting[key] = value;
        greeting
    };
    for (result, told) in [
        (without("protocolVersion"), "its answer to `initialize` has no `protocolVersion`"),
        (with("protocolVersion", json!(5)), "`protocolVersion` in its answer to `initialize` must be text"),
        (without("capabilities"), "its answer to `initialize` has no `capabilities`"),
        (with("capabilities", json!([])), "`capabilities` in its answer to `initialize` must be an object"),
        (with("capabilities", json!({"tools": 3})), "`capabilities` in its answer to `initialize` is wrong"),
        (without("serverInfo"), "its answer to `initialize` has no `serverInfo`"),
        (with("serverInfo", json!({"name": "w"})), "its answer to `initialize` has no `serverInfo.version`"),
        (json!({}), "its answer to `initialize` has no `protocolVersion`"),
    ] {
        let lab = lab(&json!({"initialize": {"result": result}}));
        let ran = lab.run(&["mcp", "start", "s"]);
        assert!(ran.code == 5 && ran.stderr.contains(told) && ran.stderr.contains("`s`"), "{result} {ran:?}");
        let asked = fs::read_to_string(lab.root.join("asked")).unwrap();
        assert_eq!(asked.matches("initialize\n").count(), 1, "{result} {asked}");
    }
}

#[test]
fn a_failure_that_is_null_beside_a_result_is_none() {
    let result = json!({"content": [{"type": "text", "text": "hi"}]});
    let lab = lab(&json!({
        "initialize": {"result": greeting(), "error": null},
        "tools/call": {"error": null, "result": result},
    }));
    let ran = lab.run(&["mcp", "call", "s", "t"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hi\n"), "{ran:?}");
}

#[test]
fn arguments_and_results_are_held_to_every_word_of_their_schemas() {
    let tool = json!({
        "name": "t",
        "inputSchema": {"type": "object", "properties": {"id": {"type": "string", "pattern": "^x"}}},
        "outputSchema": {"type": "object", "properties": {"n": {"multipleOf": 2}, "p": {"pattern": "(?=a)"}}},
    });
    for (structured, kept, told) in [
        (json!({"n": 3}), false, "is dropped, it is not what the tool promised: /n: 3 is no multiple of 2"),
        (json!({"n": 4, "p": "b"}), true, "is not checked in full: the pattern (?=a) is not checked"),
        (json!({"n": 4}), true, ""),
    ] {
        let lab = lab(&json!({
            "tools/list": {"result": {"tools": [tool]}},
            "tools/call": {"result": {"content": [], "structuredContent": structured}},
        }));
        let ran = lab.run(&["mcp", "call", "s", "t", "--args", r#"{"id": "y"}"#, "--json"]);
        let place = "the arguments do not fit tool `t` of `s` at /id: it does not match the pattern ^x";
        assert!(ran.code == 64 && ran.stderr.contains(place), "{ran:?}");
        let ran = lab.run(&["mcp", "call", "s", "t", "--args", r#"{"id": "x1"}"#, "--json"]);
        let expected = if kept { structured } else { Value::Null };
        assert_eq!((ran.code, &ran.answer()["structuredContent"]), (0, &expected), "{ran:?}");
        assert!(ran.stderr.contains(told) && ran.stderr.is_empty() == told.is_empty(), "{ran:?}");
    }
}

#[test]
fn a_tool_with_a_schema_that_would_fill_questions_is_named() {
    let words: Vec<String> = (0..5000).map(|number| format!("a word with the number {number}")).collect();
    let tools = json!([
        {"name": "huge", "inputSchema": {"type": "object", "properties": {"word": {"enum": words}}}},
        {"name": "plain", "inputSchema": {"type": "object"}},
    ]);
    let lab = lab(&json!({"tools/list": {"result": {"tools": tools}}}));
    let ran = lab.run(&["mcp", "tools", "s"]);
    let told = "server `s`, tool `huge`: its inputSchema takes ";
    assert!(ran.code == 0 && ran.stderr.contains(told) && !ran.stderr.contains("`plain`"), "{ran:?}");
}
