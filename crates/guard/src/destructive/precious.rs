//! Rates paths: losing a path is a disaster, doubtful, or ordinary work.

mod folders;

use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
};

use crate::{
    field::{Field, ShellPlace, is_pattern},
    path, program,
};
use folders::{BELOW, KEY_FOLDERS, KEYS, PASSING, REMADE, SYSTEM};

/// How bad a loss is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// A disaster.
    Vital(&'static str),
    /// A person should look.
    Doubtful(&'static str),
    /// Ordinary work.
    Common,
}

/// What is precious here.
pub(super) struct PreciousPaths {
    cwd: PathBuf,
    home: Option<PathBuf>,
    /// The same two once links are followed; looked up when first needed.
    real: OnceCell<(PathBuf, Option<PathBuf>)>,
    resolver: RefCell<path::Resolver>,
    /// What fields may name in the last folders: several questions are asked about each.
    named: RefCell<NamedTexts>,
    /// The last folders, and whether nothing in them is precious.
    quiet: RefCell<Option<(Arc<[PathBuf]>, bool)>>,
}

/// What texts may name in some folders.
#[derive(Default)]
struct NamedTexts {
    folders: Arc<[PathBuf]>,
    texts: HashMap<Rc<str>, Spread>,
    /// The last of them.
    last: Option<(Rc<str>, Rc<[PathBuf]>)>,
}

/// The paths that a text may name in some folders.
struct Spread {
    paths: Rc<[PathBuf]>,
    /// What they are worth, with their wildcards or without, once that was asked.
    worth: Option<(bool, Worth)>,
}

impl PreciousPaths {
    pub(super) fn new(cwd: &Path, home: Option<&Path>) -> PreciousPaths {
        PreciousPaths {
            cwd: path::tidy(cwd),
            home: home.map(path::tidy),
            real: OnceCell::new(),
            resolver: RefCell::default(),
            named: RefCell::default(),
            quiet: RefCell::default(),
        }
    }

    fn real(&self) -> &(PathBuf, Option<PathBuf>) {
        self.real.get_or_init(|| (path::resolve(&self.cwd), self.home.as_deref().map(path::resolve)))
    }

    fn is_home(&self, path: &Path) -> bool {
        [&self.home, &self.real().1].into_iter().flatten().any(|home| path::is_same(home, path))
    }

    fn is_cwd(&self, path: &Path) -> bool {
        path::is_same(&self.cwd, path) || path::is_same(&self.real().0, path)
    }

    fn holds_cwd(&self, path: &Path) -> bool {
        path::is_in_folder(&self.cwd, path) || path::is_in_folder(&self.real().0, path)
    }

    /// The worth of what a field names, wherever it may be.
    pub(super) fn worth(&self, target: &Field, place: &ShellPlace) -> Worth {
        if !place.unwritten.is_empty() {
            let there = place.written_out();
            // Of a folder whose beginning is not known either, nothing can be said.
            let named = place.unwritten_paths(target).filter(|path| !path.open() || !path.text.is_empty());
            let worst = named.map(|path| self.worth(&path, &there)).reduce(worse).unwrap_or(Worth::Common);
            let mut here = place.clone();
            here.unwritten = Arc::default();
            return worse(self.worth(target, &here), worst);
        }
        if target.open() {
            return self.worth_of_unknown(target, place);
        }
        if place.lost && !target.text.starts_with('/') && is_vague(&target.text) {
            return Worth::Doubtful("removes from a folder that is not known");
        }
        if place.above && self.is_above(target, place) {
            return Worth::Doubtful("removes from a folder that is not known");
        }
        let straight = |folder: &PathBuf| self.resolver.borrow_mut().leads_straight(folder, &target.text);
        if self.is_ordinary(target, place) && place.folders.iter().all(straight) {
            return Worth::Common;
        }
        let paths = self.paths(target, place);
        let known = self.named.borrow().texts.get(target.text.as_str()).and_then(|spread| spread.worth);
        if let Some((_, worth)) = known.filter(|(glob, _)| *glob == target.glob && place.mounts.is_empty()) {
            return worth;
        }
        let mut worst = Worth::Common;
        for path in paths.iter() {
            worst = worse(worst, self.path(path, target.glob));
            let real = self.real_place(path);
            if !path::is_same(&real, path) {
                worst = worse(worst, self.path(&real, target.glob));
            }
        }
        if let Some(spread) =
            self.named.borrow_mut().texts.get_mut(target.text.as_str()).filter(|_| place.mounts.is_empty())
        {
            spread.worth = Some((target.glob, worst));
        }
        worst
    }

    /// Whether it is something precious as seen from a folder above.
    fn is_above(&self, target: &Field, place: &ShellPlace) -> bool {
        let is_precious = |path: PathBuf| {
            self.is_home(&path)
                || self.holds_cwd(&path)
                || path.to_str().is_some_and(|path| program::is_in(SYSTEM, path))
        };
        let above = place.folders.iter().flat_map(|folder| folder.ancestors());
        above.into_iter().any(|folder| is_precious(without_wildcard(&path::join(folder, &target.text))))
    }

    /// Whether it is a plain path in folders where nothing is precious, links apart; most targets are.
    pub(super) fn is_ordinary(&self, target: &Field, place: &ShellPlace) -> bool {
        let plain = !target.glob && !target.open() && path::is_plain(&target.text);
        if !plain || !place.mounts.is_empty() || !place.unwritten.is_empty() {
            return false;
        }
        let mut last = self.quiet.borrow_mut();
        if let Some((_, quiet)) = last.as_ref().filter(|(folders, _)| Arc::ptr_eq(folders, &place.folders)) {
            return *quiet;
        }
        let quiet = place.folders.iter().all(|folder| self.is_quiet(folder));
        *last = Some((Arc::clone(&place.folders), quiet));
        quiet
    }

    /// Whether nothing in a folder is precious but what is hidden, wherever the folder really is.
    fn is_quiet(&self, folder: &Path) -> bool {
        let real = self.resolver.borrow_mut().look(folder).0;
        [folder, &real].into_iter().all(|folder| {
            let hidden = |part: std::path::Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
            let known =
                [Some(self.cwd.as_path()), self.home.as_deref(), Some(&self.real().0), self.real().1.as_deref()];
            let above = |path: &Path| path::is_in_folder(path, folder) && !path::is_same(path, folder);
            self.plain(&folder.join("name"), false) == Worth::Common
                && !folder.components().any(hidden)
                && !SYSTEM.iter().any(|path| above(Path::new(path)))
                && !known.into_iter().flatten().any(above)
        })
    }

    /// Whether it is the folder of the project itself, or only something in it.
    pub(super) fn is_project(&self, target: &Field, place: &ShellPlace) -> bool {
        self.paths(target, place).iter().all(|path| {
            let path = without_wildcard(path);
            path.starts_with(&self.cwd) && !self.is_home(&path) && path != Path::new("/")
        })
    }

    /// Whether it is the home, the folder of all homes or the root, or everything in one of them.
    pub(super) fn is_everything(&self, target: &Field, place: &ShellPlace) -> bool {
        let is_all = |path: &Path| self.is_home(path) || matches!(path.to_str(), Some("/" | "/home" | "/Users"));
        !self.is_ordinary(target, place) && self.paths(target, place).iter().any(|path| is_all(&without_wildcard(path)))
    }

    /// Whether it is a whole folder of the home that programs cannot make again, or everything in one: `~/work`.
    pub(super) fn is_home_folder(&self, target: &Field, place: &ShellPlace) -> bool {
        if target.open() || self.is_ordinary(target, place) {
            return false;
        }
        self.paths(target, place).iter().any(|path| {
            let path = without_wildcard(path);
            let inside =
                [&self.home, &self.real().1].into_iter().flatten().find_map(|home| path.strip_prefix(home).ok());
            !self.is_cwd(&path)
                && inside.and_then(Path::to_str).is_some_and(|name| {
                    matches!(name, ".local/share" | ".local/state" | ".local/bin")
                        || !name.is_empty() && !name.contains(['/', '*', '?', '[']) && !program::is_in(REMADE, name)
                })
        })
    }

    /// Whether it lies in a folder of the system, apart from those where people install things themselves.
    pub(super) fn is_system(&self, target: &Field, place: &ShellPlace) -> bool {
        let leads_on = |path: &Path| is_in_any(path, &["/proc/self/root", "/proc/self/cwd"]);
        let of_process = |path: &Path| path::is_in_folder(path, Path::new("/proc/self")) && !leads_on(path);
        // Devices are known by their names.
        let own = |path: &Path| is_in_any(path, PASSING) || is_in_any(path, &["/dev"]) || of_process(path);
        let system = |path: &Path| is_in_any(path, BELOW) && !own(path) && !self.is_new(path);
        // `/proc/self/root/etc` is `/etc`.
        let named = |path: &PathBuf| {
            if leads_on(path) {
                system(&self.real_place(path))
            } else {
                system(path) || (target.glob && fits_below(path, BELOW))
            }
        };
        !target.open() && !self.is_ordinary(target, place) && self.paths(target, place).iter().any(named)
    }

    /// Whether it would be a new file among those of one service: nothing is lost.
    fn is_new(&self, path: &Path) -> bool {
        let depth = path.strip_prefix("/etc").map_or(0, |inside| inside.components().count());
        depth > 1 && !self.resolver.borrow_mut().look(path).1
    }

    /// Whether it is one of the user's secrets, which exist only once: a pattern for their folder may be.
    pub(super) fn is_secret(&self, target: &Field, place: &ShellPlace) -> bool {
        if !place.unwritten.is_empty() {
            let (mut here, there) = (place.clone(), place.written_out());
            here.unwritten = Arc::default();
            return self.is_secret(target, &here)
                || place.unwritten_paths(target).any(|path| self.is_secret(&path, &there));
        }
        let looks = !target.open() && !self.is_ordinary(target, place);
        let Some(home) = self.home.as_deref().filter(|_| looks) else { return false };
        let is_kept = |name: &str| {
            const SECRET: [&str; 3] = [".ssh", ".gnupg", ".password-store"];
            // A pattern for everything says nothing of secrets.
            let names = target.glob && !without_wildcard(Path::new(name)).as_os_str().is_empty();
            SECRET.iter().any(|known| name == *known || (names && path::fits(name, known)))
        };
        let secret = |path: &PathBuf| {
            let inside = Some(path.as_os_str().as_encoded_bytes()).filter(|_| path::is_in_folder(path, home));
            let inside = inside.and_then(|path| path.get(home.as_os_str().len()..)).unwrap_or_default();
            let first = inside.strip_prefix(b"/").unwrap_or(inside).split(|byte| *byte == b'/').next();
            first.and_then(|first| std::str::from_utf8(first).ok()).is_some_and(is_kept)
        };
        let passing = |path: &PathBuf| path.to_string_lossy().contains("known_hosts");
        self.paths(target, place).iter().any(|path| secret(path) && !passing(path))
    }

    /// Whether it is there.
    pub(super) fn exists(&self, target: &Field, place: &ShellPlace) -> bool {
        self.paths(target, place).iter().any(|path| self.resolver.borrow_mut().look(path).1)
    }

    /// Whether it is a file whose content is one of the user's secrets, not what people edit or publish beside them.
    pub(super) fn holds_secret(&self, target: &Field, place: &ShellPlace) -> bool {
        let name = path::base_name(&target.text);
        let edited = matches!(&*name, "config" | "gpg.conf" | "gpg-agent.conf") || name.starts_with("authorized_keys");
        let secret = !edited && !name.ends_with(".pub") && self.is_secret(target, place);
        secret && self.paths(target, place).iter().any(|path| !path.ends_with(".ssh") && !path.ends_with(".gnupg"))
    }

    /// Whether it is one of the files that decide who may log in.
    pub(super) fn is_key(&self, target: &Field, place: &ShellPlace) -> bool {
        if target.open() || self.is_ordinary(target, place) {
            return false;
        }
        self.paths(target, place).iter().any(|path| {
            let text = path.to_string_lossy();
            if !text.starts_with("/etc/") && !text.contains("authorized_keys") {
                return false;
            }
            let ssh =
                path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("authorized_keys"))
                    && path.parent().is_some_and(|parent| parent.ends_with(".ssh"));
            ssh || KEY_FOLDERS.iter().any(|folder| path.starts_with(folder))
                || KEYS.iter().any(|key| path.as_path() == Path::new(key))
        })
    }

    /// A path of which only the beginning is known: what if nothing follows?
    fn worth_of_unknown(&self, target: &Field, place: &ShellPlace) -> Worth {
        const UNKNOWN: Worth = Worth::Doubtful("removes something that is not written out");
        // Only the user's own variables are missing: what counts is what happens when they are empty.
        if let Some(hollow) = &target.hollow {
            let parts = Path::new(hollow).components();
            let vague = parts.clone().any(|part| matches!(part.as_os_str().to_str(), Some(".git" | "..")));
            let empty = Field { glob: target.glob, ..Field::literal(hollow.as_str()) };
            // `"$X"*` is everything in any folder that `X` may name, even the root.
            let whatever =
                target.glob && target.text.is_empty() && without_wildcard(Path::new(hollow)).as_os_str().is_empty();
            let vague = vague || whatever && !hollow.is_empty();
            let harmless = hollow.is_empty() || self.worth(&empty, place) == Worth::Common;
            return if harmless && !vague { Worth::Common } else { UNKNOWN };
        }
        if self.ends_commonly(target) {
            return Worth::Common;
        }
        let Some((folder, _)) = target.text.rsplit_once('/') else { return UNKNOWN };
        let folder = if folder.is_empty() { "/" } else { folder };
        let known = Field { glob: target.glob && is_pattern(folder), ..Field::literal(folder) };
        match self.worth(&known, place) {
            Worth::Common => Worth::Common,
            Worth::Vital(_) if PASSING.contains(&folder) => Worth::Common,
            // Something in the project, unless nothing follows: then the project itself.
            _ if !known.glob
                && self.paths(&known, place).iter().all(|path| *path == self.cwd)
                && (target.listed || target.text.ends_with("./")) =>
            {
                Worth::Common
            }
            _ => UNKNOWN,
        }
    }

    /// Whether what follows the unknown part has a name that nothing precious has: `$(…)/doc`.
    fn ends_commonly(&self, target: &Field) -> bool {
        let Some((_, inside)) = target.tail.as_deref().and_then(|tail| tail.split_once('/')) else { return false };
        // What a search finds may be anywhere, under any name.
        if target.listed {
            return false;
        }
        // `$(…)/../doc` is called `doc` as well.
        let inside = inside.trim_start_matches("../");
        let name = inside.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let own = self.home.iter().chain([&self.cwd]).flat_map(|path| path.ancestors());
        let precious = SYSTEM.iter().map(Path::new).chain(own).filter_map(Path::file_name);
        let is_name = |known: &std::ffi::OsStr| known.to_str().is_some_and(|known| known.eq_ignore_ascii_case(name));
        // Without a home its name could be any.
        self.home.is_some() && !target.glob && path::is_plain(inside) && !precious.into_iter().any(is_name)
    }

    /// Everything the field may name.
    fn paths(&self, target: &Field, place: &ShellPlace) -> Rc<[PathBuf]> {
        if !place.mounts.is_empty() {
            return paths(target, place).into();
        }
        let mut named = self.named.borrow_mut();
        if !Arc::ptr_eq(&named.folders, &place.folders) {
            *named = NamedTexts { folders: Arc::clone(&place.folders), ..NamedTexts::default() };
        }
        if let Some((_, paths)) = named.last.as_ref().filter(|(text, _)| **text == *target.text) {
            return Rc::clone(paths);
        }
        let known = named.texts.get_key_value(target.text.as_str());
        let known = known.map(|(text, spread)| (Rc::clone(text), Rc::clone(&spread.paths)));
        let (text, paths) = known.unwrap_or_else(|| {
            let (text, paths) = (Rc::<str>::from(target.text.as_str()), Rc::<[PathBuf]>::from(paths(target, place)));
            named.texts.insert(Rc::clone(&text), Spread { paths: Rc::clone(&paths), worth: None });
            (text, paths)
        });
        named.last = Some((text, Rc::clone(&paths)));
        paths
    }

    fn path(&self, path: &Path, glob: bool) -> Worth {
        let plain = without_wildcard(path);
        let contents = glob && plain != path;
        let mut worst = self.plain(&plain, contents);
        if glob {
            let text = path.to_string_lossy();
            let stem = text.split(['*', '?', '[']).next().and_then(|stem| stem.rsplit_once('/')).map(|(stem, _)| stem);
            let stem = stem.unwrap_or_default();
            let near = |candidate: &&Path| candidate.as_os_str().as_encoded_bytes().starts_with(stem.as_bytes());
            let system = SYSTEM.iter().filter(|folder| folder.starts_with(stem)).map(Path::new);
            let own = self.home.as_deref().into_iter().chain(self.cwd.ancestors().skip(1)).filter(near);
            for candidate in system.chain(own).filter(|candidate| !path::is_same(candidate, Path::new("/"))) {
                if matches_path(path, candidate) {
                    worst = worse(worst, self.plain(candidate, false));
                }
            }
            // `.*` fits the history of the project as well, which `*` does not.
            let shows_hidden =
                path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with('.'));
            let history = |root: &Path| matches_path(path, &root.join(".git"));
            if shows_hidden && self.cwd.ancestors().any(history) {
                worst = worse(worst, Worth::Vital("removes or changes the history of the project"));
            }
            if fits_below(path, BELOW) {
                worst = worse(worst, Worth::Doubtful("removes or changes files of the system"));
            }
        }
        worst
    }

    /// A path without wildcards; with `contents`, everything in it but not the folder itself.
    fn plain(&self, path: &Path, contents: bool) -> Worth {
        if path == Path::new("/") {
            return Worth::Vital("removes or changes the root of the file system");
        }
        if self.is_home(path) {
            return Worth::Vital("removes or changes the home folder");
        }
        if is_drive(path) || (contents && matches!(path.to_str(), Some("/media" | "/mnt"))) {
            return Worth::Doubtful("removes or changes all that is on a drive");
        }
        if contents && (self.is_cwd(path) || PASSING.iter().any(|folder| path::is_same(Path::new(folder), path))) {
            return Worth::Common;
        }
        if path.to_str().is_some_and(|path| program::is_in(SYSTEM, path)) {
            return Worth::Vital("removes or changes a folder of the system");
        }
        if path.parent().is_some_and(|parent| parent == Path::new("/home") || parent == Path::new("/Users")) {
            return Worth::Vital("removes or changes a home folder");
        }
        if self.is_cwd(path) {
            return Worth::Doubtful("removes or changes the whole project");
        }
        if self.holds_cwd(path) && !contents {
            return Worth::Vital("removes or changes a folder that holds the project");
        }
        if self.holds_cwd(path) {
            return Worth::Vital("removes or changes everything beside the project");
        }
        if self.is_repository(path) {
            return Worth::Vital("removes or changes the history of the project");
        }
        // `/usr/local/go` is what a person has unpacked there.
        let unpacked = path.parent() == Some(Path::new("/usr/local"));
        if is_in_any(path, BELOW) && !unpacked && !path::is_in_folder(path, Path::new("/dev/shm")) {
            return Worth::Doubtful("removes or changes files of the system");
        }
        Worth::Common
    }

    /// Where a path really is: links on the way are followed, one at its end is not, for it is what is removed.
    fn real_place(&self, path: &Path) -> PathBuf {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => self.resolver.borrow_mut().look(parent).0.join(name),
            _ => path.to_owned(),
        }
    }

    /// Whether it is the project's `.git`, or a part of it without which it is lost.
    fn is_repository(&self, path: &Path) -> bool {
        let git = match path.file_name().and_then(|name| name.to_str()) {
            Some(".git") => Some(path),
            Some("objects" | "refs") => path.parent().filter(|parent| parent.ends_with(".git")),
            _ => None,
        };
        git.and_then(Path::parent).is_some_and(|root| self.holds_cwd(root))
    }
}

