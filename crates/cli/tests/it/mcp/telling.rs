//! A fault is told in fitting words, once, and to the people whom it concerns.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::{PROJECT, USER, declare, server};
use crate::lab::Lab;

fn said(lab: &Lab, arguments: &[&str]) -> String {
    let ran = lab.run(arguments);
    format!("{}{}", ran.stdout, ran.stderr)
}

#[test]
fn names_and_programs_that_cannot_be_are_told_as_what_they_are() {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"n".repeat(200): {"command": "x"}, "f": {"command": lab.root}}));
    let text = said(&lab, &["mcp", "list"]);
    assert!(text.contains("the name of a server has 200 bytes, at most 128 are taken"), "{text}");
    assert!(text.contains("is a folder, not a program") && !text.contains("does not exist"), "{text}");
}

#[test]
fn a_file_of_servers_that_is_empty_or_none_is_told_what_it_should_be() {
    let lab = Lab::new();
    let path = lab.write(USER, "");
    let text = said(&lab, &["mcp", "list"]);
    assert!(text.contains("write {\"mcpServers\": {}}") && !text.contains("hooks"), "{text}");
    std::fs::remove_file(&path).unwrap();
    symlink("/dev/zero", &path).unwrap();
    let text = said(&lab, &["mcp", "list"]);
    assert!(text.contains("not a regular file") && !text.contains("chmod"), "{text}");
}

#[test]
fn approvals_that_cannot_be_changed_are_told_once() {
    let lab = Lab::new();
    declare(&lab, PROJECT, &json!({"s": server(&[])}));
    lab.write("home/.ollm/trusted-hooks.json", "{");
    let digest = lab.run(&["mcp", "list", "--json"]).answer()[0]["digest"].as_str().unwrap().to_owned();
    let text = said(&lab, &["mcp", "trust", "s", "--digest", &digest]);
    assert_eq!(text.matches("not changed").count(), 1, "{text}");
}

#[test]
fn who_switched_all_servers_off_is_told_with_each() {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"s": server(&[])}));
    lab.write("home/.ollm/config.yaml", "mcp: {enabled: false}\n");
    for command in ["list", "start"] {
        let text = said(&lab, &["mcp", command]);
        assert!(text.contains("stopped") && text.contains("mcp.enabled is false"), "{text}");
        let rows = lab.run(&["mcp", command, "--json"]).answer();
        assert_eq!(rows[0]["error"], "mcp.enabled is false");
    }
}

#[test]
fn a_call_tells_of_its_own_server_and_of_whole_files_only() {
    let lab = Lab::new();
    let mut own = server(&[]);
    own["colour"] = json!("red");
    declare(&lab, USER, &json!({"a": own, "ab": {"command": "x", "size": 1}, "b": {"command": 7}}));
    let text = said(&lab, &["mcp", "call", "a", "echo", "--args", r#"{"text": "hi"}"#]);
    assert!(text.contains("`colour`") && !text.contains("`size`") && !text.contains("mcpServers.b"), "{text}");
    lab.write(PROJECT, "{");
    let text = said(&lab, &["mcp", "call", "a", "echo", "--args", r#"{"text": "hi"}"#]);
    assert!(text.contains("none of its servers are loaded"), "{text}");
}

#[test]
fn what_is_remembered_heals_and_what_is_newer_is_left_alone_and_told_once() {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"a": server(&[]), "b": server(&[])}));
    let path = lab.write("home/.ollm/state/mcp-tools.json", "{\"version\": 1, ");
    let ran = lab.run(&["mcp", "tools", "--json"]);
    assert!(ran.code == 0 && !ran.stderr.contains("remembered"), "{ran:?}");
    assert_eq!(lab.run(&["mcp", "tools", "--json"]).answer()[0]["state"], "configured");
    std::fs::write(&path, "{\"version\": 9}").unwrap();
    let ran = lab.run(&["mcp", "tools", "--json"]);
    assert_eq!((ran.code, ran.stderr.matches("is not remembered").count()), (0, 1), "{ran:?}");
    assert!(ran.stderr.contains("update the program, or move the file away"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"version\": 9}");
}
