//! Changes of a JSON text: everything else stays to the letter.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use crate::node::Node;
use crate::text_edit::Op;

mod at_end;

use at_end::Container;

/// The text after an operation, unless what it is about is not written there.
pub(crate) fn spliced(text: &str, op: &Op<'_>) -> Option<String> {
    let at_end = match op {
        Op::Set { at, key, value } => Container::read(text, at)?.with_pair(key, value),
        Op::Push { at, value } => Container::read(text, at)?.with_item(value),
        Op::Unset { at, index, .. } | Op::Remove { at, index } => Container::read(text, at)?.without(*index),
        Op::Fill { .. } | Op::Rename { .. } => None,
    };
    at_end.or_else(|| by_tree(text, op))
}

/// The same by the syntax tree, for what is not at the end of a list or map.
fn by_tree(text: &str, op: &Op<'_>) -> Option<String> {
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
            map.properties().into_iter().find(|pair| name(pair).as_deref() == Some(*key))?.set_value(input(value));
        }
        Op::Unset { at, index, .. } => object(root, at)?.properties().get(*index)?.clone().remove(),
        Op::Rename { at, index, key } => {
            let pair = object(root, at)?.properties().get(*index)?.clone();
            pair.name()?.as_string_lit()?.set_raw_value(serde_json::to_string(key).ok()?);
        }
        Op::Remove { at, index } => array(root, at)?.elements().get(*index)?.clone().remove(),
        Op::Push { .. } => return None,
    }
    Some(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_edit::EmptiedMap;

    #[test]
    fn what_is_added_at_the_end_and_goes_again_touches_nothing_else() {
        for (text, more) in [
            ("{\"a\": 1}", "{\"a\": 1, \"k\": {\n  \"x\": [\n    1\n  ]\n}}"),
            ("{ \"a\" : 1 }\n", "{ \"a\" : 1, \"k\": {\n  \"x\": [\n    1\n  ]\n} }\n"),
            ("{\"a\": 1\n}", "{\"a\": 1,\n  \"k\": {\n    \"x\": [\n      1\n    ]\n  }\n}"),
            ("{\"a\": 1,\n \"b\": 2}", "{\"a\": 1,\n \"b\": 2,\n \"k\": {\n  \"x\": [\n   1\n  ]\n }}"),
            ("{\n\n\t\"a\": 1\n\n}", "{\n\n\t\"a\": 1,\n\t\"k\": {\n\t\t\"x\": [\n\t\t\t1\n\t\t]\n\t}\n\n}"),
            (
                "{\r\n  \"a\": 1 // one\r\n  /* end */\r\n}",
                "{\r\n  \"a\": 1, // one\r\n  /* end */\r\n  \"k\": {\r\n    \"x\": [\r\n      1\r\n    ]\r\n  }\r\n}",
            ),
            ("{\"a\": 1, }", "{\"a\": 1, \"k\": {\n  \"x\": [\n    1\n  ]\n}, }"),
            ("{\n  \"a\": 1,\n}", "{\n  \"a\": 1,\n  \"k\": {\n    \"x\": [\n      1\n    ]\n  },\n}"),
            ("{}", "{\n  \"k\": {\n    \"x\": [\n      1\n    ]\n  }\n}"),
            ("{ /* none */ }", "{ /* none */ \"k\": {\n  \"x\": [\n    1\n  ]\n} }"),
            ("{ // none\n}", "{ // none\n  \"k\": {\n    \"x\": [\n      1\n    ]\n  }\n}"),
        ] {
            let value = Node::from_json(&serde_json::json!({"x": [1]}));
            let found = spliced(text, &Op::Set { at: &[], key: "k", value: &value }).unwrap();
            assert_eq!(found, more);
            let index = text.matches(':').count();
            let less = spliced(&found, &Op::Unset { at: &[], index, emptied: EmptiedMap::Map }).unwrap();
            assert_eq!(less, text);
        }
    }
}
