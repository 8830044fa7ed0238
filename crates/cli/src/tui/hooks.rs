//! The panel of hooks: every hook by its category, what there is to know about it, and keys that do what `ollm hook` does.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use ollm_app::App;
use ollm_protocol::Hook;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};

use super::form::{Form, FormState};
use super::list::{ListCursor, Step, TextView};
use super::panel::{Action, Binding, Job, KeyHelp, Panel, command_of, help_of};
use super::text::{fitted, plain, styled};
use super::theme::Theme;
use crate::arguments::Command;
use crate::arguments::hook::HookCommand;
use crate::command::hook::{HookState, hook_states, hook_text};
use crate::error::{Failure, OK};

mod actions;
mod category;

use actions::FormPurpose;
use category::category;

/// The job that reads the hooks.
pub(super) const LOAD: &str = "reading hooks";
/// Narrower panels show list and details one above the other.
const NARROW: u16 = 60;
/// More of what a command prints is not kept.
const LONGEST_RESULT: usize = 256 << 10;

/// What can be done here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookKey {
    Toggle,
    Add,
    Edit,
    OpenEditor,
    Delete,
    Test,
    Trust,
    Withdraw,
    Filter,
    Reload,
    MoreDetails,
    LessDetails,
    Leave,
}

const KEYS: &[Binding<HookKey>] = &[
    Binding {
        keys: &[KeyCode::Enter, KeyCode::Left, KeyCode::Right, KeyCode::Char(' ')],
        shown: "Enter",
        help: "on/off",
        command: HookKey::Toggle,
    },
    Binding { keys: &[KeyCode::Char('a')], shown: "A", help: "add", command: HookKey::Add },
    Binding { keys: &[KeyCode::Char('e')], shown: "E", help: "edit", command: HookKey::Edit },
    Binding { keys: &[KeyCode::Char('d')], shown: "D", help: "delete", command: HookKey::Delete },
    Binding { keys: &[KeyCode::Char('t')], shown: "T", help: "test", command: HookKey::Test },
    Binding { keys: &[KeyCode::Char('r')], shown: "R", help: "review, trust", command: HookKey::Trust },
    Binding { keys: &[KeyCode::Char('w')], shown: "W", help: "withdraw trust", command: HookKey::Withdraw },
    Binding { keys: &[KeyCode::Char('o')], shown: "O", help: "open in your editor", command: HookKey::OpenEditor },
    Binding { keys: &[KeyCode::Char('/')], shown: "/", help: "filter", command: HookKey::Filter },
    Binding { keys: &[KeyCode::Char('n')], shown: "N", help: "details down", command: HookKey::MoreDetails },
    Binding { keys: &[KeyCode::Char('p')], shown: "P", help: "details up", command: HookKey::LessDetails },
    Binding { keys: &[KeyCode::Char('g'), KeyCode::F(5)], shown: "G", help: "read anew", command: HookKey::Reload },
    Binding { keys: &[KeyCode::Esc, KeyCode::Char('0')], shown: "0, Esc", help: "leave", command: HookKey::Leave },
];

/// A row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Exit,
    Category(&'static str),
    /// A hook, by its place.
    Hook(usize),
}

/// What a load brings.
pub(super) struct Loaded {
    pub(super) hooks: Vec<(Arc<Hook>, HookState)>,
    /// Files or entries that cannot be read.
    pub(super) broken: usize,
}

/// Whether the hooks are being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    None,
    Running,
    /// They are, and have changed meanwhile.
    Outdated,
}

pub(crate) struct HooksPanel {
    hooks: Vec<(Arc<Hook>, HookState)>,
    rows: Vec<Row>,
    broken: usize,
    cursor: ListCursor,
    /// What ids must contain, and whether it is being typed.
    filter: String,
    is_filtering: bool,
    form: Option<(FormPurpose, Form)>,
    /// What the last command printed, and what that was.
    result: String,
    result_title: String,
    result_view: Option<TextView>,
    details: Option<TextView>,
    /// Whether a command is under way: there is one at a time.
    is_running: bool,
    load: Load,
    is_loaded: bool,
    sender: Sender<Loaded>,
    loaded: Receiver<Loaded>,
    /// Where the list was drawn.
    list_area: Rect,
}

