//! Markdown as lines for a terminal: what a model writes, styled as far as a terminal can.
//!
//! Nothing is fetched, and no link is hidden: an address stands behind its text. Incomplete markup is shown unchanged.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::text::{indented, width_of};
use super::theme::Theme;

/// Text nested deeper is shown without further indentation.
const DEEPEST: usize = 8;

/// What models write.
const DIALECT: Options = Options::ENABLE_STRIKETHROUGH.union(Options::ENABLE_TABLES).union(Options::ENABLE_TASKLISTS);

/// The start of each outermost block of a text; for a code block also its opening fence.
pub(crate) fn blocks(text: &str) -> impl Iterator<Item = (usize, Option<&str>)> {
    let mut depth = 0_usize;
    Parser::new_ext(text, DIALECT).into_offset_iter().filter_map(move |(event, range)| {
        let is_first = depth == 0;
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_fenced = matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))));
        let fence = || {
            let line = text.get(range.start..)?.trim_start();
            line.get(..line.find(|char| !matches!(char, '`' | '~'))?)
        };
        let line = text.get(..range.start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
        is_first.then(|| (line, is_fenced.then(fence).flatten()))
    })
}

/// Markdown as rows of this width; the continued rows of an item or a quotation begin below its text.
pub(crate) fn rows(text: &str, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    indented(&lines(text, theme), width)
}

/// Markdown as lines, each with the column in which its text begins.
fn lines(text: &str, theme: &Theme) -> Vec<(Line<'static>, usize)> {
    let mut writer = Writer::new(theme);
    for event in Parser::new_ext(text, DIALECT) {
        writer.take(event);
    }
    writer.end_line();
    while writer.lines.last().is_some_and(|(line, _)| line.width() == 0) {
        writer.lines.pop();
    }
    writer.lines
}

struct Writer<'t> {
    theme: &'t Theme,
    lines: Vec<(Line<'static>, usize)>,
    spans: Vec<Span<'static>>,
    /// The column in which the text of the present line begins.
    column: usize,
    style: Vec<Style>,
    /// The lists that are open, with the next number of each.
    lists: Vec<Option<u64>>,
    quotes: usize,
    is_code: bool,
    /// Where the links that are open lead.
    links: Vec<String>,
    /// The mark before the next text of an item.
    mark: Option<String>,
}

