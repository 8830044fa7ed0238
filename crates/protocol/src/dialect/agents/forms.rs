//! Answer formats that several agents read. Each agent's declaration names those that were checked for it.

use super::Part::{Args, Event, Flag, Reason, Result, Text, Word};
use super::{Field, FieldForm, Way, field, formed};

pub(super) const NESTED_ALLOW: Way =
    Way::Json(&[("hookSpecificOutput.permissionDecision", Word("allow")), ("hookSpecificOutput.hookEventName", Event)]);
pub(super) const NESTED_ASK: Way = Way::Json(&[
    ("hookSpecificOutput.permissionDecision", Word("ask")),
    ("hookSpecificOutput.permissionDecisionReason", Reason),
    ("hookSpecificOutput.hookEventName", Event),
]);
pub(super) const NESTED_DENY: Way = Way::Json(&[
    ("hookSpecificOutput.permissionDecision", Word("deny")),
    ("hookSpecificOutput.permissionDecisionReason", Reason),
    ("hookSpecificOutput.hookEventName", Event),
]);
pub(super) const NESTED_CONTEXT: Way =
    Way::Json(&[("hookSpecificOutput.additionalContext", Text), ("hookSpecificOutput.hookEventName", Event)]);
pub(super) const UPDATED_INPUT: Way =
    Way::Json(&[("hookSpecificOutput.updatedInput", Args), ("hookSpecificOutput.hookEventName", Event)]);
pub(super) const UPDATED_OUTPUT: Way =
    Way::Json(&[("hookSpecificOutput.updatedToolOutput", Result), ("hookSpecificOutput.hookEventName", Event)]);
pub(super) const NESTED_BEHAVIOR_ALLOW: Way =
    Way::Json(&[("hookSpecificOutput.decision.behavior", Word("allow")), ("hookSpecificOutput.hookEventName", Event)]);
pub(super) const NESTED_BEHAVIOR_DENY: Way = Way::Json(&[
    ("hookSpecificOutput.decision.behavior", Word("deny")),
    ("hookSpecificOutput.decision.message", Reason),
    ("hookSpecificOutput.hookEventName", Event),
]);
pub(super) const NESTED_BEHAVIOR_MODIFY: Way = Way::Json(&[
    ("hookSpecificOutput.decision.updatedInput", Args),
    ("hookSpecificOutput.decision.behavior", Word("allow")),
    ("hookSpecificOutput.hookEventName", Event),
]);
pub(super) const NESTED_BEHAVIOR_HALT: Way = Way::Json(&[
    ("hookSpecificOutput.decision.interrupt", Flag(true)),
    ("hookSpecificOutput.decision.behavior", Word("deny")),
    ("hookSpecificOutput.decision.message", Reason),
    ("hookSpecificOutput.hookEventName", Event),
]);
pub(super) const DECISION_BLOCK: Way = Way::Json(&[("decision", Word("block")), ("reason", Reason)]);
pub(super) const HALT: Way = Way::Json(&[("continue", Flag(false)), ("stopReason", Reason)]);
/// Ends the turn and also refuses, for events that would otherwise still happen.
pub(super) const HALT_BLOCKED: Way =
    Way::Json(&[("continue", Flag(false)), ("stopReason", Reason), ("decision", Word("block")), ("reason", Reason)]);
pub(super) const SYSTEM_MESSAGE: Way = Way::Json(&[("systemMessage", Text)]);

/// The fields of a tool call, as most agents spell them.
pub(super) const TOOL: &[Field] = &[field("tool_input", "args"), field("tool_use_id", "call_id")];
/// The fields of a finished tool call.
pub(super) const TOOL_DONE: &[Field] =
    &[field("tool_input", "args"), field("tool_use_id", "call_id"), field("tool_response", "result")];
/// The fields of a call that a person is asked about.
pub(super) const PERMISSION: &[Field] = &[field("tool_name", "operation"), field("tool_input", "details")];
/// The fields at the end of a turn.
pub(super) const STOP: &[Field] =
    &[field("last_assistant_message", "response"), formed("stop_hook_active", "attempt", FieldForm::Again)];
pub(super) const NOTIFICATION: &[Field] = &[field("notification_type", "event_type")];
pub(super) const COMPACTED: &[Field] = &[field("compact_summary", "summary")];
pub(super) const FILE: &[Field] = &[field("file_path", "path")];
