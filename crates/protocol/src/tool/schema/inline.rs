//! Replaces references by their targets, within limits: no cycles, no endless growth, no network. Keywords of older
//! drafts become those of the newest.

use serde_json::{Map, Value, json};

use super::reference::{Target, find};

/// The most values of a schema. A larger schema is cut at this size.
const MOST_VALUES: usize = 5_000;
/// The deepest nesting of a schema. Deeper parts are cut; models cannot use them anyway.
const DEEPEST: usize = 48;

/// How much of its description a cut part keeps.
pub(super) const LONGEST_GLIMPSE: usize = 200;

/// Keywords whose value is one schema.
pub(super) const ONE: &[&str] = &["additionalProperties", "additionalItems", "items", "contains", "propertyNames"];
/// Keywords whose value is a list of schemas.
pub(super) const MANY: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is a map of schemas.
pub(super) const NAMED: &[&str] = &["properties", "patternProperties", "dependentSchemas"];
/// Keywords that would become stricter if a part below them is cut, and keywords that only serve references or schema
/// tools.
const GONE: &[&str] = &[
    "not",
    "if",
    "then",
    "else",
    "maxContains",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    "$comment",
    "$defs",
    "definitions",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
];
const TOO_LARGE: &str = "it is too large or too deep; parts of it are left open";
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords with information but no demands.
const ANNOTATIONS: &[&str] = &["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"];

/// The schema without references, and notes about the losses.
pub(super) fn inline(root: &Map<String, Value>) -> (Map<String, Value>, Vec<String>) {
    let older = root.get("$schema").and_then(Value::as_str).is_some_and(|draft| {
        ["draft-03", "draft-04", "draft-05", "draft-06", "draft-07"].iter().any(|name| draft.contains(name))
    });
    let mut inliner = Inliner { root, older, left: MOST_VALUES, open: Vec::new(), notes: Vec::new() };
    let schema = inliner.object(root, 0);
    (schema, inliner.notes)
}

struct Inliner<'a> {
    root: &'a Map<String, Value>,
    /// Whether the draft is from before 2019: then keywords beside a reference are ignored.
    older: bool,
    left: usize,
    /// The references that are being followed.
    open: Vec<&'a str>,
    notes: Vec<String>,
}

impl<'a> Inliner<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Value {
        match schema {
            Value::Bool(any) => Value::Bool(*any),
            Value::Object(object) if depth >= DEEPEST || self.left == 0 => {
                self.note(TOO_LARGE.to_owned());
                Value::Object(glimpse(object))
            }
            Value::Object(object) => Value::Object(self.object(object, depth)),
            // A value that is not a schema demands nothing.
            _ => json!({}),
        }
    }

    fn object(&mut self, object: &'a Map<String, Value>, depth: usize) -> Map<String, Value> {
        self.left = self.left.saturating_sub(1);
        let reference = REFERENCES.iter().find_map(|key| object.get(*key)).and_then(Value::as_str);
        let beside = self.beside(object, depth, reference.is_some());
        match reference {
            None => beside,
            Some(reference) => joined(self.follow(reference, depth), beside),
        }
    }

    /// Everything but the reference.
    fn beside(&mut self, object: &'a Map<String, Value>, depth: usize, referring: bool) -> Map<String, Value> {
        let mut out = Map::new();
        for (key, value) in object {
            let name = key.as_str();
            let ignored = referring && self.older && !ANNOTATIONS.contains(&name);
            if GONE.contains(&name) || ignored || (name == "id" && value.is_string()) {
                continue;
            }
            let value = match value {
                Value::Array(list) if MANY.contains(&name) || name == "items" => {
                    Value::Array(list.iter().map(|item| self.schema(item, depth + 1)).collect())
                }
                Value::Object(named) if NAMED.contains(&name) => Value::Object(self.named(named, depth)),
                value if ONE.contains(&name) => self.schema(value, depth + 1),
                // A value of the wrong form demands nothing, and APIs would refuse it.
                _ if MANY.contains(&name) || NAMED.contains(&name) => continue,
                value => self.copied(value),
            };
            out.insert(key.clone(), value);
        }
        renewed(out)
    }

    fn named(&mut self, named: &'a Map<String, Value>, depth: usize) -> Map<String, Value> {
        named.iter().map(|(name, schema)| (name.clone(), self.schema(schema, depth + 1))).collect()
    }

    /// Copies a value that is not a schema. It counts, because many references to one long list could grow without
    /// limit.
    fn copied(&mut self, value: &Value) -> Value {
        self.left = self.left.saturating_sub(weight(value));
        value.clone()
    }

    fn follow(&mut self, reference: &'a str, depth: usize) -> Map<String, Value> {
        let object = match find(self.root, reference).map(|(target, _)| target) {
            Some(Target::Object(object)) => object,
            Some(Target::Anything) => return Map::new(),
            Some(Target::Nothing) => return nothing(),
            None => {
                self.note(format!("`{reference}` is not part of the schema; anything may stand there"));
                return Map::new();
            }
        };
        if self.open.contains(&reference) {
            self.note(format!("`{reference}` refers to itself; it is left open at the second turn"));
            return glimpse(object);
        }
        if depth >= DEEPEST || self.left == 0 {
            self.note(TOO_LARGE.to_owned());
            return glimpse(object);
        }
        self.open.push(reference);
        let schema = self.object(object, depth + 1);
        self.open.pop();
        schema
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < 8 && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The number of values within a value; a long text counts by its length.
fn weight(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(weight).sum::<usize>() + 1,
        Value::Object(object) => object.values().map(weight).sum::<usize>() + 1,
        Value::String(text) => text.len() / 64,
        _ => 0,
    }
}

