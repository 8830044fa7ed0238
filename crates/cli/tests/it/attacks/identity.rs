//! What a project is, under every spelling of its path and with all its claims.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::{CANARY, ID, judged, lab, standing};
use crate::lab::{Lab, finish, hook_file, shell_event};

#[test]
fn a12_a_forged_pointer_to_a_trusted_repository_changes_nothing() {
    let lab = lab();
    for (path, content) in [
        ("trusted/.git/config", ""),
        ("trusted/.git/worktrees/x/commondir", "../..\n"),
        ("trusted/.ollm/hooks/guest.sh", CANARY),
        ("trusted/.ollm/hooks/guest.json", &hook_file("before_tool", "guest", "")),
    ] {
        lab.write(path, content);
    }
    let trusted = lab.root.join("trusted");
    lab.write("home/.ollm/config.yaml", format!("hooks:\n  trustWorkspace: [\"{}\"]\n", trusted.display()));
    let there = |lab: &Lab, arguments: &[&str]| {
        let mut command = lab.ollm(arguments);
        command.current_dir(&trusted);
        finish(command, b"")
    };
    assert_eq!(there(&lab, &["hook", "run", "before_tool"]).hook("guest")["status"], "ok");
    let gitdir = format!("gitdir: {}\n", trusted.join(".git/worktrees/x").display());
    let common = trusted.join(".git").display().to_string();
    fs::remove_dir(lab.project.join(".git")).unwrap();
    lab.write("project/.git", &gitdir);
    assert_eq!(standing(&lab), "untrusted", "a worktree that says so itself");
    fs::remove_file(lab.project.join(".git")).unwrap();
    lab.write("project/.git/commondir", &common);
    lab.write("project/.git/gitdir", &common);
    lab.write("project/.git/config", format!("[core]\n\tworktree = {}\n", trusted.display()));
    assert_eq!(standing(&lab), "untrusted", "a folder that says so itself");
    fs::remove_dir_all(lab.project.join(".git")).unwrap();
    symlink(trusted.join(".git"), lab.project.join(".git")).unwrap();
    assert_eq!(standing(&lab), "untrusted", "a link");
}

#[test]
fn a12_an_approval_is_for_one_place() {
    let lab = lab();
    lab.approve(ID);
    let copy = lab.root.join("clone");
    let copied = Command::new("cp").arg("-r").args([&lab.project, &copy]).status().unwrap();
    assert!(copied.success());
    let mut command = lab.ollm(&["hook", "run"]);
    command.current_dir(&copy);
    assert_eq!(finish(command, shell_event("ls").as_bytes()).skip("guest")["reason"], "untrusted");
}

#[test]
fn a13_files_of_a_project_set_no_variables() {
    let lab = lab();
    lab.user_hook("before_tool", "own", "printf '{\"continue\": false}'", "");
    lab.write("project/fake/config.yaml", "hooks: {trustWorkspace: true}\n");
    let lines = "OLLM_HOME=fake\nHOME=fake\nOLLM_HOOKS_ENABLED=false\nHOOKS_ENABLED=false\n";
    for file in [".env", ".env.local", ".envrc", ".ollm/.env", ".config/agent/.env"] {
        lab.write(&format!("project/{file}"), lines);
    }
    let ran = lab.event(shell_event("ls"));
    assert_eq!((judged(&lab, &ran).as_str(), ran.code), ("untrusted", 2));
}

#[test]
fn a14_one_project_has_one_identity_however_its_path_is_written() {
    let lab = lab();
    lab.approve(ID);
    lab.write("project/sub/deep/x", "");
    symlink("project", lab.root.join("link")).unwrap();
    symlink(lab.project.join("sub"), lab.root.join("other")).unwrap();
    for place in [
        "project/.",
        "project/../project",
        "project/sub/deep/../..",
        "project/sub/deep",
        "link",
        "link/sub",
        "other/deep",
    ] {
        let mut command = lab.ollm(&["hook", "run"]);
        command.current_dir(lab.root.join(place)).env("PWD", lab.root.join(place));
        let ran = finish(command, shell_event("ls").as_bytes());
        assert_eq!(ran.hook("guest")["status"], "ok", "{place}");
    }
}

