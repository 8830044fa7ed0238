//! Settings that may not be written, by a person who is not root: root may write everything.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{SETTINGS, read};
use crate::lab::{Lab, Ran, finish};

/// The ids of the user and the group `nobody`.
const NOBODY: u32 = 65534;
const TEXT: &str = "{\n  // mine\n  \"a\": 1\n}\n";

/// A lab that belongs to the user `nobody`, and the program in it; none where we cannot become that user.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn lab() -> Option<(Lab, PathBuf)> {
    let lab = Lab::new();
    lab.write(SETTINGS, TEXT);
    let program = lab.copy_of_program("ollm");
    if fs::metadata(&lab.root).unwrap().uid() == 0 {
        give_away(&lab.root);
        let ran = as_nobody(&program).arg("--version").env_clear().output();
        if !ran.is_ok_and(|ran| ran.status.success()) {
            eprintln!("not tried: read-only settings, because setpriv cannot become another user here");
            return None;
        }
    }
    Some((lab, program))
}

fn give_away(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        for entry in fs::read_dir(path).unwrap() {
            give_away(&entry.unwrap().path());
        }
    }
}

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    command
}

fn run(lab: &Lab, program: &Path, arguments: &[&str]) -> Ran {
    let mut command =
        if fs::metadata(&lab.root).unwrap().uid() == NOBODY { as_nobody(program) } else { Command::new(program) };
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("HOME", &lab.home).env("PATH", path).current_dir(&lab.project).args(arguments);
    finish(command, b"")
}

#[test]
fn settings_that_may_not_be_written_are_changed_right_or_not_at_all() {
    let Some((lab, program)) = lab() else { return };
    let file = lab.root.join(SETTINGS);
    let folder = file.parent().unwrap();
    let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    mode(&file, 0o444);

    mode(folder, 0o555);
    let ran = run(&lab, &program, &["connect", "claude"]);
    assert!(ran.code == 5 && ran.stderr.contains("Permission denied"), "{ran:?}");
    assert_eq!(read(&lab, SETTINGS), TEXT);
    assert_eq!(run(&lab, &program, &["connect", "claude", "--dry-run"]).code, 0, "it may be looked at");

    // A program that may change the folder may replace the file: it keeps its mode.
    mode(folder, 0o755);
    assert_eq!(run(&lab, &program, &["connect", "claude"]).code, 0);
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o444);
    let connected = read(&lab, SETTINGS);
    assert!(connected.contains("// mine") && connected.contains("hook run"), "{connected}");

    mode(folder, 0o555);
    let ran = run(&lab, &program, &["disconnect", "claude"]);
    assert_eq!((ran.code, read(&lab, SETTINGS)), (5, connected), "{ran:?}");
    mode(folder, 0o755);
    assert_eq!(run(&lab, &program, &["disconnect", "claude"]).code, 0);
    assert_eq!((read(&lab, SETTINGS).as_str(), fs::metadata(&file).unwrap().mode() & 0o777), (TEXT, 0o444));
}
