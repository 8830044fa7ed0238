//! The input of the chat: several rows, a history, and completion by Tab.

use std::path::PathBuf;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use rustyline::Config;
use rustyline::history::{FileHistory, History as _, SearchDirection};

use super::super::dialog::{edit, line_input};
use super::super::text::width_of;
use crate::command::chat::complete::Completion;

/// Longer texts are not typed.
pub(super) const LONGEST: usize = 256 << 10;

pub(crate) struct ChatInput {
    area: TextArea<'static>,
    history: FileHistory,
    file: PathBuf,
    /// The shown earlier input, counted from the latest, and the text from before.
    earlier: Option<(usize, String)>,
}

/// What came of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputState {
    Open,
    /// A whole input.
    Sent(String),
}

impl ChatInput {
    /// An input whose history is kept in a file, which the plain chat shares.
    pub(crate) fn new(file: PathBuf) -> ChatInput {
        let config =
            Config::builder().max_history_size(1000).map(rustyline::config::Builder::build).unwrap_or_default();
        let mut history = FileHistory::with_config(&config);
        // There may be none yet.
        let _ = history.load(&file);
        ChatInput { area: blank(), history, file, earlier: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.area = blank();
        self.earlier = None;
    }

    pub(crate) fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// The row under the cursor, up to the cursor.
    pub(crate) fn before_cursor(&self) -> String {
        let cursor = self.area.cursor();
        let line = self.area.lines().get(cursor.0).map(String::as_str).unwrap_or_default();
        line.chars().take(cursor.1).collect()
    }

    pub(crate) fn area(&self) -> &TextArea<'static> {
        &self.area
    }

    /// How many rows it takes on a screen of so many columns, with room for the cursor behind the last character.
    pub(crate) fn rows(&self, columns: usize) -> usize {
        self.area.lines().iter().map(|line| 1 + width_of(line) / columns.max(1)).sum()
    }

    /// Puts a text in; false where there is no room for it.
    pub(crate) fn insert(&mut self, text: &str) -> bool {
        let fits = self.text().len() + text.len() <= LONGEST;
        if fits {
            self.area.insert_str(text);
        }
        fits
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> InputState {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let goes_on = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        let (row, rows) = (self.area.cursor().0, self.area.lines().len());
        match key.code {
            KeyCode::Char('j') if is_control => self.area.insert_newline(),
            KeyCode::Enter if goes_on => self.area.insert_newline(),
            KeyCode::Enter if self.before_cursor().ends_with('\\') => {
                self.area.delete_char();
                self.area.insert_newline();
            }
            KeyCode::Enter => return self.send(),
            KeyCode::Up if row == 0 => self.step_back(),
            KeyCode::Down if row + 1 == rows && self.earlier.is_some() => self.step_forward(),
            KeyCode::Char(_) if !is_control && self.text().len() >= LONGEST => {}
            _ => edit(&mut self.area, key),
        }
        InputState::Open
    }

    fn send(&mut self) -> InputState {
        let text = self.text();
        if text.trim().is_empty() {
            return InputState::Open;
        }
        let _ = self.history.add(&text);
        // A history that cannot be kept is no reason to complain in the middle of a talk.
        let _ = self.history.append(&self.file);
        self.clear();
        InputState::Sent(text)
    }

    fn step_back(&mut self) {
        let at = self.earlier.as_ref().map_or(0, |(at, _)| at + 1);
        let Some(line) = self.line_of_history(at) else { return };
        let written = self.earlier.take().map_or_else(|| self.text(), |(_, written)| written);
        self.replace(&line);
        self.earlier = Some((at, written));
    }

    fn step_forward(&mut self) {
        let Some((at, written)) = self.earlier.take() else { return };
        match at.checked_sub(1).and_then(|at| Some((at, self.line_of_history(at)?))) {
            Some((at, line)) => {
                self.replace(&line);
                self.earlier = Some((at, written));
            }
            None => self.replace(&written),
        }
    }

    fn line_of_history(&self, at: usize) -> Option<String> {
        let index = self.history.len().checked_sub(at + 1)?;
        self.history.get(index, SearchDirection::Reverse).ok()?.map(|found| found.entry.into_owned())
    }

    fn replace(&mut self, text: &str) {
        self.area = blank();
        self.area.insert_str(text);
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
    }

    /// Inserts the common prefix of all candidates; returns the candidates if there is more than one.
    pub(crate) fn complete(&mut self, before: &str, completion: &Completion) -> Vec<String> {
        let (word, common) = (before.get(completion.start..).unwrap_or_default(), completion.common());
        // A name that is written without its beginning has more than that in common with its candidates, or stays.
        if common.len() > word.len() || completion.candidates.len() == 1 {
            for _ in word.chars() {
                self.area.delete_char();
            }
            self.area.insert_str(common);
        }
        match completion.candidates.as_slice() {
            [one] if !one.ends_with('/') => {
                self.area.insert_char(' ');
                Vec::new()
            }
            [_] => Vec::new(),
            more => more.to_vec(),
        }
    }
}

fn blank() -> TextArea<'static> {
    let mut area = line_input(false);
    area.set_wrap_mode(WrapMode::Glyph);
    area
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_u_clears_what_is_before_the_cursor() {
        let mut input = ChatInput::new(PathBuf::from("/nowhere/history"));
        input.insert("one two");
        input.key(KeyCode::Left.into());
        input.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(input.text(), "o");
    }

    #[test]
    fn a_full_input_takes_no_more_but_moves_and_shrinks() {
        let mut input = ChatInput::new(PathBuf::from("/nowhere/history"));
        assert!(input.insert(&"x".repeat(LONGEST)));
        assert!(!input.insert("y"));
        input.key(KeyCode::Char('y').into());
        input.key(KeyCode::Left.into());
        assert_eq!((input.text().len(), input.before_cursor().len()), (LONGEST, LONGEST - 1));
        input.key(KeyCode::Backspace.into());
        assert!(input.insert("z") && input.text().contains('z'));
    }
}
