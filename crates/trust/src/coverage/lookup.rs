//! Looks up names: finds the file, folder or module of the folder that a word means.

use std::path::{Path, PathBuf};

use ollm_store::plain_path;

use super::script::{self, Language};
use super::{CoverageError, FoundName, LONGEST_PATH, MARKS, MOST_FILES, MOST_WORDS, MentionedFiles, Search};

impl Search<'_> {
    /// Covers the files that a text mentions.
    pub(super) fn text(&mut self, text: &str) -> Result<(), CoverageError> {
        let (known, from_here) = (self.coverage.files.len(), self.from_here);
        self.every_name(text)?;
        if self.mentioned == MentionedFiles::Code {
            let found = self.coverage.files.split_off(known);
            self.coverage.files.extend(found.into_iter().filter(|file| script::looks_like_code(file)));
            self.from_here &= from_here || self.coverage.files.len() > known;
        }
        Ok(())
    }

    /// Covers every file that a text may name, and returns these files, including those that were covered before.
    pub(super) fn every_name(&mut self, text: &str) -> Result<Vec<PathBuf>, CoverageError> {
        let option = text.strip_prefix('-');
        let joined = option.and_then(|_| text.split_once('=')).map_or(text, |(_, value)| value);
        // `-rFILE`
        let attached = option.filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.get(1..));
        let breaks = |letter: char| letter.is_whitespace() || MARKS.contains(&letter);
        let parts = text.split_whitespace().chain(text.split(breaks)).filter(|_| text.contains(breaks));
        let mut files = Vec::new();
        for name in [joined].into_iter().chain(attached).chain(parts) {
            if let FoundName::File(file) = self.named(name)? {
                files.push(file);
            }
        }
        Ok(files)
    }

    /// Looks up a name, and covers the file if it means one.
    pub(super) fn named(&mut self, word: &str) -> Result<FoundName, CoverageError> {
        let address = word.strip_prefix("file://").map(local);
        let word = address.as_deref().unwrap_or(word);
        if word.is_empty() || word.len() > LONGEST_PATH || word.contains('\0') {
            return Ok(FoundName::Nothing);
        }
        let mut found = FoundName::Nothing;
        for here in self.here.clone() {
            let known = self.coverage.files.len();
            let at = self.at(&here.join(word))?;
            self.from_here |= Path::new(word).is_relative() && self.coverage.files.len() > known;
            match at {
                FoundName::Nothing => {}
                // The nearest match is the usual meaning, but files in the other folders are covered as well.
                other if matches!(found, FoundName::Nothing) => found = other,
                _ => {}
            }
        }
        Ok(found)
    }

    /// Looks up a path within the folder. If it is a link to a file elsewhere, the file is known by the link's own
    /// place. It has that place in the copy, too.
    pub(super) fn at(&mut self, path: &Path) -> Result<FoundName, CoverageError> {
        self.words += 1;
        if self.words > MOST_WORDS || self.coverage.files.len() > MOST_FILES {
            return Err(CoverageError::TooMuch);
        }
        let clean = plain_path(path);
        let top = &self.places.top;
        if clean.starts_with(top) {
            // Whether a name exists depends on the folder that would hold it.
            let nearest = clean.ancestors().skip(1).find(|ancestor| ancestor.is_dir());
            self.seen.extend(nearest.map(Path::to_owned));
        }
        let Ok(real) = path.canonicalize() else { return Ok(FoundName::Nothing) };
        let Some(place) = self.place_of(path, &real) else { return Ok(FoundName::Nothing) };
        if real.is_dir() {
            return Ok(FoundName::Folder(place));
        }
        if !real.is_file() {
            return Ok(FoundName::Nothing);
        }
        self.cover(&place, real);
        Ok(FoundName::File(place))
    }

    /// The place of a path's target in the folder: its own place, or that of the link.
    pub(super) fn place_of(&self, path: &Path, real: &Path) -> Option<PathBuf> {
        let is_inside = |path: &PathBuf| path.starts_with(&self.places.top);
        let link = || Some(plain_path(path)).filter(is_inside).or_else(|| beside_itself(path).filter(is_inside));
        Some(real.to_owned()).filter(is_inside).or_else(link)
    }

    /// Adds a file to the covered ones.
    pub(super) fn cover(&mut self, place: &Path, real: PathBuf) {
        if !self.coverage.files.iter().any(|file| file == place) {
            self.coverage.leads_out.extend((place != real).then(|| (place.to_owned(), real)));
            self.coverage.files.push(place.to_owned());
        }
    }

    /// Covers the files that Python runs for a module, in all folders where Python looks.
    pub(super) fn module(&mut self, name: &str) -> Result<(), CoverageError> {
        for folder in self.here.clone() {
            if self.module_in(name, &folder, &folder)? {
                self.coverage.needs_its_place = true;
                self.coverage.modules = self.places.here.first().cloned();
                self.from_here = true;
            }
        }
        for folder in self.roots.clone() {
            self.module_in(name, &folder, &folder)?;
        }
        Ok(())
    }

    /// Covers a module of a folder; returns whether there is one.
    pub(super) fn module_in(&mut self, name: &str, folder: &Path, root: &Path) -> Result<bool, CoverageError> {
        let mut place = folder.to_owned();
        let mut found = false;
        for part in name.split('.').filter(|part| !part.is_empty()) {
            let file = place.join(format!("{part}.py"));
            place.push(part);
            for file in [file, place.join("__init__.py"), place.join("__main__.py")] {
                if let FoundName::File(file) = self.at(&file)? {
                    self.code.push((file, Some(Language::Python), root.to_owned()));
                    found = true;
                }
            }
        }
        Ok(found)
    }

    /// Covers every module of a folder.
    pub(super) fn modules_in(&mut self, folder: &Path) -> Result<(), CoverageError> {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            self.seen.insert(folder.clone());
            let mut entries: Vec<PathBuf> =
                std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
            entries.sort_unstable();
            for entry in entries {
                let is_code =
                    entry.extension().is_some_and(|extension| ["py", "pth", "so"].iter().any(|e| extension == *e));
                if entry.is_dir() && entry.is_symlink() {
                    self.whole_folder(&entry);
                } else if entry.is_dir() {
                    folders.push(entry);
                } else if is_code {
                    self.at(&entry)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn whole_folder(&mut self, folder: &Path) {
        let short = self.short(folder);
        self.coverage.uncovered.push(format!("`{short}` is a folder, and anything in it may run"));
    }

    pub(super) fn made_up(&mut self, name: &str, file: Option<&Path>) {
        let place = self.within(file);
        self.coverage.uncovered.push(format!("`{name}`{place} is a name that is made up when it runs"));
    }

    /// The file that contains something, as part of a sentence.
    pub(super) fn within(&self, file: Option<&Path>) -> String {
        file.map(|file| format!(" in `{}`", self.short(file))).unwrap_or_default()
    }

    /// A path, relative to the folder if it lies in it.
    pub(super) fn short(&self, path: &Path) -> String {
        match path.strip_prefix(&self.places.top) {
            Ok(place) if place == Path::new("") => ".".to_owned(),
            Ok(place) => place.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }
}

/// The path of a link, with the links in its folder resolved.
fn beside_itself(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

/// The path in the rest of a `file://` address.
fn local(rest: &str) -> String {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        let escaped = (*first == b'%').then(|| rest.get(..2)).flatten();
        let byte = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        left = if byte.is_some() { rest.get(2..).unwrap_or_default() } else { rest };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
