//! Finds the missing extensions that a package needs, and where to get them.

use std::fmt;

use ollm_catalog::Dependency;
use semver::Version;

use super::registry::Registry;
use super::{Downgrade, Order, PackageSource, Progress, Staged};
use crate::app::App;

/// A missing extension that a package needs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MissingExtension {
    /// Its name.
    pub name: String,
    /// The accepted versions.
    pub range: String,
    /// The extension that needs it.
    pub needed_by: String,
    /// The index that the package came from, if it came from one.
    pub index: Option<String>,
    /// The version in this index.
    pub version: Option<Version>,
}

impl MissingExtension {
    /// The request that installs it.
    pub fn order(&self, needing: &Order) -> Option<Order> {
        let version = self.version.clone()?;
        Some(Order {
            source: PackageSource::Named { name: self.name.clone(), version: Some(version) },
            to: None,
            checksum: None,
            commit: None,
            index: self.index.clone(),
            reach: needing.reach,
            updates: None,
            downgrade: Downgrade::Refused,
        })
    }
}

impl fmt::Display for MissingExtension {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MissingExtension { name, range, needed_by, index, version } = self;
        write!(formatter, "`{needed_by}` needs the extension `{name}` ({range}), which is not there")?;
        match (index, version) {
            (Some(index), Some(version)) => write!(formatter, "; index {index} has {version}"),
            (Some(index), None) => write!(formatter, ", and index {index} has no version that will do"),
            (None, _) => Ok(()),
        }
    }
}

/// The missing extensions that a package needs. Only the index that the package came from is searched.
pub fn missing_extensions(staged: &Staged, order: &Order, app: &App, progress: Progress<'_>) -> Vec<MissingExtension> {
    let is_absent = |needed: &&Dependency| app.extensions.iter().all(|one| one.name != needed.name);
    let absent: Vec<&Dependency> = staged.extension.manifest.dependencies.iter().filter(is_absent).collect();
    if absent.is_empty() {
        return Vec::new();
    }
    let index = staged.record.index.as_deref();
    let registry = index.map(|_| Registry::load(&app.config.downloads(), order.reach, app.context(), progress));
    let missing = |needed: &&Dependency| MissingExtension {
        name: needed.name.clone(),
        range: needed.range.clone(),
        needed_by: staged.extension.name.clone(),
        index: index.map(str::to_owned),
        version: registry.as_ref().zip(index).and_then(|(registry, index)| registry.accepted(needed, index)),
    };
    absent.iter().map(missing).collect()
}
