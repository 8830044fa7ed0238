//! The folders that tools may access; files are opened so that no link leads out of these folders.
//!
//! A path is first resolved with all its links, and must then lie in an allowed folder. After that, the path is walked
//! again from the opened folder, one name at a time and without following links. So a link that is inserted in between
//! leads nowhere instead of outside. Reading and writing use the opened file, never the path again.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdirat, open, openat, renameat, unlinkat};
use rustix::io::Errno;

/// The largest file a tool reads or writes.
pub(crate) const LARGEST: u64 = 8 << 20;

/// Folders with files that other programs run or obey.
const OBEYED: &[&[&str]] = &[&[".git"], &[".ollm"], &[".config", "agent"]];

/// The folders that tools may access.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
    allowed: Vec<PathBuf>,
}

/// Why a tool may not access a path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// It lies outside the workspace.
    #[error("{} lies outside the workspace {}; only files inside it may be used", path.display(), root.display())]
    Outside {
        /// The path with its links resolved.
        path: PathBuf,
        /// The workspace.
        root: PathBuf,
    },
    /// A link without a target.
    #[error("{} is a link that leads nowhere; remove it first", .0.display())]
    Dangling(PathBuf),
    /// It is no regular file.
    #[error("{} is no regular file", .0.display())]
    NotAFile(PathBuf),
    /// The file is too large for a tool.
    #[error("{} has {size} bytes; at most {LARGEST} are handled", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        size: u64,
    },
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl Workspace {
    /// The folder tools work in; `allowed` are further folders that they may access.
    pub fn new(root: &Path, allowed: &[PathBuf]) -> Result<Workspace, WorkspaceError> {
        let real = |path: &PathBuf| path.canonicalize().map_err(|source| failed(path, source));
        let allowed = allowed.iter().map(real).collect::<Result<_, _>>()?;
        Ok(Workspace { root: real(&root.to_owned())?, allowed })
    }

    /// The folder, with links resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The real target of a path, if tools may access it; the file need not exist.
    pub fn resolve(&self, path: impl AsRef<Path>) -> Result<PathBuf, WorkspaceError> {
        let real = resolve(&self.root.join(path))?;
        self.folder_of(&real).map(|_| real.clone())
    }

    /// Whether a path leads to files that other programs obey. Changing the files of Git or of this program can make
    /// them run something later.
    pub(crate) fn is_obeyed(&self, path: &str) -> bool {
        let written = self.root.join(path);
        let real = resolve(&written).unwrap_or_else(|_| written.clone());
        [written, real].iter().any(|path| {
            let names: Vec<String> =
                path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
            OBEYED.iter().any(|folder| names.windows(folder.len()).any(|names| names == *folder))
        })
    }

    /// The name of a path inside the workspace.
    pub(crate) fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// The bytes of a file; `None` if it does not exist.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, WorkspaceError> {
        let Some((folder, name)) = self.parent(path, Missing::Stays)? else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(failed(path, error.into())),
        };
        let meta = file.metadata().map_err(|source| failed(path, source))?;
        if !meta.is_file() {
            return Err(WorkspaceError::NotAFile(path.to_owned()));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|source| failed(path, source))?;
        if bytes.len() as u64 > LARGEST {
            return Err(WorkspaceError::TooLarge { path: path.to_owned(), size: meta.len() });
        }
        Ok(Some(bytes))
    }

    /// Replaces or creates a file in one step. An existing file keeps its mode; missing folders are created.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), WorkspaceError> {
        let Some((folder, name)) = self.parent(path, Missing::Made)? else {
            return Err(failed(path, io::ErrorKind::NotFound.into()));
        };
        let old = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        if old.as_ref().is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile) {
            return Err(WorkspaceError::NotAFile(path.to_owned()));
        }
        let mode = old.map(|stat| Mode::from_raw_mode(stat.st_mode));
        let temp = format!(".{}.{}.tmp", name.to_string_lossy(), crate::time::unique());
        let written = fill(&folder, &temp, bytes, mode)
            .and_then(|()| renameat(&folder, &temp, &folder, name).map_err(io::Error::from));
        written.map_err(|source| {
            // If even removing fails, nothing more can be done; the original error explains it.
            let _ = unlinkat(&folder, &temp, AtFlags::empty());
            failed(path, source)
        })
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), WorkspaceError> {
        let parent = self.parent(path, Missing::Stays)?;
        let (folder, name) = parent.ok_or_else(|| failed(path, io::ErrorKind::NotFound.into()))?;
        unlinkat(&folder, name, AtFlags::empty()).map_err(|error| failed(path, error.into()))
    }

    fn folder_of(&self, path: &Path) -> Result<&Path, WorkspaceError> {
        let mut folders = std::iter::once(&self.root).chain(&self.allowed);
        folders
            .find(|folder| path.starts_with(folder))
            .map(PathBuf::as_path)
            .ok_or_else(|| WorkspaceError::Outside { path: path.to_owned(), root: self.root.clone() })
    }

    /// The folder that contains a resolved path, opened without following links; `None` if it does not exist.
    fn parent<'a>(&self, path: &'a Path, missing: Missing) -> Result<Option<(OwnedFd, &'a OsStr)>, WorkspaceError> {
        let base = self.folder_of(path)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(WorkspaceError::NotAFile(path.to_owned()));
        };
        // The base itself is a folder, not a file inside one.
        let Ok(below) = parent.strip_prefix(base) else { return Err(WorkspaceError::NotAFile(path.to_owned())) };
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = open(base, flags, Mode::empty()).map_err(|error| failed(base, error.into()))?;
        for part in below.components() {
            let Component::Normal(part) = part else { return Err(WorkspaceError::NotAFile(path.to_owned())) };
            folder = match (openat(&folder, part, flags, Mode::empty()), missing) {
                (Ok(next), _) => next,
                (Err(Errno::NOENT), Missing::Stays) => return Ok(None),
                (Err(Errno::NOENT), Missing::Made) => {
                    make(&folder, part, flags).map_err(|error| failed(path, error.into()))?
                }
                (Err(error), _) => return Err(failed(path, error.into())),
            };
        }
        Ok(Some((folder, name)))
    }
}

