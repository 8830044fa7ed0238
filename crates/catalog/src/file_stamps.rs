//! Stamps of files: a long-lived process compares them to notice changes without reading the files.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::load::{PROJECT_SETTINGS, USER_SETTINGS};
use crate::place::Places;

/// The most entries below one folder; an extension may bring huge folders.
const MOST_ENTRIES: usize = 2000;
/// The deepest folder; nothing that is read lies deeper.
const DEEPEST: usize = 8;

/// The state of all files that affect what is loaded. Two stamps are equal as long as none of the files was written,
/// replaced, added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamps(u64);

impl FileStamps {
    /// Looks at hook files, configuration, declarations of servers, these folders of extensions, and these files.
    ///
    /// ```
    /// use ollm_catalog::{FileStamps, Places};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let home = folder.path().join(".ollm");
    /// let places = Places { home: home.clone(), ..Places::default() };
    /// let before = FileStamps::take(&places, &[], &[]);
    /// std::fs::create_dir_all(home.join("hooks")).unwrap();
    /// assert_ne!(FileStamps::take(&places, &[], &[]), before);
    /// ```
    pub fn take(places: &Places, extensions: &[PathBuf], files: &[PathBuf]) -> FileStamps {
        FileStamps::take_with_paths(places, extensions, files).0
    }

    /// The same, with the paths at which a change shows.
    pub fn take_with_paths(places: &Places, extensions: &[PathBuf], files: &[PathBuf]) -> (FileStamps, StampedPaths) {
        let mut look = Look::default();
        let projects = places.projects().map(|project| project.join(".ollm"));
        for folder in std::iter::once(places.home.clone()).chain(projects) {
            look.one(&folder.join("config.yaml"));
            look.one(&folder.join("settings/mcp.json"));
            look.whole(&folder.join("hooks"));
        }
        if let Some(policy) = &places.policy {
            look.one(&policy.path);
            look.whole(&policy.folder().join("hooks"));
        }
        let of_user = places.user_home.iter().flat_map(|home| USER_SETTINGS.iter().map(|name| home.join(name)));
        let of_project = places.projects().flat_map(|root| PROJECT_SETTINGS.iter().map(|name| root.join(name)));
        of_user.chain(of_project).for_each(|file| look.one(&file));
        for directory in extensions {
            look.paths.roots.insert(directory.clone());
            look.folder(directory, Look::whole);
        }
        look.finish(files)
    }

    /// Looks at these files alone.
    pub fn of_files(files: &[PathBuf]) -> (FileStamps, StampedPaths) {
        Look::default().finish(files)
    }
}

/// The paths to watch for changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StampedPaths {
    /// The files, which may be missing, and the folders that count with everything in them.
    pub roots: BTreeSet<PathBuf>,
    /// These existing folders and those below them.
    pub folders: BTreeSet<PathBuf>,
}

#[derive(Default)]
struct Look {
    hasher: DefaultHasher,
    /// How many entries may still be looked at.
    left: usize,
    paths: StampedPaths,
}

impl Look {
    fn finish(mut self, files: &[PathBuf]) -> (FileStamps, StampedPaths) {
        for file in files {
            self.one(file);
        }
        (FileStamps(self.hasher.finish()), self.paths)
    }

    /// One file, by what its name leads to.
    fn one(&mut self, path: &Path) {
        self.paths.roots.insert(path.to_owned());
        self.mark(path, path.metadata().ok().as_ref());
    }

    /// A folder with everything in it.
    fn whole(&mut self, path: &Path) {
        self.paths.roots.insert(path.to_owned());
        self.left = MOST_ENTRIES;
        self.below(path, DEEPEST);
    }

    fn below(&mut self, path: &Path, depth: usize) {
        let meta = path.metadata().ok();
        self.mark(path, meta.as_ref());
        if depth > 0 && meta.is_some_and(|meta| meta.is_dir()) {
            self.folder(path, |look, entry| {
                if look.left > 0 {
                    look.left -= 1;
                    look.below(entry, depth - 1);
                }
            });
        }
    }

    /// The entries of a folder in a stable order.
    fn folder(&mut self, path: &Path, mut each: impl FnMut(&mut Look, &Path)) {
        let Ok(entries) = fs::read_dir(path) else { return self.mark(path, None) };
        self.paths.folders.insert(path.to_owned());
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort_unstable();
        for entry in &paths {
            each(self, entry);
        }
    }

    fn mark(&mut self, path: &Path, meta: Option<&Metadata>) {
        path.hash(&mut self.hasher);
        meta.map(signs).hash(&mut self.hasher);
    }
}

/// Values that change whenever a file does, without reading it. A folder changes with its entries, which have stamps of
/// their own.
#[cfg(unix)]
fn signs(meta: &Metadata) -> [i64; 4] {
    use std::os::unix::fs::MetadataExt;
    if meta.is_dir() {
        return [0, 0, 0, i64::from(meta.mode())];
    }
    let changed = meta.ctime().wrapping_mul(1_000_000_000).wrapping_add(meta.ctime_nsec());
    [meta.ino().cast_signed(), meta.size().cast_signed(), changed, i64::from(meta.mode())]
}

#[cfg(not(unix))]
fn signs(meta: &Metadata) -> (u64, Option<std::time::SystemTime>) {
    (meta.len(), meta.modified().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_change_is_noticed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (home, project) = (folder.path().join("home/.ollm"), folder.path().join("project"));
        let user_home = home.parent().map(Path::to_owned);
        let places = Places { home: home.clone(), user_home, project: Some(project.clone()), ..Places::default() };
        let (extensions, switches) = (home.join("extensions"), home.join("state/switches.json"));
        let take = || FileStamps::take(&places, std::slice::from_ref(&extensions), std::slice::from_ref(&switches));
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let mut before = take();
        for path in [
            home.join("config.yaml"),
            home.join("settings/mcp.json"),
            home.join("hooks/a.json"),
            home.join("hooks/trusted/b.json"),
            home.join("../.config/agent/settings.json"),
            project.join(".ollm/hooks/c.json"),
            project.join(".ollm/settings/mcp.json"),
            project.join(".config/agent/settings.local.json"),
            extensions.join("x/manifest.json"),
            extensions.join("x/servers/deep/run.sh"),
            switches.clone(),
        ] {
            for text in ["new", "longer than before"] {
                write(path.clone(), text);
                let after = take();
                assert_ne!(after, before, "{} was written", path.display());
                assert_eq!(after, take());
                before = after;
            }
            let aside = path.with_extension("new");
            fs::write(&aside, "longer than before").unwrap();
            fs::rename(&aside, &path).unwrap();
            assert_ne!(take(), before, "{} was replaced", path.display());
            before = take();
        }
        write(home.join("state/trace.jsonl"), "a line");
        write(project.join("src/main.rs"), "fn main() {}");
        assert_eq!(take(), before);
        fs::remove_dir_all(extensions.join("x")).unwrap();
        assert_ne!(take(), before);
    }
}
