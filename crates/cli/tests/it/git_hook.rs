//! Commits as events: the line in a repository's `commit-msg` hook, beside the repository's own lines.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::{Lab, Ran, finish};
use crate::screens;

/// A repository whose user has a hook that keeps what it sees and refuses messages with `wip`.
fn lab() -> Lab {
    let script = "cat >\"$HOME/seen\"\ngrep -q wip \"$HOME/seen\" && echo '{\"continue\": false, \"reason\": \"say what it does\"}'\nexit 0\n";
    let lab = Lab::with_hook("git_commit", "words", script);
    fs::remove_dir(lab.project.join(".git")).unwrap();
    for args in [&["init", "-q", "-b", "trunk"][..], &["config", "user.name", "a"], &["config", "user.email", "a@b.c"]]
    {
        assert_eq!(git(&lab, args).code, 0);
    }
    lab
}

fn with(lab: &Lab, args: &[&str]) -> Command {
    let mut command = lab.program("git");
    command.args(args);
    command
}

fn git(lab: &Lab, args: &[&str]) -> Ran {
    finish(with(lab, args), b"")
}

fn commit(lab: &Lab, message: &str) -> Ran {
    git(lab, &["commit", "--allow-empty", "-m", message])
}

fn install(lab: &Lab) -> Ran {
    lab.run(&["git-hook", "install"])
}

fn seen(lab: &Lab) -> Value {
    serde_json::from_slice(&fs::read(lab.home.join("seen")).unwrap()).unwrap()
}

fn script(lab: &Lab) -> PathBuf {
    lab.project.join(".git/hooks/commit-msg")
}

#[test]
fn what_git_hook_run_says_of_a_refused_commit() {
    let lab = lab();
    lab.write("project/message", "wip");
    insta::assert_snapshot!(screens::shown(
        &lab,
        &["git-hook", "run", "message"],
        &lab.run(&["git-hook", "run", "message"])
    ));
}

#[test]
fn a_commit_is_an_event_that_a_hook_can_refuse() {
    let lab = lab();
    assert_eq!(lab.run(&["git-hook", "status"]).code, 1);
    let told = |lab: &Lab| {
        let id = "user:words.json:git_commit:words";
        let commands: [&[&str]; 3] = [&["hook", "list"], &["hook", "show", id], &["hook", "plan", "git_commit"]];
        commands.map(|command| lab.run(command).stderr.contains("nothing sends `git_commit`"))
    };
    assert_eq!(told(&lab), [true; 3]);
    assert_eq!(install(&lab).code, 0);
    assert_eq!(told(&lab), [false; 3]);
    assert_eq!(lab.run(&["git-hook", "status", "--json"]).answer()["state"], "installed");
    lab.write("project/a.txt", "");
    lab.write("project/ä b.txt", "");
    git(&lab, &["add", "."]);
    let refused = commit(&lab, "wip");
    assert_eq!((refused.code, refused.stderr.as_str()), (1, "ollm: no commit: say what it does\n"));
    assert_eq!(commit(&lab, "Add two\n\n# three").code, 0);
    let data = &seen(&lab)["data"];
    assert_eq!(data["files"], json!(["a.txt", "ä b.txt"]));
    assert_eq!((data["message"].as_str(), data["branch"].as_str()), (Some("Add two\n\n# three"), Some("trunk")));
    assert_eq!(data["cwd"], lab.project.display().to_string());

    lab.write("project/a.txt", "x");
    assert_eq!(git(&lab, &["commit", "-qam", "Change one"]).code, 0);
    assert_eq!(seen(&lab)["data"]["files"], json!(["a.txt"]));
    assert_eq!(git(&lab, &["checkout", "-q", "--detach"]).code, 0);
    assert_eq!(commit(&lab, "Nowhere").code, 0);
    let data = &seen(&lab)["data"];
    assert_eq!((&data["files"], data.get("branch")), (&json!([]), None));
}

