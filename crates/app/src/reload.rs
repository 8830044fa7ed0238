//! Reloads the files of a conversation between its turns.
//!
//! It checks the files before each turn. So everything that was written before a person sends a line counts for that
//! line, on every file system. A reload is complete or does not happen. Between the person's lines a thread follows the
//! files, because servers that were switched off must not run on.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use ollm_catalog::{FileStamps, Severity, StampedPaths};

use crate::app::App;
use crate::app_context::AppContext;
use crate::file_follower::{FileFollower, FollowResult, stamped};
use crate::live_app::LiveApp;
use crate::servers::McpTools;
use crate::session;
use crate::wake_signal::WakeSignal;

mod news;

use news::LapsedApprovals;

/// Notices file changes for one conversation.
pub struct ReloadWatcher {
    seen: FileStamps,
    /// Approved extensions that have changed since, as far as the person was told.
    lapsed: LapsedApprovals,
    /// A nearer project that is not in force and that the person was told of.
    passed: Option<PathBuf>,
    shared: Arc<ReloadShared>,
    /// Wakes and ends the thread. Without the thread, servers end only with the next line.
    wake: Option<WakeSignal>,
    thread: Option<JoinHandle<()>>,
}

/// The data that the conversation and its thread share.
struct ReloadShared {
    context: Mutex<AppContext>,
    mcp_tools: Option<Arc<McpTools>>,
    state: Mutex<ReloadState>,
}

#[derive(Default)]
struct ReloadState {
    /// Whether a turn is running, during which nothing may change.
    busy: bool,
    /// Changes that were not told yet.
    untold: Vec<String>,
}

impl ReloadWatcher {
    /// Starts to notice changes.
    pub fn new(app: &App, context: &AppContext) -> ReloadWatcher {
        let (context, mcp_tools) = (Mutex::new(context.clone()), app.mcp_tools.clone());
        let shared = Arc::new(ReloadShared { context, mcp_tools, state: Mutex::default() });
        let wake = WakeSignal::new().ok();
        let thread = wake.clone().and_then(|wake| {
            let idle = Arc::clone(&shared);
            thread::Builder::new().name("reload-watcher".to_owned()).spawn(move || idle.watch(&wake)).ok()
        });
        let (seen, lapsed) = (shared.look(&app.directories, &app.files_in_place()).0, news::lapsed(app));
        ReloadWatcher { seen, lapsed, passed: None, shared, wake, thread }
    }

    /// Applies all changes, then allows none until [`ReloadWatcher::rest`]. Returns one line about what changed.
    pub fn begin(&mut self, app: &LiveApp) -> Option<String> {
        let now = self.look(app);
        let changed = std::mem::replace(&mut self.seen, now) != now;
        self.take_in(app, changed)
    }

    /// Reloads everything, whether or not a change was noticed.
    pub fn reload(&mut self, app: &LiveApp) -> Option<String> {
        self.seen = self.look(app);
        // A requested reload reports everything.
        self.lapsed.clear();
        app.write().forget_kept();
        self.take_in(app, true)
    }

    /// The surroundings of the conversation.
    pub fn context(&self) -> AppContext {
        self.shared.context()
    }

    /// Ends the turn, or the time before the first turn.
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

    /// A nearer project that is not in force is reported once.
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

/// The nearest project now, if it is not the one in force.
fn newer_project(context: &AppContext) -> Option<PathBuf> {
    let AppContext { cwd, places, .. } = context;
    places.standing_in(cwd).project.filter(|found| places.project.as_ref() != Some(found))
}

/// Whether another project may replace the present one. It may not while the present one declares anything. Otherwise,
/// a program that can write a folder could get rid of the project's hooks.
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

impl ReloadShared {
    fn state(&self) -> MutexGuard<'_, ReloadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn context(&self) -> AppContext {
        self.context.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The surroundings for the next reload: a project may have appeared.
    fn world_now(&self) -> AppContext {
        let context = self.context();
        let found = newer_project(&context).filter(|_| may_move(&context));
        found.and_then(|project| context.in_project(&project)).unwrap_or(context)
    }

    fn look(&self, directories: &[PathBuf], in_place: &[PathBuf]) -> (FileStamps, StampedPaths) {
        stamped(&self.world_now(), directories, in_place)
    }

    /// Reloads everything completely or not at all; returns what changed.
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

    /// Uses these surroundings from now on, and reports a project that appeared.
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

    /// Runs the thread.
    fn watch(&self, wake: &WakeSignal) {
        let Some(mcp_tools) = &self.mcp_tools else { return };
        let mut follower = FileFollower::new(Box::new(|| {
            let (stamps, mut paths) = self.look(&mcp_tools.directories(), &[]);
            // A project may appear here.
            paths.roots.insert(self.context().cwd.join(".ollm"));
            (stamps, paths)
        }));
        let mut has_changed = false;
        loop {
            match follower.wait(wake) {
                FollowResult::Changed => has_changed = true,
                FollowResult::Woken => {}
                FollowResult::Ended => return,
            }
            let mut state = self.state();
            if has_changed && !state.busy {
                state.untold.extend(mcp_tools.reload());
                has_changed = false;
            }
        }
    }
}

/// New problems with the configuration. A project's configuration can only make rules stricter, so losing it makes
/// everything looser.
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
