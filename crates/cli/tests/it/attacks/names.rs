//! Owners of names: an approved thing does not lose its name to an unapproved one.

use std::fs;

use serde_json::{Value, json};
use testkit::mcp_server;

use crate::bundled::{approve, extension};
use crate::lab::{Lab, shell_event};

/// A lab whose user approved an extension with a hook that asks the server of the same extension, which refuses.
fn guarded() -> Lab {
    let lab = Lab::new();
    let refusal = json!({"continue": false, "systemMessage": "judged"}).to_string();
    let action = json!({"type": "mcp", "server": "policy", "tool": "echo", "args": {"text": refusal}});
    let hooks = json!({"before_tool": [{"name": "judge", "action": action}]});
    extension(&lab, "home", "policy", "policy", &json!({"hooks": hooks}));
    approve(&lab, "policy");
    assert_judged(&lab);
    lab
}

fn assert_judged(lab: &Lab) {
    let ran = lab.event(shell_event("ls"));
    assert_eq!((ran.code, &ran.answer()["reason"]), (2, &json!("judged")), "{ran:?}");
}

fn assert_told(lab: &Lab, whose: &str) {
    let ran = lab.run(&["mcp", "list", "--json"]);
    assert_eq!(ran.answer().as_array().unwrap().len(), 1, "{ran:?}");
    assert!(ran.stderr.contains(&format!("server `policy` is {whose} (")), "{ran:?}");
}

#[test]
fn a_project_cannot_take_the_name_of_a_server_that_guards() {
    let declared = json!({"mcpServers": {"policy": {"command": "true"}}}).to_string();
    for (file, content) in
        [("settings/mcp.json", declared.as_str()), ("config.yaml", "mcp:\n  servers:\n    policy: {command: 'true'}\n")]
    {
        let lab = guarded();
        lab.write(&format!("project/.ollm/{file}"), content);
        assert_judged(&lab);
        assert_told(&lab, "a server of the extension `policy`");
    }
}

#[test]
fn an_extension_that_nobody_approved_takes_no_name() {
    for whose in ["home", "project"] {
        let lab = guarded();
        extension(&lab, whose, "aaa", "policy", &json!({}));
        assert_judged(&lab);
        assert_told(&lab, "a server of the extension `policy`");
    }
}

/// The owner of the one server: an extension's name, or the source.
fn holder(lab: &Lab) -> String {
    let row = lab.run(&["mcp", "list", "--json"]).answer()[0].clone();
    let extensions = lab.run(&["ext", "list", "--json"]).answer();
    let own = extensions.as_array().unwrap().iter().find(|one| one["digest"] == row["digest"]);
    own.map_or(&row["source"], |one| &one["name"]).as_str().unwrap().to_owned()
}

#[test]
fn a_name_goes_to_the_user_then_their_extension_then_the_project_then_its_extension() {
    let lab = Lab::new();
    let declared = json!({"mcpServers": {"srv": {"command": mcp_server()}}}).to_string();
    extension(&lab, "project", "theirs", "srv", &json!({}));
    approve(&lab, "theirs");
    lab.write("project/.ollm/settings/mcp.json", &declared);
    assert_eq!(holder(&lab), "theirs", "the project's own is not approved yet");
    lab.run(&["ext", "disable", "theirs"]);
    let digest = lab.run(&["mcp", "list", "--json"]).answer()[0]["digest"].as_str().unwrap().to_owned();
    assert_eq!(lab.run(&["mcp", "trust", "srv", "--digest", &digest]).code, 0);
    lab.run(&["ext", "enable", "theirs"]);
    assert_eq!(holder(&lab), "workspace");
    extension(&lab, "home", "mine", "srv", &json!({}));
    assert_eq!(holder(&lab), "workspace");
    approve(&lab, "mine");
    assert_eq!(holder(&lab), "mine");
    let off = json!({"mcpServers": {"srv": {"command": "not-there", "enabled": false}}}).to_string();
    for own in [declared, off] {
        lab.write("home/.ollm/settings/mcp.json", own);
        assert_eq!(holder(&lab), "user", "nobody else speaks for the user");
    }
    fs::remove_file(lab.home.join(".ollm/settings/mcp.json")).unwrap();
    lab.run(&["ext", "disable", "mine"]);
    assert_eq!(holder(&lab), "workspace");
}

#[test]
fn a_project_cannot_take_the_id_of_a_hook_that_guards() {
    let lab = guarded();
    let hooks: Value = lab.run(&["hook", "list", "--json"]).answer();
    let judge = hooks.as_array().unwrap().iter().find(|hook| hook["name"] == "judge").unwrap();
    let entry = json!({"name": "x", "id": judge["id"], "command": "true"});
    lab.workspace("x.json", json!({"hooks": {"before_tool": [entry]}}).to_string());
    assert_judged(&lab);
}
