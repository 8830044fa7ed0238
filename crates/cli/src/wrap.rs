//! Breaks lines between words at the edge of the terminal, as text streams in.

use unicode_width::UnicodeWidthChar;

/// Text on its way to a terminal of some width. A word is shown when it is whole.
#[derive(Debug)]
pub(crate) struct Wrap {
    width: usize,
    column: usize,
    blanks: String,
    word: String,
}

impl Wrap {
    /// For a terminal of this many columns.
    pub(crate) fn new(width: usize) -> Wrap {
        Wrap { width, column: 0, blanks: String::new(), word: String::new() }
    }

    /// The terminal has this many columns now.
    pub(crate) fn resize(&mut self, width: usize) {
        self.width = width;
    }

    /// Takes the next text; gives what can be shown of it.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut shown = String::new();
        for char in text.chars() {
            match char {
                '\n' => {
                    self.place(&mut shown);
                    self.blanks.clear();
                    shown.push('\n');
                    self.column = 0;
                }
                blank if blank.is_whitespace() => {
                    self.place(&mut shown);
                    self.blanks.push(blank);
                }
                char => self.word.push(char),
            }
        }
        shown
    }

    /// Gives the last word, and begins anew.
    pub(crate) fn finish(&mut self) -> String {
        let mut shown = String::new();
        self.place(&mut shown);
        self.blanks.clear();
        self.column = 0;
        shown
    }

    /// Puts the word where there is room for it.
    fn place(&mut self, shown: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let (blanks, word) = (columns(&self.blanks), columns(&self.word));
        if self.column > 0 && self.column + blanks + word > self.width {
            shown.push('\n');
            self.column = word;
        } else {
            shown.push_str(&self.blanks);
            self.column += blanks + word;
        }
        shown.push_str(&self.word);
        self.blanks.clear();
        self.word.clear();
    }
}

fn columns(text: &str) -> usize {
    text.chars().map(|char| char.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize, piece: usize) -> String {
        let mut wrap = Wrap::new(width);
        let chars: Vec<char> = text.chars().collect();
        let shown: Vec<String> =
            chars.chunks(piece).map(|piece| wrap.push(&piece.iter().collect::<String>())).collect();
        shown.concat() + &wrap.finish()
    }

    #[test]
    fn lines_break_between_words_whatever_the_pieces() {
        for piece in 1..9 {
            assert_eq!(wrapped("one two three four", 9, piece), "one two\nthree\nfour");
            assert_eq!(wrapped("  indented\n\nlines stay", 20, piece), "  indented\n\nlines stay");
            assert_eq!(wrapped("a verylongwordindeed b", 6, piece), "a\nverylongwordindeed\nb");
            assert_eq!(wrapped("日本 日本 日本", 9, piece), "日本 日本\n日本");
        }
    }
}
