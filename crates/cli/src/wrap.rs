//! Breaks streamed text between words at the edge of the terminal.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Streamed text for a terminal of some width. A word is shown once it is complete.
#[derive(Debug)]
pub(crate) struct Wrap {
    width: usize,
    /// The column in which continued lines begin; the caller indents them.
    indent: usize,
    column: usize,
    blanks: String,
    word: String,
}

impl Wrap {
    /// Wraps text for a terminal of this many columns.
    pub(crate) fn new(width: usize) -> Wrap {
        Wrap { width, indent: 0, column: 0, blanks: String::new(), word: String::new() }
    }

    /// Changes the number of columns.
    pub(crate) fn resize(&mut self, width: usize) {
        self.width = width;
    }

    /// Adds text; returns the part that can be shown.
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

    /// Returns the last word, and starts over.
    pub(crate) fn finish(&mut self) -> String {
        let mut shown = String::new();
        self.place(&mut shown);
        self.blanks.clear();
        self.column = 0;
        shown
    }

    /// Adds the word to the line if it fits, else to the next line.
    fn place(&mut self, shown: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let (blanks, word) = (columns(&self.blanks), columns(&self.word));
        if self.column > 0 && self.column + blanks + word > self.width {
            shown.push('\n');
            self.column = self.indent + word;
        } else {
            shown.push_str(&self.blanks);
            self.column += blanks + word;
        }
        shown.push_str(&self.word);
        self.blanks.clear();
        self.word.clear();
    }
}

/// A sentence broken between words, but not inside backticks, because people copy that text.
pub(crate) fn sentence(text: &str, width: usize) -> String {
    sentence_in(Wrap::new(width), text)
}

fn sentence_in(mut wrap: Wrap, text: &str) -> String {
    let (mut shown, mut is_code) = (String::new(), false);
    for char in text.chars() {
        is_code ^= char == '`';
        if is_code {
            wrap.word.push(char);
        } else {
            shown.push_str(&wrap.push(char.encode_utf8(&mut [0; 4])));
        }
    }
    shown.push_str(&wrap.finish());
    // A question ends with a blank, after which the person types the answer.
    shown.push_str(text.get(text.trim_end().len()..).unwrap_or_default());
    shown
}

/// A word and its meaning, which starts at a column and continues there in the next lines. If the word is too long, the
/// meaning begins below it. On a narrow screen it begins near the edge.
pub(crate) fn hanging(word: &str, meaning: &str, column: usize, width: usize) -> String {
    const NARROW_COLUMN: usize = 4;
    const GAP: usize = 2;
    let is_short = columns(word) + GAP + columns(meaning) <= width;
    let column = if column > width / 2 { NARROW_COLUMN } else { column };
    let is_beside = columns(word) + GAP <= column;
    match (meaning.is_empty(), is_beside) {
        (true, _) => return word.to_owned(),
        (false, false) if is_short => return format!("{word}{:GAP$}{meaning}", ""),
        (false, _) => {}
    }
    let mut wrap = Wrap::new(width.saturating_sub(column));
    let meaning = (wrap.push(meaning) + &wrap.finish()).replace('\n', &format!("\n{:column$}", ""));
    if is_beside { format!("{word:<column$}{meaning}") } else { format!("{word}\n{:column$}{meaning}", "") }
}

/// Breaks lines like sentences. Continued lines are indented like the text of their line, or up to the second column if
/// the line begins with a word and a gap. A word that is wider than the screen stays whole, so that it can be copied.
pub(crate) fn lines(text: &str, width: usize) -> String {
    text.split_inclusive('\n').map(|line| broken(line, width)).collect()
}

fn broken(line: &str, width: usize) -> Cow<'_, str> {
    let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
    if columns(text) <= width {
        return line.into();
    }
    let hang = hang(text, width);
    let sentence = sentence_in(Wrap { indent: hang, ..Wrap::new(width) }, text);
    let mut rows = sentence.split('\n');
    let mut shown = rows.next().unwrap_or_default().to_owned();
    for row in rows {
        let row = row.trim_start_matches(' ');
        // A long word moves to the left where it then fits.
        let indent = width.checked_sub(columns(row)).map_or(hang, |room| hang.min(room));
        shown.extend(["\n", &" ".repeat(indent), row]);
    }
    (shown + end).into()
}

/// The column below which a line goes on.
pub(crate) fn hang(line: &str, width: usize) -> usize {
    text_column(line).min(width / 3)
}

/// The column in which the text of a line begins.
fn text_column(line: &str) -> usize {
    let blanks = |text: &str| text.len() - text.trim_start_matches(' ').len();
    let indent = blanks(line);
    let text = line.get(indent..).unwrap_or_default();
    let gap = text.find("  ").filter(|gap| columns(text.get(..*gap).unwrap_or_default()) <= WIDEST_WORD);
    gap.map_or(indent + 2, |gap| {
        let (word, rest) = text.split_at(gap);
        indent + columns(word) + blanks(rest)
    })
}

/// A wider word is no heading of a second column.
const WIDEST_WORD: usize = 14;

/// The width of a text, without its styles.
fn columns(text: &str) -> usize {
    let mut is_style = false;
    let width = |char: char| match char {
        '\u{1b}' => {
            is_style = true;
            0
        }
        _ if is_style => {
            is_style = char != 'm';
            0
        }
        char => char.width().unwrap_or(0),
    };
    text.chars().map(width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_keeps_commands_whole_and_the_blank_at_its_end() {
        assert_eq!(sentence("try `a b c` or [y]es: ", 10), "try\n`a b c` or\n[y]es: ");
        assert_eq!(sentence("`a long command that has no room` is", 10), "`a long command that has no room`\nis");
        assert_eq!(sentence("it's `open", 20), "it's `open");
    }

    #[test]
    fn what_a_word_means_hangs_below_itself() {
        assert_eq!(hanging("/a", "one two three", 5, 12), "/a   one two\n     three");
        assert_eq!(hanging("/a long", "one two three", 6, 12), "/a long\n      one\n      two\n      three");
        assert_eq!(hanging("/a long", "one", 5, 12), "/a long  one");
        assert_eq!(hanging("/a", "one two three", 9, 12), "/a  one two\n    three");
        assert_eq!(hanging("/a", "", 9, 12), "/a");
    }

    #[test]
    fn printed_lines_go_on_below_their_text_and_styles_take_no_room() {
        assert_eq!(lines("  a bb ccc\nshort\n", 8), "  a bb\n  ccc\nshort\n");
        assert_eq!(lines("name    one two three\n", 24), lines("name    one two three\n", 21));
        assert_eq!(lines("name    one two three\n", 20), "name    one two\n      three\n");
        assert_eq!(lines("name    a/long/path\n", 16), "name\n     a/long/path\n");
        assert_eq!(lines("\u{1b}[1mbold\u{1b}[0m text", 9), "\u{1b}[1mbold\u{1b}[0m text");
        assert_eq!(lines("see /a/very/long/path/indeed there", 10), "see\n  /a/very/long/path/indeed\n  there");
    }

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
