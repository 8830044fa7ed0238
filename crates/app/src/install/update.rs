//! Turns an update into an install request, and a text into a pin.

use ollm_store::Digest;
use semver::Version;

use super::record::InstallRecord;
use super::{Downgrade, Order, PackageSource, Reach, installed_as, not_ours, pins};
use crate::app_context::AppContext;
use crate::error::AppError;

/// The request that updates an extension: its source, with its pin or with the version that a person named.
pub fn update_order(
    name: &str,
    to: Option<&Version>,
    reach: Reach,
    context: &AppContext,
) -> Result<UpdateOrder, AppError> {
    let now = installed_as(name, context).ok_or_else(|| not_ours(name, context))?;
    let pin = pins(context)?.remove(name);
    let mut order = Order {
        source: now.record.source.clone(),
        to: to.cloned(),
        checksum: None,
        commit: None,
        index: now.record.index.clone(),
        reach,
        updates: Some(name.to_owned()),
        downgrade: if to.is_some() { Downgrade::Accepted } else { Downgrade::Refused },
    };
    // A version that a person names overrides the pin.
    if let Some(pin) = pin.filter(|_| to.is_none()) {
        if now.record.is_pinned_by(&pin, &now.version) {
            return Ok(UpdateOrder::Pinned(pin));
        }
        order.downgrade = Downgrade::Accepted;
        match Pin::read(&pin, &now.record)? {
            Pin::Version(version) => order.to = Some(version),
            Pin::Digest(digest) => order.checksum = Some(digest),
            Pin::Commit(commit) => order.commit = Some(commit),
        }
    }
    if let (PackageSource::Named { version, .. }, Some(to)) = (&mut order.source, &order.to) {
        *version = Some(to.clone());
    }
    Ok(UpdateOrder::Order(Box::new(order)))
}

/// The result of preparing an update.
#[derive(Debug)]
pub enum UpdateOrder {
    /// The extension already matches its pin, and stays unchanged.
    Pinned(String),
    /// Install this.
    Order(Box<Order>),
}

/// The pin for an extension: from the given text, or else the installed commit or version.
pub fn pin_value(name: &str, wanted: Option<&str>, context: &AppContext) -> Result<String, AppError> {
    let now = installed_as(name, context).ok_or_else(|| not_ours(name, context))?;
    let Some(wanted) = wanted else {
        return Ok(now.record.commit.unwrap_or(now.version));
    };
    Ok(match Pin::read(wanted, &now.record)? {
        Pin::Version(_) | Pin::Digest(_) => wanted.to_owned(),
        Pin::Commit(commit) => commit,
    })
}

/// A parsed pin.
enum Pin {
    Version(Version),
    /// The digest of its archive.
    Digest(Digest),
    /// The commit of its repository, as git writes it.
    Commit(String),
}

impl Pin {
    /// Parses a pin, if the source of the extension supports a pin of its kind.
    fn read(text: &str, record: &InstallRecord) -> Result<Pin, AppError> {
        let no_such = |what: &str| {
            AppError::usage(format!("it cannot be held to {text}: {} has no {what}", record.source))
                .hint("hold it to a version such as 1.2.0")
        };
        let (is_git, is_folder) = match record.source {
            PackageSource::Git { .. } => (true, false),
            PackageSource::Folder(_) => (false, true),
            _ => (false, false),
        };
        if let Ok(version) = Version::parse(text) {
            return Ok(Pin::Version(version));
        }
        if let Ok(digest) = text.parse::<Digest>() {
            return if is_git || is_folder { Err(no_such("archive")) } else { Ok(Pin::Digest(digest)) };
        }
        if text.len() >= 40 && text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return if is_git { Ok(Pin::Commit(text.to_ascii_lowercase())) } else { Err(no_such("commits")) };
        }
        Err(AppError::usage(format!("`{text}` is neither a version, a whole commit nor a digest"))
            .hint("write one such as 1.2.0, the 40 digits of a commit, or sha256:…"))
    }
}
