//! Text as rows of the screen: parses our own styles, and breaks lines between words.

use ansi_to_tui::IntoText as _;
use ratatui::buffer::CellWidth as _;
use ratatui::style::{Style, Stylize as _};
use ratatui::text::{Line, Span, StyledGrapheme};

use super::theme::Theme;
use crate::wrap::hang;

/// Columns of a tab.
const TAB: &str = "    ";

/// Text with our own styles as lines. All other escape sequences were escaped before, and are plain text.
pub(crate) fn styled(text: &str, theme: &Theme) -> Vec<Line<'static>> {
    let text = text.replace('\t', TAB).replace('\r', "");
    let Ok(read) = text.into_text() else { return plain(&text, Style::new()) };
    let mut lines = read.lines;
    if !theme.has_colour {
        let spans = lines.iter_mut().flat_map(|line| line.spans.iter_mut());
        spans.for_each(|span| (span.style.fg, span.style.bg) = (None, None));
    }
    lines
}

/// Text in one style as lines.
pub(crate) fn plain(text: &str, style: Style) -> Vec<Line<'static>> {
    text.lines().map(|line| Line::from(Span::styled(line.replace('\t', TAB).replace('\r', ""), style))).collect()
}

/// A diff as lines, with different styles for removed and added lines.
pub(crate) fn difference(text: &str, theme: &Theme) -> Vec<Line<'static>> {
    let style = |line: &str| match line.chars().next() {
        Some('+') => theme.good,
        Some('-') => theme.bad,
        Some('@') => theme.faint,
        _ => Style::new(),
    };
    text.lines().flat_map(|line| plain(if line.is_empty() { " " } else { line }, style(line))).collect()
}

/// Lines broken between words where they are too long, and within a word that is longer than a row.
pub(crate) fn wrapped(lines: &[Line<'_>], width: u16) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    for line in lines {
        wrap(line, usize::from(width.max(1)), 0, &mut rows);
    }
    rows
}

