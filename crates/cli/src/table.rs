//! Tables for people: aligned, cut to the terminal's width, with coloured states. The most important columns come
//! first.

use std::fmt::Write as _;

use ollm_store::one_line;

use crate::output::shown_width;
use crate::timeline::{BOLD, DIM, GREEN, PLAIN, RED, YELLOW};
use crate::tui::text::{fitted, width_of};

/// The space between two cells.
const GAP: &str = "  ";
/// The least width of a column, if the screen has room for two.
const NARROWEST: usize = 8;
/// The least widths of the name and the state: columns after these two are dropped before they become narrower.
const NAME_AND_STATE: [usize; 2] = [24, 12];
/// The columns with coloured words.
const COLOURED: &[&str] = &["STATE", "TRUST", "VERDICT"];

/// A table with a head. On a terminal it fits the width: long cells are cut and, if that is not enough, the last
/// columns are dropped.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let rows: Vec<[String; N]> = rows.into_iter().collect();
    drawn(Some(head), &rows, width())
}

/// A table without a head.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    drawn(None, rows, width())
}

/// Aligned rows, each of a word and a text.
pub(crate) fn pairs(rows: &[(&str, String)]) -> String {
    rows.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<12}{}", value.replace('\n', "\n            "));
        text
    })
}

/// The greatest width of a line.
pub(crate) fn width() -> usize {
    shown_width().unwrap_or(usize::MAX)
}

fn drawn<const N: usize>(head: Option<[&str; N]>, rows: &[[String; N]], screen: usize) -> String {
    let rows: Vec<[String; N]> = rows.iter().map(|row| row.each_ref().map(|cell| one_line(cell))).collect();
    let mut widths = head.map_or([0; N], |head| head.map(str::len));
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(width_of(cell));
        }
    }
    let shown = fit(&mut widths, screen);
    let mut text = String::new();
    if let Some(head) = &head {
        let cells = head.iter().zip(widths).take(shown).map(|(cell, width)| filled(cell, width));
        line(&mut text, cells.map(|cell| (BOLD, cell)));
    }
    let coloured = head.map_or([false; N], |head| head.map(|title| COLOURED.contains(&title)));
    for row in &rows {
        let cells = row.iter().zip(widths).zip(coloured).take(shown);
        line(
            &mut text,
            cells.map(|((cell, width), coloured)| (if coloured { colour(cell) } else { "" }, filled(cell, width))),
        );
    }
    text
}

/// One line of styled cells, without trailing blanks.
fn line(text: &mut String, cells: impl Iterator<Item = (&'static str, String)>) {
    let cells: Vec<(&str, String)> = cells.collect();
    let used = cells.iter().rposition(|(_, cell)| !cell.trim_end().is_empty()).map_or(0, |last| last + 1);
    for (index, (style, cell)) in cells.iter().take(used).enumerate() {
        // Blanks get no colour, so that a search finds the plain cell.
        let word = cell.trim_end();
        let blanks = if index + 1 == used { "" } else { cell.get(word.len()..).unwrap_or_default() };
        let gap = if index == 0 { "" } else { GAP };
        match *style {
            "" => text.extend([gap, word, blanks]),
            style => text.extend([gap, style, word, PLAIN, blanks]),
        }
    }
    text.push('\n');
}

/// The colour of a state: green is good, red prevents running, yellow waits for a person, dim is off.
fn colour(state: &str) -> &'static str {
    let word = state.split([' ', ',', ';', ':']).next().unwrap_or_default();
    match word {
        _ if state.contains("cannot run") => RED,
        "trusted" | "on" | "current" | "ready" | "connected" | "running" | "allow" | "required" | "builtin" => GREEN,
        "failed" | "unsafe" | "crashed" | "error" | "broken" | "block" | "halt" | "removed" | "names" | "cannot" => RED,
        "untrusted" | "modified" | "incomplete" | "degraded" | "starting" | "ask" => YELLOW,
        "disabled" | "off" | "stopped" | "not" | "elsewhere" | "disconnected" => DIM,
        _ => "",
    }
}

