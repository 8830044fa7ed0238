use std::env;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::tempdir;

use super::*;

const MAX: u64 = 1024 * 1024;

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn append(path: &Path, byte: u8) {
    update(path, MAX, |old| {
        let mut bytes = old.unwrap_or_default();
        bytes.push(byte);
        Ok::<_, FileError>(Some(bytes))
    })
    .unwrap();
}

#[test]
fn what_is_written_is_read_and_belongs_to_its_owner_only() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a/b/file");
    write_atomic(&path, b"one").unwrap();
    write_atomic(&path, b"two").unwrap();
    assert_eq!(read_bounded(&path, 3).unwrap(), Some(b"two".to_vec()));
    assert_eq!(mode_of(&path), 0o600);
    assert_eq!(mode_of(&folder.path().join("a")), 0o700);
    assert_eq!(mode_of(&folder.path().join("a/b")), 0o700);
    assert_eq!(names_in(&folder.path().join("a/b")), ["file"]);
}

#[test]
fn a_missing_file_is_none() {
    let folder = tempdir().unwrap();
    assert_eq!(read_bounded(&folder.path().join("none"), MAX).unwrap(), None);
    assert_eq!(read_bounded(&folder.path().join("no/folder"), MAX).unwrap(), None);
}

#[test]
fn a_file_over_the_bound_is_an_error_with_its_size() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("big");
    fs::write(&path, b"12345").unwrap();
    assert_eq!(read_bounded(&path, 5).unwrap(), Some(b"12345".to_vec()));
    let error = read_bounded(&path, 4).unwrap_err();
    assert!(matches!(error, FileError::TooLarge { size: 5, max: 4, .. }));
    assert!(error.to_string().contains("big has 5 bytes"), "{error}");
    // The file reports a size of zero, but its content continues.
    assert!(matches!(read_bounded(Path::new("/proc/self/status"), 4).unwrap_err(), FileError::TooLarge { .. }));
}

#[test]
fn pipes_sockets_devices_and_folders_are_refused_at_once() {
    let folder = tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let refused =
        [(&*pipe, "named pipe"), (&socket, "socket"), (Path::new("/dev/zero"), "device"), (folder.path(), "folder")];
    for (path, expected) in refused {
        match read_bounded(path, MAX).unwrap_err() {
            FileError::NotRegular { kind, .. } => assert_eq!(kind, expected),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_pipe_in_place_of_the_lock_does_not_hang() {
    let folder = tempdir().unwrap();
    mknodat(CWD, folder.path().join(".file.lock"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let path = folder.path().join("file");
    assert!(matches!(Lock::acquire(&path).err(), Some(FileError::NotRegular { .. })));
}

#[test]
fn what_a_killed_writer_left_beside_a_file_of_another_program_is_removed() {
    let folder = tempdir().unwrap();
    let names = [".f.0123456789abcdef.tmp", ".f.0123456789abcdee.tmp", ".f.tmp", ".g.0123456789abcdef.tmp"];
    let old = std::time::SystemTime::now() - Duration::from_mins(2);
    for name in names {
        let file = File::create(folder.path().join(name)).unwrap();
        // The second one belongs to a living writer.
        if name != names[1] {
            file.set_modified(old).unwrap();
        }
    }
    replace_through_links(&folder.path().join("f"), b"new", 0o644).unwrap();
    assert_eq!(names_in(folder.path()), [".f.0123456789abcdee.tmp", ".f.tmp", ".g.0123456789abcdef.tmp", "f"]);
}

#[test]
fn links_are_read_through_but_never_written_through() {
    let folder = tempdir().unwrap();
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    fs::write(&target, b"precious").unwrap();
    symlink(&target, &link).unwrap();
    assert_eq!(read_bounded(&link, MAX).unwrap(), Some(b"precious".to_vec()));
    assert!(matches!(write_atomic(&link, b"x"), Err(FileError::Link { .. })));
    let updated = update(&link, MAX, |_| Ok::<_, FileError>(Some(b"x".to_vec())));
    assert!(matches!(updated, Err(FileError::Link { .. })));
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn planted_links_for_lock_and_temporary_file_are_not_followed() {
    let folder = tempdir().unwrap();
    let (victim, path) = (folder.path().join("victim"), folder.path().join("file"));
    fs::write(&victim, b"precious").unwrap();
    symlink(&victim, folder.path().join(".file.tmp")).unwrap();
    append(&path, b'a');
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(&path).unwrap(), b"a");
    fs::remove_file(folder.path().join(".file.lock")).unwrap();
    symlink(&victim, folder.path().join(".file.lock")).unwrap();
    assert!(matches!(Lock::acquire(&path).err(), Some(FileError::Link { .. })));
}

#[test]
fn a_failed_write_leaves_nothing_behind() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("inside"), b"x").unwrap();
    assert!(write_atomic(&path, b"new").is_err());
    assert_eq!(names_in(folder.path()), ["file"]);
    assert!(write_atomic(Path::new("/proc/nothing/here"), b"new").is_err());
    assert!(write_atomic(Path::new("/"), b"new").is_err());
}

#[test]
fn a_refused_change_leaves_the_file_alone() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    append(&path, b'a');
    let inode = fs::metadata(&path).unwrap().ino();
    let error = update(&path, MAX, |_| Err(FileError::Changed { path: PathBuf::new() })).unwrap_err();
    assert!(matches!(error, FileError::Changed { .. }));
    update(&path, MAX, |_| Ok::<_, FileError>(None)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
}

#[test]
fn readers_never_see_a_torn_file() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    write_atomic(&path, &[0; 10_000]).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let bytes = read_bounded(&path, MAX).unwrap().unwrap();
                    assert!(bytes.len() >= 10_000 && bytes.windows(2).all(|pair| pair[0] == pair[1]));
                }
            });
        }
        let writers: Vec<_> = (1..=2_u8)
            .map(|writer| {
                let path = &path;
                scope
                    .spawn(move || (0..50).for_each(|round| write_atomic(path, &vec![writer; 10_000 + round]).unwrap()))
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(names_in(folder.path()), ["file"]);
}

#[test]
fn a_file_that_is_written_to_is_known_by_it_and_one_that_is_replaced_is_not() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "a").unwrap();
    let file = File::open(&path).unwrap();
    let key = || content_key(&file.metadata().unwrap());
    let before = key();
    write_atomic(&path, b"another file").unwrap();
    assert_eq!(key(), before);
    fs::write(&path, "a").unwrap();
    let file = File::open(&path).unwrap();
    let before = content_key(&file.metadata().unwrap());
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"b").unwrap();
    assert_ne!(content_key(&file.metadata().unwrap()), before);
}

