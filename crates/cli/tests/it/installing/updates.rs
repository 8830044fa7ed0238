//! Updates, pins and the way back.

use super::*;

/// A folder that is installed at 1.0.0 and approved.
fn at_one(lab: &Lab) -> String {
    let folder = package(lab, "src", "1.0.0", &json!({"permissions": {"network": ["one.example"]}}));
    installed(lab, &[folder.to_str().unwrap()]);
    approve(lab);
    assert_eq!(said(lab).as_deref(), Some("1.0.0"));
    folder.to_str().unwrap().to_owned()
}

#[test]
fn d12_an_update_shows_only_what_is_added_removed_or_widened() {
    let lab = Lab::new();
    at_one(&lab);
    assert_eq!(lab.run(&["ext", "update", "guard"]).stdout, "guard 1.0.0 is up to date\n");
    let hooks = json!({
        "before_tool": [{"name": "guard", "command": "sh", "args": ["hooks/run.sh"]}],
        "after_tool": [{"name": "watch", "command": "sh", "args": ["hooks/run.sh"]}],
    });
    let permissions = json!({"network": ["one.example", "two.example"]});
    package(&lab, "src", "1.1.0", &json!({"hooks": hooks, "permissions": permissions}));
    let ran = lab.run(&["ext", "update", "--yes"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    insta::assert_snapshot!(lab.screen(&ran));
    // What was approved is not what is there.
    assert_eq!((entry(&lab)["trust"].as_str(), said(&lab)), (Some("modified"), None));
    approve(&lab);
    assert_eq!(said(&lab).as_deref(), Some("1.1.0"));
}

#[test]
fn d12_permissions_that_are_given_up_or_switched_on_are_widened() {
    let lab = Lab::new();
    let folder = package(&lab, "src", "1.0.0", &json!({"permissions": {"network": ["one.example"], "mcp": false}}));
    installed(&lab, &[folder.to_str().unwrap()]);
    for (version, manifest, widened) in [
        ("1.1.0", json!({"permissions": {"network": ["one.example"]}}), "widened     permission mcp\n"),
        (
            "1.2.0",
            json!({}),
            "widened     permissions: it names none any more, so what it declares is held to nothing\n",
        ),
    ] {
        package(&lab, "src", version, &manifest);
        let ran = lab.run(&["ext", "update", "--yes"]);
        assert!(ran.code == 0 && ran.stderr.contains(widened), "{ran:?}");
    }
    package(&lab, "src", "1.3.0", &json!({"permissions": {"mcp": false}}));
    let ran = lab.run(&["ext", "update", "--yes"]);
    assert!(ran.code == 0 && !ran.stderr.contains("widened"), "{ran:?}");
}

#[test]
fn d12_bounds_that_an_update_takes_from_a_hook_and_other_values_of_its_settings_are_shown() {
    let lab = Lab::new();
    let hook = |more: Value| {
        let mut hook = json!({"name": "guard", "command": "sh", "args": ["hooks/run.sh"]});
        hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "before_tool": [hook] })
    };
    let level = |default: &str, choices: Value| json!([{"name": "level", "description": "How strict", "default": default, "enum": choices}]);
    let strict =
        json!({"dialect": "gate", "priority": "critical", "limits": {"time": "5s", "memory": "64MiB", "processes": 4}});
    let before = json!({"hooks": hook(strict), "settings": level("safe", json!(["safe", "off"]))});
    let folder = package(&lab, "src", "1.0.0", &before);
    let shown = installed(&lab, &[folder.to_str().unwrap()]).stderr;
    for row in [
        "dialect     guard: gate\n",
        "priority    guard: critical\n",
        "limits      guard: time 5s, memory 64 MiB, processes 4\n",
        "setting     level (default \"safe\", one of \"safe\" \"off\"): How strict\n",
    ] {
        assert!(shown.contains(row), "{row}: {shown}");
    }
    let after = json!({"hooks": hook(json!({"parallel": true})), "settings": level("off", json!(["safe", "off"]))});
    package(&lab, "src", "1.1.0", &after);
    let shown = lab.run(&["ext", "update", "guard", "--dry-run"]).stderr;
    for row in [
        "removed     dialect guard: gate\n",
        "removed     priority guard: critical\n",
        "removed     limits guard: time 5s, memory 64 MiB, processes 4\n",
        "added       parallel guard: true\n",
        "added       setting level (default \"off\", one of \"safe\" \"off\"): How strict\n",
    ] {
        assert!(shown.contains(row), "{row}: {shown}");
    }
}

