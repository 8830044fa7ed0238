//! Resolves the files that a hook names: relative to the folder of its hook file, and never outside of it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::FileType;
use std::io;
use std::path::{Component, Path, PathBuf};

use ollm_protocol::hook::action::{CommandSpec, holds_shell_characters};
use ollm_protocol::hook::{Runs, runs};

use crate::load::Stamp;

/// Programs that run a package rather than a file.
const RUNNERS: &[&str] = &["npx", "uvx"];

/// A file that is not in the folder it has to be in, as far as can be told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutsideFile {
    pub(crate) path: PathBuf,
    pub(crate) folder: PathBuf,
    /// Why it cannot be told where it is.
    pub(crate) trouble: Option<Trouble>,
}

impl OutsideFile {
    /// What is wrong with a file of an extension that is not in its folder, and the way out.
    pub(crate) fn of_extension(self) -> (String, &'static str) {
        let leads = || format!("it is a link that leads out of the extension, to {}", self.path.display());
        self.trouble.map_or_else(|| (leads(), "put the file itself there"), |trouble| (trouble.why, trouble.help))
    }
}

/// What the file system says where a file cannot be looked at, and the way out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) why: String,
    pub(crate) help: &'static str,
}

impl Trouble {
    fn of(error: &io::Error) -> Trouble {
        let help = match error.kind() {
            io::ErrorKind::PermissionDenied => "make its folder readable for its owner (chmod u+rx)",
            io::ErrorKind::NotFound => "mend the link or remove it",
            io::ErrorKind::NotADirectory => "name a file that is in a folder",
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => "give it a name that a file can have",
            _ => "mend it, or name another file",
        };
        Trouble { why: error.to_string(), help }
    }
}

/// Caches the checks of files in one folder, so that nothing is checked twice.
#[derive(Debug, Default)]
pub(crate) struct PathCache {
    seen: RefCell<HashMap<PathBuf, PathSight>>,
    /// Whether a link had to be followed: then what was seen says less than what it led to.
    followed: Cell<bool>,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug)]
enum PathSight {
    Absent,
    Plain(Stamp, FileType),
    Link,
    Unknown,
}

impl PathCache {
    fn look(&self, path: &Path) -> PathSight {
        if let Some(known) = self.seen.borrow().get(path) {
            return *known;
        }
        let sight = match path.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => PathSight::Link,
            Ok(meta) => PathSight::Plain(Stamp::of_thing(&meta), meta.file_type()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => PathSight::Absent,
            Err(_) => PathSight::Unknown,
        };
        self.seen.borrow_mut().insert(path.to_owned(), sight);
        sight
    }

    fn is_file(&self, path: &Path) -> bool {
        match self.look(path) {
            PathSight::Absent => false,
            PathSight::Plain(_, kind) => kind.is_file(),
            PathSight::Link | PathSight::Unknown => path.is_file(),
        }
    }

    /// The stamps of everything checked; `None` if they are incomplete.
    pub(crate) fn stamps(self) -> Option<Vec<(PathBuf, Stamp)>> {
        let stamp = |(path, sight)| match sight {
            PathSight::Absent => Some((path, Stamp::Absent)),
            PathSight::Plain(stamp, _) => Some((path, stamp)),
            PathSight::Link | PathSight::Unknown => None,
        };
        if self.followed.get() { None } else { self.seen.into_inner().into_iter().map(stamp).collect() }
    }
}

/// Why a command line cannot be taken unchanged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandRefusal {
    /// The command leads out of the folder.
    Command(OutsideFile),
    /// The nth argument leads out of the folder.
    Argument(usize, OutsideFile),
    /// The command holds its arguments too.
    Arguments,
}

/// A command line with its relative files in `folder`, and the files it names beside the script. Code that an
/// interpreter loads first matters as much as the script.
pub(crate) fn command(
    folder: &Path,
    command: &str,
    args: Vec<String>,
    whitelist: &[String],
    walked: &PathCache,
) -> Result<(CommandSpec, Vec<PathBuf>), CommandRefusal> {
    let (program, mut script) = program(folder, command, whitelist, walked)?;
    let mut others = Vec::new();
    let mut args = args;
    let own = if is_runner(command) { OwnArguments::None } else { own_argument(command, &args) };
    if own != OwnArguments::None {
        for (index, arg) in args.iter_mut().enumerate() {
            let is_script = own == OwnArguments::Script(index);
            if !is_script && !names_file(folder, arg, walked) {
                continue;
            }
            // An absolute path says itself where it leads.
            let path = match Path::new(arg.as_str()) {
                path if path.is_absolute() => path.to_owned(),
                _ => inside(folder, arg, walked).map_err(|outside| CommandRefusal::Argument(index, outside))?,
            };
            *arg = path.to_string_lossy().into_owned();
            if is_script {
                others.extend(script.replace(path));
            } else {
                others.push(path);
            }
        }
    }
    let script = script.or_else(|| (!others.is_empty()).then(|| others.remove(0)));
    Ok((CommandSpec { command: program, args, script }, others))
}

