//! Schemas: kept as written, lowered without growing stricter, and checked in bounded time.

use ollm_mcp::{Api, check, lower, read_schema};
use ollm_protocol::ToolSchema;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn schema(value: Value) -> ToolSchema {
    let Value::Object(object) = value else { panic!("{value}") };
    ToolSchema(object)
}

fn lowered(value: Value, api: Api) -> Value {
    Value::Object(lower(&schema(value), api).schema)
}

fn holds_reference(value: &Value) -> bool {
    match value {
        Value::Object(object) => {
            object.iter().any(|(key, value)| (key == "$ref" && value.is_string()) || holds_reference(value))
        }
        Value::Array(list) => list.iter().any(holds_reference),
        _ => false,
    }
}

#[test]
fn references_are_replaced_by_what_they_name() {
    let written = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "plain": {"$ref": "#/$defs/point"},
            "told": {"$ref": "#/$defs/point", "description": "where to"},
            "narrowed": {"$ref": "#/$defs/point", "minItems": 2},
            "by name": {"$ref": "#spot"},
            "odd/name": {"$ref": "#/$defs/odd~1name%20x"}
        },
        "$defs": {
            "point": {"$anchor": "spot", "type": "array", "items": {"type": "number"}},
            "odd/name x": {"type": "null"}
        }
    });
    let point = json!({"type": "array", "items": {"type": "number"}});
    let expected = json!({
        "type": "object",
        "properties": {
            "plain": point,
            "told": {"type": "array", "items": {"type": "number"}, "description": "where to"},
            "narrowed": {"allOf": [point, {"minItems": 2}]},
            "by name": point,
            "odd/name": {"type": "null"}
        }
    });
    assert_eq!(lowered(written, Api::Object), expected);
}

#[test]
fn a_property_called_like_a_keyword_is_a_property() {
    let written = json!({
        "type": "object",
        "properties": {"$ref": {"type": "string"}, "items": {"type": "string"}, "$defs": {"type": "number"}},
        "default": {"$ref": "#/nowhere"}
    });
    assert_eq!(lowered(written.clone(), Api::Object), written);
}

#[test]
fn what_stood_beside_a_reference_counted_only_from_2019_on() {
    let written = |draft: &str| {
        json!({
            "$schema": draft,
            "properties": {"a": {"$ref": "#/definitions/t", "maxLength": 3, "description": "d"}},
            "definitions": {"t": {"type": "string"}}
        })
    };
    let old = lowered(written("http://json-schema.org/draft-07/schema#"), Api::Object);
    assert_eq!(old["properties"]["a"], json!({"type": "string", "description": "d"}));
    let new = lowered(written("https://json-schema.org/draft/2019-09/schema"), Api::Object);
    assert_eq!(new["properties"]["a"], json!({"allOf": [{"type": "string"}, {"maxLength": 3}], "description": "d"}));
}

#[test]
fn old_drafts_become_the_newest() {
    let written = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "id": "http://example.com/tool",
        "properties": {
            "pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}], "additionalItems": false},
            "above": {"minimum": 3, "exclusiveMinimum": true}
        }
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false},
            "above": {"exclusiveMinimum": 3}
        }
    });
    assert_eq!(lowered(written, Api::Object), expected);
}

#[test]
fn a_schema_that_refers_to_itself_is_cut_at_the_second_turn() {
    let written = json!({
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}
    });
    let result = lower(&schema(written), Api::Object);
    assert_eq!(
        Value::Object(result.schema),
        json!({
            "type": "object",
            "properties": {"tree": {"type": "object", "properties": {"next": {"type": "object"}}}}
        })
    );
    assert_eq!(result.notes, ["`#/$defs/node` refers to itself; it is left open at the second turn"]);
    assert_eq!(lowered(json!({"$ref": "#"}), Api::Object), json!({"type": "object", "properties": {}}));
}

#[test]
fn nothing_is_fetched_and_what_is_not_there_stands_for_anything() {
    let result = lower(
        &schema(json!({"properties": {"a": {"$ref": "http://127.0.0.1:1/x.json"}, "b": {"$ref": "#/$defs/gone"}}})),
        Api::Object,
    );
    assert_eq!(Value::Object(result.schema), json!({"type": "object", "properties": {"a": {}, "b": {}}}));
    assert_eq!(result.notes.len(), 2);
}

