//! Tools that come and go while a model works with them.

use std::fs;

use serde_json::{Value, json};

use super::{USER, declare, server};
use crate::agent::{call, expecting, run, talk, text};
use crate::lab::{Lab, finish, python};

/// A server that has another tool once `grow` was called, and says so before it answers.
const GROWING: &str = r#"
import json, sys
tools = ["grow"]
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"id": asked["id"]}
    if asked["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}},
                            "serverInfo": {"name": "g", "version": "1"}}
    elif asked["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]}
    elif asked["method"] == "tools/call":
        name = asked["params"]["name"]
        if name == "grow":
            tools[:] = ["grown"]
            send({"method": "notifications/tools/list_changed"})
        answer["result"] = {"content": [{"type": "text", "text": "this is " + name}]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    send(answer)
"#;

/// Writes down what each question to the model offers.
fn lab() -> Lab {
    let lab = Lab::new();
    let keep = "cat >> ../offered; echo >> ../offered; echo '{\"continue\": true}'";
    lab.user_hook("before_tool_selection", "keep", keep, "");
    lab
}

/// The tools of servers that were offered, question by question.
fn offered(lab: &Lab) -> Vec<Vec<String>> {
    let text = fs::read_to_string(lab.root.join("offered")).unwrap();
    let events = serde_json::Deserializer::from_str(&text).into_iter::<Value>().map(Result::unwrap);
    let names = |event: Value| {
        let names = event["data"]["available_tools"].as_array().unwrap().clone();
        names.iter().filter_map(Value::as_str).filter(|name| name.starts_with("mcp__")).map(str::to_owned).collect()
    };
    events.map(names).collect()
}

#[test]
fn a_tool_that_was_announced_is_offered_with_the_next_question() {
    let lab = lab();
    let script = lab.write("growing.py", GROWING);
    declare(&lab, USER, &json!({"s": {"command": python(), "args": [script]}}));
    talk(
        &lab,
        &[
            call("mcp__s__grow", json!({})),
            expecting(call("mcp__s__grown", json!({})), json!({"last": "this is grow"})),
            expecting(text("done"), json!({"last": "this is grown"})),
        ],
    );
    let ran = run(&lab, &["--approval", "yolo"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
    assert_eq!(offered(&lab), [["mcp__s__grow"], ["mcp__s__grown"], ["mcp__s__grown"]], "{ran:?}");
}

#[test]
fn a_server_that_crashed_is_offered_again_with_the_next_message_of_the_person() {
    let lab = lab();
    let mut declaration = server(&[]);
    declaration["allowTools"] = json!(["crash", "echo"]);
    declare(&lab, USER, &json!({"s": declaration}));
    talk(
        &lab,
        &[
            call("mcp__s__crash", json!({})),
            expecting(text("it crashed"), json!({"last": "may have had an effect"})),
            call("mcp__s__echo", json!({"text": "back"})),
            expecting(text("it is back"), json!({"last": "back"})),
        ],
    );
    let chat = lab.ollm(&["chat", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    let ran = finish(chat, b"crash\necho\n");
    assert!(ran.code == 0 && ran.stdout.contains("it is back"), "{ran:?}");
    let mut both = offered(&lab);
    for names in &mut both {
        names.sort();
    }
    let all = vec!["mcp__s__crash".to_owned(), "mcp__s__echo".to_owned()];
    assert_eq!(both, [all.clone(), vec![], all.clone(), all], "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn a_server_that_crashes_again_and_again_is_not_offered_again() {
    let lab = lab();
    let mut declaration = server(&[]);
    declaration["allowTools"] = json!(["crash"]);
    declare(&lab, USER, &json!({"s": declaration}));
    let turn = [call("mcp__s__crash", json!({})), text("it crashed")];
    talk(&lab, &[turn.as_slice(), &turn, &turn, &[text("nothing to call")]].concat());
    let chat = lab.ollm(&["chat", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    let ran = finish(chat, b"one\ntwo\nthree\nfour\n");
    assert!(ran.code == 0 && ran.stdout.contains("nothing to call"), "{ran:?}");
    let counts: Vec<usize> = offered(&lab).iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 0, 1, 0, 1, 0, 0], "{ran:?}");
}
