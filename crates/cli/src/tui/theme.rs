//! Styles by what they mean. Without colour they differ by weight and reversal alone, and no meaning is lost.

use ollm_app::AppContext;
use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    pub(crate) has_colour: bool,
    pub(crate) title: Style,
    /// The row or tab that is chosen.
    pub(crate) chosen: Style,
    /// Less important parts: keys, borders, thoughts.
    pub(crate) faint: Style,
    pub(crate) good: Style,
    pub(crate) bad: Style,
    /// Parts that wait for a person.
    pub(crate) attention: Style,
    /// Names, links, code.
    pub(crate) accent: Style,
}

impl Theme {
    pub(crate) fn new(has_colour: bool) -> Theme {
        let coloured = |colour: Color, else_with: Modifier| {
            if has_colour { Style::new().fg(colour) } else { Style::new().add_modifier(else_with) }
        };
        Theme {
            has_colour,
            title: Style::new().add_modifier(Modifier::BOLD),
            chosen: Style::new().add_modifier(Modifier::REVERSED),
            faint: Style::new().add_modifier(Modifier::DIM),
            good: coloured(Color::Green, Modifier::empty()),
            bad: coloured(Color::Red, Modifier::BOLD),
            attention: coloured(Color::Yellow, Modifier::BOLD),
            accent: coloured(Color::Cyan, Modifier::empty()),
        }
    }

    /// The theme for the person's environment: without colours if `NO_COLOR` is set or the terminal has none.
    pub(crate) fn of(context: &AppContext) -> Theme {
        let is_off = context.variable("NO_COLOR").is_some_and(|value| !value.is_empty())
            || context.variable("TERM").is_some_and(|term| matches!(term.as_str(), "dumb" | "vt100" | "vt220"));
        Theme::new(!is_off)
    }
}
