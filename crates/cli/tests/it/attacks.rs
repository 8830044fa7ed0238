//! What a hostile repository, a neighbour on the machine, an agent or a broken disk can do, by the numbers of the
//! abuse cases.

mod clone;
mod consent;
mod copies;
mod cost;
mod disk;
mod guards;
mod identity;
mod names;
mod neighbour;
mod nested;
mod screens;
mod secrets;
pub(crate) mod signed;
pub(crate) mod surroundings;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::lab::{Lab, Ran, shell_event};

const ID: &str = "workspace:guest.json:before_tool:guest";

/// Leaves its process id where it can be counted.
const CANARY: &str = "echo $$ >> canary";

fn lab() -> Lab {
    let lab = Lab::new();
    lab.workspace_hook("before_tool", "guest", CANARY, "");
    lab
}

/// The processes that were started.
fn canaries(lab: &Lab) -> usize {
    let canary = lab.project.join("canary");
    let count = fs::read_to_string(&canary).unwrap_or_default().lines().count();
    fs::remove_file(canary).ok();
    count
}

/// The ids of the hooks that came with the project.
fn guests(lab: &Lab) -> BTreeSet<String> {
    let listed = lab.run(&["hook", "list", "--json"]).answer();
    let guests = listed.as_array().unwrap().iter().filter(|hook| hook["source"] == "workspace");
    guests.map(|hook| hook["id"].as_str().unwrap().to_owned()).collect()
}

/// Whether the project's hook runs, and if not, why.
fn standing(lab: &Lab) -> String {
    judged(lab, &lab.event(shell_event("ls")))
}

fn judged(lab: &Lab, ran: &Ran) -> String {
    let answer = ran.answer();
    let skip = answer["skipped"].as_array().unwrap().iter().find(|skip| skip["name"] == "guest");
    assert_eq!(canaries(lab) > 0, skip.is_none(), "{answer}");
    skip.map_or_else(|| "ran".to_owned(), |skip| skip["reason"].as_str().unwrap().to_owned())
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Whether files can be given to others, which the tests about that need.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn is_root(lab: &Lab) -> bool {
    let root = fs::metadata(&lab.root).unwrap().uid() == 0;
    if !root {
        eprintln!("skipped: only root can give files away");
    }
    root
}
