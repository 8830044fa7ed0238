use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::{TempDir, tempdir};

use super::*;

const MAX: u64 = 1024 * 1024;
const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn tree_of(root: &Path) -> Result<Digest, FileError> {
    Ok(Hasher::new().tree("tree", root, TreeLimits::default())?.finish())
}

#[test]
fn the_written_form_is_the_known_one_and_strict() {
    assert_eq!(digest_bytes(b"").to_string(), EMPTY);
    assert_eq!(EMPTY.parse(), Ok(digest_bytes(b"")));
    let wrong = [
        &EMPTY[7..],
        &EMPTY[..70],
        &format!("{EMPTY}0"),
        &format!("{EMPTY}00"),
        &EMPTY.to_uppercase(),
        &EMPTY.replace('e', "E"),
        &EMPTY.replace('e', "g"),
        "",
        "sha256:",
    ];
    for text in wrong {
        assert_eq!(text.parse::<Digest>(), Err(DigestError), "{text}");
    }
}

#[test]
fn bytes_that_are_no_text_count_each() {
    let all: BTreeSet<_> = (0..=255_u8).map(|byte| digest_bytes(&[byte])).collect();
    assert_eq!(all.len(), 256);
    assert_ne!(Hasher::new().field("a", b"\xff").finish(), Hasher::new().field("a", "\u{fffd}".as_bytes()).finish());
}

#[test]
fn a_file_counts_by_its_bytes_and_not_as_a_field() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, b"\xfe\xff").unwrap();
    let file = Hasher::new().file("a", &path, MAX).unwrap().finish();
    assert_eq!(file, Hasher::new().digest("a", &digest_bytes(b"\xfe\xff")).finish());
    assert_ne!(file, Hasher::new().field("a", b"\xfe\xff").finish());
    assert_ne!(file, Hasher::new().field("a", digest_bytes(b"\xfe\xff").as_bytes()).finish());
    assert!(matches!(Hasher::new().file("a", &path, 1), Err(FileError::TooLarge { size: 2, max: 1, .. })));
    assert!(matches!(Hasher::new().file("a", folder.path(), 1), Err(FileError::NotRegular { .. })));
    assert!(Hasher::new().file("a", &folder.path().join("none"), 1).is_err());
}

fn sample_tree() -> TempDir {
    let folder = tempdir().unwrap();
    fs::create_dir_all(folder.path().join("lib/deep")).unwrap();
    fs::write(folder.path().join("manifest.json"), b"{}").unwrap();
    fs::write(folder.path().join("lib/a.py"), b"a").unwrap();
    fs::write(folder.path().join("lib/deep/b.py"), b"b").unwrap();
    symlink("../a.py", folder.path().join("lib/deep/link")).unwrap();
    folder
}

#[test]
fn a_tree_does_not_depend_on_where_it_stands() {
    assert_eq!(tree_of(sample_tree().path()).unwrap(), tree_of(sample_tree().path()).unwrap());
}

#[test]
fn every_change_in_a_tree_counts() {
    let changes: [fn(&Path); 10] = [
        |_| (),
        |root| fs::write(root.join("lib/a.py"), b"A").unwrap(),
        |root| fs::write(root.join("lib/new"), b"").unwrap(),
        |root| fs::remove_file(root.join("lib/a.py")).unwrap(),
        |root| fs::rename(root.join("lib/a.py"), root.join("lib/c.py")).unwrap(),
        |root| fs::rename(root.join("lib/a.py"), root.join("a.py")).unwrap(),
        |root| fs::set_permissions(root.join("lib/a.py"), Permissions::from_mode(0o755)).unwrap(),
        |root| fs::create_dir(root.join("empty")).unwrap(),
        |root| {
            fs::remove_file(root.join("lib/deep/link")).unwrap();
            symlink("../deep/b.py", root.join("lib/deep/link")).unwrap();
        },
        |root| {
            fs::remove_file(root.join("lib/deep/link")).unwrap();
            fs::write(root.join("lib/deep/link"), "../a.py").unwrap();
        },
    ];
    let digests: BTreeSet<_> = changes
        .iter()
        .map(|change| {
            let tree = sample_tree();
            change(tree.path());
            tree_of(tree.path()).unwrap()
        })
        .collect();
    assert_eq!(digests.len(), changes.len());
}

#[test]
fn links_that_may_leave_the_tree_are_refused() {
    let refused = ["/etc/passwd", "..", "../outside", "b/../../outside", "b/../x", "./../x", "deep/../../x"];
    for target in refused {
        let tree = sample_tree();
        symlink(target, tree.path().join("link")).unwrap();
        assert!(matches!(tree_of(tree.path()), Err(FileError::Leaves { .. })), "{target}");
    }
    for (link, target) in
        [("link", "."), ("link", "nowhere"), ("lib/link", "../manifest.json"), ("lib/deep/up", "../..")]
    {
        let tree = sample_tree();
        symlink(target, tree.path().join(link)).unwrap();
        assert!(tree_of(tree.path()).is_ok(), "{target}");
    }
}

