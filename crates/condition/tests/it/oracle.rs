//! Our conditions against the `cel` crate: the same expression over the same data has the same answer.
//!
//! Expressions are random, most of them well typed. Where the two are known to differ, `deviates` says so.

use std::sync::Arc;

use cel::{Context, Env, ExecutionError, Program, extensions};
use ollm_condition::Fault;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::cases;
use crate::truths::{self, TRUE};

/// A type of the language to make expressions of.
#[derive(Clone, Copy, Debug)]
enum Want {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    List,
    Map,
    Any,
}

const WANTS: [Want; 7] = [Want::Bool, Want::Int, Want::Uint, Want::Double, Want::Text, Want::List, Want::Map];

fn leaf(want: Want) -> BoxedStrategy<String> {
    let select = |choices: &[&str]| {
        let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
        prop::sample::select(choices).boxed()
    };
    match want {
        Want::Bool => select(&["true", "false", "data.yes", "has(data.a)", "has(data.nope)", "has(data.map.a)"]),
        Want::Int => select(&["0", "1", "-1", "7", "9223372036854775807", "-9223372036854775808", "data.int", "0x1F"]),
        Want::Uint => select(&["0u", "1u", "7u", "18446744073709551615u"]),
        Want::Double => select(&["0.0", "1.0", "-1.5", "1e3", "1e300", "data.double", "9007199254740993.0"]),
        Want::Text => {
            select(&["''", "'a'", "'abc'", "\"b,c\"", "r'\\d'", "'ü🦀'", "'7'", "' x '", "data.text", "event"])
        }
        Want::List => select(&["[]", "[1, 2]", "['a', 'b']", "[1, 'a', null]", "data.list", "[1u, 1.0]"]),
        Want::Map => select(&["{}", "{'a': 1}", "{1: 'a'}", "data", "data.map", "{true: []}"]),
        Want::Any => select(&["null", "data.a", "data.b", "data.nope", "data.list[0]", "b'a'", "x"]),
    }
}

/// An expression, mostly of the type that is wanted.
fn expression(want: Want, depth: u32) -> BoxedStrategy<String> {
    if depth == 0 {
        return leaf(want);
    }
    let of = |want: Want| expression(want, depth - 1);
    let stray = prop::sample::select(WANTS.to_vec()).prop_flat_map(move |want| expression(want, depth - 1));
    let choice = (of(Want::Bool), of(want), of(want)).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})"));
    let typed = match want {
        Want::Bool => truths(depth),
        Want::Int => prop_oneof![
            (of(Want::Int), operator(&["+", "-", "*", "/", "%"]), of(Want::Int)).prop_map(infix),
            of(Want::Int).prop_map(|value| format!("-({value})")),
            of(Want::Text).prop_map(|text| format!("size({text})")),
            of(Want::List).prop_map(|list| format!("({list}).size()")),
            prop_oneof![of(Want::Double), of(Want::Uint), of(Want::Text)].prop_map(|value| format!("int({value})")),
            (of(Want::Text), of(Want::Text)).prop_map(|(text, part)| format!("({text}).indexOf({part})")),
        ]
        .boxed(),
        Want::Uint => prop_oneof![
            (of(Want::Uint), operator(&["+", "-", "*", "/", "%"]), of(Want::Uint)).prop_map(infix),
            prop_oneof![of(Want::Int), of(Want::Text)].prop_map(|value| format!("uint({value})")),
        ]
        .boxed(),
        Want::Double => prop_oneof![
            (of(Want::Double), operator(&["+", "-", "*", "/"]), of(Want::Double)).prop_map(infix),
            prop_oneof![of(Want::Int), of(Want::Text)].prop_map(|value| format!("double({value})")),
        ]
        .boxed(),
        Want::Text => texts(depth),
        Want::List => lists(depth),
        Want::Map => {
            (of(Want::Any), of(Want::Any)).prop_map(|(one, two)| format!("{{'a': {one}, 'b': {two}}}")).boxed()
        }
        Want::Any => prop_oneof![
            (of(Want::List), of(Want::Int)).prop_map(|(list, index)| format!("({list})[{index}]")),
            (of(Want::Map), of(Want::Text)).prop_map(|(map, key)| format!("({map})[{key}]")),
            of(Want::Map).prop_map(|map| format!("({map}).a")),
        ]
        .boxed(),
    };
    prop_oneof![3 => leaf(want), 8 => typed, 1 => choice, 1 => stray].boxed()
}

