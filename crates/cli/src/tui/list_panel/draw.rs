//! How a panel with a list is drawn.

use ollm_protocol::units::counted;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};

use super::super::list::TextView;
use super::super::text::{fitted, plain, styled};
use super::super::theme::Theme;
use super::{ListContent, ListItem, ListPanel, Row};

/// Narrower panels show list and details one above the other.
const NARROW: u16 = 60;

/// The row of something that is on or off: a filled or a hollow dot, and a mark where it waits for a person.
pub(crate) fn dotted(name: &str, is_on: bool, waits: bool, width: usize, theme: &Theme) -> Line<'static> {
    let dot = if is_on { "●" } else { "○" };
    let (mark, style) = if waits { (" !", theme.attention) } else { ("", Style::new()) };
    let name = fitted(&ollm_store::one_line(name), width.saturating_sub(4));
    Line::from(Span::styled(fitted(&format!("{dot} {name}{mark}"), width), style))
}

impl<C: ListContent> ListPanel<C> {
    pub(super) fn draw_panel(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        // What a command prints is made for the width of the screen.
        let [upper, lower] = if self.result.is_empty() {
            [area, Rect::default()]
        } else {
            Layout::vertical([Constraint::Percentage(40), Constraint::Fill(1)]).areas(area)
        };
        let [list, details] = if area.width >= NARROW {
            Layout::horizontal([Constraint::Percentage(C::LIST_SHARE), Constraint::Fill(1)]).areas(upper)
        } else if self.result.is_empty() {
            Layout::vertical([Constraint::Percentage(50), Constraint::Fill(1)]).areas(upper)
        } else {
            [upper, Rect::default()]
        };
        self.draw_list(frame, list, theme);
        self.draw_details(frame, details, theme);
        self.draw_result(frame, lower, theme);
        if let Some((_, form)) = &mut self.form {
            form.draw(frame, area, theme);
        }
    }

    /// What the panel says of its entries, above them.
    fn title(&self) -> String {
        let filter = if self.is_filtering || !self.filter.is_empty() {
            format!(" /{}{}", self.filter, if self.is_filtering { "▏" } else { "" })
        } else {
            String::new()
        };
        format!(" {}{}{}{filter} ", counted(self.items.len(), C::NOUN), self.note, self.content.selection())
    }

    fn draw_list(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let block = Block::new().borders(Borders::TOP).border_style(theme.faint).title(self.title());
        let inner = block.inner(area);
        frame.render_widget(block, area);
        self.list_area = inner;
        let window = self.cursor.window(usize::from(inner.height), self.rows.len());
        let (start, end) = (window.start, window.end);
        // The marks have a column of their own.
        let has_marks = window.len() < self.rows.len();
        let width = usize::from(inner.width).saturating_sub(usize::from(has_marks));
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
        let mut line = match row {
            Row::Exit => Line::from("Exit"),
            Row::Category(name) => Line::from(Span::styled(fitted(name, width), theme.title)),
            Row::Item(at) => self.items.get(at).map(|item| item.row(width, theme)).unwrap_or_default(),
        };
        if is_chosen {
            line.spans.iter_mut().for_each(|span| span.style = span.style.patch(theme.chosen));
        }
        line
    }

    fn draw_details(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        if self.details.is_none() || std::mem::replace(&mut self.detailed, self.arranged) != self.arranged {
            let lines = self.details_text(theme);
            self.details.get_or_insert_default().renew(lines);
        }
        if !area.is_empty() {
            let name = self.chosen().map(|item| ollm_store::one_line(item.name())).unwrap_or_default();
            let block = Block::new().borders(Borders::TOP | Borders::LEFT);
            draw_text(frame, area, block, &name, self.details.get_or_insert_default(), theme);
        }
    }

    fn draw_result(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        if self.result.is_empty() {
            return;
        }
        let view = self.result_view.get_or_insert_with(|| TextView::at_end(styled(&self.result, theme)));
        let end = if self.running.is_some() { "" } else { " (Esc closes)" };
        let block = Block::new().borders(Borders::TOP);
        let room = usize::from(area.width).saturating_sub(TITLE_FRAME + end.len());
        draw_text(frame, area, block, &(fitted(&self.result_title, room) + end), view, theme);
    }

    fn details_text(&self, theme: &Theme) -> Vec<Line<'static>> {
        match self.chosen() {
            Some(item) => item.details(theme),
            None if !self.is_loaded => plain(&format!("Reading the {}s …", C::NOUN), theme.faint),
            None => plain(C::EMPTY, theme.faint),
        }
    }
}

/// Columns of a frame around a title.
const TITLE_FRAME: usize = 4;

fn draw_text(frame: &mut Frame<'_>, area: Rect, block: Block<'_>, title: &str, view: &mut TextView, theme: &Theme) {
    let mut block = block.border_style(theme.faint);
    let inner = block.inner(area);
    if !title.is_empty() {
        block = block.title(format!(" {} ", fitted(title, usize::from(area.width).saturating_sub(TITLE_FRAME))));
    }
    frame.render_widget(block, area);
    view.draw(frame, inner);
}
