//! The panel trait, and the actions that a panel can request.

use ollm_agent::Cancel;
use ollm_app::AppContext;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent};
use ratatui::layout::Rect;

use super::theme::Theme;
use crate::arguments::Command;
use crate::error::Failure;
use crate::output::Output;

/// The panels there are, in the order of their tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PanelName {
    Chat,
    Hooks,
    Mcp,
    Extensions,
    Trace,
    Doctor,
}

impl PanelName {
    pub(crate) const ALL: [PanelName; 6] =
        [PanelName::Chat, PanelName::Hooks, PanelName::Mcp, PanelName::Extensions, PanelName::Trace, PanelName::Doctor];

    pub(crate) fn title(self) -> &'static str {
        match self {
            PanelName::Chat => "Chat",
            PanelName::Hooks => "Hooks",
            PanelName::Mcp => "MCP",
            PanelName::Extensions => "Extensions",
            PanelName::Trace => "Trace",
            PanelName::Doctor => "Doctor",
        }
    }

    /// The command that prints what the panel shows, for programs.
    pub(crate) fn json_command(self) -> &'static str {
        match self {
            PanelName::Chat => "ollm session show ID --json",
            PanelName::Hooks => "ollm hook list --json",
            PanelName::Mcp => "ollm mcp status --json",
            PanelName::Extensions => "ollm ext list --json",
            PanelName::Trace => "ollm trace list --json",
            PanelName::Doctor => "ollm doctor --json",
        }
    }

    /// The panel of this name, in any case of its letters.
    pub(crate) fn named(name: &str) -> Option<PanelName> {
        PanelName::ALL.into_iter().find(|panel| panel.title().eq_ignore_ascii_case(name))
    }
}

/// One screen with a tab of its own. It owns its state and its keys; it has no thread and does no work itself.
///
/// Work is an [`Action::Run`] with a [`Job`]: what the job prints comes back by [`Panel::show`], its end by [`Panel::done`].
/// A panel loads what it shows the same way: the job sends the data through a channel of the panel's own, and `done` takes it.
pub(crate) trait Panel {
    /// Its keys, for the bottom line and for the help.
    fn keys(&self) -> Vec<KeyHelp>;

    /// The panel comes to the front.
    fn open(&mut self) -> Action {
        Action::None
    }

    /// Another panel comes to the front.
    fn close(&mut self) {}

    /// Handles a key that is no global key.
    fn key(&mut self, key: KeyEvent) -> Action;

    /// Pasted text; control characters are gone from it.
    fn paste(&mut self, _text: &str) -> Action {
        Action::None
    }

    /// A click or a turn of the wheel within the panel's area.
    fn mouse(&mut self, _event: MouseEvent, _area: Rect) -> Action {
        Action::None
    }

    /// Whether letters are text just now. Then `?`, digits and Tab are the panel's as well.
    fn takes_text(&self) -> bool {
        false
    }

    /// Something that a job of this panel printed.
    fn show(&mut self, text: &str);

    /// Called when a running job of this panel has sent something through the panel's own channel.
    fn loaded(&mut self) {}

    /// A job of this panel is over.
    fn done(&mut self, job: &str, outcome: &Result<u8, Failure>) -> Action;

    /// Draws itself; the area is never smaller than the least that the panels accept.
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme);
}

/// The result of a key.
pub(crate) enum Action {
    /// Nothing changed.
    None,
    /// It must be drawn anew.
    Changed,
    /// A job begins.
    Run(Job),
    /// The next panel comes to the front.
    NextPanel,
    /// The panel before comes to the front.
    PreviousPanel,
    /// The keys are shown.
    Help,
    /// Leaves the panel for the first one, or from there all panels.
    Leave,
}

/// What a job does.
type Work = Box<dyn FnOnce(&AppContext, &mut Output) -> Result<u8, Failure> + Send>;

/// Work on a thread of its own.
pub(crate) struct Job {
    /// What it does, for the status line and for [`Panel::done`].
    pub(crate) title: String,
    pub(crate) work: Work,
    /// Interrupts the job, if its work can be interrupted.
    pub(crate) cancel: Cancel,
    /// Whether the status line leaves it out.
    pub(crate) is_background: bool,
}

impl Job {
    pub(crate) fn new(
        title: impl Into<String>,
        work: impl FnOnce(&AppContext, &mut Output) -> Result<u8, Failure> + Send + 'static,
    ) -> Job {
        Job { title: title.into(), work: Box::new(work), cancel: Cancel::default(), is_background: false }
    }

    /// The job, left out of the status line.
    pub(crate) fn in_background(self) -> Job {
        Job { is_background: true, ..self }
    }

    /// A command of the program, as if it had been typed in a shell.
    pub(crate) fn command(title: impl Into<String>, command: Command) -> Job {
        Job::new(title, move |context, output| crate::command::run(command, context, output))
    }
}

/// A key, alone or with another one; a letter means both of its cases.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key {
    Plain(KeyCode),
    Control(KeyCode),
    Alt(KeyCode),
}

impl Key {
    fn is(self, key: KeyEvent) -> bool {
        let (control, alt) = (key.modifiers.contains(KeyModifiers::CONTROL), key.modifiers.contains(KeyModifiers::ALT));
        let (code, is_held) = match self {
            Key::Plain(code) => (code, !control && !alt),
            // A key right after Esc looks like one with Alt.
            Key::Control(code) => (code, control),
            Key::Alt(code) => (code, alt && !control),
        };
        is_held
            && match (code, key.code) {
                (KeyCode::Char(one), KeyCode::Char(other)) => one.eq_ignore_ascii_case(&other),
                (one, other) => one == other,
            }
    }
}

/// One row of a table of keys: what a key does, and what the help says of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding<C> {
    pub(crate) keys: &'static [Key],
    /// The keys for people.
    pub(crate) shown: &'static str,
    /// What they do, in a word or two.
    pub(crate) help: &'static str,
    pub(crate) command: C,
}

/// The command that a key means in a table.
pub(crate) fn command_of<C: Copy>(table: &[Binding<C>], key: KeyEvent) -> Option<C> {
    table.iter().find(|row| row.keys.iter().any(|one| one.is(key))).map(|row| row.command)
}

/// A key and what it does, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHelp {
    pub(crate) keys: &'static str,
    pub(crate) help: &'static str,
}

/// A table of keys as help.
pub(crate) fn help_of<C>(table: &[Binding<C>]) -> Vec<KeyHelp> {
    table.iter().map(|row| KeyHelp { keys: row.shown, help: row.help }).collect()
}
