//! One operation on a tree, and the proof that the text says the same.

use serde_json::Value;

use super::{EditError, json, parse, yaml};
use crate::file::Syntax;
use crate::node::Node;

/// A change; `at` is the way to a map or a list, by indexes.
#[derive(Debug)]
pub(super) enum Op<'a> {
    /// Gives an empty file its content.
    Fill { value: &'a Value },
    /// Sets the first pair with this key, or adds one at the end.
    Set { at: &'a [usize], key: &'a str, value: &'a Value },
    /// Removes a pair.
    Unset { at: &'a [usize], index: usize },
    /// Gives a pair another key.
    Rename { at: &'a [usize], index: usize, key: &'a str },
    /// Adds an item at the end of a list.
    Push { at: &'a [usize], value: &'a Value },
    /// Removes an item.
    Remove { at: &'a [usize], index: usize },
}

/// Splices the text, and takes the result only if it means exactly what was wanted.
pub(super) fn perform(text: &str, syntax: Syntax, root: &Node, op: &Op<'_>) -> Result<String, EditError> {
    let mut wanted = root.clone();
    apply(&mut wanted, op).ok_or(EditError::NoSuch)?;
    let mark = if text.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let spliced = match syntax {
        Syntax::Yaml => yaml::splice(body, op)?,
        Syntax::Json | Syntax::Either => json::splice(body, op)?,
    };
    match parse(&spliced, syntax) {
        Ok(found) if found == wanted => Ok(format!("{mark}{spliced}")),
        _ => Err(EditError::ByHand { line: line_of(body, op, syntax), what: "what stands around it is unusual" }),
    }
}

/// The line the operation is about.
fn line_of(text: &str, op: &Op<'_>, syntax: Syntax) -> usize {
    let steps = match op {
        Op::Fill { .. } => &[],
        Op::Set { at, .. }
        | Op::Unset { at, .. }
        | Op::Rename { at, .. }
        | Op::Push { at, .. }
        | Op::Remove { at, .. } => *at,
    };
    crate::file::line_at(text, syntax, steps)
}

fn apply(root: &mut Node, op: &Op<'_>) -> Option<()> {
    match op {
        Op::Fill { value } => *root = Node::from_json(value),
        Op::Set { at, key, value } => {
            let pairs = map(root, at)?;
            let value = Node::from_json(value);
            match pairs.iter_mut().find(|(name, _)| name == key) {
                Some((_, old)) => *old = value,
                None => pairs.push(((*key).to_owned(), value)),
            }
        }
        Op::Unset { at, index } => {
            let pairs = map(root, at)?;
            (*index < pairs.len()).then(|| pairs.remove(*index))?;
        }
        Op::Rename { at, index, key } => (*key).clone_into(&mut map(root, at)?.get_mut(*index)?.0),
        Op::Push { at, value } => list(root, at)?.push(Node::from_json(value)),
        Op::Remove { at, index } => {
            let items = list(root, at)?;
            (*index < items.len()).then(|| items.remove(*index))?;
        }
    }
    Some(())
}

fn map<'n>(root: &'n mut Node, at: &[usize]) -> Option<&'n mut Vec<(String, Node)>> {
    match descend(root, at)? {
        Node::Map(pairs) => Some(pairs),
        _ => None,
    }
}

fn list<'n>(root: &'n mut Node, at: &[usize]) -> Option<&'n mut Vec<Node>> {
    match descend(root, at)? {
        Node::List(items) => Some(items),
        _ => None,
    }
}

fn descend<'n>(root: &'n mut Node, at: &[usize]) -> Option<&'n mut Node> {
    at.iter().try_fold(root, |node, step| match node {
        Node::Map(pairs) => pairs.get_mut(*step).map(|(_, value)| value),
        Node::List(items) => items.get_mut(*step),
        _ => None,
    })
}
