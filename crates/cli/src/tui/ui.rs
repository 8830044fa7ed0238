//! All panels together: the front panel, the open question and the running jobs. It takes keys and messages, and knows
//! no terminal.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::{Position, Rect};

use super::chat::{ChatPanel, ChatSetup};
use super::dialog::{DialogState, QuestionDialog};
use super::doctor::Findings;
use super::extensions::Extensions;
use super::help::Help;
use super::hooks::Hooks;
use super::list::Step;
use super::list_panel::ListPanel;
use super::mcp::Servers;
use super::panel::{Action, Job, Panel, PanelName, command_of};
use super::screen::Message;
use super::theme::Theme;
use super::trace::Events;
use crate::command::chat::front::written_text;
use crate::error::Failure;

mod draw;
pub(super) mod keys;

use keys::{EVERYWHERE, GlobalKey};

/// How long a conversation may take to end.
const GRACE: Duration = Duration::from_secs(5);
/// More of a pasted text is left out.
const LONGEST_PASTE: usize = 1 << 20;

/// An effect that the loop carries out for the panels.
pub(crate) enum Effect {
    /// A job begins on a thread of its own.
    Spawn(PanelName, Job),
    /// Everything typed until now is forgotten.
    DiscardInput,
    /// A job has the terminal until `done` ends.
    Suspend { ready: Sender<()>, done: Receiver<()> },
    /// The process is stopped, as by Ctrl-Z.
    Stop,
    /// Everything is drawn anew.
    Clear,
    /// The panels are left.
    Quit,
}

pub(crate) struct Ui {
    theme: Theme,
    panels: Panels,
    front: PanelName,
    questions: VecDeque<QuestionDialog>,
    help: Option<Help>,
    /// The result of the last job whose panel is not in front.
    notice: Option<String>,
    running: Vec<RunningJob>,
    /// The time since which the conversation is ending.
    leaving: Option<Instant>,
    effects: Vec<Effect>,
    has_changed: bool,
    spin: usize,
    /// Where the tabs and the panel were drawn.
    tabs: Vec<Rect>,
    body: Rect,
    /// Whether the screen has no room for the panels: invisible panels take no keys.
    is_too_small: bool,
    grace: Duration,
}

/// Every panel.
pub(super) struct Panels {
    chat: ChatPanel,
    pub(super) hooks: ListPanel<Hooks>,
    pub(super) mcp: ListPanel<Servers>,
    pub(super) extensions: ListPanel<Extensions>,
    pub(super) trace: ListPanel<Events>,
    pub(super) doctor: ListPanel<Findings>,
}

impl Panels {
    fn new(chat: ChatSetup) -> Panels {
        Panels {
            chat: ChatPanel::new(chat),
            hooks: ListPanel::new(),
            mcp: ListPanel::new(),
            extensions: ListPanel::new(),
            trace: ListPanel::new(),
            doctor: ListPanel::new(),
        }
    }

    fn get(&mut self, name: PanelName) -> &mut dyn Panel {
        match name {
            PanelName::Chat => &mut self.chat,
            PanelName::Hooks => &mut self.hooks,
            PanelName::Mcp => &mut self.mcp,
            PanelName::Extensions => &mut self.extensions,
            PanelName::Trace => &mut self.trace,
            PanelName::Doctor => &mut self.doctor,
        }
    }
}

struct RunningJob {
    panel: PanelName,
    title: String,
    since: Instant,
}

impl Ui {
    /// A question takes keys once it has been on the screen for as long as `grace`.
    pub(crate) fn new(theme: Theme, first: PanelName, chat: ChatSetup, grace: Duration) -> Ui {
        let mut ui = Ui {
            theme,
            panels: Panels::new(chat),
            front: first,
            questions: VecDeque::new(),
            help: None,
            notice: None,
            running: Vec::new(),
            leaving: None,
            effects: Vec::new(),
            has_changed: true,
            spin: 0,
            tabs: Vec::new(),
            body: Rect::default(),
            is_too_small: false,
            grace,
        };
        ui.turn_to(first);
        ui
    }

    #[cfg(test)]
    pub(super) fn panels(&self) -> &Panels {
        &self.panels
    }

    /// The effects to carry out now.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Whether it must be drawn.
    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Whether it must be drawn; asked once.
    pub(crate) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// The screen is another one now, or a job has used it.
    pub(crate) fn redraw(&mut self) {
        self.has_changed = true;
    }

    /// Whether a moving part must be drawn regularly; while a person is asked, nothing moves.
    pub(crate) fn is_moving(&self) -> bool {
        let works = !self.running.is_empty() || self.panels.chat.is_moving();
        self.leaving.is_some() || works && self.questions.is_empty()
    }

