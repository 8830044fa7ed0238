//! What holds for all panels: sizes, signals, the terminal on every way out.

use serde_json::json;

use super::leave;
use crate::lab::pty::{LARGE, Pty, Size, USUAL};
use crate::lab::{Lab, OLLM, eventually, python};

#[test]
fn without_a_terminal_the_panels_say_what_else_there_is() {
    let lab = Lab::new();
    let ran = lab.run(&["tui"]);
    assert!(ran.code == 64 && ran.stderr.contains("ollm chat") && ran.stdout.is_empty(), "{ran:?}");
}

#[test]
pub(super) fn a_tiny_terminal_says_so_and_a_larger_one_goes_on() {
    let lab = Lab::new();
    let mut panels = lab.pty(Size { rows: 5, columns: 20 }, &["tui", "--panel", "hooks"]);
    panels.sees("too small");
    panels.resize(Size { rows: 12, columns: 40 });
    panels.sees("Exit");
    for step in 0..200 {
        panels.resize(Size { rows: 1 + step % 40, columns: 1 + (step * 7) % 120 });
    }
    panels.resize(USUAL);
    panels.sees("Exit");
    panels.types("\x11");
    assert_eq!(panels.ends().code, 0);
}

#[test]
fn signals_end_the_panels_with_the_terminal_as_it_was() {
    for (signal, code) in [(15, 143), (1, 129), (2, 130), (3, 131), (10, 138), (14, 142)] {
        let lab = Lab::new();
        let mut panels = lab.pty(USUAL, &["tui", "--panel", "hooks"]);
        panels.sees("Exit");
        panels.signal(signal);
        let ran = panels.ends();
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.has_restored(), "{ran:?}");
    }
}

#[test]
fn a_stopped_program_leaves_the_terminal_and_comes_back() {
    let lab = Lab::new();
    let mut panels = lab.pty(USUAL, &["tui", "--panel", "hooks"]);
    panels.sees("Exit");
    panels.signal(20);
    panels.waits_for("\x1b[?1049l");
    panels.continues("\x1b[?1049h").sees("Exit");
    panels.types("\x11");
    assert_eq!(panels.ends().code, 0);
}

#[test]
fn a_stop_in_the_middle_of_a_question_and_of_a_tool_loses_neither() {
    let lab = Lab::new();
    let wait = "while [ ! -e open ]; do sleep 0.01; done";
    let call = json!({"tool_calls": [{"id": "1", "name": "shell", "arguments": {"command": wait}}]});
    lab.write("talk.jsonl", format!("{call}\n{}\n", json!({"content": "done"})));
    let mut panels = lab.pty(LARGE, &["tui", "--model", "replay:../talk.jsonl"]);
    panels.sees("approval ask");
    panels.types("go\r").sees("May it run?");
    let stops = |panels: &mut Pty| {
        panels.signal(20);
        panels.waits_for("\x1b[?1049l").waits_for_stop();
        panels.continues("\x1b[?1049h");
    };
    stops(&mut panels);
    panels.sees("May it run?");
    panels.types("y\r").sees("tool shell · ");
    stops(&mut panels);
    panels.sees("tool shell · ");
    lab.write("project/open", "");
    panels.sees("done");
    leave(panels);
}

#[test]
fn who_kills_the_panels_starts_them_again_without_a_trace_of_it() {
    let lab = Lab::new();
    lab.write(
        "talk.jsonl",
        "{\"tool_calls\": [{\"id\": \"1\", \"name\": \"shell\", \"arguments\": {\"command\": \"sleep 1000\"}}]}\n",
    );
    let arguments = ["tui", "--model", "replay:../talk.jsonl", "--approval", "yolo"];
    let mut panels = lab.pty(LARGE, &arguments);
    panels.sees("approval yolo");
    panels.types("go\r").sees("tool shell");
    panels.signal(9);
    let ran = panels.ends();
    assert!(ran.code != 0 && ran.has_restored(), "{ran:?}");
    lab.assert_nobody_is_left();
    let mut panels = lab.pty(LARGE, &arguments);
    panels.sees("approval yolo");
    panels.types("\x1b3").sees("0 servers");
    leave(panels);
    let ran = lab.run(&["mcp", "status", "--json"]);
    assert!(ran.code == 0 && ran.stderr.is_empty(), "{ran:?}");
}

/// Kills a program that runs on a terminal, and sees that the terminal is restored.
#[cfg(target_os = "linux")]
fn killed(lab: &Lab, arguments: &str, used: impl FnOnce(&mut Pty)) {
    let script = format!("\"$0\" {arguments}; until stty -a | grep -q ' icanon'; do :; done; stty -a; echo over");
    let mut shell = Pty::start(lab.program(python().to_str().unwrap()), LARGE, &["sh", "-c", &script, OLLM]);
    shell.sees("Exit");
    let child = |process: &str| {
        let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
        children.split_whitespace().next().map(str::to_owned)
    };
    let panels = child(&shell.process().to_string()).unwrap();
    eventually("the second process is started, after the first frame", || child(&panels).is_some());
    used(&mut shell);
    assert!(lab.program("kill").args(["-9", &panels]).status().unwrap().success());
    shell.waits_for("\x1b[?1049l").waits_for("isig icanon").waits_for(" echo ").waits_for("over");
    assert!(shell.ends().has_restored());
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_program_leaves_a_terminal_on_which_one_can_type() {
    killed(&Lab::new(), "tui --panel hooks", |_| {});
}

#[test]
#[cfg(target_os = "linux")]
fn a_command_of_the_model_does_not_end_what_gives_the_terminal_back() {
    let lab = Lab::new();
    let call = json!({"tool_calls": [{"id": "1", "name": "shell", "arguments": {"command": "echo hi"}}]});
    lab.write("talk.jsonl", format!("{call}\n{}\n", json!({"content": "it is done"})));
    killed(&lab, "tui --panel hooks --model replay:../talk.jsonl --approval yolo", |panels| {
        panels.types("\x1b1").sees("approval yolo");
        panels.types("go\r").sees("it is done");
    });
}

#[test]
fn a_terminal_that_can_show_no_panels_gets_the_plain_chat() {
    let lab = Lab::new();
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    let command = ["env", "TERM=dumb", OLLM, "tui", "--model", "replay:../talk.jsonl"];
    let mut chat = Pty::start(lab.program(python().to_str().unwrap()), USUAL, &command);
    chat.waits_for("this is the plain\r\nchat").waits_for("Ctrl-D leaves");
    chat.types("\x04");
    let ran = chat.ends();
    assert!(ran.code == 0 && !ran.stdout.contains("\x1b[?1049h"), "{ran:?}");
}

#[test]
fn shift_and_tab_turn_back_from_the_empty_chat() {
    let lab = Lab::new();
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    for key in ["\x1b[Z", "\x1b[9;2u"] {
        let mut panels = lab.pty(USUAL, &["tui", "--model", "replay:../talk.jsonl"]);
        panels.sees("approval ask");
        panels.types(key).sees("F fix");
        leave(panels);
    }
}
