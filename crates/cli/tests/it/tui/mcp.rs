//! Every key of the panel of servers, and what it leaves on the disk and in the running session.

use std::fs;

use serde_json::{Value, json};

use super::common::KeyCase;
use super::{choose, does, leave, login, prints};
use crate::lab::Lab;
use crate::lab::pty::{LARGE, Pty};
use crate::mcp::{PROJECT, USER, declare, reviewing, server};

pub(super) const KEYS: &[KeyCase] = &[
    ("Enter", s_tries_a_server_and_its_tools_and_words_are_seen),
    ("t", s_tries_a_server_and_its_tools_and_words_are_seen),
    ("s", x_and_r_stop_and_restart_the_server_of_the_conversation_in_the_next_panel),
    ("x", x_and_r_stop_and_restart_the_server_of_the_conversation_in_the_next_panel),
    ("r", x_and_r_stop_and_restart_the_server_of_the_conversation_in_the_next_panel),
    ("l", s_tries_a_server_and_its_tools_and_words_are_seen),
    ("o", login::o_logs_in_by_a_browser_that_comes_back_and_f_forgets_it),
    ("v", v_shows_and_approves_a_server_of_a_project_and_w_withdraws),
    ("c", c_shows_what_a_server_changed_about_its_tools_and_offers_it),
    ("w", v_shows_and_approves_a_server_of_a_project_and_w_withdraws),
    ("h", s_tries_a_server_and_its_tools_and_words_are_seen),
    ("f", login::o_logs_in_by_a_browser_that_comes_back_and_f_forgets_it),
    ("a", a_adds_a_server_and_d_deletes_it_after_a_yes),
    ("d", a_adds_a_server_and_d_deletes_it_after_a_yes),
];

/// A server of the user and one of the project.
fn lab() -> Lab {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"mine": server(&["--stderr", "hello \u{1b}[2J\u{202e}there"])}));
    declare(&lab, PROJECT, &json!({"theirs": server(&[])}));
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    lab
}

fn panel(lab: &Lab, name: &str) -> Pty {
    let mut panel = lab.pty(LARGE, &["tui", "--panel", "mcp"]);
    panel.sees("○ ");
    choose(&mut panel, name);
    panel
}

fn status(lab: &Lab, name: &str) -> Value {
    lab.run(&["mcp", "status", name, "--json"]).answer()[0].clone()
}

#[test]
fn s_tries_a_server_and_its_tools_and_words_are_seen() {
    let lab = lab();
    let mut panel = panel(&lab, "mine");
    panel.sees("No tools are known yet");
    let shown = does(&mut panel, "s", "starting mine", "mcp__mine__echo text");
    assert!(!shown.contains("No tools are known yet"), "{shown}");
    assert!(status(&lab, "mine")["tools"].as_u64().unwrap() > 0);
    for key in ["t", "\r"] {
        prints(&mut panel, &lab, key, "tools of mine", &["mcp", "tools", "mine"]);
    }
    prints(&mut panel, &lab, "h", "health of mine", &["mcp", "status", "mine"]);
    prints(&mut panel, &lab, "l", "logs of mine", &["mcp", "logs", "mine"]);
    does(&mut panel, "l", "logs of mine", r"hello \u{1b}[2J\u{202e}there");
    leave(panel);
}

#[test]
fn t_asks_a_server_for_tools_that_nobody_knows_and_remembers_them() {
    let lab = lab();
    let known = || fs::read_to_string(lab.home.join(".ollm/state/mcp-tools.json")).unwrap_or_default();
    assert!(!known().contains("echo"));
    let mut panel = panel(&lab, "mine");
    does(&mut panel, "t", "tools of mine", "ARGUMENTS");
    assert!(known().contains("echo"), "{}", known());
    leave(panel);
}

