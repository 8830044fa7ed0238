//! A yes counts only for what was on the screen.

use serde_json::json;

use crate::lab::Lab;
use crate::lab::pty::{LARGE, Pty, Size};

use super::hooks::{entry, lab, panel};
use super::{choose, leave};

/// The question whether a script of the project may run.
fn asked(lab: &Lab) -> Pty {
    let mut panel = panel(lab);
    choose(&mut panel, "guest");
    panel.types("r").sees("Question");
    panel
}

/// Reads the question to its end; its last page.
fn read(panel: &mut Pty) -> String {
    loop {
        let shown = panel.types("\r").sees("Esc is no");
        if shown.contains("Type an answer") {
            return shown;
        }
    }
}

#[test]
fn a_script_of_wide_characters_hides_nothing_beyond_the_edge() {
    let lab = lab();
    let script = format!(": \"{}\"; echo HIDDEN_PAYLOAD\n", "❤\u{fe0f}".repeat(50));
    lab.workspace_hook("before_tool", "guest", &script, "");
    let mut panel = asked(&lab);
    panel.sees("HIDDEN_PAYLOAD");
    panel.types("\x1b").sees("was not approved");
    leave(panel);
}

#[test]
fn the_end_of_a_script_alone_approves_nothing() {
    let lab = lab();
    let lines: Vec<String> = (0..142).map(|line| format!("echo line-{line}")).collect();
    lab.workspace_hook("before_tool", "guest", &lines.join("\n"), "");
    let mut panel = asked(&lab);
    panel.types("\x1b[F").sees("line-141");
    panel.types("a\r").sees("not all is read");
    panel.types("\x1b[H\x1b[6~\x1b[6~\x1b[6~\x1b[6~\x1b[6~").sees("line-141");
    panel.types("a\r").sees("not all is read");
    assert_eq!(entry(&lab, "guest")["trust"], "untrusted");
    read(&mut panel);
    panel.types("a\r").sees("is approved");
    assert_eq!(entry(&lab, "guest")["trust"], "trusted");
    leave(panel);
}

#[test]
fn an_enter_too_many_neither_answers_nor_switches_anything() {
    let lab = lab();
    let mut panel = asked(&lab);
    panel.sees("Type an answer");
    panel.types("\r\r\r").types("x\r").sees("`x` is not among the answers");
    panel.types("n\r\r\r\r").sees("was not approved");
    panel.types("g").sees_no_more("Question");
    let (guest, own) = (entry(&lab, "guest"), entry(&lab, "own"));
    assert_eq!(
        (&guest["trust"], &guest["enabled"], &own["enabled"]),
        (&"untrusted".into(), &true.into(), &true.into())
    );
    leave(panel);
}

#[test]
fn on_a_small_terminal_every_way_to_answer_is_shown_before_one_counts() {
    let lab = lab();
    let mut panel = lab.pty(Size { rows: 12, columns: 40 }, &["tui", "--panel", "hooks"]);
    panel.sees("Exit");
    panel.types("/guest\r\x1b[F").sees("guest !");
    panel.types("r").sees("Question");
    panel.types("a\r").sees("not all is read");
    let shown = read(&mut panel);
    assert!(shown.contains("[N]o"), "{shown}");
    panel.types("\x1b");
    leave(panel);
}

#[test]
fn the_end_of_a_long_command_is_seen_before_it_is_approved() {
    let lab = Lab::new();
    let command = format!("touch ran; : {} TAIL_OF_IT", "x".repeat(20 << 10));
    let call = json!({"tool_calls": [{"id": "1", "name": "shell", "arguments": {"command": command}}]});
    lab.write("talk.jsonl", format!("{call}\n{}\n", json!({"content": "done"})));
    let mut chat = lab.pty(LARGE, &["tui", "--model", "replay:../talk.jsonl"]);
    chat.sees("approval ask");
    chat.types("go\r").sees("Question");
    chat.types("y\r").sees("not all is read");
    assert!(!lab.project.join("ran").exists());
    let shown = read(&mut chat);
    assert!(shown.contains("TAIL_OF_IT") && shown.contains("May it run?"), "{shown}");
    chat.types("y\r").sees("done");
    assert!(lab.project.join("ran").exists());
    chat.types("\x04");
    assert_eq!(chat.ends().code, 0);
}

#[test]
fn what_cannot_be_shown_is_approved_by_its_digest_alone() {
    let lab = lab();
    let script = format!("touch canary\n{}", "# padding\n".repeat(120_000));
    lab.workspace_hook("before_tool", "guest", &script, "");
    let mut panel = panel(&lab);
    choose(&mut panel, "guest");
    panel.types("r").sees("not all of it can be shown here");
    let shown = panel.sees("--digest");
    assert!(!shown.contains("Question"), "{shown}");
    assert_eq!(entry(&lab, "guest")["trust"], "untrusted");
    panel.types("\x11");
    assert_eq!(panel.ends().code, 0);
}

#[test]
fn a_question_that_has_no_room_on_the_screen_takes_no_answer() {
    let lab = lab();
    let mut panel = asked(&lab);
    panel.sees("Type an answer");
    panel.resize(Size { rows: 5, columns: 20 });
    panel.sees("too small");
    panel.types("a\r\r").types("\x0c");
    panel.resize(LARGE);
    panel.sees("Type an answer");
    panel.types("x\r").sees("`x` is not among the answers");
    assert_eq!(entry(&lab, "guest")["trust"], "untrusted");
    panel.types("\x1b").sees("was not approved");
    leave(panel);
}
