//! Fields: where they stand on the wire and in the event, and how their values differ.

use serde_json::{Map, Value, json};

use super::{Field, FieldForm};
use crate::dialect::{from_millis, to_millis};

impl Field {
    pub(super) fn read(&self, data: &mut Map<String, Value>) {
        let value = match self.form {
            FieldForm::First if get(data, self.canonical).is_some() => None,
            FieldForm::First => get(data, self.wire).and_then(|list| list.get(0)).cloned(),
            FieldForm::Candidate | FieldForm::Parts => get(data, self.wire).cloned(),
            _ => take(data, self.wire),
        };
        let Some(value) = value else { return };
        let value = match self.form {
            FieldForm::Millis => match value.as_i64() {
                Some(millis) => from_millis(millis).map(Value::from),
                None => Some(value),
            },
            FieldForm::Candidate => candidate(&value).map(Value::from),
            FieldForm::Parts => texts(&value).map(Value::from),
            FieldForm::Message if value.is_string() => Some(json!({"message": value})),
            FieldForm::Same | FieldForm::First | FieldForm::Message => Some(value),
            FieldForm::Again => match get(data, self.canonical) {
                Some(known) => Some(known.clone()),
                None => Some(u8::from(value == Value::Bool(true)).into()),
            },
        };
        if let Some(value) = value {
            set(data, self.canonical, value);
        }
    }

    pub(super) fn write(&self, data: &mut Map<String, Value>, value: Option<Value>) {
        let Some(value) = value else { return };
        match self.form {
            FieldForm::Same => set(data, self.wire, value),
            FieldForm::Millis => match to_millis(&value) {
                Some(millis) => set(data, self.wire, millis.into()),
                None => set(data, self.wire, value),
            },
            FieldForm::Again => {
                set(data, self.wire, value.as_u64().is_some_and(|attempt| attempt > 0).into());
                // How often is more than the agent tells.
                set(data, self.canonical, value);
            }
            FieldForm::Message => {
                let message = value.get("message").cloned();
                set(data, self.wire, message.unwrap_or_else(|| if value.is_object() { "".into() } else { value }));
            }
            // What the agent sent says more than its text.
            FieldForm::Candidate if get(data, self.wire).and_then(candidate).is_some_and(|text| value == text) => {}
            FieldForm::Candidate => {
                set(
                    data,
                    &format!("{}.candidates", self.wire),
                    json!([{"content": {"role": "model", "parts": [value]}}]),
                );
            }
            FieldForm::Parts if get(data, self.wire).and_then(texts).is_some_and(|text| value == text) => {}
            FieldForm::Parts => set(data, self.wire, json!([{"type": "text", "text": value}])),
            FieldForm::First if get(data, self.wire).is_some_and(Value::is_array) => {}
            FieldForm::First => set(data, self.wire, json!([value])),
        }
    }
}

/// The text of a model's first candidate.
fn candidate(answer: &Value) -> Option<String> {
    texts(answer.pointer("/candidates/0/content/parts")?)
}

/// The text in a list of parts.
fn texts(parts: &Value) -> Option<String> {
    let texts = parts.as_array()?.iter().filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()));
    Some(texts.collect())
}

/// The value at a path.
pub(super) fn get<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        Some((first, rest)) => get(object.get(first)?.as_object()?, rest),
        None => object.get(path),
    }
}

/// Takes the value at a path; an object that is empty then goes with it.
pub(super) fn take(object: &mut Map<String, Value>, path: &str) -> Option<Value> {
    let Some((first, rest)) = path.split_once('.') else { return object.shift_remove(path) };
    let inner = object.get_mut(first)?.as_object_mut()?;
    let value = take(inner, rest)?;
    if inner.is_empty() {
        object.shift_remove(first);
    }
    Some(value)
}

/// Sets the value at a path; what is in the way and no object is replaced.
pub(super) fn set(object: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        object.insert(path.to_owned(), value);
        return;
    };
    let inner = object.entry(first).or_insert_with(|| json!({}));
    if !inner.is_object() {
        *inner = json!({});
    }
    if let Some(inner) = inner.as_object_mut() {
        set(inner, rest, value);
    }
}