fn truths(depth: u32) -> BoxedStrategy<String> {
    let of = |want: Want| expression(want, depth - 1);
    let same = prop::sample::select(WANTS.to_vec())
        .prop_flat_map(move |want| (expression(want, depth - 1), operator(&["==", "!="]), expression(want, depth - 1)));
    let ordered = prop::sample::select(vec![Want::Int, Want::Uint, Want::Double, Want::Text]);
    let ordered = (ordered.clone(), ordered).prop_flat_map(move |(left, right)| {
        (expression(left, depth - 1), operator(&["<", "<=", ">", ">=", "=="]), expression(right, depth - 1))
    });
    let macros = operator(&["all", "exists", "exists_one"]);
    prop_oneof![
        (of(Want::Bool), operator(&["&&", "||"]), of(Want::Bool)).prop_map(infix),
        of(Want::Bool).prop_map(|value| format!("!({value})")),
        same.prop_map(infix),
        ordered.prop_map(infix),
        (of(Want::Any), operator(&["in"]), of(Want::List)).prop_map(infix),
        (of(Want::Text), operator(&["in"]), of(Want::Map)).prop_map(infix),
        (of(Want::Text), operator(&["contains", "startsWith", "endsWith", "matches"]), of(Want::Text))
            .prop_map(|(text, name, part)| format!("({text}).{name}({part})")),
        (of(Want::List), macros, of(Want::Bool)).prop_map(|(list, name, test)| format!("({list}).{name}(x, {test})")),
        (of(Want::List), operator(&["all", "exists"]), operator(&["==", "<"]), of(Want::Int))
            .prop_map(|(list, name, sign, value)| format!("({list}).{name}(x, x {sign} {value})")),
        of(Want::Map).prop_map(|map| format!("has(({map}).a)")),
        (of(Want::Any), operator(&["int", "string", "list", "bool", "double", "map", "uint", "null_type"]))
            .prop_map(|(value, kind)| format!("type({value}) == {kind}")),
        of(Want::Text).prop_map(|text| format!("bool({text})")),
    ]
    .boxed()
}

fn texts(depth: u32) -> BoxedStrategy<String> {
    let of = |want: Want| expression(want, depth - 1);
    prop_oneof![
        (of(Want::Text), operator(&["+"]), of(Want::Text)).prop_map(infix),
        prop_oneof![of(Want::Int), of(Want::Uint), of(Want::Bool)].prop_map(|value| format!("string({value})")),
        (of(Want::Text), operator(&["lowerAscii", "upperAscii", "trim"]))
            .prop_map(|(text, name)| format!("({text}).{name}()")),
        (of(Want::Text), of(Want::Text), of(Want::Text)).prop_map(|(a, b, c)| format!("({a}).replace({b}, {c})")),
        (of(Want::List), of(Want::Text)).prop_map(|(list, text)| format!("({list}).join({text})")),
        (of(Want::Text), of(Want::Int)).prop_map(|(text, at)| format!("({text}).charAt({at})")),
        (of(Want::Text), of(Want::Int), of(Want::Int)).prop_map(|(text, a, b)| format!("({text}).substring({a}, {b})")),
    ]
    .boxed()
}

