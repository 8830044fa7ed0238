//! Entries of a configuration by the names on the way to them.

use crate::node::Node;
use crate::text_edit::{Draft, Emptied, Op, Refusal};

/// The indexes on the way to an entry, as far as it is there.
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

/// Gives an entry a value. The deepest map on the way gets what is missing; nothing but a map or nothing gives way.
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

/// Takes an entry away; one that is not there is no error.
pub(super) fn unset(draft: &mut Draft, path: &[&str]) -> Result<(), Refusal> {
    let steps = steps(draft.root(), path);
    match steps.split_last() {
        Some((index, at)) if steps.len() == path.len() => {
            draft.perform(&Op::Unset { at, index: *index, emptied: Emptied::MapOrNull })
        }
        _ => Ok(()),
    }
}

/// A value below a path.
pub(super) fn nested(path: &[&str], value: &Node) -> Node {
    path.iter().rfold(value.clone(), |node, name| Node::Map(vec![((*name).to_owned(), node)]))
}
