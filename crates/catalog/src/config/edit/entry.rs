//! Finds and changes entries of a configuration by their path of names.

use crate::node::Node;
use crate::text_edit::{Draft, EmptiedMap, Op, Refusal};

/// The indexes on the path to an entry, as far as it exists.
pub(super) fn steps(root: &Node, path: &[&str]) -> Vec<usize> {
    let mut node = root;
    let known = path.iter().map_while(|name| {
        let Node::Map(entries) = node else { return None };
        let index = entries.iter().position(|(key, _)| key == name)?;
        node = entries.get(index).map(|(_, value)| value)?;
        Some(index)
    });
    known.collect()
}

pub(super) fn at<'n>(root: &'n Node, path: &[&str]) -> Option<&'n Node> {
    let steps = steps(root, path);
    root.at(&steps).filter(|_| steps.len() == path.len())
}

/// Sets an entry. The deepest existing map on the path gets the missing parts. Only maps and empty values on the path
/// are replaced.
pub(super) fn set(draft: &mut Draft, path: &[&str], value: &Node) -> Result<(), Refusal> {
    let steps = steps(draft.root(), path);
    let is_there = steps.len() == path.len();
    let depth = match draft.root().at(&steps) {
        Some(found) if is_there && found == value => return Ok(()),
        Some(Node::Null) if steps.is_empty() => return draft.perform(&Op::Fill { value: &nested(path, value) }),
        Some(Node::Map(_)) if !is_there => steps.len(),
        Some(found) if is_there || *found == Node::Null => steps.len().saturating_sub(1),
        _ => return Err(draft.by_hand(&steps)),
    };
    let (Some(at), Some((key, rest))) = (steps.get(..depth), path.get(depth..).and_then(<[_]>::split_first)) else {
        return Err(Refusal::NoSuch);
    };
    draft.perform(&Op::Set { at, key, value: &nested(rest, value) })
}

/// Removes an entry; a missing entry is not an error.
pub(super) fn unset(draft: &mut Draft, path: &[&str]) -> Result<(), Refusal> {
    let steps = steps(draft.root(), path);
    match steps.split_last() {
        Some((index, at)) if steps.len() == path.len() => {
            draft.perform(&Op::Unset { at, index: *index, emptied: EmptiedMap::MapOrNull })
        }
        _ => Ok(()),
    }
}

/// A value below a path.
pub(super) fn nested(path: &[&str], value: &Node) -> Node {
    path.iter().rfold(value.clone(), |node, name| Node::Map(vec![((*name).to_owned(), node)]))
}
