//! Recorded events passed through hooks once more, and what would be different.
//!
//! Nothing is touched: programs of hooks run in a box that only reads, without a network. Hooks that ask somebody else, and
//! hooks that nobody waits for, are not run; their part in a verdict is what it was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_catalog::Severity;
use ollm_engine::trace::Payload;
use ollm_engine::{Outcome, Report, Status};
use ollm_protocol::hook::Needs;
use ollm_protocol::{Code, Event, Flow, Hook, HookSpec, RateLimit, Source};
use ollm_store::{cut, plain_path};
use serde_json::Value;

use crate::app::App;
use crate::app_context::AppContext;
use crate::error::AppError;
use crate::trace::{self, HookRun, Record};

/// The hooks that recorded events are passed through.
pub struct Replay {
    app: App,
    /// The hooks that are not run, and why.
    pub left_out: BTreeMap<String, &'static str>,
}

/// What came of one recorded event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// All as it was.
    Same,
    /// These things would be different.
    Different(Vec<Difference>),
    /// It could not be replayed, and why.
    Not(String),
}

/// One thing that would be different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The hook; none for what all hooks decided together.
    pub hook: Option<String>,
    /// What came of it then.
    pub before: String,
    /// What comes of it now.
    pub now: String,
}

/// Longer parts of an answer are cut where a difference is shown.
const LONGEST_SHOWN: usize = 300;

impl Replay {
    /// The hooks there are now, or in place of those in files the hooks of this file or folder.
    pub fn new(context: &AppContext, hooks: Option<&Path>) -> Result<Replay, AppError> {
        let mut app = App::load(context)?;
        if let Some(path) = hooks {
            put_in_place(&mut app, &plain_path(&context.cwd.join(path)))?;
        }
        let mut replay = Replay { app, left_out: BTreeMap::new() };
        replay.keep_harmless();
        replay.app.engine.only_read();
        Ok(replay)
    }

    /// Unregisters what cannot run in a box, and lifts the limits of all others: they were used up then.
    fn keep_harmless(&mut self) {
        let hooks = self.app.hooks();
        let registry = &mut self.app.engine.registry;
        registry.clear();
        for hook in hooks {
            let why = match hook.spec.action.needs() {
                Needs::Address(_) => Some("it asks another server"),
                Needs::Tool { .. } => Some("it calls a tool of a server"),
                _ if hook.events.iter().any(|kind| hook.detached(*kind)) => Some("nobody waits for it"),
                _ if !hook.spec.requires.services.is_empty() => Some("it requires a service"),
                Needs::Nothing | Needs::Program { .. } | Needs::Shell(_) => None,
            };
            if let Some(why) = why {
                self.left_out.insert(hook.id().to_owned(), why);
                continue;
            }
            let spec = HookSpec { rate_limit: RateLimit::default(), ..hook.spec.clone() };
            // The registry was empty, and ids are unique.
            let _ = registry.register(Hook { spec, ..Hook::clone(&hook) });
        }
        self.app.engine.rates.global = RateLimit::default();
    }

    /// Passes a recorded event through the hooks, and compares.
    pub fn replay(&self, record: &Record) -> Replayed {
        match self.event(record) {
            Ok(event) => {
                let outcome = self.dispatch(&event);
                match self.compare(record, &outcome) {
                    Replayed::Same => self.compare_answers(record, &event, &outcome),
                    other => other,
                }
            }
            Err(why) => Replayed::Not(why),
        }
    }

    fn dispatch(&self, event: &Event) -> Outcome {
        let hold = self.app.engine.children().hold_signals();
        let outcome = self.app.dispatch(event);
        self.app.engine.children().kill_adopted();
        drop(hold);
        outcome
    }

    /// Compares all that hooks say where they decide the same. What differs from run to run says nothing about hooks.
    fn compare_answers(&self, record: &Record, event: &Event, outcome: &Outcome) -> Replayed {
        // The words of hooks that are not run are missing now.
        if record.runs().any(|run| self.left_out.contains_key(run.id)) {
            return Replayed::Same;
        }
        let Some(now) = self.recorded(event, outcome) else { return Replayed::Same };
        let differs = different_parts(record, &now);
        if differs.is_empty() {
            return Replayed::Same;
        }
        let Some(again) = self.recorded(event, &self.dispatch(event)) else { return Replayed::Same };
        let unsteady = different_parts(&now, &again);
        let said = |part: &str, value: Option<&Value>| match value {
            Some(value) => format!("{part} {}", cut(&value.to_string(), LONGEST_SHOWN)),
            None => format!("{part} nothing"),
        };
        let difference = |part: &&str| Difference {
            hook: None,
            before: said(part, record.answer(part)),
            now: said(part, now.answer(part)),
        };
        let differences: Vec<Difference> = differs.difference(&unsteady).map(difference).collect();
        if differences.is_empty() { Replayed::Same } else { Replayed::Different(differences) }
    }

    /// The record of what came now, cut and without secrets like the one then.
    fn recorded(&self, event: &Event, outcome: &Outcome) -> Option<Record> {
        Record::of_line(trace::line(&self.app, event, outcome, Payload::Whole, None).as_bytes())
    }

    fn event(&self, record: &Record) -> Result<Event, String> {
        if record.value.get("answeredBy").is_some() {
            return Err("another record of the same call has the answer".to_owned());
        }
        let context = self.app.context();
        let cwd = PathBuf::from(record.text("cwd"));
        let project = context.places.standing_in(&cwd).project;
        if project != context.places.project {
            let place = project.unwrap_or(cwd);
            return Err(format!("it happened in {}; replay it from there", place.display()));
        }
        let mut event = record.event()?;
        // Hooks were told when it came, which the record says elsewhere.
        event.data.entry("timestamp").or_insert_with(|| record.text("time").into());
        Ok(event)
    }

