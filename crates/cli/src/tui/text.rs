//! Text as rows of the screen: our own styles read, lines broken between words.

use ansi_to_tui::IntoText as _;
use ratatui::style::{Style, Stylize as _};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar as _;

use super::theme::Theme;

/// Columns of a tab.
const TAB: &str = "    ";

/// Text with our own styles as lines. What is no style of ours was escaped before, and is text.
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

/// A difference as lines: what goes and what comes differ in style.
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
        wrap(line, usize::from(width.max(1)), &mut rows);
    }
    rows
}

fn wrap(line: &Line<'_>, width: usize, rows: &mut Vec<Line<'static>>) {
    let cells: Vec<(char, Style)> = line
        .spans
        .iter()
        .flat_map(|span| span.content.chars().map(|char| (char, line.style.patch(span.style))))
        .filter(|(char, _)| !char.is_control())
        .collect();
    let mut rest = cells.as_slice();
    loop {
        let (row, next) = rest.split_at(fitting(rest, width));
        rows.push(joined(row));
        // The blank at which a line is broken is not shown.
        rest = match next {
            [(' ', _), after @ ..] => after,
            next => next,
        };
        if rest.is_empty() {
            return;
        }
    }
}

/// How many cells fit into a row: as many words as possible.
fn fitting(cells: &[(char, Style)], width: usize) -> usize {
    let (mut used, mut word) = (0, None);
    for (at, (char, _)) in cells.iter().enumerate() {
        let wide = char.width().unwrap_or(0);
        if used + wide > width && at > 0 {
            return if *char == ' ' { at } else { word.unwrap_or(at) };
        }
        used += wide;
        if *char == ' ' && at > 0 {
            word = Some(at);
        }
    }
    cells.len()
}

/// Neighbours of one style become one span.
fn joined(cells: &[(char, Style)]) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (char, style) in cells {
        match spans.last_mut().filter(|span| span.style == *style) {
            Some(span) => span.content.to_mut().push(*char),
            None => spans.push(Span::from(char.to_string()).style(*style)),
        }
    }
    Line::from(spans)
}

/// The longest beginning of a text that fits into so many columns; what is cut off shows as `…`.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    let mut shown = String::new();
    let mut used = 0;
    let whole: usize = text.chars().map(|char| char.width().unwrap_or(0)).sum();
    if whole <= width {
        return text.to_owned();
    }
    for char in text.chars() {
        let wide = char.width().unwrap_or(0);
        if used + wide + 1 > width {
            break;
        }
        shown.push(char);
        used += wide;
    }
    if width > 0 { shown + "…" } else { shown }
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
    fn a_megabyte_in_one_line_is_wrapped_at_once() {
        assert_eq!(rows(&"x".repeat(1 << 20), 80).len(), (1 << 20) / 80 + 1);
    }

    #[test]
    fn a_style_goes_on_in_the_next_row() {
        let theme = Theme::new(true);
        let lines = wrapped(&styled("\u{1b}[31mred words here\u{1b}[0m plain", &theme), 9);
        assert_eq!(lines[0].spans[0].style.fg, lines[1].spans[0].style.fg);
        assert!(styled("\u{1b}[31mred\u{1b}[0m", &Theme::new(false))[0].spans[0].style.fg.is_none());
    }
}