    /// Draws the next picture of moving parts.
    pub(crate) fn tick(&mut self) {
        self.spin = self.spin.wrapping_add(1);
        self.panels.chat.tick();
        self.has_changed = true;
    }

    /// Leaves the panels if the conversation takes too long to end.
    pub(crate) fn check_grace(&mut self) {
        if self.leaving.is_some_and(|since| since.elapsed() > GRACE) {
            self.effects.push(Effect::Quit);
        }
    }

    /// Whether earlier input is about to be dropped.
    pub(crate) fn is_discarding(&self) -> bool {
        self.effects.iter().any(|effect| matches!(effect, Effect::DiscardInput))
    }

    pub(crate) fn event(&mut self, event: Event) {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            Event::Mouse(mouse) => self.mouse(mouse),
            Event::Paste(text) => self.paste(&text),
            Event::Resize(..) => self.has_changed = true,
            _ => {}
        }
    }

    pub(crate) fn message(&mut self, message: Message) {
        self.has_changed = true;
        match message {
            Message::Chat(news) => self.panels.chat.take(news),
            Message::Text { panel, text } => self.panels.get(panel).show(&text),
            Message::Loaded { panel } => self.panels.get(panel).loaded(),
            Message::Ask(question) => {
                self.questions.push_back(QuestionDialog::new(question, &self.theme, self.grace));
                if self.questions.len() == 1 {
                    self.effects.push(Effect::DiscardInput);
                }
                self.tell_who_waits();
            }
            Message::Withdraw(id) if self.questions.front().is_some_and(|dialog| dialog.id() == id) => {
                self.close_question();
            }
            Message::Withdraw(id) => {
                self.questions.retain(|dialog| dialog.id() != id);
                self.tell_who_waits();
            }
            Message::Suspend { ready, done } => self.effects.push(Effect::Suspend { ready, done }),
            Message::Done { panel, job, outcome } => self.done(panel, &job, &outcome),
        }
    }

    fn done(&mut self, panel: PanelName, job: &str, outcome: &Result<u8, Failure>) {
        if let Some(at) = self.running.iter().position(|running| running.panel == panel && running.title == job) {
            self.running.remove(at);
        }
        if let (Err(failure), true) = (outcome, self.front != panel) {
            self.notice = Some(format!("{}: {}", panel.title(), failure.message));
        }
        let action = self.panels.get(panel).done(job, outcome);
        if self.leaving.is_some() && !self.panels.chat.is_alive() && panel == PanelName::Chat {
            return self.effects.push(Effect::Quit);
        }
        self.act(panel, action);
    }

    fn key(&mut self, key: KeyEvent) {
        self.has_changed = true;
        self.notice = None;
        let common = command_of(EVERYWHERE, key);
        let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
        match common {
            Some(GlobalKey::Redraw) => return self.effects.push(Effect::Clear),
            Some(GlobalKey::Stop) => return self.effects.push(Effect::Stop),
            Some(GlobalKey::Quit) => return self.quit(),
            _ if is_interrupt && self.leaving.is_some() => return self.quit(),
            _ if is_interrupt => {}
            _ if self.is_too_small => return,
            _ => {}
        }
        if let Some(dialog) = self.questions.front_mut() {
            if dialog.key(key) == DialogState::Closed {
                self.close_question();
            }
        } else if let Some(help) = &mut self.help {
            match Step::of(key.code) {
                Some(step) => help.step(step),
                None => self.help = None,
            }
        } else if let Some(common) = common.filter(|_| !self.is_text(key)) {
            self.common_key(common, key.code);
        } else {
            let (name, action) = (self.front, self.front().key(key));
            self.act(name, action);
        }
    }

    /// Leaves the panels once the conversation has ended in order; a second request does not wait for it.
    pub(crate) fn quit(&mut self) {
        self.has_changed = true;
        if self.panels.chat.is_alive() && self.leaving.is_none() {
            self.leaving = Some(Instant::now());
            self.questions.clear();
            self.tell_who_waits();
            self.panels.chat.end();
        } else {
            self.effects.push(Effect::Quit);
        }
    }

    /// Closes a question. Keys that were typed for it are not meant for the next one, nor for the panel below.
    fn close_question(&mut self) {
        let closed = self.questions.pop_front();
        self.effects.push(Effect::DiscardInput);
        // The time in which a person thinks is not counted as work.
        let asked = self.running.iter_mut().filter(|job| closed.as_ref().is_some_and(|one| one.panel() == job.panel));
        asked.for_each(|job| job.since = Instant::now());
        self.tell_who_waits();
    }

    /// Whether a job of this panel waits for the person.
    fn waits_for_answer(&self, panel: PanelName) -> bool {
        self.questions.iter().any(|dialog| dialog.panel() == panel)
    }

    fn tell_who_waits(&mut self) {
        let waits = self.waits_for_answer(PanelName::Chat);
        self.panels.chat.wait_for_answer(waits);
    }

    /// Whether a key is text for the panel in front.
    fn is_text(&mut self, key: KeyEvent) -> bool {
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let writes = matches!(key.code, KeyCode::Char(_) | KeyCode::Tab | KeyCode::BackTab);
        is_plain && writes && self.front().takes_text()
    }

    fn common_key(&mut self, common: GlobalKey, code: KeyCode) {
        match common {
            GlobalKey::Panel => {
                if let Some(name) = keys::place_of(code).and_then(|place| PanelName::ALL.get(place)) {
                    self.turn_to(*name);
                }
            }
            GlobalKey::Servers => self.turn_to(PanelName::Mcp),
            GlobalKey::Turn if code == KeyCode::BackTab => self.turn(PanelName::ALL.len() - 1),
            GlobalKey::Turn => self.turn(1),
            GlobalKey::Help => self.show_help(),
            // These keys were handled before all others.
            GlobalKey::Redraw | GlobalKey::Stop | GlobalKey::Quit => {}
        }
    }

    fn show_help(&mut self) {
        let (title, keys, json) = (self.front.title(), self.front().keys(), self.front.json_command());
        self.help = Some(Help::new(title, &keys, json, &self.theme));
    }

    /// Moves this many panels further; the first follows the last.
    fn turn(&mut self, by: usize) {
        let at = PanelName::ALL.iter().position(|name| *name == self.front).unwrap_or_default();
        if let Some(name) = PanelName::ALL.iter().cycle().nth(at + by) {
            self.turn_to(*name);
        }
    }

    fn turn_to(&mut self, name: PanelName) {
        if self.front != name {
            self.front().close();
        }
        self.front = name;
        self.has_changed = true;
        let action = self.front().open();
        self.act(name, action);
    }

    fn act(&mut self, panel: PanelName, action: Action) {
        match action {
            Action::None | Action::Changed => {}
            Action::NextPanel => self.turn(1),
            Action::PreviousPanel => self.turn(PanelName::ALL.len() - 1),
            Action::Help => self.show_help(),
            Action::Run(job) if job.is_background => self.effects.push(Effect::Spawn(panel, job)),
            Action::Run(job) => {
                self.running.push(RunningJob { panel, title: job.title.clone(), since: Instant::now() });
                self.effects.push(Effect::Spawn(panel, job));
            }
            Action::Leave if panel == PanelName::ALL[0] => self.quit(),
            Action::Leave => self.turn_to(PanelName::ALL[0]),
        }
    }

    fn mouse(&mut self, mouse: MouseEvent) {
        let step = match mouse.kind {
            MouseEventKind::ScrollUp => Some(Step::Up),
            MouseEventKind::ScrollDown => Some(Step::Down),
            MouseEventKind::Down(MouseButton::Left) => None,
            // Moves of the pointer change nothing.
            _ => return,
        };
        if self.is_too_small {
            return;
        }
        self.has_changed = true;
        if let Some(dialog) = self.questions.front_mut() {
            return step.map(|step| dialog.scroll(step)).unwrap_or_default();
        }
        if let Some(help) = &mut self.help {
            return step.map(|step| help.step(step)).unwrap_or_default();
        }
        let place = Position { x: mouse.column, y: mouse.row };
        let tab = PanelName::ALL.into_iter().zip(&self.tabs).find(|(_, tab)| tab.contains(place));
        if let (None, Some((name, _))) = (step, tab) {
            return self.turn_to(name);
        }
        if self.body.contains(place) {
            let body = self.body;
            let (name, action) = (self.front, self.front().mouse(mouse, body));
            self.act(name, action);
        }
    }

    fn paste(&mut self, text: &str) {
        if self.is_too_small {
            return;
        }
        self.has_changed = true;
        let text: String = text.replace("\r\n", "\n").replace('\r', "\n");
        let kept = text.get(..text.floor_char_boundary(LONGEST_PASTE)).unwrap_or_default();
        let clean = written_text(kept);
        if let Some(dialog) = self.questions.front_mut() {
            return dialog.paste(&clean);
        }
        if self.help.is_some() {
            return;
        }
        let (name, action) = (self.front, self.front().paste(&clean));
        self.act(name, action);
    }

    /// The panel in front.
    fn front(&mut self) -> &mut dyn Panel {
        self.panels.get(self.front)
    }
}
