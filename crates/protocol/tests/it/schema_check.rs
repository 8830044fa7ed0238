//! Whether values fit schemas: what each word of each draft demands, and that a full validator agrees.

use ollm_protocol::schema::{SchemaMismatch, check};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

const DRAFT_4: &str = "http://json-schema.org/draft-04/schema#";
const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";
const DRAFT_2019: &str = "https://json-schema.org/draft/2019-09/schema";

fn verdict(schema: &Value, value: &Value) -> Result<Vec<String>, SchemaMismatch> {
    check(value, schema.as_object().unwrap())
}

/// The first values fit without a doubt, the others do not.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "cases read better without references")]
fn holds(schema: Value, fitting: &[Value], others: &[Value]) {
    for value in fitting {
        assert_eq!(verdict(&schema, value), Ok(Vec::new()), "{schema} {value}");
    }
    for value in others {
        assert!(matches!(verdict(&schema, value), Err(SchemaMismatch::Broken { .. })), "{schema} {value}");
    }
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "cases read better without references")]
fn told(schema: Value, value: Value, text: &str) {
    assert_eq!(verdict(&schema, &value).unwrap_err().to_string(), text);
}

/// No fault of the value is found, and these points stay undecided.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "cases read better without references")]
fn doubted(schema: Value, value: Value, notes: &[&str]) {
    assert_eq!(verdict(&schema, &value).unwrap(), notes, "{schema} {value}");
}

#[test]
fn patterns_match_anywhere_and_only_text() {
    holds(json!({"pattern": "^a+$"}), &[json!("aa"), json!(7), json!(null)], &[json!("ba"), json!("")]);
    holds(json!({"pattern": "b"}), &[json!("abc")], &[json!("acc")]);
    holds(json!({"pattern": "^\\d{3}\\/\\w$"}), &[json!("123/x")], &[json!("12/x"), json!("١٢٣/x")]);
    holds(json!({"pattern": "^\\s$"}), &[json!(" "), json!("\u{a0}"), json!("\u{feff}")], &[json!("x")]);
    holds(json!({"pattern": "^.$"}), &[json!("é"), json!("🦀")], &[json!("\r"), json!("\u{2028}"), json!("ab")]);
    holds(json!({"pattern": "^[\\b[&~]+$"}), &[json!("\u{8}[&&~~")], &[json!("b")]);
    holds(json!({"pattern": "^\\cJ\\u0041\\u{1F980}\\0$"}), &[json!("\nA🦀\0")], &[json!("JA")]);
}

#[test]
fn an_integer_may_have_a_point_since_draft_6() {
    holds(json!({"$schema": DRAFT_4, "type": "integer"}), &[json!(1), json!(-3)], &[json!(1.0), json!(1.5)]);
    holds(json!({"$schema": DRAFT_7, "type": "integer"}), &[json!(1), json!(1.0)], &[json!(1.5)]);
    holds(json!({"type": "integer"}), &[json!(1), json!(1.0)], &[json!(1.5)]);
}

#[test]
fn numbers_are_compared_and_divided_exactly() {
    holds(json!({"multipleOf": 0.01}), &[json!(19.99), json!(0), json!(4.35), json!(-0.07)], &[json!(0.015)]);
    holds(json!({"multipleOf": 3}), &[json!(9), json!(9.0), json!("x"), json!(3e3)], &[json!(10), json!(9.5)]);
    holds(json!({"multipleOf": 1e-8}), &[json!(12_391_239_123_i64), json!(1e300)], &[json!(1.5e-9)]);
    holds(json!({"multipleOf": 1e300}), &[json!(0), json!(2e300)], &[json!(7)]);
    holds(
        json!({"maximum": 9_007_199_254_740_992_u64}),
        &[json!(9_007_199_254_740_992_u64)],
        &[json!(9_007_199_254_740_993_u64)],
    );
    holds(
        json!({"const": 9_007_199_254_740_993_u64}),
        &[json!(9_007_199_254_740_993_u64)],
        &[json!(9_007_199_254_740_992_u64)],
    );
    holds(json!({"const": {"a": [1]}}), &[json!({"a": [1.0]})], &[json!({"a": [true]})]);
    holds(json!({"minimum": 2, "exclusiveMaximum": 3.5}), &[json!(2), json!(3)], &[json!(1.9), json!(3.5)]);
    holds(
        json!({"$schema": DRAFT_4, "minimum": 2, "exclusiveMinimum": true, "maximum": 4, "exclusiveMaximum": false}),
        &[json!(2.1), json!(4)],
        &[json!(2), json!(4.1)],
    );
    holds(json!({"minLength": 2.0}), &[json!("ab")], &[json!("a")]);
}

