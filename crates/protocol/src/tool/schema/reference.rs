//! Finds the target of a reference within a schema. It never looks outside of the schema.

use serde_json::{Map, Value};

/// The most parts of a schema that are searched for a target.
const MOST_SEARCHED: usize = 20_000;
/// The deepest nesting that is searched.
const DEEPEST: usize = 128;

/// The target of a reference.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    Object(&'a Map<String, Value>),
    Anything,
    Nothing,
}

/// The target of a reference, and the part with an address of its own that contains it. `None` if it is not part of the
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
        // The path may lead into a part that has an address of its own.
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

/// The part of a schema with this anchor.
pub(super) fn anchored<'a>(resource: &'a Map<String, Value>, key: &str, name: &str) -> Option<Target<'a>> {
    let carries = |schema: &Map<String, Value>| {
        let mark = schema.get(key).and_then(Value::as_str);
        // In older drafts, the anchor is an address that begins with `#`.
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

/// The address of a schema; in draft 4, the keyword has no `$`.
fn address(schema: &Map<String, Value>) -> Option<&str> {
    let own = |key: &str| schema.get(key).and_then(Value::as_str);
    // A property may be called `id`, but its schema is not text.
    let address = own("$id").or_else(|| own("id"))?.split('#').next()?;
    (!address.is_empty()).then_some(address)
}

/// Whether two addresses are equal; one of them may be relative.
fn is_same(one: &str, other: &str) -> bool {
    let ends = |long: &str, short: &str| {
        let short = short.trim_start_matches("./").trim_start_matches('/');
        !short.contains(':') && long.strip_suffix(short).is_some_and(|rest| rest.ends_with('/'))
    };
    one == other || ends(one, other) || ends(other, one)
}

/// The first schema in order of writing for which a predicate is true.
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
        // A part of a list of values is not a schema, even if it looks like one.
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
