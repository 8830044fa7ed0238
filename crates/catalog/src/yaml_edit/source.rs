//! A text and the words for its parts.

/// A piece of a text, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn empty(place: usize) -> Span {
        Span { start: place, end: place }
    }
}

/// A text that is changed, and how its lines are broken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    pub(crate) newline: &'static str,
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str) -> Source<'a> {
        Source { text, newline: if text.contains("\r\n") { "\r\n" } else { "\n" } }
    }

    pub(crate) fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// The text with a span of it replaced.
    pub(crate) fn with(&self, span: Span, new: &str) -> String {
        let (before, after) = (self.slice(0, span.start), self.slice(span.end, self.text.len()));
        format!("{before}{new}{after}")
    }

    /// New lines behind the line that holds this place.
    pub(crate) fn after_line(&self, place: usize, lines: &str) -> String {
        let end = self.line_end(place);
        self.with(Span::empty(end), &format!("{}{}", self.newline, self.broken(lines)))
    }

    /// Lines as they are broken here.
    pub(crate) fn broken(&self, lines: &str) -> String {
        lines.replace('\n', self.newline)
    }

    pub(crate) fn line_start(&self, place: usize) -> usize {
        self.slice(0, place).rfind('\n').map_or(0, |at| at + 1)
    }

    /// The end of a line, before its line break.
    pub(crate) fn line_end(&self, place: usize) -> usize {
        let rest = self.slice(place, self.text.len());
        let end = place + rest.find('\n').unwrap_or(rest.len());
        if self.slice(place, end).ends_with('\r') { end - 1 } else { end }
    }

    /// The start of the line after this place.
    pub(crate) fn next_line(&self, place: usize) -> usize {
        let rest = self.slice(place, self.text.len());
        rest.find('\n').map_or(self.text.len(), |at| place + at + 1)
    }

    /// How far in a place stands.
    pub(crate) fn column(&self, place: usize) -> usize {
        self.slice(self.line_start(place), place).chars().count()
    }
}
