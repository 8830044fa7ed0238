//! Looks up names: which file, folder or module of the folder a word means.

use std::path::{Path, PathBuf};

use ollm_store::plain_path;

use super::script::{self, Language};
use super::{CoverageError, Found, LONGEST_PATH, MARKS, MOST_FILES, MOST_WORDS, Mentioned, Search};

impl Search<'_> {
    /// The files that a text mentions.
    pub(super) fn text(&mut self, text: &str) -> Result<(), CoverageError> {
        let (known, from_here) = (self.coverage.files.len(), self.from_here);
        self.every_name(text)?;
        if self.mentioned == Mentioned::Code {
            let found = self.coverage.files.split_off(known);
            self.coverage.files.extend(found.into_iter().filter(|file| script::looks_like_code(file)));
            self.from_here &= from_here || self.coverage.files.len() > known;
        }
        Ok(())
    }

    /// Everything in a text that may name a file.
    pub(super) fn every_name(&mut self, text: &str) -> Result<(), CoverageError> {
        let option = text.strip_prefix('-');
        let joined = option.and_then(|_| text.split_once('=')).map_or(text, |(_, value)| value);
        self.named(joined)?;
        // `-rFILE`
        if let Some(value) = option.filter(|rest| !rest.starts_with('-')).and_then(|rest| rest.get(1..)) {
            self.named(value)?;
        }
        let breaks = |letter: char| letter.is_whitespace() || MARKS.contains(&letter);
        if text.contains(breaks) {
            for part in text.split_whitespace().chain(text.split(breaks)) {
                self.named(part)?;
            }
        }
        Ok(())
    }

    /// A name that may be one of a file; a file counts from now on.
    pub(super) fn named(&mut self, word: &str) -> Result<Found, CoverageError> {
        let address = word.strip_prefix("file://").map(local);
        let word = address.as_deref().unwrap_or(word);
        if word.is_empty() || word.len() > LONGEST_PATH || word.contains('\0') {
            return Ok(Found::Nothing);
        }
        let mut found = Found::Nothing;
        for here in self.here.clone() {
            let known = self.coverage.files.len();
            let at = self.at(&here.join(word))?;
            self.from_here |= Path::new(word).is_relative() && self.coverage.files.len() > known;
            match at {
                Found::Nothing => {}
                // What is nearest to the beginning is what is meant, but what runs elsewhere counts as well.
                other if matches!(found, Found::Nothing) => found = other,
                _ => {}
            }
        }
        Ok(found)
    }

    /// What stands at a path, if it stands in the folder. What a link leads to that lies elsewhere is known by the link's own
    /// place, and has that place in the copy.
    pub(super) fn at(&mut self, path: &Path) -> Result<Found, CoverageError> {
        self.words += 1;
        if self.words > MOST_WORDS || self.coverage.files.len() > MOST_FILES {
            return Err(CoverageError::TooMuch);
        }
        let clean = plain_path(path);
        let top = &self.places.top;
        if clean.starts_with(top) {
            // Whether a name exists changes with the folder that would hold it.
            let nearest = clean.ancestors().skip(1).find(|ancestor| ancestor.is_dir());
            self.seen.extend(nearest.map(Path::to_owned));
        }
        let Ok(real) = path.canonicalize() else { return Ok(Found::Nothing) };
        let Some(place) = self.place_of(path, &real) else { return Ok(Found::Nothing) };
        if real.is_dir() {
            return Ok(Found::Folder(place));
        }
        if !real.is_file() {
            return Ok(Found::Nothing);
        }
        self.cover(&place, real);
        Ok(Found::File(place))
    }

    /// The place in the folder of what a path leads to: its own, or that of the link.
    pub(super) fn place_of(&self, path: &Path, real: &Path) -> Option<PathBuf> {
        let is_inside = |path: &PathBuf| path.starts_with(&self.places.top);
        let link = || Some(plain_path(path)).filter(is_inside).or_else(|| beside_itself(path).filter(is_inside));
        Some(real.to_owned()).filter(is_inside).or_else(link)
    }

    /// A file counts from now on.
    pub(super) fn cover(&mut self, place: &Path, real: PathBuf) {
        if !self.coverage.files.iter().any(|file| file == place) {
            self.coverage.leads_out.extend((place != real).then(|| (place.to_owned(), real)));
            self.coverage.files.push(place.to_owned());
        }
    }

    /// The files that Python runs for a module, wherever it looks.
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

    /// Whether there is such a module in a folder; its files count from now on.
    pub(super) fn module_in(&mut self, name: &str, folder: &Path, root: &Path) -> Result<bool, CoverageError> {
        let mut place = folder.to_owned();
        let mut found = false;
        for part in name.split('.').filter(|part| !part.is_empty()) {
            let file = place.join(format!("{part}.py"));
            place.push(part);
            for file in [file, place.join("__init__.py"), place.join("__main__.py")] {
                if let Found::File(file) = self.at(&file)? {
                    self.code.push((file, Some(Language::Python), root.to_owned()));
                    found = true;
                }
            }
        }
        Ok(found)
    }

    /// Every module of a folder.
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
        let place = file.map(|file| format!(" in `{}`", self.short(file))).unwrap_or_default();
        self.coverage.uncovered.push(format!("`{name}`{place} is a name that is made up when it runs"));
    }

    /// A path in the words of somebody who stands in the folder.
    pub(super) fn short(&self, path: &Path) -> String {
        match path.strip_prefix(&self.places.top) {
            Ok(place) if place == Path::new("") => ".".to_owned(),
            Ok(place) => place.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }
}

/// The path of a link whose folder is known by its real name.
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
