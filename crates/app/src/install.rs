//! Installs, updates and removes extensions: all or nothing.
//!
//! [`prepare`] gets a package from its source, checks every entry and writes it aside. The ordinary reader of
//! extensions reads it there. The caller shows the result ([`Staged`]) to a person. [`commit`] puts exactly that in
//! place in one step, with what it needs. A dropped [`Staged`] leaves nothing behind. Nothing of a package runs here,
//! and nothing is approved here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ollm_catalog::{Extension, InstallChange, check_extension_name, validate_extension};
use ollm_protocol::{Code, Remedy};
use ollm_store::{Digest, Switch, set_switches};
use rustix::io::Errno;
use semver::Version;

use crate::app::App;
use crate::app_context::AppContext;
use crate::error::AppError;

mod builtin;
mod fetch;
mod folder;
mod needs;
mod obtain;
mod pins;
mod publish;
mod record;
mod registry;
mod repository;
mod root;
mod source;
mod staging;
mod update;

pub use fetch::Progress;
pub use needs::{MissingExtension, missing_extensions};
pub use pins::{pins, set_pin};
pub use publish::{PublishedIndex, build_index};
pub use record::InstallRecord;
pub use registry::{Hit, Reach, Registry};
pub use source::PackageSource;
pub use update::{UpdateOrder, pin_value, update_order};

use obtain::obtain;
use root::{InstallRoot, StagedPackage, extensions_folder, previous_folder};
use staging::{Parts, StagingResult, lay_aside};

/// A request to install an extension.
#[derive(Clone, Debug)]
pub struct Order {
    /// The source to install from.
    pub source: PackageSource,
    /// The version it must have.
    pub to: Option<Version>,
    /// The digest that its archive must have.
    pub checksum: Option<Digest>,
    /// The commit of its repository; the record does not keep it as part of the source.
    pub commit: Option<String>,
    /// The only index that it may come from, as its record names it.
    pub index: Option<String>,
    /// Whether to ask servers.
    pub reach: Reach,
    /// The extension that is updated, if one is.
    pub updates: Option<String>,
    /// Whether to accept a lower version than the installed one.
    pub downgrade: Downgrade,
}

/// Whether to accept a lower version than the installed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Downgrade {
    /// Refuse it: no person named it.
    Refused,
    /// Accept it: a person named the version, the commit or the digest.
    Accepted,
}

/// An extension that we installed.
#[derive(Clone, Debug)]
pub struct InstalledExtension {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its version; empty where its manifest cannot be read.
    pub version: String,
    /// The record of the installation.
    pub record: InstallRecord,
}

/// The result of a request.
#[derive(Debug)]
pub enum PreparedInstall {
    /// Exactly this version is installed already.
    Current(Box<InstalledExtension>),
    /// The package is staged, ready to be put in place.
    Staged(Box<Staged>),
}

/// A staged package: read and valid, but not in place. Its files go once all packages of the same change are dropped.
#[derive(Debug)]
pub struct Staged {
    holding: Arc<Holding>,
    /// The extension in the package.
    pub extension: Extension,
    /// The record to be saved with it.
    pub record: InstallRecord,
    /// The installed extension that it replaces.
    pub replaces: Option<InstalledExtension>,
    /// The digest of its folder, which an approval names.
    pub digest: Digest,
    /// The reason why it needs no further approval, if it needs none: a key or a digest in the user's configuration.
    pub verified: Option<String>,
    /// Notes for the person.
    pub notes: Vec<String>,
    switches_on: bool,
    context: AppContext,
}