#[test]
fn no_update_of_many_writers_is_lost() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    thread::scope(|scope| {
        for writer in 0..100_u8 {
            let path = &path;
            scope.spawn(move || append(path, writer));
        }
    });
    let mut bytes = fs::read(&path).unwrap();
    bytes.sort_unstable();
    assert_eq!(bytes, (0..100).collect::<Vec<u8>>());
}

/// Runs one of the ignored tests below in a process of its own.
fn child(name: &str, path: &Path) -> Command {
    let mut command = Command::new("sh");
    // A limit on the file size, with its signal ignored, simulates a full disk.
    command.args(["-c", "trap '' XFSZ; test -z \"$FILE_BLOCKS\" || ulimit -f $FILE_BLOCKS; exec \"$0\" \"$@\""]);
    command.arg(env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--test-threads=1", &format!("file::tests::{name}")]);
    command.env("OLLM_STORE_TEST_PATH", path).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
#[ignore = "run in a process of its own by the test below"]
fn child_that_updates_for_ever() {
    let Some(path) = env::var_os("OLLM_STORE_TEST_PATH") else { return };
    loop {
        update(Path::new(&path), MAX, |old| {
            let count: u64 = String::from_utf8(old.unwrap()).unwrap().lines().next().unwrap().parse().unwrap();
            Ok::<_, FileError>(Some(format!("{}\n", count + 1).repeat(5_000).into_bytes()))
        })
        .unwrap();
    }
}

#[test]
fn a_kill_at_any_moment_leaves_a_whole_file_and_no_lock() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    write_atomic(&path, "0\n".repeat(5_000).as_bytes()).unwrap();
    for round in 0..12_u64 {
        let mut child = child("child_that_updates_for_ever", &path).spawn().unwrap();
        let before = fs::read(&path).unwrap();
        while fs::read(&path).unwrap() == before {
            thread::sleep(Duration::from_millis(1));
        }
        // Kills the process at different moments of its cycle; it waits for nothing.
        thread::sleep(Duration::from_micros(700 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let text = String::from_utf8(fs::read(&path).unwrap()).unwrap();
        let first = text.lines().next().unwrap();
        assert_eq!(text, format!("{first}\n").repeat(5_000));
    }
    update(&path, MAX, Ok::<_, FileError>).unwrap();
    assert_eq!(names_in(folder.path()), [".file.lock", "file"]);
}

#[test]
#[ignore = "run in a process of its own by the test below"]
fn child_on_a_full_disk() {
    let Some(path) = env::var_os("OLLM_STORE_TEST_PATH") else { return };
    let big = vec![b'x'; 1024 * 1024];
    assert!(matches!(write_atomic(Path::new(&path), &big), Err(FileError::Io { doing: "write", .. })));
    let updated = update(Path::new(&path), MAX, |_| Ok::<_, FileError>(Some(big)));
    assert!(matches!(updated, Err(FileError::Io { doing: "write", .. })));
}

#[test]
fn a_full_disk_leaves_the_old_file_whole() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    write_atomic(&path, b"old").unwrap();
    let status = child("child_on_a_full_disk", &path).env("FILE_BLOCKS", "8").status().unwrap();
    assert!(status.success());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names_in(folder.path()), [".file.lock", "file"]);
}

#[test]
fn a_file_that_people_keep_themselves_keeps_its_mode_and_goes_when_it_is_empty() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    let write = |text: &'static [u8]| rewrite(&path, MAX, |_| Ok::<_, FileError>(Some(text.to_vec()))).unwrap();
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    write(b"new");
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
    write(b"other");
    assert_eq!((fs::read(&path).unwrap().as_slice(), mode()), (&b"other"[..], 0o664));
    assert_eq!(names_in(folder.path()), ["file"]);
    write(b"");
    assert_eq!(names_in(folder.path()), [""; 0]);
}
