//! Scripts in hook folders that nothing declares: told where a session begins, and once a day at single events.

use std::fs;
use std::time::{Duration, SystemTime};

use ollm_catalog::Undeclared;
use ollm_store::write_atomic;

use crate::app_context::AppContext;
use crate::port::Notices;

/// How long nothing is told after it was told.
const PAUSE: Duration = Duration::from_hours(24);

/// What a person should know of a script that nothing declares.
pub fn undeclared_line(script: &Undeclared, context: &AppContext) -> String {
    let way_out = context.tell(&script.remedy());
    format!("{} is declared by no hook file and never runs; {way_out}", script.path.display())
}

/// A line for each script that nothing declares, unless they were looked for within the last day.
pub fn undeclared_today(context: &AppContext) -> Vec<String> {
    let Some(own) = context.own_home().filter(|own| own.is_dir()) else { return Vec::new() };
    let file = own.join("state/told/undeclared");
    let told = fs::metadata(&file).and_then(|found| found.modified()).ok();
    let now = SystemTime::now();
    // A time in the future comes from a clock that was wrong then.
    if told.is_some_and(|told| now.duration_since(told).is_ok_and(|since| since < PAUSE)) {
        return Vec::new();
    }
    // What cannot be remembered is not told either: it would be told at every event.
    if write_atomic(&file, b"").is_err() {
        return Vec::new();
    }
    undeclared_lines(context)
}

/// Tells of every script that nothing declares.
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
