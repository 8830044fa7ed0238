//! Watching on its own: every change goes through the hooks until somebody ends it.

use std::time::{Duration, SystemTime};

use ollm_agent::{Cancel, Decision, Events as _};
use ollm_engine::Outcome;
use ollm_protocol::units::iso;
use ollm_protocol::{Event, EventKind, FileChange, Source, Verdict};

use super::{HookRun, ProjectWatch, WatchRole};
use crate::app::App;
use crate::error::AppError;
use crate::live_app::LiveApp;
use crate::port::{Notices, Shared};
use crate::reload::ReloadWatcher;
use crate::session::{HookContext, Hooks};

/// How often a signal or another program that watches is looked for.
const PAUSE: Duration = Duration::from_millis(50);

/// The events of files.
pub const FILE_EVENTS: [EventKind; 3] = [EventKind::FileCreated, EventKind::FileEdited, EventKind::FileDeleted];

/// Hears what a watcher does.
pub trait WatchListener {
    /// It began, stopped or went on telling hooks.
    fn standing(&mut self, watch: &ProjectWatch);

    /// Hooks were told of a change.
    fn changed(&mut self, change: &FileChange, decision: &Decision, outcome: &Outcome);
}

/// Tells hooks of every change in the project, until `cancel` is set or the project is gone.
pub fn watch_project(
    app: App,
    listener: &mut dyn WatchListener,
    notices: &Shared<dyn Notices + '_>,
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
        hooks.late_failures().iter().for_each(|late| hook_context.notices.lock().tell_failure(&late.failure.message));
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
            watch.told(&HookRun::of(&outcome), from);
            listener.changed(&change, &decision, &outcome);
            watch.look()?;
            next = watch.next_change();
        }
        reload.rest();
    }
    Ok(())
}

/// Tells hooks of a change; where none listens there is nothing to do.
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
    event.data.insert("cwd".to_owned(), watch.files().root().display().to_string().into());
    event.data.insert("timestamp".to_owned(), iso(SystemTime::now()).into());
    hooks.decide(&event)
}

/// Whether a hook waits for one of these events.
pub fn has_listener(app: &App, kinds: &[EventKind]) -> bool {
    let hooks = kinds.iter().flat_map(|kind| app.engine.registry.candidates(*kind, None));
    hooks.into_iter().any(|hook| hook.spec.source != Source::Builtin)
}
