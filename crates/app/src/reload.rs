//! A conversation notices that files have changed, and reads them anew between its turns.
//!
//! It looks at the files themselves before each turn: what was written before a person sends a line counts for that line,
//! on every file system, and nothing is half taken in. While nobody says anything a thread looks now and then, so that the
//! servers of what was switched off do not run on.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ollm_catalog::{FileStamps, Severity};

use crate::app::App;
use crate::app_context::AppContext;
use crate::live_app::LiveApp;
use crate::servers::{McpTools, reviewed_tools};
use crate::session;

mod news;

use news::Lapsed;

/// How often the files are looked at while nobody says anything.
const GLANCE: Duration = Duration::from_secs(1);

/// The files that an application was loaded from, as they were then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesSeen(FileStamps);

impl FilesSeen {
    /// The files as they are now.
    pub fn by(app: &App, context: &AppContext) -> FilesSeen {
        FilesSeen(stamps(context, &app.directories, &app.files_in_place()))
    }

    /// Whether they are others now, or hold something else.
    pub fn have_changed(self, app: &App, context: &AppContext) -> bool {
        FilesSeen::by(app, context) != self
    }
}

fn stamps(context: &AppContext, directories: &[PathBuf], in_place: &[PathBuf]) -> FileStamps {
    let mut files = vec![context.switches(), context.approvals(), context.places.secrets(), reviewed_tools(context)];
    files.extend_from_slice(in_place);
    FileStamps::take(&context.places, directories, &files)
}

/// Notices changes for one conversation.
pub struct ReloadWatcher {
    seen: FileStamps,
    /// What the person knows of approved extensions that are no longer what was approved.
    lapsed: Lapsed,
    /// A nearer project that the person knows of, although it does not count.
    passed: Option<PathBuf>,
    shared: Arc<Shared>,
    /// Dropped to end the thread.
    end: Option<Sender<()>>,
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
        let (end, ended) = channel();
        let idle = Arc::clone(&shared);
        // Without the thread, servers are ended with the next line only.
        let thread = thread::Builder::new().name("reload-watcher".to_owned()).spawn(move || idle.watch(&ended)).ok();
        let (seen, lapsed) = (shared.look(&app.directories, &app.files_in_place()), news::lapsed(app));
        ReloadWatcher { seen, lapsed, passed: None, shared, end: Some(end), thread }
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

    /// The turn is over.
    pub fn rest(&self) {
        self.shared.state().busy = false;
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
        self.shared.look(&app.directories, &app.files_in_place())
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
        self.end = None;
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

    fn look(&self, directories: &[PathBuf], in_place: &[PathBuf]) -> FileStamps {
        stamps(&self.world_now(), directories, in_place)
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
    fn watch(&self, ended: &Receiver<()>) {
        let Some(mcp_tools) = &self.mcp_tools else { return };
        let look = || self.look(&mcp_tools.directories(), &[]);
        let mut seen = look();
        let mut last = seen;
        while ended.recv_timeout(GLANCE) == Err(RecvTimeoutError::Timeout) {
            let now = look();
            // What differs from one look to the next is still being written.
            if std::mem::replace(&mut last, now) != now || now == seen {
                continue;
            }
            let mut state = self.state();
            if !state.busy {
                state.untold.extend(mcp_tools.reload());
                seen = now;
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
