//! Finds scripts in hook folders that no hook file declares. A person put them there and expects them to run.

use std::fs;
use std::path::{Path, PathBuf};

use ollm_protocol::{EventKind, Hook, Remedy};
use ollm_store::read_bounded;

use super::{LARGEST_FILE, MOST_FILES, is_hook_file};

const SCRIPTS: &[&str] = &["sh", "bash", "py", "js", "mjs", "cjs"];

/// The most bytes of a script that are searched for an event's name.
const LARGEST_SCRIPT: u64 = 256 << 10;

/// A script that no hook file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndeclaredScript {
    /// The script.
    pub path: PathBuf,
    /// The event it is for, where its text speaks of exactly one.
    pub event: Option<&'static str>,
}

impl UndeclaredScript {
    /// What a person can do about it.
    pub fn remedy(&self) -> Remedy {
        Remedy::DeclareScript { event: self.event, path: self.path.clone() }
    }
}

/// The scripts of these folders that neither a hook nor the text of a hook file beside them names.
pub(super) fn undeclared(folders: &[PathBuf], hooks: &[Hook]) -> Vec<UndeclaredScript> {
    folders.iter().flat_map(|folder| in_folder(folder, hooks)).collect()
}

fn in_folder(folder: &Path, hooks: &[Hook]) -> Vec<UndeclaredScript> {
    let mut scripts: Vec<PathBuf> = files(folder).filter(|path| is_script(path)).collect();
    if scripts.is_empty() {
        return Vec::new();
    }
    scripts.sort_unstable();
    let declared = |path: &Path| hooks.iter().any(|hook| names(hook, path));
    // The text counts as well: an entry that could not be loaded, or a line of shell, still means its script.
    let texts: Vec<String> = files(folder).filter(|path| is_hook_file(path)).filter_map(|path| text(&path)).collect();
    let mentioned = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        texts.iter().any(|text| speaks_of(text, &name))
    };
    let left = scripts.into_iter().filter(|path| !declared(path) && !mentioned(path)).take(MOST_FILES);
    left.map(|path| UndeclaredScript { event: only_event(&path), path }).collect()
}

/// The plain files of a folder that are not hidden.
fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let shown = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    shown.map(|entry| entry.path()).filter(|path| path.is_file())
}

fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    !is_hook_file(path) && (extension.is_some_and(|name| SCRIPTS.contains(&name)) || is_executable(path))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
}

fn names(hook: &Hook, path: &Path) -> bool {
    hook.script().into_iter().chain(&hook.spec.inputs).any(|file| file == path)
}

fn text(path: &Path) -> Option<String> {
    let bytes = read_bounded(path, LARGEST_FILE).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a text contains a name that is not just the end of a longer one.
fn speaks_of(text: &str, name: &str) -> bool {
    let longer = |before: &str| before.ends_with(|letter: char| letter.is_alphanumeric() || "-_.".contains(letter));
    text.match_indices(name).any(|(at, _)| !longer(text.get(..at).unwrap_or_default()))
}

/// The event of a script, if its text has exactly one event's name as a word.
fn only_event(path: &Path) -> Option<&'static str> {
    let bytes = read_bounded(path, LARGEST_SCRIPT).ok()??;
    let text = String::from_utf8_lossy(&bytes);
    let mut words: Vec<&str> = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    words.sort_unstable();
    let mut found =
        EventKind::all().filter(|kind| kind.name().contains('_') && words.binary_search(&kind.name()).is_ok());
    match (found.next(), found.next()) {
        (Some(kind), None) => Some(kind.name()),
        _ => None,
    }
}
