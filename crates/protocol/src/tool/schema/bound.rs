//! Loosens schemas that are too large for every request to a model. The result accepts every value that the original
//! accepts.

use serde_json::{Map, Value};

use super::inline::{LONGEST_GLIMPSE, MANY, NAMED, ONE, glimpse};
use super::shape::any_object;

/// The nesting depths for a large schema, tried one after the other.
const DEPTHS: [usize; 6] = [8, 6, 4, 3, 2, 1];
/// The longest list of values, patterns or examples in a large schema, in bytes.
const LONGEST_LIST: usize = 1 << 10;
/// The most alternatives in a large schema.
const MOST_WAYS: usize = 16;

/// The schema within this many bytes, and its original size if that was larger.
pub(super) fn bound(schema: Map<String, Value>, most: usize) -> (Map<String, Value>, Option<usize>) {
    let size = size(&schema);
    if size <= most {
        return (schema, None);
    }
    let smaller = DEPTHS.iter().map(|depth| trimmed(&schema, *depth)).find(|smaller| self::size(smaller) <= most);
    (smaller.unwrap_or_else(|| fewer(trimmed(&schema, 1), most)), Some(size))
}

fn size(schema: &Map<String, Value>) -> usize {
    serde_json::to_vec(schema).map_or(usize::MAX, |text| text.len())
}

fn trimmed(schema: &Map<String, Value>, depth: usize) -> Map<String, Value> {
    if depth == 0 {
        return glimpse(schema);
    }
    let mut smaller: Map<String, Value> =
        schema.iter().filter_map(|(key, value)| Some((key.clone(), part(key, value, depth)?))).collect();
    // Without the schemas of the first items, the schema of the others would apply to all items.
    if schema.contains_key("prefixItems") && !smaller.contains_key("prefixItems") {
        smaller.remove("items");
    }
    smaller
}

/// A part of a schema; `None` if it is too large.
fn part(key: &str, value: &Value, depth: usize) -> Option<Value> {
    let below = |value: &Value| match value {
        Value::Object(schema) => Value::Object(trimmed(schema, depth - 1)),
        other => other.clone(),
    };
    match value {
        Value::Object(named) if NAMED.contains(&key) => {
            Some(named.iter().map(|(name, value)| (name.clone(), below(value))).collect::<Map<_, _>>().into())
        }
        Value::Array(ways) if MANY.contains(&key) => {
            (ways.len() <= MOST_WAYS).then(|| ways.iter().map(below).collect::<Vec<_>>().into())
        }
        Value::Object(_) if ONE.contains(&key) => Some(below(value)),
        Value::String(text) if matches!(key, "description" | "title") => {
            Some(text.chars().take(LONGEST_GLIMPSE).collect::<String>().into())
        }
        _ if key == "required" => Some(value.clone()),
        other => (other.to_string().len() <= LONGEST_LIST).then(|| other.clone()),
    }
}

