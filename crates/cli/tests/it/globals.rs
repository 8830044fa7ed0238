//! Options that every command has, wherever they stand; and `--json` of what changes something.

use std::fs;

use serde_json::{Value, json};

use crate::documents::root;
use crate::lab::Lab;

#[test]
fn a_setting_for_one_run_stands_before_or_after_the_command() {
    let lab = Lab::new();
    for arguments in [
        &["--set", "hooks.timeout=1234", "config", "get", "hooks.timeout"][..],
        &["config", "--set", "hooks.timeout=1234", "get", "hooks.timeout"],
        &["config", "get", "hooks.timeout", "--set", "hooks.timeout=1234"],
        &["config", "get", "--set=hooks.timeout=1234", "hooks.timeout"],
    ] {
        let ran = lab.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "1234\n"), "{arguments:?}: {ran:?}");
    }
    let wrong = lab.run(&["config", "get", "hooks.timeout", "--set", "hooks.timeout"]);
    assert!(wrong.code == 64 && wrong.stderr.contains("`--set` needs KEY=VALUE"), "{wrong:?}");
}

#[test]
fn behind_two_dashes_options_belong_to_another_program() {
    let lab = Lab::new();
    let ran = lab.run(&["box", "--", "echo", "--set", "hooks.timeout=1", "--json"]);
    assert_eq!(ran.stdout, "--set hooks.timeout=1 --json\n", "{ran:?}");
}

#[test]
fn a_skill_keeps_its_own_set_and_takes_a_setting_in_front() {
    let lab = Lab::new();
    let help = lab.run(&["skill", "run", "--help"]).stdout;
    let words: Vec<&str> = help.split_whitespace().collect();
    assert!(words.join(" ").contains("`ollm --set KEY=VALUE skill run …`"), "{help}");
    let ran = lab.run(&["--set", "extensions.enabled=false", "skill", "run", "x", "--set", "no-setting=1"]);
    assert!(ran.code == 64 && ran.stderr.contains("there is no skill `x`"), "{ran:?}");
}

#[test]
fn json_may_stand_in_front() {
    let lab = Lab::new();
    assert_eq!(lab.run(&["--json", "mcp", "list"]).answer(), json!([]));
    assert_eq!(lab.run(&["mcp", "--json", "list"]).answer(), json!([]));
    assert_eq!(lab.run(&["--json", "hook", "list"]).stdout, lab.run(&["hook", "list", "--json"]).stdout);
}

/// Commands without `--json`: they change nothing of ours, hand everything on to another program, or are a conversation.
#[rustfmt::skip]
const WORDS_ONLY: &[&str] = &[
    "box", "chat", "completions", "ext dev", "git-hook run", "help", "hook run", "mcp login", "schema",
    "session resume", "trace export", "tui",
];

#[test]
fn every_command_that_changes_something_prints_json() {
    let reference = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let sections: Vec<(&str, &str)> =
        reference.split("\n## `ollm ").skip(1).filter_map(|section| section.split_once('`')).collect();
    let is_leaf = |name: &str| !sections.iter().any(|(other, _)| other.starts_with(&format!("{name} ")));
    let silent: Vec<&str> = sections
        .iter()
        .filter(|(name, text)| is_leaf(name) && !text.contains("--json") && !WORDS_ONLY.contains(name))
        .map(|(name, _)| *name)
        .collect();
    assert!(silent.is_empty(), "without --json: {silent:?}");
}

/// What a command prints with `--json`, and its exit code.
fn told(lab: &Lab, arguments: &[&str]) -> (i32, Value) {
    let ran = lab.run(&[arguments, &["--json"]].concat());
    (ran.code, ran.answer())
}

#[test]
fn what_a_command_tells_becomes_one_object() {
    let lab = Lab::new();
    let (code, set) = told(&lab, &["config", "set", "hooks.timeout", "1234"]);
    assert_eq!((code, &set["exit"], &set["error"]), (0, &json!(0), &Value::Null), "{set}");
    assert!(set["messages"].to_string().contains("hooks.timeout"), "{set}");
    let file = lab.home.join(".ollm/config.yaml");
    let changed = &set["changed"][0];
    assert_eq!((&changed["setting"], &changed["file"]), (&json!("hooks.timeout"), &json!(file)), "{set}");
    assert_eq!(told(&lab, &["config", "unset", "trace.format"]).1["changed"], json!([]), "nothing was there");
    let (code, new) = told(&lab, &["hook", "new", "guard", "--deny-files", "*.env"]);
    assert!(code == 0 && new["output"].as_str().unwrap().contains("guard"), "{new}");
    let id = "user:guard.json:before_tool:guard";
    let off = told(&lab, &["hook", "disable", "guard"]).1;
    assert_eq!(off["changed"], json!([{"hook": id, "enabled": false}]), "{off}");
    let (code, gone) = told(&lab, &["hook", "remove", "guard", "--yes"]);
    assert!(code == 0 && gone["error"].is_null() && gone["changed"][0]["hook"] == id, "{gone}");
}

