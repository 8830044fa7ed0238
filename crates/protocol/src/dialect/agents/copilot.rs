//! GitHub Copilot CLI and cloud agent.
//!
//! The spelling of the event's name in its settings chooses the payload: PascalCase brings snake_case keys and names the event,
//! camelCase brings camelCase keys and does not, so there the registered command must name it. Flat answers count in both.
//! Exit status 2 refuses, but its reason is lost.

use std::time::Duration;

use super::Part::{Args, Flag, Reason, Result, Text, Word};
use super::forms::{DECISION_BLOCK, PERMISSION};
use super::home::{FlatEntry, Foreign, Form, Home, LineShell, MatcherForm, OwnFolder, Taste, Written, WrittenForm};
use super::{AgentDialect, AgentEvent, Capabilities, Field, FieldForm, McpName, Pick, Way, field, formed};
use crate::event::EventKind;

pub(super) static COPILOT: AgentDialect = AgentDialect {
    name: "copilot",
    title: "GitHub Copilot",
    checked: "1.0.102, the client itself before a tool; else its reference",
    event_fields: &["hook_event_name", "hookName"],
    events: EVENTS,
    fields: &[],
    mcp: McpName::Joined('-'),
    own_tools: &[],
    stamps_events: true,
    timeout_unit: Duration::from_secs(1),
    timeout: Some(Duration::from_secs(30)),
    refusal: Way::Status,
    nothing: "",
    refusing: |kind, status| status == 2 || (kind == EventKind::BeforeTool && status != 0),
    home: Home {
        programs: &["copilot"],
        user: ".copilot/hooks/ollm.json",
        variable: Some("COPILOT_HOME"),
        project: Some(".github/hooks/ollm.json"),
        also_reads: &[Foreign {
            agent: "claude",
            user: false,
            project: true,
            when: Some("in folders that you trust there"),
        }],
        form: Form::Flat(FlatEntry { version: true, typed: true, command: "bash", timeout: Some("timeoutSec") }),
        shell: LineShell::Sh,
        events: &[
            "SessionStart",
            "SessionEnd",
            "UserPromptSubmit",
            "PreToolUse",
            "PermissionRequest",
            "PostToolUse",
            "PostToolUseFailure",
            "PreCompact",
            "ErrorOccurred",
            "SubagentStop",
            "Stop",
        ],
        taste: Taste::PLAIN,
        review: Some("Copilot runs hooks of a project only in folders that you trust there"),
        project_variables: &["COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
        written: Written {
            user: &[".copilot/hooks/*.json", ".copilot/settings.json"],
            project: &[".github/hooks/*.json", ".github/copilot/settings.local.json", ".github/copilot/settings.json"],
            form: WrittenForm::Flat,
            matcher: MatcherForm::Whole,
            folder: OwnFolder::Unused,
        },
    },
};

const ALLOW: Way = Way::Json(&[("permissionDecision", Word("allow"))]);
const ASK: Way = Way::Json(&[("permissionDecision", Word("ask")), ("permissionDecisionReason", Reason)]);
const DENY: Way = Way::Json(&[("permissionDecision", Word("deny")), ("permissionDecisionReason", Reason)]);
const REWRITE: Way = Way::Json(&[("modifiedArgs", Args)]);
const CONTEXT: Way = Way::Json(&[("additionalContext", Text)]);
const RESULT: Way = Way::Json(&[("modifiedResult", Result)]);
const PERMIT: Way = Way::Json(&[("behavior", Word("allow"))]);
const FORBID: Way = Way::Json(&[("behavior", Word("deny")), ("message", Reason)]);
const INTERRUPT: Way = Way::Json(&[("interrupt", Flag(true)), ("behavior", Word("deny")), ("message", Reason)]);

const TOLD: Capabilities = Capabilities::NONE;
const CALL: Capabilities = Capabilities { allow: ALLOW, ask: ASK, block: DENY, modify: REWRITE, ..TOLD };
const DONE: Capabilities = Capabilities { context: CONTEXT, result: RESULT, ..TOLD };
const INFORMS: Capabilities = Capabilities { context: CONTEXT, ..TOLD };
const CONSENT: Capabilities = Capabilities { allow: PERMIT, block: FORBID, halt: INTERRUPT, ..TOLD };
const GOES_ON: Capabilities = Capabilities { block: DECISION_BLOCK, ..TOLD };

/// What every camelCase payload has.
const CAMEL: &[Field] = &[field("sessionId", "session_id"), formed("timestamp", "timestamp", FieldForm::Millis)];
/// The client does not number its calls.
const TOOL: &[Field] = &[field("tool_input", "args")];
const CAMEL_TOOL: &[Field] = &[field("toolName", "tool_name"), field("toolArgs", "args")];
const CAMEL_RESULT: &[Field] = &[field("toolResult", "result")];
const CAMEL_PERMISSION: &[Field] = &[field("toolName", "operation"), field("toolInput", "details")];
const CAMEL_AGENT: &[Field] = &[field("agentId", "agent_id"), field("agentType", "agent_type")];
const CAMEL_ERROR: &[Field] = &[field("errorContext", "operation")];
const RESULT_FIELD: &[Field] = &[field("tool_result", "result")];
const ERROR: &[Field] = &[field("error_context", "operation")];
const NOTE: &[Field] = &[field("notification_type", "event_type")];
const AGAIN: &[Field] = &[formed("stop_hook_active", "attempt", FieldForm::Again)];

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("SessionStart", EventKind::SessionStart, INFORMS),
    AgentEvent::new("sessionStart", EventKind::SessionStart, INFORMS).with(&[CAMEL]),
    AgentEvent::new("SessionEnd", EventKind::SessionEnd, TOLD),
    AgentEvent::new("sessionEnd", EventKind::SessionEnd, TOLD).with(&[CAMEL]),
    // What a command answers to a prompt is dropped.
    AgentEvent::new("UserPromptSubmit", EventKind::BeforeAgent, TOLD),
    AgentEvent::new("userPromptSubmitted", EventKind::BeforeAgent, TOLD).with(&[CAMEL]),
    AgentEvent::new("userPromptTransformed", EventKind::Custom, TOLD).with(&[CAMEL]),
    AgentEvent::new("PreToolUse", EventKind::BeforeTool, CALL).with(&[TOOL]).naming_tools_like("claude"),
    AgentEvent::new("preToolUse", EventKind::BeforeTool, CALL).with(&[CAMEL, CAMEL_TOOL]),
    // The client sends this one event in camelCase under either name.
    AgentEvent::new("PermissionRequest", EventKind::ApprovalRequest, CONSENT)
        .with(&[CAMEL, CAMEL_PERMISSION])
        .only(Pick::Shaped("toolName")),
    AgentEvent::new("PermissionRequest", EventKind::ApprovalRequest, CONSENT)
        .with(&[PERMISSION])
        .naming_tools_like("claude"),
    AgentEvent::new("permissionRequest", EventKind::ApprovalRequest, CONSENT).with(&[CAMEL, CAMEL_PERMISSION]),
    AgentEvent::new("PostToolUseFailure", EventKind::AfterTool, INFORMS).with(&[TOOL]).only(Pick::With("error")),
    AgentEvent::new("postToolUseFailure", EventKind::AfterTool, INFORMS)
        .with(&[CAMEL, CAMEL_TOOL])
        .only(Pick::With("error")),
    AgentEvent::new("PostToolUse", EventKind::AfterTool, DONE).with(&[TOOL, RESULT_FIELD]),
    AgentEvent::new("postToolUse", EventKind::AfterTool, DONE).with(&[CAMEL, CAMEL_TOOL, CAMEL_RESULT]),
    AgentEvent::new("Stop", EventKind::AfterAgent, GOES_ON).with(&[AGAIN]),
    AgentEvent::new("agentStop", EventKind::AfterAgent, GOES_ON).with(&[CAMEL, AGAIN]),
    AgentEvent::new("subagentStart", EventKind::SubagentStart, INFORMS).with(&[CAMEL, CAMEL_AGENT]),
    AgentEvent::new("SubagentStop", EventKind::SubagentStop, GOES_ON).with(&[AGAIN]),
    AgentEvent::new("subagentStop", EventKind::SubagentStop, GOES_ON).with(&[CAMEL, CAMEL_AGENT]),
    AgentEvent::new("PreCompact", EventKind::PreCompress, TOLD),
    AgentEvent::new("preCompact", EventKind::PreCompress, TOLD).with(&[CAMEL]),
    AgentEvent::new("ErrorOccurred", EventKind::Error, TOLD).with(&[ERROR]),
    AgentEvent::new("errorOccurred", EventKind::Error, TOLD).with(&[CAMEL, CAMEL_ERROR]),
    AgentEvent::new("notification", EventKind::Notification, INFORMS).with(&[CAMEL, NOTE]),
];
