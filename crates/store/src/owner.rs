//! Which other users could change a file, by owners and modes of the file and of every folder above it.
//!
//! A file is safe when only the user and root can write it or put another one in its place. That depends on each folder
//! on its path. Where the path passes through symbolic links, it also depends on the links and on the paths to their
//! targets.
//!
//! **Group-writable** is safe only if the group is the one the process runs with. Many systems give each user a private
//! group, and make files group-writable by default. If several users share that group, its members are trusted with
//! files that are group-writable. **Access control lists** are not read; a list that lets others write shows in the
//! group bits of the mode and is judged like them.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::digest::StatKey;

/// A file or folder that others could change, or that could not be checked.
///
/// Its text is for people and says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {}", path.display(), self.complaint())]
pub struct Unsafe {
    /// The unsafe file, folder or link, which may differ from the one that was checked.
    pub path: PathBuf,
    /// Its permission bits; 0 when they are not known.
    pub mode: u32,
    /// The user id of its owner; 0 when it is not known.
    pub owner: u32,
    /// What is wrong with it.
    pub why: Why,
}

/// What is wrong with a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// Others may write to it.
    Writable,
    /// Other users may look into a folder that must be private.
    Open,
    /// It belongs to neither the user nor root.
    Foreign,
    /// Its symbolic links form a loop, or there are too many of them.
    Loop,
    /// A relative path, which means something else in every folder.
    Relative,
    /// The system did not allow the check.
    Unknown(io::ErrorKind),
}

impl Unsafe {
    /// A file or folder that is unsafe, by its metadata.
    pub fn of(path: &Path, meta: &Metadata, why: Why) -> Self {
        Self { path: path.to_owned(), mode: meta.mode() & 0o7777, owner: meta.uid(), why }
    }

    fn unseen(path: &Path, why: Why) -> Self {
        Self { path: path.to_owned(), mode: 0, owner: 0, why }
    }

    fn complaint(&self) -> String {
        let Self { path, mode, owner, why } = self;
        let path = Quoted(path);
        match why {
            Why::Writable => format!("is writable by others (mode {mode:04o}); `chmod go-w {path}` mends it"),
            Why::Open => format!("is open to others (mode {mode:04o}); `chmod 700 {path}` mends it"),
            Why::Foreign => format!(
                "belongs to uid {owner}, not to you; move it away, or look through it and take it over with \
                `sudo chown \"$(id -u)\" {path}`"
            ),
            Why::Loop => "passes through too many symbolic links; replace one of them by a file or folder".to_owned(),
            Why::Relative => "is a relative path; name it from the root".to_owned(),
            Why::Unknown(kind) => format!("cannot be inspected ({kind}); check it and its folders with `ls -ld`"),
        }
    }
}

/// The user this process acts as.
pub fn current_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The group this process acts as.
pub fn current_gid() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Checks that only `uid` and root can change `path`: a single check with [`Owners`], with the group of this process.
pub fn check_owner(path: &Path, top: &Path, uid: u32) -> Result<(), Unsafe> {
    Owners::new(uid, current_gid()).check(path, top)
}

/// Checks many paths; each folder is inspected once.
///
/// A safe result is kept for the life of this value. Make a new value for each piece of work, or ask whether its
/// results [still hold](Owners::still_hold).
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let top = folder.path();
/// # std::fs::write(top.join("guard.py"), "").unwrap();
/// use ollm_store::{Owners, current_gid, current_uid};
/// let owners = Owners::new(current_uid(), current_gid());
/// owners.check(&top.join("guard.py"), top).unwrap();
/// ```
#[derive(Debug)]
pub struct Owners {
    uid: u32,
    gid: u32,
    folders: Mutex<HashMap<PathBuf, Rule>>,
    /// The number of all unmapped users, if this user namespace does not map root.
    unknown_root: OnceLock<Option<u32>>,
    /// Everything that was checked, in the order of checking.
    judged: Mutex<Vec<(PathBuf, OwnerState)>>,
}

/// Everything that the result of a check depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OwnerState {
    uid: u32,
    gid: u32,
    mode: u32,
    /// The state of a link; a changed link may lead elsewhere.
    link: Option<StatKey>,
}

impl OwnerState {
    fn of(meta: &Metadata) -> Self {
        let link = meta.is_symlink().then(|| StatKey::of(meta));
        Self { uid: meta.uid(), gid: meta.gid(), mode: meta.mode(), link }
    }
}

/// What a file or folder must satisfy; a later rule includes the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// Others may not replace its entries; unlike below, a sticky folder may be writable.
    Way,
    /// Others may neither write to it nor add to it.
    Own,
}

/// A part of a path that is still to be walked.
struct Step {
    name: OsString,
    rule: Rule,
}

impl Owners {
    /// Nothing is checked yet; `uid` and `gid` are the user and the group that may write.
    pub fn new(uid: u32, gid: u32) -> Self {
        Self { uid, gid, folders: Mutex::default(), unknown_root: OnceLock::new(), judged: Mutex::default() }
    }

