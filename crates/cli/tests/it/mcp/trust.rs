//! Servers that came with a project start only in the state that a person approved.

use std::io::Write;

use serde_json::json;

use super::control::{await_states, chat, end};
use super::{PROJECT, call, declare, server, text_of};
use crate::lab::Lab;
use crate::terminal::on_a_terminal;

fn digest(lab: &Lab) -> String {
    lab.run(&["mcp", "list", "--json"]).answer()[0]["digest"].as_str().unwrap().to_owned()
}

fn trust(lab: &Lab) -> String {
    lab.run(&["mcp", "list", "--json"]).answer()[0]["trust"].as_str().unwrap().to_owned()
}

fn lab() -> Lab {
    let lab = Lab::new();
    declare(&lab, PROJECT, &json!({"s": server(&[])}));
    lab
}

#[test]
fn a_projects_server_is_not_started_before_it_is_approved() {
    let lab = lab();
    for command in
        [&["mcp", "call", "s", "echo"][..], &["mcp", "tools", "s"], &["mcp", "start", "s"], &["mcp", "resources", "s"]]
    {
        let ran = lab.run(command);
        assert_eq!(ran.code, 4, "{command:?} {ran:?}");
        assert!(ran.stderr.contains("`ollm mcp trust s`"), "{command:?} {ran:?}");
    }
    assert_eq!(lab.run(&["mcp", "tools", "--json"]).answer(), json!([]));
}

