//! A question to the person, over everything else.
//!
//! It takes a line and Enter, as the plain terminal does: a word that is being typed when the question comes up is then no
//! answer. No answer but no counts before all of the text has been on the screen.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use ratatui_textarea::TextArea;

use super::list::{ListCursor, Step, TextView};
use super::screen::{AnswerKind, Question};
use super::text;
use super::theme::Theme;
use crate::ask::is_meant;

/// Wider dialogs are harder to read.
const WIDEST: u16 = 110;
/// Rows beside the text: borders, ways, input.
const FRAME_ROWS: u16 = 4;

pub(crate) struct QuestionDialog {
    question: Question,
    /// Where the cursor is among rows to pick from.
    cursor: ListCursor,
    body: TextView,
    input: TextArea<'static>,
    /// Why the last answer did not count.
    refusal: Option<String>,
}

/// What came of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialogState {
    Open,
    /// The question is answered, or will not be.
    Closed,
}

impl QuestionDialog {
    pub(crate) fn new(question: Question, theme: &Theme) -> QuestionDialog {
        let body = TextView::new(text::difference(question.text.trim_matches('\n'), theme));
        let input = line_input(question.kind == AnswerKind::Secret);
        QuestionDialog { input, question, body, cursor: ListCursor::default(), refusal: None }
    }

    pub(crate) fn id(&self) -> u64 {
        self.question.id
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> DialogState {
        self.refusal = None;
        match key.code {
            KeyCode::Esc => return DialogState::Closed,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return DialogState::Closed,
            KeyCode::Enter => return self.answer(),
            code => match Step::of(code) {
                Some(step) => self.scroll(step),
                None => drop(self.input.input(key)),
            },
        }
        DialogState::Open
    }

    pub(crate) fn paste(&mut self, text: &str) {
        // An answer that counts is typed; a text may be pasted.
        if !matches!(self.question.kind, AnswerKind::Ways(_)) {
            self.input.insert_str(text.lines().next().unwrap_or_default());
        }
    }

    pub(crate) fn scroll(&mut self, step: Step) {
        match &self.question.kind {
            AnswerKind::Rows(rows) => self.cursor.step(step, rows.len()),
            _ => self.body.step(step),
        }
    }

    fn answer(&mut self) -> DialogState {
        let typed = self.input.lines().concat();
        let ways = match &self.question.kind {
            AnswerKind::Ways(ways) => ways,
            kind => {
                let picks = matches!(kind, AnswerKind::Rows(_));
                // Who asked may have given up.
                let _ = self.question.reply.send(if picks { self.cursor.at.to_string() } else { typed });
                return DialogState::Closed;
            }
        };
        let answer = typed.trim();
        if answer.is_empty() && !self.body.is_read() {
            self.body.step(Step::PageDown);
            return DialogState::Open;
        }
        if answer.is_empty() || is_meant("[n]o", answer) {
            return DialogState::Closed;
        }
        self.refusal = if !ways.iter().any(|way| is_meant(way, answer)) {
            Some(format!("`{answer}` is not among the answers"))
        } else if !self.body.is_read() {
            Some("read to the end first: Enter or PgDn shows more".to_owned())
        } else {
            let _ = self.question.reply.send(answer.to_owned());
            return DialogState::Closed;
        };
        self.input = line_input(false);
        DialogState::Open
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, whole: Rect, theme: &Theme) {
        if let AnswerKind::Rows(rows) = self.question.kind.clone() {
            return self.draw_rows(&rows, frame, whole, theme);
        }
        let width = whole.width.min(WIDEST);
        let rows = u16::try_from(self.body.rows(width.saturating_sub(2))).unwrap_or(u16::MAX);
        let area = centred(whole, width, rows.saturating_add(FRAME_ROWS));
        frame.render_widget(Clear, area);
        let block = Block::bordered().title(" Question ").border_style(theme.attention);
        let inner = block.inner(area);
        let [body, ways, input] =
            Layout::vertical([Constraint::Fill(1), Constraint::Length(1), Constraint::Length(1)]).areas(inner);
        self.body.draw(frame, body);
        let position = self.body.position();
        let block = position.into_iter().fold(block, |block, position| block.title_bottom(format!(" {position} ")));
        frame.render_widget(block, area);
        frame.render_widget(Paragraph::new(self.ways(theme)), ways);
        let [mark, line] = Layout::horizontal([Constraint::Length(2), Constraint::Fill(1)]).areas(input);
        frame.render_widget(Paragraph::new("> "), mark);
        frame.render_widget(&self.input, line);
    }

    fn draw_rows(&mut self, rows: &[String], frame: &mut Frame<'_>, whole: Rect, theme: &Theme) {
        let height = u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(2);
        let area = centred(whole, whole.width.min(WIDEST), height);
        frame.render_widget(Clear, area);
        let title = format!(" {} ", self.question.text);
        let block =
            Block::bordered().title(title).title_bottom(" Enter picks, Esc leaves ").border_style(theme.attention);
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let window = self.cursor.window(usize::from(inner.height), rows.len());
        let shown = rows.iter().enumerate().skip(window.start).take(window.len());
        let lines: Vec<Line<'static>> = shown
            .map(|(at, row)| {
                let style = if at == self.cursor.at { theme.chosen } else { Style::new() };
                Line::from(Span::styled(text::fitted(row, usize::from(inner.width)), style))
            })
            .collect();
        frame.render_widget(Paragraph::new(lines), inner);
    }

    /// What may be answered, or why the last answer did not count.
    fn ways(&self, theme: &Theme) -> Line<'static> {
        if let Some(refusal) = &self.refusal {
            return Line::from(Span::styled(refusal.clone(), theme.bad));
        }
        let text = match &self.question.kind {
            AnswerKind::Ways(ways) => format!("{}, [N]o · Enter answers, Esc is no", ways.join(", ")),
            AnswerKind::Rows(_) => String::new(),
            AnswerKind::Text => "Enter answers, Esc gives up".to_owned(),
            AnswerKind::Secret => "Not shown while you type; Enter answers, Esc gives up".to_owned(),
        };
        Line::from(Span::styled(text, theme.title))
    }
}

