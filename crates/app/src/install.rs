//! Installs, updates and removes extensions: all or nothing.
//!
//! [`prepare`] gets a package from wherever it is, checks every entry, writes it aside and reads it with the ordinary reader of
//! extensions. What comes out ([`Staged`]) is shown to a person by whoever asked, and [`commit`] puts exactly that in place in one
//! step, with what it needs. Dropped instead, nothing is left of it. Nothing of a package runs here, and nothing is approved here.

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
pub use publish::{Published, build_index};
pub use record::InstallRecord;
pub use registry::{Hit, Reach, Registry};
pub use source::PackageSource;
pub use update::{UpdateOrder, pin_value, update_order};

use obtain::obtain;
use root::{Aside, InstallRoot, extensions_folder, previous_folder};
use staging::{Laid, Parts, lay_aside};

/// What to install.
#[derive(Clone, Debug)]
pub struct Order {
    /// Where it is.
    pub source: PackageSource,
    /// The version it must have.
    pub to: Option<Version>,
    /// The digest that its archive must have.
    pub checksum: Option<Digest>,
    /// The commit of its repository, which is not remembered as where it comes from.
    pub commit: Option<String>,
    /// The only index that it may come from, as its record names it.
    pub index: Option<String>,
    /// Whether servers are asked.
    pub reach: Reach,
    /// The extension that is updated, if one is.
    pub updates: Option<String>,
    /// Whether a lower version than what is installed is meant.
    pub downgrade: Downgrade,
}

/// Whether a lower version than what is installed is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Downgrade {
    /// Nobody named it.
    Refused,
    /// A person named the version, the commit or the digest.
    Accepted,
}

/// An extension that we installed.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its version; empty where its manifest cannot be read.
    pub version: String,
    /// What is remembered of the installation.
    pub record: InstallRecord,
}

/// What came of an order.
#[derive(Debug)]
pub enum Prepared {
    /// Exactly this is installed already.
    Current(Box<Installed>),
    /// It lies aside, ready to be put in place.
    Staged(Box<Staged>),
}

/// A package that lies aside, read and valid. Once all of them are dropped, and whoever may change the folder, they are gone.
#[derive(Debug)]
pub struct Staged {
    holding: Arc<Holding>,
    /// What it is and brings.
    pub extension: Extension,
    /// What will be remembered of it.
    pub record: InstallRecord,
    /// What it takes the place of.
    pub replaces: Option<Installed>,
    /// The digest of its folder, which is what an approval names.
    pub digest: Digest,
    /// Why it needs no further approval, if so: a key or a digest in the user's configuration.
    pub verified: Option<String>,
    /// What a person should know about it.
    pub notes: Vec<String>,
    switches_on: bool,
    context: AppContext,
}

/// Gets a package and lays it aside.
pub fn prepare(order: &Order, holding: &Arc<Holding>, app: &App, progress: Progress<'_>) -> Result<Prepared, AppError> {
    let (context, root) = (app.context(), &holding.0);
    let scratch = root.scratch().map_err(|error| AppError::unwritten(&extensions_folder(context), &error))?;
    let obtained = obtain(order, &scratch, app, progress)?;
    if progress("checking the package", 0, 0).is_break() {
        return Err(refused("it was interrupted"));
    }
    let parts = match lay_aside(order, obtained, root, app)? {
        Laid::Current(installed) => return Ok(Prepared::Current(installed)),
        Laid::New(parts) => *parts,
    };
    let Parts { extension, record, replaces, digest, verified, notes } = parts;
    let settings = app.config.extensions(&context.places);
    let switches_on = replaces.is_none() && !settings.auto_enable;
    let (holding, context) = (Arc::clone(holding), context.clone());
    let staged = Staged { holding, extension, record, replaces, digest, verified, notes, switches_on, context };
    Ok(Prepared::Staged(Box::new(staged)))
}