#[test]
fn the_hook_sees_the_message_that_is_committed() {
    const CUT: &str = "# ------------------------ >8 ------------------------";
    let below = format!("Say it\n\n# note\n{CUT}\n# Everything below it will be ignored.\ndiff --git a/x b/x\n+wip\n");
    let cut = format!("Say it\n{CUT}\nmore\n");
    // What git is told, what the editor writes, and what the hook sees.
    let cases: [(&[&str], &str, &str); 8] = [
        (&[], "Say it\n\n# note\n", "Say it"),
        (&["-c", "commit.verbose=true"], &below, "Say it"),
        (&[], &cut, "Say it\nmore"),
        (&["-c", "commit.cleanup=scissors"], &cut, "Say it"),
        (&["-c", "commit.cleanup=verbatim"], "Say it\n# kept\n", "Say it\n# kept"),
        (&["-c", "commit.cleanup=whitespace"], "Say it\n# kept\n", "Say it\n# kept"),
        (&["-c", "core.commentChar=;"], "Say it\n# kept\n; note\n", "Say it\n# kept"),
        (&["-c", "core.commentChar=auto"], "Say it\n# kept\n; note\n", "Say it\n# kept"),
    ];
    let lab = lab();
    install(&lab);
    for (told, written, expected) in cases {
        let text = lab.write("text", written);
        let editor = lab.write_executable("editor", &format!("#!/bin/sh\ncat '{}' >\"$1\"\n", text.display()));
        let mut command = lab.program("git");
        command.args(told).args(["commit", "--allow-empty"]).env("GIT_EDITOR", editor);
        assert_eq!(finish(command, b"").code, 0, "{told:?}");
        assert_eq!(seen(&lab)["data"]["message"], expected, "{told:?}");
        if !told.iter().any(|word| word.ends_with("=auto")) {
            assert_eq!(git(&lab, &["log", "-1", "--format=%B"]).stdout.trim(), expected, "{told:?}");
        }
    }
}

#[test]
fn a_commit_of_very_many_files_is_listed_whole() {
    let lab = lab();
    install(&lab);
    let blob = finish(with(&lab, &["hash-object", "-w", "--stdin"]), b"x").stdout;
    let name = |number: usize| format!("src/{}/file-{number:05}.java", "long-".repeat(30));
    let entries: Vec<String> =
        (0..12_000).map(|number| format!("100644 {}\t{}\n", blob.trim(), name(number))).collect();
    assert_eq!(finish(with(&lab, &["update-index", "--index-info"]), entries.concat().as_bytes()).code, 0);
    for message in ["first", "second"] {
        assert_eq!(commit(&lab, message).code, 0);
        let expected = if message == "first" { 12_000 } else { 0 };
        assert_eq!(seen(&lab)["data"]["files"].as_array().unwrap().len(), expected);
    }
}

#[test]
fn the_line_stands_beside_what_is_there_and_goes_without_a_trace() {
    let scripts = [
        "#!/bin/sh\n\nif [ \"$LEFTHOOK\" = \"0\" ]; then\n  exit 0\nfi\necho theirs >>\"$HOME/theirs\"\n",
        "#!/usr/bin/env bash\n# somebody's\nexec sh -c 'echo theirs >>\"$HOME/theirs\"'",
        "#!/bin/sh",
    ];
    for theirs in scripts {
        let lab = lab();
        lab.write_executable("project/.git/hooks/commit-msg", theirs);
        for _ in 0..2 {
            assert_eq!(install(&lab).code, 0);
        }
        assert_eq!(fs::read_to_string(script(&lab)).unwrap().matches("# ollm git-hook").count(), 1);
        assert_eq!(commit(&lab, "wip").code, 1);
        assert_eq!(commit(&lab, "done").code, 0);
        if theirs.contains("theirs") {
            assert_eq!(fs::read_to_string(lab.home.join("theirs")).unwrap(), "theirs\n");
        }
        assert_eq!(lab.run(&["git-hook", "uninstall"]).code, 0);
        assert_eq!(fs::read_to_string(script(&lab)).unwrap(), theirs);
        assert_eq!(commit(&lab, "wip").code, 0);
    }
    let lab = lab();
    install(&lab);
    lab.run(&["git-hook", "uninstall"]);
    assert!(!script(&lab).exists());
    assert_eq!(lab.run(&["git-hook", "uninstall"]).code, 0);
}

#[test]
fn a_folder_that_was_made_for_the_line_goes_with_it_and_so_does_one_that_husky_left() {
    let lab = lab();
    git(&lab, &["config", "core.hooksPath", ".githooks"]);
    install(&lab);
    assert!(lab.project.join(".githooks/commit-msg").exists());
    lab.run(&["git-hook", "uninstall"]);
    assert!(!lab.project.join(".githooks").exists());
    // The person moved to husky, and away from it again.
    git(&lab, &["config", "core.hooksPath", ".husky/_"]);
    lab.write("project/.husky/_/h", "");
    lab.write("project/.husky/commit-msg", "echo theirs\n");
    install(&lab);
    git(&lab, &["config", "--unset", "core.hooksPath"]);
    assert!(lab.run(&["git-hook", "uninstall"]).stdout.contains("no longer"));
    assert_eq!(fs::read_to_string(lab.project.join(".husky/commit-msg")).unwrap(), "echo theirs\n");
}

