//! The scenarios of an extension's life, and what goes wrong in them.

use serde_json::{Value, json};

use super::{QUIET, approve, entry, extension, ok};
use crate::lab::{Lab, shell_event};

#[test]
fn scenario_1_an_extension_is_loaded_and_its_hook_decides() {
    let lab = Lab::with_default_boxes();
    extension(&lab, "home", "guard", r#"printf '{"continue": false, "systemMessage": "no"}'"#, &json!({}));
    assert_eq!(lab.event(shell_event("ls")).skip("guard")["reason"], "untrusted");
    approve(&lab, "guard");
    let ran = lab.event(shell_event("ls"));
    assert_eq!((ran.code, &ran.answer()["reason"]), (2, &json!("no")));
    let hook = ran.hook("guard");
    assert_eq!((&hook["extension"], &hook["source"]), (&json!("guard"), &json!("extension")));
    assert_eq!(hook["id"], "user:guard:before_tool:guard");
}

#[test]
fn what_was_approved_goes_on_when_its_manifest_breaks_until_it_is_switched_off() {
    let lab = Lab::with_default_boxes();
    extension(&lab, "home", "guard", r#"printf '{"continue": false, "systemMessage": "no"}'"#, &json!({}));
    extension(&lab, "home", "other", QUIET, &json!({}));
    approve(&lab, "guard");
    let manifest = "home/.ollm/extensions/guard/manifest.json";
    lab.write(manifest, "{");
    lab.write("home/.ollm/extensions/other/manifest.json", "{");
    let ran = lab.event(shell_event("ls"));
    assert_eq!((ran.code, &ran.answer()["reason"]), (2, &json!("no")), "{ran:?}");
    assert!(ran.stderr.contains("what was approved of `guard` goes on"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("what was approved of `other`"), "nobody approved it: {}", ran.stderr);
    assert!(entry(&lab, "guard")["error"].is_string(), "it is shown as it is");
    for command in [&["ext", "list"][..], &["ext", "list", "--json"], &["ext", "info", "guard"]] {
        let told = lab.run(command).stderr;
        assert!(told.contains("what was approved of `guard` goes on"), "{command:?}: {told}");
        assert!(!told.contains("`other` goes on"), "{command:?}: {told}");
    }
    let hooks = lab.run(&["hook", "list", "--json"]);
    let listed = hooks.answer().as_array().unwrap().iter().any(|hook| hook["id"] == "user:guard:before_tool:guard");
    assert!(listed && hooks.stderr.contains("goes on"), "what runs is listed: {hooks:?}");
    ok(&lab.run(&["ext", "disable", "guard"]));
    assert_eq!(lab.event(shell_event("ls")).code, 0);
    assert!(!lab.run(&["ext", "list"]).stderr.contains("goes on"), "it does not any more");
}

#[test]
fn scenario_3_an_approval_lasts_until_anything_in_the_folder_changes() {
    let lab = Lab::with_default_boxes();
    extension(&lab, "project", "guard", QUIET, &json!({}));
    lab.write("project/.ollm/extensions/guard/data/rules.txt", "one");
    approve(&lab, "guard");
    for _ in 0..2 {
        assert_eq!(lab.event(shell_event("ls")).hook("guard")["status"], "ok");
    }
    assert_eq!(entry(&lab, "guard")["trust"], "trusted");
    lab.write("project/.ollm/extensions/guard/data/rules.txt", "two");
    assert_eq!(lab.event(shell_event("ls")).skip("guard")["reason"], "modified");
    assert_eq!(entry(&lab, "guard")["trust"], "modified");
    let approvals = lab.run(&["hook", "trust", "--list", "--json"]).answer();
    assert!(approvals.as_array().unwrap().iter().all(|one| one["state"] == "modified"), "{approvals}");
    lab.write("project/.ollm/extensions/guard/data/rules.txt", "one");
    assert_eq!(lab.event(shell_event("ls")).hook("guard")["status"], "ok");
}

#[test]
fn scenario_4_what_is_switched_off_is_gone_and_comes_back() {
    let lab = Lab::with_default_boxes();
    extension(&lab, "home", "guard", QUIET, &json!({"skills": [{"name": "s", "description": "d", "prompt": "p"}]}));
    approve(&lab, "guard");
    ok(&lab.run(&["ext", "disable", "guard"]));
    let ran = lab.event(shell_event("ls"));
    assert_eq!((ran.hook_count(), ran.answer()["skipped"].as_array().unwrap().len()), (0, 0));
    assert_eq!(entry(&lab, "guard")["enabled"], false);
    assert_eq!(lab.run(&["skill", "list", "--json"]).answer(), json!([]));
    assert_eq!(lab.planned("before_tool"), Vec::<Value>::new());
    ok(&lab.run(&["ext", "enable", "guard"]));
    assert_eq!(lab.event(shell_event("ls")).hook("guard")["status"], "ok");
    assert_eq!(entry(&lab, "guard")["enabled"], true);
    assert_eq!(lab.run(&["skill", "list", "--json"]).answer()[0]["id"], "guard.s");
}

#[test]
fn scenario_5_the_users_extensions_run_before_the_projects() {
    let lab = Lab::with_default_boxes();
    extension(&lab, "project", "aa", QUIET, &json!({}));
    extension(&lab, "home", "zz", QUIET, &json!({}));
    extension(&lab, "home", "bb", QUIET, &json!({"dependencies": {"zz": "^1"}}));
    lab.workspace_hook("before_tool", "file", QUIET, "");
    lab.approve("workspace:file.json:before_tool:file");
    for name in ["aa", "zz", "bb"] {
        approve(&lab, name);
    }
    let ran = lab.event(shell_event("ls")).answer();
    let order: Vec<&str> = ran["hooks"].as_array().unwrap().iter().map(|hook| hook["name"].as_str().unwrap()).collect();
    assert_eq!(order, ["zz", "bb", "file", "aa"]);
}

#[test]
fn error_1_an_invalid_manifest_is_skipped_and_seen() {
    let lab = Lab::with_default_boxes();
    extension(&lab, "home", "good", QUIET, &json!({}));
    approve(&lab, "good");
    lab.write("home/.ollm/extensions/bad/manifest.json", "{\"name\": \"bad\",\n \"version\": 1}");
    let ran = lab.event(shell_event("ls"));
    assert_eq!(ran.hook("good")["status"], "ok");
    assert!(ran.stderr.contains("bad/manifest.json"), "{}", ran.stderr);
    let bad = entry(&lab, "bad");
    assert_eq!((&bad["enabled"], &bad["version"]), (&json!(false), &Value::Null));
    assert!(bad["error"].as_str().unwrap().contains("manifest.json:"), "{bad}");
    let screen = lab.run(&["ext", "list"]);
    assert!(screen.stderr.contains('^') && screen.stdout.contains("failed"), "{screen:?}");
}

#[test]
fn error_2_a_hook_that_hangs_does_not_keep_the_next_extension_from_running() {
    let lab = Lab::with_default_boxes();
    extension(&lab, "home", "after", QUIET, &json!({}));
    let slow = json!({"before_tool": [{"name": "aslow", "command": "sh", "args": ["hooks/run.sh"], "timeout": 200}]});
    extension(&lab, "home", "aslow", "sleep 1000", &json!({"hooks": slow}));
    for name in ["after", "aslow"] {
        approve(&lab, name);
    }
    let ran = lab.event(shell_event("ls"));
    assert_eq!((&ran.hook("aslow")["status"], &ran.hook("after")["status"]), (&json!("timeout"), &json!("ok")));
    assert!(ran.stderr.contains("aslow"), "{}", ran.stderr);
    lab.assert_nobody_is_left();
}

#[test]
fn error_4_without_a_required_setting_the_extension_is_off_and_the_command_is_named() {
    let lab = Lab::with_default_boxes();
    let settings = json!({"settings": [{"name": "apiKey", "description": "A key", "required": true}]});
    extension(&lab, "home", "needy", "printf '{\"systemMessage\": \"%s\"}' \"$EXTENSION_NEEDY_API_KEY\"", &settings);
    approve(&lab, "needy");
    assert_eq!(lab.event(shell_event("ls")).hook_count(), 0);
    let error = entry(&lab, "needy")["error"].as_str().unwrap().to_owned();
    assert!(error.contains("`ollm ext set needy apiKey=VALUE`"), "{error}");
    ok(&lab.run(&["ext", "set", "needy", "apiKey=k1"]));
    assert_eq!(lab.event(shell_event("ls")).answer()["systemMessage"], "k1");
    ok(&lab.run(&["ext", "set", "needy", "--unset", "apiKey"]));
    assert_eq!(entry(&lab, "needy")["enabled"], false);
}

#[test]
fn d13_a_cycle_is_shown_with_its_path_and_the_rest_runs() {
    let lab = Lab::with_default_boxes();
    extension(&lab, "home", "one", QUIET, &json!({"dependencies": {"two": "*"}}));
    extension(&lab, "home", "two", QUIET, &json!({"dependencies": {"one": "*"}}));
    extension(&lab, "home", "fine", QUIET, &json!({}));
    approve(&lab, "fine");
    let ran = lab.event(shell_event("ls"));
    assert_eq!((ran.hook_count(), &ran.hook("fine")["status"]), (1, &json!("ok")));
    assert!(entry(&lab, "one")["error"].as_str().unwrap().contains("one → two → one"));
    assert!(ran.stderr.contains("two → one → two"), "{}", ran.stderr);
}
