//! `hooks/trusted` of a project: one approval for all hooks in it, bound to the content of each.

use std::fs;

use serde_json::Value;

use crate::lab::{Lab, hook_file, shell_event};
use crate::terminal::on_a_terminal;

const ONE: &str = "workspace:trusted/one.json:before_tool:one";
const TWO: &str = "workspace:trusted/two.yaml:before_tool:two";

fn lab() -> Lab {
    let lab = Lab::new();
    lab.workspace("trusted/one.sh", "echo one >> ran");
    lab.workspace("trusted/one.json", hook_file("before_tool", "one", r#", "trusted": true"#));
    lab.workspace("trusted/two.sh", "echo two >> ran");
    lab.workspace("trusted/two.yaml", "before_tool:\n  - name: two\n    command: sh\n    args: [two.sh]\n");
    lab.workspace_hook("before_tool", "other", "echo other >> ran", "");
    lab
}

/// The hooks that ran.
fn ran(lab: &Lab) -> Vec<String> {
    lab.event(shell_event("ls"));
    let marks = fs::read_to_string(lab.project.join("ran")).unwrap_or_default();
    let _ = fs::remove_file(lab.project.join("ran"));
    marks.lines().map(str::to_owned).collect()
}

fn shown(lab: &Lab, id: &str) -> Value {
    lab.run(&["hook", "show", id, "--json"]).answer()
}

fn group_digest(lab: &Lab) -> String {
    shown(lab, ONE)["groupDigest"].as_str().unwrap().to_owned()
}

#[test]
fn the_folder_alone_approves_nothing() {
    let lab = lab();
    assert_eq!(ran(&lab), Vec::<String>::new());
    let skip = lab.event(shell_event("ls")).skip("one");
    assert_eq!(skip["reason"], "untrusted");
}

#[test]
fn one_answer_on_a_terminal_approves_all_of_them_and_nothing_else() {
    for name in [ONE, TWO, "trusted"] {
        let lab = lab();
        let screen = on_a_terminal(&lab, "y\\n", &["hook", "trust", name]);
        assert_eq!(screen.code, 0, "{screen:?}");
        for shown in ["echo one >> ran", "echo two >> ran", "these 2 hooks"] {
            assert!(screen.stdout.contains(shown), "{name}: {}", screen.stdout);
        }
        assert!(!screen.stdout.contains("echo other"), "{name}: {}", screen.stdout);
        assert_eq!(ran(&lab), ["one", "two"], "{name}");
    }
    let lab = lab();
    let screen = on_a_terminal(&lab, "n\\n", &["hook", "trust", "trusted"]);
    assert_eq!(screen.code, 4, "{screen:?}");
    assert_eq!(ran(&lab), Vec::<String>::new());
}

#[test]
fn without_a_terminal_the_common_digest_approves_all_of_them() {
    let lab = lab();
    let refused = lab.run(&["hook", "trust", "trusted"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    let digest = group_digest(&lab);
    assert_eq!(shown(&lab, TWO)["groupDigest"], digest.as_str());
    assert_eq!(shown(&lab, TWO)["group"], "trusted");
    let list = lab.run(&["hook", "list", "--json"]).answer();
    let of = |id: &str| list.as_array().unwrap().iter().find(|hook| hook["id"] == id).unwrap()["groupDigest"].clone();
    assert_eq!((of(ONE), of("workspace:other.json:before_tool:other")), (digest.clone().into(), Value::Null));
    let approved = lab.run(&["hook", "trust", TWO, "--digest", &digest]);
    assert_eq!(approved.code, 0, "{approved:?}");
    assert_eq!(ran(&lab), ["one", "two"]);
    let again = lab.run(&["hook", "trust", "trusted", "--digest", &digest]);
    assert_eq!(
        (again.code, again.stderr.as_str()),
        (0, "ollm: all 2 hooks of the group `trusted` are trusted already\n")
    );
    let other = format!("sha256:{}", "0".repeat(64));
    assert_eq!(
        lab.run(&["hook", "trust", "trusted", "--digest", &other]).code,
        4,
        "what is approved is something else"
    );
}

#[test]
fn the_digest_of_one_member_approves_that_one_alone() {
    let lab = lab();
    lab.approve(TWO);
    assert_eq!(ran(&lab), ["two"]);
    let wrong = lab.run(&["hook", "trust", "trusted", "--digest", &lab.digest(TWO)]);
    assert_eq!(wrong.code, 4, "{wrong:?}");
    assert!(wrong.stderr.contains("nothing was approved"), "{}", wrong.stderr);
    assert_eq!(ran(&lab), ["two"]);
}

#[test]
fn a_change_takes_the_approval_of_that_member_back_and_an_addition_is_not_covered() {
    let lab = lab();
    let digest = group_digest(&lab);
    assert_eq!(lab.run(&["hook", "trust", "trusted", "--digest", &digest]).code, 0);
    lab.workspace("trusted/one.sh", "echo changed >> ran");
    lab.workspace(
        "trusted/three.json",
        r#"{"eventType": "before_tool", "name": "three", "command": "sh", "args": ["three.sh"]}"#,
    );
    lab.workspace("trusted/three.sh", "echo three >> ran");
    assert_eq!(ran(&lab), ["two"]);
    let answer = lab.event(shell_event("ls"));
    assert_eq!(
        (&answer.skip("one")["reason"], &answer.skip("three")["reason"]),
        (&"modified".into(), &"untrusted".into())
    );
    let stale = lab.run(&["hook", "trust", "trusted", "--digest", &digest]);
    assert_eq!(stale.code, 4, "{stale:?}");
    assert_eq!(lab.run(&["hook", "trust", "trusted", "--digest", &group_digest(&lab)]).code, 0);
    fs::remove_file(lab.project.join("ran")).unwrap();
    assert_eq!(ran(&lab), ["changed", "three", "two"]);
}

#[test]
fn a_member_that_cannot_run_keeps_the_group_from_being_approved_and_is_named() {
    let lab = lab();
    fs::remove_file(lab.project.join(".ollm/hooks/trusted/two.sh")).unwrap();
    assert_eq!(shown(&lab, ONE)["groupDigest"], Value::Null);
    let refused = lab.run(&["hook", "trust", "trusted", "--digest", "sha256:0"]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.stderr.contains(TWO), "{}", refused.stderr);
}

#[test]
fn the_group_is_withdrawn_by_its_name() {
    let lab = lab();
    assert_eq!(lab.run(&["hook", "trust", "trusted", "--digest", &group_digest(&lab)]).code, 0);
    let withdrawn = lab.run(&["hook", "untrust", "trusted"]);
    assert_eq!(withdrawn.code, 0, "{withdrawn:?}");
    assert_eq!(ran(&lab), Vec::<String>::new());
}

#[test]
fn the_users_own_trusted_folder_needs_nothing() {
    let lab = Lab::new();
    lab.user("trusted/mine.sh", "echo mine >> ran");
    lab.user("trusted/mine.json", hook_file("before_tool", "mine", ""));
    assert_eq!(ran(&lab), ["mine"]);
}
