//! Installs, updates and removes extensions: all or nothing.
//!
//! [`prepare`] gets a package from wherever it is, checks every entry, writes it aside and reads it with the ordinary reader of
//! extensions. What comes out ([`Staged`]) is shown to a person by whoever asked, and [`Staged::commit`] puts exactly that in place
//! in one step. Dropped instead, nothing is left of it. Nothing of a package runs here, and nothing is approved here.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ollm_catalog::{
    Extension, INSTALL_RECORD, Problem, Severity, foreign_manifest, is_package_manifest, validate_extension,
};
use ollm_package::Package;
use ollm_protocol::{Layer, Remedy};
use ollm_store::{Digest, Switch, TreeLimits, digest_tree, set_switches};
use semver::Version;

use crate::app::App;
use crate::app_context::AppContext;
use crate::error::{AppError, ErrorKind};

mod builtin;
mod fetch;
mod folder;
mod obtain;
mod pins;
mod publish;
mod record;
mod registry;
mod repository;
mod root;
mod source;

pub use fetch::Progress;
pub use pins::{pins, set_pin};
pub use publish::{Published, build_index};
pub use record::InstallRecord;
pub use registry::{Hit, Reach, Registry};
pub use source::PackageSource;

use obtain::{Obtained, obtain};
use root::{InstallRoot, extensions_folder};

/// What to install.
#[derive(Clone, Debug)]
pub struct Order {
    /// Where it is.
    pub source: PackageSource,
    /// The version it must have; only then may that be lower than what is installed.
    pub to: Option<Version>,
    /// The digest that its archive must have.
    pub checksum: Option<Digest>,
    /// Whether servers are asked.
    pub reach: Reach,
    /// The extension that is updated, if one is.
    pub updates: Option<String>,
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
    Current(Installed),
    /// It lies aside, ready to be put in place.
    Staged(Box<Staged>),
}

/// A package that lies aside, read and valid. Dropped, it is gone.
#[derive(Debug)]
pub struct Staged {
    root: InstallRoot,
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
pub fn prepare(order: &Order, app: &App, progress: Progress<'_>) -> Result<Prepared, AppError> {
    let context = app.context();
    let root = InstallRoot::open(context)?;
    let scratch = root.scratch().map_err(|error| AppError::unwritten(&extensions_folder(context), &error))?;
    let found = obtain(order, &scratch, app, progress);
    match found.and_then(|obtained| lay_aside(order, obtained, &root, app)) {
        Ok(Laid::Current(installed)) => {
            clear(&root);
            Ok(Prepared::Current(installed))
        }
        Ok(Laid::New(parts)) => {
            let Parts { extension, record, replaces, digest, verified, notes } = *parts;
            let settings = app.config.extensions(&context.places);
            let switches_on = replaces.is_none() && !settings.auto_enable;
            let context = context.clone();
            let staged = Staged { root, extension, record, replaces, digest, verified, notes, switches_on, context };
            Ok(Prepared::Staged(Box::new(staged)))
        }
        Err(error) => {
            clear(&root);
            Err(error)
        }
    }
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
    ollm_catalog::check_extension_name(name).ok()?;
    read_installed(name, &extensions_folder(context).join(name))
}

/// Exchanges an extension with its version before; the other way round the next time.
pub fn roll_back(name: &str, context: &AppContext) -> Result<Installed, AppError> {
    let root = InstallRoot::open(context)?;
    let now = read_installed(name, &root.place(name)).ok_or_else(|| not_ours(name))?;
    let before = read_installed(name, &root.previous(name)).ok_or_else(|| {
        AppError::usage(format!("there is no version of `{name}` from before; it has {}", now.version))
    })?;
    root.roll_back(name).map_err(|error| AppError::unwritten(&now.folder, &error))?;
    Ok(Installed { folder: now.folder, ..before })
}

/// The version before of an extension, if it is kept.
pub fn version_before(name: &str, context: &AppContext) -> Option<Installed> {
    ollm_catalog::check_extension_name(name).ok()?;
    read_installed(name, &extensions_folder(context).join(".previous").join(name))
}

/// Forgets what is kept of an extension beside its folder: its version before, and its pin.
pub fn forget(name: &str, context: &AppContext) -> Result<(), AppError> {
    if ollm_catalog::check_extension_name(name).is_ok() && version_before(name, context).is_some() {
        let root = InstallRoot::open(context)?;
        root.forget_previous(name).map_err(|error| AppError::unwritten(&root.previous(name), &error))?;
    }
    set_pin(name, None, context).map(drop)
}

impl Staged {
    /// The folder of what it takes the place of.
    pub fn before(&self) -> Option<&Path> {
        self.replaces.as_ref().map(|replaced| replaced.folder.as_path())
    }

