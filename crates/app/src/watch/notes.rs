//! Notes about changes that hooks were told of, for other programs that watch the same project. So no program tells a
//! change again, and a program that takes over misses none.
//!
//! A program writes a note before and after it tells hooks of a file. In between, other programs leave the file alone,
//! because hooks may be writing it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ollm_protocol::Event;
use ollm_store::raw::random_name;
use ollm_store::{Bounds, RotatingLog, StatKey};
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use super::share;
use crate::app_context::AppContext;

const FILE: &str = "told.jsonl";
const BOUNDS: Bounds = Bounds { file: 256 << 10, files: 16 };
/// Hooks that run longer are no longer waited for.
const LONGEST_RUN: Duration = Duration::from_mins(10);

/// The notes of a project.
#[derive(Debug)]
pub(super) struct Notes {
    log: RotatingLog,
    /// The newest note that was read.
    seen: Option<String>,
    /// The state of the notes' file at the last reading.
    read: Option<StatKey>,
    /// The files that hooks are now being told of: by which process, and since when.
    open: HashMap<PathBuf, (Option<Pid>, Instant)>,
}

/// One line.
#[derive(Debug)]
struct Note {
    id: String,
    path: PathBuf,
    /// The process that is telling hooks; `None` once it has told them.
    teller: Option<i32>,
    /// The file's stamp at that time; `None` if the file was gone.
    key: Option<StatKey>,
}

impl Notes {
    /// The notes that are written from now on.
    pub(super) fn from_now(folder: &Path) -> Notes {
        let mut notes = Notes { log: log(folder), seen: None, read: None, open: HashMap::new() };
        // Notes that cannot be read now cannot be read later.
        let newest = notes.log.lines().ok().and_then(|mut lines| lines.find_map(|line| Note::read(&line.ok()?)));
        notes.seen = newest.map(|note| note.id);
        notes
    }

    /// Adds a note that hooks were told of a file.
    pub(super) fn add(&self, path: &Path) {
        // Without the note, another program may tell the change again; a missed change would be worse.
        let _ = self.log.append(&Note::line(path, None));
    }

    /// The files that other programs have told hooks of since the last call, with their stamps at that time.
    pub(super) fn told(&mut self) -> Vec<(PathBuf, Option<StatKey>)> {
        let now = std::fs::metadata(self.log.path()).ok().map(|meta| StatKey::of(&meta));
        if now == self.read {
            return Vec::new();
        }
        self.read = now;
        let (lines, seen) = (self.log.lines().into_iter().flatten().flatten(), self.seen.take());
        let new = lines.filter_map(|line| Note::read(&line)).take_while(|note| Some(&note.id) != seen.as_ref());
        let new: Vec<Note> = new.collect();
        self.seen = new.first().map(|note| note.id.clone()).or(seen);
        let mut told = Vec::new();
        for note in new.into_iter().rev() {
            if let Some(teller) = note.teller {
                self.open.insert(note.path, (Pid::from_raw(teller), Instant::now()));
            } else {
                self.open.remove(&note.path);
                told.push((note.path, note.key));
            }
        }
        told
    }

    /// Whether another process is telling hooks of a file right now.
    pub(super) fn is_being_told(&mut self, path: &Path) -> bool {
        let Some((teller, since)) = self.open.get(path) else { return false };
        let lives = teller.is_some_and(|teller| test_kill_process(teller).is_ok());
        if lives && since.elapsed() < LONGEST_RUN {
            return true;
        }
        self.open.remove(path);
        false
    }
}

impl Note {
    fn line(path: &Path, teller: Option<u32>) -> String {
        let key = key_of(path).map(|key| json!([key.dev, key.ino, key.size, key.mtime_ns, key.ctime_ns]));
        json!({"id": random_name(), "path": path_json(path), "teller": teller, "key": key}).to_string()
    }

