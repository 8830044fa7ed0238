//! Where commands run.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::Field;
use crate::path;

/// Where commands run, and what the shell would put for `~`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
        if self.folders == other.folders {
            return;
        }
        let more = other.folders.iter().filter(|folder| !self.folders.contains(folder));
        let mut folders: Vec<PathBuf> = self.folders.iter().chain(more).cloned().collect();
        if folders.len() > MOST_FOLDERS {
            self.lost = true;
            folders.truncate(MOST_FOLDERS);
        }
        self.folders = folders.into();
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
