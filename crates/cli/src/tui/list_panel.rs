//! A panel with a list on the left, what there is to know about the chosen entry on the right, and below that what the last
//! command printed.
//!
//! [`ListPanel`] owns what such panels share: loading, cursor, filter, forms, one command at a time, drawing. What is listed, and
//! what the other keys do, is a [`ListContent`].

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};

use ollm_agent::Cancel;
use ollm_app::WakeSignal;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;

use super::form::{Form, FormState};
use super::list::{ListCursor, Step, TextView};
use super::panel::{Action, Binding, Job, Key, KeyHelp, Panel, command_of, help_of};
use super::theme::Theme;
use crate::ask::Asker;
use crate::error::{ErrorKind, Failure, OK};

mod content;
mod draw;

pub(crate) use content::{Batch, Feed, KeyAction, ListContent, ListItem};
pub(crate) use draw::dotted;

/// Longer output of a command is cut.
const LONGEST_RESULT: usize = 256 << 10;
/// A list that grows loses its oldest entries beyond this.
const MOST_LIVE: usize = 2000;
/// A filter needs no more characters.
const LONGEST_FILTER: usize = 200;

/// The keys of all such panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommonKey {
    Filter,
    Reload,
    MoreDetails,
    LessDetails,
    Leave,
    Choose,
    Interrupt,
}

pub(super) const COMMON: &[Binding<CommonKey>] = &[
    Binding { keys: &[Key::Plain(KeyCode::Char('/'))], shown: "/", help: "filter", command: CommonKey::Filter },
    Binding {
        keys: &[Key::Plain(KeyCode::Char('n'))],
        shown: "N",
        help: "details down",
        command: CommonKey::MoreDetails,
    },
    Binding {
        keys: &[Key::Plain(KeyCode::Char('p'))],
        shown: "P",
        help: "details up",
        command: CommonKey::LessDetails,
    },
    Binding { keys: &[Key::Plain(KeyCode::Char('g'))], shown: "G", help: "read anew", command: CommonKey::Reload },
    Binding {
        keys: &[Key::Plain(KeyCode::Esc), Key::Plain(KeyCode::Char('0'))],
        shown: "0, Esc",
        help: "leave",
        command: CommonKey::Leave,
    },
    Binding {
        keys: &[Key::Plain(KeyCode::Up), Key::Plain(KeyCode::Down)],
        shown: "Up, Down",
        help: "choose",
        command: CommonKey::Choose,
    },
    Binding {
        keys: &[Key::Plain(KeyCode::Home), Key::Plain(KeyCode::End)],
        shown: "Home, End",
        help: "the first, the last",
        command: CommonKey::Choose,
    },
    Binding {
        keys: &[Key::Plain(KeyCode::PageUp), Key::Plain(KeyCode::PageDown)],
        shown: "PgUp, PgDn",
        help: "choose further away",
        command: CommonKey::Choose,
    },
    Binding {
        keys: &[Key::Control(KeyCode::Char('c'))],
        shown: "Ctrl+C",
        help: "interrupt, or leave",
        command: CommonKey::Interrupt,
    },
];

/// A row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Exit,
    Category(&'static str),
    /// An entry, by its index.
    Item(usize),
}

/// Whether the entries are being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    None,
    Running,
    /// They are, and have changed meanwhile.
    Outdated,
}

