//! Shows a text that is longer than the screen page by page, so that none of it scrolls away unseen.
//!
//! Long lines are broken between words; rows are counted as the terminal wraps what is longer still. We need a pager of
//! our own, because another program would not report how much a person has seen. It does not scroll back; the terminal
//! does.

use unicode_width::UnicodeWidthChar;

use crate::ask::prompt;
use crate::output::{say, say_lines, screen_size};
use crate::wrap::lines;

/// Rows left free for the question below.
const QUESTION: usize = 4;
/// The assumed size of a terminal that does not know its own.
const USUAL: Screen = Screen { rows: 24, columns: 80 };
/// Columns between two tab stops.
const TAB: usize = 8;

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Screen {
    rows: usize,
    columns: usize,
}

/// How much of a text a person has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    All,
    /// The person left the pages early.
    Part,
    /// The text is no longer needed.
    Over,
}

/// Shows a text to the person at the terminal. Long texts stop after each page. A person who leaves early is told which
/// part was not shown. `over` says that the text is no longer needed.
pub(crate) fn page(text: &str, over: &dyn Fn() -> bool) -> Seen {
    let screen = screen();
    let text = lines(text, screen.columns);
    let pages = pages(&text, screen);
    let total: usize = pages.iter().map(|page| page.rows).sum();
    let mut shown = 0;
    for (at, page) in pages.iter().enumerate() {
        say(page.text);
        shown += page.rows;
        if at + 1 == pages.len() {
            break;
        }
        // A page may end in the middle of a line.
        let start = if page.text.ends_with('\n') { "" } else { "\n" };
        let more = format!("{start}-- {shown} of {total} rows shown; [Enter] shows more, [q] leaves the rest unread: ");
        match prompt(&more, over) {
            None if over() => return Seen::Over,
            Some(answer) if answer.is_empty() => {}
            _ => {
                say_lines(&format!("-- {} of {total} rows were not shown.\n", total - shown));
                return Seen::Part;
            }
        }
    }
    Seen::All
}

fn screen() -> Screen {
    let (rows, columns) = screen_size().unwrap_or_default();
    let size = |told: u16, usual: usize| if told == 0 { usual } else { usize::from(told) };
    Screen { rows: size(rows, USUAL.rows), columns: size(columns, USUAL.columns) }
}

/// One page of a text.
#[derive(Debug, PartialEq, Eq)]
struct Page<'a> {
    text: &'a str,
    rows: usize,
}

/// Cuts a text into pages: between lines, and within a line that is longer than a page.
fn pages(text: &str, screen: Screen) -> Vec<Page<'_>> {
    let room = screen.rows.saturating_sub(QUESTION).max(1);
    let mut pages = Vec::new();
    let (mut start, mut at, mut rows) = (0, 0, 0);
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        loop {
            let (part, taken) = fitting(rest, room - rows, screen.columns);
            at += part.len();
            rows += taken;
            rest = rest.get(part.len()..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            pages.push(Page { text: text.get(start..at).unwrap_or_default(), rows });
            (start, rows) = (at, 0);
        }
        if rows == room && at < text.len() {
            pages.push(Page { text: text.get(start..at).unwrap_or_default(), rows });
            (start, rows) = (at, 0);
        }
    }
    pages.push(Page { text: text.get(start..).unwrap_or_default(), rows });
    pages
}

/// The longest beginning of a line that fits into this many rows, and its number of rows.
fn fitting(line: &str, room: usize, columns: usize) -> (&str, usize) {
    let (mut rows, mut column) = (1, 0);
    for (at, char) in line.char_indices() {
        let width = match char {
            '\n' => 0,
            '\t' => TAB - column % TAB,
            // It makes many narrow characters before it wide.
            '\u{fe0f}' => 1,
            // Characters whose width differs between terminals count as wide: one row too many is better than one too
            // few.
            char => char.width_cjk().unwrap_or(1),
        };
        // A character wider than the screen gets a row of its own.
        if column > 0 && column + width > columns {
            if rows == room {
                return (line.get(..at).unwrap_or_default(), rows);
            }
            rows += 1;
            column = 0;
        }
        column += width;
    }
    (line, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Screen = Screen { rows: 7, columns: 10 };

    fn cut(text: &str) -> Vec<(&str, usize)> {
        pages(text, SMALL).into_iter().map(|page| (page.text, page.rows)).collect()
    }

    #[test]
    fn what_fits_is_one_page() {
        assert_eq!(cut(""), [("", 0)]);
        assert_eq!(cut("a\nb\nc"), [("a\nb\nc", 3)]);
        assert_eq!(cut("a\nb\nc\n"), [("a\nb\nc\n", 3)]);
        assert_eq!(cut("0123456789\n0123456789\nx\n"), [("0123456789\n0123456789\nx\n", 3)]);
    }

    #[test]
    fn pages_end_with_the_last_row_that_fits() {
        assert_eq!(cut("a\nb\nc\nd\n"), [("a\nb\nc\n", 3), ("d\n", 1)]);
        assert_eq!(cut("\n\n\n\n"), [("\n\n\n", 3), ("\n", 1)]);
    }

    #[test]
    fn a_line_counts_as_the_rows_it_is_wrapped_to() {
        let long = "x".repeat(65);
        assert_eq!(cut(&long), [(&long[..30], 3), (&long[30..60], 3), (&long[60..], 1)]);
        // Five wide characters fill a row, and the sixth begins the next.
        assert_eq!(cut("漢漢漢漢漢漢"), [("漢漢漢漢漢漢", 2)]);
        assert_eq!(cut("x漢漢漢漢漢\n1\n2\n"), [("x漢漢漢漢漢\n1\n", 3), ("2\n", 1)]);
        assert_eq!(cut("\t\tx\n1\n2\n"), [("\t\tx\n1\n", 3), ("2\n", 1)]);
    }

    #[test]
    fn the_smallest_screen_still_shows_everything() {
        let tiny = Screen { rows: 1, columns: 1 };
        let text = "漢a\n\nb";
        let shown: String = pages(text, tiny).into_iter().map(|page| page.text).collect();
        assert_eq!(shown, text);
    }
}
