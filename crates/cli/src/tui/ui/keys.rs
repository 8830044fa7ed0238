//! The keys that mean the same in all panels.

use ratatui::crossterm::event::KeyCode;

use super::super::panel::{Binding, Key};

/// What they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GlobalKey {
    /// The panel of the key's number.
    Panel,
    Servers,
    /// The next panel, or the one before.
    Turn,
    Help,
    Redraw,
    Stop,
    Quit,
}

/// Where a panel takes text, letters, digits and Tab are text.
pub(crate) const EVERYWHERE: &[Binding<GlobalKey>] = &[
    Binding {
        keys: NUMBERED,
        shown: "F1 … F6",
        help: "a panel by its number; also Alt and the digit",
        command: GlobalKey::Panel,
    },
    Binding {
        // Where a terminal cannot tell it from Enter it is Enter.
        keys: &[Key::Control(KeyCode::Char('m'))],
        shown: "Ctrl+M",
        help: "MCP, where it is not Enter",
        command: GlobalKey::Servers,
    },
    Binding {
        keys: &[Key::Plain(KeyCode::Tab), Key::Plain(KeyCode::BackTab)],
        shown: "Tab, Shift+Tab",
        help: "the next panel, the one before",
        command: GlobalKey::Turn,
    },
    Binding {
        keys: &[Key::Plain(KeyCode::Char('?')), Key::Plain(KeyCode::F(12))],
        shown: "?",
        help: "this help (F12 where letters are text)",
        command: GlobalKey::Help,
    },
    Binding {
        keys: &[Key::Control(KeyCode::Char('l'))],
        shown: "Ctrl+L",
        help: "draw everything anew",
        command: GlobalKey::Redraw,
    },
    Binding {
        keys: &[Key::Control(KeyCode::Char('z'))],
        shown: "Ctrl+Z",
        help: "stop the program; `fg` goes on",
        command: GlobalKey::Stop,
    },
    Binding { keys: &[Key::Control(KeyCode::Char('q'))], shown: "Ctrl+Q", help: "leave", command: GlobalKey::Quit },
];

const NUMBERED: &[Key] = &[
    Key::Plain(KeyCode::F(1)),
    Key::Plain(KeyCode::F(2)),
    Key::Plain(KeyCode::F(3)),
    Key::Plain(KeyCode::F(4)),
    Key::Plain(KeyCode::F(5)),
    Key::Plain(KeyCode::F(6)),
    Key::Alt(KeyCode::Char('1')),
    Key::Alt(KeyCode::Char('2')),
    Key::Alt(KeyCode::Char('3')),
    Key::Alt(KeyCode::Char('4')),
    Key::Alt(KeyCode::Char('5')),
    Key::Alt(KeyCode::Char('6')),
    Key::Plain(KeyCode::Char('1')),
    Key::Plain(KeyCode::Char('2')),
    Key::Plain(KeyCode::Char('3')),
    Key::Plain(KeyCode::Char('4')),
    Key::Plain(KeyCode::Char('5')),
    Key::Plain(KeyCode::Char('6')),
];

/// The place of the panel that a key with a number means.
pub(super) fn place_of(code: KeyCode) -> Option<usize> {
    let number = match code {
        KeyCode::F(number) => usize::from(number),
        KeyCode::Char(digit) => digit.to_digit(10)? as usize,
        _ => return None,
    };
    number.checked_sub(1)
}