#[test]
fn a_schema_that_doubles_at_every_step_stays_small() {
    let mut definitions = Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        let text = "x".repeat(10_000);
        definitions.insert(
            format!("d{level}"),
            json!({"description": text, "type": "object", "properties": {"a": next, "b": next, "c": next}}),
        );
    }
    let written = json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    for api in [Api::Object, Api::Simple] {
        let result = lowered(written.clone(), api);
        assert!(result.to_string().len() < 2_000_000, "{}", result.to_string().len());
        assert!(!holds_reference(&result));
    }
}

#[test]
fn alternatives_at_the_top_become_one_object() {
    let written = json!({
        "oneOf": [
            {"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "number"}}, "required": ["path", "n"]},
            {"type": "object", "properties": {"url": {"type": "string"}, "n": {"type": "string"}}, "required": ["url", "n"]}
        ]
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "n": {"anyOf": [{"type": "number"}, {"type": "string"}]},
            "url": {"type": "string"}
        },
        "required": ["n"]
    });
    assert_eq!(lowered(written, Api::Object), expected);
}

#[test]
fn the_simple_form_has_common_keywords_only() {
    let written = json!({
        "properties": {
            "mode": {"const": "fast"},
            "who": {"type": ["string", "null"]},
            "both": {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}, "required": ["b"]}]},
            "pick": {"oneOf": [{"type": "string", "contentEncoding": "base64"}, {"type": "number", "multipleOf": 2}]}
        },
        "patternProperties": {"^x": {}},
        "required": ["mode", "unnamed"]
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "mode": {"enum": ["fast"]},
            "who": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "both": {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["b"]},
            "pick": {"anyOf": [{"type": "string"}, {"type": "number"}]},
            "unnamed": {}
        },
        "required": ["mode", "unnamed"]
    });
    assert_eq!(lowered(written, Api::Simple), expected);
}

#[test]
fn what_is_no_schema_at_all_is_named_and_a_missing_one_takes_anything() {
    assert_eq!(
        read_schema("inputSchema", None).unwrap().0,
        *json!({"type": "object", "properties": {}}).as_object().unwrap()
    );
    let why = read_schema("inputSchema", Some(&json!("string"))).unwrap_err();
    assert_eq!(why.to_string(), "its inputSchema must be an object, not text");
}

#[test]
fn a_schema_that_would_be_checked_for_ever_is_given_up() {
    let mut definitions = Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"anyOf": [{"allOf": [next, false]}, {"allOf": [next, false]}]}));
    }
    let endless = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    assert!(check(&json!({}), endless.as_object().unwrap()).is_err());
    assert!(check(&json!({}), json!({"$ref": "#"}).as_object().unwrap()).is_err());
}

/// Schemas of the keywords that both validators know.
fn known_schema() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!({})),
        Just(json!({"$ref": "#/$defs/shared"})),
        Just(json!({"$ref": "#/$defs/shared", "maxLength": 2})),
        prop::sample::select(vec!["string", "number", "integer", "boolean", "null", "object", "array"])
            .prop_map(|kind| json!({"type": kind})),
        Just(json!({"type": ["string", "null"]})),
        vec(leaf(), 1..3).prop_map(|values| json!({"enum": values})),
        leaf().prop_map(|value| json!({"const": value})),
        (-2..3, -2..3).prop_map(|(low, high)| json!({"minimum": low, "exclusiveMaximum": high})),
        (0..3u8, 0..3u8).prop_map(|(low, high)| json!({"minLength": low, "maxLength": high})),
    ];
    scalar.prop_recursive(4, 24, 3, |inner| {
        let named = btree_map("[abc]", inner.clone(), 0..3);
        prop_oneof![
            (
                named,
                vec("[abc]", 0..2),
                prop_oneof![Just(None), any::<bool>().prop_map(|b| Some(json!(b))), inner.clone().prop_map(Some)]
            )
                .prop_map(|(properties, required, more)| {
                    let mut required = required;
                    required.sort();
                    required.dedup();
                    let mut object = json!({"properties": properties, "required": required});
                    if let Some(more) = more {
                        object["additionalProperties"] = more;
                    }
                    object
                }),
            (inner.clone(), 0..3u8).prop_map(|(items, most)| json!({"items": items, "maxItems": most})),
            (vec(inner.clone(), 1..3), inner.clone())
                .prop_map(|(tuple, rest)| json!({"prefixItems": tuple, "items": rest})),
            vec(inner.clone(), 1..3).prop_map(|all| json!({"allOf": all})),
            vec(inner.clone(), 1..3).prop_map(|any| json!({"anyOf": any})),
            vec(inner.clone(), 1..3).prop_map(|one| json!({"oneOf": one})),
            inner.clone().prop_map(|not| json!({"not": not})),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| json!({"if": a, "then": b, "else": c})),
        ]
    })
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-2..3).prop_map(Value::from),
        "[ab]{0,3}".prop_map(Value::from),
        Just(json!(1.0))
    ]
}

