//! The folder that extensions are installed into, and the steps by which it changes.
//!
//! What is new is written aside, into a hidden folder that nothing is loaded from. One rename puts it in place, or one exchange
//! of two folders: whoever looks sees the state before or the state after. What comes only for another one is there before, and
//! counts for nobody until that one is in place ([`InstallChange`]). The record of the installation lies in the folder, so there is
//! nothing else to change. What a killed process left aside is cleared away before the next change.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use ollm_catalog::{Foreign, INSTALL_RECORD, InstallChange, NewFolder};
use ollm_package::Package;
use ollm_protocol::Code;
use ollm_store::raw::sync_folder;
use ollm_store::{is_file_at, lock_file, write_atomic};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::record::InstallRecord;
use crate::app_context::AppContext;
use crate::error::AppError;

const ASIDE: &str = InstallChange::STAGED;
pub(super) const PREVIOUS: &str = ".previous";

/// Is asked before each step that changes something; an error there is as good as a kill.
pub(super) type Step = fn(&'static str) -> io::Result<()>;

/// The folder that extensions are installed into, while nobody else changes it.
#[derive(Debug)]
pub(super) struct InstallRoot {
    folder: PathBuf,
    step: Step,
    lock: PathBuf,
    _held: File,
    /// How many packages were written aside.
    count: AtomicUsize,
}

/// A package that was written aside, and where it belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aside<'a> {
    pub(super) name: &'a str,
    pub(super) folder: &'a Path,
    /// Whether something is in its place.
    pub(super) replaces: bool,
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
        let root = InstallRoot { folder: folder.to_owned(), step, lock, _held: held, count: AtomicUsize::new(0) };
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

    /// A folder for what has to be on the disk meanwhile.
    pub(super) fn scratch(&self) -> io::Result<PathBuf> {
        let scratch = self.folder.join(ASIDE).join("scratch");
        remove(&scratch)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&scratch)?;
        Ok(scratch)
    }

    /// Writes a package aside, into a folder of its own.
    pub(super) fn stage(&self, package: &Package) -> io::Result<PathBuf> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let staged = self.folder.join(ASIDE).join(format!("new-{number}"));
        self.make(ASIDE)?;
        (self.step)("write the package")?;
        package.write_to(&staged)?;
        Ok(staged)
    }

    /// Puts the record, and the manifest where the package has none of ours, to what was written aside.
    pub(super) fn complete(&self, staged: &Path, record: &InstallRecord, foreign: Option<&Foreign>) -> io::Result<()> {
        let write = |name: &str, bytes: &[u8]| {
            (self.step)("complete the package")?;
            // Whatever the process leaves open to others: what others can write does not run.
            let path = staged.join(name);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        if let Some(foreign) = foreign {
            write("manifest.json", &foreign.to_bytes())?;
        }
        write(INSTALL_RECORD, &record.to_bytes())?;
        sync(staged)
    }

    /// Puts packages in place: the last one, and before it what it needs and is not there. On an error everything is as it
    /// was, at the latest after the next change. What fails once all are there is given back; the next change ends it.
    pub(super) fn place_all(&self, packages: &[Aside<'_>]) -> io::Result<Option<io::Error>> {
        let Some((last, needed)) = packages.split_last() else { return Ok(None) };
        if needed.is_empty() && !last.replaces {
            self.put(last)?;
            return Ok((self.step)("have the disk keep it").and_then(|()| sync(&self.folder)).err());
        }
        // What is needed after the exchange is made before it.
        self.make(PREVIOUS)?;
        (self.step)("note the change")?;
        self.note_change(last, needed)?;
        needed.iter().try_for_each(|one| self.put(one))?;
        if !needed.is_empty() {
            // The disk has what is needed before what needs it.
            (self.step)("have the disk keep what is needed")?;
            sync(&self.folder)?;
        }
        if last.replaces {
            self.exchange(last)?;
        } else {
            self.put(last)?;
        }
        Ok(self.settle(last).err())
    }

    /// Puts a package in place, where nothing is.
    fn put(&self, package: &Aside<'_>) -> io::Result<()> {
        (self.step)("put it in place")?;
        rename(package.folder, &self.place(package.name), RenameFlags::NOREPLACE)
    }

    /// Puts a package in the place of what is there, which becomes the version before.
    fn exchange(&self, package: &Aside<'_>) -> io::Result<()> {
        (self.step)("set the version before aside")?;
        rename_if_there(&self.previous(package.name), &self.oldest())?;
        (self.step)("exchange")?;
        rename(package.folder, &self.place(package.name), RenameFlags::EXCHANGE)
    }

    fn note_change(&self, last: &Aside<'_>, needed: &[Aside<'_>]) -> io::Result<()> {
        let new = |one: &Aside<'_>| one.folder.metadata().map(|meta| NewFolder::new(one.name, &meta));
        let change = InstallChange {
            last: new(last)?,
            aside: last.folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            needed: needed.iter().map(new).collect::<io::Result<_>>()?,
        };
        write_atomic(&self.note(), &change.to_bytes()).map_err(io::Error::other)
    }

    /// What is left to do once the last package is in place.
    fn settle(&self, last: &Aside<'_>) -> io::Result<()> {
        sync(&self.folder)?;
        self.keep_previous(last.name, last.folder)?;
        (self.step)("clear away")?;
        self.clear()
    }

    /// Takes an extension away in one step, and then apart, with its version before. A link goes, and what it leads to stays.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let place = self.place(name);
        self.make(ASIDE)?;
        (self.step)("take it away")?;
        if place.symlink_metadata()?.is_symlink() {
            fs::remove_file(&place)?;
        } else {
            rename(&place, &self.oldest(), RenameFlags::NOREPLACE)?;
        }
        sync(&self.folder)?;
        (self.step)("clear away")?;
        self.clear()
    }

    /// Exchanges an extension with its version before.
    pub(super) fn roll_back(&self, name: &str) -> io::Result<()> {
        (self.step)("exchange with the version before")?;
        rename(&self.previous(name), &self.place(name), RenameFlags::EXCHANGE)?;
        sync(&self.folder)
    }

    /// Clears away what was written aside, and versions before of what is no longer there.
    pub(super) fn clear(&self) -> io::Result<()> {
        let aside = self.folder.join(ASIDE);
        for left in fs::read_dir(&aside).into_iter().flatten() {
            let left = left?.path();
            // The note is last: what it explains is gone.
            if left != self.note() {
                remove(&left)?;
            }
        }
        remove(&self.note())?;
        remove(&aside)?;
        for previous in fs::read_dir(self.folder.join(PREVIOUS)).into_iter().flatten() {
            let previous = previous?;
            if self.folder.join(previous.file_name()).symlink_metadata().is_err_and(|error| is_absent(&error)) {
                (self.step)("forget the version before")?;
                remove(&previous.path())?;
            }
        }
        // What is not empty stays.
        let _ = fs::remove_dir(self.folder.join(PREVIOUS));
        Ok(())
    }

    /// Ends what a killed process began: forward if the last package is in place, back if it is not.
    pub(super) fn recover(&self) -> io::Result<()> {
        if let Some(InstallChange { last, aside, needed }) = InstallChange::read(&self.folder) {
            if last.is_in(&self.folder) {
                self.keep_previous(&last.name, &self.folder.join(ASIDE).join(aside))?;
            } else {
                for one in needed.iter().filter(|one| one.is_in(&self.folder)) {
                    (self.step)("take back what is not needed")?;
                    let back = self.folder.join(ASIDE).join(format!("needed-{}", one.name));
                    rename(&self.place(&one.name), &back, RenameFlags::NOREPLACE)?;
                }
                if !self.previous(&last.name).exists() {
                    self.make(PREVIOUS)?;
                    rename_if_there(&self.oldest(), &self.previous(&last.name))?;
                }
            }
        }
        self.clear()
    }

    /// After an exchange the folder aside is the version before.
    fn keep_previous(&self, name: &str, aside: &Path) -> io::Result<()> {
        (self.step)("keep the version before")?;
        self.make(PREVIOUS)?;
        rename_if_there(aside, &self.previous(name))
    }

    fn make(&self, hidden: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.folder.join(hidden))
    }

    fn note(&self) -> PathBuf {
        InstallChange::file(&self.folder)
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
        Err(error) if is_absent(&error) && from.symlink_metadata().is_err() => Ok(()),
        done => done,
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    sync_folder(folder).map_err(io::Error::other)
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Removes a file or folder, if it is there; a link is removed, never what it leads to.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
