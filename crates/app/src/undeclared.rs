//! Reports scripts in hook folders that nothing declares: at the start of a session, and once a day at single events.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime};

use ollm_catalog::UndeclaredScript;
use ollm_store::write_atomic;

use crate::app_context::AppContext;
use crate::port::Notices;

/// The pause between two reports.
const PAUSE: Duration = Duration::from_hours(24);

/// The report of a script that nothing declares.
pub fn undeclared_line(script: &UndeclaredScript, context: &AppContext) -> String {
    let way_out = context.tell(&script.remedy());
    format!("{} is declared by no hook file and never runs; {way_out}", script.path.display())
}

/// One line for each script that nothing declares, at most once a day. If there was none, a change of the folders
/// starts a new search.
pub fn undeclared_today(context: &AppContext) -> Vec<String> {
    let Some(own) = context.own_home().filter(|own| own.is_dir()) else { return Vec::new() };
    let file = own.join("state/told/undeclared");
    let looked = fs::metadata(&file).and_then(|found| found.modified()).ok();
    // A time in the future comes from a clock that was wrong then.
    let is_recent = looked.is_some_and(|then| SystemTime::now().duration_since(then).is_ok_and(|since| since < PAUSE));
    let known = if is_recent { fs::read_to_string(&file).unwrap_or_default() } else { String::new() };
    let state = state_of_folders(context);
    if known == TOLD || known.lines().any(|line| line == state) {
        return Vec::new();
    }
    let lines = undeclared_lines(context);
    let others = known.lines().take(MOST_PLACES - 1).flat_map(|line| [line, "\n"]);
    let note =
        if lines.is_empty() { std::iter::once(&*state).chain(["\n"]).chain(others).collect() } else { TOLD.to_owned() };
    // Without the saved note, the lines would be repeated at every event.
    if write_atomic(&file, note.as_bytes()).is_ok() { lines } else { Vec::new() }
}

/// The note after a report.
const TOLD: &str = "told\n";
/// How many places without such scripts are remembered.
const MOST_PLACES: usize = 16;

/// A text that changes when a script is added to a hook folder.
fn state_of_folders(context: &AppContext) -> String {
    let places = &context.places;
    let folders = places.projects().map(|project| project.join(".ollm/hooks")).chain([places.home.join("hooks")]);
    let mut hasher = DefaultHasher::new();
    for folder in folders.flat_map(|folder| [folder.join("trusted"), folder]) {
        let changed = fs::metadata(&folder).and_then(|found| found.modified()).ok();
        (folder, changed).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

/// Reports every script that nothing declares.
pub fn tell_undeclared(context: &AppContext, notices: &mut dyn Notices) {
    for line in undeclared_lines(context) {
        notices.tell(&line);
    }
}

fn undeclared_lines(context: &AppContext) -> Vec<String> {
    let env = |name: &str| context.variable(name);
    let found = ollm_catalog::undeclared(&context.places, &env, &context.overrides);
    found.iter().map(|script| undeclared_line(script, context)).collect()
}
