//! Answers that more than one agent reads. That it does is declared, and was checked, agent by agent.

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
pub(super) const DECISION_BLOCK: Way = Way::Json(&[("decision", Word("block")), ("reason", Reason)]);
pub(super) const HALT: Way = Way::Json(&[("continue", Flag(false)), ("stopReason", Reason)]);
/// The end of the turn, and a refusal beside it, for events that happen all the same where only the turn is ended.
pub(super) const HALT_BLOCKED: Way =
    Way::Json(&[("continue", Flag(false)), ("stopReason", Reason), ("decision", Word("block")), ("reason", Reason)]);
pub(super) const SYSTEM_MESSAGE: Way = Way::Json(&[("systemMessage", Text)]);

/// A call of a tool, as most agents spell it.
pub(super) const TOOL: &[Field] = &[field("tool_input", "args"), field("tool_use_id", "call_id")];
/// A call of a tool that came back.
pub(super) const TOOL_DONE: &[Field] =
    &[field("tool_input", "args"), field("tool_use_id", "call_id"), field("tool_response", "result")];
/// A call that a person is asked about.
pub(super) const PERMISSION: &[Field] = &[field("tool_name", "operation"), field("tool_input", "details")];
/// The end of a turn.
pub(super) const STOP: &[Field] =
    &[field("last_assistant_message", "response"), formed("stop_hook_active", "attempt", FieldForm::Again)];
pub(super) const NOTIFICATION: &[Field] = &[field("notification_type", "event_type")];
pub(super) const COMPACTED: &[Field] = &[field("compact_summary", "summary")];
pub(super) const FILE: &[Field] = &[field("file_path", "path")];