#[test]
fn a14_a_link_to_approved_hooks_of_another_project_is_not_approved() {
    let lab = lab();
    lab.approve(ID);
    for (project, link, target) in
        [("one", ".ollm", "../project/.ollm"), ("two", ".ollm/hooks", "../../project/.ollm/hooks")]
    {
        let folder = lab.root.join(project);
        fs::create_dir_all(folder.join(".git")).unwrap();
        fs::create_dir_all(folder.join(link).parent().unwrap()).unwrap();
        symlink(target, folder.join(link)).unwrap();
        let mut command = lab.ollm(&["hook", "run"]);
        command.current_dir(&folder);
        let ran = finish(command, shell_event("ls").as_bytes());
        assert!(ran.answer()["hooks"].as_array().unwrap().is_empty(), "{project}: {ran:?}");
        assert!(!folder.join("canary").exists(), "{project}");
    }
}

#[test]
fn trust_in_a_project_does_not_reach_into_what_others_put_there() {
    let lab = Lab::new();
    // Approved hooks of enclosing projects run as well.
    let name = |place: &str| place.replace('/', "-");
    let plant = |place: &str, is_repository: bool| {
        lab.write(&format!("{place}/.ollm/hooks/{}.sh", name(place)), CANARY);
        lab.write(&format!("{place}/.ollm/hooks/guest.json"), hook_file("before_tool", &name(place), ""));
        if is_repository {
            lab.write(&format!("{place}/.git"), "gitdir: elsewhere\n");
        }
    };
    let runs = |place: &str| {
        let mut command = lab.ollm(&["hook", "run"]);
        command.current_dir(lab.root.join(place));
        let answer = finish(command, shell_event("ls").as_bytes()).answer();
        answer["hooks"].as_array().unwrap().iter().any(|hook| hook["name"] == name(place))
    };
    // Whether a list with the project, a list with the folder of all projects, and `true` cover it.
    let places = [
        ("project", false, [true, true, true]),
        ("project/packages/app", false, [true, true, true]),
        ("project/node_modules/evil", false, [false, false, false]),
        ("project/node_modules/@scope/evil/deep", false, [false, false, false]),
        ("project/Vendor/evil", false, [false, false, false]),
        ("project/lib/third_party/evil", true, [false, false, false]),
        ("project/.venv/lib/python3/site-packages/evil", false, [false, false, false]),
        ("project/sub", true, [false, false, false]),
        ("other", true, [false, true, true]),
        ("other/sub", true, [false, false, false]),
        ("plain/vendor/x", false, [false, false, true]),
    ];
    for (place, is_repository, _) in places {
        plant(place, is_repository);
    }
    let lists =
        [format!("[\"{}\"]", lab.project.display()), format!("[\"{}\"]", lab.root.display()), "true".to_owned()];
    for (at, list) in lists.iter().enumerate() {
        lab.write("home/.ollm/config.yaml", format!("hooks:\n  trustWorkspace: {list}\n"));
        for (place, _, covered) in places {
            assert_eq!(runs(place), covered[at], "{list}: {place}");
        }
    }
    // A person who means it lists it.
    let exact = lab.root.join("project/node_modules/evil");
    lab.write("home/.ollm/config.yaml", format!("hooks:\n  trustWorkspace: [\"{}\"]\n", exact.display()));
    assert!(runs("project/node_modules/evil") && !runs("project"));
}

#[test]
fn s14_trust_in_a_workspace_follows_no_link_to_what_others_wrote() {
    let lab = Lab::new();
    lab.workspace_hook("before_tool", "guest", "exit 0", "");
    lab.write("home/.ollm/config.yaml", format!("hooks:\n  trustWorkspace: [\"{}\"]\n", lab.project.display()));
    lab.event(shell_event("ls")).hook("guest");
    fs::create_dir_all(lab.project.join("node_modules/evil")).unwrap();
    let (own, theirs) = (lab.project.join(".ollm"), lab.project.join("node_modules/evil/.ollm"));
    fs::rename(&own, &theirs).unwrap();
    symlink(&theirs, &own).unwrap();
    assert_eq!(lab.event(shell_event("ls")).skip("guest")["reason"], "untrusted", "a link to the folder");
    fs::remove_file(&own).unwrap();
    fs::create_dir(&own).unwrap();
    symlink(theirs.join("hooks"), own.join("hooks")).unwrap();
    assert_eq!(lab.event(shell_event("ls")).skip("guest")["reason"], "untrusted", "a link in it");
}