/// Whether it is where a drive is mounted, or a folder of another system on one.
fn is_drive(path: &Path) -> bool {
    let parts = path.to_str().unwrap_or_default().split('/').skip(1).collect::<Vec<_>>();
    let is_letter = |name: &str| name.len() == 1 && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    match parts.as_slice() {
        ["Volumes" | "media", _] | ["media", _, _] | ["run", "media", _, _] => true,
        ["mnt", drive] | ["mnt", drive, "Users" | "Windows" | "Program Files" | "ProgramData"] => is_letter(drive),
        _ => false,
    }
}

fn is_in_any(path: &Path, folders: &[&str]) -> bool {
    folders.iter().any(|folder| path::is_in_folder(path, Path::new(folder)))
}

/// Whether the first part of a pattern may be one of these folders of the root, and something is named in it.
fn fits_below(pattern: &Path, folders: &[&str]) -> bool {
    let mut parts = pattern.components().skip(1).filter_map(|part| part.as_os_str().to_str());
    let Some(first) = parts.next().filter(|first| is_pattern(first)) else { return false };
    parts.next().is_some() && folders.iter().any(|folder| path::fits(first, folder.trim_start_matches('/')))
}

/// Everything the field may name.
fn paths(target: &Field, place: &ShellPlace) -> Vec<PathBuf> {
    if target.text.is_empty() {
        return Vec::new();
    }
    let mut paths: Vec<PathBuf> = place.folders.iter().map(|folder| path::join(folder, &target.text)).collect();
    let lent = place.mounts.iter().filter_map(|(there, here)| {
        let rest = paths.first()?.strip_prefix(there).ok()?;
        place.folders.first().map(|folder| path::tidy(&folder.join(here).join(rest)))
    });
    paths.extend(lent.collect::<Vec<_>>());
    paths.dedup();
    paths
}