/// What to do about a missing folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Stays,
    Made,
}

fn make(folder: &OwnedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    match mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => openat(folder, name, flags, Mode::empty()),
        Err(error) => Err(error),
    }
}

fn fill(folder: &OwnedFd, name: &str, bytes: &[u8], mode: Option<Mode>) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, name, flags, Mode::from_raw_mode(0o666))?);
    file.write_all(bytes)?;
    if let Some(mode) = mode {
        let now = Mode::from_raw_mode(fstat(&file)?.st_mode);
        if now != mode {
            fchmod(&file, mode)?;
        }
    }
    Ok(())
}

/// The path with links resolved; parts that do not exist stay as written.
fn resolve(path: &Path) -> Result<PathBuf, WorkspaceError> {
    match path.canonicalize() {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if fs::symlink_metadata(path).is_ok() {
                return Err(WorkspaceError::Dangling(path.to_owned()));
            }
            match (path.parent(), path.file_name()) {
                (Some(parent), Some(name)) => Ok(resolve(parent)?.join(name)),
                _ => Err(failed(path, error)),
            }
        }
        Err(error) => Err(failed(path, error)),
    }
}

fn failed(path: &Path, source: io::Error) -> WorkspaceError {
    WorkspaceError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn world() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["in", "out", "in/sub"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("out/secret"), "s").unwrap();
        fs::write(folder.path().join("in/sub/file"), "f").unwrap();
        let workspace = Workspace::new(&folder.path().join("in"), &[]).unwrap();
        (folder, workspace)
    }

    #[test]
    fn nothing_leads_out() {
        let (folder, workspace) = world();
        let out = folder.path().join("out");
        symlink(&out, folder.path().join("in/link")).unwrap();
        symlink(out.join("secret"), folder.path().join("in/file")).unwrap();
        symlink(out.join("new"), folder.path().join("in/dangling")).unwrap();
        let absolute = out.join("secret").display().to_string();
        for path in
            ["../out/secret", "link/secret", "link/new", "file", "sub/../../out/secret", &absolute, "/etc/passwd"]
        {
            assert!(matches!(workspace.resolve(path), Err(WorkspaceError::Outside { .. })), "{path}");
        }
        assert!(matches!(workspace.resolve("dangling"), Err(WorkspaceError::Dangling(_))));
        assert!(workspace.resolve("missing/../../out/x").is_err());
    }

    #[test]
    fn links_inside_lead_to_their_target() {
        let (folder, workspace) = world();
        symlink("sub/file", folder.path().join("in/link")).unwrap();
        let real = workspace.resolve("link").unwrap();
        assert_eq!(workspace.name(&real), "sub/file");
        workspace.write(&real, b"new").unwrap();
        assert_eq!(fs::read(folder.path().join("in/sub/file")).unwrap(), b"new");
        assert!(fs::symlink_metadata(folder.path().join("in/link")).unwrap().is_symlink());
    }

    #[test]
    fn a_link_that_comes_in_between_is_not_followed() {
        let (folder, workspace) = world();
        let real = workspace.resolve("late/file").unwrap();
        symlink(folder.path().join("out"), folder.path().join("in/late")).unwrap();
        assert!(workspace.write(&real, b"x").is_err());
        assert!(workspace.read(&real).is_err());
        let real = workspace.resolve("sub/new").unwrap();
        symlink(folder.path().join("out/secret"), folder.path().join("in/sub/new")).unwrap();
        assert!(workspace.write(&real, b"x").is_err());
        assert!(workspace.read(&real).is_err());
        assert_eq!(fs::read(folder.path().join("out/secret")).unwrap(), b"s");
        assert!(!folder.path().join("out/file").exists());
    }

    #[test]
    fn an_allowed_folder_may_be_used_too() {
        let (folder, _) = world();
        let workspace = Workspace::new(&folder.path().join("in"), &[folder.path().join("out")]).unwrap();
        let real = workspace.resolve("../out/secret").unwrap();
        assert_eq!(workspace.read(&real).unwrap(), Some(b"s".to_vec()));
    }

    #[test]
    fn a_written_file_keeps_its_mode_and_leaves_nothing_behind() {
        let (folder, workspace) = world();
        let file = folder.path().join("in/sub/file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
        let real = workspace.resolve("sub/file").unwrap();
        workspace.write(&real, b"x").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(fs::read_dir(folder.path().join("in/sub")).unwrap().count(), 1);
        let deep = workspace.resolve("a/b/c").unwrap();
        workspace.write(&deep, b"y").unwrap();
        assert_eq!(workspace.read(&deep).unwrap(), Some(b"y".to_vec()));
    }

    #[test]
    fn pipes_folders_and_giants_are_refused_without_waiting() {
        let (folder, workspace) = world();
        let made = std::process::Command::new("mkfifo").arg(folder.path().join("in/pipe")).status().unwrap();
        assert!(made.success());
        for name in ["pipe", "sub"] {
            let real = workspace.resolve(name).unwrap();
            assert!(matches!(workspace.read(&real), Err(WorkspaceError::NotAFile(_))), "{name}");
            assert!(matches!(workspace.write(&real, b"x"), Err(WorkspaceError::NotAFile(_))), "{name}");
        }
        let giant = folder.path().join("in/giant");
        File::create(&giant).unwrap().set_len(LARGEST + 1).unwrap();
        let real = workspace.resolve("giant").unwrap();
        assert!(matches!(workspace.read(&real), Err(WorkspaceError::TooLarge { .. })));
    }
}
