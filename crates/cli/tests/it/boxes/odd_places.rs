//! Boxes where something is not as usual: mounts, file systems, names, files that were handed on, and programs with more rights.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use super::attackers::build;
use super::{CONTENT, assert_intact, boxed, guarded, is_whole, namespaces_work};
use crate::attacks::surroundings::ollm_without_rights;
use crate::lab::{OLLM, Ran, finish};

/// A shell script in which `$OLLM` is the program, as root of a namespace with mounts of its own.
fn among_own_mounts(lab: &crate::lab::Lab, script: &str) -> Ran {
    let mut command = lab.program("unshare");
    command.args(["-Urm", "sh", "-ec", script]).env("OLLM", OLLM);
    finish(command, b"")
}

#[test]
fn a_protected_folder_that_is_a_mount_of_another_file_system_is_kept() {
    let lab = guarded();
    if !namespaces_work() || !is_whole(&lab) {
        return;
    }
    let script = "mount -t tmpfs none ~/.ssh; echo mine > ~/.ssh/authorized_keys
        $OLLM box -- sh -c 'echo evil > ~/.ssh/authorized_keys; rm -rf ~/.ssh; mv ~/.ssh ~/x; umount ~/.ssh; true'
        cat ~/.ssh/authorized_keys";
    let ran = among_own_mounts(&lab, script);
    assert_eq!((ran.stdout.as_str(), ran.code), ("mine\n", 0), "{ran:?}");
    assert_intact(&lab, "mount");
}

