//! The approvals, read again when their file changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ollm_store::{StatKey, Trouble};
use ollm_trust::Approvals;

#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    read: Mutex<Option<Read>>,
}

type Contents = (Approvals, Option<Trouble>);

#[derive(Debug)]
struct Read {
    key: Option<StatKey>,
    contents: Arc<Contents>,
}

impl Ledger {
    pub(super) fn new(path: PathBuf) -> Ledger {
        Ledger { path, read: Mutex::new(None) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn current(&self) -> Arc<Contents> {
        let key = fs::metadata(&self.path).ok().map(|meta| StatKey::of(&meta));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.as_ref().filter(|read| read.key == key) {
            return Arc::clone(&read.contents);
        }
        let contents = Arc::new(Approvals::load(&self.path));
        *read = Some(Read { key, contents: Arc::clone(&contents) });
        contents
    }
}
