//! Programs that do not start, and the words for it.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use ollm_process::{Children, End, Job, SpawnError, Stage};
use rustix::fs::{CWD, FileType, Mode};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use crate::support::{assert_exited, children_of, eventually, play, plays, sh};

#[track_caller]
fn failure(job: Job) -> SpawnError {
    let outcome = Children::new().run(job);
    let End::NotStarted(error) = outcome.end else { panic!("{outcome:?}") };
    error
}

#[track_caller]
fn assert_failure(job: Job, stage: Stage, message: &str) {
    let error = failure(job);
    assert_eq!((error.stage, error.to_string()), (stage, message.to_owned()));
}

fn script(folder: &TempDir, text: &str, mode: u32) -> PathBuf {
    let path = folder.path().join("script");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn a_missing_program_is_named() {
    assert_failure(Job::new("/does/not/exist"), Stage::Exec, "`/does/not/exist` does not exist");
}

#[test]
fn a_program_that_is_not_executable_is_named_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = script(&folder, "#!/bin/sh\n", 0o644);
    let program = path.display();
    let message = format!("`{program}` is not executable; run `chmod +x '{program}'`");
    assert_failure(Job::new(&path), Stage::Exec, &message);
}

#[test]
fn the_way_out_can_be_pasted_whatever_the_program_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it's; touch done");
    fs::write(&path, "#!/bin/sh\n").unwrap();
    let error = failure(Job::new(&path)).to_string();
    let advice = error.rsplit_once("run `").unwrap().1.trim_end_matches('`').to_owned();
    assert_exited(&Children::new().run(Job { cwd: Some(folder.path().into()), ..sh(&advice) }), 0);
    assert!(!folder.path().join("done").exists(), "{advice}");
    assert_exited(&Children::new().run(Job::new(path)), 0);
}

#[test]
fn a_pipe_is_no_program_and_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o755), 0).unwrap();
    assert_failure(Job::new(&path), Stage::Exec, &format!("`{}` is not a file, and so no program", path.display()));
}

#[test]
fn a_process_that_is_short_of_files_says_so_and_loses_none() {
    play("start::poor");
}

#[test]
#[ignore = "a role that `a_process_that_is_short_of_files_says_so_and_loses_none` starts"]
fn poor() {
    if !plays("start::poor") {
        return;
    }
    let files = || fs::read_dir("/proc/self/fd").unwrap().count();
    let (before, limit) = (files(), getrlimit(Resource::Nofile));
    let mut ran = Vec::new();
    for spare in 0..20 {
        let children = Children::new();
        // One of those counted is the folder that was read.
        let current = Some(before as u64 - 1 + spare);
        setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
        let outcome = children.run(sh("exit 3"));
        let resident = children.start(&sh("exit 3"));
        setrlimit(Resource::Nofile, limit).unwrap();
        assert!(matches!(outcome.end, End::Exited(3) | End::NotStarted(_)), "{outcome:?}");
        ran.push(matches!(outcome.end, End::Exited(3)));
        drop((resident, children));
        // What a resident left behind is still being looked for.
        eventually("all files are closed", || files() == before);
        assert!(children_of("self").is_empty(), "with {spare} to spare: {outcome:?}");
    }
    assert!(!ran[0] && ran[19] && ran.is_sorted(), "{ran:?}");
}

#[test]
fn a_directory_is_no_program() {
    assert_failure(Job::new("/usr"), Stage::Exec, "`/usr` is a directory, not a program");
}

#[test]
fn a_missing_interpreter_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = script(&folder, "#! /does/not/exist -x\n", 0o755);
    let message = format!(
        "`{}` asks for the interpreter `/does/not/exist`, which does not exist; install it or correct the first line",
        path.display()
    );
    assert_failure(Job::new(&path), Stage::Exec, &message);
}

#[test]
fn a_line_end_of_another_system_in_the_first_line_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = script(&folder, "#!/bin/sh\r\nexit 0\r\n", 0o755);
    assert!(failure(Job::new(&path)).to_string().contains(r"`/bin/sh\r`"));
}

