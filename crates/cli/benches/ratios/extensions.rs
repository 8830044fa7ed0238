//! Extensions: what loading them costs beyond reading and parsing their manifests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ollm_catalog::{Extensions, Overrides, Places, Surroundings, configuration, extensions, reload_extensions};
use ollm_store::{Secrets, Switch, Switches, set_switches};
use serde_json::{Value, json};

use crate::lab::{Lab, cli};
use crate::measure::{Case, table};

/// As many as the target speaks of, with four hooks each.
const MANY: usize = 500;

pub(crate) fn measure(lab: &Lab) {
    let (all, half) = (home(&lab.root, "all", MANY), home(&lab.root, "half", MANY / 2));
    let (many, single) = (home(&lab.root, "many/.ollm", MANY), home(&lab.root, "single/.ollm", 1));
    // Files that were just written are read again; these are old.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    assert_eq!(load(&all).hooks().count(), 4 * MANY);
    let known = load(&all);
    table(vec![
        Case {
            name: "500 extensions, 2,000 hooks / reading and parsing bare",
            target: 3.0,
            floor: bare(&all),
            run: loading(&all),
        },
        Case { name: "500 extensions / 250 extensions", target: 2.2, floor: loading(&half), run: loading(&all) },
        Case {
            name: "enabling one of 500 known ones / loading all 500",
            target: 0.6,
            floor: loading(&all),
            run: {
                let all = all.clone();
                Box::new(move || assert_eq!(again(&all, &known).iter().count(), MANY))
            },
        },
        Case {
            name: "`ext enable`, one of 500 / the only one",
            target: 4.0,
            floor: switching(lab, &single),
            run: switching(lab, &many),
        },
    ]);
    enabling(&all);
}

/// The whole command for one extension of a home, where it is remembered what they are called.
fn switching(lab: &Lab, home: &Path) -> Box<dyn FnMut()> {
    let folder = home.parent().unwrap();
    cli(&lab.ollm, &["ext", "list"], folder, "")();
    cli(&lab.ollm, &["ext", "enable", "e0"], folder, "")
}

/// How much is read when one extension is switched on while the others are known.
fn enabling(home: &Path) {
    let known = load(home);
    let change = [("extension:e7".to_owned(), Some(Switch { on: true, until: None }))];
    set_switches(&home.join("state/switches.json"), &change, SystemTime::now()).unwrap();
    let manifests: u64 = manifests(home).iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    let before = bytes_read();
    again(home, &known);
    let read = bytes_read().zip(before).map(|(after, before)| after - before);
    println!("\nenabling one of {MANY} reads {read:?} bytes; the manifests have {manifests}");
}

/// The bytes this process has read so far, where the system tells.
fn bytes_read() -> Option<u64> {
    let io = fs::read_to_string("/proc/self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

fn loading(home: &Path) -> Box<dyn FnMut()> {
    let home = home.to_owned();
    Box::new(move || assert!(load(&home).iter().count() > 0))
}

fn bare(home: &Path) -> Box<dyn FnMut()> {
    let files = manifests(home);
    Box::new(move || {
        for file in &files {
            let manifest: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            assert!(std::hint::black_box(manifest).is_object());
        }
    })
}

fn load(home: &Path) -> Extensions {
    surrounded(home, |surroundings| extensions(surroundings).0)
}

fn again(home: &Path, known: &Extensions) -> Extensions {
    surrounded(home, |surroundings| reload_extensions(known, surroundings).0)
}

fn surrounded<T>(home: &Path, read: impl FnOnce(&Surroundings<'_>) -> T) -> T {
    let places = Places { home: home.to_owned(), ..Places::default() };
    let (config, _) = configuration(&places, &|_| None, &Overrides::default());
    let (switches, _) = Switches::load(&home.join("state/switches.json"));
    read(&Surroundings {
        places: &places,
        config: &config,
        env: &|_| None,
        switches: &switches,
        secrets: &Secrets::default(),
        now: SystemTime::now(),
        approved: None,
        vouched: None,
        commands: ollm_protocol::Commands::default(),
    })
}

fn manifests(home: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(home.join("extensions")).unwrap();
    folders.map(|folder| folder.unwrap().path().join("manifest.json")).collect()
}

/// A home with a number of extensions as people write them.
fn home(root: &Path, name: &str, count: usize) -> PathBuf {
    let home = root.join("extensions").join(name);
    for index in 0..count {
        let folder = home.join(format!("extensions/e{index}"));
        fs::create_dir_all(folder.join("hooks")).unwrap();
        fs::write(folder.join("hooks/check.sh"), "exit 0\n").unwrap();
        let hook = |name: &str| {
            json!([{
                "name": name,
                "description": "Looks at what is about to happen and says what it thinks of it",
                "command": "sh",
                "args": ["hooks/check.sh"],
                "timeout": 5000,
            }])
        };
        let manifest = json!({
            "name": format!("e{index}"),
            "version": "1.2.3",
            "description": "An extension of the kind that people write",
            "author": "Somebody",
            "license": "MIT",
            "keywords": ["check", "tools"],
            "hooks": {
                "before_tool": hook("before"), "after_tool": hook("after"),
                "session_start": hook("start"), "session_end": hook("end"),
            },
            "settings": [{"name": "level", "description": "How strict it is", "enum": ["low", "high"], "default": "low"}],
            "skills": [{"name": "explain", "description": "Explains", "prompt": "Explain {{what}} to {{whom}}."}],
        });
        fs::write(folder.join("manifest.json"), format!("{manifest:#}\n")).unwrap();
    }
    home
}
