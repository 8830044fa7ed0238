use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tempfile::{TempDir, tempdir};

use std::os::unix::fs::MetadataExt;

use super::*;
use crate::digest::{FileDigests, TreeLimits, digest_bytes, digest_tree};

const LARGE: usize = 40_000;

type Case = (&'static str, fn(&Path));

struct World(TempDir);

impl World {
    fn new() -> Self {
        let world = Self(tempdir().unwrap());
        fs::write(world.file(), vec![b'x'; LARGE]).unwrap();
        world
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("file")
    }

    fn memory(&self) -> PathBuf {
        self.0.path().join("state/digests")
    }

    /// The time is set into the future, so that every file counts as unchanged for long enough to be remembered.
    fn load(&self) -> FileDigests {
        FileDigests::load(self.memory(), SystemTime::now() + Duration::from_mins(1))
    }

    /// Acts as one process: computes a digest and saves.
    fn ask(&self) -> Digest {
        let digests = self.load();
        let digest = digests.digest(&self.file(), u64::MAX).unwrap();
        digests.save_if_changed();
        digest
    }

    fn text(&self) -> String {
        fs::read_to_string(self.memory()).unwrap()
    }

    /// Replaces a digest in the file, which shows whether the file is used.
    fn mark(&self) {
        let text = self.text().replace(&digest_bytes(&vec![b'x'; LARGE]).hex(), &digest_bytes(b"marked").hex());
        fs::write(self.memory(), text).unwrap();
    }

    fn is_used(&self) -> bool {
        self.load().digest(&self.file(), u64::MAX).unwrap() == digest_bytes(b"marked")
    }
}

#[test]
fn digests_outlive_the_process() {
    let world = World::new();
    assert_eq!(world.ask(), digest_bytes(&vec![b'x'; LARGE]));
    let text = world.text();
    assert_eq!(text.len(), HEADER.len() + LINE);
    assert_eq!(fs::metadata(world.memory()).unwrap().mode() & 0o777, 0o600);
    world.mark();
    assert!(world.is_used());
    assert_eq!(fs::read_dir(world.memory().parent().unwrap()).unwrap().count(), 1, "no temporary file remains");
}

#[test]
fn nothing_is_written_without_need() {
    let world = World::new();
    world.ask();
    let before = fs::metadata(world.memory()).unwrap().ino();
    world.ask();
    assert_eq!(fs::metadata(world.memory()).unwrap().ino(), before);
}

#[test]
fn little_files_are_neither_looked_up_nor_written_down() {
    let world = World::new();
    fs::write(world.file(), vec![b'x'; 32 * 1024]).unwrap();
    world.ask();
    assert!(!world.memory().exists());
    // Reading a folder as a file would fail.
    fs::create_dir_all(world.memory()).unwrap();
    assert_eq!(world.ask(), digest_bytes(&vec![b'x'; 32 * 1024]));
}

#[test]
fn a_file_that_changed_just_now_is_not_written_down() {
    let world = World::new();
    let digests = FileDigests::load(world.memory(), SystemTime::now());
    digests.digest(&world.file(), u64::MAX).unwrap();
    digests.save_if_changed();
    assert!(!world.memory().exists());
}

#[test]
fn a_memory_that_is_not_ours_alone_or_malformed_is_ignored() {
    let spoil: [Case; 10] = [
        ("readable", |path| fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap()),
        ("writable", |path| fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap()),
        ("writable for the group", |path| fs::set_permissions(path, Permissions::from_mode(0o620)).unwrap()),
        ("a link", |path| {
            fs::rename(path, path.with_extension("real")).unwrap();
            symlink(path.with_extension("real"), path).unwrap();
        }),
        ("cut", |path| {
            File::options().write(true).open(path).unwrap().set_len((HEADER.len() + LINE - 1) as u64).unwrap();
        }),
        ("of another form", |path| File::options().write(true).open(path).unwrap().write_all_at(b"x", 0).unwrap()),
        ("not a digest", |path| {
            let at = (HEADER.len() + STATE) as u64;
            File::options().write(true).open(path).unwrap().write_all_at(b"\0", at).unwrap();
        }),
        ("not text", |path| {
            let at = (HEADER.len() + STATE) as u64;
            File::options().write(true).open(path).unwrap().write_all_at(b"\xff", at).unwrap();
        }),
        ("too long", |path| {
            let line = fs::read(path).unwrap().split_off(HEADER.len());
            fs::write(path, [HEADER, &line.repeat(CAPACITY + 1)].concat()).unwrap();
        }),
        ("empty", |path| fs::write(path, b"").unwrap()),
    ];
    for (name, spoil) in spoil {
        let world = World::new();
        world.ask();
        world.mark();
        assert!(world.is_used());
        spoil(&world.memory());
        assert!(!world.is_used(), "{name}");
    }
}

#[test]
fn a_memory_of_somebody_else_is_ignored() {
    let world = World::new();
    world.ask();
    world.mark();
    match std::os::unix::fs::chown(world.memory(), Some(12_345), None) {
        Ok(()) => assert!(!world.is_used()),
        Err(_) => eprintln!("skipped: only root can give files away"),
    }
}

#[test]
fn a_memory_that_cannot_be_saved_is_silent() {
    let world = World::new();
    fs::write(world.0.path().join("state"), b"a file where a folder is needed").unwrap();
    assert_eq!(world.ask(), digest_bytes(&vec![b'x'; LARGE]));
    assert_eq!(world.ask(), digest_bytes(&vec![b'x'; LARGE]));
}

#[test]
fn the_memory_is_bounded_and_forgets_the_oldest() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("digests");
    let key = |ino: usize| StatKey { dev: 1, ino: ino as u64, size: 2, mtime_ns: -3, ctime_ns: i64::MIN };
    let digest = |ino: usize| digest_bytes(&ino.to_le_bytes());
    for batch in [0..CAPACITY - 1, CAPACITY..CAPACITY + 10] {
        let memory = Memory::new(path.clone());
        batch.clone().for_each(|ino| memory.remember(&key(ino), &digest(ino)));
        memory.save_if_changed();
    }
    assert_eq!(fs::read(&path).unwrap().len(), HEADER.len() + CAPACITY * LINE);
    let memory = Memory::new(path);
    assert!((CAPACITY..CAPACITY + 10).all(|ino| memory.recall(&key(ino)) == Some(digest(ino))));
    let forgotten = (0..CAPACITY - 1).filter(|ino| memory.recall(&key(*ino)).is_none()).count();
    assert_eq!(forgotten, 9);
    assert_eq!(memory.recall(&StatKey { ctime_ns: 0, ..key(CAPACITY) }), None);
}

