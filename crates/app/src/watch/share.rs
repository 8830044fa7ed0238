//! One program at a time tells hooks of a project's files. A running chat comes first, because prompts for the agent
//! reach it; a waiting program takes over when it ends.
//!
//! Two locks decide which program that is: one for chats, and one for the program that tells. A third lock shows that a
//! program waits. Locks end with their process in every case.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ollm_protocol::Code;
use ollm_store::{digest_bytes, lock_file};

use crate::app_context::AppContext;
use crate::error::AppError;

const TELLER: &str = "teller.lock";
const CHAT: &str = "chat.lock";
const WAITING: &str = "waiting.lock";

/// The kind of a watching program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchRole {
    /// A chat, which can pass prompts of hooks to the agent.
    Chat,
    /// A program that only watches.
    Watch,
}

/// Our part among the programs that watch a project.
#[derive(Debug)]
pub(super) struct Share {
    folder: PathBuf,
    role: WatchRole,
    teller: File,
    chat: File,
    waiting: File,
    is_teller: bool,
    is_chat: bool,
}

impl Share {
    pub(super) fn open(folder: &Path, role: WatchRole) -> Result<Share, AppError> {
        let open = |name: &str| {
            lock_file(&folder.join(name)).map_err(|error| AppError::new(Code::NotWritten, error.to_string()))
        };
        let share = Share {
            folder: folder.to_owned(),
            role,
            teller: open(TELLER)?,
            chat: open(CHAT)?,
            waiting: open(WAITING)?,
            is_teller: false,
            is_chat: false,
        };
        // Taken before the first look at the files: changes from then on are noted for us.
        let _ = share.waiting.try_lock_shared();
        Ok(share)
    }

    /// The shared folder: something happens in it whenever one of the programs ends or gives up.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether we are the program that tells hooks.
    pub(super) fn is_teller(&self) -> bool {
        self.is_teller
    }

    /// Tries to become the program that tells; returns whether we have just become it.
    pub(super) fn take(&mut self) -> bool {
        match self.role {
            WatchRole::Chat => self.is_chat = self.is_chat || self.chat.try_lock().is_ok(),
            WatchRole::Watch if self.is_wanted() => return false,
            WatchRole::Watch => {}
        }
        let may = self.role == WatchRole::Watch || self.is_chat;
        if self.is_teller || !may || self.teller.try_lock().is_err() {
            return false;
        }
        let _ = self.waiting.unlock();
        self.is_teller = true;
        true
    }

    /// Whether a chat waits for us to stop.
    pub(super) fn is_wanted(&self) -> bool {
        if self.role == WatchRole::Chat {
            return false;
        }
        !is_free(&self.chat)
    }

    /// Lets another program tell.
    pub(super) fn give_up(&mut self) {
        let _ = self.waiting.try_lock_shared();
        self.is_teller = false;
        let _ = self.teller.unlock();
        // A waiting program notices changes of the file, but not of its lock.
        let _ = self.teller.set_modified(SystemTime::now());
    }

    /// Whether a program waits that needs to know what hooks were told.
    pub(super) fn has_others(&self) -> bool {
        !is_free(&self.waiting)
    }
}

/// The folder in which the programs that watch a project meet; `None` without a home.
pub(super) fn folder(context: &AppContext) -> Option<PathBuf> {
    let project = context.places.project.as_deref().unwrap_or(&context.cwd);
    let project = project.canonicalize().ok()?;
    let name = digest_bytes(project.as_os_str().as_encoded_bytes()).hex();
    context.own_home()?;
    Some(context.state().join("watch").join(name.get(..32)?))
}

/// Whether a program watches the project.
pub fn is_watched(context: &AppContext) -> bool {
    folder(context).is_some_and(|folder| is_watched_at(&folder))
}

/// Whether a program watches the project whose shared folder this is.
pub(super) fn is_watched_at(folder: &Path) -> bool {
    let lock = folder.join(TELLER);
    lock.exists() && lock_file(&lock).is_ok_and(|lock| !is_free(&lock))
}

/// Whether a lock is free; it stays free.
fn is_free(lock: &File) -> bool {
    match lock.try_lock() {
        Ok(()) => {
            let _ = lock.unlock();
            true
        }
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_comes_first_and_who_waits_takes_over() {
        let folder = tempfile::tempdir().unwrap();
        let open = |role| Share::open(folder.path(), role).unwrap();
        assert!(!is_watched_at(folder.path()));
        let mut watch = open(WatchRole::Watch);
        assert!(watch.take() && !watch.has_others() && !watch.is_wanted());
        assert!(is_watched_at(folder.path()));
        let mut chat = open(WatchRole::Chat);
        assert!(!chat.take());
        assert!(watch.is_wanted() && watch.has_others());
        watch.give_up();
        assert!(!watch.take());
        assert!(chat.take() && chat.has_others());
        let mut second = open(WatchRole::Chat);
        assert!(!second.take());
        drop(chat);
        assert!(second.take());
        drop(second);
        assert!(watch.take() && !watch.take());
        drop(watch);
        assert!(!is_watched_at(folder.path()));
    }
}
