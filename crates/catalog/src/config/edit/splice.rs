//! Changes of one entry of a YAML text that leave every other byte as it is.
//!
//! A change is made where the outline of the text says it belongs; the result is read again and must mean what was
//! wanted, nothing more and nothing less. Where it does not, there is no result, and a person has to make the change.

use crate::file::{Outline, outline, parse_yaml};
use crate::node::Node;
use crate::scribe::{Source, Span, block, inline, word};

/// The text with a value at this path.
pub(super) fn set(text: &str, path: &[&str], value: &Node) -> Option<String> {
    let page = Page::read(text)?;
    if page.find(path).is_some_and(|found| same(found.node, value)) {
        return Some(text.to_owned());
    }
    let wanted = with(page.node.clone(), path, value);
    page.candidates(path, value).into_iter().find(|changed| means(changed, &wanted))
}

/// The text without the entry at this path.
pub(super) fn unset(text: &str, path: &[&str]) -> Option<String> {
    let page = Page::read(text)?;
    let wanted = without(page.node.clone(), path);
    page.removed(path).filter(|changed| means(changed, &wanted))
}

/// The comment behind the value at this path, on the same line.
pub(super) fn remark<'t>(text: &'t str, path: &[&str]) -> Option<&'t str> {
    let page = Page::read(text)?;
    let found = page.find(path)?;
    let end = page.end(found.node, found.outline);
    text.get(end..page.source.line_end(end)).map(str::trim).filter(|rest| rest.starts_with('#'))
}

/// The text with a comment behind the value at this path, where nothing else is behind it.
pub(super) fn remarked(text: &str, path: &[&str], remark: &str) -> Option<String> {
    let page = Page::read(text)?;
    let found = page.find(path)?;
    let end = page.end(found.node, found.outline);
    let free = text.get(end..page.source.line_end(end))?.trim().is_empty();
    let changed = page.source.with(Span::empty(end), &format!(" {remark}"));
    (free && means(&changed, &page.node)).then_some(changed)
}

/// The text with another name for the entry at this path.
pub(super) fn rename(text: &str, path: &[&str], name: &str) -> Option<String> {
    let page = Page::read(text)?;
    let (start, end) = page.find(path)?.key?;
    let changed = page.source.with(Span { start, end }, &word(name));
    let (_, section) = path.split_last()?;
    let value = page.find(path)?.node.clone();
    let renamed: Vec<&str> = section.iter().copied().chain([name]).collect();
    let wanted = with(without(page.node.clone(), path), &renamed, &value);
    means(&changed, &wanted).then_some(changed)
}

/// The text with the map at the top-level key `name` moved below `path`, line by line, comments and all.
pub(super) fn nest(text: &str, name: &str, path: &[&str]) -> Option<String> {
    let page = Page::read(text)?;
    let found = page.find(&[name])?;
    let (start, end) = found.key?;
    let line = page.source.line_end(end);
    let last = page.source.line_end(page.end(found.node, found.outline));
    let newline = page.source.newline;
    let (first, rest) = path.split_first()?;
    let headers = rest.iter().enumerate().map(|(depth, name)| format!("{}{}:", "  ".repeat(depth + 1), word(name)));
    let headers: Vec<String> =
        std::iter::once(format!("{}{}", word(first), text.get(end..line)?)).chain(headers).collect();
    let deeper = "  ".repeat(rest.len());
    let below = text.get(line..last)?.split_inclusive('\n');
    let below: String =
        below.map(|line| if line.trim().is_empty() { line.to_owned() } else { deeper.clone() + line }).collect();
    let changed = page.source.with(Span { start, end: last }, &(headers.join(newline) + &below));
    let wanted = with(without(page.node.clone(), &[name]), path, found.node);
    means(&changed, &wanted).then_some(changed)
}

