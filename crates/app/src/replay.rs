//! Passes recorded events through hooks once more, and reports what would be different.
//!
//! A replay changes nothing: the programs of hooks run in a read-only box without a network. Background hooks do not
//! run, and neither do hooks that need another server, its tool or a service. Their recorded part in the verdict stays.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_catalog::Severity;
use ollm_engine::trace::Payload;
use ollm_engine::{LimitNow, Outcome, Reason, Report, Status, is_used_up};
use ollm_process::{BoxAccess, WatchedAccess};
use ollm_protocol::hook::Needs;
use ollm_protocol::{Code, Event, Flow, Hook, Source};
use ollm_store::{cut, plain_path};
use serde_json::Value;

use crate::app::App;
use crate::app_context::AppContext;
use crate::error::AppError;
use crate::trace::{self, HookRun, Record, at};

/// The hooks that recorded events are passed through.
pub struct Replay {
    /// In the folder of the event that was replayed last.
    app: App,
    /// The file or folder whose hooks are passed through instead.
    named: Option<PathBuf>,
    /// The hooks that are not run, and why.
    pub left_out: BTreeMap<String, &'static str>,
}

/// The result for one recorded event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayResult {
    /// Nothing would be different.
    Same,
    /// These things would be different.
    Different(Vec<Difference>),
    /// The event could not be replayed, for this reason.
    Not(String),
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The hook; `None` for the joint decision of all hooks.
    pub hook: Option<String>,
    /// The recorded result.
    pub before: String,
    /// The present result.
    pub now: String,
}

/// Longer parts of an answer are cut in a shown difference.
const LONGEST_SHOWN: usize = 300;

impl Replay {
    /// Loads the present hooks. With a file or folder, its hooks replace those in files.
    pub fn new(context: &AppContext, hooks: Option<&Path>) -> Result<Replay, AppError> {
        let named = hooks.map(|path| plain_path(&context.cwd.join(path)));
        let app = loaded(context, named.as_deref())?;
        let mut replay = Replay { app, named, left_out: BTreeMap::new() };
        replay.keep_harmless();
        Ok(replay)
    }

    /// Unregisters the hooks that cannot run in a box.
    fn keep_harmless(&mut self) {
        let hooks = self.app.hooks();
        let registry = &mut self.app.engine.registry;
        registry.clear();
        for hook in hooks {
            let why = match hook.spec.action.needs() {
                Needs::Address(_) => Some("it asks another server"),
                Needs::Tool { .. } => Some("it calls a tool of a server"),
                _ if hook.events.iter().any(|kind| hook.detached(*kind)) => Some("it is async"),
                _ if !hook.spec.requires.services.is_empty() => Some("it requires a service"),
                Needs::Nothing | Needs::Program { .. } | Needs::Shell(_) => None,
            };
            if let Some(why) = why {
                self.left_out.insert(hook.id().to_owned(), why);
                continue;
            }
            // The registry was empty, and ids are unique.
            let _ = registry.register(Hook::clone(&hook));
        }
    }

    /// Passes a recorded event through the hooks, and compares the results.
    pub fn replay(&mut self, record: &Record) -> ReplayResult {
        let found = recorded_event(record);
        let event = match found.and_then(|event| self.work_in(Path::new(record.text("cwd"))).map(|()| event)) {
            Ok(event) => event,
            Err(why) => return ReplayResult::Not(why),
        };
        let mut used_up = self.used_up(record);
        let now = |id: &str, why: &str| {
            let hook = self.app.engine.registry.get(id);
            hook.map_or(LimitNow::Same, |hook| self.app.engine.rates.limit_now(hook, why))
        };
        if let Some((id, _)) = used_up.iter().find(|(id, why)| now(id, why) == LimitNow::Changed) {
            return ReplayResult::Not(format!("a limit of `{id}` was used up then, and is another one now"));
        }
        used_up.retain(|id, why| now(id, why) == LimitNow::Same);
        self.app.engine.rates.replay(used_up);
        let outcome = self.dispatch(&event);
        let result = match self.compare(record, &outcome) {
            ReplayResult::Same => self.compare_answers(record, &event, &outcome),
            other => other,
        };
        let redacted = || "secrets were taken out of its data, by which hooks may have decided".to_owned();
        let hindered = || outcome.reports.iter().find_map(hindered);
        match (&result, record.is_redacted().then(redacted).or_else(hindered)) {
            (ReplayResult::Different(_), Some(why)) => ReplayResult::Not(why),
            _ => result,
        }
    }