pub(crate) struct ListPanel<C: ListContent> {
    content: C,
    items: VecDeque<C::Item>,
    rows: Vec<Row>,
    /// An addition to the title.
    note: String,
    cursor: ListCursor,
    /// The entry that the person chose, while the filter hides it.
    hidden: Option<String>,
    /// The text that entries must contain, and whether it is being typed.
    filter: String,
    is_filtering: bool,
    form: Option<(C::Purpose, Form)>,
    /// The form whose command is running; it opens again if the command fails.
    sent: Option<(C::Purpose, Form)>,
    /// The last command's output, and its title.
    result: String,
    result_title: String,
    result_view: Option<TextView>,
    details: Option<TextView>,
    /// How often the entries were arranged, and for which time the details are.
    arranged: usize,
    detailed: usize,
    /// Interrupts the running command; there is only one at a time.
    running: Option<Cancel>,
    load: Load,
    is_loaded: bool,
    /// Whether the panel is in front.
    is_open: bool,
    /// Ended when the list is no longer visible.
    looking: Option<WakeSignal>,
    sender: Sender<Batch<C::Item>>,
    batches: Receiver<Batch<C::Item>>,
    /// Where the list was drawn.
    list_area: Rect,
}

impl<C: ListContent> ListPanel<C> {
    pub(crate) fn new() -> ListPanel<C> {
        let (sender, batches) = channel();
        ListPanel {
            content: C::default(),
            items: VecDeque::new(),
            rows: vec![Row::Exit],
            note: String::new(),
            cursor: ListCursor::default(),
            hidden: None,
            filter: String::new(),
            is_filtering: false,
            form: None,
            sent: None,
            result: String::new(),
            result_title: String::new(),
            result_view: None,
            details: None,
            arranged: 0,
            detailed: 0,
            running: None,
            load: Load::None,
            is_loaded: false,
            is_open: false,
            looking: None,
            sender,
            batches,
            list_area: Rect::default(),
        }
    }

    /// The channel on which a load sends its results.
    #[cfg(test)]
    pub(super) fn sender(&self) -> Sender<Batch<C::Item>> {
        self.sender.clone()
    }

    /// The entry under the cursor.
    fn chosen(&self) -> Option<&C::Item> {
        match self.rows.get(self.cursor.at)? {
            Row::Item(at) => self.items.get(*at),
            Row::Exit | Row::Category(_) => None,
        }
    }

    fn load(&mut self) -> Action {
        if self.load != Load::None {
            self.load = Load::Outdated;
            self.look_away();
            return Action::Changed;
        }
        let looking = match WakeSignal::new() {
            Ok(looking) => looking,
            Err(error) => return self.act(KeyAction::Say(C::LOAD.to_owned(), error.message)),
        };
        self.load = Load::Running;
        let (sender, looked) = (self.sender.clone(), looking.clone());
        self.looking = Some(looking);
        if !self.is_open {
            self.look_away();
        }
        let job = Job::new(C::LOAD, move |context, output| {
            let screen = match output.asker() {
                Asker::Dialog(screen) => Some(screen.clone()),
                Asker::Lines(..) => None,
            };
            C::load(context, &Feed { sender, screen, looking: looked }, output).map(|()| OK)
        });
        // The load runs while the panel is visible, and nothing waits for it.
        Action::Run(job.in_background())
    }

    /// Stops following changes.
    fn look_away(&mut self) {
        self.looking.take().iter().for_each(WakeSignal::end);
    }

    /// Loads possible changes; a hidden list is not followed.
    fn reload(&mut self) -> Action {
        if self.is_open { self.load() } else { Action::Changed }
    }

    fn act(&mut self, deed: KeyAction<C::Purpose>) -> Action {
        match deed {
            KeyAction::None => return Action::None,
            KeyAction::Run(title, command) => return self.begin(Job::command(title, command)),
            KeyAction::Confirm(question, title, command) => {
                return self.begin(Job::new(title, move |context, output| {
                    output.asker().confirm(&question, "it")?;
                    crate::command::run(command, context, output)
                }));
            }
            KeyAction::Say(title, text) => {
                (self.result, self.result_title, self.result_view) = (text, title, None);
            }
            KeyAction::Fill(purpose, form) => self.form = Some((purpose, form)),
            KeyAction::Arrange => self.arrange(),
        }
        Action::Changed
    }

    /// Runs a command of the program; one at a time.
    fn begin(&mut self, job: Job) -> Action {
        if self.running.is_some() {
            return Action::None;
        }
        self.running = Some(job.cancel.clone());
        self.result.clear();
        self.result_view = None;
        self.result_title.clone_from(&job.title);
        Action::Run(job)
    }

