//! What an update asks for, and what an extension can be held to.

use ollm_store::Digest;
use semver::Version;

use super::record::InstallRecord;
use super::{Downgrade, Order, PackageSource, Reach, installed_as, not_ours, pins};
use crate::app_context::AppContext;
use crate::error::AppError;

/// What an update of an extension asks for: its source, held to its pin or to the version that is named.
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
    // Who names a version means it more than a pin does.
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
    let now = installed_as(name, context).ok_or_else(|| not_ours(name, context))?;
    let Some(wanted) = wanted else {
        return Ok(now.record.commit.unwrap_or(now.version));
    };
    Ok(match Pin::read(wanted, &now.record)? {
        Pin::Version(_) | Pin::Digest(_) => wanted.to_owned(),
        Pin::Commit(commit) => commit,
    })
}

/// What an extension is held to.
enum Pin {
    Version(Version),
    /// Of its archive.
    Digest(Digest),
    /// Of its repository, in the letters of git.
    Commit(String),
}

impl Pin {
    /// Reads a pin, as far as the source of the extension can have one of its kind.
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
