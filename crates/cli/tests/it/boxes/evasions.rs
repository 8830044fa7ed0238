//! Commands that try to keep a box from finding, moving or restoring what they did.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use super::{CONTENT, NO_NAMESPACES, boxed, guarded, is_whole, without_namespaces};
use crate::attacks::surroundings::ollm_without_rights;
use crate::lab::{Lab, OLLM, Ran, finish};

/// A script in a box, as a user without special rights.
fn boxed_without_rights(lab: &Lab, script: &str) -> Option<Ran> {
    let ran = finish(ollm_without_rights(lab, &["box", "--", "sh", "-c", script])?, b"");
    (!ran.stderr.contains("the box is partial") && !ran.stderr.contains("there is no box")).then_some(ran)
}

#[test]
fn a_command_that_takes_all_names_does_not_keep_its_file_from_being_moved_aside() {
    let lab = guarded();
    lab.write("project/.git/config", "[core]\n\tbare = false\n");
    if !is_whole(&lab) {
        return;
    }
    let ran =
        boxed(&lab, &["sh", "-c", "for i in $(seq 1000); do : > ~/.zshrc.set-aside-$i; done; echo evil > ~/.zshrc"]);
    assert!(!lab.home.join(".zshrc").exists(), "{ran:?}");
    let script = "for i in $(seq 1000); do : > .git/config.set-aside-$i; done; printf '[core]\n fsmonitor = ./evil\n' >> .git/config";
    let ran = boxed(&lab, &["sh", "-c", script]);
    assert!(ran.stderr.contains("it is restored"), "{ran:?}");
    assert!(!fs::read_to_string(lab.project.join(".git/config")).unwrap().contains("evil"), "{ran:?}");
}

#[test]
fn a_command_cannot_take_from_us_what_we_need_to_look_at_it() {
    let settings =
        "mkdir ~/.gemini; echo evil > ~/.gemini/settings.json; printf '[core]\n fsmonitor = ./evil\n' >> .git/config";
    for attack in ["--nofile=4:4", "--nofile=0:0", "--fsize=0:0", "--cpu=0:0", "--as=1:1"] {
        let lab = guarded();
        lab.write("project/.git/config", "[core]\n\tbare = false\n");
        let script = format!("{settings}; prlimit --pid $PPID {attack} 2> /dev/null; true");
        let Some(ran) = boxed_without_rights(&lab, &script) else { return };
        assert_eq!(ran.stderr.matches("it is restored").count(), 1, "{attack}: {ran:?}");
        assert!(!lab.home.join(".gemini/settings.json").exists(), "{attack}: {ran:?}");
        assert_eq!(
            fs::read_to_string(lab.project.join(".git/config")).unwrap(),
            "[core]\n\tbare = false\n",
            "{attack}"
        );
    }
    // Who may write to the group of processes that a session is in ends all of them.
    let lab = guarded();
    let Some(ran) = boxed_without_rights(&lab, "mkdir /sys/fs/cgroup/new") else { return };
    let is_there = Path::new("/sys/fs/cgroup").is_dir();
    assert!(!is_there || ran.stderr.contains("Read-only file system"), "{ran:?}");
}

