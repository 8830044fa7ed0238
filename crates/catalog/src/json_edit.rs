//! Changes of a JSON text: the syntax tree of `jsonc_parser` keeps whatever is not touched.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use crate::node::Node;
use crate::text_edit::Op;

/// The text after an operation, unless what it is about is not written there.
pub(crate) fn spliced(text: &str, op: &Op<'_>) -> Option<String> {
    let root = CstRootNode::parse(text, &ParseOptions::default()).ok()?;
    change(&root, op)?;
    let mut text = root.to_string();
    if matches!(op, Op::Fill { .. }) && !text.ends_with('\n') {
        text.push('\n');
    }
    Some(text)
}

fn change(root: &CstRootNode, op: &Op<'_>) -> Option<()> {
    match op {
        Op::Fill { value } => {
            root.set_value(input(value));
            root.object_value()?.ensure_multiline();
        }
        Op::Set { at, key, value } => {
            let map = object(root, at)?;
            match map.properties().into_iter().find(|pair| name(pair).as_deref() == Some(*key)) {
                Some(pair) => pair.set_value(input(value)),
                None => drop(map.append(key, input(value))),
            }
        }
        Op::Unset { at, index, .. } => object(root, at)?.properties().get(*index)?.clone().remove(),
        Op::Rename { at, index, key } => {
            let pair = object(root, at)?.properties().get(*index)?.clone();
            pair.name()?.as_string_lit()?.set_raw_value(serde_json::to_string(key).ok()?);
        }
        Op::Push { at, value } => drop(array(root, at)?.append(input(value))),
        Op::Remove { at, index } => {
            let list = array(root, at)?;
            list.elements().get(*index)?.clone().remove();
            close_up(&list);
        }
    }
    Some(())
}

/// Has a list whose first item follows its bracket end where its last item does: only an item that is gone stood on a line of
/// its own.
fn close_up(list: &CstArray) {
    let is_blank = |node: &CstNode| node.is_newline() || node.is_whitespace();
    let children = list.children();
    if children.get(1).is_some_and(|first| !is_blank(first)) {
        let blanks = children.into_iter().rev().skip(1).take_while(is_blank);
        blanks.for_each(CstNode::remove);
    }
}

fn object(root: &CstRootNode, at: &[usize]) -> Option<CstObject> {
    descend(root, at)?.as_object()
}

fn array(root: &CstRootNode, at: &[usize]) -> Option<CstArray> {
    descend(root, at)?.as_array()
}

fn descend(root: &CstRootNode, at: &[usize]) -> Option<CstNode> {
    at.iter().try_fold(root.value()?, |node, step| match (node.as_object(), node.as_array()) {
        (Some(map), _) => map.properties().get(*step)?.value(),
        (_, Some(list)) => list.elements().get(*step).cloned(),
        _ => None,
    })
}

fn name(pair: &CstObjectProp) -> Option<String> {
    pair.name()?.decoded_value().ok()
}

fn input(node: &Node) -> CstInputValue {
    input_value(&node.to_json())
}

fn input_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input_value).collect()),
        Value::Object(pairs) => {
            CstInputValue::Object(pairs.iter().map(|(key, value)| (key.clone(), input_value(value))).collect())
        }
    }
}
