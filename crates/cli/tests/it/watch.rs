//! `ollm watch`: what people, editors and git do to files reaches hooks, each change once.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::boxes::defaults::has_boxes;
use crate::bundled::approve;
use crate::lab::{Lab, OLLM, Ran, eventually, finish, start};
use crate::screens;

mod chat;
mod faults;
mod git;
mod senders;

/// What a hook answers that has nothing to say.
const OK: &str = "printf '{\"continue\": true}'";

/// A running `ollm watch --json`.
pub(crate) struct Watch<'l> {
    lab: &'l Lab,
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    told: Arc<Mutex<String>>,
    /// How many files were made to wait for.
    marks: usize,
}

impl Watch<'_> {
    /// Starts it, and waits until it watches.
    pub(crate) fn new(lab: &Lab) -> Watch<'_> {
        Watch::of(lab, lab.ollm(&["watch", "--json"]))
    }

    fn of(lab: &Lab, command: Command) -> Watch<'_> {
        let watch = Watch::begin(lab, command);
        watch.until("it watches", |line| line["type"] == "watching");
        watch
    }

    fn begin(lab: &Lab, command: Command) -> Watch<'_> {
        let mut child = start(command);
        let (lines, told) = (Arc::<Mutex<Vec<Value>>>::default(), Arc::<Mutex<String>>::default());
        let (output, shared) = (BufReader::new(child.stdout.take().unwrap()), Arc::clone(&lines));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                shared.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        let (mut errors, shared) = (child.stderr.take().unwrap(), Arc::clone(&told));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut bytes) {
                shared.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Watch { lab, child, lines, told, marks: 0 }
    }

    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        eventually(what, || self.lines.lock().unwrap().iter().any(&holds));
    }

    /// What people were told so far.
    fn told(&self) -> String {
        self.told.lock().unwrap().clone()
    }

    /// Waits until people are told this.
    #[track_caller]
    pub(crate) fn was_told(&self, text: &str) {
        eventually(text, || self.told.lock().unwrap().contains(text));
    }

    /// The events since the last time, once everything that was done so far has been told.
    #[track_caller]
    pub(crate) fn events(&mut self) -> Vec<(String, String)> {
        // What is written later is told later; twice, so that what hooks did meanwhile shows, too.
        for _ in 0..2 {
            self.marks += 1;
            let mark = format!("mark-{}-{}", self.child.id(), self.marks);
            self.lab.save(&format!("project/{mark}"), "");
            self.until("the mark is told", |line| line["path"] == *mark);
        }
        let lines = std::mem::take(&mut *self.lines.lock().unwrap());
        let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
        let events = lines.iter().filter(|line| line["type"] == "event");
        let events = events.map(|line| (text(line, "event"), text(line, "path")));
        events.filter(|(_, path)| !path.starts_with("mark-")).collect()
    }

    /// Does something while the watcher sleeps: it then sees all steps at once, however long they took.
    pub(crate) fn asleep(&self, does: impl FnOnce()) {
        self.signal("STOP");
        does();
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        assert!(
            Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap().success()
        );
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn end(mut self) -> i32 {
        self.signal("INT");
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        // A failed test leaves no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn edited(path: &str) -> (String, String) {
    ("file_edited".to_owned(), path.to_owned())
}

pub(crate) fn created(path: &str) -> (String, String) {
    ("file_created".to_owned(), path.to_owned())
}

pub(crate) fn deleted(path: &str) -> (String, String) {
    ("file_deleted".to_owned(), path.to_owned())
}

/// A hook of the user that keeps the last event of each kind.
fn keep(lab: &Lab, event: &str, more: &str) {
    lab.user_hook(event, event, &format!("cat > ~/{event}.json; {OK}"), more);
}

fn kept(lab: &Lab, event: &str) -> Value {
    serde_json::from_slice(&fs::read(lab.home.join(format!("{event}.json"))).unwrap()).unwrap()
}

#[test]
fn hooks_hear_what_became_of_a_file_with_content_and_difference() {
    let lab = Lab::new();
    for event in ["file_created", "file_edited", "file_deleted"] {
        keep(&lab, event, r#", "filePatterns": ["*.txt"]"#);
    }
    let path = lab.save("project/src/a.txt", "one\ntwo\n");
    let mut watch = Watch::new(&lab);
    fs::write(&path, "one\n2\n").unwrap();
    assert_eq!(watch.events(), [edited("src/a.txt")]);
    let data = &kept(&lab, "file_edited")["data"];
    assert_eq!(data["path"], path.display().to_string());
    assert_eq!(data["file"]["path"], "src/a.txt");
    assert_eq!(data["file"]["absolutePath"], data["path"]);
    assert_eq!(data["file"]["content"], "one\n2\n");
    assert_eq!(data["diff"], "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    assert_eq!(data["file"]["changes"], data["diff"]);
    assert_eq!((&data["changes"]["type"], &data["changes"]["size"]), (&json!("edited"), &json!(6)));
    lab.save("project/src/b.txt", "new\n");
    assert_eq!(watch.events(), [created("src/b.txt")]);
    assert_eq!(kept(&lab, "file_created")["data"]["diff"], "--- /dev/null\n+++ b/src/b.txt\n@@ -0,0 +1 @@\n+new\n");
    fs::remove_file(&path).unwrap();
    assert_eq!(watch.events(), [deleted("src/a.txt")]);
    let data = &kept(&lab, "file_deleted")["data"];
    assert_eq!(data["diff"], "--- a/src/a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-2\n");
    assert_eq!(data["file"].get("content"), None);
    assert_eq!(watch.end(), 130);
}

/// A way to write a text into a file.
type WayToWrite<'w> = &'w dyn Fn(&str);

#[test]
fn however_an_editor_writes_a_file_it_is_one_edit() {
    let lab = Lab::new();
    let path = lab.save("project/a.txt", "before\n");
    let beside = |name: &str| path.with_file_name(name);
    let mut watch = Watch::new(&lab);
    let ways: [(&str, WayToWrite<'_>); 6] = [
        ("in place", &|text| fs::write(&path, text).unwrap()),
        ("through a temporary file", &|text| {
            fs::write(beside(".a.txt.tmp123"), text).unwrap();
            fs::rename(beside(".a.txt.tmp123"), &path).unwrap();
        }),
        ("by removing it first", &|text| {
            fs::remove_file(&path).unwrap();
            fs::write(&path, text).unwrap();
        }),
        ("as vim does, by way of a backup", &|text| {
            fs::write(beside("4913"), "").unwrap();
            fs::remove_file(beside("4913")).unwrap();
            fs::rename(&path, beside("a.txt~")).unwrap();
            let mut file = File::create(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.sync_all().unwrap();
            fs::remove_file(beside("a.txt~")).unwrap();
        }),
        ("emptied, then in pieces", &|text| {
            let mut file = File::create(&path).unwrap();
            for byte in text.as_bytes() {
                file.write_all(&[*byte]).unwrap();
                file.flush().unwrap();
            }
        }),
        ("with a swap file and a lock beside it", &|text| {
            fs::write(beside(".a.txt.swp"), "swap").unwrap();
            std::os::unix::fs::symlink("me@host.1", beside(".#a.txt")).unwrap();
            fs::write(&path, text).unwrap();
            fs::remove_file(beside(".#a.txt")).unwrap();
        }),
    ];
    for (number, (way, write)) in ways.into_iter().enumerate() {
        watch.asleep(|| write(&format!("text {number}\n")));
        assert_eq!(watch.events(), [edited("a.txt")], "{way}");
    }
}

#[test]
fn a_file_that_is_saved_by_the_real_vim_is_one_edit() {
    let lab = Lab::new();
    lab.save("project/a.txt", "before\n");
    if !lab.program("vim").arg("--version").output().is_ok_and(|tried| tried.status.success()) {
        eprintln!("not tried: there is no vim");
        return;
    }
    let mut watch = Watch::new(&lab);
    for settings in ["set backupcopy=no", "set backupcopy=yes", "set nowritebackup", "set backup backupcopy=no"] {
        watch.asleep(|| {
            let mut vim = lab.program("vim");
            vim.args(["-u", "NONE", "-es", "-c", settings, "-c", "normal ox", "-c", "wq", "a.txt"]);
            assert_eq!(finish(vim, b"").code, 0);
        });
        assert_eq!(watch.events(), [edited("a.txt")], "{settings}");
    }
}

#[test]
fn a_renamed_file_and_a_renamed_folder_go_and_come() {
    let lab = Lab::new();
    lab.save("project/a", "1");
    lab.save("project/old/deep/b", "2");
    let mut watch = Watch::new(&lab);
    watch.asleep(|| fs::rename(lab.project.join("a"), lab.project.join("c")).unwrap());
    assert_eq!(watch.events(), [deleted("a"), created("c")]);
    watch.asleep(|| fs::rename(lab.project.join("old"), lab.project.join("new")).unwrap());
    assert_eq!(watch.events(), [created("new/deep/b"), deleted("old/deep/b")]);
    // The folder is watched under its new name.
    lab.save("project/new/deep/b", "3");
    assert_eq!(watch.events(), [edited("new/deep/b")]);
    watch.asleep(|| fs::remove_dir_all(lab.project.join("new")).unwrap());
    assert_eq!(watch.events(), [deleted("new/deep/b")]);
}

#[test]
fn ignored_files_are_left_out_and_the_rules_may_change() {
    let lab = Lab::new();
    lab.save("project/.gitignore", "*.log\ntarget/\n");
    lab.save("project/.ollmignore", "slow/\n");
    lab.save("project/target/old", "");
    let mut watch = Watch::new(&lab);
    for ignored in ["a.log", "target/deep/b", "target/old", "slow/c", ".git/HEAD", ".a.rs.swp"] {
        lab.save(&format!("project/{ignored}"), "x");
    }
    assert_eq!(watch.events(), []);
    lab.save("project/.gitignore", "*.log\n");
    assert_eq!(watch.events(), [edited(".gitignore")]);
    lab.save("project/target/old", "y");
    assert_eq!(watch.events(), [edited("target/old")]);
    assert!(!watch.told.lock().unwrap().contains("ignore"));
}

#[test]
fn a_save_that_changes_nothing_is_no_edit() {
    let lab = Lab::new();
    let path = lab.save("project/a", "same");
    let mut watch = Watch::new(&lab);
    fs::write(&path, "same").unwrap();
    assert!(Command::new("touch").arg(&path).status().unwrap().success());
    assert!(Command::new("chmod").args(["600"]).arg(&path).status().unwrap().success());
    assert_eq!(watch.events(), []);
}

#[test]
fn ten_thousand_files_at_once_are_an_event_each() {
    const MANY: usize = 10_000;
    let lab = Lab::new();
    lab.user_hook("file_created", "some", &format!("cat >> ~/some; {OK}"), r#", "filePatterns": ["*77"]"#);
    let watch = Watch::new(&lab);
    for folder in 0..100 {
        fs::create_dir_all(lab.project.join(format!("many/{folder}"))).unwrap();
        for file in 0..MANY / 100 {
            fs::write(lab.project.join(format!("many/{folder}/{file}")), "x").unwrap();
        }
    }
    let told = || -> BTreeMap<String, usize> {
        let mut told = BTreeMap::new();
        for line in watch.lines.lock().unwrap().iter().filter(|line| line["type"] == "event") {
            *told.entry(format!("{} {}", line["event"], line["path"])).or_default() += 1;
        }
        told
    };
    eventually("all are told", || watch.lines.lock().unwrap().len() > MANY);
    let created = told();
    assert_eq!(created.len(), MANY);
    assert!(created.iter().all(|(what, times)| what.contains("file_created") && *times == 1));
    let ran = fs::read_to_string(lab.home.join("some")).unwrap();
    assert_eq!(ran.matches("\"event\":\"file_created\"").count(), 100);
    fs::remove_dir_all(lab.project.join("many")).unwrap();
    eventually("all are told to be gone", || watch.lines.lock().unwrap().len() > 2 * MANY);
    let all = told();
    assert_eq!(all.len(), 2 * MANY);
    assert!(all.values().all(|times| *times == 1));
}

#[test]
fn a_formatter_does_not_call_itself() {
    let lab = Lab::new();
    // Not even one that never comes to an end.
    let script = format!("cat > /dev/null; echo x >> a.txt; echo ran >> ~/ran; {OK}");
    lab.user_hook("file_edited", "append", &script, r#", "filePatterns": ["a.txt"]"#);
    lab.save("project/a.txt", "1\n");
    let mut watch = Watch::new(&lab);
    lab.save("project/a.txt", "2\n");
    assert_eq!(watch.events(), [edited("a.txt")]);
    assert_eq!(fs::read_to_string(lab.project.join("a.txt")).unwrap(), "2\nx\n");
    assert_eq!(fs::read_to_string(lab.home.join("ran")).unwrap(), "ran\n");
    // What the hook wrote is what the next edit is compared with.
    lab.save("project/a.txt", "3\n");
    assert_eq!(watch.events(), [edited("a.txt")]);
}

#[test]
fn nor_does_the_formatter_of_a_file_whose_name_is_no_text() {
    let lab = Lab::new();
    let script = format!("cat > /dev/null; for file in *.odd; do echo x >> \"$file\"; done; {OK}");
    lab.user_hook("file_edited", "append", &script, r#", "filePatterns": ["*.odd"]"#);
    let path = lab.project.join(OsStr::from_bytes(b"a\xff.odd"));
    fs::write(&path, "1\n").unwrap();
    let mut watch = Watch::new(&lab);
    for number in ["2\n", "3\n"] {
        fs::write(&path, number).unwrap();
        assert_eq!(watch.events(), [edited("a\u{fffd}.odd")]);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{number}x\n"));
    }
}

/// A hook at the first save of `a.txt` that does something, then waits until the person has saved as well.
fn slow_hook(does: &str) -> String {
    format!(
        "cat > /dev/null; [ -e ~/ran ] && {{ {OK}; exit 0; }}; {does}; touch ~/ran; while [ ! -e ~/saved ]; do sleep 0.05; done; {OK}"
    )
}

/// Saves `a.txt`, saves it again while the hook waits, and tells what was heard.
fn save_during_the_hook(lab: &Lab) -> Vec<(String, String)> {
    let path = lab.save("project/a.txt", "1\n");
    let mut watch = Watch::new(lab);
    fs::write(&path, "2\n").unwrap();
    eventually("the hook is at work", || lab.home.join("ran").exists());
    fs::write(&path, "mine\n").unwrap();
    fs::write(lab.home.join("saved"), "").unwrap();
    let events = watch.events();
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine\n");
    events
}

#[test]
fn a_save_over_what_the_hook_of_the_file_just_wrote_is_told() {
    let lab = Lab::new();
    let script = slow_hook("echo formatted > a.txt");
    lab.user_hook("file_edited", "format", &script, r#", "filePatterns": ["a.txt"]"#);
    assert_eq!(save_during_the_hook(&lab), [edited("a.txt"), edited("a.txt")]);
}

#[test]
fn a_hook_that_writes_its_file_in_steps_is_called_once_more_and_no_further() {
    let lab = Lab::new();
    let script = format!("cat > /dev/null; echo x >> a.txt; sleep 0.2; echo y >> a.txt; echo ran >> ~/ran; {OK}");
    lab.user_hook("file_edited", "append", &script, r#", "filePatterns": ["a.txt"]"#);
    lab.save("project/a.txt", "1\n");
    let mut watch = Watch::new(&lab);
    lab.save("project/a.txt", "2\n");
    assert_eq!(watch.events(), [edited("a.txt"), edited("a.txt")]);
    assert_eq!(fs::read_to_string(lab.home.join("ran")).unwrap(), "ran\nran\n");
}

#[test]
fn hooks_that_fail_are_named_with_their_reason_also_where_nobody_waits_for_them() {
    let lab = Lab::new();
    lab.user_hook("file_created", "now", "echo no >&2; exit 3", "");
    lab.user_hook("file_created", "later", "echo no >&2; exit 4", r#", "async": true"#);
    let watch = Watch::new(&lab);
    lab.save("project/a.txt", "1\n");
    watch.was_told("user hook `now` (user:now.json:file_created:now) failed: exited with status 3: no\n");
    watch.was_told("user hook `later` (user:later.json:file_created:later) failed: exited with status 4: no\n");
}

#[test]
fn nor_does_a_formatter_that_nobody_waits_for() {
    let lab = Lab::new();
    let script = format!("cat > /dev/null; sleep 0.5; echo x >> a.txt; echo ran >> ~/ran; {OK}");
    lab.user_hook("file_edited", "append", &script, r#", "filePatterns": ["a.txt"], "async": true"#);
    let path = lab.save("project/a.txt", "0\n");
    let mut watch = Watch::new(&lab);
    let ran = || fs::read_to_string(lab.home.join("ran")).unwrap_or_default().lines().count();
    // Every save of a person counts, however often it is saved.
    for number in 1..=4 {
        fs::write(&path, format!("{number}\n")).unwrap();
        eventually("it has run", || ran() == number);
        assert_eq!(watch.events(), [edited("a.txt")], "{number}");
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{number}\nx\n"));
    }
    assert_eq!(ran(), 4);
}

#[test]
fn a_save_while_a_hook_runs_that_may_not_write_the_file_is_told() {
    for permissions in ["{}", r#"{"write": ["cache/"]}"#] {
        let lab = Lab::with_default_boxes();
        if !has_boxes(&lab) {
            return;
        }
        let script = format!("cat > /dev/null; cat gate > /dev/null; {OK}");
        let more = format!(r#", "filePatterns": ["a.txt"], "permissions": {permissions}"#);
        lab.user_hook("file_edited", "lint", &script, &more);
        let (path, gate) = (lab.save("project/a.txt", "1\n"), lab.project.join("gate"));
        assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
        let mut watch = Watch::new(&lab);
        // Opening the gate for writing waits until the hook has opened it for reading.
        let running = || File::options().write(true).open(&gate).unwrap();
        fs::write(&path, "2\n").unwrap();
        let first = running();
        fs::write(&path, "3\n").unwrap();
        drop(first);
        // Before that the gate would be opened to the hook that is about to end.
        watch.until("the first hook has ended", |line| line["path"] == "a.txt");
        drop(running());
        assert_eq!(watch.events(), [edited("a.txt"), edited("a.txt")], "{permissions}");
    }
}

#[test]
fn hooks_that_call_one_another_come_to_an_end() {
    let lab = Lab::new();
    for (file, other) in [("a", "b"), ("b", "a")] {
        let script = format!("cat > /dev/null; date +%N >> {other}.txt; echo {file} >> ~/ran; {OK}");
        lab.user_hook("file_edited", file, &script, &format!(r#", "filePatterns": ["{file}.txt"]"#));
        lab.save(&format!("project/{file}.txt"), "");
    }
    let watch = Watch::new(&lab);
    lab.save("project/a.txt", "1\n");
    watch.was_told("txt changes again and again while hooks run; they hear of it after a pause");
    watch.was_told("txt changes again and again while hooks run; this change is taken unchecked");
    assert!(fs::read_to_string(lab.home.join("ran")).unwrap().lines().count() < 16);
}

#[test]
fn what_changes_again_and_again_while_hooks_run_is_heard_in_the_end() {
    let lab = Lab::new();
    // They change a file for one another, but not for ever.
    for (file, other) in [("a", "b"), ("b", "a")] {
        let script = format!(
            "cat > /dev/null; n=$(cat {file}.txt); echo $n >> ~/heard; [ $n = 8 ] || echo $((n + 1)) > {other}.txt; {OK}"
        );
        lab.user_hook("file_edited", file, &script, &format!(r#", "filePatterns": ["{file}.txt"]"#));
        lab.save(&format!("project/{file}.txt"), "0\n");
    }
    let _watch = Watch::new(&lab);
    lab.save("project/a.txt", "1\n");
    eventually("the last one is heard", || {
        fs::read_to_string(lab.home.join("heard")).is_ok_and(|heard| heard == "1\n2\n3\n4\n5\n6\n7\n8\n")
    });
}

#[test]
fn the_shipped_formatter_formats_what_a_person_saves() {
    let lab = Lab::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/extensions/format-on-save");
    let folder = lab.home.join(".ollm/extensions");
    fs::create_dir_all(&folder).unwrap();
    assert!(Command::new("cp").args(["-r", example]).arg(&folder).status().unwrap().success());
    approve(&lab, "format-on-save");
    lab.save("project/a.json", "{}\n");
    let mut watch = Watch::new(&lab);
    lab.save("project/a.json", r#"{"a":[1,2]}"#);
    assert_eq!(watch.events(), [edited("a.json")]);
    let formatted = "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n";
    assert_eq!(fs::read_to_string(lab.project.join("a.json")).unwrap(), formatted);
    lab.save("project/new/b.json", r#"{"a":[1,2]}"#);
    assert_eq!(watch.events(), [created("new/b.json")]);
    assert_eq!(fs::read_to_string(lab.project.join("new/b.json")).unwrap(), formatted);
    assert!(watch.told.lock().unwrap().contains("a.json was formatted"));
}

#[test]
fn what_the_watcher_writes_itself_is_no_edit() {
    let lab = Lab::new();
    let mut command = lab.program("sh");
    command.args(["-c", "exec \"$0\" watch --json > log", OLLM]);
    let mut child = start(command);
    let log = || fs::read_to_string(lab.project.join("log")).unwrap_or_default();
    eventually("it watches", || log().contains("watching"));
    for mark in ["a", "b"] {
        lab.save(&format!("project/{mark}"), "");
        eventually("the mark is told", || log().contains(&format!("\"path\":\"{mark}\"")));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(log().lines().count(), 3, "{}", log());
}

#[test]
fn people_read_a_line_for_each_change() {
    let lab = Lab::with_hook(
        "file_edited",
        "lint",
        "cat > /dev/null; printf '{\"continue\": true, \"message\": \"looks good\"}'",
    );
    lab.save("project/a", "1");
    let mut child = start(lab.ollm(&["watch"]));
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    lab.save("project/a", "2");
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut shown = String::new();
    output.read_line(&mut shown).unwrap();
    assert!(Command::new("kill").arg("-INT").arg(child.id().to_string()).status().unwrap().success());
    errors.read_to_string(&mut line).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    insta::assert_snapshot!(screens::shown(&lab, &["watch"], &Ran { stdout: shown, stderr: line, code }));
}