#[test]
fn a_new_state_of_a_file_replaces_the_old_one() {
    let world = World::new();
    world.ask();
    fs::write(world.file(), vec![b'y'; LARGE + 1]).unwrap();
    assert_eq!(world.ask(), digest_bytes(&vec![b'y'; LARGE + 1]));
    assert_eq!(world.text().len(), HEADER.len() + LINE);
}

#[test]
fn writers_at_once_leave_a_whole_memory() {
    let world = World::new();
    std::thread::scope(|scope| {
        for writer in 0..20_u8 {
            let world = &world;
            scope.spawn(move || {
                let file = world.0.path().join(format!("file{writer}"));
                fs::write(&file, vec![writer; LARGE]).unwrap();
                let digests = world.load();
                digests.digest(&file, u64::MAX).unwrap();
                digests.save_if_changed();
            });
        }
    });
    assert!(read(&world.memory()).is_some_and(|lines| !lines.is_empty()));
}

#[test]
fn a_folder_is_remembered_as_a_whole() {
    let world = World::new();
    let tree = world.0.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for place in 0..10 {
        fs::write(tree.join(place.to_string()), b"little").unwrap();
    }
    let limits = TreeLimits::default();
    let ask = |limits| {
        let digests = world.load();
        let digest = digests.tree(&tree, limits);
        digests.save_if_changed();
        digest
    };
    let digest = digest_tree(&tree, limits).unwrap();
    assert_eq!(ask(limits).unwrap(), digest);
    assert_eq!(world.text().len(), HEADER.len() + LINE);
    fs::write(world.memory(), world.text().replace(&digest.hex(), &digest_bytes(b"marked").hex())).unwrap();
    assert_eq!(ask(limits).unwrap(), digest_bytes(b"marked"));
    assert!(ask(TreeLimits { bytes: 59, ..limits }).is_err());
    assert!(ask(TreeLimits { entries: 9, ..limits }).is_err());
}

#[derive(Debug, Clone)]
enum Edit {
    /// Writes a byte at a position and keeps size and modification time.
    InPlace(usize, u8),
    Append(u8),
    Truncate(usize),
    /// Replaces the file by another one of the same size and modification time.
    Replace(u8),
    /// Changes only the modification time.
    Touch,
    /// Changes nothing; a new process reads the file.
    Nothing,
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (0..LARGE, any::<u8>()).prop_map(|(at, byte)| Edit::InPlace(at, byte)),
        any::<u8>().prop_map(Edit::Append),
        (0..LARGE).prop_map(Edit::Truncate),
        any::<u8>().prop_map(Edit::Replace),
        Just(Edit::Touch),
        Just(Edit::Nothing),
    ]
}

fn apply(path: &Path, edit: &Edit) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let size = fs::metadata(path).unwrap().len();
    let file = File::options().write(true).open(path).unwrap();
    match *edit {
        Edit::InPlace(at, byte) if (at as u64) < size => file.write_all_at(&[byte], at as u64).unwrap(),
        Edit::InPlace(..) | Edit::Nothing => return,
        Edit::Append(byte) => file.write_all_at(&[byte], size).unwrap(),
        Edit::Truncate(to) => file.set_len(size.min(to as u64)).unwrap(),
        Edit::Replace(byte) => {
            let other = path.with_extension("new");
            fs::write(&other, vec![byte; usize::try_from(size).unwrap()]).unwrap();
            File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
            return fs::rename(other, path).unwrap();
        }
        Edit::Touch => return file.set_modified(SystemTime::UNIX_EPOCH).unwrap(),
    }
    file.set_modified(modified).unwrap();
}

/// A `now` in the future disables the rule of two seconds, so each edit must at least happen in a new clock tick.
fn until_the_clock_ticks(folder: &Path) {
    let probe = folder.join("probe");
    let now = || {
        fs::write(&probe, b"").unwrap();
        fs::metadata(&probe).unwrap().modified().unwrap()
    };
    let before = now();
    while now() == before {}
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_digest_is_returned_for_changed_content(edits in prop::collection::vec(edits(), 1..6)) {
        let world = World::new();
        let tree = world.0.path().join("tree");
        fs::create_dir(&tree).unwrap();
        fs::hard_link(world.file(), tree.join("file")).unwrap();
        let limits = TreeLimits::default();
        world.ask();
        for edit in edits {
            until_the_clock_ticks(world.0.path());
            apply(&world.file(), &edit);
            prop_assert_eq!(world.ask(), digest_bytes(&fs::read(world.file()).unwrap()), "{:?}", edit);
            let digests = world.load();
            prop_assert_eq!(digests.tree(&tree, limits).unwrap(), digest_tree(&tree, limits).unwrap(), "{:?}", edit);
            digests.save_if_changed();
        }
    }
}
