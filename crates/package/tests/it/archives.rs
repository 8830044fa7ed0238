//! Archives made by hand, without the care of a library, and what they leave on a disk compared with a model.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};
use ollm_package::{Bounds, Package, pack, read_archive};
use proptest::prelude::*;
use tar::{EntryType, Header};

/// An entry from a hostile author.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) kind: EntryType,
    pub(crate) path: String,
    pub(crate) target: String,
    pub(crate) mode: u32,
    pub(crate) content: Vec<u8>,
}

impl Raw {
    pub(crate) fn file(path: &str, content: &[u8]) -> Raw {
        Raw { content: content.to_vec(), ..Raw::of(EntryType::Regular, path, "") }
    }

    pub(crate) fn of(kind: EntryType, path: &str, target: &str) -> Raw {
        let (path, target) = (path.to_owned(), target.to_owned());
        Raw { kind, path, target, mode: 0o644, content: Vec::new() }
    }
}

pub(crate) fn tar_gz(entries: &[Raw]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for entry in entries {
        long_name(&mut encoder, b'L', &entry.path);
        long_name(&mut encoder, b'K', &entry.target);
        let mut header = Header::new_gnu();
        set(&mut header.as_old_mut().name, &entry.path);
        set(&mut header.as_old_mut().linkname, &entry.target);
        header.set_mode(entry.mode);
        header.set_entry_type(entry.kind);
        block(&mut encoder, header, &entry.content);
    }
    encoder.write_all(&[0; 1024]).unwrap();
    encoder.finish().unwrap()
}

/// What does not fit into a header stands before it.
fn long_name(encoder: &mut impl Write, kind: u8, name: &str) {
    if name.len() > 99 {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::new(kind));
        block(encoder, header, format!("{name}\0").as_bytes());
    }
}

fn block(encoder: &mut impl Write, mut header: Header, content: &[u8]) {
    header.set_size(content.len() as u64);
    header.set_cksum();
    encoder.write_all(header.as_bytes()).unwrap();
    encoder.write_all(content).unwrap();
    encoder.write_all(&vec![0; content.len().next_multiple_of(512) - content.len()]).unwrap();
}

fn set(field: &mut [u8], text: &str) {
    for (place, byte) in field.iter_mut().zip(text.bytes().take(99)) {
        *place = byte;
    }
}

/// The maker of a `.zip` archive: a Unix system, by the rules of 2.0.
const UNIX: usize = 0x0314;

/// The same entries, zipped.
pub(crate) fn zip(entries: &[Raw]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let (kind, content) = match entry.kind {
            EntryType::Symlink => (0o120_000, entry.target.as_bytes()),
            EntryType::Directory => (0o040_000, [].as_slice()),
            EntryType::Char => (0o020_000, [].as_slice()),
            EntryType::Fifo => (0o010_000, [].as_slice()),
            _ => (0o100_000, entry.content.as_slice()),
        };
        let (mut sum, mut encoder) = (Crc::new(), DeflateEncoder::new(Vec::new(), Compression::fast()));
        sum.update(content);
        encoder.write_all(content).unwrap();
        let packed = encoder.finish().unwrap();
        let (deflated, utf8, lengths) = (8, 0x800, [packed.len(), content.len()]);
        // What stands in both headers.
        let mut head = shorts(&[20, utf8, deflated, 0, 0x21]);
        head.extend(sum.sum().to_le_bytes());
        head.extend(lengths.iter().flat_map(|length| u32::try_from(*length).unwrap().to_le_bytes()));
        head.extend(shorts(&[entry.path.len(), 0]));
        let start = u32::try_from(archive.len()).unwrap();
        archive.extend([b"PK\x03\x04", head.as_slice(), entry.path.as_bytes(), &packed].concat());
        directory.extend([b"PK\x01\x02", shorts(&[UNIX]).as_slice(), &head, &shorts(&[0, 0, 0])].concat());
        directory.extend(((kind | entry.mode) << 16).to_le_bytes());
        directory.extend(start.to_le_bytes());
        directory.extend(entry.path.as_bytes());
    }
    let (start, length) = (archive.len(), directory.len());
    archive.extend(directory);
    archive.extend([b"PK\x05\x06", shorts(&[0, 0, entries.len(), entries.len()]).as_slice()].concat());
    archive.extend([length, start].iter().flat_map(|number| u32::try_from(*number).unwrap().to_le_bytes()));
    archive.extend(shorts(&[0]));
    archive
}

