//! `.zip`.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use super::ArchiveError;
use crate::collect::{Collector, LinkBase, Refusal};
use crate::name::shown;
use crate::package::Bounds;

/// The bits of a mode that say what something is.
const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
/// Longer links lead nowhere.
const LONGEST_LINK: u64 = 4096;

pub(super) fn read(bytes: &[u8], bounds: Bounds, collector: &mut Collector) -> Result<(), ArchiveError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    if archive.len() > bounds.entries {
        return Err(Refusal::TooMany(bounds.entries).into());
    }
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).map_err(|error| broken(&error))?;
        let path = file.name_raw().to_vec();
        if file.encrypted() {
            return Err(ArchiveError::Broken(format!("`{}` is encrypted", shown(&path))));
        }
        let mode = file.unix_mode().unwrap_or(FILE | 0o644);
        match mode & KIND {
            // Programs without modes write none, and end the name of a folder with a slash.
            FOLDER | 0 | FILE if path.ends_with(b"/") => collector.folder(&path)?,
            FILE | 0 => {
                let size = file.size();
                collector.file(&path, mode, Some(size), &mut file)?;
            }
            LINK => {
                let mut target = Vec::new();
                let read = (&mut file).take(LONGEST_LINK).read_to_end(&mut target);
                read.map_err(|error| ArchiveError::Broken(error.to_string()))?;
                collector.link(&path, &target, LinkBase::Folder)?;
            }
            FOLDER => collector.folder(&path)?,
            _ => collector.other(&path, "neither a file nor a folder")?,
        }
    }
    Ok(())
}

fn broken(error: &ZipError) -> ArchiveError {
    ArchiveError::Broken(error.to_string())
}
