//! Turns the rules of a box into mounts, in the order in which they are made.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::BoxRules;

/// One mount. Later ones cover earlier ones at the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MountKind {
    /// A mount of the path on itself, so that it cannot be renamed or removed.
    Pin,
    /// A mount of the path on itself, writable although its surroundings are not.
    Writable,
    /// A mount of the path on itself, read-only with everything in it.
    ReadOnly,
    /// An empty folder over the path.
    HideFolder,
    /// An empty file over the path.
    HideFile,
}

/// A mount and its path, ready for the kernel.
#[derive(Debug)]
pub(super) struct MountStep {
    pub(super) kind: MountKind,
    pub(super) place: CString,
}

/// All mounts of a box.
#[derive(Debug, Default)]
pub(super) struct MountPlan {
    /// Whether everything is made read-only first.
    pub(super) all_read_only: bool,
    pub(super) steps: Vec<MountStep>,
}

impl MountPlan {
    pub(super) fn new(rules: &BoxRules) -> io::Result<Self> {
        let mut kinds: BTreeMap<PathBuf, MountKind> = BTreeMap::new();
        let mut add = |place: PathBuf, kind: MountKind| {
            let known = kinds.entry(place).or_insert(kind);
            *known = (*known).max(kind);
        };
        // A device can be written on a read-only mount, too, and a new terminal is only found beside `/dev/ptmx`, which would
        // stand alone in a mount of its own.
        let is_device = |path: &Path| fs::metadata(path).is_ok_and(|data| data.file_type().is_char_device());
        let writable = rules.writable.iter().flatten().filter_map(|path| path.canonicalize().ok());
        for path in writable.filter(|path| !is_device(path)) {
            add(path, MountKind::Writable);
        }
        // A mount cannot be put on a link, only on its target.
        for path in rules.read_only.iter().filter_map(|path| path.canonicalize().ok()) {
            add(path, MountKind::ReadOnly);
        }
        let pinned: Vec<PathBuf> = rules.pinned.iter().filter_map(|path| path.canonicalize().ok()).collect();
        for path in &pinned {
            add(path.clone(), MountKind::Pin);
        }
        for path in rules.hidden.iter().chain(&rules.secret).filter_map(|path| path.canonicalize().ok()) {
            let kind = if path.is_dir() { MountKind::HideFolder } else { MountKind::HideFile };
            add(path, kind);
        }
        let protects = |kind: &MountKind| !matches!(kind, MountKind::Pin | MountKind::Writable);
        let protected: Vec<PathBuf> =
            kinds.iter().filter(|(_, kind)| protects(kind)).map(|(path, _)| path.clone()).collect();
        // The content of a protected folder is protected with it, unless it is also hidden.
        kinds.retain(|path, kind| {
            let covered = protected.iter().any(|other| path != other && path.starts_with(other));
            !covered || matches!(kind, MountKind::HideFolder | MountKind::HideFile)
        });
        let links = [&rules.read_only, &rules.hidden, &rules.secret, &rules.pinned].into_iter().flatten();
        let links = links.filter_map(|path| real_name(path));
        for pinned in protected.iter().chain(&pinned).cloned().chain(links).flat_map(|path| movable_ancestors(&path)) {
            let covered = protected.iter().any(|other| pinned.starts_with(other));
            if !covered {
                kinds.entry(pinned).or_insert(MountKind::Pin);
            }
        }
        let mut steps: Vec<(PathBuf, MountKind)> = kinds.into_iter().collect();
        // An outer mount that is made later would cover the inner ones.
        steps.sort_by_key(|(path, _)| path.components().count());
        let step = |(path, kind): (PathBuf, MountKind)| {
            Ok(MountStep { kind, place: CString::new(path.as_os_str().as_bytes())? })
        };
        let steps = steps.into_iter().map(step).collect::<io::Result<_>>()?;
        Ok(Self { all_read_only: rules.writable.is_some(), steps })
    }
}