impl HooksPanel {
    pub(crate) fn new() -> HooksPanel {
        let (sender, loaded) = channel();
        HooksPanel {
            hooks: Vec::new(),
            rows: vec![Row::Exit],
            broken: 0,
            cursor: ListCursor::default(),
            filter: String::new(),
            is_filtering: false,
            form: None,
            result: String::new(),
            result_title: String::new(),
            result_view: None,
            details: None,
            is_running: false,
            load: Load::None,
            is_loaded: false,
            sender,
            loaded,
            list_area: Rect::default(),
        }
    }

    /// Where a load sends what it found.
    #[cfg(test)]
    pub(super) fn sender(&self) -> Sender<Loaded> {
        self.sender.clone()
    }

    /// The hook under the cursor.
    fn chosen(&self) -> Option<&(Arc<Hook>, HookState)> {
        match self.rows.get(self.cursor.at)? {
            Row::Hook(at) => self.hooks.get(*at),
            Row::Exit | Row::Category(_) => None,
        }
    }

    fn load(&mut self) -> Action {
        if self.load != Load::None {
            self.load = Load::Outdated;
            return Action::Changed;
        }
        self.load = Load::Running;
        let sender = self.sender.clone();
        Action::Run(Job::new(LOAD, move |context, _| {
            let app = App::load(context)?;
            let broken = app.problems.iter().filter(|one| one.severity != ollm_catalog::Severity::Warning).count();
            // Nobody waits where the panels are gone.
            let _ = sender.send(Loaded { hooks: hook_states(app.hooks(), &app), broken });
            Ok(OK)
        }))
    }

    /// Runs a command of `ollm hook`; one at a time.
    fn run(&mut self, title: String, command: HookCommand) -> Action {
        if self.is_running {
            return Action::None;
        }
        self.is_running = true;
        self.result.clear();
        self.result_view = None;
        self.result_title.clone_from(&title);
        Action::Run(Job::command(title, Command::Hook { command }))
    }

    fn take_loaded(&mut self) {
        let Some(loaded) = self.loaded.try_iter().last() else { return };
        let chosen = self.chosen().map(|(hook, _)| hook.id().to_owned());
        (self.hooks, self.broken, self.is_loaded) = (loaded.hooks, loaded.broken, true);
        self.hooks.sort_by_key(|(hook, _)| category::order(hook));
        self.arrange(chosen.as_deref());
    }

    /// Lists the hooks that the filter leaves, and keeps the cursor where it was.
    fn arrange(&mut self, chosen: Option<&str>) {
        let wanted = self.filter.to_lowercase();
        let fits = |hook: &Hook| wanted.is_empty() || hook.id().to_lowercase().contains(&wanted);
        self.rows = vec![Row::Exit];
        let mut last = "";
        for (at, (hook, _)) in self.hooks.iter().enumerate().filter(|(_, (hook, _))| fits(hook)) {
            let category = category(hook);
            if category != last {
                self.rows.push(Row::Category(category));
                last = category;
            }
            self.rows.push(Row::Hook(at));
        }
        let is_chosen = |row: &Row| match row {
            Row::Hook(at) => self.hooks.get(*at).is_some_and(|(hook, _)| Some(hook.id()) == chosen),
            Row::Exit | Row::Category(_) => false,
        };
        let is_hook = |row: &Row| matches!(row, Row::Hook(_));
        let found = self.rows.iter().position(is_chosen).or_else(|| match chosen {
            // Its neighbour, where it is gone.
            Some(_) => None,
            None => self.rows.iter().position(is_hook),
        });
        self.cursor.at = found.unwrap_or(self.cursor.at).min(self.rows.len().saturating_sub(1));
        self.details = None;
    }

    fn step(&mut self, step: Step) -> Action {
        let len = self.rows.len();
        self.cursor.step(step, len);
        // A category is no place to be.
        if matches!(self.rows.get(self.cursor.at), Some(Row::Category(_))) {
            let is_up = matches!(step, Step::Up | Step::PageUp | Step::First);
            self.cursor.step(if is_up { Step::Up } else { Step::Down }, len);
        }
        self.details = None;
        Action::Changed
    }

