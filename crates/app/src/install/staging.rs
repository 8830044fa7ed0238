//! Stages a package, reads it, and finds every reason not to install it.

use std::path::Path;

use ollm_catalog::{
    Extension, INSTALL_RECORD, Problem, Severity, foreign_manifest, is_package_manifest, validate_extension,
};
use ollm_package::Package;
use ollm_protocol::{Code, Layer, Remedy};
use ollm_store::{Digest, TreeLimits, digest_tree};
use semver::Version;

use super::obtain::ObtainedPackage;
use super::record::InstallRecord;
use super::root::{InstallRoot, extensions_folder};
use super::{Downgrade, InstalledExtension, Order, PackageSource, pins, read_installed, refused};
use crate::app::App;
use crate::app_context::AppContext;
use crate::error::AppError;

/// The result of staging a package.
pub(super) enum StagingResult {
    Current(Box<InstalledExtension>),
    New(Box<Parts>),
}

/// The facts about a staged package.
pub(super) struct Parts {
    pub(super) extension: Extension,
    pub(super) record: InstallRecord,
    pub(super) replaces: Option<InstalledExtension>,
    pub(super) digest: Digest,
    pub(super) verified: Option<String>,
    pub(super) notes: Vec<String>,
}

/// Stages a package and reads it.
pub(super) fn lay_aside(
    order: &Order,
    obtained: ObtainedPackage,
    root: &InstallRoot,
    app: &App,
) -> Result<StagingResult, AppError> {
    let ObtainedPackage { package, mut record, mut notes, expected, signer_known } = obtained;
    let package = rooted(package)?;
    let unwritten = |error: std::io::Error| {
        AppError::new(Code::NotWritten, format!("nothing was installed: the package cannot be written: {error}"))
    };
    let staged = root.stage(&package).map_err(unwritten)?;
    let foreign = match package.get("manifest.json") {
        Some(_) => None,
        None => foreign_manifest(&staged, &app.rules).map_err(|why| refused(&why))?,
    };
    if let Some(foreign) = &foreign {
        record.form = Some(foreign.form.to_owned());
        record.left.extend(foreign.left.iter().cloned());
    }
    root.complete(&staged, &record, foreign.as_ref()).map_err(unwritten)?;
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
    check_folder(app)?;
    check_wanted(order, &extension)?;
    let replaces = replaced(order, &extension, root)?;
    let digest = digest_tree(&staged, TreeLimits::default()).map_err(|error| refused(&error.to_string()))?;
    let is_same =
        |old: &&InstalledExtension| digest_tree(&old.folder, TreeLimits::default()).is_ok_and(|old| old == digest);
    if let Some(installed) = replaces.as_ref().filter(is_same) {
        return Ok(StagingResult::Current(Box::new(installed.clone())));
    }
    check_version(order, &extension, replaces.as_ref(), app.context())?;
    check_pin(order, &extension, &record, replaces.as_ref(), app.context())?;
    check_signer(&record, replaces.as_ref(), signer_known)?;
    notes.extend(surroundings(&extension, app));
    let verified = verified(&record, &digest, app);
    Ok(StagingResult::New(Box::new(Parts { extension, record, replaces, digest, verified, notes })))
}

/// The package, with the manifest's folder as its root.
fn rooted(package: Package) -> Result<Package, AppError> {
    let has_manifest = |package: &Package| package.files().any(|(path, _)| is_package_manifest(path));
    let package = if has_manifest(&package) { package } else { package.without_wrapper() };
    if !has_manifest(&package) {
        let message = "it has no manifest.json, and is no package of another agent that is known";
        return Err(refused(message));
    }
    // A package that contains a record could claim any origin.
    let top = |path: &str| path.split('/').next().is_some_and(|top| top.eq_ignore_ascii_case(INSTALL_RECORD));
    if package.files().any(|(path, _)| top(path)) {
        return Err(refused(&format!("it brings a {INSTALL_RECORD}, which is ours to write")));
    }
    Ok(package)
}

pub(super) fn check_valid(problems: &[Problem], staged: &Path) -> Result<(), AppError> {
    let mut errors = problems.iter().filter(|problem| problem.severity <= Severity::Error);
    let Some(first) = errors.next() else { return Ok(()) };
    let more = errors.count();
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Err(refused(&format!("{}{more}", in_package(first, staged))))
}

/// Fails if the folder for installations is not searched: the extension would never be loaded.
fn check_folder(app: &App) -> Result<(), AppError> {
    let folder = extensions_folder(app.context());
    if app.directories.contains(&folder) {
        return Ok(());
    }
    let why = format!("extensions.directories does not name {}, which extensions are installed into", folder.display());
    Err(refused(&why).hint("add it to extensions.directories"))
}

/// A problem with its path in the package, without the staging folder.
fn in_package(problem: &Problem, staged: &Path) -> String {
    problem.to_string().replace(&format!("{}/", staged.display()), "").replace(&staged.display().to_string(), "it")
}

