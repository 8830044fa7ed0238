//! How the panels are drawn: tabs, the panel in front, one line about what runs, and what lies over all of it.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::panel::PanelName;
use super::super::text::fitted;
use super::Ui;
use crate::spinner::PICTURES;

/// Smaller screens show nothing but their size.
const SMALLEST: (u16, u16) = (24, 6);

impl Ui {
    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        self.is_too_small = area.width < SMALLEST.0 || area.height < SMALLEST.1;
        if self.is_too_small {
            let text = format!("too small: {}×{}, {}×{} is the least", area.width, area.height, SMALLEST.0, SMALLEST.1);
            let rows = super::super::text::wrapped(&[Line::from(text)], area.width);
            return frame.render_widget(Paragraph::new(rows), area);
        }
        let [tabs, body, status] =
            Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)]).areas(area);
        self.body = body;
        self.draw_tabs(frame, tabs);
        let theme = self.theme;
        self.front().draw(frame, body, &theme);
        let line = self.status(usize::from(status.width));
        frame.render_widget(Paragraph::new(line), status);
        if let Some(help) = &mut self.help {
            help.draw(frame, area);
        }
        if let Some(dialog) = self.questions.front_mut() {
            dialog.draw(frame, area, &theme);
        }
    }

    fn draw_tabs(&mut self, frame: &mut Frame<'_>, area: Rect) {
        self.tabs.clear();
        let mut x = area.x;
        let title = |at: usize, name: PanelName| format!(" {} {} ", at + 1, name.title());
        let whole: usize = PanelName::ALL.into_iter().enumerate().map(|(at, name)| title(at, name).len()).sum();
        let is_wide = whole <= usize::from(area.width);
        for (at, name) in PanelName::ALL.into_iter().enumerate() {
            let is_named = is_wide || name == self.front;
            let title = if is_named { title(at, name) } else { format!(" {} ", at + 1) };
            let width = u16::try_from(title.len()).unwrap_or(u16::MAX).min(area.right().saturating_sub(x));
            let tab = Rect { x, width, ..area };
            let style = if name == self.front { self.theme.chosen } else { self.theme.faint };
            frame.render_widget(Paragraph::new(Span::styled(title, style)), tab);
            self.tabs.push(tab);
            x = x.saturating_add(width);
        }
    }

    /// The running jobs; else the last result; else the most useful keys.
    fn status(&mut self, width: usize) -> Line<'static> {
        if self.leaving.is_some() {
            let text = "the conversation ends; Ctrl-C does not wait for it";
            return Line::from(Span::styled(fitted(text, width), self.theme.attention));
        }
        if let Some(job) = self.running.last().filter(|job| self.waits_for_answer(job.panel)) {
            let text = format!("{} · waits for your answer", job.title);
            return Line::from(Span::styled(fitted(&text, width), self.theme.attention));
        }
        if let Some(job) = self.running.last() {
            let picture = PICTURES.get(self.spin % PICTURES.len()).copied().unwrap_or_default();
            let text = format!("{picture} {} · {} s", job.title, job.since.elapsed().as_secs());
            return Line::from(Span::styled(fitted(&text, width), self.theme.attention));
        }
        if let Some(notice) = &self.notice {
            return Line::from(Span::styled(fitted(&ollm_store::one_line(notice), width), self.theme.bad));
        }
        let keys = self.front().keys();
        let mut text: Vec<String> = keys.iter().map(|key| format!("{} {}", key.keys, key.help)).collect();
        text.push("? help".to_owned());
        while text.len() > 1 && text.join(" · ").chars().count() > width {
            // The last one leads to all the others.
            text.remove(text.len() - 2);
        }
        Line::from(Span::styled(fitted(&text.join(" · "), width), self.theme.faint))
    }
}
