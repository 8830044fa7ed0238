//! The panel of the doctor: what it finds, and what its keys mend.

use std::fs;

use super::common::KeyCase;
use super::{does, leave};
use crate::lab::pty::LARGE;
use crate::lab::{Lab, OLLM};

pub(super) const KEYS: &[KeyCase] = &[
    ("Enter, E", f_mends_what_is_safe_and_enter_explains_a_code),
    ("F", f_mends_what_is_safe_and_enter_explains_a_code),
];

#[test]
fn f_mends_what_is_safe_and_enter_explains_a_code() {
    let lab = Lab::new();
    lab.run(&["connect", "claude"]);
    let file = lab.home.join(".claude/settings.json");
    let right = fs::read_to_string(&file).unwrap();
    fs::write(&file, right.replace(OLLM, "/nowhere/ollm")).unwrap();
    let mut panel = lab.pty(LARGE, &["tui", "--panel", "doctor"]);
    panel.sees("! agents: ");
    panel.types("/agents\r").sees("/agents ");
    panel.types("\x1b[F").sees("safe fix");
    for key in ["\r", "e"] {
        does(&mut panel, key, "help ", "┌ help ");
        panel.types("\x1b").sees_no_more("┌ help ");
    }
    assert_ne!(fs::read_to_string(&file).unwrap(), right, "looking mends nothing");
    panel.types("f").sees("wrote the entries for Claude Code anew");
    panel.sees("✓ agents: ");
    assert_eq!(fs::read_to_string(&file).unwrap(), right);
    leave(panel);
}

#[test]
fn an_agent_mends_nothing_from_the_panel() {
    let lab = Lab::new().set("OLLM_AGENT", "1");
    let mut panel = lab.pty(LARGE, &["tui", "--panel", "doctor"]);
    panel.sees("✓ ");
    panel.types("f").sees("an agent may not");
    leave(panel);
}