    fn compare(&self, record: &Record, outcome: &Outcome) -> Replayed {
        let before: BTreeMap<&str, HookRun<'_>> = record.runs().map(|run| (run.id, run)).collect();
        let known = |report: &Report| self.same_hook(report, &before);
        let failed = |report: &&Report| matches!(report.status, Status::Failed | Status::Timeout);
        let only_here = |report: &&Report| known(report).is_none_or(|run| run.status != report.status.name());
        // A failure in the box says nothing about the event: the hook may have wanted to write.
        if let Some(report) = outcome.reports.iter().filter(failed).find(only_here) {
            let error = report.error.as_deref().unwrap_or_default();
            return Replayed::Not(format!("`{}` failed in the box: {error}", report.hook.id()));
        }
        let mut differences: Vec<Difference> = outcome
            .reports
            .iter()
            .filter_map(|report| difference(report.hook.id(), known(report), Some(report), outcome))
            .collect();
        let again =
            |run: &HookRun<'_>| outcome.reports.iter().any(|report| known(report).is_some_and(|now| now.id == run.id));
        let gone = before.values().filter(|run| !again(run) && !self.left_out.contains_key(run.id));
        differences.extend(gone.filter_map(|run| difference(run.id, Some(run), None, outcome)));
        differences.extend(self.decided_otherwise(record, &before, outcome));
        if differences.is_empty() { Replayed::Same } else { Replayed::Different(differences) }
    }

    /// What came of the same hook then: by its id, or by its name where it is declared somewhere else now.
    fn same_hook<'b, 'r>(&self, report: &Report, before: &'b BTreeMap<&str, HookRun<'r>>) -> Option<&'b HookRun<'r>> {
        let is_gone = |run: &&HookRun<'_>| !self.app.engine.registry.has(run.id);
        let named = || before.values().filter(is_gone).find(|run| run.name == report.hook.spec.name);
        before.get(report.hook.id()).or_else(named)
    }

    /// How the decision differs, with the part of those that are not run as it was.
    fn decided_otherwise(
        &self,
        record: &Record,
        before: &BTreeMap<&str, HookRun<'_>>,
        outcome: &Outcome,
    ) -> Option<Difference> {
        let left_out = before.values().filter(|run| self.left_out.contains_key(run.id));
        let now = left_out.filter_map(|run| Flow::from_name(run.flow)).fold(outcome.verdict.flow, Flow::max);
        let was = record.verdict("flow").as_str().unwrap_or_default();
        let changed = |changes: bool| if changes { ", other arguments" } else { "" };
        let args_then = record.verdict("modifiedArgs") == true;
        let (before, now) = (
            format!("{was}{}", changed(args_then)),
            format!("{}{}", now.name(), changed(outcome.modified_args.is_some())),
        );
        (before != now).then_some(Difference { hook: None, before, now })
    }
}

/// The parts of two answers that are not the same; of records without whole answers only the reason is known.
fn different_parts<'r>(one: &'r Record, other: &'r Record) -> BTreeSet<&'r str> {
    let parts = |record: &'r Record| record.value.get("answer").and_then(Value::as_object);
    let (Some(first), Some(second)) = (parts(one), parts(other)) else {
        return BTreeSet::from_iter((one.verdict("reason") != other.verdict("reason")).then_some("reason"));
    };
    let names = first.keys().chain(second.keys()).map(String::as_str);
    names.filter(|part| first.get(*part) != second.get(*part)).collect()
}

/// How one hook differs, if it does.
fn difference(id: &str, before: Option<&HookRun<'_>>, now: Option<&Report>, outcome: &Outcome) -> Option<Difference> {
    let skipped = || outcome.skipped.iter().find(|skip| skip.hook.id() == id);
    let now = match now {
        Some(report) => format!("{}, {}", report.status.name(), report.verdict.flow.name()),
        None => skipped().map_or_else(|| "not there".to_owned(), |skip| format!("skipped: {}", skip.reason.name())),
    };
    let before = before.map_or_else(|| "did not run".to_owned(), |run| format!("{}, {}", run.status, run.flow));
    (before != now).then(|| Difference { hook: Some(id.to_owned()), before, now })
}

/// Puts the hooks of a file or folder in place of all that stand in files; what is built in, required by the policy or came
/// with an extension stays.
fn put_in_place(app: &mut App, path: &Path) -> Result<(), AppError> {
    let (hooks, problems) = ollm_catalog::load_named(path, app.rules.clone());
    if let Some(problem) = problems.iter().find(|problem| problem.severity != Severity::Warning) {
        return Err(AppError::from(problem));
    }
    let stays = |hook: &&Arc<Hook>| {
        matches!(hook.spec.source, Source::Builtin | Source::Policy) || hook.spec.extension.is_some()
    };
    let kept: Vec<Hook> = app.hooks().iter().filter(stays).map(|hook| Hook::clone(hook)).collect();
    app.engine.registry.clear();
    for hook in kept.into_iter().chain(hooks) {
        if let Err(duplicate) = app.engine.registry.register(hook) {
            return Err(AppError::new(Code::Duplicate, format!("{}: {duplicate}", path.display())));
        }
    }
    Ok(())
}