/// Gets a package and stages it.
pub fn prepare(
    order: &Order,
    holding: &Arc<Holding>,
    app: &App,
    progress: Progress<'_>,
) -> Result<PreparedInstall, AppError> {
    let (context, root) = (app.context(), &holding.0);
    let scratch = root.scratch().map_err(|error| AppError::unwritten(&extensions_folder(context), &error))?;
    let obtained = obtain(order, &scratch, app, progress)?;
    if progress("checking the package", 0, 0).is_break() {
        return Err(refused("it was interrupted"));
    }
    let parts = match lay_aside(order, obtained, root, app)? {
        StagingResult::Current(installed) => return Ok(PreparedInstall::Current(installed)),
        StagingResult::New(parts) => *parts,
    };
    let Parts { extension, record, replaces, digest, verified, notes } = parts;
    let settings = app.config.extensions(&context.places);
    let switches_on = replaces.is_none() && !settings.auto_enable;
    let (holding, context) = (Arc::clone(holding), context.clone());
    let staged = Staged { holding, extension, record, replaces, digest, verified, notes, switches_on, context };
    Ok(PreparedInstall::Staged(Box::new(staged)))
}

/// The extensions that we installed, by name.
pub fn installed(context: &AppContext) -> Vec<InstalledExtension> {
    let entries = fs::read_dir(extensions_folder(context)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| !name.starts_with('.'));
    let mut all: Vec<InstalledExtension> = names.filter_map(|name| installed_as(&name, context)).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// The extension of this name, if we installed it.
pub fn installed_as(name: &str, context: &AppContext) -> Option<InstalledExtension> {
    check_extension_name(name).ok()?;
    let folder = extensions_folder(context);
    let place = folder.join(name);
    if InstallChange::waiting(&folder).contains(&place) {
        return None;
    }
    read_installed(name, &place)
}

/// Exchanges an extension with its previous version; a second call exchanges them back.
pub fn roll_back(name: &str, context: &AppContext) -> Result<PlacedExtension, AppError> {
    let root = InstallRoot::open(context)?;
    let now = read_installed(name, &root.place(name)).ok_or_else(|| not_ours(name, context))?;
    let before = read_installed(name, &root.previous(name)).ok_or_else(|| {
        AppError::new(Code::UnknownName, format!("there is no version of `{name}` from before; it has {}", now.version))
    })?;
    let unsettled = root.roll_back(name).map_err(|error| AppError::unwritten(&now.folder, &error))?;
    let installed = InstalledExtension { folder: now.folder, ..before };
    Ok(PlacedExtension { installed, unsettled: unsettled.map(|error| error.to_string()) })
}

/// Finishes the change that a killed process began. An error names another process that is still at work.
pub fn recover(context: &AppContext) -> Result<(), AppError> {
    let is_left = |hidden: &str| extensions_folder(context).join(hidden).symlink_metadata().is_ok();
    let any_left = [InstallChange::STAGED, root::PREVIOUS].into_iter().any(is_left);
    if any_left { InstallRoot::open(context).map(drop) } else { Ok(()) }
}

/// The previous version of an extension, if it is kept.
pub fn version_before(name: &str, context: &AppContext) -> Option<InstalledExtension> {
    check_extension_name(name).ok()?;
    read_installed(name, &previous_folder(&extensions_folder(context), name))
}

/// The right to change what is installed, until it is dropped. Dropping it removes everything that was not put in
/// place.
#[derive(Debug)]
pub struct Holding(InstallRoot);

impl Drop for Holding {
    fn drop(&mut self) {
        // The next change clears leftovers too.
        let _ = self.0.recover();
    }
}

impl Holding {
    /// Takes the right to change what is installed. An error names another process that has it.
    pub fn take(context: &AppContext) -> Result<Arc<Holding>, AppError> {
        InstallRoot::open(context).map(|root| Arc::new(Holding(root)))
    }

    /// Takes the right to change an extension, if its folder is one that extensions are installed into. An error names
    /// another process that has it.
    pub fn of_place(name: &str, folder: &Path, context: &AppContext) -> Result<Option<Holding>, AppError> {
        let is_ours = extensions_folder(context).join(name) == folder;
        is_ours.then(|| InstallRoot::open(context).map(Holding)).transpose()
    }

    /// Removes an extension with its previous version; programs that load extensions see one step. An error after that
    /// step is returned, and the next change finishes the clean-up.
    pub fn remove(&self, name: &str) -> std::io::Result<Option<std::io::Error>> {
        self.0.remove(name)
    }
}

/// An extension that was put in place.
#[derive(Debug)]
pub struct PlacedExtension {
    /// The extension.
    pub installed: InstalledExtension,
    /// The error of an unfinished clean-up; the next change finishes it.
    pub unsettled: Option<String>,
}

/// Puts packages in place: the last one, and before it the missing packages that it needs. An error restores the
/// earlier state.
pub fn commit(packages: &[Staged]) -> Result<Vec<PlacedExtension>, AppError> {
    let Some(last) = packages.last() else { return Ok(Vec::new()) };
    let root = &last.holding.0;
    // Switches come first: if we are killed in between, a switch for a missing extension means nothing.
    for one in packages.iter().filter(|one| one.switches_on) {
        let on = [(one.extension.switch_name(), Some(Switch { on: true, until: None }))];
        set_switches(&one.context.switches(), &on, SystemTime::now())
            .map_err(|error| AppError::new(Code::NotWritten, error.to_string()))?;
    }
    let aside: Vec<StagedPackage<'_>> = packages.iter().map(Staged::aside).collect();
    let unsettled = root.place_all(&aside).map_err(|error| last.not_placed(&error))?.map(|error| error.to_string());
    let placed = |one: &Staged| {
        let name = &one.extension.name;
        let gone =
            || AppError::new(Code::NotWritten, format!("`{name}` was installed, and something removed it again"));
        let installed = read_installed(name, &root.place(name)).ok_or_else(gone)?;
        Ok(PlacedExtension { installed, unsettled: unsettled.clone().filter(|_| std::ptr::eq(one, last)) })
    };
    packages.iter().map(placed).collect()
}

impl Staged {
    /// The folder of the extension that it replaces.
    pub fn before(&self) -> Option<&Path> {
        self.replaces.as_ref().map(|replaced| replaced.folder.as_path())
    }

    /// Its missing needs here, apart from packages that are put in place with it.
    pub fn lacking(&self, with: &[Staged], app: &App) -> Vec<String> {
        let comes = |name: &str| with.iter().any(|one| one.extension.name == name);
        let mut extension = self.extension.clone();
        extension.manifest.dependencies.retain(|needed| !comes(&needed.name));
        let problems = app.context().told(app.extensions.lacking(&extension));
        problems.into_iter().map(|problem| problem.message).collect()
    }

    fn aside(&self) -> StagedPackage<'_> {
        StagedPackage { name: &self.extension.name, folder: &self.extension.root, replaces: self.replaces.is_some() }
    }

    fn not_placed(&self, error: &std::io::Error) -> AppError {
        let folder = self.holding.0.place(&self.extension.name);
        let unable = [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP].map(Errno::raw_os_error);
        let cannot_exchange = error.raw_os_error().is_some_and(|code| unable.contains(&code));
        let failure = AppError::unwritten(&folder, error);
        if self.replaces.is_some() && cannot_exchange {
            let message = format!(
                "{} was not changed: its file system cannot exchange two folders in one step",
                folder.display()
            );
            let remedy = Remedy::UninstallExtension(self.extension.name.clone());
            return AppError { message, ..failure }.hint(format!("remove it first: {}", self.context.tell(&remedy)));
        }
        failure
    }
}

fn read_installed(name: &str, folder: &Path) -> Option<InstalledExtension> {
    let record = InstallRecord::read(folder)?;
    let (extension, _) = validate_extension(folder, &ollm_protocol::Rules::default());
    let version = extension.manifest.version;
    Some(InstalledExtension { name: name.to_owned(), folder: folder.to_owned(), version, record })
}

/// The error for a package that is refused as a whole.
fn refused(why: &str) -> AppError {
    AppError::new(Code::PackageRefused, format!("nothing was installed: {why}"))
}

fn not_ours(name: &str, context: &AppContext) -> AppError {
    let folder = extensions_folder(context).join(name);
    if let Some(why) = InstallRecord::unreadable(&folder) {
        return AppError::new(Code::Unreadable, why);
    }
    AppError::new(
        Code::UnknownExtension,
        format!("`{name}` was not installed from elsewhere, so there is nothing to update"),
    )
}
