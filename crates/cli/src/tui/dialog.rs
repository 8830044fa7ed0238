//! A question to the person, above all panels.
//!
//! It takes a line and Enter, like the plain terminal. So a word that is being typed when the question appears is no
//! answer. Only no is accepted before the whole text, and all possible answers, have been on the screen.

use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use ratatui_textarea::TextArea;

use super::list::{ListCursor, Step, TextView};
use super::panel::PanelName;
use super::screen::{AnswerKind, Question};
use super::text;
use super::theme::Theme;
use crate::ask::is_meant;

/// Wider dialogs are harder to read.
const WIDEST: u16 = 110;
/// Rows beside the text: borders, hint, input.
const FRAME_ROWS: u16 = 4;

pub(crate) struct QuestionDialog {
    question: Question,
    /// Where the cursor is among rows to pick from.
    cursor: ListCursor,
    body: TextView,
    input: TextArea<'static>,
    /// Why the last answer did not count.
    refusal: Option<String>,
    /// How long it ignores keys after it appears, because they may be meant for the screen before.
    grace: Duration,
    /// When it takes keys, once it was drawn.
    ready: Option<Instant>,
}

/// What came of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialogState {
    Open,
    /// The question is answered, or will not be.
    Closed,
}

impl QuestionDialog {
    pub(crate) fn new(question: Question, theme: &Theme, grace: Duration) -> QuestionDialog {
        let mut lines = text::difference(question.text.trim_matches('\n'), theme);
        if let AnswerKind::Ways(ways) = &question.kind {
            lines.extend(text::plain(&format!("{}, [N]o", ways.join(", ")), theme.title));
        }
        let input = line_input(question.kind == AnswerKind::Secret);
        if lines.is_empty() {
            lines.push(Line::default());
        }
        let (body, cursor) = (TextView::new(lines), ListCursor::default());
        QuestionDialog { input, question, body, cursor, refusal: None, grace, ready: None }
    }

    pub(crate) fn id(&self) -> u64 {
        self.question.id
    }

    /// The panel whose job asks.
    pub(crate) fn panel(&self) -> PanelName {
        self.question.panel
    }

