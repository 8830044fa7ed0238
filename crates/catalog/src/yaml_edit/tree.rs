//! The spans of a YAML text, as a tree.

use granit_parser::{Event, Parser, ScalarStyle, Span as Marks, StructureStyle};

use super::source::Span;

/// A node and where it stands.
#[derive(Debug)]
pub(super) struct Tree {
    /// From its first letter to its last; a block of text begins after its head.
    pub(super) span: Span,
    pub(super) kind: NodeKind,
    pub(super) flow: bool,
    pub(super) anchored: bool,
    /// The text of a scalar.
    pub(super) text: Option<String>,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    Scalar,
    Alias,
    List(Vec<Tree>),
    Map(Vec<Pair>),
}

/// A key and its value.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) key: Tree,
    /// Behind the colon.
    pub(super) colon: usize,
    pub(super) value: Tree,
}

impl Pair {
    /// Whether nothing stands behind the colon.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self.value.kind, NodeKind::Scalar)
            && self.value.span.start >= self.value.span.end
            && !self.value.anchored
    }

    /// Where the pair ends; a value that is not there ends with the colon.
    pub(super) fn end(&self) -> usize {
        self.value.end().max(self.colon)
    }
}

impl Tree {
    pub(super) fn end(&self) -> usize {
        self.span.end
    }

    /// Every word in it, in order.
    pub(super) fn leaves(&self) -> Vec<Span> {
        match &self.kind {
            NodeKind::Scalar | NodeKind::Alias => vec![self.span],
            NodeKind::List(items) => items.iter().flat_map(Tree::leaves).collect(),
            NodeKind::Map(pairs) => {
                pairs.iter().flat_map(|pair| [pair.key.leaves(), pair.value.leaves()].concat()).collect()
            }
        }
    }

    /// The node at the end of the way, or how far into the text the way leads.
    pub(super) fn descend(&self, steps: &[usize]) -> Result<&Tree, usize> {
        steps.iter().try_fold(self, |tree, step| {
            let next = match &tree.kind {
                NodeKind::List(items) => items.get(*step),
                NodeKind::Map(pairs) => pairs.get(*step).map(|pair| &pair.value),
                NodeKind::Scalar | NodeKind::Alias => None,
            };
            next.ok_or(tree.span.start)
        })
    }

    /// The pair at the end of the way.
    pub(super) fn pair(&self, steps: &[usize]) -> Option<&Pair> {
        let (last, way) = steps.split_last()?;
        match &self.descend(way).ok()?.kind {
            NodeKind::Map(pairs) => pairs.get(*last),
            NodeKind::Scalar | NodeKind::Alias | NodeKind::List(_) => None,
        }
    }
}

/// Reads a text that is known to be one valid document of bounded depth.
pub(super) fn read(text: &str) -> Option<Tree> {
    let mut reader = YamlReader { text, parser: Parser::new_from_str(text) };
    loop {
        let (event, marks) = reader.next()?;
        match event {
            Event::StreamStart | Event::DocumentStart(..) => {}
            event => return reader.tree(&event, marks),
        }
    }
}

struct YamlReader<'a> {
    text: &'a str,
    parser: Parser<'a, granit_parser::StrInput<'a>>,
}

impl<'a> YamlReader<'a> {
    fn next(&mut self) -> Option<(Event<'a>, Marks)> {
        self.parser.next()?.ok()
    }

    fn tree(&mut self, event: &Event<'a>, marks: Marks) -> Option<Tree> {
        let start = marks.start.byte_offset()?;
        let span = Span { start, end: marks.end.byte_offset()? };
        let plain = Tree { span, kind: NodeKind::Scalar, flow: true, anchored: false, text: None };
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let end = match style {
                    // The span of a block of text runs on to the next event.
                    ScalarStyle::Literal | ScalarStyle::Folded => self.trimmed(span),
                    _ => span.end,
                };
                let anchored = *anchor > 0 || tag.is_some();
                Some(Tree { span: Span { start, end }, anchored, text: Some(text.to_string()), ..plain })
            }
            Event::Alias(_) => Some(Tree { kind: NodeKind::Alias, ..plain }),
            Event::SequenceStart(style, anchor, tag) => {
                let (items, end) = self.items()?;
                let flow = matches!(style, StructureStyle::Flow);
                let end = if flow { end } else { items.last().map_or(start, Tree::end) };
                let anchored = *anchor > 0 || tag.is_some();
                Some(Tree { span: Span { start, end }, kind: NodeKind::List(items), flow, anchored, text: None })
            }
            Event::MappingStart(style, anchor, tag) => {
                let (pairs, end) = self.pairs()?;
                let flow = matches!(style, StructureStyle::Flow);
                let end = if flow { end } else { pairs.last().map_or(start, Pair::end) };
                let anchored = *anchor > 0 || tag.is_some();
                Some(Tree { span: Span { start, end }, kind: NodeKind::Map(pairs), flow, anchored, text: None })
            }
            _ => None,
        }
    }

    fn items(&mut self) -> Option<(Vec<Tree>, usize)> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, marks) => return Some((items, marks.end.byte_offset()?)),
                (event, marks) => items.push(self.tree(&event, marks)?),
            }
        }
    }

    fn pairs(&mut self) -> Option<(Vec<Pair>, usize)> {
        let mut pairs = Vec::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, marks) => return Some((pairs, marks.end.byte_offset()?)),
                (event, marks) => self.tree(&event, marks)?,
            };
            let (event, marks) = self.next()?;
            let value = self.tree(&event, marks)?;
            let gap = self.text.get(key.end()..)?;
            // Keys in the long form, with a question mark, are left alone.
            let colon = gap.find(|letter: char| letter != ' ').filter(|at| gap.get(*at..*at + 1) == Some(":"))?;
            pairs.push(Pair { colon: key.end() + colon + 1, key, value });
        }
    }

    fn trimmed(&self, span: Span) -> usize {
        let text = self.text.get(span.start..span.end).unwrap_or_default();
        span.start + text.trim_end().len()
    }
}