#[test]
fn what_one_box_has_moved_aside_is_not_brought_back_by_another_that_found_it_there() {
    let lab = guarded();
    lab.write("project/.git/modules/sub/HEAD", "ref: refs/heads/main\n");
    if !is_whole(&lab) {
        return;
    }
    let hook = lab.project.join(".git/modules/sub/hooks/post-checkout");
    let start = |script: &str| {
        let mut command = lab.ollm(&["box", "--", "sh", "-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let ready = |child: &mut Child| child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    let evil = "mkdir .git/modules/sub/hooks; echo evil > .git/modules/sub/hooks/post-checkout; echo ready; cat";
    let mut first = start(evil);
    ready(&mut first);
    let mut second = start("echo ready; cat");
    ready(&mut second);
    // Both end with their input.
    let first = first.wait_with_output().unwrap();
    let second = second.wait_with_output().unwrap();
    let told = |output: &Output| String::from_utf8_lossy(&output.stderr).contains("decides what `git` runs");
    assert!(told(&first) && !told(&second), "{first:?}\n{second:?}");
    assert!(!hook.exists(), "{first:?}\n{second:?}");
}

#[test]
fn a_folder_that_a_command_closes_is_looked_into_all_the_same() {
    for mode in ["555", "000"] {
        let lab = guarded();
        let script = format!("mkdir ~/.gemini; echo evil > ~/.gemini/settings.json; chmod {mode} ~/.gemini");
        let Some(ran) = boxed_without_rights(&lab, &script) else { return };
        assert!(
            ran.stderr.contains("settings.json` is protected and was made by the command; it is now"),
            "{mode}: {ran:?}"
        );
        assert!(!lab.home.join(".gemini/settings.json").exists(), "{mode}: {ran:?}");
    }
    let lab = guarded();
    let script =
        "mkdir -p .git/modules/x/hooks; echo ref > .git/modules/x/HEAD; echo evil > .git/modules/x/hooks/pre-push
        chmod 300 .git/modules";
    let Some(ran) = boxed_without_rights(&lab, script) else { return };
    assert!(ran.stderr.contains("modules/x/hooks` decides what `git` runs"), "{ran:?}");
}

#[test]
fn of_a_folder_with_a_file_that_is_too_large_all_else_is_restored() {
    let lab = guarded();
    lab.write("project/.git/hooks/large", "x".repeat(2 << 20));
    let Some(ran) = without_namespaces(&lab, "echo evil > .git/hooks/pre-commit; echo evil > .git/hooks/pre-push")
    else {
        return;
    };
    let hook = |name: &str| fs::read_to_string(lab.project.join(".git/hooks").join(name)).ok();
    assert_eq!((hook("pre-commit").as_deref(), hook("pre-push")), (Some(CONTENT), None), "{ran:?}");
    assert!(ran.stderr.contains("is restored"), "{ran:?}");
    let Some(ran) = without_namespaces(&lab, "echo more >> .git/hooks/large; rm .git/hooks/pre-commit") else { return };
    assert_eq!(hook("pre-commit").as_deref(), Some(CONTENT), "{ran:?}");
    assert!(ran.stderr.contains("cannot be restored: `large` in it: it is too large to be kept"), "{ran:?}");
}

#[test]
fn where_landlock_holds_the_box_a_project_that_is_the_home_is_kept_as_the_home() {
    let lab = guarded();
    let approvals = lab.write("home/.ollm/trusted-hooks.json", CONTENT);
    let attack = "cd; echo evil > .ollm/trusted-hooks.json; echo evil > .bashrc; mkdir -p work; echo x > work/file";
    let mut command = lab.program("unshare");
    command.args(["-Ur", "sh", "-c", NO_NAMESPACES, "sh", OLLM, "box", "--", "sh", "-c", attack]);
    lab.write("home/work/before", "");
    command.current_dir(&lab.home);
    let ran = finish(command, b"");
    if !ran.stderr.contains("the box is partial") {
        return;
    }
    assert_eq!(fs::read_to_string(approvals).unwrap(), CONTENT, "{ran:?}");
    assert!(lab.home.join("work/file").exists(), "{ran:?}");
    assert!(!ran.stderr.contains("is restored") && ran.stderr.contains("Permission denied"), "{ran:?}");
    assert!(!ran.stderr.contains("protected files in the project are compared"), "{ran:?}");
}

#[test]
fn settings_in_folders_that_variables_name_are_kept() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    lab.write("home/cc/settings.json", CONTENT);
    let folder = |name: &str| lab.home.join(name).display().to_string();
    let (claude, codex, zsh) = (folder("cc"), folder("cx"), folder("zsh"));
    let lab = lab.set("CLAUDE_CONFIG_DIR", &claude).set("CODEX_HOME", &codex).set("ZDOTDIR", &zsh);
    let script = "mkdir -p $CODEX_HOME $ZDOTDIR; echo evil > $CLAUDE_CONFIG_DIR/settings.json
        echo evil > $CODEX_HOME/hooks.json; echo evil > $ZDOTDIR/.zshrc; echo x > $CLAUDE_CONFIG_DIR/history";
    let ran = boxed(&lab, &["sh", "-c", script]);
    assert_eq!(fs::read_to_string(lab.home.join("cc/settings.json")).unwrap(), CONTENT, "{ran:?}");
    for name in ["cx/hooks.json", "zsh/.zshrc"] {
        assert!(!lab.home.join(name).exists(), "{name}: {ran:?}");
    }
    assert!(lab.home.join("cc/history").exists(), "{ran:?}");
    let event = serde_json::json!({"event": "before_tool", "data": {"tool_name": "write_file", "args": {
        "path": format!("{claude}/settings.json"), "content": "{}"}}});
    let asked = lab.event(event.to_string());
    assert_ne!(asked.answer()["flow"], "continue", "{asked:?}");
}

#[test]
fn a_command_that_is_ended_from_outside_is_looked_at_all_the_same() {
    for signal in ["TERM", "HUP"] {
        let lab = guarded();
        if !is_whole(&lab) {
            return;
        }
        let script = "mkdir ~/.gemini; echo evil > ~/.gemini/settings.json; echo ready; exec sleep 600";
        let mut command = lab.ollm(&["box", "--", "sh", "-c", script]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut ready = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let ended = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(told.contains("is protected and was made by the command"), "{signal}: {ended:?}");
        assert!(!lab.home.join(".gemini/settings.json").exists(), "{signal}");
    }
}