#[test]
fn commits_that_a_hook_for_commits_makes_end_three_deep() {
    let lab = lab();
    let script =
        "cat >/dev/null; echo ran >>\"$HOME/ran\"; git commit -q --allow-empty -m again 2>>\"$HOME/said\"; exit 0";
    lab.user_hook("git_commit", "again", script, "");
    install(&lab);
    commit(&lab, "first");
    assert_eq!(fs::read_to_string(lab.home.join("ran")).unwrap().lines().count(), 4);
    let said = fs::read_to_string(lab.home.join("said")).unwrap();
    assert_eq!(said.matches("no commit: it is inside 3 events that hooks sent").count(), 1, "{said}");
}

#[test]
fn what_pre_commit_writes_anew_keeps_our_line_beside_it() {
    let theirs = "#!/bin/sh\n# File generated by pre-commit: https://pre-commit.com\n\"$0\".legacy \"$@\" && echo theirs >>\"$HOME/theirs\"\n";
    let lab = lab();
    lab.write_executable("project/.git/hooks/commit-msg", theirs);
    let installed = install(&lab);
    assert!(installed.stdout.contains("commit-msg.legacy"), "{installed:?}");
    assert_eq!(fs::read_to_string(script(&lab)).unwrap(), theirs);
    assert!(install(&lab).stdout.contains("go already"));
    assert_eq!(lab.run(&["git-hook", "status"]).code, 0);
    assert_eq!((commit(&lab, "wip").code, commit(&lab, "done").code), (1, 0));
    assert_eq!(fs::read_to_string(lab.home.join("theirs")).unwrap(), "theirs\n");
    assert_eq!(lab.run(&["git-hook", "uninstall"]).code, 0);
    assert!(!lab.project.join(".git/hooks/commit-msg.legacy").exists());
    // What a person installed before and pre-commit then moved aside is known, and goes, too.
    fs::remove_file(script(&lab)).unwrap();
    install(&lab);
    fs::rename(script(&lab), lab.project.join(".git/hooks/commit-msg.legacy")).unwrap();
    lab.write_executable("project/.git/hooks/commit-msg", theirs);
    assert!(lab.run(&["git-hook", "status"]).stdout.contains("commit-msg.legacy"));
    fs::rename(lab.project.join(".git/hooks/commit-msg.legacy"), lab.project.join(".git/hooks/commit-msg.old"))
        .unwrap();
    assert_eq!(lab.run(&["git-hook", "status"]).code, 1);
    assert!(lab.run(&["git-hook", "uninstall"]).stdout.contains("no longer"));
    assert!(!lab.project.join(".git/hooks/commit-msg.old").exists());
    assert_eq!(fs::read_to_string(script(&lab)).unwrap(), theirs);
}

#[test]
fn a_folder_of_the_repository_is_everybodys_and_works_without_us() {
    let lab = lab();
    git(&lab, &["config", "core.hooksPath", ".husky/_"]);
    lab.write(
        "project/.husky/_/h",
        "s=$(dirname \"$(dirname \"$0\")\")/commit-msg\n[ ! -f \"$s\" ] || sh -e \"$s\" \"$@\"\n",
    );
    lab.write_executable("project/.husky/_/commit-msg", "#!/usr/bin/env sh\n. \"$(dirname \"$0\")/h\"\n");
    lab.write("project/.husky/commit-msg", "echo theirs >>\"$HOME/theirs\"\n");
    let installed = install(&lab);
    assert!(installed.stdout.contains(".husky/commit-msg") && installed.stderr.contains("part of the repository"));
    let text = fs::read_to_string(lab.project.join(".husky/commit-msg")).unwrap();
    assert!(text.starts_with("if command -v ollm "), "{text}");
    assert!(installed.stderr.contains("not on your PATH"), "{}", installed.stderr);
    let status = lab.run(&["git-hook", "status", "--json"]);
    assert_eq!(
        (status.code, status.answer()),
        (1, json!({"state": "broken", "file": lab.project.join(".husky/commit-msg"), "shared": true}))
    );
    assert!(lab.run(&["hook", "list"]).stderr.contains("nothing sends `git_commit`"));
    let committed = commit(&lab, "wip");
    assert_eq!(committed.code, 0);
    assert!(committed.stderr.contains("ollm is not here"), "{}", committed.stderr);
    assert_eq!(fs::read_to_string(lab.home.join("theirs")).unwrap(), "theirs\n");
    lab.run(&["git-hook", "uninstall"]);
    assert_eq!(fs::read_to_string(lab.project.join(".husky/commit-msg")).unwrap(), "echo theirs >>\"$HOME/theirs\"\n");
}

