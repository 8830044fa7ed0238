//! Reads in the index of a repository which of its folders are repositories: `git status` enters these, and runs what
//! their settings say.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::path_tree::{FileState, file_state, is_settled};

/// The largest index that is read.
const LARGEST: u64 = 64 << 20;
/// How long the names of contents are: by SHA-1 and by SHA-256.
const HASHES: [usize; 2] = [20, 32];
/// What an entry has before its hash, and the flags behind it.
const TIMES_AND_OWNER: usize = 40;
const FLAGS: usize = 2;
/// Where in an entry its mode is, and what it says of a repository.
const MODE: usize = 24;
const KIND: u32 = 0o170_000;
const GITLINK: u32 = 0o160_000;

/// What settled indexes said, by their paths.
pub(super) type KnownIndexes = HashMap<PathBuf, (FileState, Vec<PathBuf>)>;

/// The folders that the index of a repository has as repositories; `None` if it cannot be read.
pub(super) fn gitlinks(repository: &Path, known: &mut KnownIndexes) -> Option<Vec<PathBuf>> {
    let file = repository.join("index");
    let Ok(data) = fs::metadata(&file) else { return Some(Vec::new()) };
    let state = file_state(&data);
    if let Some((_, folders)) = known.get(&file).filter(|(before, _)| *before == state) {
        return Some(folders.clone());
    }
    let Index { mut folders, shared } = read(&file)?;
    if let Some(name) = &shared {
        folders.extend(read(&repository.join(name))?.folders);
    }
    // `git` makes no others.
    folders.retain(|folder| folder.components().all(|part| matches!(part, Component::Normal(_))));
    if shared.is_none() && is_settled(&data) {
        known.insert(file, (state, folders.clone()));
    }
    Some(folders)
}

fn read(file: &Path) -> Option<Index> {
    // A pipe would keep us waiting.
    fs::metadata(file).ok().filter(|data| data.is_file() && data.len() <= LARGEST)?;
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
    HASHES.iter().find_map(|hash| parsed(&bytes, *hash))
}

#[derive(Debug, PartialEq, Eq)]
struct Index {
    folders: Vec<PathBuf>,
    /// The file with the entries that it has in common with others.
    shared: Option<String>,
}

/// Reads an index, if its hashes are this long.
fn parsed(bytes: &[u8], hash: usize) -> Option<Index> {
    let (version, count) = (number(bytes, 4)?, number(bytes, 8)?);
    let mut folders = Vec::new();
    let (mut at, mut name) = (12, Vec::new());
    for _ in 0..count {
        let start = at;
        let flags = number(bytes, start + TIMES_AND_OWNER + hash)? >> 16;
        let has_more_flags = version > 2 && flags & 0x4000 != 0;
        at += TIMES_AND_OWNER + hash + FLAGS + if has_more_flags { FLAGS } else { 0 };
        if version == 4 {
            name.truncate(name.len().checked_sub(removed(bytes, &mut at)?)?);
        } else {
            name.clear();
        }
        let length = bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
        name.extend(bytes.get(at..at + length)?);
        at += length + 1;
        if version < 4 {
            at = start + (at - start).next_multiple_of(8);
        }
        if flags & 0xFFF != u32::try_from(name.len()).ok()?.min(0xFFF) {
            return None;
        }
        if number(bytes, start + MODE)? & KIND == GITLINK {
            folders.push(PathBuf::from(OsStr::from_bytes(&name)));
        }
    }
    Some(Index { folders, shared: shared(bytes, at, hash) })
}

/// A number of four bytes.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// How much of the name before a name does not begin with.
fn removed(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some(value);
        }
        value += 1;
    }
}

/// The file that an extension behind the entries names.
fn shared(bytes: &[u8], mut at: usize, hash: usize) -> Option<String> {
    loop {
        let (name, length) = (bytes.get(at..at + 4)?, usize::try_from(number(bytes, at + 4)?).ok()?);
        at += 8;
        if name == b"link" {
            let digits = bytes.get(at..at + hash)?.iter().map(|byte| format!("{byte:02x}"));
            return Some(format!("sharedindex.{}", digits.collect::<String>()));
        }
        at = at.checked_add(length)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_file_keeps_an_index_from_being_read_or_refused(
            version in 2_u32..5, entries in proptest::collection::vec((any::<bool>(), "[a-z]{1,9}"), 0..9),
            hash in proptest::sample::select(&HASHES), cut in any::<u16>(), noise in any::<[u8; 4]>(),
        ) {
            let mut bytes = b"DIRC".to_vec();
            bytes.extend([version.to_be_bytes(), u32::try_from(entries.len()).unwrap().to_be_bytes()].concat());
            let mut before = 0;
            for (is_link, name) in &entries {
                let start = bytes.len();
                bytes.resize(start + TIMES_AND_OWNER + hash, 0);
                let mode = if *is_link { GITLINK } else { 0o100_644 };
                bytes[start + MODE..start + MODE + 4].copy_from_slice(&mode.to_be_bytes());
                bytes.extend([0, u8::try_from(name.len()).unwrap()]);
                bytes.extend((version == 4).then_some(before));
                bytes.extend(name.bytes().chain([0]));
                let length = bytes.len() - start;
                bytes.resize(start + if version == 4 { length } else { length.next_multiple_of(8) }, 0);
                before = u8::try_from(name.len()).unwrap();
            }
            let links: Vec<PathBuf> = entries.iter().filter(|(is_link, _)| *is_link).map(|(_, name)| name.into()).collect();
            let index = parsed(&bytes, hash).unwrap();
            prop_assert_eq!((index.folders, index.shared), (links, None));
            let cut = usize::from(cut) % bytes.len();
            prop_assert!(entries.is_empty() || cut > 12 || parsed(&bytes[..cut], hash).is_none());
            bytes[cut..].iter_mut().zip(noise).for_each(|(byte, noise)| *byte = noise);
            let _ = parsed(&bytes, hash);
        }
    }
}
