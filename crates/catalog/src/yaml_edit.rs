//! Changes of a YAML text: the spans of the parser's events say what to splice; everything else stays byte for byte.
//!
//! The result is a proposal. The caller reads it again, and takes it only if it means what was wanted.

use crate::node::Node;
use crate::text_edit::{EmptiedMap, Op, Refusal};

mod source;
mod tree;
mod value;

use source::{Source, Span};
use tree::{NodeKind, Pair, Tree};
pub(crate) use value::inline;
use value::{block, is_long, item, pair, word};

/// What is in the meaning of a text but not in its letters stands elsewhere.
const ALIAS: &str = "an alias is in the way";

/// So many dashes may stand in the comments before an item.
const MOST_DASHES: usize = 1000;

/// The texts after an operation, the best first.
pub(crate) fn spliced(text: &str, op: &Op<'_>) -> Result<Vec<String>, Refusal> {
    let source = Source::new(text);
    if let Op::Fill { value } = op {
        return Ok(vec![source.fill(&block(value, 0))]);
    }
    let Some(tree) = tree::read(text) else { return Ok(Vec::new()) };
    match op {
        Op::Fill { .. } => Ok(Vec::new()),
        Op::Set { at, key, value } => {
            let (map, pairs) = source.map(&tree, at)?;
            if let Some(pair) = pairs.iter().find(|pair| pair.key.text.as_deref() == Some(*key)) {
                return source.replace(pair, value).map(|text| vec![text]);
            }
            let within = source.add_pair(map, pairs, key, value);
            // Comments at the end of a file belong to what is there already.
            let last = at.is_empty().then(|| source.append_pair(pairs, key, value));
            Ok(last.into_iter().chain([within]).collect())
        }
        Op::Unset { at, index, emptied } => {
            let (map, pairs) = source.map(&tree, at)?;
            source.remove_pair(map, pairs, *index, *emptied).map(|text| vec![text])
        }
        Op::Rename { at, index, key } => {
            let (_, pairs) = source.map(&tree, at)?;
            let pair = pairs.get(*index).ok_or(Refusal::NoSuch)?;
            Ok(vec![source.with(pair.key.span, &word(key))])
        }
        Op::Push { at, value } => {
            let (list, items) = source.list(&tree, at)?;
            Ok(vec![source.push(list, items, value)])
        }
        Op::Remove { at, index } => {
            let (list, items) = source.list(&tree, at)?;
            source.remove_item(list, items, *index).map(|text| vec![text])
        }
    }
}

/// The comment behind the value of a pair, on the same line.
pub(crate) fn comment_behind(text: &str, steps: &[usize]) -> Option<String> {
    let tree = tree::read(text)?;
    let end = tree.pair(steps)?.end();
    let rest = text.get(end..Source::new(text).line_end(end))?.trim();
    rest.starts_with('#').then(|| rest.to_owned())
}

/// The text with a comment behind the value of a pair, where nothing else is behind it.
pub(crate) fn with_comment(text: &str, steps: &[usize], comment: &str) -> Option<String> {
    let (tree, source) = (tree::read(text)?, Source::new(text));
    let end = tree.pair(steps)?.end();
    let is_free = text.get(end..source.line_end(end))?.trim().is_empty();
    is_free.then(|| source.with(Span::empty(end), &format!(" {comment}")))
}

/// The text with the map of a top-level pair moved below a path, line by line, comments and all.
pub(crate) fn nested(text: &str, index: usize, path: &[&str]) -> Option<String> {
    let (tree, source) = (tree::read(text)?, Source::new(text));
    let pair = tree.pair(&[index])?;
    let Span { start, end } = pair.key.span;
    let (line, last) = (source.line_end(end), source.line_end(pair.end()));
    let (first, rest) = path.split_first()?;
    let headers = rest.iter().enumerate().map(|(depth, name)| format!("{}{}:", "  ".repeat(depth + 1), word(name)));
    let headers: Vec<String> =
        std::iter::once(format!("{}{}", word(first), text.get(end..line)?)).chain(headers).collect();
    let deeper = "  ".repeat(rest.len());
    let below = text.get(line..last)?.split_inclusive('\n');
    let below: String =
        below.map(|line| if line.trim().is_empty() { line.to_owned() } else { deeper.clone() + line }).collect();
    Some(source.with(Span { start, end: last }, &(headers.join(source.newline) + &below)))
}

