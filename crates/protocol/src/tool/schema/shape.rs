//! Gives schemas the shape that model APIs accept: an object at the top, and for some APIs only common keywords.

use serde_json::{Map, Value, json};

/// Keywords that grammars of local models know.
const COMMON: &[&str] = &[
    "type",
    "title",
    "description",
    "default",
    "enum",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "anyOf",
];
/// Keywords that may not be at the top, and cannot be merged into one object.
const NOT_AT_TOP: &[&str] = &[
    "not",
    "enum",
    "const",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
];

/// The schema of a tool without one.
pub(super) fn any_object() -> Map<String, Value> {
    let Value::Object(object) = json!({"type": "object", "properties": {}}) else { return Map::new() };
    object
}

/// The schema, with the type `object` at its top.
pub(super) fn named_object(mut schema: Map<String, Value>) -> Map<String, Value> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        schema.insert("type".to_owned(), "object".into());
    }
    schema
}

/// Makes one object without alternatives at its top.
pub(super) fn plain_object(mut schema: Map<String, Value>, notes: &mut Vec<String>) -> Map<String, Value> {
    let mut fields = Fields::of(&mut schema);
    for part in list(schema.remove("allOf")) {
        fields.also(Fields::whole(part));
    }
    let ways: Vec<Fields> = list(schema.remove("anyOf")).into_iter().map(Fields::whole).collect();
    if !ways.is_empty() {
        notes.push("its alternatives are offered as one object; the server checks which of them fits".to_owned());
        fields.also(Fields::either(ways));
    }
    if schema.contains_key("patternProperties") {
        schema.remove("additionalProperties");
    }
    schema.retain(|key, _| !NOT_AT_TOP.contains(&key.as_str()));
    fields.write(schema)
}

/// The properties of an object, and the required ones.
#[derive(Default)]
struct Fields {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Fields {
    fn of(schema: &mut Map<String, Value>) -> Fields {
        let properties = match schema.remove("properties") {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        };
        let required = list(schema.remove("required"));
        let required = required.into_iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
        Fields { properties, required }
    }

    /// Reads a part of the schema, including its own parts.
    fn whole(part: Value) -> Fields {
        let Value::Object(mut schema) = part else { return Fields::default() };
        let mut fields = Fields::of(&mut schema);
        for part in list(schema.remove("allOf")) {
            fields.also(Fields::whole(part));
        }
        fields.also(Fields::either(list(schema.remove("anyOf")).into_iter().map(Fields::whole).collect()));
        fields
    }

    /// Combines both. If they disagree about a property, the first one wins.
    fn also(&mut self, other: Fields) {
        for (name, schema) in other.properties {
            self.properties.entry(name).or_insert(schema);
        }
        self.required.extend(other.required);
        self.required.sort_unstable();
        self.required.dedup();
    }

    /// Combines alternatives: the properties of all of them, requiring only those that each requires.
    fn either(ways: Vec<Fields>) -> Fields {
        let mut all = Fields::default();
        let needed = ways.first().map(|way| way.required.clone()).unwrap_or_default();
        all.required = needed.into_iter().filter(|name| ways.iter().all(|way| way.required.contains(name))).collect();
        for (name, schema) in ways.into_iter().flat_map(|way| way.properties) {
            match all.properties.get_mut(&name) {
                None => drop(all.properties.insert(name, schema)),
                Some(known) if *known != schema => add_way(known, schema),
                Some(_) => {}
            }
        }
        all
    }

    fn write(mut self, mut schema: Map<String, Value>) -> Map<String, Value> {
        self.required.sort_unstable();
        self.required.dedup();
        for name in &self.required {
            // Some APIs refuse a required property without a description.
            self.properties.entry(name.clone()).or_insert_with(|| json!({}));
        }
        schema.shift_insert(0, "type".to_owned(), "object".into());
        schema.shift_insert(1, "properties".to_owned(), Value::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), self.required.into());
        }
        schema
    }
}

