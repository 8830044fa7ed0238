//! What an update asks for, and what an extension can be held to.

use ollm_store::Digest;
use semver::Version;

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
    let now = installed_as(name, context).ok_or_else(|| not_ours(name))?;
    let pin = pins(context)?.remove(name);
    let mut order = Order {
        source: now.record.source.clone(),
        to: to.cloned(),
        checksum: None,
        reach,
        updates: Some(name.to_owned()),
        downgrade: if to.is_some() { Downgrade::Accepted } else { Downgrade::Refused },
    };
    // Whoever names a version means it more than a pin does.
    if let Some(pin) = pin.filter(|_| to.is_none()) {
        if now.record.is_pinned_by(&pin, &now.version) {
            return Ok(UpdateOrder::Pinned(pin));
        }
        order.downgrade = Downgrade::Accepted;
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
