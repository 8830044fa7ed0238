//! The parts of a manifest, each a list of keys with one row per key. The reader, the JSON Schema and the reference
//! derive from these rows.

use ollm_condition::nearest;
use serde_json::{Map, Value, json};

use super::check::Check;
use super::name::{PLAIN, is_plain};
use crate::mcp::or_null;
use crate::node::{Cursor, Node};

/// A map in a manifest, whose keys are read into a `T`.
pub(super) struct ManifestPart<T: 'static> {
    /// Its name; empty for the manifest itself.
    pub(super) name: &'static str,
    /// A description for messages: `a setting`.
    pub(super) what: &'static str,
    /// The smallest valid example.
    pub(super) example: &'static str,
    /// Its keys.
    pub(super) rows: &'static [PartRow<T>],
    /// The message for an unknown key, if it may be more than a typo.
    pub(super) refusal: Option<&'static str>,
    /// The key that promises something. A slip for it is refused, other unknown keys are ignored.
    pub(super) promise: Option<&'static str>,
}

/// One key of a part.
pub(super) struct PartRow<T: 'static> {
    pub(super) key: ManifestKey,
    pub(super) kind: RowKind<T>,
}

/// A key of a manifest, for the reference.
#[derive(Clone, Copy, Debug)]
pub struct ManifestKey {
    /// Its name.
    pub name: &'static str,
    /// Its description, in a sentence or two.
    pub about: &'static str,
    /// The text about its default; `None` for a required key.
    pub default: Option<&'static str>,
}

/// The form of a key's value, and the field for it.
pub(super) enum RowKind<T: 'static> {
    /// Any value, which other code or other programs read.
    Elsewhere(fn() -> Value),
    /// Non-empty text.
    Words(fn(&mut T, String)),
    /// The name of a setting or a skill.
    Name(fn(&mut T, String)),
    /// True or false.
    Flag(fn(&mut T, bool)),
    /// A list of texts.
    Texts(fn(&mut T, Vec<String>)),
    /// Text, or a map that other tools write instead; its first key counts.
    About(&'static [&'static str], fn(&mut T, String)),
    /// A form that only this key has: its reader, and its schema.
    Own(fn(&mut Check<'_>, &Cursor<'_>, &mut T), fn() -> Value),
}

/// A required key.
pub(super) const fn required<T>(name: &'static str, about: &'static str, kind: RowKind<T>) -> PartRow<T> {
    PartRow { key: ManifestKey { name, about, default: None }, kind }
}

/// An optional key, with the text about its default.
pub(super) const fn optional<T>(
    name: &'static str,
    about: &'static str,
    default: &'static str,
    kind: RowKind<T>,
) -> PartRow<T> {
    PartRow { key: ManifestKey { name, about, default: Some(default) }, kind }
}

impl<T> ManifestPart<T> {
    /// Its keys, after the name of the part.
    pub(super) fn keys(&'static self) -> (&'static str, Vec<ManifestKey>) {
        (self.name, self.rows.iter().map(|row| row.key).collect())
    }

    fn names(&self) -> Vec<&'static str> {
        self.rows.iter().map(|row| row.key.name).collect()
    }

    /// Reads it into a value; returns whether it is a map.
    pub(super) fn read(&self, check: &mut Check<'_>, at: &Cursor<'_>, into: &mut T) -> bool {
        let is_map = check.map(at, self.what, self.example, |check, key, at| {
            match (self.rows.iter().find(|row| row.key.name == key), self.refusal) {
                (Some(row), _) => row.read(check, at, self.what, into),
                (None, None) => match nearest(key, self.names()).filter(|near| self.promise == Some(*near)) {
                    Some(near) => {
                        check.refuse(at, format!("unknown key `{key}`"), Some(&format!("did you mean `{near}`?")));
                    }
                    None => check.unknown(at, &self.names()),
                },
                (None, Some(why)) => {
                    check.refuse(at, format!("`{key}` {why}"), Some(&format!("there are {}", self.names().join(", "))));
                }
            }
        });
        for row in self.rows.iter().filter(|row| is_map && row.key.default.is_none()) {
            check.demand(at, self.what.trim_start_matches("a "), row.key.name);
        }
        is_map
    }

    /// The JSON Schema of it.
    pub(super) fn schema(&self) -> Value {
        let property = |row: &PartRow<T>| {
            let mut schema = row.schema();
            if row.key.default.is_some() {
                schema = or_null(schema);
            }
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("description".to_owned(), row.key.about.into());
            }
            (row.key.name.to_owned(), schema)
        };
        let required = self.rows.iter().filter(|row| row.key.default.is_none()).map(|row| row.key.name);
        json!({
            "type": "object",
            "required": required.collect::<Vec<_>>(),
            "additionalProperties": {"type": "null"},
            "properties": self.rows.iter().map(property).collect::<Map<_, _>>(),
        })
    }
}

impl<T> PartRow<T> {
    fn read(&self, check: &mut Check<'_>, at: &Cursor<'_>, of: &str, into: &mut T) {
        match self.kind {
            RowKind::Elsewhere(_) => {}
            RowKind::Words(set) => check.words(at).into_iter().for_each(|text| set(into, text)),
            RowKind::Name(set) => match check.words(at) {
                Some(name) if is_plain(&name) => set(into, name),
                Some(name) => check.refuse(at, format!("`{name}` cannot be the name of {of}"), Some(PLAIN)),
                None => {}
            },
            RowKind::Flag(set) => set(into, check.flag(at)),
            RowKind::Texts(set) => set(into, check.texts(at)),
            RowKind::About(keys, set) => about(check, at, keys).into_iter().for_each(|text| set(into, text)),
            RowKind::Own(read, _) => read(check, at, into),
        }
    }

    fn schema(&self) -> Value {
        match self.kind {
            RowKind::Words(_) => words(),
            RowKind::Name(_) => plain(),
            RowKind::Flag(_) => json!({"type": "boolean"}),
            RowKind::Texts(_) => json!({"type": "array", "items": {"type": "string"}}),
            RowKind::About(keys, _) => {
                let known: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), words())).collect();
                json!({"anyOf": [words(), {"type": "object", "properties": known}]})
            }
            RowKind::Elsewhere(schema) | RowKind::Own(_, schema) => schema(),
        }
    }
}

fn about(check: &mut Check<'_>, at: &Cursor<'_>, keys: &[&str]) -> Option<String> {
    if !matches!(at.node, Node::Map(_)) {
        return check.words(at);
    }
    let texts: Vec<(String, String)> = at
        .entries()
        .filter(|(key, _)| keys.contains(key))
        .filter_map(|(key, value)| Some((key.to_owned(), check.words(&value)?)))
        .collect();
    keys.first().and_then(|main| texts.into_iter().find(|(key, _)| key == main)).map(|(_, text)| text)
}

fn words() -> Value {
    json!({"type": "string", "pattern": r"\S"})
}

/// The name of a setting, a skill or a server.
pub(super) fn plain() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"})
}
