//! The question a person is asked before a hook may run, on a terminal made for the test.

use std::fs;
use std::process::Command;

use crate::lab::pty::{Pty, Size, WHOLE, keys, typed};
use crate::lab::{Lab, OLLM, Ran, finish, python, shell_event};

const ID: &str = "workspace:guest.json:before_tool:guest";

/// Runs a command on a terminal of its own, and answers its first question.
pub(crate) fn on_a_terminal(lab: &Lab, answer: &str, arguments: &[&str]) -> Ran {
    driven(lab.program(python().to_str().unwrap()), answer, arguments)
}

/// The same with a Python that has been given its surroundings.
pub(crate) fn driven(python: Command, answer: &str, arguments: &[&str]) -> Ran {
    let command: Vec<&str> = std::iter::once(OLLM).chain(arguments.iter().copied()).collect();
    let mut pty = Pty::start(python, WHOLE, &command);
    if pty.comes(&["[N]o: ", "[y/N] ", "Ctrl-D leaves"]).is_some() {
        pty.types(&keys(answer));
    }
    pty.ends()
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
fn what_takes_long_shows_a_sign_on_a_terminal_only() {
    let lab = Lab::new();
    lab.user_hook("before_tool", "slow", "sleep 1; printf '{\"continue\": true}'\n", "");
    let shown = on_a_terminal(&lab, "", &["hook", "test", "slow"]).stdout;
    let (sign, answer) = shown.split_once("running the hook").unwrap_or_else(|| panic!("{shown:?}"));
    assert!(!sign.contains("slow") && answer.contains("slow"), "{shown:?}");
    // What waits for a change works at nothing.
    let mut pty = lab.pty(WHOLE, &["hook", "test", "slow", "--watch"]);
    assert!(pty.comes(&["Ctrl-C ends"]).is_some());
    pty.types("\u{3}");
    let shown = pty.ends().stdout;
    let (_, waiting) = shown.split_once("Ctrl-C ends").unwrap();
    assert!(!waiting.contains("running the hook"), "{waiting:?}");
    let ran = lab.run(&["hook", "test", "slow"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    assert!(!ran.stdout.contains("running the hook") && !ran.stdout.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn states_have_colours_on_a_terminal_and_nowhere_else() {
    let lab = lab("exit 0\n");
    let shown = on_a_terminal(&lab, "", &["hook", "list"]).stdout;
    assert!(shown.contains("\u{1b}[32mtrusted\u{1b}[0m"), "{shown:?}");
    assert!(shown.contains("\u{1b}[33muntrusted\u{1b}[0m"), "{shown:?}");
    assert!(!lab.run(&["hook", "list"]).stdout.contains('\u{1b}'));
    let plain = lab.set("NO_COLOR", "1");
    assert!(!on_a_terminal(&plain, "", &["hook", "list"]).stdout.contains("\u{1b}[3"));
}

/// A lab in which there is something to tell in every command.
fn told_of() -> Lab {
    let lab = lab("exit 0\n");
    let words =
        "because the person who wrote it has many words for it and each of them must be read by those who are refused";
    lab.user_hook(
        "before_tool",
        "a-hook-with-a-rather-long-name",
        &format!("printf '{{\"continue\": false, \"reason\": \"{words}\"}}'"),
        "",
    );
    lab.user("broken.json", r#"{"hooks": {"before_tool": [{"name": "c", "comand": "/bin/true"}]}}"#);
    lab.write("home/.ollm/config.yaml", "trace: {payload: full}\n");
    lab.event(shell_event("ls"));
    lab
}

#[test]
fn what_is_printed_fits_every_terminal() {
    let lab = told_of();
    let commands: &[&[&str]] = &[
        &["trace"],
        &["trace", "last"],
        &["trace", "stats"],
        &["explain", "before_tool"],
        &["explain", "a-hook-with-a-rather-long-name"],
        &["doctor"],
        &["hook", "plan", "before_tool"],
        &["hook", "show", "a-hook-with-a-rather-long-name"],
        &["hook", "list"],
        &["hook", "edit", "a-hook-with-a-rather-long-name", "timeout=5s"],
        &["hook", "disable", "a-hook-with-a-rather-long-name"],
        &["config", "path"],
        &["completions", "install", "bash"],
        &["replay"],
        &["replay", "--help"],
        &["--help"],
    ];
    for columns in [20, 40, 80] {
        for command in commands {
            let shown = lab.pty(Size { rows: 500, columns }, command).ends().stdout;
            let shown = vt(&shown);
            for line in shown.lines().filter(|line| line.chars().count() > usize::from(columns)) {
                // What cannot be broken, because it is copied, is alone in its line.
                let text = line.trim_start_matches([' ', '`', '(', '|', '[']);
                let is_one = !text.contains(' ') || text.matches('`').count() >= 1;
                assert!(is_one, "{command:?} at {columns}: {line:?} of\n{shown}");
            }
        }
    }
    let mut pages = lab.pty(Size { rows: 8, columns: 20 }, &["hook", "trust", "guest"]);
    pages.waits_for("unread: ").types("q\r");
    let left = vt(&pages.ends().stdout);
    assert!(left.contains(" rows\n  were not shown.\n") && left.contains("What was not\n"), "{left}");
    let help = vt(&lab.pty(Size { rows: 500, columns: 100 }, &["replay", "--help"]).ends().stdout);
    assert!(!help.lines().any(|line| line.ends_with("a box that only")), "{help}");
}

#[test]
fn what_is_wrong_with_a_text_is_shown_at_its_place_wherever_it_is_told() {
    let lab = told_of();
    let place = |shown: &str, line: &str, under: char| {
        let shown = vt(shown);
        let lines: Vec<&str> = shown.lines().collect();
        let at = lines.iter().position(|shown| shown.contains(line)).unwrap_or_else(|| panic!("{line}: {shown}"));
        let caret = lines[at + 1].find('^').unwrap_or_else(|| panic!("{shown}"));
        assert_eq!(lines[at].chars().nth(caret), Some(under), "{shown}");
    };
    for command in [&["hook", "plan", "before_tool"] as &[&str], &["doctor"], &["connect", "claude"]] {
        place(&on_a_terminal(&lab, "", command).stdout, "\"comand\"", '{');
        let told = lab.run(command);
        assert!(!told.stderr.contains('^') && !told.stdout.contains('^'), "{told:?}");
    }
    lab.user("broken.json", r#"{"hooks": {"before_tool": [{"name": "c", "command": "/bin/true", "if": "1 == )"}]}}"#);
    place(&on_a_terminal(&lab, "", &["hook", "plan", "before_tool"]).stdout, "\"if\"", ')');
    for command in [
        &["emit", "mine", "--data", "{\"a\": x}"] as &[&str],
        &["hook", "plan", "before_tool", "--data", "{\"a\": x}"],
        &["hook", "test", "guest", "--data", "{\"a\": x}"],
        &["mcp", "call", "server", "tool", "--args", "{\"a\": x}"],
    ] {
        place(&on_a_terminal(&lab, "", command).stdout, "1 | {\"a\": x}", 'x');
        assert!(!lab.run(command).stderr.contains('^'), "{command:?}");
    }
    let run = on_a_terminal(&lab, "", &["hook", "run", "before_tool", "--data", "{\"a\": x}"]);
    assert!(!run.stdout.contains('^'), "other programs read these lines: {run:?}");
}

/// The text without styles.
fn vt(text: &str) -> String {
    let styles = regex_lite::Regex::new("\u{1b}\\[[0-9;?]*[A-Za-z]").unwrap();
    styles.replace_all(text, "").replace('\r', "")
}

#[test]
fn what_people_read_has_colours_on_a_terminal_and_nowhere_else() {
    let lab = told_of();
    for command in [&["doctor"] as &[&str], &["hook", "plan", "before_tool"], &["trace", "last", "--blocked"]] {
        assert!(on_a_terminal(&lab, "", command).stdout.contains("\u{1b}[31m"), "{command:?}");
        assert!(!lab.run(command).stdout.contains('\u{1b}'), "{command:?}");
    }
}

#[test]
fn a_letter_or_its_word_approves_what_was_shown() {
    for answer in ["a\\n", "A\\n", "always\\n"] {
        let lab = lab("touch canary\n");
        let ran = on_a_terminal(&lab, answer, &["hook", "trust", ID]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains("touch canary"), "the script is shown: {}", ran.stdout);
        assert!(runs(&lab), "{answer}");
    }
}

#[test]
fn anything_else_approves_nothing() {
    for answer in ["n\\n", "\\n", "no\\n", "y\\n", "yes\\n", "alwayss\\n", "\\x04"] {
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
    insta::assert_snapshot!(lab.screen(&on_a_terminal(&lab, "a\\n", &["hook", "trust", ID])));
}

#[test]
fn the_question_of_an_agent_shows_all_that_decides_what_runs() {
    let lab = lab("touch canary\n");
    let more = r#", "env": {"BASH_ENV": "./evil.sh\u001b[2J"}, "passEnv": ["GITHUB_TOKEN"], "cwd": "sub", "inputs": ["evil.sh"]"#;
    lab.workspace("evil.sh", "touch canary\n");
    lab.workspace("guest.json", crate::lab::hook_file("before_tool", "guest", more));
    let call = r#"{"tool_calls": [{"id": "1", "name": "list_dir", "arguments": {"path": "."}}]}"#;
    lab.write("talk.jsonl", format!("{call}\n{{\"content\": \"done\"}}\n"));
    let ran = on_a_terminal(&lab, "n\\n", &["run", "do it", "--model", "replay:../talk.jsonl"]);
    let (question, _) = ran.stdout.split_once("[N]o: ").unwrap();
    for part in ["touch canary", "BASH_ENV=", "./evil.sh", "GITHUB_TOKEN, passed on", "sub", "sha256:"] {
        assert!(question.contains(part), "{part} is not in {question}");
    }
    assert!(!question.contains("\u{1b}[2J"), "{question:?}");
    assert!(!lab.project.join("canary").exists());
}

#[test]
fn what_a_script_holds_cannot_repaint_the_screen() {
    let lab = lab("touch canary # \u{1b}[2J\u{1b}[1;1Hharmless \u{202e}txt\r\u{8}\u{200b}\n");
    lab.workspace("\u{1b}[31mred.sh", "touch canary\n");
    lab.workspace("red.json", "{\"hooks\": {\"before_tool\": [{\"name\": \"red\\u001b[0m\", \"id\": \"red\", \"command\": \"sh\", \"args\": [\"\\u001b[31mred.sh\"]}]}}");
    for id in [ID, "red"] {
        let ran = on_a_terminal(&lab, "n\\n", &["hook", "trust", id]);
        assert!(ran.stdout.contains(r"\u{1b}["), "{}", ran.stdout);
        // Our own error is in colour, after all that the hook could show.
        let (shown, _) = ran.stdout.split_once("\u{1b}[1;31merror").unwrap();
        for hidden in ['\u{1b}', '\u{202e}', '\u{8}', '\u{200b}'] {
            assert!(!shown.contains(hidden), "{shown:?}");
        }
    }
}

#[test]
fn what_an_agent_or_a_hook_starts_cannot_answer_in_the_persons_place() {
    let lab = Lab::new();
    let reach = "(: < /dev/tty) 2>/dev/null && touch reached; touch ran";
    lab.user_hook("before_agent", "reacher", &reach.replace("ran", "hook-ran"), "");
    let call = serde_json::json!({"tool_calls": [{"id": "1", "name": "shell", "arguments": {"command": reach}}]});
    lab.write("talk.jsonl", format!("{call}\n{{\"content\": \"done\"}}\n"));
    let ran = on_a_terminal(&lab, "", &["run", "do it", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let there = ["ran", "hook-ran", "reached"].map(|name| lab.project.join(name).exists());
    assert_eq!(there, [true, true, false]);
}

#[test]
fn a_pager_or_editor_that_came_with_the_project_does_not_run() {
    let lab = lab(&format!("touch canary\n{}", "# padding\n".repeat(50)));
    for name in ["less", "edit"] {
        lab.write_executable(&format!("project/bin/{name}"), "#!/bin/sh\ntouch canary\n");
    }
    let tools = lab.root.join("tools");
    fs::create_dir(&tools).unwrap();
    std::os::unix::fs::symlink("/bin/sh", tools.join("sh")).unwrap();
    let lab = lab.set("PATH", &format!("bin:.:{}", tools.display())).set("EDITOR", "edit");
    let ran = on_a_terminal(&lab, "n\\n", &["hook", "trust", ID]);
    assert!(ran.stdout.contains("touch canary"), "{}", ran.stdout);
    assert_ne!(on_a_terminal(&lab, "", &["hook", "edit", ID]).code, 0);
    assert!(!lab.project.join("canary").exists());
}

#[test]
fn a_yes_counts_for_no_script_that_cannot_be_shown() {
    let long = format!("touch canary\n{}", "# padding\n".repeat(120_000));
    for script in [long.as_str(), "touch canary\n\0"] {
        let lab = lab(script);
        for answer in ["a\\n", "o\\n", "s\\n"] {
            let ran = on_a_terminal(&lab, answer, &["hook", "trust", ID]);
            assert!(ran.code == 4 && ran.stdout.contains("not all of it can be shown here"), "{}", ran.stdout);
            assert!(!ran.stdout.contains("[a]lways"), "{}", ran.stdout);
        }
        assert!(!runs(&lab));
        // A person who read the copy approves what was read.
        let ran = on_a_terminal(&lab, "", &["hook", "trust", ID]);
        let copy = ran.stdout.split("read ").nth(1).unwrap().lines().next().unwrap().trim();
        assert!(std::fs::read_to_string(copy).unwrap().contains(script));
        let command = ran.stdout.split("then `ollm ").nth(1).unwrap().split('`').next().unwrap();
        let approved = lab.run(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(approved.code, 0, "{approved:?}: {}", ran.stdout);
        assert!(runs(&lab));
    }
}

#[test]
fn a_long_script_is_shown_whole_before_a_yes_counts() {
    let lab = lab(&format!("touch canary\n{}# the last line\n", format!("# {}\n", "x".repeat(100)).repeat(3000)));
    let mut pty = lab.pty(Size { rows: 5000, columns: 200 }, &["hook", "trust", ID]);
    pty.waits_for("# the last line").waits_for("[a]lways").types("a\n");
    assert_eq!(pty.ends().code, 0);
    assert!(runs(&lab));
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

/// Whether the hook runs in a session.
fn runs_in(lab: &Lab, session: &str) -> bool {
    let data = serde_json::json!({"tool_name": "shell", "session_id": session});
    lab.event(serde_json::json!({"event": "before_tool", "data": data}).to_string());
    fs::remove_file(lab.project.join("canary")).is_ok()
}

#[test]
fn an_approval_for_once_is_used_up_by_one_run() {
    let lab = lab("touch canary\n");
    assert_eq!(on_a_terminal(&lab, "o\\n", &["hook", "trust", ID]).code, 0);
    assert_eq!([runs(&lab), runs(&lab)], [true, false]);
}

#[test]
fn an_approval_for_a_session_belongs_to_the_session_that_meets_it_first() {
    let lab = lab("touch canary\n");
    assert_eq!(on_a_terminal(&lab, "s\\n", &["hook", "trust", ID]).code, 0);
    assert_eq!(["one", "two", "one"].map(|session| runs_in(&lab, session)), [true, false, true]);
    lab.workspace("guest.sh", "touch canary # changed\n");
    assert!(!runs_in(&lab, "one"));
}

#[test]
fn what_changed_since_the_last_approval_is_shown_as_a_difference() {
    let lab = lab("touch canary\necho one >&2\n");
    assert_eq!(on_a_terminal(&lab, "a\\n", &["hook", "trust", ID]).code, 0);
    lab.workspace("guest.sh", "touch canary\necho two >&2\n");
    let ran = on_a_terminal(&lab, "n\\n", &["hook", "trust", ID]);
    assert!(ran.stdout.contains("-echo one >&2\n+echo two >&2\n"), "{}", ran.stdout);
    assert!(!runs(&lab));
}

#[test]
fn all_that_wait_are_approved_by_one_answer() {
    let lab = lab("touch canary\n");
    lab.workspace_hook("before_tool", "other", "touch other\n", "");
    let ran = on_a_terminal(&lab, "y\\n", &["hook", "trust", "--all"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(runs(&lab) && lab.project.join("other").exists());
    let listed: serde_json::Value =
        serde_json::from_str(&lab.run(&["hook", "trust", "--list", "--json"]).stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().iter().filter(|one| one["state"] == "current").count(), 2);
    lab.workspace("other.sh", "touch other # changed\n");
    assert!(lab.run(&["hook", "trust", "--list"]).stdout.contains("modified"));
    assert_eq!(lab.run(&["hook", "untrust", "--all"]).code, 0);
    assert!(!runs(&lab));
}

/// A task whose model wants to write a file.
fn task(lab: &Lab) -> [&'static str; 4] {
    let write = r#"{"tool_calls": [{"name": "write_file", "arguments": {"path": "canary", "content": "x"}}]}"#;
    lab.write("talk.jsonl", format!("{write}\n{{\"content\": \"done\"}}\n"));
    ["run", "do it", "--model", "replay:../talk.jsonl"]
}

#[test]
fn a_tool_call_waits_for_the_persons_answer() {
    for (answer, written) in [("y\\n", true), ("a\\n", true), ("n\\n", false), ("\\n", false)] {
        let lab = Lab::new();
        let ran = on_a_terminal(&lab, answer, &task(&lab));
        assert_eq!(ran.code, 0, "{ran:?}");
        let (question, _) = ran.stdout.split_once("May it run?").unwrap();
        assert!(
            question.contains("write_file canary") && question.contains("\n\u{1b}[32m+x"),
            "the change is shown: {question}"
        );
        assert_eq!(lab.project.join("canary").exists(), written, "{answer}");
    }
}

#[test]
fn an_untrusted_hook_is_asked_about_when_it_is_about_to_run() {
    for (answer, runs) in [("o\\n", true), ("s\\n", true), ("n\\n", false)] {
        let lab = Lab::new();
        lab.workspace_hook("before_agent", "guest", "touch ../ran; echo '{\"continue\": true}'", "");
        lab.write("talk.jsonl", r#"{"content": "done"}"#);
        let ran = on_a_terminal(&lab, answer, &["run", "do it", "--model", "replay:../talk.jsonl"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains("touch ../ran"), "the script is shown: {}", ran.stdout);
        assert_eq!(lab.root.join("ran").exists(), runs, "{answer}: {ran:?}");
    }
}

#[test]
fn control_c_interrupts_the_turn_and_not_the_chat() {
    let lab = Lab::new();
    let sleep = r#"{"tool_calls": [{"name": "shell", "arguments": {"command": "echo up > started; sleep 1000"}}]}"#;
    lab.write("talk.jsonl", format!("{sleep}\n{{\"content\": \"still here\"}}\n"));
    let steps = [r"> =>go\r", r"shell {=>\x03", r"> =>again\r", "still here=>", r"> =>/quit\r"];
    let ran = typed(&lab, &steps, &["chat", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("still here"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("^C"), "the key leaves no mark in what is said: {}", ran.stdout);
    lab.assert_nobody_is_left();
}

#[test]
fn a_long_answer_breaks_between_words() {
    let lab = Lab::new();
    let words = "seventeen letters ".repeat(30);
    lab.write("talk.jsonl", format!("{{\"content\": \"{}\"}}\n", words.trim()));
    let ran = typed(&lab, &[], &["run", "go", "--model", "replay:../talk.jsonl"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().filter(|line| line.contains("seventeen")).collect();
    assert!(lines.len() > 1 && lines.iter().all(|line| line.len() <= 200), "{lines:?}");
    assert!(lines.iter().all(|line| line.starts_with("seventeen") || line.starts_with("letters")), "{lines:?}");
}

/// Asks for a secret on a terminal, ends the program in one way, and prints whether what is typed is shown: before, while
/// it asks, and afterwards.
const WATCHER: &str = r#"
import os, pty, signal, sys, termios
signal.alarm(120)
way, program = sys.argv[1], sys.argv[2:]
terminal, inner = pty.openpty()
shows = lambda: bool(termios.tcgetattr(inner)[3] & termios.ECHO)
seen = [shows()]
pid = os.fork()
if pid == 0:
    os.setsid()
    import fcntl
    fcntl.ioctl(inner, termios.TIOCSCTTY, 0)
    for stream in range(3):
        os.dup2(inner, stream)
    os.execv(program[0], program)
def wait_for(text):
    screen = b""
    while text not in screen:
        screen += os.read(terminal, 65536)
    seen.append(shows())
wait_for(b"): ")
if way == "stop":
    os.kill(pid, signal.SIGTSTP)
    os.waitpid(pid, os.WUNTRACED)
    seen.append(shows())
    os.kill(pid, signal.SIGCONT)
    wait_for(b"): ")
    way = "secret-value\n"
if way.startswith("SIG"):
    os.kill(pid, getattr(signal, way))
else:
    os.write(terminal, way.encode().decode("unicode_escape").encode())
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
seen.append(shows())
print(seen, status)
"#;

#[test]
fn a_question_for_a_secret_leaves_the_terminal_as_it_was_whichever_way_it_ends() {
    let lab = Lab::new().set("OLLM_KEYRING", "off");
    let manifest = r#"{"name": "one", "version": "1.0.0", "description": "d", "settings": [{"name": "pin", "description": "d", "sensitive": true}]}"#;
    lab.write("home/.ollm/extensions/one/manifest.json", manifest);
    for (way, seen) in [
        ("secret-value\\n", "[True, False, True] 0"),
        ("\\x03", "[True, False, True] -2"),
        ("\\x1c", "[True, False, True] -3"),
        ("SIGTERM", "[True, False, True] -15"),
        ("SIGHUP", "[True, False, True] -1"),
        ("stop", "[True, False, True, False, True] 0"),
    ] {
        let mut command: Command = lab.program(python().to_str().unwrap());
        command.args(["-c", WATCHER, way, OLLM, "ext", "set", "one", "pin"]).env("TERM", "xterm-256color");
        command.env("OLLM_QUESTION_GRACE", "0");
        let ran = finish(command, b"");
        assert_eq!(ran.stdout.trim(), seen, "{way}: {ran:?}");
    }
}

#[test]
fn a_line_of_the_chat_outlives_a_stop() {
    let lab = Lab::new();
    lab.write("talk.jsonl", "{\"content\": \"fine\"}\n");
    let mut chat = lab.pty(Size { rows: 24, columns: 80 }, &["chat", "--model", "replay:../talk.jsonl"]);
    chat.waits_for("Ctrl-D leaves").waits_for("> ");
    chat.types("hello").waits_for("hello");
    chat.signal(19);
    chat.waits_for_stop();
    // The shell takes the terminal back as it likes it.
    let terminal = format!("stty sane < /proc/{}/fd/0", chat.process());
    assert!(lab.program("sh").args(["-c", &terminal]).status().unwrap().success());
    chat.continues("> hello").types(" there\x01well \r").waits_for("fine").waits_for("> ").types("\x04");
    assert_eq!(chat.ends().code, 0);
    let sessions = fs::read_dir(lab.home.join(".ollm/sessions")).unwrap();
    let said: String = sessions.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    assert!(said.contains("well hello there"), "{said}");
}
