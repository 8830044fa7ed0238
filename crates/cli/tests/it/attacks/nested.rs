//! Folders in a project that would like to be a project of their own.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, Ran, finish, shell_event};

/// Refuses, and says which project it is for.
const REFUSES: &str = r#"printf '{"continue": false, "reason": "%s"}' "$OLLM_PROJECT_DIR""#;

/// A project whose approved hooks refuse: one in a hook file, one in a settings file that runs a script of the project.
fn guarded() -> Lab {
    let lab = Lab::new();
    lab.workspace_hook("before_tool", "guest", REFUSES, r#", "matcher": "shell""#);
    lab.write("project/scripts/check.sh", "echo 'not in this project' >&2; exit 2");
    let shell = json!({"hooks": {"PreToolUse": [
        {"matcher": "Write", "hooks": [{"type": "command", "name": "check", "command": "sh scripts/check.sh"}]}
    ]}});
    lab.write("project/.config/agent/settings.json", shell.to_string());
    for hook in lab.run(&["hook", "list", "--json"]).answer().as_array().unwrap() {
        if hook["source"] == "workspace" {
            lab.approve(hook["id"].as_str().unwrap());
        }
    }
    lab
}

fn within(lab: &Lab, folder: &str, event: &str) -> Ran {
    let mut command = lab.ollm(&["hook", "run"]);
    command.current_dir(lab.project.join(folder));
    finish(command, event.as_bytes())
}

fn write_event() -> String {
    json!({"event": "before_tool", "data": {"tool_name": "Write", "args": {"file_path": "a", "content": "b"}}})
        .to_string()
}

fn reason(ran: &Ran) -> Value {
    ran.answer()["reason"].clone()
}

#[test]
fn s05_no_folder_within_sheds_the_hooks_of_the_project_around_it() {
    let lab = guarded();
    let project = Value::from(lab.project.display().to_string());
    assert_eq!(reason(&within(&lab, ".", &shell_event("ls"))), project);
    for (mark, is_file) in [("sub/.ollm", false), ("other/.git", false), ("deep/er/.git", true)] {
        let mark = lab.project.join(mark);
        if is_file {
            fs::create_dir_all(mark.parent().unwrap()).unwrap();
            fs::write(&mark, "gitdir: elsewhere").unwrap();
        } else {
            fs::create_dir_all(&mark).unwrap();
        }
        let folder = mark.parent().unwrap().to_str().unwrap();
        assert_eq!(reason(&within(&lab, folder, &shell_event("ls"))), project, "{folder}");
        let settings = within(&lab, folder, &write_event());
        assert!(reason(&settings).as_str().unwrap().contains("not in this project"), "{folder}: {settings:?}");
    }
}

#[test]
fn s05_a_hook_within_takes_neither_the_name_nor_the_place_of_one_around_it() {
    let lab = guarded();
    let entry = json!({"hooks": {"before_tool": [{"name": "guest", "command": "sh", "args": ["guest.sh"]}]}});
    lab.write("project/sub/.ollm/hooks/guest.json", entry.to_string());
    lab.write("project/sub/.ollm/hooks/guest.sh", "echo {}");
    lab.write("project/sub/.ollm/config.yaml", "hooks: {enabled: false, trustWorkspace: true, guards: []}\n");
    lab.write("project/sub/scripts/check.sh", "exit 0");
    let ran = within(&lab, "sub", &shell_event("ls"));
    assert_eq!(ran.answer()["reason"], Value::from(lab.project.display().to_string()));
    assert_eq!(ran.skip("guest")["reason"], "untrusted", "its own hook is still to be approved");
    assert!(reason(&within(&lab, "sub", &write_event())).as_str().unwrap().contains("not in this project"));
}

#[test]
fn s05_what_came_with_a_project_around_runs_only_if_it_was_approved() {
    let lab = guarded();
    fs::create_dir_all(lab.project.join("sub/.git")).unwrap();
    fs::write(lab.project.join("scripts/check.sh"), "exit 0").unwrap();
    let ran = within(&lab, "sub", &write_event());
    assert_eq!(ran.skip("check")["reason"], "modified", "its script changed");
    // Trust in the folder within is no trust in the one around it.
    let sub = lab.project.join("sub");
    lab.write("home/.ollm/config.yaml", format!("hooks:\n  trustWorkspace: [\"{}\"]\n", sub.display()));
    assert_eq!(within(&lab, "sub", &write_event()).skip("check")["reason"], "modified");
}

#[test]
fn s05_a_hook_of_the_project_around_is_shown_switched_and_approved_from_within() {
    let lab = guarded();
    fs::create_dir_all(lab.project.join("sub/.git")).unwrap();
    let from_within = |arguments: &[&str]| {
        let mut command = lab.ollm(arguments);
        command.current_dir(lab.project.join("sub"));
        finish(command, b"")
    };
    let shown = from_within(&["hook", "show", "guest", "--json"]).answer();
    let id = shown["id"].as_str().unwrap().to_owned();
    assert_eq!(id, format!("workspace:guest.json:before_tool:guest@{}", lab.project.display()));
    assert_eq!(from_within(&["hook", "disable", &id]).code, 0);
    assert_eq!(lab.run(&["hook", "list"]).code, 0);
    assert_eq!(
        lab.event(shell_event("ls")).skip("guest")["reason"],
        "disabled",
        "it is one hook, seen from two places"
    );
    assert_eq!(lab.run(&["hook", "enable", "guest"]).code, 0);
    assert_eq!(from_within(&["hook", "untrust", &id]).code, 0);
    assert_eq!(lab.event(shell_event("ls")).skip("guest")["reason"], "untrusted");
}

/// Adds an extension to a project, whose hook refuses and says which project it is for.
fn extend(lab: &Lab, project: &str, name: &str, script: &str) {
    let hook = json!({"name": format!("{name}-hook"), "command": "sh", "args": ["hook.sh"], "matcher": "Read"});
    let manifest = json!({"name": name, "version": "1.0.0", "description": "x", "hooks": {"before_tool": [hook]}});
    lab.write(&format!("{project}/.ollm/extensions/{name}/manifest.json"), manifest.to_string());
    lab.write(&format!("{project}/.ollm/extensions/{name}/hook.sh"), script);
}

fn approve_extension(lab: &Lab, name: &str) {
    let digest = lab.run(&["ext", "info", name, "--json"]).answer()["digest"].as_str().unwrap().to_owned();
    let approved = lab.run(&["ext", "trust", name, "--digest", &digest]);
    assert_eq!(approved.code, 0, "{approved:?}");
}

fn read_event() -> String {
    json!({"event": "before_tool", "data": {"tool_name": "Read", "args": {"file_path": "a"}}}).to_string()
}

#[test]
fn s05_no_folder_within_sheds_the_extensions_of_the_project_around_it() {
    let lab = Lab::new();
    extend(&lab, "project", "gate", REFUSES);
    approve_extension(&lab, "gate");
    let project = Value::from(lab.project.display().to_string());
    assert_eq!(reason(&within(&lab, ".", &read_event())), project);
    fs::create_dir_all(lab.project.join("sub/.git")).unwrap();
    fs::create_dir_all(lab.project.join("other/.ollm")).unwrap();
    assert_eq!(reason(&within(&lab, "sub", &read_event())), project);
    assert_eq!(reason(&within(&lab, "other", &read_event())), project);
    // One of the same name within, and one that would take away what it needs.
    extend(&lab, "project/sub", "gate", "echo {}");
    let ran = within(&lab, "sub", &read_event());
    assert_eq!(reason(&ran), project);
    assert_eq!(ran.skip("gate-hook")["reason"], "untrusted", "its own is still to be approved");
    // What is not approved does not run.
    lab.write("project/.ollm/extensions/gate/hook.sh", "echo {}");
    let ran = within(&lab, "other", &read_event());
    assert_eq!((reason(&ran), &ran.skip("gate-hook")["reason"]), (Value::Null, &Value::from("modified")));
}

#[test]
fn s05_extensions_of_the_project_around_need_nothing_of_what_is_within() {
    let lab = Lab::new();
    extend(&lab, "project", "base", "echo {}");
    extend(&lab, "project", "gate", REFUSES);
    let manifest = lab.project.join(".ollm/extensions/gate/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"hooks\"", "\"dependencies\": {\"base\": \"^1.0.0\"}, \"hooks\"")).unwrap();
    approve_extension(&lab, "base");
    approve_extension(&lab, "gate");
    let project = Value::from(lab.project.display().to_string());
    assert_eq!(reason(&within(&lab, ".", &read_event())), project);
    extend(&lab, "project/sub", "base", "echo {}");
    let manifest = lab.project.join("sub/.ollm/extensions/base/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("1.0.0", "9.0.0")).unwrap();
    assert_eq!(reason(&within(&lab, "sub", &read_event())), project);
}