/// Makes the widest columns narrower until the table fits; returns how many columns remain.
fn fit<const N: usize>(widths: &mut [usize; N], screen: usize) -> usize {
    let wanted = |at: usize, width: usize| width.min(NAME_AND_STATE.get(at).copied().unwrap_or(NARROWEST));
    let most = |least: &dyn Fn(usize, usize) -> usize| {
        let sum = |many: usize| {
            let cells = widths.iter().take(many).enumerate().map(|(at, width)| least(at, *width));
            cells.fold(GAP.len() * many.saturating_sub(1), usize::saturating_add)
        };
        (1..=N).rev().find(|many| sum(*many) <= screen).unwrap_or(1)
    };
    let shown =
        Some(most(&wanted)).filter(|shown| *shown > 1).unwrap_or_else(|| most(&|_, width| width.min(NARROWEST)));
    let Some(widths) = widths.get_mut(..shown) else { return shown };
    let room = screen.saturating_sub(GAP.len() * shown.saturating_sub(1));
    while widths.iter().fold(0, |sum: usize, width| sum.saturating_add(*width)) > room {
        let is_wide = widths.iter().enumerate().any(|(at, width)| *width > wanted(at, *width));
        let columns = widths.iter_mut().enumerate().filter(|(at, width)| !is_wide || **width > wanted(*at, **width));
        match columns.map(|(_, width)| width).max().filter(|widest| **widest > 1) {
            Some(widest) => *widest -= 1,
            None => break,
        }
    }
    shown
}

/// A cell padded or cut to this width.
fn filled(cell: &str, width: usize) -> String {
    let shown = fitted(cell, width);
    let rest = width.saturating_sub(width_of(&shown));
    shown + &" ".repeat(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: [&str; 4] = ["NAME", "STATE", "EVENTS", "SOURCE"];

    fn rows() -> Vec<[String; 4]> {
        vec![
            ["a-very-long-name-of-a-hook-in-a-file", "trusted", "before_tool,after_tool", "user"].map(str::to_owned),
            ["日本語の長い名前のフック", "untrusted", "before_tool", "workspace"].map(str::to_owned),
        ]
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn rows_fit_into_every_screen_and_keep_what_is_short() {
        for screen in [1, 4, 8, 20, 30, 60, 200] {
            let text = plain(&drawn(Some(HEAD), &rows(), screen));
            assert!(text.lines().all(|line| width_of(line) <= screen), "{screen}: {text}");
            assert!(screen < 20 || text.contains("trusted"), "{screen}: {text}");
        }
        assert!(!drawn(Some(HEAD), &rows(), usize::MAX).contains('…'));
    }

    #[test]
    fn a_narrow_screen_shows_name_and_state() {
        let text = plain(&drawn(Some(HEAD), &rows(), 20));
        assert_eq!(text, "NAME       STATE\na-very-l…  trusted\n日本語の…  untrusted\n");
    }

    #[test]
    fn the_last_columns_go_before_a_name_becomes_unreadable() {
        let rows = [["destructive-commands", "trusted", "before_tool,after_tool", "workspace"].map(str::to_owned)];
        let text = plain(&drawn(Some(HEAD), &rows, 44));
        assert_eq!(text, "NAME                  STATE    EVENTS\ndestructive-commands  trusted  before_tool,…\n");
    }

    #[test]
    fn only_states_have_colours() {
        let text = drawn(Some(["STATE", "SOURCE"]), &[["trusted", "trusted"].map(str::to_owned)], usize::MAX);
        assert_eq!(text, "\x1b[1mSTATE\x1b[0m    \x1b[1mSOURCE\x1b[0m\n\x1b[32mtrusted\x1b[0m  trusted\n");
        let text = drawn(None, &[["trusted", "x"].map(str::to_owned)], usize::MAX);
        assert_eq!(text, "trusted  x\n");
    }
}
