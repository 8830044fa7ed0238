//! The application: an engine with everything that was loaded for it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use ollm_catalog::{Changes, Config, Extension, Extensions, GUARDS, Problem, TraceSettings, UndeclaredScript};
use ollm_engine::{Engine, Outcome, Skip};
use ollm_protocol::{Code, Event, Hook, Remedy, Rules, Source, did_you_mean};
use ollm_store::{RotatingLog, Switches};

use crate::app_context::AppContext;
use crate::complete::complete;
use crate::error::AppError;
use crate::guards::guard_id;
use crate::port::{Notices, SharedPort};
use crate::problems::{problems_about, told_problems};
use crate::servers::McpTools;
use crate::telemetry::Telemetry;
use crate::watch::{LateEnds, ProjectWatch};

mod extensions;
mod load;
mod switches;
#[cfg(test)]
mod tests;

pub use extensions::{extensions, extensions_again, extensions_as_approved};
pub use load::{ExtensionFilter, LoadOptions};
pub use switches::{switch_name, unreliable};

/// An engine with all hooks that were found, and the problems with the rest.
#[derive(Debug)]
pub struct App {
    /// Dispatches events.
    pub engine: Engine,
    /// Problems with the files.
    pub problems: Vec<Problem>,
    /// The configured rules for all hooks.
    pub rules: Rules,
    /// The configured settings of the trace.
    pub trace: TraceSettings,
    /// The log that dispatches are recorded in, if records are kept.
    pub(crate) trace_log: Option<RotatingLog>,
    /// One line for each part of the application that could not be started.
    pub(crate) troubles: Vec<String>,
    /// Spans and metrics for monitoring programs, if configured.
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    /// Scripts in the hook folders that nothing declares.
    pub undeclared: Vec<UndeclaredScript>,
    /// The extensions, also those that are off or cannot be loaded.
    pub extensions: Extensions,
    /// The folders that are searched for extensions.
    pub directories: Vec<PathBuf>,
    /// The origin of the setting that switches extensions off.
    extensions_off: Option<String>,
    /// The whole configuration.
    pub config: Config,
    /// The tools of MCP servers, if a hook or an agent may need one.
    pub mcp_tools: Option<Arc<McpTools>>,
    /// Changes in the extensions since they were last read.
    pub changes: Changes,
    /// The times at which background hooks ended.
    pub(crate) late_ends: LateEnds,
    /// The watch on the project's files, if a chat has one.
    pub watch: Arc<SharedPort<Option<ProjectWatch>>>,
    /// Hook files that can no longer be read, and why; their earlier hooks stay in force.
    pub kept: BTreeMap<PathBuf, String>,
    context: AppContext,
    /// A placeholder for the project's hooks, if a guard refused the event before they were read.
    unread: Option<Skip>,
    /// A note that older names in the user's file were replaced while it was read.
    pub migrated: Option<String>,
}

impl App {
    /// Files of other agents whose hooks are read in place.
    pub fn files_in_place(&self) -> Vec<PathBuf> {
        let places = &self.context.places;
        ollm_catalog::files_in_place(&self.config.hooks(places), places, &|name| self.context.variable(name))
    }

    /// The context it was loaded with.
    pub fn context(&self) -> &AppContext {
        &self.context
    }

    /// Ends the servers in order, then the processes that hooks and tools left behind. Keeps what was learned of files.
    pub fn close(self, notices: &mut dyn Notices) {
        if let Some(mcp_tools) = &self.mcp_tools {
            mcp_tools.close(notices);
        }
        self.engine.trust.remember();
        self.engine.children().kill_adopted();
    }

    /// Passes an event through its hooks; `stop` ends those that run.
    pub fn dispatch_until(&self, event: &Event, stop: &(dyn Fn() -> bool + Sync)) -> Outcome {
        self.whole(self.engine.dispatch_until(&self.completed(event), stop))
    }

