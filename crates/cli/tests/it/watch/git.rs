//! What git does to a work tree.

use std::fs;

use super::{Watch, created, deleted, edited};
use crate::lab::{Lab, Ran, finish};

/// A lab whose project is a repository with one commit.
fn repository(files: &[(&str, &str)]) -> Lab {
    let lab = Lab::new();
    fs::remove_dir(lab.project.join(".git")).unwrap();
    git(&lab, &["init", "--quiet", "--initial-branch=main"]);
    commit(&lab, files);
    lab
}

fn commit(lab: &Lab, files: &[(&str, &str)]) {
    for (path, text) in files {
        lab.save(&format!("project/{path}"), text);
    }
    git(lab, &["add", "--all"]);
    git(lab, &["commit", "--quiet", "-m", "Change"]);
}

#[track_caller]
fn git(lab: &Lab, args: &[&str]) {
    let ran = try_git(lab, args);
    assert_eq!(ran.code, 0, "{ran:?}");
}

fn try_git(lab: &Lab, args: &[&str]) -> Ran {
    let mut git = lab.program("git");
    git.args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]).args(args);
    git.env("GIT_EDITOR", "true");
    finish(git, b"")
}

#[test]
fn a_checkout_tells_of_each_file_once() {
    let lab = repository(&[("same", "1"), ("changed", "1"), ("gone", "1")]);
    let many: Vec<(String, String)> =
        (0..1000).map(|number| (format!("new/{number:04}"), number.to_string())).collect();
    git(&lab, &["checkout", "--quiet", "-b", "other"]);
    git(&lab, &["rm", "--quiet", "gone"]);
    commit(&lab, &[("changed", "2")]);
    commit(&lab, &many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
    git(&lab, &["checkout", "--quiet", "main"]);
    let mut watch = Watch::new(&lab);
    git(&lab, &["checkout", "--quiet", "other"]);
    let mut expected = vec![edited("changed"), deleted("gone")];
    expected.extend(many.iter().map(|(path, _)| created(path)));
    let mut told = watch.events();
    told.sort_by(|(_, one), (_, other)| one.cmp(other));
    assert_eq!(told, expected);
}

#[test]
fn a_rebase_tells_of_its_end_and_one_that_stops_of_where_it_stopped() {
    let lab = repository(&[("a", "1\n"), ("b", "1\n")]);
    git(&lab, &["checkout", "--quiet", "-b", "work"]);
    commit(&lab, &[("a", "mine\n")]);
    commit(&lab, &[("b", "mine\n")]);
    git(&lab, &["checkout", "--quiet", "main"]);
    commit(&lab, &[("a", "theirs\n"), ("c", "1\n")]);
    git(&lab, &["checkout", "--quiet", "work"]);
    let mut watch = Watch::new(&lab);
    watch.asleep(|| assert_ne!(try_git(&lab, &["rebase", "--quiet", "main"]).code, 0));
    assert!(lab.project.join(".git/rebase-merge").exists());
    assert!(fs::read_to_string(lab.project.join("a")).unwrap().contains("<<<<<<<"));
    assert_eq!(watch.events(), [edited("a"), edited("b"), created("c")]);
    // People go on editing in the middle of it.
    lab.save("project/a", "both\n");
    assert_eq!(watch.events(), [edited("a")]);
    watch.asleep(|| {
        git(&lab, &["add", "a"]);
        git(&lab, &["rebase", "--continue"]);
    });
    assert_eq!(watch.events(), [edited("b")]);
}

#[test]
fn nothing_is_told_while_git_holds_its_lock() {
    let lab = repository(&[("a", "1")]);
    let mut watch = Watch::new(&lab);
    let lock = lab.save("project/.git/index.lock", "");
    lab.save("project/a", "half way");
    lab.save("project/a", "there");
    fs::remove_file(lock).unwrap();
    assert_eq!(watch.events(), [edited("a")]);
}

#[test]
fn what_git_leaves_out_is_left_out_too_where_its_own_files_lie_elsewhere() {
    let lab = Lab::new();
    fs::remove_dir(lab.project.join(".git")).unwrap();
    git(&lab, &["init", "--quiet", "--separate-git-dir=../repository"]);
    lab.write("repository/info/exclude", "*.mine\n");
    let mut watch = Watch::new(&lab);
    lab.save("project/a.mine", "1");
    lab.save("project/b", "1");
    assert_eq!(watch.events(), [created("b")]);
    assert_eq!(watch.told(), "");
}