/// An input of one line.
pub(crate) fn line_input(is_secret: bool) -> TextArea<'static> {
    let mut input = TextArea::default();
    input.set_cursor_line_style(Style::new());
    input.set_max_histories(50);
    if is_secret {
        input.set_mask_char('•');
    }
    input
}

/// An area of at most this size in the middle of another.
pub(crate) fn centred(whole: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(whole.width), height.min(whole.height));
    let x = whole.x + (whole.width - width) / 2;
    let y = whole.y + (whole.height - height) / 2;
    Rect { x, y, width, height }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn asked(text: &str) -> (QuestionDialog, Receiver<String>) {
        let (reply, answer) = channel();
        let kind = AnswerKind::Ways(vec!["[o]nce".to_owned(), "[a]lways".to_owned()]);
        let question = Question { id: 1, text: text.to_owned(), kind, reply };
        (QuestionDialog::new(question, &Theme::new(false)), answer)
    }

    fn draw(dialog: &mut QuestionDialog) {
        let mut terminal = Terminal::new(TestBackend::new(40, 12)).unwrap();
        terminal.draw(|frame| dialog.draw(frame, frame.area(), &Theme::new(false))).unwrap();
    }

    fn typed(dialog: &mut QuestionDialog, text: &str) -> DialogState {
        let mut state = DialogState::Open;
        for char in text.chars() {
            let code = if char == '\n' { KeyCode::Enter } else { KeyCode::Char(char) };
            state = dialog.key(code.into());
        }
        state
    }

    #[test]
    fn only_the_ways_on_the_screen_answer() {
        let (mut dialog, answer) = asked("May it run?");
        draw(&mut dialog);
        assert_eq!(typed(&mut dialog, "y\n"), DialogState::Open);
        assert_eq!(typed(&mut dialog, "ay\n"), DialogState::Open, "a letter among others is no answer");
        assert_eq!(typed(&mut dialog, "always\n"), DialogState::Closed);
        assert_eq!(answer.recv().unwrap(), "always");
    }

    #[test]
    fn nothing_but_no_counts_before_the_end_was_on_the_screen() {
        let (mut dialog, answer) = asked(&"line\n".repeat(30));
        draw(&mut dialog);
        assert_eq!(typed(&mut dialog, "a\n"), DialogState::Open);
        for _ in 0..5 {
            typed(&mut dialog, "\n");
            draw(&mut dialog);
        }
        assert_eq!(typed(&mut dialog, "a\n"), DialogState::Closed);
        assert_eq!(answer.recv().unwrap(), "a");
        let (mut dialog, answer) = asked(&"line\n".repeat(30));
        draw(&mut dialog);
        assert_eq!(typed(&mut dialog, "n\n"), DialogState::Closed);
        drop(dialog);
        assert!(answer.recv().is_err());
    }
}
