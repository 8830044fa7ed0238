//! Remembers the state of a project's files that hooks last heard of, and finds what changed since.
//!
//! It keeps the stamp of every file, the digest of most, and within a limit the text, for differences.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ollm_agent::unified_diff;
use ollm_protocol::{EventKind, FileChange};
use ollm_store::raw::read_regular;
use ollm_store::{Digest, StatKey, cut, digest_bytes};

use super::compare::time_of;

/// Of a larger file only the stamp is kept.
const LARGEST: u64 = 8 << 20;
/// A longer text gets no difference.
const LONGEST_TEXT: usize = 256 << 10;
/// The limit of all kept text.
const MOST_TEXT: usize = 64 << 20;
/// The longest text of a file in an event.
const LONGEST_CONTENT: usize = 64 << 10;
/// A change this short before a look may be followed by another one with the same stamp.
const GRAIN_NS: i64 = 50_000_000;

/// The earlier state of the files.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    files: BTreeMap<PathBuf, FileState>,
    /// The files whose text is kept, in the order of the looks.
    texts: BTreeMap<u64, PathBuf>,
    /// The count of looks.
    looks: u64,
    /// The size of the kept text in bytes.
    kept: usize,
}

/// The state of one file that hooks last heard of.
#[derive(Clone, Debug)]
struct FileState {
    key: StatKey,
    /// Whether the file may change while the stamp stays the same.
    is_racy: bool,
    digest: Option<Digest>,
    text: Option<KeptText>,
}

/// The text of a file, and the number of its look.
#[derive(Clone, Debug)]
struct KeptText {
    look: u64,
    text: Arc<str>,
}

/// The content of a path.
#[derive(Debug)]
enum PathContent {
    Nothing,
    File { key: StatKey, bytes: Option<Vec<u8>> },
}

impl Baseline {
    /// Adds a file with only its stamp, unless it is known.
    pub(super) fn add(&mut self, path: PathBuf, key: StatKey) {
        let state = FileState { key, is_racy: is_racy(&key), digest: None, text: None };
        self.files.entry(path).or_insert(state);
    }

    /// Whether hooks last heard of a file with this stamp, or that it is gone.
    pub(super) fn has_stamp(&self, path: &Path, key: Option<StatKey>) -> bool {
        self.files.get(path).map(|state| state.key) == key
    }

    /// Sets the stamp that hooks last heard of; `None` for a removed file.
    pub(super) fn set(&mut self, path: &Path, key: Option<StatKey>) {
        self.remove(path);
        if let Some(key) = key {
            self.add(path.to_owned(), key);
        }
    }

    /// How many files there are.
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// The files below a folder.
    pub(super) fn below(&self, folder: &Path) -> Vec<PathBuf> {
        let from = self.files.range::<Path, _>((Bound::Included(folder), Bound::Unbounded));
        from.map(|(path, _)| path).take_while(|path| path.starts_with(folder)).cloned().collect()
    }

    /// Whether a file with this stamp may differ from the known one.
    pub(super) fn differs(&self, path: &Path, key: &StatKey) -> bool {
        self.files.get(path).is_none_or(|state| state.key != *key || state.is_racy)
    }

    /// The files that are not in a list.
    pub(super) fn missing_in(&self, files: &BTreeMap<PathBuf, StatKey>) -> Vec<PathBuf> {
        self.files.keys().filter(|path| !files.contains_key(*path)).cloned().collect()
    }

    /// Forgets a file.
    pub(super) fn remove(&mut self, path: &Path) {
        if let Some(kept) = self.files.remove(path).and_then(|state| state.text) {
            self.kept -= kept.text.len();
            self.texts.remove(&kept.look);
        }
    }

    /// Reads a file of which only the stamp is known, so that a difference can be shown later. A file that changed
    /// meanwhile stays unread.
    pub(super) fn read(&mut self, path: &Path) {
        let Some(state) = self.files.get(path).filter(|state| state.digest.is_none()) else { return };
        let key = state.key;
        if let PathContent::File { key: now, bytes: Some(bytes) } = look(path)
            && now == key
        {
            self.store(path, key, Some(&bytes));
        }
    }

    /// The change of a file since hooks last heard of it. Its present state becomes the known one.
    pub(super) fn compare(&mut self, path: &Path, root: &Path) -> Option<FileChange> {
        let found = look(path);
        let before = self.files.get(path).cloned();
        match (before, found) {
            (None, PathContent::Nothing) => None,
            (Some(before), PathContent::Nothing) => {
                self.remove(path);
                let diff = before.text.map(|kept| unified_diff(&name(path, root), Some(&kept.text), None));
                Some(FileChange { diff, ..change(EventKind::FileDeleted, path, root) })
            }
            (before, PathContent::File { key, bytes }) => {
                let (digest, text) = self.store(path, key, bytes.as_deref());
                if before.as_ref().is_some_and(|before| before.is_same(&key, digest)) {
                    return None;
                }
                let kind = if before.is_some() { EventKind::FileEdited } else { EventKind::FileCreated };
                // The earlier text of a new file is known: it had none.
                let old = before.map_or(Some(None), |before| before.text.map(|kept| Some(kept.text)));
                let both = old.zip(text.as_deref().filter(|text| text.len() <= LONGEST_TEXT));
                let diff = both.map(|(old, new)| unified_diff(&name(path, root), old.as_deref(), Some(new)));
                let content = text.map(|text| cut(&text, LONGEST_CONTENT).into_owned());
                Some(FileChange { content, diff, size: key.size, ..change(kind, path, root) })
            }
        }
    }