#[test]
fn special_files_and_too_much_of_anything_are_refused() {
    let tree = sample_tree();
    let limits = |entries, bytes| Hasher::new().tree("t", tree.path(), TreeLimits { entries, bytes });
    assert!(limits(6, 4).is_ok());
    assert!(matches!(limits(5, 4), Err(FileError::TooMany { max: 5, .. })));
    assert!(matches!(limits(6, 3), Err(FileError::TooLarge { max: 3, .. })));
    mknodat(CWD, tree.path().join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert!(matches!(tree_of(tree.path()), Err(FileError::NotRegular { kind: "named pipe", .. })));
    assert!(tree_of(&tree.path().join("none")).is_err());
}

#[test]
fn a_change_of_the_same_size_and_modification_time_is_noticed() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let write = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
    };
    write(b"one");
    // The time is set into the future, so that the file counts as unchanged for long enough to be remembered.
    let digests = FileDigests::new(SystemTime::now() + Duration::from_mins(1));
    assert_eq!(digests.digest(&path, MAX).unwrap(), digest_bytes(b"one"));
    let key = StatKey::of(&fs::metadata(&path).unwrap());
    // Writes again until the file system's clock has ticked.
    let unchanged = |_: &u32| StatKey::of(&fs::metadata(&path).unwrap()) == key;
    (0..100_000).take_while(unchanged).for_each(|_| write(b"two"));
    let changed = StatKey::of(&fs::metadata(&path).unwrap());
    assert_eq!((changed.size, changed.mtime_ns), (key.size, key.mtime_ns));
    assert_ne!(changed.ctime_ns, key.ctime_ns);
    assert_eq!(digests.digest(&path, MAX).unwrap(), digest_bytes(b"two"));
}

#[test]
fn a_file_that_changed_just_now_is_hashed_each_time() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    let digests = FileDigests::new(SystemTime::now());
    for round in 0..100_u8 {
        fs::write(&path, [round]).unwrap();
        assert_eq!(digests.digest(&path, MAX).unwrap(), digest_bytes(&[round]));
    }
    assert!(digests.remembered(&path).is_none());
    digests.advance(SystemTime::now() + Duration::from_secs(3));
    digests.digest(&path, MAX).unwrap();
    assert!(digests.remembered(&path).is_some());
}

#[test]
fn a_remembered_file_is_still_held_to_the_bound_and_may_vanish() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, b"four").unwrap();
    let digests = FileDigests::new(SystemTime::now() + Duration::from_mins(1));
    digests.digest(&path, 4).unwrap();
    assert!(matches!(digests.digest(&path, 3), Err(FileError::TooLarge { .. })));
    fs::remove_file(&path).unwrap();
    assert!(digests.digest(&path, 4).is_err());
}

#[test]
fn a_file_whose_content_does_not_fit_its_size_is_an_error() {
    // The kernel generates this content during the reading; a reader sees a file that grows.
    let digests = FileDigests::new(SystemTime::now());
    assert!(matches!(digests.digest(Path::new("/proc/self/status"), MAX), Err(FileError::Changed { .. })));
}

type Fields = Vec<(String, Vec<u8>)>;

fn digest_of(fields: &Fields) -> Digest {
    let add = |hasher: Hasher, (label, bytes): &(String, Vec<u8>)| hasher.field(label, bytes);
    fields.iter().fold(Hasher::new(), add).finish()
}

fn fields() -> impl Strategy<Value = Fields> {
    prop::collection::vec(("[ab]{0,2}", prop::collection::vec(97_u8..99, 0..3)), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn different_lists_of_fields_have_different_digests(one in fields(), other in fields()) {
        prop_assert_eq!(one == other, digest_of(&one) == digest_of(&other));
    }

    #[test]
    fn the_written_form_can_be_read_back(bytes in any::<Vec<u8>>()) {
        let digest = digest_bytes(&bytes);
        prop_assert_eq!(digest.to_string().parse(), Ok(digest));
        prop_assert_eq!(digest.to_string().len(), 71);
    }

    #[test]
    fn any_flipped_bit_of_a_file_changes_its_digest(mut bytes in prop::collection::vec(any::<u8>(), 1..200), at: prop::sample::Index, bit in 0..8_u8) {
        let folder = tempdir().unwrap();
        let path: PathBuf = folder.path().join("file");
        fs::write(&path, &bytes).unwrap();
        let digests = FileDigests::new(SystemTime::now());
        let before = digests.digest(&path, MAX).unwrap();
        let index = at.index(bytes.len());
        bytes[index] ^= 1_u8 << bit;
        fs::write(&path, &bytes).unwrap();
        prop_assert_ne!(digests.digest(&path, MAX).unwrap(), before);
    }
}
