//! Decides whether a path is protected, contains a protected path, or lies in one, in any spelling.

mod folders;
mod searches;

use std::{
    cell::{OnceCell, RefCell},
    path::{Component, Path, PathBuf},
    rc::Rc,
    sync::Arc,
};

use ollm_protocol::protected::{From, Lock, Protected, protected};

use super::roots::{Roots, is_part};
use crate::{
    field::{Field, ShellPlace},
    path,
};

/// How far a change reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The file named, and everything below it.
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

/// What is protected, and where.
pub(super) struct Watch {
    home: Option<PathBuf>,
    /// Inside these, no other project may begin.
    projects: Vec<PathBuf>,
    /// Files and folders that are protected by themselves.
    single: Vec<PathBuf>,
    roots: Roots,
    /// Every path, ready for comparison; most calls touch nothing near one.
    guarded: OnceCell<Vec<GuardedPath>>,
    resolver: RefCell<path::Resolver>,
    /// The last folders, and the names in them that may be protected: nothing if any may.
    names: RefCell<Option<(Arc<[PathBuf]>, FolderNames)>>,
    /// What is protected and not hidden.
    visible: OnceCell<Vec<PathBuf>>,
    /// Our own program.
    program: Option<PathBuf>,
}

/// The names in some folders that may be protected; nothing if any may.
type FolderNames = Option<Rc<[&'static str]>>;

/// A protected path, ready for comparison.
pub(super) struct GuardedPath {
    pub(super) path: PathBuf,
    /// The key of the path as written, and the key of the path behind all links.
    pub(super) keys: Vec<String>,
    /// Whether it is there.
    pub(super) exists: bool,
}

impl GuardedPath {
    /// Whether something may lie in it.
    pub(super) fn may_be_folder(&self) -> bool {
        if self.exists { self.path.is_dir() } else { self.path.extension().is_none() }
    }

    /// Whether it is a folder with a file in it whose name this holds for.
    pub(super) fn holds(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        let is_named =
            |file: &PathBuf| file.file_name().is_some_and(|name| is_wanted(&path::fold(&name.to_string_lossy())));
        self.exists && below(&self.path).iter().any(is_named)
    }
}

/// The parts of a key.
pub(super) fn key_parts(key: &str) -> Vec<&str> {
    key.split_terminator('/').collect()
}

impl Watch {
    /// The table for this home and these projects, and single files; all paths are tidy.
    pub(super) fn new(home: Option<PathBuf>, projects: Vec<PathBuf>, single: Vec<PathBuf>) -> Watch {
        let mut resolver = path::Resolver::default();
        let roots = Roots::new(home.as_deref(), &projects, &single, &mut resolver);
        Watch {
            home,
            projects,
            single,
            roots,
            guarded: OnceCell::new(),
            resolver: RefCell::new(resolver),
            names: RefCell::default(),
            visible: OnceCell::new(),
            program: None,
        }
    }

    /// The same with our own program, which need not be protected.
    pub(super) fn with_program(self, program: Option<&Path>) -> Watch {
        Watch { program: program.map(path::tidy), ..self }
    }

    /// Whether it is a place where our program might be installed, and is not: of all files an archive hardly has that one.
    pub(super) fn is_absent_program(&self, (Hit::Sure(path) | Hit::Perhaps(path)): &Hit) -> bool {
        path.ends_with("bin/ollm") && !self.resolver.borrow_mut().look(path).1
    }

    /// Whether this names our own program, where programs are installed.
    pub(super) fn is_program(&self, field: &Field, place: &ShellPlace) -> bool {
        let ours = |(Hit::Sure(path) | Hit::Perhaps(path)): Hit| {
            self.program.as_deref() == Some(&path) || path.file_name().is_some_and(|name| name == "ollm")
        };
        // Wherever a folder is that is not written out, a program of ours in it is ours.
        (field.open() && !field.glob) || self.check(field, place, Reach::File).is_some_and(ours)
    }

    /// The protected paths that these must not change, ready for comparison.
    fn written_out(&self, wanted: From) -> Vec<GuardedPath> {
        let mut resolver = self.resolver.borrow_mut();
        let single = self.single.iter().filter(|_| wanted == From::Everybody);
        let single = single.map(|path| Protected { path: path.clone(), from: wanted, lock: Lock::Locked });
        let all = protected(self.home.as_deref(), &self.projects).into_iter().chain(single);
        let ready = all.filter(|protected| protected.from == wanted).map(|Protected { path, .. }| {
            let (real, exists) = resolver.look(&path);
            let mut keys = spellings(&path, &real);
            // A link to the root protects nothing: all would be in it.
            keys.retain(|key| !key.is_empty());
            GuardedPath { path, keys, exists }
        });
        ready.collect()
    }

    fn guarded(&self) -> &[GuardedPath] {
        self.guarded.get_or_init(|| self.written_out(From::Everybody))
    }

    /// Whether a change of this field changes something protected.
    pub(super) fn check(&self, field: &Field, place: &ShellPlace, reach: Reach) -> Option<Hit> {
        if field.text.is_empty() && field.tail.as_deref().is_none_or(str::is_empty) {
            return None;
        }
        if !place.unwritten.is_empty() {
            let there = place.written_out();
            let mut paths = place.unwritten_paths(field);
            if let Some(hit) = paths.find_map(|path| self.check(&path, &there, reach)) {
                return Some(hit);
            }
        }
        if field.open() {
            return self.check_open(field, place, reach);
        }
        if let Some(hit) = self.lent(field, place, reach) {
            return Some(hit);
        }
        if self.is_ordinary(field, place) {
            return None;
        }
        let relative = !field.text.starts_with('/');
        if relative
            && place.lost
            && let Some(hit) = self.by_ending(&field.text, reach)
        {
            return Some(hit);
        }
        let hit = place.folders.iter().find_map(|folder| {
            let raw = path::in_folder(folder, &field.text);
            // A folder that commands run in is there, and so is one that is written with a slash.
            let is_folder =
                || field.text.ends_with('/') || place.folders.iter().any(|here| here.starts_with(path::tidy(&raw)));
            let reach = if reach == Reach::Replacement && is_folder() { Reach::File } else { reach };
            self.check_path(raw, field.glob, reach)
        });
        let by_field = may_name_project(&field.text);
        let inner = |folder: &PathBuf| {
            let named = by_field || may_name_project(&folder.to_string_lossy());
            let path = named.then(|| path::join(folder, &field.text))?;
            self.inner_project(&path, reach).or_else(|| self.of_another_project(&path, reach))
        };
        hit.or_else(|| place.folders.iter().find_map(inner)).or_else(|| own_program(field))
    }

    /// Whether it is a plain path that no protected file has, and nothing is there that could be a link to one.
    fn is_ordinary(&self, field: &Field, place: &ShellPlace) -> bool {
        if field.glob || place.lost || !path::is_plain(&field.text) {
            return false;
        }
        let Some(names) = self.names_in(&place.folders) else { return false };
        let first = field.text.split('/').next().unwrap_or_default();
        let is_absent = |folder: &PathBuf| self.resolver.borrow_mut().lacks(folder, &field.text);
        !names.iter().any(|name| name.eq_ignore_ascii_case(first)) && place.folders.iter().all(is_absent)
    }

    fn names_in(&self, folders: &Arc<[PathBuf]>) -> FolderNames {
        let mut last = self.names.borrow_mut();
        if let Some((_, names)) = last.as_ref().filter(|(last, _)| Arc::ptr_eq(last, folders)) {
            return names.clone();
        }
        let in_folder = |folder: &PathBuf| {
            let real = self.resolver.borrow_mut().look(folder).0;
            let inner = self.projects.iter().any(|project| path::is_in_folder(folder, project))
                && may_name_project(&folder.to_string_lossy());
            let found = spellings(folder, &real).iter().map(|key| self.roots.names_in(key)).collect::<Option<Vec<_>>>();
            found.filter(|_| !inner).map(|names| names.concat())
        };
        let found: Option<Vec<_>> = folders.iter().map(in_folder).collect();
        let names: FolderNames = found.map(|names| names.concat().into());
        *last = Some((Arc::clone(folders), names.clone()));
        names
    }

    /// Whether a file tool changes a file of the user's own: a person decides.
    pub(super) fn personal(&self, field: &Field, place: &ShellPlace, reach: Reach) -> Option<Hit> {
        let folder = place.folders.first()?;
        let spelling = path::key(&path::resolve(&folder.join(&field.text)));
        let holds = |key: &String| spelling.starts_with(key) || (reach == Reach::Tree && key.starts_with(&spelling));
        let mut personal = self.written_out(From::FileTools).into_iter();
        personal.find(|guarded| guarded.keys.iter().any(holds)).map(|guarded| Hit::Perhaps(guarded.path))
    }

    /// Whether a shell command puts something else in place of a file of the user's own that runs by itself later.
    pub(super) fn replaced(&self, field: &Field, place: &ShellPlace, reach: Reach) -> Option<Hit> {
        let home = self.home.as_deref().filter(|_| !field.open() && !place.elsewhere)?;
        let inside = |path: &PathBuf| path::has_hidden_part(path) && path::is_in_folder(path, home);
        let near = place.folders.iter().map(|folder| path::join(folder, &field.text)).any(|path| inside(&path));
        let hit = near.then(|| self.personal(field, place, reach)).flatten();
        // What programs note there by themselves is no code.
        hit.filter(|(Hit::Sure(path) | Hit::Perhaps(path))| !path.ends_with(".ssh/known_hosts"))
    }

    /// Whether code names something protected.
    pub(super) fn mentioned<'w>(&'w self, code: &str) -> Option<PathBuf> {
        let code = path::fold(code);
        // Most names begin with a dot, and few letters stand behind one.
        let mut dotted = [false; 256];
        for (_, next) in code.as_bytes().iter().zip(code.as_bytes().iter().skip(1)).filter(|(dot, _)| **dot == b'.') {
            dotted.get_mut(usize::from(*next)).into_iter().for_each(|seen| *seen = true);
        }
        let holds = |part: &str| {
            let part = part.to_ascii_lowercase();
            let hidden = part.strip_prefix('.').and_then(|name| name.bytes().next());
            hidden.is_none_or(|first| dotted.get(usize::from(first)) == Some(&true)) && code.contains(&part)
        };
        // Many protected files share a folder, and code is searched once for each folder.
        let mut seen = ("", false);
        let mut names = |folder: &'w str, last: &str| {
            if last.starts_with('.') {
                return holds(last);
            }
            if seen.0 != folder {
                seen = (folder, holds(folder));
            }
            seen.1 && (holds(&format!("{folder}/{last}")) || (folder.starts_with('.') && holds(last)))
        };
        if let Some(named) = self.roots.named().find(|named| names(named.folder, named.last)) {
            return Some(named.path());
        }
        self.roots.single().iter().find_map(|key| match key_parts(key).as_slice() {
            [.., folder, last] if names(folder, last) => Some(Path::new("/").join(key.trim_end_matches('/'))),
            _ => None,
        })
    }

    fn check_path(&self, raw: PathBuf, glob: bool, reach: Reach) -> Option<Hit> {
        let holds = |wanted: &[u8]| raw.as_os_str().as_encoded_bytes().windows(wanted.len()).any(|part| part == wanted);
        let slashed =
            holds(b"\\").then(|| path::key(&path::tidy(Path::new(&raw.to_string_lossy().replace('\\', "/")))));
        // Only where a `..` may follow a link does its order count.
        let dotted = holds(b"..") && raw.components().any(|part| part == Component::ParentDir);
        let followed = (dotted && !glob).then(|| path::resolve(&raw));
        let tidied = path::tidied(raw);
        if glob {
            let pattern = path::folded(&tidied);
            return self.roots.may_fit(&pattern).then(|| self.by_pattern(&pattern, reach)).flatten();
        }
        let (resolved, exists) =
            followed.map_or_else(|| self.resolver.borrow_mut().look(&tidied), |resolved| (resolved, true));
        let mut spellings = spellings(&tidied, &resolved);
        spellings.extend(slashed);
        if !spellings.iter().any(|key| self.roots.may_hold(key, reach != Reach::File)) {
            return exists.then(|| self.by_identity(&resolved)).flatten().map(Hit::Sure);
        }
        let reach = match reach {
            Reach::Replacement if resolved.is_dir() => Reach::File,
            Reach::Replacement => Reach::Tree,
            other => other,
        };
        let hit = self.guarded().iter().find(|guarded| {
            guarded.keys.iter().any(|key| {
                spellings
                    .iter()
                    .any(|spelling| spelling.starts_with(key) || (reach == Reach::Tree && key.starts_with(spelling)))
            })
        });
        hit.map(|guarded| guarded.path.clone())
            .or_else(|| exists.then(|| self.by_identity(&resolved)).flatten())
            .map(Hit::Sure)
    }

    fn by_pattern(&self, pattern: &[String], reach: Reach) -> Option<Hit> {
        // A bare `*` says nothing but that there is something.
        let vague = pattern.last().is_some_and(|last| last == "*");
        // Most protected paths share their first parts, and so does a pattern: those are compared as text.
        let plain = pattern.iter().take_while(|part| !part.contains(['*', '?', '['])).count();
        let begin: String = pattern.iter().take(plain).flat_map(|part| [part.as_str(), "/"]).collect();
        let parts: Vec<path::Pattern<'_>> = pattern.iter().skip(plain).map(|part| path::Pattern::new(part)).collect();
        let fits = |guarded: &GuardedPath, key: &str| {
            let Some(rest) = key.strip_prefix(&begin) else { return begin.starts_with(key) };
            let names = || rest.split_terminator('/');
            if !parts.iter().zip(names()).all(|(part, name)| part.fits_as_in_shell(name)) {
                return false;
            }
            let length = names().count();
            let reaches = parts.len() >= length || reach != Reach::File;
            // Nothing lies below a file.
            let below = parts.len() > length;
            reaches && if below { guarded.may_be_folder() } else { !vague || guarded.exists }
        };
        let hit = self.guarded().iter().find(|guarded| guarded.keys.iter().any(|key| fits(guarded, key)));
        hit.map(|guarded| Hit::Perhaps(guarded.path.clone()))
    }

    /// A path that begins somewhere unknown: its parts decide.
    fn by_ending(&self, text: &str, reach: Reach) -> Option<Hit> {
        let parts = path::folded(&path::tidy(Path::new(text.trim_start_matches('/'))));
        let last = parts.last().filter(|_| parts.len() > 1);
        if !parts.first().into_iter().chain(last).any(|part| self.roots.has_part(part)) {
            return None;
        }
        let ends = |key: &String| {
            let key = key_parts(key);
            let hidden = |part: &String| part.starts_with('.');
            (1..=parts.len().min(key.len())).any(|count| {
                let (Some(begin), Some(end)) = (parts.get(..count), key.get(key.len() - count..)) else { return false };
                let is_hook = || match parts.get(1) {
                    Some(name) => GIT_HOOKS.contains(&name.as_str()),
                    None => reach == Reach::Tree,
                };
                begin == end && (count > 1 || begin.iter().any(hidden) || begin == ["hooks"] && is_hook())
            }) || (reach != Reach::File
                && parts.last().is_some_and(|last| hidden(last) && key.contains(&last.as_str())))
        };
        let hit = self.guarded().iter().find(|guarded| guarded.keys.iter().any(ends));
        hit.map(|guarded| Hit::Perhaps(guarded.path.clone()))
    }

    /// A field with an unknown part: the folder before it, or the parts behind it.
    fn check_open(&self, field: &Field, place: &ShellPlace, reach: Reach) -> Option<Hit> {
        if field.listed {
            return self.check_listed(field, place);
        }
        if let Some((folder, _)) = field.text.rsplit_once('/').filter(|(folder, _)| !folder.is_empty()) {
            let inside = place
                .folders
                .iter()
                .find_map(|base| self.check_path(path::in_folder(base, folder), field.glob, Reach::File));
            if inside.is_some() {
                return inside;
            }
        }
        let tail = field.tail.as_deref().unwrap_or_default();
        let (_, tail) = tail.split_once('/')?;
        self.by_ending(tail, reach).or_else(|| self.by_name(field, place, tail))
    }

    /// A file in a folder that is not written out: it may be that of an agent.
    fn by_name(&self, field: &Field, place: &ShellPlace, name: &str) -> Option<Hit> {
        let own = OWN_FILES.iter().any(|own| own.eq_ignore_ascii_case(name)) || is_hook_file(name);
        let listed = name.contains('.') && is_part(name);
        let in_hooks = begins_with(name, "hooks/");
        if !own && !listed && !in_hooks {
            return None;
        }
        let own = self.single.first().filter(|_| own).map(|folder| folder.join(name));
        let listed = self.roots.named().filter(|named| listed && named.last.eq_ignore_ascii_case(name));
        let hooks = self.roots.named().filter(|named| in_hooks && named.last.eq_ignore_ascii_case("hooks"));
        let hooks = hooks.filter_map(|named| Some(named.path().parent()?.join(name))).filter(|hook| hook.exists());
        let mut paths = own.into_iter().chain(listed.map(|named| named.path())).chain(hooks);
        // What stands before a variable that people set says where the path begins.
        let begins = |path: &PathBuf| {
            let begins = |folder: &PathBuf| path.starts_with(path::tidy(&path::in_folder(folder, &field.text)));
            field.hollow.is_none() || field.text.is_empty() || place.folders.iter().any(begins)
        };
        paths.find(begins).map(Hit::Perhaps)
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
            .guarded()
            .iter()
            .find(|guarded| same(&guarded.path) || below(&guarded.path).iter().any(|file| same(file)));
        hit.map(|guarded| guarded.path.clone())
    }

    #[cfg(not(unix))]
    fn by_identity(&self, _resolved: &Path) -> Option<PathBuf> {
        None
    }
}

