//! The question a person is asked before a hook may run, on a terminal made for the test.

use std::fs;
use std::process::Command;

use crate::lab::{Lab, OLLM, Ran, finish, python, shell_event};

const ID: &str = "workspace:guest.json:before_tool:guest";

/// Runs a command on a terminal of its own, answers its question, and prints what was on the screen.
const DRIVER: &str = r#"
import os, pty, sys
answer, program = sys.argv[1].encode().decode("unicode_escape").encode(), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(program[0], program)
screen, answered = b"", False
while True:
    try:
        chunk = os.read(terminal, 65536)
    except OSError:
        break
    if not chunk:
        break
    screen += chunk
    if not answered and b"[y/N] " in screen:
        os.write(terminal, answer)
        answered = True
sys.stdout.buffer.write(screen.replace(b"\r\n", b"\n"))
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

fn on_a_terminal(lab: &Lab, answer: &str, arguments: &[&str]) -> Ran {
    let mut command: Command = lab.program(python().to_str().unwrap());
    command.args(["-c", DRIVER, answer, OLLM]).args(arguments).env("TERM", "xterm-256color");
    finish(command, b"")
}

fn lab(script: &str) -> Lab {
    let lab = Lab::new();
    lab.workspace_hook("before_tool", "guest", script, "");
    lab
}

fn runs(lab: &Lab) -> bool {
    lab.event(shell_event("ls"));
    fs::remove_file(lab.project.join("canary")).is_ok()
}

#[test]
fn yes_approves_what_was_shown() {
    for answer in ["y\\n", "Y\\n", "yes\\n"] {
        let lab = lab("touch canary\n");
        let ran = on_a_terminal(&lab, answer, &["hook", "trust", ID]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains("touch canary"), "the script is shown: {}", ran.stdout);
        assert!(runs(&lab), "{answer}");
    }
}

#[test]
fn anything_else_approves_nothing() {
    for answer in ["n\\n", "\\n", "no\\n", "yess\\n", "\\x04"] {
        let lab = lab("touch canary\n");
        let ran = on_a_terminal(&lab, answer, &["hook", "trust", ID]);
        assert_eq!(ran.code, 4, "{answer}: {ran:?}");
        assert!(!runs(&lab), "{answer}");
    }
}

#[test]
fn the_question_as_a_person_sees_it() {
    let lab = lab("touch canary\n");
    lab.workspace("guest.json", crate::lab::hook_file("before_tool", "guest", r#", "env": {"NODE_OPTIONS": "--require ./x.js"}, "passEnv": ["GITHUB_TOKEN"], "cwd": "sub", "inputs": ["guest.json"]"#));
    insta::assert_snapshot!(lab.screen(&on_a_terminal(&lab, "y\\n", &["hook", "trust", ID])));
}

#[test]
fn what_a_script_holds_cannot_repaint_the_screen() {
    let lab = lab("touch canary # \u{1b}[2J\u{1b}[1;1Hharmless \u{202e}txt\r\u{8}\u{200b}\n");
    lab.workspace("\u{1b}[31mred.sh", "touch canary\n");
    lab.workspace("red.json", "{\"hooks\": {\"before_tool\": [{\"name\": \"red\\u001b[0m\", \"id\": \"red\", \"command\": \"sh\", \"args\": [\"\\u001b[31mred.sh\"]}]}}");
    for id in [ID, "red"] {
        let ran = on_a_terminal(&lab, "n\\n", &["hook", "trust", id]);
        assert!(ran.stdout.contains(r"\u{1b}["), "{}", ran.stdout);
        for hidden in ['\u{1b}', '\u{202e}', '\u{8}', '\u{200b}'] {
            assert!(!ran.stdout.contains(hidden), "{:?}", ran.stdout);
        }
    }
}

#[test]
fn a_script_too_long_to_show_is_not_passed_over_in_silence() {
    let lab = lab(&format!("touch canary\n{}", "# padding\n".repeat(10_000)));
    let ran = on_a_terminal(&lab, "n\\n", &["hook", "trust", ID]);
    assert!(ran.stdout.contains("too long to show here"), "{}", ran.stdout);
}

#[test]
fn colours_are_for_terminals_and_can_be_refused() {
    let lab = Lab::new();
    assert!(on_a_terminal(&lab, "", &["demo"]).stdout.contains('\u{1b}'));
    let plain = lab.set("NO_COLOR", "1");
    assert!(!on_a_terminal(&plain, "", &["demo"]).stdout.contains('\u{1b}'));
}

#[test]
fn an_agent_is_refused_on_a_terminal_too() {
    let lab = lab("touch canary\n").set("OLLM_AGENT", "1");
    assert_eq!(on_a_terminal(&lab, "y\\n", &["hook", "trust", ID]).code, 4);
    assert!(!runs(&lab));
}
