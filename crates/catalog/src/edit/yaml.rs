//! YAML: the spans of the parser's events say what to splice; everything else stays byte for byte.

use std::ops::Deref;

use serde_json::Value;

use super::EditError;
use super::op::Op;
use crate::node::Node;
use crate::yaml_edit::{self, Kind, Pair, Span, Tree, word};

/// The text after an operation.
pub(super) fn splice(text: &str, op: &Op<'_>) -> Result<String, EditError> {
    let source = Source(yaml_edit::Source::new(text));
    if let Op::Fill { value } = op {
        return Ok(source.fill(&yaml_edit::block(&Node::from_json(value), 0)));
    }
    let tree = yaml_edit::read(text).ok_or(EditError::Formless)?;
    match op {
        Op::Fill { .. } => Ok(text.to_owned()),
        Op::Set { at, key, value } => {
            let (map, pairs) = source.map(&tree, at)?;
            match pairs.iter().find(|pair| pair.key.text.as_deref() == Some(*key)) {
                Some(pair) => source.replace(pair, &flow(value)),
                None => source.add_pair(map, pairs, key, value),
            }
        }
        Op::Unset { at, index } => {
            let (map, pairs) = source.map(&tree, at)?;
            source.remove_pair(map, pairs, *index)
        }
        Op::Rename { at, index, key } => {
            let (_, pairs) = source.map(&tree, at)?;
            let pair = pairs.get(*index).ok_or(EditError::NoSuch)?;
            Ok(source.with(pair.key.span, &word(key)))
        }
        Op::Push { at, value } => {
            let (list, items) = source.list(&tree, at)?;
            Ok(source.push(list, items, value))
        }
        Op::Remove { at, index } => {
            let (list, items) = source.list(&tree, at)?;
            source.remove_item(list, items, *index)
        }
    }
}

/// What is in the meaning of a text but not in its letters stands elsewhere.
const ALIAS: &str = "an alias is in the way";

/// So many dashes may stand in the comments before an item.
const MOST_DASHES: usize = 1000;

/// A text that is changed by what the parser says of it.
#[derive(Clone, Copy)]
struct Source<'a>(yaml_edit::Source<'a>);

impl<'a> Deref for Source<'a> {
    type Target = yaml_edit::Source<'a>;

    fn deref(&self) -> &yaml_edit::Source<'a> {
        &self.0
    }
}