/// Files in our own folders that decide what runs.
const OWN_FILES: &[&str] = &["config.yaml", "mcp.json", "policy.yaml", "settings/mcp.json", "trusted-hooks.json"];

/// Whether a path from our folder on may be a file that declares hooks.
fn is_hook_file(name: &str) -> bool {
    begins_with(name, "hooks/") && [".json", ".yaml", ".yml", ".kiro.hook"].iter().any(|end| name.ends_with(end))
}

fn begins_with(text: &str, begin: &str) -> bool {
    text.get(..begin.len()).is_some_and(|start| start.eq_ignore_ascii_case(begin))
}

/// What `git` runs in its folder of hooks, as far as an attacker would plant it there.
const GIT_HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-merge",
    "post-rewrite",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "prepare-commit-msg",
    "reference-transaction",
];

/// Our own program, wherever programs are.
fn own_program(field: &Field) -> Option<Hit> {
    let (folder, name) = field.text.rsplit_once('/')?;
    // A bare `*` says nothing but that there is something.
    let named = name == "ollm" || (field.glob && name.starts_with('o') && path::fits(name, "ollm"));
    (named && folder.ends_with("/bin")).then(|| Hit::Perhaps(Path::new(folder).join("ollm")))
}

/// Whether something that is protected in projects may be among the parts of a path.
fn may_name_project(text: &str) -> bool {
    // A backslash may part names as well, or hide a letter.
    let ends = |byte: u8| matches!(byte, b'/' | b'\\');
    let mut begins = true;
    for (at, byte) in text.bytes().enumerate() {
        if !byte.is_ascii() {
            return true;
        }
        if begins && byte == b'.' {
            let part = text.get(at..).unwrap_or_default();
            let length = part.bytes().position(ends).unwrap_or(part.len());
            if length > 2 && part.get(..length).is_some_and(is_part) {
                return true;
            }
        }
        begins = ends(byte);
    }
    false
}

/// The key of a path as written, and the key of the path behind all links.
fn spellings(tidied: &Path, resolved: &Path) -> Vec<String> {
    let other = (!path::is_same(resolved, tidied)).then(|| path::key(resolved));
    std::iter::once(path::key(tidied)).chain(other).collect()
}

/// The files in a folder and its folders, up to a bound.
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