#[test]
fn lists_contain_and_repeat_as_often_as_they_may() {
    holds(json!({"contains": {"const": 1}}), &[json!([2, 1.0]), json!({})], &[json!([]), json!([2])]);
    holds(
        json!({"contains": {"type": "string"}, "minContains": 2, "maxContains": 3}),
        &[json!(["a", 1, "b"])],
        &[json!(["a"]), json!(["a", "b", "c", "d"])],
    );
    holds(json!({"contains": {"type": "null"}, "minContains": 0}), &[json!([]), json!([1])], &[]);
    let long: Vec<Value> = (0..500).map(|number| json!({"n": number, "m": [number]})).collect();
    let mut again = long.clone();
    again.push(json!({"m": [7.0], "n": 7}));
    holds(json!({"uniqueItems": true}), &[json!(long), json!([1, true, "1", [1]])], &[json!(again), json!([1, 1.0])]);
    holds(
        json!({"prefixItems": [{"type": "string"}, {"type": "null"}], "items": {"type": "integer"}}),
        &[json!([]), json!(["a"]), json!(["a", null, 1])],
        &[json!([1]), json!(["a", null, "b"])],
    );
    for schema in [DRAFT_4, DRAFT_7, DRAFT_2019] {
        holds(
            json!({"$schema": schema, "items": [{"type": "string"}], "additionalItems": false}),
            &[json!(["a"]), json!([])],
            &[json!(["a", 1]), json!([1])],
        );
    }
}

#[test]
fn fields_are_known_by_name_by_pattern_or_as_the_others() {
    let schema = json!({
        "properties": {"a": {"type": "string"}},
        "patternProperties": {"^[ab]": {"maxLength": 2}, "_id$": {"type": "integer"}},
        "additionalProperties": false,
    });
    holds(
        schema,
        &[json!({"a": "xx", "b": "y", "x_id": 3})],
        &[json!({"a": "xxx"}), json!({"bb": "xxx"}), json!({"x_id": "3"}), json!({"c": 1})],
    );
    holds(json!({"propertyNames": {"pattern": "^x-"}}), &[json!({"x-a": 1}), json!([])], &[json!({"a": 1})]);
    holds(json!({"propertyNames": false}), &[json!({})], &[json!({"a": 1})]);
    let names = json!({"properties": {"__proto__": {"type": "number"}, "constructor": {"type": "object"}}});
    holds(names, &[json!({"__proto__": 1})], &[json!({"__proto__": "x"}), json!({"constructor": 1})]);
}

#[test]
fn fields_demand_other_fields() {
    for word in ["dependentRequired", "dependencies"] {
        let schema = json!({word: {"card": ["address", "name"]}});
        holds(
            schema,
            &[json!({}), json!({"name": 1}), json!({"card": 1, "address": 2, "name": 3})],
            &[json!({"card": 1, "name": 2})],
        );
    }
    for word in ["dependentSchemas", "dependencies"] {
        let schema = json!({word: {"card": {"minProperties": 2}, "never": false}});
        holds(schema, &[json!({"x": 1}), json!({"card": 1, "x": 2})], &[json!({"card": 1}), json!({"never": 1})]);
    }
}

#[test]
fn conditions_choose_and_alternatives_count() {
    let schema = json!({
        "if": {"properties": {"kind": {"const": "a"}}, "required": ["kind"]},
        "then": {"required": ["of_a"]},
        "else": {"not": {"required": ["of_a"]}},
    });
    holds(
        schema,
        &[json!({"kind": "a", "of_a": 1}), json!({"kind": "b"})],
        &[json!({"kind": "a"}), json!({"of_a": 1})],
    );
    holds(json!({"then": false, "else": false}), &[json!(1)], &[]);
    holds(json!({"oneOf": [{"type": "integer"}, {"minimum": 2}]}), &[json!(1), json!(2.5)], &[json!(3), json!(1.5)]);
    holds(json!({"not": {}}), &[], &[json!(1)]);
}

