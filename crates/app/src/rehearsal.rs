//! Tries hooks out: one hook with one event, by all the rules that hold for it, and golden cases.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ollm_catalog::Extension;
use ollm_engine::bus::Filter;
use ollm_engine::{Outcome, Reason, Skip};
use ollm_protocol::dialect::OLLM;
use ollm_protocol::matcher::Pattern;
use ollm_protocol::{Code, DialectError, Event, EventKind, Hook, HookSpec, Matcher};
use serde_json::{Value, json};

use crate::app::App;
use crate::app_context::AppContext;
use crate::cases::{BrokenCase, Case, FoundCase};
use crate::command_box::BoxStatus;
use crate::complete::complete;
use crate::error::AppError;

/// An application that runs one hook at a time.
pub struct Rehearsal {
    /// Everything that was loaded.
    pub app: App,
    /// Says when to end the running hooks.
    stop: Box<dyn Fn() -> bool + Send + Sync>,
}

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaseResult {
    /// The id of the hook.
    pub hook: String,
    /// The name of the case.
    pub case: String,
    /// The differences from the expected answer, one line each; empty if the case passed.
    pub differences: Vec<String>,
}

impl Rehearsal {
    /// Loads everything; nothing runs yet.
    pub fn new(context: &AppContext) -> Result<Rehearsal, AppError> {
        let mut app = App::load(context)?;
        // A trial is no real run, and earlier runs say nothing about the hook.
        app.engine.rates.replay(BTreeMap::new());
        // The bus keeps what hooks say only while it has a listener.
        app.engine.bus.subscribe(Filter::all(), 0, |_| ());
        Ok(Rehearsal { app, stop: Box::new(|| false) })
    }

    /// Passes an event through one hook alone, in a box: its own, or the strictest if it has none. The report lists
    /// everything that its program opened and reached.
    pub fn rehearse_in_box(&mut self, hook: &Hook, event: &Event) -> Result<Outcome, AppError> {
        if !hook.runs_program() {
            let message = format!("hook `{}` runs no program of its own, so it has no box", hook.spec.name);
            return Err(AppError::new(Code::UnknownHook, message));
        }
        if let BoxStatus::Unavailable(reason) = BoxStatus::of_programs() {
            let message = format!("hook `{}` cannot be tried in a box: {reason}", hook.spec.name);
            return Err(AppError::new(Code::NoBox, message));
        }
        self.app.engine.watch_boxes();
        let permissions = Some(hook.permissions.clone().unwrap_or_default());
        self.rehearse(&Hook { permissions, ..hook.clone() }, event)
    }

    /// Ends running hooks from now on when `stop` says so.
    pub fn stop_when(&mut self, stop: impl Fn() -> bool + Send + Sync + 'static) {
        self.stop = Box::new(stop);
    }

    /// Passes an event through one hook alone, by all the rules that hold for it, even if the hook is switched off.
    pub fn rehearse(&mut self, hook: &Hook, event: &Event) -> Result<Outcome, AppError> {
        let event = &*complete(event, &self.app.config, self.app.context());
        let engine = &mut self.app.engine;
        engine.registry.clear();
        engine.switched_off = None;
        let spec = HookSpec { enabled: true, ..hook.spec.clone() };
        // The registry is empty, so the id is free.
        let _ = engine.registry.register(Hook { spec, off: None, ..hook.clone() });
        let hold = engine.children().hold_signals();
        let mut outcome = engine.dispatch_explained_until(event, &*self.stop);
        engine.children().kill_adopted();
        drop(hold);
        engine.trust.remember();
        outcome.skipped.extend(unfit(hook, event));
        match outcome.skipped.first().filter(|skip| skip.reason.needs_approval()) {
            Some(skip) => {
                let message = format!("hook `{}` did not run: {}", skip.hook.spec.name, skip.detail);
                Err(AppError::new(Code::NotApproved, message))
            }
            None => Ok(outcome),
        }
    }

    /// Runs one golden case of a hook.
    pub fn judge(&mut self, hook: &Hook, found: FoundCase) -> CaseResult {
        let as_shipped = found.as_ref().ok().map(|case| self.as_shipped(hook, case));
        self.judge_as(hook, found, as_shipped)
    }

    /// Like [`Rehearsal::judge`], for a hook of an extension that is not installed.
    pub fn judge_of(&mut self, extension: &Extension, hook: &Hook, found: FoundCase) -> CaseResult {
        let as_shipped = found.as_ref().ok().map(|case| with_settings(extension, hook, case));
        self.judge_as(hook, found, as_shipped)
    }

