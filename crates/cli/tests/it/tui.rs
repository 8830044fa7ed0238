//! The panels, by a keyboard and a screen that are made for the test.

use crate::lab::pty::Pty;

mod approvals;
mod chat;
mod common;
mod doctor;
mod extensions;
mod hooks;
mod keys;
mod load;
mod login;
mod mcp;
mod screen;
mod trace;

/// Leaves the panels by their key; the terminal is as it was.
fn leave(mut panels: Pty) {
    panels.types("\x11");
    let ran = panels.ends();
    assert!(ran.code == 0 && ran.has_restored(), "{:?}", &ran.stdout[ran.stdout.len().saturating_sub(500)..]);
}

/// Puts the cursor on the entry that a filter leaves.
fn choose(panel: &mut Pty, name: &str) {
    panel.types("/").types(name).types("\r").sees(&format!("/{name} "));
    panel.types("\x1b[F").sees(&format!("┌ {name} ─"));
}

/// Presses a key, sees what came of it, and waits until what it began is over: there is one command at a time.
fn does(panel: &mut Pty, key: &str, title: &str, text: &str) -> String {
    panel.types(key).sees(text);
    panel.sees_no_more(&format!("{title} · "))
}