#[test]
fn what_nobody_looked_at_is_found_through_references_and_conditions() {
    let schema = json!({
        "$ref": "#/$defs/base",
        "allOf": [{"properties": {"b": true}}],
        "if": {"required": ["c"]},
        "then": {"properties": {"c": true}},
        "patternProperties": {"^x": true},
        "unevaluatedProperties": false,
        "$defs": {"base": {"properties": {"a": {"type": "integer"}}}},
    });
    holds(schema, &[json!({"a": 1, "b": 2, "c": 3, "x1": 4}), json!({})], &[json!({"d": 1}), json!({"a": 1, "z": 2})]);
    let open = json!({"anyOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": true}}], "unevaluatedProperties": {"type": "null"}});
    holds(open, &[json!({"a": 1, "b": 2, "c": null}), json!({"a": null})], &[json!({"a": 1, "c": 2}), json!({"a": 2})]);
    let nested = json!({"allOf": [{"unevaluatedProperties": true}], "unevaluatedProperties": false});
    holds(nested, &[json!({"a": 1})], &[]);
    let cousins = json!({"allOf": [{"properties": {"a": true}}, {"unevaluatedProperties": false}]});
    holds(cousins, &[json!({})], &[json!({"a": 1})]);
    let items = json!({"prefixItems": [true], "contains": {"type": "string"}, "unevaluatedItems": false});
    holds(items.clone(), &[json!([1, "a", "b"])], &[json!([1, "a", 2])]);
    let older =
        json!({"$schema": DRAFT_2019, "items": [true], "contains": {"type": "string"}, "unevaluatedItems": false});
    holds(older, &[json!(["a"])], &[json!([1, "a"])]);
}

#[test]
fn references_lead_to_definitions_anchors_and_addresses() {
    let schemas = [
        json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}),
        json!({"$ref": "#/definitions/a~1b%25", "definitions": {"a/b%": {"type": "integer"}}}),
        json!({"$ref": "#here", "$defs": {"x": {"items": {"$anchor": "here", "type": "integer"}}}}),
        json!({"$schema": DRAFT_7, "$ref": "#here", "definitions": {"x": {"$id": "#here", "type": "integer"}}}),
        json!({"$schema": DRAFT_4, "$ref": "#here", "definitions": {"x": {"id": "#here", "type": "integer"}}}),
        json!({"$ref": "urn:x", "$defs": {"x": {"$id": "urn:x", "type": "integer"}}}),
        json!({"$id": "https://a.test/root.json", "$ref": "item.json", "$defs": {"x": {"$id": "item.json", "type": "integer"}}}),
        json!({"$id": "https://a.test/root.json", "$ref": "https://a.test/root.json#/$defs/n", "$defs": {"n": {"type": "integer"}}}),
        json!({"$ref": "#/allOf/0/items", "allOf": [{"items": {"type": "integer"}}]}),
        json!({
            "$ref": "urn:x",
            "$defs": {"x": {"$id": "urn:x", "$ref": "#/$defs/own", "$defs": {"own": {"type": "integer"}}}, "own": false},
        }),
        json!({"$dynamicRef": "#n", "$defs": {"x": {"$dynamicAnchor": "n", "type": "integer"}}}),
    ];
    for schema in schemas {
        holds(schema, &[json!(1)], &[json!("x")]);
    }
    let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false});
    holds(tree, &[json!({"next": {"next": {}}})], &[json!({"next": {"next": {"nxt": 1}}})]);
    holds(
        json!({"$schema": DRAFT_7, "$ref": "#/definitions/a", "maxLength": 1, "definitions": {"a": {}}}),
        &[json!("ab")],
        &[],
    );
    holds(json!({"$ref": "#/$defs/a", "maxLength": 1, "$defs": {"a": {}}}), &[json!("a")], &[json!("ab")]);
}

