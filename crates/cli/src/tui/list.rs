//! The position in a long list or text. Only the visible part is ever drawn.

use std::ops::Range;

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::text::hanging;

/// How a cursor moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

impl Step {
    /// The step that a key means in a list.
    pub(crate) fn of(key: KeyCode) -> Option<Step> {
        Some(match key {
            KeyCode::Up => Step::Up,
            KeyCode::Down => Step::Down,
            KeyCode::PageUp => Step::PageUp,
            KeyCode::PageDown => Step::PageDown,
            KeyCode::Home => Step::First,
            KeyCode::End => Step::Last,
            _ => return None,
        })
    }
}

/// A cursor in a list, and the part of the list that is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListCursor {
    pub(crate) at: usize,
    offset: usize,
    height: usize,
}

impl ListCursor {
    pub(crate) fn step(&mut self, step: Step, len: usize) {
        let last = len.saturating_sub(1);
        let page = self.height.saturating_sub(1).max(1);
        self.at = match step {
            Step::Up => self.at.saturating_sub(1),
            Step::Down => self.at.saturating_add(1),
            Step::PageUp => self.at.saturating_sub(page),
            Step::PageDown => self.at.saturating_add(page),
            Step::First => 0,
            Step::Last => last,
        }
        .min(last);
    }

    /// The visible part with this many rows; the cursor is always in it.
    pub(crate) fn window(&mut self, height: usize, len: usize) -> Range<usize> {
        self.height = height;
        self.at = self.at.min(len.saturating_sub(1));
        if self.at < self.offset {
            self.offset = self.at;
        } else if self.at >= self.offset + height {
            self.offset = self.at + 1 - height.max(1);
        }
        self.offset = self.offset.min(len.saturating_sub(height));
        self.offset..len.min(self.offset + height)
    }

    /// The entry that is shown in this row.
    pub(crate) fn shown_in(&self, row: usize) -> usize {
        self.offset + row
    }
}

/// A text that can be longer than its area.
#[derive(Debug, Default)]
pub(crate) struct TextView {
    lines: Vec<Line<'static>>,
    rows: Vec<Line<'static>>,
    width: u16,
    offset: usize,
    height: usize,
    /// How many rows, counted from the first, have been on the screen without a gap.
    seen: usize,
}

impl TextView {
    pub(crate) fn new(lines: Vec<Line<'static>>) -> TextView {
        TextView { lines, ..TextView::default() }
    }

    /// A text that opens at its end.
    pub(crate) fn at_end(lines: Vec<Line<'static>>) -> TextView {
        TextView { lines, offset: usize::MAX, ..TextView::default() }
    }

    /// Another text in its place, at the same row.
    pub(crate) fn renew(&mut self, lines: Vec<Line<'static>>) {
        *self = TextView { lines, offset: self.offset, ..TextView::default() };
    }

    pub(crate) fn step(&mut self, step: Step) {
        let page = self.height.saturating_sub(1).max(1);
        self.offset = match step {
            Step::Up => self.offset.saturating_sub(1),
            Step::Down => self.offset.saturating_add(1),
            Step::PageUp => self.offset.saturating_sub(page),
            Step::PageDown => self.offset.saturating_add(page),
            Step::First => 0,
            Step::Last => self.rows.len(),
        }
        .min(self.rows.len().saturating_sub(self.height));
    }

    /// Whether all of it has been on the screen.
    pub(crate) fn is_read(&self) -> bool {
        self.seen > 0 && self.seen >= self.rows.len()
    }

    /// Turns to the first row that has not been on the screen.
    pub(crate) fn show_unseen(&mut self) {
        self.offset = self.seen.min(self.rows.len().saturating_sub(self.height));
    }

    /// How many rows it takes at this width.
    pub(crate) fn rows(&mut self, width: u16) -> usize {
        if self.width != width || self.rows.is_empty() {
            let was_read = self.is_read();
            self.rows = hanging(&self.lines, width);
            self.width = width;
            // At another width, the rows are different ones.
            self.seen = if was_read { self.rows.len() } else { 0 };
        }
        self.rows.len()
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect) {
        self.height = usize::from(area.height);
        let rows = self.rows(area.width);
        self.offset = self.offset.min(rows.saturating_sub(self.height));
        let end = rows.min(self.offset.saturating_add(self.height));
        if self.offset <= self.seen {
            self.seen = self.seen.max(end);
        }
        let shown = self.rows.get(self.offset..end).unwrap_or_default().to_vec();
        frame.render_widget(Paragraph::new(shown), area);
    }

    /// The visible position in the text, for people; `None` if all of it is visible.
    pub(crate) fn position(&self) -> Option<String> {
        let end = self.rows.len().min(self.offset + self.height);
        (self.height < self.rows.len()).then(|| format!("rows {}–{end} of {}", self.offset + 1, self.rows.len()))
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn draw(view: &mut TextView, width: u16) {
        let mut terminal = Terminal::new(TestBackend::new(width, 5)).unwrap();
        terminal.draw(|frame| view.draw(frame, frame.area())).unwrap();
    }

    fn numbered(count: usize) -> TextView {
        TextView::new((0..count).map(|number| Line::from(number.to_string())).collect())
    }

    #[test]
    fn a_text_is_read_only_when_every_row_was_on_the_screen() {
        let mut view = numbered(20);
        assert!(!view.is_read());
        draw(&mut view, 10);
        for steps in [&[Step::Last][..], &[Step::First, Step::PageDown, Step::PageDown, Step::PageDown]] {
            for step in steps {
                view.step(*step);
            }
            draw(&mut view, 10);
            assert!(!view.is_read(), "{steps:?} leaves rows out");
        }
        for _ in 0..3 {
            view.show_unseen();
            draw(&mut view, 10);
        }
        assert!(view.is_read());
        draw(&mut view, 1);
        assert!(view.is_read(), "what was read stays read at another width");
    }

    #[test]
    fn a_text_that_is_read_in_part_begins_anew_at_another_width() {
        let mut view = TextView::new(vec![Line::from("word ".repeat(30))]);
        draw(&mut view, 20);
        view.show_unseen();
        draw(&mut view, 10);
        view.step(Step::Last);
        draw(&mut view, 10);
        assert!(!view.is_read());
    }

    #[test]
    fn no_step_is_too_many() {
        let mut view = TextView::at_end(Vec::new());
        for step in [Step::Down, Step::PageDown, Step::Last, Step::Up] {
            view.step(step);
        }
        draw(&mut view, 10);
    }

    #[test]
    fn the_cursor_stays_in_the_window_and_the_window_in_the_list() {
        let mut cursor = ListCursor::default();
        assert_eq!(cursor.window(5, 10_000), 0..5);
        cursor.step(Step::PageDown, 10_000);
        cursor.step(Step::Down, 10_000);
        assert_eq!((cursor.at, cursor.window(5, 10_000)), (5, 1..6));
        cursor.step(Step::Last, 10_000);
        assert_eq!(cursor.window(5, 10_000), 9_995..10_000);
        assert_eq!(cursor.window(5, 3), 0..3);
        assert_eq!((cursor.at, cursor.window(5, 0)), (2, 0..0));
        cursor.step(Step::Up, 0);
        assert_eq!(cursor.at, 0);
    }
}
