//! A conversation notices that files have changed, and reads them anew between its turns.
//!
//! It looks at the files themselves before each turn: what was written before a person sends a line counts for that line,
//! on every file system, and nothing is half taken in. While nobody says anything a thread follows them, so that the servers
//! of what was switched off do not run on.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use ollm_catalog::{FileStamps, Severity, StampedPaths};

use crate::app::App;
use crate::app_context::AppContext;
use crate::file_follower::{FileFollower, Followed, stamped};
use crate::live_app::LiveApp;
use crate::servers::McpTools;
use crate::session;
use crate::wake_signal::WakeSignal;

mod news;

use news::Lapsed;

/// Notices changes for one conversation.
pub struct ReloadWatcher {
    seen: FileStamps,
    /// What the person knows of approved extensions that are no longer what was approved.
    lapsed: Lapsed,
    /// A nearer project that the person knows of, although it does not count.
    passed: Option<PathBuf>,
    shared: Arc<Shared>,
    /// Wakes and ends the thread. Without them servers are ended with the next line only.
    wake: Option<WakeSignal>,
    thread: Option<JoinHandle<()>>,
}

/// What the conversation and the thread have in common.
struct Shared {
    context: Mutex<AppContext>,
    mcp_tools: Option<Arc<McpTools>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether a turn lasts, in which nothing may become different.
    busy: bool,
    /// What became different while nobody was there to be told.
    untold: Vec<String>,
}

impl ReloadWatcher {
    /// From now on, changes are noticed.
    pub fn new(app: &App, context: &AppContext) -> ReloadWatcher {
        let (context, mcp_tools) = (Mutex::new(context.clone()), app.mcp_tools.clone());
        let shared = Arc::new(Shared { context, mcp_tools, state: Mutex::default() });
        let wake = WakeSignal::new().ok();
        let thread = wake.clone().and_then(|wake| {
            let idle = Arc::clone(&shared);
            thread::Builder::new().name("reload-watcher".to_owned()).spawn(move || idle.watch(&wake)).ok()
        });
        let (seen, lapsed) = (shared.look(&app.directories, &app.files_in_place()).0, news::lapsed(app));
        ReloadWatcher { seen, lapsed, passed: None, shared, wake, thread }
    }

    /// Takes in what has changed, and holds it still until [`ReloadWatcher::rest`]; what became different, in one line.
    pub fn begin(&mut self, app: &LiveApp) -> Option<String> {
        let now = self.look(app);
        let changed = std::mem::replace(&mut self.seen, now) != now;
        self.take_in(app, changed)
    }

    /// Reads everything anew, whether or not a change was noticed.
    pub fn reload(&mut self, app: &LiveApp) -> Option<String> {
        self.seen = self.look(app);
        // Whoever asks is told everything.
        self.lapsed.clear();
        app.write().forget_kept();
        self.take_in(app, true)
    }

    /// The surroundings as the conversation knows them.
    pub fn context(&self) -> AppContext {
        self.shared.context()
    }

    /// The turn is over, or there was none yet.
    pub fn rest(&self) {
        self.shared.state().busy = false;
        self.wake.iter().for_each(WakeSignal::wake);
    }

    fn take_in(&mut self, app: &LiveApp, changed: bool) -> Option<String> {
        let mut news = Vec::new();
        let mut state = self.shared.state();
        state.busy = true;
        if changed {
            news.append(&mut self.shared.reload(app));
            let known = std::mem::replace(&mut self.lapsed, news::lapsed(&app.read()));
            news.extend(news::lapses(&known, &self.lapsed, &app.read()));
        }
        news.append(&mut state.untold);
        drop(state);
        news.extend(self.passed_by());
        (!news.is_empty()).then(|| news.join("; "))
    }

    fn look(&self, app: &LiveApp) -> FileStamps {
        let app = app.read();
        self.shared.look(&app.directories, &app.files_in_place()).0
    }

    /// A nearer project than the one that counts is told once.
    fn passed_by(&mut self) -> Option<String> {
        let context = self.shared.context();
        let found = newer_project(&context).filter(|_| self.shared.world_now().places == context.places)?;
        if self.passed.as_ref() == Some(&found) {
            return None;
        }
        let news = format!("{} is a project now, which counts when the chat is started anew", found.display());
        self.passed = Some(found);
        Some(news)
    }
}