fn shorts(numbers: &[usize]) -> Vec<u8> {
    numbers.iter().flat_map(|number| u16::try_from(*number).unwrap().to_le_bytes()).collect()
}

/// Everything below a folder: files with content and whether they can be executed.
fn on_disk(root: &Path) -> BTreeMap<String, (Vec<u8>, bool)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            assert!(meta.is_dir() || meta.is_file(), "{}", path.display());
            assert_eq!(meta.permissions().mode() & 0o7022, 0, "{}", path.display());
            if meta.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(name, (fs::read(&path).unwrap(), meta.permissions().mode() & 0o111 != 0));
            }
        }
    }
    found
}

/// What may appear on a disk: written without a look at the code, by the words of the rules.
fn model(entries: &[Raw]) -> Option<BTreeMap<String, (Vec<u8>, bool)>> {
    let mut files: BTreeMap<String, (Vec<u8>, bool)> = BTreeMap::new();
    let mut folders: BTreeSet<String> = BTreeSet::new();
    let mut links: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in entries {
        let parts: Vec<&str> = entry.path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let bad = |part: &&str| {
            *part == ".."
                || part.to_lowercase() == ".git"
                || part.contains([':', '\\', '\n'])
                || part.ends_with(['.', ' '])
        };
        if entry.path.is_empty() || entry.path.starts_with('/') || parts.iter().any(bad) {
            return None;
        }
        let path = parts.join("/");
        for depth in 1..parts.len() {
            folders.insert(parts[..depth].join("/"));
        }
        match entry.kind {
            EntryType::Directory => {
                if !path.is_empty() {
                    folders.insert(path);
                }
                continue;
            }
            EntryType::Regular if entry.mode & 0o7000 == 0 => {}
            EntryType::Symlink => {}
            _ => return None,
        }
        if path.is_empty() || files.contains_key(&path) || links.contains_key(&path) {
            return None;
        }
        if entry.kind == EntryType::Regular {
            files.insert(path, (entry.content.clone(), entry.mode & 0o111 != 0));
            continue;
        }
        let mut at: Vec<String> = parts[..parts.len() - 1].iter().map(|part| (*part).to_owned()).collect();
        if entry.target.starts_with('/') {
            return None;
        }
        for part in entry.target.split('/') {
            match part {
                "" | "." => {}
                ".." => _ = at.pop()?,
                part => at.push(part.to_owned()),
            }
        }
        links.insert(path, at);
    }
    let all = files.keys().chain(links.keys()).chain(&folders);
    let folded: BTreeSet<String> = all.clone().map(|path| path.to_lowercase()).collect();
    if folded.len() != all.count() {
        return None;
    }
    for path in links.keys() {
        let (mut at, mut steps) = (path.clone(), 0);
        while let Some(next) = links.get(&at) {
            at = next.join("/");
            steps += 1;
            if steps > links.len() {
                return None;
            }
        }
        let file = files.get(&at)?.clone();
        files.insert(path.clone(), file);
    }
    (!files.is_empty()).then_some(files)
}

