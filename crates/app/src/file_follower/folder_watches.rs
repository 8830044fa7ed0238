//! Folders whose changes the system reports.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ollm_catalog::StampedPaths;

use crate::notifier::{Notifier, NotifyError};
use crate::remote_files::is_remote;
use crate::wake_signal::WakeSignal;

/// Every program that starts opens files in this folder, and the system would report each of them. So what appears
/// directly in it is seen by the next look only.
const BUSY: &str = "/etc";

/// Folders on which the system reports, and the paths in them that matter. The system knows a folder by one name, so
/// all names here are real: without links.
pub(super) struct FolderWatches {
    notifier: Notifier,
    folders: BTreeSet<PathBuf>,
    roots: BTreeSet<PathBuf>,
}

/// The changes since the last call.
pub(super) struct TouchedFolders {
    /// The touched paths that matter.
    paths: Vec<PathBuf>,
    /// Whether the system lost track.
    is_incomplete: bool,
    is_other: bool,
}

impl TouchedFolders {
    /// Whether only paths were touched that do not matter.
    pub(super) fn is_other(&self) -> bool {
        self.is_other
    }

    pub(super) fn is_below(&self, folder: &Path) -> bool {
        let folder = real_name(folder);
        self.is_incomplete || self.paths.iter().any(|path| path.starts_with(&folder))
    }
}

impl FolderWatches {
    /// `None` if the system has no more watches.
    pub(super) fn new() -> Option<FolderWatches> {
        let notifier = Notifier::new().ok()?;
        Some(FolderWatches { notifier, folders: BTreeSet::new(), roots: BTreeSet::new() })
    }

    /// Wakes this signal at every change.
    pub(super) fn wake(&self, wake: &WakeSignal) {
        self.notifier.wake(wake);
    }

    /// Watches exactly the folders of these paths; returns whether more are watched than before. `None` if the system
    /// cannot report on all of them.
    pub(super) fn set(&mut self, paths: StampedPaths) -> Option<bool> {
        let StampedPaths { roots, folders } = paths;
        // A program can replace a link, and also its target.
        let linked = roots.iter().filter_map(|root| Some(root.parent().map(real_name)?.join(root.file_name()?)));
        self.roots = linked.chain(roots.iter().map(|root| real_name(root))).collect();
        let around = |root: &PathBuf| {
            let nearest = root.ancestors().skip(1).find(|path| path.is_dir());
            nearest.filter(|path| *path != Path::new(BUSY)).map(Path::to_owned)
        };
        let folders: BTreeSet<PathBuf> =
            folders.iter().map(|folder| real_name(folder)).chain(self.roots.iter().filter_map(around)).collect();
        let notifier = &mut self.notifier;
        self.folders.retain(|known| {
            folders.contains(known) || {
                notifier.unwatch(known);
                false
            }
        });
        let mut is_more = false;
        for folder in folders.difference(&self.folders.clone()) {
            // There the system does not report every change.
            if is_remote(folder) {
                return None;
            }
            match self.notifier.watch(folder) {
                Ok(()) => {
                    self.folders.insert(folder.clone());
                    is_more = true;
                }
                // It is gone meanwhile; another look sees that.
                Err(NotifyError::Gone) => is_more = true,
                // A folder that we cannot enter cannot be read either.
                Err(NotifyError::Refused(error)) if is_no_entry(&error) => {}
                Err(_) => return None,
            }
        }
        Some(is_more)
    }

    /// The changes since the last call.
    pub(super) fn take(&mut self) -> TouchedFolders {
        let touched = self.notifier.take_all();
        for path in touched.paths.keys() {
            // The folder may be gone or replaced by now; if it is still needed, it is watched anew.
            if self.folders.remove(path) {
                self.notifier.unwatch(path);
            }
        }
        let counts = |path: &PathBuf| self.roots.iter().any(|root| path.starts_with(root) || root.starts_with(path));
        let (all, is_incomplete) = (touched.paths.len(), touched.is_incomplete);
        let paths: Vec<PathBuf> = touched.paths.into_keys().filter(counts).collect();
        TouchedFolders { is_other: all > 0 && paths.is_empty() && !is_incomplete, paths, is_incomplete }
    }
}

/// A path without links, as far as it exists.
fn real_name(path: &Path) -> PathBuf {
    let real = path.ancestors().find_map(|known| Some((known.canonicalize().ok()?, path.strip_prefix(known).ok()?)));
    match real {
        Some((known, rest)) if rest.as_os_str().is_empty() => known,
        Some((known, rest)) => known.join(rest),
        None => path.to_owned(),
    }
}

fn is_no_entry(error: &notify::Error) -> bool {
    matches!(&error.kind, notify::ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::PermissionDenied)
}