/// Combines two alternative schemas for one property.
fn add_way(known: &mut Value, schema: Value) {
    let ways = known.as_object_mut().filter(|object| object.len() == 1).and_then(|object| object.get_mut("anyOf"));
    match ways {
        Some(Value::Array(ways)) if !ways.contains(&schema) => ways.push(schema),
        Some(Value::Array(_)) => {}
        _ => *known = json!({"anyOf": [known.take(), schema]}),
    }
}

/// Keeps only the common keywords.
pub(super) fn simple(schema: Map<String, Value>) -> Map<String, Value> {
    let mut schema = merged(schema);
    if let Some(only) = schema.remove("const") {
        schema.insert("enum".to_owned(), Value::Array(vec![only]));
    }
    several_types(&mut schema);
    schema.retain(|key, _| COMMON.contains(&key.as_str()));
    schema.into_iter().map(|(key, value)| (key.clone(), simple_part(&key, value))).collect()
}

fn simple_part(key: &str, value: Value) -> Value {
    match (key, value) {
        ("properties", Value::Object(named)) => {
            named.into_iter().map(|(name, schema)| (name, simple_value(schema))).collect::<Map<_, _>>().into()
        }
        ("anyOf", Value::Array(ways)) => ways.into_iter().map(simple_value).collect::<Vec<_>>().into(),
        ("items", schema) => simple_value(schema),
        // A grammar cannot express a schema here.
        ("additionalProperties", Value::Object(_)) => Value::Bool(true),
        (_, value) => value,
    }
}

fn simple_value(schema: Value) -> Value {
    match schema {
        Value::Object(schema) => Value::Object(simple(schema)),
        _ => json!({}),
    }
}

/// Combines the parts of `allOf`; the first part with a keyword wins. Keywords that would be wrong in combination are
/// left out.
fn merged(mut schema: Map<String, Value>) -> Map<String, Value> {
    for part in list(schema.remove("allOf")) {
        let Value::Object(part) = part else { continue };
        let mut part = merged(part);
        let mut fields = Fields::of(&mut schema);
        let others = Fields::of(&mut part);
        // One part may exclude properties that the other one describes.
        schema.remove("additionalProperties");
        part.remove("additionalProperties");
        // Both have items, and one of them may describe the first items.
        if part.contains_key("prefixItems") || schema.contains_key("prefixItems") {
            part.remove("items");
            schema.remove("items");
        }
        fields.also(others);
        for (key, value) in part {
            schema.entry(key).or_insert(value);
        }
        if !fields.properties.is_empty() {
            schema.insert("properties".to_owned(), Value::Object(fields.properties));
        }
        if !fields.required.is_empty() {
            schema.insert("required".to_owned(), fields.required.into());
        }
    }
    // A list with separate schemas for its first items becomes a list of anything.
    if schema.remove("prefixItems").is_some() {
        schema.remove("items");
    }
    if schema.remove("patternProperties").is_some() && schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    schema
}

/// A list of types becomes one type if the only other is null, else alternatives.
fn several_types(schema: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = schema.get("type").cloned() else { return };
    schema.remove("type");
    if schema.contains_key("anyOf") {
        return;
    }
    match types.as_slice() {
        [only] => drop(schema.insert("type".to_owned(), only.clone())),
        [] => {}
        several => {
            let ways = several.iter().map(|kind| json!({"type": kind})).collect();
            schema.insert("anyOf".to_owned(), Value::Array(ways));
        }
    }
}

/// Adds an item schema to lists without one, because some APIs refuse all tools if one list lacks it.
pub(super) fn describe_lists(schema: &mut Map<String, Value>) {
    let is_list = match schema.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    };
    if is_list && !schema.get("items").is_some_and(Value::is_object) && schema.get("items") != Some(&Value::Bool(false))
    {
        schema.insert("items".to_owned(), json!({}));
    }
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(named)) => {
                named.values_mut().filter_map(Value::as_object_mut).for_each(describe_lists);
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(parts)) => {
                parts.iter_mut().filter_map(Value::as_object_mut).for_each(describe_lists);
            }
            ("items" | "additionalProperties" | "contains" | "not" | "if" | "then" | "else", Value::Object(part)) => {
                describe_lists(part);
            }
            _ => {}
        }
    }
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}
