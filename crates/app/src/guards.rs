//! The built-in guards, as hooks: on unless the user switched them off.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use ollm_catalog::{GUARDS, Severity, configuration};
use ollm_engine::{Reason, Skip};
use ollm_guard::{Guards, ProtectedPlaces, moved};
use ollm_protocol::{
    Action, ActionSpec, Builtin, Event, Hook, HookError, HookSpec, OnFailure, Priority, Reach, Rules, Source, Verdict,
};

use crate::app_context::AppContext;

/// Both guards, with the protected places. Engines that share the guards read a call only once.
pub(crate) fn shared_guards(context: &AppContext) -> Arc<Guards> {
    Arc::new(Guards::new(shelter(context)))
}

/// The places that the guards protect here.
pub(crate) fn shelter(context: &AppContext) -> ProtectedPlaces {
    ProtectedPlaces {
        home: context.places.user_home.clone(),
        ollm_home: context.places.home.clone(),
        projects: context.places.projects().map(Path::to_owned).collect(),
        executable: context.program.clone(),
        policy: context.places.policy.as_ref().map(|policy| policy.folder().to_owned()),
        moved: moved(&|name| context.variable(name)),
        cwd: context.cwd.clone(),
    }
}

/// The guards with these names.
pub(crate) fn guards(names: &[String], shared: &Arc<Guards>) -> Vec<Result<Hook, HookError>> {
    let wanted = GUARDS.iter().filter(|name| names.iter().any(|wanted| wanted == *name));
    wanted.map(|name| hook(name, guard(name, shared))).collect()
}

/// The guard that refuses an event by what the user's own configuration says. Nothing of a project is read for it.
pub(crate) fn refusing_guard(event: &Event, context: &AppContext, shared: &Arc<Guards>) -> Option<String> {
    let fitting = GUARDS.iter().filter_map(|name| hook(name, guard_ahead(name, shared)).ok());
    let mut refusing = fitting.filter(|hook| hook.events.contains(&event.kind) && refuses(hook, event)).peekable();
    // Only a refusal needs to know whether its guard is on.
    refusing.peek()?;
    let places = context.places.users_own();
    let (config, problems) = configuration(&places, &|name| context.variable(name), &context.overrides);
    // The loader of everything reports a configuration that cannot be relied on.
    if problems.iter().any(|problem| problem.severity == Severity::Fatal) {
        return None;
    }
    let wanted = config.hooks(&places).guards;
    refusing.find(|hook| wanted.contains(&hook.spec.name)).map(|hook| hook.spec.name)
}

/// Whether a guard refuses an event. A guard that panics here panics again in the engine, where its failure policy
/// decides.
fn refuses(hook: &Hook, event: &Event) -> bool {
    let Action::Builtin(guard) = &hook.action else { return false };
    catch_unwind(AssertUnwindSafe(|| guard.call(event))).is_ok_and(|verdict| verdict.flow.refuses())
}

/// The id of the placeholder for a project's hooks that were not read.
pub(crate) const UNREAD_PROJECT: &str = "workspace";

/// The placeholder for a project's hooks that were not read.
pub(crate) fn unread_project(guard: &str, context: &AppContext) -> Option<Skip> {
    let spec = HookSpec {
        name: "hooks of the project".to_owned(),
        source: Source::Workspace,
        ..HookSpec::new(UNREAD_PROJECT, "before_tool", ActionSpec::Builtin(Builtin::new(|_| Verdict::default())))
    };
    let project = context.places.project.as_deref().map(|project| project.display().to_string()).unwrap_or_default();
    let detail = format!("guard `{guard}` refused, so the hooks of {project} were not loaded");
    let hook = Arc::new(Hook::new(spec, &Rules::default()).ok()?);
    Some(Skip::new(&hook, Reason::AfterBlock, detail))
}

/// The id of a guard.
pub(crate) fn guard_id(name: &str) -> String {
    format!("builtin:{name}")
}

fn hook(name: &str, guard: Builtin) -> Result<Hook, HookError> {
    let spec = HookSpec {
        name: name.to_owned(),
        source: Source::Builtin,
        priority: Priority::Critical,
        on_failure: Some(OnFailure::Ask),
        // In this dialect, the user's own hooks still decide and log when a guard refuses.
        dialect: Some("agent".to_owned()),
        // Hooks of that dialect skip sub-agents; a guard does not, or an agent would send a sub-agent.
        reach: Some(Reach::All),
        ..HookSpec::new(guard_id(name), "before_tool", ActionSpec::Builtin(guard))
    };
    Hook::new(spec, &Rules::default())
}

/// A guard that judges before the engine does; the engine reuses its verdict.
fn guard_ahead(name: &str, guards: &Arc<Guards>) -> Builtin {
    let guards = Arc::clone(guards);
    if name == "self-protection" {
        return Builtin::new(move |event: &Event| -> Verdict { guards.tampering_ahead(event) });
    }
    Builtin::new(move |event: &Event| -> Verdict { guards.destructive_ahead(event) })
}

fn guard(name: &str, guards: &Arc<Guards>) -> Builtin {
    let guards = Arc::clone(guards);
    if name == "self-protection" {
        return Builtin::new(move |event: &Event| -> Verdict { guards.tampering_in_time(event) });
    }
    Builtin::new(move |event: &Event| -> Verdict { guards.destructive_in_time(event) })
}
