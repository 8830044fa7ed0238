//! The panel of the trace: events as they come, each with its verdict and duration, and keys for `ollm trace`, `ollm
//! explain` and `ollm replay`.

use std::ops::ControlFlow;

use ollm_app::AppContext;
use ollm_app::trace::Record;
use ollm_store::one_line;
use ratatui::crossterm::event::KeyCode;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::list_panel::{Batch, Feed, KeyAction, ListContent, ListItem};
use super::panel::{Binding, Key};
use super::text::{fitted, styled};
use super::theme::Theme;
use crate::arguments::trace::{TraceArguments, TraceCommand, TraceFilters};
use crate::arguments::{Command, ExplainArguments, ReplayArguments};
use crate::command::trace::{LiveRecords, live, record_bars, record_text};
use crate::error::Failure;
use crate::output::Output;

/// So many of the newest events are there at the beginning.
const NEWEST: usize = 500;
/// The cells of a bar, and of the number beside it.
const BAR: usize = 5;
const MILLIS: usize = 11;
/// Narrower rows do not say when it was.
const NARROW: usize = 50;

/// The commands of this panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceKey {
    Explain,
    Blocked,
    Session,
    Stats,
    Replay,
}

const KEYS: &[Binding<TraceKey>] = &[
    Binding {
        keys: &[Key::Plain(KeyCode::Enter), Key::Plain(KeyCode::Char('e'))],
        shown: "Enter, E",
        help: "explain its verdict",
        command: TraceKey::Explain,
    },
    Binding {
        keys: &[Key::Plain(KeyCode::Char('b'))],
        shown: "B",
        help: "refused ones only",
        command: TraceKey::Blocked,
    },
    Binding { keys: &[Key::Plain(KeyCode::Char('w'))], shown: "W", help: "its session", command: TraceKey::Session },
    Binding { keys: &[Key::Plain(KeyCode::Char('s'))], shown: "S", help: "statistics", command: TraceKey::Stats },
    Binding { keys: &[Key::Plain(KeyCode::Char('r'))], shown: "R", help: "replay it", command: TraceKey::Replay },
];

/// One event of the trace.
pub(crate) struct TraceItem {
    record: Record,
}

impl TraceItem {
    pub(super) fn new(record: Record) -> TraceItem {
        TraceItem { record }
    }

    /// The mark of the verdict, and its style.
    fn mark(&self, theme: &Theme) -> (&'static str, Style) {
        match self.record.verdict("flow").as_str() {
            Some("ask") => ("?", theme.attention),
            _ if self.record.continues() => ("✓", theme.good),
            _ => ("✗", theme.bad),
        }
    }
}

/// A bar for a time: one cell more for each power of ten, from less than a millisecond to a second and beyond.
fn bar(millis: f64) -> String {
    const STEPS: [f64; BAR - 1] = [1.0, 10.0, 100.0, 1000.0];
    let cells = 1 + STEPS.iter().filter(|step| millis >= **step).count();
    format!("{}{}", "▇".repeat(cells), " ".repeat(BAR - cells))
}

impl ListItem for TraceItem {
    fn id(&self) -> &str {
        self.record.id()
    }

    fn name(&self) -> &str {
        self.record.id()
    }

    fn search_text(&self) -> String {
        let hooks: Vec<&str> = self.record.runs().map(|run| run.name).collect();
        let text = |field| self.record.text(field);
        let flow = self.record.verdict("flow").as_str().unwrap_or_default();
        [text("event"), text("subject"), text("session"), flow, &hooks.join(" "), self.id()].join(" ")
    }

    fn row(&self, width: usize, theme: &Theme) -> Line<'static> {
        let millis = self.record.millis();
        let took = format!("{:>MILLIS$}", format!("{millis:.1} ms"));
        let (mark, style) = self.mark(theme);
        let time = self.record.text("time").get(11..19).unwrap_or_default();
        let what = format!(" {} {}", self.record.text("event"), self.record.text("subject"));
        let time = if width < NARROW { String::new() } else { format!("{} ", one_line(time)) };
        let room = width.saturating_sub(time.len() + 1 + 1 + BAR + MILLIS);
        Line::from(vec![
            Span::styled(time, theme.faint),
            Span::styled(mark, style),
            Span::raw(format!("{:<room$} ", fitted(one_line(&what).trim_end(), room))),
            Span::styled(bar(millis), style),
            Span::raw(took),
        ])
    }

    fn details(&self, theme: &Theme) -> Vec<Line<'static>> {
        let mut bars = String::new();
        record_bars(&self.record, &mut bars);
        let mut lines = styled(&bars, theme);
        lines.push(Line::default());
        lines.extend(styled(&record_text(&self.record), theme));
        lines
    }
}

#[derive(Default)]
pub(crate) struct Events {
    /// Whether only events that did not continue are listed.
    is_blocked_only: bool,
}

impl ListContent for Events {
    type Item = TraceItem;
    type Key = TraceKey;
    type Purpose = ();

    const NOUN: &'static str = "event";
    const LOAD: &'static str = "reading the trace";
    const EMPTY: &'static str = "Enter leaves this panel. Events appear here as they happen.";
    const KEYS: &'static [Binding<TraceKey>] = KEYS;
    const LIST_SHARE: u16 = 50;
    const IS_LIVE: bool = true;

    fn load(context: &AppContext, feed: &Feed<TraceItem>, _: &mut Output) -> Result<(), Failure> {
        let items = |records: Vec<Record>| records.into_iter().map(TraceItem::new).collect::<Vec<_>>();
        live(NEWEST, context, |records, files| {
            match records {
                LiveRecords::Newest(records, note) => feed.send(Batch::All(items(records), note.to_owned())),
                LiveRecords::More(records) if records.is_empty() => {}
                LiveRecords::More(records) => feed.send(Batch::More(items(records))),
            }
            if feed.waits_for(files) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    }

    fn command(&mut self, key: TraceKey, chosen: Option<&TraceItem>) -> KeyAction<()> {
        match (key, chosen) {
            (TraceKey::Blocked, _) => {
                self.is_blocked_only = !self.is_blocked_only;
                KeyAction::Arrange
            }
            (TraceKey::Stats, _) => {
                let command = TraceCommand::Stats { filters: TraceFilters::default(), long: false, json: false };
                trace("counting events".to_owned(), Some(command), None)
            }
            (_, None) => KeyAction::None,
            (TraceKey::Session, Some(item)) => {
                let session = item.record.text("session").to_owned();
                trace(format!("events of session {}", one_line(&session)), None, Some(session))
            }
            (TraceKey::Explain, Some(item)) => {
                let arguments = ExplainArguments { what: item.id().to_owned(), data: None, json: false };
                KeyAction::Run(format!("explaining {}", one_line(item.id())), Command::Explain(arguments))
            }
            (TraceKey::Replay, Some(item)) => {
                let id = Some(item.id().to_owned());
                let arguments = ReplayArguments { id, filters: TraceFilters::default(), hooks: None, json: false };
                KeyAction::Run(format!("replaying {}", one_line(item.id())), Command::Replay(arguments))
            }
        }
    }

    fn shows(&self, item: &TraceItem) -> bool {
        !self.is_blocked_only || !item.record.continues()
    }

    fn selection(&self) -> &'static str {
        if self.is_blocked_only { ", refused only" } else { "" }
    }
}

fn trace(title: String, command: Option<TraceCommand>, session: Option<String>) -> KeyAction<()> {
    KeyAction::Run(title, Command::Trace(TraceArguments { command, session, json: false }))
}
