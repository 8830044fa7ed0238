//! What was said, as rows of the screen. It is bounded: the oldest goes first, and the transcript keeps all of it.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::list::Step;
use super::super::markdown;
use super::super::text::{difference, plain, styled, wrapped};
use super::super::theme::Theme;

/// More entries, or more bytes of them, are not kept.
const MOST_ENTRIES: usize = 2000;
const MOST_BYTES: usize = 1 << 20;
/// A part of an answer that grows longer without a blank line is cut there.
const LONGEST_PART: usize = 16 << 10;

/// Who or what an entry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    You,
    /// Markdown.
    Model,
    Thought,
    /// A line about what happens.
    Note,
    Failure,
    /// A unified diff.
    Difference,
    /// What a command printed, with our own styles.
    Command,
}

struct Entry {
    speaker: Speaker,
    text: String,
    rows: Vec<Line<'static>>,
    /// The width for which the rows are.
    width: u16,
}

impl Entry {
    fn rows(&mut self, width: u16, theme: &Theme) -> &[Line<'static>] {
        if self.width != width {
            self.width = width;
            let indented = width.saturating_sub(2);
            self.rows = match self.speaker {
                Speaker::You => marked("> ", theme.title, &wrapped(&plain(&self.text, theme.title), indented)),
                Speaker::Model => wrapped(&markdown::lines(&self.text, theme), width),
                Speaker::Thought => marked("┆ ", theme.faint, &wrapped(&plain(&self.text, theme.faint), indented)),
                Speaker::Note => marked("· ", theme.faint, &wrapped(&plain(&self.text, theme.faint), indented)),
                Speaker::Failure => marked("! ", theme.bad, &wrapped(&plain(&self.text, theme.bad), indented)),
                Speaker::Difference => marked("  ", Style::new(), &wrapped(&difference(&self.text, theme), indented)),
                Speaker::Command => wrapped(&styled(self.text.trim_end(), theme), width),
            };
            if matches!(self.speaker, Speaker::You | Speaker::Model) {
                self.rows.push(Line::default());
            }
        }
        &self.rows
    }
}

/// Rows with a mark before the first.
fn marked(mark: &'static str, style: Style, rows: &[Line<'static>]) -> Vec<Line<'static>> {
    let before = std::iter::once(mark).chain(std::iter::repeat("  "));
    before
        .zip(rows)
        .map(|(mark, row)| Line::from([vec![Span::styled(mark, style)], row.spans.clone()].concat()))
        .collect()
}

#[derive(Default)]
pub(crate) struct ChatLog {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Whether entries are gone.
    is_cut: bool,
    /// How many rows below the screen there are: zero follows what comes.
    below: usize,
    height: usize,
    /// Whether the last entry still grows.
    is_open: bool,
}

impl ChatLog {
    /// A whole entry.
    pub(crate) fn add(&mut self, speaker: Speaker, text: &str) {
        self.is_open = false;
        if !text.trim().is_empty() {
            self.push(speaker, text.trim_end().to_owned());
        }
    }

    /// More of what somebody says.
    pub(crate) fn extend(&mut self, speaker: Speaker, text: &str) {
        if !self.is_open || self.entries.back().is_none_or(|last| last.speaker != speaker) {
            // An answer does not begin with blank lines.
            let text = text.trim_start_matches('\n');
            if text.is_empty() {
                return;
            }
            self.push(speaker, String::new());
            self.is_open = true;
            return self.grow(text);
        }
        self.grow(text);
    }

    /// What grows is whole now.
    pub(crate) fn close(&mut self) {
        self.is_open = false;
    }

    pub(crate) fn clear(&mut self) {
        *self = ChatLog::default();
    }

    fn grow(&mut self, text: &str) {
        let Some(last) = self.entries.back_mut() else { return };
        last.text.push_str(text);
        last.width = 0;
        self.bytes += text.len();
        // What is whole is not read again with every word.
        let speaker = last.speaker;
        if let Some(at) = part_end(&last.text, speaker) {
            let rest = last.text.split_off(at);
            self.bytes = self.bytes.saturating_sub(rest.len());
            self.push(speaker, String::new());
            self.grow(rest.trim_start_matches('\n'));
        }
        self.shorten();
    }