/// A file of the folder, absolute; it need not exist, but it may not lead out of the folder.
pub(crate) fn inside(folder: &Path, written: &str, walked: &PathCache) -> Result<PathBuf, OutsideFile> {
    let joined = folder.join(written);
    let outside = |path: PathBuf| OutsideFile { path, folder: folder.to_owned(), trouble: None };
    let plain = cleaned(&joined);
    if !plain.starts_with(cleaned(folder)) {
        return Err(outside(plain));
    }
    if is_without_links(folder, written, walked) {
        return Ok(plain);
    }
    let unknown = |error: io::Error| OutsideFile { trouble: Some(Trouble::of(&error)), ..outside(plain.clone()) };
    let real = resolved(&joined).map_err(unknown)?;
    let Some(real) = real else {
        return Ok(plain);
    };
    let root = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if !real.starts_with(&root) {
        return Err(outside(real));
    }
    // `..` after a link does not mean the link's parent. Only the resolved path means the same to every program.
    let climbs = Path::new(written).components().any(|component| component == Component::ParentDir);
    Ok(if climbs && joined.exists() { real } else { plain })
}

/// Whether a path goes down from a folder and meets no link on its way; what is not there cannot be a link.
///
/// Nearly all files of hooks are like that, and resolving links costs a call for each folder above them.
fn is_without_links(folder: &Path, written: &str, walked: &PathCache) -> bool {
    let mut path = folder.to_owned();
    let is_plain = Path::new(written).components().all(|component| match component {
        Component::CurDir => true,
        Component::Normal(name) => {
            path.push(name);
            matches!(walked.look(&path), PathSight::Absent | PathSight::Plain(..))
        }
        _ => false,
    });
    if !is_plain {
        walked.followed.set(true);
    }
    is_plain
}

fn program(
    folder: &Path,
    command: &str,
    whitelist: &[String],
    walked: &PathCache,
) -> Result<(String, Option<PathBuf>), CommandRefusal> {
    let written = Path::new(command);
    if written.is_absolute() {
        return Ok((command.to_owned(), written.starts_with(folder).then(|| written.to_owned())));
    }
    let first = command.split_whitespace().next().unwrap_or_default();
    let one_word = first.len() == command.trim().len() || names_file(folder, command, walked);
    if !one_word && names_file(folder, first, walked) {
        return Err(CommandRefusal::Arguments);
    }
    // A command that is not a single plain word stays as written, for the hook's own check to refuse.
    if !one_word || holds_shell_characters(command) {
        return Ok((command.to_owned(), None));
    }
    let listed = whitelist.iter().any(|name| name == command);
    if !command.contains('/') && (listed || !names_file(folder, command, walked)) {
        return Ok((command.to_owned(), None));
    }
    let path = inside(folder, command, walked).map_err(CommandRefusal::Command)?;
    Ok((path.to_string_lossy().into_owned(), Some(path)))
}

/// Which arguments are files of the hook's own.
#[derive(Debug, PartialEq, Eq)]
enum OwnArguments {
    /// None: what runs is code or a package.
    None,
    /// Those that name an existing file.
    Existing,
    /// This one, and those that name an existing file.
    Script(usize),
}

fn own_argument(command: &str, args: &[String]) -> OwnArguments {
    match runs(command, args) {
        Runs::Script(index) => OwnArguments::Script(index),
        Runs::Code => OwnArguments::None,
        Runs::Itself | Runs::Input | Runs::Nothing => OwnArguments::Existing,
    }
}

fn is_runner(command: &str) -> bool {
    RUNNERS.contains(&base_name(command))
}

fn base_name(command: &str) -> &str {
    command.rsplit('/').next().unwrap_or_default()
}

/// Whether this is the name of a file in the folder, by the letters alone.
fn names_file(folder: &Path, written: &str, walked: &PathCache) -> bool {
    let path = Path::new(written);
    let plain = !written.is_empty()
        && !written.starts_with('-')
        && path.components().all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
    plain && walked.is_file(&folder.join(path))
}

/// The path with links resolved; where it does not exist, as far as it does. An error for a link that leads nowhere.
fn resolved(path: &Path) -> io::Result<Option<PathBuf>> {
    match path.canonicalize() {
        Ok(real) => return Ok(Some(real)),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    if path.symlink_metadata().is_ok() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it is a link that leads nowhere"));
    }
    match path.parent() {
        Some(parent) => resolved(parent),
        None => Ok(None),
    }
}

/// The path without `.` and `..`, by the letters alone.
pub(crate) fn cleaned(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}
