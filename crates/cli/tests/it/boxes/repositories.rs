//! Repositories in a box: what has git run something is kept, wherever it stands, and ordinary git goes on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use proptest::prelude::*;

use super::{NO_NAMESPACES, assert_intact, boxed, guarded, is_whole, lasting_folder, partial_box, without_namespaces};
use crate::lab::{Lab, OLLM, Ran};

/// A real repository in place of the project's `.git`, with an identity for commits.
fn scene() -> Option<Lab> {
    let lab = guarded();
    if !is_whole(&lab) {
        return None;
    }
    lab.write("home/.gitconfig", "[user]\n\tname = a\n\temail = a@b.c\n[protocol \"file\"]\n\tallow = always\n");
    fs::remove_dir_all(lab.project.join(".git")).unwrap();
    Some(lab)
}

fn shell(lab: &Lab, script: &str) -> Ran {
    boxed(lab, &["sh", "-ec", script])
}

/// Outside of any box.
fn outside(lab: &Lab, script: &str) -> Ran {
    let mut command = lab.program("sh");
    command.args(["-ec", script]);
    let ran = crate::lab::finish(command, b"");
    assert_eq!(ran.code, 0, "{script}\n{ran:?}");
    ran
}

#[test]
fn a_repository_without_hooks_is_not_swapped_for_another() {
    let Some(lab) = scene() else { return };
    outside(&lab, "git init -q --template= .; test ! -e .git/hooks; mkdir evil; git init -q evil");
    lab.write("project/evil/.git/hooks/pre-commit", "evil");
    for attack in
        ["mv .git x && mv evil/.git .git", "mv .git y; echo 'gitdir: evil/.git' > .git", "ln -sfn evil/.git .git"]
    {
        shell(&lab, &format!("({attack}) 2> /dev/null || true"));
        assert!(lab.project.join(".git").is_dir() && !lab.project.join(".git").is_symlink(), "{attack}");
        assert!(!lab.project.join(".git/hooks/pre-commit").exists(), "{attack}");
    }
    let ran = shell(
        &lab,
        "git config user.x y; echo x > f; git add f; git commit -qm one; git gc -q; git log --oneline | wc -l",
    );
    assert_eq!((ran.stdout.trim(), ran.code), ("1", 0), "{ran:?}");
}

#[test]
fn a_file_that_names_another_repository_is_moved_aside() {
    let Some(lab) = scene() else { return };
    outside(&lab, "git init -q evil");
    lab.write_executable("project/evil/.git/hooks/pre-commit", "#!/bin/sh\necho evil > ../committed\n");
    let names_another = "echo 'gitdir: evil/.git' > .git";
    let commit = "git commit -q --allow-empty -m one > /dev/null 2>&1 || true; test ! -e ../committed";
    let ran = shell(&lab, names_another);
    assert!(ran.stderr.contains(".git` is protected and was made by the command"), "{ran:?}");
    outside(&lab, commit);
    outside(&lab, "git init -q .; git commit -q --allow-empty -m one; git worktree add -q ../tree; cp -r evil ../tree");
    let Some(ran) = without_namespaces(&lab, &format!("mv .git other; {names_another}")) else { return };
    assert!(ran.stderr.contains("hooks` is protected and was removed by the command; it is restored"), "{ran:?}");
    outside(&lab, commit);
    let mut command = lab.program("unshare");
    command.args(["-Ur", "sh", "-c", NO_NAMESPACES, "sh", OLLM, "box", "--", "sh", "-c", names_another]);
    command.current_dir(lab.root.join("tree"));
    let ran = crate::lab::finish(command, b"");
    let leads = fs::read_to_string(lab.root.join("tree/.git")).unwrap();
    assert!(leads.contains("worktrees/tree"), "{leads}: {ran:?}");
}

#[test]
fn hooks_and_settings_of_submodules_and_other_working_trees_are_put_back() {
    let Some(lab) = scene() else { return };
    outside(
        &lab,
        "git init -q ../lib; git -C ../lib commit -q --allow-empty -m one; git init -q .; git submodule add -q ../lib sub
        git commit -qm two; git worktree add -q ../tree",
    );
    let ran = shell(
        &lab,
        "echo evil > .git/modules/sub/hooks/post-checkout; git -C sub config core.fsmonitor ./evil
        echo /tmp/evil > .git/worktrees/tree/commondir",
    );
    assert_eq!(ran.stderr.matches("decides what `git` runs").count(), 3, "{ran:?}");
    assert!(!lab.project.join(".git/modules/sub/hooks/post-checkout").exists());
    outside(&lab, "test -z \"$(git -C sub config core.fsmonitor)\"; git -C ../tree status > /dev/null");
}

