//! Shows a problem with a file like a compiler does: the place, the line with a caret, and the remedy.

use std::fmt::Write;
use std::path::Path;

use ollm_catalog::{Problem, Severity, Snippet, TrailingCommas, read_json};
use ollm_protocol::Code;
use ollm_store::escape_for_people;
use serde_json::Value;

use crate::error::Failure;
use crate::remedy::COMMANDS;

const BOLD: &str = "\x1b[1m";
const BLUE: &str = "\x1b[1;34m";
const PLAIN: &str = "\x1b[0m";

/// A script that nothing declares, with the command that declares it.
pub(crate) fn render_undeclared(script: &Path, command: &str) -> String {
    let (script, command) = (script.display().to_string(), escape_for_people(command));
    format!(
        "{BLUE}note[{}]{PLAIN}{BOLD}: no hook file declares this script; it never runs{PLAIN}\n  {BLUE}-->{PLAIN} {}\n  help: {command}\n",
        Code::UndeclaredScript,
        escape_for_people(&script)
    )
}

/// The text of a problem, with lines of this width.
pub(crate) fn render(problem: &Problem, width: usize) -> String {
    let colour = if problem.severity == Severity::Warning { "\x1b[1;33m" } else { "\x1b[1;31m" };
    let mut text = format!(
        "{colour}{}[{}]{PLAIN}{BOLD}: {}{PLAIN}\n",
        problem.severity.name(),
        problem.code,
        escape_for_people(&problem.message)
    );
    let place = if problem.line > 0 { format!(":{}:{}", problem.line, problem.column) } else { String::new() };
    let file = problem.file.display().to_string();
    let _ = writeln!(text, "  {BLUE}-->{PLAIN} {}{place}", escape_for_people(&file));
    if let Some(snippet) = problem.snippet.as_ref().filter(|_| problem.line > 0) {
        let number = problem.line.to_string();
        let gutter = " ".repeat(number.len());
        let (shown, column) = window(snippet, width.saturating_sub(number.len() + 3));
        let before: String = shown.chars().take(column.saturating_sub(1)).collect();
        let caret = " ".repeat(escape_for_people(&before).chars().count());
        let _ = writeln!(text, "{gutter} {BLUE}|{PLAIN}\n{BLUE}{number} |{PLAIN} {}", escape_for_people(&shown));
        let _ = writeln!(text, "{gutter} {BLUE}|{PLAIN} {caret}{colour}^{PLAIN}");
    }
    if !problem.field.is_empty() {
        let value = problem.value.as_deref().map(|value| format!(" = {value}")).unwrap_or_default();
        let _ = writeln!(text, "  field: {}", escape_for_people(&format!("{}{value}", problem.field)));
    }
    if let Some(help) = problem.way_out(COMMANDS) {
        let _ = writeln!(text, "  help: {}", escape_for_people(&help));
    }
    text
}

/// Parses JSON that a person typed or sent; a failure shows the place in it.
pub(crate) fn json_input(name: &str, text: &str, code: Code) -> Result<Value, Failure> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let message = format!("{name} is not valid JSON: {error}");
    // Comments are allowed only in files; all other errors are found at their place.
    let found = read_json(Path::new(name), text, TrailingCommas::Refused).err();
    let problem = found.map(|problem| Box::new(Problem { code, message: message.clone(), ..*problem }));
    Err(Failure { problem, ..Failure::new(code, message) })
}

/// The part of a line around its problem that fits, and the problem's position in it.
fn window(snippet: &Snippet, room: usize) -> (String, usize) {
    let shown: String = snippet.text.replace('\t', " ");
    if shown.chars().count() <= room {
        return (shown, snippet.column);
    }
    let skip = snippet.column.saturating_sub(1 + room / 2);
    (shown.chars().skip(skip).take(room).collect(), snippet.column - skip)
}