#[test]
fn what_is_not_ours_to_change_is_named_and_left_alone() {
    type Prepare = fn(&Lab);
    let cases: [(&str, Prepare, &str); 5] = [
        (
            "no shell script",
            |lab| drop(lab.write_executable("project/.git/hooks/commit-msg", "#!/usr/bin/env python3\n")),
            "no shell script",
        ),
        (
            "not executable",
            |lab| drop(lab.write("project/.git/hooks/commit-msg", "#!/bin/sh\nexit 1\n")),
            "not executable",
        ),
        (
            "a link",
            |lab| {
                lab.write_executable("project/check.sh", "#!/bin/sh\n");
                fs::create_dir_all(lab.project.join(".git/hooks")).unwrap();
                symlink("../../check.sh", script(lab)).unwrap();
            },
            "is a link to",
        ),
        (
            "line ends of Windows",
            |lab| drop(lab.write_executable("project/.git/hooks/commit-msg", "#!/bin/sh\r\nexit 0\r\n")),
            "line ends of Windows",
        ),
        (
            "all repositories",
            |lab| drop(lab.write("home/.gitconfig", "[core]\n\thooksPath = ~/hooks\n")),
            "for all repositories",
        ),
    ];
    for (what, prepare, words) in cases {
        let lab = lab();
        prepare(&lab);
        let before = fs::read(script(&lab)).ok();
        let ran = install(&lab);
        assert_eq!(ran.code, 3, "{what}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{what}: {}", ran.stderr);
        assert!(lab.run(&["hook", "list"]).stderr.contains("nothing sends `git_commit`"), "{what}");
        assert_eq!(fs::read(script(&lab)).ok(), before, "{what}");
    }
    let lab = Lab::new();
    assert_eq!(install(&lab).code, 5);
}

#[test]
fn a_program_that_is_gone_is_told_and_stops_nobody() {
    let lab = lab();
    let line = fs::read_to_string({
        install(&lab);
        script(&lab)
    });
    let gone = line.unwrap().replace(env!("CARGO_BIN_EXE_ollm"), "/gone/ollm");
    fs::write(script(&lab), gone).unwrap();
    assert_eq!(lab.run(&["git-hook", "status", "--json"]).answer()["state"], "broken");
    let committed = commit(&lab, "wip");
    assert!(committed.code == 0 && committed.stderr.contains("ollm is not here"), "{}", committed.stderr);
    assert_eq!(install(&lab).code, 0);
    assert_eq!(commit(&lab, "wip").code, 1);
}

#[test]
fn d16_nothing_that_a_repository_names_is_run() {
    let lab = lab();
    lab.write("project/a.txt", "");
    git(&lab, &["add", "."]);
    let evil = lab.write_executable("evil", "#!/bin/sh\ntouch \"$HOME/ran\"\n");
    let evil = evil.to_str().unwrap();
    for key in ["core.fsmonitor", "core.pager", "diff.external", "diff.x.textconv", "core.sshCommand"] {
        git(&lab, &["config", key, evil]);
    }
    lab.write("project/.gitattributes", "*.txt diff=x\n");
    let _ = fs::remove_file(lab.home.join("ran"));
    let message = lab.write("message", "Say it\n");
    assert_eq!(lab.run(&["git-hook", "run", message.to_str().unwrap()]).code, 0);
    assert_eq!(lab.run(&["git-hook", "status"]).code, 1);
    assert!(!lab.home.join("ran").exists());
}

#[test]
fn an_agent_may_not_install_it_and_a_worktree_shares_it() {
    let lab = lab().set("CLAUDECODE", "1");
    assert_eq!(install(&lab).code, 4);
    let lab = lab_with_worktree();
    install(&lab);
    let mut command = lab.program("git");
    command.args(["commit", "--allow-empty", "-m", "wip"]).current_dir(lab.root.join("tree"));
    assert_eq!(finish(command, b"").code, 1);
    assert_eq!(seen(&lab)["data"]["branch"], "tree");
}

fn lab_with_worktree() -> Lab {
    let lab = lab();
    assert_eq!(commit(&lab, "first").code, 0);
    assert_eq!(git(&lab, &["worktree", "add", "-q", "../tree"]).code, 0);
    lab
}

#[test]
fn a_hook_that_waits_for_commits_outside_a_repository_is_told_so() {
    let lab = Lab::new();
    lab.user_hook("git_commit", "waits", "exit 0", "");
    for command in [&["hook", "list"][..], &["hook", "plan", "git_commit"], &["hook", "show", "waits"]] {
        let ran = lab.run(command);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("nothing sends `git_commit` here, for this folder is in no repository"), "{ran:?}");
    }
}
