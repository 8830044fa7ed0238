//! Real hook managers from npm and PyPI, and our line beside what they write. `scripts/real-git-hooks.sh` installs them
//! and names the folder; without it, there is nothing to test.

use std::fs;
use std::path::{Path, PathBuf};

use crate::lab::{Lab, OLLM, Ran, finish, search_path};

/// A hook manager.
struct HookManager {
    name: &'static str,
    /// What it is told to run at `commit-msg`, and where that stands.
    file: (&'static str, &'static str),
    /// Puts its script into the repository.
    install: &'static [&'static str],
    /// Whether our line is still there after it did so again.
    keeps: bool,
}

const PRE_COMMIT: (&str, &str) = (
    ".pre-commit-config.yaml",
    "repos:\n- repo: local\n  hooks:\n  - id: mine\n    name: mine\n    entry: touch ran\n    language: system\n    \
     stages: [commit-msg]\n    always_run: true\n    pass_filenames: false\n",
);

static MANAGERS: &[HookManager] = &[
    HookManager { name: "husky", file: (".husky/commit-msg", "touch ran\n"), install: &["husky"], keeps: true },
    HookManager {
        name: "lefthook",
        file: ("lefthook.yml", "commit-msg:\n  commands:\n    mine:\n      run: touch ran\n"),
        install: &["lefthook", "install"],
        keeps: false,
    },
    HookManager {
        name: "pre-commit",
        file: PRE_COMMIT,
        install: &["pre-commit", "install", "-t", "commit-msg"],
        keeps: true,
    },
    HookManager { name: "prek", file: PRE_COMMIT, install: &["prek", "install", "-t", "commit-msg"], keeps: true },
];

#[test]
fn our_line_stands_beside_the_scripts_of_real_hook_managers() {
    let Some(folder) = std::env::var_os("OLLM_REAL_GIT_HOOKS").map(PathBuf::from) else { return };
    for manager in MANAGERS {
        theirs_first(manager, &folder);
        ours_first(manager, &folder);
    }
    by_lefthooks_own_file(&folder);
}

/// A repository in which the manager is told what to run, and whose user refuses messages with `wip`.
fn lab(manager: &HookManager, folder: &Path) -> Lab {
    let script = "cat >\"$HOME/seen\"\ngrep -q wip \"$HOME/seen\" && echo '{\"continue\": false, \"reason\": \"say what it does\"}'\nexit 0\n";
    let own =
        [folder.join("node_modules/.bin"), folder.join("python/bin"), Path::new(OLLM).parent().unwrap().to_owned()];
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(search_path()))).unwrap();
    let lab = Lab::with_hook("git_commit", "words", script).set("PATH", path.to_str().unwrap());
    fs::remove_dir(lab.project.join(".git")).unwrap();
    for args in [&["init", "-q"][..], &["config", "user.name", "a"], &["config", "user.email", "a@b.c"]] {
        runs(&lab, &[&["git"], args].concat());
    }
    lab.write(&format!("project/{}", manager.file.0), manager.file.1);
    runs(&lab, &["git", "add", "."]);
    lab
}

fn program(lab: &Lab, words: &[&str]) -> Ran {
    let mut command = lab.program(words[0]);
    command.args(&words[1..]);
    finish(command, b"")
}

#[track_caller]
fn runs(lab: &Lab, words: &[&str]) {
    let ran = program(lab, words);
    assert_eq!(ran.code, 0, "{words:?} {ran:?}");
}

/// Whether a commit was made, whether our hook saw it, and whether the manager's own ran.
fn commit(lab: &Lab, message: &str) -> (bool, bool, bool) {
    let traces = [lab.home.join("seen"), lab.project.join("ran")];
    for trace in &traces {
        let _ = fs::remove_file(trace);
    }
    let ran = program(lab, &["git", "commit", "--allow-empty", "-m", message]);
    (ran.code == 0, traces[0].exists(), traces[1].exists())
}

/// Both see every commit, and ours can refuse one.
#[track_caller]
fn both_work(lab: &Lab, what: &str) {
    assert_eq!(commit(lab, "done"), (true, true, true), "{what}");
    let (made, seen, _) = commit(lab, "wip");
    assert_eq!((made, seen), (false, true), "{what}");
}

fn theirs_first(manager: &HookManager, folder: &Path) {
    let lab = lab(manager, folder);
    runs(&lab, manager.install);
    assert_eq!(commit(&lab, "before"), (true, false, true), "{}", manager.name);
    runs(&lab, &["ollm", "git-hook", "install"]);
    both_work(&lab, manager.name);
    runs(&lab, manager.install);
    let status = program(&lab, &["ollm", "git-hook", "status"]).code;
    assert_eq!(status, i32::from(!manager.keeps), "{}", manager.name);
    if manager.keeps {
        both_work(&lab, &format!("{} again", manager.name));
    } else {
        assert_eq!(commit(&lab, "wip"), (true, false, true), "{}", manager.name);
        runs(&lab, &["ollm", "git-hook", "install"]);
        both_work(&lab, manager.name);
    }
    runs(&lab, &["ollm", "git-hook", "uninstall"]);
    assert_eq!(commit(&lab, "wip"), (true, false, true), "{}", manager.name);
    nothing_is_left(&lab, manager.name);
}

fn ours_first(manager: &HookManager, folder: &Path) {
    let lab = lab(manager, folder);
    runs(&lab, &["ollm", "git-hook", "install"]);
    runs(&lab, manager.install);
    let (_, seen, theirs) = commit(&lab, "done");
    assert!(theirs, "{}", manager.name);
    let status = program(&lab, &["ollm", "git-hook", "status"]).code;
    assert_eq!(status == 0, seen, "what is said of our line is so: {}", manager.name);
    runs(&lab, &["ollm", "git-hook", "install"]);
    both_work(&lab, manager.name);
    runs(&lab, &["ollm", "git-hook", "uninstall"]);
    nothing_is_left(&lab, manager.name);
}

/// What `lefthook install` does not take out.
fn by_lefthooks_own_file(folder: &Path) {
    let manager = MANAGERS.iter().find(|manager| !manager.keeps).unwrap();
    let lab = lab(manager, folder);
    let more = format!("{}    ours:\n      run: ollm git-hook run {{1}}\n", manager.file.1);
    lab.write(&format!("project/{}", manager.file.0), more);
    runs(&lab, manager.install);
    both_work(&lab, "lefthook.yml");
    runs(&lab, &["ollm", "git-hook", "status"]);
}

/// No script of the repository has our line.
fn nothing_is_left(lab: &Lab, what: &str) {
    for folder in [".git/hooks", ".husky"] {
        for entry in fs::read_dir(lab.project.join(folder)).into_iter().flatten().map(Result::unwrap) {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            assert!(!text.contains("ollm git-hook"), "{what}: {}", entry.path().display());
        }
    }
}