impl Source<'_> {
    fn map<'t>(&self, root: &'t Tree, at: &[usize]) -> Result<(&'t Tree, &'t [Pair]), Refusal> {
        match self.descend(root, at)? {
            tree @ Tree { kind: NodeKind::Map(pairs), .. } => Ok((tree, pairs)),
            other => Err(self.by_hand(other.span.start, ALIAS)),
        }
    }

    fn list<'t>(&self, root: &'t Tree, at: &[usize]) -> Result<(&'t Tree, &'t [Tree]), Refusal> {
        match self.descend(root, at)? {
            tree @ Tree { kind: NodeKind::List(items), .. } => Ok((tree, items)),
            other => Err(self.by_hand(other.span.start, ALIAS)),
        }
    }

    fn descend<'t>(&self, root: &'t Tree, at: &[usize]) -> Result<&'t Tree, Refusal> {
        root.descend(at).map_err(|deepest| self.by_hand(deepest, ALIAS))
    }

    fn by_hand(&self, place: usize, what: &'static str) -> Refusal {
        Refusal::ByHand { line: self.slice(0, place).matches('\n').count() + 1, what }
    }

    fn fill(&self, content: &str) -> String {
        let body = self.text.trim_end();
        let gap = if body.is_empty() { "" } else { self.newline };
        format!("{body}{gap}{}{}", self.broken(content), self.newline)
    }

    /// The value of a pair replaced: in its place where it is on one line, else behind the colon; comments stay.
    fn replace(&self, pair: &Pair, new: &Node) -> Result<String, Refusal> {
        let old = &pair.value;
        if pair.is_absent() {
            return Ok(if is_long(new) {
                self.after_line(pair.end(), &block(new, self.column(pair.key.span.start) + 2))
            } else {
                self.with(Span::empty(pair.colon), &format!(" {}", inline(new)))
            });
        }
        if self.holds_comment(old) {
            return Err(self.by_hand(old.span.start, "comments inside the old value would be lost"));
        }
        // Between the colon and the value: blanks, comments, the head of a block of text.
        let gap = self.slice(pair.colon, old.span.start);
        if old.flow && !gap.trim_start().starts_with(['|', '>']) {
            return Ok(self.with(old.span, &inline(new)));
        }
        let kept = match gap.find('#') {
            Some(at) => format!(" {}", gap.get(at..).unwrap_or_default().trim_end()),
            None => String::new(),
        };
        Ok(self.with(Span { start: pair.colon, end: pair.end() }, &format!(" {}{kept}", inline(new))))
    }

    /// A new pair behind the last one of its map.
    fn add_pair(&self, map: &Tree, pairs: &[Pair], key: &str, value: &Node) -> String {
        match pairs.last() {
            None => self.with(Span::empty(map.span.start + 1), &format!("{}: {}", word(key), inline(value))),
            Some(last) if map.flow => {
                self.with(Span::empty(last.end()), &format!(", {}: {}", word(key), inline(value)))
            }
            Some(last) => self.after_line(last.end(), &pair(key, value, self.indent(pairs))),
        }
    }

    /// A new pair of the outermost map, at the end of the text.
    fn append_pair(&self, pairs: &[Pair], key: &str, value: &Node) -> String {
        let gap = if self.text.is_empty() || self.text.ends_with('\n') { "" } else { self.newline };
        let lines = self.broken(&pair(key, value, self.indent(pairs)));
        format!("{}{gap}{lines}{}", self.text, self.newline)
    }

    fn indent(&self, pairs: &[Pair]) -> usize {
        pairs.first().map_or(0, |first| self.column(first.key.span.start))
    }

    fn remove_pair(&self, map: &Tree, pairs: &[Pair], index: usize, emptied: EmptiedMap) -> Result<String, Refusal> {
        let pair = pairs.get(index).ok_or(Refusal::NoSuch)?;
        let (start, end) = (pair.key.span.start, pair.end());
        let next = pairs.get(index + 1).map(|next| next.key.span.start);
        if map.flow {
            let before = index.checked_sub(1).and_then(|before| pairs.get(before)).map(Pair::end);
            return self.out_of_flow(Span { start, end }, before, next);
        }
        match next {
            None if pairs.len() == 1 && emptied == EmptiedMap::Map => Ok(self.with(Span { start, end }, "{}")),
            _ if self.opens_line(start) => {
                Ok(self.with(Span { start: self.line_start(start), end: self.next_line(end) }, ""))
            }
            // The first pair of an item shares the line of its dash: the next one moves up, unless a comment is between.
            Some(next) if !comment(self.slice(end, next)) => Ok(self.with(Span { start, end: next }, "")),
            _ => Ok(self.with(Span { start, end }, "")),
        }
    }

    fn push(&self, list: &Tree, items: &[Tree], value: &Node) -> String {
        match items.last() {
            None => self.with(Span::empty(list.span.start + 1), &inline(value)),
            Some(end) if list.flow => self.with(Span::empty(end.end()), &format!(", {}", inline(value))),
            Some(end) => {
                let column = items.first().and_then(|first| self.dash(first)).unwrap_or(list.span.start);
                self.after_line(end.end(), &item(value, self.column(column)))
            }
        }
    }

    fn remove_item(&self, list: &Tree, items: &[Tree], index: usize) -> Result<String, Refusal> {
        let item = items.get(index).ok_or(Refusal::NoSuch)?;
        let (start, end) = (item.span.start, item.end());
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
    fn out_of_flow(&self, piece: Span, before: Option<usize>, next: Option<usize>) -> Result<String, Refusal> {
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

/// Whether a piece of text may contain a comment. In doubt it does, so that none is lost.
fn comment(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with('#') || line.contains(" #") || line.contains("\t#"))
}
