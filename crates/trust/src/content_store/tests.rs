use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use ollm_store::{digest_bytes, digest_tree};
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::{TempDir, tempdir};

use super::*;

/// A folder with two scripts and a store beside it.
struct World {
    folder: TempDir,
    store: ContentStore,
}

impl World {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        let store = ContentStore::new(folder.path().join("home/store"));
        let world = Self { folder, store };
        fs::create_dir_all(world.base().join("lib/deep")).unwrap();
        world.write("guard.sh", b"#!/bin/sh\nexit 0\n", 0o755);
        world.write("lib/deep/rules.json", b"{}", 0o664);
        world
    }

    fn base(&self) -> PathBuf {
        self.folder.path().join("hooks")
    }

    fn root(&self) -> &Path {
        &self.store.root
    }

    fn write(&self, place: &str, bytes: &[u8], mode: u32) {
        let path = self.base().join(place);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }

    fn piece(&self, place: &str) -> StoredFile {
        let path = self.base().join(place);
        StoredFile { digest: digest_bytes(&fs::read(&path).unwrap()), path }
    }

    fn pieces(&self) -> Vec<StoredFile> {
        vec![self.piece("guard.sh"), self.piece("lib/deep/rules.json")]
    }

    fn keep(&self) -> Result<StoredCopy, ContentStoreError> {
        self.store.keep(&self.base(), &self.pieces())
    }

    fn names(&self) -> Vec<String> {
        names_in(self.root())
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Everything in a folder: place, mode, and content (of a link its text).
fn content_of(folder: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let listed = tree::list(folder, 1000).unwrap();
    let show = |(entry, meta): (Entry, Metadata)| {
        let bytes = match &entry.kind {
            EntryKind::Folder => Vec::new(),
            EntryKind::Link(target) => target.to_str().unwrap().as_bytes().to_vec(),
            EntryKind::File { .. } => fs::read(folder.join(&entry.path)).unwrap(),
        };
        (entry.path.to_str().unwrap().to_owned(), meta.mode() & 0o7777, bytes)
    };
    listed.into_iter().map(show).collect()
}

fn expected() -> Vec<(String, u32, Vec<u8>)> {
    vec![
        ("guard.sh".to_owned(), 0o500, b"#!/bin/sh\nexit 0\n".to_vec()),
        ("lib".to_owned(), 0o500, Vec::new()),
        ("lib/deep".to_owned(), 0o500, Vec::new()),
        ("lib/deep/rules.json".to_owned(), 0o400, b"{}".to_vec()),
    ]
}

fn is_root() -> bool {
    current_uid() == 0
}

#[test]
fn a_copy_has_the_bytes_the_layout_and_the_executable_bits() {
    let world = World::new();
    let kept = world.keep().unwrap();
    assert_eq!(content_of(&kept.folder), expected());
    assert_eq!(fs::metadata(&kept.folder).unwrap().mode() & 0o7777, 0o500);
    assert_eq!(fs::metadata(world.root()).unwrap().mode() & 0o7777, 0o700);
    assert_eq!(world.keep().unwrap(), kept);
    assert_eq!(world.names().len(), 2, "the copy and the lock: {:?}", world.names());
}

#[test]
fn a_copy_is_named_by_its_content_alone() {
    let (one, other) = (World::new(), World::new());
    let name = |world: &World| ContentStore::name_of(&world.base(), &world.pieces()).unwrap();
    assert_eq!(one.keep().unwrap().folder.file_name().unwrap().to_str().unwrap(), name(&one));
    assert_eq!(name(&one), name(&other));
    let twice: Vec<_> = one.pieces().into_iter().rev().chain(one.pieces()).collect();
    assert_eq!(ContentStore::name_of(&one.base(), &twice).unwrap(), name(&one));
    let tree = digest_tree(&one.base(), TreeLimits::default()).unwrap();
    assert_eq!(ContentStore::name_of_tree(&tree), name(&one));
    other.write("guard.sh", b"#!/bin/sh\nexit 0\n", 0o644);
    assert_ne!(name(&one), name(&other));
}

#[test]
fn only_what_is_kept_has_a_path_in_the_copy() {
    let world = World::new();
    world.write("undeclared", b"", 0o644);
    let kept = world.keep().unwrap();
    let base = world.base();
    assert_eq!(kept.path_of(&base.join("guard.sh")), Some(kept.folder.join("guard.sh")));
    assert_eq!(kept.path_of(&base.join("lib")), Some(kept.folder.join("lib")));
    assert_eq!(kept.path_of(&base), Some(kept.folder.clone()));
    for other in ["undeclared", "lib/../guard.sh", "../hooks/guard.sh", "/etc/passwd"] {
        assert_eq!(kept.path_of(&base.join(other)), None, "{other}");
    }
}

#[test]
fn pieces_outside_their_folder_are_refused() {
    let world = World::new();
    let base = world.base();
    for path in [base.join("../hooks/guard.sh"), base.join("lib/../guard.sh"), base.clone(), "/etc/passwd".into()] {
        let kept = world.store.keep(&base, &[StoredFile { path, digest: digest_bytes(b"") }]);
        assert!(matches!(kept, Err(ContentStoreError::Outside { .. })), "{kept:?}");
    }
}

#[test]
fn a_link_is_kept_as_the_file_it_leads_to() {
    let world = World::new();
    let elsewhere = world.folder.path().join("elsewhere");
    fs::write(&elsewhere, b"linked").unwrap();
    symlink(&elsewhere, world.base().join("link")).unwrap();
    let kept = world.store.keep(&world.base(), &[world.piece("link")]).unwrap();
    assert_eq!(content_of(&kept.folder), [("link".to_owned(), 0o400, b"linked".to_vec())]);
}

#[test]
fn content_that_was_not_approved_is_not_copied() {
    let world = World::new();
    let mut pieces = world.pieces();
    pieces[1].digest = digest_bytes(b"something else");
    let path = pieces[1].path.clone();
    let error = world.store.keep(&world.base(), &pieces).unwrap_err();
    assert!(matches!(&error, ContentStoreError::Changed { path: found } if *found == path), "{error}");
    assert!(error.to_string().ends_with("is no longer what was approved; look through it and approve it again"));
    assert_eq!(world.names(), [".vault.lock"]);
    let twice = [world.piece("guard.sh"), StoredFile { digest: digest_bytes(b""), ..world.piece("guard.sh") }];
    assert!(matches!(world.store.keep(&world.base(), &twice), Err(ContentStoreError::Changed { .. })));
}

#[test]
fn what_is_written_while_it_is_copied_is_never_kept() {
    let world = World::new();
    let (good, evil) = (vec![b'g'; 100_000], vec![b'e'; 100_000]);
    let path = world.base().join("guard.sh");
    let pieces = [StoredFile { path: path.clone(), digest: digest_bytes(&good) }];
    world.write("guard.sh", &good, 0o755);
    let done = AtomicBool::new(false);
    let mut refused = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            // In place, half of it at a time.
            let file = File::options().write(true).open(&path).unwrap();
            while !done.load(Ordering::Relaxed) {
                for (bytes, at) in [(&evil, 0), (&evil, 50_000), (&good, 0), (&good, 50_000)] {
                    let half = bytes.get(..50_000).unwrap();
                    std::os::unix::fs::FileExt::write_all_at(&file, half, at).unwrap();
                }
            }
        });
        for _ in 0..100 {
            match world.store.keep(&world.base(), &pieces) {
                Ok(kept) => assert!(fs::read(kept.folder.join("guard.sh")).unwrap() == good),
                Err(ContentStoreError::Changed { .. }) => refused += 1,
                Err(other) => panic!("{other}"),
            }
            world.store.sweep(&|_| false);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(refused > 0, "the writer was never noticed");
}