fn lists(depth: u32) -> BoxedStrategy<String> {
    let of = |want: Want| expression(want, depth - 1);
    prop_oneof![
        (of(Want::List), operator(&["+"]), of(Want::List)).prop_map(infix),
        prop::collection::vec(of(Want::Any), 0..3).prop_map(|parts| format!("[{}]", parts.join(", "))),
        (of(Want::List), of(Want::Bool)).prop_map(|(list, test)| format!("({list}).filter(x, {test})")),
        (of(Want::List), of(Want::Any)).prop_map(|(list, value)| format!("({list}).map(x, {value})")),
        (of(Want::List), of(Want::Bool), of(Want::Any))
            .prop_map(|(list, test, value)| format!("({list}).map(x, {test}, {value})")),
        (of(Want::Text), of(Want::Text)).prop_map(|(text, at)| format!("({text}).split({at})")),
    ]
    .boxed()
}

fn operator(signs: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    prop::sample::select(signs).prop_map(str::to_owned)
}

fn infix((left, sign, right): (String, String, String)) -> String {
    format!("({left} {sign} {right})")
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..10_i64).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec![0.0, 1.0, 1.5, -2.25, 1e18]).prop_map(Value::from),
        "[a-c0-9ü ,]{0,4}".prop_map(Value::from),
    ]
}

fn data() -> impl Strategy<Value = Map<String, Value>> {
    let list = prop::collection::vec(scalar(), 0..4);
    let map = prop::collection::btree_map("[ab]", scalar(), 0..3);
    let typed = (any::<bool>(), -3..100_i64, -2.0..2.0_f64, "[a-c7,ü ]{0,5}");
    (scalar(), scalar(), list, map, typed).prop_map(|(a, b, list, map, (yes, int, double, text))| {
        let mut data = Map::new();
        for (name, value) in [("a", a), ("b", b), ("list", json!(list)), ("map", json!(map))] {
            data.insert(name.to_owned(), value);
        }
        for (name, value) in
            [("yes", json!(yes)), ("int", json!(int)), ("double", json!(double)), ("text", json!(text))]
        {
            data.insert(name.to_owned(), value);
        }
        data
    })
}

/// The data for the oracle, with whole numbers as ints, as we have them.
fn theirs(json: &Value) -> cel::Value {
    match json {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => cel::Value::Int(value),
            (None, Some(value)) => cel::Value::UInt(value),
            (None, None) => cel::Value::Float(number.as_f64().unwrap()),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(elements) => cel::Value::List(Arc::new(elements.iter().map(theirs).collect())),
        Value::Object(fields) => {
            let fields: std::collections::HashMap<String, cel::Value> =
                fields.iter().map(|(name, value)| (name.clone(), theirs(value))).collect();
            fields.into()
        }
    }
}

/// What the oracle says; nothing stands for every kind of fault.
fn oracle(text: &str, data: &Map<String, Value>) -> Option<bool> {
    asked(text, data).ok().flatten()
}

/// What the oracle says, or the fault it has.
fn asked(text: &str, data: &Map<String, Value>) -> Result<Option<bool>, ExecutionError> {
    let mut env = Env::stdlib();
    env.add_extension(extensions::strings).unwrap();
    let mut context = Context::with_env(Arc::new(env));
    context.add_variable_from_value("event", "before_tool");
    context.add_variable_from_value("data", theirs(&Value::Object(data.clone())));
    let Ok(program) = Program::compile(text) else { return Ok(None) };
    Ok(match program.execute(&context)? {
        cel::Value::Bool(answer) => Some(answer),
        _ => None,
    })
}

/// Whether the oracle finds no order among numbers because one is none; the specification answers false.
fn lacks_order(text: &str, data: &Map<String, Value>) -> bool {
    let Err(ExecutionError::NoSuchOverload(missing)) = asked(text, data) else { return false };
    // Numbers of all kinds are in one order, so it can only be for what they are.
    let missing = format!("{missing:?}");
    let compares = ["_<_", "_<=_", "_>_", "_>=_"].iter().any(|sign| missing.contains(&format!("function: \"{sign}\"")));
    let types =
        ["int", "uint", "double"].map(|one| ["int", "uint", "double"].map(|two| format!("[\"{one}\", \"{two}\"]")));
    compares && types.as_flattened().iter().any(|types| missing.contains(types))
}