    /// How often a file has changed since hooks last heard of it, through these states to the present one.
    pub(super) fn changes(&self, path: &Path, states: &[Digest]) -> usize {
        let known = self.files.get(path).and_then(|state| state.digest);
        let now = match look(path) {
            PathContent::File { bytes: Some(bytes), .. } => Some(digest_bytes(&bytes)),
            PathContent::File { bytes: None, .. } | PathContent::Nothing => None,
        };
        let all: Vec<Digest> = known.into_iter().chain(states.iter().copied()).chain(now).collect();
        all.windows(2).filter(|pair| pair.first() != pair.last()).count()
    }

    /// Makes the present state the known one without telling hooks, unless the file changed after this time or is gone.
    pub(super) fn absorb_before(&mut self, path: &Path, time: SystemTime) {
        if let PathContent::File { key, bytes } = look(path)
            && time_of(&key) <= time
        {
            self.store(path, key, bytes.as_deref());
        }
    }

    /// Makes the present state the known one without telling hooks.
    pub(super) fn absorb(&mut self, path: &Path) {
        match look(path) {
            PathContent::Nothing => self.remove(path),
            PathContent::File { key, bytes } => drop(self.store(path, key, bytes.as_deref())),
        }
    }

    /// Stores a file's state. Returns its digest, and its content if that is text.
    fn store(&mut self, path: &Path, key: StatKey, bytes: Option<&[u8]>) -> (Option<Digest>, Option<Arc<str>>) {
        self.remove(path);
        let digest = bytes.map(digest_bytes);
        let text = bytes.and_then(|bytes| str::from_utf8(bytes).ok()).filter(|text| !text.contains('\0'));
        let text: Option<Arc<str>> = text.map(Arc::from);
        self.looks += 1;
        let kept =
            text.clone().filter(|text| text.len() <= LONGEST_TEXT).map(|text| KeptText { look: self.looks, text });
        if let Some(KeptText { look, text }) = &kept {
            self.kept += text.len();
            self.texts.insert(*look, path.to_owned());
        }
        self.files.insert(path.to_owned(), FileState { key, is_racy: is_racy(&key), digest, text: kept });
        self.make_room();
        (digest, text)
    }

    /// Drops the texts with the oldest looks.
    fn make_room(&mut self) {
        while self.kept > MOST_TEXT {
            let Some((_, oldest)) = self.texts.pop_first() else { return };
            if let Some(kept) = self.files.get_mut(&oldest).and_then(|state| state.text.take()) {
                self.kept -= kept.text.len();
            }
        }
    }
}

impl FileState {
    fn is_same(&self, key: &StatKey, digest: Option<Digest>) -> bool {
        match (self.digest, digest) {
            (Some(before), Some(now)) => before == now,
            _ => self.key == *key,
        }
    }
}

/// The name of a file in its project.
pub(super) fn name(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn change(kind: EventKind, path: &Path, root: &Path) -> FileChange {
    FileChange {
        kind,
        path: path.display().to_string(),
        name: Some(name(path, root)),
        content: None,
        diff: None,
        size: 0,
        timestamp: ollm_protocol::units::iso(SystemTime::now()),
    }
}

/// The content of a path. A link, a pipe or a folder is no file. A file that cannot be read has at least a stamp.
fn look(path: &Path) -> PathContent {
    let Ok(meta) = fs::symlink_metadata(path) else { return PathContent::Nothing };
    if !meta.is_file() {
        return PathContent::Nothing;
    }
    let key = StatKey::of(&meta);
    match read_regular(path, LARGEST) {
        // A link that replaced the file meanwhile leads to another file.
        Ok(Some((bytes, meta))) if StatKey::of(&meta).ino == key.ino => {
            PathContent::File { key: StatKey::of(&meta), bytes: Some(bytes) }
        }
        Ok(None) => PathContent::Nothing,
        Ok(Some(_)) | Err(_) => PathContent::File { key, bytes: None },
    }
}

fn is_racy(key: &StatKey) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let now = now.and_then(|now| i64::try_from(now.as_nanos()).ok()).unwrap_or_default();
    key.ctime_ns.max(key.mtime_ns) > now.saturating_sub(GRAIN_NS)
}
