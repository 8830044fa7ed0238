//! What stands in a watcher's way.

use std::fs;
use std::process::Command;

use super::{OK, Watch, created, deleted, edited};
use crate::lab::{Lab, OLLM, eventually};

#[test]
fn a_project_that_is_removed_ends_the_watcher_with_a_word() {
    let lab = Lab::new();
    lab.save("project/a", "1");
    let mut watch = Watch::new(&lab);
    fs::remove_dir_all(&lab.project).unwrap();
    watch.was_told("is gone; nothing is watched any more");
    assert_eq!(watch.child.wait().unwrap().code(), Some(5));
}

#[test]
fn a_project_that_is_replaced_is_compared() {
    let lab = Lab::new();
    lab.save("project/a", "1");
    lab.save("project/b", "1");
    lab.write("other/a", "2");
    lab.write("other/c", "1");
    fs::create_dir(lab.root.join("other/.git")).unwrap();
    let mut watch = Watch::new(&lab);
    watch.asleep(|| {
        fs::rename(&lab.project, lab.root.join("old")).unwrap();
        fs::rename(lab.root.join("other"), &lab.project).unwrap();
    });
    assert_eq!(watch.events(), [edited("a"), deleted("b"), created("c")]);
    lab.save("project/c", "2");
    assert_eq!(watch.events(), [edited("c")]);
}

#[test]
fn without_watches_left_everything_is_compared_instead() {
    const FEW: &str = "echo 2 > /proc/sys/user/max_inotify_watches && exec \"$0\" watch --json";
    let namespace = ["--user", "--map-root-user"];
    let tried = Command::new("unshare").args(namespace).args(["sh", "-c", FEW, "true"]).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        eprintln!("not tried: this machine gives out no namespaces");
        return;
    }
    let lab = Lab::new();
    for folder in 0..10 {
        lab.save(&format!("project/{folder}/a"), "1");
    }
    let mut command = lab.program("unshare");
    command.args(namespace).args(["sh", "-c", FEW, OLLM]);
    let mut watch = Watch::of(&lab, command);
    watch.was_told("the system has no more watches for folders");
    watch.was_told("fs.inotify.max_user_watches");
    watch.until("it says so", |line| line["polling"] == true);
    lab.save("project/7/a", "2");
    lab.save("project/new/b", "1");
    fs::remove_file(lab.project.join("3/a")).unwrap();
    let mut told = watch.events();
    told.sort_by(|(_, one), (_, other)| one.cmp(other));
    assert_eq!(told, [deleted("3/a"), edited("7/a"), created("new/b")]);
}

#[test]
fn a_thousand_saves_are_few_events_and_the_last_one_counts() {
    let lab = Lab::with_hook("file_edited", "last", &format!("echo ran >> ~/ran; cat > ~/last; {OK}"));
    let path = lab.save("project/a", "0");
    let watch = Watch::new(&lab);
    for number in 1..=1000 {
        fs::write(&path, format!("number {number}")).unwrap();
    }
    let last = lab.home.join("last");
    eventually("the last one is told", || fs::read_to_string(&last).is_ok_and(|text| text.contains("number 1000")));
    // However long the saves took, hooks ran far less often.
    let ran = fs::read_to_string(lab.home.join("ran")).unwrap().lines().count();
    assert!(ran <= 100, "{ran}");
    drop(watch);
    lab.assert_nobody_is_left();
}

#[test]
fn what_the_system_lost_is_found_by_comparison() {
    let limit: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    if limit > 20_000 {
        eprintln!("not tried: the queue of this machine does not run over");
        return;
    }
    let lab = Lab::new();
    for number in 0..10 {
        lab.save(&format!("project/{number}"), "0");
    }
    let mut watch = Watch::new(&lab);
    watch.asleep(|| {
        // Equal events in a row count as one, so two files take turns.
        for _ in 0..=limit / 2 {
            for number in [0, 1] {
                fs::File::options().append(true).open(lab.project.join(number.to_string())).unwrap();
            }
        }
        for number in 2..10 {
            lab.save(&format!("project/{number}"), "changed");
        }
    });
    let expected: Vec<_> = (2..10).map(|number| edited(&number.to_string())).collect();
    assert_eq!(watch.events(), expected);
}

#[test]
fn a_bad_line_in_an_ignore_file_is_told_with_its_place() {
    let lab = Lab::new();
    lab.save("project/.ollmignore", "*.log\n{a\n");
    let watch = Watch::new(&lab);
    watch.was_told(".ollmignore:2:");
    drop(watch);
}
