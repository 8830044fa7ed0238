//! Sessions on disk: one owner-only file of JSON lines each, only ever appended to.
//!
//! Every line is written with one call and counts only once its newline is there. So a kill at any moment loses at most
//! the current line. An incomplete last line is ignored with a note, and cut off before the next line is appended.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ollm_store::Redactor;
use rustix::fs::OFlags;
use serde_json::{Map, Value, json};

use crate::context::SavedCounts;
use crate::conversation::{Conversation, Squeeze};
use crate::message::Message;

/// The version of the format.
const VERSION: u64 = 1;
/// The largest transcript that is loaded.
const LARGEST: u64 = 256 << 20;

/// Pauses before a lock counts as taken: a program that is just starting keeps our files open until it runs.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(40),
    Duration::from_millis(80),
    Duration::from_millis(160),
];

/// The header of a session's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The session's id.
    pub id: String,
    /// When it began, in ISO 8601.
    pub started: String,
    /// The folder in which it began.
    pub cwd: String,
    /// The model with which it began.
    pub model: String,
}

/// Why a session cannot be saved or loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The operating system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// No session has this id.
    #[error("there is no session `{0}`")]
    Unknown(String),
    /// Several session ids begin with the given text.
    #[error("{count} sessions begin with `{id}`; write more of the id")]
    Ambiguous {
        /// The given text.
        id: String,
        /// How many there are.
        count: usize,
    },
    /// Another process uses the session.
    #[error("session `{0}` is in use by another process; end that one first")]
    Busy(String),
    /// The file is not a valid session.
    #[error("{} is no session: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// A session's file, open for appending.
#[derive(Debug)]
pub struct Transcript {
    file: File,
    path: PathBuf,
    length: u64,
    redactor: Arc<Redactor>,
}

/// A saved session.
#[derive(Clone, Debug)]
pub struct SavedSession {
    /// Its header.
    pub header: Header,
    /// The conversation, ready to continue.
    pub messages: Vec<Message>,
    /// What was learnt of the model's window and of its server's counts.
    pub counts: Option<SavedCounts>,
    /// All lines of the file.
    pub entries: Vec<Value>,
    /// Notes on what was unusual in the file.
    pub notes: Vec<String>,
}

/// One line of the list of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its header.
    pub header: Header,
    /// How many messages it has.
    pub messages: usize,
    /// The first prompt of the person.
    pub first: Option<String>,
}

impl Transcript {
    /// Creates the file of a new session.
    pub fn create(folder: &Path, header: &Header, redactor: Arc<Redactor>) -> Result<Transcript, TranscriptError> {
        let path = place(folder, &header.id)?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| failed("create the folder", folder, source))?;
        let opened = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let file = opened.map_err(|source| failed("create", &path, source))?;
        lock(&file, &header.id, &path)?;
        let mut transcript = Transcript { file, path, length: 0, redactor };
        transcript.append(&json!({
            "version": VERSION,
            "session": header.id,
            "startTime": header.started,
            "cwd": header.cwd,
            "model": header.model,
        }))?;
        Ok(transcript)
    }

    /// Opens the file of a session to continue it.
    pub fn resume(
        folder: &Path,
        id: &str,
        redactor: Arc<Redactor>,
    ) -> Result<(Transcript, SavedSession), TranscriptError> {
        let id = find(folder, id)?;
        let path = place(folder, &id)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let file = options.open(&path).map_err(|source| failed("open", &path, source))?;
        lock(&file, &id, &path)?;
        let (saved, length) = read(&file, &path)?;
        file.set_len(length).map_err(|source| failed("mend", &path, source))?;
        Ok((Transcript { file, path, length, redactor }, saved))
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one line; after an error the file has its earlier content.
    pub fn append(&mut self, entry: &Value) -> Result<(), TranscriptError> {
        let line = format!("{}\n", redacted(entry, &self.redactor));
        match self.file.write_all(line.as_bytes()) {
            Ok(()) => {
                self.length += line.len() as u64;
                Ok(())
            }
            Err(source) => {
                // An incomplete line would damage the next one. If even this fails, loading ignores the incomplete
                // line.
                let _ = self.file.set_len(self.length);
                Err(failed("write", &self.path, source))
            }
        }
    }
}

/// The value with secrets hidden in every text; field names are ours and stay unchanged.
fn redacted(value: &Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => redactor.redact_str(text).into_owned().into(),
        Value::Array(values) => values.iter().map(|value| redacted(value, redactor)).collect(),
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), redacted(value, redactor))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Loads a session for reading; `id` may be the beginning of its id.
pub fn load(folder: &Path, id: &str) -> Result<SavedSession, TranscriptError> {
    let path = place(folder, &find(folder, id)?)?;
    let file = File::open(&path).map_err(|source| failed("open", &path, source))?;
    read(&file, &path).map(|(saved, _)| saved)
}

