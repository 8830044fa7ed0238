//! Converts fields between the wire and the event: their paths, and the form of their values.

use serde_json::{Map, Value, json};

use super::{Field, FieldForm};
use crate::dialect::{from_millis, to_millis};

impl Field {
    pub(super) fn read(&self, data: &mut Map<String, Value>) {
        let value = match self.form {
            FieldForm::First if get(data, self.canonical).is_some() => None,
            FieldForm::First => get(data, self.wire).and_then(|list| list.get(0)).cloned(),
            FieldForm::Candidate | FieldForm::Parts | FieldForm::PartsIfNone | FieldForm::MessageOf => {
                get(data, self.wire).cloned()
            }
            _ => take(data, self.wire),
        };
        let Some(value) = value else { return };
        let value = match self.form {
            FieldForm::Millis => match value.as_i64() {
                Some(millis) => from_millis(millis).map(Value::from),
                None => Some(value),
            },
            FieldForm::Candidate => candidate(&value).map(Value::from),
            FieldForm::Parts | FieldForm::PartsIfNone => texts(&value).map(Value::from),
            FieldForm::MessageOf => message(&value).map(Value::from),
            FieldForm::Message if value.is_string() => Some(json!({"message": value})),
            FieldForm::Same | FieldForm::First | FieldForm::Message | FieldForm::JsonText => Some(value),
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
                // The number of attempts is more than the agent's format can hold.
                set(data, self.canonical, value);
            }
            FieldForm::Message => {
                let message = value.get("message").cloned();
                set(data, self.wire, message.unwrap_or_else(|| if value.is_object() { "".into() } else { value }));
            }
            // The agent's original value has more content than this text.
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
            FieldForm::MessageOf if get(data, self.wire).and_then(message).is_some_and(|text| value == text) => {}
            // Only an object can hold a message.
            FieldForm::MessageOf if parent(data, self.wire).is_some_and(|parent| !parent.is_object()) => {
                set(data, self.canonical, value);
            }
            FieldForm::MessageOf => set(data, self.wire, json!({"message": value})),
            FieldForm::First if get(data, self.wire).is_some_and(Value::is_array) => {}
            FieldForm::First => set(data, self.wire, json!([value])),
            FieldForm::JsonText if value.is_string() => set(data, self.wire, value),
            FieldForm::JsonText => set(data, self.wire, value.to_string().into()),
            FieldForm::PartsIfNone => {}
        }
    }
}

/// The message of an error; `None` if there is none.
fn message(error: &Value) -> Option<String> {
    match error {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.get("message").and_then(Value::as_str).map_or_else(|| other.to_string(), str::to_owned)),
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

/// The value that contains the value at a path.
fn parent<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    path.rsplit_once('.').and_then(|(parent, _)| get(object, parent))
}

/// Removes and returns the value at a path, and removes an object that is empty then.
pub(super) fn take(object: &mut Map<String, Value>, path: &str) -> Option<Value> {
    let Some((first, rest)) = path.split_once('.') else { return object.shift_remove(path) };
    let inner = object.get_mut(first)?.as_object_mut()?;
    let value = take(inner, rest)?;
    if inner.is_empty() {
        object.shift_remove(first);
    }
    Some(value)
}

/// Sets the value at a path. Replaces anything on the path that is not an object.
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