/// As many properties as fit, the required ones first.
fn fewer(mut schema: Map<String, Value>, most: usize) -> Map<String, Value> {
    let Some(Value::Object(properties)) = schema.remove("properties") else { return any_object() };
    let required: Vec<Value> = match schema.remove("required") {
        Some(Value::Array(required)) => required,
        _ => Vec::new(),
    };
    let is_needed = |name: &str| required.iter().any(|needed| needed.as_str() == Some(name));
    let (needed, others): (Vec<_>, Vec<_>) = properties.into_iter().partition(|(name, _)| is_needed(name));
    // A property that is no longer described may still occur.
    for strict in ["additionalProperties", "patternProperties", "propertyNames", "dependentSchemas"] {
        schema.remove(strict);
    }
    let mut room = most.saturating_sub(size(&schema) + 64);
    let kept: Map<String, Value> = needed
        .into_iter()
        .chain(others)
        .take_while(|(name, value)| {
            // The name occurs in the description, and perhaps in the list of required ones.
            let cost = 2 * Value::from(name.as_str()).to_string().len() + value.to_string().len() + 4;
            let fits = cost <= room;
            room = room.saturating_sub(cost);
            fits
        })
        .collect();
    let required: Vec<Value> =
        required.into_iter().filter(|name| name.as_str().is_some_and(|name| kept.contains_key(name))).collect();
    schema.insert("properties".to_owned(), Value::Object(kept));
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    if size(&schema) <= most { schema } else { any_object() }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::{Api, check, lower};
    use super::*;
    use crate::ToolSchema;

    fn lowered(schema: Value, api: Api) -> super::super::LoweredSchema {
        let Value::Object(schema) = schema else { panic!("no object") };
        lower(&ToolSchema(schema), api)
    }

    #[test]
    fn no_tool_takes_more_than_its_share_of_a_question() {
        let words: Vec<String> = (0..20_000).map(|number| format!("word-{number}")).collect();
        let huge_enum = json!({"properties": {"a": {"type": "string", "enum": words}, "b": {"type": "integer"}}});
        let many = json!({
            "properties": (0..5000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect::<Map<_, _>>(),
            "required": ["p4000"],
            "additionalProperties": false,
        });
        let mut bomb = Map::new();
        for step in 0..12 {
            let next = json!({"$ref": format!("#/$defs/s{}", step + 1)});
            bomb.insert(format!("s{step}"), json!({"type": "object", "properties": {"left": next, "right": next}}));
        }
        let bomb = json!({"properties": {"root": {"$ref": "#/$defs/s0"}}, "$defs": bomb});
        let names = json!({"required": (0..9000).map(|n| format!("a rather long name {n}")).collect::<Vec<_>>()});
        for schema in [huge_enum, many, bomb, names] {
            for api in [Api::Object, Api::Simple, Api::Full] {
                let lowered = lowered(schema.clone(), api);
                assert!(size(&lowered.schema) <= super::super::LARGEST, "{api:?}");
                let loosened = lowered.notes.iter().any(|note| note.contains("left open"));
                assert!(loosened || api == Api::Full, "{:?}", lowered.notes);
            }
        }
    }

    #[test]
    fn what_is_small_stays_as_it_is_and_what_is_needed_stays_longest() {
        let small = json!({"type": "object", "properties": {"a": {"enum": [1, 2]}}});
        let lowered_small = lowered(small.clone(), Api::Object);
        assert_eq!((Value::Object(lowered_small.schema), lowered_small.size), (small, None));
        let properties: Map<String, Value> = (0..5000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        let large = lowered(json!({"properties": properties, "required": ["p4000"]}), Api::Object);
        assert_eq!(large.schema["required"], json!(["p4000"]));
        assert!(large.schema["properties"].get("p4000").is_some() && large.size.is_some());
    }

    fn schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            prop::sample::select(vec!["string", "integer", "object", "array"]).prop_map(|kind| json!({"type": kind})),
            vec("[ab]{0,9}", 1..9).prop_map(|values| json!({"enum": values, "description": "a long story ".repeat(9)})),
            Just(json!({"pattern": "^a"})),
        ];
        leaf.prop_recursive(5, 64, 5, |inner| {
            prop_oneof![
                (btree_map("[ab]{1,3}", inner.clone(), 0..5), vec("[ab]", 0..2), any::<bool>()).prop_map(
                    |(properties, required, more)| {
                        json!({"properties": properties, "required": required, "additionalProperties": more})
                    }
                ),
                btree_map("[ab]", inner.clone(), 0..3)
                    .prop_map(|patterns| json!({"patternProperties": patterns, "additionalProperties": false})),
                (vec(inner.clone(), 1..4), inner.clone())
                    .prop_map(|(first, rest)| json!({"prefixItems": first, "items": rest})),
                inner.clone().prop_map(|items| json!({"items": items, "contains": items})),
                vec(inner.clone(), 1..4).prop_map(|any| json!({"anyOf": any})),
                vec(inner.clone(), 1..4).prop_map(|all| json!({"allOf": all})),
                inner.prop_map(|names| json!({"propertyNames": names, "dependentSchemas": {"a": names}})),
            ]
        })
    }

    fn instance() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![(0..3).prop_map(Value::from), "[ab]{0,3}".prop_map(Value::from)];
        leaf.prop_recursive(4, 16, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::from),
                btree_map("[ab]{1,3}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn property_25_what_the_whole_takes_the_smaller_one_takes(
            properties in btree_map("[ab]{1,3}", schema(), 0..6),
            required in vec("[ab]", 0..2),
            values in vec(btree_map("[ab]{1,3}", instance(), 0..4), 1..6),
            most in 64..2000usize,
        ) {
            let whole = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
            let Value::Object(whole) = whole else { unreachable!() };
            let (smaller, _) = bound(whole.clone(), most);
            prop_assert!(size(&smaller) <= most);
            for value in values {
                let value = json!(value);
                prop_assert!(check(&value, &whole).is_err() || check(&value, &smaller).is_ok(), "{value} {whole:?} {smaller:?}");
            }
        }
    }
}
