//! A form with a few lines, above a panel.

use std::borrow::Cow;

use ollm_store::one_line;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Margin, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use ratatui_textarea::{CursorMove, TextArea};

use super::dialog::{centred, edit, line_input};
use super::text::fitted;
use super::theme::Theme;
use crate::error::Failure;

const WIDTH: u16 = 76;
/// What stands for an empty value among several.
const USUAL: &str = "default";
/// The column of the values.
const LABEL: u16 = 14;

/// One value of a form.
pub(crate) struct Field {
    label: Cow<'static, str>,
    hint: Cow<'static, str>,
    value: FieldValue,
    /// Its text when the form opened; the same text counts as unchanged.
    given: String,
    shown: String,
}

enum FieldValue {
    Text(Box<TextArea<'static>>),
    /// One of these values, by its index.
    Choice(&'static [&'static str], usize),
    /// A value of several lines, which has no room here.
    Fixed,
}

impl Field {
    pub(crate) fn text(label: impl Into<Cow<'static, str>>, hint: impl Into<Cow<'static, str>>, value: &str) -> Field {
        let (label, hint) = (label.into(), hint.into());
        if value.contains(['\n', '\r']) {
            return Field::new(label, "several lines: change it in your editor".into(), FieldValue::Fixed, value);
        }
        let mut input = line_input(false);
        input.insert_str(value);
        input.move_cursor(CursorMove::End);
        Field::new(label, hint, FieldValue::Text(Box::new(input)), value)
    }

    fn new(label: Cow<'static, str>, hint: Cow<'static, str>, value: FieldValue, given: &str) -> Field {
        let mut field = Field { label, hint, value, given: given.to_owned(), shown: String::new() };
        field.shown = field.shown_value();
        field
    }

    /// A choice among several values; the first one if the present value is not among them. An empty value means the
    /// default.
    pub(crate) fn choice(
        label: impl Into<Cow<'static, str>>,
        hint: impl Into<Cow<'static, str>>,
        all: &'static [&'static str],
        now: &str,
    ) -> Field {
        let at = all.iter().position(|one| *one == now).unwrap_or_default();
        Field::new(label.into(), hint.into(), FieldValue::Choice(all, at), now)
    }

    fn value(&self) -> String {
        let shown = self.shown_value();
        if shown == self.shown { self.given.clone() } else { shown.trim().to_owned() }
    }

    fn shown_value(&self) -> String {
        match &self.value {
            FieldValue::Text(input) => input.lines().concat(),
            FieldValue::Choice(all, at) => all.get(*at).copied().unwrap_or_default().to_owned(),
            FieldValue::Fixed => format!("{} …", self.given.lines().next().unwrap_or_default()),
        }
    }
}

pub(crate) struct Form {
    title: String,
    fields: Vec<Field>,
    at: usize,
    first: usize,
    /// The reason why the last input was not accepted.
    refusal: Option<String>,
}

/// The result of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FormState {
    Open,
    /// The values, in the order of the fields.
    Saved(Vec<String>),
    Cancelled,
}

impl Form {
    pub(crate) fn new(title: impl Into<String>, fields: Vec<Field>) -> Form {
        Form { title: title.into(), fields, at: 0, first: 0, refusal: None }
    }

