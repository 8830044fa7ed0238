//! The panel of the chat: the conversation, what runs just now, and a line to write.
//!
//! The conversation itself is that of `ollm chat`, on a thread of its own ([`front::PanelFront`]): its commands, its
//! questions and its hooks are the same.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use ollm_agent::Cancel;
use ollm_app::WakeSignal;
use ollm_app::session::SessionOptions;
use ollm_protocol::units::counted;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, MouseEvent, MouseEventKind};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use super::list::Step;
use super::panel::{Action, Binding, Job, Key, KeyHelp, Panel, PanelName, command_of, help_of};
use super::screen::Inbox;
use super::text::fitted;
use super::theme::Theme;
use crate::command::chat::complete::{Completion, complete};
use crate::command::chat::converse;
use crate::command::chat::front::ChatStatus;
use crate::error::{Failure, OK};
use crate::spinner::PICTURES;

pub(crate) mod front;
mod input;
pub(crate) mod log;

use front::{ChatNews, PanelFront};
use input::{ChatInput, InputState, LONGEST};
use log::{ChatLog, Speaker};

/// The names of two jobs: the conversation, and the completion of a word.
const CHAT: &str = "chat";
const COMPLETING: &str = "completing";
/// The columns of the mark before the input.
const MARK: u16 = 2;
/// The limit of shown input rows.
const MOST_INPUT_ROWS: u16 = 6;
/// The limit of shown candidates.
const MOST_CANDIDATES: usize = 8;
/// The limit of waiting inputs.
const MOST_QUEUED: usize = 16;

/// The commands by key; all other keys write text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChatKey {
    /// The key goes to the input.
    Write,
    Complete,
    Interrupt,
    Scroll,
    /// Back to the end of the talk.
    Return,
    Leave,
}

pub(super) const KEYS: &[Binding<ChatKey>] = &[
    Binding { keys: &[Key::Plain(KeyCode::Enter)], shown: "Enter", help: "send", command: ChatKey::Write },
    Binding {
        keys: &[Key::Alt(KeyCode::Enter), Key::Control(KeyCode::Char('j'))],
        shown: "Alt+Enter, Ctrl+J",
        help: "a new line",
        command: ChatKey::Write,
    },
    Binding { keys: &[Key::Plain(KeyCode::Tab)], shown: "Tab", help: "complete", command: ChatKey::Complete },
    Binding {
        keys: &[Key::Control(KeyCode::Char('c'))],
        shown: "Ctrl+C",
        help: "interrupt",
        command: ChatKey::Interrupt,
    },
    Binding {
        keys: &[Key::Plain(KeyCode::Up), Key::Plain(KeyCode::Down)],
        shown: "Up, Down",
        help: "what you wrote before",
        command: ChatKey::Write,
    },
    Binding {
        keys: &[
            Key::Plain(KeyCode::PageUp),
            Key::Plain(KeyCode::PageDown),
            Key::Control(KeyCode::Home),
            Key::Control(KeyCode::End),
        ],
        shown: "PgUp, PgDn",
        help: "scroll",
        command: ChatKey::Scroll,
    },
    Binding { keys: &[Key::Control(KeyCode::Char('d'))], shown: "Ctrl+D", help: "leave", command: ChatKey::Leave },
    Binding { keys: &[Key::Plain(KeyCode::Esc)], shown: "Esc", help: "back to the latest", command: ChatKey::Return },
];

/// The data that a conversation needs to begin.
pub(crate) struct ChatSetup {
    pub(crate) options: SessionOptions,
    pub(crate) history: PathBuf,
    pub(crate) inbox: Inbox,
}

pub(crate) struct ChatPanel {
    setup: ChatSetup,
    log: ChatLog,
    input: ChatInput,
    status: ChatStatus,
    conversation: Conversation,
    cancel: Cancel,
    /// The start time of the running work while an input is handled, and whether it was interrupted.
    working: Option<Instant>,
    is_interrupted: bool,
    /// Whether a question of the conversation waits for the person.
    is_asking: bool,
    tool: Option<String>,
    hook: Option<String>,
    /// How many inputs were sent and have not begun.
    queued: usize,
    candidates: Vec<String>,
    completed: (Sender<Completed>, Receiver<Completed>),
    spin: usize,
}

type Completed = (String, Option<Completion>);

