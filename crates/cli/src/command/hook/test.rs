//! `ollm hook test`: one hook and one event, with everything that passed between them; or golden cases.

use std::sync::Arc;

use ollm_app::{App, World};
use ollm_catalog::Positions;
use ollm_engine::bus::Filter;
use ollm_engine::{Outcome, Reason, Skip, Status};
use ollm_protocol::dialect::{OLLM, event_named};
use ollm_protocol::matcher::Pattern;
use ollm_protocol::{Event, EventKind, Hook, HookSpec, Matcher};
use serde_json::{Value, json};

use crate::arguments::hook::TestArguments;
use crate::error::{FINDING, Failure, Kind, OK};
use crate::output::Output;

mod exchange;
mod golden;
mod watch;

pub(super) fn run(arguments: &TestArguments, world: &World, output: &mut Output) -> Result<u8, Failure> {
    if arguments.watch { watch::run(arguments, world, output) } else { once(arguments, world, output) }
}

/// Runs the golden cases of the hooks that `choose` picks.
pub(crate) fn cases(
    world: &World,
    choose: impl FnOnce(&App) -> Result<Vec<Arc<Hook>>, Failure>,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let mut stage = Stage::new(world)?;
    let hooks = choose(&stage.app)?;
    golden::run(&mut stage, &hooks, as_json, output)
}

fn once(arguments: &TestArguments, world: &World, output: &mut Output) -> Result<u8, Failure> {
    let mut stage = Stage::new(world)?;
    world.tell_notices(output);
    let hooks = chosen(&stage.app, arguments)?;
    match hooks.as_slice() {
        [hook] if !arguments.all => {
            let event = event(hook, arguments)?;
            let outcome = stage.rehearse(hook, &event)?;
            exchange::show(hook, &event, &outcome, arguments.json, output)?;
            let failed = outcome.reports.iter().any(|report| matches!(report.status, Status::Failed | Status::Timeout));
            Ok(if failed { FINDING } else { OK })
        }
        hooks => golden::run(&mut stage, hooks, arguments.json, output),
    }
}

/// The hooks that were asked for.
fn chosen(app: &App, arguments: &TestArguments) -> Result<Vec<Arc<Hook>>, Failure> {
    match &arguments.id {
        Some(id) => Ok(vec![app.hook(id)?]),
        None => Ok(app.hooks()),
    }
}

/// The engine, with one hook at a time.
struct Stage {
    app: App,
}

impl Stage {
    fn new(world: &World) -> Result<Stage, Failure> {
        let app = App::load(world, Positions::OnDemand)?;
        // What hooks say is kept only while somebody listens.
        app.engine.bus.subscribe(Filter::all(), 0, |_| ());
        Ok(Stage { app })
    }

    /// Passes an event through one hook alone, by all the rules that hold for it; also a hook that is switched off.
    fn rehearse(&mut self, hook: &Hook, event: &Event) -> Result<Outcome, Failure> {
        let engine = &mut self.app.engine;
        engine.registry.clear();
        engine.switched_off = None;
        let spec = HookSpec { enabled: true, ..hook.spec.clone() };
        // The registry is empty, so the id is free.
        let _ = engine.registry.register(Hook { spec, off: None, ..hook.clone() });
        let hold = engine.children().hold_signals();
        let mut outcome = engine.dispatch_explained(event);
        engine.children().kill_adopted();
        drop(hold);
        engine.trust.remember();
        outcome.skipped.extend(unfit(hook, event));
        match outcome.skipped.first().filter(|skip| skip.reason.needs_approval()) {
            Some(skip) => {
                let message = format!("hook `{}` did not run: {}", skip.hook.spec.name, skip.detail);
                Err(Failure::new(Kind::Untrusted, message))
            }
            None => Ok(outcome),
        }
    }
}

/// Why a hook does not run for an event it is not for; the engine does not even look at it.
fn unfit(hook: &Hook, event: &Event) -> Option<Skip> {
    let events: Vec<&str> = hook.events.iter().map(|kind| kind.name()).collect();
    let detail = format!("it is for {}, not for {}", events.join(", "), event.kind.name());
    let skip = || Skip { hook: Arc::new(hook.clone()), reason: Reason::Matcher, detail };
    (!hook.events.contains(&event.kind)).then(skip)
}

/// The event to try a hook on: one it is for, with what the person wants different.
fn event(hook: &Hook, arguments: &TestArguments) -> Result<Event, Failure> {
    let data: Value = serde_json::from_str(arguments.data.as_deref().unwrap_or("{}"))
        .map_err(|error| Failure::new(Kind::Configuration, format!("--data is not valid JSON: {error}")))?;
    let mut event = match &arguments.event {
        Some(name) => named(name)?,
        None => sample(hook),
    };
    event.data.extend(Event::from_loose(event.kind, data).data);
    Ok(event)
}

/// A sample of an event by its name; that of a custom event carries its own.
fn named(name: &str) -> Result<Event, Failure> {
    event_named(name)?;
    let request = OLLM.read_event(json!({"event": name, "data": {}}).to_string().as_bytes());
    let named = request.map_err(|error| Failure::new(Kind::Configuration, error.to_string()))?.event;
    let mut event = Event::sample(named.kind);
    event.data.extend(named.data);
    Ok(event)
}

/// A sample of the hook's first event, about something its matcher and its file patterns fit.
fn sample(hook: &Hook) -> Event {
    let kind = hook.events.first().copied().unwrap_or(EventKind::Custom);
    let mut event = Event::sample(kind);
    if let (Some(field), Some(subject)) = (kind.subject_field(), fitting(&hook.matcher)) {
        event.data.insert(field.to_owned(), subject.into());
    }
    if !event.paths().iter().any(|path| hook.patterns.matches(path))
        && let Some(path) = hook.patterns.example()
    {
        put_file(&mut event, &path);
    }
    event
}

/// Makes an event about this file, in the field where its kind has one.
fn put_file(event: &mut Event, path: &str) {
    if let Some(files) = event.data.get_mut("files") {
        *files = json!([path]);
    } else if event.data.contains_key("path") {
        event.data.insert("path".to_owned(), path.into());
        if let Some(file) = event.data.get_mut("file").and_then(Value::as_object_mut) {
            file.insert("path".to_owned(), path.into());
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
