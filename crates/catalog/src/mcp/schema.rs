//! The JSON Schema of a server's declaration, for editors: the same in every file that declares servers.

use ollm_protocol::units;
use serde_json::{Map, Value, json};

use super::key::{SERVER_KEYS, ServerKey, ServerKeyKind, TextForm};
use super::read::{OTHER_TRANSPORTS, TRANSPORTS};
use crate::entry::snake;

const TIME: &str = units::DURATION_PATTERN;
const POSITIVE_TIME: &str = units::POSITIVE_DURATION_PATTERN;
const SIZE: &str = units::SIZE_PATTERN;
/// Text with something in it.
const WORD: &str = r"\S";
const ADDRESS: &str = r"^(https?://[^/?#\s]\S*|\$\{\S*)$";
const DOCUMENT: &str = r"^https://[^/\s]*/\S+$";
const REDIRECT: &str = r"^http://(localhost|127\.0\.0\.1):[1-9][0-9]{0,4}(/[^?# ]*)?$";

/// A value, or none: keys without one are not set.
pub(crate) fn or_null(mut schema: Value) -> Value {
    // A forbidden key must not hold null either.
    if schema.get("not").is_none()
        && let Some(kind) = schema.get_mut("type")
        && kind.is_string()
    {
        *kind = json!([kind.clone(), "null"]);
        return schema;
    }
    json!({"anyOf": [schema, {"type": "null"}]})
}

/// The declaration of one server, in the form in which it is read.
pub(crate) fn schema() -> Value {
    let mut schema = object(SERVER_KEYS);
    let has = |form: TextForm| {
        let is = move |row: &&ServerKey| matches!(row.kind, ServerKeyKind::Text(_, of, _) if of == form);
        any(SERVER_KEYS.iter().filter(is))
    };
    if let Some(schema) = schema.as_object_mut() {
        let about = "A server that is started by its command, or that is reached at its address.";
        schema.insert("description".to_owned(), about.into());
        schema.insert("oneOf".to_owned(), json!([has(TextForm::Program), has(TextForm::Address)]));
    }
    schema
}

/// A map with these keys and no others that have a value.
fn object(keys: &'static [ServerKey]) -> Value {
    let properties: Map<_, _> = keys.iter().flat_map(property).collect();
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": {"type": "null"}});
    let needing = keys.iter().filter_map(|row| Some((row, keys.iter().find(|key| Some(key.name) == row.needs)?)));
    let rules: Vec<Value> =
        needing.map(|(row, needs)| json!({"if": any([row].into_iter()), "then": any([needs].into_iter())})).collect();
    if let Some(schema) = schema.as_object_mut().filter(|_| !rules.is_empty()) {
        schema.insert("allOf".to_owned(), rules.into());
    }
    schema
}

/// A map in which one of these keys has a value, under any of its words.
fn any<'a>(keys: impl Iterator<Item = &'a ServerKey>) -> Value {
    let has = |word: String| json!({"required": [word], "properties": {word: {"type": "string"}}});
    json!({"anyOf": keys.flat_map(words).map(has).collect::<Vec<_>>()})
}

/// All the words for a key.
fn words(row: &ServerKey) -> Vec<String> {
    let mut words: Vec<String> =
        [row.name].iter().chain(row.aliases).flat_map(|word| [(*word).to_owned(), snake(word)]).collect();
    words.dedup();
    words
}

/// A key with what it holds and what it is for, under all the words for it; none of them has to have a value.
fn property(row: &ServerKey) -> Vec<(String, Value)> {
    let Some(schema) = holds(row).map(or_null) else { return Vec::new() };
    let described = |word: String| {
        let mut schema = schema.clone();
        if let Some(schema) = schema.as_object_mut() {
            let about = if word == row.name { row.about.to_owned() } else { format!("The same as `{}`.", row.name) };
            let unhonoured = row.unhonoured.map(|unhonoured| format!(" {}", unhonoured.sentence()));
            schema.insert("description".to_owned(), (about + &unhonoured.unwrap_or_default()).into());
            schema.extend(row.unhonoured.map(|_| ("deprecated".to_owned(), true.into())));
        }
        (word, schema)
    };
    words(row).into_iter().map(described).collect()
}

/// What a key holds; `None` where the declaration has no such key.
fn holds(row: &ServerKey) -> Option<Value> {
    let or_text = |number: Value, form: &str| json!({"anyOf": [number, text(form)]});
    let count = || json!({"type": "integer", "minimum": 0});
    Some(match row.kind {
        ServerKeyKind::Place => return None,
        // What would be refused is not offered.
        ServerKeyKind::Remark if row.unhonoured.is_some_and(|unhonoured| unhonoured.refused) => json!({"not": {}}),
        ServerKeyKind::Remark => json!({}),
        ServerKeyKind::Text(_, form, _) => text(match form {
            TextForm::Program | TextForm::Word => WORD,
            TextForm::Address => ADDRESS,
            TextForm::Document => DOCUMENT,
            TextForm::Redirect => REDIRECT,
        }),
        ServerKeyKind::Texts(..) | ServerKeyKind::Words(_) => json!({"type": "array", "items": {"type": "string"}}),
        ServerKeyKind::Variables(_) => pairs(r"^[^=\x00]+$", r"^[^\x00]*$"),
        ServerKeyKind::Headers(_) => pairs(r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", r"^[^\x00-\x08\x0a-\x1f\x7f]*$"),
        ServerKeyKind::Transport(_) => text(&transports()),
        ServerKeyKind::Flag(_) | ServerKeyKind::Switch(_) => json!({"type": "boolean"}),
        ServerKeyKind::Time(_) => or_text(json!({"type": "number", "exclusiveMinimum": 0}), POSITIVE_TIME),
        ServerKeyKind::Pause(_) => or_text(json!({"type": "number", "minimum": 0}), TIME),
        ServerKeyKind::Span(_) => text(POSITIVE_TIME),
        ServerKeyKind::Size(_) => or_text(count(), SIZE),
        ServerKeyKind::Count(_) => count(),
        ServerKeyKind::Port(_) => json!({"type": "integer", "minimum": 1, "maximum": u16::MAX}),
        ServerKeyKind::Section(keys, _) => object(keys),
    })
}

fn text(pattern: &str) -> Value {
    json!({"type": "string", "pattern": pattern})
}

fn pairs(name: &str, value: &str) -> Value {
    json!({"type": "object", "propertyNames": {"pattern": name}, "additionalProperties": text(value)})
}

/// The words for how a server is spoken to, in capital letters or not.
fn transports() -> String {
    let either = |letter: char| match letter.to_ascii_uppercase() {
        upper if upper == letter => letter.to_string(),
        upper => format!("[{letter}{upper}]"),
    };
    let words = TRANSPORTS.iter().chain(OTHER_TRANSPORTS.iter().map(|(theirs, _)| theirs));
    let words: Vec<String> = words.map(|word| word.chars().map(either).collect()).collect();
    format!("^({})$", words.join("|"))
}