fn instance() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[abc]", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

/// Keywords with anything behind them: what a careless or hostile server may send.
fn soup() -> impl Strategy<Value = Map<String, Value>> {
    let words = vec![
        "type",
        "properties",
        "required",
        "items",
        "prefixItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
        "$defs",
        "enum",
        "const",
        "not",
        "if",
        "$id",
        "patternProperties",
        "exclusiveMinimum",
        "title",
    ];
    let word = prop_oneof![prop::sample::select(words).prop_map(str::to_owned), testkit::text()];
    let value = prop_oneof![
        testkit::json_value(),
        known_schema(),
        vec(known_schema(), 0..3).prop_map(Value::from),
        Just(json!("#"))
    ];
    vec((word, value), 0..8).prop_map(Map::from_iter)
}

fn whole(mut written: Value, shared: &Value) -> Value {
    written["$defs"] = json!({"shared": shared});
    written
}

/// The tool's arguments: an object whose top has no alternatives, which are folded and grow stricter in odd corners.
fn arguments() -> impl Strategy<Value = Value> {
    (btree_map("[abc]", known_schema(), 0..4), known_schema())
        .prop_map(|(properties, shared)| whole(json!({"type": "object", "properties": properties}), &shared))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn property_25_a_schema_keeps_every_keyword_as_written(written in soup()) {
        let kept = read_schema("inputSchema", Some(&Value::Object(written.clone()))).unwrap();
        prop_assert_eq!(&kept.0, &written);
        let mut full = lower(&kept, Api::Full).schema;
        full.remove("type");
        let mut rest = written;
        rest.remove("type");
        prop_assert_eq!(full, rest);
    }

    #[test]
    fn property_25_lowering_never_refuses_arguments_that_the_tool_takes(
        written in arguments(),
        values in vec(btree_map("[abc]", instance(), 0..4), 1..6),
    ) {
        let original = jsonschema::validator_for(&written).unwrap();
        for api in [Api::Full, Api::Object, Api::Simple] {
            let lowered = lowered(written.clone(), api);
            let lower = jsonschema::validator_for(&lowered).unwrap();
            prop_assert!(api == Api::Full || !holds_reference(&lowered));
            for value in &values {
                let value = json!(value);
                prop_assert!(!original.is_valid(&value) || lower.is_valid(&value), "{value} {api:?} {lowered:#}");
            }
        }
    }

    #[test]
    fn property_25_any_object_is_lowered_to_an_object_without_references(written in soup()) {
        for api in [Api::Object, Api::Simple] {
            let lowered = lower(&ToolSchema(written.clone()), api).schema;
            prop_assert_eq!(&lowered["type"], "object");
            prop_assert!(lowered["properties"].is_object());
        }
    }

    #[test]
    fn property_38_our_check_agrees_with_a_full_validator(
        written in (known_schema(), known_schema()).prop_map(|(written, shared)| whole(written, &shared)),
        values in vec(instance(), 1..6),
    ) {
        let full = jsonschema::validator_for(&written).unwrap();
        for value in values {
            match check(&value, written.as_object().unwrap()) {
                Err(ollm_mcp::SchemaMismatch::Endless) => {}
                ours => prop_assert_eq!(ours.is_ok(), full.is_valid(&value), "{} {:?}", value, ours),
            }
        }
    }
}