#[test]
fn what_a_server_answers_reaches_the_terminal_as_text_alone() {
    let lab = lab();
    let call = json!({"tool_calls": [{"id": "1", "name": "mcp__mine__echo",
        "arguments": {"text": "\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}evil"}}]});
    lab.write("talk.jsonl", format!("{call}\n{{\"content\": \"done\"}}\n"));
    for front in ["tui", "chat"] {
        let mut chat = lab.pty(LARGE, &[front, "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
        if front == "tui" {
            chat.sees("approval yolo");
        } else {
            chat.waits_for("> ");
        }
        chat.types("go\r").sees("done");
        let shown = chat.sees("evil");
        assert!(shown.contains(r"\u{202e}evil"), "{shown}");
        if front == "chat" {
            chat.waits_for("done").waits_for("> ");
        }
        chat.types("\x04");
        let ran = chat.ends();
        for obeyed in ["\u{202e}", "]0;title\u{7}", "\u{9b}"] {
            assert!(!ran.stdout.contains(obeyed), "{front}: {obeyed:?}");
        }
        assert_eq!(ran.code, 0);
    }
}

#[test]
fn x_and_r_stop_and_restart_the_server_of_the_conversation_in_the_next_panel() {
    let lab = lab();
    let mut panels = lab.pty(LARGE, &["tui", "--model", "replay:../talk.jsonl"]);
    panels.sees("approval ask");
    panels.types("\x1b3").sees("mine");
    choose(&mut panels, "mine");
    // Servers of a conversation start beside it.
    does(&mut panels, "r", "restarting mine", "server `mine` is ready");
    panels.sees("● mine ready");
    assert_eq!(status(&lab, "mine")["running"], true);
    does(&mut panels, "x", "stopping mine", "server `mine` is stopped");
    panels.sees("○ mine stopped");
    assert_eq!(status(&lab, "mine")["chats"][0]["state"], "stopped");
    does(&mut panels, "s", "starting mine", "server `mine` is ready");
    panels.sees("● mine ready");
    assert_eq!(status(&lab, "mine")["chats"][0]["state"], "ready");
    panels.types("s").sees("runs already");
    prints(&mut panels, &lab, "h", "health of mine", &["mcp", "status", "mine"]);
    does(&mut panels, "l", "logs of mine", "hello ");
    leave(panels);
    lab.assert_nobody_is_left();
}

#[test]
fn a_server_that_dies_is_seen_without_a_key() {
    let lab = lab();
    let mut panels = lab.pty(LARGE, &["tui", "--model", "replay:../talk.jsonl"]);
    panels.sees("approval ask");
    panels.types("\x1b3").sees("mine");
    choose(&mut panels, "mine");
    panels.sees("● mine ready");
    panels.sees("mcp__mine__echo text");
    let process = status(&lab, "mine")["chats"][0]["process"].to_string();
    assert!(lab.program("kill").args(["-9", &process]).status().unwrap().success());
    panels.sees_no_more("● mine ready");
    leave(panels);
    lab.assert_nobody_is_left();
}

#[test]
fn a_conversation_elsewhere_that_is_killed_is_seen_without_a_key() {
    let lab = lab();
    let mut panel = panel(&lab, "mine");
    panel.sees("○ mine");
    let mut chat = lab.pty(LARGE, &["chat", "--model", "replay:../talk.jsonl"]);
    panel.sees("● mine ready");
    chat.signal(9);
    assert_ne!(chat.ends().code, 0);
    panel.sees_no_more("● mine ready");
    leave(panel);
    lab.assert_nobody_is_left();
}

#[test]
fn v_shows_and_approves_a_server_of_a_project_and_w_withdraws() {
    let lab = lab();
    let mut panel = panel(&lab, "theirs");
    panel.sees("theirs !");
    panel.types("vy\r").sees("May this server be started");
    assert_eq!(status(&lab, "theirs")["trust"], "untrusted", "what was typed before the question answers nothing");
    does(&mut panel, "y\r", "reviewing theirs", "is approved");
    panel.sees_no_more("theirs !");
    assert_eq!(status(&lab, "theirs")["trust"], "trusted");
    panel.types("w").sees("is no longer approved");
    panel.sees("theirs !");
    assert_eq!(status(&lab, "theirs")["trust"], "untrusted");
    leave(panel);
}

#[test]
fn c_shows_what_a_server_changed_about_its_tools_and_offers_it() {
    let lab = reviewing::lab(&[]);
    reviewing::offered(&lab);
    reviewing::lists(&lab, "tools.json", &[reviewing::tool("a", "Reads.\u{1b}[2J"), reviewing::tool("c", "New.")]);
    let mut panel = panel(&lab, "s");
    panel.types("c");
    let shown = panel.sees("Offer 2 tools");
    assert!(shown.contains("changed: a") && shown.contains("new: c"), "{shown}");
    panel.types("y\r").sees("offered from now on");
    assert_eq!(reviewing::offered(&lab), ["mcp__s__a", "mcp__s__c"]);
    leave(panel);
}

#[test]
fn a_adds_a_server_and_d_deletes_it_after_a_yes() {
    let lab = lab();
    let file = lab.root.join(USER);
    let mut panel = panel(&lab, "mine");
    panel.types("a").sees("Add a server");
    does(&mut panel, "fresh\tsh -c 'exit 0'\r", "adding fresh", "was added to");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"fresh\"") && text.contains("exit 0"), "{text}");
    choose(&mut panel, "fresh");
    panel.types("d").sees("Remove server `fresh`");
    does(&mut panel, "n\r", "deleting fresh", "you did not say yes");
    assert!(fs::read_to_string(&file).unwrap().contains("\"fresh\""));
    panel.types("d").sees("Remove server `fresh`");
    panel.types("y\r").sees("was removed from");
    assert!(!fs::read_to_string(&file).unwrap().contains("\"fresh\""));
    leave(panel);
}

