//! The MCP servers of extensions: approved and switched with their extension, run from the copy that was approved.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::mcp_server;

use crate::lab::{Lab, Ran};
use crate::terminal::on_a_terminal;

/// Writes an extension with one server, which writes to `asked-SERVER` what it is asked; `more` are further keys of the
/// manifest.
pub(crate) fn extension(lab: &Lab, whose: &str, name: &str, server: &str, more: &Value) -> PathBuf {
    let log = lab.root.join(format!("asked-{server}"));
    let declared = json!({"command": "sh", "args": ["servers/run.sh", "--log", log]});
    let mut manifest =
        json!({"name": name, "version": "1.0.0", "description": "One", "mcpServers": {server: declared}});
    let (manifest_keys, more) = (manifest.as_object_mut().unwrap(), more.as_object().unwrap());
    manifest_keys.extend(more.clone());
    let folder = format!("{whose}/.ollm/extensions/{name}");
    lab.write(&format!("{folder}/manifest.json"), manifest.to_string());
    lab.write(&format!("{folder}/servers/run.sh"), format!("exec {} \"$@\"\n", mcp_server().display()));
    lab.root.join(folder)
}

pub(crate) fn approve(lab: &Lab, name: &str) {
    let list = lab.run(&["ext", "list", "--json"]).answer();
    let entry = list.as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap().clone();
    let ran = lab.run(&["ext", "trust", name, "--digest", entry["digest"].as_str().unwrap()]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// A lab whose user has one approved extension `tools` with one server `srv`.
fn lab_with(more: &Value) -> Lab {
    let lab = Lab::new();
    extension(&lab, "home", "tools", "srv", more);
    approve(&lab, "tools");
    lab
}

fn listed(lab: &Lab, server: &str) -> Value {
    let rows = lab.run(&["mcp", "list", "--json"]).answer();
    let found = rows.as_array().unwrap().iter().find(|row| row["name"] == server).cloned();
    found.unwrap_or_else(|| panic!("{server} is not in {rows:#}"))
}

pub(crate) fn was_started(lab: &Lab, server: &str) -> bool {
    lab.root.join(format!("asked-{server}")).exists()
}

fn call(lab: &Lab, tool: &str, args: &Value) -> Ran {
    lab.run(&["mcp", "call", "srv", tool, "--args", &args.to_string(), "--json"])
}

fn said(ran: &Ran) -> String {
    ran.answer()["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

fn variable(lab: &Lab, name: &str) -> String {
    said(&call(lab, "env", &json!({"name": name})))
}

#[test]
fn scenario_2_an_extension_is_loaded_its_server_started_and_its_tool_called() {
    let lab = Lab::new();
    extension(&lab, "home", "tools", "srv", &json!({}));
    let row = listed(&lab, "srv");
    assert_eq!(
        (&row["source"], &row["trust"], &row["state"]),
        (&json!("extension"), &json!("untrusted"), &json!("configured"))
    );
    let way_out = "its extension `tools` is not approved; review and approve it with `ollm ext trust tools`";
    assert_eq!(row["error"], way_out);
    let ran = call(&lab, "echo", &json!({"text": "hi"}));
    assert_eq!((ran.code, ran.stderr.contains(way_out)), (4, true), "{ran:?}");
    assert!(!was_started(&lab, "srv"));

    approve(&lab, "tools");
    let row = listed(&lab, "srv");
    assert_eq!((&row["trust"], &row["error"]), (&json!("trusted"), &Value::Null));
    assert_eq!(row["digest"], lab.run(&["ext", "list", "--json"]).answer()[0]["digest"]);
    assert_eq!(said(&call(&lab, "echo", &json!({"text": "hi"}))), "hi");
    let tools = lab.run(&["mcp", "tools", "--json"]).answer();
    assert_eq!((&tools[0]["name"], &tools[0]["state"]), (&json!("mcp__srv__echo"), &json!("configured")));
    assert_eq!(lab.run(&["mcp", "start", "srv", "--json"]).answer()[0]["state"], "ready");
    assert_eq!(lab.run(&["mcp", "status", "srv", "--json"]).answer()[0]["source"], "extension");
    lab.assert_nobody_is_left();
}

#[test]
fn the_agent_and_hooks_call_the_tools_of_an_extension() {
    let lab = lab_with(&json!({}));
    let first = json!({"tool_calls": [{"id": "1", "name": "mcp__srv__echo", "arguments": {"text": "over here"}}]});
    let last = json!({"content": "done", "expect": {"role": "tool", "last": ["over here"]}});
    lab.write("talk.jsonl", format!("{first}\n{last}\n"));
    let ran = lab.run(&["run", "do it", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("done\n", 0), "{ran:?}");
    let action = json!({"type": "mcp", "server": "srv", "tool": "echo", "args": {"text": "{\"continue\": false, \"systemMessage\": \"judged\"}"}});
    lab.user("judge.json", json!({"hooks": {"before_tool": [{"name": "judge", "action": action}]}}).to_string());
    let ran = lab.event(crate::lab::shell_event("ls"));
    assert_eq!((ran.code, &ran.answer()["reason"]), (2, &json!("judged")), "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn what_runs_is_the_approved_copy_with_the_settings_in_its_environment() {
    let settings = json!([
        {"name": "defaultRepo", "description": "d", "default": "a/b"},
        {"name": "accessCode", "description": "d", "envVar": "ACCESS_CODE", "sensitive": true},
    ]);
    let lab = Lab::new().set("ACCESS_CODE", "hush-hush-hush").set("PARENT", "from-outside");
    let folder = extension(&lab, "home", "tools", "srv", &json!({"settings": settings}));
    let mut manifest: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    manifest["mcpServers"]["srv"]["env"] = json!({"A": "${EXTENSION_TOOLS_DEFAULT_REPO}", "B": "${PARENT}", "C": "${NOBODY}", "EXTENSION_TOOLS_ACCESS_CODE": "own", "OLLM_AGENT": ""});
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    approve(&lab, "tools");
    for (name, value) in [
        ("EXTENSION_TOOLS_DEFAULT_REPO", "a/b"),
        // It is there, and hidden in what the server says.
        ("ACCESS_CODE", "[redacted:ACCESS_CODE]"),
        ("A", "a/b"),
        ("B", "from-outside"),
        ("C", ""),
        ("PARENT", "(not set)"),
        ("EXTENSION_TOOLS_ACCESS_CODE", "own"),
        ("OLLM_AGENT", "ollm"),
    ] {
        assert_eq!(variable(&lab, name), value, "{name}");
    }
    let ran = call(&lab, "cwd", &json!({}));
    assert_eq!(said(&ran), lab.project.display().to_string());
    assert!(ran.stderr.contains("wants the variable `NOBODY`"), "{ran:?}");
    let root = variable(&lab, "OLLM_EXTENSION_ROOT");
    let store = lab.home.join(".ollm/store").display().to_string();
    assert!(root.starts_with(&store) && PathBuf::from(&root).join("servers/run.sh").exists(), "{root}");
}

#[test]
fn a_relative_program_and_folder_are_those_of_the_extension_and_cannot_lie_elsewhere() {
    let lab = Lab::new();
    let folder = extension(&lab, "home", "tools", "srv", &json!({}));
    lab.write_executable(
        "home/.ollm/extensions/tools/bin/serve",
        &format!("#!/bin/sh\nexec {}\n", mcp_server().display()),
    );
    let declare = |server: &Value| {
        let manifest = json!({"name": "tools", "version": "1.0.0", "description": "d", "mcpServers": {"srv": server}});
        fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    };
    declare(&json!({"command": "bin/serve", "cwd": "servers"}));
    approve(&lab, "tools");
    let cwd = said(&call(&lab, "cwd", &json!({})));
    assert!(cwd.contains("/.ollm/store/") && cwd.ends_with("/servers"), "{cwd}");
    for server in [
        json!({"command": "../serve"}),
        json!({"command": "sh", "args": ["../x.sh"]}),
        json!({"command": "sh", "cwd": "../.."}),
    ] {
        declare(&server);
        let error = lab.run(&["ext", "list", "--json"]).answer()[0]["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.contains("leads out of"), "{server}: {error}");
    }
}

#[test]
fn a_setting_that_a_server_wants_and_nobody_set_is_named_with_the_way_to_set_it() {
    let lab = Lab::new();
    let settings = json!([
        {"name": "repo", "description": "d", "envVar": "MY_REPO"},
        {"name": "key", "description": "d", "envVar": "MY_KEY", "sensitive": true},
    ]);
    let names = ["MY_REPO", "EXTENSION_TOOLS_REPO", "MY_KEY", "ELSE"];
    let args: Vec<String> = names.iter().flat_map(|name| ["--stderr".to_owned(), format!("x${{{name}}}")]).collect();
    let server = json!({"command": mcp_server(), "args": args});
    extension(&lab, "home", "tools", "srv", &json!({"settings": settings, "mcpServers": {"srv": server}}));
    approve(&lab, "tools");
    let told = lab.run(&["mcp", "start", "srv"]).stderr;
    for (name, way) in [
        ("MY_REPO", "`ollm ext set tools repo=VALUE` sets it"),
        ("EXTENSION_TOOLS_REPO", "`ollm ext set tools repo=VALUE` sets it"),
        ("MY_KEY", "`ollm ext set tools key` sets it"),
        ("ELSE", "set ELSE, or write ${ELSE:-TEXT}"),
    ] {
        let line = told.lines().find(|line| line.contains(&format!("wants the variable `{name}`"))).unwrap_or(&told);
        assert!(line.contains(way), "{name}: {told}");
    }
}

#[test]
fn a_sensitive_setting_is_hidden_in_what_a_server_says() {
    let settings = json!([{"name": "pin", "description": "d", "envVar": "MY_PIN", "sensitive": true}]);
    let lab = Lab::new().set("MY_PIN", "74185296300");
    let folder = extension(&lab, "home", "tools", "srv", &json!({"settings": settings}));
    fs::write(folder.join("servers/run.sh"), "echo \"the pin is $MY_PIN\" >&2; exit 3\n").unwrap();
    approve(&lab, "tools");
    let (ran, logs) = (call(&lab, "echo", &json!({})), lab.run(&["mcp", "logs", "srv"]));
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("the pin is [") && logs.stdout.contains("the pin is ["), "{ran:?} {logs:?}");
    assert!(!format!("{ran:?}{logs:?}").contains("74185296300"));
}

#[test]
fn servers_of_an_extension_that_is_off_broken_or_changed_are_seen_and_never_start() {
    let lab =
        lab_with(&json!({"settings": [{"name": "repo", "description": "d", "default": "x", "enum": ["x", "y"]}]}));
    let refused = |code: i32, state: &str, why: &str| {
        let row = listed(&lab, "srv");
        assert_eq!(row["state"], state, "{row}");
        assert!(row["error"].as_str().unwrap_or_default().contains(why), "{why}: {row}");
        for ran in
            [call(&lab, "echo", &json!({})), lab.run(&["mcp", "start", "srv"]), lab.run(&["mcp", "tools", "srv"])]
        {
            assert!(ran.code == code && ran.stderr.contains(why), "{why}: {ran:?}");
        }
        assert!(!was_started(&lab, "srv"), "{why}");
    };
    lab.run(&["ext", "disable", "tools"]);
    refused(3, "stopped", "its extension `tools` is off: switched off; `ollm ext enable tools` switches it on");
    lab.run(&["ext", "enable", "tools"]);
    lab.write("home/.ollm/config.yaml", "extensions:\n  settings:\n    tools:\n      repo: z\n");
    refused(3, "stopped", "tools/manifest.json:1:180: setting `repo` must be one of x, y, not `z`, as ");
    lab.write("home/.ollm/config.yaml", "");
    lab.write("home/.ollm/extensions/tools/data.txt", "new");
    refused(
        4,
        "configured",
        "its extension `tools` changed since it was approved; review and approve it with `ollm ext trust tools`",
    );
    fs::remove_file(lab.home.join(".ollm/extensions/tools/data.txt")).unwrap();
    assert_eq!(call(&lab, "echo", &json!({"text": "back"})).code, 0);
    lab.write("home/.ollm/config.yaml", "extensions:\n  enabled: false\n");
    assert_eq!(lab.run(&["mcp", "list", "--json"]).answer(), json!([]));
}

#[test]
fn servers_go_on_as_approved_when_the_manifest_breaks_until_somebody_says_otherwise() {
    let lab = lab_with(&json!({"settings": [{"name": "repo", "description": "d", "default": "x"}]}));
    extension(&lab, "home", "other", "unseen", &json!({}));
    let goes_on = "what was approved of `tools` goes on";
    for name in ["tools", "other"] {
        lab.write(&format!("home/.ollm/extensions/{name}/manifest.json"), "{\"name\": ");
    }
    lab.write("home/.ollm/extensions/tools/servers/run.sh", "echo changed >&2; exit 3\n");
    let ran = call(&lab, "echo", &json!({"text": "still here"}));
    assert_eq!((said(&ran).as_str(), ran.code), ("still here", 0), "{ran:?}");
    assert!(ran.stderr.contains(goes_on) && ran.stderr.contains("manifest.json:1:"), "{ran:?}");
    assert_eq!(variable(&lab, "EXTENSION_TOOLS_REPO"), "x");
    for command in [&["mcp", "tools", "srv"][..], &["mcp", "start", "srv"], &["mcp", "list"]] {
        let ran = lab.run(command);
        assert!(ran.code == 0 && ran.stderr.contains(goes_on), "{command:?}: {ran:?}");
        assert!(!ran.stderr.contains("of `other` goes on"), "nobody approved it: {ran:?}");
    }
    let row = listed(&lab, "srv");
    assert!(row["trust"] == "trusted" && row["error"].is_null(), "{row}");
    let expects = json!({"expect": {"role": "tool", "last": ["by the agent"]}, "content": "heard"});
    let echo = json!({"tool_calls": [{"id": "1", "name": "mcp__srv__echo", "arguments": {"text": "by the agent"}}]});
    lab.write("talk.jsonl", format!("{echo}\n{expects}"));
    let ran = lab.run(&["run", "do it", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("heard\n", 0), "{ran:?}");
    assert_eq!(ran.stderr.matches(goes_on).count(), 1, "{ran:?}");

    assert_eq!(lab.run(&["ext", "disable", "tools"]).code, 0);
    let ran = call(&lab, "echo", &json!({}));
    assert!(ran.code == 3 && ran.stderr.contains("its extension `tools` is off"), "{ran:?}");
    fs::remove_file(lab.home.join(".ollm/state/switches.json")).unwrap();
    assert_eq!(call(&lab, "echo", &json!({"text": "x"})).code, 0);
    lab.write("home/.ollm/trusted-hooks.json", json!({"version": 1, "approvals": []}).to_string());
    let ran = call(&lab, "echo", &json!({}));
    assert!(ran.code != 0 && !ran.stderr.contains(goes_on), "{ran:?}");
    assert!(!was_started(&lab, "unseen"));
}

#[test]
fn a_name_that_is_taken_stays_with_who_had_it_and_the_clash_is_told() {
    let lab = lab_with(&json!({}));
    extension(&lab, "project", "theirs", "srv", &json!({}));
    approve(&lab, "theirs");
    let ran = lab.run(&["mcp", "list", "--json"]);
    assert_eq!(ran.answer().as_array().unwrap().len(), 1);
    assert!(ran.stderr.contains("server `srv` is a server of the extension `tools` ("), "{ran:?}");
    lab.write("home/.ollm/settings/mcp.json", json!({"mcpServers": {"srv": {"command": mcp_server()}}}).to_string());
    let ran = lab.run(&["mcp", "list", "--json"]);
    assert_eq!(ran.answer()[0]["source"], "user");
    assert_eq!(ran.stderr.matches("server `srv` is one of the user's own servers").count(), 2, "{ran:?}");
    fs::remove_file(lab.home.join(".ollm/settings/mcp.json")).unwrap();
    lab.run(&["ext", "disable", "tools"]);
    let ran = lab.run(&["mcp", "list", "--json"]);
    assert_eq!(
        (ran.answer()[0]["error"].is_null(), ran.stderr.as_str()),
        (true, ""),
        "one that is off takes no name: {ran:?}"
    );
}

#[test]
fn an_approval_is_of_one_folder_and_no_other_of_that_name() {
    let lab = lab_with(&json!({}));
    extension(&lab, "project", "tools", "evil", &json!({}));
    let row = listed(&lab, "evil");
    assert!(row["trust"] == "untrusted" && row["error"].as_str().unwrap().contains("taken by"), "{row}");
    assert_eq!(lab.run(&["mcp", "start", "evil"]).code, 3);
    assert!(!was_started(&lab, "evil"));
    assert_eq!(listed(&lab, "srv")["trust"], "trusted");
}

#[test]
fn a_server_is_approved_and_withdrawn_with_its_extension() {
    let lab = Lab::new();
    extension(&lab, "home", "tools", "srv", &json!({}));
    let ran = lab.run(&["mcp", "trust", "srv"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(
        ran.stderr.contains("is part of the extension `tools`") && ran.stderr.contains("`ollm ext trust tools`"),
        "{ran:?}"
    );
    let digest = listed(&lab, "srv")["digest"].as_str().unwrap().to_owned();
    assert_eq!(lab.run(&["mcp", "trust", "srv", "--digest", &digest]).code, 4, "one way is enough");
    assert_eq!(lab.run(&["ext", "trust", "tools", "--digest", &digest]).code, 0);
    assert!(lab.run(&["mcp", "trust", "srv"]).stderr.contains("is trusted already"));
    let ran = lab.run(&["mcp", "remove", "srv"]);
    assert!(ran.code == 64 && ran.stderr.contains("`ollm ext disable tools` switches the extension off"), "{ran:?}");
    let ran = lab.run(&["mcp", "untrust", "srv"]);
    assert!(ran.code == 0 && ran.stderr.contains("extension `tools`, which is no longer approved"), "{ran:?}");
    assert_eq!(listed(&lab, "srv")["trust"], "untrusted");
}

#[test]
fn a_person_sees_what_a_server_runs_before_the_extension_is_approved() {
    let lab = Lab::new();
    let folder = extension(&lab, "home", "tools", "srv", &json!({}));
    let mut manifest: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    manifest["mcpServers"]["loose"] = json!({"command": "npx", "args": ["-y", "some-server"]});
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    let ran = on_a_terminal(&lab, "y\\n", &["ext", "trust", "tools"]);
    assert_eq!(ran.code, 4, "nobody said that what is not covered may run: {ran:?}");
    let ran = on_a_terminal(&lab, "y\\n", &["ext", "trust", "tools", "--uncovered"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("--- servers/run.sh\nexec "), "{}", ran.stdout);
    assert!(ran.stdout.contains("server `loose`: `some-server` names no version"), "{}", ran.stdout);
}

#[test]
fn a_sensitive_setting_is_written_into_no_transcript_trace_or_log() {
    let settings = json!([
        {"name": "pin", "description": "d", "envVar": "MY_PIN", "sensitive": true},
        {"name": "code", "description": "d", "sensitive": true},
    ]);
    let lab = Lab::new().set("MY_PIN", "74185296300").set("OLLM_KEYRING", "off");
    extension(&lab, "home", "tools", "srv", &json!({"settings": settings}));
    approve(&lab, "tools");
    let set = lab.run(&["ext", "set", "tools", "code=96385274100"]);
    assert_eq!(set.code, 0, "{set:?}");
    let call = |id: &str, name: &str| json!({"id": id, "name": "mcp__srv__env", "arguments": {"name": name}});
    let first = json!({"tool_calls": [call("1", "MY_PIN"), call("2", "EXTENSION_TOOLS_CODE")]});
    // The answer makes it into the log.
    let last = json!({"content": "done", "expect": {"role": "tool", "last": ["96385274100 is not all"]}});
    lab.write("talk.jsonl", format!("{first}\n{last}\n"));
    let ran = lab.run(&["run", "do it", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for folder in ["sessions", "trace", "log"] {
        let files = fs::read_dir(lab.home.join(".ollm").join(folder)).unwrap().flatten();
        let written: String = files.filter_map(|file| fs::read_to_string(file.path()).ok()).collect();
        assert!(written.contains("[redacted:"), "{folder}: {written}");
        assert!(!written.contains("74185296300") && !written.contains("96385274100"), "{folder}: {written}");
    }
    assert!(!lab.run(&["trace", "last"]).stdout.contains("96385274100"));
}

#[test]
fn a_file_that_a_server_names_and_that_is_missing_is_found_before_anybody_installs_it() {
    let lab = Lab::new();
    let folder = extension(&lab, "home", "tools", "srv", &json!({}));
    assert_eq!(lab.run(&["ext", "validate", "tools"]).code, 0);
    fs::remove_file(folder.join("servers/run.sh")).unwrap();
    let ran = lab.run(&["ext", "validate", "tools", "--json"]);
    let message = ran.answer()[0]["message"].as_str().unwrap().to_owned();
    assert!(ran.code == 1 && message.contains("server `srv` names ") && message.contains("does not exist"), "{ran:?}");
}
