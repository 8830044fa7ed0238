//! Extensions as folders: put in place, switched, and taken away.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{QUIET, approve, entries, entry, extension, ok};
use crate::lab::{Lab, shell_event};

#[test]
fn e10_uninstall_takes_the_folder_and_what_we_know_of_it_and_nothing_else() {
    let lab = Lab::new();
    let settings = json!({"settings": [{"name": "pin", "description": "d", "sensitive": true}]});
    extension(&lab, "home", "gone", QUIET, &settings);
    extension(&lab, "home", "stays", QUIET, &json!({}));
    approve(&lab, "gone");
    ok(&lab.run(&["ext", "set", "gone", "pin=1234"]));
    ok(&lab.run(&["ext", "enable", "gone"]));
    for name in ["../stays", "..", "/", "nobody"] {
        assert_eq!(lab.run(&["ext", "uninstall", name, "--yes"]).code, 64, "{name}");
    }
    let asked = lab.run(&["ext", "uninstall", "gone"]);
    assert!(asked.code == 64 && asked.stderr.contains("gone stays: there is no terminal to ask on"), "{asked:?}");
    assert!(asked.stderr.contains("--yes"), "{asked:?}");
    ok(&lab.run(&["ext", "uninstall", "gone", "--yes"]));
    assert!(!lab.home.join(".ollm/extensions/gone").exists());
    assert!(lab.home.join(".ollm/extensions/stays/manifest.json").exists());
    // Nothing else is in them, so they went.
    for file in ["trusted-hooks.json", "state/secrets.json", "state/switches.json"] {
        assert!(!lab.home.join(".ollm").join(file).exists(), "{file}");
    }
}

#[test]
fn e10_uninstalling_a_link_leaves_what_it_leads_to() {
    let lab = Lab::new();
    extension(&lab, "elsewhere", "linked", QUIET, &json!({}));
    let target = lab.root.join("elsewhere/.ollm/extensions/linked");
    fs::create_dir_all(lab.home.join(".ollm/extensions")).unwrap();
    std::os::unix::fs::symlink(&target, lab.home.join(".ollm/extensions/linked")).unwrap();
    ok(&lab.run(&["ext", "uninstall", "linked", "--yes"]));
    assert!(target.join("manifest.json").exists());
    assert_eq!(entries(&lab), Vec::<Value>::new());
}

#[test]
fn e11_auto_enable_false_waits_for_the_person_and_remembers() {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "extensions:\n  autoEnable: false\n");
    extension(&lab, "home", "guard", QUIET, &json!({}));
    approve(&lab, "guard");
    assert_eq!(entry(&lab, "guard")["enabled"], false);
    assert_eq!(lab.event(shell_event("ls")).hook_count(), 0);
    ok(&lab.run(&["ext", "enable", "guard"]));
    assert_eq!(lab.event(shell_event("ls")).hook_count(), 1);
    lab.write("home/.ollm/config.yaml", "extensions:\n  enabled: false\n");
    assert_eq!(entries(&lab), Vec::<Value>::new());
    assert!(lab.run(&["ext", "list"]).stderr.contains("extensions.enabled is false"));
    assert_eq!(lab.event(shell_event("ls")).hook_count(), 0);
}

#[test]
fn e9_a_folder_put_in_place_is_all_it_takes_and_half_of_one_runs_nothing() {
    let lab = Lab::new();
    extension(&lab, "elsewhere", "whole", "printf '{\"systemMessage\": \"here\"}'\n", &json!({}));
    let from = lab.root.join("elsewhere/.ollm/extensions/whole");
    let to = lab.home.join(".ollm/extensions/whole");
    fs::create_dir_all(to.join("hooks")).unwrap();
    // Nothing but a folder yet: it is no extension, and it disturbs nothing.
    assert_eq!(entries(&lab), Vec::<Value>::new());
    // The manifest, and not yet what it names.
    fs::copy(from.join("manifest.json"), to.join("manifest.json")).unwrap();
    let half = lab.event(shell_event("ls"));
    assert_eq!((half.code, half.hook_count()), (0, 0));
    assert!(lab.run(&["ext", "validate", "whole"]).stderr.contains("does not exist"));
    fs::copy(from.join("hooks/run.sh"), to.join("hooks/run.sh")).unwrap();
    approve(&lab, "whole");
    assert_eq!(lab.event(shell_event("ls")).answer()["systemMessage"], "here");
}

