//! The folder that extensions are installed into, and the steps by which it changes.
//!
//! What is new is written aside, into a hidden folder that nothing is loaded from. One rename puts it in place, or one exchange
//! of two folders: whoever looks sees the state before or the state after. The record of the installation lies in the folder, so
//! there is nothing else to change. What a killed process left aside is cleared away before the next change; the only thing
//! that has to be found out then is which folder is the version before ([`Swap`]).

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ollm_catalog::{Foreign, INSTALL_RECORD};
use ollm_package::Package;
use ollm_protocol::Code;
use ollm_store::raw::sync_folder;
use ollm_store::{is_file_at, lock_file, read_bounded, write_atomic};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use super::record::InstallRecord;
use crate::app_context::AppContext;
use crate::error::AppError;

const ASIDE: &str = ".staged";
const PREVIOUS: &str = ".previous";
const LARGEST_FILE: u64 = 4 << 10;

/// Is asked before each step that changes something; an error there is as good as a kill.
pub(super) type Step = fn(&'static str) -> io::Result<()>;

/// The folder that extensions are installed into, while nobody else changes it.
#[derive(Debug)]
pub(super) struct InstallRoot {
    folder: PathBuf,
    step: Step,
    lock: PathBuf,
    _held: File,
}

/// An exchange that is under way: which folder will be in place when it is done.
struct Swap {
    name: String,
    /// Device and inode of the new folder.
    fresh: (u64, u64),
}

impl InstallRoot {
    /// Takes the right to change it, and clears away what a killed process left.
    pub(super) fn open(context: &AppContext) -> Result<InstallRoot, AppError> {
        context.need_home()?;
        InstallRoot::open_at(&extensions_folder(context), &context.state(), |_| Ok(()))
    }

    pub(super) fn open_at(folder: &Path, state: &Path, step: Step) -> Result<InstallRoot, AppError> {
        let lock = state.join("install.lock");
        let unmade = |error: io::Error| AppError::unwritten(folder, &error);
        let make = |folder: &Path| DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unmade);
        make(state)?;
        let held = take_lock(&lock, folder)?;
        make(folder)?;
        let root = InstallRoot { folder: folder.to_owned(), step, lock, _held: held };
        root.recover().map_err(|error| AppError::unwritten(folder, &error))?;
        Ok(root)
    }

    /// Where an extension is, or would be.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where its version before is, or would be.
    pub(super) fn previous(&self, name: &str) -> PathBuf {
        previous_folder(&self.folder, name)
    }

    /// Where a new one is written.
    pub(super) fn staged(&self) -> PathBuf {
        self.folder.join(ASIDE).join("new")
    }

    /// A folder for what has to be on the disk meanwhile.
    pub(super) fn scratch(&self) -> io::Result<PathBuf> {
        let scratch = self.folder.join(ASIDE).join("scratch");
        remove(&scratch)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&scratch)?;
        Ok(scratch)
    }

    /// Writes a package aside.
    pub(super) fn stage(&self, package: &Package) -> io::Result<PathBuf> {
        let staged = self.staged();
        remove(&staged)?;
        self.make(ASIDE)?;
        (self.step)("write the package")?;
        package.write_to(&staged)?;
        Ok(staged)
    }

    /// Puts the record, and the manifest where the package has none of ours, to what was written aside.
    pub(super) fn complete(&self, record: &InstallRecord, foreign: Option<&Foreign>) -> io::Result<()> {
        let write = |name: &str, bytes: &[u8]| {
            (self.step)("complete the package")?;
            // Whatever the process leaves open to others: what others can write does not run.
            let path = self.staged().join(name);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        if let Some(foreign) = foreign {
            write("manifest.json", &foreign.to_bytes())?;
        }
        write(INSTALL_RECORD, &record.to_bytes())?;
        sync(&self.staged())
    }

    /// Puts what was written aside in place, where nothing is. What fails once it is there is given back.
    pub(super) fn install(&self, name: &str) -> io::Result<Option<io::Error>> {
        (self.step)("put it in place")?;
        rename(&self.staged(), &self.place(name), RenameFlags::NOREPLACE)?;
        Ok((self.step)("have the disk keep it").and_then(|()| sync(&self.folder)).err())
    }

    /// Puts what was written aside in the place of what is there, which becomes the version before. What fails once it is
    /// there is given back; the next change ends it.
    pub(super) fn replace(&self, name: &str) -> io::Result<Option<io::Error>> {
        // What is needed after the exchange is made before it.
        self.make(PREVIOUS)?;
        let fresh = self.staged().metadata()?;
        (self.step)("note the exchange")?;
        let swap = json!({"name": name, "dev": fresh.dev(), "ino": fresh.ino()});
        write_atomic(&self.note(), swap.to_string().as_bytes()).map_err(io::Error::other)?;
        (self.step)("set the version before aside")?;
        rename_if_there(&self.previous(name), &self.oldest())?;
        (self.step)("exchange")?;
        rename(&self.staged(), &self.place(name), RenameFlags::EXCHANGE)?;
        Ok(self.settle(name).err())
    }

    /// What is left to do once the new version is in place.
    fn settle(&self, name: &str) -> io::Result<()> {
        sync(&self.folder)?;
        self.keep_previous(name)?;
        (self.step)("clear away")?;
        self.clear()
    }

    /// Takes an extension away in one step, and then apart. A link goes, and what it leads to stays.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let place = self.place(name);
        if place.symlink_metadata()?.is_symlink() {
            return fs::remove_file(&place);
        }
        self.make(ASIDE)?;
        remove(&self.oldest())?;
        rename(&place, &self.oldest(), RenameFlags::NOREPLACE)?;
        sync(&self.folder)?;
        self.clear()
    }

    /// Exchanges an extension with its version before.
    pub(super) fn roll_back(&self, name: &str) -> io::Result<()> {
        (self.step)("exchange with the version before")?;
        rename(&self.previous(name), &self.place(name), RenameFlags::EXCHANGE)?;
        sync(&self.folder)
    }

    /// Removes the version before, if there is one.
    pub(super) fn forget_previous(&self, name: &str) -> io::Result<()> {
        self.make(ASIDE)?;
        rename_if_there(&self.previous(name), &self.oldest())?;
        self.clear()
    }

    /// Clears away what was written aside.
    pub(super) fn clear(&self) -> io::Result<()> {
        for left in [self.staged(), self.oldest(), self.folder.join(ASIDE).join("scratch")] {
            remove(&left)?;
        }
        // The note is last: what it explains is gone.
        remove(&self.note())?;
        remove(&self.folder.join(ASIDE))?;
        // What is not empty stays.
        let _ = fs::remove_dir(self.folder.join(PREVIOUS));
        Ok(())
    }

    /// Ends what a killed process began: forward if the new version is in place, back if it is not.
    pub(super) fn recover(&self) -> io::Result<()> {
        if let Some(swap) = self.swap() {
            let is_done = self.place(&swap.name).metadata().is_ok_and(|meta| (meta.dev(), meta.ino()) == swap.fresh);
            if is_done {
                self.keep_previous(&swap.name)?;
            } else if !self.previous(&swap.name).exists() {
                self.make(PREVIOUS)?;
                rename_if_there(&self.oldest(), &self.previous(&swap.name))?;
            }
        }
        self.clear()
    }

    /// After the exchange the folder aside is the version before.
    fn keep_previous(&self, name: &str) -> io::Result<()> {
        (self.step)("keep the version before")?;
        self.make(PREVIOUS)?;
        rename_if_there(&self.staged(), &self.previous(name))
    }

    fn make(&self, hidden: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.folder.join(hidden))
    }

    fn swap(&self) -> Option<Swap> {
        let bytes = read_bounded(&self.note(), LARGEST_FILE).ok()??;
        let note: Value = serde_json::from_slice(&bytes).ok()?;
        let number = |key: &str| note.get(key)?.as_u64();
        Some(Swap { name: note.get("name")?.as_str()?.to_owned(), fresh: (number("dev")?, number("ino")?) })
    }

    fn note(&self) -> PathBuf {
        self.folder.join(ASIDE).join("swap.json")
    }

    fn oldest(&self) -> PathBuf {
        self.folder.join(ASIDE).join("oldest")
    }
}

