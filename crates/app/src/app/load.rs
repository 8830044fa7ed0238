//! From what is declared to an engine: what the catalog found goes in, with the context's values.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use ollm_catalog::{Catalog, Index, Moment, Places, Problem, Severity, Snapshots};
use ollm_engine::{DuplicateId, Engine, Environment, Launcher};
use ollm_guard::Guards;
use ollm_protocol::{Code, Event, Hook, Needs, Origin};
use ollm_store::Switches;
use ollm_trust::Untrusted;

use super::App;
use super::extensions::{Before, View, extensions_off, extensions_since, hold, known_secrets};
use super::switches::{left_to_agent, switched, unreliable};
use crate::app_context::AppContext;
use crate::error::AppError;
use crate::guards::{guards, refusing_guard, shared_guards, unread_project};
use crate::migrate::migrate_on_load;
use crate::trace;
use crate::watch::LateEnds;

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

    pub(super) fn load_kept(
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
}

/// One event, which the built-in guards judge by the user's configuration alone before anything of a project is read.
fn judged_first(context: &AppContext, event: &Event, asked_by: Option<&'static str>) -> LoadOptions<'static> {
    let stay = LoadOptions::short(context);
    let refused_by = context.places.project_speaks().then(|| refusing_guard(event, context, &stay.guards)).flatten();
    LoadOptions { asked_by, refused_by, ..stay }
}

/// Where files are looked for: after the refusal of a guard, not in the project.
fn readable<'w>(context: &'w AppContext, refused_by: Option<&str>) -> Cow<'w, Places> {
    match refused_by {
        Some(_) => Cow::Owned(context.places.users_own()),
        None => Cow::Borrowed(&context.places),
    }
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

fn taken(origin: &Origin, duplicate: &DuplicateId) -> Problem {
    Problem {
        line: origin.line,
        column: origin.column,
        field: "id".to_owned(),
        value: Some(duplicate.id.clone()),
        ..Problem::of_file(Code::Duplicate, Severity::Error, &origin.file, duplicate.to_string())
    }
}