#[test]
fn a_manifest_that_grows_while_it_is_read_is_an_error_at_most_and_hides_no_other() {
    let lab = Lab::new();
    extension(&lab, "home", "stays", QUIET, &json!({}));
    extension(&lab, "home", "grows", QUIET, &json!({}));
    let manifest = lab.home.join(".ollm/extensions/grows/manifest.json");
    let whole = fs::read(&manifest).unwrap();
    let (done, over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // From whole to broken to far too large, and back, over and over.
            while !done.load(Ordering::Relaxed) {
                let mut file = fs::File::create(&manifest).unwrap();
                file.write_all(&whole).unwrap();
                for _ in 0..40 {
                    file.write_all(&vec![b' '; 64 << 10]).unwrap();
                }
                file.write_all(b"}").unwrap();
                over.store(true, Ordering::Relaxed);
            }
        });
        for _ in 0..20 {
            let list = entries(&lab);
            let names: Vec<&str> = list.iter().map(|one| one["name"].as_str().unwrap()).collect();
            assert_eq!(names, ["grows", "stays"], "{list:?}");
            assert_eq!((&list[1]["enabled"], &list[1]["error"]), (&json!(true), &Value::Null));
            assert!(list[0]["enabled"] == true || list[0]["error"].is_string(), "{list:?}");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(over.into_inner());
    fs::write(&manifest, &whole).unwrap();
    assert_eq!(entry(&lab, "grows")["enabled"], true);
}

#[test]
fn enabling_one_extension_opens_the_manifests_of_the_others_once() {
    let lab = with_old(&["a", "b", "c"]);
    let watch = Opened::of(&manifest(&lab, "b"));
    ok(&lab.run(&["ext", "enable", "a"]));
    assert_eq!(watch.count(), 1);
    // Of what was read once it is known what it is called.
    ok(&lab.run(&["ext", "disable", "c"]));
    ok(&lab.run(&["ext", "enable", "c", "a"]));
    assert_eq!(watch.count(), 0);
}

