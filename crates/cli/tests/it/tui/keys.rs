//! Keys that come in pieces, and signals at the wrong moment: the panels go on, or end in order.

use crate::lab::Lab;
use crate::lab::pty::{Pty, USUAL};

use super::hooks::{lab, panel};
use super::{choose, leave};

/// The panels after these keys, which begin with the one for help, were read.
fn typed(lab: &Lab, keys: &str) -> Pty {
    let mut panels = lab.pty(USUAL, &["tui", "--panel", "hooks"]);
    panels.sees("Exit");
    panels.types(&format!("?{keys}")).sees("Esc closes");
    panels
}

#[test]
fn half_a_key_holds_nothing_up() {
    for half in ["\x1b[1;", "\x1bO", "\x1bOj", "\x1b[200~half", "\u{1b}[<0;"] {
        let lab = Lab::new();
        let mut panels = typed(&lab, half);
        panels.signal(15);
        let ran = panels.ends();
        assert!(ran.code == 143 && ran.has_restored(), "{half:?}: {ran:?}");
    }
}

#[test]
fn a_key_in_two_pieces_is_one_key() {
    let lab = lab();
    let mut panel = panel(&lab);
    panel.types("/own\r\x1b[").types("F").sees("name        own");
    leave(panel);
}

#[test]
fn half_a_paste_leaves_the_keyboard_to_the_person() {
    let lab = Lab::new();
    let mut panels = typed(&lab, "\x1b[200~half");
    panels.types("\x11");
    let ran = panels.ends();
    assert!(ran.code == 0 && ran.has_restored(), "{ran:?}");
}

#[test]
fn a_closed_terminal_ends_the_session_in_order() {
    let lab = Lab::new();
    lab.write("talk.jsonl", "{\"content\": \"well met\"}\n");
    lab.user_hook("session_end", "bye", "touch \"$OLLM_PROJECT_DIR/ended\"\n", "");
    let mut chat = lab.pty(USUAL, &["tui", "--model", "replay:../talk.jsonl"]);
    chat.sees("approval");
    chat.types("hello\r").sees("well met");
    chat.hangs_up();
    let ran = chat.ends();
    assert_eq!(ran.code, 129, "{ran:?}");
    assert!(lab.project.join("ended").exists());
}

#[test]
fn a_closed_terminal_ends_the_panels_in_the_middle_of_a_key() {
    let lab = Lab::new();
    let mut panels = typed(&lab, "\x1b[1;");
    panels.hangs_up();
    assert_eq!(panels.ends().code, 129);
}

/// The panels while an editor has the terminal.
fn in_editor(script: &str) -> (Lab, Pty) {
    let lab = lab();
    lab.write_executable("edit", &format!("#!/bin/sh\necho the editor is here\n{script}\n"));
    let editor = lab.root.join("edit");
    let lab = lab.set("EDITOR", editor.to_str().unwrap());
    let mut panel = panel(&lab);
    choose(&mut panel, "own");
    panel.types("o").sees("the editor is here");
    (lab, panel)
}

#[test]
fn an_editor_is_stopped_and_continued_with_us() {
    let (_lab, mut panel) = in_editor("read line");
    panel.signal(20);
    panel.waits_for_stop();
    panel.signal(18);
    panel.types("\n").sees("● own");
    leave(panel);
}

#[test]
fn a_signal_ends_us_while_the_editor_has_the_terminal() {
    let (_lab, mut panel) = in_editor("exec cat");
    panel.signal(15);
    assert_eq!(panel.ends().code, 143);
}

#[test]
fn the_mode_of_the_keyboard_is_left_as_often_as_it_is_entered() {
    let lab = Lab::new();
    let mut panels = lab.pty(USUAL, &["tui", "--panel", "hooks"]);
    panels.sees("Exit");
    panels.types("\x0c\x0c");
    panels.signal(20);
    panels.waits_for("\x1b[?1049l");
    panels.continues("\x1b[?1049h").sees("Exit");
    panels.types("\x11");
    let ran = panels.ends();
    let count = |text: &str| ran.stdout.matches(text).count();
    assert_eq!((count("\x1b[>1u"), count("\x1b[<1u")), (2, 2), "{ran:?}");
}