/// The entries that a `.zip` can have: a slash at the end makes a folder, and nothing is listed twice.
fn as_zip_has_them(mut entries: Vec<Raw>) -> Vec<Raw> {
    let mut seen = BTreeSet::new();
    for entry in &mut entries {
        if entry.kind == EntryType::Regular && entry.path.ends_with('/') {
            *entry = Raw { mode: entry.mode, ..Raw::of(EntryType::Directory, &entry.path, "") };
        }
    }
    entries.retain(|entry| seen.insert(entry.path.clone()));
    entries
}

fn entries() -> impl Strategy<Value = Vec<Raw>> {
    let part = prop::sample::select(vec!["a", "b", "A", "..", ".", "", "x.sh", ".git", "c:", "a\\b", "d.", "\n", "é"]);
    let usual = prop::sample::select(vec!["a", "b", "c", "d", "e.sh", "f"]);
    let path = || {
        prop_oneof![
            6 => prop::collection::vec(usual.clone(), 1..4).prop_map(|parts| parts.join("/")),
            1 => prop::collection::vec(part.clone(), 1..4).prop_map(|parts| parts.join("/")),
            1 => prop::collection::vec(usual.clone(), 1..3).prop_map(|parts| format!("./{}", parts.join("//"))),
        ]
    };
    let kind = prop_oneof![
        12 => Just(EntryType::Regular),
        3 => Just(EntryType::Directory),
        3 => Just(EntryType::Symlink),
        1 => prop::sample::select(vec![EntryType::Char, EntryType::Fifo]),
    ];
    let mode = prop_oneof![8 => Just(0o644), 4 => Just(0o755), 1 => Just(0o4755), 1 => Just(0o666), 1 => Just(0o000)];
    let target = prop_oneof![
        4 => usual.clone().prop_map(str::to_owned),
        2 => usual.clone().prop_map(|name| format!("../{name}")),
        1 => Just("/etc/passwd".to_owned()),
    ];
    let content = prop::collection::vec(any::<u8>(), 0..40);
    let entry = (kind, path(), target, mode, content).prop_map(|(kind, path, target, mode, content)| {
        let is_file = kind == EntryType::Regular;
        let target = if kind == EntryType::Symlink { target } else { String::new() };
        Raw { kind, path, target, mode, content: if is_file { content } else { Vec::new() } }
    });
    prop::collection::vec(entry, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn an_archive_leaves_on_the_disk_what_the_model_says_or_nothing(entries in entries(), zipped in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("package");
        let entries = if zipped { as_zip_has_them(entries) } else { entries };
        let read = read_archive(&if zipped { zip(&entries) } else { tar_gz(&entries) }, Bounds::default());
        let expected = model(&entries);
        prop_assert_eq!(read.is_ok(), expected.is_some(), "{:?} {:?}", &read, &entries);
        if let (Ok(package), Some(expected)) = (read, expected) {
            package.write_to(&root).unwrap();
            prop_assert_eq!(on_disk(&root), expected);
        }
        let beside: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        prop_assert!(beside.iter().all(|path| *path == root), "{:?}", beside);
    }

    #[test]
    fn a_packed_package_is_read_as_it_was(files in prop::collection::btree_map("[a-f]{1,3}\\.[x-z]", (prop::collection::vec(any::<u8>(), 0..2000), any::<bool>()), 1..6)) {
        let package: Package = files.iter().map(|(path, (bytes, executable))| (path.as_str(), bytes.clone(), *executable)).collect();
        let packed = pack(&package).unwrap();
        prop_assert_eq!(&pack(&package).unwrap(), &packed);
        prop_assert_eq!(read_archive(&packed, Bounds::default()).unwrap(), package);
    }

    #[test]
    fn bytes_that_were_changed_never_break_more_than_the_archive(entries in entries(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        for mut archive in [tar_gz(&entries), zip(&[Raw::file("a", b"aaaa"), Raw::file("b/c", b"bbbb")])] {
            let place = at.index(archive.len());
            archive[place] = byte;
            let _ = read_archive(&archive, Bounds { entries: 100, bytes: 1 << 20 });
        }
    }
}