#[test]
fn d12_a_lower_version_is_refused_unless_it_is_named() {
    let lab = Lab::new();
    let source = at_one(&lab);
    package(&lab, "src", "0.9.0", &json!({}));
    refused(&lab, &["ext", "update", "guard", "--yes"], 64, "ollm ext update guard --to 0.9.0");
    refused(&lab, &["ext", "install", &source, "--yes"], 64, "0.9.0 is lower");
    refused(&lab, &["ext", "update", "guard", "--to", "0.8.0", "--yes"], 3, "0.8.0 is wanted");
    assert_eq!(said(&lab).as_deref(), Some("1.0.0"));
    let ran = lab.run(&["ext", "update", "guard", "--to", "0.9.0", "--yes"]);
    assert_eq!((ran.code, version(&lab).as_str()), (0, "0.9.0"), "{ran:?}");
}

#[test]
fn what_was_changed_by_hand_is_told_and_put_right() {
    let lab = Lab::new();
    let source = at_one(&lab);
    lab.write("home/.ollm/extensions/guard/hooks/run.sh", "changed");
    lab.write("home/.ollm/extensions/guard/more", "x");
    let ran = installed(&lab, &[&source]);
    assert!(ran.stderr.contains("files       hooks/run.sh changed, more removed"), "{ran:?}");
    assert_eq!(said(&lab).as_deref(), Some("1.0.0"));
}

#[test]
fn the_version_before_comes_back_and_goes_again() {
    let lab = Lab::new();
    at_one(&lab);
    refused(&lab, &["ext", "update", "guard", "--rollback", "--yes"], 64, "no version of `guard` from before");
    for version in ["1.1.0", "1.2.0"] {
        package(&lab, "src", version, &json!({}));
        assert_eq!(lab.run(&["ext", "update", "guard", "--yes"]).code, 0);
    }
    refused(&lab, &["ext", "update", "guard", "--rollback"], 64, "no terminal");
    for expected in ["1.1.0", "1.2.0"] {
        let ran = lab.run(&["ext", "update", "guard", "--rollback", "--yes"]);
        assert_eq!((ran.code, version(&lab).as_str()), (0, expected), "{ran:?}");
    }
}

#[test]
fn a_pin_holds_a_version_until_it_is_taken_away() {
    let lab = Lab::new();
    at_one(&lab);
    assert_eq!(lab.run(&["ext", "pin", "guard"]).stdout, "guard is pinned to 1.0.0\n");
    package(&lab, "src", "2.0.0", &json!({}));
    let ran = lab.run(&["ext", "update", "--yes"]);
    assert_eq!((ran.stdout.as_str(), version(&lab).as_str()), ("guard is pinned to 1.0.0\n", "1.0.0"), "{ran:?}");
    refused(&lab, &["ext", "pin", "guard", "latest"], 64, "neither a version");
    refused(&lab, &["ext", "pin", "nobody"], 64, "was not installed");
    assert_eq!(lab.run(&["ext", "pin", "guard", "--remove", "--yes"]).code, 0);
    assert_eq!(lab.run(&["ext", "update", "--yes"]).code, 0);
    assert_eq!(version(&lab), "2.0.0");
}

#[test]
fn a_pin_to_another_version_leads_there_and_a_pin_to_a_digest_to_nothing_else() {
    let lab = Lab::new();
    package(&lab, "src", "1.0.0", &json!({}));
    let archive = packed(&lab, "src", "guard.tar.gz");
    installed(&lab, &[archive.to_str().unwrap()]);
    assert_eq!(lab.run(&["ext", "pin", "guard", "1.5.0"]).code, 0);
    package(&lab, "src", "2.0.0", &json!({}));
    packed(&lab, "src", "guard.tar.gz");
    refused(&lab, &["ext", "update", "guard", "--yes"], 3, "1.5.0 is wanted");
    package(&lab, "src", "1.5.0", &json!({}));
    packed(&lab, "src", "guard.tar.gz");
    assert_eq!(lab.run(&["ext", "update", "guard", "--yes"]).code, 0);
    assert_eq!(version(&lab), "1.5.0");
    let other = format!("sha256:{}", "0".repeat(64));
    assert_eq!(lab.run(&["ext", "pin", "guard", &other]).code, 0);
    refused(&lab, &["ext", "update", "guard", "--yes"], 3, &other);
}

