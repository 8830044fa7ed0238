//! Reads `.zip`.

use std::io::{Cursor, Read};

use zip::result::ZipError;
use zip::{System, ZipArchive};

use super::ArchiveError;
use crate::collect::{Collector, LinkBase, Refusal};
use crate::name::shown;
use crate::package::Bounds;

/// The bits of a mode that give the kind of an entry.
const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
/// The bits that give a program another user's rights; the reader's mode omits them.
const SPECIAL: u32 = 0o7000;
/// The longest link target; longer ones lead nowhere.
const LONGEST_LINK: u64 = 4096;

pub(super) fn read(bytes: &[u8], bounds: Bounds, collector: &mut Collector) -> Result<(), ArchiveError> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    if archive.len() > bounds.entries {
        return Err(Refusal::TooMany(bounds.entries).into());
    }
    if archive.offset() != 0 || !is_at_end(bytes, archive.comment()) {
        return Err(ArchiveError::Broken("something stands before its beginning or follows its end".to_owned()));
    }
    // Of several entries with one name, this reader takes the last and other readers the first.
    if usize::try_from(archive.central_directory_start()).map_or(0, |start| listed(bytes, start)) != archive.len() {
        return Err(ArchiveError::Broken("it lists one file twice".to_owned()));
    }
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).map_err(|error| broken(&error))?;
        let path = file.name_raw().to_vec();
        if file.encrypted() {
            return Err(ArchiveError::Broken(format!("`{}` is encrypted", shown(&path))));
        }
        let special = if file.system() == System::Dos { 0 } else { (file.external_attributes() >> 16) & SPECIAL };
        let mode = file.unix_mode().unwrap_or(FILE | 0o644) | special;
        match mode & KIND {
            // Programs without modes write none, and end the names of folders with a slash.
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

/// Whether the end record of an archive, with its comment, is the last record.
fn is_at_end(bytes: &[u8], comment: &[u8]) -> bool {
    const RECORD: usize = 22;
    let start = bytes.len().checked_sub(RECORD + comment.len());
    start.and_then(|start| bytes.get(start..)).is_some_and(|record| record.starts_with(b"PK\x05\x06"))
}

/// How many entries the directory of an archive lists.
fn listed(bytes: &[u8], start: usize) -> usize {
    const HEAD: usize = 46;
    let (mut at, mut count) = (start, 0);
    while let Some(head) = bytes.get(at..at.saturating_add(HEAD)).filter(|head| head.starts_with(b"PK\x01\x02")) {
        let length = |from: usize| {
            head.get(from..from + 2)
                .map_or(0, |two| two.iter().rev().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)))
        };
        at = at.saturating_add(HEAD + length(28) + length(30) + length(32));
        count += 1;
    }
    count
}

fn broken(error: &ZipError) -> ArchiveError {
    ArchiveError::Broken(error.to_string())
}
