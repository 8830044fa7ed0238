//! Where commands run.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::Field;
use crate::path;

/// Where commands run, and what the shell would put for `~`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// Every folder this may be.
    pub(crate) folders: Arc<[PathBuf]>,
    /// Whether it may be yet another one.
    pub(crate) lost: bool,
    /// The user's home.
    pub(crate) home: Option<Arc<Path>>,
    /// Folders under another name: what they are called here, and where they really are.
    pub(crate) mounts: Vec<(String, String)>,
    /// Whether it is another machine or a container.
    pub(crate) elsewhere: bool,
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.has_folders_of(other)
            && (self.lost, self.elsewhere) == (other.lost, other.elsewhere)
            && (&self.home, &self.mounts) == (&other.home, &other.mounts)
    }
}

/// How many folders a command may run in before that counts as unknown.
const MOST_FOLDERS: usize = 8;

impl Place {
    /// These folders, any of them.
    pub(crate) fn new(folders: Vec<PathBuf>, home: Option<&Path>) -> Place {
        Place { folders: folders.into(), home: home.map(Arc::from), ..Place::default() }
    }

    /// May also be where the other may be.
    pub(crate) fn add(&mut self, other: &Place) {
        self.lost |= other.lost;
        if self.has_folders_of(other) {
            return;
        }
        let is_new = |folder: &&PathBuf| !self.folders.iter().any(|known| path::is_same(known, folder));
        let more: Vec<&PathBuf> = other.folders.iter().filter(is_new).collect();
        self.lost |= self.folders.len() + more.len() > MOST_FOLDERS;
        let room = MOST_FOLDERS.saturating_sub(self.folders.len());
        if more.is_empty() || room == 0 {
            return;
        }
        self.folders = self.folders.iter().chain(more.into_iter().take(room)).cloned().collect();
    }

    /// Whether it may be in the same folders as the other.
    pub(crate) fn has_folders_of(&self, other: &Place) -> bool {
        self.has_folders(&other.folders)
    }

    /// Whether it may be in these folders and no others.
    pub(crate) fn has_folders(&self, folders: &Arc<[PathBuf]>) -> bool {
        let same = |(one, other): (&PathBuf, &PathBuf)| path::is_same(one, other);
        Arc::ptr_eq(&self.folders, folders)
            || (self.folders.len() == folders.len() && self.folders.iter().zip(&**folders).all(same))
    }

    /// May also be in this folder.
    pub(crate) fn also(&mut self, folder: &str) {
        self.add(&Place { folders: [path::join(Path::new("/"), folder)].into(), ..Place::default() });
    }

    /// The place after a change to this folder has worked.
    pub(crate) fn change(&mut self, target: &Field) {
        let Some(target) = target.known() else {
            self.lost = true;
            return;
        };
        let absolute = target.starts_with('/');
        self.lost &= !absolute;
        let mut folders: Vec<_> = self.folders.iter().map(|folder| path::join(folder, target)).collect();
        folders.dedup();
        self.folders = folders.into();
    }
}