/// Whether a relative path could be anything, depending on where one is.
fn is_vague(text: &str) -> bool {
    text.split('/').all(|part| matches!(part, "" | "." | ".." | "*" | ".*" | ".git"))
}

/// The folder whose contents a trailing wildcard means.
fn without_wildcard(path: &Path) -> PathBuf {
    let mut plain = path.to_owned();
    while let Some(name) = plain.file_name().and_then(|name| name.to_str()) {
        let all = !name.is_empty()
            && name.chars().all(|next| matches!(next, '*' | '.' | '?' | '[' | ']' | '!'))
            && name.contains('*');
        if !all {
            break;
        }
        plain.pop();
    }
    plain
}

/// Whether a pattern fits a whole path, part by part.
fn matches_path(pattern: &Path, path: &Path) -> bool {
    let (pattern, path) = (pattern.to_string_lossy(), path.to_string_lossy());
    let mut parts = path.split('/');
    let fits = pattern.split('/').all(|wanted| parts.next().is_some_and(|part| path::fits(wanted, part)));
    fits && parts.next().is_none()
}

fn worse(one: Worth, other: Worth) -> Worth {
    match (one, other) {
        (Worth::Vital(_), _) | (Worth::Doubtful(_), Worth::Common | Worth::Doubtful(_)) => one,
        _ => other,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn folders_of_the_system_are_sorted() {
        assert!(super::SYSTEM.is_sorted() && super::REMADE.is_sorted());
    }
}