#[test]
fn a_script_without_interpreter_is_not_given_to_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let path = script(&folder, "exit 0\n", 0o755);
    let error = failure(Job::new(&path));
    assert_eq!((error.stage, error.source.raw_os_error()), (Stage::Exec, Some(libc::ENOEXEC)));
    assert!(error.to_string().contains("`#!/bin/sh`"), "{error}");
}

#[test]
fn a_missing_working_directory_is_named() {
    let job = Job { cwd: Some("/does/not/exist".into()), ..sh("exit 0") };
    let message = "cannot run `/bin/sh`: its working directory `/does/not/exist` does not exist";
    assert_failure(job, Stage::Chdir, message);
}

#[test]
fn a_working_directory_that_is_a_file_is_named() {
    let job = Job { cwd: Some("/etc/passwd".into()), ..sh("exit 0") };
    assert!(failure(job).to_string().contains("cannot enter its working directory `/etc/passwd`"));
}

#[test]
fn words_that_no_program_can_be_given_are_refused() {
    let pair = |name: &str, value: &str| vec![(name.into(), value.into())];
    let cases = [
        (Job::new("bin/sh"), "the path of the program is not absolute"),
        (Job::new("/bin/s\0h"), "the path of the program contains a NUL byte"),
        (Job { args: vec!["a\0b".into()], ..sh("") }, "an argument contains a NUL byte"),
        (Job { arg0: Some("a\0b".into()), ..sh("") }, "an argument contains a NUL byte"),
        (Job { cwd: Some("/\0".into()), ..sh("") }, "the working directory contains a NUL byte"),
        (Job { env: pair("A", "\0"), ..sh("") }, "an environment variable contains a NUL byte"),
        (Job { env: pair("A=B", ""), ..sh("") }, "`A=B` cannot be the name of an environment variable"),
        (Job { env: pair("", ""), ..sh("") }, "`` cannot be the name of an environment variable"),
    ];
    for (job, reason) in cases {
        let error = failure(job);
        assert_eq!((error.stage, error.source.to_string()), (Stage::Arguments, reason.to_owned()));
    }
}

#[test]
fn arguments_that_are_too_large_are_named_with_the_way_out() {
    let job = Job { args: vec!["x".repeat(1024 * 1024).into()], ..Job::new("/bin/true") };
    let error = failure(job);
    assert_eq!((error.stage, error.source.raw_os_error()), (Stage::Exec, Some(libc::E2BIG)));
    assert!(error.to_string().contains("pass the data on standard input"), "{error}");
}

#[test]
fn a_program_that_stays_open_for_writing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (program, _writer) = program_being_written(&folder);
    let message = format!("`{}` is still open for writing; close it first", program.display());
    assert_failure(Job::new(&program), Stage::Exec, &message);
}

#[test]
fn a_program_that_is_closed_in_time_starts() {
    let starts: [fn(Job) -> bool; 2] =
        [|job| matches!(Children::new().run(job).end, End::Exited(0)), |job| Children::new().release(&job).is_ok()];
    for starts in starts {
        let folder = tempfile::tempdir().unwrap();
        assert!((0..20).any(|_| {
            let (program, writer) = program_being_written(&folder);
            let closer = thread::spawn(move || {
                thread::sleep(Duration::from_millis(2));
                drop(writer);
            });
            let started = starts(Job::new(program));
            closer.join().unwrap();
            started
        }));
    }
}

fn program_being_written(folder: &TempDir) -> (PathBuf, File) {
    let program = folder.path().join("program");
    let _ = fs::remove_file(&program);
    fs::copy("/bin/true", &program).unwrap();
    let writer = File::options().append(true).open(&program).unwrap();
    (program, writer)
}

#[test]
fn a_failed_start_leaves_nothing_behind() {
    let children = Children::new();
    for _ in 0..50 {
        assert!(matches!(children.run(Job::new("/does/not/exist")).end, End::NotStarted(_)));
    }
    assert_exited(&children.run(sh("exit 0")), 0);
    assert!(Path::new("/proc/self").exists());
}
