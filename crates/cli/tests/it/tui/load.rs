//! Much of everything: turns, words, keys, hooks; and nothing at all.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::leave;
use crate::lab::Lab;
use crate::lab::pty::{LARGE, Pty, USUAL};

fn chat(lab: &Lab, answers: impl Iterator<Item = String>) -> Pty {
    let lines: Vec<String> = answers.map(|text| json!({"content": text}).to_string()).collect();
    lab.write("talk.jsonl", lines.join("\n") + "\n");
    let mut chat = lab.pty(LARGE, &["tui", "--model", "replay:../talk.jsonl"]);
    chat.sees("approval ask");
    chat
}

/// A number from a line of a file below /proc.
fn field(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_thousand_turns_take_no_more_memory_than_a_hundred() {
    const TURNS: usize = 1000;
    let lab = Lab::new();
    let mut chat = chat(&lab, (0..TURNS).map(|turn| format!("answer {turn}.")));
    let status = format!("/proc/{}/status", chat.process());
    let mut early = 0;
    for turn in 0..TURNS {
        chat.types("go\r").sees(&format!("answer {turn}."));
        if turn == TURNS / 10 {
            early = field(&status, "VmRSS:");
        }
    }
    let late = field(&status, "VmRSS:");
    assert!(late < early + (24 << 10), "{early} kB after a tenth of the turns, {late} kB at the end");
    leave(chat);
}

#[test]
fn a_megabyte_in_one_line_is_shown_and_keys_still_count() {
    let lab = Lab::new();
    let mut chat = chat(&lab, [format!("{} the end", "x\u{1b}[31m".repeat(1 << 17))].into_iter());
    chat.types("go\r").sees("the end");
    chat.types("still here").sees("> still here");
    chat.types("\x1b[5~").sees("there is more below");
    chat.types("\x1b").sees("the end");
    leave(chat);
}

#[test]
#[cfg(target_os = "linux")]
fn nobody_wakes_the_panels_while_nothing_happens() {
    let lab = Lab::new();
    let mut panels = lab.pty(USUAL, &["tui", "--panel", "hooks"]);
    panels.sees("self-protection");
    let process = panels.process();
    let main = format!("/proc/{process}/task/{process}/status");
    // Whatever was under way has ended when a key was taken and drawn.
    panels.types("?").sees("Everywhere");
    panels.types("?").sees_no_more("Everywhere");
    let quiet = (0..100).any(|_| {
        let before = field(&main, "voluntary_ctxt_switches:");
        thread::sleep(Duration::from_secs(1));
        field(&main, "voluntary_ctxt_switches:") == before
    });
    assert!(quiet, "the panels are woken every second");
    leave(panels);
}

#[test]
fn ten_thousand_hooks_are_listed_and_switched() {
    let lab = Lab::new();
    let hooks: Vec<_> =
        (0..10_000).map(|at| json!({"name": format!("h{at:05}"), "command": "sh", "args": ["h.sh"]})).collect();
    lab.user("h.sh", "exit 0\n");
    lab.user("many.json", json!({"hooks": {"before_tool": hooks}}).to_string());
    let mut panels = lab.pty(USUAL, &["tui", "--panel", "hooks"]);
    panels.sees("h00000");
    panels.types("\x1b[F").sees("h09999");
    panels.types("\r").sees("○ h09999");
    let switches = fs::read_to_string(lab.home.join(".ollm/state/switches.json")).unwrap_or_default();
    assert!(switches.contains("h09999"), "{switches}");
    leave(panels);
}
