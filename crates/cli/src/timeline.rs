//! The outcome of an event for people: its hooks on a common time scale, then the decision.

use std::fmt::Write;
use std::time::Duration;

use ollm_app::outcome;
use ollm_engine::{Outcome, Report, Skip};
use ollm_protocol::{Flow, joined};
use ollm_store::one_line;
use serde_json::Value;

use crate::output::shown_width;
use crate::tui::text::fitted;

pub(crate) const BOLD: &str = "\x1b[1m";
pub(crate) const DIM: &str = "\x1b[2m";
pub(crate) const PLAIN: &str = "\x1b[0m";
pub(crate) const RED: &str = "\x1b[31m";
pub(crate) const GREEN: &str = "\x1b[32m";
pub(crate) const YELLOW: &str = "\x1b[33m";

/// One event: the decision, then its hooks on a common time scale.
pub(crate) fn timeline(title: &str, outcome: &Outcome) -> String {
    timeline_with(title, outcome, &outcome.skipped.iter().collect::<Vec<_>>())
}

/// Like [`timeline`], with only these skipped hooks.
pub(crate) fn timeline_with(title: &str, outcome: &Outcome, skipped: &[&Skip]) -> String {
    let head = format!("{BOLD}{:<13}{PLAIN} {}", outcome.event.name(), one_line(title));
    let mut text = format!("\n{}\n", head.trim_end());
    let shown: Vec<&Report> = outcome.reports.iter().filter(|report| outcome::is_shown(report)).collect();
    let longest = shown.iter().map(|report| report.duration).sum::<Duration>().max(Duration::from_millis(1));
    let mut started = Duration::ZERO;
    for report in shown {
        let (name, status) = (&report.hook.spec.name, report.status.name());
        let bar = Bar { name, status, start: started, took: report.duration };
        let _ = writeln!(text, "{}", bar.line(longest));
        started += report.duration;
    }
    for skip in skipped {
        let _ = writeln!(text, "{}", skip_line(&skip.hook.spec.name, skip.reason.name(), &skip.detail));
    }
    let _ = writeln!(text, "  => {}", decision(outcome));
    text
}

/// A hook that did not run, as a line.
pub(crate) fn skip_line(name: &str, reason: &str, detail: &str) -> String {
    format!("  {DIM}{:<25} {reason:<12} {}{PLAIN}", one_line(name), one_line(detail))
}

/// One hook's run on a time scale.
pub(crate) struct Bar<'a> {
    pub(crate) name: &'a str,
    /// The status of the run, as in reports.
    pub(crate) status: &'a str,
    pub(crate) start: Duration,
    pub(crate) took: Duration,
}

impl Bar<'_> {
    /// The run as a line; `whole` is the length of the scale.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of at most thirty cells")]
    pub(crate) fn line(&self, whole: Duration) -> String {
        let scale = cells_for_bars() / whole.as_secs_f64();
        let cells = |duration: Duration| " ".repeat((duration.as_secs_f64() * scale) as usize);
        let bar = cells(self.took).replace(' ', "▇");
        let bar = if bar.is_empty() { "▏" } else { &bar };
        let colour = colour_of(self.status);
        let millis = self.took.as_secs_f64() * 1e3;
        let (name, status, before) = (one_line(self.name), one_line(self.status), cells(self.start));
        let room = cells_for_names();
        let name = fitted(&name, room);
        format!("  {name:<room$} {colour}{status:<9}{PLAIN}{millis:>7.1} ms  {before}{colour}{bar}{PLAIN}")
    }
}

/// The colour of a status.
pub(crate) fn colour_of(status: &str) -> &'static str {
    match status {
        "ok" => GREEN,
        "blocked" => RED,
        _ => YELLOW,
    }
}

/// The width of the names' column; on a terminal it leaves room for the rest of the line.
fn cells_for_names() -> usize {
    const WIDEST: usize = 25;
    const BESIDE: usize = 26;
    shown_width().map_or(WIDEST, |columns| columns.saturating_sub(BESIDE).clamp(8, WIDEST))
}

/// The width of the bars' column; on a terminal it is the rest of the line.
fn cells_for_bars() -> f64 {
    const WIDEST: u16 = 30;
    const BEFORE: usize = 50;
    let left = |columns: usize| u16::try_from(columns.saturating_sub(BEFORE)).unwrap_or(WIDEST);
    shown_width().map_or(WIDEST, |columns| left(columns).min(WIDEST)).into()
}

fn decision(outcome: &Outcome) -> String {
    let verdict = &outcome.verdict;
    if !outcome.continues() {
        let reason = verdict.reason().unwrap_or_default();
        let word = if verdict.flow == Flow::Ask { "ask" } else { "blocked" };
        return format!("{RED}{word}{PLAIN}: {}", one_line(&reason.replace('\n', "; ")));
    }
    let mut notes = Vec::new();
    if let Some(args) = &outcome.modified_args {
        notes.push(format!("arguments are now {}", Value::from(args.clone())));
    }
    notes.extend(joined(&verdict.system_messages).map(|text| format!("adds to the conversation: {text}")));
    notes.extend(joined(&verdict.prompts).map(|text| format!("asks the agent: {text}")));
    notes.extend(
        outcome
            .reports
            .iter()
            .filter_map(|report| Some(format!("{} {}", report.hook.spec.name, report.error.as_ref()?))),
    );
    let verb = if outcome.modified_args.is_some() { "\x1b[36mmodified" } else { "\x1b[32mcontinues" };
    if notes.is_empty() { format!("{verb}{PLAIN}") } else { format!("{verb}{PLAIN}: {}", one_line(&notes.join("; "))) }
}