#[test]
fn an_approval_holds_for_exactly_what_was_approved() {
    let lab = lab();
    let ran = lab.run(&["mcp", "trust", "s", "--digest", &digest(&lab)]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(text_of(&call(&lab, "echo", &json!({"text": "hi"}))), "hi");
    assert_eq!(trust(&lab), "trusted");
    let other = format!("sha256:{}", "0".repeat(64));
    assert_eq!(lab.run(&["mcp", "trust", "s", "--digest", &other]).code, 4, "what is approved is something else");
    let changed = [
        server(&["--tools", "1"]),
        json!({"command": "sh", "args": ["-c", "evil"]}),
        json!({"command": testkit::mcp_server(), "args": [], "env": {"LD_PRELOAD": "evil.so"}}),
        json!({"command": testkit::mcp_server(), "args": [], "cwd": ".."}),
        json!({"url": "http://127.0.0.1:1/mcp"}),
    ];
    for declaration in changed {
        declare(&lab, PROJECT, &json!({"s": declaration}));
        assert_eq!(trust(&lab), "modified", "{declaration}");
        let ran = call(&lab, "echo", &json!({"text": "hi"}));
        assert_eq!(ran.code, 4, "{declaration} {ran:?}");
        assert!(ran.stderr.contains("it changed since it was approved"), "{ran:?}");
    }
    declare(&lab, PROJECT, &json!({"s": server(&[])}));
    assert_eq!(trust(&lab), "trusted");
    assert_eq!(lab.run(&["mcp", "untrust", "s"]).code, 0);
    assert_eq!(trust(&lab), "untrusted");
}

#[test]
fn a_script_of_the_project_is_part_of_what_is_approved() {
    let lab = Lab::new();
    let path = mcp_script(&lab, "");
    declare(&lab, PROJECT, &json!({"s": {"command": "sh", "args": ["server.sh"]}}));
    assert_eq!(lab.run(&["mcp", "trust", "s", "--digest", &digest(&lab)]).code, 0);
    assert_eq!(text_of(&call(&lab, "echo", &json!({"text": "hi"}))), "hi");
    mcp_script(&lab, "touch evil; ");
    assert_eq!(call(&lab, "echo", &json!({"text": "hi"})).code, 4);
    assert!(!lab.project.join("evil").exists() && path.exists());
}

/// A lab with an approved server of the project that is a script.
fn scripted() -> Lab {
    let lab = Lab::new();
    mcp_script(&lab, "");
    declare(&lab, PROJECT, &json!({"s": {"command": "sh", "args": ["server.sh"], "lazy": true}}));
    assert_eq!(lab.run(&["mcp", "trust", "s", "--digest", &digest(&lab)]).code, 0);
    assert_eq!(lab.run(&["mcp", "start", "s"]).code, 0);
    lab
}

#[test]
fn what_changed_in_a_running_chat_is_not_started_again_before_it_is_approved() {
    let lab = scripted();
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    let mut chat = chat(&lab);
    await_states(&lab, &["configured"]);
    assert_eq!(lab.run(&["mcp", "restart", "s"]).code, 0);
    mcp_script(&lab, "touch evil; ");
    let refused = lab.run(&["mcp", "restart", "s"]);
    assert!(refused.code == 5 && refused.stderr.contains("it changed since it was approved"), "{refused:?}");
    assert!(!lab.project.join("evil").exists());
    await_states(&lab, &["failed"]);
    mcp_script(&lab, "touch good; ");
    assert_eq!(lab.run(&["mcp", "trust", "s", "--digest", &digest(&lab)]).code, 0);
    chat.stdin.as_mut().unwrap().write_all(b"/mcp\n").unwrap();
    await_states(&lab, &["ready"]);
    assert!(lab.project.join("good").exists(), "what is approved again is tried again");
    end(chat);
}

#[test]
fn a_model_cannot_rewrite_an_approved_server_and_have_it_started() {
    let lab = scripted();
    let evil = format!("touch evil; exec '{}'\n", testkit::mcp_server().display());
    let answers = [
        json!({"tool_calls": [{"name": "write_file", "arguments": {"path": "server.sh", "content": evil}}]}),
        json!({"tool_calls": [{"name": "mcp__s__echo", "arguments": {"text": "hi"}}]}),
        json!({"content": "done"}),
    ];
    lab.write("talk.jsonl", answers.map(|answer| answer.to_string()).join("\n"));
    let ran = lab.run(&["run", "go", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    assert!(ran.stderr.contains("it changed since it was approved"), "{ran:?}");
    assert!(!lab.project.join("evil").exists());
}

fn mcp_script(lab: &Lab, before: &str) -> std::path::PathBuf {
    lab.write("project/server.sh", format!("{before}exec '{}'\n", testkit::mcp_server().display()))
}

#[test]
fn nobody_approves_without_a_terminal_a_digest_or_a_person() {
    let lab = lab();
    let ran = lab.run(&["mcp", "trust", "s"]);
    assert_eq!(ran.code, 4);
    assert!(ran.stderr.contains("there is no terminal to ask on"), "{ran:?}");
    let wrong = format!("sha256:{}", "0".repeat(64));
    assert_eq!(lab.run(&["mcp", "trust", "s", "--digest", &wrong]).code, 4);
    let right = digest(&lab);
    let lab = lab.set("CLAUDECODE", "1");
    for command in [
        &["mcp", "trust", "s", "--digest", &right][..],
        &["mcp", "untrust", "s"],
        &["mcp", "add", "x", "--", "sh"],
        &["mcp", "remove", "s", "--project"],
    ] {
        let ran = lab.run(command);
        assert_eq!(ran.code, 4, "{command:?} {ran:?}");
        assert!(ran.stderr.contains("an agent may not"), "{command:?} {ran:?}");
    }
    assert_eq!(trust(&lab), "untrusted");
}

#[test]
fn a_server_cannot_approve_servers() {
    let lab = lab();
    assert_eq!(lab.run(&["mcp", "trust", "s", "--digest", &digest(&lab)]).code, 0);
    assert_eq!(text_of(&call(&lab, "env", &json!({"name": "OLLM_AGENT"}))), "ollm");
}

#[test]
fn the_users_own_servers_need_no_approval() {
    let lab = Lab::new();
    declare(&lab, super::USER, &json!({"s": server(&[])}));
    assert_eq!(trust(&lab), "trusted");
    assert!(lab.run(&["mcp", "trust", "s"]).stderr.contains("needs no approval"));
}

#[test]
fn a_person_sees_all_of_it_and_decides() {
    for (answer, code, word) in [("y\\n", 0, "trusted"), ("n\\n", 4, "untrusted"), ("\\n", 4, "untrusted")] {
        let lab = Lab::new();
        lab.write("project/server.py", "print('the script')\n");
        let declaration = json!({"command": "python3", "args": ["server.py", "it's"], "env": {"MODE": "a b\u{1b}[2J", "API_TOKEN": "hush-hush-1", "OTHER_TOKEN": "${MINE}"}});
        declare(&lab, PROJECT, &json!({"s": declaration}));
        let ran = on_a_terminal(&lab, answer, &["mcp", "trust", "s"]);
        assert_eq!(ran.code, code, "{ran:?}");
        for shown in [
            "python3 server.py 'it'\\''s'",
            "MODE='a b\\u{1b}[2J'",
            "print('the script')",
            "API_TOKEN='[hidden, 11 characters]'",
            "OTHER_TOKEN='${MINE}'",
            "project/.ollm/settings/mcp.json:1:",
        ] {
            assert!(ran.stdout.contains(shown), "{shown}: {}", ran.stdout);
        }
        assert!(!ran.stdout.contains("hush-hush"), "{}", ran.stdout);
        assert_eq!(trust(&lab), word);
    }
}

#[test]
fn a_person_sees_every_key_that_the_approval_is_bound_to_and_the_files_it_covers() {
    let lab = Lab::new();
    lab.write("project/server.py", "print('the script')\n");
    lab.write("project/conf.json", "{}\n");
    let keys = json!({
        "timeout": "7s", "toolTimeout": 8000, "idleTimeout": "9s", "lazy": false, "autoRestart": true,
        "allowTools": ["read_*"], "denyTools": ["read secret"], "limits": {"memory": "256MiB", "files": 64, "cpu": "5s"},
        "command": "python3", "args": ["server.py"], "env": {"CONF": "conf.json"},
    });
    declare(&lab, PROJECT, &json!({"s": keys}));
    let ran = on_a_terminal(&lab, "y\\n", &["mcp", "trust", "s"]);
    for shown in [
        "timeout     7s",
        "toolTimeout 8s",
        "idleTimeout 9s",
        "lazy        false",
        "autoRestart true",
        "allowTools  'read_*'",
        "denyTools   'read secret'",
        "limits      cpu 5s, memory 268435456, files 64",
        "covers      server.py, conf.json",
    ] {
        assert!(ran.stdout.contains(shown), "{shown}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("\nchanged "), "{}", ran.stdout);
    let oauth =
        json!({"clientId": "me", "scopes": ["a", "b"], "callbackPort": 8765, "redirectUri": "http://localhost:1/x"});
    declare(&lab, PROJECT, &json!({"s": {"url": "https://example.com/mcp", "type": "sse", "oauth": oauth}}));
    let ran = on_a_terminal(&lab, "n\\n", &["mcp", "trust", "s"]);
    for shown in [
        "transport   sse",
        "callbackPort 8765",
        "http://localhost:1/x",
        "asks for    a b",
        "covers      no file",
        "changed     since it was approved",
    ] {
        assert!(ran.stdout.contains(shown), "{shown}: {}", ran.stdout);
    }
}

#[test]
fn a_file_that_only_a_variable_names_is_part_of_what_is_approved() {
    let lab = Lab::new();
    lab.write("project/conf.json", "1");
    let mut declaration = server(&[]);
    declaration["env"] = json!({"CONF": "conf.json"});
    declare(&lab, PROJECT, &json!({"s": declaration}));
    assert_eq!(lab.run(&["mcp", "trust", "s", "--digest", &digest(&lab)]).code, 0);
    assert_eq!(trust(&lab), "trusted");
    lab.write("project/conf.json", "2");
    assert_eq!(trust(&lab), "modified");
}
