//! Finds out what a tool call runs, by the declaration of its tool.

use std::path::{Path, PathBuf};

use ollm_protocol::tool::{CallEffect, Effect, Operand, declared, unknown_values};
use ollm_protocol::{Event, EventKind, Flow};
use serde_json::Value;

use crate::{
    destructive::Finding,
    field::ShellPlace,
    loose::{Command, loose},
    path, text,
    walk::{ScriptAction, walk, walk_words},
};

/// A longer text is not judged; a person has to check it.
const LONGEST: usize = 64 << 10;

/// Past this length more of the same plain word adds nothing to look at.
const LONGEST_WORD: usize = 64;

/// Names of arguments that hold code of some language.
const CODE_ARGUMENTS: &[&str] =
    &["code", "expression", "function", "javascript", "program", "python", "script", "snippet", "source"];

/// Names of arguments that hold statements for a database.
const STATEMENT_ARGUMENTS: &[&str] = &["query", "sql", "statement"];

/// The effect of one text that runs, or may run.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) deeds: Vec<ScriptAction>,
    pub(crate) runs: Runs,
}

/// How sure it is that a text runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// A declaration says so.
    Surely,
    /// It is code or a list of words for somebody.
    Perhaps,
    /// It may as well be prose.
    Hardly,
}

impl Script {
    /// A finding about the text. If the text may not even run, a person decides, and about what may be prose only if
    /// it would be refused.
    pub(crate) fn weigh(&self, finding: Finding) -> Option<Finding> {
        match (self.runs, finding.flow) {
            (Runs::Surely, _) => Some(finding),
            (Runs::Perhaps, _) | (Runs::Hardly, Flow::Block | Flow::Halt) => Some(Finding::ask(finding.reason)),
            (Runs::Hardly, _) => None,
        }
    }
}

/// What a call does, if it is one that is about to happen.
pub(crate) fn effects(event: &Event) -> Vec<CallEffect<'_>> {
    if event.kind == EventKind::BeforeTool { event.effects() } else { Vec::new() }
}

/// Everything that the shell text of a call does, and what its other texts would do.
pub(crate) fn scripts(event: &Event, here: &Path, home: Option<&Path>) -> Vec<Script> {
    let effects = &effects(event);
    let place = place(effects, here, home);
    let apart = effects.iter().find_map(|found| match (found.effect, found.operand) {
        (Effect::ProgramArguments, Operand::List(list)) => Some(words(list)),
        _ => None,
    });
    let is_powershell = event.text("tool_name").is_some_and(|name| name.to_ascii_lowercase().ends_with("powershell"));
    let script = |found: &CallEffect<'_>| {
        let deeds = match (found.effect, found.operand) {
            // What reads as shell text in it means the same.
            (Effect::RunsShell, Operand::Text(script)) if is_powershell => {
                let code = ["pwsh", "-c", script].map(str::to_owned).to_vec();
                clear(text_deeds(script, apart.as_deref(), &place))
                    .into_iter()
                    .chain(list_deeds(code, &place))
                    .collect()
            }
            (Effect::RunsShell | Effect::RunsEach, Operand::Text(script)) => {
                text_deeds(script, apart.as_deref(), &place)
            }
            (Effect::RunsShell, Operand::List(list)) => list_deeds(words(list), &place),
            (Effect::RunsEach, Operand::List(list)) => each_deed(&words(list), &place),
            // Typed text may not be shell text at all, so unreadable text is no finding.
            (Effect::TypesIntoShell, Operand::Text(typed)) => clear(script_deeds(typed, place.clone())),
            _ => return None,
        };
        let (deeds, runs) = if found.sure { (deeds, Runs::Surely) } else { (clear(deeds), Runs::Hardly) };
        Some(Script { deeds, runs })
    };
    let is_read = |text: &str| {
        let runs = |found: &CallEffect<'_>| matches!(found.effect, Effect::RunsShell | Effect::RunsEach);
        effects.iter().any(|found| runs(found) && found.text().is_some_and(|known| known.as_ptr() == text.as_ptr()))
    };
    let loose = loose(event);
    let others = loose.commands().filter_map(|command| {
        let runs = if matches!(command, Command::Words(_)) { Runs::Perhaps } else { Runs::Hardly };
        let deeds = match command {
            Command::Line(line) if is_read(&line) => return None,
            // It may be code of any language.
            Command::Line(line) if line.contains('(') && line.contains(['"', '\'']) => {
                let code = ["python3", "-c", &line].map(str::to_owned).to_vec();
                script_deeds(&line, place.clone()).into_iter().chain(list_deeds(code, &place)).collect()
            }
            Command::Line(line) => script_deeds(&line, place.clone()),
            Command::Words(words) | Command::Pair(words) => list_deeds(words, &place),
        };
        Some(Script { deeds: clear(deeds), runs })
    });
    let code = code(event).map(|(language, text)| {
        let words = [language, "-c", text].map(str::to_owned).to_vec();
        Script { deeds: list_deeds(words, &place), runs: Runs::Perhaps }
    });
    effects.iter().filter_map(script).chain(others).chain(code).collect()
}

