//! `ollm hook list`: every hook there is, and every file that could not be read.

use std::fmt::Write;
use std::sync::Arc;

use ollm_app::{App, AppContext, undeclared_line, unsent_events};
use ollm_catalog::{Severity, UndeclaredScript};
use ollm_protocol::Hook;
use ollm_store::one_line;
use ollm_trust::command_text;
use serde_json::{Value, json};

use super::show::{self, HookState};
use crate::arguments::hook::ListArguments;
use crate::error::{FINDING, Failure, OK};
use crate::output::{Output, shown};
use crate::problem;
use crate::remedy::COMMANDS;

const NO_HOOKS: &str = "You have no hooks of your own. `ollm hook new NAME` writes one, or put one into ~/.ollm/hooks/, for instance:\n  \
    {\"hooks\": {\"before_tool\": [{\"name\": \"guard\", \"command\": \"python3\", \"args\": [\"guard.py\"]}]}}\n";

pub(super) fn run(arguments: &ListArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    output.busy("reading hooks");
    let app = App::load(context)?;
    let rows = show::states(app.hooks(), &app);
    context.tell_notices(output);
    for line in unsent_events(rows.iter().map(|(hook, _)| &**hook), context) {
        output.tell(&line);
    }
    if let Some(trouble) = app.engine.trust.trouble() {
        output.tell(&format!("nothing is approved: {trouble}"));
    }
    let is_broken = app.problems.iter().any(|problem| problem.severity != Severity::Warning);
    let code = if is_broken { FINDING } else { OK };
    if arguments.json {
        app.tell_problems(output);
        for script in &app.undeclared {
            output.tell(&undeclared_line(script, context));
        }
        output.pretty_json(&rows.iter().map(|(hook, state)| entry(hook, state)).collect())?;
        return Ok(code);
    }
    output.text(&listed(&rows, arguments.long))?;
    // A file that cannot be read may hold some.
    if !is_broken && rows.iter().all(|(hook, _)| hook.spec.source.is_required()) {
        output.text(NO_HOOKS)?;
    }
    if let Some(migrated) = &app.migrated {
        output.tell(migrated);
    }
    if let Some(off) = app.what_is_off() {
        output.tell(&off);
    }
    for problem in &app.problems {
        output.problem(problem);
    }
    for script in &app.undeclared {
        output.explain(&problem::render_undeclared(&script.path, &adding(script)));
    }
    Ok(code)
}

/// The command that declares a script.
fn adding(script: &UndeclaredScript) -> String {
    COMMANDS.command(&script.remedy()).unwrap_or_default()
}

/// One hook as the list shows it.
pub(super) fn entry(hook: &Hook, state: &HookState) -> Value {
    let spec = &hook.spec;
    json!({
        "id": hook.id(),
        "name": spec.name,
        "events": hook.events.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
        "source": spec.source.name(),
        "extension": spec.extension,
        "dialect": hook.dialect.name(),
        "action": action(hook),
        "enabled": spec.enabled && state.off.is_none(),
        "trust": state.trust,
        "problem": state.unready,
        "digest": state.digest,
        "group": spec.group,
        "groupDigest": state.group_digest,
        "file": shown(&spec.origin.file),
        "line": spec.origin.line,
        "description": spec.description,
        "matcher": hook.matcher.text(),
        "command": command_text(hook),
        "timeoutMs": hook.timeout.value.as_secs_f64() * 1e3,
    })
}

pub(super) fn action(hook: &Hook) -> &'static str {
    if hook.broken.is_some() { "none" } else { hook.spec.action.kind().name }
}

/// All hooks as a table, with their ids if wanted.
pub(crate) fn overview(app: &App, long: bool) -> String {
    listed(&show::states(app.hooks(), app), long)
}

/// The table, and below it why hooks cannot run, which no column has room for.
fn listed(rows: &[(Arc<Hook>, HookState)], long: bool) -> String {
    let mut text = table(rows, long);
    let is_on = |hook: &Hook, state: &HookState| hook.spec.enabled && state.off.is_none();
    for (hook, state) in rows.iter().filter(|(hook, state)| is_on(hook, state)) {
        if let Some(why) = &state.unready {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{} cannot run: {}", one_line(&called(hook, rows)), one_line(why));
        }
    }
    text
}

const HEAD: [&str; 6] = ["NAME", "STATE", "EVENTS", "MATCHER", "SOURCE", "DIALECT"];

fn table(rows: &[(Arc<Hook>, HookState)], long: bool) -> String {
    let cells = |(hook, state): &(Arc<Hook>, HookState)| {
        let events: Vec<&str> = hook.events.iter().map(|kind| kind.name()).collect();
        [
            called(hook, rows),
            standing(hook, state),
            events.join(","),
            hook.matcher.text(),
            hook.spec.source.name().to_owned(),
            hook.dialect.name().to_owned(),
        ]
    };
    if !long {
        return crate::table::table(HEAD, rows.iter().map(cells));
    }
    let [name, state, events, matcher, source, dialect] = HEAD;
    let cells = |row| {
        let (hook, _): &(Arc<Hook>, HookState) = row;
        let [name, state, events, matcher, source, dialect] = cells(row);
        [name, state, hook.id().to_owned(), events, matcher, source, dialect]
    };
    crate::table::table([name, state, "ID", events, matcher, source, dialect], rows.iter().map(cells))
}

/// What a person calls a hook: its name, or its id where another hook has that name.
fn called(hook: &Hook, rows: &[(Arc<Hook>, HookState)]) -> String {
    let name = hook.spec.name.as_str();
    let is_alone = rows.iter().filter(|(other, _)| other.spec.name == name).count() == 1;
    if is_alone && !name.is_empty() { name.to_owned() } else { hook.id().to_owned() }
}

fn standing(hook: &Hook, state: &HookState) -> String {
    match (hook.spec.enabled && state.off.is_none(), &state.unready) {
        (false, _) => "disabled".to_owned(),
        (true, Some(_)) if state.trusted() == "trusted" => "cannot run".to_owned(),
        (true, Some(_)) => format!("{}, cannot run", state.trusted()),
        (true, None) => state.trusted().to_owned(),
    }
}