    /// Puts it in place. On an error everything is as it was.
    pub fn commit(self) -> Result<Installed, AppError> {
        let name = &self.extension.name;
        if self.switches_on {
            // Before it is there: killed in between, a switch of something that is not there means nothing.
            let on = [(self.extension.switch_name(), Some(Switch { on: true, until: None }))];
            set_switches(&self.context.switches(), &on, SystemTime::now())
                .map_err(|error| AppError::new(ErrorKind::Environment, error.to_string()))?;
        }
        let done = if self.replaces.is_some() { self.root.replace(name) } else { self.root.install(name) };
        done.map_err(|error| self.not_placed(&error))?;
        let installed = read_installed(name, &self.root.place(name));
        installed
            .ok_or_else(|| AppError::new(ErrorKind::Environment, format!("`{name}` was installed and is gone again")))
    }

    fn not_placed(&self, error: &std::io::Error) -> AppError {
        let folder = self.root.place(&self.extension.name);
        let cannot_exchange = matches!(error.raw_os_error(), Some(code) if
            [rustix::io::Errno::INVAL, rustix::io::Errno::NOSYS, rustix::io::Errno::NOTSUP].iter().any(|one| one.raw_os_error() == code));
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

impl Drop for Staged {
    fn drop(&mut self) {
        clear(&self.root);
    }
}

/// What is left is cleared away before the next change, too.
fn clear(root: &InstallRoot) {
    let _ = root.recover();
}

enum Laid {
    Current(Installed),
    New(Box<Parts>),
}

struct Parts {
    extension: Extension,
    record: InstallRecord,
    replaces: Option<Installed>,
    digest: Digest,
    verified: Option<String>,
    notes: Vec<String>,
}

/// Writes a package aside and reads it.
fn lay_aside(order: &Order, obtained: Obtained, root: &InstallRoot, app: &App) -> Result<Laid, AppError> {
    let Obtained { package, mut record, mut notes, expected, signer_known } = obtained;
    let package = rooted(package)?;
    record.content = record::content(&package);
    let unwritten = |error: std::io::Error| {
        AppError::new(ErrorKind::Environment, format!("nothing was installed: the package cannot be written: {error}"))
    };
    let staged = root.stage(&package).map_err(unwritten)?;
    let foreign = match package.get("manifest.json") {
        Some(_) => None,
        None => foreign_manifest(&staged).map_err(|why| refused(&why))?,
    };
    if let Some(foreign) = &foreign {
        record.form = Some(foreign.form.to_owned());
        record.left.extend(foreign.left.iter().cloned());
    }
    root.complete(&record, foreign.as_ref().map(|foreign| &foreign.manifest)).map_err(unwritten)?;
    let (extension, problems) = validate_extension(&staged, &app.rules);
    check_valid(&problems, &staged)?;
    let warnings = problems.iter().filter(|problem| problem.severity > Severity::Error);
    notes.extend(warnings.map(|problem| in_package(problem, &staged)));
    if let Some((name, version)) = &expected
        && (*name != extension.name || version.to_string() != extension.manifest.version)
    {
        let found = format!("{} {}", extension.name, extension.manifest.version);
        return Err(refused(&format!("the index says {name} {version}, and the package is {found}")));
    }
    let replaces = replaced(order, &extension, root)?;
    if let Some(installed) = replaces.as_ref().filter(|old| old.record == record) {
        return Ok(Laid::Current(installed.clone()));
    }
    check_version(order, &extension, replaces.as_ref(), app.context())?;
    check_signer(&record, replaces.as_ref(), signer_known)?;
    notes.extend(surroundings(&extension, app));
    let digest = digest_tree(&staged, TreeLimits::default()).map_err(|error| refused(&error.to_string()))?;
    let verified = verified(&record, &digest, app);
    Ok(Laid::New(Box::new(Parts { extension, record, replaces, digest, verified, notes })))
}

/// The package from where its manifest is.
fn rooted(package: Package) -> Result<Package, AppError> {
    let has_manifest = |package: &Package| package.files().any(|(path, _)| is_package_manifest(path));
    let package = if has_manifest(&package) { package } else { package.without_wrapper() };
    if !has_manifest(&package) {
        let message = "it has no manifest.json, and is no package of another agent that is known";
        return Err(refused(message));
    }
    // Whoever could bring one could say where it came from.
    if package.files().any(|(path, _)| path.eq_ignore_ascii_case(INSTALL_RECORD)) {
        return Err(refused(&format!("it brings a {INSTALL_RECORD}, which is ours to write")));
    }
    Ok(package)
}

fn check_valid(problems: &[Problem], staged: &Path) -> Result<(), AppError> {
    let mut errors = problems.iter().filter(|problem| problem.severity <= Severity::Error);
    let Some(first) = errors.next() else { return Ok(()) };
    let more = errors.count();
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Err(refused(&format!("{}{more}", in_package(first, staged))))
}

/// A problem with its place in the package: where that lies meanwhile is nobody's concern.
fn in_package(problem: &Problem, staged: &Path) -> String {
    problem.to_string().replace(&format!("{}/", staged.display()), "").replace(&staged.display().to_string(), "it")
}

/// What an extension takes the place of. What we did not install is left alone.
fn replaced(order: &Order, extension: &Extension, root: &InstallRoot) -> Result<Option<Installed>, AppError> {
    let name = &extension.name;
    if let Some(updated) = order.updates.as_ref().filter(|updated| *updated != name) {
        return Err(refused(&format!("it is called `{name}` now, and `{updated}` is installed")));
    }
    let place = root.place(name);
    match read_installed(name, &place) {
        None if place.symlink_metadata().is_ok() => {
            let message = format!("{} is there already, and was not installed from elsewhere", place.display());
            Err(AppError::usage(message).hint("move it away, or give it another name"))
        }
        installed => Ok(installed),
    }
}

/// A lower version comes only if it is named.
fn check_version(
    order: &Order,
    extension: &Extension,
    replaces: Option<&Installed>,
    context: &AppContext,
) -> Result<(), AppError> {
    let parse = |text: &str| Version::parse(text).ok();
    let version = parse(&extension.manifest.version);
    if let Some(wanted) = order.to.as_ref().filter(|wanted| version.as_ref() != Some(wanted)) {
        return Err(refused(&format!("it has version {}, and {wanted} is wanted", extension.manifest.version)));
    }
    let before = replaces.and_then(|replaced| parse(&replaced.version));
    if let (Some(version), Some(before), None) = (&version, &before, &order.to)
        && version < before
    {
        let name = extension.name.clone();
        let remedy = Remedy::InstallVersion { name, version: version.to_string() };
        let message =
            format!("`{}` {before} is installed, and {version} is lower; nothing was changed", extension.name);
        return Err(AppError::usage(message).hint(context.tell(&remedy)));
    }
    Ok(())
}

/// Who once came with a signature that counts does not come without it.
fn check_signer(record: &InstallRecord, replaces: Option<&Installed>, signer_known: bool) -> Result<(), AppError> {
    let before = replaces.and_then(|replaced| replaced.record.signed_by.as_ref());
    match before {
        Some(key) if record.signed_by.is_none() && signer_known => {
            Err(refused(&format!("what is installed was signed by {key}, and this is not signed by a key of yours")))
        }
        _ => Ok(()),
    }
}

/// Why it needs no further approval.
fn verified(record: &InstallRecord, digest: &Digest, app: &App) -> Option<String> {
    let pins = app.config.downloads().pins;
    let digests = [Some(*digest), record.checksum, Some(record.content)];
    let pinned = digests.iter().flatten().map(ToString::to_string).find(|digest| pins.contains(digest));
    let signed = record.signed_by.as_ref().map(|key| format!("signed by {key} (hooks.signatureKeys)"));
    signed.or_else(|| pinned.map(|digest| format!("{digest} is in hooks.pins")))
}

/// What it lacks here, and who else has its name.
fn surroundings(extension: &Extension, app: &App) -> Vec<String> {
    let lacking = app.context().told(app.extensions.lacking(extension));
    let mut notes: Vec<String> = lacking.iter().map(|problem| problem.message.clone()).collect();
    let own = extensions_folder(app.context()).join(&extension.name);
    let namesake = |one: &&Extension| one.name == extension.name && one.root != own && one.layer == Layer::User;
    if let Some(other) = app.extensions.iter().find(namesake) {
        notes.push(format!("the name `{}` is used by {} as well", other.name, other.root.display()));
    }
    notes.extend(app.extensions_off());
    notes
}

fn read_installed(name: &str, folder: &Path) -> Option<Installed> {
    let record = InstallRecord::read(folder)?;
    let (extension, _) = validate_extension(folder, &ollm_protocol::Rules::default());
    let version = extension.manifest.version;
    Some(Installed { name: name.to_owned(), folder: folder.to_owned(), version, record })
}

/// A package of which nothing is taken.
fn refused(why: &str) -> AppError {
    AppError::new(ErrorKind::Configuration, format!("nothing was installed: {why}"))
}

fn not_ours(name: &str) -> AppError {
    AppError::usage(format!("`{name}` was not installed from elsewhere, so there is nothing to update"))
}

/// What an update of an extension asks for: its source, held to its pin or to the version that is named.
pub fn update_order(
    name: &str,
    to: Option<Version>,
    reach: Reach,
    context: &AppContext,
) -> Result<UpdateOrder, AppError> {
    let now = installed_as(name, context).ok_or_else(|| not_ours(name))?;
    let pin = pins(context)?.remove(name);
    let mut order = Order {
        source: now.record.source.clone(),
        to: to.clone(),
        checksum: None,
        reach,
        updates: Some(name.to_owned()),
    };
    // Whoever names a version means it more than a pin does.
    if let Some(pin) = pin.filter(|_| to.is_none()) {
        if now.record.is_pinned_by(&pin, &now.version) {
            return Ok(UpdateOrder::Pinned(pin));
        }
        match (Version::parse(&pin), pin.parse::<Digest>()) {
            (Ok(version), _) => order.to = Some(version),
            (_, Ok(digest)) => order.checksum = Some(digest),
            _ => {
                if let PackageSource::Git { reference, .. } = &mut order.source {
                    *reference = Some(pin);
                }
            }
        }
    }
    if let (PackageSource::Named { version, .. }, Some(to)) = (&mut order.source, &order.to) {
        *version = Some(to.clone());
    }
    Ok(UpdateOrder::Order(Box::new(order)))
}

/// What an update asks for.
#[derive(Debug)]
pub enum UpdateOrder {
    /// It is what its pin says, and stays so.
    Pinned(String),
    /// This.
    Order(Box<Order>),
}

/// What an extension can be held to: what was named, or what is installed.
pub fn pin_value(name: &str, wanted: Option<&str>, context: &AppContext) -> Result<String, AppError> {
    let now = installed_as(name, context).ok_or_else(|| not_ours(name))?;
    let Some(wanted) = wanted else {
        return Ok(now.record.commit.unwrap_or(now.version));
    };
    let is_commit = wanted.len() >= 40 && wanted.bytes().all(|digit| digit.is_ascii_hexdigit());
    if Version::parse(wanted).is_ok() || wanted.parse::<Digest>().is_ok() || is_commit {
        return Ok(wanted.to_owned());
    }
    Err(AppError::usage(format!("`{wanted}` is neither a version, a whole commit nor a digest"))
        .hint("write one such as 1.2.0, the 40 digits of a commit, or sha256:…"))
}
