//! Switches declared things off: by a person's choice, or because the asking agent runs them itself.

use std::time::SystemTime;

use ollm_catalog::{Problem, Severity};
use ollm_protocol::dialect::agent_named;
use ollm_protocol::{Code, Hook, HookSpec, Layer, Remedy, Source, units};
use ollm_store::{Switch, Switches, Trouble};

use crate::app_context::AppContext;

/// Switches off a hook in a file of the asking agent, so that it does not run twice.
pub(super) fn left_to_agent(mut hook: Hook, asked_by: Option<&str>) -> Hook {
    if let Some(agent) = hook.spec.read_from.filter(|agent| Some(*agent) == asked_by).and_then(agent_named) {
        hook.off = Some(format!("{} runs it by itself, from {}", agent.title, hook.spec.origin.file.display()));
    }
    hook
}

/// Applies a person's switch to a hook, if the switch still holds.
pub(super) fn switched(mut hook: Hook, switches: &Switches, context: &AppContext) -> Hook {
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

/// The name of a hook's switch. For a project's hook it contains the project or the folder of its extension, because
/// another project may have a hook with the same id.
pub fn switch_name(hook: &HookSpec) -> String {
    let place = hook.tree.as_ref().or(hook.project.as_ref()).filter(|_| hook.layer == Layer::Workspace);
    match place {
        Some(place) => format!("hook:{}", HookSpec::id_in(place, hook.own_id())),
        None => format!("hook:{}", hook.own_id()),
    }
}

/// The problem with the file of switches.
pub fn unreliable(context: &AppContext, trouble: &Trouble) -> Problem {
    let message = format!("nothing is switched on or off: {trouble}");
    Problem::of_file(Code::UnreadableFile, Severity::Error, &context.switches(), message)
}
