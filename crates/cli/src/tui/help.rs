//! The keys of the panel in front, over everything else.

use ratatui::Frame;
use ratatui::layout::{Margin, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear};

use super::dialog::centred;
use super::list::{Step, TextView};
use super::panel::{KeyHelp, PanelName};
use super::text::heading;
use super::theme::Theme;

/// The keys of all panels.
fn common() -> Vec<(String, String)> {
    let panels = PanelName::ALL.len();
    let own = |keys: &str, help: &str| (keys.to_owned(), help.to_owned());
    let ways = PanelName::ALL.iter().filter_map(|panel| {
        let letter = panel.control_letter()?;
        Some((format!("Ctrl+{}", letter.to_ascii_uppercase()), format!("{}, where it is not Enter", panel.title())))
    });
    [own(&format!("F1 … F{panels}"), "a panel by its number; also Alt and the digit")]
        .into_iter()
        .chain(ways)
        .chain([
            own("Tab, Shift+Tab", "the next panel, the one before"),
            own("?", "this help (F12 where letters are text)"),
            own("Ctrl+L", "draw everything anew"),
            own("Ctrl+Z", "stop the program; `fg` goes on"),
            own("Ctrl+Q", "leave"),
        ])
        .collect()
}

const WIDTH: u16 = 70;

pub(crate) struct Help {
    body: TextView,
}

impl Help {
    pub(crate) fn new(panel: &str, keys: &[KeyHelp], json: &str, theme: &Theme) -> Help {
        let row = |(keys, help): (&str, &str)| {
            let keys = Span::styled(format!("{keys:<20}"), theme.accent);
            Line::from(vec![keys, Span::raw(help.to_owned())])
        };
        let mut lines = vec![heading(panel)];
        lines.extend(keys.iter().map(|key| row((key.keys, key.help))));
        lines.extend([Line::default(), Line::from(format!("The same for programs: {json}"))]);
        lines.extend([Line::default(), heading("Everywhere")]);
        lines.extend(common().iter().map(|(keys, help)| row((keys, help))));
        Help { body: TextView::new(lines) }
    }

    pub(crate) fn step(&mut self, step: Step) {
        self.body.step(step);
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, whole: Rect) {
        let width = whole.width.min(WIDTH);
        let rows = u16::try_from(self.body.rows(width.saturating_sub(4))).unwrap_or(u16::MAX);
        let area = centred(whole, width, rows.saturating_add(2));
        frame.render_widget(Clear, area);
        frame.render_widget(Block::bordered().title(" Keys ").title_bottom(" Esc closes "), area);
        self.body.draw(frame, area.inner(Margin { horizontal: 2, vertical: 1 }));
    }
}