/// Whether two values are the same, whatever the order of keys; an empty map is nothing.
pub(super) fn same(one: &Node, other: &Node) -> bool {
    match (one, other) {
        (Node::Null, Node::Map(entries)) | (Node::Map(entries), Node::Null) => entries.is_empty(),
        (Node::Map(one), Node::Map(other)) => {
            let has =
                |(key, value): &(String, Node)| other.iter().any(|(name, found)| name == key && same(value, found));
            one.len() == other.len() && one.iter().all(has)
        }
        (Node::List(one), Node::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (one, other) => one == other,
    }
}

fn means(text: &str, wanted: &Node) -> bool {
    parse_yaml(text).is_ok_and(|node| same(&node, wanted))
}

/// The tree with a value at this path; what stands in the way gives way.
fn with(node: Node, path: &[&str], value: &Node) -> Node {
    let Some((name, rest)) = path.split_first() else { return value.clone() };
    let mut entries = if let Node::Map(entries) = node { entries } else { Vec::new() };
    match entries.iter_mut().find(|(key, _)| key == name) {
        Some((_, below)) => *below = with(std::mem::replace(below, Node::Null), rest, value),
        None => entries.push(((*name).to_owned(), with(Node::Null, rest, value))),
    }
    Node::Map(entries)
}

fn without(node: Node, path: &[&str]) -> Node {
    let (Some((name, rest)), Node::Map(mut entries)) = (path.split_first(), node.clone()) else { return node };
    if rest.is_empty() {
        entries.retain(|(key, _)| key != name);
    } else if let Some((_, below)) = entries.iter_mut().find(|(key, _)| key == name) {
        *below = without(std::mem::replace(below, Node::Null), rest);
    }
    Node::Map(entries)
}

/// A text, what it means, and where each part stands.
struct Page<'a> {
    source: Source<'a>,
    text: &'a str,
    node: Node,
    outline: Outline,
}

/// An entry of a page.
struct Found<'p> {
    node: &'p Node,
    outline: &'p Outline,
    /// Where its key stands; the root has none.
    key: Option<(usize, usize)>,
}

impl<'a> Page<'a> {
    fn read(text: &'a str) -> Option<Page<'a>> {
        let node = parse_yaml(text).ok()?;
        // A text of nothing but comments has no outline, and needs none.
        let outline = outline(text).unwrap_or(Outline { start: text.len(), end: text.len(), parts: Vec::new() });
        Some(Page { source: Source::new(text), text, node, outline })
    }

    fn root(&self) -> Found<'_> {
        Found { node: &self.node, outline: &self.outline, key: None }
    }

