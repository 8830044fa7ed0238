//! Whether a path is, holds or lies in a protected one, however it is spelled.

use std::path::{Path, PathBuf};

use crate::{
    field::{Field, Place},
    path,
};

/// How far a change reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The file named, and whatever lies below it.
    File,
    /// Also every folder that it is in: removed or moved as a whole.
    Tree,
    /// As with [`Reach::Tree`], unless a folder is there already, which then only gets something new.
    Replacement,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    /// The path is protected.
    Sure(PathBuf),
    /// It may be.
    Perhaps(PathBuf),
}

/// The protected paths, ready for comparison.
pub(super) struct Watch {
    guarded: Vec<Guarded>,
}

struct Guarded {
    path: PathBuf,
    /// The parts as written, and as they are once links are followed.
    keys: Vec<Vec<String>>,
}

impl Watch {
    pub(super) fn new(protected: &[PathBuf]) -> Watch {
        let mut resolver = path::Resolver::default();
        let guarded = protected.iter().map(|path| {
            let tidied = path::tidy(path);
            let mut keys = vec![path::folded(&tidied), path::folded(&resolver.resolve(&tidied))];
            keys.dedup();
            keys.retain(|key| !key.is_empty());
            Guarded { path: path.clone(), keys }
        });
        Watch { guarded: guarded.collect() }
    }

    /// Whether a change of this field changes something protected.
    pub(super) fn check(&self, field: &Field, place: &Place, reach: Reach) -> Option<Hit> {
        if field.text.is_empty() && field.tail.as_deref().is_none_or(str::is_empty) {
            return None;
        }
        if field.open() {
            return self.check_open(field, place);
        }
        let relative = !field.text.starts_with('/');
        if relative
            && place.lost
            && let Some(hit) = self.by_ending(&field.text, reach)
        {
            return Some(hit);
        }
        place.folders.iter().find_map(|folder| {
            let raw = folder.join(&field.text);
            // A folder that commands run in is there, and so is one that is written with a slash.
            let is_folder =
                field.text.ends_with('/') || place.folders.iter().any(|here| here.starts_with(path::tidy(&raw)));
            let reach = if is_folder && reach == Reach::Replacement { Reach::File } else { reach };
            self.check_path(&raw, field.glob, reach)
        })
    }

    /// Whether code names something protected.
    pub(super) fn mentioned(&self, code: &str) -> Option<PathBuf> {
        let code = path::fold(code);
        let named = |guarded: &&Guarded| {
            guarded.keys.iter().any(|key| match key.as_slice() {
                [.., last] if last.starts_with('.') => code.contains(last.as_str()),
                [.., folder, last] if folder.starts_with('.') => {
                    code.contains(folder.as_str()) && code.contains(last.as_str())
                }
                [.., folder, last] => code.contains(&format!("{folder}/{last}")),
                _ => false,
            })
        };
        self.guarded.iter().find(named).map(|guarded| guarded.path.clone())
    }

    fn check_path(&self, raw: &Path, glob: bool, reach: Reach) -> Option<Hit> {
        let tidied = path::tidy(raw);
        if glob {
            return self.by_pattern(&path::folded(&tidied), reach);
        }
        let resolved = path::resolve(raw);
        let mut spellings = vec![path::folded(&tidied), path::folded(&resolved)];
        if let Some(text) = raw.to_str().filter(|text| text.contains('\\')) {
            spellings.push(path::folded(&path::tidy(Path::new(&text.replace('\\', "/")))));
        }
        spellings.dedup();
        let reach = match reach {
            Reach::Replacement if resolved.is_dir() => Reach::File,
            Reach::Replacement => Reach::Tree,
            other => other,
        };
        let hit = self.guarded.iter().find(|guarded| {
            guarded.keys.iter().any(|key| {
                spellings
                    .iter()
                    .any(|spelling| spelling.starts_with(key) || (reach == Reach::Tree && key.starts_with(spelling)))
            })
        });
        hit.map(|guarded| guarded.path.clone()).or_else(|| self.by_identity(&resolved)).map(Hit::Sure)
    }

    fn by_pattern(&self, pattern: &[String], reach: Reach) -> Option<Hit> {
        let fits = |key: &Vec<String>| {
            let all = pattern.iter().zip(key).all(|(pattern, name)| path::fits(pattern, name));
            all && (pattern.len() >= key.len() || reach != Reach::File)
        };
        let hit = self.guarded.iter().find(|guarded| guarded.keys.iter().any(fits));
        hit.map(|guarded| Hit::Perhaps(guarded.path.clone()))
    }

    /// A path that begins somewhere unknown: its parts decide.
    fn by_ending(&self, text: &str, reach: Reach) -> Option<Hit> {
        let parts = path::folded(&path::tidy(Path::new(text.trim_start_matches('/'))));
        let ends = |key: &Vec<String>| {
            let hidden = |part: &String| part.starts_with('.');
            (1..=parts.len().min(key.len())).any(|count| {
                let (Some(begin), Some(end)) = (parts.get(..count), key.get(key.len() - count..)) else { return false };
                begin == end && (count > 1 || begin.iter().any(hidden))
            }) || (reach != Reach::File && parts.last().is_some_and(|last| hidden(last) && key.contains(last)))
        };
        let hit = self.guarded.iter().find(|guarded| guarded.keys.iter().any(ends));
        hit.map(|guarded| Hit::Perhaps(guarded.path.clone()))
    }

    /// A field with an unknown part: the folder before it, or the parts behind it.
    fn check_open(&self, field: &Field, place: &Place) -> Option<Hit> {
        if let Some((folder, _)) = field.text.rsplit_once('/').filter(|(folder, _)| !folder.is_empty()) {
            let inside =
                place.folders.iter().find_map(|base| self.check_path(&base.join(folder), field.glob, Reach::File));
            if inside.is_some() {
                return inside;
            }
        }
        let tail = field.tail.as_deref().unwrap_or_default();
        let (_, tail) = tail.split_once('/')?;
        self.by_ending(tail, Reach::File)
    }

    /// Another name of the same file.
    #[cfg(unix)]
    fn by_identity(&self, resolved: &Path) -> Option<PathBuf> {
        use std::os::unix::fs::MetadataExt;
        let target = std::fs::metadata(resolved).ok().filter(|found| found.is_file() && found.nlink() > 1)?;
        let same = |path: &Path| {
            std::fs::metadata(path).is_ok_and(|found| found.dev() == target.dev() && found.ino() == target.ino())
        };
        let hit = self
            .guarded
            .iter()
            .find(|guarded| same(&guarded.path) || below(&guarded.path).iter().any(|file| same(file)));
        hit.map(|guarded| guarded.path.clone())
    }

    #[cfg(not(unix))]
    fn by_identity(&self, _resolved: &Path) -> Option<PathBuf> {
        None
    }
}

/// The files in a folder and its folders, up to a bound.
#[cfg(unix)]
fn below(folder: &Path) -> Vec<PathBuf> {
    const MOST: usize = 2048;
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && folders.len() < MOST => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
            if files.len() >= MOST {
                return files;
            }
        }
    }
    files
}
