//! What is wrong around extensions is told by every command that shows them, and never passed over in silence.

use std::fs;

use serde_json::{Value, json};

use super::{QUIET, approve, entry, extension};
use crate::lab::{Lab, Ran, finish};

fn assert_told(lab: &Lab, commands: &[&[&str]], words: &str) {
    for command in commands {
        let ran: Ran = lab.run(command);
        assert!(ran.stderr.contains(words), "{command:?}: {ran:?}");
        let ran: Ran = lab.run(&[*command, &["--json"]].concat());
        assert!(command.contains(&"reload") || ran.stderr.contains(words), "{command:?} --json: {ran:?}");
    }
}

const LISTS: &[&[&str]] = &[&["ext", "list"], &["ext", "reload"], &["skill", "list"], &["mcp", "list"]];

#[test]
fn a_directory_that_cannot_be_read_is_told_by_every_list() {
    let lab = Lab::new();
    lab.write("home/.ollm/extensions", "a file");
    assert_told(&lab, LISTS, "its extensions are not loaded");
}

#[test]
fn switches_and_secrets_that_cannot_be_read_are_told_by_every_list() {
    let lab = Lab::new().set("OLLM_KEYRING", "off");
    extension(&lab, "home", "one", QUIET, &json!({}));
    lab.write("home/.ollm/state/switches.json", "{");
    let lists = [LISTS, &[&["ext", "info", "one"]]].concat();
    assert_told(&lab, &lists, "nothing is switched on or off");
    lab.write("home/.ollm/state/secrets.json", "{");
    assert_told(&lab, &lists, "no secret of an extension is known");
}

#[test]
fn an_extension_whose_hook_runs_by_another_program_is_not_called_trusted() {
    let lab = Lab::new();
    lab.write_executable("first/node", "#!/bin/sh\nexit 0\n");
    let path = |folder: &str| format!("{}:/usr/bin:/bin", lab.root.join(folder).display());
    let hooks = json!({"hooks": {"before_tool": [{"name": "one", "command": "node", "args": ["hooks/run.sh"]}]}});
    extension(&lab, "home", "one", QUIET, &hooks);
    let listed = |folder: &str| {
        let mut command = lab.ollm(&["ext", "list", "--json"]);
        command.env("PATH", path(folder));
        finish(command, b"").answer()[0].clone()
    };
    let digest = listed("first")["digest"].as_str().unwrap().to_owned();
    let mut approve = lab.ollm(&["ext", "trust", "one", "--digest", &digest]);
    approve.env("PATH", path("first"));
    assert_eq!(finish(approve, b"").code, 0);
    assert_eq!((&listed("first")["trust"], &listed("first")["error"]), (&json!("trusted"), &Value::Null));
    lab.write_executable("second/node", "#!/bin/sh\nexit 2\n");
    let changed = listed("second");
    assert_eq!(changed["trust"], "modified");
    assert!(changed["error"].as_str().unwrap().contains("`ollm ext trust one` approves it"), "{changed}");
}

#[test]
fn what_the_configuration_sets_for_an_extension_is_validated_against_its_manifest() {
    let lab = Lab::new();
    let settings = json!([
        {"name": "mode", "description": "d", "enum": ["warn", "block"], "default": "warn"},
        {"name": "limit", "description": "d", "type": "integer"},
        {"name": "pin", "description": "d", "sensitive": true, "pattern": "^[0-9]+$"},
    ]);
    extension(&lab, "home", "one", QUIET, &json!({"settings": settings}));
    lab.write("home/.ollm/config.yaml", "extensions:\n  settings:\n    one:\n      mode: warn\n      limit: 3\n");
    assert_eq!(lab.run(&["config", "validate"]).code, 0);
    let wrong = "extensions:\n  settings:\n    one:\n      mode: loud\n      limit: many\n      pin: hush-hush\n      \
        modes: warn\n    ones:\n      mode: warn\n";
    lab.write("home/.ollm/config.yaml", wrong);
    let ran = lab.run(&["config", "validate", "--json"]);
    let problems = ran.answer();
    let seen: Vec<_> = problems.as_array().unwrap().iter().map(|one| (&one["severity"], &one["line"])).collect();
    let (error, warning) = (json!("error"), json!("warning"));
    let lines: Vec<Value> = [4, 5, 6, 7, 9].map(Value::from).to_vec();
    let levels = [&error, &error, &error, &warning, &warning];
    assert_eq!(seen, levels.into_iter().zip(&lines).collect::<Vec<_>>(), "{ran:?}");
    assert_eq!(ran.code, 1);
    assert!(problems[0]["column"] == 13 && problems[0]["file"].as_str().unwrap().ends_with("config.yaml"), "{ran:?}");
    assert!(!ran.stdout.contains("hush-hush"), "{ran:?}");
    assert_eq!(problems[3]["help"], "did you mean `mode`?");
    assert_eq!(problems[4]["help"], "did you mean `one`?");
}

