//! Which hooks stand together in the list.

use ollm_protocol::{EventKind, Hook};

use crate::command::hook::HookState;

/// The categories, in the order of the list.
const ORDER: [&str; 11] = [
    "Session",
    "Agent",
    "Model",
    "Tool",
    "Compression",
    "Notifications",
    "Files",
    "Git",
    "User triggered",
    "Custom",
    "None",
];

/// The category of a hook, by the first of its events.
pub(super) fn category(hook: &Hook) -> &'static str {
    match hook.events.first() {
        Some(EventKind::SessionStart | EventKind::SessionEnd) => "Session",
        Some(EventKind::BeforeAgent | EventKind::AfterAgent | EventKind::SubagentStart | EventKind::SubagentStop) => {
            "Agent"
        }
        Some(EventKind::BeforeModel | EventKind::AfterModel) => "Model",
        Some(
            EventKind::BeforeToolSelection | EventKind::BeforeTool | EventKind::AfterTool | EventKind::ApprovalRequest,
        ) => "Tool",
        Some(EventKind::PreCompress | EventKind::PostCompress | EventKind::ContextOverflow) => "Compression",
        Some(EventKind::Notification | EventKind::Error) => "Notifications",
        Some(EventKind::FileCreated | EventKind::FileEdited | EventKind::FileDeleted) => "Files",
        Some(EventKind::GitCommit) => "Git",
        Some(EventKind::UserTriggered) => "User triggered",
        Some(_) => "Custom",
        None => "None",
    }
}

/// Where the category of a hook stands.
pub(super) fn order(hook: &Hook) -> usize {
    let category = category(hook);
    ORDER.iter().position(|one| *one == category).unwrap_or(ORDER.len())
}

/// Whether a hook is switched on.
pub(super) fn is_on(hook: &Hook, state: &HookState) -> bool {
    hook.spec.enabled && state.off.is_none()
}
