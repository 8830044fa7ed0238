//! The keys of the panel in front, over everything else.

use ratatui::Frame;
use ratatui::layout::{Margin, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear};

use super::dialog::centred;
use super::list::{Step, TextView};
use super::panel::{KeyHelp, help_of};
use super::text::heading;
use super::theme::Theme;
use super::ui::keys::EVERYWHERE;

const WIDTH: u16 = 70;

pub(crate) struct Help {
    body: TextView,
}

impl Help {
    pub(crate) fn new(panel: &str, keys: &[KeyHelp], json: &str, theme: &Theme) -> Help {
        let row = |key: &KeyHelp| {
            let keys = Span::styled(format!("{:<20}", key.keys), theme.accent);
            Line::from(vec![keys, Span::raw(key.help)])
        };
        let mut lines = vec![heading(panel)];
        lines.extend(keys.iter().map(row));
        lines.extend([Line::default(), Line::from(format!("The same for programs: {json}"))]);
        lines.extend([Line::default(), heading("Everywhere")]);
        lines.extend(help_of(EVERYWHERE).iter().map(row));
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