fn ours(text: &str, data: &Map<String, Value>) -> Result<bool, Fault> {
    crate::asked(text, data).map_err(|fault| fault.fault)
}

/// Where the two are known to differ.
fn deviates(fault: &Fault) -> bool {
    match fault {
        // The oracle adds the keys of a map to a list; the specification has no such overload.
        Fault::NoOverload { operation: "+", found } => found == "list and map",
        _ => false,
    }
}

/// Whether a whole number that no double stands for may be compared with a double, before which the oracle rounds it.
fn may_round(text: &str, data: &Map<String, Value>) -> bool {
    let large = |digits: &str| digits.parse::<u64>().map_or(!digits.is_empty(), |number| number > 1 << 53);
    let all = format!("{text} {}", Value::Object(data.clone()));
    let has_large = all.split(|letter: char| !letter.is_ascii_digit()).any(large);
    has_large && ["==", "!=", "<", ">", " in "].iter().any(|sign| text.contains(sign))
}

/// Parts of the table of truths that the oracle sees differently.
const TABLE_DEVIATIONS: &[&str] = &[
    // The oracle rounds an int before it compares it with a double; the specification has one line of numbers.
    "9007199254740993",
    // The oracle has no order for what is not a number; the specification answers false.
    "double('NaN')",
];

#[test]
fn the_oracle_agrees_with_the_table() {
    let data = truths::data();
    for text in TRUE {
        let agrees = oracle(text, &data) == Some(true);
        assert_eq!(agrees, !TABLE_DEVIATIONS.iter().any(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn what_is_not_a_number_is_in_no_order_for_us_and_a_fault_for_the_oracle() {
    let (text, data) = ("[1].exists_one(x, (0u < (0.0 + (0.0 / 0.0))))", truths::data());
    assert_eq!((ours(text, &data), oracle(text, &data)), (Ok(false), None));
    assert!(lacks_order(text, &data), "{:?}", asked(text, &data));
}

#[test]
fn the_least_double_is_no_int() {
    for text in ["int(-9223372036854775808.0) == 0", "int(9223372036854775808.0) == 0"] {
        assert!(ours(text, &truths::data()).is_err() && oracle(text, &truths::data()).is_none(), "{text}");
    }
    let least = "int(-9223372036854774784.0) < 0";
    assert_eq!((ours(least, &truths::data()), oracle(least, &truths::data())), (Ok(true), Some(true)));
}

#[test]
fn the_oracle_rounds_a_whole_number_before_it_compares_it() {
    let (text, data) = ("(0.0 - double(-9223372036854775808)) <= -((1 + -9223372036854775808))", truths::data());
    assert_eq!((ours(text, &data), oracle(text, &data)), (Ok(false), Some(true)));
    assert!(may_round(text, &data) && !may_round("1 < 2.0", &Map::new()));
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..cases(1024) })]

    #[test]
    fn the_oracle_agrees(text in expression(Want::Bool, 3), data in data()) {
        // A variable of a macro that is used outside of it is an error of the text, which the oracle finds when asked.
        let text = format!("[data.b].exists_one(x, {text})");
        let ours = ours(&text, &data);
        prop_assume!(!ours.as_ref().is_err_and(deviates) && !lacks_order(&text, &data));
        let theirs = oracle(&text, &data);
        prop_assume!(ours.as_ref().ok() == theirs.as_ref() || !may_round(&text, &data));
        prop_assert_eq!(ours.clone().ok(), theirs, "{:?} for {} over {:?}", ours, text, data);
    }
}
