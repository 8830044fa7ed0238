//! Folders whose names are not Unicode: every answer is still JSON, and nothing panics.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::lab::{Lab, Ran, finish, hook_file, shell_event};

/// A name that no text can hold.
fn odd() -> &'static OsStr {
    OsStr::from_bytes(b"odd\xff\xfe")
}

/// Writes an extension into a folder, with a hook, a skill and a server.
fn extension(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let manifest = json!({
        "name": "odd", "version": "1.0.0", "description": "d",
        "hooks": {"before_tool": [{"name": "own", "command": "sh", "args": ["run.sh"]}]},
        "skills": [{"name": "k", "description": "d", "prompt": "p"}],
        "mcpServers": {"s": {"command": "npx"}},
    });
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    fs::write(folder.join("run.sh"), "exit 0\n").unwrap();
}

/// The answer of a command that must not fail.
#[track_caller]
fn answer(ran: &Ran) -> Value {
    assert!(matches!(ran.code, 0 | 5), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    ran.answer()
}

#[test]
fn an_extension_in_a_folder_whose_name_is_not_unicode_is_shown_as_json() {
    let lab = Lab::new();
    extension(&lab.project.join(".ollm/extensions").join(odd()));
    let list = answer(&lab.run(&["ext", "list", "--json"]));
    assert!(list[0]["path"].as_str().unwrap().ends_with("odd\u{fffd}\u{fffd}"), "{list}");
    for command in [
        &["ext", "info", "odd", "--json"][..],
        &["skill", "list", "--json"],
        &["skill", "show", "odd.k", "--json"],
        &["hook", "list", "--json"],
        &["hook", "show", "odd.own", "--json"],
        &["mcp", "list", "--json"],
        &["config", "show", "--json"],
    ] {
        let ran = lab.run(command);
        assert!(!ran.stderr.contains("panicked") && ran.code < 100, "{command:?}: {ran:?}");
    }
    for command in [&["skill", "list", "--json"][..], &["hook", "list", "--json"], &["ext", "info", "odd", "--json"]] {
        answer(&lab.run(command));
    }
}

/// A lab whose home and project have odd names, and everything that can be said in them.
fn odd_lab() -> (Lab, PathBuf, PathBuf) {
    let lab = Lab::new();
    let (home, project) = (lab.root.join(odd()), lab.root.join("in").join(odd()));
    for folder in [".ollm/hooks", ".ollm/settings", ".git"].map(|name| project.join(name)) {
        fs::create_dir_all(folder).unwrap();
    }
    fs::create_dir_all(home.join(".ollm/hooks")).unwrap();
    for place in [&home, &project] {
        fs::write(place.join(".ollm/hooks/h.json"), hook_file("before_tool", "h", "")).unwrap();
        fs::write(place.join(".ollm/hooks/h.sh"), "printf '{\"continue\": true}'\n").unwrap();
    }
    extension(&home.join(".ollm/extensions").join(odd()));
    fs::write(home.join(".ollm/config.yaml"), "hooks:\n  nonsense: 1\n").unwrap();
    fs::write(project.join(".ollm/settings/mcp.json"), r#"{"mcpServers": {"p": {"command": "npx"}}}"#).unwrap();
    (lab, home, project)
}

#[test]
fn a_home_and_a_project_whose_names_are_not_unicode_are_shown_as_json() {
    let (lab, home, project) = odd_lab();
    let run = |arguments: &[&str], input: &str| {
        let mut command = lab.ollm(arguments);
        command.env("HOME", &home).current_dir(&project);
        finish(command, input.as_bytes())
    };
    let ran = run(&["hook", "run"], &shell_event("ls"));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.hook("h")["source"], "user", "{ran:?}");
    for command in [
        &["hook", "list", "--json"][..],
        &["hook", "plan", "before_tool", "--json"],
        &["ext", "list", "--json"],
        &["ext", "info", "odd", "--json"],
        &["skill", "list", "--json"],
        &["skill", "show", "k", "--json"],
        &["mcp", "list", "--json"],
        &["mcp", "logs", "p", "--json"],
        &["mcp", "status", "--json"],
        &["config", "show", "--json"],
        &["config", "get", "hooks.enabled", "--json"],
        &["config", "path", "--json"],
        &["config", "migrate", "--json"],
        &["config", "validate", "--json"],
        &["ext", "validate", "odd", "--json"],
        &["trace", "last", "--json"],
        &["session", "list", "--json"],
    ] {
        let ran = run(command, "");
        assert!(!ran.stderr.contains("panicked") && ran.code < 100, "{command:?}: {ran:?}");
        assert!(serde_json::from_str::<Value>(&ran.stdout).is_ok(), "{command:?}: {ran:?}");
    }
}

#[test]
fn hooks_below_folders_whose_names_are_not_unicode_run() {
    let (lab, home, project) = odd_lab();
    let run = |arguments: &[&str], input: &str| {
        let mut command = lab.ollm(arguments);
        command.env("HOME", &home).current_dir(&project);
        finish(command, input.as_bytes())
    };
    // One of every kind: a script of the user's, a program, an approved one of the project's, an approved extension.
    let program = home.join(".ollm/hooks/program.sh");
    fs::write(&program, "#!/bin/sh\nprintf '{\"continue\": true}'\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let hook = json!({"hooks": {"before_tool": [{"name": "program", "command": "./program.sh"}]}});
    fs::write(home.join(".ollm/hooks/program.json"), hook.to_string()).unwrap();
    let line =
        json!({"name": "line", "eventType": "promptSubmit", "action": {"type": "runCommand", "command": "sh line.sh"}});
    fs::write(home.join(".ollm/hooks/line.json"), line.to_string()).unwrap();
    fs::write(home.join(".ollm/hooks/line.sh"), "exit 0\n").unwrap();
    let inner = project.join(".ollm/extensions").join(odd());
    fs::create_dir_all(&inner).unwrap();
    let manifest = json!({
        "name": "inner", "version": "1.0.0", "description": "d",
        "hooks": {"before_tool": [{"name": "inner", "command": "sh", "args": ["run.sh", "data.txt"]}]},
    });
    fs::write(inner.join("manifest.json"), manifest.to_string()).unwrap();
    fs::write(inner.join("run.sh"), "test \"$(cat \"$1\")\" = data && printf '{\"continue\": true}'\n").unwrap();
    fs::write(inner.join("data.txt"), "data\n").unwrap();
    for name in ["odd", "inner"] {
        let list = answer(&run(&["ext", "list", "--json"], ""));
        let one = list.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
        let ran = run(&["ext", "trust", name, "--digest", one["digest"].as_str().unwrap()], "");
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let list = answer(&run(&["hook", "list", "--json"], ""));
    let own = list.as_array().unwrap().iter().find(|one| one["name"] == "h" && one["source"] == "workspace").unwrap();
    let id = own["id"].as_str().unwrap().to_owned();
    let digest = answer(&run(&["hook", "show", &id, "--json"], ""))["digest"].as_str().unwrap().to_owned();
    assert_eq!(run(&["hook", "trust", &id, "--digest", &digest], "").code, 0);
    let ran = run(&["hook", "run"], &shell_event("ls"));
    let hooks = ran.answer()["hooks"].as_array().unwrap().clone();
    let states: Vec<(&str, &Value)> = hooks.iter().map(|one| (one["name"].as_str().unwrap(), &one["status"])).collect();
    let ok = json!("ok");
    assert_eq!(states, [("h", &ok), ("program", &ok), ("own", &ok), ("h", &ok), ("inner", &ok)], "{ran:?}");
    let said = run(&["hook", "run"], &json!({"event": "before_agent", "data": {"prompt": "x"}}).to_string());
    assert_eq!(said.hook("line")["status"], "ok", "{said:?}");
}
