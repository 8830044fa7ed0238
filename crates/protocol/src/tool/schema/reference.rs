//! What a reference names within a schema. Nothing outside of it is ever looked for.

use serde_json::{Map, Value};

/// What a reference can lead to.
pub(super) enum Target<'a> {
    Object(&'a Map<String, Value>),
    Anything,
    Nothing,
}

/// What a reference names; `None` when it is not part of the schema.
pub(super) fn find<'a>(root: &'a Map<String, Value>, reference: &str) -> Option<Target<'a>> {
    let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let is_own = document.is_empty() || root.get("$id").and_then(Value::as_str) == Some(document);
    if !is_own {
        return marked(root, "$id", reference).map(target);
    }
    let fragment = unescaped(fragment)?;
    if fragment.is_empty() {
        return Some(Target::Object(root));
    }
    let Some(pointer) = fragment.strip_prefix('/') else {
        let found = marked(root, "$anchor", &fragment).or_else(|| marked(root, "$dynamicAnchor", &fragment));
        return found.map(target);
    };
    let (first, rest) = pointer.split_once('/').map_or((pointer, None), |(first, rest)| (first, Some(rest)));
    let start = root.get(&first.replace("~1", "/").replace("~0", "~"))?;
    let found = rest.map_or(Some(start), |rest| start.pointer(&format!("/{rest}")));
    found.map(target)
}

fn target(schema: &Value) -> Target<'_> {
    match schema {
        Value::Object(object) => Target::Object(object),
        Value::Bool(false) => Target::Nothing,
        _ => Target::Anything,
    }
}

/// The definition that carries this mark.
fn marked<'a>(root: &'a Map<String, Value>, key: &str, mark: &str) -> Option<&'a Value> {
    let definitions = ["$defs", "definitions"].iter().filter_map(|name| root.get(*name)?.as_object());
    definitions.flat_map(|named| named.values()).find(|schema| schema.get(key).and_then(Value::as_str) == Some(mark))
}

/// A fragment without its percent signs.
fn unescaped(fragment: &str) -> Option<String> {
    if !fragment.contains('%') {
        return Some(fragment.to_owned());
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if let (b'%', [high, low, after @ ..]) = (first, after) {
            let digits = [*high, *low];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}
