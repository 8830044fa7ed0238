//! What a hostile text does to a screen, and what a person is shown before they answer.

use std::fs;

use serde_json::{Value, json};

use crate::agent::{call, task, text};
use crate::lab::pty::{Pty, Size, keys};
use crate::lab::{Lab, OLLM, Ran, python, shell_event};
use crate::terminal::on_a_terminal;

const ID: &str = "workspace:guest.json:before_tool:guest";

/// Characters that a terminal obeys, or that reorder what it shows.
const HOSTILE: &str = "a\u{1b}[2J\u{7}\u{7f}\u{9b}2J\u{85}\u{90}x\u{9c}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{200e}\u{200f}\u{61c}z ümlaut 🦀";

/// Whether a text can do anything to a terminal but be shown; colours are those of a table's head.
fn is_obeyed(char: char) -> bool {
    matches!(char, '\u{0}'..='\u{9}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
        || matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn s14_json_on_a_terminal_is_the_same_json_without_what_a_terminal_obeys() {
    let lab = Lab::new();
    let hook = serde_json::json!({"name": "odd", "description": HOSTILE, "command": "sh", "args": ["odd.sh", HOSTILE]});
    lab.user("odd.json", serde_json::json!({"hooks": {"before_tool": [hook]}}).to_string());
    lab.user("odd.sh", format!("printf '{{\"continue\": true, \"systemMessage\": \"{}\"}}'", "\u{9b}2J\u{202e}x"));
    let event = serde_json::json!({"tool_name": "shell", "args": {"command": "ls"}, "note": HOSTILE}).to_string();
    lab.event(shell_event("ls"));
    let id = "user:odd.json:before_tool:odd";
    for arguments in [
        &["hook", "list", "--json"] as &[&str],
        &["hook", "show", id, "--json"],
        &["hook", "plan", "before_tool", "--json"],
        &["hook", "run", "before_tool", "--data", &event],
        &["trace", "last", "--json"],
        &["config", "show", "--json"],
    ] {
        let shown = on_a_terminal(&lab, "", arguments);
        let obeyed: Vec<char> = shown.stdout.chars().filter(|char| is_obeyed(*char)).collect();
        assert_eq!(obeyed, Vec::<char>::new(), "{arguments:?}");
        let from_terminal: Value = serde_json::from_str(&shown.stdout).unwrap_or_else(|_| panic!("{shown:?}"));
        let piped = lab.run(arguments);
        if arguments[1] != "run" && arguments[0] != "trace" {
            assert_eq!(from_terminal, piped.answer(), "{arguments:?}");
        }
        if arguments[1] == "show" && arguments[0] == "hook" {
            assert!(piped.stdout.contains("\u{202e}"), "programs get every character as it is: {arguments:?}");
            assert!(shown.stdout.contains("\\u009b") && shown.stdout.contains("\\u202e"), "{arguments:?}");
        }
    }
}

#[test]
fn s14_lines_on_a_terminal_show_names_of_files_escaped() {
    let lab = Lab::new();
    let project = lab.project.join("odd\u{9b}2J\u{202e}");
    std::fs::create_dir_all(project.join(".git")).unwrap();
    let mut command = lab.program(crate::lab::python().to_str().unwrap());
    command.current_dir(&project);
    let ran = crate::terminal::driven(command, "", &["config", "path"]);
    assert!(ran.stdout.contains("\\u{9b}2J\\u{202e}"), "{ran:?}");
    assert!(!ran.stdout.chars().any(is_obeyed), "{ran:?}");
}

/// What a person does at a terminal.
struct Typing<'a> {
    /// Typed before anything is on the screen.
    ahead: &'a str,
    /// Typed at the end of a page.
    turn: &'a str,
    /// A shell command that runs while the question waits.
    meanwhile: &'a str,
    answer: &'a str,
    rows: u16,
    columns: u16,
}

const TYPING: Typing<'_> = Typing { ahead: "", turn: "\\n", meanwhile: "", answer: "n\\n", rows: 24, columns: 80 };

impl Typing<'_> {
    fn at(&self, lab: &Lab, arguments: &[&str]) -> Ran {
        let command: Vec<&str> = std::iter::once(OLLM).chain(arguments.iter().copied()).collect();
        let size = Size { rows: self.rows, columns: self.columns };
        let relay = lab.program(python().to_str().unwrap());
        let mut pty = Pty::start_typed_ahead(relay, size, &keys(self.ahead), &command);
        while let Some(which) = pty.comes(&["leaves the rest unread: ", "[N]o: ", "[y/N] ", "cancels: "]) {
            if which == 0 {
                pty.types(&keys(self.turn));
                continue;
            }
            if !self.meanwhile.is_empty() {
                assert!(lab.program("sh").args(["-c", self.meanwhile]).status().unwrap().success());
            }
            pty.types(&keys(self.answer));
        }
        pty.ends()
    }
}

