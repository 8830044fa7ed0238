//! At whichever step a process dies, the folder is in the earlier or in the later state.

use std::cell::Cell;
use std::collections::BTreeMap;

use tempfile::TempDir;

use super::super::source::PackageSource;
use super::*;

thread_local! {
    /// How many steps are still allowed.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Fails once no step is left, as if the process was killed: nothing after it happens.
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

    /// The files that a process loading extensions sees, and the previous versions.
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

    /// The same, without previous versions, staged packages and extensions that wait for another: these are never
    /// loaded.
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

/// Puts packages in place: the last one, with the packages that it needs.
fn change_all(root: &InstallRoot, names: &[&str], version: &str) -> io::Result<()> {
    let package: Package = [("manifest.json", version.as_bytes().to_vec(), false)].into_iter().collect();
    let record = InstallRecord::new(PackageSource::Folder("/x".into()));
    let stage = |_: &&str| {
        let staged = root.stage(&package)?;
        root.complete(&staged, &record, None)?;
        Ok(staged)
    };
    let staged = names.iter().map(stage).collect::<io::Result<Vec<_>>>()?;
    let packages: Vec<StagedPackage<'_>> = names
        .iter()
        .zip(&staged)
        .map(|(name, folder)| StagedPackage { name, folder, replaces: root.place(name).exists() })
        .collect();
    settled(root.place_all(&packages))
}

/// Treats an error after a change like an error in it.
fn settled(done: io::Result<Option<io::Error>>) -> io::Result<()> {
    done?.map_or(Ok(()), Err)
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
        (2, |root| settled(root.roll_back("guard"))),
        (1, |root| settled(root.remove("guard"))),
        (2, |root| settled(root.remove("guard"))),
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
            // A process that reads before the clean-up sees one of the two states.
            let loaded = disk.loaded();
            assert!(loaded == before.loaded() || loaded == done.loaded(), "after {steps} steps: {loaded:?}");
            // The clean-up leaves nothing of the unfinished change.
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
    assert!(root.place_all(&[StagedPackage { name: "guard", folder: &folder, replaces: false }]).is_err());
    assert_eq!(fs::read_dir(root.place("guard")).unwrap().count(), 0);
}