#[test]
fn an_extended_tree_checks_its_branches_as_extended() {
    let tree = json!({
        "$id": "https://a.test/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": false,
        "$defs": {"tree": {
            "$id": "tree",
            "$dynamicAnchor": "node",
            "type": "object",
            "properties": {"data": true, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
        }},
    });
    holds(tree, &[json!({"children": [{"data": 1}]})], &[json!({"children": [{"daat": 1}]})]);
    let older = json!({
        "$schema": DRAFT_2019,
        "$id": "https://a.test/strict",
        "$recursiveAnchor": true,
        "$ref": "tree",
        "unevaluatedProperties": false,
        "$defs": {"tree": {
            "$id": "tree",
            "$recursiveAnchor": true,
            "properties": {"data": true, "children": {"items": {"$recursiveRef": "#"}}},
        }},
    });
    holds(older, &[json!({"children": [{"data": 1}]})], &[json!({"children": [{"daat": 1}]})]);
}

#[test]
fn what_cannot_be_found_out_is_told_and_decides_nothing() {
    let ahead = "^(?=.*\\d).+$";
    let note = "the pattern ^(?=.*\\d).+$ is not checked";
    doubted(json!({"pattern": ahead}), json!("x"), &[note]);
    doubted(json!({"not": {"pattern": ahead}}), json!("x"), &[note]);
    doubted(json!({"oneOf": [{"pattern": ahead}, {"type": "string"}]}), json!("x"), &[note]);
    doubted(json!({"anyOf": [{"pattern": ahead}, {"type": "string"}]}), json!("x"), &[]);
    doubted(json!({"if": {"pattern": ahead}, "then": false}), json!("x"), &[note]);
    doubted(json!({"contains": {"pattern": ahead}}), json!(["x"]), &[note]);
    doubted(
        json!({"patternProperties": {"(a)\\1": false}, "additionalProperties": false}),
        json!({"b": 1}),
        &["the pattern (a)\\1 is not checked"],
    );
    doubted(json!({"pattern": "\\p{L}"}), json!("x"), &["the pattern \\p{L} is not checked"]);
    doubted(
        json!({"$ref": "#/$defs/gone"}),
        json!(1),
        &["the `$ref` to #/$defs/gone leads nowhere and is not checked"],
    );
    doubted(
        json!({"items": {"$ref": "https://a.test/x"}}),
        json!([1, 2]),
        &["the `$ref` to https://a.test/x leads out of the schema and is not checked"],
    );
    doubted(json!({"not": {"$ref": "#gone"}}), json!(1), &["the `$ref` to #gone leads nowhere and is not checked"]);
    assert!(verdict(&json!({"allOf": [{"pattern": ahead}, {"maxLength": 1}]}), &json!("xx")).is_err());
}

#[test]
fn what_breaks_a_rule_is_told_with_its_place_and_what_is_wanted() {
    let at = |rule: Value| json!({"properties": {"a/b": {"items": rule}}});
    let value = |item: Value| json!({"a/b": [item]});
    told(at(json!({"pattern": "^x"})), value(json!("y")), "/a~1b/0: it does not match the pattern ^x");
    told(at(json!({"multipleOf": 2})), value(json!(3)), "/a~1b/0: 3 is no multiple of 2");
    told(at(json!({"minimum": 4})), value(json!(3)), "/a~1b/0: 3 breaks `minimum` (4)");
    told(at(json!({"enum": ["a", 2]})), value(json!(3)), "/a~1b/0: it is none of the values it may be: \"a\", 2");
    told(at(json!({"const": null})), value(json!(3)), "/a~1b/0: it is not the one value it must be, null");
    told(
        at(json!({"minLength": 2})),
        value(json!("x")),
        "/a~1b/0: it has 1 characters, which is outside of its bounds (at least 2)",
    );
    told(
        json!({"contains": {"type": "string"}}),
        json!([1]),
        "the whole value: 0 of its items are as wanted, and at least 1 must be",
    );
    told(
        json!({"propertyNames": {"maxLength": 1}}),
        json!({"ab": 1}),
        "/ab: its name does not fit: it has 2 characters, which is outside of its bounds (at most 1)",
    );
    told(json!({"unevaluatedProperties": false}), json!({"a": 1}), "/a: it is not in the schema");
    told(json!({"dependencies": {"a": ["b"]}}), json!({"a": 1}), "the whole value: `b` is missing beside `a`");
}

#[test]
fn hostile_schemas_come_to_an_end() {
    let round = json!({"$ref": "#"});
    assert_eq!(verdict(&round, &json!(1)), Err(SchemaMismatch::Endless));
    let mut bomb = serde_json::Map::new();
    for step in 0..60 {
        let next = json!({"$ref": format!("#/$defs/s{}", step + 1)});
        bomb.insert(format!("s{step}"), json!({"allOf": [next, next]}));
    }
    assert_eq!(verdict(&json!({"$ref": "#/$defs/s0", "$defs": bomb}), &json!(1)), Err(SchemaMismatch::Endless));
    let large = "a".repeat(4 << 20);
    let slow = json!({"pattern": "(a?){200}a{200}b$"});
    assert!(matches!(verdict(&slow, &json!(large)), Ok(notes) if notes.len() == 1));
    let huge = json!({"pattern": "((a{1000}){1000}){1000}"});
    assert!(matches!(verdict(&huge, &json!("a")), Ok(notes) if notes.len() == 1));
    let many: serde_json::Map<String, Value> =
        (0..3000).map(|n| (format!("(a{{100}}){{9}}{n}"), json!(true))).collect();
    assert_eq!(verdict(&json!({"patternProperties": many}), &json!({"a": 1})), Err(SchemaMismatch::Endless));
    let deep =
        (0..60).fold(json!({}), |inner, _| json!({"unevaluatedProperties": false, "allOf": [inner], "anyOf": [true]}));
    assert!(verdict(&deep, &json!({})).is_err_and(|why| why == SchemaMismatch::Endless));
    let dynamic: serde_json::Map<String, Value> = (0..2000)
        .map(|n| (n.to_string(), json!({"$id": format!("urn:{n}"), "$dynamicAnchor": format!("a{n}"), "$dynamicRef": format!("urn:{}#a{}", n + 1, n + 1)})))
        .collect();
    assert!(
        verdict(&json!({"$ref": "urn:0", "$defs": dynamic}), &json!({}))
            .is_err_and(|why| why == SchemaMismatch::Endless)
    );
}

/// A schema of the words that servers use, and of those they hardly do.
fn schema() -> impl Strategy<Value = Value> {
    let number = prop_oneof![(-2..4).prop_map(|number| json!(number)), Just(json!(0.5)), Just(json!(1.0))];
    let patterns = || prop::sample::select(vec!["^a", "b$", "[ab]{2}", "^$", "a|c", "^.b"]);
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        prop::sample::select(vec!["string", "number", "integer", "boolean", "null", "object", "array"])
            .prop_map(|kind| json!({"type": kind})),
        vec(scalar(), 1..3).prop_map(|values| json!({"enum": values})),
        scalar().prop_map(|value| json!({"const": value})),
        patterns().prop_map(|pattern| json!({"pattern": pattern})),
        number.clone().prop_map(|low| json!({"exclusiveMinimum": low})),
        number.prop_map(|low| json!({"minimum": low, "maximum": 2})),
        prop::sample::select(vec![json!(2), json!(0.5), json!(0.1)]).prop_map(|step| json!({"multipleOf": step})),
        prop::sample::select(vec!["#/$defs/one", "#/$defs/two", "#anchor"]).prop_map(|to| json!({"$ref": to})),
        (0..3u8).prop_map(|count| json!({"minProperties": count, "uniqueItems": true})),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        let many = || vec(inner.clone(), 1..3);
        let names = || btree_map("[abc]", inner.clone(), 0..3);
        prop_oneof![
            (names(), vec("[abc]", 0..2), inner.clone()).prop_map(|(names, mut required, more)| {
                required.dedup();
                json!({"properties": names, "required": required, "additionalProperties": more})
            }),
            (names(), btree_map(patterns(), inner.clone(), 1..3)).prop_map(
                |(names, patterns)| json!({"properties": names, "patternProperties": patterns})
            ),
            (many(), inner.clone()).prop_map(|(first, rest)| json!({"prefixItems": first, "items": rest})),
            (inner.clone(), 0..3u8, 1..3u8)
                .prop_map(|(rule, least, most)| json!({"contains": rule, "minContains": least, "maxContains": most})),
            many().prop_map(|all| json!({"allOf": all})),
            many().prop_map(|any| json!({"anyOf": any})),
            many().prop_map(|one| json!({"oneOf": one})),
            inner.clone().prop_map(|not| json!({"not": not})),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| json!({"if": a, "then": b, "else": c})),
            inner.clone().prop_map(|names| json!({"propertyNames": names})),
            (names(), btree_map("[abc]", vec("[abc]", 1..2), 0..2))
                .prop_map(|(schemas, needed)| json!({"dependentSchemas": schemas, "dependentRequired": needed})),
            (many(), names(), inner.clone()).prop_map(
                |(any, names, rest)| json!({"anyOf": any, "properties": names, "unevaluatedProperties": rest})
            ),
            (many(), inner.clone(), inner.clone()).prop_map(
                |(first, wanted, rest)| json!({"prefixItems": first, "anyOf": [{"contains": wanted}, true], "unevaluatedItems": rest})
            ),
        ]
    })
}