    fn filter_key(&mut self, key: KeyEvent) -> Action {
        let mut filter = self.filter.clone();
        match key.code {
            KeyCode::Enter => self.is_filtering = false,
            KeyCode::Esc => {
                self.is_filtering = false;
                filter.clear();
            }
            KeyCode::Backspace => drop(filter.pop()),
            KeyCode::Char(char) if !key.modifiers.contains(KeyModifiers::CONTROL) => filter.push(char),
            _ => return Action::None,
        }
        self.set_filter(filter)
    }

    /// Lists the hooks whose ids contain this.
    fn set_filter(&mut self, filter: String) -> Action {
        self.filter = filter;
        let chosen = self.chosen().map(|(hook, _)| hook.id().to_owned());
        self.arrange(chosen.as_deref());
        Action::Changed
    }

    fn form_key(&mut self, key: KeyEvent) -> Action {
        let Some((_, form)) = &mut self.form else { return Action::None };
        match form.key(key) {
            FormState::Open => Action::Changed,
            FormState::Cancelled => {
                self.form = None;
                Action::Changed
            }
            FormState::Saved(values) => match self.form.take() {
                Some((purpose, _)) => self.save(purpose, &values),
                None => Action::None,
            },
        }
    }

    /// What the panel says of its hooks, above them.
    fn title(&self) -> String {
        let filter = if self.is_filtering || !self.filter.is_empty() {
            format!(" /{}{}", self.filter, if self.is_filtering { "▏" } else { "" })
        } else {
            String::new()
        };
        let broken = match self.broken {
            0 => String::new(),
            broken => format!(", {broken} broken"),
        };
        format!(" {} hooks{broken}{filter} ", self.hooks.len())
    }
}

impl Panel for HooksPanel {
    fn keys(&self) -> Vec<KeyHelp> {
        help_of(KEYS)
    }

    fn open(&mut self) -> Action {
        self.load()
    }

    fn takes_text(&self) -> bool {
        self.form.is_some() || self.is_filtering
    }

    fn key(&mut self, key: KeyEvent) -> Action {
        if self.form.is_some() {
            return self.form_key(key);
        }
        if self.is_filtering {
            return self.filter_key(key);
        }
        if let Some(step) = Step::of(key.code) {
            return self.step(step);
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Action::Leave;
        }
        command_of(KEYS, key).map_or(Action::None, |command| self.command(command))
    }

    fn paste(&mut self, text: &str) -> Action {
        if let Some((_, form)) = &mut self.form {
            form.paste(text);
        } else if self.is_filtering {
            let filter = self.filter.clone() + text.lines().next().unwrap_or_default();
            return self.set_filter(filter);
        }
        Action::Changed
    }

    fn mouse(&mut self, event: MouseEvent, _: Rect) -> Action {
        match event.kind {
            MouseEventKind::ScrollUp => self.step(Step::Up),
            MouseEventKind::ScrollDown => self.step(Step::Down),
            MouseEventKind::Down(MouseButton::Left) if self.list_area.contains((event.column, event.row).into()) => {
                let at = self.cursor.shown_in(usize::from(event.row - self.list_area.y));
                if matches!(self.rows.get(at), Some(Row::Hook(_) | Row::Exit)) {
                    self.cursor.at = at;
                    self.details = None;
                }
                Action::Changed
            }
            _ => Action::None,
        }
    }

    fn show(&mut self, text: &str) {
        if self.result.len() < LONGEST_RESULT {
            self.result.push_str(text);
            self.result_view = None;
        }
    }

    fn done(&mut self, job: &str, outcome: &Result<u8, Failure>) -> Action {
        if let Err(failure) = outcome {
            job.clone_into(&mut self.result_title);
            let text = failure.to_string();
            // A load that fails again says nothing new.
            if !self.result.ends_with(&text) {
                self.show(&text);
            }
        }
        self.take_loaded();
        if job == LOAD {
            let load = std::mem::replace(&mut self.load, Load::None);
            return if load == Load::Outdated { self.load() } else { Action::Changed };
        }
        // Whatever a command did, the list shows it.
        self.is_running = false;
        self.load()
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let [list, details] = if area.width < NARROW {
            Layout::vertical([Constraint::Percentage(50), Constraint::Fill(1)]).areas(area)
        } else {
            Layout::horizontal([Constraint::Percentage(30), Constraint::Fill(1)]).areas(area)
        };
        self.draw_list(frame, list, theme);
        self.draw_details(frame, details, theme);
        if let Some((_, form)) = &mut self.form {
            form.draw(frame, area, theme);
        }
    }
}