impl Source<'_> {
    fn map<'t>(&self, root: &'t Tree, at: &[usize]) -> Result<(&'t Tree, &'t [Pair]), EditError> {
        match self.descend(root, at)? {
            tree @ Tree { kind: Kind::Map(pairs), .. } => Ok((tree, pairs)),
            other => Err(self.by_hand(other.span.start, ALIAS)),
        }
    }

    fn list<'t>(&self, root: &'t Tree, at: &[usize]) -> Result<(&'t Tree, &'t [Tree]), EditError> {
        match self.descend(root, at)? {
            tree @ Tree { kind: Kind::List(items), .. } => Ok((tree, items)),
            other => Err(self.by_hand(other.span.start, ALIAS)),
        }
    }

    fn descend<'t>(&self, root: &'t Tree, at: &[usize]) -> Result<&'t Tree, EditError> {
        root.descend(at).map_err(|deepest| self.by_hand(deepest, ALIAS))
    }

    /// Whether nothing but blanks stands before a place in its line.
    fn opens_line(&self, place: usize) -> bool {
        self.slice(self.line_start(place), place).bytes().all(|byte| byte == b' ')
    }

    fn by_hand(&self, place: usize, what: &'static str) -> EditError {
        EditError::ByHand { line: self.slice(0, place).matches('\n').count() + 1, what }
    }

    fn fill(&self, content: &str) -> String {
        let body = self.text.trim_end();
        let gap = if body.is_empty() { "" } else { self.newline };
        format!("{body}{gap}{}{}", self.broken(content), self.newline)
    }

    /// The value of a pair replaced by one in flow style; comments before the old one stay.
    fn replace(&self, pair: &Pair, new: &str) -> Result<String, EditError> {
        let value = &pair.value;
        if value.anchored || value.has_alias() {
            return Err(self.by_hand(pair.key.span.start, "an anchor or an alias is in the way"));
        }
        if self.holds_comment(value) {
            return Err(self.by_hand(value.span.start, "comments inside the old value would be lost"));
        }
        // Between the colon and the value: blanks, comments, the head of a block of text.
        let gap = self.slice(pair.colon, value.span.start);
        let kept = match gap.find('#') {
            Some(at) => format!(" {}", gap.get(at..).unwrap_or_default().trim_end()),
            None => String::new(),
        };
        Ok(self.with(Span { start: pair.colon, end: value.end().max(pair.colon) }, &format!(" {new}{kept}")))
    }

    fn add_pair(&self, map: &Tree, pairs: &[Pair], key: &str, value: &Value) -> Result<String, EditError> {
        match pairs.last() {
            _ if map.anchored => Err(self.by_hand(map.span.start, "an anchor is in the way")),
            None => Ok(self.with(Span::empty(map.span.start + 1), &format!("{}: {}", word(key), flow(value)))),
            Some(last) if map.flow => {
                Ok(self.with(Span::empty(last.end()), &format!(", {}: {}", word(key), flow(value))))
            }
            Some(last) => {
                let column = pairs.first().map_or(0, |first| self.column(first.key.span.start));
                Ok(self.after_line(last.end(), &yaml_edit::pair(key, &Node::from_json(value), column)))
            }
        }
    }

    fn remove_pair(&self, map: &Tree, pairs: &[Pair], index: usize) -> Result<String, EditError> {
        let pair = pairs.get(index).ok_or(EditError::NoSuch)?;
        let (start, end) = (pair.key.span.start, pair.end());
        let next = pairs.get(index + 1).map(|next| next.key.span.start);
        if map.anchored || pair.value.anchored {
            return Err(self.by_hand(start, "an anchor is in the way"));
        }
        if map.flow {
            let before = index.checked_sub(1).and_then(|before| pairs.get(before)).map(Pair::end);
            return self.out_of_flow(Span { start, end }, before, next);
        }
        match next {
            None if pairs.len() == 1 => Ok(self.with(Span { start, end }, "{}")),
            _ if self.opens_line(start) => {
                Ok(self.with(Span { start: self.line_start(start), end: self.next_line(end) }, ""))
            }
            // The first pair of an item shares the line of its dash: the next one moves up, unless a comment is between.
            Some(next) if !comment(self.slice(end, next)) => Ok(self.with(Span { start, end: next }, "")),
            _ => Ok(self.with(Span { start, end }, "")),
        }
    }

    fn push(&self, list: &Tree, items: &[Tree], value: &Value) -> String {
        match items.last() {
            None => self.with(Span::empty(list.span.start + 1), &flow(value)),
            Some(end) if list.flow => self.with(Span::empty(end.end()), &format!(", {}", flow(value))),
            Some(end) => {
                let column = items.first().and_then(|first| self.dash(first)).unwrap_or(list.span.start);
                self.after_line(end.end(), &yaml_edit::item(&Node::from_json(value), self.column(column)))
            }
        }
    }

    fn remove_item(&self, list: &Tree, items: &[Tree], index: usize) -> Result<String, EditError> {
        let item = items.get(index).ok_or(EditError::NoSuch)?;
        let (start, end) = (item.span.start, item.end());
        if list.anchored || item.anchored || item.has_anchor() {
            return Err(self.by_hand(start, "an anchor is in the way"));
        }
        let before = index.checked_sub(1).and_then(|before| items.get(before)).map(Tree::end);
        if list.flow {
            return self.out_of_flow(Span { start, end }, before, items.get(index + 1).map(|next| next.span.start));
        }
        let Some(dash) = self.dash(item) else {
            return Err(self.by_hand(start, "it is not clear where the item begins"));
        };
        if items.len() == 1 {
            return Ok(self.empty(dash, end));
        }
        if !self.opens_line(dash) {
            return Err(self.by_hand(dash, "another item begins in the same line"));
        }
        Ok(self.with(Span { start: self.line_start(dash), end: self.next_line(end) }, ""))
    }

    /// The dash that begins an item, if nothing but blanks and comments is between.
    fn dash(&self, item: &Tree) -> Option<usize> {
        let before = self.slice(0, item.span.start);
        let begins = |at: &usize| {
            let head = self.slice(self.line_start(*at), *at);
            let between = self.slice(at + 1, item.span.start);
            let is_idle = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
            head.bytes().all(|byte| byte == b' ' || byte == b'-')
                && between.starts_with(char::is_whitespace)
                && between.lines().all(is_idle)
        };
        before.rmatch_indices('-').map(|(at, _)| at).take(MOST_DASHES).find(begins)
    }

    /// Whether a comment stands between the words of a value.
    fn holds_comment(&self, value: &Tree) -> bool {
        let mut place = value.span.start;
        value.leaves().into_iter().any(|leaf| {
            let gap = self.slice(place, leaf.start);
            place = leaf.end;
            comment(gap)
        }) || comment(self.slice(place, value.end()))
    }

    /// The only item of a list replaced by an empty list, in the line of its key unless comments stand between.
    fn empty(&self, dash: usize, end: usize) -> String {
        let before = self.slice(0, dash).trim_end();
        let last = before.rsplit('\n').next().unwrap_or_default();
        if before.ends_with(':') && !last.trim_start().starts_with('#') && !last.contains(" #") {
            return format!("{before} []{}", self.slice(end, self.text.len()));
        }
        self.with(Span { start: dash, end }, "[]")
    }

    /// A piece of a flow collection removed together with one of its commas.
    fn out_of_flow(&self, piece: Span, before: Option<usize>, next: Option<usize>) -> Result<String, EditError> {
        let span = match (before, next) {
            (Some(before), _) => Span { start: before, end: piece.end },
            (None, Some(next)) => Span { start: piece.start, end: next },
            (None, None) => piece,
        };
        let gaps = [self.slice(span.start, piece.start), self.slice(piece.end, span.end)];
        if gaps.iter().any(|gap| comment(gap)) {
            return Err(self.by_hand(piece.start, "a comment beside it would be lost"));
        }
        Ok(self.with(span, ""))
    }
}

/// Whether there may be a comment in a piece of text: rather one too many than one lost.
fn comment(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with('#') || line.contains(" #") || line.contains("\t#"))
}

/// A value in one line.
fn flow(value: &Value) -> String {
    yaml_edit::inline(&Node::from_json(value))
}
