//! The examples of the document on planning and actions: when/then files, askAgent and runCommand, JSON-RPC.

use serde_json::{Value, json};

use super::{Example, check};

const TRUSTING: &str = "hooks:\n  trustWorkspace: true\n";

fn edited(path: &str) -> Value {
    json!({"event": "fileEdited", "data": {"path": path, "changes": "..."}})
}

/// A file of a project that the user trusts. (Ruling 6: what the document calls user hooks are those of a project.)
fn declared(name: &'static str, file: &'static str, content: &Value, event: Value) -> Example {
    Example::new(name, event).file("home/.ollm/config.yaml", TRUSTING).file(file, content.to_string())
}

#[test]
fn the_forms_of_a_file() {
    let legacy = json!({
        "name": "Lint on Save",
        "when": {"type": "fileEdited", "patterns": ["*.ts"]},
        "then": {"type": "askAgent", "prompt": "Run linting"},
    });
    let modern = json!({
        "id": "lint-on-save", "name": "Lint on Save", "eventType": "fileEdited", "filePatterns": ["*.ts"],
        "action": {"type": "askAgent", "prompt": "Run linting on {{file.path}}"},
        "trusted": false, "enabled": true,
    });
    let tools = json!({
        "name": "Lint on Save", "eventType": "fileEdited", "filePatterns": ["*.ts"],
        "action": {"type": "askAgent", "prompt": "Run linting on {{file.path}} using the shell tool"},
    });
    check(vec![
        declared("legacy format", "project/.ollm/hooks/lint.json", &legacy, edited("src/index.ts")).gives(
            "/askAgent",
            json!([{"hook": "workspace:lint.json:fileEdited:Lint on Save", "prompt": "Run linting"}]),
        ),
        declared(
            "legacy format, as other editors name it",
            "project/.ollm/hooks/lint.kiro.hook",
            &legacy,
            edited("a.ts"),
        )
        .gives("/askAgent/0/prompt", "Run linting"),
        declared("legacy format, another file", "project/.ollm/hooks/lint.json", &legacy, edited("README.md"))
            .gives("/askAgent", json!([])),
        declared("modern format", "project/.ollm/hooks/lint.json", &modern, edited("src/index.ts"))
            .gives("/hooks/0/id", "lint-on-save")
            .gives("/askAgent/0/prompt", "Run linting on src/index.ts"),
        declared("integration with tools", "project/.ollm/hooks/lint.json", &tools, edited("a.ts"))
            .gives("/askAgent/0/prompt", "Run linting on a.ts using the shell tool"),
    ]);
}

#[test]
fn the_whitelist_of_commands() {
    let fragment = |command: &str| json!({"name": "hook", "when": {"type": "agentStop"}, "then": {"type": "runCommand", "command": command}});
    let stop = || json!({"event": "agentStop", "data": {}});
    let npx = "#!/bin/sh\necho \"$@\" > LAB/npx\n";
    check(vec![
        declared("an allowed command", "project/.ollm/hooks/run.json", &fragment("npx eslint src/"), stop())
            .file("bin/npx", npx)
            .gives("/hooks/0/status", "ok")
            .leaves("npx", "eslint src/"),
        declared("a blocked command", "project/.ollm/hooks/run.json", &fragment("rm -rf /"), stop())
            .gives("/hooks", json!([]))
            .tells("command `rm` is neither a path nor one of node, python"),
        // Only valid with promptSubmit and agentStop; the way out is named.
        declared(
            "runCommand at another event",
            "project/.ollm/hooks/run.json",
            &json!({"name": "hook", "when": {"type": "fileEdited"}, "then": {"type": "runCommand", "command": "npx x"}}),
            edited("a.ts"),
        )
        .gives("/hooks", json!([]))
        .tells("askAgent"),
    ]);
}

#[test]
fn the_protocols_messages() {
    let script = include_str!("../hooks/lint.rpc.py");
    let event = |path: &str| {
        json!({
            "jsonrpc": "2.0", "method": "execute", "id": 1,
            "params": {
                "event": {"type": "fileEdited", "timestamp": 1_234_567_890_u64, "data": {"path": path, "changes": "..."}},
                "context": {"agent": {"mode": "developer"}, "user": {"preferences": {}}},
            },
        })
    };
    let own = |path: &str| json!({"event": "fileEdited", "data": {"path": path, "agent": {"mode": "developer"}}});
    check(vec![
        Example::new("request and response", event("src/index.ts"))
            .from("rpc")
            .hook("fileEdited", "home/.ollm/hooks/lint.py", script)
            .gives("/jsonrpc", "2.0")
            .gives("/id", 1)
            .gives("/result/action", "askAgent")
            .gives("/result/prompt", "Run linting on the edited file"),
        Example::new("response, in our own words", own("src/index.ts"))
            .hook("fileEdited", "home/.ollm/hooks/lint.py", script)
            .gives(
                "/askAgent",
                json!([{"hook": "user:hook.json:fileEdited:hook", "prompt": "Run linting on the edited file"}]),
            )
            .gives("/hooks/0/metadata/executionTime", 123),
        // Ruling 2: an error is a failed hook, and the operation goes on.
        Example::new("error", own("README.md"))
            .hook("fileEdited", "home/.ollm/hooks/lint.py", script)
            .gives("/continue", true)
            .gives("/hooks/0/status", "failed")
            .tells("Hook execution failed"),
    ]);
}