    /// The form again, with the reason why its input was not accepted.
    pub(crate) fn refused(self, outcome: &Result<u8, Failure>) -> Form {
        Form { refusal: outcome.as_ref().err().map(|failure| one_line(&failure.message)), ..self }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> FormState {
        self.refusal = None;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = self.fields.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => return FormState::Cancelled,
            KeyCode::Char('c') if is_control => return FormState::Cancelled,
            KeyCode::Enter => return FormState::Saved(self.fields.iter().map(Field::value).collect()),
            KeyCode::Char('s') if is_control => {
                return FormState::Saved(self.fields.iter().map(Field::value).collect());
            }
            KeyCode::Tab | KeyCode::Down => self.at = if self.at == last { 0 } else { self.at + 1 },
            KeyCode::BackTab | KeyCode::Up => self.at = self.at.checked_sub(1).unwrap_or(last),
            code => match self.fields.get_mut(self.at).map(|field| &mut field.value) {
                Some(FieldValue::Text(input)) => edit(input, key),
                Some(FieldValue::Choice(all, at)) => match code {
                    KeyCode::Left => *at = at.checked_sub(1).unwrap_or(all.len().saturating_sub(1)),
                    KeyCode::Right | KeyCode::Char(' ') => *at = (*at + 1) % all.len().max(1),
                    _ => {}
                },
                Some(FieldValue::Fixed) | None => {}
            },
        }
        FormState::Open
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(FieldValue::Text(input)) = self.fields.get_mut(self.at).map(|field| &mut field.value) {
            input.insert_str(text.lines().next().unwrap_or_default());
        }
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, whole: Rect, theme: &Theme) {
        let rows = u16::try_from(self.fields.len()).unwrap_or(u16::MAX);
        let area = centred(whole, whole.width.min(WIDTH), rows.saturating_add(4));
        frame.render_widget(Clear, area);
        let block = Block::bordered().title(format!(" {} ", self.title)).border_style(theme.accent);
        frame.render_widget(block, area);
        let inner = area.inner(Margin { horizontal: 1, vertical: 1 });
        let [fields, hint, keys] =
            Layout::vertical([Constraint::Fill(1), Constraint::Length(1), Constraint::Length(1)]).areas(inner);
        let height = usize::from(fields.height).max(1);
        self.first = self.first.clamp((self.at + 1).saturating_sub(height), self.at);
        for (row, (at, field)) in (fields.y..fields.bottom()).zip(self.fields.iter().enumerate().skip(self.first)) {
            let line = Rect { y: row, height: 1, ..fields };
            field.draw(frame, line, at == self.at, theme);
        }
        let about = self.fields.get(self.at).map(|field| field.hint.as_ref()).unwrap_or_default();
        let about = match &self.refusal {
            Some(refusal) => Span::styled(fitted(refusal, usize::from(hint.width)), theme.bad),
            None => Span::styled(about, theme.faint),
        };
        frame.render_widget(Paragraph::new(about), hint);
        frame.render_widget(Paragraph::new("Enter saves, Tab moves, Esc cancels"), keys);
    }
}

impl Field {
    fn draw(&self, frame: &mut Frame<'_>, area: Rect, is_chosen: bool, theme: &Theme) {
        let [label, value] = Layout::horizontal([Constraint::Length(LABEL), Constraint::Fill(1)]).areas(area);
        let style = if is_chosen { theme.title } else { theme.faint };
        let mark = if is_chosen { "▸ " } else { "  " };
        frame.render_widget(Paragraph::new(Line::from(Span::styled(format!("{mark}{}", self.label), style))), label);
        match &self.value {
            FieldValue::Text(input) if is_chosen => frame.render_widget(&**input, value),
            FieldValue::Text(input) => frame.render_widget(Paragraph::new(input.lines().concat()), value),
            FieldValue::Choice(..) => {
                let chosen = Some(self.shown_value()).filter(|chosen| !chosen.is_empty());
                let chosen = chosen.as_deref().unwrap_or(USUAL);
                frame.render_widget(Paragraph::new(format!("‹ {chosen} ›")), value);
            }
            FieldValue::Fixed => {
                frame.render_widget(Paragraph::new(Span::styled(self.shown_value(), theme.faint)), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(form: &mut Form) -> Vec<String> {
        match form.key(KeyCode::Enter.into()) {
            FormState::Saved(values) => values,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_unchanged_field_keeps_its_value() {
        let given = ["  two  blanks ", "several\nlines\n", "unknown", "low"];
        let fields = || {
            vec![
                Field::text("text", "", given[0]),
                Field::text("lines", "", given[1]),
                Field::choice("odd", "", &["a", "b"], given[2]),
                Field::choice("choice", "", &["high", "low"], given[3]),
            ]
        };
        assert_eq!(saved(&mut Form::new("form", fields())), given);
        let mut form = Form::new("form", fields());
        for code in
            [KeyCode::Char('x'), KeyCode::Tab, KeyCode::Char('y'), KeyCode::Tab, KeyCode::Right, KeyCode::BackTab]
        {
            form.key(code.into());
        }
        assert_eq!(saved(&mut form), ["two  blanks x", given[1], "b", given[3]]);
    }
}
