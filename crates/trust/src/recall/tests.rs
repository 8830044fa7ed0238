use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use ollm_protocol::hook::action::CommandSpec;
use ollm_protocol::{ActionSpec, Hook};

use super::*;
use crate::fixture::Project;
use crate::{Refusal, Trusted};

/// A project with an approved hook: a script with a sourced file and an input, run by what `env` finds.
fn project() -> (Project, Arc<Hook>) {
    let project = Project::new();
    let script = project.file("guard.sh", "#!/usr/bin/env sh\n. ./lib/words.sh\n");
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    project.file("lib/words.sh", "echo words\n");
    let input = project.file("rules.txt", "rules");
    let command = script.display().to_string();
    let action = ActionSpec::Command(CommandSpec { command, args: Vec::new(), script: Some(script) });
    let hook = project.hook(action, &[&input]);
    project.approve(&hook);
    (project, hook)
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn overwrite(path: &Path, text: &str) {
    mode(path, 0o700);
    fs::write(path, text).unwrap();
    mode(path, 0o500);
}

/// What a check says, in words that do not depend on who asked.
fn said(checked: &Result<Trusted<Hook>, Refusal>) -> String {
    match checked {
        Ok(trusted) => format!("{} runs {}", trusted.digest().unwrap(), fs::read_to_string(trusted.program()).unwrap()),
        Err(refusal) => format!("{:?}: {}", refusal.reason, refusal.detail),
    }
}

/// The first check makes the copy in which scripts name one another; what is remembered was there before the check.
fn twice(project: &Project, trust: &Trust, hook: &Arc<Hook>) -> Trusted<Hook> {
    project.check(trust, hook).unwrap();
    project.check(trust, hook).unwrap()
}

fn is_recalled(project: &Project, trust: &Trust, hook: &Arc<Hook>) -> bool {
    trust.recall(&**hook, &trust.memory.defined(hook), &project.context()).is_some()
}

#[test]
fn a_check_is_remembered_for_as_long_as_nothing_changes() {
    let (project, hook) = project();
    let trust = project.trust();
    assert!(!is_recalled(&project, &trust, &hook));
    let first = twice(&project, &trust, &hook);
    assert!(is_recalled(&project, &trust, &hook));
    let second = project.check(&trust, &hook).unwrap();
    assert_eq!((first.program(), first.digest()), (second.program(), second.digest()));
    // What has only just been written could change again within the same moment.
    let trust = Trust::new(project.approvals(), std::time::SystemTime::now);
    twice(&project, &trust, &hook);
    assert!(!is_recalled(&project, &trust, &hook));
}

#[test]
fn a_remembered_check_says_what_a_new_one_says_whatever_was_changed_meanwhile() {
    type Change = fn(&Project, &Trusted<Hook>);
    let changes: [(&str, Change); 15] = [
        ("script written in place", |project, _| fs::write(project.root.join("guard.sh"), "#!/bin/sh\nevil").unwrap()),
        ("script no longer executable", |project, _| mode(&project.root.join("guard.sh"), 0o644)),
        ("script replaced by a link", |project, _| {
            let evil = project.file("evil.sh", "#!/bin/sh\nevil");
            fs::remove_file(project.root.join("guard.sh")).unwrap();
            symlink(evil, project.root.join("guard.sh")).unwrap();
        }),
        ("script gone", |project, _| fs::remove_file(project.root.join("guard.sh")).unwrap()),
        ("sourced file written", |project, _| drop(project.file("lib/words.sh", "echo evil\n"))),
        ("folder of the sourced file replaced", |project, _| {
            fs::rename(project.root.join("lib"), project.root.join("old")).unwrap();
            project.file("lib/words.sh", "echo evil\n");
        }),
        ("input written", |project, _| drop(project.file("rules.txt", "other"))),
        ("another interpreter first", |project, _| {
            fs::create_dir(project.beside("first")).unwrap();
            symlink("/bin/cat", project.beside("first/sh")).unwrap();
        }),
        ("folder open to others", |project, _| mode(&project.root, 0o777)),
        ("declaration open to others", |project, _| mode(&project.root.join("hooks.json"), 0o666)),
        ("copy written", |_, trusted| overwrite(&trusted.program(), "#!/bin/sh\nevil")),
        ("copy replaced", |_, trusted| {
            let folder = trusted.program().parent().unwrap().to_owned();
            mode(&folder, 0o700);
            fs::remove_file(trusted.program()).unwrap();
            fs::write(trusted.program(), "#!/bin/sh\nevil").unwrap();
            mode(&trusted.program(), 0o500);
            mode(&folder, 0o500);
        }),
        ("copy open to others", |_, trusted| mode(&trusted.program(), 0o777)),
        ("store open to others", |project, _| mode(&project.beside("home/store"), 0o777)),
        ("approval withdrawn", |project, _| fs::remove_file(project.approvals()).unwrap()),
    ];
    for (what, change) in changes {
        let (project, hook) = project();
        let trust = project.trust();
        let before = twice(&project, &trust, &hook);
        let good = said(&Ok(before.clone()));
        assert!(is_recalled(&project, &trust, &hook), "{what}");
        change(&project, &before);
        assert!(!is_recalled(&project, &trust, &hook), "{what}");
        let remembering = said(&project.check(&trust, &hook));
        assert_eq!(remembering, said(&project.check(&project.trust(), &hook)), "{what}");
        assert!(remembering == good || !remembering.contains("runs"), "{what}: {remembering}");
    }
}

#[test]
fn what_was_approved_for_less_than_always_is_asked_about_each_time() {
    let (project, hook) = project();
    fs::remove_file(project.approvals()).unwrap();
    let proposal = project.proposal(&hook);
    let trust = project.trust();
    trust.approve(&*hook, &proposal, crate::Term::Once, &project.context()).unwrap();
    assert!(project.check(&trust, &hook).is_ok());
    assert!(!is_recalled(&project, &trust, &hook));
    assert!(project.check(&trust, &hook).is_err());
}

#[test]
fn a_check_for_one_project_is_none_for_another() {
    let (project, hook) = project();
    let trust = project.trust();
    twice(&project, &trust, &hook);
    let elsewhere = project.beside("elsewhere");
    let context = TrustContext { project: Some(&elsewhere), ..project.context() };
    assert!(trust.recall(&*hook, &trust.memory.defined(&hook), &context).is_none());
}