    fn read(line: &[u8]) -> Option<Note> {
        let note: Value = serde_json::from_slice(line).ok()?;
        let teller = note.get("teller").and_then(Value::as_i64).and_then(|teller| i32::try_from(teller).ok());
        let key = match note.get("key")?.as_array().map(Vec::as_slice) {
            Some([dev, ino, size, mtime, ctime]) => Some(StatKey {
                dev: dev.as_u64()?,
                ino: ino.as_u64()?,
                size: size.as_u64()?,
                mtime_ns: mtime.as_i64()?,
                ctime_ns: ctime.as_i64()?,
            }),
            _ => None,
        };
        let id = note.get("id")?.as_str()?.to_owned();
        Some(Note { id, path: path_of(note.get("path")?)?, teller, key })
    }
}

/// A path as text, or as bytes if it is no text.
fn path_json(path: &Path) -> Value {
    path.to_str().map_or_else(|| path.as_os_str().as_bytes().into(), Value::from)
}

fn path_of(value: &Value) -> Option<PathBuf> {
    if let Some(text) = value.as_str() {
        return Some(text.into());
    }
    let bytes = value.as_array()?.iter().map(|byte| u8::try_from(byte.as_u64()?).ok());
    Some(OsString::from_vec(bytes.collect::<Option<Vec<u8>>>()?).into())
}

/// Notes that hooks are being told of a file. Dropping it notes that they were told.
#[derive(Debug)]
pub struct FileNote {
    log: RotatingLog,
    path: PathBuf,
}

impl FileNote {
    /// Writes the first note about an event, if it is about a file and a program watches the project.
    pub fn begin(event: &Event, context: &AppContext) -> Option<FileNote> {
        let path = event.text("path").filter(|_| event.kind.is_file())?;
        let folder = share::folder(context).filter(|folder| share::is_watched_at(folder))?;
        let path = context.cwd.join(event.text("cwd").unwrap_or_default()).join(path);
        // The file may be gone, but its folder still has a path without links.
        let parent = path.parent().and_then(|folder| folder.canonicalize().ok());
        let path = parent.zip(path.file_name()).map_or(path.clone(), |(folder, name)| folder.join(name));
        let note = FileNote { log: log(&folder), path };
        let _ = note.log.append(&Note::line(&note.path, Some(std::process::id())));
        Some(note)
    }
}

impl Drop for FileNote {
    fn drop(&mut self) {
        let _ = self.log.append(&Note::line(&self.path, None));
    }
}

/// The stamp of a path.
pub(super) fn key_of(path: &Path) -> Option<StatKey> {
    std::fs::symlink_metadata(path).ok().map(|meta| StatKey::of(&meta))
}

fn log(folder: &Path) -> RotatingLog {
    RotatingLog::new(folder.to_owned(), FILE, BOUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_note_is_read_once_and_only_those_that_came_later() {
        let folder = tempfile::tempdir().unwrap();
        let before = Notes::from_now(&folder.path().join("notes"));
        before.add(Path::new("/p/old"));
        let mut notes = Notes::from_now(&folder.path().join("notes"));
        assert_eq!(notes.told(), []);
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        before.add(&file);
        let gone = PathBuf::from(OsString::from_vec(b"/p/g\xffne".to_vec()));
        before.add(&gone);
        assert_eq!(notes.told(), [(file.clone(), key_of(&file)), (gone, None)]);
        assert_eq!(notes.told(), []);
    }

    #[test]
    fn a_file_is_left_alone_until_its_hooks_have_run_or_their_process_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("notes");
        let (mut notes, path) = (Notes::from_now(&place), Path::new("/p/a"));
        let note = |teller| log(&place).append(&Note::line(path, Some(teller))).unwrap();
        note(std::process::id());
        assert_eq!(notes.told(), []);
        assert!(notes.is_being_told(path));
        notes.add(path);
        assert_eq!(notes.told(), [(path.to_owned(), None)]);
        assert!(!notes.is_being_told(path));
        // No process has this number.
        note(i32::MAX.cast_unsigned());
        notes.told();
        assert!(!notes.is_being_told(path));
    }
}
