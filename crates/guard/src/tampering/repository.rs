//! Where the repository of a project is, if it is not in its `.git`: a file leads there from a working tree of another one
//! and from a submodule, and one without a working tree is the project itself.

use std::path::{Path, PathBuf};

use crate::path;

/// What says in a repository what runs in it.
const DECIDE: &[&str] = &["hooks", "config", "config.worktree", "commondir"];

/// What decides in the repository of a project that is somewhere else.
pub(super) fn elsewhere(project: &Path) -> Vec<PathBuf> {
    let own = named(&project.join(".git"), "gitdir:", project);
    let Some(own) = own.or_else(|| is_bare(project).then(|| project.to_owned())) else { return Vec::new() };
    let shared = named(&own.join("commondir"), "", &own);
    let repositories = std::iter::once(own).chain(shared);
    repositories.flat_map(|repository| DECIDE.iter().map(move |name| path::join(&repository, name))).collect()
}

/// Whether a folder is a repository, by what `git` looks for.
fn is_bare(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

/// The folder that a small file names behind a word, from a folder on.
fn named(file: &Path, word: &str, from: &Path) -> Option<PathBuf> {
    const LONGEST: u64 = 8 << 10;
    let small = std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() <= LONGEST);
    let text = if small { std::fs::read_to_string(file).ok()? } else { return None };
    Some(from.join(text.strip_prefix(word)?.trim()))
}