/// The state of the conversation.
enum Conversation {
    None,
    /// It is running; this channel takes its inputs.
    Lasts(Sender<String>, WakeSignal),
    /// It is ending, and takes no inputs.
    Ends,
}

impl ChatPanel {
    pub(crate) fn new(setup: ChatSetup) -> ChatPanel {
        let input = ChatInput::new(setup.history.clone());
        ChatPanel {
            setup,
            log: ChatLog::default(),
            input,
            status: ChatStatus::default(),
            conversation: Conversation::None,
            cancel: Cancel::default(),
            working: None,
            is_interrupted: false,
            is_asking: false,
            tool: None,
            hook: None,
            queued: 0,
            candidates: Vec::new(),
            completed: channel(),
            spin: 0,
        }
    }

    /// Whether a conversation is running or ending.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.conversation, Conversation::None)
    }

    /// Ends the conversation in order; its job tells when it is over. Inputs that wait are not begun.
    pub(crate) fn end(&mut self) {
        if self.is_alive() {
            let ended = std::mem::replace(&mut self.conversation, Conversation::Ends);
            self.queued = 0;
            self.cancel.end();
            if let Conversation::Lasts(_, wake) = ended {
                wake.wake();
            }
        }
    }

    /// Something moves as long as an input is being worked on.
    pub(crate) fn is_moving(&self) -> bool {
        self.working.is_some()
    }

    pub(crate) fn tick(&mut self) {
        self.spin = self.spin.wrapping_add(1);
    }

    /// News of the conversation.
    pub(crate) fn take(&mut self, news: ChatNews) {
        match news {
            ChatNews::Entry(speaker, text) => self.log.add(speaker, &text),
            ChatNews::More(speaker, text) => self.log.extend(speaker, &text),
            ChatNews::Whole => self.log.close(),
            ChatNews::Tool(tool) => {
                self.tool = tool;
                self.working = self.working.map(|_| Instant::now());
            }
            ChatNews::Hook(hook) => {
                self.hook = hook;
                self.working = self.working.map(|_| Instant::now());
            }
            ChatNews::Status(status) => self.status = status,
            ChatNews::Begins(text) => {
                self.queued = self.queued.saturating_sub(1);
                self.log.add(Speaker::You, &text);
            }
            ChatNews::Working(is_working) => self.work(is_working),
            ChatNews::Renewed => {
                // Another conversation starts with an empty screen.
                self.log.clear();
                self.status = ChatStatus::default();
                self.work(true);
            }
        }
    }

    /// Notes whether a question of the conversation waits for the person.
    pub(crate) fn wait_for_answer(&mut self, is_asking: bool) {
        if std::mem::replace(&mut self.is_asking, is_asking) != is_asking {
            // The time in which a person thinks is not counted as work.
            self.working = self.working.map(|_| Instant::now());
        }
    }

    fn work(&mut self, is_working: bool) {
        if std::mem::take(&mut self.is_interrupted) {
            self.log.add(Speaker::Note, "interrupted");
        }
        self.working = is_working.then(Instant::now);
        (self.tool, self.hook) = (None, None);
        self.log.close();
    }

    fn start(&mut self) -> Action {
        let wake = match WakeSignal::new() {
            Ok(wake) => wake,
            Err(error) => {
                self.log.add(Speaker::Failure, &error.message);
                return Action::Changed;
            }
        };
        let (sender, lines) = channel();
        self.conversation = Conversation::Lasts(sender, wake.clone());
        self.cancel = Cancel::default();
        let (cancel, options) = (self.cancel.clone(), self.setup.options.clone());
        let screen = self.setup.inbox.screen(PanelName::Chat, cancel.clone());
        self.work(true);
        let job = Job::new(CHAT, move |context, output| {
            let mut front = PanelFront { screen, lines, wake, cancel: cancel.clone() };
            converse(options, context, &cancel, &mut front, output)
        });
        // An interrupt of the conversation also interrupts its commands.
        Action::Run(Job { cancel: self.cancel.clone(), ..job.in_background() })
    }

    fn write(&mut self, key: KeyEvent) -> Action {
        match key.code {
            // As in all panels, while no text is written.
            KeyCode::BackTab if self.input.is_empty() => return Action::PreviousPanel,
            KeyCode::Char('?') if self.input.is_empty() => return Action::Help,
            KeyCode::Enter if !self.is_alive() => return self.start(),
            _ => {}
        }
        match self.input.key(key) {
            InputState::Sent(text) => self.send(text),
            InputState::Open => Action::Changed,
        }
    }

    fn send(&mut self, text: String) -> Action {
        let Conversation::Lasts(lines, wake) = &self.conversation else {
            self.input.insert(&text);
            return Action::Changed;
        };
        if self.queued >= MOST_QUEUED {
            self.log.add(Speaker::Failure, "too many inputs wait; send it again later");
            self.input.insert(&text);
            return Action::Changed;
        }
        self.log.step(Step::Last);
        self.queued += 1;
        // A conversation that has just ended tells so.
        let _ = lines.send(text);
        wake.wake();
        Action::Changed
    }

    fn interrupt(&mut self) -> Action {
        if self.working.is_some() && self.is_alive() {
            // A second interrupt would end the conversation, which another key does.
            if !std::mem::replace(&mut self.is_interrupted, true) {
                self.cancel.interrupt();
            }
        } else if self.input.is_empty() {
            self.log.add(Speaker::Note, "Ctrl-D leaves");
        } else {
            self.input.clear();
        }
        Action::Changed
    }

    fn complete(&mut self) -> Action {
        let (before, sender) = (self.input.before_cursor(), self.completed.0.clone());
        let typed_model = self.status.typed_model.clone();
        Action::Run(
            Job::new(COMPLETING, move |context, _| {
                let found = complete(&before, typed_model.as_deref(), context);
                let _ = sender.send((before, found));
                Ok(OK)
            })
            .in_background(),
        )
    }

    fn take_completion(&mut self) {
        let Some((before, found)) = self.completed.1.try_iter().last() else { return };
        // Text that was typed meanwhile is not overwritten.
        if let (Some(completion), true) = (found, before == self.input.before_cursor()) {
            self.candidates = self.input.complete(&before, &completion);
        }
    }

    /// The running hook, tool or model; else the state of the conversation.
    fn status_line(&self, width: usize, theme: &Theme) -> Line<'static> {
        let Some(since) = self.working else {
            let ChatStatus { model, approval, messages, .. } = &self.status;
            let text = match (self.is_alive(), model.is_empty()) {
                (false, _) => "no conversation; Enter begins one".to_owned(),
                _ if matches!(self.conversation, Conversation::Ends) => "the conversation ends".to_owned(),
                (true, true) => String::new(),
                (true, false) => {
                    let messages = counted(*messages, "message");
                    format!("approval {approval} · {messages} · {}", ollm_store::one_line(model))
                }
            };
            return Line::styled(fitted(&text, width), theme.faint);
        };
        if self.is_asking {
            return Line::styled(fitted("waits for your answer", width), theme.attention);
        }
        let picture = PICTURES.get(self.spin % PICTURES.len()).copied().unwrap_or_default();
        let what = match (&self.hook, &self.tool) {
            (Some(hook), _) => format!("hook {hook}"),
            (None, Some(tool)) => match tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
                Some((server, tool)) => format!("server {server}, tool {tool}"),
                None => format!("tool {tool}"),
            },
            (None, None) if self.status.model.is_empty() => "the conversation begins".to_owned(),
            (None, None) => format!("model {}", ollm_store::one_line(&self.status.model)),
        };
        let queued = if self.queued > 0 { format!(" · {} waiting", self.queued) } else { String::new() };
        let end = if self.is_interrupted { "interrupting …" } else { "Ctrl-C interrupts" };
        let text = format!("{picture} {what} · {} s{queued} · {end}", since.elapsed().as_secs());
        Line::styled(fitted(&text, width), theme.attention)
    }
}

