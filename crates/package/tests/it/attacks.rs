//! Archives that attack: each is refused as a whole (abuse case D11).

use ollm_package::{ArchiveError, Bounds, Refusal, read_archive};
use tar::EntryType;

use crate::archives::{Raw, tar_gz, zip};

const SMALL: Bounds = Bounds { entries: 100, bytes: 1 << 20 };

fn refusal(entries: &[Raw]) -> Refusal {
    match read_archive(&tar_gz(entries), SMALL) {
        Err(ArchiveError::Refused(refusal)) => refusal,
        other => panic!("{entries:?}: {other:?}"),
    }
}

fn with_manifest(bad: Raw) -> Vec<Raw> {
    vec![Raw::file("manifest.json", b"{}"), bad]
}

#[test]
fn d11_paths_that_lead_out_are_refused() {
    for path in ["../x", "a/../../x", "/etc/cron.d/x", "a/..", "a\\..\\x", "a\nb", "a\u{202e}gnp.exe", ".git/hooks/x"] {
        let bad = with_manifest(Raw::file(path, b"x"));
        assert!(matches!(refusal(&bad), Refusal::Path { .. }), "{path:?}");
        let zipped = read_archive(&zip(&bad), SMALL);
        assert!(matches!(zipped, Err(ArchiveError::Refused(Refusal::Path { .. }))), "{path:?}: {zipped:?}");
    }
}

#[test]
fn d11_links_that_lead_out_are_refused() {
    for target in ["/etc/passwd", "../x", "gone", "a/../../x", ".", "manifest.json/x"] {
        for kind in [EntryType::Symlink, EntryType::Link] {
            let bad = with_manifest(Raw::of(kind, "link", target));
            assert!(matches!(refusal(&bad), Refusal::Link { .. }), "{target} {kind:?}");
        }
    }
    let circle = [Raw::file("f", b""), Raw::of(EntryType::Symlink, "a", "b"), Raw::of(EntryType::Symlink, "b", "a")];
    assert!(matches!(refusal(&circle), Refusal::Link { .. }));
}

#[test]
fn a_link_to_a_file_of_the_package_becomes_a_copy() {
    let entries = [
        Raw::of(EntryType::Symlink, "docs/again", "../link"),
        Raw::of(EntryType::Symlink, "link", "./hooks/x.sh"),
        Raw { mode: 0o755, ..Raw::file("hooks/x.sh", b"#!/bin/sh") },
    ];
    let package = read_archive(&tar_gz(&entries), SMALL).unwrap();
    let files: Vec<(&str, &[u8], bool)> =
        package.files().map(|(path, file)| (path, file.bytes.as_slice(), file.executable)).collect();
    let content = b"#!/bin/sh".as_slice();
    assert_eq!(files, [("docs/again", content, true), ("hooks/x.sh", content, true), ("link", content, true)]);
}

#[test]
fn d11_folders_that_no_entry_names_are_counted() {
    let deep = |number: usize| Raw::file(&format!("{number}/{}x", "d/".repeat(20)), b"");
    let entries: Vec<Raw> = (0..10).map(deep).collect();
    assert!(matches!(refusal(&entries), Refusal::TooMany(100)));
}

#[test]
fn d11_a_zip_that_lists_a_file_twice_is_refused() {
    let bytes = zip(&[Raw::file("manifest.json", b"one"), Raw::file("manifest.json", b"two")]);
    let read = read_archive(&bytes, SMALL);
    assert!(matches!(&read, Err(ArchiveError::Broken(why)) if why.contains("twice")), "{read:?}");
}

#[test]
fn a_long_chain_of_links_is_followed() {
    let mut entries: Vec<Raw> =
        (0..80).map(|at| Raw::of(EntryType::Symlink, &format!("l{at}"), &format!("l{}", at + 1))).collect();
    entries.push(Raw::file("l80", b"end"));
    let package = read_archive(&tar_gz(&entries), SMALL).unwrap();
    assert_eq!((package.files().count(), package.get("l0")), (81, Some(b"end".as_slice())));
}

#[test]
fn d11_devices_pipes_and_setuid_bits_are_refused() {
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo, EntryType::new(b'Z')] {
        assert!(matches!(refusal(&with_manifest(Raw::of(kind, "x", ""))), Refusal::Kind { .. }), "{kind:?}");
    }
    for mode in [0o4755, 0o2755, 0o1644] {
        let bad = with_manifest(Raw { mode, ..Raw::file("x", b"") });
        assert!(matches!(refusal(&bad), Refusal::Mode { .. }), "{mode:o}");
        let zipped = read_archive(&zip(&bad), SMALL);
        assert!(matches!(zipped, Err(ArchiveError::Refused(Refusal::Mode { .. }))), "{mode:o}: {zipped:?}");
    }
    let sparse = with_manifest(Raw::of(EntryType::GNUSparse, "x", ""));
    assert!(read_archive(&tar_gz(&sparse), SMALL).is_err());
}

