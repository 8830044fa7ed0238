//! A finished box: namespaces with their mounts, or Landlock rules, and the values that a new process needs to enter
//! it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::box_enter::BoxEntry;
use super::box_filter::SystemCallFilter;
use super::box_landlock;
use super::box_mounts::{MountFailure, MountStage, mount_all};
use super::box_namespace::Namespaces;
use super::box_plan::MountPlan;
use super::box_watch::Watch;
use super::random;
use crate::{BoxMeans, BoxRules, WatchedAccess};

/// The kernel objects of a box.
#[derive(Debug)]
pub(crate) struct PlatformBox {
    namespaces: Option<Namespaces>,
    rules: Option<OwnedFd>,
    filter: Option<SystemCallFilter>,
    watch: Option<Watch>,
    temporary: Option<TemporaryFolder>,
    drops: bool,
}

impl PlatformBox {
    /// The version of the kernel's Landlock, if it has one.
    pub(crate) fn landlock_version() -> Option<i64> {
        box_landlock::version().ok()
    }

    /// Makes a box by these means; also returns the rules that it cannot enforce.
    pub(crate) fn new(means: BoxMeans, rules: &BoxRules) -> Result<(Self, Vec<String>), String> {
        let temporary = rules.temporary.as_deref().map(TemporaryFolder::new).transpose();
        let temporary = temporary.map_err(|error| format!("no temporary folder can be made: {error}"))?;
        let mut rules = rules.clone();
        // Most protected paths do not exist. They are removed here because links are resolved several times.
        rules.read_only.retain(|path| fs::symlink_metadata(path).is_ok());
        if let (Some(writable), Some(temporary)) = (&mut rules.writable, &temporary) {
            writable.push(temporary.0.clone());
        }
        let rules = &rules;
        let (namespaces, file, notes, watch) = match means {
            // Only Landlock limits reading, and only mounts protect paths below a folder that Landlock allows.
            BoxMeans::Namespaces if rules.readable.is_some() => {
                let (read_only, hidden) = (rules.read_only.clone(), rules.hidden.clone());
                let mounts = BoxRules { read_only, hidden, ..BoxRules::default() };
                let open = BoxRules { read_only: Vec::new(), hidden: Vec::new(), ..rules.clone() };
                let (file, notes) = box_landlock::rules(&open)?;
                (Some(with_mounts(&mounts)?), Some(file), notes, Watch::new(&open, &rules.read_only).ok().flatten())
            }
            BoxMeans::Namespaces => (Some(with_mounts(rules)?), box_landlock::scope(), Vec::new(), None),
            BoxMeans::Landlock => {
                let (file, notes) = box_landlock::rules(rules)?;
                // A box works without a watch, too.
                (None, Some(file), notes, Watch::new(rules, &[]).ok().flatten())
            }
        };
        let filter = SystemCallFilter::new(rules)?;
        let drops = rules.readable.is_some();
        Ok((Self { namespaces, rules: file, filter, watch, temporary, drops }, notes))
    }

    pub(crate) fn temporary(&self) -> Option<&Path> {
        self.temporary.as_ref().map(|folder| folder.0.as_path())
    }

    pub(crate) fn accesses(&self) -> Vec<WatchedAccess> {
        self.watch.as_ref().map(Watch::accesses).unwrap_or_default()
    }

    pub(super) fn entry(&self) -> BoxEntry<'_> {
        let namespaces = self.namespaces.as_ref();
        BoxEntry {
            namespaces: namespaces.map(|made| (made.user().as_raw_fd(), made.mount().as_raw_fd())),
            rules: self.rules.as_ref().map(AsRawFd::as_raw_fd),
            drops: self.drops,
            filter: self.filter.as_ref(),
            watch: self.watch.as_ref().map(Watch::entry),
        }
    }
}

/// A folder that only we can enter, removed with everything in it.
#[derive(Debug)]
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new(parent: &Path) -> io::Result<Self> {
        let mut bytes = [0; 8];
        random(&mut bytes)?;
        let folder = parent.join(format!("ollm-box-{:016x}", u64::from_ne_bytes(bytes)));
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Folders that a program closed to us are left behind.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn with_mounts(rules: &BoxRules) -> Result<Namespaces, String> {
    let plan = MountPlan::new(rules).map_err(|error| error.to_string())?;
    let namespaces = Namespaces::new()?;
    mount_all(&plan, namespaces.user(), namespaces.mount()).map_err(|MountFailure { stage, error }| match stage {
        MountStage::Entering => format!("the kernel allows no mounts in a user namespace: {error}"),
        MountStage::Closing => format!("mount namespaces in the box cannot be forbidden: {error}"),
        MountStage::Step(index) => {
            let place = plan.steps.get(index).map(|step| step.place.to_string_lossy()).unwrap_or_default();
            format!("the kernel allows no mount at `{place}`: {error}")
        }
    })?;
    Ok(namespaces)
}
