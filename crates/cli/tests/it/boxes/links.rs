//! Protected paths that are links: to nothing, over others, and in the project.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{boxed, guarded, is_whole, without_namespaces};
use crate::lab::{Lab, OLLM};

/// The files that a script changed, of those that are read behind links.
fn read(lab: &Lab, name: &str) -> Option<String> {
    fs::read_to_string(lab.root.join(name)).ok()
}

#[test]
fn what_a_protected_link_leads_to_cannot_be_made() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    fs::create_dir(lab.home.join("dot")).unwrap();
    fs::remove_file(lab.home.join(".claude/settings.json")).unwrap();
    fs::remove_dir_all(lab.project.join(".git/hooks")).unwrap();
    for (link, target) in [
        ("home/.zshrc", "dot/zshrc"),
        ("home/.claude/settings.json", "../dot/claude.json"),
        ("project/.git/hooks", "../githooks"),
    ] {
        symlink(target, lab.root.join(link)).unwrap();
    }
    for (script, name) in [
        ("echo evil > ~/.zshrc", "home/.zshrc"),
        ("echo evil > ~/dot/claude.json", "home/.claude/settings.json"),
        ("mkdir githooks; echo evil > githooks/pre-commit", "project/.git/hooks/pre-commit"),
    ] {
        let ran = boxed(&lab, &["sh", "-c", script]);
        assert_eq!(read(&lab, name), None, "{script}: {ran:?}");
        assert!(ran.stderr.contains("is protected and was made by the command"), "{script}: {ran:?}");
    }
}

#[test]
fn no_link_on_the_way_to_a_protected_file_can_be_replaced() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    lab.write("home/dot/bashrc.v1", "mine");
    lab.write("home/dot/v1/codex/config.toml", "mine");
    fs::remove_file(lab.home.join(".bashrc")).unwrap();
    for (link, target) in
        [("dot/bashrc", "bashrc.v1"), (".bashrc", "dot/bashrc"), ("dot/current", "v1"), (".codex", "dot/current/codex")]
    {
        symlink(target, lab.home.join(link)).unwrap();
    }
    for (script, name) in [
        ("rm ~/dot/bashrc; echo evil > ~/dot/bashrc", "home/.bashrc"),
        (
            "rm ~/dot/current; mkdir -p ~/dot/current/codex; echo evil > ~/dot/current/codex/config.toml",
            "home/.codex/config.toml",
        ),
        ("mkdir -p ~/x/codex; echo evil > ~/x/codex/hooks.json; ln -sfn ../x ~/dot/current", "home/.codex/config.toml"),
    ] {
        let ran = boxed(&lab, &["sh", "-c", script]);
        assert_eq!(read(&lab, name).as_deref(), Some("mine"), "{script}: {ran:?}");
        assert!(ran.stderr.contains("is restored"), "{script}: {ran:?}");
    }
    assert_eq!(read(&lab, "home/x/codex/hooks.json").as_deref(), Some("evil\n"), "what lies elsewhere stays there");
    let ran = boxed(&lab, &["sh", "-c", "echo x > ~/dot/new && mkdir ~/dot/v1/other && echo fine"]);
    assert_eq!(ran.stdout, "fine\n", "what lies beside can be written: {ran:?}");
}

#[test]
fn where_the_kernel_holds_nothing_in_the_project_what_a_link_leads_to_is_compared() {
    let lab = guarded();
    lab.write("project/shared/settings.json", "mine");
    fs::create_dir(lab.project.join(".claude")).unwrap();
    symlink("../shared/settings.json", lab.project.join(".claude/settings.json")).unwrap();
    let Some(ran) = without_namespaces(&lab, "echo evil > shared/settings.json") else { return };
    assert_eq!(read(&lab, "project/.claude/settings.json").as_deref(), Some("mine"), "{ran:?}");
}

#[test]
fn the_program_that_a_shell_finds_by_our_name_stays_ours() {
    let lab = guarded();
    let (earlier, linked) = (lab.root.join("tools/earlier"), lab.root.join("tools/linked"));
    for folder in [&earlier, &linked] {
        fs::create_dir_all(folder).unwrap();
    }
    symlink(OLLM, linked.join("ollm")).unwrap();
    let path = format!("{}:{}:{}", earlier.display(), linked.display(), std::env::var("PATH").unwrap());
    let lab = lab.set("PATH", &path);
    if !is_whole(&lab) {
        return;
    }
    let script =
        "cd ../tools; echo evil > earlier/ollm; ln -sfn /bin/true linked/ollm; rm -f linked/ollm; mv linked x; true";
    let ran = boxed(&lab, &["sh", "-c", script]);
    assert_eq!(fs::read_link(linked.join("ollm")).unwrap(), Path::new(OLLM), "{ran:?}");
    assert!(!earlier.join("ollm").exists() && earlier.join("ollm.set-aside-1").exists(), "{ran:?}");
}