    /// Takes what a load brought.
    fn take_loaded(&mut self) {
        let batches: Vec<Batch<C::Item>> = self.batches.try_iter().collect();
        if batches.is_empty() {
            return;
        }
        // A cursor at the newest entry follows new entries.
        let is_at_end = C::IS_LIVE && (!self.is_loaded || self.cursor.at + 1 >= self.rows.len());
        let chosen = self.chosen().map(|item| item.id().to_owned());
        for batch in batches {
            match batch {
                Batch::All(items, note) => (self.items, self.note, self.is_loaded) = (items.into(), note, true),
                Batch::More(items) => self.items.extend(items),
            }
        }
        if C::IS_LIVE {
            let surplus = self.items.len().saturating_sub(MOST_LIVE);
            self.items.drain(..surplus);
        }
        self.arrange_at(chosen.as_deref());
        if is_at_end {
            self.cursor.step(Step::Last, self.rows.len());
        }
    }

    fn arrange(&mut self) {
        let chosen = self.chosen().map(|item| item.id().to_owned());
        self.arrange_at(chosen.as_deref());
    }

    /// Lists the entries that pass the filter. Keeps the cursor, or returns it to the entry that the person had chosen.
    fn arrange_at(&mut self, chosen: Option<&str>) {
        let wanted = self.filter.to_lowercase();
        let fits = |item: &C::Item| {
            self.content.shows(item) && (wanted.is_empty() || item.search_text().to_lowercase().contains(&wanted))
        };
        let mut rows = vec![Row::Exit];
        let mut last = "";
        for (at, item) in self.items.iter().enumerate().filter(|(_, item)| fits(item)) {
            let category = item.category();
            if category != last {
                rows.push(Row::Category(category));
                last = category;
            }
            rows.push(Row::Item(at));
        }
        self.rows = rows;
        let hidden = self.hidden.take();
        let listed = hidden.as_deref().and_then(|id| self.place_of(id));
        let found = listed.or_else(|| match chosen {
            // If the entry is gone, the cursor goes to its neighbour.
            Some(id) => self.place_of(id),
            None => self.rows.iter().position(|row| matches!(row, Row::Item(_))),
        });
        if listed.is_none() {
            self.hidden = hidden.or_else(|| chosen.filter(|_| found.is_none()).map(str::to_owned));
        }
        self.cursor.at = found.unwrap_or(self.cursor.at).min(self.rows.len().saturating_sub(1));
        if self.chosen().is_none_or(|item| Some(item.id()) != chosen) {
            self.details = None;
        }
        self.arranged += 1;
    }

    /// The row of an entry.
    fn place_of(&self, id: &str) -> Option<usize> {
        self.rows.iter().position(|row| match row {
            Row::Item(at) => self.items.get(*at).is_some_and(|item| item.id() == id),
            Row::Exit | Row::Category(_) => false,
        })
    }

    fn step(&mut self, step: Step) -> Action {
        let len = self.rows.len();
        self.cursor.step(step, len);
        // The cursor never stays on a category.
        if matches!(self.rows.get(self.cursor.at), Some(Row::Category(_))) {
            let is_up = matches!(step, Step::Up | Step::PageUp | Step::First);
            self.cursor.step(if is_up { Step::Up } else { Step::Down }, len);
        }
        self.choose();
        Action::Changed
    }

    /// Another entry is chosen, so the last command's output is closed.
    fn choose(&mut self) {
        (self.details, self.hidden) = (None, None);
        if self.running.is_none() {
            self.close_result();
        }
    }

    /// Whether there was a result to close.
    fn close_result(&mut self) -> bool {
        self.result_view = None;
        !std::mem::take(&mut self.result).is_empty()
    }