impl<'t> Writer<'t> {
    fn new(theme: &'t Theme) -> Writer<'t> {
        Writer {
            theme,
            lines: Vec::new(),
            spans: Vec::new(),
            column: 0,
            style: Vec::new(),
            lists: Vec::new(),
            quotes: 0,
            is_code: false,
            links: Vec::new(),
            mark: None,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => {
                for line in text.lines() {
                    self.push(&format!("  {line}"), self.theme.accent);
                    self.end_line();
                }
            }
            Event::Html(text) => {
                for line in text.split_inclusive('\n') {
                    self.push(line.trim_end_matches(['\r', '\n']), self.now());
                    if line.ends_with('\n') {
                        self.end_line();
                    }
                }
            }
            Event::Text(text) | Event::InlineHtml(text) => self.push(&text, self.now()),
            Event::Code(text) => self.push(&text, self.now().patch(self.theme.accent)),
            Event::SoftBreak => self.push(" ", self.now()),
            Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.push("────────", self.theme.faint);
                self.end_block();
            }
            Event::TaskListMarker(is_done) => self.push(if is_done { "[x] " } else { "[ ] " }, self.now()),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let now = self.now();
        match tag {
            Tag::Heading { level, .. } => {
                let marks =
                    if level == HeadingLevel::H1 { Modifier::BOLD | Modifier::UNDERLINED } else { Modifier::BOLD };
                self.style.push(now.add_modifier(marks));
            }
            Tag::Emphasis => self.style.push(now.add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.style.push(now.add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.style.push(now.add_modifier(Modifier::CROSSED_OUT)),
            Tag::BlockQuote(_) => {
                self.end_line();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.end_line();
                self.is_code = true;
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.push(&format!("  {language}"), self.theme.faint);
                    self.end_line();
                }
            }
            Tag::List(first) => {
                self.end_line();
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_line();
                self.mark = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                });
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.to_string());
                self.style.push(now.add_modifier(Modifier::UNDERLINED));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.style.pop();
                self.end_block();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.style.pop()),
            TagEnd::Paragraph if self.lists.is_empty() => self.end_block(),
            TagEnd::Item => {
                // An empty item gets its mark too, on a line of its own.
                if self.mark.is_some() {
                    self.push("", self.now());
                }
                self.end_line();
            }
            TagEnd::Paragraph | TagEnd::TableHead | TagEnd::TableRow => self.end_line(),
            TagEnd::TableCell => self.push("  ", self.now()),
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::CodeBlock => {
                self.is_code = false;
                self.end_block();
            }
            TagEnd::List(_) => {
                self.lists.pop();
                if self.lists.is_empty() {
                    self.end_block();
                }
            }
            TagEnd::Link | TagEnd::Image => {
                self.style.pop();
                let address = self.links.pop().unwrap_or_default();
                let shown: String = self.spans.iter().map(|span| span.content.as_ref()).collect();
                if !shown.ends_with(&address) {
                    self.push(&format!(" ({address})"), self.theme.faint);
                }
            }
            TagEnd::Table | TagEnd::HtmlBlock => self.end_block(),
            _ => {}
        }
    }

    fn now(&self) -> Style {
        self.style.last().copied().unwrap_or_default()
    }

    fn push(&mut self, text: &str, style: Style) {
        if self.spans.is_empty() {
            let depth = self.lists.len().saturating_sub(1).min(DEEPEST);
            let quote = "│ ".repeat(self.quotes.min(DEEPEST));
            let mark = self.mark.take();
            // The further lines of an item are aligned with its text.
            let indent = if mark.is_none() && !self.lists.is_empty() { "  " } else { "" };
            let before = format!("{quote}{}{indent}{}", "  ".repeat(depth), mark.unwrap_or_default());
            self.column = width_of(&before);
            if !before.is_empty() {
                self.spans.push(Span::styled(before, self.theme.faint));
            }
        }
        self.spans.push(Span::styled(text.replace('\t', "    "), style));
    }

    fn end_line(&mut self) {
        if !self.spans.is_empty() {
            self.lines.push((Line::from(std::mem::take(&mut self.spans)), self.column));
        }
    }

    /// A blank line follows a block.
    fn end_block(&mut self) {
        self.end_line();
        if self.lines.last().is_some_and(|(line, _)| line.width() > 0) {
            self.lines.push((Line::default(), 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        lines(text, &Theme::new(true)).iter().map(|(line, _)| line.to_string()).collect()
    }

    #[test]
    fn the_continued_rows_of_an_item_begin_below_its_text() {
        let rows = |text: &str, width| -> Vec<String> {
            rows(text, &Theme::new(true), width).iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            rows("- one two three\n  - four five six\n\n12. seven eight nine", 12),
            ["• one two", "  three", "  • four", "    five six", "", "12. seven", "    eight", "    nine"]
        );
        assert_eq!(rows("> one two three", 10), ["│ one two", "  three"]);
        assert_eq!(rows("one two three", 8), ["one two", "three"]);
        assert_eq!(rows("- one two", 3), ["•", "one", "two"], "there is no room beside the mark");
    }

    #[test]
    fn blocks_keep_their_shape() {
        let text = "# Title\n\nWords **bold** and `code`.\n\n- one\n- two\n  - inner\n\n1. first\n2. second\n\n> quoted\n\n```rust\nlet x = 1;\n```\n\n[here](https://a.example)";
        assert_eq!(
            shown(text),
            [
                "Title",
                "",
                "Words bold and code.",
                "",
                "• one",
                "• two",
                "  • inner",
                "",
                "1. first",
                "2. second",
                "",
                "│ quoted",
                "",
                "  rust",
                "  let x = 1;",
                "",
                "here (https://a.example)",
            ]
        );
    }

    #[test]
    fn lines_of_html_stay_lines() {
        assert_eq!(
            shown("<details>\n<summary>More</summary>\ntext\n</details>\n\nAfter."),
            ["<details>", "<summary>More</summary>", "text", "</details>", "", "After."]
        );
    }

    #[test]
    fn markup_that_is_not_whole_is_text() {
        assert_eq!(shown("half **bold"), ["half **bold"]);
        assert_eq!(shown("```\nlet x"), ["  let x"]);
        assert_eq!(shown(""), Vec::<String>::new());
    }

    #[test]
    fn deep_nesting_ends() {
        assert!(!shown(&"> ".repeat(5000)).iter().any(|line| line.len() > 100));
        assert!(!shown(&format!("{}x", "- ".repeat(2000))).is_empty());
    }
}