#[test]
fn a_secret_too_short_to_be_hidden_is_told_when_it_is_set() {
    let lab = Lab::new().set("OLLM_KEYRING", "off");
    extension(
        &lab,
        "home",
        "one",
        QUIET,
        &json!({"settings": [{"name": "pin", "description": "d", "sensitive": true}]}),
    );
    let short = lab.run(&["ext", "set", "one", "pin=1234"]);
    assert!(short.code == 0 && short.stderr.contains("shorter than 6 bytes and is not hidden"), "{short:?}");
    let long = lab.run(&["ext", "set", "one", "pin=123456"]);
    assert!(long.code == 0 && !long.stderr.contains("not hidden"), "{long:?}");
}

#[test]
fn a_variable_that_wins_over_what_is_set_is_named_as_the_way_out() {
    let lab = Lab::new().set("ONE_MODE", "loud");
    let mode = json!({"name": "mode", "description": "d", "envVar": "ONE_MODE", "enum": ["warn", "block"]});
    extension(&lab, "home", "one", QUIET, &json!({"settings": [mode]}));
    approve(&lab, "one");
    let ran = lab.run(&["ext", "set", "one", "mode=warn"]);
    assert!(ran.stderr.contains("the variable ONE_MODE is set: unset or correct it"), "{ran:?}");
    assert!(!ran.stderr.contains("sets it"), "{ran:?}");
    let ran = lab.set("ONE_MODE", "block").run(&["ext", "set", "one", "mode=warn"]);
    assert!(ran.stderr.contains("is the variable ONE_MODE, which is set; unset or correct it"), "{ran:?}");
}

#[test]
fn where_all_extensions_are_off_that_is_the_answer() {
    let lab = Lab::new();
    extension(&lab, "home", "one", QUIET, &json!({}));
    lab.write("home/.ollm/config.yaml", "extensions:\n  enabled: false\n");
    let list = lab.run(&["ext", "list"]);
    assert_eq!((list.code, list.stdout.as_str()), (0, ""), "{list:?}");
    assert!(list.stderr.contains("extensions.enabled is false"), "{list:?}");
    let info = lab.run(&["ext", "info", "one"]);
    assert!(info.code == 3 && info.stderr.contains("extensions.enabled is false"), "{info:?}");
}

#[test]
fn a_directory_that_somebody_named_and_that_is_not_there_is_told_of() {
    let lab = Lab::new();
    extension(&lab, "home", "one", QUIET, &json!({}));
    lab.write(
        "home/.ollm/config.yaml",
        "extensions:\n  directories: [~/.ollm/extensions, .ollm/extensions, /nowhere/ext]\n",
    );
    let list = lab.run(&["ext", "list"]);
    assert!(list.code == 0 && list.stdout.contains("one"), "{list:?}");
    assert!(list.stderr.contains("/nowhere/ext") && list.stderr.contains("does not exist"), "{list:?}");
    assert!(!list.stderr.contains("project/.ollm/extensions"), "the usual ones need not be there: {list:?}");
}

#[test]
fn a_folder_without_a_manifest_is_seen_unless_it_is_hidden_or_empty() {
    let lab = Lab::new();
    extension(&lab, "home", "one", QUIET, &json!({}));
    lab.write("home/.ollm/extensions/lost/hooks/run.sh", QUIET);
    lab.write("home/.ollm/extensions/.tools/x", "");
    fs::create_dir_all(lab.home.join(".ollm/extensions/empty/hooks")).unwrap();
    lab.write("project/.ollm/extensions/theirs/README.md", "x");
    let list = lab.run(&["ext", "list", "--json"]).answer();
    let seen: Vec<_> = list.as_array().unwrap().iter().map(|one| (one["name"].clone(), one["scope"].clone())).collect();
    let wanted = [("one", "user"), ("lost", "user"), ("theirs", "workspace")];
    assert_eq!(seen, wanted.map(|(name, scope)| (json!(name), json!(scope))));
    assert!(entry(&lab, "lost")["error"].as_str().unwrap().contains("it has no manifest.json"));
    let table = lab.run(&["ext", "list"]);
    assert!(table.stdout.contains("failed") && table.stderr.contains("it has no manifest.json"), "{table:?}");
    let ran = lab.run(&["ext", "uninstall", "lost", "--yes"]);
    assert!(ran.code == 0 && !lab.home.join(".ollm/extensions/lost").exists(), "{ran:?}");
    // It is no extension, and no other command tells of it.
    assert_eq!(lab.run(&["hook", "list"]).stderr, "");
}