/// What was made to install something, and is empty now, goes.
impl Drop for InstallRoot {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
        let _ = fs::remove_file(&self.lock);
    }
}

/// The right to change a folder, which whoever has it takes away with its file.
fn take_lock(path: &Path, folder: &Path) -> Result<File, AppError> {
    const TRIES: usize = 100;
    for _ in 0..TRIES {
        let lock = lock_file(path).map_err(|error| AppError::unwritten(folder, &error))?;
        match lock.try_lock() {
            Ok(()) if is_file_at(&lock, path) => return Ok(lock),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(error)) => return Err(AppError::unwritten(folder, &error)),
        }
    }
    let message = "another process installs or removes extensions right now";
    Err(AppError::new(Code::Busy, message).hint("try again when it is done"))
}

/// The folder of the user's extensions.
pub(super) fn extensions_folder(context: &AppContext) -> PathBuf {
    context.places.home.join("extensions")
}

/// Where the version before of an extension is, or would be, in the folder of the user's extensions.
pub(super) fn previous_folder(folder: &Path, name: &str) -> PathBuf {
    folder.join(PREVIOUS).join(name)
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    renameat_with(CWD, from, CWD, to, flags).map_err(io::Error::from)
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match rename(from, to, RenameFlags::NOREPLACE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && from.symlink_metadata().is_err() => Ok(()),
        done => done,
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    sync_folder(folder).map_err(io::Error::other)
}

/// Removes a file or folder, if it is there; a link is removed, never what it leads to.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
