//! Where the repository of a project is, if a file leads there: a working tree of another one, or a submodule.

use std::path::{Path, PathBuf};

use crate::path;

/// What says in a repository what runs in it.
const DECIDE: &[&str] = &["hooks", "config", "config.worktree", "commondir"];

/// What decides in the repository of a project that is somewhere else.
pub(super) fn elsewhere(project: &Path) -> Vec<PathBuf> {
    let Some(own) = named(&project.join(".git"), "gitdir:", project) else { return Vec::new() };
    let shared = named(&own.join("commondir"), "", &own);
    let repositories = std::iter::once(own).chain(shared);
    repositories.flat_map(|repository| DECIDE.iter().map(move |name| path::join(&repository, name))).collect()
}

/// The folder that a small file names behind a word, from a folder on.
fn named(file: &Path, word: &str, from: &Path) -> Option<PathBuf> {
    const LONGEST: u64 = 8 << 10;
    let small = std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() <= LONGEST);
    let text = if small { std::fs::read_to_string(file).ok()? } else { return None };
    Some(from.join(text.strip_prefix(word)?.trim()))
}
