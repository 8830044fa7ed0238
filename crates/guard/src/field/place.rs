//! Where commands run.

use std::{
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::Field;
use crate::path;

/// Where commands run, and what the shell would put for `~`. Most commands run where others do: copies share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place(Arc<Surroundings>);

/// What is known of a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Every folder this may be.
    pub(crate) folders: Arc<[PathBuf]>,
    /// Whether it may be yet another one.
    pub(crate) lost: bool,
    /// Whether it may be any folder above these: a loop went up, nobody knows how often.
    pub(crate) above: bool,
    /// The user's home.
    pub(crate) home: Option<Arc<Path>>,
    /// Folders under another name: what they are called here, and where they really are.
    pub(crate) mounts: Vec<(String, String)>,
    /// Whether it is another machine or a container.
    pub(crate) elsewhere: bool,
}

impl Deref for Place {
    type Target = Surroundings;

    fn deref(&self) -> &Surroundings {
        &self.0
    }
}

impl DerefMut for Place {
    fn deref_mut(&mut self) -> &mut Surroundings {
        Arc::make_mut(&mut self.0)
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        let same = || {
            self.has_folders_of(other)
                && (self.lost, self.above, self.elsewhere) == (other.lost, other.above, other.elsewhere)
                && (&self.home, &self.mounts) == (&other.home, &other.mounts)
        };
        Arc::ptr_eq(&self.0, &other.0) || same()
    }
}

/// How many folders a command may run in before that counts as unknown.
const MOST_FOLDERS: usize = 8;

impl Place {
    /// These folders, any of them.
    pub(crate) fn new(folders: Vec<PathBuf>, home: Option<&Path>) -> Place {
        let known = Surroundings { folders: folders.into(), home: home.map(Arc::from), ..Surroundings::default() };
        Place(Arc::new(known))
    }

    /// May also be where the other may be.
    pub(crate) fn add(&mut self, other: &Place) {
        if other.lost && !self.lost {
            self.lost = true;
        }
        if other.above && !self.above {
            self.above = true;
        }
        if self.has_folders_of(other) {
            return;
        }
        let is_new = |folder: &&PathBuf| !self.folders.iter().any(|known| path::is_same(known, folder));
        let more: Vec<&PathBuf> = other.folders.iter().filter(is_new).collect();
        let room = MOST_FOLDERS.saturating_sub(self.folders.len());
        if more.is_empty() || (room == 0 && self.lost) {
            return;
        }
        let lost = self.lost || more.len() > room;
        let folders = self.folders.iter().chain(more.into_iter().take(room)).cloned().collect();
        (self.lost, self.folders) = (lost, folders);
    }

    /// The place after what led here from another one has happened any number of times.
    pub(crate) fn repeat_since(&mut self, before: &Place) {
        if self == before {
            return;
        }
        let is_inside = |folder: &PathBuf| before.folders.iter().any(|start| path::is_in_folder(folder, start));
        let above = self.above || !self.folders.iter().all(is_inside);
        (self.lost, self.above) = (true, above);
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
        self.add(&Place::new(vec![path::join(Path::new("/"), folder)], None));
    }

    /// The place after a change to this folder has worked.
    pub(crate) fn change(&mut self, target: &Field) {
        let Some(target) = target.known() else {
            self.lost = true;
            return;
        };
        let absolute = target.starts_with('/');
        self.lost &= !absolute;
        self.above &= !absolute;
        let mut folders: Vec<PathBuf> = self.folders.iter().map(|folder| path::join(folder, target)).collect();
        folders.dedup_by(|one, other| path::is_same(one, other));
        self.folders = folders.into();
    }
}
