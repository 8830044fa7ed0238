//! Finds hooks whose last run failed. Other agents do not show this to people, so it is read from the trace afterwards.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use ollm_protocol::Remedy;
use ollm_protocol::units::iso;

use super::record::Records;
use crate::app::App;

/// Older failures are not reported.
const RECENT: Duration = Duration::from_hours(24);
/// How many events are searched, newest first.
const MOST_RECORDS: usize = 2000;
/// How many hooks are reported.
const MOST_HOOKS: usize = 20;

/// A hook whose last run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailingHook {
    /// The hook's id.
    pub id: String,
    /// How often it failed in a row, within the searched records.
    pub times: usize,
    /// When it last failed, in ISO 8601.
    pub last: String,
    /// Why it last failed.
    pub error: String,
}

impl FailingHook {
    /// The warning for the person, in one line.
    pub fn line(&self, app: &App) -> String {
        let (what, way_out) = self.parts(app);
        format!("{what}; {way_out}")
    }

    /// The warning in two parts: what happened, and how to see more.
    pub fn parts(&self, app: &App) -> (String, String) {
        let times = if self.times == 1 { "at".to_owned() } else { format!("{} times in a row, last at", self.times) };
        let way_out = app.context().tell(&Remedy::ShowRuns(self.id.clone()));
        (format!("hook `{}` failed {times} {}: {}", self.id, self.last, self.error), way_out)
    }
}

/// The present hooks whose last run failed, newest failure first; empty without a trace.
pub fn failing(app: &App) -> Vec<FailingHook> {
    let Ok(records) = Records::open(app.trace_log.clone()) else { return Vec::new() };
    let since = iso(SystemTime::now().checked_sub(RECENT).unwrap_or(SystemTime::UNIX_EPOCH));
    let mut found: Vec<FailingHook> = Vec::new();
    // Failures before the last success do not matter.
    let mut worked: HashSet<String> = HashSet::new();
    let recent = records.flatten().take(MOST_RECORDS).take_while(|record| record.text("time") >= since.as_str());
    for record in recent {
        for run in record.runs().filter(|run| !run.is_builtin()) {
            if worked.contains(run.id) {
                continue;
            }
            match found.iter_mut().find(|known| known.id == run.id) {
                _ if !matches!(run.status, "failed" | "timeout") => _ = worked.insert(run.id.to_owned()),
                Some(known) => known.times += 1,
                None => found.push(FailingHook {
                    id: run.id.to_owned(),
                    times: 1,
                    last: record.text("time").to_owned(),
                    error: run.error.unwrap_or("it did not answer in time").to_owned(),
                }),
            }
        }
    }
    found.retain(|failing| app.engine.registry.get(&failing.id).is_some());
    found.truncate(MOST_HOOKS);
    found
}