#[test]
fn a_pin_that_the_source_cannot_have_is_refused() {
    let lab = Lab::new();
    at_one(&lab);
    refused(&lab, &["ext", "pin", "guard", &"0".repeat(40)], 64, "has no commits");
    refused(&lab, &["ext", "pin", "guard", &format!("sha256:{}", "0".repeat(64))], 64, "has no archive");
}

#[test]
fn what_is_pinned_is_not_installed_over_unless_the_version_is_named() {
    let lab = Lab::new();
    let source = at_one(&lab);
    assert_eq!(lab.run(&["ext", "pin", "guard"]).code, 0);
    package(&lab, "src", "2.0.0", &json!({}));
    refused(&lab, &["ext", "install", &source, "--yes"], 3, "is pinned to 1.0.0, and this is 2.0.0");
    installed(&lab, &[&source, "--to", "2.0.0"]);
}

#[test]
fn the_version_that_is_wanted_counts_also_where_nothing_changed() {
    let lab = Lab::new();
    let source = at_one(&lab);
    refused(&lab, &["ext", "update", "guard", "--to", "9.9.9", "--yes"], 3, "9.9.9 is wanted");
    refused(&lab, &["ext", "install", &source, "--to", "9.9.9", "--yes"], 3, "9.9.9 is wanted");
}

#[test]
fn a_hook_is_shown_with_everything_that_is_not_as_usual_before_it_is_approved() {
    let lab = Lab::new();
    let source = at_one(&lab);
    let hook = json!({"name": "guard", "command": "sh", "args": ["hooks/run.sh"], "timeout": "7s", "onFailure": "block",
        "env": {"GIT_SSH_COMMAND": "x"}, "cwd": "/etc"});
    package(&lab, "src", "1.1.0", &json!({"hooks": {"before_tool": [hook]}}));
    let ran = lab.run(&["ext", "update", "guard", "--yes"]);
    for word in [
        "added       variable guard: GIT_SSH_COMMAND=x",
        "folder guard: /etc",
        "timeout guard: 7s",
        "on failure guard: block",
    ] {
        assert!(ran.stderr.contains(word), "without {word}: {ran:?}");
    }
    assert_eq!(lab.run(&["ext", "uninstall", "guard", "--yes"]).code, 0);
    let ran = installed(&lab, &[&source]);
    assert!(ran.stderr.contains("variable    guard: GIT_SSH_COMMAND=x"), "{ran:?}");
    let ran = lab.run(&["ext", "trust", "guard"]);
    assert!(ran.stderr.contains("variable    guard: GIT_SSH_COMMAND=x"), "{ran:?}");
}

#[test]
fn a_record_of_a_newer_program_is_named_and_what_it_stands_for_is_left_alone() {
    let lab = Lab::new();
    let source = at_one(&lab);
    lab.write("home/.ollm/extensions/guard/.ollm-install.json", r#"{"version": 2}"#);
    refused(&lab, &["ext", "update", "guard", "--yes"], 5, "has version 2");
    refused(&lab, &["ext", "install", &source, "--yes"], 5, "update the program");
}

#[test]
fn nothing_is_removed_while_another_process_installs() {
    let lab = Lab::new();
    at_one(&lab);
    let lock = fs::File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(lab.home.join(".ollm/state/install.lock"))
        .unwrap();
    lock.lock().unwrap();
    refused(&lab, &["ext", "uninstall", "guard", "--yes"], 5, "another process");
    drop(lock);
    assert_eq!(lab.run(&["ext", "uninstall", "guard", "--yes"]).code, 0);
}

#[test]
fn one_that_cannot_be_updated_keeps_no_other_from_it() {
    let lab = Lab::new();
    at_one(&lab);
    installed(&lab, &["git-guard"]);
    fs::remove_dir_all(lab.root.join("src")).unwrap();
    let ran = lab.run(&["ext", "update", "--yes", "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let told = ran.answer()["changed"].clone();
    assert!(told[1]["error"]["code"].is_string() && told[0]["error"].is_null(), "{told:#}");
}
