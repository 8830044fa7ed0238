//! `ollm hook show`: everything about one hook, and which rule gave each value.

use std::sync::Arc;

use ollm_app::approving::group_digest;
use ollm_app::command_box::BoxStatus;
use ollm_app::{App, AppContext, unsent_events};
use ollm_engine::unbound_limit;
use ollm_protocol::dialect::AGENTS;
use ollm_protocol::{Hook, Matcher, Subject};

use ollm_protocol::tool::table::FOREIGN;
use ollm_trust::{Approvable, Standing, Term};
use serde_json::{Map, Value, json};

use super::{list, rules};
use crate::error::Failure;
use crate::output::{Output, shown};
use crate::table;

/// Whether a hook may run, and what its approval is bound to.
#[derive(Debug)]
pub(crate) struct HookState {
    pub(crate) trust: &'static str,
    pub(crate) digest: Option<String>,
    /// The digest that an approval of its whole group is bound to.
    pub(crate) group_digest: Option<String>,
    /// The reason why it is off, if not by its own declaration.
    pub(crate) off: Option<String>,
    /// The reason why it cannot be started.
    pub(crate) unready: Option<String>,
}

impl HookState {
    /// Whether it may run, for people.
    pub(super) fn trusted(&self) -> &'static str {
        match self.trust {
            "session" => "trusted for one session",
            "once" => "trusted once",
            other => other,
        }
    }
}

/// The states of all hooks, with the common digests of their groups.
pub(crate) fn states(hooks: Vec<Arc<Hook>>, app: &App) -> Vec<(Arc<Hook>, HookState)> {
    let mut rows: Vec<(Arc<Hook>, HookState)> =
        hooks.into_iter().map(|hook| (Arc::clone(&hook), state(&hook, app))).collect();
    let mut groups: Vec<String> = rows.iter().filter_map(|(hook, _)| hook.spec.group.clone()).collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        let is_member = |hook: &Hook| hook.spec.group.as_deref() == Some(group.as_str());
        let members = rows.iter().filter(|(hook, _)| is_member(hook)).map(|(_, state)| state.digest.as_deref());
        let common = members.collect::<Option<Vec<&str>>>().map(|members| group_digest(members).to_string());
        for (_, state) in rows.iter_mut().filter(|(hook, _)| is_member(hook)) {
            state.group_digest.clone_from(&common);
        }
    }
    rows
}

pub(super) fn state(hook: &Hook, app: &App) -> HookState {
    let (identity, unready) = match app.engine.trust.identity(hook, &app.engine.environment().trust_context()) {
        Ok(identity) => (Some(identity), None),
        Err(why) => (None, Some(why.to_string())),
    };
    let trust = match app.engine.trust.standing(hook, identity.as_ref()) {
        _ if identity.as_ref().is_some_and(|identity| app.engine.trust.is_granted(hook, identity)) => "session",
        Standing::Approved => "trusted",
        Standing::Limited => match app.engine.trust.approval(hook).map(|approval| approval.term) {
            Some(Term::Once) => "once",
            _ => "session",
        },
        Standing::Modified => "modified",
        Standing::Unknown => "untrusted",
    };
    let digest = identity.as_ref().map(|identity| identity.digest.to_string());
    let off = app.engine.why_off(hook).map(str::to_owned);
    let unready = hook.broken.clone().or(unready).or_else(|| app.engine.missing_interpreter(hook));
    HookState { trust, digest, group_digest: None, off, unready }
}

pub(super) fn run(id: &str, context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load(context)?;
    context.tell_notices(output);
    with(&app, id, as_json, output)
}

/// Shows a hook as it stands in this application: what was approved for a session counts only in that.
pub(crate) fn with(app: &App, id: &str, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let hook = app.hook(id)?;
    let context = app.context();
    for line in unsent_events(std::iter::once(&*hook), context) {
        output.tell(&line);
    }
    let hooks = match &hook.spec.group {
        Some(group) => app.hooks_in_group(group),
        None => vec![Arc::clone(&hook)],
    };
    let found = states(hooks, app).into_iter().find(|(member, _)| Arc::ptr_eq(member, &hook));
    let state = found.map_or_else(|| state(&hook, app), |(_, state)| state);
    if as_json {
        return output.pretty_json(&details(&hook, &state));
    }
    output.text(&ollm_store::escape_for_people(&text(&hook, &state)))
}