/// What the older drafts wrote otherwise.
fn older_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["string", "integer", "object", "array"]).prop_map(|kind| json!({"type": kind})),
        prop::sample::select(vec!["#/definitions/one", "#/definitions/two"])
            .prop_map(|to| json!({"$ref": to, "type": "null"})),
        scalar().prop_map(|value| json!({"enum": [value]})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            (vec(inner.clone(), 1..3), inner.clone())
                .prop_map(|(items, more)| json!({"items": items, "additionalItems": more})),
            btree_map("[abc]", inner.clone(), 0..3).prop_map(|rules| json!({"dependencies": rules})),
            vec("[abc]", 1..2).prop_map(|names| json!({"dependencies": {"a": names}})),
            btree_map("[abc]", inner.clone(), 0..3).prop_map(|names| json!({"properties": names})),
            inner.clone().prop_map(|not| json!({"not": not})),
        ]
    })
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-2..4).prop_map(Value::from),
        prop::sample::select(vec![json!(0.5), json!(1.0), json!(0.3), json!(2.5)]),
        "[abc]{0,3}".prop_map(Value::from),
    ]
}

fn instance() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[abc]{1,2}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// The schema with definitions, which do not refer to one another: round in circles, validators differ.
fn whole(root: Value, definitions: &str, one: &Value, two: &Value) -> Value {
    let mut root = if root.is_object() { root } else { json!({"allOf": [root]}) };
    let mut anchored = if two.is_object() { two.clone() } else { json!({"allOf": [two]}) };
    if definitions == "$defs" {
        anchored["$anchor"] = json!("anchor");
    }
    root[definitions] = json!({"one": one, "two": anchored});
    root
}

