use ollm_protocol::EventKind;
use tempfile::TempDir;

use super::*;

/// A project that is compared as a whole, as if the system had lost track.
struct Project {
    folder: TempDir,
    watcher: FileWatcher,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Project {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write(folder.path(), path, text);
        }
        let mut watcher = FileWatcher::open(folder.path(), Path::new("/nowhere")).unwrap();
        while watcher.read_ahead(Duration::from_secs(1)) {}
        Project { folder, watcher }
    }

    fn write(&self, path: &str, text: &str) {
        write(self.folder.path(), path, text);
    }

    fn path(&self, path: &str) -> PathBuf {
        self.watcher.root().join(path)
    }

    /// The changes, found by comparing everything.
    fn changes(&mut self) -> Vec<(String, String)> {
        self.watcher.touched.merge(TouchedPaths::unknown());
        self.watcher.look(Instant::now()).unwrap();
        let told = std::iter::from_fn(|| self.watcher.next_change());
        told.map(|change| (change.kind.name().to_owned(), change.name.unwrap_or_default())).collect()
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn told(kind: EventKind, name: &str) -> (String, String) {
    (kind.name().to_owned(), name.to_owned())
}

#[test]
fn comparing_everything_finds_each_change_once() {
    let mut project = Project::new(&[("a", "1"), ("b", "2"), ("sub/c", "3"), ("d", "4")]);
    project.write("a", "one");
    fs::remove_dir_all(project.path("sub")).unwrap();
    project.write("new/e", "5");
    fs::rename(project.path("d"), project.path("f")).unwrap();
    let expected = [
        told(EventKind::FileEdited, "a"),
        told(EventKind::FileDeleted, "d"),
        told(EventKind::FileCreated, "f"),
        told(EventKind::FileCreated, "new/e"),
        told(EventKind::FileDeleted, "sub/c"),
    ];
    assert_eq!(project.changes(), expected);
    assert_eq!(project.changes(), []);
}

#[test]
fn a_file_that_is_written_again_as_it_was_has_not_changed() {
    let mut project = Project::new(&[("a", "1")]);
    project.write("a", "1");
    assert_eq!(project.changes(), []);
}

#[test]
fn an_edit_of_the_same_length_within_the_clocks_grain_is_seen() {
    let mut project = Project::new(&[("a", "1")]);
    project.write("a", "2");
    assert_eq!(project.changes(), [told(EventKind::FileEdited, "a")]);
    project.write("a", "3");
    assert_eq!(project.changes(), [told(EventKind::FileEdited, "a")]);
}

#[test]
fn a_change_says_what_is_different() {
    let mut project = Project::new(&[("a", "one\n")]);
    project.write("a", "two\n");
    project.watcher.touched.merge(TouchedPaths::unknown());
    project.watcher.look(Instant::now()).unwrap();
    let change = project.watcher.next_change().unwrap();
    assert_eq!(change.content.as_deref(), Some("two\n"));
    assert_eq!(change.diff.as_deref(), Some("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n"));
    assert_eq!((change.size, change.name.as_deref()), (4, Some("a")));
}

#[test]
fn what_is_not_text_has_neither_content_nor_difference() {
    let mut project = Project::new(&[("a", "one\n")]);
    fs::write(project.path("a"), [0xff, 0, 1]).unwrap();
    project.watcher.touched.merge(TouchedPaths::unknown());
    project.watcher.look(Instant::now()).unwrap();
    let change = project.watcher.next_change().unwrap();
    assert_eq!((change.content, change.diff, change.size), (None, None, 3));
}

#[test]
fn what_hooks_write_into_their_file_is_no_change() {
    let mut project = Project::new(&[("a", "1")]);
    project.write("a", "2");
    assert_eq!(project.changes(), [told(EventKind::FileEdited, "a")]);
    let from = SystemTime::now();
    project.write("a", "formatted");
    let path = project.path("a");
    let (_, chain) = project.watcher.taken();
    project.watcher.hooks_ran(&path, &chain, WritingRun { from, until: SystemTime::now(), count: 1 });
    assert_eq!(project.changes(), []);
}

#[test]
fn what_was_told_by_others_is_no_change() {
    let mut project = Project::new(&[("a", "1"), ("b", "2")]);
    project.write("a", "2");
    project.write("new", "3");
    fs::remove_file(project.path("b")).unwrap();
    for name in ["a", "b", "new"] {
        let path = project.path(name);
        project.watcher.heard_of(&path, notes::key_of(&path));
    }
    assert_eq!(project.changes(), []);
    // This file has changed again since the other program told of it.
    let (path, before) = (project.path("a"), notes::key_of(&project.path("a")));
    project.write("a", "later");
    project.watcher.heard_of(&path, before);
    assert_eq!(project.changes(), [told(EventKind::FileEdited, "a")]);
    // This file appeared and disappeared.
    let path = project.path("short");
    project.write("short", "1");
    let before = notes::key_of(&path);
    fs::remove_file(&path).unwrap();
    project.watcher.heard_of(&path, before);
    assert_eq!(project.changes(), [told(EventKind::FileDeleted, "short")]);
}

#[test]
fn files_that_become_ignored_are_not_deleted_and_others_not_created() {
    let mut project = Project::new(&[(".gitignore", "gen/\n"), ("a.log", "1"), ("gen/b", "2")]);
    project.write(".gitignore", "*.log\n");
    assert_eq!(project.changes(), [told(EventKind::FileEdited, ".gitignore")]);
    project.write("a.log", "more");
    project.write("gen/b", "more");
    assert_eq!(project.changes(), [told(EventKind::FileEdited, "gen/b")]);
}

#[test]
fn a_file_that_is_gone_is_deleted_although_it_is_ignored_now() {
    let mut project = Project::new(&[(".gitignore", ""), ("a.log", "1")]);
    project.write(".gitignore", "*.log\n");
    fs::remove_file(project.path("a.log")).unwrap();
    let expected = [told(EventKind::FileEdited, ".gitignore"), told(EventKind::FileDeleted, "a.log")];
    assert_eq!(project.changes(), expected);
}

#[test]
fn a_project_that_is_gone_for_long_is_an_error_and_one_that_comes_back_is_compared() {
    let mut project = Project::new(&[("a", "1")]);
    let (root, now) = (project.watcher.root().to_owned(), Instant::now());
    fs::remove_dir_all(&root).unwrap();
    assert!(!project.watcher.look(now).unwrap());
    write(&root, "b", "2");
    assert!(project.watcher.look(now).unwrap());
    let expected = [told(EventKind::FileDeleted, "a"), told(EventKind::FileCreated, "b")];
    assert_eq!(project.changes(), expected);
    fs::remove_dir_all(&root).unwrap();
    assert!(!project.watcher.look(now).unwrap());
    let error = project.watcher.look(now + ABSENCE).unwrap_err();
    assert!(error.message.contains("is gone"), "{}", error.message);
}

#[test]
fn nothing_is_told_while_git_is_at_work() {
    let mut project = Project::new(&[(".git/HEAD", ""), ("a", "1")]);
    project.write(".git/index.lock", "");
    project.write("a", "2");
    assert_eq!(project.changes(), []);
    fs::remove_file(project.path(".git/index.lock")).unwrap();
    assert_eq!(project.changes(), [told(EventKind::FileEdited, "a")]);
}

#[test]
fn hooks_that_change_a_file_for_one_another_come_to_an_end() {
    let mut project = Project::new(&[("a", ""), ("b", "")]);
    project.write("a", "0");
    let mut count = 0;
    while let Some((_, name)) = project.changes().into_iter().next() {
        count += 1;
        assert!(count < 100, "there is no end");
        let (from, other) = (SystemTime::now(), if name == "a" { "b" } else { "a" });
        project.write(other, &count.to_string());
        let path = project.path(&name);
        let (_, chain) = project.watcher.taken();
        project.watcher.hooks_ran(&path, &chain, WritingRun { from, until: SystemTime::now(), count: 1 });
    }
    assert!(project.watcher.take_notices().iter().any(|notice| notice.contains("again and again")));
}

#[test]
fn the_system_tells_of_changes_in_new_folders_too() {
    let mut project = Project::new(&[("a", "1")]);
    if project.watcher.is_polling() {
        return;
    }
    project.write("new/deep/b", "2");
    let mut found = Vec::new();
    let patience = Instant::now() + Duration::from_secs(30);
    while found.len() < 2 && Instant::now() < patience {
        project.watcher.wait(Duration::from_millis(50));
        project.watcher.look(Instant::now()).unwrap();
        let news: Vec<_> = std::iter::from_fn(|| project.watcher.next_change()).collect();
        if !news.is_empty() {
            // The folder is watched by now.
            project.write("new/deep/c", "3");
        }
        found.extend(news);
    }
    let names: Vec<_> = found.iter().filter_map(|change| change.name.as_deref()).collect();
    assert_eq!(names, ["new/deep/b", "new/deep/c"]);
}