#[test]
fn in_a_container_a_box_holds() {
    let lab = guarded();
    if !namespaces_work() || !is_whole(&lab) {
        return;
    }
    // What makes a container: its own users, mounts, processes, name, queues and network, and no way to gain rights.
    let script = "mount -t tmpfs none /run; exec setpriv --no-new-privs \"$OLLM\" box -- sh -c \"$ATTACK\"";
    let attack = "echo evil > ~/.bashrc; mv ~/.claude ~/x; rm -rf ~/.ollm; umount ~/.bashrc; mkdir .claude
        echo evil > .claude/settings.json; echo evil > .git/hooks/pre-commit; echo x > made; true";
    let mut command = lab.program("unshare");
    command.args(["-Urmpf", "--uts", "--ipc", "--net", "--mount-proc", "sh", "-ec", script]);
    let ran = finish(
        {
            command.env("OLLM", OLLM).env("ATTACK", attack);
            command
        },
        b"",
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_intact(&lab, &format!("{ran:?}"));
    assert!(lab.project.join("made").exists(), "{ran:?}");
}

#[test]
fn without_proc_the_box_is_weaker_and_says_so_or_does_not_run_the_command() {
    let lab = guarded();
    if !namespaces_work() || !is_whole(&lab) {
        return;
    }
    let script = "mount -t tmpfs none /proc; $OLLM box -- sh -c 'echo evil > ~/.bashrc; rm -rf ~/.ollm; true' || true";
    let ran = among_own_mounts(&lab, script);
    // Without it nobody can tell root, which this namespace does not know, from another user: nothing runs then.
    let does_not_run = ran.stderr.contains("nothing runs until it is corrected");
    assert!(ran.stderr.contains("`/proc` is not mounted") || does_not_run, "{ran:?}");
    for name in ["home/.bashrc", "home/.ollm/config.yaml"] {
        assert_eq!(fs::read_to_string(lab.root.join(name)).unwrap(), CONTENT, "{name}: {ran:?}");
    }
}

#[test]
fn the_home_of_the_account_is_held_where_the_variable_names_another_one() {
    let lab = guarded();
    if !namespaces_work() || !is_whole(&lab) {
        return;
    }
    lab.write("account/.bashrc", "mine\n");
    lab.write("account/.ssh/work", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n");
    let script = "echo \"root:x:0:0::$PWD/../account:/bin/sh\" > ../passwd; mount --bind ../passwd /etc/passwd
        $OLLM box -- sh -c 'cd ../account; echo evil > .bashrc; rm -f .ssh/work; echo evil > .ssh/work; mv ../account ../x; echo x > other'
        $OLLM box --policy strict -- sh -c 'cat ../account/.ssh/work && echo was read'
        cat ../account/.bashrc; grep -c KEY ../account/.ssh/work; cat ../account/other; $OLLM doctor";
    let ran = among_own_mounts(&lab, &script.replace("was read'", "was read' || true"));
    assert!(ran.stdout.starts_with("mine\n1\nx\n"), "{ran:?}");
    assert!(ran.stdout.contains("also for what is in") && ran.stdout.contains("/account;"), "{ran:?}");
}

#[test]
fn a_command_of_root_cannot_choose_which_process_the_kernel_ends_when_memory_runs_out() {
    let lab = guarded();
    if !namespaces_work() || !is_whole(&lab) {
        return;
    }
    let script = "$OLLM box -- sh -c 'echo 1000 > /proc/$PPID/oom_score_adj; echo 7 > /proc/$PPID/coredump_filter; echo x > /dev/stdout'";
    let ran = among_own_mounts(&lab, script);
    assert_eq!((ran.stdout.as_str(), ran.code), ("x\n", 0), "{ran:?}");
    for file in ["oom_score_adj", "coredump_filter"] {
        assert!(ran.stderr.contains(&format!("{file}: Read-only file system")), "{ran:?}");
    }
}

#[test]
fn a_home_whose_name_is_no_text_is_kept() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    let home = lab.root.join(OsStr::from_bytes(b"h\xffme"));
    fs::create_dir_all(home.join(".claude")).unwrap();
    for name in [".bashrc", ".claude/settings.json"] {
        fs::write(home.join(name), CONTENT).unwrap();
    }
    let script = "exec 2> /dev/null; echo evil > ~/.bashrc; rm -f ~/.claude/settings.json; mv ~/.claude ~/x; mkdir ~/.claude; echo x > ~/file; true";
    let mut command = lab.ollm(&["box", "--", "sh", "-c", script]);
    command.env("HOME", &home);
    let ran = finish(command, b"");
    for name in [".bashrc", ".claude/settings.json"] {
        assert_eq!(fs::read_to_string(home.join(name)).ok().as_deref(), Some(CONTENT), "{name}: {ran:?}");
    }
    assert!(home.join("file").exists(), "{ran:?}");
}

#[test]
fn a_file_that_was_handed_on_open_leads_nowhere() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    let program = "#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
int main(void) {
  for (int n = 3; n < 64; n++) { int f = openat(n, \".bashrc\", O_WRONLY | O_TRUNC); if (f >= 0) write(f, \"evil\", 4); unlinkat(n, \".bashrc\", 0); }
  return write(7, \"evil\", 4) == 4;
}";
    build(&lab, program, "project/reach");
    // The shell hands on a folder that was opened outside of the box, and a file that it may write.
    let mut command = lab.program("bash");
    command.args(["-c", "exec 5< ~ 7>> ~/.bashrc; exec \"$OLLM\" box -- ./reach"]).env("OLLM", OLLM);
    let ran = finish(command, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_intact(&lab, &format!("{ran:?}"));
}

#[test]
fn a_protected_file_or_a_folder_around_it_as_input_cannot_be_written() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    let beside = r#"perl -e 'chdir(STDIN) or die; open(F, ">", ".bashrc") and die'"#;
    for (input, script, code) in [
        ("~/.bashrc", "cat; echo evil > /dev/stdin", 2),
        ("~/.ollm/hooks/guard.json", "cat; echo evil > /proc/self/fd/0", 2),
        ("~", "echo evil > /proc/self/fd/0/.bashrc; cat .", 1),
        ("~", beside, 0),
    ] {
        let mut command = lab.program("bash");
        command
            .args(["-c", &format!("exec \"$OLLM\" box -- sh -c \"$1\" < {input}"), "bash", script])
            .env("OLLM", OLLM);
        let ran = finish(command, b"");
        assert_eq!(ran.code, code, "{input}: {script}: {ran:?}");
        assert_intact(&lab, &format!("{ran:?}"));
    }
    // A script that reads two lines by two commands gets both, as without a box.
    lab.write("project/lines", "one\ntwo\n");
    let mut command = lab.program("bash");
    let lines = "for n in 1 2; do \"$OLLM\" box -- bash -c 'read -r line; echo $line'; done < lines";
    command.args(["-c", lines]).env("OLLM", OLLM);
    assert_eq!(finish(command, b"").stdout, "one\ntwo\n");
}

#[test]
fn our_own_program_works_in_the_box_of_a_user_without_rights() {
    for arguments in [&["hook", "list"] as &[&str], &["box", "--", "echo", "inner"]] {
        let lab = guarded();
        let own = lab.copy_of_program("ollm");
        let outer = ["box", "--", own.to_str().unwrap()];
        let Some(command) = ollm_without_rights(&lab, &[&outer, arguments].concat()) else { return };
        let ran = finish(command, b"");
        // Without Landlock there is no box within a box, and without both none at all.
        assert!(ran.code == 0 || ran.stderr.contains("there is no box on this machine"), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn a_program_with_more_rights_has_none_of_them_in_a_box() {
    let lab = guarded();
    let program =
        "#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf(\"%d\", geteuid() == getuid()); return 0; }";
    build(&lab, program, "project/rights");
    let Some(mut command) = ollm_without_rights(&lab, &["box", "--", "./rights"]) else { return };
    // Only root can make such a program, for another user.
    let rights = lab.project.join("rights");
    if std::os::unix::fs::chown(&rights, Some(0), Some(0)).is_err() {
        return;
    }
    fs::set_permissions(&rights, fs::Permissions::from_mode(0o4755)).unwrap();
    command.current_dir(&lab.project);
    let ran = finish(command, b"");
    assert!(ran.stdout == "1" || ran.stderr.contains("there is no box on this machine"), "{ran:?}");
}

#[test]
fn without_landlock_the_box_of_a_command_still_holds() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    let mut command = lab.program("python3");
    let attack = "echo evil > ~/.bashrc; rm -rf ~/.ollm; true";
    command.args(["-c", super::defaults::WITHOUT_LANDLOCK, OLLM, "box", "--", "sh", "-c", attack]);
    let ran = finish(command, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_intact(&lab, &format!("{ran:?}"));
}

#[test]
fn hosts_that_ssh_knows_may_be_added_and_not_changed() {
    let lab = guarded();
    let known = lab.write("home/.ssh/known_hosts", "one ssh-ed25519 A\n");
    let ran = boxed(&lab, &["sh", "-c", "echo 'two ssh-ed25519 B' >> ~/.ssh/known_hosts"]);
    if ran.code != 0 && !is_whole(&lab) {
        return;
    }
    assert!(ran.stderr.contains("has 1 new lines: `ssh` trusts further hosts"), "{ran:?}");
    let after = "one ssh-ed25519 A\ntwo ssh-ed25519 B\n";
    assert_eq!(fs::read_to_string(&known).unwrap(), after);
    let ran = boxed(&lab, &["sh", "-c", "echo 'one ssh-ed25519 EVIL' > ~/.ssh/known_hosts"]);
    assert!(ran.stderr.contains("was changed by the command; it is restored"), "{ran:?}");
    assert_eq!(fs::read_to_string(&known).unwrap(), after);
}

#[test]
fn root_is_told_that_a_box_writes_nothing_of_another_user() {
    let lab = guarded();
    if !is_whole(&lab) || std::os::unix::fs::chown(&lab.project, Some(65_534), None).is_err() {
        return;
    }
    let doctor = lab.run(&["doctor"]);
    assert!(doctor.stdout.contains("belongs to user 65534: in the box, commands of root"), "{doctor:?}");
    assert_ne!(boxed(&lab, &["touch", "new"]).code, 0);
}
