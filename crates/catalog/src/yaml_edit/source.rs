//! A text and the words for its parts.

/// A piece of a text, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    pub(super) fn empty(place: usize) -> Span {
        Span { start: place, end: place }
    }
}

/// A text that is changed, and how its lines are broken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) newline: &'static str,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str) -> Source<'a> {
        Source { text, newline: if text.contains("\r\n") { "\r\n" } else { "\n" } }
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// The text with a span of it replaced.
    pub(super) fn with(&self, span: Span, new: &str) -> String {
        let (before, after) = (self.slice(0, span.start), self.slice(span.end, self.text.len()));
        format!("{before}{new}{after}")
    }

    /// New lines behind the line that holds this place.
    pub(super) fn after_line(&self, place: usize, lines: &str) -> String {
        let end = self.line_end(place);
        self.with(Span::empty(end), &format!("{}{}", self.newline, self.broken(lines)))
    }

    /// Lines with the line ends of this text.
    pub(super) fn broken(&self, lines: &str) -> String {
        lines.replace('\n', self.newline)
    }

    pub(super) fn line_start(&self, place: usize) -> usize {
        self.slice(0, place).rfind('\n').map_or(0, |at| at + 1)
    }

    /// The end of a line, before its line break.
    pub(super) fn line_end(&self, place: usize) -> usize {
        let rest = self.slice(place, self.text.len());
        let end = place + rest.find('\n').unwrap_or(rest.len());
        if self.slice(place, end).ends_with('\r') { end - 1 } else { end }
    }

    /// The start of the line after this place.
    pub(super) fn next_line(&self, place: usize) -> usize {
        let rest = self.slice(place, self.text.len());
        rest.find('\n').map_or(self.text.len(), |at| place + at + 1)
    }

    /// Whether nothing but blanks stands before a place in its line.
    pub(super) fn opens_line(&self, place: usize) -> bool {
        self.slice(self.line_start(place), place).bytes().all(|byte| byte == b' ')
    }

    /// How far in a place stands.
    pub(super) fn column(&self, place: usize) -> usize {
        self.slice(self.line_start(place), place).chars().count()
    }
}
