//! What a reference names within a schema. Nothing outside of it is ever looked for.

use serde_json::{Map, Value};

/// More of a schema is not searched for what a reference names.
const MOST_SEARCHED: usize = 20_000;
/// Nor deeper than that.
const DEEPEST: usize = 128;

/// What a reference can lead to.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    Object(&'a Map<String, Value>),
    Anything,
    Nothing,
}

/// What a reference names, and the part with an address of its own that this is in; `None` when it is not part of the
/// schema.
pub(super) fn find<'a>(root: &'a Map<String, Value>, reference: &str) -> Option<(Target<'a>, &'a Map<String, Value>)> {
    let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let resource = if document.is_empty() || address(root).is_some_and(|own| is_same(own, document)) {
        root
    } else {
        let here = |schema: &Map<String, Value>| address(schema).is_some_and(|own| is_same(own, document));
        search(root, &here)?
    };
    let fragment = unescaped(fragment)?;
    if fragment.is_empty() {
        return Some((Target::Object(resource), resource));
    }
    let Some(pointer) = fragment.strip_prefix('/') else {
        let anchor =
            ["$anchor", "$dynamicAnchor", "$id", "id"].iter().find_map(|key| anchored(resource, key, &fragment));
        return anchor.map(|target| (target, resource));
    };
    let mut resource = resource;
    let mut words = pointer.split('/').map(|word| word.replace("~1", "/").replace("~0", "~"));
    let mut found = resource.get(&words.next()?)?;
    for word in words {
        // The way may lead into a part that has an address of its own.
        resource = found.as_object().filter(|schema| is_resource(schema)).unwrap_or(resource);
        found = match found {
            Value::Object(object) => object.get(&word)?,
            Value::Array(list) => list.get(word.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some((target(found), resource))
}

/// Whether a schema has an address of its own.
pub(super) fn is_resource(schema: &Map<String, Value>) -> bool {
    address(schema).is_some()
}

/// The part of a schema that carries an anchor.
pub(super) fn anchored<'a>(resource: &'a Map<String, Value>, key: &str, name: &str) -> Option<Target<'a>> {
    let carries = |schema: &Map<String, Value>| {
        let mark = schema.get(key).and_then(Value::as_str);
        // In older drafts it is an address that consists of the anchor.
        let mark = if key.ends_with("id") { mark.and_then(|mark| mark.strip_prefix('#')) } else { mark };
        mark == Some(name)
    };
    search(resource, &carries).map(Target::Object)
}

fn target(schema: &Value) -> Target<'_> {
    match schema {
        Value::Object(object) => Target::Object(object),
        Value::Bool(false) => Target::Nothing,
        _ => Target::Anything,
    }
}

/// The address of a schema; draft 4 wrote it without the sign.
fn address(schema: &Map<String, Value>) -> Option<&str> {
    let own = |key: &str| schema.get(key).and_then(Value::as_str);
    // A property may be called `id`, but its schema is no text.
    let address = own("$id").or_else(|| own("id"))?.split('#').next()?;
    (!address.is_empty()).then_some(address)
}

/// Whether two addresses are the same, one of which may be written from where it stands.
fn is_same(one: &str, other: &str) -> bool {
    let ends = |long: &str, short: &str| {
        let short = short.trim_start_matches("./").trim_start_matches('/');
        !short.contains(':') && long.strip_suffix(short).is_some_and(|rest| rest.ends_with('/'))
    };
    one == other || ends(one, other) || ends(other, one)
}

/// The first schema, in the order they are written, that something holds for.
fn search<'a>(
    root: &'a Map<String, Value>,
    holds: &dyn Fn(&Map<String, Value>) -> bool,
) -> Option<&'a Map<String, Value>> {
    let mut left = MOST_SEARCHED;
    let mut waiting = vec![(root, 0)];
    while let Some((schema, depth)) = waiting.pop() {
        if holds(schema) {
            return Some(schema);
        }
        left = left.checked_sub(1)?;
        if depth >= DEEPEST {
            continue;
        }
        // What stands in a list of values is no schema, whatever it looks like.
        let parts = schema.iter().filter(|(key, _)| !matches!(key.as_str(), "enum" | "const" | "default" | "examples"));
        for part in parts.map(|(_, part)| part).rev() {
            match part {
                Value::Object(object) => waiting.push((object, depth + 1)),
                Value::Array(list) => {
                    waiting.extend(list.iter().rev().filter_map(Value::as_object).map(|object| (object, depth + 1)));
                }
                _ => {}
            }
        }
    }
    None
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