fn details(hook: &Hook, state: &HookState) -> Value {
    let mut value = list::entry(hook, state);
    if let (Some(map), Value::Object(more)) = (value.as_object_mut(), more(hook, state)) {
        map.extend(more);
        map.extend(rules::to_json(hook));
        map.insert("box".to_owned(), boxed(hook));
    }
    value
}

fn more(hook: &Hook, state: &HookState) -> Value {
    let spec = &hook.spec;
    json!({
        "column": spec.origin.column,
        "version": spec.version,
        "covers": covered(hook).into_iter().map(|(agent, names)| (agent.to_owned(), json!(names))).collect::<Map<_, _>>(),
        "script": hook.script().map(|path| shown(path)),
        "timeoutFrom": hook.timeout.basis.name(),
        "onFailure": hook.on_failure.value.name(),
        "onFailureFrom": hook.on_failure.basis.name(),
        "priority": spec.priority.name(),
        "parallel": spec.parallel,
        "persistent": spec.persistent,
        "cwd": spec.cwd.as_deref().map(shown),
        "inputs": spec.inputs.iter().map(|path| shown(path)).collect::<Vec<_>>(),
        "env": spec.env.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "passEnv": spec.pass_env,
        "problem": state.unready,
    })
}

/// The box of a hook, and what becomes of it here; nothing where it has none.
fn boxed(hook: &Hook) -> Value {
    let Some(permissions) = &hook.permissions else { return Value::Null };
    let (mut value, status) = (permissions.to_json(), BoxStatus::of_programs().to_json());
    if let (Some(map), Value::Object(status)) = (value.as_object_mut(), status) {
        map.insert("declared".to_owned(), hook.spec.permissions.is_some().into());
        map.extend(status);
    }
    value
}

/// The tools that a hook's matcher covers, in each agent's names; empty if it is for all of them or for none.
fn covered(hook: &Hook) -> Vec<(&'static str, Vec<&'static str>)> {
    let about = hook.events.iter().copied().find(|kind| kind.call_fields().is_some());
    let Some(kind) = about.filter(|_| !matches!(hook.matcher, Matcher::Any)) else { return Vec::new() };
    let named = |agent: &'static str| {
        let rows = FOREIGN.iter().filter(move |row| row.agents.contains(&agent));
        let names =
            rows.filter(|row| hook.matcher.matches(Some(Subject::new(kind, row.tool.name)))).map(|row| row.name);
        (agent, names.collect::<Vec<_>>())
    };
    AGENTS.iter().map(|agent| named(agent.name)).filter(|(_, names)| !names.is_empty()).collect()
}

/// Everything about a hook, for people.
pub(crate) fn text(hook: &Hook, state: &HookState) -> String {
    let mut rows = hook.rows();
    if let (Some(row), Some(off)) = (rows.iter_mut().find(|(name, _)| *name == "enabled"), &state.off) {
        row.1.clone_from(off);
    }
    match (rows.iter_mut().find(|(name, _)| *name == "box"), BoxStatus::of_programs().reason()) {
        (Some(row), Some(reason)) => row.1 = format!("{}; not all of it is held here: {reason}", row.1),
        (None, _) if hook.runs_program() => rows.push(("box", "none".to_owned())),
        _ => {}
    }
    let declared = rows.iter().position(|(name, _)| *name == "enabled").map_or(rows.len(), |at| at + 1);
    rows.insert(declared, ("trust", state.trusted().to_owned()));
    let covered = covered(hook).into_iter().map(|(agent, names)| format!("{agent}: {}", names.join(", ")));
    let covered = covered.collect::<Vec<_>>().join("\n");
    let names_tools = hook.events.iter().any(|kind| kind.call_fields().is_some());
    if !covered.is_empty() {
        rows.push(("covers", covered));
    } else if names_tools && !matches!(hook.matcher, Matcher::Any) && !hook.matcher.text().starts_with("mcp__") {
        let of_server =
            if hook.matcher.text().contains(['_', '-', ':', '/']) { "; at most tools of servers" } else { "" };
        rows.push(("covers", format!("no tool that is known of any agent{of_server}")));
    }
    rows.extend(state.digest.clone().map(|digest| ("digest", digest)));
    if let Some(group) = &hook.spec.group {
        let common = state.group_digest.clone().map(|digest| format!(" as {digest}")).unwrap_or_default();
        rows.push(("group", format!("{group}, approved together{common}")));
    }
    rows.extend(unbound_limit(hook).map(|why| ("limits", why.to_owned())));
    rows.extend(state.unready.clone().map(|why| ("problem", why)));
    table::pairs(&rows)
}