    fn push(&mut self, speaker: Speaker, text: String) {
        self.bytes += text.len();
        self.entries.push_back(Entry { speaker, text, rows: Vec::new(), width: 0 });
        self.shorten();
    }

    fn shorten(&mut self) {
        while self.entries.len() > MOST_ENTRIES || (self.bytes > MOST_BYTES && self.entries.len() > 1) {
            let gone = self.entries.pop_front().map_or(0, |entry| entry.text.len());
            self.bytes = self.bytes.saturating_sub(gone);
            self.is_cut = true;
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        let page = self.height.saturating_sub(1).max(1);
        self.below = match step {
            Step::Up => self.below.saturating_add(1),
            Step::Down => self.below.saturating_sub(1),
            Step::PageUp => self.below.saturating_add(page),
            Step::PageDown => self.below.saturating_sub(page),
            Step::First => usize::MAX,
            Step::Last => 0,
        };
    }

    /// Whether newer rows are below the screen.
    pub(crate) fn is_scrolled(&self) -> bool {
        self.below > 0
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        self.height = usize::from(area.height);
        let wanted = self.below.saturating_add(self.height);
        // From the end, as far as the screen reaches.
        let mut rows: Vec<Line<'static>> = Vec::new();
        let mut found = 0;
        for entry in self.entries.iter_mut().rev() {
            let own = entry.rows(area.width, theme);
            let skipped = self.below.saturating_sub(found);
            found += own.len();
            rows.extend(own.iter().rev().skip(skipped).take(self.height - rows.len()).cloned());
            if found >= wanted {
                break;
            }
        }
        if found < wanted {
            self.below = found.saturating_sub(self.height);
            if self.is_cut && rows.len() < self.height {
                rows.push(Line::styled("· earlier words are in the transcript: /session names it", theme.faint));
            }
        }
        rows.reverse();
        frame.render_widget(Paragraph::new(rows), area);
    }
}

/// Where a growing text has a part that is whole: at a blank line outside of code, or where it is too long.
fn part_end(text: &str, speaker: Speaker) -> Option<usize> {
    let mut is_code = false;
    let mut at = 0;
    let mut end = None;
    for line in text.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        at += line.len();
        if line == "\n" && !is_code && speaker == Speaker::Model && at < text.len() {
            end = Some(at);
        }
    }
    let cut = || {
        let at = text.floor_char_boundary(LONGEST_PART);
        text.get(..at).and_then(|part| part.rfind(char::is_whitespace)).filter(|at| *at > 0).unwrap_or(at)
    };
    end.or_else(|| (text.len() > LONGEST_PART).then(cut))
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn drawn(log: &mut ChatLog) -> String {
        let mut terminal = Terminal::new(TestBackend::new(20, 5)).unwrap();
        terminal.draw(|frame| log.draw(frame, frame.area(), &Theme::new(false))).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn an_answer_is_the_same_whatever_its_pieces() {
        let text = "First **part**.\n\n```\na\n\nb\n```\n\nThe end.";
        let mut screens = Vec::new();
        for piece in [1, 3, 100] {
            let mut log = ChatLog::default();
            let chars: Vec<char> = text.chars().collect();
            chars.chunks(piece).for_each(|part| log.extend(Speaker::Model, &part.iter().collect::<String>()));
            screens.push(drawn(&mut log));
        }
        assert_eq!(screens[0], screens[1]);
        assert_eq!(screens[1], screens[2]);
    }

    #[test]
    fn a_thousand_turns_and_a_megabyte_in_a_line_are_bounded() {
        let mut log = ChatLog::default();
        for turn in 0..5000 {
            log.add(Speaker::You, &format!("turn {turn}"));
            log.extend(Speaker::Model, &"word ".repeat(200));
            log.close();
        }
        log.extend(Speaker::Model, &"x".repeat(1 << 20));
        assert!(log.entries.len() <= MOST_ENTRIES && log.bytes <= MOST_BYTES + LONGEST_PART, "{}", log.bytes);
        assert!(log.entries.iter().all(|entry| entry.text.len() <= LONGEST_PART));
        drawn(&mut log);
        for step in [Step::First, Step::PageUp, Step::Up] {
            log.step(step);
        }
        drawn(&mut log);
    }
}
