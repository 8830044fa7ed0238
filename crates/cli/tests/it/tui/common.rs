//! The keys that all panels have, the mouse, and the table of all keys: one without a case here fails.

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use super::{choose, doctor, extensions, hooks, leave, mcp, screen, trace};
use crate::lab::Lab;
use crate::lab::pty::{LARGE, Pty, Size};

/// A key as the record of all keys has it, and the test that presses it and looks at what it did.
pub(super) type KeyCase = (&'static str, fn());

/// Every key that the panels have: a snapshot by a test of their tables.
const RECORD: &str = include_str!("../../../src/tui/snapshots/ollm__tui__tests__keys.snap");

/// Where keys are told, and the cases of each.
const PLACES: [(&str, &[KeyCase]); 8] = [
    ("everywhere", EVERYWHERE),
    ("lists", LISTS),
    ("chat", super::chat::KEYS),
    ("hooks", hooks::KEYS),
    ("mcp", mcp::KEYS),
    ("extensions", extensions::KEYS),
    ("trace", trace::KEYS),
    ("doctor", doctor::KEYS),
];

const EVERYWHERE: &[KeyCase] = &[
    ("F1", keys_with_numbers_turn_to_their_panel),
    ("F2", keys_with_numbers_turn_to_their_panel),
    ("F3", keys_with_numbers_turn_to_their_panel),
    ("F4", keys_with_numbers_turn_to_their_panel),
    ("F5", keys_with_numbers_turn_to_their_panel),
    ("F6", keys_with_numbers_turn_to_their_panel),
    ("Alt+1", keys_with_numbers_turn_to_their_panel),
    ("Alt+2", keys_with_numbers_turn_to_their_panel),
    ("Alt+3", keys_with_numbers_turn_to_their_panel),
    ("Alt+4", keys_with_numbers_turn_to_their_panel),
    ("Alt+5", keys_with_numbers_turn_to_their_panel),
    ("Alt+6", keys_with_numbers_turn_to_their_panel),
    ("1", keys_with_numbers_turn_to_their_panel),
    ("2", keys_with_numbers_turn_to_their_panel),
    ("3", keys_with_numbers_turn_to_their_panel),
    ("4", keys_with_numbers_turn_to_their_panel),
    ("5", keys_with_numbers_turn_to_their_panel),
    ("6", keys_with_numbers_turn_to_their_panel),
    ("Ctrl+m", keys_with_numbers_turn_to_their_panel),
    ("Tab", tab_turns_through_all_panels_and_back),
    ("Back Tab", tab_turns_through_all_panels_and_back),
    ("?", the_help_opens_and_closes),
    ("F12", the_help_opens_and_closes),
    ("Ctrl+l", control_l_draws_everything_anew),
    ("Ctrl+z", control_z_stops_and_the_panels_come_back),
    ("Ctrl+q", screen::a_tiny_terminal_says_so_and_a_larger_one_goes_on),
];

const LISTS: &[KeyCase] = &[
    ("/", hooks::a_filter_begins_with_all_hooks_and_takes_pasted_text),
    ("n", n_and_p_turn_the_pages_of_the_details),
    ("p", n_and_p_turn_the_pages_of_the_details),
    ("g", g_reads_the_list_anew),
    ("Esc", zero_escape_and_control_c_leave_a_panel),
    ("0", zero_escape_and_control_c_leave_a_panel),
    ("Up", the_cursor_goes_where_the_keys_and_the_mouse_put_it),
    ("Down", the_cursor_goes_where_the_keys_and_the_mouse_put_it),
    ("Home", the_cursor_goes_where_the_keys_and_the_mouse_put_it),
    ("End", the_cursor_goes_where_the_keys_and_the_mouse_put_it),
    ("Page Up", the_cursor_goes_where_the_keys_and_the_mouse_put_it),
    ("Page Down", the_cursor_goes_where_the_keys_and_the_mouse_put_it),
    ("Ctrl+c", hooks::control_c_interrupts_a_test),
];

/// What only the panel of this number shows.
const MARKS: [&str; 6] =
    ["approval ask", "W withdraw trust", "L logs", "I install", "B refused ones only", "F fix what is safe"];

fn panels(lab: &Lab) -> Pty {
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    let mut panels = lab.pty(LARGE, &["tui", "--model", "replay:../talk.jsonl"]);
    panels.sees(MARKS[0]);
    panels
}

/// Forty hooks, with the cursor on the first of them.
fn many(size: Size) -> (Lab, Pty) {
    let lab = Lab::new();
    let hooks: Vec<_> =
        (0..40).map(|at| json!({"name": format!("h{at:02}"), "command": "sh", "args": ["h.sh"]})).collect();
    lab.user("h.sh", "exit 0\n");
    lab.user("many.json", json!({"hooks": {"before_tool": hooks}}).to_string());
    let mut panel = lab.pty(size, &["tui", "--panel", "hooks"]);
    panel.sees("Exit");
    panel.types("/h\r").sees("/h ");
    panel.sees("● h00");
    panel.types("\x1b[H").sees("Enter leaves this panel");
    panel.types("\x1b[B").sees("┌ h00 ─");
    (lab, panel)
}

#[test]
fn every_key_has_a_case() {
    let (_, lines) = RECORD.rsplit_once("---\n").unwrap();
    let recorded: BTreeSet<String> = lines.lines().map(str::to_owned).collect();
    let case =
        |(place, keys): (&'static str, &'static [KeyCase])| keys.iter().map(move |(key, _)| format!("{place}: {key}"));
    let cases: BTreeSet<String> = PLACES.into_iter().flat_map(case).collect();
    assert_eq!(recorded, cases);
}

#[test]
fn keys_with_numbers_turn_to_their_panel() {
    let lab = Lab::new();
    let mut panels = panels(&lab);
    let functions = ["\x1bOP", "\x1bOQ", "\x1bOR", "\x1bOS", "\x1b[15~", "\x1b[17~"];
    for (at, mark) in MARKS.iter().enumerate().rev() {
        panels.types(functions[at]).sees(mark);
    }
    for (at, mark) in MARKS.iter().enumerate().rev() {
        panels.types(&format!("\x1b{}", at + 1)).sees(mark);
    }
    panels.types("\x1b[109;5u").sees(MARKS[2]);
    // In the chat a digit is text.
    for number in [4, 5, 6, 2, 3, 1] {
        panels.types(&number.to_string()).sees(MARKS[number - 1]);
    }
    leave(panels);
}

#[test]
fn tab_turns_through_all_panels_and_back() {
    let lab = Lab::new();
    let mut panels = panels(&lab);
    for mark in MARKS.iter().skip(1).chain(MARKS.first()) {
        panels.types("\t").sees(mark);
    }
    for mark in MARKS.iter().rev() {
        panels.types("\x1b[Z").sees(mark);
    }
    leave(panels);
}

#[test]
fn the_help_opens_and_closes() {
    let lab = Lab::new();
    let mut panels = panels(&lab);
    for key in ["?", "\x1b[24~"] {
        panels.types(key).sees("Everywhere");
        panels.types("\x1b").sees_no_more("Everywhere");
    }
    leave(panels);
}

#[test]
fn control_l_draws_everything_anew() {
    let lab = Lab::new();
    let mut panels = panels(&lab);
    panels.types("\x0c").waits_for("\x1b[2J").waits_for("approval ask");
    leave(panels);
}

#[test]
fn control_z_stops_and_the_panels_come_back() {
    let lab = Lab::new();
    let mut panels = panels(&lab);
    panels.types("kept").sees("> kept");
    panels.types("\x1a").waits_for("\x1b[?1049l");
    panels.waits_for_stop();
    panels.continues("\x1b[?1049h").sees("> kept");
    leave(panels);
}

#[test]
fn zero_escape_and_control_c_leave_a_panel() {
    let lab = Lab::new();
    let mut panels = panels(&lab);
    for key in ["0", "\x1b", "\x03"] {
        for number in 2..=6 {
            panels.types(&format!("\x1b{number}")).sees(MARKS[number - 1]);
            panels.types(key).sees(MARKS[0]);
        }
    }
    // Enter on the first row leaves as well.
    panels.types("\x1b2").sees(MARKS[1]);
    panels.types("\x1b[H\r").sees(MARKS[0]);
    leave(panels);
}

#[test]
fn n_and_p_turn_the_pages_of_the_details() {
    let (_lab, mut panel) = many(Size { rows: 12, columns: 100 });
    panel.sees("name        h00");
    panel.types("n").sees_no_more("name        h00");
    panel.types("p").sees("name        h00");
    leave(panel);
}

#[test]
fn g_reads_the_list_anew() {
    let lab = Lab::new();
    lab.run(&["connect", "claude"]);
    let mut panel = lab.pty(LARGE, &["tui", "--panel", "doctor"]);
    panel.sees("✓ agents: ");
    // What the doctor looks at is not followed.
    let file = lab.home.join(".claude/settings.json");
    let right = fs::read_to_string(&file).unwrap();
    fs::write(&file, right.replace(crate::lab::OLLM, "/nowhere/ollm")).unwrap();
    panel.types("?").sees("Everywhere");
    panel.types("\x1b").sees_no_more("Everywhere");
    panel.sees("✓ agents: ");
    panel.types("g").sees("! agents: ");
    leave(panel);
}

#[test]
fn the_cursor_goes_where_the_keys_and_the_mouse_put_it() {
    let (lab, mut panel) = many(Size { rows: 24, columns: 100 });
    let switched = |panel: &mut Pty, name: &str| {
        panel.sees(&format!("┌ {name} ─"));
        panel.types("\r").sees(&format!("○ {name}"));
        let switches = fs::read_to_string(lab.home.join(".ollm/state/switches.json")).unwrap();
        assert!(switches.contains(&format!(":{name}")), "{name} is not in {switches}");
    };
    panel.types("\x1b[B\x1b[B");
    switched(&mut panel, "h02");
    panel.types("\x1b[A");
    switched(&mut panel, "h01");
    panel.types("\x1b[F");
    switched(&mut panel, "h39");
    panel.types("\x1b[5~");
    let shown = panel.sees_no_more("┌ h39 ─");
    let (_, above) = shown.split_once("┌ h").unwrap();
    switched(&mut panel, &format!("h{}", &above[..2]));
    panel.types("\x1b[6~").sees("┌ h39 ─");
    panel.types("\r").sees("● h39");
    panel.types("\x1b[H\x1b[B\x1b[B\x1b[B\x1b[B");
    switched(&mut panel, "h03");
    panel.types("\x1b[<65;5;5M");
    switched(&mut panel, "h04");
    panel.types("\x1b[<64;5;5M").sees("┌ h03 ─");
    // The fourth row of the screen is that of the first hook: tabs, title, Exit and a category are above it.
    panel.types("\x1b[H").sees("Enter leaves this panel");
    panel.types("\x1b[<0;5;5M").sees("┌ h00 ─");
    switched(&mut panel, "h00");
    panel.types("\x1b[<0;3;1M").sees("no conversation");
    panel.types("\x11");
    panel.ends();
}

/// What was typed before a question was on the screen answers none of them.
#[test]
fn what_is_typed_ahead_removes_and_installs_nothing() {
    let lab = hooks::lab();
    let mut panel = hooks::panel(&lab);
    choose(&mut panel, "own");
    panel.types("dw\rw\r").sees("[w]ith its files");
    assert!(lab.home.join(".ollm/hooks/own.json").exists());
    panel.types("\x1b").sees("stays, because you did not say yes");
    leave(panel);
    mcp::typed_ahead();
    extensions::typed_ahead();
}
