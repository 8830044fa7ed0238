//! How far `hooks.trustWorkspace` reaches: over the projects that a person listed, and not over what others put into them.

use std::path::Path;

use crate::place::is_project;

/// Folders whose content somebody else wrote.
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

/// Whether trust in all that lies at or below `listed` covers a project. Both paths are real ones, `home` is our own folder.
///
/// It does not cover what lies in a vendored folder below `listed`, nor a repository within a project: a clone, a submodule.
pub(super) fn covers(listed: &Path, project: &Path, home: &Path) -> bool {
    let Ok(below) = project.strip_prefix(listed) else { return false };
    // From the listed folder down to the project.
    let way: Vec<&Path> = project.ancestors().take(below.iter().count() + 1).collect();
    let way = || way.iter().rev();
    let trusted = way().position(|folder| is_project(folder, home)).unwrap_or_default();
    let has_repository = |folder: &&&Path| folder.join(".git").symlink_metadata().is_ok();
    let is_nested = way().skip(trusted + 1).any(|folder| has_repository(&folder));
    !is_nested && !below.iter().any(is_vendored)
}

/// Whether trust in all projects covers one: not what others put into an enclosing one.
pub(super) fn covered_by_all(project: &Path, home: &Path) -> bool {
    let outermost = project.ancestors().filter(|folder| is_project(folder, home)).last().unwrap_or(project);
    covers(outermost, project, home)
}

/// Whether all that a project declares lies where trust reaches: a link may lead to what somebody else wrote.
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