    fn common_key(&mut self, key: CommonKey, code: KeyCode) -> Action {
        match key {
            CommonKey::Choose => return Step::of(code).map_or(Action::None, |step| self.step(step)),
            CommonKey::Interrupt => match &self.running {
                Some(cancel) => cancel.interrupt(),
                None => return Action::Leave,
            },
            CommonKey::Leave => return Action::Leave,
            CommonKey::Reload => return self.load(),
            CommonKey::Filter => {
                self.is_filtering = true;
                return self.set_filter(String::new());
            }
            CommonKey::MoreDetails => self.scroll(Step::PageDown),
            CommonKey::LessDetails => self.scroll(Step::PageUp),
        }
        Action::Changed
    }

    /// Scrolls the result if there is one, else the details.
    fn scroll(&mut self, step: Step) {
        if let Some(view) = self.result_view.as_mut().or(self.details.as_mut()) {
            view.step(step);
        }
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

    /// Lists the entries that contain this.
    fn set_filter(&mut self, mut filter: String) -> Action {
        filter.truncate(filter.floor_char_boundary(LONGEST_FILTER));
        self.filter = filter;
        self.arrange();
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
                Some((purpose, form)) => {
                    let deed = self.content.save(&purpose, &values);
                    self.sent = matches!(deed, KeyAction::Run(..)).then_some((purpose, form));
                    self.act(deed)
                }
                None => Action::None,
            },
        }
    }
}

impl<C: ListContent> Panel for ListPanel<C> {
    fn keys(&self) -> Vec<KeyHelp> {
        [help_of(C::KEYS), help_of(COMMON)].concat()
    }

    fn open(&mut self) -> Action {
        self.is_open = true;
        self.load()
    }

    fn close(&mut self) {
        self.is_open = false;
        self.look_away();
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
        if key.code == KeyCode::Enter && self.rows.get(self.cursor.at) == Some(&Row::Exit) {
            return Action::Leave;
        }
        if key.code == KeyCode::Esc && self.running.is_none() && self.close_result() {
            return Action::Changed;
        }
        if let Some(own) = command_of(C::KEYS, key) {
            let chosen = match self.rows.get(self.cursor.at) {
                Some(Row::Item(at)) => self.items.get(*at),
                _ => None,
            };
            let deed = self.content.command(own, chosen);
            return self.act(deed);
        }
        command_of(COMMON, key).map_or(Action::None, |common| self.common_key(common, key.code))
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
            // A form hides the list.
            _ if self.form.is_some() => Action::None,
            MouseEventKind::ScrollUp => self.step(Step::Up),
            MouseEventKind::ScrollDown => self.step(Step::Down),
            MouseEventKind::Down(MouseButton::Left) if self.list_area.contains((event.column, event.row).into()) => {
                let at = self.cursor.shown_in(usize::from(event.row - self.list_area.y));
                if matches!(self.rows.get(at), Some(Row::Item(_) | Row::Exit)) {
                    self.cursor.at = at;
                    self.choose();
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

    fn loaded(&mut self) {
        self.take_loaded();
    }

    fn done(&mut self, job: &str, outcome: &Result<u8, Failure>) -> Action {
        if let Err(failure) = outcome {
            job.clone_into(&mut self.result_title);
            let text = failure.to_string();
            // A load that fails again in the same way is not reported again.
            if !self.result.ends_with(&text) {
                self.show(&text);
            }
        }
        self.take_loaded();
        if job == C::LOAD {
            let load = std::mem::replace(&mut self.load, Load::None);
            return if load == Load::Outdated { self.reload() } else { Action::Changed };
        }
        // The list shows what the command did; the form of a refused command opens again.
        self.running = None;
        let sent =
            self.sent.take().filter(|_| outcome.as_ref().is_err_and(|failure| failure.kind != ErrorKind::Interrupted));
        self.form = sent.map(|(purpose, form)| (purpose, form.refused(outcome))).or(self.form.take());
        self.reload()
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        self.draw_panel(frame, area, theme);
    }
}