#[test]
fn a_submodule_is_not_led_to_another_repository() {
    let Some(lab) = scene() else { return };
    outside(
        &lab,
        "git init -q ../lib; git -C ../lib commit -q --allow-empty -m one; git init -q .; git submodule add -q ../lib sub
        git commit -qm two; git init -q other; git -C other commit -q --allow-empty -m one",
    );
    let ran = "#!/bin/sh\ntouch \"$0.ran\"\nexit 1\n";
    lab.write_executable("project/evil", ran);
    let evil = "git -C other config core.fsmonitor \"$PWD/evil\"";
    for attack in [
        format!("{evil}; echo 'gitdir: ../other/.git' > sub/.git"),
        format!("mv .git/modules/sub .git/x; {evil}; ln -s ../../other/.git .git/modules/sub"),
    ] {
        let ran = shell(&lab, &attack);
        assert!(ran.stderr.contains("decides what `git` runs since this command"), "{attack}: {ran:?}");
        // A link that was moved aside leaves nothing behind it.
        outside(
            &lab,
            "git status > /dev/null 2>&1 || true; git -C sub status > /dev/null 2>&1 || true; test ! -e evil.ran",
        );
    }
}

#[test]
fn a_repository_without_a_working_tree_runs_nothing_that_a_command_has_set() {
    let Some(lab) = scene() else { return };
    outside(&lab, "git init -q --bare ../bare");
    let bare = lab.root.join("bare");
    let script = "git config core.pager ./evil; echo evil > hooks/post-receive; git config user.x y";
    let mut command = lab.ollm(&["box", "--", "sh", "-c", script]);
    command.current_dir(&bare);
    let ran = crate::lab::finish(command, b"");
    assert!(ran.stderr.contains("post-receive: Read-only file system"), "{ran:?}");
    assert!(ran.stderr.contains("bare/config` is protected and was changed"), "{ran:?}");
    assert!(!fs::read_to_string(bare.join("config")).unwrap().contains("evil"), "{ran:?}");
}

/// Parts of settings, from which texts are made that are settings in one reading and comments in another.
const PARTS: [&str; 16] = [
    "[core]",
    "[core",
    "[filter \"a",
    "\"]",
    "]",
    "fsmonitor",
    "=",
    " ./evil",
    "\n",
    "\r\n",
    "\\",
    "\"",
    "#",
    ";",
    " ",
    "\t",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_git_reads_as_a_program_is_harmful(parts in proptest::collection::vec(proptest::sample::select(&PARTS), 1..16)) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let text = format!("[core]\n{}", parts.concat());
        fs::write(&file, &text).unwrap();
        let read = Command::new("git").args(["config", "--file"]).arg(&file).args(["--get", "core.fsmonitor"]).output().unwrap();
        if String::from_utf8_lossy(&read.stdout).contains("evil") {
            let harmful = ollm_guard::harmful_git_settings("", &text);
            prop_assert!(harmful.iter().any(|key| key == "core.fsmonitor"), "{text:?}: {harmful:?}");
        }
    }
}

