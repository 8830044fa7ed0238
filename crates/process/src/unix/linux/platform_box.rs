//! A box that is ready: namespaces with their mounts, or Landlock rules, and what a new process needs to enter it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::box_enter::BoxEntry;
use super::box_filter::SystemCallFilter;
use super::box_landlock;
use super::box_mounts::mount_all;
use super::box_namespace::Namespaces;
use super::box_plan::MountPlan;
use super::box_watch::Watch;
use super::random;
use crate::{BoxMeans, BoxRules, WatchedAccess};

/// What the kernel keeps of a box.
#[derive(Debug)]
pub(crate) struct PlatformBox {
    namespaces: Option<Namespaces>,
    rules: Option<OwnedFd>,
    filter: Option<SystemCallFilter>,
    watch: Option<Watch>,
    temporary: Option<TemporaryFolder>,
}

impl PlatformBox {
    /// Makes a box by these means; what cannot be held comes with it.
    pub(crate) fn new(means: BoxMeans, rules: &BoxRules) -> Result<(Self, Vec<String>), String> {
        let temporary = rules.temporary.as_deref().map(TemporaryFolder::new).transpose();
        let temporary = temporary.map_err(|error| format!("no temporary folder can be made: {error}"))?;
        let mut rules = rules.clone();
        // Most of what is protected is not there, and links are resolved more than once.
        rules.read_only.retain(|path| fs::symlink_metadata(path).is_ok());
        if let (Some(writable), Some(temporary)) = (&mut rules.writable, &temporary) {
            writable.push(temporary.0.clone());
        }
        let rules = &rules;
        let (namespaces, file, notes, watch) = match means {
            // Only Landlock limits what can be read, and only mounts hold what lies below a folder that it allows.
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
                // A box holds without being watched, too.
                (None, Some(file), notes, Watch::new(rules, &[]).ok().flatten())
            }
        };
        let filter = SystemCallFilter::new(rules)?;
        Ok((Self { namespaces, rules: file, filter, watch, temporary }, notes))
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
            filter: self.filter.as_ref(),
            watch: self.watch.as_ref().map(Watch::entry),
        }
    }
}

/// A folder that only we can enter, and that goes with all that is in it.
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
        // What a program closed to us stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn with_mounts(rules: &BoxRules) -> Result<Namespaces, String> {
    let plan = MountPlan::new(rules).map_err(|error| error.to_string())?;
    let namespaces = Namespaces::new()?;
    mount_all(&plan, namespaces.user(), namespaces.mount()).map_err(|failure| match failure.place.as_str() {
        "" => format!("the kernel allows no mounts in a user namespace: {}", failure.error),
        place => format!("the kernel allows no mount at `{place}`: {}", failure.error),
    })?;
    Ok(namespaces)
}
