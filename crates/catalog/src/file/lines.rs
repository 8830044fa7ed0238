//! Lines and columns of a text.

use std::fmt;

use ollm_store::Redactor;

use crate::problem::Snippet;

/// A place in a text, counted from one; zero when unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    /// In characters.
    pub(crate) column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {} column {}", self.line, self.column)
    }
}

/// The place so many bytes into a text, of which these are the letters in the file; its beginning where that is a block of YAML.
pub(super) fn inside(start: Position, letters: &str, bytes: usize) -> Position {
    let quote = letters.chars().next().filter(|letter| ['"', '\''].contains(letter));
    let mut at = Position { column: start.column + usize::from(quote.is_some()), ..start };
    let mut rest = letters.get(usize::from(quote.is_some())..).unwrap_or_default().chars();
    let mut passed = 0;
    while passed < bytes {
        let Some(letter) = rest.next() else { break };
        let escaped = (letter == '\\' && quote == Some('"')).then(|| rest.next()).flatten();
        let (width, written) = match escaped {
            // Four digits stand for one letter, whose length in the text only matters for what comes after it.
            Some('u') => (rest.by_ref().take(4).filter(char::is_ascii_hexdigit).count().min(3), 6),
            Some(_) => (1, 2),
            None => (letter.len_utf8(), 1),
        };
        if letter == '\n' {
            return start;
        }
        passed += width;
        at.column += written;
    }
    at
}

/// Longer lines are shown in part.
const LONGEST_SNIPPET: usize = 160;

/// A text and where its lines begin.
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    ascii: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Lines<'a> {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(index, _)| index + 1);
        Lines { text, starts: std::iter::once(0).chain(breaks).collect(), ascii: text.is_ascii() }
    }

    /// The position of a byte.
    pub(super) fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let before = if self.ascii {
            offset.saturating_sub(start)
        } else {
            self.text.get(start..offset).map_or(0, |text| text.chars().count())
        };
        Position { line, column: before + 1 }
    }

    /// The line a position is in, without secrets; of a long line the part around the position.
    pub(super) fn snippet(&self, at: Position) -> Option<Snippet> {
        let line = self.line(at.line)?;
        let redactor = Redactor::default();
        let shown = redactor.redact_str(line);
        let before: String = line.chars().take(at.column.saturating_sub(1)).collect();
        let column = redactor.redact_str(&before).chars().count() + 1;
        let skip = if shown.len() > LONGEST_SNIPPET { column.saturating_sub(LONGEST_SNIPPET / 2) } else { 0 };
        let text = shown.chars().skip(skip).take(LONGEST_SNIPPET).collect();
        Some(Snippet { text, column: column - skip })
    }

    fn line(&self, line: usize) -> Option<&'a str> {
        let start = *self.starts.get(line.checked_sub(1)?)?;
        let end = self.starts.get(line).map_or(self.text.len(), |next| next - 1);
        self.text.get(start..end).map(|line| line.strip_suffix('\r').unwrap_or(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_text_is_found_in_its_letters() {
        let start = Position { line: 3, column: 10 };
        let column = |letters: &str, bytes: usize| inside(start, letters, bytes).column;
        assert_eq!(column("\"ab == )\"", 6), 17);
        assert_eq!(column("'ab == )'", 6), 17);
        assert_eq!(column("ab == )", 6), 16);
        assert_eq!(column(r#""a\"b\" )""#, 5), 18);
        assert_eq!(column("|\n  ab\n  cd", 4), 10, "a block begins further down, and its indentation is not known");
    }

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let lines = Lines::new("a\nöö: x\r\n");
        assert_eq!(lines.position(0), Position { line: 1, column: 1 });
        assert_eq!(lines.position(2), Position { line: 2, column: 1 });
        assert_eq!(lines.position(8), Position { line: 2, column: 5 });
        assert_eq!(lines.position(99), Position { line: 3, column: 1 });
    }

    #[test]
    fn a_snippet_is_the_line_or_the_part_around_the_column() {
        let lines = Lines::new("a\nöö: x\r\n");
        let whole = Snippet { text: "öö: x".to_owned(), column: 1 };
        assert_eq!(lines.snippet(Position { line: 2, column: 1 }), Some(whole));
        assert_eq!(lines.snippet(Position::default()), None);
        let long = format!("{}X{}", "a".repeat(1000), "b".repeat(1000));
        let shown = Lines::new(&long).snippet(Position { line: 1, column: 1001 }).unwrap();
        assert_eq!(shown.text.chars().count(), 160);
        assert_eq!(shown.text.chars().nth(shown.column - 1), Some('X'));
    }
}
