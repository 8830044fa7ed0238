//! The log file and `--verbose`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::GO_ON;
use crate::lab::{Lab, shell_event};

fn log(lab: &Lab) -> String {
    fs::read_to_string(lab.home.join(".ollm/log/ollm.log")).unwrap_or_default()
}

#[test]
fn what_people_are_told_is_kept_for_later_and_for_nobody_else() {
    let lab = Lab::new();
    lab.user("broken.json", "{");
    let ran = lab.event(shell_event("ls"));
    let told = ran.stderr.trim_end().strip_prefix("ollm: ").unwrap();
    let log_text = log(&lab);
    assert!(log_text.trim_end().ends_with(told) && log_text.contains(" note ["), "{log_text}");
    let path = lab.home.join(".ollm/log/ollm.log");
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_another_agent_must_not_read_is_in_the_log() {
    let lab = Lab::with_hook("before_tool", "broken", "exit 3");
    let event = r#"{"hook_event_name": "PreToolUse", "tool_name": "shell", "tool_input": {}}"#;
    let ran = lab.event_from("agent", event);
    assert_eq!(ran.stderr, "");
    assert!(log(&lab).contains("user hook `broken` (user:broken.json:before_tool:broken) failed"), "{}", log(&lab));
    let broken = lab.event_from("agent", "{nonsense");
    assert!(broken.code == 2 && !broken.stderr.starts_with("ollm: "), "{broken:?}");
    assert!(log(&lab).contains("ollm cannot judge this event"), "{}", log(&lab));
}

#[test]
fn a_failure_is_logged_and_a_typing_mistake_is_not() {
    let lab = Lab::new();
    assert_eq!(lab.event("{nonsense").code, 3);
    assert_eq!(lab.run(&["hook", "run", "--no-such-option"]).code, 64);
    assert_eq!(lab.run(&["hook", "show", "nobody"]).code, 64);
    assert_eq!(log(&lab).lines().count(), 1, "{}", log(&lab));
    assert!(log(&lab).contains(" error ["));
}

#[test]
fn there_is_no_log_while_there_is_nothing_to_say_or_it_is_switched_off() {
    let lab = Lab::with_hook("before_tool", "fine", GO_ON);
    lab.event(shell_event("ls"));
    assert!(!lab.home.join(".ollm/log").exists());
    let lab = lab.set("OLLM_LOG_LEVEL", "off");
    lab.user("broken.json", "{");
    assert!(!lab.event(shell_event("ls")).stderr.is_empty());
    assert!(!lab.home.join(".ollm/log").exists());
}

#[test]
fn the_log_is_bounded() {
    let lab = Lab::new();
    lab.user("broken.json", "{");
    lab.write("home/.ollm/log/ollm.log", "x\n".repeat(1 << 19));
    lab.write("home/.ollm/log/ollm.log.2", "oldest\n");
    lab.event(shell_event("ls"));
    assert!(log(&lab).len() < 4096);
    let mut names: Vec<_> = fs::read_dir(lab.home.join(".ollm/log")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["ollm.log", "ollm.log.1", "ollm.log.lock"]);
}

#[test]
fn a_hostile_text_is_one_line_of_the_log() {
    let lab =
        Lab::with_hook("before_tool", "forger", "echo '\u{202e}x' >&2; printf 'a\\nollm: fine\\033[2J' >&2; exit 3");
    lab.event(shell_event("ls"));
    let log = log(&lab);
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(!log.contains('\u{202e}') && !log.contains('\u{1b}'), "{log}");
}

#[test]
fn verbose_tells_files_plan_and_times_wherever_it_stands() {
    let lab = Lab::with_hook("before_tool", "fine", GO_ON);
    lab.write("home/.ollm/config.yaml", "hooks:\n  enabled: true\n");
    let data = r#"{"tool_name": "shell"}"#;
    let quiet = lab.run(&["hook", "run", "before_tool", "--data", data]);
    assert_eq!(quiet.stderr, "");
    for arguments in [
        ["-v", "hook", "run", "before_tool", "--data", data],
        ["--verbose", "hook", "run", "before_tool", "--data", data],
        ["hook", "run", "-v", "before_tool", "--data", data],
        ["hook", "run", "before_tool", "--data", data, "--verbose"],
    ] {
        let ran = lab.run(&arguments);
        for part in
            ["config.yaml", "hooks/fine.json: 1 hooks", "plan of before_tool: ", "fine was ok after ", "trace.jsonl"]
        {
            assert!(ran.stderr.contains(part), "{arguments:?}: {part} is not in {}", ran.stderr);
        }
        assert_eq!(ran.answer()["continue"], true);
    }
    assert_eq!(lab.run(&["trace", "list", "-v"]).code, 0);
}
