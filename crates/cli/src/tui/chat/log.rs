//! What was said, as rows of the screen. It is bounded: the oldest goes first, and the transcript keeps all of it.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::list::Step;
use super::super::markdown;
use super::super::text::{difference, hanging, plain, styled, wrapped};
use super::super::theme::Theme;

/// More entries, or more bytes of them, are not kept.
const MOST_ENTRIES: usize = 2000;
const MOST_BYTES: usize = 1 << 20;
/// While an answer grows, only its last part is drawn again. A part ends with the first Markdown block beyond this
/// size.
const USUAL_PART: usize = 16 << 10;
/// A part is cut here, even in the middle of a line.
const LONGEST_PART: usize = 64 << 10;

/// The source of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    You,
    /// Markdown.
    Model,
    Thought,
    /// A line about what happens.
    Note,
    Failure,
    /// A unified diff.
    Difference,
    /// What a command printed, with our own styles.
    Command,
}

struct Entry {
    speaker: Speaker,
    text: String,
    rows: Vec<Line<'static>>,
    /// The width for which the rows are.
    width: u16,
    /// Whether the next entry goes on in the middle of what this one says.
    goes_on: bool,
}

impl Entry {
    fn rows(&mut self, width: u16, theme: &Theme) -> &[Line<'static>] {
        if self.width != width {
            self.width = width;
            let indented = width.saturating_sub(2);
            self.rows = match self.speaker {
                Speaker::You => marked("> ", theme.title, &wrapped(&plain(&self.text, theme.title), indented)),
                Speaker::Model => markdown::rows(&self.text, theme, width),
                Speaker::Thought => marked("┆ ", theme.faint, &wrapped(&plain(&self.text, theme.faint), indented)),
                Speaker::Note => marked("· ", theme.faint, &wrapped(&plain(&self.text, theme.faint), indented)),
                Speaker::Failure => marked("! ", theme.bad, &wrapped(&plain(&self.text, theme.bad), indented)),
                Speaker::Difference => marked("  ", Style::new(), &wrapped(&difference(&self.text, theme), indented)),
                Speaker::Command => hanging(&styled(self.text.trim_end(), theme), width),
            };
            if matches!(self.speaker, Speaker::You | Speaker::Model) && !self.goes_on {
                self.rows.push(Line::default());
            }
        }
        &self.rows
    }
}

/// Rows with a mark before the first.
fn marked(mark: &'static str, style: Style, rows: &[Line<'static>]) -> Vec<Line<'static>> {
    let before = std::iter::once(mark).chain(std::iter::repeat("  "));
    before
        .zip(rows)
        .map(|(mark, row)| Line::from([vec![Span::styled(mark, style)], row.spans.clone()].concat()))
        .collect()
}

#[derive(Default)]
pub(crate) struct ChatLog {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Whether entries are gone.
    is_cut: bool,
    /// How many rows below the screen there are: zero follows what comes.
    below: usize,
    height: usize,
    /// Whether the last entry still grows.
    is_open: bool,
}

impl ChatLog {
    /// A whole entry.
    pub(crate) fn add(&mut self, speaker: Speaker, text: &str) {
        self.is_open = false;
        if speaker == Speaker::Model {
            // What came in one piece looks as if it had grown.
            self.extend(speaker, text.trim_end());
            self.is_open = false;
        } else if !text.trim().is_empty() {
            self.push(speaker, text.trim_end().to_owned());
        }
    }

    /// More words of a speaker.
    pub(crate) fn extend(&mut self, speaker: Speaker, text: &str) {
        if !self.is_open || self.entries.back().is_none_or(|last| last.speaker != speaker) {
            // An answer does not begin with blank lines.
            let text = text.trim_start_matches('\n');
            if text.is_empty() {
                return;
            }
            self.push(speaker, String::new());
            self.is_open = true;
            return self.grow(text);
        }
        self.grow(text);
    }

    /// What grows is whole now.
    pub(crate) fn close(&mut self) {
        self.is_open = false;
    }

