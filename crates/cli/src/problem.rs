//! A problem with a file, shown as a good compiler would: where, the line with a caret, the way out.

use std::fmt::Write;
use std::path::Path;

use ollm_catalog::{Problem, Severity};
use ollm_protocol::Code;
use ollm_store::escape_for_people;

use crate::remedy::COMMANDS;

const BOLD: &str = "\x1b[1m";
const BLUE: &str = "\x1b[1;34m";
const PLAIN: &str = "\x1b[0m";

/// A script that nothing declares, and the command that does.
pub(crate) fn render_undeclared(script: &Path, command: &str) -> String {
    let (script, command) = (script.display().to_string(), escape_for_people(command));
    format!(
        "{BLUE}note[{}]{PLAIN}{BOLD}: no hook file declares this script; it never runs{PLAIN}\n  {BLUE}-->{PLAIN} {}\n  help: {command}\n",
        Code::UndeclaredScript,
        escape_for_people(&script)
    )
}

pub(crate) fn render(problem: &Problem) -> String {
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
        let shown: String = snippet.text.replace('\t', " ");
        let before: String = shown.chars().take(snippet.column.saturating_sub(1)).collect();
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
