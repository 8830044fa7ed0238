//! `ollm hook list`: every hook there is, and every file that could not be read.

use std::sync::Arc;

use ollm_app::{App, AppContext, undeclared_line, unsent_events};
use ollm_catalog::Undeclared;
use ollm_protocol::Hook;
use ollm_store::one_line;
use serde_json::{Value, json};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::show::{self, State};
use crate::error::Failure;
use crate::output::{Output, is_shown, screen_size, shown};
use crate::problem;
use crate::remedy::COMMANDS;

pub(super) fn run(context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load(context)?;
    let rows = show::states(app.hooks(), &app);
    context.tell_notices(output);
    for line in unsent_events(rows.iter().map(|(hook, _)| &**hook), context) {
        output.tell(&line);
    }
    if let Some(trouble) = app.engine.trust.trouble() {
        output.tell(&format!("nothing is approved: {trouble}"));
    }
    if as_json {
        app.tell_problems(output);
        for script in &app.undeclared {
            output.tell(&undeclared_line(script, context));
        }
        return output.pretty_json(&rows.iter().map(|(hook, state)| entry(hook, state)).collect());
    }
    output.text(&table(&rows))?;
    if let Some(migrated) = &app.migrated {
        output.tell(migrated);
    }
    if let Some(off) = app.what_is_off() {
        output.tell(&off);
    }
    for problem in &app.problems {
        output.explain(&problem::render(problem));
    }
    for script in &app.undeclared {
        output.explain(&problem::render_undeclared(&script.path, &adding(script)));
    }
    Ok(crate::error::OK)
}

/// The command that declares a script.
fn adding(script: &Undeclared) -> String {
    COMMANDS.command(&script.remedy()).unwrap_or_default()
}

/// One hook as the list shows it.
pub(super) fn entry(hook: &Hook, state: &State) -> Value {
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
        "digest": state.digest,
        "group": spec.group,
        "groupDigest": state.group_digest,
        "file": shown(&spec.origin.file),
        "line": spec.origin.line,
    })
}

pub(super) fn action(hook: &Hook) -> &'static str {
    if hook.broken.is_some() { "none" } else { hook.spec.action.kind().name }
}

/// All hooks as a table.
pub(crate) fn overview(app: &App) -> String {
    table(&show::states(app.hooks(), app))
}

fn table(rows: &[(Arc<Hook>, State)]) -> String {
    let head = ["ID", "EVENTS", "MATCHER", "SOURCE", "DIALECT", "STATE"].map(str::to_owned);
    let body = rows.iter().map(|(hook, state)| {
        let events: Vec<&str> = hook.events.iter().map(|kind| kind.name()).collect();
        [
            hook.id().to_owned(),
            events.join(","),
            hook.matcher.text(),
            hook.spec.source.name().to_owned(),
            hook.dialect.name().to_owned(),
            standing(hook, state),
        ]
    });
    let mut text = columns(&std::iter::once(head).chain(body).collect::<Vec<_>>());
    if rows.iter().all(|(hook, _)| hook.spec.source.is_required()) {
        text.push_str(
            "You have no hooks of your own. Put one into ~/.ollm/hooks/, for instance:\n  \
             {\"hooks\": {\"before_tool\": [{\"name\": \"guard\", \"command\": \"python3\", \"args\": [\"guard.py\"]}]}}\n",
        );
    }
    text
}

fn standing(hook: &Hook, state: &State) -> String {
    match (hook.spec.enabled && state.off.is_none(), &state.unready) {
        (false, _) => "disabled".to_owned(),
        (true, Some(why)) => format!("{}, cannot run: {why}", state.trusted()),
        (true, None) => state.trusted().to_owned(),
    }
}

/// Rows of cells, aligned. On a terminal they fit into its width: the longest cells are cut.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let screen = screen_size().filter(|_| is_shown()).map(|(_, columns)| usize::from(columns));
    columns_within(rows, screen.unwrap_or(usize::MAX))
}

fn columns_within<const N: usize>(rows: &[[String; N]], screen: usize) -> String {
    let rows: Vec<[String; N]> = rows.iter().map(|row| row.each_ref().map(|cell| one_line(cell))).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    fit(&mut widths, screen.saturating_sub(GAP.len() * N.saturating_sub(1)));
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| filled(cell, width)).collect();
        text.push_str(cells.join(GAP).trim_end());
        text.push('\n');
    }
    text
}

/// What stands between two cells.
const GAP: &str = "  ";
/// No column becomes narrower.
const NARROWEST: usize = 8;

/// Makes the widest columns narrower until all have room.
fn fit(widths: &mut [usize], room: usize) {
    while widths.iter().fold(0, |sum: usize, width| sum.saturating_add(*width)) > room {
        match widths.iter_mut().max().filter(|widest| **widest > NARROWEST) {
            Some(widest) => *widest -= 1,
            None => return,
        }
    }
}

/// A cell of exactly this width.
fn filled(cell: &str, width: usize) -> String {
    let mut shown = String::new();
    let mut used = 0;
    for letter in cell.chars() {
        let wide = letter.width().unwrap_or(0);
        if used + wide > width || (used + wide == width && cell.width() > width) {
            shown.push('…');
            used += 1;
            break;
        }
        shown.push(letter);
        used += wide;
    }
    shown + &" ".repeat(width.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_into_the_screen_and_keep_what_is_short() {
        let rows = [
            ["ID", "STATE"].map(str::to_owned),
            ["user:a-very-long-file-name.json:before_tool:guard", "trusted"].map(str::to_owned),
            ["日本語の長い名前のフック", "off"].map(str::to_owned),
        ];
        for screen in [20, 30, 200] {
            let text = columns_within(&rows, screen);
            assert!(text.lines().all(|line| line.width() <= screen), "{screen}: {text}");
            assert!(text.contains("trusted"), "{text}");
        }
        assert!(columns_within(&rows, 30).contains("user:a-very-long-fil…"), "{}", columns_within(&rows, 30));
        assert!(!columns_within(&rows, usize::MAX).contains('…'));
    }
}
