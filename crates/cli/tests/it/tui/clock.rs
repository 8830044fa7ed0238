//! A clock that jumps while the panels are in use: they look at none that people can set.

use std::process::Command;

use serde_json::json;

use super::leave;
use crate::lab::Lab;
use crate::lab::pty::LARGE;

/// Ten years ahead where one file exists, ten years back where another does.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(clock, now);
    if (done == 0 && clock == CLOCK_REALTIME) {
        if (access(FOLDER "/ahead", F_OK) == 0) now->tv_sec += 315360000;
        if (access(FOLDER "/back", F_OK) == 0) now->tv_sec -= 315360000;
    }
    return done;
}
"#;

/// A library that has the clock of a program jump when files appear in the lab.
fn shim(lab: &Lab) -> String {
    lab.write("shim.c", SHIM);
    let library = lab.root.join("shim.so");
    let folder = format!("-DFOLDER=\"{}\"", lab.root.display());
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", &folder, "-o"])
        .args([&library, &lab.root.join("shim.c")])
        .arg("-ldl")
        .status();
    assert!(made.unwrap().success());
    library.to_str().unwrap().to_owned()
}

/// The number of seconds that the status line counts.
fn seconds(shown: &str) -> u64 {
    let line = shown.lines().find(|line| line.contains(" s · Ctrl-C interrupts")).unwrap();
    let before = line.split(" s · Ctrl-C").next().unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

fn jumps(lab: &Lab, way: &str) {
    for other in ["ahead", "back"] {
        let _ = std::fs::remove_file(lab.root.join(other));
    }
    lab.write(way, "");
}

/// The year that the program believes in, by the newest event of the trace.
fn year(lab: &Lab) -> u32 {
    let trace = std::fs::read_to_string(lab.trace_file()).unwrap();
    let newest = trace.lines().last().unwrap();
    let line: serde_json::Value = serde_json::from_str(newest).unwrap();
    line["time"].as_str().unwrap()[..4].parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_clock_that_jumps_changes_nothing_but_the_times_that_are_written_down() {
    let lab = Lab::new();
    lab.user_hook("before_tool", "own", "exit 0\n", "");
    let call = |command: &str| json!({"tool_calls": [{"id": "1", "name": "shell", "arguments": {"command": command}}]});
    let wait = "while [ ! -e open ]; do sleep 0.01; done";
    let answers = [call(wait), json!({"content": "one."}), call("touch ran"), json!({"content": "two."})];
    lab.write("talk.jsonl", answers.map(|answer| format!("{answer}\n")).concat());
    let library = shim(&lab);
    let lab = lab.set("LD_PRELOAD", &library);
    let mut chat = lab.pty(LARGE, &["tui", "--model", "replay:../talk.jsonl"]);
    chat.sees("approval ask");
    chat.types("go\r").sees("May it run?");
    jumps(&lab, "ahead");
    chat.types("y\r");
    let shown = chat.sees("tool shell · ");
    assert!(seconds(&shown) < 1000, "{shown}");
    jumps(&lab, "back");
    let shown = chat.types("typed meanwhile").sees("> typed meanwhile");
    assert!(seconds(&shown) < 1000, "{shown}");
    std::fs::write(lab.project.join("open"), "").unwrap();
    chat.sees("one.");
    let back = year(&lab);
    jumps(&lab, "ahead");
    chat.types("\r").sees("May it run?");
    chat.types("y\r").sees("two.");
    assert!(lab.project.join("ran").exists());
    assert!(year(&lab) >= back + 19, "the clock did jump: {back}, {}", year(&lab));
    chat.types("\x1b5").sees("before_tool shell");
    leave(chat);
}
