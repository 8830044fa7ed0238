//! What the files of a project were when hooks last heard of them, and what became of one since.
//!
//! Of every file its stamp is kept, of most a digest, and of as many as fit into a bound the text, for differences.

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

/// A larger file is known by its stamp alone.
const LARGEST: u64 = 8 << 20;
/// Of a longer text no difference is made.
const LONGEST_TEXT: usize = 256 << 10;
/// How much text is kept in all.
const MOST_TEXT: usize = 64 << 20;
/// The most of a file's text that an event tells.
const LONGEST_CONTENT: usize = 64 << 10;
/// What changed so shortly before it was looked at may change again without another stamp.
const GRAIN_NS: i64 = 50_000_000;

/// What was there before.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    files: BTreeMap<PathBuf, FileState>,
    /// The files whose text is kept, in the order in which they were looked at.
    texts: BTreeMap<u64, PathBuf>,
    /// Counts the looks.
    looks: u64,
    /// Bytes of text that are kept.
    kept: usize,
}

/// One file as hooks last heard of it.
#[derive(Clone, Debug)]
struct FileState {
    key: StatKey,
    /// Whether the stamp may stay the same although the file changes.
    is_racy: bool,
    digest: Option<Digest>,
    text: Option<KeptText>,
}

/// The text of a file, and the number of the look at it.
#[derive(Clone, Debug)]
struct KeptText {
    look: u64,
    text: Arc<str>,
}

/// What is at a path.
#[derive(Debug)]
enum Found {
    Nothing,
    File { key: StatKey, bytes: Option<Vec<u8>> },
}

impl Baseline {
    /// Takes a file in by its stamp alone, unless it is known.
    pub(super) fn add(&mut self, path: PathBuf, key: StatKey) {
        let state = FileState { key, is_racy: is_racy(&key), digest: None, text: None };
        self.files.entry(path).or_insert(state);
    }

    /// Whether hooks last heard of a file with this stamp, or that it is gone.
    pub(super) fn has_stamp(&self, path: &Path, key: Option<StatKey>) -> bool {
        self.files.get(path).map(|state| state.key) == key
    }

    /// Takes a file to have had this stamp, or to have been gone, when hooks last heard of it.
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

    /// Whether a file with this stamp may be another than was known.
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

    /// Reads a file that is known by its stamp alone, so that a difference can be told later; what changed meanwhile stays
    /// unread.
    pub(super) fn read(&mut self, path: &Path) {
        let Some(state) = self.files.get(path).filter(|state| state.digest.is_none()) else { return };
        let key = state.key;
        if let Found::File { key: now, bytes: Some(bytes) } = look(path)
            && now == key
        {
            self.store(path, key, Some(&bytes));
        }
    }

    /// What became of a file since hooks last heard of it; from now on they have.
    pub(super) fn compare(&mut self, path: &Path, root: &Path) -> Option<FileChange> {
        let found = look(path);
        let before = self.files.get(path).cloned();
        match (before, found) {
            (None, Found::Nothing) => None,
            (Some(before), Found::Nothing) => {
                self.remove(path);
                let diff = before.text.map(|kept| unified_diff(&name(path, root), Some(&kept.text), None));
                Some(FileChange { diff, ..change(EventKind::FileDeleted, path, root) })
            }
            (before, Found::File { key, bytes }) => {
                let (digest, text) = self.store(path, key, bytes.as_deref());
                if before.as_ref().is_some_and(|before| before.is_same(&key, digest)) {
                    return None;
                }
                let kind = if before.is_some() { EventKind::FileEdited } else { EventKind::FileCreated };
                // What a new file was before is known: nothing.
                let old = before.map_or(Some(None), |before| before.text.map(|kept| Some(kept.text)));
                let both = old.zip(text.as_deref().filter(|text| text.len() <= LONGEST_TEXT));
                let diff = both.map(|(old, new)| unified_diff(&name(path, root), old.as_deref(), Some(new)));
                let content = text.map(|text| cut(&text, LONGEST_CONTENT).into_owned());
                Some(FileChange { content, diff, size: key.size, ..change(kind, path, root) })
            }
        }
    }

    /// Takes a file as it is now, without telling anybody.
    pub(super) fn absorb(&mut self, path: &Path) {
        match look(path) {
            Found::Nothing => self.remove(path),
            Found::File { key, bytes } => drop(self.store(path, key, bytes.as_deref())),
        }
    }

    /// Takes a file as it was found; what is known of it and its text, where it is text.
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

    /// Gives up the texts that were looked at longest ago.
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

/// What is at a path. A link, a pipe or a folder is not a file, and a file that cannot be read has a stamp at least.
fn look(path: &Path) -> Found {
    let Ok(meta) = fs::symlink_metadata(path) else { return Found::Nothing };
    if !meta.is_file() {
        return Found::Nothing;
    }
    let key = StatKey::of(&meta);
    match read_regular(path, LARGEST) {
        // A link that took the file's place in between leads to another one.
        Ok(Some((bytes, meta))) if StatKey::of(&meta).ino == key.ino => {
            Found::File { key: StatKey::of(&meta), bytes: Some(bytes) }
        }
        Ok(None) => Found::Nothing,
        Ok(Some(_)) | Err(_) => Found::File { key, bytes: None },
    }
}

fn is_racy(key: &StatKey) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let now = now.and_then(|now| i64::try_from(now.as_nanos()).ok()).unwrap_or_default();
    key.ctime_ns.max(key.mtime_ns) > now.saturating_sub(GRAIN_NS)
}