#[test]
fn d11_names_that_are_one_file_somewhere_are_refused() {
    for (one, other) in [
        ("a", "A"),
        ("x/a", "X/b"),
        ("\u{e9}", "e\u{301}"),
        ("\u{3c2}", "\u{3c3}"),
        ("\u{17f}", "s"),
        ("\u{df}", "ss"),
        ("a", "a"),
        ("a", "a/b"),
        ("a/b", "a"),
    ] {
        let refused = refusal(&[Raw::file(one, b""), Raw::file(other, b"")]);
        assert!(matches!(refused, Refusal::Collision { .. }), "{one} {other}: {refused:?}");
    }
}

#[test]
fn d11_too_many_entries_are_refused() {
    let many: Vec<Raw> = (0..101).map(|number| Raw::file(&format!("f{number}"), b"")).collect();
    assert_eq!(refusal(&many), Refusal::TooMany(100));
    let zipped = read_archive(&zip(&many), SMALL);
    assert_eq!(zipped, Err(ArchiveError::Refused(Refusal::TooMany(100))));
    let hundred_thousand: Vec<Raw> = (0..100_000).map(|number| Raw::file(&number.to_string(), b"")).collect();
    let read = read_archive(&tar_gz(&hundred_thousand), Bounds::default());
    assert_eq!(read, Err(ArchiveError::Refused(Refusal::TooMany(10_000))));
}

#[test]
fn d11_decompression_bombs_are_refused() {
    let large = vec![0; 2 << 20];
    let bomb = [Raw::file("zeros", &large)];
    assert!(tar_gz(&bomb).len() < 64 << 10);
    assert_eq!(refusal(&bomb), Refusal::TooLarge(1 << 20));
    let zipped = read_archive(&zip(&bomb), SMALL);
    assert_eq!(zipped, Err(ArchiveError::Refused(Refusal::TooLarge(1 << 20))));
    // A name is unpacked before anything is known about it.
    let name = "x".repeat(8 << 20);
    assert_eq!(refusal(&[Raw::file(&name, b"")]), Refusal::TooLarge(1 << 20));
}

#[test]
fn archives_that_are_cut_changed_or_continued_are_refused() {
    let whole = tar_gz(&[Raw::file("manifest.json", b"{}"), Raw::file("x", &[7; 5000])]);
    assert!(read_archive(&whole, SMALL).is_ok());
    for end in 0..whole.len() {
        assert!(read_archive(&whole[..end], SMALL).is_err(), "cut at {end}");
    }
    let mut longer = whole.clone();
    longer.extend_from_slice(&tar_gz(&[Raw::file("hidden", b"")]));
    assert!(matches!(read_archive(&longer, SMALL), Err(ArchiveError::Broken(_))));
    let zipped = zip(&[Raw::file("manifest.json", b"{}"), Raw::file("x", &[7; 5000])]);
    assert!(read_archive(&zipped, SMALL).is_ok());
    for end in 0..zipped.len() {
        assert!(read_archive(&zipped[..end], SMALL).is_err(), "cut at {end}");
    }
    let before = [b"PK\x03\x04", zipped.as_slice()].concat();
    for longer in [before, [zipped.as_slice(), b"more"].concat(), [zipped.as_slice(), &zipped].concat()] {
        let read = read_archive(&longer, SMALL);
        assert!(matches!(read, Err(ArchiveError::Broken(_))), "{read:?}");
    }
}

#[test]
fn a_zip_that_lies_about_a_size_is_refused() {
    let content = [7; 300];
    let mut zipped = zip(&[Raw::file("x", &content)]);
    // The size in the directory at the end: 24 bytes after its mark.
    let at = zipped.windows(4).rposition(|four| four == b"PK\x01\x02").unwrap() + 24;
    zipped[at..at + 4].copy_from_slice(&100_u32.to_le_bytes());
    assert!(read_archive(&zipped, SMALL).is_err());
}

#[test]
fn archives_without_files_are_refused() {
    assert_eq!(refusal(&[Raw::of(EntryType::Directory, "a/", "")]), Refusal::Empty);
    assert_eq!(refusal(&[]), Refusal::Empty);
}
