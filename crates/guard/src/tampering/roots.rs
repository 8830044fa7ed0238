//! The folders below which files are protected: enough to tell most paths apart from all of them.
//!
//! Nothing is written out here. A path that lies in none of these folders, or in one of them below a name that is in no
//! row of the table, is not protected, unless a protected file is a link that leads there.

use std::{
    cell::OnceCell,
    path::{Path, PathBuf},
};

use ollm_protocol::protected::{From, PROTECTED, Row};

use crate::{
    names::Names,
    path::{self, Pattern},
};

/// A folder with protected files in it.
pub(super) struct Root {
    path: PathBuf,
    /// The key of the folder as written, and the key of the folder behind all links.
    keys: Vec<String>,
    names: fn(&Row) -> &'static [&'static str],
    /// The first parts of the names.
    firsts: Vec<&'static str>,
}

/// All such folders, and what is protected elsewhere.
pub(super) struct Roots {
    folders: Vec<Root>,
    /// The keys of single files, and of files to which protected links lead.
    single: Vec<String>,
    /// The last letters of all parts, small and large: most patterns end with none of them.
    last_letters: OnceCell<[bool; 256]>,
}

/// A protected path: a folder and a name in it.
pub(super) struct NamedPath<'a> {
    root: &'a Path,
    pub(super) folder: &'a str,
    pub(super) last: &'a str,
    name: &'static str,
}

impl NamedPath<'_> {
    pub(super) fn path(&self) -> PathBuf {
        self.root.join(self.name)
    }
}

impl Root {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        let rows = PROTECTED.iter().filter(|row| row.from == From::Everybody);
        rows.flat_map(|row| (self.names)(row).iter().copied())
    }

    fn has(&self, first: &str) -> bool {
        self.firsts.iter().any(|known| known.eq_ignore_ascii_case(first))
    }
}

