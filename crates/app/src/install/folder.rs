//! Reads packages from folders on this machine.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ollm_catalog::INSTALL_RECORD;
use ollm_package::{Bounds, Collector, LinkBase, Package, Refusal};
use ollm_store::raw::{kind_of, open_regular};
use rustix::fs::OFlags;

/// Reads a folder, without git's own files and without an installation record.
pub(super) fn read(root: &Path) -> Result<Package, String> {
    let mut collector = Collector::new(Bounds::default());
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let at = root.join(&folder);
        let entries = fs::read_dir(&at).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut entries = entries.map_err(|error| format!("{}: {error}", at.display()))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = folder.join(entry.file_name());
            if path == Path::new(".git") || path == Path::new(INSTALL_RECORD) {
                continue;
            }
            if take(root, &path, &mut collector)? {
                open.push(path);
            }
        }
    }
    collector.finish().map_err(|refusal| refusal.to_string())
}

/// Adds one entry; returns whether it is a folder.
fn take(root: &Path, path: &Path, collector: &mut Collector) -> Result<bool, String> {
    let at = root.join(path);
    let unread = |error: &dyn std::fmt::Display| format!("{}: {error}", at.display());
    let meta = at.symlink_metadata().map_err(|error| unread(&error))?;
    let name = path.as_os_str().as_bytes();
    let taken: Result<(), Refusal> = if meta.is_dir() {
        collector.folder(name)
    } else if meta.is_symlink() {
        let target = fs::read_link(&at).map_err(|error| unread(&error))?;
        collector.link(name, target.as_os_str().as_bytes(), LinkBase::Folder)
    } else if meta.is_file() {
        let opened = open_regular(&at, OFlags::NOFOLLOW).map_err(|error| unread(&error))?;
        let (file, meta) = opened.ok_or_else(|| unread(&"it is gone"))?;
        collector.file(name, meta.permissions().mode(), None, file)
    } else {
        collector.other(name, kind_of(&meta))
    };
    taken.map_err(|refusal| refusal.to_string())?;
    Ok(meta.is_dir())
}