/// The arguments of an undeclared tool that are code by their names, each with a program that would run it.
fn code(event: &Event) -> impl Iterator<Item = (&'static str, &str)> {
    let args = event.data.get("args").filter(|_| event.kind == EventKind::BeforeTool);
    let is_open = |args: &Value| {
        let name = event.text("tool_name").filter(|name| declared(name).is_none());
        name.is_some_and(|name| !unknown_values(name, args).is_empty())
    };
    let args = args.filter(|args| is_open(args)).and_then(Value::as_object);
    args.into_iter().flatten().filter_map(|(name, value)| {
        let (name, text) = (name.to_ascii_lowercase(), value.as_str()?);
        let calls = text.contains('(') && text.contains(['"', '\'', '`']);
        match () {
            () if calls && CODE_ARGUMENTS.contains(&name.as_str()) => Some(("python3", text)),
            () if STATEMENT_ARGUMENTS.contains(&name.as_str()) => Some(("psql", text)),
            () => None,
        }
    })
}

fn clear(mut deeds: Vec<ScriptAction>) -> Vec<ScriptAction> {
    let is_unclear = |deed: &ScriptAction| match deed {
        ScriptAction::Unclear(_) => true,
        ScriptAction::Guess(guess) => matches!(**guess, ScriptAction::Unclear(_)),
        _ => false,
    };
    deeds.retain(|deed| !is_unclear(deed));
    deeds
}

fn text_deeds(script: &str, apart: Option<&[String]>, place: &ShellPlace) -> Vec<ScriptAction> {
    let mut deeds = script_deeds(script, place.clone());
    // Many tools take the program and its arguments apart.
    if let Some(more) = apart {
        deeds.extend(walk_words(
            std::iter::once(script).chain(more.iter().map(String::as_str)).map(str::to_owned).collect(),
            place.clone(),
        ));
    }
    deeds
}

fn list_deeds(words: Vec<String>, place: &ShellPlace) -> Vec<ScriptAction> {
    if words.len() == 1 {
        return each_deed(&words, place);
    }
    let mut deeds: Vec<ScriptAction> =
        words.iter().filter(|word| text::is_disguised(word)).map(|word| disguised(word)).collect();
    deeds.extend(walk_words(words, place.clone()));
    deeds
}

fn each_deed(scripts: &[String], place: &ShellPlace) -> Vec<ScriptAction> {
    scripts.iter().flat_map(|script| script_deeds(script, place.clone())).collect()
}

fn words(list: &[Value]) -> Vec<String> {
    list.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

/// How much of a script there is to look at: one huge plain word is no reason to ask.
fn length(script: &str) -> usize {
    let mut run = 0;
    let counts = script.bytes().filter(|byte| {
        run = if byte.is_ascii_alphanumeric() { run + 1 } else { 0 };
        run <= LONGEST_WORD
    });
    counts.count()
}

fn script_deeds(script: &str, place: ShellPlace) -> Vec<ScriptAction> {
    if length(script) > LONGEST {
        return vec![ScriptAction::Unclear("the command is too long to be looked through".to_owned())];
    }
    let mut deeds = Vec::new();
    if text::is_disguised(script) {
        deeds.push(disguised(script));
    }
    // A NUL would end the text early for the next reader.
    if script.contains('\0') {
        return deeds;
    }
    if script.contains('\r') {
        // To a shell it is a letter, to a person and to some tools a line end: only at a line end it is no matter.
        let plain = script.replace("\r\n", "\n");
        if plain.contains('\r') || script.contains("\\\r") {
            deeds.push(ScriptAction::Unclear(
                "the command holds carriage returns, which shells take for letters".to_owned(),
            ));
        }
        // Where every line ends so, and nothing but lines counts, a shell runs the same with odd last words.
        let ends = script.matches("\r\n").count();
        let uniform = ends == script.matches('\n').count() && !plain.contains('\r') && !script.contains("<<");
        if !uniform {
            deeds.extend(walk(script, place.clone()));
        }
        deeds.extend(walk(&plain.replace('\r', "\n"), place));
    } else if deeds.is_empty() {
        return walk(script, place);
    } else {
        deeds.extend(walk(script, place));
    }
    deeds
}

fn disguised(script: &str) -> ScriptAction {
    ScriptAction::Unclear(format!("the command holds characters that hide what it does: {}", text::excerpt(script)))
}

/// Where the call runs: in the event's folder, or in one that its arguments name.
fn place(effects: &[CallEffect<'_>], here: &Path, home: Option<&Path>) -> ShellPlace {
    let mut folders = vec![here.to_owned()];
    let named = effects.iter().filter(|found| found.effect == Effect::RunsIn).filter_map(CallEffect::text);
    folders.extend(named.map(|folder| path::join(here, &path::spelled(folder, home))).filter(|folder| folder != here));
    ShellPlace::new(folders, home)
}

/// The folder of the event.
pub(crate) fn here(event: &Event, cwd: &Path) -> PathBuf {
    let claimed = event.text("cwd").map(Path::new).filter(|claimed| claimed.is_absolute());
    path::tidy(claimed.unwrap_or(cwd))
}