fn holds_reference(value: &Value) -> bool {
    value.to_string().contains("$ref")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn property_38_our_check_agrees_with_a_full_validator_on_every_word(
        root in schema(),
        one in schema().prop_filter("no circles", |schema| !holds_reference(schema)),
        two in schema().prop_filter("no circles", |schema| !holds_reference(schema)),
        values in vec(instance(), 1..8),
    ) {
        let written = whole(root, "$defs", &one, &two);
        let full = jsonschema::validator_for(&written).unwrap();
        for value in values {
            let ours = verdict(&written, &value);
            prop_assert_eq!(ours.is_ok(), full.is_valid(&value), "{} {} {:?}", written, value, ours);
        }
    }

    #[test]
    fn property_38_our_check_agrees_with_a_full_validator_on_older_drafts(
        root in older_schema(),
        one in older_schema().prop_filter("no circles", |schema| !holds_reference(schema)),
        two in older_schema().prop_filter("no circles", |schema| !holds_reference(schema)),
        draft in prop::sample::select(vec![DRAFT_4, "http://json-schema.org/draft-06/schema#", DRAFT_7]),
        values in vec(instance(), 1..8),
    ) {
        let mut written = whole(root, "definitions", &one, &two);
        written["$schema"] = json!(draft);
        let full = jsonschema::validator_for(&written).unwrap();
        for value in values {
            let ours = verdict(&written, &value);
            prop_assert_eq!(ours.is_ok(), full.is_valid(&value), "{} {} {:?}", written, value, ours);
        }
    }

    #[test]
    fn property_38_no_schema_and_no_value_makes_the_check_fail_otherwise(
        mut words in btree_map(testkit::text(), testkit::json_value(), 0..6),
        pattern in testkit::text(),
        value in testkit::json_value(),
    ) {
        words.insert("pattern".to_owned(), json!(pattern));
        words.insert("items".to_owned(), json!({"$ref": pattern}));
        let _ = verdict(&json!(words), &value);
    }
}
