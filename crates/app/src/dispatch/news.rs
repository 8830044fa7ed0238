//! The report at the start of another agent's session: the agent itself shows neither broken files nor failing hooks.

use std::fs;
use std::path::PathBuf;

use ollm_engine::{Outcome, Report};
use ollm_protocol::dialect::AgentDialect;
use ollm_protocol::{Event, EventKind, Remedy};
use ollm_store::{Redactor, cut, digest_bytes, one_line, write_atomic};

use super::told::not_run;
use crate::app::App;
use crate::app_context::AppContext;
use crate::trace::{self, FailingHook};

/// Further lines are only counted.
const MOST_NEWS: usize = 10;
/// Longer lines are cut.
const LONGEST_NEWS: usize = 500;
/// How many sessions of an agent are remembered.
const MOST_SESSIONS: usize = 16;

/// Whether an event starts a session: the session's start or, if the agent shows nothing there, its first prompt.
pub(super) fn begins_session(agent: &AgentDialect, event: &Event, context: &AppContext) -> bool {
    match event.kind {
        // A compacted session has already had its report.
        EventKind::SessionStart => event.text("source") != Some("compact"),
        EventKind::BeforeAgent if agent.tells_news_at() == Some(EventKind::BeforeAgent) => {
            event.text("session_id").is_some_and(|session| is_new(agent, session, context))
        }
        _ => false,
    }
}

/// Whether this is the first report of a session; marks the session as reported.
fn is_new(agent: &AgentDialect, session: &str, context: &AppContext) -> bool {
    let Some(own) = context.own_home().filter(|own| own.is_dir()) else { return false };
    let file: PathBuf = own.join("state/told").join(agent.name);
    let digest = digest_bytes(session.as_bytes()).hex();
    let known = fs::read_to_string(&file).unwrap_or_default();
    if known.lines().any(|line| line == digest) {
        return false;
    }
    let others = known.lines().take(MOST_SESSIONS - 1).flat_map(|line| ["\n", line]);
    let note: String = std::iter::once(&*digest).chain(others).collect();
    // Without the saved note, the report would be repeated at every prompt.
    write_atomic(&file, note.as_bytes()).is_ok()
}

/// The report for the person who starts a session, without what the agent itself shows: unreadable files, and hooks
/// that do not run or failed.
pub(super) fn news(event: &Event, outcome: Option<&Outcome>, context: &AppContext) -> Vec<String> {
    let Some(outcome) = outcome else { return Vec::new() };
    let own = outcome.reports.iter().filter_map(Report::failure);
    let ran = |failing: &FailingHook| outcome.reports.iter().any(|report| report.hook.id() == failing.id);
    let app = App::load(context).ok();
    let earlier = app.iter().flat_map(|app| {
        let failing = trace::failing(app).into_iter().filter(|failing| !ran(failing));
        failing.map(|failing| failing.line(app)).collect::<Vec<_>>()
    });
    let mut news: Vec<String> =
        outcome.notes.iter().cloned().chain(not_run(event, outcome, context)).chain(own).chain(earlier).collect();
    if let Some(more) = news.len().checked_sub(MOST_NEWS).filter(|more| *more > 0) {
        news.truncate(MOST_NEWS);
        news.push(format!("{more} more lines; {}", context.tell(&Remedy::FindFaults)));
    }
    let redactor = Redactor::new(context.secrets());
    let shown = |line: &String| format!("ollm: {}", cut(&one_line(&redactor.redact_str(line)), LONGEST_NEWS));
    news.iter().map(shown).collect()
}