impl HooksPanel {
    fn draw_list(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let block = Block::new().borders(Borders::TOP).border_style(theme.faint).title(self.title());
        let inner = block.inner(area);
        frame.render_widget(block, area);
        self.list_area = inner;
        let window = self.cursor.window(usize::from(inner.height), self.rows.len());
        let (start, end) = (window.start, window.end);
        let width = usize::from(inner.width);
        let rows: Vec<Line<'static>> = self
            .rows
            .get(window)
            .unwrap_or_default()
            .iter()
            .zip(start..)
            .map(|(row, at)| self.row(*row, at == self.cursor.at, width, theme))
            .collect();
        frame.render_widget(Paragraph::new(rows), inner);
        let marks = [(start > 0, "▲", inner.y), (end < self.rows.len(), "▼", inner.bottom().saturating_sub(1))];
        for (_, mark, y) in marks.into_iter().filter(|(is_more, _, _)| *is_more && inner.width > 0 && inner.height > 1)
        {
            let place = Rect { x: inner.right() - 1, y, width: 1, height: 1 };
            frame.render_widget(Paragraph::new(Span::styled(mark, theme.faint)), place);
        }
    }

    fn row(&self, row: Row, is_chosen: bool, width: usize, theme: &Theme) -> Line<'static> {
        let (text, style) = match row {
            Row::Exit => ("Exit".to_owned(), Style::new()),
            Row::Category(name) => (name.to_owned(), theme.title),
            Row::Hook(at) => match self.hooks.get(at) {
                Some((hook, state)) => {
                    let dot = if category::is_on(hook, state) { "●" } else { "○" };
                    let waits = matches!(state.trust, "untrusted" | "modified") || state.unready.is_some();
                    let style = if waits { theme.attention } else { Style::new() };
                    let mark = if waits { " !" } else { "" };
                    let name = ollm_store::one_line(&hook.spec.name);
                    (format!("{dot} {}{mark}", fitted(&name, width.saturating_sub(4))), style)
                }
                None => (String::new(), Style::new()),
            },
        };
        let text = fitted(&text, width);
        let style = if is_chosen { style.patch(theme.chosen) } else { style };
        Line::from(Span::styled(text, style))
    }

    fn draw_details(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        if self.details.is_none() {
            self.details = Some(TextView::new(self.details_text(theme)));
        }
        let [upper, lower] = if self.result.is_empty() {
            [area, Rect::default()]
        } else {
            Layout::vertical([Constraint::Percentage(40), Constraint::Fill(1)]).areas(area)
        };
        let name = self.chosen().map(|(hook, _)| hook.spec.name.clone()).unwrap_or_default();
        let (details, result) = (&mut self.details, &mut self.result_view);
        draw_text(frame, upper, &ollm_store::one_line(&name), details.get_or_insert_default(), theme);
        if !self.result.is_empty() {
            let view = result.get_or_insert_with(|| TextView::at_end(styled(&self.result, theme)));
            draw_text(frame, lower, &self.result_title, view, theme);
        }
    }

    fn details_text(&self, theme: &Theme) -> Vec<Line<'static>> {
        match self.chosen() {
            Some((hook, state)) => plain(&ollm_store::escape_for_people(&hook_text(hook, state)), Style::new()),
            None if !self.is_loaded => plain("Reading the hooks …", theme.faint),
            None => plain("Enter leaves this panel. A adds a hook.", theme.faint),
        }
    }
}

fn draw_text(frame: &mut Frame<'_>, area: Rect, title: &str, view: &mut TextView, theme: &Theme) {
    let block = Block::new().borders(Borders::TOP | Borders::LEFT).border_style(theme.faint);
    let inner = block.inner(area);
    let block = block.title(format!(" {} ", fitted(title, usize::from(area.width.saturating_sub(4)))));
    frame.render_widget(block, area);
    view.draw(frame, inner);
}