/// The installed extension that this one replaces. Fails for an extension that we did not install.
fn replaced(order: &Order, extension: &Extension, root: &InstallRoot) -> Result<Option<InstalledExtension>, AppError> {
    let name = &extension.name;
    if let Some(updated) = order.updates.as_ref().filter(|updated| *updated != name) {
        return Err(refused(&format!("it is called `{name}` now, and `{updated}` is installed")));
    }
    let place = root.place(name);
    if let Some(why) = InstallRecord::unreadable(&place) {
        return Err(AppError::new(Code::Unreadable, why));
    }
    if place.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
        let message = format!("{} is a link, and what it leads to is not ours to replace", place.display());
        return Err(AppError::new(Code::AlreadyThere, message).hint("remove the link first"));
    }
    match read_installed(name, &place) {
        None if place.symlink_metadata().is_ok() => {
            let message = format!("{} is there already, and was not installed from elsewhere", place.display());
            Err(AppError::new(Code::AlreadyThere, message).hint("move it away, or give it another name"))
        }
        installed => Ok(installed),
    }
}

/// Fails for a lower version, unless a person named it.
fn check_version(
    order: &Order,
    extension: &Extension,
    replaces: Option<&InstalledExtension>,
    context: &AppContext,
) -> Result<(), AppError> {
    let parse = |text: &str| Version::parse(text).ok();
    let version = parse(&extension.manifest.version);
    let before = replaces.and_then(|replaced| parse(&replaced.version));
    if let (Some(version), Some(before), Downgrade::Refused) = (&version, &before, order.downgrade)
        && version < before
    {
        let name = extension.name.clone();
        // Only an index can be asked for a version; every other source has just one.
        let way_out = match order.source {
            _ if order.updates.is_some() => {
                context.tell(&Remedy::InstallVersion { name, version: version.to_string() })
            }
            PackageSource::Named { .. } => format!("`{name}@{version}` says that you mean it"),
            _ => format!("`--to {version}` says that you mean it"),
        };
        let message =
            format!("`{}` {before} is installed, and {version} is lower; nothing was changed", extension.name);
        return Err(AppError::new(Code::LowerVersion, message).hint(way_out));
    }
    Ok(())
}

/// Fails unless the package has the requested version, even if the extension is installed already.
fn check_wanted(order: &Order, extension: &Extension) -> Result<(), AppError> {
    let version = Version::parse(&extension.manifest.version).ok();
    match order.to.as_ref().filter(|wanted| version.as_ref() != Some(wanted)) {
        Some(wanted) => Err(refused(&format!("it has version {}, and {wanted} is wanted", extension.manifest.version))),
        None => Ok(()),
    }
}

/// Fails for a pinned extension, unless a person names the new version.
fn check_pin(
    order: &Order,
    extension: &Extension,
    record: &InstallRecord,
    replaces: Option<&InstalledExtension>,
    context: &AppContext,
) -> Result<(), AppError> {
    let version = &extension.manifest.version;
    let is_named = order.updates.is_some() || order.to.is_some() || order.downgrade == Downgrade::Accepted;
    if replaces.is_none() || is_named {
        return Ok(());
    }
    match pins(context)?.remove(&extension.name).filter(|pin| !record.is_pinned_by(pin, version)) {
        Some(pin) => Err(refused(&format!("`{}` is pinned to {pin}, and this is {version}", extension.name))
            .hint(format!("`--to {version}` says that you mean it"))),
        None => Ok(()),
    }
}

/// Fails if an extension that once had a valid signature now has none.
fn check_signer(
    record: &InstallRecord,
    replaces: Option<&InstalledExtension>,
    signer_known: bool,
) -> Result<(), AppError> {
    let before = replaces.and_then(|replaced| replaced.record.signed_by.as_ref());
    match before {
        Some(key) if record.signed_by.is_none() && signer_known => {
            Err(refused(&format!("what is installed was signed by {key}, and this is not signed by a key of yours")))
        }
        _ => Ok(()),
    }
}

/// The reason why it needs no further approval, if there is one.
fn verified(record: &InstallRecord, digest: &Digest, app: &App) -> Option<String> {
    let pins = app.config.downloads().pins;
    let digests = [Some(*digest), record.checksum];
    let pinned = digests.iter().flatten().map(ToString::to_string).find(|digest| pins.contains(digest));
    let signed = record.signed_by.as_ref().map(|key| format!("signed by {key} (hooks.signatureKeys)"));
    signed.or_else(|| pinned.map(|digest| format!("{digest} is in hooks.pins")))
}

/// Notes about another extension with its name, and about what is off.
fn surroundings(extension: &Extension, app: &App) -> Vec<String> {
    let mut notes = Vec::new();
    let own = extensions_folder(app.context()).join(&extension.name);
    let namesake = |one: &&Extension| one.name == extension.name && one.root != own && one.layer == Layer::User;
    if let Some(other) = app.extensions.iter().find(namesake) {
        notes.push(format!("the name `{}` is used by {} as well", other.name, other.root.display()));
    }
    notes.extend(app.extensions_off());
    notes
}
