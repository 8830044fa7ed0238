//! Every step at which a process may die leaves the state before or the state after.

use std::cell::Cell;
use std::collections::BTreeMap;

use tempfile::TempDir;

use super::super::source::PackageSource;
use super::*;

thread_local! {
    /// So many steps are still allowed.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A step that is the last one dies as a killed process does: nothing after it happens.
fn counted(_: &'static str) -> io::Result<()> {
    LEFT.with(|left| {
        let now = left.get();
        left.set(now.saturating_sub(1));
        if now == 0 { Err(io::Error::other("killed")) } else { Ok(()) }
    })
}

struct Disk(TempDir);

impl Disk {
    fn new() -> Disk {
        Disk(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> InstallRoot {
        InstallRoot::open_at(&self.0.path().join("extensions"), &self.0.path().join("state"), counted).unwrap()
    }

    /// What whoever loads extensions sees, and the versions before.
    fn seen(&self) -> BTreeMap<String, String> {
        let folder = self.0.path().join("extensions");
        let mut seen = BTreeMap::new();
        for below in ["", PREVIOUS, ASIDE] {
            for entry in fs::read_dir(folder.join(below)).into_iter().flatten() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                if !name.starts_with('.') {
                    let text = fs::read_to_string(entry.path().join("manifest.json")).unwrap_or_default();
                    seen.insert(format!("{below}/{name}"), text);
                }
            }
        }
        seen
    }

    /// The same without versions before and what is aside, which nobody loads, nor what waits for another.
    fn loaded(&self) -> BTreeMap<String, String> {
        let folder = self.0.path().join("extensions");
        let waiting = InstallChange::waiting(&folder);
        let is_loaded = |name: &str| name.strip_prefix('/').is_some_and(|name| !waiting.contains(&folder.join(name)));
        self.seen().into_iter().filter(|(name, _)| is_loaded(name)).collect()
    }
}

fn change(root: &InstallRoot, version: &str) -> io::Result<()> {
    change_all(root, &["guard"], version)
}

/// Puts packages in place, the last one with what it needs.
fn change_all(root: &InstallRoot, names: &[&str], version: &str) -> io::Result<()> {
    let package: Package = [("manifest.json", version.as_bytes().to_vec(), false)].into_iter().collect();
    let record = InstallRecord::new(PackageSource::Folder("/x".into()));
    let stage = |_: &&str| {
        let staged = root.stage(&package)?;
        root.complete(&staged, &record, None)?;
        Ok(staged)
    };
    let staged = names.iter().map(stage).collect::<io::Result<Vec<_>>>()?;
    let packages: Vec<Aside<'_>> = names
        .iter()
        .zip(&staged)
        .map(|(name, folder)| Aside { name, folder, replaces: root.place(name).exists() })
        .collect();
    root.place_all(&packages)?.map_or(Ok(()), Err)
}

fn allow(steps: usize) {
    LEFT.with(|left| left.set(steps));
}

#[test]
fn a_kill_at_any_step_leaves_the_state_before_or_the_state_after() {
    type Work = fn(&InstallRoot) -> io::Result<()>;
    let works: [(usize, Work); 8] = [
        (0, |root| change(root, "v1")),
        (1, |root| change(root, "v2")),
        (2, |root| change(root, "v3")),
        (0, |root| change_all(root, &["base", "other", "guard"], "v1")),
        (2, |root| change_all(root, &["base", "guard"], "v3")),
        (2, |root| root.roll_back("guard")),
        (1, |root| root.remove("guard")),
        (2, |root| root.remove("guard")),
    ];
    for (installed, work) in works {
        let prepared = || {
            allow(usize::MAX);
            let disk = Disk::new();
            for version in 1..=installed {
                change(&disk.open(), &format!("v{version}")).unwrap();
            }
            disk
        };
        let (before, done) = (prepared(), prepared());
        work(&done.open()).unwrap();
        let mut steps = 0;
        loop {
            let disk = prepared();
            let root = disk.open();
            allow(steps);
            let died = work(&root).is_err();
            drop(root);
            allow(usize::MAX);
            // Whoever looks before anybody cleared up sees one of the two.
            let loaded = disk.loaded();
            assert!(loaded == before.loaded() || loaded == done.loaded(), "after {steps} steps: {loaded:?}");
            // After that nothing is left of what was begun.
            disk.open();
            let seen = disk.seen();
            assert!(seen == before.seen() || seen == done.seen(), "after {steps} steps: {seen:?}");
            assert_eq!(disk.loaded(), loaded, "after {steps} steps");
            if !died {
                assert_eq!(seen, done.seen());
                break;
            }
            steps += 1;
        }
        assert!(steps > 0);
    }
}

#[test]
fn a_kill_while_somebody_clears_up_does_no_harm() {
    for first in 0..12 {
        for second in 0..4 {
            allow(usize::MAX);
            let disk = Disk::new();
            change(&disk.open(), "v1").unwrap();
            change(&disk.open(), "v2").unwrap();
            let root = disk.open();
            allow(first);
            let _ = change(&root, "v3");
            drop(root);
            allow(second);
            let _ = InstallRoot::open_at(&disk.0.path().join("extensions"), &disk.0.path().join("state"), counted);
            allow(usize::MAX);
            disk.open();
            let pair = |name: &str, version: &str| (name.to_owned(), version.to_owned());
            let before = BTreeMap::from([pair("/guard", "v2"), pair(".previous/guard", "v1")]);
            let after = BTreeMap::from([pair("/guard", "v3"), pair(".previous/guard", "v2")]);
            let seen = disk.seen();
            assert!(seen == before || seen == after, "{first} {second}: {seen:?}");
        }
    }
}

#[test]
fn one_process_at_a_time_changes_the_folder() {
    allow(usize::MAX);
    let disk = Disk::new();
    let _held = disk.open();
    let second = InstallRoot::open_at(&disk.0.path().join("extensions"), &disk.0.path().join("state"), counted);
    assert!(second.unwrap_err().message.contains("another process"));
}

#[test]
fn what_is_there_is_never_written_over_by_a_first_installation() {
    allow(usize::MAX);
    let disk = Disk::new();
    let root = disk.open();
    fs::create_dir(root.place("guard")).unwrap();
    let package: Package = [("manifest.json", b"v1".to_vec(), false)].into_iter().collect();
    let folder = root.stage(&package).unwrap();
    assert!(root.place_all(&[Aside { name: "guard", folder: &folder, replaces: false }]).is_err());
    assert_eq!(fs::read_dir(root.place("guard")).unwrap().count(), 0);
}
