//! The application: an engine with everything that was found, and what is known beside it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use ollm_catalog::{Changes, Config, Extension, Extensions, GUARDS, Problem, TraceSettings, Undeclared};
use ollm_engine::{Engine, Outcome, Skip};
use ollm_protocol::{Code, Event, Hook, Remedy, Rules, Source, did_you_mean};
use ollm_store::{RotatingLog, Switches};

use crate::app_context::AppContext;
use crate::complete::complete;
use crate::error::AppError;
use crate::guards::guard_id;
use crate::port::{Notices, Shared};
use crate::servers::McpTools;
use crate::telemetry::Telemetry;
use crate::watch::{LateEnds, ProjectWatch};

mod extensions;
mod load;
mod switches;
#[cfg(test)]
mod tests;

pub use extensions::{extensions, extensions_again, extensions_as_approved};
pub use load::{LoadOptions, Only};
pub use switches::{switch_name, unreliable};

/// An engine with all hooks that were found, and what was wrong with the rest.
#[derive(Debug)]
pub struct App {
    /// Dispatches events.
    pub engine: Engine,
    /// What is wrong with the files.
    pub problems: Vec<Problem>,
    /// What the configuration says about all hooks.
    pub rules: Rules,
    /// What the configuration says about the trace.
    pub trace: TraceSettings,
    /// Where dispatches leave their records, if any are kept.
    pub(crate) trail: Option<RotatingLog>,
    /// What of the application could not be started, in a line each.
    pub(crate) troubles: Vec<String>,
    /// What programs that watch us are told, if they are.
    pub(crate) telemetry: Option<Telemetry>,
    /// Scripts in the hook folders that nothing declares.
    pub undeclared: Vec<Undeclared>,
    /// The extensions, also those that are off or cannot be loaded.
    pub extensions: Extensions,
    /// The folders in which extensions are looked for.
    pub directories: Vec<PathBuf>,
    /// Who says that no extension is loaded.
    extensions_off: Option<String>,
    /// The whole configuration.
    pub config: Config,
    /// The tools of MCP servers, if a hook or an agent may want one.
    pub mcp_tools: Option<Arc<McpTools>>,
    /// What became different in the extensions, where they were known before.
    pub changes: Changes,
    /// When hooks ended that nobody waited for.
    pub(crate) late_ends: LateEnds,
    /// The files of the project, where a chat watches them.
    pub watch: Arc<Shared<Option<ProjectWatch>>>,
    /// Hook files that can no longer be read, and why; their hooks are those from before.
    pub kept: BTreeMap<PathBuf, String>,
    context: AppContext,
    /// Stands for the hooks of the project, where a guard refused before they were read.
    unread: Option<Skip>,
    /// That older names in the user's file were replaced while it was read.
    pub migrated: Option<String>,
}

impl App {
    /// The files of other agents whose hooks are read where they are.
    pub fn files_in_place(&self) -> Vec<PathBuf> {
        let places = &self.context.places;
        ollm_catalog::files_in_place(&self.config.hooks(places), places, &|name| self.context.variable(name))
    }

    /// Where it was loaded.
    pub fn context(&self) -> &AppContext {
        &self.context
    }

    /// Ends what runs: servers in order, then what hooks and tools left behind. What was learned of files is kept.
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

    /// Passes an event through its hooks, up to a deadline; `why` is said of those that were not done by then.
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

    /// The event with what is known here and whoever sends it may not know: the person, and where a file is in the project.
    pub fn completed<'e>(&self, event: &'e Event) -> Cow<'e, Event> {
        complete(event, &self.config, &self.context)
    }

    /// Whether a guard refused the event it was loaded for, so that nothing of the project was read.
    pub fn has_unread(&self) -> bool {
        self.unread.is_some()
    }

    /// The outcome with what stands for hooks that were not even read.
    pub(crate) fn whole(&self, mut outcome: Outcome) -> Outcome {
        outcome.skipped.extend(self.unread.clone());
        outcome
    }

    /// Takes on what was read anew, and keeps what this one has lived through.
    pub fn renew(&mut self, fresh: App) {
        self.engine.renew(fresh.engine);
        self.problems = fresh.problems;
        self.rules = fresh.rules;
        self.trace = fresh.trace;
        self.trail = fresh.trail;
        self.undeclared = fresh.undeclared;
        self.extensions = fresh.extensions;
        self.directories = fresh.directories;
        self.extensions_off = fresh.extensions_off;
        self.config = fresh.config;
        self.changes = fresh.changes;
        self.kept = fresh.kept;
        self.context = fresh.context;
    }

    /// Has what can no longer be read told again, as if it had just happened.
    pub fn forget_kept(&mut self) {
        self.changes.kept.clear();
        self.kept.clear();
    }

    /// Has the hooks of extensions that can no longer be understood go on as they were approved.
    pub fn hold_kept(&self) {
        let kept = self.changes.kept.iter().filter_map(|(name, _)| self.extensions.get(name));
        self.engine.trust.hold(kept.map(|extension| (extension.name.as_str(), extension.root.as_path())));
    }

    /// What a person should know of extensions that cannot be understood as they are: some of them go on nevertheless.
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

    /// What is off that would stand in the way of something, in one line.
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

    /// Why no extension is loaded, where the configuration says so.
    pub fn extensions_off(&self) -> Option<String> {
        self.extensions_off.as_ref().map(|from| format!("no extension is loaded: extensions.enabled is false ({from})"))
    }

    /// The tools of MCP servers, for hooks and whoever asks; that alone reads and starts nothing.
    pub fn tools(&mut self, context: &AppContext) -> Arc<McpTools> {
        let mcp_tools = Arc::clone(self.mcp_tools.get_or_insert_with(|| Arc::new(McpTools::new(context))));
        self.engine.tools = Some(mcp_tools.clone());
        mcp_tools
    }

    /// Tells the person what is off, and what is wrong with the files, one line each.
    pub fn tell_problems(&self, notices: &mut dyn Notices) {
        if let Some(migrated) = &self.migrated {
            notices.tell(migrated);
        }
        if let Some(off) = self.what_is_off() {
            notices.tell(&off);
        }
        for line in self.troubles.iter().cloned().chain(self.problems.iter().map(Problem::to_string)) {
            notices.tell(&line);
        }
    }

    /// What is wrong with the folders extensions are looked for in, and with what is remembered of extensions.
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

    /// The hook with this id, or the only one with this name.
    pub fn hook(&self, id: &str) -> Result<Arc<Hook>, AppError> {
        if let Some(hook) = self.engine.registry.get(id) {
            return Ok(Arc::clone(hook));
        }
        let hooks = self.hooks();
        let named: Vec<&Arc<Hook>> = hooks.iter().filter(|hook| hook.spec.name == id).collect();
        match named.as_slice() {
            [hook] => Ok(Arc::clone(hook)),
            [] => Err(unknown(id, &hooks, &self.context)),
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
