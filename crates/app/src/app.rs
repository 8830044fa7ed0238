//! The wiring: what the catalog found goes into the engine, with the context's values.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use ollm_catalog::{
    Catalog, Changes, Config, Extension, Extensions, GUARDS, Index, Moment, Places, Problem, ReadExtensions, Severity,
    Snapshots, State, Surroundings, TraceSettings, Undeclared, named_extensions, reload_extensions, settle_extensions,
};
use ollm_engine::{DuplicateId, Engine, Environment, Launcher, Outcome, Skip};
use ollm_guard::Guards;
use ollm_protocol::dialect::agent_named;
use ollm_protocol::{Code, Event, Hook, HookSpec, Layer, Needs, Origin, Remedy, Rules, Source, did_you_mean, units};
use ollm_store::{RotatingLog, Secrets, Switch, Switches, Trouble};
use ollm_trust::{Trust, Untrusted};

use crate::app_context::AppContext;
use crate::complete::complete;
use crate::error::AppError;
use crate::guards::{guard_id, guards, refusing_guard, shared_guards, unread_project};
use crate::migrate::migrate_on_load;
use crate::port::{Notices, Shared};
use crate::servers::McpTools;
use crate::telemetry::Telemetry;
use crate::trace;
use crate::watch::{LateEnds, ProjectWatch};

#[cfg(test)]
mod tests;

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

/// Who dispatches events, and for how long.
pub struct LoadOptions<'a> {
    /// Who goes on with async hooks after us; threads of our own run them without.
    pub background: Option<Launcher>,
    /// What was there before, for who lives on: what can no longer be read stays as it was.
    pub previous: Option<&'a App>,
    /// Whether extensions that can no longer be understood count as such, though what was approved of them goes on.
    pub as_is: bool,
    /// The extensions that matter, where not all do.
    pub only: Option<Only<'a>>,
    /// The agent that asks: it runs hooks in its own files by itself.
    pub asked_by: Option<&'static str>,
    /// The guard that refused, where nothing of the project is to be read.
    pub refused_by: Option<String>,
    /// The built-in guards, which remember the call that they saw last.
    pub(crate) guards: Arc<Guards>,
}

/// Some of the extensions, and what is remembered of all of them.
#[derive(Clone, Copy)]
pub struct Only<'a> {
    /// What they are called.
    pub names: &'a [String],
    /// The names of all of them.
    pub index: &'a Index,
}

impl LoadOptions<'_> {
    /// One event, and then we end.
    pub fn short(context: &AppContext) -> LoadOptions<'static> {
        // Async hooks go on in a process of their own when we have answered.
        let handed_to = |program| Launcher { program, args: vec!["hook".into(), "background".into()] };
        let background = context.program.clone().map(handed_to);
        LoadOptions {
            background,
            previous: None,
            as_is: false,
            only: None,
            asked_by: None,
            refused_by: None,
            guards: shared_guards(context),
        }
    }
}

impl App {
    /// Loads everything; a security setting that cannot be read stops us here.
    pub fn load(context: &AppContext) -> Result<App, AppError> {
        App::load_with(context, LoadOptions::short(context))
    }

    /// Like [`App::load`], with the extensions as they are in their folders, also those of which something else goes on
    /// that was approved.
    pub fn load_as_is(context: &AppContext) -> Result<App, AppError> {
        App::load_with(context, LoadOptions { as_is: true, ..LoadOptions::short(context) })
    }

    /// Like [`App::load_as_is`], for who cares for some extensions only: others may be there by name alone.
    pub fn load_only(context: &AppContext, only: Only<'_>) -> Result<App, AppError> {
        App::load_with(context, LoadOptions { only: Some(only), ..LoadOptions::short(context) })
    }

    /// Like [`App::load`], for a stay of another kind.
    pub fn load_with(context: &AppContext, stay: LoadOptions<'_>) -> Result<App, AppError> {
        let env = |name: &str| context.variable(name);
        let places = readable(context, stay.refused_by.as_deref());
        App::new(context, ollm_catalog::load(&places, &env, &context.overrides), stay)
    }

    /// Like [`App::load`], for one event: hooks that cannot fit it may be missing. The built-in guards are asked first, by
    /// the user's configuration alone; after their refusal nothing of the project is read.
    pub fn load_for(context: &AppContext, event: &Event, asked_by: Option<&'static str>) -> Result<App, AppError> {
        let folder = context.snapshots();
        let snapshots = folder.as_deref().map(|folder| Snapshots { folder, now: SystemTime::now() });
        App::load_kept(context, event, asked_by, snapshots)
    }