#[test]
fn control_c_interrupts_a_server_that_does_not_answer() {
    let lab = lab();
    declare(&lab, USER, &json!({"mute": server(&["--mute"])}));
    let mut panel = panel(&lab, "mute");
    panel.types("s").sees("starting mute · ");
    panel.types("\x03").sees("interrupted");
    panel.sees_no_more("starting mute · ");
    let left = lab.processes();
    assert!(!left.iter().any(|line| line.contains("--mute")), "the server is ended as well: {left:?}");
    leave(panel);
}

#[test]
fn a_signal_ends_the_panels_in_order_after_a_server_was_tried() {
    let lab = lab();
    let mut panel = panel(&lab, "mine");
    panel.types("s").sees("mcp__mine__echo text");
    panel.signal(15);
    let ran = panel.ends();
    assert!(ran.code == 143 && ran.has_restored(), "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn control_m_of_a_terminal_that_can_tell_it_and_f3_lead_to_the_servers() {
    let lab = lab();
    let mut panels = lab.pty(LARGE, &["tui", "--panel", "hooks"]);
    panels.sees("Exit");
    panels.types("\x1b[109;5u").sees("2 servers");
    panels.types("2").sees("hooks");
    panels.types("\x1bOR").sees("2 servers");
    leave(panels);
}

/// What is typed before a question of this panel is seen answers nothing.
pub(super) fn typed_ahead() {
    let lab = lab();
    let mut removing = panel(&lab, "mine");
    removing.types("dy\ry\r").sees("Remove server `mine`");
    removing.types("\x1b").sees("you did not say yes");
    assert!(fs::read_to_string(lab.root.join(USER)).unwrap().contains("\"mine\""));
    leave(removing);
    let lab = reviewing::lab(&[]);
    reviewing::offered(&lab);
    reviewing::lists(&lab, "tools.json", &[reviewing::tool("c", "New.")]);
    let mut panel = panel(&lab, "s");
    panel.types("cy\ry\r").sees("Offer ");
    panel.types("\x1b").sees("not approved");
    assert!(!reviewing::offered(&lab).contains(&"mcp__s__c".to_owned()));
    leave(panel);
}