/// All sessions, the latest first, and notes on unreadable ones.
pub fn list(folder: &Path) -> Result<(Vec<Summary>, Vec<String>), TranscriptError> {
    let mut notes = Vec::new();
    let mut summaries = Vec::new();
    for id in ids(folder)? {
        match load(folder, &id) {
            Ok(saved) => summaries.push(summary(&saved)),
            Err(error) => notes.push(error.to_string()),
        }
    }
    summaries
        .sort_by(|one, other| (&other.header.started, &other.header.id).cmp(&(&one.header.started, &one.header.id)));
    Ok((summaries, notes))
}

fn summary(saved: &SavedSession) -> Summary {
    let prompts = saved.entries.iter().filter_map(|entry| entry.get("message"));
    let first = prompts.filter(|message| message.get("role").is_some_and(|role| role == "user")).find_map(|message| {
        let text = message.get("content")?.as_str()?;
        Some(ollm_store::cut(text.lines().next().unwrap_or_default(), 200).into_owned())
    });
    let messages = saved.entries.iter().filter(|entry| entry.get("message").is_some()).count();
    Summary { header: saved.header.clone(), messages, first }
}

/// The id of the session with this id or this beginning.
fn find(folder: &Path, id: &str) -> Result<String, TranscriptError> {
    let mut fitting: Vec<String> = ids(folder)?.into_iter().filter(|known| known.starts_with(id)).collect();
    if fitting.iter().any(|known| known == id) {
        return Ok(id.to_owned());
    }
    match (fitting.len(), fitting.pop()) {
        (1, Some(found)) if !id.is_empty() => Ok(found),
        (0, _) => Err(TranscriptError::Unknown(id.to_owned())),
        (count, _) => Err(TranscriptError::Ambiguous { id: id.to_owned(), count }),
    }
}

fn ids(folder: &Path) -> Result<Vec<String>, TranscriptError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed("list", folder, source)),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned)).collect())
}

fn place(folder: &Path, id: &str) -> Result<PathBuf, TranscriptError> {
    let plain = !id.is_empty() && id.len() <= 100 && id.chars().all(|char| char.is_ascii_alphanumeric() || char == '-');
    if plain { Ok(folder.join(format!("{id}.jsonl"))) } else { Err(TranscriptError::Unknown(id.to_owned())) }
}

fn lock(file: &File, id: &str, path: &Path) -> Result<(), TranscriptError> {
    for pause in PAUSES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => thread::sleep(pause),
            Err(TryLockError::Error(source)) => return Err(failed("lock", path, source)),
        }
    }
    Err(TranscriptError::Busy(id.to_owned()))
}

/// Reads a file to the end of its last complete line; also returns that position.
fn read(file: &File, path: &Path) -> Result<(SavedSession, u64), TranscriptError> {
    let mut bytes = Vec::new();
    let meta = file.metadata().map_err(|source| failed("inspect", path, source))?;
    if !meta.is_file() || meta.len() > LARGEST {
        return Err(unreadable(path, format!("it is no regular file of at most {LARGEST} bytes")));
    }
    file.take(LARGEST).read_to_end(&mut bytes).map_err(|source| failed("read", path, source))?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut notes = Vec::new();
    if whole < bytes.len() {
        notes.push(format!("the last line of {} is incomplete and ignored", path.display()));
    }
    bytes.truncate(whole);
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let first = lines.next().ok_or_else(|| unreadable(path, "it has no first line"))?;
    let header = header(path, first)?;
    let mut entries = Vec::new();
    for (at, line) in lines.enumerate() {
        match serde_json::from_slice(line) {
            Ok(entry) => entries.push(entry),
            Err(error) => notes.push(format!("{}:{}: no JSON, ignored: {error}", path.display(), at + 2)),
        }
    }
    let (messages, counts) = conversation(&entries);
    Ok((SavedSession { header, messages, counts, entries, notes }, whole as u64))
}

fn header(path: &Path, line: &[u8]) -> Result<Header, TranscriptError> {
    let fields: Map<String, Value> = serde_json::from_slice(line)
        .map_err(|error| unreadable(path, format!("its first line is no JSON: {error}")))?;
    match fields.get("version").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(other) => return Err(unreadable(path, format!("version {other} is newer than this program; update it"))),
        None => return Err(unreadable(path, "its first line has no version")),
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Header { id: text("session"), started: text("startTime"), cwd: text("cwd"), model: text("model") })
}

fn conversation(entries: &[Value]) -> (Vec<Message>, Option<SavedCounts>) {
    let mut talk = Conversation::default();
    let mut counts = None;
    for entry in entries {
        if let Some(saved) = entry.get("counts") {
            counts = SavedCounts::from_json(saved);
        }
        if let Some(message) = entry.get("message").and_then(Message::from_json) {
            talk.push(message);
        } else if let Some(squeeze) = entry.get("compressed").and_then(Squeeze::from_json) {
            talk.apply(&squeeze);
            counts.iter_mut().for_each(SavedCounts::forget_count);
        }
    }
    talk.mend();
    (talk.messages, counts)
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> TranscriptError {
    TranscriptError::Io { doing, path: path.to_owned(), source }
}

fn unreadable(path: &Path, why: impl Into<String>) -> TranscriptError {
    TranscriptError::Unreadable { path: path.to_owned(), why: why.into() }
}

#[cfg(test)]
pub(crate) mod tests;