#[test]
fn what_git_status_enters_runs_nothing_that_a_command_has_set() {
    let forms = ["", "index.version 4", "core.splitIndex true", "sha256"];
    for form in forms {
        let Some(lab) = scene() else { return };
        let format = if form == "sha256" { form } else { "sha1" };
        outside(&lab, &format!("git init -q --object-format={format} .; git commit -q --allow-empty -m one"));
        if form.contains(' ') {
            outside(&lab, &format!("git config {form}"));
        }
        let make = format!(
            "init() {{ git init -q --object-format={format} $1; git -C $1 commit -q --allow-empty -m one; }}
            evil() {{ git -C $1 config core.fsmonitor \"touch $PWD/ran; false\"; }}
            for n in $(seq 9); do echo > a$n; done; git add .; init sub; init sub/deep; git -C sub add deep; evil sub/deep
            init other; mv other/.git evil; git config --file evil/config core.fsmonitor \"touch $PWD/ran; false\"
            echo 'gitdir: ../evil' > other/.git; git add sub other 2> /dev/null; git commit -qm two; evil sub"
        );
        let ran = shell(&lab, &make);
        assert_eq!(ran.stderr.matches("decides what `git` runs since this command").count(), 3, "{form}: {ran:?}");
        outside(&lab, "rm -f ran; git status > status 2>&1 || true; test ! -e ran");
        // What the person has made stays, and a command changes nothing of it.
        outside(&lab, "git init -q --object-format=$(git rev-parse --show-object-format) other");
        outside(
            &lab,
            "git -C other config core.fsmonitor mine; git -C other commit -q --allow-empty -m one; git add other",
        );
        let ran = shell(
            &lab,
            "echo x >> a1; git add a1; git -C other config core.pager ./evil; git -C other config user.x y",
        );
        assert_eq!(ran.stderr.matches("it is restored").count(), 1, "{form}: {ran:?}");
        let settings = fs::read_to_string(lab.project.join("other/.git/config")).unwrap();
        assert!(settings.contains("mine") && !settings.contains("evil"), "{form}: {settings}");
    }
}

#[test]
fn however_many_repositories_an_index_has_each_is_looked_at() {
    let Some(lab) = scene() else { return };
    let make = "import os, subprocess
index = ''
for n in range(1100):
    os.makedirs('r%d/.git' % n)
    open('r%d/.git/HEAD' % n, 'w').write('ref: refs/heads/main\\n')
    index += '160000 %s 0\\tr%d\\n' % ('1' * 40, n)
subprocess.run(['git', 'update-index', '--index-info'], input=index, text=True, check=True)";
    outside(&lab, &format!("git init -q .; python3 -c \"{make}\""));
    // The names are in their order as text.
    let ran = shell(
        &lab,
        "cd r999/.git; mkdir hooks; echo evil > hooks/post-checkout; git config --file config core.fsmonitor ./evil",
    );
    assert_eq!(ran.stderr.matches("decides what `git` runs since this command").count(), 2, "{ran:?}");
    assert!(!ran.stderr.contains("holds more than is compared"), "{ran:?}");
    assert!(!lab.project.join("r999/.git/config").exists() && !lab.project.join("r999/.git/hooks").exists());
}

#[test]
fn a_repository_that_a_variable_names_runs_nothing_that_a_command_has_set() {
    let Some(lab) = scene() else { return };
    outside(&lab, "git init -q --bare --template= ../elsewhere.git");
    let lab = lab.set("GIT_DIR", "../elsewhere.git").set("GIT_WORK_TREE", ".");
    lab.write("settings", "[user]\n\tname = a\n\temail = a@b.c\n");
    let settings = lab.root.join("settings").display().to_string();
    let lab = lab.set("GIT_CONFIG_GLOBAL", &settings);
    let ran = shell(&lab, "git config user.x y; echo x > f; git add f; git commit -qm one; git log --oneline | wc -l");
    assert_eq!((ran.stdout.trim(), ran.stderr.as_str(), ran.code), ("1", "", 0), "{ran:?}");
    for attack in [
        "git config core.fsmonitor ./evil",
        "mkdir $GIT_DIR/hooks; echo evil > $GIT_DIR/hooks/pre-commit",
        "echo evil > $GIT_DIR/commondir",
        "mv $GIT_DIR ../x; git init -q --bare evil; git config --file evil/config core.fsmonitor ./evil; mv evil $GIT_DIR",
        "echo evil > $GIT_CONFIG_GLOBAL",
    ] {
        let ran = shell(&lab, &format!("({attack}) || true"));
        assert!(ran.stderr.contains("protected") || ran.stderr.contains("busy"), "{attack}: {ran:?}");
        let name = "elsewhere.git";
        let place = |file: &str| lab.root.join(name).join(file);
        assert!(!fs::read_to_string(place("config")).unwrap().contains("evil"), "{attack}: {ran:?}");
        assert!(!place("hooks/pre-commit").exists() && !place("commondir").exists(), "{attack}: {ran:?}");
        assert!(!fs::read_to_string(&settings).unwrap().contains("evil"), "{attack}: {ran:?}");
    }
    let commit = "echo y > f; git commit -qam two; git log --oneline | wc -l; git config core.pager ./evil; echo evil > $GIT_DIR/commondir";
    if let Some(ran) = without_namespaces(&lab, commit) {
        assert_eq!((ran.stdout.trim(), ran.stderr.matches("is protected and was").count()), ("2", 2), "{ran:?}");
        assert!(!lab.root.join("elsewhere.git/commondir").exists(), "{ran:?}");
    }
}

#[test]
fn a_repository_around_the_project_and_in_the_home_runs_nothing_that_a_command_has_set() {
    let Some(lab) = scene() else { return };
    let ran = shell(&lab, "git init -q ~; git init -q ..; git -C ~ config user.x y");
    assert_eq!(ran.stderr, "", "{ran:?}");
    for folder in ["..", "~"] {
        let ran = shell(
            &lab,
            &format!("git -C {folder} config core.fsmonitor ./evil; echo evil > {folder}/.git/hooks/pre-commit; true"),
        );
        assert!(ran.stderr.contains(".git/config` is protected and was changed"), "{ran:?}");
        assert!(ran.stderr.contains("pre-commit: Read-only file system"), "{ran:?}");
        let ran = shell(&lab, &format!("rm -rf {folder}/.git; git init -q evil; mv evil/.git {folder}; true"));
        outside(&lab, &format!("test -d {folder}/.git/hooks; ! grep evil {folder}/.git/config"));
        assert!(ran.stderr.contains("busy") || ran.stderr.contains("Read-only"), "{ran:?}");
    }
}

#[test]
fn git_works_in_submodules_and_linked_working_trees() {
    let Some(lab) = scene() else { return };
    outside(
        &lab,
        "git init -q ../lib; git -C ../lib commit -q --allow-empty -m one; git init -q .; git commit -q --allow-empty -m one",
    );
    let ran = shell(
        &lab,
        "git submodule add -q ../lib sub; git commit -qm two; git -C sub commit -q --allow-empty -m two; git -C sub config user.x y
        git submodule update -q --init; git worktree add -q ../tree; git worktree add -q ../other; git worktree remove ../other",
    );
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0), "{ran:?}");
    let tree = lab.root.join("tree");
    let mut command = lab.ollm(&[
        "box",
        "--",
        "sh",
        "-ec",
        "git config user.x z; echo x > f; git add f; git commit -qm three; git branch new",
    ]);
    command.current_dir(&tree);
    let ran = crate::lab::finish(command, b"");
    assert_eq!((ran.stderr.as_str(), ran.code), ("", 0), "{ran:?}");
    outside(&lab, "test \"$(git config user.x)\" = z; git -C ../tree log --oneline | grep -q three");
    let mut command =
        lab.ollm(&["box", "--", "sh", "-c", "echo evil > ../project/.git/hooks/pre-commit; rm .git; echo x > .git"]);
    command.current_dir(&tree);
    let before = fs::read_to_string(tree.join(".git")).unwrap();
    crate::lab::finish(command, b"");
    assert_eq!(fs::read_to_string(tree.join(".git")).unwrap(), before);
    assert!(!lab.project.join(".git/hooks/pre-commit").exists());
}

