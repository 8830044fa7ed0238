//! Gets a package from its source. Writes nothing except a repository's scratch folder.

use std::path::Path;

use ollm_catalog::{DownloadSettings, check_extension_name};
use ollm_package::{Bounds, Package, read_archive};
use ollm_protocol::Code;
use ollm_store::{Digest, digest_bytes, read_bounded};
use ollm_trust::{SignatureCheck, check_signature};
use semver::Version;

use super::fetch::{FetchRequest, FetchResult, Progress, Redirects, fetch};
use super::record::InstallRecord;
use super::registry::{ArchivePlace, Hit, IndexQuery, Registry};
use super::source::{PackageSource, shown};
use super::{Order, Reach, builtin, folder, refused, repository};
use crate::app::App;
use crate::app_context::AppContext;
use crate::error::AppError;

/// Larger archives are not read.
const LARGEST_ARCHIVE: u64 = 64 << 20;

/// A package and the facts about its origin.
pub(super) struct ObtainedPackage {
    pub(super) package: Package,
    pub(super) record: InstallRecord,
    pub(super) notes: Vec<String>,
    /// The name and version that an index gives.
    pub(super) expected: Option<(String, Version)>,
    /// Whether a signature could have been checked: the source supports signatures, and there are keys.
    pub(super) signer_known: bool,
}

pub(super) fn obtain(
    order: &Order,
    scratch: &Path,
    app: &App,
    progress: Progress<'_>,
) -> Result<ObtainedPackage, AppError> {
    let context = app.context();
    let settings = app.config.downloads();
    match &order.source {
        PackageSource::Folder(path) => {
            no_checksum(order, "a folder")?;
            let package = folder::read(path).map_err(|why| refused(&why))?;
            Ok(plain(order, package))
        }
        PackageSource::Archive(path) => {
            let bytes = archive_file(path)?;
            archive(order, &bytes, order.checksum)
        }
        PackageSource::Url(url) => {
            let (bytes, from) = download(url, order.reach, context, progress)?;
            let mut obtained = archive(order, &bytes, order.checksum)?;
            if from != *url {
                obtained.notes.push(format!("it was fetched from {}, where the address leads", shown(&from)));
            }
            Ok(obtained)
        }
        PackageSource::Git { url, reference } => {
            no_checksum(order, "a repository")?;
            if order.reach == Reach::Offline && !url.starts_with("file://") {
                return Err(offline(url));
            }
            let wanted = order.commit.as_deref().or(reference.as_deref());
            let found = repository::checkout(url, wanted, scratch, context, progress)?;
            let mut obtained = plain(order, found.package);
            obtained.record.commit = Some(found.commit);
            obtained.record.left = found.left;
            Ok(obtained)
        }
        PackageSource::Named { name, version } => {
            let version = order.to.as_ref().or(version.as_ref());
            named(order, name, version, &settings, context, progress)
        }
    }
}

fn plain(order: &Order, package: Package) -> ObtainedPackage {
    let record = InstallRecord::new(order.source.clone());
    ObtainedPackage { package, record, notes: Vec::new(), expected: None, signer_known: false }
}

/// Fails if a checksum is given: only an archive has a digest that a person can know beforehand.
fn no_checksum(order: &Order, what: &str) -> Result<(), AppError> {
    match order.checksum {
        Some(_) => Err(AppError::usage(format!("{what} has no checksum of an archive"))),
        None => Ok(()),
    }
}

/// The package with a name in an index.
fn named(
    order: &Order,
    name: &str,
    version: Option<&Version>,
    settings: &DownloadSettings,
    context: &AppContext,
    progress: Progress<'_>,
) -> Result<ObtainedPackage, AppError> {
    let registry = Registry::load(settings, order.reach, context, progress);
    let asked = IndexQuery { name, version, checksum: order.checksum, index: order.index.as_deref() };
    let hit = registry.find(&asked, context)?;
    check_extension_name(&hit.entry.name).map_err(|why| refused(&why))?;
    let bytes = match hit.place(context) {
        ArchivePlace::Embedded(name) => builtin::archive(&name)?,
        ArchivePlace::File(path) => archive_file(&path)?,
        ArchivePlace::Server(url) => download(&url, order.reach, context, progress)?.0,
    };
    if let Some(said) = hit.entry.size.filter(|said| *said != bytes.len() as u64) {
        return Err(refused(&format!("the index says {said} bytes, and the archive has {}", bytes.len())));
    }
    let checksum: Digest = hit.entry.checksum.parse().map_err(|_| refused("the index has no valid checksum"))?;
    let mut obtained = archive(order, &bytes, Some(checksum))?;
    sign(&hit, &bytes, settings, &mut obtained)?;
    obtained.notes.extend(registry.notes);
    obtained.record.index = Some(shown(&hit.index));
    obtained.expected = Some((hit.entry.name, hit.entry.version));
    Ok(obtained)
}

/// Checks the signature of an entry against the user's keys.
fn sign(hit: &Hit, bytes: &[u8], settings: &DownloadSettings, obtained: &mut ObtainedPackage) -> Result<(), AppError> {
    obtained.signer_known = !settings.keys.is_empty();
    let Some(signature) = &hit.entry.signature else { return Ok(()) };
    for key in &settings.keys {
        match check_signature(key, bytes, signature) {
            SignatureCheck::Good => {
                obtained.record.signed_by = Some(key.clone());
                return Ok(());
            }
            SignatureCheck::Bad => {
                return Err(refused(&format!("its signature is not that of the archive (key {key})")));
            }
            SignatureCheck::OtherKey => {}
        }
    }
    let why = if settings.keys.is_empty() { "has no key" } else { "has another key" };
    obtained.notes.push(format!("it is signed, but hooks.signatureKeys {why}, so the signature says nothing"));
    Ok(())
}

fn archive(order: &Order, bytes: &[u8], expected: Option<Digest>) -> Result<ObtainedPackage, AppError> {
    let checksum = digest_bytes(bytes);
    if let Some(expected) = expected.filter(|expected| *expected != checksum) {
        return Err(refused(&format!("the archive is {checksum}, and should be {expected}")));
    }
    let package = read_archive(bytes, Bounds::default()).map_err(|error| refused(&error.to_string()))?;
    let mut obtained = plain(order, package);
    obtained.record.checksum = Some(checksum);
    Ok(obtained)
}

fn archive_file(path: &Path) -> Result<Vec<u8>, AppError> {
    let bytes = read_bounded(path, LARGEST_ARCHIVE).map_err(|error| refused(&error.to_string()))?;
    bytes.ok_or_else(|| refused(&format!("{} does not exist", path.display())))
}

/// An archive, and the address that it finally came from.
fn download(
    url: &str,
    reach: Reach,
    context: &AppContext,
    progress: Progress<'_>,
) -> Result<(Vec<u8>, String), AppError> {
    if reach == Reach::Offline {
        return Err(offline(url));
    }
    let wanted = FetchRequest { url, most: LARGEST_ARCHIVE, redirects: Redirects::Followed, known: None };
    match fetch(&wanted, context, progress)? {
        FetchResult::File { bytes, from, .. } => Ok((bytes, from)),
        FetchResult::Unchanged => Err(refused(&format!("{} gave no file", shown(url)))),
    }
}

fn offline(url: &str) -> AppError {
    let message = format!("{} is on a server, and no server is asked", shown(url));
    AppError::new(Code::NotFetched, message).hint("leave out --offline")
}
