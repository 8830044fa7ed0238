//! Much of everything: turns, words, keys, hooks; and nothing at all.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::leave;
use crate::lab::pty::{LARGE, Pty, USUAL};
use crate::lab::{Lab, eventually};
use crate::mcp::{USER, declare, server};

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
fn the_second_five_hundred_of_a_thousand_turns_take_little_memory() {
    const TURNS: usize = 1000;
    // What is said is kept: that of the session, and the rows of the screen.
    const MOST: u64 = 4 << 10;
    let lab = Lab::new();
    let mut chat = chat(&lab, (0..TURNS).map(|turn| format!("answer {turn}.")));
    let status = format!("/proc/{}/status", chat.process());
    let mut half = 0;
    for turn in 0..TURNS {
        chat.types("go\r").sees(&format!("answer {turn}."));
        if turn == TURNS / 2 {
            half = field(&status, "VmRSS:");
        }
    }
    let late = field(&status, "VmRSS:");
    eprintln!("{half} kB after half of the turns, {late} kB at the end");
    assert!(late < half + MOST, "{half} kB after half of the turns, {late} kB at the end");
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

/// How often all threads of a process were woken until now.
fn wakeups(process: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap().map(|thread| thread.unwrap().path());
    // That of the notifier hears of every program on the machine that opens a file in a folder we watch, and lets the others sleep.
    let is_ours = |thread: &std::path::PathBuf| {
        fs::read_to_string(thread.join("comm")).is_ok_and(|name| !name.starts_with("notify-rs"))
    };
    let paths = threads.filter(is_ours).map(|thread| thread.join("status"));
    // One that has just ended is woken no more.
    let status = paths.filter_map(|path| fs::read_to_string(path).ok());
    let count = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().to_owned();
        line.parse::<u64>().ok()
    };
    status.filter_map(count).sum()
}

/// Waits for a while in which no thread of the program is woken. A thread that looks every second, or more often,
/// leaves none.
#[cfg(target_os = "linux")]
fn falls_asleep(program: &Pty, what: &str) {
    let process = program.process();
    let is_asleep = (0..30).any(|_| {
        let before = wakeups(process);
        thread::sleep(Duration::from_secs(2));
        wakeups(process) == before
    });
    assert!(is_asleep, "{what}: something looks at the time");
}

/// A lab with a hook that hears of files, and a server.
#[cfg(target_os = "linux")]
fn watched() -> Lab {
    let lab = Lab::new();
    lab.user_hook("file_created", "files", "touch ../heard\n", "");
    declare(&lab, USER, &json!({"mine": server(&[])}));
    lab
}

#[test]
#[cfg(target_os = "linux")]
fn nobody_wakes_the_panels_while_nothing_happens() {
    let lab = watched();
    let mut panels = chat(&lab, ["hello".to_owned()].into_iter());
    panels.types("go\r").sees("hello");
    for number in 1..=6 {
        panels.types(&format!("\x1b{number}"));
        // All earlier work has ended when a key was taken and drawn.
        panels.types("\x1b[24~").sees("Everywhere");
        panels.types("\x1b").sees_no_more("Everywhere");
        falls_asleep(&panels, &format!("panel {number}"));
    }
    lab.write("project/new.txt", "x");
    eventually("hooks hear of a file all the same", || lab.root.join("heard").exists());
    leave(panels);
}

#[test]
#[cfg(target_os = "linux")]
fn nobody_wakes_the_plain_chat_while_nothing_happens() {
    let lab = watched();
    lab.write("talk.jsonl", "{\"content\": \"hello\"}\n");
    let mut chat = lab.pty(LARGE, &["chat", "--model", "replay:../talk.jsonl"]);
    chat.waits_for("> ").types("go\r").waits_for("hello").waits_for("> ");
    falls_asleep(&chat, "the plain chat");
    lab.write("project/new.txt", "x");
    eventually("hooks hear of a file all the same", || lab.root.join("heard").exists());
    chat.types("half a line").waits_for("line");
    falls_asleep(&chat, "a line that is being written");
    chat.signal(15);
    assert_eq!(chat.ends().code, 143);
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
