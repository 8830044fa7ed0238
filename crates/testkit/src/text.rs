//! Texts and JSON values, friendly and hostile.

use proptest::prelude::*;
use serde_json::{Map, Value};

/// Texts that have broken programs before: quotes, shell code, templates, JSON, control, bidi and invisible characters.
const HOSTILE: &[&str] = &[
    "",
    " ",
    "\0",
    "\u{feff}",
    "\u{202e}txt.exe",
    "\u{1b}[2J",
    "a\r\nb",
    "\u{fffd}",
    "👩‍👩‍👧 ß İ",
    "'; touch pwned #",
    "$(touch pwned) `touch pwned`",
    "\"\\\"\\\\",
    "{{tool_name}}",
    "{\"continue\":true}",
    "{\"continue\":false",
    "}]\"",
    "-rf",
    "../../etc/passwd",
    "%PATH% !x!",
    "null",
];

/// Texts that have broken programs before, and arbitrary ones.
pub fn hostile_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(HOSTILE).prop_map(str::to_owned),
        4 => any::<String>(),
        1 => (prop::sample::select(HOSTILE), 1..400_usize).prop_map(|(text, times)| text.repeat(times)),
    ]
}

/// A text, plain or hostile.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z0-9_./ -]{1,20}", hostile_text()]
}

/// A moment in ISO 8601, in any offset and precision.
pub fn timestamp() -> impl Strategy<Value = String> {
    let date = (1971..2100_u16, 1..=12_u8, 1..=28_u8);
    let time = (0..24_u8, 0..60_u8, 0..60_u8);
    let rest = prop::sample::select(&["Z", ".5Z", ".123Z", ".123456789Z", "+02:00", ".25-05:30"][..]);
    (date, time, rest).prop_map(|((year, month, day), (hour, minute, second), rest)| {
        format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{rest}")
    })
}

/// A number that every JSON reader reads back unchanged.
pub(crate) fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-100_000..100_000_i32).prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
    ]
}

/// Any JSON value, a few levels deep.
pub fn json_value() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number(), text().prop_map(Value::from),];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..3).prop_map(|entries| Map::from_iter(entries).into()),
        ]
    })
}

/// Any JSON object.
pub fn json_object() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((text(), json_value()), 0..3).prop_map(Map::from_iter)
}
