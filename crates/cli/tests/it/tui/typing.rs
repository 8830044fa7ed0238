//! Every key of what opens above a panel (forms, questions, the picker, the filter, the help) and of the chat's input, by what it
//! changes.

use std::fs;

use serde_json::{Value, json};

use super::hooks::{entry, lab, panel};
use super::{choose, does, leave};
use crate::lab::Lab;
use crate::lab::pty::{LARGE, Pty, Size};
use crate::mcp::{USER, declare, server};

fn declared(lab: &Lab) -> String {
    fs::read_to_string(lab.home.join(".ollm/hooks/own.json")).unwrap()
}

#[test]
fn every_key_of_a_form_moves_chooses_writes_or_saves() {
    let lab = lab();
    let mut panel = panel(&lab);
    choose(&mut panel, "own");
    panel.types("e").sees("Edit own");
    // Matcher, timeout, failure, priority, condition, description; each choice goes in a circle.
    panel.types("\x1b[B\x1b[B\x1b[C \x1b[D").sees("‹ allow ›");
    panel.types("\x1b[A\x1b[Ashellx\x7f").sees("matcher     shell");
    panel.types("\x1b[Z\x1b[D").types("\x1b[200~wor\nds\x1b[201~ds\t").sees("▸ matcher     shell");
    panel.types("\x13").sees("changed");
    panel.sees("description words");
    let file = declared(&lab);
    for part in ["\"matcher\": \"shell\"", "\"onFailure\": \"allow\"", "\"description\": \"words\""] {
        assert!(file.contains(part), "{part} is not in {file}");
    }
    for key in ["\x03", "\x1b"] {
        panel.types("e").sees("Edit own");
        panel.types("x").sees("matcher     shellx");
        panel.types(key).sees_no_more("Edit own");
        assert_eq!(declared(&lab), file, "{key:?} changes nothing");
    }
    leave(panel);
}

#[test]
fn every_key_of_a_question_scrolls_mends_answers_or_refuses() {
    let lab = lab();
    let lines: Vec<String> = (0..100).map(|line| format!("echo line-{line}.")).collect();
    lab.workspace_hook("before_tool", "guest", &lines.join("\n"), "");
    let mut panel = panel(&lab);
    choose(&mut panel, "guest");
    let trust = || entry(&lab, "guest")["trust"].clone();
    panel.types("r").sees("line-0.");
    panel.types("\x1b[F").sees("line-99.");
    panel.types("\x1b[A").sees_no_more("[N]o");
    panel.types("\x1b[H").sees("line-0.");
    panel.types("\x1b[6~").sees_no_more("line-0.");
    panel.types("\x1b[5~").sees("line-0.");
    panel.types("a\r").sees("not all is read");
    assert_eq!(trust(), "untrusted");
    // What was passed over on the way to the end is not read yet.
    panel.types(&"\x1b[B".repeat(120)).sees("Type an answer");
    panel.types("ax\r").sees("`ax` is not among the answers");
    let (id, yes) = ("workspace:guest.json:before_tool:guest", "is approved");
    does(&mut panel, "ax\x7f\r", &format!("reviewing {id}"), yes);
    assert_eq!(trust(), "trusted");
    does(&mut panel, "w", &format!("withdrawing the approval of {id}"), "no longer approved");
    // No needs no reading.
    for key in ["\x03", "\x1b", "n\r", "NO\r"] {
        panel.types("r").sees("line-0.");
        does(&mut panel, key, &format!("reviewing {id}"), "was not approved");
        assert_eq!(trust(), "untrusted", "{key:?}");
    }
    leave(panel);
}

/// What was said in the conversation whose first prompt is this.
fn transcript(lab: &Lab, first: &str) -> String {
    let sessions = fs::read_dir(lab.home.join(".ollm/sessions")).unwrap();
    let mut told = sessions.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    told.find(|told| told.contains(first)).unwrap()
}

