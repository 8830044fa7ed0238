//! Disks that take nothing, homes that are not there, links in place of our files.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{CANARY, ID, judged, lab};
use crate::lab::{Lab, Ran, finish, shell_event};

/// Runs `ollm` where `$HOME` is on a disk prepared by a line of shell; nothing when we may not mount.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn on_a_bad_disk(lab: &Lab, prepare: &str, event: &str) -> Option<Ran> {
    let mut may_mount = Command::new("unshare");
    may_mount.args(["-m", "true"]).stderr(Stdio::null());
    if !may_mount.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: no right to mount a disk");
        return None;
    }
    let ollm = lab.ollm(&["hook", "run"]);
    let mut command = lab.program("unshare");
    command.args(["-m", "sh", "-ec", &format!("{prepare}\nexec \"$0\" hook run")]).arg(ollm.get_program());
    Some(finish(command, event.as_bytes()))
}

const READ_ONLY: &str = "mount --bind \"$HOME\" \"$HOME\"; mount -o remount,ro,bind \"$HOME\"";
const FULL: &str = "cp -a \"$HOME\" \"$HOME.kept\"; mount -t tmpfs -o size=256k,mode=755 tmpfs \"$HOME\"
cp -a \"$HOME.kept/.\" \"$HOME\"; rm -r \"$HOME.kept\"; dd if=/dev/zero of=\"$HOME/filling\" 2>/dev/null || true";

#[test]
fn b20_a_disk_that_takes_nothing_takes_no_guard_down() {
    for prepare in [READ_ONLY, FULL] {
        let lab = lab();
        lab.workspace_hook("before_tool", "other", CANARY, "");
        lab.user_hook("before_tool", "own", "echo own >> ran", "");
        lab.approve(ID);
        let Some(ran) = on_a_bad_disk(&lab, prepare, &shell_event("ls")) else { return };
        assert_eq!(judged(&lab, &ran), "ran", "{prepare}: what was approved has its copy");
        assert_eq!((ran.code, &ran.hook("own")["status"]), (0, &json!("ok")), "{prepare}");
        assert_eq!(ran.skip("other")["reason"], "untrusted", "{prepare}");

        lab.user_hook("before_tool", "own", "printf '{\"continue\": false}'", "");
        let ran = on_a_bad_disk(&lab, prepare, &shell_event("ls")).unwrap();
        assert_eq!(ran.code, 2, "{prepare}: {ran:?}");
    }
}

#[test]
fn b20_without_a_copy_and_room_for_one_nothing_runs_and_the_reason_is_told() {
    for (prepare, reason) in [(READ_ONLY, "its file system is read-only"), (FULL, "free some space")] {
        let lab = lab();
        lab.approve(ID);
        let store = lab.home.join(".ollm/store");
        // Copies are closed to their owner, too.
        assert!(Command::new("chmod").args(["-R", "u+w"]).arg(&store).status().unwrap().success());
        assert!(Command::new("rm").args(["-r"]).arg(&store).status().unwrap().success());
        let Some(ran) = on_a_bad_disk(&lab, prepare, &shell_event("ls")) else { return };
        assert_eq!(judged(&lab, &ran), "unsafe", "{ran:?}");
        assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    }
}

#[test]
fn b20_a_home_that_is_not_named_or_not_there_is_no_obstacle() {
    let own = "printf '{\"continue\": false}'";
    let lab = Lab::with_hook("before_tool", "own", own);
    let folder = lab.home.join(".ollm");
    let homes: [&dyn Fn(&mut Command); 4] = [
        &|command| _ = command.env_remove("HOME"),
        &|command| _ = command.env("HOME", ""),
        &|command| _ = command.env("HOME", "relative"),
        &|command| _ = command.env("HOME", "/nonexistent"),
    ];
    for (number, set) in homes.iter().enumerate() {
        let mut command = lab.ollm(&["hook", "run"]);
        command.env("OLLM_HOME", &folder);
        set(&mut command);
        let ran = finish(command, shell_event("ls").as_bytes());
        assert_eq!((ran.code, &ran.hook("own")["status"]), (2, &json!("blocked")), "{number}: {ran:?}");
    }
    let empty = lab.ollm(&["hook", "run"]).env("HOME", "/nonexistent").stdin(Stdio::null()).output().unwrap();
    assert_eq!(empty.status.code(), Some(3), "no event, and nothing worse");
    let mut command = lab.ollm(&["hook", "run"]);
    command.env("HOME", "/nonexistent");
    assert_eq!(finish(command, shell_event("ls").as_bytes()).answer()["continue"], true);
}

#[test]
fn d15_links_in_place_of_our_own_files_are_not_followed() {
    let lab = lab();
    let elsewhere = lab.root.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, lab.home.join(".ollm/store")).unwrap();
    let digest = lab.digest(ID);
    let ran = lab.run(&["hook", "trust", ID, "--digest", &digest]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("must be a folder and is a"), "{}", ran.stderr);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    fs::remove_file(lab.home.join(".ollm/store")).unwrap();

    let precious = lab.write("precious", "mine");
    symlink(&precious, lab.home.join(".ollm/trusted-hooks.json")).unwrap();
    lab.run(&["hook", "trust", ID, "--digest", &digest]);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
}
