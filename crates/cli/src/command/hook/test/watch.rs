//! Trying a hook again whenever one of its files changes.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ollm_app::{App, AppContext};

use super::{chosen, once};
use crate::arguments::hook::TestArguments;
use crate::error::Failure;
use crate::output::Output;

/// How often to look. A handful of files is looked at faster than watches on them are set up and torn down.
const PAUSE: Duration = Duration::from_millis(200);

/// Runs until it is interrupted.
pub(super) fn run(arguments: &TestArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    if arguments.json {
        output.stream_json();
    }
    let mut files = Vec::new();
    loop {
        // Earlier files stay in the list: one that cannot be read now may be repaired in place.
        files.extend(decisive(arguments, context));
        files.sort();
        files.dedup();
        let before = stamps(&files);
        if let Err(failure) = once(arguments, context, output) {
            // A failure now may be gone after the next change.
            output.failure_in_stream(&failure);
        }
        output.idle();
        output.tell("waiting for a change; Ctrl-C ends");
        while stamps(&files) == before {
            std::thread::sleep(PAUSE);
        }
    }
}

/// The files that decide what a test shows; new ones show up in their folders.
fn decisive(arguments: &TestArguments, context: &AppContext) -> Vec<PathBuf> {
    let mut files = vec![context.places.home.join("hooks")];
    files.extend(context.places.project.as_ref().map(|project| project.join(".ollm/hooks")));
    files.extend(files.iter().flat_map(|folder| listed(folder)).collect::<Vec<_>>());
    let app = App::load(context).ok();
    let hooks = app.and_then(|app| chosen(&app, arguments).ok()).unwrap_or_default();
    for hook in hooks {
        let spec = &hook.spec;
        let cases = spec.origin.file.parent().map(|folder| folder.join("cases").join(&spec.name));
        files.extend(cases.iter().flat_map(|folder| listed(folder)));
        files.extend(cases);
        files.extend(spec.script().cloned());
        files.extend(spec.inputs.iter().cloned());
        files.push(spec.origin.file.clone());
    }
    files
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

/// What tells whether files have changed.
pub(crate) fn stamps(files: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    let stamp = |path: &PathBuf| path.metadata().ok().and_then(|meta| Some((meta.modified().ok()?, meta.len())));
    files.iter().map(stamp).collect()
}