    fn load_kept(
        context: &AppContext,
        event: &Event,
        asked_by: Option<&'static str>,
        snapshots: Option<Snapshots<'_>>,
    ) -> Result<App, AppError> {
        let env = |name: &str| context.variable(name);
        let moment = Moment {
            kind: event.kind,
            subject: event.subject().filter(|subject| !subject.is_empty()).map(str::to_owned),
        };
        let stay = judged_first(context, event, asked_by);
        let places = readable(context, stay.refused_by.as_deref());
        let found = ollm_catalog::load_for(&places, &env, &context.overrides, &moment, snapshots);
        App::new(context, found, stay)
    }

    /// Like [`App::load_for`], with all hooks, also those that cannot fit: somebody wants to know why they do not.
    pub fn load_to_explain(
        context: &AppContext,
        event: &Event,
        asked_by: Option<&'static str>,
    ) -> Result<App, AppError> {
        App::load_with(context, judged_first(context, event, asked_by))
    }

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

    fn new(
        context: &AppContext,
        (catalog, problems): (Catalog, Vec<Problem>),
        stay: LoadOptions<'_>,
    ) -> Result<App, AppError> {
        let mut problems = problems;
        let migrated = migrate_on_load(&mut problems, context);
        let mut problems = context.told(problems);
        if let Some(fatal) = problems.iter().find(|problem| problem.severity == Severity::Fatal) {
            return Err(AppError::from(fatal).hint("correct the value or remove it"));
        }
        context.keep_log_settings(catalog.config.log());
        let (switches, trouble) = Switches::load(&context.switches());
        problems.extend(trouble.map(|trouble| unreliable(context, &trouble)));
        let (hooks, kept) = match stay.previous {
            Some(previous) => last_good(catalog.hooks, previous, &problems),
            None => (catalog.hooks, BTreeMap::new()),
        };
        let mut trust = context.trust(&catalog.config);
        let places = readable(context, stay.refused_by.as_deref());
        let before = match (stay.previous, stay.only) {
            (Some(previous), _) => Before::Extensions(&previous.extensions),
            (None, Some(only)) => Before::Names(only),
            (None, None) if stay.as_is => Before::Nothing,
            (None, None) => Before::Approvals(&trust, catalog.extensions),
        };
        let view = View { context, places: &places };
        let (extensions, changes) = extensions_since(before, view, &catalog.config, &switches, &mut problems);
        hold(&trust, &extensions);
        context.hidden.add(extensions.iter().flat_map(known_secrets));
        let directories = catalog.config.extensions(&places).directories;
        let extensions_off = extensions_off(&catalog.config, context);
        let settings = catalog.settings;
        let rules = settings.rules();
        trust.workspace = settings.trust_workspace;
        trust.untrusted_projects.clone_from(&settings.untrusted_projects);
        trust.untrusted = if settings.untrusted_blocks { Untrusted::Block } else { Untrusted::Skip };
        let environment = Environment {
            variables: context.variables.clone(),
            cwd: context.cwd.clone(),
            project: context.places.project.clone(),
            home: context.places.user_home.clone(),
            network: context.network.clone(),
            background: stay.background.map(|launcher| trace::left_to(launcher, context, &catalog.config.trace())),
            http_allow: settings.http_allow.clone(),
            read_only: false,
            watch_boxes: false,
            hidden: context.hidden.clone(),
        };
        let mut engine = Engine::new(trust, environment);
        engine.rates.global = settings.rate_limit;
        engine.switched_off =
            (!settings.enabled).then(|| format!("hooks.enabled is false ({})", settings.enabled_from));
        for guard in guards(&settings.guards, &stay.guards).into_iter().flatten() {
            // The ids of the guards are our own: no other hook can have them yet.
            let _ = engine.registry.register(guard);
        }
        let mut calls = false;
        for hook in hooks.into_iter().chain(extensions.hooks().cloned()) {
            let origin = hook.spec.origin.clone();
            calls |= matches!(hook.spec.action.needs(), Needs::Tool { .. });
            let hook = switched(hook, &switches, context);
            if let Err(duplicate) = engine.registry.register(left_to_agent(hook, stay.asked_by)) {
                problems.push(taken(&origin, &duplicate));
            }
        }
        let (config, undeclared) = (catalog.config, catalog.undeclared);
        let settings = config.trace();
        let mut app = App {
            engine,
            problems,
            rules,
            trail: trace::kept(context, &settings),
            troubles: Vec::new(),
            telemetry: None,
            trace: settings,
            undeclared,
            extensions,
            directories,
            extensions_off,
            config,
            mcp_tools: None,
            changes,
            late_ends: LateEnds::default(),
            watch: Arc::default(),
            kept,
            context: context.clone(),
            migrated,
            unread: stay.refused_by.and_then(|guard| unread_project(&guard, context)),
        };
        if calls {
            app.tools(context);
        }
        Ok(app)
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

fn extensions_off(config: &Config, context: &AppContext) -> Option<String> {
    let setting = config.get("extensions.enabled").filter(|setting| setting.value == false)?;
    Some(setting.origin.shown(context.places.user_home.as_deref()))
}

/// The extensions there are; one that cannot be loaded is a problem.
pub fn extensions(
    context: &AppContext,
    config: &Config,
    switches: &Switches,
    problems: &mut Vec<Problem>,
) -> Extensions {
    extensions_since(Before::Nothing, View::of(context), config, switches, problems).0
}

/// Like [`extensions`], but what can no longer be understood goes on as it was approved.
pub fn extensions_as_approved(
    context: &AppContext,
    config: &Config,
    switches: &Switches,
    trust: &Trust,
    problems: &mut Vec<Problem>,
) -> Extensions {
    let before = Before::Approvals(trust, None);
    let (found, _) = extensions_since(before, View::of(context), config, switches, problems);
    hold(trust, &found);
    found
}

/// Has those extensions count as they were approved that were read so.
fn hold(trust: &Trust, extensions: &Extensions) {
    let held = extensions.iter().filter(|extension| extension.held().is_some());
    trust.hold(held.map(|extension| (extension.name.as_str(), extension.root.as_path())));
}

/// The extensions as they are now that something was switched or set; what was read before is not read again.
pub fn extensions_again(app: &App, context: &AppContext) -> Extensions {
    let (switches, _) = Switches::load(&context.switches());
    let before = Before::Extensions(&app.extensions);
    extensions_since(before, View::of(context), &app.config, &switches, &mut Vec::new()).0
}

/// One event, which the built-in guards judge by the user's configuration alone before anything of a project is read.
fn judged_first(context: &AppContext, event: &Event, asked_by: Option<&'static str>) -> LoadOptions<'static> {
    let stay = LoadOptions::short(context);
    let refused_by = context.places.project_speaks().then(|| refusing_guard(event, context, &stay.guards)).flatten();
    LoadOptions { asked_by, refused_by, ..stay }
}

/// What is known of extensions before they are read.
enum Before<'a> {
    Nothing,
    /// As what they were approved: what can no longer be understood goes on as that. Where it is about one event, they were
    /// read with everything else.
    Approvals(&'a Trust, Option<ReadExtensions>),
    /// What they were when they were read last.
    Extensions(&'a Extensions),
    /// What they are called.
    Names(Only<'a>),
}

/// Where files are looked for: after the refusal of a guard, not in the project.
fn readable<'w>(context: &'w AppContext, refused_by: Option<&str>) -> Cow<'w, Places> {
    match refused_by {
        Some(_) => Cow::Owned(context.places.users_own()),
        None => Cow::Borrowed(&context.places),
    }
}

/// Where extensions are looked for.
#[derive(Clone, Copy)]
struct View<'a> {
    context: &'a AppContext,
    places: &'a Places,
}

impl View<'_> {
    fn of(context: &AppContext) -> View<'_> {
        View { context, places: &context.places }
    }
}

