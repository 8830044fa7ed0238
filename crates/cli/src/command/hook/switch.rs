//! `ollm hook enable` and `disable`: what a person switches, for good or for a while, overrides the hook's file.

use std::time::{Duration, SystemTime};

use ollm_app::{App, AppContext, refuse_agents, switch_name};
use ollm_protocol::{Code, Hook, Source, units};
use ollm_store::{Switch, one_line, set_switches};
use serde_json::json;

use super::declare::required;
use crate::arguments::hook::SwitchArguments;
use crate::error::{Failure, OK};
use crate::output::Output;

pub(super) fn run(
    on: bool,
    arguments: &SwitchArguments,
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    refuse_agents(context, "switch hooks on or off")?;
    let limit = arguments.limit.as_deref().map(limit).transpose()?;
    let app = App::load(context)?;
    let hooks = arguments.ids.iter().map(|id| app.hook(id)).collect::<Result<Vec<_>, _>>()?;
    if let Some(hook) = hooks.iter().find(|hook| hook.spec.source == Source::Policy) {
        return Err(required(hook));
    }
    if let Some(guard) = hooks.iter().find(|hook| hook.spec.source == Source::Builtin) {
        let message = format!(
            "{} is a built-in guard; only `hooks.guards` in your own configuration says which are on",
            guard.id()
        );
        return Err(Failure::usage(message)
            .hint("`ollm config get hooks.guards` shows them, `ollm config set hooks.guards` names others"));
    }
    let now = SystemTime::now();
    let until = limit.and_then(|limit| now.checked_add(limit));
    let changes: Vec<_> =
        hooks.iter().map(|hook| (switch_name(&hook.spec), needed(hook, Switch { on, until }))).collect();
    set_switches(&context.switches(), &changes, now)
        .map_err(|error| Failure::new(Code::NotWritten, format!("the switch cannot be kept: {error}")))?;
    let state = if on { "on" } else { "off" };
    let span = limit.map(|limit| format!(" for {}", units::approximately(limit))).unwrap_or_default();
    for hook in hooks {
        output.changed(json!({"hook": hook.id(), "enabled": on}));
        output.line(&one_line(&format!("{} is {state}{span}", hook.id())))?;
    }
    Ok(OK)
}

/// The switch that must be kept; none where the hook's file says the same for good.
fn needed(hook: &Hook, switch: Switch) -> Option<Switch> {
    let is_default = switch.on && switch.until.is_none() && hook.spec.enabled && hook.off.is_some();
    (!is_default).then_some(switch)
}

fn limit(text: &str) -> Result<Duration, Failure> {
    units::duration(text).filter(|limit| *limit >= Duration::from_secs(1)).ok_or_else(|| {
        Failure::new(Code::InvalidValue, format!("--for {text}: that is no time"))
            .hint("a time is a number and a unit: 90s, 10m, 2h, 7d")
    })
}
