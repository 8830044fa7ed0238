//! Decides which projects `hooks.trustWorkspace` covers: those that a person listed, without other people's work inside
//! them.

use std::path::Path;

use crate::place::is_project;

/// Folders whose content other people wrote.
const VENDORED: &[&str] = &[
    "node_modules",
    "bower_components",
    "jspm_packages",
    "elm-stuff",
    "vendor",
    "vendors",
    "vendored",
    "third_party",
    "third-party",
    "thirdparty",
    "3rdparty",
    "3rd_party",
    "pods",
    "carthage",
    "site-packages",
    "dist-packages",
    ".venv",
    "venv",
    ".tox",
    ".bundle",
    "deps",
];

/// Whether trust in everything at or below `listed` covers a project. Both paths are real paths, and `home` is our own
/// folder.
///
/// Trust covers neither vendored folders below `listed`, nor repositories within a project, such as clones and
/// submodules.
pub(super) fn covers(listed: &Path, project: &Path, home: &Path) -> bool {
    let Ok(below) = project.strip_prefix(listed) else { return false };
    // The folders from the listed one down to the project.
    let way: Vec<&Path> = project.ancestors().take(below.iter().count() + 1).collect();
    let way = || way.iter().rev();
    let trusted = way().position(|folder| is_project(folder, home)).unwrap_or_default();
    let has_repository = |folder: &&&Path| folder.join(".git").symlink_metadata().is_ok();
    let is_nested = way().skip(trusted + 1).any(|folder| has_repository(&folder));
    !is_nested && !below.iter().any(is_vendored)
}

/// Whether trust in all projects covers this one; it does not cover other people's work in a project around it.
pub(super) fn covered_by_all(project: &Path, home: &Path) -> bool {
    let outermost = project.ancestors().filter(|folder| is_project(folder, home)).last().unwrap_or(project);
    covers(outermost, project, home)
}

/// Whether all declarations of a project lie where trust covers them: a link may lead to other people's work.
pub(super) fn is_own_work(project: &Path, covers: impl Fn(&Path) -> bool) -> bool {
    let folder = project.join(".ollm");
    let folders = ["", "hooks", "hooks/trusted", "extensions", "settings"].map(|name| folder.join(name));
    let inside = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let inside = inside.filter_map(Result::ok).map(|entry| entry.path());
    let mut links = std::iter::once(folder.clone()).chain(inside).filter(|path| path.is_symlink());
    links.all(|link| link.canonicalize().is_ok_and(|real| real.parent().is_some_and(&covers)))
}

fn is_vendored(name: &std::ffi::OsStr) -> bool {
    VENDORED.iter().any(|vendored| name.eq_ignore_ascii_case(vendored))
}
