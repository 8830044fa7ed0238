//! Loads an application: puts the declarations that the catalog found into an engine, with the context's values.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use ollm_catalog::{Catalog, Index, Moment, Places, Problem, Severity, Snapshots};
use ollm_engine::{DuplicateId, Engine, Environment, HOOK_VARIABLE, Launcher};
use ollm_guard::Guards;
use ollm_protocol::{Code, Event, Hook, Needs, Origin};
use ollm_store::Switches;
use ollm_trust::UntrustedPolicy;

use super::App;
use super::extensions::{KnownExtensions, View, extensions_off, extensions_since, hold, known_secrets};
use super::switches::{left_to_agent, switched, unreliable};
use crate::app_context::AppContext;
use crate::error::AppError;
use crate::guards::{guards, refusing_guard, shared_guards, unread_project};
use crate::migrate::migrate_on_load;
use crate::trace;
use crate::watch::LateEnds;

/// Options for loading an application.
pub struct LoadOptions<'a> {
    /// The program that runs async hooks after we end; without one, our threads run them.
    pub background: Option<Launcher>,
    /// The earlier application of a long-lived process. Files that can no longer be read keep their earlier state.
    pub previous: Option<&'a App>,
    /// Whether to report extensions as broken if they can no longer be understood, although their approved state stays
    /// in use.
    pub as_is: bool,
    /// The extensions to load, if not all.
    pub only: Option<ExtensionFilter<'a>>,
    /// The agent that asks us; it runs the hooks in its own files itself.
    pub asked_by: Option<&'static str>,
    /// The guard that refused the event, if nothing of the project should be read.
    pub refused_by: Option<String>,
    /// The built-in guards, which remember the last call they judged.
    pub(crate) guards: Arc<Guards>,
}

/// Some of the extensions, and the index of all of them.
#[derive(Clone, Copy)]
pub struct ExtensionFilter<'a> {
    /// The names of the wanted extensions.
    pub names: &'a [String],
    /// The names of all of them.
    pub index: &'a Index,
}

impl LoadOptions<'_> {
    /// Options for one event, after which we end.
    pub fn short(context: &AppContext) -> LoadOptions<'static> {
        // Another process finishes the async hooks after our answer.
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
    /// Loads everything; fails for a security setting that cannot be read.
    pub fn load(context: &AppContext) -> Result<App, AppError> {
        App::load_with(context, LoadOptions::short(context))
    }

    /// Like [`App::load`], with the present folders of the extensions, even if an approved copy runs in their place.
    pub fn load_as_is(context: &AppContext) -> Result<App, AppError> {
        App::load_with(context, LoadOptions { as_is: true, ..LoadOptions::short(context) })
    }

    /// Like [`App::load_as_is`], for callers that need only some extensions. Others may be listed only by name.
    pub fn load_only(context: &AppContext, only: ExtensionFilter<'_>) -> Result<App, AppError> {
        App::load_with(context, LoadOptions { only: Some(only), ..LoadOptions::short(context) })
    }

    /// Like [`App::load`], with other options.
    pub fn load_with(context: &AppContext, stay: LoadOptions<'_>) -> Result<App, AppError> {
        let env = |name: &str| context.variable(name);
        let places = readable(context, stay.refused_by.as_deref());
        App::new(context, ollm_catalog::load(&places, &env, &context.overrides), stay)
    }

    /// Like [`App::load`], for one event: hooks that cannot fit it may be missing. The built-in guards judge it first,
    /// by the user's configuration alone. After their refusal nothing of the project is read.
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

    /// Like [`App::load_for`], with all hooks, because the explanation also names hooks that cannot fit.
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
        go_on(&problems, context)?;
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
            (Some(previous), _) => KnownExtensions::Extensions(&previous.extensions),
            (None, Some(only)) => KnownExtensions::Names(only),
            (None, None) if stay.as_is => KnownExtensions::Nothing,
            (None, None) => KnownExtensions::Approvals(&trust, catalog.extensions),
        };
        let view = View { context, places: &places };
        let (extensions, changes) = extensions_since(before, view, &catalog.config, &switches, &mut problems);
        go_on(&problems, context)?;
        hold(&trust, &extensions);
        context.hidden.add(extensions.iter().flat_map(known_secrets));
        let directories = catalog.config.extensions(&places).directories;
        let extensions_off = extensions_off(&catalog.config, context);
        let settings = catalog.settings;
        let rules = settings.rules();
        trust.workspace = settings.trust_workspace;
        trust.untrusted_projects.clone_from(&settings.untrusted_projects);
        trust.untrusted = if settings.untrusted_blocks { UntrustedPolicy::Block } else { UntrustedPolicy::Skip };
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
            // The ids of the guards are reserved, so no other hook can have them.
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
            trace_log: trace::kept(context, &settings),
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

/// Fails for a fatal problem, with a hint: the box of a hook may prevent us from reading.
fn go_on(problems: &[Problem], context: &AppContext) -> Result<(), AppError> {
    let Some(fatal) = problems.iter().find(|problem| problem.severity == Severity::Fatal) else { return Ok(()) };
    let is_boxed = fatal.code == Code::UnreadableFile && context.variable(HOOK_VARIABLE).is_some();
    let hint = if is_boxed {
        "in the box of a hook no event can be sent, unless the hook declares \"permissions\": {\"read\": [\"~/.ollm\"]}"
    } else {
        "correct the value or remove it"
    };
    Err(AppError::from(fatal).hint(hint))
}

/// Options for one event, after the built-in guards judged it by the user's configuration alone.
fn judged_first(context: &AppContext, event: &Event, asked_by: Option<&'static str>) -> LoadOptions<'static> {
    let stay = LoadOptions::short(context);
    let refused_by = context.places.project_speaks().then(|| refusing_guard(event, context, &stay.guards)).flatten();
    LoadOptions { asked_by, refused_by, ..stay }
}

/// The folders to read: without the project after a guard's refusal.
fn readable<'w>(context: &'w AppContext, refused_by: Option<&str>) -> Cow<'w, Places> {
    match refused_by {
        Some(_) => Cow::Owned(context.places.users_own()),
        None => Cow::Borrowed(&context.places),
    }
}

/// The hooks that were read. For a file that can no longer be read, the earlier hooks stay, and the reason is returned.
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
        // The position that they would have if they had been read.
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