    /// Checks `path` and every folder on the way to it.
    ///
    /// `path` itself and every folder from `top` down must belong to the user or to root. Others must not be able to
    /// write them. Above `top` the same holds, except that a sticky folder (such as `/tmp`) may be writable: other
    /// users cannot replace our files in it. Symbolic links must belong to the user or to root, and are followed. The
    /// path to a link's target is checked like the path above `top`; the target itself is checked like the link's
    /// place.
    pub fn check(&self, path: &Path, top: &Path) -> Result<(), Unsafe> {
        const HOPS: usize = 40;
        if !path.is_absolute() {
            return Err(Unsafe::unseen(path, Why::Relative));
        }
        let mut at = PathBuf::from("/");
        self.look(&at, if top == at { Rule::Own } else { Rule::Way })?;
        let mut steps = steps_to(path, top);
        let mut hops = 0;
        while let Some(Step { name, rule }) = steps.pop_front() {
            // The path walked so far contains no links, so its parent is the folder above. The root is its own parent.
            if name == ".." {
                at.pop();
            } else {
                at.push(name);
            }
            let Some(target) = self.look(&at, rule)? else {
                continue;
            };
            hops += 1;
            if hops > HOPS {
                return Err(Unsafe::unseen(path, Why::Loop));
            }
            if target.is_absolute() {
                at = PathBuf::from("/");
            } else {
                at.pop();
            }
            follow(&target, rule, &mut steps);
        }
        Ok(())
    }

    /// Whether everything that was found safe still has the owners, modes and links of the check.
    ///
    /// This inspects each path once, which is all that a new check would do.
    pub fn still_hold(&self) -> bool {
        let same = |(path, state): &(PathBuf, OwnerState)| {
            fs::symlink_metadata(path).is_ok_and(|meta| OwnerState::of(&meta) == *state)
        };
        self.judged().iter().all(same)
    }

    /// Checks one file, folder or link. Returns the target of a link.
    fn look(&self, at: &Path, rule: Rule) -> Result<Option<PathBuf>, Unsafe> {
        if self.folders().get(at).is_some_and(|known| *known >= rule) {
            return Ok(None);
        }
        let meta = fs::symlink_metadata(at).map_err(|error| unknown(at, &error))?;
        self.judged().push((at.to_owned(), OwnerState::of(&meta)));
        self.judge_owner(at, &meta)?;
        if meta.is_symlink() {
            return fs::read_link(at).map(Some).map_err(|error| unknown(at, &error));
        }
        self.judge(at, &meta, rule).map(|()| None)
    }

    fn judge(&self, at: &Path, meta: &Metadata, rule: Rule) -> Result<(), Unsafe> {
        let mode = meta.mode();
        let writable = mode & 0o002 != 0 || (mode & 0o020 != 0 && meta.gid() != self.gid);
        let sticky = meta.is_dir() && mode & 0o1000 != 0;
        if writable && !(sticky && rule == Rule::Way) {
            return Err(Unsafe::of(at, meta, Why::Writable));
        }
        if meta.is_dir() {
            self.folders().insert(at.to_owned(), rule);
        }
        Ok(())
    }

    fn judge_owner(&self, at: &Path, meta: &Metadata) -> Result<(), Unsafe> {
        match meta.uid() {
            owner if owner == self.uid || owner == 0 => Ok(()),
            owner if *self.unknown_root.get_or_init(unknown_root) == Some(owner) && is_of_system(at) => Ok(()),
            _ => Err(Unsafe::of(at, meta, Why::Foreign)),
        }
    }

    fn folders(&self) -> MutexGuard<'_, HashMap<PathBuf, Rule>> {
        // An entry is inserted completely or not at all, so a panic elsewhere leaves no partial entry.
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judged(&self) -> MutexGuard<'_, Vec<(PathBuf, OwnerState)>> {
        self.judged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parts of a path. The stricter rule applies to the last part, and to all parts from the last one of `top` on.
fn steps_to(path: &Path, top: &Path) -> VecDeque<Step> {
    let strict = if path.starts_with(top) { top.components().count() } else { usize::MAX };
    let parts = path.components().zip(1..);
    let rule = |place| if place >= strict { Rule::Own } else { Rule::Way };
    let steps = parts.map(|(part, place)| Step { name: part.as_os_str().to_owned(), rule: rule(place) });
    // Every walk begins at the root.
    end_with(Rule::Own, steps.skip(1).collect())
}

/// Puts the target path of a link before the steps that are still to be walked.
fn follow(target: &Path, rule: Rule, steps: &mut VecDeque<Step>) {
    let parts = target.components().map(|part| Step { name: part.as_os_str().to_owned(), rule: Rule::Way });
    let mut way = end_with(rule, parts.collect());
    way.append(steps);
    *steps = way;
}

fn end_with(rule: Rule, mut steps: VecDeque<Step>) -> VecDeque<Step> {
    if let Some(last) = steps.back_mut() {
        last.rule = rule;
    }
    steps
}

/// The number of all unmapped users, if root is one of them: in a box, for example, the namespace maps few users.
fn unknown_root() -> Option<u32> {
    let read = |file: &str| fs::read_to_string(file).ok();
    let others: u32 = read("/proc/sys/kernel/overflowuid")?.trim().parse().ok()?;
    let known = read("/proc/self/uid_map")?;
    let known = known.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).sum::<u64>();
    let owner = fs::metadata("/").ok()?.uid();
    (known < u64::from(u32::MAX) && owner == others).then_some(owner)
}

/// Whether only root owns such a path on any system. Elsewhere an unmapped owner may be any user, so it stays foreign.
fn is_of_system(at: &Path) -> bool {
    let folders = ["/bin", "/etc", "/lib", "/lib32", "/lib64", "/nix/store", "/sbin", "/usr"];
    at.components().count() <= 2 || folders.iter().any(|folder| at.starts_with(folder))
}

fn unknown(at: &Path, error: &io::Error) -> Unsafe {
    Unsafe::unseen(at, Why::Unknown(error.kind()))
}

/// A path as a word for the shell.
struct Quoted<'a>(&'a Path);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.display().to_string();
        let plain = |letter: char| letter.is_alphanumeric() || "/._-+@:,".contains(letter);
        if text.chars().all(plain) { f.write_str(&text) } else { write!(f, "'{}'", text.replace('\'', r"'\''")) }
    }
}

#[cfg(test)]
mod tests;
