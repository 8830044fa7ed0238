//! Qwen Code.
//!
//! The events have Claude Code's names, the tools have Gemini CLI's. An `allow` overrides the refusals of other hooks,
//! so we never send one. `updatedInput` changes arguments only where the agent asks for permission.

use std::time::Duration;

use super::Part::{Event, Reason, Word};
use super::forms::{
    COMPACTED, DECISION_BLOCK, HALT, HALT_BLOCKED, NESTED_ASK, NESTED_BEHAVIOR_ALLOW, NESTED_BEHAVIOR_DENY,
    NESTED_BEHAVIOR_HALT, NESTED_BEHAVIOR_MODIFY, NESTED_CONTEXT, NOTIFICATION, PERMISSION, STOP, SYSTEM_MESSAGE, TOOL,
    TOOL_DONE,
};
use super::home::{Form, Home, LineShell, MatcherForm, OwnFolder, SettingsSyntax, USUAL, WrittenForm, WrittenHooks};
use super::{AgentDialect, AgentEvent, Capabilities, Field, FieldForm, McpName, Pick, Way, formed};
use crate::event::EventKind;
use crate::protected::row;

pub(super) static QWEN: AgentDialect = AgentDialect {
    name: "qwen",
    title: "Qwen Code",
    checked: "0.24.4, the client itself at PreToolUse; else its bundle and documentation",
    event_fields: &["hook_event_name"],
    events: EVENTS,
    fields: &[],
    mcp: McpName::Canonical,
    own_tools: &[],
    // It takes a number from 1000 on as milliseconds.
    replaces_args: false,
    stamps_events: false,
    timeout_unit: Duration::from_secs(1),
    timeout: Some(Duration::from_mins(1)),
    refusal: Way::Status,
    nothing: "",
    protected: row(
        "Qwen Code",
        &[".qwen/settings.json", ".qwen/trustedFolders.json", ".qwen/hooks", ".qwen/extensions"],
        &[".qwen/settings.json", ".qwen/hooks", ".qwen/extensions"],
    ),
    refusing: |_, status| status == 2,
    home: Home {
        programs: &["qwen"],
        user: ".qwen/settings.json",
        variable: None,
        project: Some(".qwen/settings.json"),
        also_reads: &[],
        form: Form::Groups,
        shell: LineShell::Sh,
        events: USUAL,
        taste: SettingsSyntax::ANYTHING,
        review: None,
        project_variables: &["QWEN_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
        written: WrittenHooks {
            user: &[".qwen/settings.json"],
            project: &[".qwen/settings.json"],
            form: WrittenForm::Groups,
            matcher: MatcherForm::Within,
            folder: OwnFolder::Unused,
        },
    },
};

const DENY: Way = Way::Json(&[
    ("hookSpecificOutput.permissionDecision", Word("deny")),
    ("hookSpecificOutput.permissionDecisionReason", Reason),
    ("hookSpecificOutput.hookEventName", Event),
    ("decision", Word("deny")),
    ("reason", Reason),
]);

const TOLD: Capabilities = Capabilities { message: SYSTEM_MESSAGE, ..Capabilities::NONE };
const CONTEXT: Capabilities = Capabilities { context: NESTED_CONTEXT, ..TOLD };
/// In tests, `continue: false` alone only stopped a call.
const BLOCKS: Capabilities = Capabilities { block: DECISION_BLOCK, halt: HALT_BLOCKED, ..TOLD };
/// The end of a turn, which would go on if it were also blocked.
const ENDS: Capabilities = Capabilities { block: DECISION_BLOCK, halt: HALT, ..TOLD };
const CALL: Capabilities = Capabilities { ask: NESTED_ASK, block: DENY, halt: HALT, context: NESTED_CONTEXT, ..TOLD };

const ERROR: &[Field] = &[formed("error", "error", FieldForm::Message)];

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("SessionStart", EventKind::SessionStart, CONTEXT).reading_text(),
    AgentEvent::new("SessionEnd", EventKind::SessionEnd, TOLD),
    AgentEvent::new("SessionDelete", EventKind::Custom, TOLD),
    AgentEvent::new("UserPromptSubmit", EventKind::BeforeAgent, Capabilities { context: NESTED_CONTEXT, ..BLOCKS })
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
    AgentEvent::new("PostToolUse", EventKind::AfterTool, Capabilities { context: NESTED_CONTEXT, ..BLOCKS })
        .with(&[TOOL_DONE]),
    AgentEvent::new("PostToolBatch", EventKind::Custom, Capabilities { context: NESTED_CONTEXT, ..BLOCKS }),
    AgentEvent::new("Notification", EventKind::Notification, TOLD).with(&[NOTIFICATION]),
    AgentEvent::new("MessageDisplay", EventKind::Custom, TOLD),
    AgentEvent::new("Stop", EventKind::AfterAgent, ENDS).with(&[STOP]),
    AgentEvent::new("StopFailure", EventKind::Error, TOLD).with(&[ERROR]),
    AgentEvent::new("SubagentStart", EventKind::SubagentStart, CONTEXT),
    AgentEvent::new("SubagentStop", EventKind::SubagentStop, ENDS).with(&[STOP]),
    AgentEvent::new("PreCompact", EventKind::PreCompress, BLOCKS),
    AgentEvent::new("PostCompact", EventKind::PostCompress, TOLD).with(&[COMPACTED]),
    AgentEvent::new("TodoCreated", EventKind::Custom, BLOCKS),
    AgentEvent::new("TodoCompleted", EventKind::Custom, BLOCKS),
    AgentEvent::new("InstructionsLoaded", EventKind::Custom, TOLD),
];
