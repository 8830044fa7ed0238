//! What we wrote into other agents' settings, so that it can be taken out again to the letter.

use std::path::{Path, PathBuf};

use ollm_catalog::connection::Made;
use ollm_protocol::Code;
use ollm_store::{Digest, versioned};
use serde_json::{Map, Value, json};

use super::Scope;
use crate::app_context::AppContext;
use crate::error::AppError;

const VERSION: u32 = 1;
const LARGEST: u64 = 1 << 20;

/// A file that we wrote to.
pub(super) struct Key<'a> {
    pub(super) agent: &'a str,
    pub(super) scope: Scope,
    pub(super) file: &'a Path,
}

/// What is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Whether the file was not there before.
    pub(super) created: bool,
    /// What it was before us, as long as nobody else wrote to it.
    pub(super) original: Original,
    /// What we made of it.
    pub(super) written: Digest,
    /// What had to be made in it.
    pub(super) made: Made,
}

/// What a file was before us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Original {
    /// Nothing.
    Missing,
    /// What is kept in this copy.
    Kept(PathBuf),
    /// Somebody wrote to it between our changes: only our entries may be taken out.
    Unknown,
}

impl Record {
    /// What is known about a file, if we wrote to it and were not asked to take that back.
    pub(super) fn of(key: &Key<'_>, context: &AppContext) -> Option<Record> {
        read(load(context).get(&key.text())?)
    }
}

/// Remembers what was written to a file, or forgets it; `before` is what it held.
pub(super) fn keep(
    key: &Key<'_>,
    before: Option<Digest>,
    record: Option<&Record>,
    context: &AppContext,
) -> Result<(), AppError> {
    let key = key.text();
    let kept = versioned::renew(&path(context), VERSION, LARGEST, |document| {
        let mut document = document.unwrap_or_else(|| json!({"version": VERSION, "connections": {}}));
        let connections = document.as_object_mut().map(|map| map.entry("connections").or_insert_with(|| json!({})));
        if let Some(connections) = connections.and_then(Value::as_object_mut) {
            match (record, connections.get(&key).and_then(read)) {
                (Some(record), Some(first)) => {
                    let same = before == Some(first.written);
                    let original = if same { first.original } else { Original::Unknown };
                    drop(connections.insert(key, written(&Record { written: record.written, original, ..first })));
                }
                (Some(record), None) => drop(connections.insert(key, written(record))),
                (None, _) => drop(connections.shift_remove(&key)),
            }
        }
        Ok((Some(document), ()))
    });
    kept.map_err(|error| AppError::new(Code::NotWritten, error.to_string()))
}

impl Key<'_> {
    fn text(&self) -> String {
        format!("{} {} {}", self.agent, self.scope.name(), self.file.display())
    }
}

fn load(context: &AppContext) -> Map<String, Value> {
    match versioned::load(&path(context), VERSION, LARGEST) {
        versioned::Loaded::Current(document) => {
            document.get("connections").and_then(Value::as_object).cloned().unwrap_or_default()
        }
        // What is only remembered is not worth a refusal: entries are found in the files, too.
        _ => Map::new(),
    }
}

fn path(context: &AppContext) -> PathBuf {
    context.state().join("connections.json")
}

fn read(value: &Value) -> Option<Record> {
    let made = value.get("made")?;
    let events = made.get("events")?.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Some(Record {
        created: value.get("created")?.as_bool()?,
        original: match value.get("original")? {
            Value::Null => Original::Missing,
            Value::String(copy) => Original::Kept(copy.into()),
            _ => Original::Unknown,
        },
        written: value.get("written")?.as_str()?.parse().ok()?,
        made: Made { hooks: made.get("hooks")?.as_bool()?, events },
    })
}

fn written(record: &Record) -> Value {
    json!({
        "created": record.created,
        "original": match &record.original {
            Original::Missing => Value::Null,
            Original::Kept(copy) => copy.display().to_string().into(),
            Original::Unknown => false.into(),
        },
        "written": record.written.to_string(),
        "made": {"hooks": record.made.hooks, "events": record.made.events},
    })
}