#[test]
fn switching_one_of_many_that_were_listed_opens_the_manifests_of_the_others_never() {
    let names: Vec<String> = (0..40).map(|number| format!("e{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let lab = with_old(&names);
    ok(&lab.run(&["ext", "list"]));
    let others: Vec<Opened> = names[1..].iter().map(|name| Opened::of(&manifest(&lab, name))).collect();
    let wanted = Opened::of(&manifest(&lab, "e0"));
    ok(&lab.run(&["ext", "disable", "e0"]));
    ok(&lab.run(&["ext", "enable", "e0"]));
    ok(&lab.run(&["ext", "disable", "e0"]));
    assert_eq!(others.iter().map(Opened::count).sum::<usize>(), 0);
    assert!(wanted.count() > 0);
    assert_eq!(entry(&lab, "e0")["enabled"], false);
    assert_eq!(entry(&lab, "e1")["enabled"], true);
}

#[test]
fn what_is_remembered_of_extensions_decides_nothing() {
    let lab = with_old(&["a", "b"]);
    ok(&lab.run(&["ext", "list"]));
    // One that is renamed, one that is new, and one that takes a name.
    let taken = json!({"name": "a", "version": "2.0.0", "description": "Another"}).to_string();
    lab.write(
        "home/.ollm/extensions/b/manifest.json",
        json!({"name": "bee", "version": "1.0.0", "description": "B"}).to_string(),
    );
    extension(&lab, "home", "c", QUIET, &json!({"dependencies": {"bee": "^2"}}));
    assert_eq!(lab.run(&["ext", "enable", "b"]).code, 64);
    ok(&lab.run(&["ext", "enable", "bee"]));
    let lacks = lab.run(&["ext", "enable", "c"]);
    assert!(lacks.code == 1 && lacks.stdout.contains("it needs `bee` ^2, but version 1.0.0 is there"), "{lacks:?}");
    ok(&lab.run(&["ext", "disable", "bee"]));
    let lacks = lab.run(&["ext", "enable", "c"]);
    assert!(lacks.code == 1 && lacks.stdout.contains("`bee`, which is switched off"), "{lacks:?}");
    lab.write("project/.ollm/extensions/a/manifest.json", taken);
    ok(&lab.run(&["ext", "enable", "a"]));
    let both = entries(&lab);
    let named: Vec<&Value> = both.iter().filter(|one| one["name"] == "a").map(|one| &one["enabled"]).collect();
    assert_eq!(named, [&json!(true), &json!(false)]);
}

#[test]
fn what_is_remembered_of_extensions_may_be_lost_broken_or_somebody_elses() {
    let lab = with_old(&["a", "b"]);
    let file = lab.home.join(".ollm/state/extension-names.json");
    ok(&lab.run(&["ext", "list"]));
    let good = fs::read_to_string(&file).unwrap();
    for bad in ["", "{", "[]", r#"{"version": 9, "extensions": {}}"#, r#"{"version": 1, "extensions": [1]}"#, "\u{0}"] {
        fs::write(&file, bad).unwrap();
        let ran = lab.run(&["ext", "enable", "a"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "a is on\n"), "{bad}: {ran:?}");
        assert!(!ran.stderr.contains("extension-names"), "{ran:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), good, "{bad}");
    }
    // What others can write is not believed: it says that `b` is called `a`.
    fs::write(&file, good.replace("\"b\"", "\"a\"")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let watch = Opened::of(&manifest(&lab, "b"));
    ok(&lab.run(&["ext", "enable", "a"]));
    assert_eq!((watch.count(), fs::read_to_string(&file).unwrap()), (1, good));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    ok(&lab.run(&["ext", "disable", "a"]));
}

/// A lab with extensions of the user that were written a while ago: what was just written may change again without a trace.
fn with_old(names: &[&str]) -> Lab {
    let lab = Lab::new();
    for name in names {
        extension(&lab, "home", name, QUIET, &json!({}));
    }
    crate::lab::eventually("the manifests are old enough", || {
        let age = |name: &&str| fs::metadata(manifest(&lab, name)).unwrap().modified().unwrap().elapsed();
        names.iter().all(|name| age(name).is_ok_and(|age| age.as_secs() >= 3))
    });
    lab
}

fn manifest(lab: &Lab, name: &str) -> PathBuf {
    lab.home.join(format!(".ollm/extensions/{name}/manifest.json"))
}

/// How often a file is opened.
struct Opened(std::os::fd::OwnedFd);

impl Opened {
    fn of(path: &Path) -> Opened {
        use rustix::fs::inotify;
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watch, path, inotify::WatchFlags::OPEN).unwrap();
        Opened(watch)
    }

    fn count(&self) -> usize {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = rustix::fs::inotify::Reader::new(&self.0, &mut buffer);
        std::iter::from_fn(|| reader.next().ok().map(drop)).count()
    }
}

#[test]
fn uninstall_takes_the_switches_of_single_hooks_along() {
    let lab = Lab::new();
    extension(&lab, "home", "tt", QUIET, &json!({}));
    extension(&lab, "home", "ttt", QUIET, &json!({}));
    for name in ["tt", "ttt"] {
        ok(&lab.run(&["hook", "disable", &format!("user:{name}:before_tool:{name}")]));
    }
    ok(&lab.run(&["ext", "uninstall", "tt", "--yes"]));
    let switches = fs::read_to_string(lab.home.join(".ollm/state/switches.json")).unwrap();
    assert!(!switches.contains("user:tt:") && switches.contains("user:ttt:before_tool:ttt"), "{switches}");
    extension(&lab, "home", "tt", QUIET, &json!({}));
    approve(&lab, "tt");
    assert_eq!(lab.planned("before_tool").iter().filter(|hook| hook["name"] == "tt").count(), 1);
}