impl Roots {
    /// The home, the projects, and single files.
    pub(super) fn new(
        home: Option<&Path>,
        projects: &[PathBuf],
        single: &[PathBuf],
        look: &mut path::Resolver,
    ) -> Roots {
        let below_home: fn(&Row) -> &'static [&'static str] = |row| row.home;
        let below_project: fn(&Row) -> &'static [&'static str] = |row| row.project;
        let folders = home.into_iter().map(|home| (home, below_home));
        let folders = folders.chain(projects.iter().map(|project| (project.as_path(), below_project)));
        let mut roots = Roots { folders: Vec::new(), single: Vec::new(), last_letters: OnceCell::new() };
        for (folder, names) in folders {
            let (real, exists) = look.look(folder);
            let mut keys = vec![path::key(folder)];
            keys.extend((real != folder).then(|| path::key(&real)));
            let mut root = Root { path: folder.to_owned(), keys, names, firsts: Vec::new() };
            root.firsts = root.names().map(first_part).collect();
            root.firsts.dedup();
            if exists {
                roots.single.extend(links(&root, &real, look));
            }
            roots.folders.push(root);
        }
        for file in single {
            let real = look.look(file).0;
            roots.single.push(path::key(file));
            roots.single.extend((real != *file).then(|| path::key(&real)));
        }
        // A link to the root protects nothing: all would be in it.
        roots.single.retain(|key| !key.is_empty());
        roots
    }

    /// Whether a change of the path with this key may change something protected: all that it is in, with `whole`.
    pub(super) fn may_hold(&self, key: &str, whole: bool) -> bool {
        let mut roots = self.folders.iter().flat_map(|root| root.keys.iter().map(move |folder| (root, folder)));
        let below = roots.any(|(root, folder)| match key.strip_prefix(folder.as_str()) {
            Some("") => whole,
            Some(rest) => root.has(first_part(rest)),
            None => whole && folder.starts_with(key),
        });
        below || self.single.iter().any(|single| key.starts_with(single) || (whole && single.starts_with(key)))
    }

    /// The names that may be protected among all that are in the folder with this key; nothing if any may.
    pub(super) fn names_in(&self, key: &str) -> Option<Vec<&'static str>> {
        let mut names = Vec::new();
        for (root, folder) in self.folders.iter().flat_map(|root| root.keys.iter().map(move |folder| (root, folder))) {
            match key.strip_prefix(folder.as_str()) {
                Some("") => names.extend(&root.firsts),
                Some(rest) if root.has(first_part(rest)) => return None,
                None if folder.starts_with(key) => return None,
                _ => {}
            }
        }
        let near = self.single.iter().any(|single| key.starts_with(single) || single.starts_with(key));
        (!near).then_some(names)
    }

    /// Whether a pattern may fit something protected, or something that it is in.
    pub(super) fn may_fit(&self, pattern: &[String]) -> bool {
        let fits_folder = |folder: &str| {
            let mut wanted = pattern.iter();
            let fits =
                folder.split_terminator('/').all(|part| wanted.next().is_none_or(|wanted| fits_part(wanted, part)));
            fits.then_some(wanted.next())
        };
        let mut roots = self.folders.iter().flat_map(|root| root.keys.iter().map(move |folder| (root, folder)));
        let below = roots.any(|(root, folder)| match fits_folder(folder) {
            Some(Some(wanted)) if !wanted.contains(['*', '?', '[']) => root.has(wanted),
            Some(Some(wanted)) => {
                // As in a shell, wildcards do not reach hidden names.
                let reaches = |name: &&str| !name.starts_with('.') || !wanted.starts_with(['*', '?', '[']);
                let fits = |name: &str| path::fits(wanted, &name.to_ascii_lowercase());
                root.firsts.iter().copied().filter(reaches).any(fits)
            }
            Some(None) => true,
            None => false,
        });
        below || self.single.iter().any(|single| fits_folder(single).is_some())
    }

    /// Whether a folded name is part of a protected path, wherever that begins.
    pub(super) fn has_part(&self, part: &str) -> bool {
        let mut keys = self.folders.iter().flat_map(|root| &root.keys).chain(&self.single);
        is_part(part) || keys.any(|key| key.split('/').any(|known| known == part))
    }

    /// Whether a part of a protected path may end as what fits this pattern does.
    pub(super) fn may_end(&self, pattern: &Pattern<'_>) -> bool {
        let letters = self.last_letters.get_or_init(|| {
            let mut letters = [false; 256];
            self.any_part(|part| {
                let last = part.bytes().next_back().map(|last| last.to_ascii_lowercase());
                if let Some(seen) = last.and_then(|last| letters.get_mut(usize::from(last))) {
                    *seen = true;
                }
                false
            });
            letters
        });
        let last = pattern.last_letter();
        last.is_none_or(|last| letters.get(usize::from(last)) == Some(&true))
            && self.any_part(|part| pattern.may_end(part))
    }

    /// Whether this holds for a part of a protected path; letters may be of either case.
    fn any_part(&self, mut holds: impl FnMut(&str) -> bool) -> bool {
        let mut has = |name: &str| name.split('/').any(&mut holds);
        self.folders.iter().any(|root| root.keys.iter().any(|key| has(key)) || root.names().any(&mut has))
            || self.single.iter().any(|single| has(single))
    }

    /// Everything in the table, written for these folders.
    pub(super) fn named(&self) -> impl Iterator<Item = NamedPath<'_>> {
        let folders = self.folders.iter().flat_map(|root| root.keys.iter().map(move |key| (root, key)));
        folders.flat_map(|(root, key)| {
            let folder = key.split_terminator('/').next_back().unwrap_or_default();
            root.names().map(move |name| {
                let mut parts = name.rsplit('/');
                let last = parts.next().unwrap_or_default();
                NamedPath { root: &root.path, folder: parts.next().unwrap_or(folder), last, name }
            })
        })
    }

    /// The keys of single files.
    pub(super) fn single(&self) -> &[String] {
        &self.single
    }
}

/// All parts of all names in the table.
const PARTS: Names<512> = parts();

const fn parts() -> Names<512> {
    let (mut names, mut rows) = (Names::of(&[]), PROTECTED);
    while let Some((row, rest)) = rows.split_first() {
        names = names.with_parts(row.home, 1).with_parts(row.project, 1);
        rows = rest;
    }
    names
}

/// Whether some name in the table has this part.
pub(super) fn is_part(part: &str) -> bool {
    PARTS.tables_with(part) != 0
}

/// Whether a part of a path fits; most parts of a pattern are none.
fn fits_part(wanted: &str, part: &str) -> bool {
    wanted == part || (wanted.contains(['*', '?', '[']) && path::fits(wanted, part))
}

fn first_part(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

/// The keys of what protected links in a folder lead to.
fn links(root: &Root, real: &Path, look: &mut path::Resolver) -> Vec<String> {
    let mut links = Vec::new();
    // Most agents have no files here: then there are no links either.
    let mut missing = "";
    for name in root.names() {
        let first = first_part(name);
        if first == missing {
            continue;
        }
        if !look.look(&real.join(first)).1 {
            missing = first;
            continue;
        }
        let place = real.join(name);
        let found = look.look(&place).0;
        links.extend((found != place).then(|| path::key(&found)));
    }
    links
}
