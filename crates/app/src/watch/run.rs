//! Watches without a chat: passes every change through the hooks until the watch ends.

use std::path::Path;
use std::time::{Duration, SystemTime};

use ollm_agent::{Cancel, Decision, Events as _, Failure, LateFailure};
use ollm_engine::Outcome;
use ollm_protocol::units::iso;
use ollm_protocol::{Event, EventKind, FileChange, Source, Verdict};

use super::{HookRun, ProjectWatch, WatchRole};
use crate::app::App;
use crate::dispatch::failure_events;
use crate::error::AppError;
use crate::live_app::LiveApp;
use crate::port::{Notices, SharedPort};
use crate::reload::ReloadWatcher;
use crate::session::{HookContext, Hooks};

/// How often to check for a signal or for another watching program.
const PAUSE: Duration = Duration::from_millis(50);

/// The events of files.
pub const FILE_EVENTS: [EventKind; 3] = [EventKind::FileCreated, EventKind::FileEdited, EventKind::FileDeleted];

/// Receives the actions of a watcher.
pub trait WatchListener: Send {
    /// It began, stopped or resumed telling hooks.
    fn standing(&mut self, watch: &ProjectWatch);

    /// Hooks were told of a change.
    fn changed(&mut self, change: &FileChange, decision: &Decision, outcome: &Outcome);
}

/// Tells hooks of every change in the project, until `cancel` is set or the project is gone.
pub fn watch_project(
    app: App,
    listener: &mut dyn WatchListener,
    notices: &SharedPort<dyn Notices + '_>,
    cancel: &Cancel,
) -> Result<(), AppError> {
    let context = app.context().clone();
    let mut watch = ProjectWatch::open(&app, WatchRole::Watch)?;
    while watch.read_ahead(PAUSE) && !cancel.is_set() {}
    let app = LiveApp::new(app);
    let mut reload = ReloadWatcher::new(&app.read(), &context);
    let hook_context = HookContext { app: &app, notices };
    let mut hooks = Hooks::new(hook_context, cancel.clone(), Box::new(|_, _, _| {}));
    let ended = serve(&mut watch, &mut reload, &mut hooks, hook_context, listener, cancel);
    drop(hooks);
    app.into_inner().close(&mut *notices.lock());
    ended
}

fn serve(
    watch: &mut ProjectWatch,
    reload: &mut ReloadWatcher,
    hooks: &mut Hooks<'_, '_>,
    hook_context: HookContext<'_, '_>,
    listener: &mut dyn WatchListener,
    cancel: &Cancel,
) -> Result<(), AppError> {
    let mut was_teller = None;
    while !cancel.is_set() {
        let has_changes = watch.look()?;
        watch.take_notices().iter().for_each(|notice| hook_context.notices.lock().tell(notice));
        for LateFailure { at, failure, is_told } in hooks.late_failures() {
            hook_context.notices.lock().tell_failure(&failure.message);
            if !is_told {
                tell_failure(&ours(watch), at, &failure, hooks, hook_context);
            }
        }
        if was_teller.replace(watch.is_teller()) != Some(watch.is_teller()) {
            listener.standing(watch);
        }
        let Some(first) = has_changes.then(|| watch.next_change()).flatten() else {
            watch.wait(PAUSE);
            continue;
        };
        if let Some(news) = reload.begin(hook_context.app) {
            hook_context.notices.lock().tell(&news);
        }
        let mut next = Some(first);
        while let Some(change) = next.filter(|_| !cancel.is_set()) {
            let (from, (decision, outcome)) = (SystemTime::now(), tell(&change, watch, hooks, hook_context));
            let ran = HookRun::of(&outcome, watch.files().root(), Path::new(&change.path));
            watch.told(&ran, from);
            listener.changed(&change, &decision, &outcome);
            for failure in &decision.failures {
                tell_failure(&ours(watch), outcome.event, failure, hooks, hook_context);
            }
            watch.look()?;
            next = watch.next_change();
        }
        reload.rest();
    }
    Ok(())
}

/// Tells hooks of a change; if no hook listens there is nothing to do.
fn tell(
    change: &FileChange,
    watch: &ProjectWatch,
    hooks: &mut Hooks<'_, '_>,
    hook_context: HookContext<'_, '_>,
) -> (Decision, Outcome) {
    if !has_listener(&hook_context.app.read(), &[change.kind]) {
        return (Decision::default(), Outcome::of(change.kind, Verdict::default()));
    }
    let mut event = Event::unchecked(change.kind, change.clone().fields());
    event.data.extend(ours(watch).data);
    event.data.insert("timestamp".to_owned(), iso(SystemTime::now()).into());
    hooks.decide(&event)
}

/// The fields that all our events have.
fn ours(watch: &ProjectWatch) -> Event {
    let cwd = watch.files().root().display().to_string();
    Event::unchecked(EventKind::Custom, [("cwd", cwd.into())])
}

/// Tells the hooks for failures about a hook that failed at an event of this kind.
fn tell_failure(
    common: &Event,
    at: EventKind,
    failure: &Failure,
    hooks: &mut Hooks<'_, '_>,
    hook_context: HookContext<'_, '_>,
) {
    for event in failure_events(common, at, Some(failure.message.clone()), failure.stack.as_deref()) {
        let hears = has_listener(&hook_context.app.read(), &[event.kind]);
        let failures = if hears { hooks.decide(&event).0.failures } else { Vec::new() };
        for failure in failures {
            hook_context.notices.lock().tell_failure(&failure.message);
        }
    }
}

/// Whether a hook waits for one of these events.
pub fn has_listener(app: &App, kinds: &[EventKind]) -> bool {
    let hooks = kinds.iter().flat_map(|kind| app.engine.registry.candidates(*kind, None));
    hooks.into_iter().any(|hook| hook.spec.source != Source::Builtin)
}
