//! Places that take no record: the verdict stands, the exit code too, and one line says why.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::REFUSE;
use crate::lab::{FOREVER, Lab, OLLM, Ran, finish, lines, may_mount, outcome, shell_event, start};

fn lab() -> Lab {
    Lab::with_hook("before_tool", "guard", REFUSE)
}

/// The one line that people are told.
fn complaint(ran: &Ran) -> &str {
    assert_eq!((ran.code, &ran.answer()["reason"]), (2, &"not today".into()), "{ran:?}");
    let told: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(told.len(), 1, "{ran:?}");
    told[0]
}

/// Runs `ollm hook run` after a line of shell.
fn after(lab: &Lab, program: &[&str], prepare: &str) -> Ran {
    let mut command = lab.program(program[0]);
    command.args(&program[1..]).args(["-ec", &format!("{prepare}\nexec \"$0\" hook run"), OLLM]);
    finish(command, shell_event("ls").as_bytes())
}

#[test]
fn b20_a_full_disk_is_told_once_and_changes_no_verdict() {
    let full = "cp -a \"$HOME\" \"$HOME.kept\"; mount -t tmpfs -o size=256k,mode=755 tmpfs \"$HOME\"
cp -a \"$HOME.kept/.\" \"$HOME\"; rm -r \"$HOME.kept\"; mkdir -p \"$HOME/.ollm/trace\"
dd if=/dev/zero of=\"$HOME/filling\" 2>/dev/null || true";
    if may_mount() {
        let ran = after(&lab(), &["unshare", "-m", "sh"], full);
        assert!(complaint(&ran).contains("leaves no trace"), "{ran:?}");
        assert!(complaint(&ran).contains("free some space"), "{ran:?}");
    }
}

#[test]
fn b20_a_read_only_home_is_told_once_and_changes_no_verdict() {
    let read_only = "mount --bind \"$HOME\" \"$HOME\"; mount -o remount,ro,bind \"$HOME\"";
    if may_mount() {
        let ran = after(&lab(), &["unshare", "-m", "sh"], read_only);
        assert!(complaint(&ran).contains("read-only"), "{ran:?}");
    }
}

#[test]
fn b20_a_limit_on_file_sizes_does_not_end_us() {
    let lab = lab();
    let ran = after(&lab, &["sh"], "ulimit -f 0");
    assert!(complaint(&ran).contains("leaves no trace"), "{ran:?}");
    assert_eq!(fs::read(lab.trace_file()).unwrap(), b"");
}

#[test]
fn b20_without_a_home_there_is_no_trace_and_no_complaint() {
    let lab = Lab::new();
    // A home that is not absolute is none.
    let homeless = |arguments: &[&str]| {
        let mut command = lab.ollm(arguments);
        command.env("HOME", "relative");
        finish(command, shell_event("ls").as_bytes())
    };
    let (ran, last) = (homeless(&["hook", "run"]), homeless(&["trace", "last"]));
    assert_eq!((ran.code, ran.stderr.as_str(), last.code), (0, "", 1), "{last:?}");
    assert!(last.stderr.contains("set HOME or OLLM_HOME"), "{last:?}");
}

#[test]
fn d15_a_linked_trace_folder_is_refused_and_nothing_is_written_through_it() {
    let lab = lab();
    let elsewhere = lab.root.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, lab.home.join(".ollm/trace")).unwrap();
    assert!(complaint(&lab.event(shell_event("ls"))).contains("is a symbolic link"));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn d15_a_linked_trace_file_is_refused_and_its_target_stays() {
    let lab = lab();
    let victim = lab.write("victim", "precious");
    fs::create_dir(lab.home.join(".ollm/trace")).unwrap();
    symlink(&victim, lab.trace_file()).unwrap();
    assert!(complaint(&lab.event(shell_event("ls"))).contains("is a symbolic link"));
    assert_eq!(fs::read_to_string(victim).unwrap(), "precious");
    assert_eq!(lab.run(&["trace", "last"]).code, 5);
}

#[test]
fn a_pipe_in_place_of_the_trace_holds_nobody_up() {
    let lab = lab();
    fs::create_dir(lab.home.join(".ollm/trace")).unwrap();
    lab.fifo("home/.ollm/trace/trace.jsonl");
    assert!(complaint(&lab.event(shell_event("ls"))).contains("named pipe"));
    assert_eq!(lab.run(&["trace", "list"]).code, 5);
}

#[test]
fn a_run_that_was_asked_to_end_still_leaves_its_trace() {
    let lab = Lab::new();
    let fifo = lab.fifo("ready");
    lab.user_hook("session_start", "slow", &format!("echo up > {}; {FOREVER}", fifo.display()), "");
    let child = start(lab.ollm(&["hook", "run", "session_start"]));
    assert_eq!(lines(&fifo, 1), ["up"]);
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(outcome(child).code, 128 + 15);
    let record = &lab.traces()[0];
    assert_eq!(record["hooks"][0]["error"], "was interrupted", "{record:#}");
}