#[test]
fn a_linked_working_tree_takes_commits_in_every_box() {
    let Some(lab) = scene() else { return };
    // A temporary folder could be written anyway.
    let main = tempfile::Builder::new().prefix("ollm-main-").tempdir_in(lasting_folder()).unwrap();
    let lab = lab.set("MAIN", main.path().to_str().unwrap());
    outside(&lab, "git init -q $MAIN; git -C $MAIN commit -q --allow-empty -m one; rmdir .git 2> /dev/null || true");
    outside(&lab, "rm -rf ../project/* ../project/.ollm; git -C $MAIN worktree add -q --force $PWD");
    let commit =
        "echo x >> f; git add f; git commit -qm two; echo evil > $MAIN/.git/hooks/pre-commit; echo evil > $MAIN/other
        git config core.fsmonitor ./evil; true";
    let log = |count: &str| {
        let ran = outside(
            &lab,
            "git log --oneline | wc -l; test ! -e $MAIN/.git/hooks/pre-commit; ! grep evil $MAIN/.git/config",
        );
        assert_eq!(ran.stdout.trim(), count);
    };
    let ran = lab.run(&["box", "--policy", "strict", "--", "sh", "-c", commit]);
    assert!(ran.stderr.contains("/other: Read-only file system"), "{ran:?}");
    log("2");
    for (options, count) in [(&[] as &[&str], "3"), (&["--policy", "strict"], "4")] {
        if partial_box(&lab, options, commit).is_some() {
            log(count);
        }
    }
}

#[test]
fn a_private_key_of_any_name_is_kept_and_new_ones_can_be_made() {
    let lab = guarded();
    if !is_whole(&lab) {
        return;
    }
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n";
    for name in ["home/.ssh/work", "home/.ssh/keys/old.pem"] {
        lab.write(name, key);
    }
    let attack = "cd ~/.ssh; echo evil > work; rm -f work; mv keys x; mkdir keys; echo evil > keys/old.pem; python3 -c 'open(\"wo\"+\"rk\",\"w\")'; true";
    shell(&lab, attack);
    for name in ["home/.ssh/work", "home/.ssh/keys/old.pem"] {
        assert_eq!(fs::read_to_string(lab.root.join(name)).unwrap(), key, "{name}");
    }
    assert_eq!(shell(&lab, "ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/new || touch ~/.ssh/new").code, 0);
    assert!(lab.home.join(".ssh/new").exists());
    assert_intact(&lab, attack);
}

#[test]
fn where_landlock_holds_the_box_changed_modes_are_put_back_and_told() {
    let lab = guarded();
    let Some(ran) = without_namespaces(&lab, "chmod 777 ~/.bashrc ~/.claude; chmod 0 ~/.ollm/hooks; true") else {
        return;
    };
    assert!(ran.stderr.contains(".bashrc` is protected and was changed by the command; it is restored"), "{ran:?}");
    let mode = |name: &str| fs::metadata(lab.root.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("home/.bashrc") & 0o022, mode("home/.ollm/hooks") & 0o700), (0, 0o700), "{ran:?}");
    assert_intact(&lab, "modes");
}