/// A short description of a schema.
pub(super) fn glimpse(object: &Map<String, Value>) -> Map<String, Value> {
    let mut seen = Map::new();
    if let Some(Value::String(kind)) = object.get("type") {
        seen.insert("type".to_owned(), kind.as_str().into());
    }
    if let Some(Value::String(text)) = object.get("description") {
        seen.insert("description".to_owned(), text.chars().take(LONGEST_GLIMPSE).collect::<String>().into());
    }
    seen
}

/// A schema that accepts nothing.
fn nothing() -> Map<String, Value> {
    Map::from_iter([("not".to_owned(), json!({}))])
}

/// The target of a reference, combined with the keywords beside the reference.
fn joined(mut target: Map<String, Value>, beside: Map<String, Value>) -> Map<String, Value> {
    let (notes, demands): (Map<String, Value>, Map<String, Value>) =
        beside.into_iter().partition(|(key, _)| ANNOTATIONS.contains(&key.as_str()));
    if target.is_empty() {
        target = demands;
    } else if !demands.is_empty() {
        let both = vec![Value::Object(target), Value::Object(demands)];
        target = Map::from_iter([("allOf".to_owned(), Value::Array(both))]);
    }
    target.extend(notes);
    target
}

/// Replaces keywords of older drafts by the newest. `oneOf` becomes `anyOf`, because a cut part accepts too much, so
/// that several alternatives may fit.
fn renewed(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(ways) = schema.remove("oneOf") {
        match schema.remove("anyOf") {
            None => drop(schema.insert("anyOf".to_owned(), ways)),
            Some(others) => {
                let mut all = match schema.remove("allOf") {
                    Some(Value::Array(all)) => all,
                    _ => Vec::new(),
                };
                all.extend([json!({"anyOf": ways}), json!({"anyOf": others})]);
                schema.insert("allOf".to_owned(), Value::Array(all));
            }
        }
    }
    if let Some(Value::Array(_)) = schema.get("items") {
        if let Some(tuple) = schema.remove("items") {
            schema.insert("prefixItems".to_owned(), tuple);
        }
        if let Some(rest) = schema.remove("additionalItems") {
            schema.insert("items".to_owned(), rest);
        }
    }
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if let Some(Value::Bool(excluded)) = schema.get(exclusive).cloned() {
            schema.remove(exclusive);
            if excluded && let Some(number) = schema.remove(bound) {
                schema.insert(exclusive.to_owned(), number);
            }
        }
    }
    schema
}