    fn find(&self, path: &[&str]) -> Option<Found<'_>> {
        let mut found = self.root();
        for name in path {
            let Node::Map(entries) = found.node else { return None };
            let index = entries.iter().position(|(key, _)| key == name)?;
            let (key, outline) = found.outline.parts.get(index)?;
            found = Found { node: &entries.get(index)?.1, outline, key: *key };
        }
        Some(found)
    }

    /// The ways to set a value, the best one first.
    fn candidates(&self, path: &[&str], value: &Node) -> Vec<String> {
        if let Some(found) = self.find(path) {
            return self.replaced(&found, value).into_iter().collect();
        }
        let depth =
            (0..path.len()).rev().find(|depth| path.get(..*depth).is_some_and(|path| self.find(path).is_some()));
        let depth = depth.unwrap_or_default();
        let (above, rest) = path.split_at(depth);
        let Some(parent) = self.find(above) else { return Vec::new() };
        if above.is_empty() {
            self.appended(&parent, rest, value)
        } else {
            self.inserted(&parent, rest, value).into_iter().collect()
        }
    }

    fn replaced(&self, found: &Found<'_>, value: &Node) -> Option<String> {
        let new = inline(value);
        let (start, end) = (found.outline.start, self.end(found.node, found.outline));
        if self.is_absent(found) {
            let colon = self.colon(found)?;
            return Some(self.source.with(Span::empty(colon), &format!(" {new}")));
        }
        let old = self.text.get(start..end)?;
        if !matches!(found.node, Node::List(_) | Node::Map(_)) {
            return Some(self.source.with(Span { start, end }, &new));
        }
        let in_brackets = old.starts_with(['[', '{']);
        let from = if in_brackets { start } else { self.colon(found)? };
        let gap = if in_brackets { "" } else { " " };
        // The lines of a list or map make way for one; their comments could not be kept.
        (!self.text.get(from..end)?.contains('#'))
            .then(|| self.source.with(Span { start: from, end }, &format!("{gap}{new}")))
    }

    /// A new entry at the top: at the end of the text, or behind the last entry.
    fn appended(&self, root: &Found<'_>, rest: &[&str], value: &Node) -> Vec<String> {
        let newline = self.source.newline;
        let gap = if self.text.is_empty() || self.text.ends_with('\n') { "" } else { newline };
        let lines = self.source.broken(&block(&nested(rest, value), self.indent(root)));
        let end = format!("{}{gap}{lines}{newline}", self.text);
        std::iter::once(end).chain(self.inserted(root, rest, value)).collect()
    }

    fn inserted(&self, parent: &Found<'_>, rest: &[&str], value: &Node) -> Option<String> {
        let flow = nested(rest, value);
        let brace = parent.outline.start;
        if self.text.get(brace..)?.starts_with('{') {
            let entry = inline(&flow);
            let entry = entry.get(1..entry.len() - 1)?;
            let gap = if matches!(parent.node, Node::Map(entries) if !entries.is_empty()) { ", " } else { "" };
            return Some(self.source.with(Span::empty(brace + 1), &format!("{entry}{gap}")));
        }
        let (at, indent) = match parent.node {
            Node::Map(entries) if !entries.is_empty() => (self.end(parent.node, parent.outline), self.indent(parent)),
            Node::Null | Node::Map(_) if self.is_absent(parent) => {
                let (start, _) = parent.key?;
                (self.colon(parent)?, self.source.column(start) + 2)
            }
            Node::Null => {
                return Some(self.source.with(Span { start: brace, end: parent.outline.end }, &inline(&flow)));
            }
            _ => return None,
        };
        Some(self.source.after_line(at, &block(&flow, indent)))
    }

    fn removed(&self, path: &[&str]) -> Option<String> {
        let found = self.find(path)?;
        let (start, _) = found.key?;
        let end = if self.is_absent(&found) { self.colon(&found)? } else { self.end(found.node, found.outline) };
        let line = self.source.line_start(start);
        if self.text.get(line..start)?.trim().is_empty() && !self.is_in_braces(path) {
            let next = self.source.line_end(end);
            let next = next + self.text.get(next..)?.find('\n').map_or(0, |at| at + 1);
            return Some(self.source.with(Span { start: line, end: next }, ""));
        }
        let after = self.text.get(end..)?;
        if let Some(rest) = after.trim_start().strip_prefix(',') {
            return Some(
                self.source.with(Span { start, end: self.text.len() - rest.trim_start_matches(' ').len() }, ""),
            );
        }
        let before = self.text.get(..start)?.trim_end();
        let before = before.strip_suffix(',').map_or(start, |before| before.trim_end().len());
        Some(self.source.with(Span { start: before, end }, ""))
    }

    fn is_in_braces(&self, path: &[&str]) -> bool {
        let parent = path.split_last().and_then(|(_, section)| self.find(section));
        parent.is_some_and(|parent| self.text.get(parent.outline.start..).is_some_and(|text| text.starts_with('{')))
    }

    /// Whether an entry has a key and nothing behind it.
    fn is_absent(&self, found: &Found<'_>) -> bool {
        let written = self.text.get(found.outline.start..found.outline.end).unwrap_or_default();
        found.key.is_some()
            && matches!(found.node, Node::Null)
            && !matches!(written, "~" | "null" | "Null" | "NULL")
            && !written.starts_with('*')
    }

    /// The place behind the colon of an entry.
    fn colon(&self, found: &Found<'_>) -> Option<usize> {
        let (_, end) = found.key?;
        self.text.get(end..)?.find(':').map(|at| end + at + 1)
    }

    /// How far the entries of a map are indented.
    fn indent(&self, map: &Found<'_>) -> usize {
        let first = map.outline.parts.first().and_then(|(key, _)| *key);
        first.map_or(0, |(start, _)| self.source.column(start))
    }

    /// Where a value ends.
    fn end(&self, node: &Node, outline: &Outline) -> usize {
        let rest = self.text.get(outline.start..).unwrap_or_default();
        if !matches!(node, Node::List(_) | Node::Map(_)) {
            let text = self.text.get(outline.start..outline.end).unwrap_or_default();
            return outline.start + text.trim_end().len();
        }
        if rest.starts_with('*') {
            return outline.end;
        }
        if rest.starts_with(['[', '{']) {
            return outline.start + closing(rest).unwrap_or_default();
        }
        let nodes: Vec<&Node> = match node {
            Node::List(items) => items.iter().collect(),
            Node::Map(entries) => entries.iter().map(|(_, value)| value).collect(),
            _ => Vec::new(),
        };
        let ends = nodes.into_iter().zip(&outline.parts).map(|(node, (key, outline))| {
            let found = Found { node, outline, key: *key };
            if self.is_absent(&found) { self.colon(&found).unwrap_or_default() } else { self.end(node, outline) }
        });
        ends.max().unwrap_or(outline.end)
    }
}

/// The length of a list or map in brackets, up to the closing one.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut before) = (0_usize, None, ' ');
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (Some('"'), '\\') => drop(letters.next()),
            (Some(open), _) => quote = Some(open).filter(|open| *open != letter),
            (None, '"' | '\'') if !before.is_alphanumeric() => quote = Some(letter),
            (None, '#') if before.is_whitespace() => drop(letters.find(|(_, letter)| *letter == '\n')),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        before = letter;
    }
    None
}

/// A value below the rest of its path.
fn nested(rest: &[&str], value: &Node) -> Node {
    rest.iter().rev().fold(value.clone(), |node, name| Node::Map(vec![((*name).to_owned(), node)]))
}