#[test]
fn every_key_of_the_picker_picks_the_conversation_that_goes_on() {
    let lab = Lab::new();
    let answers: Vec<String> = (0..9).map(|at| json!({"content": format!("answer {at}")}).to_string()).collect();
    lab.write("talk.jsonl", answers.join("\n") + "\n");
    for at in 0..5 {
        let ran = lab.run(&["run", &format!("question {at}."), "--model", "replay:../talk.jsonl"]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let asked = |mark: &str| {
        // What was said before is on the screen as well.
        lab.write("marks.jsonl", json!({"content": format!("marked as {mark}.")}).to_string() + "\n");
        let mut chat = lab.pty(LARGE, &["tui", "--model", "replay:../marks.jsonl"]);
        chat.sees("approval ask");
        chat.types("/resume\r").sees("Which conversation goes on?");
        chat
    };
    // The oldest is the last of them.
    let picks = [
        ("", 4),
        ("\x1b[B", 3),
        ("\x1b[B\x1b[B\x1b[A", 3),
        ("\x1b[F", 0),
        ("\x1b[F\x1b[A", 1),
        ("\x1b[F\x1b[H", 4),
        ("\x1b[6~", 0),
        ("\x1b[F\x1b[5~", 4),
        ("\x1b[<65;5;5M", 3),
    ];
    for (mark, (keys, first)) in picks.into_iter().enumerate() {
        let mut chat = asked(&mark.to_string());
        chat.types(keys).types("\r").sees_no_more("Which conversation goes on?");
        chat.types(&format!("mark {mark}\r")).sees(&format!("marked as {mark}."));
        leave(chat);
        let told = transcript(&lab, &format!("question {first}."));
        assert!(told.contains(&format!("mark {mark}")), "{keys:?}: {told}");
    }
    for key in ["\x03", "\x1b"] {
        let mut chat = asked("alone");
        chat.types(key).sees_no_more("Which conversation goes on?");
        chat.types("alone\r").sees("marked as alone.");
        leave(chat);
        assert!(!transcript(&lab, "question 2.").contains("alone"), "{key:?}");
    }
}

#[test]
fn every_key_of_the_filter_leaves_the_entries_that_it_means() {
    let lab = lab();
    let mut panel = panel(&lab);
    panel.types("/guestx").sees_no_more("guest !");
    panel.types("\x7f").sees("guest !");
    panel.types("\r").sees("/guest ");
    panel.types("\x1b[F\r").sees("○ guest");
    assert_eq!((&entry(&lab, "own")["enabled"], &entry(&lab, "guest")["enabled"]), (&true.into(), &false.into()));
    // Keys of the panel are text here.
    panel.types("/dtw").sees_no_more("○ guest");
    panel.types("\x1b").sees("○ guest");
    panel.sees("● own");
    assert!(lab.home.join(".ollm/hooks/own.json").exists() && !lab.project.join("own-ran").exists());
    leave(panel);
}

#[test]
fn the_help_scrolls_and_any_other_key_closes_it_and_does_nothing_else() {
    let lab = lab();
    let mut panel = lab.pty(Size { rows: 12, columns: 40 }, &["tui", "--panel", "hooks"]);
    panel.sees("Exit");
    panel.types("/own\r\x1b[F").sees("┌ own ─");
    for (down, up) in [("\x1b[F".to_owned(), "\x1b[H".to_owned()), ("\x1b[6~".repeat(6), "\x1b[5~".repeat(6))] {
        panel.types("?").sees("Esc closes");
        panel.types(&down).sees("Ctrl+Q");
        panel.types(&up).sees("on/off");
        panel.types("d").sees_no_more("Esc closes");
        panel.sees("┌ own ─");
    }
    panel.types("?").sees("Esc closes");
    panel.types(&"\x1b[B".repeat(60)).sees("Ctrl+Q");
    panel.types(&"\x1b[A".repeat(60)).sees("on/off");
    panel.types("\r").sees_no_more("Esc closes");
    assert_eq!(entry(&lab, "own")["enabled"], true);
    leave(panel);
}

#[test]
fn the_keys_of_the_input_move_and_delete() {
    let lab = Lab::new();
    lab.write("talk.jsonl", "{\"content\": \"well met\"}\n");
    let mut chat = lab.pty(LARGE, &["tui", "--model", "replay:../talk.jsonl"]);
    chat.sees("approval ask");
    chat.types("ello\x1b[Hh\x1b[F worldx\x7f").sees("> hello world");
    chat.types("\x1b[D\x1b[D\x1b[D\x1b[D\x1b[D\x1b[3~W\x1b[C0").sees("> hello Wo0rld");
    chat.types("\r").sees("well met");
    leave(chat);
    assert!(transcript(&lab, "hello Wo0rld").contains("well met"));
}

/// A conversation in which this tool is called, with keys that come before anything is asked.
fn asked(lab: &Lab, tool: &str, args: &Value, ahead: &str) -> Pty {
    let call = json!({"tool_calls": [{"id": "1", "name": tool, "arguments": args}]});
    lab.write("talk.jsonl", format!("{call}\n{}\n", json!({"content": "the end"})));
    let mut chat = lab.pty(LARGE, &["tui", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    chat.sees("approval yolo");
    chat.types(&format!("go\r{ahead}"));
    chat
}

#[test]
fn what_is_typed_before_a_hook_has_the_person_asked_answers_nothing() {
    let lab = Lab::new();
    let answer = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
        "permissionDecisionReason": "is it right?"}});
    lab.user_hook("PreToolUse", "asker", &format!("cat > /dev/null; echo '{answer}'\n"), ", \"dialect\": \"claude\"");
    let mut chat = asked(&lab, "shell", &json!({"command": "touch ran"}), "y\ryes\ra\r");
    chat.sees("is it right?");
    chat.types("\x1b").sees("said no");
    assert!(!lab.project.join("ran").exists());
    leave(chat);
}

#[test]
fn what_is_typed_before_a_server_asks_tells_it_nothing_and_lends_it_no_model() {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"s": server(&[])}));
    let told = |lab: &Lab| transcript(lab, "go").replace('\\', "");
    let mut chat = asked(&lab, "mcp__s__ask", &json!({}), "y\rAda\ry\r");
    chat.sees("What is your name?");
    // Each answer is for one question, and not for the next.
    chat.types("y\rAda\ry\r").sees("leaves it out");
    chat.types("\x1b").sees("the end");
    leave(chat);
    assert!(!told(&lab).contains("accept"), "{}", told(&lab));
    let lab = Lab::new();
    declare(&lab, USER, &json!({"s": server(&[])}));
    let mut chat = asked(&lab, "mcp__s__sample", &json!({}), "y\ry\r");
    chat.sees("wants to ask your model");
    chat.types("\x1b").sees("the end");
    leave(chat);
}