/// Like [`extensions`], with what became different since they were read before.
fn extensions_since(
    before: Before<'_>,
    View { context, places }: View<'_>,
    config: &Config,
    switches: &Switches,
    problems: &mut Vec<Problem>,
) -> (Extensions, Changes) {
    let file = context.places.secrets();
    let (secrets, trouble) = Secrets::load(&file, context.keyring());
    let untold = |trouble: Trouble| format!("no secret of an extension is known: {trouble}");
    problems
        .extend(trouble.map(|trouble| Problem::of_file(Code::UnreadableFile, Severity::Error, &file, untold(trouble))));
    let held_by = match &before {
        Before::Approvals(trust, _) => Some(*trust),
        _ => None,
    };
    // Hardly anybody asks.
    let approvals = LazyCell::new(|| context.trust(config));
    let surroundings = Surroundings {
        places,
        config,
        env: &|name: &str| context.variable(name),
        switches,
        secrets: &secrets,
        now: SystemTime::now(),
        approved: Some(&|root: &Path| held_by?.approved_folder(root)),
        vouched: Some(&|root: &Path| approvals.approved_folder(root)),
        commands: context.commands,
    };
    if let Before::Extensions(previous) = before {
        let (extensions, changes, more) = reload_extensions(previous, &surroundings);
        problems.extend(context.told(more));
        return (extensions, changes);
    }
    let (extensions, more) = match before {
        Before::Names(Only { names, index }) => named_extensions(names, index, &surroundings),
        Before::Approvals(_, Some(read)) => settle_extensions(read, &surroundings),
        _ => ollm_catalog::extensions(&surroundings),
    };
    let held = extensions.iter().filter_map(|extension| {
        let why = extension.held()?.clone();
        match extension.state {
            State::On => {
                let message = format!("{}; what was approved of `{}` goes on", why.message, extension.name);
                Some(Problem { message, ..why })
            }
            // Nothing of it runs, and that is what a person wants.
            State::Off(_) => None,
            State::Failed(_) => Some(why),
        }
    });
    problems.extend(context.told(more.into_iter().chain(held)));
    (extensions, Changes::default())
}

