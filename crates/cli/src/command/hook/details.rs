//! What `--verbose` tells: which files were read, what was planned, how long each hook took.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ollm_app::{App, AppContext};
use ollm_engine::Outcome;
use ollm_protocol::Hook;

use crate::output::Output;

pub(super) fn tell_files(app: &App, context: &AppContext, output: &mut Output) {
    if !output.is_verbose() {
        return;
    }
    let own = context.places.project.iter().map(|project| project.join(".ollm"));
    let configurations =
        std::iter::once(context.places.home.clone()).chain(own).map(|folder| folder.join("config.yaml"));
    for file in configurations.filter(|file| file.is_file()) {
        output.detail(|| format!("read {}", file.display()));
    }
    let hooks = app.hooks();
    let mut files: BTreeMap<&Path, usize> = BTreeMap::new();
    for hook in hooks.iter().filter(|hook| !hook.spec.origin.file.as_os_str().is_empty()) {
        *files.entry(&hook.spec.origin.file).or_default() += 1;
    }
    for (file, count) in files {
        output.detail(|| format!("read {}: {count} hooks", file.display()));
    }
}

pub(super) fn tell(outcome: &Outcome, output: &mut Output) {
    if !output.is_verbose() {
        return;
    }
    let stages: Vec<String> = outcome.plan.iter().map(|hooks| stage(hooks)).collect();
    let plan = if stages.is_empty() { "no hook".to_owned() } else { stages.join(", then ") };
    output.detail(|| format!("plan of {}: {plan}", outcome.event.name()));
    for skip in &outcome.skipped {
        output.detail(|| format!("skipped {}: {}: {}", skip.hook.id(), skip.reason.name(), skip.detail));
    }
    for report in &outcome.reports {
        let millis = report.duration.as_secs_f64() * 1e3;
        output.detail(|| format!("{} was {} after {millis:.1} ms", report.hook.id(), report.status.name()));
        for warning in &report.warnings {
            output.detail(|| format!("{} warns: {warning}", report.hook.id()));
        }
    }
    let millis = outcome.duration.as_secs_f64() * 1e3;
    output.detail(|| format!("{} after {millis:.1} ms", outcome.verdict.flow.name()));
}

fn stage(hooks: &[Arc<Hook>]) -> String {
    hooks.iter().map(|hook| hook.id()).collect::<Vec<_>>().join(" + ")
}
