//! Makes one change in a YAML or JSON text, and keeps its comments and order.
//!
//! A change is one operation on the tree of the text. The text is spliced and parsed again. The result is only accepted
//! if it means exactly the intended tree. If a change would touch anything else, it is refused, and the error names the
//! line to change by hand. Callers decide where in a file something belongs.

use std::path::Path;

use crate::file::{self, Document, ParsedText, Syntax, SyntaxFault};
use crate::json_edit;
use crate::node::{Node, Part, Spot};
use crate::yaml_edit;

/// What some editors put before a text.
const MARK: &str = "\u{feff}";

/// A change; `at` is the way to a map or a list, by indexes.
#[derive(Debug)]
pub(crate) enum Op<'a> {
    /// Gives an empty file its content.
    Fill { value: &'a Node },
    /// Sets the first pair with this key, or adds one at the end.
    Set { at: &'a [usize], key: &'a str, value: &'a Node },
    /// Removes a pair.
    Unset { at: &'a [usize], index: usize, emptied: EmptiedMap },
    /// Gives a pair another key.
    Rename { at: &'a [usize], index: usize, key: &'a str },
    /// Adds an item at the end of a list.
    Push { at: &'a [usize], value: &'a Node },
    /// Removes an item.
    Remove { at: &'a [usize], index: usize },
}

/// The result for a map that loses its last pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmptiedMap {
    /// An empty map.
    Map,
    /// An empty map or nothing, which are the same to the reader of the file.
    MapOrNull,
}

/// Why a text was not changed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// What should change is not there.
    NoSuch,
    /// Splicing would touch something else.
    ByHand { line: usize, what: &'static str },
}

/// A text that is changed step by step, and what it means.
#[derive(Debug)]
pub(crate) struct Draft {
    mark: &'static str,
    text: String,
    syntax: Syntax,
    parsed: ParsedText,
}

impl Draft {
    /// Reads a text; an empty one means nothing, in any syntax.
    pub(crate) fn read(text: &str, syntax: Syntax) -> Result<Draft, SyntaxFault> {
        let (mark, text) = text.strip_prefix(MARK).map_or(("", text), |text| (MARK, text));
        let syntax = syntax.settle(text);
        Ok(Draft { mark, parsed: parse(text, syntax)?, text: text.to_owned(), syntax })
    }

    pub(crate) fn root(&self) -> &Node {
        &self.parsed.node
    }

    /// The text as a file that is told of.
    pub(crate) fn document<'p>(&self, path: &'p Path) -> Document<'p> {
        Document::parsed(path, self.syntax, &self.text, &self.parsed)
    }

    pub(crate) fn into_text(self) -> String {
        self.mark.to_owned() + &self.text
    }

    /// Makes a change if the text can be spliced so that it means exactly that.
    pub(crate) fn perform(&mut self, op: &Op<'_>) -> Result<(), Refusal> {
        let mut wanted = self.root().clone();
        apply(&mut wanted, op).ok_or(Refusal::NoSuch)?;
        let texts = match self.syntax {
            Syntax::Yaml => yaml_edit::spliced(&self.text, op)?,
            Syntax::Toml => return Err(self.by_hand(&self.steps(op))),
            Syntax::Json | Syntax::LooseJson | Syntax::Either => {
                json_edit::spliced(&self.text, op).into_iter().collect()
            }
        };
        let means = |found: &Node| *found == wanted || emptied(found, &wanted, op);
        let found = texts.into_iter().find_map(|text| self.meaning(&text, means).map(|parsed| (text, parsed)));
        (self.text, self.parsed) = found.ok_or_else(|| self.by_hand(&self.steps(op)))?;
        Ok(())
    }

    /// Takes another text if it parses to this tree; the value at `steps` is the one that changed.
    pub(crate) fn accept(&mut self, text: String, wanted: &Node, steps: &[usize]) -> Result<(), Refusal> {
        self.parsed = self.meaning(&text, |found| found == wanted).ok_or_else(|| self.by_hand(steps))?;
        self.text = text;
        Ok(())
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The refusal that names the line of a value.
    pub(crate) fn by_hand(&self, steps: &[usize]) -> Refusal {
        let spot = Spot { steps: steps.to_vec(), part: Part::Key, field: String::new() };
        let line = self.parsed.locate(&spot).line;
        Refusal::ByHand { line: line.max(1), what: "what stands around it is unusual" }
    }

    /// What a text means, if that is wanted.
    fn meaning(&self, text: &str, is_wanted: impl Fn(&Node) -> bool) -> Option<ParsedText> {
        parse(text, self.syntax).ok().filter(|parsed| is_wanted(&parsed.node))
    }

    /// The way to what an operation is about, as far as it exists.
    fn steps(&self, op: &Op<'_>) -> Vec<usize> {
        match op {
            Op::Fill { .. } => Vec::new(),
            Op::Push { at, .. } => at.to_vec(),
            Op::Unset { at, index, .. } | Op::Rename { at, index, .. } | Op::Remove { at, index } => {
                [*at, &[*index]].concat()
            }
            Op::Set { at, key, .. } => match self.root().at(at) {
                Some(Node::Map(pairs)) => {
                    at.iter().copied().chain(pairs.iter().position(|(name, _)| name == key)).collect()
                }
                _ => at.to_vec(),
            },
        }
    }
}

fn parse(text: &str, syntax: Syntax) -> Result<ParsedText, SyntaxFault> {
    if text.trim().is_empty() { Ok(ParsedText::nothing()) } else { file::parse_marked(text, syntax) }
}

/// Whether the only difference is null instead of a map that lost its last pair.
fn emptied(found: &Node, wanted: &Node, op: &Op<'_>) -> bool {
    let Op::Unset { at, emptied: EmptiedMap::MapOrNull, .. } = op else { return false };
    let mut wanted = wanted.clone();
    match wanted.at_mut(at) {
        Some(map @ Node::Map(_)) if *map == Node::Map(Vec::new()) => *map = Node::Null,
        _ => return false,
    }
    *found == wanted
}

fn apply(root: &mut Node, op: &Op<'_>) -> Option<()> {
    match op {
        Op::Fill { value } => *root = (*value).clone(),
        Op::Set { at, key, value } => {
            let pairs = map(root, at)?;
            match pairs.iter_mut().find(|(name, _)| name == key) {
                Some((_, old)) => *old = (*value).clone(),
                None => pairs.push(((*key).to_owned(), (*value).clone())),
            }
        }
        Op::Unset { at, index, .. } => {
            let pairs = map(root, at)?;
            (*index < pairs.len()).then(|| pairs.remove(*index))?;
        }
        Op::Rename { at, index, key } => (*key).clone_into(&mut map(root, at)?.get_mut(*index)?.0),
        Op::Push { at, value } => list(root, at)?.push((*value).clone()),
        Op::Remove { at, index } => {
            let items = list(root, at)?;
            (*index < items.len()).then(|| items.remove(*index))?;
        }
    }
    Some(())
}

fn map<'n>(root: &'n mut Node, at: &[usize]) -> Option<&'n mut Vec<(String, Node)>> {
    match root.at_mut(at)? {
        Node::Map(pairs) => Some(pairs),
        _ => None,
    }
}

fn list<'n>(root: &'n mut Node, at: &[usize]) -> Option<&'n mut Vec<Node>> {
    match root.at_mut(at)? {
        Node::List(items) => Some(items),
        _ => None,
    }
}
