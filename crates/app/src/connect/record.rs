//! Records our changes in other agents' settings, so that they can be undone exactly.

use std::path::{Path, PathBuf};

use ollm_catalog::connection::MadeParts;
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

/// Our record of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Whether we created the file.
    pub(super) created: bool,
    /// The file's earlier content, as long as no other program wrote to it.
    pub(super) original: Original,
    /// The digest of the content that we wrote.
    pub(super) written: Digest,
    /// The parts that we had to add for our entries.
    pub(super) made: MadeParts,
}

/// The content of a file before our change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Original {
    /// The file did not exist.
    Missing,
    /// The content is saved in this copy.
    Kept(PathBuf),
    /// Another program wrote to it between our changes: only our entries may be removed.
    Unknown,
}

impl Record {
    /// The record of a file, if we wrote to it and did not undo that.
    pub(super) fn of(key: &Key<'_>, context: &AppContext) -> Option<Record> {
        read(load(context).get(&key.text())?)
    }
}

/// Records or forgets a change of a file; `before` is its earlier content.
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
        // An unreadable record is no reason to fail: our entries can be found in the files too.
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
        made: MadeParts { hooks: made.get("hooks")?.as_bool()?, events },
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
