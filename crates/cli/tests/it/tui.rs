//! The panels, by a keyboard and a screen that are made for the test.

use crate::lab::Lab;
use crate::lab::pty::Pty;

mod approvals;
mod chat;
mod clock;
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
mod typing;

/// Leaves the panels by their key, which restores the terminal.
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

/// Presses a key, and sees what the command prints that it stands for.
fn prints(panel: &mut Pty, lab: &Lab, key: &str, title: &str, command: &[&str]) {
    let ran = lab.run(command);
    let told = format!("{}{}", ran.stdout, ran.stderr).replace("ollm: ", "");
    panel.types(key).sees(&format!(" {title} (Esc closes)"));
    for line in told.lines().map(str::trim).filter(|line| !line.is_empty()).take(5) {
        panel.sees(&line.chars().take(40).collect::<String>());
    }
    panel.types("\x1b").sees_no_more(&format!(" {title} (Esc closes)"));
}

/// Presses a key, sees what came of it, and waits until what it began is over: there is one command at a time.
fn does(panel: &mut Pty, key: &str, title: &str, text: &str) -> String {
    panel.types(key).sees(text);
    panel.sees_no_more(&format!("{title} · "))
}
