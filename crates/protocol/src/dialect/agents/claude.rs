//! Claude Code.
//!
//! Before a tool, a refusal is a nested `deny`; elsewhere it is `decision: "block"`. `continue: false` alone lets the
//! tool run and then ends the turn. So a halt before a tool also denies the tool.

use std::time::Duration;

use super::Part::{Event, Flag, Reason, Word};
use super::forms::{
    COMPACTED, DECISION_BLOCK, FILE, HALT, HALT_BLOCKED, NESTED_ALLOW, NESTED_ASK, NESTED_BEHAVIOR_ALLOW,
    NESTED_BEHAVIOR_DENY, NESTED_BEHAVIOR_HALT, NESTED_BEHAVIOR_MODIFY, NESTED_CONTEXT, NESTED_DENY, NOTIFICATION,
    PERMISSION, STOP, SYSTEM_MESSAGE, TOOL, TOOL_DONE, UPDATED_INPUT, UPDATED_OUTPUT,
};
use super::home::{Form, Home, LineShell, MatcherForm, OwnFolder, SettingsSyntax, WrittenForm, WrittenHooks};
use super::{AgentDialect, AgentEvent, Capabilities, Field, FieldForm, McpName, Pick, Way, formed};
use crate::event::EventKind;
use crate::protected::row;

pub(super) static CLAUDE: AgentDialect = AgentDialect {
    name: "claude",
    title: "Claude Code",
    checked: "2.1.328, the client itself at PreToolUse; else its reference of 2026-08",
    event_fields: &["hook_event_name"],
    events: EVENTS,
    fields: &[],
    mcp: McpName::Canonical,
    own_tools: &[],
    replaces_args: true,
    stamps_events: false,
    timeout_unit: Duration::from_secs(1),
    timeout: Some(Duration::from_mins(10)),
    refusal: Way::Status,
    nothing: "",
    protected: row(
        "Claude Code",
        &[".claude/settings.json", ".claude/settings.local.json", ".claude/hooks", ".claude/plugins", ".claude.json"],
        &[".claude/settings.json", ".claude/settings.local.json", ".claude/hooks", ".claude/plugins", ".mcp.json"],
    ),
    refusing: |_, status| status == 2,
    home: Home {
        programs: &["claude"],
        user: ".claude/settings.json",
        variable: Some("CLAUDE_CONFIG_DIR"),
        project: Some(".claude/settings.json"),
        also_reads: &[],
        form: Form::Groups,
        shell: LineShell::Sh,
        events: &[
            "SessionStart",
            "SessionEnd",
            "UserPromptSubmit",
            "PreToolUse",
            "PermissionRequest",
            "PostToolUse",
            "PostToolUseFailure",
            "Notification",
            "PreCompact",
            "PostCompact",
            "SubagentStart",
            "SubagentStop",
            "Stop",
        ],
        taste: SettingsSyntax::PLAIN_OR_MARKED,
        review: None,
        project_variables: &["CLAUDE_PROJECT_DIR"],
        written: WrittenHooks {
            user: &[".claude/settings.json"],
            project: &[".claude/settings.local.json", ".claude/settings.json"],
            form: WrittenForm::Groups,
            matcher: MatcherForm::NamesOrWithin,
            folder: OwnFolder::Unused,
        },
    },
};

const HALT_CALL: Way = Way::Json(&[
    ("continue", Flag(false)),
    ("stopReason", Reason),
    ("hookSpecificOutput.permissionDecision", Word("deny")),
    ("hookSpecificOutput.permissionDecisionReason", Reason),
    ("hookSpecificOutput.hookEventName", Event),
]);

/// Events at which the person gets messages; that is possible at every event.
const TOLD: Capabilities = Capabilities { message: SYSTEM_MESSAGE, ..Capabilities::NONE };
const CONTEXT: Capabilities = Capabilities { context: NESTED_CONTEXT, ..TOLD };
/// Events that happen in spite of `continue: false`, as a call does.
const BLOCKS: Capabilities = Capabilities { block: DECISION_BLOCK, halt: HALT_BLOCKED, ..TOLD };
/// Events after the fact, and the end of a turn, which would go on if it were also blocked.
const ENDS: Capabilities = Capabilities { block: DECISION_BLOCK, halt: HALT, ..TOLD };
/// Events that only the exit status can refuse.
const BY_STATUS: Capabilities = Capabilities { block: Way::Status, halt: HALT, ..TOLD };

const CALL: Capabilities = Capabilities {
    allow: NESTED_ALLOW,
    ask: NESTED_ASK,
    block: NESTED_DENY,
    halt: HALT_CALL,
    modify: UPDATED_INPUT,
    context: NESTED_CONTEXT,
    ..TOLD
};