/// Lines broken like [`wrapped`]; continued lines begin below the text of their line.
pub(crate) fn hanging(lines: &[Line<'_>], width: u16) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    let width = usize::from(width.max(1));
    for line in lines {
        wrap(line, width, hang(&line.to_string(), width), &mut rows);
    }
    rows
}

/// Lines broken like [`wrapped`]; continued lines begin in the given column of each, if that leaves them half of the row.
pub(crate) fn indented<'a>(lines: impl IntoIterator<Item = &'a (Line<'a>, usize)>, width: u16) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    let width = usize::from(width.max(1));
    for (line, column) in lines {
        wrap(line, width, if *column > width / 2 { 0 } else { *column }, &mut rows);
    }
    rows
}

fn wrap(line: &Line<'_>, width: usize, hang: usize, rows: &mut Vec<Line<'static>>) {
    // The screen is drawn by these cells; a sum over characters could differ and cut off the end of a row.
    let cells: Vec<StyledGrapheme<'_>> = line.styled_graphemes(Style::new()).collect();
    let blank = StyledGrapheme { symbol: " ", style: Style::new() };
    // A long word moves to the left where it then fits; what fits nowhere is cut where it stands.
    let indent_of =
        |rest: &[StyledGrapheme<'_>]| width.checked_sub(word(rest, width)).map_or(hang, |room| hang.min(room));
    let blanks = cells.iter().skip(hang).take_while(|cell| cell.symbol == " ").count();
    let begins = hang + blanks;
    let mut first = if word(cells.get(begins..).unwrap_or_default(), width) > width { begins } else { 0 };
    let (mut rest, mut indent) = (cells.as_slice(), 0);
    loop {
        let (row, next) = rest.split_at(fitting(rest, width - indent, first));
        rows.push(joined(&[vec![blank.clone(); indent], row.to_vec()].concat()));
        // The blank at which a line is broken is not shown.
        rest = match next {
            [StyledGrapheme { symbol: " ", .. }, after @ ..] => after,
            next => next,
        };
        if rest.is_empty() {
            return;
        }
        (indent, first) = (indent_of(rest), 0);
    }
}

/// How many columns the word takes with which these cells begin; of a word that is wider than this only a part counts.
fn word(cells: &[StyledGrapheme<'_>], width: usize) -> usize {
    cells.iter().take(width + 1).take_while(|cell| cell.symbol != " ").map(columns).sum()
}

/// How many cells fit into a row, ending between words behind the first cells if possible.
fn fitting(cells: &[StyledGrapheme<'_>], width: usize, first: usize) -> usize {
    let (mut used, mut word) = (0, None);
    for (at, cell) in cells.iter().enumerate() {
        let wide = columns(cell);
        if used + wide > width && at > 0 {
            return if cell.symbol == " " { at } else { word.unwrap_or(at) };
        }
        used += wide;
        if cell.symbol == " " && at > first {
            word = Some(at);
        }
    }
    cells.len()
}

/// Joins neighbouring cells of one style into spans.
fn joined(cells: &[StyledGrapheme<'_>]) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for StyledGrapheme { symbol, style } in cells {
        match spans.last_mut().filter(|span| span.style == *style) {
            Some(span) => span.content.to_mut().push_str(symbol),
            None => spans.push(Span::from((*symbol).to_owned()).style(*style)),
        }
    }
    Line::from(spans)
}

/// The longest beginning of a text that fits into this many columns; a cut shows as `…`.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |cell: &StyledGrapheme<'_>| {
        used += columns(cell);
        used < width
    };
    let shown: String =
        Span::raw(text).styled_graphemes(Style::new()).take_while(fits).map(|cell| cell.symbol).collect();
    if width > 0 { shown + "…" } else { shown }
}

/// How many columns a text takes on the screen.
pub(crate) fn width_of(text: &str) -> usize {
    Span::raw(text).styled_graphemes(Style::new()).map(|cell| columns(&cell)).sum()
}

fn columns(cell: &StyledGrapheme<'_>) -> usize {
    usize::from(cell.symbol.cell_width())
}

/// Makes the first span of a line bold.
pub(crate) fn heading(text: &str) -> Line<'static> {
    Line::from(Span::from(text.to_owned()).bold())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, width: u16) -> Vec<String> {
        wrapped(&plain(text, Style::new()), width).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_break_between_words_and_within_long_ones() {
        assert_eq!(rows("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(rows("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(rows("  indented text", 10), ["  indented", "text"]);
        assert_eq!(rows("日本 日本 日本", 9), ["日本 日本", "日本"]);
        assert_eq!(rows("漢", 1), ["漢"], "what is wider than the screen has a row of its own");
    }

    #[test]
    fn what_a_label_says_goes_on_below_it() {
        let rows = |text: &str, width| -> Vec<String> {
            hanging(&plain(text, Style::new()), width).iter().map(ToString::to_string).collect()
        };
        assert_eq!(rows("name   one two three", 21), ["name   one two three"]);
        assert_eq!(rows("name   one two three four", 21), ["name   one two three", "       four"]);
        assert_eq!(rows("name   /a/long/path:1 (user)", 18), ["name  ", "    /a/long/path:1", "      (user)"]);
        assert_eq!(
            rows("name   /a/very/long/path:1 (user)", 18),
            ["name   /a/very/lon", "      g/path:1", "      (user)"]
        );
        assert_eq!(rows("  in and in and in", 12), ["  in and in", "    and in"]);
        assert_eq!(rows("ab", 1), ["a", "b"]);
    }

    #[test]
    fn a_megabyte_in_one_line_is_wrapped_at_once() {
        assert_eq!(rows(&"x".repeat(1 << 20), 80).len(), (1 << 20) / 80 + 1);
    }

    #[test]
    fn no_row_is_wider_than_the_screen_whatever_its_characters_are_made_of() {
        let odd = ["❤\u{fe0f}", "1\u{fe0f}\u{20e3}", "👨\u{200d}👩\u{200d}👧", "e\u{301}", "ｶﾞ", "🇩🇪", "नि", "漢", "x"];
        for piece in odd {
            let text = format!("{} hidden", piece.repeat(50));
            let drawn = rows(&text, 20);
            assert!(drawn.iter().all(|row| width_of(row) <= 20), "{piece}: {drawn:?}");
            assert_eq!(drawn.concat().replace(' ', ""), text.replace(' ', ""));
            assert!(width_of(&fitted(&text, 20)) <= 20, "{piece}");
        }
    }

    #[test]
    fn a_style_goes_on_in_the_next_row() {
        let theme = Theme::new(true);
        let lines = wrapped(&styled("\u{1b}[31mred words here\u{1b}[0m plain", &theme), 9);
        assert_eq!(lines[0].spans[0].style.fg, lines[1].spans[0].style.fg);
        assert!(styled("\u{1b}[31mred\u{1b}[0m", &Theme::new(false))[0].spans[0].style.fg.is_none());
    }
}