    pub(crate) fn clear(&mut self) {
        *self = ChatLog::default();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn grow(&mut self, text: &str) {
        let Some(last) = self.entries.back_mut() else { return };
        last.text.push_str(text);
        last.width = 0;
        self.bytes += text.len();
        // What is whole is not read again with every word.
        let speaker = last.speaker;
        if let Some(cut) = part_end(&last.text, speaker) {
            let rest = format!("{}{}", cut.reopened, last.text.get(cut.at..).unwrap_or_default());
            self.bytes = self.bytes.saturating_sub(last.text.len() - cut.at);
            last.text.truncate(cut.at);
            last.goes_on = !cut.reopened.is_empty();
            self.push(speaker, String::new());
            self.grow(&rest);
        }
        self.shorten();
    }

    fn push(&mut self, speaker: Speaker, text: String) {
        self.bytes += text.len();
        self.entries.push_back(Entry { speaker, text, rows: Vec::new(), width: 0, goes_on: false });
        self.shorten();
    }

    fn shorten(&mut self) {
        while self.entries.len() > MOST_ENTRIES || (self.bytes > MOST_BYTES && self.entries.len() > 1) {
            let gone = self.entries.pop_front().map_or(0, |entry| entry.text.len());
            self.bytes = self.bytes.saturating_sub(gone);
            self.is_cut = true;
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        let page = self.height.saturating_sub(1).max(1);
        self.below = match step {
            Step::Up => self.below.saturating_add(1),
            Step::Down => self.below.saturating_sub(1),
            Step::PageUp => self.below.saturating_add(page),
            Step::PageDown => self.below.saturating_sub(page),
            Step::First => usize::MAX,
            Step::Last => 0,
        };
    }

    /// Whether newer rows are below the screen.
    pub(crate) fn is_scrolled(&self) -> bool {
        self.below > 0
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        self.height = usize::from(area.height);
        let wanted = self.below.saturating_add(self.height);
        // From the end, as far as the screen reaches.
        let mut rows: Vec<Line<'static>> = Vec::new();
        let mut found = 0;
        for entry in self.entries.iter_mut().rev() {
            let own = entry.rows(area.width, theme);
            let skipped = self.below.saturating_sub(found);
            found += own.len();
            rows.extend(own.iter().rev().skip(skipped).take(self.height - rows.len()).cloned());
            if found >= wanted {
                break;
            }
        }
        if found < wanted {
            self.below = found.saturating_sub(self.height);
            if self.is_cut && rows.len() < self.height {
                rows.push(Line::styled("· earlier words are in the transcript: /session names it", theme.faint));
            }
        }
        rows.reverse();
        frame.render_widget(Paragraph::new(rows), area);
    }
}

/// The place of a cut, and the fence that opens the cut code again.
struct Cut {
    at: usize,
    reopened: String,
}

/// Where the first part of a text ends. It depends on nothing that may still come, so that an answer looks the same in
/// any pieces.
fn part_end(text: &str, speaker: Speaker) -> Option<Cut> {
    if text.len() < USUAL_PART {
        return None;
    }
    let part = text.get(..text.floor_char_boundary(LONGEST_PART)).unwrap_or(text);
    // A line that is not whole may become anything.
    let lines = part.get(..part.rfind('\n').map_or(0, |end| end + 1)).unwrap_or_default();
    if speaker == Speaker::Model {
        // What begins with a bracket may define a link and be no block.
        let ends =
            |at: usize| at >= USUAL_PART && lines.get(at..).is_some_and(|rest| !rest.trim_start().starts_with('['));
        if let Some((at, _)) = markdown::blocks(lines).find(|(at, _)| ends(*at)) {
            return Some(Cut { at, reopened: String::new() });
        }
    }
    if text.len() <= LONGEST_PART {
        return None;
    }
    let word =
        || part.char_indices().rev().find(|(_, char)| char.is_whitespace()).map(|(at, char)| at + char.len_utf8());
    let at = if lines.is_empty() { word().unwrap_or(part.len()) } else { lines.len() };
    // If the probe begins no block of its own, the following text is code.
    let probe = format!("{}x", part.get(..at).unwrap_or_default());
    let fence =
        (speaker == Speaker::Model).then(|| markdown::blocks(&probe).last()).flatten().and_then(|(_, fence)| fence);
    Some(Cut { at, reopened: fence.map(|fence| format!("{fence}\n")).unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn drawn(log: &mut ChatLog) -> String {
        let mut terminal = Terminal::new(TestBackend::new(20, 5)).unwrap();
        terminal.draw(|frame| log.draw(frame, frame.area(), &Theme::new(false))).unwrap();
        terminal.backend().to_string()
    }

    /// All rows of a log that was told a text in pieces that end at these places.
    fn rows(text: &str, ends: &[usize]) -> Vec<String> {
        let mut log = ChatLog::default();
        let mut start = 0;
        for end in ends.iter().copied().chain([text.len()]) {
            let end = text.floor_char_boundary(end.clamp(start, text.len()));
            log.extend(Speaker::Model, &text[start..end]);
            start = end;
        }
        let shown = log.entries.iter_mut().flat_map(|entry| entry.rows(40, &Theme::new(false)).to_vec());
        let mut shown: Vec<String> = shown.map(|row| row.to_string()).collect();
        shown.truncate(shown.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
        shown
    }

    /// What the text looks like as a whole.
    fn whole(text: &str) -> Vec<String> {
        markdown::rows(text, &Theme::new(false), 40).iter().map(ToString::to_string).collect()
    }

    fn block() -> impl Strategy<Value = String> {
        let line = "[a-z`*_ ~#>-]{0,20}";
        let code =
            (prop::sample::select(vec!["```", "~~~", "````rust"]), prop::collection::vec("[a-z` ~-]{0,12}", 0..9));
        let code = code.prop_map(|(fence, lines)| {
            let end = fence.trim_end_matches(char::is_alphabetic);
            format!("{fence}\n{}\n{end}\n", lines.join("\n\n"))
        });
        let item = (0..3_usize, prop::sample::select(vec!["-", "*", "1.", "2."]), line, any::<bool>()).prop_map(
            |(depth, mark, text, is_loose)| {
                format!("{}{mark} {text}\n{}", "   ".repeat(depth), if is_loose { "\n" } else { "" })
            },
        );
        let list = prop::collection::vec(item, 1..6).prop_map(|items| items.concat());
        prop_oneof![line.prop_map(|line| line + "\n"), code, list, Just("\n".to_owned()), Just("---\n".to_owned())]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

        #[test]
        fn an_answer_is_the_same_whatever_its_pieces(
            blocks in prop::collection::vec(block(), 1..7),
            filler in prop::sample::select(vec![0_usize, 0, 0, 300, 2000]),
            mut ends in prop::collection::vec(0..100_000_usize, 0..40),
        ) {
            // Long answers have several parts.
            let text = blocks.join(&format!("{}\n", "some words\n".repeat(filler)));
            let text = text.trim_start_matches('\n');
            ends.sort_unstable();
            let small: Vec<usize> = ends.iter().map(|end| end % 500).collect::<std::collections::BTreeSet<_>>().into_iter().collect();
            prop_assert_eq!(rows(text, &ends), rows(text, &[]));
            prop_assert_eq!(rows(text, &small), rows(text, &[]));
            prop_assert_eq!(rows(text, &[]), whole(text));
        }
    }

    #[test]
    fn long_code_is_one_block_of_code() {
        for fence in ["```", "~~~~"] {
            let text =
                format!("Before.\n\n{fence}rust\n{}{fence}\n\n# After\n", "let x = 1;\n\n- no list\n".repeat(9000));
            let ends: Vec<usize> = (0..text.len()).step_by(997).collect();
            assert_eq!(rows(&text, &ends), whole(&text));
        }
    }

    #[test]
    fn a_thousand_turns_and_a_megabyte_in_a_line_are_bounded() {
        let mut log = ChatLog::default();
        for turn in 0..5000 {
            log.add(Speaker::You, &format!("turn {turn}"));
            log.extend(Speaker::Model, &"word ".repeat(200));
            log.close();
        }
        log.extend(Speaker::Model, &"x".repeat(1 << 20));
        assert!(log.entries.len() <= MOST_ENTRIES && log.bytes <= MOST_BYTES + LONGEST_PART, "{}", log.bytes);
        assert!(log.entries.iter().all(|entry| entry.text.len() <= LONGEST_PART));
        drawn(&mut log);
        for step in [Step::First, Step::PageUp, Step::Up] {
            log.step(step);
        }
        drawn(&mut log);
    }
}
