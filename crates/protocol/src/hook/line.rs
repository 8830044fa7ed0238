//! A command line split into words without a shell: quotes group, backslashes protect, nothing is ever expanded.

use crate::template::Template;

/// Longer lines belong into a script.
const LONGEST: usize = 64 << 10;

/// What only a shell gives a meaning to.
const OPERATORS: &[char] = &['|', '&', ';', '<', '>', '(', ')', '`', '$', '\n', '\r'];

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
    /// A backslash with nothing behind it.
    #[error("the line ends with a backslash; remove it")]
    Trailing,
    /// A NUL byte, which no argument can carry.
    #[error("the line holds a NUL byte, which no program can be given")]
    Nul,
    /// The line is unreasonably long.
    #[error("the line has {0} bytes, more than {LONGEST}; move it into a script")]
    TooLong(usize),
}

/// The words of a line. A template variable stays inside its word, whatever is between its braces.
///
/// ```
/// use ollm_protocol::hook::words;
/// assert_eq!(words("npx eslint 'my src' {{ file.path }}").unwrap(), ["npx", "eslint", "my src", "{{ file.path }}"]);
/// assert!(words("npm test && rm x").is_err());
/// ```
pub fn words(line: &str) -> Result<Vec<String>, LineError> {
    if line.len() > LONGEST {
        return Err(LineError::TooLong(line.len()));
    }
    if line.contains('\0') {
        return Err(LineError::Nul);
    }
    let mut splitter = Splitter { rest: line, words: Vec::new(), word: None };
    while splitter.step()? {}
    splitter.words.extend(splitter.word);
    Ok(splitter.words)
}

struct Splitter<'a> {
    rest: &'a str,
    words: Vec<String>,
    /// The word at hand; there is one also while it is still empty, as in `''`.
    word: Option<String>,
}

impl<'a> Splitter<'a> {
    fn step(&mut self) -> Result<bool, LineError> {
        if let Some(variable) = self.variable() {
            self.push(variable);
            return Ok(true);
        }
        let Some(letter) = self.next() else { return Ok(false) };
        match letter {
            ' ' | '\t' => self.words.extend(self.word.take()),
            '\'' => self.single()?,
            '"' => self.double()?,
            '\\' => {
                let protected = self.next().ok_or(LineError::Trailing)?;
                self.push(protected.encode_utf8(&mut [0; 4]));
            }
            operator if OPERATORS.contains(&operator) => return Err(LineError::Operator(operator)),
            other => self.push(other.encode_utf8(&mut [0; 4])),
        }
        Ok(true)
    }

    fn single(&mut self) -> Result<(), LineError> {
        let (inside, rest) = self.rest.split_once('\'').ok_or(LineError::Unclosed("single"))?;
        self.push(inside);
        self.rest = rest;
        Ok(())
    }

    fn double(&mut self) -> Result<(), LineError> {
        self.push("");
        loop {
            if let Some(variable) = self.variable() {
                self.push(variable);
                continue;
            }
            match self.next().ok_or(LineError::Unclosed("double"))? {
                '"' => return Ok(()),
                expansion @ ('$' | '`') => return Err(LineError::Operator(expansion)),
                '\\' => match self.next().ok_or(LineError::Trailing)? {
                    protected @ ('"' | '\\' | '$' | '`') => self.push(protected.encode_utf8(&mut [0; 4])),
                    other => {
                        self.push("\\");
                        self.push(other.encode_utf8(&mut [0; 4]));
                    }
                },
                other => self.push(other.encode_utf8(&mut [0; 4])),
            }
        }
    }

    /// A template variable that begins here.
    fn variable(&mut self) -> Option<&'a str> {
        if !self.rest.starts_with("{{") {
            return None;
        }
        let end = self.rest.find("}}")? + "}}".len();
        let (variable, rest) = self.rest.split_at_checked(end)?;
        Template::parse(variable).paths().next()?;
        self.rest = rest;
        Some(variable)
    }

    fn next(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let letter = letters.next();
        self.rest = letters.as_str();
        letter
    }

    fn push(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }
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
            ("x{{ data.a }}y \"{{ data.b }} c\" '{{ data.c }}'", &["x{{ data.a }}y", "{{ data.b }} c", "{{ data.c }}"]),
            ("{{not a path}} {{", &["{{not", "a", "path}}", "{{"]),
        ] {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        }
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
            assert_eq!(words(line), Err(expected), "{line}");
        }
        assert_eq!(words(&"a".repeat(LONGEST + 1)), Err(LineError::TooLong(LONGEST + 1)));
    }
}
