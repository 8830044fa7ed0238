//! Changes of one entry of a YAML text that leave every other byte as it is.
//!
//! A change is made where the spans of the text say it belongs; the result is read again and must mean what was
//! wanted, nothing more and nothing less. Where it does not, there is no result, and a person has to make the change.

use crate::file::parse_yaml;
use crate::node::Node;
use crate::yaml_edit::{self, Kind, Pair, Source, Span, Tree, block, inline, word};

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
    let end = found.end();
    text.get(end..page.source.line_end(end)).map(str::trim).filter(|rest| rest.starts_with('#'))
}

/// The text with a comment behind the value at this path, where nothing else is behind it.
pub(super) fn remarked(text: &str, path: &[&str], remark: &str) -> Option<String> {
    let page = Page::read(text)?;
    let found = page.find(path)?;
    let end = found.end();
    let free = text.get(end..page.source.line_end(end))?.trim().is_empty();
    let changed = page.source.with(Span::empty(end), &format!(" {remark}"));
    (free && means(&changed, &page.node)).then_some(changed)
}

/// The text with another name for the entry at this path.
pub(super) fn rename(text: &str, path: &[&str], name: &str) -> Option<String> {
    let page = Page::read(text)?;
    let changed = page.source.with(page.find(path)?.pair?.key.span, &word(name));
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
    let Span { start, end } = found.pair?.key.span;
    let line = page.source.line_end(end);
    let last = page.source.line_end(found.end());
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
    /// A text of nothing but comments has none.
    tree: Option<Tree>,
}

/// An entry of a page.
struct Found<'p> {
    node: &'p Node,
    tree: &'p Tree,
    /// It with its key; the root has none.
    pair: Option<&'p Pair>,
}

impl Found<'_> {
    /// Whether an entry has a key and nothing behind it.
    fn is_absent(&self) -> bool {
        let Span { start, end } = self.tree.span;
        self.pair.is_some() && matches!(self.tree.kind, Kind::Scalar) && matches!(self.node, Node::Null) && start >= end
    }

    /// Where it ends, in any case behind its colon.
    fn end(&self) -> usize {
        self.pair.map_or_else(|| self.tree.end(), Pair::end)
    }

    /// Whether it is a map in braces.
    fn has_braces(&self) -> bool {
        self.tree.flow && matches!(self.tree.kind, Kind::Map(_))
    }

    /// The column of the entries of a map.
    fn indent(&self, source: &Source<'_>) -> usize {
        match &self.tree.kind {
            Kind::Map(pairs) => pairs.first().map_or(0, |first| source.column(first.key.span.start)),
            Kind::Scalar | Kind::Alias | Kind::List(_) => 0,
        }
    }
}

impl<'a> Page<'a> {
    fn read(text: &'a str) -> Option<Page<'a>> {
        let node = parse_yaml(text).ok()?;
        Some(Page { source: Source::new(text), text, node, tree: yaml_edit::read(text) })
    }

    fn find(&self, path: &[&str]) -> Option<Found<'_>> {
        let root = Found { node: &self.node, tree: self.tree.as_ref()?, pair: None };
        path.iter().try_fold(root, |found, name| {
            let (Node::Map(entries), Kind::Map(pairs)) = (found.node, &found.tree.kind) else { return None };
            let (_, node) = entries.iter().find(|(key, _)| key == name)?;
            let pair = pairs.iter().find(|pair| pair.key.text.as_deref() == Some(*name))?;
            Some(Found { node, tree: &pair.value, pair: Some(pair) })
        })
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
        if above.is_empty() {
            return self.appended(rest, value);
        }
        self.find(above).and_then(|parent| self.inserted(&parent, rest, value)).into_iter().collect()
    }

    fn replaced(&self, found: &Found<'_>, value: &Node) -> Option<String> {
        let (new, colon) = (inline(value), found.pair?.colon);
        let (start, end) = (found.tree.span.start, found.end());
        let head = self.source.slice(colon, start);
        let is_tree = matches!(found.tree.kind, Kind::List(_) | Kind::Map(_));
        let is_block = head.trim_start().starts_with(['|', '>']);
        let begins_below = is_block || !found.tree.flow || found.is_absent();
        let (from, gap) = if begins_below { (colon, " ") } else { (start, "") };
        // Where lines make way for one, their comments could not be kept.
        let lines = if is_tree { self.source.slice(from, end) } else { head };
        let loses = (is_tree || is_block) && lines.contains('#');
        (!loses).then(|| self.source.with(Span { start: from, end }, &format!("{gap}{new}")))
    }

    /// A new entry at the top: at the end of the text, or behind the last entry.
    fn appended(&self, rest: &[&str], value: &Node) -> Vec<String> {
        let newline = self.source.newline;
        let root = self.find(&[]);
        let indent = root.as_ref().map_or(0, |root| root.indent(&self.source));
        let gap = if self.text.is_empty() || self.text.ends_with('\n') { "" } else { newline };
        let lines = self.source.broken(&block(&nested(rest, value), indent));
        let end = format!("{}{gap}{lines}{newline}", self.text);
        std::iter::once(end).chain(root.and_then(|root| self.inserted(&root, rest, value))).collect()
    }

    fn inserted(&self, parent: &Found<'_>, rest: &[&str], value: &Node) -> Option<String> {
        let flow = nested(rest, value);
        if parent.has_braces() {
            let entry = inline(&flow);
            let entry = entry.get(1..entry.len() - 1)?;
            let gap = if matches!(parent.node, Node::Map(entries) if !entries.is_empty()) { ", " } else { "" };
            return Some(self.source.with(Span::empty(parent.tree.span.start + 1), &format!("{entry}{gap}")));
        }
        let indent = match parent.node {
            Node::Map(entries) if !entries.is_empty() => parent.indent(&self.source),
            Node::Null | Node::Map(_) if parent.is_absent() => self.source.column(parent.pair?.key.span.start) + 2,
            Node::Null => return Some(self.source.with(parent.tree.span, &inline(&flow))),
            _ => return None,
        };
        Some(self.source.after_line(parent.end(), &block(&flow, indent)))
    }

    fn removed(&self, path: &[&str]) -> Option<String> {
        let found = self.find(path)?;
        let (start, end) = (found.pair?.key.span.start, found.end());
        let line = self.source.line_start(start);
        let (_, section) = path.split_last()?;
        if self.source.slice(line, start).trim().is_empty() && !self.find(section)?.has_braces() {
            return Some(self.source.with(Span { start: line, end: self.source.next_line(end) }, ""));
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
}

/// A value below the rest of its path.
fn nested(rest: &[&str], value: &Node) -> Node {
    rest.iter().rev().fold(value.clone(), |node, name| Node::Map(vec![((*name).to_owned(), node)]))
}