    /// Goes to the folder of an event: hooks run there, and conditions, patterns and guards know it.
    fn work_in(&mut self, cwd: &Path) -> Result<(), String> {
        let context = self.app.context();
        let project = context.places.standing_in(cwd).project;
        if project != context.places.project {
            let place = project.as_deref().unwrap_or(cwd);
            return Err(format!("it happened in {}; replay it from there", place.display()));
        }
        if !cwd.is_dir() {
            return Err(format!("its folder {} is not there any more", cwd.display()));
        }
        if context.cwd != cwd {
            let mut context = context.clone();
            cwd.clone_into(&mut context.cwd);
            self.app = loaded(&context, self.named.as_deref()).map_err(|error| error.message)?;
            self.keep_harmless();
        }
        Ok(())
    }

    /// The hooks whose limits were used up then, by id, and the particulars: no run is counted in a replay.
    fn used_up(&self, record: &Record) -> BTreeMap<String, String> {
        let text = |skip: &Value, field: &str| at(skip, field).as_str().unwrap_or_default().to_owned();
        let limited = record.list("skipped").iter();
        let limited = limited.filter(|skip| at(skip, "reason") == Reason::RateLimited.name());
        let skipped = limited.map(|skip| (text(skip, "id"), text(skip, "detail")));
        let failed = record.runs().filter_map(|run| Some((run.id.to_owned(), run.error?.to_owned())));
        let gates = failed.filter(|(_, error)| is_used_up(error));
        skipped
            .chain(gates)
            .flat_map(|(id, why)| self.ids_now(&id).into_iter().map(move |id| (id, why.clone())))
            .collect()
    }

    /// The present ids of a hook: its own or, if it is now declared elsewhere, those of hooks with its name.
    fn ids_now(&self, id: &str) -> Vec<String> {
        if self.app.engine.registry.has(id) {
            return vec![id.to_owned()];
        }
        let last = |id: &str| id.rsplit(':').next().map(str::to_owned);
        let hooks = self.app.hooks();
        hooks.iter().map(|hook| hook.id()).filter(|now| last(now) == last(id)).map(str::to_owned).collect()
    }

    fn dispatch(&self, event: &Event) -> Outcome {
        let hold = self.app.engine.children().hold_signals();
        let outcome = self.app.dispatch(event);
        self.app.engine.children().kill_adopted();
        drop(hold);
        outcome
    }

    /// Compares everything that hooks say, if the decision is the same. Data that differs from run to run says nothing
    /// about hooks.
    fn compare_answers(&self, record: &Record, event: &Event, outcome: &Outcome) -> ReplayResult {
        // Hooks that are not run say nothing now.
        if record.runs().any(|run| self.left_out.contains_key(run.id)) {
            return ReplayResult::Same;
        }
        let Some(now) = self.recorded(event, outcome) else { return ReplayResult::Same };
        let differs = different_parts(record, &now);
        if differs.is_empty() {
            return ReplayResult::Same;
        }
        let Some(again) = self.recorded(event, &self.dispatch(event)) else { return ReplayResult::Same };
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
        if differences.is_empty() { ReplayResult::Same } else { ReplayResult::Different(differences) }
    }

    /// The record of the new outcome, cut and without secrets like the old record.
    fn recorded(&self, event: &Event, outcome: &Outcome) -> Option<Record> {
        Record::of_line(trace::line(&self.app, event, outcome, Payload::Whole, None).as_bytes())
    }

