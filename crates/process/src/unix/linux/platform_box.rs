//! A box that is ready: namespaces with their mounts, or Landlock rules, and what a new process needs to enter it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use super::box_enter::BoxEntry;
use super::box_filter::SystemCallFilter;
use super::box_landlock;
use super::box_mounts::mount_all;
use super::box_namespace::Namespaces;
use super::box_plan::{BoxStamp, MountPlan};
use crate::{BoxMeans, BoxRules};

/// What the kernel keeps of a box.
#[derive(Debug)]
pub(crate) struct PlatformBox {
    namespaces: Option<Namespaces>,
    rules: Option<OwnedFd>,
    filter: Option<SystemCallFilter>,
    /// What was looked at when it was made.
    paths: Vec<PathBuf>,
    stamp: BoxStamp,
}

impl PlatformBox {
    /// Makes a box by these means; what cannot be held comes with it.
    pub(crate) fn new(means: BoxMeans, rules: &BoxRules) -> Result<(Self, Vec<String>), String> {
        let paths: Vec<PathBuf> = rules.read_only.iter().chain(&rules.hidden).cloned().collect();
        // Before the files are looked at: what changes in between makes the box outdated, and not unsafe.
        let stamp = BoxStamp::take(&paths);
        let (namespaces, file, notes) = match means {
            BoxMeans::Namespaces => (Some(with_mounts(rules)?), box_landlock::scope(), Vec::new()),
            BoxMeans::Landlock => {
                let (file, notes) = box_landlock::rules(rules)?;
                (None, Some(file), notes)
            }
        };
        let filter = SystemCallFilter::new(rules)?;
        Ok((Self { namespaces, rules: file, filter, paths, stamp }, notes))
    }

    pub(crate) fn is_current(&self) -> bool {
        BoxStamp::take(&self.paths) == self.stamp
    }

    pub(super) fn entry(&self) -> BoxEntry<'_> {
        let namespaces = self.namespaces.as_ref();
        BoxEntry {
            namespaces: namespaces.map(|made| (made.user().as_raw_fd(), made.mount().as_raw_fd())),
            rules: self.rules.as_ref().map(AsRawFd::as_raw_fd),
            filter: self.filter.as_ref(),
        }
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
