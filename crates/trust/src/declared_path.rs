//! Resolves the paths of permissions. A person approves the paths as written: a later link must not widen them.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The folders that a path of permissions may start with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathRoots<'a> {
    pub(crate) project: &'a Path,
    pub(crate) home: Option<&'a Path>,
}

/// The target of a path of permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeclaredPath {
    /// The path with all links resolved, as far as it exists.
    pub(crate) real: PathBuf,
    /// Whether links below the root lead to it. If so, the person did not see the name of the target.
    pub(crate) by_link: bool,
}

impl DeclaredPath {
    /// Resolves a path. The error is its target, if that lies outside the path's root, or contains the path.
    pub(crate) fn new(path: &str, roots: PathRoots<'_>) -> Result<DeclaredPath, PathBuf> {
        let (root, rest) = split(path, roots);
        let spelled = root.join(&rest);
        let real = resolved(&spelled);
        let by_link = real != spelled;
        if by_link && (!real.starts_with(&root) || spelled.starts_with(&real)) {
            return Err(real);
        }
        Ok(DeclaredPath { real, by_link })
    }
}

/// The root of a path with links resolved, and the rest of the path.
fn split(path: &str, roots: PathRoots<'_>) -> (PathBuf, PathBuf) {
    let below_home = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')).zip(roots.home);
    let path = Path::new(path);
    let (root, rest) = match below_home {
        Some((rest, home)) => (home, Path::new(rest.trim_start_matches('/'))),
        None if path.is_absolute() => {
            let around = [Some(roots.project), roots.home].into_iter().flatten();
            let mut below = around.filter_map(|root| Some((root, path.strip_prefix(root).ok()?)));
            below.next().unwrap_or((Path::new("/"), path.strip_prefix("/").unwrap_or(path)))
        }
        None => (roots.project, path),
    };
    let mut root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut rest = rest.components().peekable();
    // A leading `..` means a folder above the root, which the person saw.
    while rest.next_if(|part| matches!(part, Component::ParentDir | Component::CurDir)).is_some_and(|part| {
        if part == Component::ParentDir {
            root.pop();
        }
        true
    }) {}
    (root, rest.collect())
}

/// A path with its links resolved, as far as it exists.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        // A dangling link is not a missing file: a file created later decides where it leads.
        (Err(error), Some(folder), Some(name)) if is_missing(&error) && fs::symlink_metadata(path).is_err() => {
            resolved(folder).join(name)
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_leads_to_what_its_name_says_or_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let project = home.join("project");
        for name in ["project/build", "project/src", ".ssh", "notes"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        for (link, target) in [("out", "../"), ("ref", "../.ssh"), ("all", "."), ("inner", "src"), ("far", "/usr")] {
            symlink(target, project.join(link)).unwrap();
        }
        symlink("notes", home.join("linked")).unwrap();
        let roots = PathRoots { project: &project, home: Some(&home) };
        let led = |path: &str| {
            let led = DeclaredPath::new(path, roots).ok()?;
            Some((
                led.real.strip_prefix("/").unwrap().strip_prefix(home.strip_prefix("/").unwrap()).ok()?.to_owned(),
                led.by_link,
            ))
        };
        let direct = |path: &str| Some((PathBuf::from(path), false));
        assert_eq!(led("build"), direct("project/build"));
        assert_eq!(led("build/absent/"), direct("project/build/absent"));
        assert_eq!(led("."), direct("project"));
        assert_eq!(led("../notes"), direct("notes"));
        assert_eq!(led("~/notes"), direct("notes"));
        assert_eq!(led(project.join("build").to_str().unwrap()), direct("project/build"));
        assert_eq!(led("inner"), Some(("project/src".into(), true)));
        assert_eq!(led("~/linked/new"), Some(("notes/new".into(), true)));
        for path in ["out", "out/notes", "ref", "all", "far", "far/bin", "~/project/far"] {
            assert_eq!(led(path), None, "{path}");
        }
        let absolute = project.join("ref").display().to_string();
        assert_eq!(DeclaredPath::new(&absolute, roots), Err(home.join(".ssh")));
    }
}