/// The sensitive settings of an extension that are known without asking anybody.
fn known_secrets(extension: &Extension) -> Vec<(String, String)> {
    let secret = extension.variables().into_iter().filter(|variable| variable.secret);
    secret.filter_map(|variable| Some((variable.name, variable.value.known()?.to_owned()))).collect()
}

/// The hooks that were read, but of files that can no longer be read those from before; and why that is so.
fn last_good(mut hooks: Vec<Hook>, previous: &App, problems: &[Problem]) -> (Vec<Hook>, BTreeMap<PathBuf, String>) {
    let mut kept = BTreeMap::new();
    for problem in problems.iter().filter(|problem| problem.severity <= Severity::Error && problem.file.is_file()) {
        let file = &problem.file;
        let before = previous.hooks();
        let of_file = before.iter().filter(|hook| hook.spec.extension.is_none() && hook.spec.origin.file == *file);
        let of_file: Vec<Hook> = of_file.map(|hook| Hook { off: None, ..Hook::clone(hook) }).collect();
        let Some(layer) = of_file.first().map(|hook| hook.spec.layer) else { continue };
        if kept.insert(file.clone(), problem.to_string()).is_some() {
            continue;
        }
        hooks.retain(|hook| hook.spec.origin.file != *file);
        // Where they would be if they had been read.
        let is_behind = |hook: &Hook| (hook.spec.layer, &hook.spec.origin.file) > (layer, file);
        let place = hooks.iter().position(is_behind).unwrap_or(hooks.len());
        hooks.splice(place..place, of_file);
    }
    (hooks, kept)
}

/// A hook that stands in a file of the agent that asks does not run a second time.
fn left_to_agent(mut hook: Hook, asked_by: Option<&str>) -> Hook {
    if let Some(agent) = hook.spec.read_from.filter(|agent| Some(*agent) == asked_by).and_then(agent_named) {
        hook.off = Some(format!("{} runs it by itself, from {}", agent.title, hook.spec.origin.file.display()));
    }
    hook
}

/// A hook as a person switched it, if that still holds.
fn switched(mut hook: Hook, switches: &Switches, context: &AppContext) -> Hook {
    if switches.is_empty() || hook.spec.source == Source::Policy {
        return hook;
    }
    let now = SystemTime::now();
    match switches.get(&switch_name(&hook.spec), now) {
        None => {}
        Some(Switch { on: true, .. }) => hook.spec.enabled = true,
        Some(Switch { on: false, until }) => {
            let left = until.and_then(|until| until.duration_since(now).ok());
            let left = left.map(|left| format!(" for another {}", units::approximately(left))).unwrap_or_default();
            let way_out = context.tell(&Remedy::EnableHook(hook.id().to_owned()));
            hook.off = Some(format!("switched off{left}; {way_out}"));
        }
    }
    hook
}

/// The switch of a hook. That of a project's hook names its project, or its extension's folder there: another project may
/// have a hook of the same id.
pub fn switch_name(hook: &HookSpec) -> String {
    let place = hook.tree.as_ref().or(hook.project.as_ref()).filter(|_| hook.layer == Layer::Workspace);
    match place {
        Some(place) => format!("hook:{}", HookSpec::id_in(place, hook.own_id())),
        None => format!("hook:{}", hook.own_id()),
    }
}

/// What is wrong with the file of switches.
pub fn unreliable(context: &AppContext, trouble: &Trouble) -> Problem {
    let message = format!("nothing is switched on or off: {trouble}");
    Problem::of_file(Code::UnreadableFile, Severity::Error, &context.switches(), message)
}

fn taken(origin: &Origin, duplicate: &DuplicateId) -> Problem {
    Problem {
        line: origin.line,
        column: origin.column,
        field: "id".to_owned(),
        value: Some(duplicate.id.clone()),
        ..Problem::of_file(Code::Duplicate, Severity::Error, &origin.file, duplicate.to_string())
    }
}

fn unknown(id: &str, hooks: &[Arc<Hook>], context: &AppContext) -> AppError {
    let ids = hooks.iter().flat_map(|hook| [hook.id(), hook.spec.name.as_str()]);
    let failure = AppError::new(Code::UnknownHook, format!("there is no hook `{id}`"));
    failure.hint(did_you_mean(id, ids).unwrap_or_else(|| context.tell(&Remedy::ListHooks)))
}
