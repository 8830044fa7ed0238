//! Archives: reads `.tar.gz` and `.zip`, writes `.tar.gz`. The first bytes of an archive show its format.

use crate::collect::{Collector, Refusal};
use crate::package::{Bounds, Package};

mod tar_gz;
mod zipped;

pub use tar_gz::pack;

/// Why an archive is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// It has neither of the two formats.
    #[error("it is neither a .tar.gz nor a .zip archive")]
    Unknown,
    /// It cannot be read to its end.
    #[error("the archive is broken or cut: {0}")]
    Broken(String),
    /// Its content is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Reads an archive and checks every entry. An archive with one bad entry is refused as a whole.
///
/// ```
/// use ollm_package::{ArchiveError, Bounds, read_archive};
/// assert_eq!(read_archive(b"#!/bin/sh\n", Bounds::default()), Err(ArchiveError::Unknown));
/// ```
pub fn read_archive(bytes: &[u8], bounds: Bounds) -> Result<Package, ArchiveError> {
    let mut collector = Collector::new(bounds);
    match bytes {
        [0x1f, 0x8b, ..] => tar_gz::read(bytes, bounds, &mut collector)?,
        [b'P', b'K', 3 | 5, 4 | 6, ..] => zipped::read(bytes, bounds, &mut collector)?,
        _ => return Err(ArchiveError::Unknown),
    }
    Ok(collector.finish()?)
}
