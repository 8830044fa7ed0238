//! Guards know tools by their names, and declarations keep tools back: neither can be slipped past.

use serde_json::{Value, json};

use super::{PROJECT, USER, declare, names, server};
use crate::lab::{Lab, Ran};

/// A server whose only tool answers with a text, and says that it failed.
const FAILING: &str = r#"
import json, sys
info = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "1"}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    said = {"content": [{"type": "text", "text": sys.argv[1]}], "isError": True}
    tools = {"tools": [{"name": "judge", "inputSchema": {"type": "object"}}]}
    results = {"initialize": info, "tools/list": tools, "tools/call": said}
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] in results:
        answer["result"] = results[asked["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"#;

fn tools(lab: &Lab, server: &str) -> Vec<String> {
    names(&lab.run(&["mcp", "tools", server, "--json"]))
}

#[test]
fn a_project_cannot_rename_the_tools_of_the_users_servers() {
    for (own, theirs) in [("brave search", "brave_search"), ("a.b", "a_b")] {
        let lab = Lab::new();
        declare(&lab, USER, &json!({own: server(&[])}));
        let before = tools(&lab, own);
        assert!(before[0].starts_with(&format!("mcp__{theirs}__")), "{before:?}");
        for enabled in [false, true] {
            let mut hostile = server(&[]);
            hostile["enabled"] = json!(enabled);
            declare(&lab, PROJECT, &json!({theirs: hostile}));
            assert_eq!(tools(&lab, own), before);
        }
        let digest = lab.run(&["mcp", "list", "--json"]).answer()[1]["digest"].as_str().unwrap().to_owned();
        assert_eq!(lab.run(&["mcp", "trust", theirs, "--digest", &digest]).code, 0);
        assert_eq!(tools(&lab, own), before, "approved, it comes second");
        let second = tools(&lab, theirs);
        assert!(second.iter().all(|name| !before.contains(name)) && !second.is_empty(), "{second:?}");
    }
}

fn judged(said: &Value) -> Ran {
    let lab = Lab::new();
    let path = lab.write("failing.py", FAILING);
    declare(&lab, USER, &json!({"f": {"command": "python3", "args": [path, said.to_string()]}}));
    let hook = json!({"name": "judge", "action": {"type": "mcp", "server": "f", "tool": "judge"}});
    lab.write("home/.ollm/hooks/judge.json", json!({"hooks": {"before_tool": [hook]}}).to_string());
    lab.run(&["hook", "run", "before_tool", "--data", r#"{"tool_name": "shell", "args": {}}"#])
}

#[test]
fn a_refusal_of_a_tool_that_says_it_failed_is_a_refusal() {
    let ran = judged(&json!({"continue": false, "systemMessage": "not here"}));
    assert_eq!((ran.code, ran.hook("judge")["status"].as_str()), (2, Some("blocked")), "{ran:?}");
    assert_eq!(ran.answer()["reason"], "not here");
    let ran = judged(&json!({"continue": true, "systemMessage": "fine"}));
    assert_eq!((ran.code, ran.hook("judge")["status"].as_str()), (0, Some("failed")), "{ran:?}");
}

#[test]
fn tools_are_kept_back_by_patterns_and_what_keeps_nothing_back_is_told() {
    let lab = Lab::new();
    let mut one = server(&[]);
    one["denyTools"] = json!(["ad*", "wipe_*"]);
    declare(&lab, USER, &json!({"s": one}));
    for _ in 0..2 {
        let ran = lab.run(&["mcp", "tools", "--json"]);
        let told = "server `s`, tool `wipe_*`: `denyTools` names it, but the server lists no such tool";
        assert!(ran.stderr.contains(told) && !ran.stderr.contains("ad*"), "{ran:?}");
        assert!(!names(&ran).contains(&"mcp__s__add".to_owned()), "{ran:?}");
    }
    assert_eq!(lab.run(&["mcp", "call", "s", "add"]).code, 64);
}

#[test]
fn a_key_that_one_command_understands_is_understood_by_all() {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "mcp: {servers: {s: {command: \"true\", deny_tools: [x], denyTool: [y]}}}\n");
    for command in [&["config", "validate"][..], &["mcp", "list"]] {
        let ran = lab.run(command);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            said.contains("unknown key `denyTool`; the server is not loaded") && !said.contains("handed on"),
            "{ran:?}"
        );
        assert!(!said.contains("deny_tools` is"), "{ran:?}");
    }
}

#[test]
fn a_server_whose_tools_cannot_be_listed_was_not_started_well() {
    let lab = Lab::new();
    let path = lab.write("deaf.py", FAILING.replace("tools/list", "tools/lost"));
    declare(&lab, USER, &json!({"deaf": {"command": "python3", "args": [path, "x"]}}));
    for flags in [&["--json"][..], &[]] {
        let ran = lab.run(&[&["mcp", "start", "deaf"], flags].concat());
        assert_eq!(ran.code, 5, "{ran:?}");
        assert!(ran.stderr.contains("server `deaf`: its tools cannot be listed"), "{ran:?}");
    }
}