impl Panel for ChatPanel {
    fn keys(&self) -> Vec<KeyHelp> {
        help_of(KEYS)
    }

    fn open(&mut self) -> Action {
        // After a failure, the person tries again.
        let is_new = self.status == ChatStatus::default() && self.log.is_empty();
        if is_new && !self.is_alive() { self.start() } else { Action::Changed }
    }

    fn takes_text(&self) -> bool {
        true
    }

    fn key(&mut self, key: KeyEvent) -> Action {
        let had_candidates = !std::mem::take(&mut self.candidates).is_empty();
        match command_of(KEYS, key).unwrap_or(ChatKey::Write) {
            ChatKey::Interrupt => return self.interrupt(),
            ChatKey::Leave if self.input.is_empty() && !self.is_alive() => return Action::Leave,
            // The conversation ends first.
            ChatKey::Leave if self.input.is_empty() => self.end(),
            ChatKey::Complete if self.input.is_empty() => return Action::NextPanel,
            ChatKey::Complete => return self.complete(),
            ChatKey::Return if had_candidates => {}
            ChatKey::Return => self.log.step(Step::Last),
            ChatKey::Scroll => Step::of(key.code).into_iter().for_each(|step| self.log.step(step)),
            ChatKey::Leave | ChatKey::Write => return self.write(key),
        }
        Action::Changed
    }