/// Does something to a closed file or folder and closes it again.
fn pry(path: &Path, open: u32, change: impl FnOnce()) {
    let mode = fs::metadata(path).unwrap().mode() & 0o7777;
    fs::set_permissions(path, Permissions::from_mode(open)).unwrap();
    change();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn overwrite(path: &Path, bytes: &[u8]) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    pry(path, 0o700, || {
        fs::write(path, bytes).unwrap();
        File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    });
}

fn in_place_of(path: &Path, put: impl FnOnce()) {
    pry(path.parent().unwrap(), 0o700, || {
        fs::rename(path, path.with_extension("away")).unwrap();
        put();
        remove(&path.with_extension("away"));
    });
}

type Case = (&'static str, fn(&Path));

const TAMPERINGS: [Case; 16] = [
    ("bytes", |copy| overwrite(&copy.join("guard.sh"), b"#!/bin/sh\nexit 1\n")),
    ("truncated", |copy| overwrite(&copy.join("guard.sh"), b"")),
    ("bytes below", |copy| overwrite(&copy.join("lib/deep/rules.json"), b"[]")),
    ("extra file", |copy| pry(copy, 0o700, || fs::write(copy.join("sitecustomize.py"), b"evil").unwrap())),
    ("extra file below", |copy| {
        let lib = copy.join("lib");
        pry(&lib, 0o700, || fs::write(lib.join("evil"), b"").unwrap());
    }),
    ("extra folder", |copy| pry(copy, 0o700, || fs::create_dir(copy.join("__pycache__")).unwrap())),
    ("extra pipe", |copy| {
        pry(copy, 0o700, || mknodat(CWD, copy.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap());
    }),
    ("missing file", |copy| pry(copy, 0o700, || fs::remove_file(copy.join("guard.sh")).unwrap())),
    ("writable file", |copy| set_mode(&copy.join("guard.sh"), 0o777)),
    ("writable for the group", |copy| set_mode(&copy.join("guard.sh"), 0o520)),
    ("not executable", |copy| set_mode(&copy.join("guard.sh"), 0o400)),
    ("writable folder", |copy| set_mode(copy, 0o777)),
    ("writable folder below", |copy| set_mode(&copy.join("lib"), 0o570)),
    ("link in place of a file", |copy| {
        let script = copy.join("guard.sh");
        let evil = copy.parent().unwrap().join("evil");
        fs::copy(&script, &evil).unwrap();
        in_place_of(&script, || symlink(&evil, &script).unwrap());
    }),
    ("link in place of the folder", |copy| {
        let evil = copy.with_extension("evil");
        fs::rename(copy, &evil).unwrap();
        symlink(&evil, copy).unwrap();
    }),
    ("file in place of the folder", |copy| {
        remove(copy);
        fs::write(copy, b"").unwrap();
    }),
];

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_tampered_copy_is_never_used() {
    for (name, tamper) in TAMPERINGS {
        let mut world = World::new();
        // As seen from the future everything is settled, hence remembered.
        let digests = Arc::new(FileDigests::new(SystemTime::now() + Duration::from_mins(1)));
        world.store = world.store.clone().remembering(digests);
        let kept = world.keep().unwrap();
        world.keep().unwrap();
        until_the_clock_ticks(world.folder.path());
        tamper(&kept.folder);
        assert_eq!(world.keep().unwrap(), kept, "{name}");
        assert_eq!(content_of(&kept.folder), expected(), "{name}");
        let folder = fs::symlink_metadata(&kept.folder).unwrap();
        assert!(folder.is_dir() && folder.mode() & 0o7777 == 0o500, "{name}");
        assert!(
            !world.names().iter().any(|name| name.starts_with(".new-") || name.starts_with(".old-")),
            "{name}: {:?}",
            world.names()
        );
    }
}

/// File systems tick in milliseconds; a change must not fall into the tick of the one before.
fn until_the_clock_ticks(folder: &Path) {
    let probe = folder.join("probe");
    let now = || {
        fs::write(&probe, b"").unwrap();
        fs::metadata(&probe).unwrap().modified().unwrap()
    };
    let before = now();
    while now() == before {}
}

#[test]
fn a_tampered_copy_of_changed_content_is_gone() {
    let world = World::new();
    let pieces = world.pieces();
    let kept = world.keep().unwrap();
    overwrite(&kept.folder.join("guard.sh"), b"evil");
    world.write("guard.sh", b"other", 0o755);
    assert!(matches!(world.store.keep(&world.base(), &pieces), Err(ContentStoreError::Changed { .. })));
    assert_eq!(world.names(), [".vault.lock"]);
}

#[test]
fn a_copy_of_somebody_else_is_never_used() {
    if !is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let victims: [fn(&Path) -> PathBuf; 3] = [Path::to_owned, |copy| copy.join("guard.sh"), |copy| copy.join("lib")];
    for victim in victims {
        let world = World::new();
        let kept = world.keep().unwrap();
        std::os::unix::fs::lchown(victim(&kept.folder), Some(65_534), None).unwrap();
        assert_eq!(world.keep().unwrap(), kept);
        assert_eq!(fs::metadata(victim(&kept.folder)).unwrap().uid(), 0);
    }
    let world = World::new();
    world.keep().unwrap();
    std::os::unix::fs::lchown(world.root(), Some(65_534), None).unwrap();
    let error = world.keep().unwrap_err().to_string();
    assert!(error.contains("belongs to uid 65534, not to you"), "{error}");
}

#[test]
fn a_store_that_others_can_enter_is_not_used() {
    for (mode, words) in [(0o777, "is writable by others (mode 0777)"), (0o755, "is open to others (mode 0755)")] {
        let world = World::new();
        world.keep().unwrap();
        set_mode(world.root(), mode);
        let error = world.keep().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        set_mode(world.root(), 0o700);
        world.keep().unwrap();
    }
}

#[test]
fn something_else_in_place_of_the_store_is_an_error() {
    let world = World::new();
    fs::create_dir_all(world.root().parent().unwrap()).unwrap();
    fs::write(world.root(), b"").unwrap();
    assert!(matches!(world.keep(), Err(ContentStoreError::NotFolder { .. })));
    fs::remove_file(world.root()).unwrap();
    let elsewhere = world.folder.path().join("elsewhere");
    DirBuilder::new().mode(0o700).create(&elsewhere).unwrap();
    symlink(&elsewhere, world.root()).unwrap();
    assert!(matches!(world.keep(), Err(ContentStoreError::NotFolder { kind: "symbolic link", .. })));
    world.store.sweep(&|_| false);
    assert_eq!(names_in(&elsewhere), [""; 0]);
}

#[test]
fn many_at_once_end_in_one_folder() {
    let world = World::new();
    let all: Vec<StoredCopy> = thread::scope(|scope| {
        let threads: Vec<_> = (0..50).map(|_| scope.spawn(|| world.keep().unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(all.iter().all(|kept| *kept == all[0]));
    assert_eq!(content_of(&all[0].folder), expected());
    assert_eq!(world.names().len(), 2, "the copy and the lock: {:?}", world.names());
}

/// Runs one of the ignored tests below in a process of its own.
fn child(name: &str, script: &str, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{script}\nexec \"$0\" \"$@\"")]).arg(env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--test-threads=1", &format!("content_store::tests::{name}")]);
    command.env("OLLM_STORE_TEST_PATH", folder).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

#[test]
#[ignore = "run in a process of its own by the test below"]
fn child_that_keeps_for_ever() {
    let Some(folder) = env::var_os("OLLM_STORE_TEST_PATH") else { return };
    let folder = Path::new(&folder);
    let store = ContentStore::new(folder.join("store"));
    let digest = digest_tree(&folder.join("tree"), TreeLimits::default()).unwrap();
    loop {
        store.keep_tree(&folder.join("tree"), &digest, TreeLimits::default()).unwrap();
        fs::write(folder.join("round"), b"").unwrap();
        store.sweep(&|_| false);
    }
}

#[test]
fn a_kill_at_any_moment_leaves_nothing_half_used() {
    let folder = tempdir().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for place in 0..40_u8 {
        fs::write(tree.join(place.to_string()), vec![place; 20_000]).unwrap();
    }
    let digest = digest_tree(&tree, TreeLimits::default()).unwrap();
    let root = folder.path().join("store");
    for round in 0..12_u64 {
        let mut child = child("child_that_keeps_for_ever", "", folder.path()).spawn().unwrap();
        let _ = fs::remove_file(folder.path().join("round"));
        while !folder.path().join("round").exists() {
            thread::sleep(Duration::from_millis(1));
        }
        // Different moments of the cycle, not a wait for something.
        thread::sleep(Duration::from_micros(1300 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        for name in names_in(&root).iter().filter(|name| is_copy(name)) {
            assert_eq!(digest_tree(&root.join(name), TreeLimits::default()).unwrap(), digest);
        }
    }
    let store = ContentStore::new(root.clone());
    let kept = store.keep_tree(&tree, &digest, TreeLimits::default()).unwrap();
    assert_eq!(digest_tree(&kept.folder, TreeLimits::default()).unwrap(), digest);
    store.sweep(&|_| true);
    assert_eq!(names_in(&root), [".vault.lock".to_owned(), ContentStore::name_of_tree(&digest)]);
}

#[test]
#[ignore = "run in a process of its own by the test below"]
fn child_on_a_bad_disk() {
    let Some(folder) = env::var_os("OLLM_STORE_TEST_PATH") else { return };
    let folder = Path::new(&folder);
    let piece = |name: &str| {
        let path = folder.join("hooks").join(name);
        StoredFile { digest: digest_bytes(&fs::read(&path).unwrap()), path }
    };
    let keep =
        |root: &str, name: &str| ContentStore::new(folder.join(root)).keep(&folder.join("hooks"), &[piece(name)]);
    let full = keep("disk/store", "large").unwrap_err().to_string();
    assert!(full.contains("free some space and try again"), "{full}");
    assert_eq!(names_in(&folder.join("disk/store")), [".vault.lock"]);
    let kept = keep("disk/store", "small").unwrap();
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(folder.join("disk")).status().unwrap();
    assert!(remounted.success());
    assert_eq!(keep("disk/store", "small").unwrap(), kept, "what is there can be used");
    for root in ["disk/store", "disk/other"] {
        let error = keep(root, "other").unwrap_err().to_string();
        assert!(error.contains("its file system is read-only"), "{error}");
    }
    ContentStore::new(folder.join("disk/store")).sweep(&|_| false);
    assert_eq!(keep("disk/store", "small").unwrap(), kept);
}

#[test]
fn a_full_or_read_only_disk_is_an_error_that_names_the_way_out() {
    let may_mount = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
    if !may_mount.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no right to mount a small disk");
        return;
    }
    let folder = tempdir().unwrap();
    fs::create_dir(folder.path().join("hooks")).unwrap();
    fs::create_dir(folder.path().join("disk")).unwrap();
    for (name, size) in [("small", 10), ("other", 11), ("large", 1_000_000)] {
        fs::write(folder.path().join("hooks").join(name), vec![b'x'; size]).unwrap();
    }
    let mount = "mount -t tmpfs -o size=256k tmpfs \"$OLLM_STORE_TEST_PATH/disk\" || exit 9";
    let inner = child("child_on_a_bad_disk", mount, folder.path());
    let status = Command::new("unshare")
        .arg("-m")
        .arg(inner.get_program())
        .args(inner.get_args())
        .env("OLLM_STORE_TEST_PATH", folder.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn a_script_that_imports_a_declared_neighbour_runs_from_the_copy() {
    let world = World::new();
    world.write(
        "main.py",
        b"import sys; sys.dont_write_bytecode = True\nfrom lib import rules\nprint(rules.VALUE)\n",
        0o755,
    );
    world.write("lib/rules.py", b"VALUE = 'approved'\n", 0o644);
    let pieces = [world.piece("main.py"), world.piece("lib/rules.py")];
    let kept = world.store.keep(&world.base(), &pieces).unwrap();
    world.write("lib/rules.py", b"VALUE = 'changed'\n", 0o644);
    let script = kept.path_of(&world.base().join("main.py")).unwrap();
    match Command::new("python3").arg(script).current_dir("/").output() {
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stdout), "approved\n", "{output:?}"),
        Err(error) => eprintln!("skipped: no python3 ({error})"),
    }
    let again = [pieces[0].clone(), pieces[1].clone()];
    assert_eq!(world.store.keep(&world.base(), &again).unwrap(), kept, "running it changed nothing");
}

fn sample_tree(folder: &Path) -> PathBuf {
    let root = folder.join("extension");
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    fs::write(root.join("manifest.json"), b"{}").unwrap();
    fs::write(root.join("bin/run"), b"#!/bin/sh\n").unwrap();
    fs::set_permissions(root.join("bin/run"), Permissions::from_mode(0o755)).unwrap();
    symlink("../manifest.json", root.join("bin/link")).unwrap();
    root
}

#[test]
fn a_whole_folder_is_kept_with_its_links() {
    let world = World::new();
    let root = sample_tree(world.folder.path());
    let limits = TreeLimits::default();
    let digest = digest_tree(&root, limits).unwrap();
    let kept = world.store.keep_tree(&root, &digest, limits).unwrap();
    let entry = |place: &str, mode, bytes: &[u8]| (place.to_owned(), mode, bytes.to_vec());
    let all = [
        entry("bin", 0o500, b""),
        entry("bin/link", 0o777, b"../manifest.json"),
        entry("bin/run", 0o500, b"#!/bin/sh\n"),
        entry("empty", 0o500, b""),
        entry("manifest.json", 0o400, b"{}"),
    ];
    assert_eq!(content_of(&kept.folder), all);
    assert_eq!(fs::read(kept.path_of(&root.join("bin/link")).unwrap()).unwrap(), b"{}");
    remove(&root);
    assert_eq!(world.store.keep_tree(&root, &digest, limits).unwrap(), kept, "the copy does not need the original");
}

#[test]
fn a_whole_folder_that_is_not_the_approved_one_is_refused() {
    let world = World::new();
    let limits = TreeLimits::default();
    let cases: [Case; 4] = [
        ("no longer what was approved", |root| fs::write(root.join("bin/run"), b"#!/bin/ps\n").unwrap()),
        ("no longer what was approved", |root| fs::write(root.join("new"), b"").unwrap()),
        ("no longer what was approved", |root| set_mode(&root.join("bin/run"), 0o644)),
        ("may lead out of its folder", |root| symlink("/etc/passwd", root.join("out")).unwrap()),
    ];
    for (words, change) in cases {
        let folder = tempdir().unwrap();
        let root = sample_tree(folder.path());
        let digest = digest_tree(&root, limits).unwrap();
        change(&root);
        let error = world.store.keep_tree(&root, &digest, limits).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(world.names(), [".vault.lock"]);
    }
    let root = sample_tree(world.folder.path());
    let digest = digest_tree(&root, limits).unwrap();
    let small = TreeLimits { bytes: 3, ..limits };
    let error = world.store.keep_tree(&root, &digest, small).unwrap_err();
    assert!(matches!(error, ContentStoreError::File(FileError::TooLarge { max: 3, .. })), "{error}");
}

#[test]
fn a_sweep_removes_what_nobody_wants() {
    let world = World::new();
    world.store.sweep(&|_| false);
    assert!(!world.root().exists());
    let wanted = world.keep().unwrap();
    let other = world.store.keep(&world.base(), &[world.piece("guard.sh")]).unwrap();
    fs::create_dir(world.root().join(".new-left")).unwrap();
    fs::write(world.root().join("sha256-notes"), b"mine").unwrap();
    let wanted_name = ContentStore::name_of(&world.base(), &world.pieces()).unwrap();
    world.store.sweep(&|name| name == wanted_name);
    assert!(wanted.folder.exists());
    assert!(!other.folder.exists());
    let mut names = vec![".vault.lock".to_owned(), wanted_name, "sha256-notes".to_owned()];
    names.sort();
    assert_eq!(world.names(), names);
}

/// Files by place: up to two folders deep, with bytes and executable bit.
fn layouts() -> impl Strategy<Value = BTreeMap<String, (Vec<u8>, bool)>> {
    let content = (prop::collection::vec(any::<u8>(), 0..200), any::<bool>());
    prop::collection::btree_map("([d-f]/){0,2}[a-c]", content, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_copy_holds_exactly_the_pieces(files in layouts()) {
        let folder = tempdir().unwrap();
        let base = folder.path().join("base");
        let mut pieces = Vec::new();
        for (place, (bytes, executable)) in &files {
            let path = base.join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, bytes).unwrap();
            set_mode(&path, if *executable { 0o755 } else { 0o644 });
            pieces.push(StoredFile { digest: digest_bytes(bytes), path });
        }
        let store = ContentStore::new(folder.path().join("store"));
        let kept = store.keep(&base, &pieces).unwrap();
        let found = content_of(&kept.folder).into_iter().filter(|(place, ..)| !kept.folder.join(place).is_dir());
        let wanted = files.into_iter().map(|(place, (bytes, executable))| (place, mode_for(executable), bytes));
        prop_assert_eq!(found.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
        prop_assert_eq!(store.keep(&base, &pieces).unwrap(), kept);
    }
}