    fn judge_as(&mut self, hook: &Hook, found: FoundCase, as_shipped: Option<Result<Hook, String>>) -> CaseResult {
        let (case, differences) = match (found, as_shipped) {
            (Err(BrokenCase { name, problem }), _) => (name, vec![problem.sentence()]),
            (Ok(case), Some(Ok(hook))) => {
                let differences = self.differences(&hook, &case);
                (case.name, differences)
            }
            (Ok(case), Some(Err(why))) => (case.name, vec![why]),
            (Ok(case), None) => (case.name, Vec::new()),
        };
        CaseResult { hook: hook.id().to_owned(), case, differences }
    }

    fn differences(&mut self, hook: &Hook, case: &Case) -> Vec<String> {
        match self.rehearse(hook, &case.event) {
            Ok(outcome) => case.differences(&outcome),
            Err(failure) => vec![failure.message],
        }
    }

    /// The hook with the settings of the case, so that the case gives the same result everywhere and contains no secret
    /// of the person.
    fn as_shipped(&self, hook: &Hook, case: &Case) -> Result<Hook, String> {
        let Some(name) = &hook.spec.extension else {
            let why = "`settings` are those of an extension, and this hook came with none";
            return if case.settings.is_empty() { Ok(hook.clone()) } else { Err(why.to_owned()) };
        };
        let extension = self.app.extensions.get(name).ok_or_else(|| format!("there is no extension `{name}`"))?;
        with_settings(extension, hook, case)
    }
}

fn with_settings(extension: &Extension, hook: &Hook, case: &Case) -> Result<Hook, String> {
    Ok(Hook { settings: extension.sample_variables(&case.settings)?, ..hook.clone() })
}

/// A sample of an event by its name. A custom event's name gives the sample its own name.
pub fn sample_named(name: &str, folder: &Path) -> Result<Event, DialectError> {
    let request = OLLM.read_event(json!({"event": name, "data": {}}).to_string().as_bytes());
    let named = request?.event;
    let mut event = Event::sample_in(named.kind, &folder.to_string_lossy());
    event.data.extend(named.data);
    Ok(event)
}

/// A sample of the hook's first event, with data that fits its matcher and its file patterns.
pub fn sample(hook: &Hook, folder: &Path) -> Event {
    let kind = hook.events.first().copied().unwrap_or(EventKind::Custom);
    let mut event = Event::sample_in(kind, &folder.to_string_lossy());
    if let (Some(field), Some(subject)) = (kind.subject_field(), fitting(&hook.matcher)) {
        event.data.insert(field.to_owned(), subject.into());
    }
    let inside = |path: &str| {
        Path::new(path)
            .strip_prefix(folder)
            .is_ok_and(|path| path.to_str().is_some_and(|path| hook.patterns.matches(path)))
    };
    if !event.paths().iter().any(|path| hook.patterns.matches(path) || inside(path))
        && let Some(path) = hook.patterns.example()
    {
        put_file(&mut event, &path);
    }
    event
}

/// Puts this file into the event's file field, if its kind has one.
fn put_file(event: &mut Event, path: &str) {
    if let Some(files) = event.data.get_mut("files") {
        *files = json!([path]);
    } else if event.data.contains_key("path") {
        event.data.insert("path".to_owned(), path.into());
        if let Some(file) = event.data.get_mut("file").and_then(Value::as_object_mut) {
            file.insert("path".to_owned(), path.into());
            file.shift_remove("absolutePath");
        }
    } else if let Some(args) = event.data.get_mut("args").and_then(Value::as_object_mut) {
        args.insert("path".to_owned(), path.into());
    } else {
        event.data.insert("path".to_owned(), path.into());
    }
}

fn fitting(matcher: &Matcher) -> Option<String> {
    let Matcher::List(patterns) = matcher else { return None };
    patterns.iter().find_map(|pattern| match pattern {
        Pattern::Exact(name) => Some(name.clone()),
        Pattern::Prefix(start) => Some(format!("{start}sample")),
        Pattern::Builtin => None,
    })
}

/// The reason why a hook does not run for an event of another kind. The engine does not consider such hooks at all.
fn unfit(hook: &Hook, event: &Event) -> Option<Skip> {
    let events: Vec<&str> = hook.events.iter().map(|kind| kind.name()).collect();
    let detail = format!("it is for {}, not for {}", events.join(", "), event.kind.name());
    let skip = || Skip::new(&Arc::new(hook.clone()), Reason::Matcher, detail);
    (!hook.events.contains(&event.kind)).then(skip)
}