    /// Passes an event through its hooks, up to a deadline. The reports of hooks that missed it say `why`.
    pub fn dispatch_by(&self, event: &Event, deadline: Instant, why: &str) -> Outcome {
        self.whole(self.engine.dispatch_by(&self.completed(event), deadline, why))
    }

    /// Passes an event through its hooks.
    pub fn dispatch(&self, event: &Event) -> Outcome {
        self.whole(self.engine.dispatch(&self.completed(event)))
    }

    /// Like [`App::dispatch`]; the outcome lists also the hooks that do not fit.
    pub fn dispatch_explained(&self, event: &Event) -> Outcome {
        self.engine.dispatch_explained(&self.completed(event))
    }

    /// The event with data that its sender may not know: about the person, and the path of a file in the project.
    pub fn completed<'e>(&self, event: &'e Event) -> Cow<'e, Event> {
        complete(event, &self.config, &self.context)
    }

    /// Whether a guard refused the event at loading, so that nothing of the project was read.
    pub fn has_unread(&self) -> bool {
        self.unread.is_some()
    }

    /// The outcome, with the placeholder for hooks that were not read.
    pub(crate) fn whole(&self, mut outcome: Outcome) -> Outcome {
        outcome.skipped.extend(self.unread.clone());
        outcome
    }

    /// Replaces what was loaded by a fresh reading, and keeps the running state.
    pub fn renew(&mut self, fresh: App) {
        self.engine.renew(fresh.engine);
        self.problems = fresh.problems;
        self.rules = fresh.rules;
        self.trace = fresh.trace;
        self.trace_log = fresh.trace_log;
        self.undeclared = fresh.undeclared;
        self.extensions = fresh.extensions;
        self.directories = fresh.directories;
        self.extensions_off = fresh.extensions_off;
        self.config = fresh.config;
        self.changes = fresh.changes;
        self.kept = fresh.kept;
        self.context = fresh.context;
    }

    /// Forgets earlier problems, so that they are told again like new ones.
    pub fn forget_kept(&mut self) {
        self.changes.kept.clear();
        self.kept.clear();
    }

    /// Keeps the hooks of broken extensions running in their approved state.
    pub fn hold_kept(&self) {
        let kept = self.changes.kept.iter().filter_map(|(name, _)| self.extensions.get(name));
        self.engine.trust.hold(kept.map(|extension| (extension.name.as_str(), extension.root.as_path())));
    }

    /// Lines for the person about broken extensions, some of which still run in their approved state.
    pub fn going_on(&self, context: &AppContext) -> Vec<String> {
        if !self.extensions.iter().any(Extension::is_broken) {
            return Vec::new();
        }
        let (switches, _) = Switches::load(&context.switches());
        let trust = context.trust(&self.config);
        let found = extensions_as_approved(context, &self.config, &switches, &trust, &mut Vec::new());
        let told = |one: &Extension| {
            let name = &one.name;
            let ending = context.tell(&Remedy::DisableExtension(name.clone()));
            format!("what was approved of `{name}` goes on until its manifest is mended; {ending}")
        };
        found.iter().filter(|one| one.held().is_some() && one.is_on()).map(told).collect()
    }

    /// One line about switched-off hooks and guards; `None` if all are on.
    pub fn what_is_off(&self) -> Option<String> {
        let hooks = self.engine.switched_off.as_ref();
        let hooks = hooks.map(|why| {
            let is_required = self.hooks().iter().any(|hook| hook.spec.source == Source::Policy);
            let required = if is_required { " and those that the policy requires" } else { "" };
            format!("hooks are off, except for the built-in guards{required}: {why}")
        });
        let from = || self.config.get("hooks.guards").map(|setting| self.shown(&setting.origin)).unwrap_or_default();
        let guard = |name: &&str| match self.engine.registry.get(&guard_id(name)) {
            None => Some(format!("guard `{name}` is off: hooks.guards does not name it ({})", from())),
            Some(hook) => hook.off.as_ref().map(|why| format!("guard `{name}` is off: {why}")),
        };
        let off: Vec<String> = hooks.into_iter().chain(GUARDS.iter().filter_map(guard)).collect();
        (!off.is_empty()).then(|| off.join("; "))
    }

    fn shown(&self, origin: &ollm_catalog::Origin) -> String {
        origin.shown(self.context.places.user_home.as_deref())
    }

    /// The reason why no extension is loaded, if the configuration switches them off.
    pub fn extensions_off(&self) -> Option<String> {
        self.extensions_off.as_ref().map(|from| format!("no extension is loaded: extensions.enabled is false ({from})"))
    }

    /// The tools of MCP servers, for hooks and other callers; this call alone reads and starts nothing.
    pub fn tools(&mut self, context: &AppContext) -> Arc<McpTools> {
        let mcp_tools = Arc::clone(self.mcp_tools.get_or_insert_with(|| Arc::new(McpTools::new(context))));
        self.engine.tools = Some(mcp_tools.clone());
        mcp_tools
    }

    /// Tells the person what is off and which files have problems, one line each.
    pub fn tell_problems(&self, notices: &mut dyn Notices) {
        if let Some(migrated) = &self.migrated {
            notices.tell(migrated);
        }
        if let Some(off) = self.what_is_off() {
            notices.tell(&off);
        }
        let (problems, more) = told_problems(&self.problems);
        let more = more.into_iter().map(|line| format!("{line}; {}", self.context.tell(&Remedy::ListHooks)));
        self.troubles.iter().for_each(|line| notices.tell(line));
        for problem in problems {
            notices.tell_problem(problem);
        }
        more.for_each(|line| notices.tell(&line));
    }

    /// Problems with the extension folders, and with our records of extensions.
    pub fn problems_around_extensions(&self, context: &AppContext) -> impl Iterator<Item = &Problem> {
        let (switches, secrets) = (context.switches(), context.places.secrets());
        self.problems.iter().filter(move |Problem { file, .. }| {
            *file == switches || *file == secrets || self.directories.contains(file)
        })
    }

    /// Every hook, each once, in the order of the event table and of registration.
    pub fn hooks(&self) -> Vec<Arc<Hook>> {
        let mut known = BTreeSet::new();
        let all = self.engine.registry.all().into_iter().flat_map(|(_, of_event)| of_event);
        all.filter(|hook| known.insert(Arc::as_ptr(hook))).collect()
    }

    /// The problems that may explain why no hook of this name is loaded.
    pub fn unloaded(&self, name: &str) -> Vec<&Problem> {
        problems_about(name, &self.problems)
    }

    /// The hook with this id, or the only one with this name.
    pub fn hook(&self, id: &str) -> Result<Arc<Hook>, AppError> {
        if let Some(hook) = self.engine.registry.get(id) {
            return Ok(Arc::clone(hook));
        }
        let hooks = self.hooks();
        let named: Vec<&Arc<Hook>> = hooks.iter().filter(|hook| hook.spec.name == id).collect();
        match named.as_slice() {
            [hook] => Ok(Arc::clone(hook)),
            [] => Err(self.unloaded(id).into_iter().fold(unknown(id, &hooks, &self.context), |failure, problem| {
                failure.hint(format!("it may be in a file that cannot be read: {problem}"))
            })),
            many => {
                let ids: Vec<&str> = many.iter().map(|hook| hook.id()).collect();
                Err(AppError::new(Code::UnknownHook, format!("{} hooks are named `{id}`", many.len()))
                    .hint(format!("use one of their ids: {}", ids.join(", "))))
            }
        }
    }
}

fn unknown(id: &str, hooks: &[Arc<Hook>], context: &AppContext) -> AppError {
    let ids = hooks.iter().flat_map(|hook| [hook.id(), hook.spec.name.as_str()]);
    let failure = AppError::new(Code::UnknownHook, format!("there is no hook `{id}`"));
    failure.hint(did_you_mean(id, ids).unwrap_or_else(|| context.tell(&Remedy::ListHooks)))
}
