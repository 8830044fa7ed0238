//! The panel of the doctor: what it finds, and what its keys mend.

use std::fs;

use super::common::KeyCase;
use super::{leave, prints};
use crate::lab::pty::LARGE;
use crate::lab::{Lab, OLLM};

pub(super) const KEYS: &[KeyCase] = &[
    ("Enter", f_mends_what_is_safe_and_enter_explains_a_code),
    ("e", f_mends_what_is_safe_and_enter_explains_a_code),
    ("f", f_mends_what_is_safe_and_enter_explains_a_code),
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
    let shown = panel.sees("code ");
    let code = shown.lines().find_map(|line| line.split("code ").nth(1)?.split_whitespace().next()).unwrap();
    for key in ["\r", "e"] {
        prints(&mut panel, &lab, key, &format!("help {code}"), &["help", code]);
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