#[test]
fn the_files_of_others_that_were_changed_are_named() {
    let lab = Lab::new();
    let settings = lab.home.join(".claude/settings.json");
    let entry = json!([{"agent": "claude", "file": settings}]);
    assert_eq!(told(&lab, &["connect", "claude"]).1["changed"], entry);
    assert_eq!(told(&lab, &["connect", "claude"]).1["changed"], json!([]), "it is there already");
    let gone = json!([{"agent": "claude", "removedFrom": settings}]);
    assert_eq!(told(&lab, &["disconnect", "claude"]).1["changed"], gone);
    lab.write(
        "home/.claude/settings.json",
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#,
    );
    let taken = told(&lab, &["import", "claude"]).1;
    assert_eq!(
        (&taken["changed"][0]["agent"], &taken["changed"][0]["hooks"]),
        (&json!("claude"), &json!(1)),
        "{taken}"
    );
    assert!(fs::exists(taken["changed"][0]["file"].as_str().unwrap()).unwrap(), "{taken}");
    assert!(lab.program("git").args(["init", "-q"]).status().unwrap().success());
    let hook = lab.project.join(".git/hooks/commit-msg");
    assert_eq!(told(&lab, &["git-hook", "install"]).1["changed"], json!([{"file": hook}]));
    assert_eq!(told(&lab, &["git-hook", "uninstall"]).1["changed"], json!([{"removedFrom": hook}]));
}

#[test]
fn what_was_approved_is_named_with_its_digest() {
    let lab = Lab::new();
    lab.workspace_hook("before_tool", "guest", "echo '{\"continue\": true}'", "");
    let shown = lab.run(&["hook", "show", "guest", "--json"]).answer()["digest"].as_str().unwrap().to_owned();
    let (code, hook) = told(&lab, &["hook", "trust", "guest", "--digest", &shown]);
    assert_eq!((code, &hook["changed"][0]["approved"]), (0, &json!(shown)), "{hook}");
    let (code, wrong) = told(&lab, &["hook", "trust", "guest", "--digest", "sha256:0"]);
    assert_eq!((code, &wrong["error"]["code"]), (4, &json!("T004")), "{wrong}");
    assert_eq!(lab.run(&["ext", "new", "rules"]).code, 0);
    let shown = lab.run(&["ext", "list", "--json"]).answer()[0]["digest"].as_str().unwrap().to_owned();
    let (code, extension) = told(&lab, &["ext", "trust", "rules", "--digest", &shown]);
    assert_eq!((code, &extension["changed"]), (0, &json!([{"extension": "rules", "approved": shown}])), "{extension}");
}

#[test]
fn with_json_a_failure_is_one_document_whatever_command_fails() {
    let lab = Lab::new();
    for (arguments, code, id) in [
        (&["hook", "show", "nothing"][..], 64, "U002"),
        (&["hook", "plan", "no_event"], 3, "C006"),
        (&["ext", "info", "nothing"], 64, "U004"),
        (&["session", "show", "nothing"], 64, "U007"),
        (&["trace", "show", "nothing"], 64, "U008"),
        (&["mcp", "call", "nothing", "x"], 64, "U003"),
    ] {
        let ran = lab.run(&[arguments, &["--json"]].concat());
        let answer = ran.answer();
        assert_eq!((ran.code, &answer["exit"]), (code, &json!(code)), "{arguments:?} {ran:?}");
        assert_eq!(answer["error"]["code"], id, "{arguments:?} {ran:?}");
        assert!(answer["error"]["hints"].is_array(), "{arguments:?} {ran:?}");
    }
}

#[test]
fn with_json_a_wrong_option_is_told_as_json_by_every_command() {
    let lab = Lab::new();
    for command in crate::agents_refused::commands() {
        // This one answers the agent that asks, in its own form.
        if command == "hook run" {
            continue;
        }
        let words: Vec<&str> = command.split(' ').chain(["--json", "--no-such-option"]).collect();
        let ran = lab.run(&words);
        assert_eq!((ran.code, &ran.answer()["error"]["code"]), (64, &json!("U001")), "{command}: {ran:?}");
    }
}

#[test]
fn where_to_look_for_help_is_said_only_where_nothing_better_is_known() {
    let lab = Lab::new();
    let general = "`ollm --help` shows what there is";
    let better = lab.run(&["config", "set", "hooks.timeout"]);
    assert!(!better.stderr.contains(general), "{better:?}");
    assert!(better.stderr.contains("hint: write `ollm config set hooks.timeout VALUE`"), "{better:?}");
    let none = lab.run(&["config", "get", "hooks.timeout", "--set", "hooks.timeout"]);
    assert!(none.stderr.contains(general), "{none:?}");
}

#[test]
fn a_failure_is_told_with_its_code_on_both_streams() {
    let lab = Lab::new();
    let ran = lab.run(&["hook", "remove", "nothing", "--yes", "--json"]);
    let answer = ran.answer();
    assert_eq!((ran.code, &answer["exit"], &answer["error"]["code"]), (64, &json!(64), &json!("U002")), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("there is no hook `nothing`"), "{answer}");
    assert!(ran.stderr.starts_with("error[U002]: "), "{ran:?}");
}
