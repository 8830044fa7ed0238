//! The folder that extensions are installed into, and the steps that change it.
//!
//! New files are staged in a hidden folder that nothing is loaded from. One rename puts them in place, or one exchange
//! of two folders. So a reader sees the earlier or the later state. An extension that is only needed by another one is
//! put in place first, and does not count until the other is in place ([`InstallChange`]). The installation record is
//! in the folder, so nothing else has to change. The next change removes the files that a killed process left staged.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use ollm_catalog::{INSTALL_RECORD, InstallChange, NewFolder, TranslatedPackage};
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

/// Called before each step that changes something; in tests, an error simulates a kill.
pub(super) type Step = fn(&'static str) -> io::Result<()>;

/// The folder that extensions are installed into, locked against other processes.
#[derive(Debug)]
pub(super) struct InstallRoot {
    folder: PathBuf,
    step: Step,
    lock: PathBuf,
    _held: File,
    /// How many packages were staged.
    count: AtomicUsize,
}

/// A staged package and its final name.
#[derive(Clone, Copy, Debug)]
pub(super) struct StagedPackage<'a> {
    pub(super) name: &'a str,
    pub(super) folder: &'a Path,
    /// Whether it replaces something.
    pub(super) replaces: bool,
}

impl InstallRoot {
    /// Locks the folder, and removes the leftovers of a killed process.
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

    /// The folder of an extension, which may not exist.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder of its previous version, which may not exist.
    pub(super) fn previous(&self, name: &str) -> PathBuf {
        previous_folder(&self.folder, name)
    }

    /// A temporary folder on the disk.
    pub(super) fn scratch(&self) -> io::Result<PathBuf> {
        let scratch = self.folder.join(ASIDE).join("scratch");
        remove(&scratch)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&scratch)?;
        Ok(scratch)
    }

    /// Stages a package in a folder of its own.
    pub(super) fn stage(&self, package: &Package) -> io::Result<PathBuf> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let staged = self.folder.join(ASIDE).join(format!("new-{number}"));
        self.make(ASIDE)?;
        (self.step)("write the package")?;
        package.write_to(&staged)?;
        Ok(staged)
    }

    /// Adds the record to a staged package, and our manifest if the package has none.
    pub(super) fn complete(
        &self,
        staged: &Path,
        record: &InstallRecord,
        foreign: Option<&TranslatedPackage>,
    ) -> io::Result<()> {
        let write = |name: &str, bytes: &[u8]| {
            (self.step)("complete the package")?;
            // Sets the mode regardless of the umask, because files that others can write are not run.
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

    /// Puts packages in place: the last one, and before it the missing packages that it needs. An error restores the
    /// earlier state, at the latest with the next change. An error after all are in place is returned, and the next
    /// change finishes the clean-up.
    pub(super) fn place_all(&self, packages: &[StagedPackage<'_>]) -> io::Result<Option<io::Error>> {
        let Some((last, needed)) = packages.split_last() else { return Ok(None) };
        if needed.is_empty() && !last.replaces {
            self.put(last)?;
            return Ok(self.have_kept().err());
        }
        // Folders that are needed after the exchange are made before it.
        self.make(PREVIOUS)?;
        (self.step)("note the change")?;
        self.note_change(last, needed)?;
        needed.iter().try_for_each(|one| self.put(one))?;
        if !needed.is_empty() {
            // The needed packages are written to the disk before the package that needs them.
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

    /// Puts a package in place of nothing.
    fn put(&self, package: &StagedPackage<'_>) -> io::Result<()> {
        (self.step)("put it in place")?;
        rename(package.folder, &self.place(package.name), RenameFlags::NOREPLACE)
    }

    /// Exchanges a package with the installed one, which becomes the previous version.
    fn exchange(&self, package: &StagedPackage<'_>) -> io::Result<()> {
        (self.step)("set the version before aside")?;
        rename_if_there(&self.previous(package.name), &self.oldest())?;
        (self.step)("exchange")?;
        rename(package.folder, &self.place(package.name), RenameFlags::EXCHANGE)
    }

    fn note_change(&self, last: &StagedPackage<'_>, needed: &[StagedPackage<'_>]) -> io::Result<()> {
        let new = |one: &StagedPackage<'_>| one.folder.metadata().map(|meta| NewFolder::new(one.name, &meta));
        let change = InstallChange {
            last: new(last)?,
            aside: last.folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            needed: needed.iter().map(new).collect::<io::Result<_>>()?,
        };
        write_atomic(&self.note(), &change.to_bytes()).map_err(io::Error::other)
    }

    /// Cleans up after the last package is in place.
    fn settle(&self, last: &StagedPackage<'_>) -> io::Result<()> {
        sync(&self.folder)?;
        self.keep_previous(last.name, last.folder)?;
        (self.step)("clear away")?;
        self.clear()
    }

    fn have_kept(&self) -> io::Result<()> {
        (self.step)("have the disk keep it")?;
        sync(&self.folder)
    }

    /// Removes an extension in one step, and then deletes its files and its previous version. For a link, only the link
    /// is removed. An error after the first step is returned, and the next change finishes the clean-up.
    pub(super) fn remove(&self, name: &str) -> io::Result<Option<io::Error>> {
        let place = self.place(name);
        self.make(ASIDE)?;
        (self.step)("take it away")?;
        if place.symlink_metadata()?.is_symlink() {
            fs::remove_file(&place)?;
        } else {
            rename(&place, &self.oldest(), RenameFlags::NOREPLACE)?;
        }
        let cleared = self.have_kept().and_then(|()| {
            (self.step)("clear away")?;
            self.clear()
        });
        Ok(cleared.err())
    }

    /// Exchanges an extension with its previous version. An error after the exchange is returned.
    pub(super) fn roll_back(&self, name: &str) -> io::Result<Option<io::Error>> {
        (self.step)("exchange with the version before")?;
        rename(&self.previous(name), &self.place(name), RenameFlags::EXCHANGE)?;
        Ok(self.have_kept().err())
    }

    /// Removes staged packages, and previous versions of removed extensions.
    pub(super) fn clear(&self) -> io::Result<()> {
        let aside = self.folder.join(ASIDE);
        for left in fs::read_dir(&aside).into_iter().flatten() {
            let left = left?.path();
            // The note comes last: the files that it explains are gone.
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
        // A folder with content stays.
        let _ = fs::remove_dir(self.folder.join(PREVIOUS));
        Ok(())
    }

    /// Finishes or undoes the change of a killed process: finishes it if the last package is in place.
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

    /// After an exchange, the staging folder holds the previous version.
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

/// Removes the empty folders that were made for an installation.
impl Drop for InstallRoot {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
        let _ = fs::remove_file(&self.lock);
        let _ = self.lock.parent().map(fs::remove_dir);
    }
}

/// Locks a folder. The holder of a lock removes the lock's file, so the file is checked again after locking.
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

/// The folder of an extension's previous version in the folder of the user's extensions; it may not exist.
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

/// Removes a file or folder, if it exists; for a link, only the link.
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
