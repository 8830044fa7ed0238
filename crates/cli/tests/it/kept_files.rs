//! What files declare is kept between events, and never outlives what it was read from.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::lab::{Lab, OLLM, finish, shell_event};

fn hooks(name: &str) -> String {
    json!({"hooks": {"before_tool": [{"name": name, "command": "sh", "args": ["hook.sh", name]}]}}).to_string()
}

fn kept(lab: &Lab) -> Vec<PathBuf> {
    let folder = lab.write("home/.ollm/state/.keep", "").with_file_name("snapshots");
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// Longer than files must have been left alone before anything of them is kept.
pub(crate) fn quiet() {
    thread::sleep(Duration::from_millis(2_200));
}

#[test]
fn every_change_of_a_file_counts_at_the_next_event() {
    let lab = Lab::new();
    lab.user("hook.sh", "cat >/dev/null\n");
    let file = lab.user("a.json", hooks("first"));
    let ran = || -> Vec<String> {
        let answer = lab.event(shell_event("ls")).answer();
        answer["hooks"].as_array().unwrap().iter().map(|hook| hook["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ran(), ["first"]);
    assert_eq!(kept(&lab), Vec::<PathBuf>::new());
    quiet();
    for _ in 0..2 {
        assert_eq!(ran(), ["first"]);
        assert_eq!(kept(&lab).len(), 1);
    }
    fs::write(&file, hooks("other")).unwrap();
    assert_eq!(ran(), ["other"]);
    lab.user("b.json", hooks("second"));
    assert_eq!(ran(), ["other", "second"]);
    fs::remove_file(&file).unwrap();
    assert_eq!(ran(), ["second"]);
    lab.write("home/.ollm/config.yaml", "hooks:\n  enabled: false\n");
    assert_eq!(ran(), Vec::<String>::new());
}

#[test]
fn another_build_of_the_program_believes_nothing_that_this_one_kept() {
    let lab = Lab::new();
    lab.user("hook.sh", "cat >/dev/null\n");
    lab.user("a.json", hooks("first"));
    let other = lab.copy_of_program("other-ollm");
    quiet();
    let ran = |program: &str| {
        let mut command = lab.program(program);
        command.args(["hook", "run"]);
        finish(command, shell_event("ls").as_bytes()).hook_count()
    };
    for (program, count) in [(OLLM, 1), (OLLM, 1), (other.to_str().unwrap(), 2), (OLLM, 2)] {
        assert_eq!((ran(program), kept(&lab).len()), (1, count), "{program}");
    }
}

#[test]
fn an_approval_is_never_kept_with_the_files() {
    let lab = Lab::new();
    lab.workspace("hook.sh", "cat >/dev/null\n");
    lab.workspace("a.json", hooks("theirs"));
    quiet();
    let skipped = |reason: &str| {
        let ran = lab.event(shell_event("ls"));
        assert_eq!(ran.skip("theirs")["reason"], reason, "{ran:?}");
    };
    skipped("untrusted");
    assert_eq!(kept(&lab).len(), 1);
    lab.approve("workspace:a.json:before_tool:theirs");
    assert_eq!(lab.event(shell_event("ls")).hook_count(), 1);
    lab.workspace("hook.sh", "cat >/dev/null; exit 0\n");
    skipped("modified");
    assert!(lab.run(&["hook", "untrust", "workspace:a.json:before_tool:theirs"]).code == 0);
    skipped("untrusted");
    let text = fs::read_to_string(&kept(&lab)[0]).unwrap();
    assert!(!text.contains("sha256") && !text.contains("approved"), "{text}");
}
