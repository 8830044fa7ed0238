//! Every key of the panel of hooks, and what it leaves on the disk.

use std::fs;

use serde_json::{Value, json};

use super::common::KeyCase;
use super::{choose, leave};
use crate::lab::pty::{LARGE, Pty};
use crate::lab::{Lab, eventually, shell_event};

pub(super) const KEYS: &[KeyCase] = &[
    ("Enter", enter_switches_a_hook_off_and_on_again),
    ("Space", enter_switches_a_hook_off_and_on_again),
    ("Left", enter_switches_a_hook_off_and_on_again),
    ("Right", enter_switches_a_hook_off_and_on_again),
    ("a", a_declares_a_script_as_a_hook),
    ("e", e_changes_the_keys_of_a_hook_where_it_is_declared),
    ("d", d_deletes_after_a_yes_and_only_then),
    ("t", t_really_runs_the_hook),
    ("r", r_shows_the_script_and_approves_exactly_it_and_w_withdraws),
    ("w", r_shows_the_script_and_approves_exactly_it_and_w_withdraws),
    ("o", o_hands_the_terminal_to_the_editor_and_takes_it_back),
];

/// A hook of the user and one of the project, with the cursor on the first.
pub(super) fn panel(lab: &Lab) -> Pty {
    let mut panel = lab.pty(LARGE, &["tui", "--panel", "hooks"]);
    panel.sees("● own");
    panel
}

pub(super) fn lab() -> Lab {
    let lab = Lab::new();
    lab.user_hook("before_tool", "own", "touch \"$OLLM_PROJECT_DIR/own-ran\"\n", "");
    lab.workspace_hook("before_tool", "guest", "touch \"$OLLM_PROJECT_DIR/guest-ran\"\n", "");
    lab
}

pub(super) fn entry(lab: &Lab, name: &str) -> Value {
    let hooks = lab.run(&["hook", "list", "--json"]).answer();
    hooks.as_array().unwrap().iter().find(|hook| hook["name"] == name).cloned().unwrap_or_default()
}

#[test]
fn enter_switches_a_hook_off_and_on_again() {
    let lab = lab();
    let mut panel = panel(&lab);
    choose(&mut panel, "own");
    panel.types("\r").sees("○ own");
    assert_eq!(entry(&lab, "own")["enabled"], false);
    for (key, is_on) in [("\x1b[C", true), ("\x1b[D", false), (" ", true)] {
        panel.types(key).sees(if is_on { "● own" } else { "○ own" });
        assert_eq!(entry(&lab, "own")["enabled"], is_on, "{key:?}");
    }
    leave(panel);
}

#[test]
fn r_shows_the_script_and_approves_exactly_it_and_w_withdraws() {
    let lab = lab();
    let mut panel = panel(&lab);
    choose(&mut panel, "guest");
    panel.sees("guest !");
    panel.types("r");
    let shown = panel.sees("[a]lways");
    assert!(shown.contains("Question"), "{shown}");
    assert!(shown.contains("guest-ran"), "{shown}");
    panel.types("a\r").sees("is approved");
    panel.sees_no_more("guest !");
    assert_eq!(entry(&lab, "guest")["trust"], "trusted");
    lab.event(shell_event("ls"));
    assert!(lab.project.join("guest-ran").exists());
    panel.types("w").sees("no longer approved");
    panel.sees("guest !");
    assert_eq!(entry(&lab, "guest")["trust"], "untrusted");
    leave(panel);
}

#[test]
fn what_was_typed_before_the_question_is_shown_approves_nothing() {
    let lab = lab();
    let mut panel = panel(&lab);
    choose(&mut panel, "guest");
    panel.types("ra\ra\ralways\r").sees("[a]lways");
    assert_eq!(entry(&lab, "guest")["trust"], "untrusted");
    panel.types("y\r").sees("is not among the answers");
    panel.types("\x1b").sees("was not approved");
    assert_eq!(entry(&lab, "guest")["trust"], "untrusted");
    leave(panel);
}