/// The path with all links resolved except the last one, if it exists.
fn real_name(path: &Path) -> Option<PathBuf> {
    fs::symlink_metadata(path).ok()?;
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

/// The folders above a path that we could rename, because we may write to their parent folder.
fn movable_ancestors(path: &Path) -> Vec<PathBuf> {
    let may_write = |folder: &Path| accessat(CWD, folder, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    let is_movable = |folder: &&Path| folder.parent().is_some_and(may_write);
    path.ancestors().skip(1).filter(is_movable).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(rules: &BoxRules) -> Vec<(MountKind, PathBuf)> {
        let steps = MountPlan::new(rules).unwrap().steps.into_iter();
        steps.map(|step| (step.kind, PathBuf::from(step.place.into_string().unwrap()))).collect()
    }

    /// The part of a plan below this folder, with paths relative to it.
    fn inside(root: &Path, rules: &BoxRules) -> Vec<(MountKind, PathBuf)> {
        let below = |(kind, path): (MountKind, PathBuf)| Some((kind, path.strip_prefix(root).ok()?.to_owned()));
        plan(rules).into_iter().filter_map(below).filter(|(_, path)| !path.as_os_str().is_empty()).collect()
    }

    #[test]
    fn the_folders_around_a_protected_file_are_pinned_before_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        let rules = BoxRules {
            read_only: vec![root.join("a/b/file"), root.join("a/absent"), root.join("none/file")],
            ..BoxRules::default()
        };
        let wanted = [(MountKind::Pin, "a"), (MountKind::Pin, "a/b"), (MountKind::ReadOnly, "a/b/file")];
        assert_eq!(inside(&root, &rules), wanted.map(|(kind, path)| (kind, path.into())));
    }

    #[test]
    fn what_is_pinned_stays_with_the_folders_around_it_and_can_be_written() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/repository")).unwrap();
        let pinned = vec![root.join("a/repository"), root.join("absent")];
        let wanted = [(MountKind::Pin, "a"), (MountKind::Pin, "a/repository")];
        let rules = BoxRules { pinned, ..BoxRules::default() };
        assert_eq!(inside(&root, &rules), wanted.map(|(kind, path)| (kind, path.into())));
    }

    #[test]
    fn where_a_link_leads_is_protected_and_so_are_the_folders_around_both() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("home/config")).unwrap();
        fs::create_dir_all(root.join("dotfiles")).unwrap();
        fs::write(root.join("dotfiles/rc"), "").unwrap();
        std::os::unix::fs::symlink("../../dotfiles/rc", root.join("home/config/rc")).unwrap();
        let rules = BoxRules { read_only: vec![root.join("home/config/rc")], ..BoxRules::default() };
        let mut found = inside(&root, &rules);
        found.sort_by(|one, other| one.1.cmp(&other.1));
        let wanted = [
            (MountKind::Pin, "dotfiles"),
            (MountKind::ReadOnly, "dotfiles/rc"),
            (MountKind::Pin, "home"),
            (MountKind::Pin, "home/config"),
        ];
        assert_eq!(found, wanted.map(|(kind, path)| (kind, path.into())));
    }

    #[test]
    fn a_device_that_may_be_written_gets_no_mount() {
        let rules = BoxRules { writable: Some(vec!["/dev/null".into(), "/dev/ptmx".into()]), ..BoxRules::default() };
        assert_eq!(plan(&rules), []);
    }

    #[test]
    fn what_lies_in_a_protected_folder_needs_no_mount_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("own/inner")).unwrap();
        let rules = BoxRules {
            read_only: vec![root.join("own/inner"), root.join("own")],
            hidden: vec![root.join("own/inner")],
            ..BoxRules::default()
        };
        let wanted = [(MountKind::ReadOnly, "own"), (MountKind::HideFolder, "own/inner")];
        assert_eq!(inside(&root, &rules), wanted.map(|(kind, path)| (kind, path.into())));
    }
}
