//! The approvals of one file, read again when the file changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ollm_store::StatKey;

use crate::approvals::Approvals;
use crate::signature::{ApprovalKey, ListTrouble};

#[derive(Debug)]
pub(crate) struct ApprovalsFile {
    path: PathBuf,
    key: Option<ApprovalKey>,
    read: Mutex<Option<ReadState>>,
}

pub(crate) type Contents = (Approvals, Option<ListTrouble>);

#[derive(Debug)]
struct ReadState {
    key: Option<StatKey>,
    contents: Arc<Contents>,
}

impl ApprovalsFile {
    pub(crate) fn new(path: PathBuf) -> ApprovalsFile {
        ApprovalsFile { path, key: None, read: Mutex::new(None) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The key that must have signed the file.
    pub(crate) fn key(&self) -> Option<&ApprovalKey> {
        self.key.as_ref()
    }

    /// From now on, this key must have signed the file.
    pub(crate) fn demand(&mut self, key: Option<ApprovalKey>) {
        self.key = key;
        *self.read.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn current(&self) -> Arc<Contents> {
        let key = fs::metadata(&self.path).ok().map(|meta| StatKey::of(&meta));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.as_ref().filter(|read| read.key == key) {
            return Arc::clone(&read.contents);
        }
        let contents = Arc::new(Approvals::load(&self.path, self.key.as_ref()));
        *read = Some(ReadState { key, contents: Arc::clone(&contents) });
        contents
    }
}
