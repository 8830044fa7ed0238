//! Gemini CLI.
//!
//! It reads `decision` and `reason`, and neither `permissionDecision` nor `updatedInput`.
//! `hookSpecificOutput.tool_input` replaces the arguments as a whole. A question would make a run without a terminal
//! hang, so we never ask.

use std::time::Duration;

use super::Part::{Args, Event, Reason, ToolMode, Tools, Word};
use super::forms::{HALT, NESTED_CONTEXT, NOTIFICATION, SYSTEM_MESSAGE};
use super::home::{Form, Home, LineShell, MatcherForm, OwnFolder, SettingsSyntax, WrittenForm, WrittenHooks};
use super::{AgentDialect, AgentEvent, Capabilities, Field, FieldForm, McpName, Way, field, formed};
use crate::event::EventKind;
use crate::protected::row;

pub(super) static GEMINI: AgentDialect = AgentDialect {
    name: "gemini",
    title: "Gemini CLI",
    checked: "0.61.0, the client itself at BeforeTool; else its source of 2026-08",
    event_fields: &["hook_event_name"],
    events: EVENTS,
    fields: &[],
    mcp: McpName::Gemini,
    own_tools: &[],
    replaces_args: true,
    stamps_events: true,
    timeout_unit: Duration::from_millis(1),
    timeout: Some(Duration::from_mins(1)),
    refusal: Way::Status,
    nothing: "",
    protected: row(
        "Gemini CLI",
        &[
            ".gemini/settings.json",
            ".gemini/trustedFolders.json",
            ".gemini/trusted_hooks.json",
            ".gemini/hooks",
            ".gemini/extensions",
        ],
        &[".gemini/settings.json", ".gemini/hooks", ".gemini/extensions"],
    ),
    refusing: |_, status| status >= 2,
    home: Home {
        programs: &["gemini"],
        user: ".gemini/settings.json",
        variable: None,
        project: Some(".gemini/settings.json"),
        also_reads: &[],
        form: Form::Groups,
        shell: LineShell::Bash,
        events: &[
            "SessionStart",
            "SessionEnd",
            "BeforeAgent",
            "AfterAgent",
            "BeforeModel",
            "BeforeToolSelection",
            "BeforeTool",
            "AfterTool",
            "Notification",
        ],
        taste: SettingsSyntax { comments: true, ..SettingsSyntax::PLAIN },
        review: Some("Gemini runs hooks only in folders that you trust there"),
        project_variables: &["GEMINI_PROJECT_DIR", "GEMINI_CWD", "CLAUDE_PROJECT_DIR"],
        written: WrittenHooks {
            user: &[".gemini/settings.json"],
            project: &[".gemini/settings.json"],
            form: WrittenForm::Groups,
            matcher: MatcherForm::Within,
            folder: OwnFolder::Unused,
        },
    },
};

const DENY: Way = Way::Json(&[("decision", Word("deny")), ("reason", Reason)]);
const TOOL_INPUT: Way =
    Way::Json(&[("hookSpecificOutput.tool_input", Args), ("hookSpecificOutput.hookEventName", Event)]);
const TOOL_CONFIG: Way = Way::Json(&[
    ("hookSpecificOutput.toolConfig.allowedFunctionNames", Tools),
    ("hookSpecificOutput.toolConfig.mode", ToolMode),
    ("hookSpecificOutput.hookEventName", Event),
]);

const TOLD: Capabilities = Capabilities { message: SYSTEM_MESSAGE, ..Capabilities::NONE };
const BLOCKS: Capabilities = Capabilities { block: DENY, halt: HALT, ..TOLD };

const TOOL: &[Field] = &[field("tool_input", "args")];
/// A result may say that the call failed.
const TOOL_DONE: &[Field] = &[
    field("tool_input", "args"),
    field("tool_response", "result"),
    formed("tool_response.error", "error", FieldForm::MessageOf),
];
const TURN: &[Field] = &[field("prompt_response", "response"), formed("stop_hook_active", "attempt", FieldForm::Again)];
const ASKED: &[Field] = &[field("llm_request.model", "model"), field("llm_request.messages", "messages")];
const SAID: &[Field] = &[
    formed("llm_response", "response", FieldForm::Candidate),
    field("llm_response.usageMetadata.totalTokenCount", "tokens"),
];

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("SessionStart", EventKind::SessionStart, Capabilities { context: NESTED_CONTEXT, ..TOLD }),
    AgentEvent::new("SessionEnd", EventKind::SessionEnd, TOLD),
    AgentEvent::new("BeforeAgent", EventKind::BeforeAgent, Capabilities { context: NESTED_CONTEXT, ..BLOCKS }),
    AgentEvent::new("AfterAgent", EventKind::AfterAgent, BLOCKS).with(&[TURN]),
    AgentEvent::new("BeforeModel", EventKind::BeforeModel, BLOCKS).with(&[ASKED]),
    AgentEvent::new(
        "BeforeToolSelection",
        EventKind::BeforeToolSelection,
        // A refused selection becomes a selection without tools.
        Capabilities { tools: TOOL_CONFIG, block: TOOL_CONFIG, ..Capabilities::NONE },
    )
    .with(&[ASKED]),
    AgentEvent::new("AfterModel", EventKind::AfterModel, BLOCKS).with(&[SAID]),
    AgentEvent::new("BeforeTool", EventKind::BeforeTool, Capabilities { modify: TOOL_INPUT, ..BLOCKS }).with(&[TOOL]),
    AgentEvent::new("AfterTool", EventKind::AfterTool, Capabilities { context: NESTED_CONTEXT, ..BLOCKS })
        .with(&[TOOL_DONE]),
    AgentEvent::new("PreCompress", EventKind::PreCompress, TOLD),
    AgentEvent::new("Notification", EventKind::Notification, TOLD).with(&[NOTIFICATION]),
];
