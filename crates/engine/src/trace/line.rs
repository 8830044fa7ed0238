//! Writes JSON into one line, without secrets and with bounded lengths.

use std::borrow::Cow;
use std::fmt::{Display, Write};
use std::sync::Arc;

use ollm_protocol::Hook;
use ollm_store::{Redactor, escape_for_json, hide_assignments, looks_secret};
use serde_json::{Map, Value};

use super::NAME;

/// Texts up to this many bytes are searched for secrets whole. Of longer ones, only the shown part is searched.
const SHORT: usize = 4 << 10;
/// The longest text of an event's data that is shown, in bytes of JSON.
const VALUE: usize = 1 << 10;
/// Replaces a text whose key looks like a secret.
const REDACTED: &str = "[redacted]";
/// The deepest nesting of data that is written.
const DEEPEST: usize = 12;

/// The size of a value that was kept whole.
#[derive(Clone, Copy)]
pub(super) struct Whole {
    /// How long it is.
    pub(super) bytes: usize,
    /// Whether secrets were removed.
    pub(super) redacted: bool,
}

pub(super) struct Line<'a> {
    json: String,
    redactor: &'a Redactor,
}

impl<'a> Line<'a> {
    pub(super) fn new(redactor: &'a Redactor) -> Line<'a> {
        Line { json: String::with_capacity(2 << 10), redactor }
    }

    pub(super) fn finish(self) -> String {
        self.json
    }

    pub(super) fn object(&mut self, fields: impl FnOnce(&mut Line<'a>)) {
        self.begin();
        self.json.push('{');
        fields(self);
        self.json.push('}');
    }

    /// The name of the next value. It must be one of our own names, as it is not escaped.
    pub(super) fn key(&mut self, name: &'static str) -> &mut Line<'a> {
        self.begin();
        self.json.extend(["\"", name, "\":"]);
        self
    }

    /// A list that ends early, with a note, if it would grow too long.
    pub(super) fn list<T>(&mut self, most: usize, items: &[T], mut write: impl FnMut(&mut Line<'a>, &T)) {
        self.begin();
        self.json.push('[');
        let start = self.json.len();
        for (at, item) in items.iter().enumerate() {
            let before = self.json.len();
            write(self, item);
            if self.json.len() - start > most {
                self.json.truncate(before);
                self.note(format_args!("{} more", items.len() - at));
                break;
            }
        }
        self.json.push(']');
    }

    pub(super) fn ids(&mut self, hooks: &[Arc<Hook>]) {
        self.list(super::PLAN / 2, hooks, |line, hook| line.text(hook.id(), NAME));
    }

    pub(super) fn optional(&mut self, text: Option<&str>, most: usize) {
        match text {
            Some(text) => self.text(text, most),
            None => self.plain("null"),
        }
    }

    pub(super) fn maybe(&mut self, value: Option<impl Display>) {
        match value {
            Some(value) => self.plain(value),
            None => self.plain("null"),
        }
    }

    /// A value whose text is valid JSON: a number, a boolean, null.
    pub(super) fn plain(&mut self, value: impl Display) {
        self.begin();
        // Writing to a String cannot fail.
        let _ = write!(self.json, "{value}");
    }

    /// A text of at most `most` bytes of JSON, with a note if it was cut.
    pub(super) fn text(&mut self, text: &str, most: usize) {
        self.begin();
        self.json.push('"');
        let start = self.json.len();
        for char in clean(text, most, self.redactor).chars() {
            let before = self.json.len();
            push_escaped(char, &mut self.json);
            if self.json.len() - start > most {
                self.json.truncate(before);
                // Writing to a String cannot fail.
                let _ = write!(self.json, "… [cut, {} bytes in all]", text.len());
                break;
            }
        }
        self.json.push('"');
    }

    /// An event's data, within `most` bytes.
    pub(super) fn data(&mut self, data: &Map<String, Value>, most: usize) {
        let end = self.json.len() + most;
        self.map(data, end, DEEPEST);
    }

    /// A whole object without secrets, unless it would be longer than `most` bytes.
    pub(super) fn whole(&mut self, name: &'static str, object: &Map<String, Value>, most: usize) -> Option<Whole> {
        let before = self.json.len();
        let redactor = self.redactor;
        let mut value = Value::Object(object.clone());
        let redacted = hide(&mut value, redactor);
        self.key(name).json.push_str(&escape_for_json(&value.to_string()));
        let bytes = self.json.len() - before;
        if bytes > most {
            self.json.truncate(before);
            return None;
        }
        Some(Whole { bytes, redacted })
    }

    fn map(&mut self, map: &Map<String, Value>, end: usize, depth: usize) {
        self.begin();
        self.json.push('{');
        for (at, (key, value)) in map.iter().enumerate() {
            if self.json.len() >= end {
                self.key("…").note(format_args!("{} more", map.len() - at));
                break;
            }
            self.text(key, NAME);
            self.json.push(':');
            match value {
                value if looks_secret(key) && holds_text(value) => self.text(REDACTED, NAME),
                _ => self.value(value, end, depth),
            }
        }
        self.json.push('}');
    }

    fn value(&mut self, value: &Value, end: usize, depth: usize) {
        match value {
            Value::Array(_) | Value::Object(_) if depth == 0 => self.note(format_args!("nested too deep")),
            Value::Object(map) => self.map(map, end, depth - 1),
            Value::Array(items) => self.items(items, end, depth - 1),
            Value::String(text) => self.text(text, VALUE.min(end.saturating_sub(self.json.len()))),
            Value::Number(number) => self.digits(&number.to_string()),
            Value::Bool(_) | Value::Null => self.plain(value),
        }
    }

    fn items(&mut self, items: &[Value], end: usize, depth: usize) {
        self.begin();
        self.json.push('[');
        for (at, item) in items.iter().enumerate() {
            if self.json.len() >= end {
                self.note(format_args!("{} more", items.len() - at));
                break;
            }
            self.value(item, end, depth);
        }
        self.json.push(']');
    }

    /// If a number is a secret, the placeholder text replaces it.
    fn digits(&mut self, digits: &str) {
        match self.redactor.redact_str(digits) {
            Cow::Borrowed(number) => self.plain(number),
            Cow::Owned(hidden) => self.text(&hidden, NAME),
        }
    }

    fn note(&mut self, note: std::fmt::Arguments<'_>) {
        self.plain(format_args!("\"… [cut: {note}]\""));
    }

    /// Adds a comma if a value stands before.
    fn begin(&mut self) {
        if !matches!(self.json.as_bytes().last(), None | Some(b'{' | b'[' | b':')) {
            self.json.push(',');
        }
    }
}

/// Hides secrets in a value, and returns whether there were any.
fn hide(value: &mut Value, redactor: &Redactor) -> bool {
    let text = match value {
        Value::String(text) => hide_assignments(&redactor.redact_str(text)).into_owned(),
        Value::Number(number) => match redactor.redact_str(&number.to_string()) {
            Cow::Borrowed(_) => return false,
            Cow::Owned(hidden) => hidden,
        },
        Value::Array(items) => {
            // Visits every item, also after the first secret.
            return items.iter_mut().map(|item| hide(item, redactor)).filter(|hidden| *hidden).count() > 0;
        }
        Value::Object(map) => return hide_in(map, redactor),
        Value::Null | Value::Bool(_) => return false,
    };
    let hidden = value.as_str() != Some(&text);
    *value = text.into();
    hidden
}

/// Both keys and values may be secrets.
fn hide_in(map: &mut Map<String, Value>, redactor: &Redactor) -> bool {
    let mut hidden = false;
    for (key, mut value) in std::mem::take(map) {
        if looks_secret(&key) && holds_text(&value) {
            (value, hidden) = (REDACTED.into(), true);
        } else {
            hidden |= hide(&mut value, redactor);
        }
        let clean = redactor.redact_str(&key).into_owned();
        hidden |= clean != key;
        map.insert(clean, value);
    }
    hidden
}

/// Whether a value holds text at any depth, as opposed to only numbers and booleans.
fn holds_text(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(items) => items.iter().any(holds_text),
        Value::Object(map) => map.values().any(holds_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A text without secrets. Of a long text, only as much as can be shown.
fn clean<'t>(text: &'t str, most: usize, redactor: &Redactor) -> Cow<'t, str> {
    if text.len() <= most.max(SHORT) {
        return match redactor.redact_str(text) {
            Cow::Borrowed(clean) => hide_assignments(clean),
            Cow::Owned(clean) => Cow::Owned(hide_assignments(&clean).into_owned()),
        };
    }
    // The stream holds back a possible beginning of a secret, so bytes that it passed on are safe.
    let (mut stream, mut out) = (redactor.stream(), Vec::new());
    let mut chunks = text.as_bytes().chunks(SHORT);
    // One byte more than can be shown makes the writer add the note about the cut.
    while out.len() <= most {
        let Some(chunk) = chunks.next() else {
            stream.finish(&mut out);
            break;
        };
        stream.push(chunk, &mut out);
    }
    Cow::Owned(hide_assignments(&String::from_utf8_lossy(&out)).into_owned())
}

/// Writes one character into a JSON text. Invisible and reordering characters become escapes.
fn push_escaped(char: char, json: &mut String) {
    match char {
        '"' => json.push_str("\\\""),
        '\\' => json.push_str("\\\\"),
        '\n' => json.push_str("\\n"),
        '\r' => json.push_str("\\r"),
        '\t' => json.push_str("\\t"),
        ' '..='~' => json.push(char),
        _ => json.push_str(&escape_for_json(char.encode_utf8(&mut [0; 4]))),
    }
}