    /// Whether it has been on the screen for long enough.
    fn is_ready(&self) -> bool {
        self.ready.is_some_and(|ready| ready <= Instant::now())
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> DialogState {
        if !self.is_ready() {
            return DialogState::Open;
        }
        self.refusal = None;
        match key.code {
            KeyCode::Esc => return DialogState::Closed,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return DialogState::Closed,
            KeyCode::Enter => return self.answer(),
            code => match Step::of(code) {
                Some(step) => self.scroll(step),
                None => edit(&mut self.input, key),
            },
        }
        DialogState::Open
    }

    pub(crate) fn paste(&mut self, text: &str) {
        // An answer that counts is typed; a text may be pasted.
        if self.is_ready() && !matches!(self.question.kind, AnswerKind::Ways(_)) {
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
        let answer = match &self.question.kind {
            AnswerKind::Rows(_) => self.cursor.at.to_string(),
            AnswerKind::Text | AnswerKind::Secret if self.body.is_read() => typed,
            AnswerKind::Ways(_) if is_meant("[n]o", typed.trim()) => return DialogState::Closed,
            AnswerKind::Ways(ways) if self.body.is_read() => {
                let answer = typed.trim();
                // An extra Enter is no answer: it may belong to the text that was just read.
                if !ways.iter().any(|way| is_meant(way, answer)) {
                    let refusal = format!("`{answer}` is not among the answers");
                    return self.refuse((!answer.is_empty()).then_some(refusal));
                }
                answer.to_owned()
            }
            _ => {
                self.body.show_unseen();
                return self.refuse((!typed.trim().is_empty()).then(|| "not all is read; Enter shows more".to_owned()));
            }
        };
        // The asking thread may have given up.
        let _ = self.question.reply.send(answer);
        DialogState::Closed
    }

    /// The question stays open, with an empty line.
    fn refuse(&mut self, why: Option<String>) -> DialogState {
        self.refusal = why;
        self.input = line_input(self.question.kind == AnswerKind::Secret);
        DialogState::Open
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, whole: Rect, theme: &Theme) {
        self.ready.get_or_insert_with(|| Instant::now() + self.grace);
        if let AnswerKind::Rows(rows) = self.question.kind.clone() {
            return self.draw_rows(&rows, frame, whole, theme);
        }
        let width = whole.width.min(WIDEST);
        let rows = u16::try_from(self.body.rows(width.saturating_sub(2))).unwrap_or(u16::MAX);
        let area = centred(whole, width, rows.saturating_add(FRAME_ROWS));
        frame.render_widget(Clear, area);
        let block = Block::bordered().title(" Question ").border_style(theme.attention);
        let inner = block.inner(area);
        let [body, hint, input] =
            Layout::vertical([Constraint::Fill(1), Constraint::Length(1), Constraint::Length(1)]).areas(inner);
        self.body.draw(frame, body);
        let position = self.body.position();
        let block = position.into_iter().fold(block, |block, position| block.title_bottom(format!(" {position} ")));
        frame.render_widget(block, area);
        frame.render_widget(Paragraph::new(self.hint(usize::from(hint.width), theme)), hint);
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

    /// What the keys do now, or why the last answer did not count.
    fn hint(&self, width: usize, theme: &Theme) -> Line<'static> {
        if let Some(refusal) = &self.refusal {
            return Line::from(Span::styled(text::fitted(refusal, width), theme.bad));
        }
        let text = match &self.question.kind {
            AnswerKind::Rows(_) => "",
            AnswerKind::Ways(_) if !self.body.is_read() => "Enter shows more, Esc is no",
            AnswerKind::Ways(_) => "Type an answer and Enter; Esc is no",
            _ if !self.body.is_read() => "Enter shows more, Esc gives up",
            AnswerKind::Text => "Enter answers, Esc gives up",
            AnswerKind::Secret => "Not shown; Enter answers, Esc gives up",
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

/// Gives a key to an input. `Ctrl+U` clears what is before the cursor, as in a shell.
pub(crate) fn edit(input: &mut TextArea<'_>, key: KeyEvent) {
    if key.code == KeyCode::Char('u') && key.modifiers.contains(KeyModifiers::CONTROL) {
        input.delete_line_by_head();
    } else {
        input.input(key);
    }
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
        let question = Question { id: 1, panel: PanelName::Hooks, text: text.to_owned(), kind, reply };
        (QuestionDialog::new(question, &Theme::new(false), Duration::ZERO), answer)
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
    fn a_question_takes_no_keys_before_it_has_been_seen_for_a_while() {
        let (mut dialog, answer) = asked("May it run?");
        assert_eq!(typed(&mut dialog, "a\n\u{1b}"), DialogState::Open, "it is not drawn yet");
        dialog.grace = Duration::from_secs(1000);
        draw(&mut dialog);
        assert_eq!(typed(&mut dialog, "a\n"), DialogState::Open);
        dialog.ready = Some(Instant::now());
        assert_eq!(typed(&mut dialog, "a\n"), DialogState::Closed);
        assert_eq!(answer.recv().unwrap(), "a");
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
        for keys in [&[KeyCode::End][..], &[KeyCode::Home, KeyCode::PageDown, KeyCode::PageDown, KeyCode::PageDown]] {
            for code in keys {
                assert_eq!(dialog.key((*code).into()), DialogState::Open);
            }
            draw(&mut dialog);
            assert_eq!(typed(&mut dialog, "a\n"), DialogState::Open, "{keys:?} leaves rows out");
        }
        for _ in 0..9 {
            assert_eq!(typed(&mut dialog, "\n"), DialogState::Open, "an Enter too many is no answer");
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

    #[test]
    fn a_text_is_answered_only_after_it_was_shown() {
        for kind in [AnswerKind::Text, AnswerKind::Secret] {
            let (reply, answer) = channel();
            let question = Question {
                id: 1,
                panel: PanelName::Hooks,
                text: "line\n".repeat(30) + "May it? [y]es, [N]o: ",
                kind,
                reply,
            };
            let mut dialog = QuestionDialog::new(question, &Theme::new(false), Duration::ZERO);
            draw(&mut dialog);
            dialog.paste("y");
            assert_eq!(typed(&mut dialog, "\n"), DialogState::Open);
            for _ in 0..3 {
                assert_eq!(typed(&mut dialog, "\n"), DialogState::Open);
                draw(&mut dialog);
            }
            assert_eq!(typed(&mut dialog, "y\n"), DialogState::Closed);
            assert_eq!(answer.recv().unwrap(), "y");
        }
    }

    #[test]
    fn long_ways_are_shown_whole_and_count_only_then() {
        let (reply, answer) = channel();
        let way = "[a]lways (this very command, in this folder, for everybody who works here)";
        let kind = AnswerKind::Ways(vec!["[y]es".to_owned(), way.to_owned()]);
        let question =
            Question { id: 1, panel: PanelName::Hooks, text: "line\n".repeat(7) + "May it run?", kind, reply };
        let mut dialog = QuestionDialog::new(question, &Theme::new(false), Duration::ZERO);
        draw(&mut dialog);
        assert_eq!(typed(&mut dialog, "y\n"), DialogState::Open, "the ways are not on the screen yet");
        draw(&mut dialog);
        let mut terminal = Terminal::new(TestBackend::new(40, 12)).unwrap();
        terminal.draw(|frame| dialog.draw(frame, frame.area(), &Theme::new(false))).unwrap();
        let shown = terminal.backend().to_string();
        assert!(shown.contains("here), [N]o"), "{shown}");
        assert_eq!(typed(&mut dialog, "y\n"), DialogState::Closed);
        assert_eq!(answer.recv().unwrap(), "y");
    }
}