    fn paste(&mut self, text: &str) -> Action {
        if !self.input.insert(text) {
            let most = LONGEST >> 10;
            self.log.add(Speaker::Failure, &format!("the pasted text is too long: an input has at most {most} KiB"));
        }
        Action::Changed
    }

    fn mouse(&mut self, event: MouseEvent, _: Rect) -> Action {
        match event.kind {
            MouseEventKind::ScrollUp => (0..3).for_each(|_| self.log.step(Step::Up)),
            MouseEventKind::ScrollDown => (0..3).for_each(|_| self.log.step(Step::Down)),
            _ => return Action::None,
        }
        Action::Changed
    }

    fn show(&mut self, text: &str) {
        self.log.close();
        self.log.add(Speaker::Command, text);
    }

    fn done(&mut self, job: &str, outcome: &Result<u8, Failure>) -> Action {
        if job == COMPLETING {
            self.take_completion();
            return Action::Changed;
        }
        self.work(false);
        let unsent = std::mem::take(&mut self.queued);
        let ended = std::mem::replace(&mut self.conversation, Conversation::None);
        let was_left = matches!(ended, Conversation::Ends);
        match outcome {
            Err(failure) => self.log.add(Speaker::Failure, &failure.to_string()),
            // Leaving the conversation leaves the panels.
            Ok(OK) => return Action::Leave,
            Ok(_) if was_left => return Action::Leave,
            Ok(_) => self.log.add(Speaker::Failure, "the conversation was refused or interrupted before it began"),
        }
        if unsent > 0 {
            self.log.add(Speaker::Note, &format!("{} not sent; Up brings it back", counted(unsent, "input")));
        }
        Action::Changed
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let most = MOST_INPUT_ROWS.min(area.height / 3).max(1);
        let rows = self.input.rows(usize::from(area.width.saturating_sub(MARK)));
        let rows = u16::try_from(rows).unwrap_or(u16::MAX).clamp(1, most);
        let [log, status, input] =
            Layout::vertical([Constraint::Fill(1), Constraint::Length(1), Constraint::Length(rows)]).areas(area);
        self.log.draw(frame, log, theme);
        let width = usize::from(status.width);
        let line = if self.log.is_scrolled() {
            Line::styled(fitted("▼ there is more below; Esc goes there", width), theme.attention)
        } else {
            self.status_line(width, theme)
        };
        frame.render_widget(Paragraph::new(line), status);
        let [mark, text] = Layout::horizontal([Constraint::Length(MARK), Constraint::Fill(1)]).areas(input);
        frame.render_widget(Paragraph::new(Span::styled("> ", theme.title)), mark);
        frame.render_widget(self.input.area(), text);
        self.draw_candidates(frame, log, theme);
    }
}

impl ChatPanel {
    fn draw_candidates(&self, frame: &mut Frame<'_>, above: Rect, theme: &Theme) {
        if self.candidates.is_empty() {
            return;
        }
        let shown = self.candidates.iter().take(MOST_CANDIDATES).map(|one| Line::from(one.clone()));
        let mut lines: Vec<Line<'static>> = shown.collect();
        if let Some(more) = self.candidates.len().checked_sub(MOST_CANDIDATES).filter(|more| *more > 0) {
            lines.push(Line::styled(format!("and {more} more"), theme.faint));
        }
        let widest = lines.iter().map(Line::width).max().unwrap_or_default();
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(1).min(above.height);
        let width = u16::try_from(widest + 2).unwrap_or(u16::MAX).min(above.width);
        let area = Rect { y: above.bottom() - height, height, width, ..above };
        frame.render_widget(Clear, area);
        let block = Block::new().borders(Borders::TOP | Borders::LEFT).border_style(theme.faint);
        frame.render_widget(Paragraph::new(lines).block(block), area);
    }
}