/// The extensions that we installed, by name.
pub fn installed(context: &AppContext) -> Vec<Installed> {
    let entries = fs::read_dir(extensions_folder(context)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| !name.starts_with('.'));
    let mut all: Vec<Installed> = names.filter_map(|name| installed_as(&name, context)).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// The extension of this name, if we installed it.
pub fn installed_as(name: &str, context: &AppContext) -> Option<Installed> {
    check_extension_name(name).ok()?;
    let folder = extensions_folder(context);
    let place = folder.join(name);
    if InstallChange::waiting(&folder).contains(&place) {
        return None;
    }
    read_installed(name, &place)
}

/// Exchanges an extension with its version before; the other way round the next time.
pub fn roll_back(name: &str, context: &AppContext) -> Result<Installed, AppError> {
    let root = InstallRoot::open(context)?;
    let now = read_installed(name, &root.place(name)).ok_or_else(|| not_ours(name, context))?;
    let before = read_installed(name, &root.previous(name)).ok_or_else(|| {
        AppError::new(Code::UnknownName, format!("there is no version of `{name}` from before; it has {}", now.version))
    })?;
    root.roll_back(name).map_err(|error| AppError::unwritten(&now.folder, &error))?;
    Ok(Installed { folder: now.folder, ..before })
}

/// Ends what a process began that was killed while it changed what is installed; another one that is at it is told of.
pub fn recover(context: &AppContext) -> Result<(), AppError> {
    let is_left = |hidden: &str| extensions_folder(context).join(hidden).symlink_metadata().is_ok();
    let any_left = [InstallChange::STAGED, root::PREVIOUS].into_iter().any(is_left);
    if any_left { InstallRoot::open(context).map(drop) } else { Ok(()) }
}

/// The version before of an extension, if it is kept.
pub fn version_before(name: &str, context: &AppContext) -> Option<Installed> {
    check_extension_name(name).ok()?;
    read_installed(name, &previous_folder(&extensions_folder(context), name))
}

/// The right to change what is installed, for as long as it is held. Dropped, nothing is left of what was not put in place.
#[derive(Debug)]
pub struct Holding(InstallRoot);

impl Drop for Holding {
    fn drop(&mut self) {
        // What is left all the same is cleared away before the next change, too.
        let _ = self.0.recover();
    }
}

impl Holding {
    /// Takes the right to change what is installed; another process that has it is told of.
    pub fn take(context: &AppContext) -> Result<Arc<Holding>, AppError> {
        InstallRoot::open(context).map(|root| Arc::new(Holding(root)))
    }

    /// Takes the right to change an extension, where its folder is one that extensions are installed into; another process
    /// that has it is told of.
    pub fn of_place(name: &str, folder: &Path, context: &AppContext) -> Result<Option<Holding>, AppError> {
        let is_ours = extensions_folder(context).join(name) == folder;
        is_ours.then(|| InstallRoot::open(context).map(Holding)).transpose()
    }

    /// Removes an extension in one step, as who loads extensions sees it, with its version before.
    pub fn remove(&self, name: &str) -> std::io::Result<()> {
        self.0.remove(name)
    }
}

/// What was put in place.
#[derive(Debug)]
pub struct Placed {
    /// It.
    pub installed: Installed,
    /// What could not be done afterwards; the next change does it.
    pub unsettled: Option<String>,
}

/// Puts packages in place: the last one, and before it what it needs and is not there. On an error what was installed is as it
/// was, and nothing else is.
pub fn commit(packages: &[Staged]) -> Result<Vec<Placed>, AppError> {
    let Some(last) = packages.last() else { return Ok(Vec::new()) };
    let root = &last.holding.0;
    // Before they are there: killed in between, a switch of something that is not there means nothing.
    for one in packages.iter().filter(|one| one.switches_on) {
        let on = [(one.extension.switch_name(), Some(Switch { on: true, until: None }))];
        set_switches(&one.context.switches(), &on, SystemTime::now())
            .map_err(|error| AppError::new(Code::NotWritten, error.to_string()))?;
    }
    let aside: Vec<Aside<'_>> = packages.iter().map(Staged::aside).collect();
    let unsettled = root.place_all(&aside).map_err(|error| last.not_placed(&error))?.map(|error| error.to_string());
    let placed = |one: &Staged| {
        let name = &one.extension.name;
        let gone = || AppError::new(Code::NotWritten, format!("`{name}` was installed and is gone again"));
        let installed = read_installed(name, &root.place(name)).ok_or_else(gone)?;
        Ok(Placed { installed, unsettled: unsettled.clone().filter(|_| std::ptr::eq(one, last)) })
    };
    packages.iter().map(placed).collect()
}

impl Staged {
    /// The folder of what it takes the place of.
    pub fn before(&self) -> Option<&Path> {
        self.replaces.as_ref().map(|replaced| replaced.folder.as_path())
    }

    /// What it would miss here, beside packages that are put in place with it.
    pub fn lacking(&self, with: &[Staged], app: &App) -> Vec<String> {
        let comes = |name: &str| with.iter().any(|one| one.extension.name == name);
        let mut extension = self.extension.clone();
        extension.manifest.dependencies.retain(|needed| !comes(&needed.name));
        let problems = app.context().told(app.extensions.lacking(&extension));
        problems.into_iter().map(|problem| problem.message).collect()
    }

    fn aside(&self) -> Aside<'_> {
        Aside { name: &self.extension.name, folder: &self.extension.root, replaces: self.replaces.is_some() }
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

fn read_installed(name: &str, folder: &Path) -> Option<Installed> {
    let record = InstallRecord::read(folder)?;
    let (extension, _) = validate_extension(folder, &ollm_protocol::Rules::default());
    let version = extension.manifest.version;
    Some(Installed { name: name.to_owned(), folder: folder.to_owned(), version, record })
}

/// A package of which nothing is taken.
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