const ERROR: &[Field] = &[formed("error", "error", FieldForm::Message)];

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("SessionStart", EventKind::SessionStart, CONTEXT).reading_text(),
    AgentEvent::new("Setup", EventKind::Custom, CONTEXT),
    AgentEvent::new("UserPromptSubmit", EventKind::BeforeAgent, Capabilities { context: NESTED_CONTEXT, ..BLOCKS })
        .within(30_000)
        .reading_text(),
    AgentEvent::new("UserPromptExpansion", EventKind::Custom, Capabilities { context: NESTED_CONTEXT, ..BLOCKS }),
    AgentEvent::new("PreToolUse", EventKind::BeforeTool, CALL).with(&[TOOL]),
    AgentEvent::new(
        "PermissionRequest",
        EventKind::ApprovalRequest,
        Capabilities {
            allow: NESTED_BEHAVIOR_ALLOW,
            block: NESTED_BEHAVIOR_DENY,
            halt: NESTED_BEHAVIOR_HALT,
            modify: NESTED_BEHAVIOR_MODIFY,
            ..TOLD
        },
    )
    .with(&[PERMISSION]),
    AgentEvent::new("PermissionDenied", EventKind::Custom, TOLD),
    AgentEvent::new("PostToolUseFailure", EventKind::AfterTool, CONTEXT).with(&[TOOL]).only(Pick::With("error")),
    AgentEvent::new(
        "PostToolUse",
        EventKind::AfterTool,
        Capabilities { context: NESTED_CONTEXT, result: UPDATED_OUTPUT, ..ENDS },
    )
    .with(&[TOOL_DONE]),
    AgentEvent::new("PostToolBatch", EventKind::Custom, Capabilities { context: NESTED_CONTEXT, ..ENDS }),
    AgentEvent::new("Notification", EventKind::Notification, TOLD).with(&[NOTIFICATION]),
    AgentEvent::new("MessageDisplay", EventKind::Custom, TOLD).within(10_000),
    AgentEvent::new("SubagentStart", EventKind::SubagentStart, CONTEXT),
    AgentEvent::new("SubagentStop", EventKind::SubagentStop, ENDS).with(&[STOP]),
    AgentEvent::new("TaskCreated", EventKind::Custom, BLOCKS),
    AgentEvent::new("TaskCompleted", EventKind::Custom, BY_STATUS),
    // Context added here would make the agent go on unasked.
    AgentEvent::new("Stop", EventKind::AfterAgent, ENDS).with(&[STOP]),
    AgentEvent::new("StopFailure", EventKind::Error, TOLD).with(&[ERROR]),
    AgentEvent::new("TeammateIdle", EventKind::Custom, BY_STATUS),
    AgentEvent::new("InstructionsLoaded", EventKind::Custom, TOLD),
    AgentEvent::new("ConfigChange", EventKind::Custom, BLOCKS),
    AgentEvent::new("CwdChanged", EventKind::Custom, TOLD),
    AgentEvent::new("DirectoryAdded", EventKind::Custom, TOLD),
    AgentEvent::new("FileChanged", EventKind::FileEdited, TOLD).with(&[FILE]).only(Pick::Marked("event", "change")),
    AgentEvent::new("FileChanged", EventKind::FileCreated, TOLD).with(&[FILE]).only(Pick::Marked("event", "add")),
    AgentEvent::new("FileChanged", EventKind::FileDeleted, TOLD).with(&[FILE]).only(Pick::Marked("event", "unlink")),
    // The answer is a folder's path; any exit but a clean one makes it fail.
    AgentEvent::new("WorktreeCreate", EventKind::Custom, Capabilities { block: Way::Status, ..Capabilities::NONE }),
    AgentEvent::new("WorktreeRemove", EventKind::Custom, TOLD),
    AgentEvent::new("PreCompact", EventKind::PreCompress, BLOCKS),
    AgentEvent::new("PostCompact", EventKind::PostCompress, TOLD).with(&[COMPACTED]),
    AgentEvent::new("Elicitation", EventKind::Custom, Capabilities { block: Way::Status, ..TOLD }),
    AgentEvent::new("ElicitationResult", EventKind::Custom, Capabilities { block: Way::Status, ..TOLD }),
    AgentEvent::new("PreModelSwitch", EventKind::Custom, TOLD),
    AgentEvent::new("PostModelSwitch", EventKind::Custom, TOLD),
    AgentEvent::new("SessionEnd", EventKind::SessionEnd, TOLD).within(1500),
];