#[test]
fn a_declares_a_script_as_a_hook() {
    let lab = lab();
    lab.user("extra.sh", "exit 0\n");
    let mut panel = panel(&lab);
    panel.types("a").sees("Add a hook");
    panel.types("\textra.sh\t\tshell\r").sees("extra was added to");
    panel.sees("● extra");
    let extra = entry(&lab, "extra");
    assert_eq!((&extra["events"], &extra["matcher"]), (&serde_json::json!(["before_tool"]), &"shell".into()));
    assert!(extra["command"].as_str().unwrap().contains("extra.sh") && extra["timeoutMs"].is_number(), "{extra}");
    let file = fs::read_to_string(lab.home.join(".ollm/hooks/extra.json")).unwrap();
    assert!(file.contains("\"matcher\": \"shell\""), "{file}");
    panel.types("a").sees("Add a hook");
    panel.types("\tnowhere.sh\r").sees("there is no file nowhere.sh");
    let shown = panel.sees("Add a hook");
    assert!(shown.contains("▸ script      nowhere.sh"), "what was filled in can be mended: {shown}");
    panel.types("\x7f\x7f\x7f").types("\x1b").sees_no_more("Add a hook");
    leave(panel);
}

#[test]
fn a_condition_that_is_no_text_in_json_is_text_all_the_same() {
    let lab = lab();
    let mut panel = panel(&lab);
    choose(&mut panel, "own");
    panel.types("e").sees("Edit own");
    panel.types("\t\t\t\ttrue\t12\r").sees("changed");
    let file = fs::read_to_string(lab.home.join(".ollm/hooks/own.json")).unwrap();
    assert!(file.contains("\"if\": \"true\"") && file.contains("\"description\": \"12\""), "{file}");
    leave(panel);
}

#[test]
fn hooks_that_others_write_appear_by_themselves() {
    let lab = lab();
    let mut panel = panel(&lab);
    lab.user_hook("before_tool", "fresh", "exit 0\n", "");
    panel.sees("● fresh");
    fs::remove_file(lab.home.join(".ollm/hooks/fresh.json")).unwrap();
    panel.sees_no_more("● fresh");
    leave(panel);
}

#[test]
fn escape_and_another_hook_close_a_result() {
    let lab = lab();
    lab.user_hook("before_tool", "own", "echo '{\"continue\": false, \"systemMessage\": \"not today\"}'\n", "");
    let mut panel = panel(&lab);
    for away in ["\x1b", "\x1b[A"] {
        choose(&mut panel, "own");
        panel.types("t").sees("not today");
        panel.sees("Esc closes");
        panel.types(away).sees_no_more("not today");
        panel.sees("Exit");
    }
    leave(panel);
}

#[test]
pub(super) fn control_c_interrupts_a_test() {
    let lab = lab();
    lab.user_hook("before_tool", "own", "touch \"$OLLM_PROJECT_DIR/began\"; sleep 1000\n", ", \"timeout\": \"900s\"");
    let mut panel = panel(&lab);
    choose(&mut panel, "own");
    panel.types("t").sees("testing ");
    eventually("the hook runs", || lab.project.join("began").exists());
    panel.types("\x03").sees("was interrupted");
    leave(panel);
    lab.assert_nobody_is_left();
}

#[test]
fn e_changes_the_keys_of_a_hook_where_it_is_declared() {
    let lab = lab();
    let mut panel = panel(&lab);
    choose(&mut panel, "own");
    panel.types("e").sees("Edit own");
    panel.types("shell\t5s\t\x1b[C\x1b[C\r").sees("changed");
    panel.sees("block");
    let file = fs::read_to_string(lab.home.join(".ollm/hooks/own.json")).unwrap();
    for part in ["\"matcher\": \"shell\"", "\"timeout\": \"5s\"", "\"onFailure\": \"block\""] {
        assert!(file.contains(part), "{part} is not in {file}");
    }
    let before = file;
    panel.types("e").sees("Edit own");
    panel.types("\x1b").sees_no_more("Edit own");
    assert_eq!(fs::read_to_string(lab.home.join(".ollm/hooks/own.json")).unwrap(), before, "Esc changes nothing");
    leave(panel);
}