fn guest(script: &str) -> Lab {
    let lab = Lab::new();
    lab.workspace_hook("before_tool", "guest", script, "");
    lab
}

/// A task in which our agent calls a tool that changes nothing.
fn look(lab: &Lab) {
    lab.write("talk.jsonl", format!("{}\n{}", call("list_dir", json!({"path": "."})), text("done")));
}

#[test]
fn s08_what_runs_is_what_was_shown_whatever_became_of_the_file() {
    const SHOWN: &str = "echo checking style > \"$OLLM_PROJECT_DIR/ran\"\n";
    let swap = |lab: &Lab| {
        let script = lab.project.join(".ollm/hooks/guest.sh");
        format!("echo 'echo evil > \"$OLLM_PROJECT_DIR/ran\"' > '{}'", script.display())
    };
    let left = |lab: &Lab| fs::read_to_string(lab.project.join("ran")).unwrap_or_default();

    let lab = guest(SHOWN);
    look(&lab);
    let ran = Typing { meanwhile: &swap(&lab), answer: "o\\n", ..TYPING }.at(&lab, &task(&[]));
    assert!(ran.stdout.contains("echo checking style") && !ran.stdout.contains("echo evil"), "{}", ran.stdout);
    assert_eq!(left(&lab), "checking style\n");

    let lab = guest(SHOWN);
    let ran = Typing { meanwhile: &swap(&lab), answer: "a\\n", ..TYPING }.at(&lab, &["hook", "trust", ID]);
    assert!(ran.stdout.contains("echo checking style"), "{}", ran.stdout);
    assert_eq!(lab.event(shell_event("ls")).skip("guest")["reason"], "modified", "only what was shown is approved");
    assert_eq!(left(&lab), "");
}

#[test]
fn what_was_typed_before_a_question_is_shown_answers_nothing() {
    let everything = "a\\ny\\no\\ns\\nyes\\n";
    let lab = guest("touch \"$OLLM_PROJECT_DIR/ran\"\n");
    look(&lab);
    let quick = Typing { ahead: everything, ..TYPING };
    for arguments in [&["hook", "trust", ID] as &[&str], &["hook", "trust", "--all"], &task(&[])] {
        let ran = quick.at(&lab, arguments);
        assert!(ran.stdout.contains("[N]o: ") || ran.stdout.contains("[y/N] "), "{arguments:?}: {ran:?}");
        lab.event(shell_event("ls"));
        assert!(!lab.project.join("ran").exists(), "{arguments:?}: {ran:?}");
    }
    let ran = quick.at(&lab, &["hook", "remove", ID]);
    assert!(ran.code == 64 && lab.project.join(".ollm/hooks/guest.json").exists(), "{ran:?}");

    let lab = Lab::new();
    lab.write("talk.jsonl", format!("{}\n{}", call("shell", json!({"command": "touch ran"})), text("done")));
    let ran = quick.at(&lab, &task(&["--approval", "ask"]));
    assert!(ran.stdout.contains("May it run?") && !lab.project.join("ran").exists(), "{ran:?}");

    let server = json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", "touch ran"]}}});
    lab.write("project/.ollm/settings/mcp.json", server.to_string());
    let ran = quick.at(&lab, &["mcp", "trust", "s"]);
    assert!(ran.code == 4 && ran.stdout.contains("[y/N] "), "{ran:?}");
}

