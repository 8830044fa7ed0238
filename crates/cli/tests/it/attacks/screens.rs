//! What a hostile text does to a screen, and what a person is shown before they answer.

use serde_json::Value;

use crate::lab::{Lab, shell_event};
use crate::terminal::on_a_terminal;

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
