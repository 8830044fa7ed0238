//! GitHub Copilot CLI and cloud agent.
//!
//! The spelling of the event's name in its settings selects the payload. PascalCase gives snake_case keys and the
//! event's name. camelCase gives camelCase keys and no name, so the registered command must name the event. Flat
//! answers work in both. Exit status 2 refuses, but its reason is lost.

use std::time::Duration;

use super::Part::{Args, Flag, Reason, ResultText, Text, Word};
use super::forms::{DECISION_BLOCK, PERMISSION};
use super::home::{
    FlatEntry, ForeignSettings, Form, Home, LineShell, MatcherForm, OwnFolder, SettingsSyntax, WrittenForm,
    WrittenHooks,
};
use super::{AgentDialect, AgentEvent, Capabilities, Field, FieldForm, McpName, NameField, Pick, Way, field, formed};
use crate::event::EventKind;
use crate::protected::row;

pub(super) static COPILOT: AgentDialect = AgentDialect {
    name: "copilot",
    title: "GitHub Copilot",
    checked: "1.0.102, the client itself before, for and after tools; else its reference",
    event_fields: &["hook_event_name", "hookName"],
    events: EVENTS,
    fields: &[],
    mcp: McpName::Joined("-"),
    own_tools: &[],
    replaces_args: true,
    stamps_events: true,
    timeout_unit: Duration::from_secs(1),
    timeout: Some(Duration::from_secs(30)),
    refusal: Way::Status,
    nothing: "",
    protected: row(
        "Copilot, VS Code",
        &[".copilot/hooks", ".copilot/settings.json", ".copilot/config.json", ".copilot/mcp-config.json"],
        &[".github/hooks", ".github/copilot/settings.json", ".github/copilot/settings.local.json", ".vscode/mcp.json"],
    ),
    refusing: |kind, status| status == 2 || (kind == EventKind::BeforeTool && status != 0),
    home: Home {
        programs: &["copilot"],
        user: ".copilot/hooks/ollm.json",
        variable: Some("COPILOT_HOME"),
        project: Some(".github/hooks/ollm.json"),
        also_reads: &[ForeignSettings {
            agent: "claude",
            user: false,
            project: true,
            when: Some("in folders that you trust there"),
        }],
        form: Form::Flat(FlatEntry {
            version: true,
            typed: true,
            command: "bash",
            timeout: Some("timeoutSec"),
            shows: None,
        }),
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
        taste: SettingsSyntax::PLAIN,
        review: Some("Copilot runs hooks of a project only in folders that you trust there"),
        project_variables: &["COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
        written: WrittenHooks {
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
const RESULT: Way =
    Way::Json(&[("modifiedResult.textResultForLlm", ResultText), ("modifiedResult.resultType", Word("success"))]);
const PERMIT: Way = Way::Json(&[("behavior", Word("allow"))]);
const FORBID: Way = Way::Json(&[("behavior", Word("deny")), ("message", Reason)]);
const INTERRUPT: Way = Way::Json(&[("interrupt", Flag(true)), ("behavior", Word("deny")), ("message", Reason)]);

const TOLD: Capabilities = Capabilities::NONE;
const CALL: Capabilities = Capabilities { allow: ALLOW, ask: ASK, block: DENY, modify: REWRITE, ..TOLD };
const DONE: Capabilities = Capabilities { context: CONTEXT, result: RESULT, ..TOLD };
const INFORMS: Capabilities = Capabilities { context: CONTEXT, ..TOLD };
const CONSENT: Capabilities = Capabilities { allow: PERMIT, block: FORBID, halt: INTERRUPT, ..TOLD };
const GOES_ON: Capabilities = Capabilities { block: DECISION_BLOCK, ..TOLD };

/// The fields of every camelCase payload.
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

/// The vocabulary of its PascalCase events: Claude Code's tool names with Copilot's arguments.
const AS_CLAUDE: &str = "copilot as claude";

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("SessionStart", EventKind::SessionStart, INFORMS),
    AgentEvent::new("sessionStart", EventKind::SessionStart, INFORMS).named(NameField::None).with(&[CAMEL]),
    AgentEvent::new("SessionEnd", EventKind::SessionEnd, TOLD),
    AgentEvent::new("sessionEnd", EventKind::SessionEnd, TOLD).named(NameField::None).with(&[CAMEL]),
    // A command's answer to a prompt is ignored.
    AgentEvent::new("UserPromptSubmit", EventKind::BeforeAgent, TOLD),
    AgentEvent::new("userPromptSubmitted", EventKind::BeforeAgent, TOLD).named(NameField::None).with(&[CAMEL]),
    AgentEvent::new("userPromptTransformed", EventKind::Custom, TOLD).named(NameField::None).with(&[CAMEL]),
    AgentEvent::new("PreToolUse", EventKind::BeforeTool, CALL).with(&[TOOL]).naming_tools_like(AS_CLAUDE),
    AgentEvent::new("preToolUse", EventKind::BeforeTool, CALL).named(NameField::None).with(&[CAMEL, CAMEL_TOOL]),
    // The client sends this event in camelCase, whichever name is registered.
    AgentEvent::new("PermissionRequest", EventKind::ApprovalRequest, CONSENT)
        .named(NameField::Other("hookName"))
        .with(&[CAMEL, CAMEL_PERMISSION])
        .only(Pick::Shaped("toolName")),
    AgentEvent::new("PermissionRequest", EventKind::ApprovalRequest, CONSENT)
        .with(&[PERMISSION])
        .naming_tools_like(AS_CLAUDE),
    AgentEvent::new("permissionRequest", EventKind::ApprovalRequest, CONSENT)
        .named(NameField::Other("hookName"))
        .with(&[CAMEL, CAMEL_PERMISSION]),
    AgentEvent::new("PostToolUseFailure", EventKind::AfterTool, INFORMS)
        .with(&[TOOL])
        .only(Pick::With("error"))
        .naming_tools_like(AS_CLAUDE),
    AgentEvent::new("postToolUseFailure", EventKind::AfterTool, INFORMS)
        .named(NameField::None)
        .with(&[CAMEL, CAMEL_TOOL])
        .only(Pick::With("error")),
    AgentEvent::new("PostToolUse", EventKind::AfterTool, DONE).with(&[TOOL, RESULT_FIELD]).naming_tools_like(AS_CLAUDE),
    AgentEvent::new("postToolUse", EventKind::AfterTool, DONE).named(NameField::None).with(&[
        CAMEL,
        CAMEL_TOOL,
        CAMEL_RESULT,
    ]),
    AgentEvent::new("Stop", EventKind::AfterAgent, GOES_ON).with(&[AGAIN]),
    AgentEvent::new("agentStop", EventKind::AfterAgent, GOES_ON).named(NameField::None).with(&[CAMEL, AGAIN]),
    AgentEvent::new("subagentStart", EventKind::SubagentStart, INFORMS)
        .named(NameField::None)
        .with(&[CAMEL, CAMEL_AGENT]),
    AgentEvent::new("SubagentStop", EventKind::SubagentStop, GOES_ON).with(&[AGAIN]),
    AgentEvent::new("subagentStop", EventKind::SubagentStop, GOES_ON)
        .named(NameField::None)
        .with(&[CAMEL, CAMEL_AGENT]),
    AgentEvent::new("PreCompact", EventKind::PreCompress, TOLD),
    AgentEvent::new("preCompact", EventKind::PreCompress, TOLD).named(NameField::None).with(&[CAMEL]),
    AgentEvent::new("ErrorOccurred", EventKind::Error, TOLD).with(&[ERROR]),
    AgentEvent::new("errorOccurred", EventKind::Error, TOLD).named(NameField::None).with(&[CAMEL, CAMEL_ERROR]),
    AgentEvent::new("notification", EventKind::Notification, INFORMS).with(&[CAMEL, NOTE]),
];