#[test]
fn o_hands_the_terminal_to_the_editor_and_takes_it_back() {
    let lab = lab();
    let script =
        "#!/bin/sh\necho the editor is here\nread line\nsed -i 's/\"own\",/\"own\", \"priority\": \"low\",/' \"$1\"\n";
    lab.write_executable("edit", script);
    let editor = lab.root.join("edit");
    let lab = lab.set("EDITOR", editor.to_str().unwrap());
    let mut panel = panel(&lab);
    choose(&mut panel, "own");
    panel.types("o").sees("the editor is here");
    panel.types("\n").sees("● own");
    panel.sees("low");
    assert!(fs::read_to_string(lab.home.join(".ollm/hooks/own.json")).unwrap().contains("low"));
    leave(panel);
}

#[test]
fn a_command_of_the_model_that_ends_leaves_the_editor_alone() {
    let lab = Lab::new();
    lab.user_hook("before_tool", "own", "exit 0\n", "");
    lab.write_executable("edit", "#!/bin/sh\necho the editor is here\nread line\necho edited >../edited\n");
    let call = |command: &str| {
        json!({"tool_calls": [{"id": "1", "name": "shell", "arguments": {"command": command}}]}).to_string()
    };
    let wait = call("while [ ! -e open ]; do sleep 0.01; done");
    lab.write("talk.jsonl", [&wait, &call("touch second"), "{\"content\": \"done\"}\n"].join("\n"));
    let editor = lab.root.join("edit");
    let lab = lab.set("EDITOR", editor.to_str().unwrap());
    let mut panels = lab.pty(LARGE, &["tui", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    panels.sees("approval yolo");
    panels.types("go\r").sees("tool shell · ");
    panels.types("\x1b2").sees("● own");
    choose(&mut panels, "own");
    panels.types("o").sees("the editor is here");
    lab.write("project/open", "");
    eventually("the first command is over", || lab.project.join("second").exists());
    panels.types("\n").sees("● own");
    assert!(lab.root.join("edited").exists(), "the editor went on to its end");
    leave(panels);
}

#[test]
fn d_deletes_after_a_yes_and_only_then() {
    let lab = lab();
    let mut panel = panel(&lab);
    choose(&mut panel, "own");
    panel.types("d").sees("[w]ith its files");
    panel.types("n\r").sees("stays, because you did not say yes");
    assert!(lab.home.join(".ollm/hooks/own.json").exists());
    panel.types("d").sees("[w]ith its files");
    panel.types("w\r").sees("was removed from");
    panel.sees_no_more("● own");
    assert!(!lab.home.join(".ollm/hooks/own.sh").exists());
    leave(panel);
}

#[test]
fn t_really_runs_the_hook() {
    let lab = lab();
    let script =
        "touch \"$OLLM_PROJECT_DIR/own-ran\"\necho '{\"continue\": false, \"systemMessage\": \"not today\"}'\n";
    lab.user_hook("before_tool", "own", script, "");
    let mut panel = panel(&lab);
    choose(&mut panel, "own");
    panel.types("t").sees("not today");
    assert!(lab.project.join("own-ran").exists());
    leave(panel);
}

#[test]
fn every_key_says_on_the_screen_what_an_agent_would_be_refused() {
    let lab = lab();
    let lab = lab.set("OLLM_AGENT", "1");
    let mut panel = panel(&lab);
    choose(&mut panel, "own");
    for key in ["\r", "d", "o"] {
        panel.types(key).sees("hint");
        panel.types("g");
    }
    choose(&mut panel, "guest");
    panel.types("r").sees("hint");
    assert_eq!(entry(&lab, "own")["enabled"], true);
    leave(panel);
}

#[test]
pub(super) fn a_filter_begins_with_all_hooks_and_takes_pasted_text() {
    let lab = lab();
    let mut panel = panel(&lab);
    panel.types("/own\r").sees_no_more("guest");
    panel.types("/").sees("guest");
    panel.types("\x1b[200~own\nx\x1b[201~").sees_no_more("guest");
    panel.types("\r").sees("/own ");
    panel.types("\x1b[F").sees("┌ own ─");
    panel.types("\r").sees("○ own");
    assert_eq!((&entry(&lab, "own")["enabled"], &entry(&lab, "guest")["enabled"]), (&false.into(), &true.into()));
    leave(panel);
}

#[test]
fn a_file_that_cannot_be_read_is_counted_and_named_by_the_list() {
    let lab = lab();
    lab.user("broken.json", "{");
    let mut panel = panel(&lab);
    panel.sees("hooks, 1 broken");
    leave(panel);
}