/// The project there is now, where it is not the one that counts.
fn newer_project(context: &AppContext) -> Option<PathBuf> {
    let AppContext { cwd, places, .. } = context;
    places.standing_in(cwd).project.filter(|found| places.project.as_ref() != Some(found))
}

/// Whether another project may take the place of the one that counts. While that has anything to say it may not: whoever
/// can write a folder could get rid of its hooks.
fn may_move(context: &AppContext) -> bool {
    !context.places.project_speaks()
}

impl Drop for ReloadWatcher {
    fn drop(&mut self) {
        self.wake.iter().for_each(WakeSignal::end);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn context(&self) -> AppContext {
        self.context.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The surroundings that count from the next reading on: a project may have appeared.
    fn world_now(&self) -> AppContext {
        let context = self.context();
        let found = newer_project(&context).filter(|_| may_move(&context));
        found.and_then(|project| context.in_project(&project)).unwrap_or(context)
    }

    fn look(&self, directories: &[PathBuf], in_place: &[PathBuf]) -> (FileStamps, StampedPaths) {
        stamped(&self.world_now(), directories, in_place)
    }

    /// Reads everything anew, as a whole or not at all; what became different.
    fn reload(&self, app: &LiveApp) -> Vec<String> {
        let context = self.world_now();
        let fresh = match session::load_again(&context, &app.read()) {
            Ok(fresh) => fresh,
            Err(failure) => return vec![unchanged(&failure.message)],
        };
        if let Some(why) = wrong_configuration(&context, &app.read(), &fresh) {
            return vec![unchanged(&why)];
        }
        let mut news = self.enter(&context);
        news.extend(news::between(&app.read(), &fresh));
        app.write().renew(fresh);
        app.read().hold_kept();
        news.extend(self.mcp_tools.iter().flat_map(|mcp_tools| mcp_tools.reload()));
        news
    }

    /// Counts on these surroundings from now on, and tells of a project that appeared.
    fn enter(&self, context: &AppContext) -> Vec<String> {
        let before =
            std::mem::replace(&mut *self.context.lock().unwrap_or_else(PoisonError::into_inner), context.clone());
        if before.places == context.places {
            return Vec::new();
        }
        self.mcp_tools.iter().for_each(|mcp_tools| mcp_tools.enter(context));
        let project = context.places.project.iter();
        project.map(|project| format!("{} is a project now", project.display())).collect()
    }

    /// The life of the thread.
    fn watch(&self, wake: &WakeSignal) {
        let Some(mcp_tools) = &self.mcp_tools else { return };
        let mut follower = FileFollower::new(Box::new(|| {
            let (stamps, mut paths) = self.look(&mcp_tools.directories(), &[]);
            // Here a project may appear.
            paths.roots.insert(self.context().cwd.join(".ollm"));
            (stamps, paths)
        }));
        let mut has_changed = false;
        loop {
            match follower.wait(wake) {
                Followed::Changed => has_changed = true,
                Followed::Woken => {}
                Followed::Ended => return,
            }
            let mut state = self.state();
            if has_changed && !state.busy {
                state.untold.extend(mcp_tools.reload());
                has_changed = false;
            }
        }
    }
}

/// What is newly wrong with the configuration: what a project's says may only tighten, so without it all is looser.
fn wrong_configuration(context: &AppContext, before: &App, fresh: &App) -> Option<String> {
    let places = &context.places;
    let policy = places.policy.as_ref().map(|policy| policy.path.clone());
    let files: Vec<PathBuf> = places.project_config().into_iter().chain([places.config()]).chain(policy).collect();
    let wrong = fresh.problems.iter().filter(|problem| problem.severity <= Severity::Error);
    let mut wrong = wrong.filter(|problem| files.contains(&problem.file) && !before.problems.contains(problem));
    wrong.next().map(ToString::to_string)
}

fn unchanged(why: &str) -> String {
    format!("everything stays as it was: {why}")
}
