//! Decides which files of a project are watched. Ignored are the files in `.gitignore` and `.ollmignore`, git's and our
//! own files, and temporary files of editors.
//!
//! The walk of the crate `ignore` does not fit: it cannot be asked about a single path, and it also obeys ignore files
//! above the project.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{Error, Match};
use ollm_store::read_bounded;

use super::git::exclude_file;

/// The files with ignore rules; the later one decides.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ollmignore"];
/// A longer ignore file is not read.
const LONGEST: u64 = 1 << 20;

/// The ignore rules below a folder.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    root: PathBuf,
    /// Our own folder, whose files change with each event.
    home: PathBuf,
    /// The rules of each folder that has any.
    folders: HashMap<PathBuf, Gitignore>,
    exclude: Gitignore,
    /// Problems with the ignore files.
    pub(super) problems: Vec<String>,
}

impl IgnoreRules {
    pub(super) fn new(root: &Path, home: &Path) -> IgnoreRules {
        let mut rules = IgnoreRules {
            root: root.to_owned(),
            home: home.canonicalize().unwrap_or_else(|_| home.to_owned()),
            folders: HashMap::new(),
            exclude: Gitignore::empty(),
            problems: Vec::new(),
        };
        let exclude = exclude_file(root).and_then(|file| rules.read(root, &[file]));
        rules.exclude = exclude.unwrap_or_else(Gitignore::empty);
        rules
    }

    /// Reads the ignore files of a folder.
    pub(super) fn enter(&mut self, folder: &Path) {
        match self.read(folder, &IGNORE_FILES.map(|name| folder.join(name))) {
            Some(rules) => drop(self.folders.insert(folder.to_owned(), rules)),
            None => drop(self.folders.remove(folder)),
        }
    }

    /// Whether a path is ignored; its folder is not.
    pub(super) fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        let Some(name) = path.file_name() else { return true };
        if name == ".git" || path.starts_with(&self.home) || (!is_folder && is_editors(name)) {
            return true;
        }
        let folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.root));
        let rules = folders.filter_map(|folder| self.folders.get(folder)).chain([&self.exclude]);
        let mut matches = rules.map(|rules| rules.matched(path, is_folder));
        let decided = matches.find(|found| !found.is_none());
        matches!(decided, Some(Match::Ignore(_)))
    }

    fn read(&mut self, folder: &Path, files: &[PathBuf]) -> Option<Gitignore> {
        let mut builder = GitignoreBuilder::new(folder);
        for file in files {
            let text = match read_bounded(file, LONGEST) {
                Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
                Ok(None) => continue,
                Err(error) => {
                    self.problems.push(format!("{error}; what it ignores is watched"));
                    continue;
                }
            };
            for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
                if let Err(error) = builder.add_line(Some(file.clone()), line) {
                    self.problem(file, number + 1, &error);
                }
            }
        }
        // The builder checks nothing more; rules that it refuses ignore nothing.
        builder.build().ok().filter(|rules| !rules.is_empty())
    }

    fn problem(&mut self, file: &Path, line: usize, error: &Error) {
        self.problems.push(format!("{}:{line}: {error}; the line ignores nothing", file.display()));
    }
}

/// Whether a file contains ignore rules.
pub(super) fn is_ignore_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| IGNORE_FILES.iter().any(|known| name == *known))
}

/// Swap, lock and backup files of vim, Emacs and Kate.
fn is_editors(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let extension = name.rsplit('.').next().unwrap_or_default();
    let is_swap = extension.len() == 3 && extension.starts_with("sw") || extension == "kate-swp";
    (name.starts_with('.') && is_swap)
        || name.starts_with(".#")
        || (name.starts_with('#') && name.ends_with('#'))
        || name.ends_with('~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rule_decides_and_the_ollmignore_has_the_last_word() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::create_dir_all(root.join(".git/info")).unwrap();
        std::fs::write(root.join(".git/info/exclude"), "mine\n").unwrap();
        std::fs::write(root.join(".gitignore"), "*.log\n/dist\n*.gen\n").unwrap();
        std::fs::write(root.join(".ollmignore"), "!*.gen\nslow/\n").unwrap();
        std::fs::write(root.join("src/.gitignore"), "!keep.log\n").unwrap();
        let mut rules = IgnoreRules::new(root, &root.join("home"));
        rules.enter(root);
        rules.enter(&root.join("src"));
        let ignored = |path: &str, is_folder| rules.ignores(&root.join(path), is_folder);
        let cases = [
            ("a.log", false, true),
            ("src/a.log", false, true),
            ("src/keep.log", false, false),
            ("keep.log", false, true),
            ("dist", true, true),
            ("src/dist", true, false),
            ("a.gen", false, false),
            ("slow", true, true),
            ("slow", false, false),
            ("mine", false, true),
            (".git", true, true),
            ("home", true, true),
            ("src/.a.rs.swp", false, true),
            ("src/a.rs~", false, true),
            ("src/a.rs", false, false),
            ("4913", false, false),
        ];
        for (path, is_folder, expected) in cases {
            assert_eq!(ignored(path, is_folder), expected, "{path}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named_and_the_others_count() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".gitignore"), "*.log\n{a\n").unwrap();
        let mut rules = IgnoreRules::new(folder.path(), Path::new("/nowhere"));
        rules.enter(folder.path());
        assert!(rules.ignores(&folder.path().join("a.log"), false));
        assert!(rules.problems.iter().any(|problem| problem.contains(".gitignore:2:")), "{:?}", rules.problems);
    }
}
