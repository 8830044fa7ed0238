//! Many paths, resolved by asking the system about each folder once.

use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

use super::{follow, in_folder, is_in_folder, is_same};

/// No path of the system is longer.
const LONGEST: usize = 4096;

/// Resolves many paths that share their folders, asking the system about each folder once.
#[derive(Default)]
pub(crate) struct Resolver {
    /// What paths resolve to, and whether they exist.
    seen: HashMap<OsString, (PathBuf, bool)>,
    /// The folder of the last path: many files of one folder are asked about.
    last: Option<(PathBuf, PathBuf, bool)>,
    /// The last folder that is not there, and what it resolves to: nothing is in it.
    missing: Option<(PathBuf, PathBuf)>,
}

impl Resolver {
    /// A tidy path with the links in it resolved, as far as it exists, and whether it does.
    pub(crate) fn look(&mut self, path: &Path) -> (PathBuf, bool) {
        if path.as_os_str().len() > LONGEST {
            return (path.to_owned(), false);
        }
        if let Some((missing, real)) = self.missing.as_ref().filter(|(missing, _)| is_in_folder(path, missing)) {
            if is_same(missing, real) {
                return (path.to_owned(), false);
            }
            let rest = path.strip_prefix(missing).ok().filter(|rest| !rest.as_os_str().is_empty());
            return (rest.map_or_else(|| real.clone(), |rest| real.join(rest)), false);
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return (path.to_owned(), true) };
        if self.last.as_ref().is_none_or(|(last, ..)| !is_same(last, folder)) {
            let (real, exists) = self.walk(folder);
            self.last = Some((folder.to_owned(), real, exists));
        }
        match &self.last {
            Some((_, real, false)) => (real.join(name), false),
            _ => self.walk(path),
        }
    }

    /// Whether nothing is there by this path from a tidy folder, and no link on the way.
    pub(crate) fn lacks(&mut self, folder: &Path, path: &str) -> bool {
        self.is_missing(folder) || {
            let path = in_folder(folder, path.trim_end_matches('/'));
            let (real, exists) = self.look(&path);
            !exists && is_same(&real, &path)
        }
    }

    /// Whether no link is on the way from a tidy folder to what this path names.
    pub(crate) fn leads_straight(&mut self, folder: &Path, path: &str) -> bool {
        let Some((before, _)) = path.trim_end_matches('/').rsplit_once('/') else { return true };
        self.is_missing(folder) || {
            let path = in_folder(folder, before);
            is_same(&self.look(&path).0, &path)
        }
    }

    fn is_missing(&self, folder: &Path) -> bool {
        self.missing.as_ref().is_some_and(|(missing, _)| is_in_folder(folder, missing))
    }

    /// The same as `look`, from the nearest folder on that was looked at.
    fn walk(&mut self, path: &Path) -> (PathBuf, bool) {
        let known = |path: &Path| self.seen.get(path.as_os_str()).cloned();
        let mut ancestors = path.ancestors().map(|folder| (folder, known(folder)));
        let nearest = ancestors.find_map(|(folder, known)| known.map(|known| (folder, known)));
        let (mut prefix, (mut real, mut exists)) = match nearest {
            Some((folder, known)) => (folder.to_owned(), known),
            None => (PathBuf::new(), (PathBuf::new(), true)),
        };
        let Ok(rest) = path.strip_prefix(&prefix) else { return (path.to_owned(), false) };
        if rest.as_os_str().is_empty() {
            return (real, exists);
        }
        let mut parts = rest.components().peekable();
        while let Some(part) = parts.next() {
            real.push(part);
            if !exists {
                continue;
            }
            prefix.push(part);
            if matches!(part, Component::Normal(_)) {
                if let Some(found) = found(&real) {
                    real = found;
                } else {
                    exists = false;
                    // Much is asked about in a folder, nothing in a file.
                    if parts.peek().is_some() || self.missing.is_none() {
                        self.missing = Some((prefix.clone(), real.clone()));
                    }
                }
            }
            self.seen.insert(prefix.clone().into_os_string(), (real.clone(), exists));
        }
        if !exists {
            self.seen.insert(path.into(), (real.clone(), false));
        }
        (real, exists)
    }
}

/// What is at a place whose folder has no links, if anything is.
fn found(place: &Path) -> Option<PathBuf> {
    let found = std::fs::symlink_metadata(place).ok()?;
    Some(if found.file_type().is_symlink() { follow(place) } else { place.to_owned() })
}
