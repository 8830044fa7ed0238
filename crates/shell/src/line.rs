//! Splits a command line into words without a shell: quotes group, backslashes protect, nothing is expanded.

use std::ops::Range;

use crate::read::{Lexer, LineEnd, ParseError};
use crate::tree::{Piece, Word};

/// The longest line; a longer one belongs into a script.
const LONGEST: usize = 64 << 10;

/// Why a line cannot be split.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// A character that would need a shell.
    #[error(
        "`{0}` needs a shell, and runCommand has none; quote it to mean the character itself, or move the line into a script"
    )]
    Operator(char),
    /// A quote that is never closed.
    #[error("a {0} quote is never closed; close it, or put a backslash before it")]
    Unclosed(&'static str),
    /// A backslash at the end.
    #[error("the line ends with a backslash; remove it")]
    Trailing,
    /// A NUL byte, which no argument can carry.
    #[error("the line holds a NUL byte, which no program can be given")]
    Nul,
    /// The line is unreasonably long.
    #[error("the line has {0} bytes, more than {LONGEST}; move it into a script")]
    TooLong(usize),
}

/// The words of a line that no shell will read. A hole always stays inside its word, whatever its content.
///
/// ```
/// use ollm_shell::split;
/// assert_eq!(split("npx eslint 'my src'", &[]).unwrap(), ["npx", "eslint", "my src"]);
/// assert!(split("npm test && rm x", &[]).is_err());
/// ```
pub fn split(line: &str, holes: &[Range<usize>]) -> Result<Vec<String>, LineError> {
    let (words, special) = literal(line, holes, LineEnd::Special)?;
    match special {
        Some(special) => Err(LineError::Operator(special)),
        None => Ok(words),
    }
}

/// The words of a line from documentation: characters that only a shell interprets stay as written, comments are
/// removed.
///
/// ```
/// use ollm_shell::split_loosely;
/// assert_eq!(split_loosely("npx x --url=http://h/?a=1&b=$B # all").unwrap(), ["npx", "x", "--url=http://h/?a=1&b=$B"]);
/// ```
pub fn split_loosely(line: &str) -> Result<Vec<String>, LineError> {
    literal(line, &[], LineEnd::Blank).map(|(words, _)| words)
}

/// The words, and the first character that would need a shell.
fn literal(line: &str, holes: &[Range<usize>], end: LineEnd) -> Result<(Vec<String>, Option<char>), LineError> {
    if line.len() > LONGEST {
        return Err(LineError::TooLong(line.len()));
    }
    if line.contains('\0') {
        return Err(LineError::Nul);
    }
    let mut lexer = Lexer::new(line, holes, 0);
    let (words, special) = lexer.literal_words(end).map_err(|error| match error {
        ParseError::Unclosed { opened: "a single quote", .. } => LineError::Unclosed("single"),
        ParseError::Unclosed { .. } => LineError::Unclosed("double"),
        ParseError::Syntax { .. } | ParseError::TooDeep { .. } => LineError::Trailing,
    })?;
    Ok((words.iter().map(|word| text(word, line, holes)).collect(), special))
}

fn text(word: &Word, line: &str, holes: &[Range<usize>]) -> String {
    let written = |hole: &usize| holes.get(*hole).and_then(|hole| line.get(hole.clone())).unwrap_or_default();
    word.iter()
        .map(|piece| match piece {
            Piece::Plain(text) | Piece::Quoted(text) => text.as_str(),
            Piece::Hole(hole) => written(hole),
            _ => "",
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_a_shell_would_where_no_expansion_is_meant() {
        for (line, expected) in [
            ("", &[][..]),
            ("  a   b\tc ", &["a", "b", "c"]),
            ("a 'b c' \"d e\"f", &["a", "b c", "d ef"]),
            ("a '' \"\"", &["a", "", ""]),
            (r"a\ b \\ \'", &["a b", r"\", "'"]),
            (r#"a "b\"c\n\\""#, &["a", r#"b"c\n\"#]),
            ("'a|b;$c'", &["a|b;$c"]),
            ("src/**/*.ts ~/x #y", &["src/**/*.ts", "~/x", "#y"]),
        ] {
            assert_eq!(split(line, &[]).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn a_hole_stays_inside_its_word() {
        let line = "x[ a ]y \"[ b ] c\" '[ d ]' \\[ e ] [not one";
        let holes: Vec<_> = line.match_indices("[ ").map(|(start, _)| start..start + "[ a ]".len()).collect();
        assert_eq!(split(line, &holes).unwrap(), ["x[ a ]y", "[ b ] c", "[ d ]", "[ e ]", "[not", "one"]);
    }

    #[test]
    fn a_loose_line_keeps_what_a_shell_would_expand() {
        for (line, expected) in [
            ("a $HOME `b` c&&d; (e)", &["a", "$HOME", "`b`", "c&&d;", "(e)"][..]),
            ("a \"$B c\" 'd' e\\ f", &["a", "$B c", "d", "e f"]),
            ("a\nb # c\n d#e", &["a", "b", "d#e"]),
        ] {
            assert_eq!(split_loosely(line).unwrap(), expected, "{line}");
        }
        assert!(split_loosely("a 'b").is_err());
    }

    #[test]
    fn what_needs_a_shell_or_is_left_open_is_refused() {
        for (line, expected) in [
            ("a && b", LineError::Operator('&')),
            ("a > b", LineError::Operator('>')),
            ("a $HOME", LineError::Operator('$')),
            ("a \"`b`\"", LineError::Operator('`')),
            ("a\nb", LineError::Operator('\n')),
            ("a 'b", LineError::Unclosed("single")),
            ("a \"b", LineError::Unclosed("double")),
            ("a \\", LineError::Trailing),
            ("a\0b", LineError::Nul),
        ] {
            assert_eq!(split(line, &[]), Err(expected), "{line}");
        }
        assert_eq!(split(&"a".repeat(LONGEST + 1), &[]), Err(LineError::TooLong(LONGEST + 1)));
    }
}
