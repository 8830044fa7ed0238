//! Extensions from elsewhere: searched, installed, updated, pinned, rolled back, and taken away again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::lab::{Lab, Ran, finish, shell_event};

mod faults;
mod indexes;
mod packages;
mod repositories;
pub(crate) mod server;
mod sources;
mod steps;
mod updates;

/// A hook that says its version.
fn script(version: &str) -> String {
    format!("printf '{{\"continue\": true, \"systemMessage\": \"{version}\"}}'\n")
}

/// Writes the folder of the extension `guard` somewhere outside of where extensions are loaded from.
pub(crate) fn package(lab: &Lab, folder: &str, version: &str, more: &Value) -> PathBuf {
    let hooks = json!({"before_tool": [{"name": "guard", "command": "sh", "args": ["hooks/run.sh"]}]});
    let mut manifest = json!({"name": "guard", "version": version, "description": "Guards", "hooks": hooks});
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    lab.write(&format!("{folder}/manifest.json"), manifest.to_string());
    lab.write(&format!("{folder}/hooks/run.sh"), script(version));
    lab.root.join(folder)
}

/// Packs a folder into `.tar.gz` and gives back its path.
fn packed(lab: &Lab, folder: &str, archive: &str) -> PathBuf {
    let path = lab.root.join(archive);
    let parts = path.to_str().unwrap().strip_suffix(".tar.gz").unwrap().to_owned();
    python(lab, "import shutil, sys; shutil.make_archive(sys.argv[1], 'gztar', sys.argv[2])", &[&parts, folder]);
    path
}

/// Runs a line of Python in the lab's folder.
fn python(lab: &Lab, code: &str, arguments: &[&str]) {
    let mut command = lab.program("python3");
    command.current_dir(&lab.root).args(["-c", code]).args(arguments);
    let ran = finish(command, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
}

fn installed(lab: &Lab, arguments: &[&str]) -> Ran {
    let ran = lab.run(&[&["ext", "install", "--yes"], arguments].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// What a program is told of a change.
fn changed(ran: &Ran) -> Value {
    ran.answer()["changed"][0].clone()
}

fn refused(lab: &Lab, arguments: &[&str], code: i32, word: &str) {
    let before = extensions(lab);
    let ran = lab.run(arguments);
    assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
    assert!(ran.stderr.contains(word), "{arguments:?} without {word:?}: {ran:?}");
    assert_eq!(extensions(lab), before, "{arguments:?} left something behind");
}

/// Every file below a folder, with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap_or_default());
            }
        }
    }
    found
}

/// Everything where extensions are installed, also what is hidden.
fn extensions(lab: &Lab) -> BTreeMap<PathBuf, Vec<u8>> {
    files(&lab.home.join(".ollm/extensions"))
}

fn entry(lab: &Lab) -> Value {
    lab.run(&["ext", "list", "--json"]).answer().as_array().unwrap().first().cloned().unwrap_or_default()
}

fn approve(lab: &Lab) {
    let digest = entry(lab)["digest"].as_str().unwrap().to_owned();
    let ran = lab.run(&["ext", "trust", "guard", "--digest", &digest]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// What the hook of the extension says, if it runs.
fn said(lab: &Lab) -> Option<String> {
    lab.event(shell_event("ls")).answer()["systemMessage"].as_str().map(str::to_owned)
}

fn version(lab: &Lab) -> String {
    entry(lab)["version"].as_str().unwrap_or_default().to_owned()
}
