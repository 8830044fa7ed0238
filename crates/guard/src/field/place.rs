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
pub(crate) struct ShellPlace(Arc<Surroundings>);

/// What is known of a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Every folder this may be.
    pub(crate) folders: Arc<[PathBuf]>,
    /// Whether it may be yet another one.
    pub(crate) lost: bool,
    /// Whether it may be any folder above these: a loop went up, an unknown number of times.
    pub(crate) above: bool,
    /// Folders that are not written out: patterns, and names with an unknown part. What is known of one is absolute.
    pub(crate) unwritten: Arc<[Field]>,
    /// The user's home.
    pub(crate) home: Option<Arc<Path>>,
    /// Folders under another name: what they are called here, and where they really are.
    pub(crate) mounts: Vec<(String, String)>,
    /// Whether it is another machine or a container.
    pub(crate) elsewhere: bool,
}

impl Deref for ShellPlace {
    type Target = Surroundings;

    fn deref(&self) -> &Surroundings {
        &self.0
    }
}

impl DerefMut for ShellPlace {
    fn deref_mut(&mut self) -> &mut Surroundings {
        Arc::make_mut(&mut self.0)
    }
}

impl PartialEq for ShellPlace {
    fn eq(&self, other: &ShellPlace) -> bool {
        let same = || {
            self.has_folders_of(other)
                && (self.lost, self.above, self.elsewhere) == (other.lost, other.above, other.elsewhere)
                && self.unwritten == other.unwritten
                && (&self.home, &self.mounts) == (&other.home, &other.mounts)
        };
        Arc::ptr_eq(&self.0, &other.0) || same()
    }
}

/// How many folders a command may run in before that counts as unknown.
const MOST_FOLDERS: usize = 8;

impl ShellPlace {
    /// These folders, any of them.
    pub(crate) fn new(folders: Vec<PathBuf>, home: Option<&Path>) -> ShellPlace {
        let known = Surroundings { folders: folders.into(), home: home.map(Arc::from), ..Surroundings::default() };
        ShellPlace(Arc::new(known))
    }

    /// May also be where the other may be.
    pub(crate) fn add(&mut self, other: &ShellPlace) {
        if other.lost && !self.lost {
            self.lost = true;
        }
        if other.above && !self.above {
            self.above = true;
        }
        for field in other.unwritten.iter().filter(|field| !self.unwritten.contains(field)).collect::<Vec<_>>() {
            self.keep_unwritten(field.clone());
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
    pub(crate) fn repeat_since(&mut self, before: &ShellPlace) {
        if self == before {
            return;
        }
        let is_inside = |folder: &PathBuf| before.folders.iter().any(|start| path::is_in_folder(folder, start));
        let above = self.above || !self.folders.iter().all(is_inside);
        (self.lost, self.above) = (true, above);
    }

    /// Whether it may be in the same folders as the other.
    pub(crate) fn has_folders_of(&self, other: &ShellPlace) -> bool {
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
        self.add(&ShellPlace::new(vec![path::join(Path::new("/"), folder)], None));
    }

    /// May be in a folder that is not written out.
    fn lose_at(&mut self, target: &Field) {
        if target.text.is_empty() || target.text.starts_with('/') {
            return self.keep_unwritten(target.clone());
        }
        for folder in Arc::clone(&self.folders).iter() {
            let text = path::in_folder(folder, &target.text).to_string_lossy().into_owned();
            self.keep_unwritten(Field { text, ..target.clone() });
        }
    }

    fn keep_unwritten(&mut self, folder: Field) {
        if self.unwritten.len() < MOST_FOLDERS && !self.unwritten.contains(&folder) {
            self.unwritten = self.unwritten.iter().cloned().chain([folder]).collect();
        }
    }

    /// The place after a change to the home.
    pub(crate) fn change_to_home(&mut self, home: &Path) {
        (self.folders, self.unwritten) = ([home.to_path_buf()].into(), Arc::default());
        (self.lost, self.above) = (false, false);
    }

    /// The same place, as seen from which a folder that is not written out stands in the paths themselves.
    pub(crate) fn written_out(&self) -> ShellPlace {
        let mut place = self.clone();
        (place.unwritten, place.lost, place.above) = (Arc::default(), false, false);
        place
    }

    /// What a field may name in each folder that is not written out.
    pub(crate) fn unwritten_paths(&self, field: &Field) -> impl Iterator<Item = Field> {
        self.unwritten.iter().filter_map(|folder| folder.with_path(field))
    }

    /// The place after a change to this folder has worked.
    pub(crate) fn change(&mut self, target: &Field) {
        let before = Arc::clone(&self.unwritten);
        if !before.is_empty() {
            self.unwritten = before.iter().filter_map(|folder| folder.with_path(target)).collect();
        }
        let Some(target) = target.known() else {
            self.lost = true;
            self.lose_at(target);
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