#[test]
fn what_was_typed_before_a_server_asks_answers_nothing() {
    let lab = Lab::new();
    let server = json!({"mcpServers": {"s": {"command": testkit::mcp_server(), "args": []}}});
    lab.write("home/.ollm/settings/mcp.json", server.to_string());
    let question = json!({"question": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {
        "name": {"type": "string"}}, "required": ["name"]}}});
    let asking = ["mcp", "call", "s", "ask", "--args", &question.to_string()];
    let ran = Typing { ahead: "y\\nAda\\ny\\ny\\n", ..TYPING }.at(&lab, &asking);
    assert!(ran.stdout.contains("Answer? ") && ran.stdout.contains("decline"), "{ran:?}");
}

#[test]
fn only_the_answers_on_the_screen_count() {
    let lab = guest("touch \"$OLLM_PROJECT_DIR/ran\"\n");
    look(&lab);
    for (answer, arguments) in
        [("y\\n", &["hook", "trust", ID] as &[&str]), ("y\\n", &task(&[])), ("a\\n", &["hook", "trust", "--all"])]
    {
        let ran = Typing { answer, ..TYPING }.at(&lab, arguments);
        assert!(ran.stdout.contains("is not among the answers; that counts as no"), "{arguments:?}: {ran:?}");
        lab.event(shell_event("ls"));
        assert!(!lab.project.join("ran").exists(), "{arguments:?}: {ran:?}");
    }
}

/// The rows that a text takes on a terminal.
fn rows(text: &str, columns: usize) -> usize {
    let width = |line: &str| line.chars().map(|char| if char == '漢' { 2 } else { 1 }).sum::<usize>();
    text.lines().map(|line| width(line).max(1).div_ceil(columns)).sum()
}

#[test]
fn s14_no_row_of_what_is_approved_scrolls_away_unseen() {
    let evil = format!(": {}\ntouch ran\n: {}\n: {}\n", "x".repeat(80 * 70), "漢".repeat(3000), "y".repeat(4000));
    let lab = guest(&evil);
    look(&lab);
    for arguments in [&["hook", "trust", ID] as &[&str], &task(&[])] {
        let ran = TYPING.at(&lab, arguments);
        let end = ran.stdout.find("[N]o: ").unwrap();
        let pages: Vec<&str> = ran.stdout[..end].split("leaves the rest unread: ").collect();
        assert!(pages.len() > 8, "{arguments:?}: {} pages", pages.len());
        for page in pages {
            assert!(rows(page, 80) <= 24, "{arguments:?}: {} rows: {page}", rows(page, 80));
        }
        assert!(ran.stdout.contains("touch ran"), "{arguments:?}");
    }
}

#[test]
fn who_leaves_the_pages_early_is_told_what_was_not_shown_and_approves_nothing() {
    let lab = guest(&format!("{}touch ran\n", ": line\n".repeat(200)));
    let ran = Typing { turn: "q\\n", ..TYPING }.at(&lab, &["hook", "trust", ID]);
    let told = ran.stdout.split("leaves the rest unread: ").nth(1).unwrap();
    assert!(told.contains("rows were not shown") && !ran.stdout.contains("touch ran"), "{ran:?}");
    assert!(ran.code == 4 && told.contains("counts as no") && !told.contains("[N]o: "), "{ran:?}");
}

#[test]
fn what_cannot_be_approved_for_good_is_not_offered_so() {
    let lab = Lab::new();
    lab.write(
        "project/.ollm/hooks/guest.json",
        r#"{"hooks": {"before_tool": [{"name": "guest", "action": {"type": "shell", "command": "make check"}}]}}"#,
    );
    let ran = TYPING.at(&lab, &["hook", "trust", "guest"]);
    assert!(ran.stdout.contains("[o]nce") && !ran.stdout.contains("[a]lways"), "{ran:?}");
    assert!(ran.stdout.contains("`--uncovered`"), "{ran:?}");
    let ran = TYPING.at(&lab, &["hook", "trust", "guest", "--uncovered"]);
    assert!(ran.stdout.contains("[a]lways"), "{ran:?}");
}
