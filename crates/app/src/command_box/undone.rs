//! What boxes have undone, for those whose commands run at the same time: what one of them found before its command may be what the
//! command of another had just made, and must not come back.
//!
//! The log lies in our own folder, which no command in a box can write.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ollm_store::{Bounds, Digest, Hasher, RotatingLog, digest_bytes};
use serde_json::{Value, json};

use super::content::{Content, put_back, set_aside};

const BOUNDS: Bounds = Bounds { file: 64 << 10, files: 2 };

/// The changes that boxes undo from some time on.
#[derive(Debug, Default)]
pub(super) struct UndoneChanges {
    /// None where a command could write it: everybody decides alone then.
    log: Option<RotatingLog>,
    since: u64,
}

/// How a change was undone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Undone {
    /// What was there before is there again; the changed one may be here.
    Restored(Option<PathBuf>),
    /// What is there now was moved here.
    Aside(PathBuf),
    /// Another box has undone it, and it is as that one left it.
    Already,
}

impl UndoneChanges {
    /// Those from now on, by the log in our own folder.
    pub(super) fn from_now(own: &Path) -> UndoneChanges {
        UndoneChanges { log: Some(RotatingLog::new(own.join("state/box"), "undone.jsonl", BOUNDS)), since: now() }
    }

    /// Puts back what was at a path, unless that was the work of a command whose box has undone it since.
    pub(super) fn undo(&self, path: &Path, before: Option<&Content>, found: Option<&Content>) -> io::Result<Undone> {
        let left = self.left(path);
        let is_ours = left.as_ref().is_none_or(|left| *left == state(before));
        let undone = match (before, found) {
            _ if !is_ours && left == Some(state(found)) => return Ok(Undone::Already),
            (Some(before), _) if is_ours => Undone::Restored(put_back(path, before, found)?),
            (_, Some(_)) => Undone::Aside(set_aside(path)?),
            (_, None) => return Ok(Undone::Already),
        };
        self.note(path, before.filter(|_| is_ours));
        Ok(undone)
    }

    /// How another box has left a path since, if one has undone a change there.
    fn left(&self, path: &Path) -> Option<String> {
        let path = name(path);
        let lines = self.log.as_ref()?.lines().ok()?.map_while(Result::ok);
        let entries = lines.filter_map(|line| serde_json::from_slice::<Value>(&line).ok());
        // The newest comes first.
        let text = |entry: &Value, key: &str| entry.get(key)?.as_str().map(str::to_owned);
        let is_since = |entry: &Value| entry.get("at").and_then(Value::as_u64).is_some_and(|at| at >= self.since);
        let entry = entries.take_while(is_since).find(|entry| text(entry, "path").as_ref() == Some(&path))?;
        text(&entry, "left")
    }

    /// What cannot be noted is undone all the same.
    fn note(&self, path: &Path, left: Option<&Content>) {
        let line = json!({"at": now(), "path": name(path), "left": state(left)}).to_string();
        let _ = self.log.as_ref().map(|log| log.append(&line));
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A path is no text, and nobody has to read it here.
fn name(path: &Path) -> String {
    digest_bytes(path.as_os_str().as_bytes()).hex()
}

/// What is at a path, in few letters.
fn state(content: Option<&Content>) -> String {
    content.map_or_else(|| "absent".to_owned(), |content| digest(content).to_string())
}

fn digest(content: &Content) -> Digest {
    let hasher = Hasher::new();
    let hasher = match content {
        Content::File { bytes, mode } => hasher.field("file", bytes).field("mode", &mode.to_le_bytes()),
        Content::Link(target) => hasher.field("link", target.as_os_str().as_bytes()),
        Content::Folder { mode, entries } => {
            let folder = hasher.field("folder", &mode.to_le_bytes());
            entries.iter().fold(folder, |folder, (name, content)| {
                folder.field("name", name.as_bytes()).digest("content", &digest(content))
            })
        }
        Content::Opaque(state) => hasher.field("opaque", format!("{state:?}").as_bytes()),
    };
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(text: &str) -> Content {
        Content::File { bytes: text.as_bytes().into(), mode: 0o644 }
    }

    #[test]
    fn what_one_box_has_undone_does_not_come_back_by_another() {
        let folder = tempfile::tempdir().unwrap();
        let [evil, mine, more] = ["evil", "mine", "more"].map(file);
        let read = |path: &Path| fs::read_to_string(path).ok();
        let first = UndoneChanges::from_now(folder.path());
        let second = UndoneChanges::from_now(folder.path());
        // The first one found nothing, the second one what the first command had made.
        let path = folder.path().join("absent");
        fs::write(&path, "evil").unwrap();
        assert!(matches!(first.undo(&path, None, Some(&evil)), Ok(Undone::Aside(_))));
        assert!(matches!(second.undo(&path, Some(&evil), None), Ok(Undone::Already)));
        fs::write(&path, "more").unwrap();
        assert!(matches!(second.undo(&path, Some(&evil), Some(&more)), Ok(Undone::Aside(_))));
        assert_eq!(read(&path), None);
        // The first one found something that is there again.
        let path = folder.path().join("there");
        assert!(matches!(first.undo(&path, Some(&mine), None), Ok(Undone::Restored(None))));
        for before in [None, Some(&evil)] {
            assert!(matches!(second.undo(&path, before, Some(&mine)), Ok(Undone::Already)));
        }
        fs::write(&path, "more").unwrap();
        assert!(matches!(second.undo(&path, Some(&mine), Some(&more)), Ok(Undone::Restored(Some(_)))));
        assert_eq!(read(&path).as_deref(), Some("mine"));
        // Who begins later knows nothing of it.
        assert!(matches!(
            UndoneChanges::from_now(folder.path()).undo(&path, Some(&evil), Some(&mine)),
            Ok(Undone::Restored(_))
        ));
    }
}
