//! The approvals of one file, read again when the file changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ollm_store::{StatKey, Trouble};

use crate::approvals::Approvals;

#[derive(Debug)]
pub(crate) struct ApprovalsFile {
    path: PathBuf,
    read: Mutex<Option<ReadState>>,
}

type Contents = (Approvals, Option<Trouble>);

#[derive(Debug)]
struct ReadState {
    key: Option<StatKey>,
    contents: Arc<Contents>,
}

impl ApprovalsFile {
    pub(crate) fn new(path: PathBuf) -> ApprovalsFile {
        ApprovalsFile { path, read: Mutex::new(None) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn current(&self) -> Arc<Contents> {
        let key = fs::metadata(&self.path).ok().map(|meta| StatKey::of(&meta));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.as_ref().filter(|read| read.key == key) {
            return Arc::clone(&read.contents);
        }
        let contents = Arc::new(Approvals::load(&self.path));
        *read = Some(ReadState { key, contents: Arc::clone(&contents) });
        contents
    }
}