    fn compare(&self, record: &Record, outcome: &Outcome) -> ReplayResult {
        let before: BTreeMap<&str, HookRun<'_>> = record.runs().map(|run| (run.id, run)).collect();
        let known = |report: &Report| self.same_hook(report, &before);
        let failed = |report: &&Report| matches!(report.status, Status::Failed | Status::Timeout);
        let only_here = |report: &&Report| known(report).is_none_or(|run| run.status != report.status.name());
        // A failure in the box says nothing about the event, because the hook may have tried to write.
        if let Some(report) = outcome.reports.iter().filter(failed).find(only_here) {
            let error = report.error.as_deref().unwrap_or_default();
            return ReplayResult::Not(format!("`{}` failed in the box: {error}", report.hook.id()));
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
        if differences.is_empty() { ReplayResult::Same } else { ReplayResult::Different(differences) }
    }

    /// The recorded run of the same hook: by its id or, if it is now declared elsewhere, by its name.
    fn same_hook<'b, 'r>(&self, report: &Report, before: &'b BTreeMap<&str, HookRun<'r>>) -> Option<&'b HookRun<'r>> {
        let is_gone = |run: &&HookRun<'_>| !self.app.engine.registry.has(run.id);
        let named = || before.values().filter(is_gone).find(|run| run.name == report.hook.spec.name);
        before.get(report.hook.id()).or_else(named)
    }

    /// The differences in the decision. Hooks that are not run keep their recorded part.
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

/// The event of a record.
fn recorded_event(record: &Record) -> Result<Event, String> {
    if record.value.get("answeredBy").is_some() {
        return Err("another record of the same call has the answer".to_owned());
    }
    let mut event = record.event()?;
    // Hooks were told when it came, which the record says elsewhere.
    event.data.entry("timestamp").or_insert_with(|| record.text("time").into());
    Ok(event)
}

/// What the box kept a hook from that ended well: what it would have said without that is not known.
fn hindered(report: &Report) -> Option<String> {
    // Programs also ask services for names of users and the like, and work without an answer.
    let is_needed = |seen: &&WatchedAccess| seen.refused && seen.access != BoxAccess::Service;
    let what = match &report.accesses.iter().find(is_needed)?.access {
        BoxAccess::Write { path, .. } => format!("write {}", path.display()),
        BoxAccess::Read(path) => format!("read {}", path.display()),
        BoxAccess::Connect(address) => format!("reach {address}"),
        BoxAccess::Network | BoxAccess::Service => "use the network".to_owned(),
    };
    Some(format!("`{}` wanted to {what}, which the box of a replay refuses", report.hook.id()))
}

/// The parts in which two answers differ. A record without whole answers has only the reason.
fn different_parts<'r>(one: &'r Record, other: &'r Record) -> BTreeSet<&'r str> {
    let parts = |record: &'r Record| record.value.get("answer").and_then(Value::as_object);
    let (Some(first), Some(second)) = (parts(one), parts(other)) else {
        return BTreeSet::from_iter((one.verdict("reason") != other.verdict("reason")).then_some("reason"));
    };
    let names = first.keys().chain(second.keys()).map(String::as_str);
    names.filter(|part| first.get(*part) != second.get(*part)).collect()
}

/// The difference of one hook, if there is one.
fn difference(id: &str, before: Option<&HookRun<'_>>, now: Option<&Report>, outcome: &Outcome) -> Option<Difference> {
    let skipped = || outcome.skipped.iter().find(|skip| skip.hook.id() == id);
    let now = match now {
        Some(report) => format!("{}, {}", report.status.name(), report.verdict.flow.name()),
        None => skipped().map_or_else(|| "not there".to_owned(), |skip| format!("skipped: {}", skip.reason.name())),
    };
    let before = before.map_or_else(|| "did not run".to_owned(), |run| format!("{}, {}", run.status, run.flow));
    (before != now).then(|| Difference { hook: Some(id.to_owned()), before, now })
}

/// An application whose hooks cannot do anything.
fn loaded(context: &AppContext, named: Option<&Path>) -> Result<App, AppError> {
    let mut app = App::load(context)?;
    if let Some(path) = named {
        put_in_place(&mut app, path)?;
    }
    app.engine.only_read();
    app.engine.watch_boxes();
    Ok(app)
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
