//! Cursor.
//!
//! It reads flat answers with `permission`, at status 0 only. A call fires a general event and an event for its kind of
//! tool. Only the events for shell and MCP tools can ask.

use std::time::Duration;

use super::Part::{Args, Flag, Reason, Text, Word};
use super::home::{
    FlatEntry, ForeignSettings, Form, Home, LineShell, MatcherForm, OwnFolder, SettingsSyntax, WrittenForm,
    WrittenHooks,
};
use super::{AgentDialect, AgentEvent, Capabilities, Field, FieldForm, McpName, Pick, Way, field, formed};
use crate::event::EventKind;
use crate::protected::row;

pub(super) static CURSOR: AgentDialect = AgentDialect {
    name: "cursor",
    title: "Cursor",
    checked: "descriptions of 3.9; not the client itself",
    event_fields: &["hook_event_name"],
    events: EVENTS,
    fields: &[
        field("session_id", "session_id"),
        field("conversation_id", "session_id"),
        field("cwd", "cwd"),
        formed("workspace_roots", "cwd", FieldForm::First),
    ],
    mcp: McpName::Colon,
    // This tool also changes parts of files; there is no other tool for that.
    own_tools: &[("Write", "file_writer")],
    replaces_args: false,
    stamps_events: false,
    timeout_unit: Duration::from_secs(1),
    timeout: None,
    refusal: Way::Status,
    // With `failClosed`, an empty answer refuses.
    nothing: "{}\n",
    protected: row(
        "Cursor",
        &[".cursor/hooks.json", ".cursor/hooks", ".cursor/mcp.json", ".cursor/cli-config.json"],
        &[".cursor/hooks.json", ".cursor/hooks", ".cursor/mcp.json", ".cursor/cli.json"],
    ),
    refusing: |_, status| status == 2,
    home: Home {
        programs: &["cursor", "cursor-agent"],
        user: ".cursor/hooks.json",
        variable: None,
        project: Some(".cursor/hooks.json"),
        also_reads: &[ForeignSettings {
            agent: "claude",
            user: true,
            project: true,
            when: Some("where its setting for third-party hooks is on"),
        }],
        form: Form::Flat(FlatEntry {
            version: true,
            typed: false,
            command: "command",
            timeout: Some("timeout"),
            shows: None,
        }),
        // With the events for single tools, it would ask us twice.
        shell: LineShell::Sh,
        events: &[
            "sessionStart",
            "sessionEnd",
            "beforeSubmitPrompt",
            "preToolUse",
            "postToolUse",
            "postToolUseFailure",
            "afterFileEdit",
            "subagentStart",
            "subagentStop",
            "preCompact",
            "stop",
        ],
        taste: SettingsSyntax::ANYTHING,
        review: None,
        project_variables: &["CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
        written: WrittenHooks {
            user: &[".cursor/hooks.json"],
            project: &[".cursor/hooks.json"],
            form: WrittenForm::Flat,
            matcher: MatcherForm::Within,
            folder: OwnFolder::Runs,
        },
    },
};

const ALLOW: Way = Way::Json(&[("permission", Word("allow"))]);
const ASK: Way = Way::Json(&[("permission", Word("ask")), ("user_message", Reason)]);
const DENY: Way = Way::Json(&[("permission", Word("deny")), ("user_message", Reason)]);
const REWRITE: Way = Way::Json(&[("updated_input", Args)]);
const NO_PROMPT: Way = Way::Json(&[("continue", Flag(false)), ("user_message", Reason)]);
const FOLLOW_UP: Way = Way::Json(&[("followup_message", Reason)]);
const CONTEXT: Way = Way::Json(&[("additional_context", Text)]);
const MESSAGE: Way = Way::Json(&[("user_message", Text)]);

const TOLD: Capabilities = Capabilities::NONE;
const GATE: Capabilities = Capabilities { allow: ALLOW, block: DENY, ..TOLD };
const ASKING_GATE: Capabilities = Capabilities { ask: ASK, ..GATE };
const GOES_ON: Capabilities = Capabilities { block: FOLLOW_UP, ..TOLD };

const TOOL: &[Field] = &[field("tool_input", "args"), field("tool_use_id", "call_id")];
const TOOL_DONE: &[Field] = &[
    field("tool_input", "args"),
    field("tool_use_id", "call_id"),
    formed("tool_output", "result", FieldForm::JsonText),
];
const TOOL_FAILED: &[Field] =
    &[field("tool_input", "args"), field("tool_use_id", "call_id"), field("error_message", "error")];
const SHELL: &[Field] = &[field("command", "args.command")];
const SHELL_DONE: &[Field] = &[field("command", "args.command"), field("output", "result")];
const MCP: &[Field] = &[field("tool_name", "mcp.tool"), formed("tool_input", "args", FieldForm::JsonText)];
const MCP_DONE: &[Field] = &[
    field("tool_name", "mcp.tool"),
    formed("tool_input", "args", FieldForm::JsonText),
    formed("result_json", "result", FieldForm::JsonText),
];
const READ: &[Field] = &[field("file_path", "args.file_path")];
const FILE: &[Field] = &[field("file_path", "path")];
const SUBAGENT: &[Field] = &[field("subagent_id", "agent_id"), field("subagent_type", "agent_type")];
const TURN: &[Field] = &[field("loop_count", "attempt")];
const SAID: &[Field] = &[field("text", "response")];

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("sessionStart", EventKind::SessionStart, Capabilities { context: CONTEXT, ..TOLD }),
    AgentEvent::new("sessionEnd", EventKind::SessionEnd, TOLD),
    AgentEvent::new("beforeSubmitPrompt", EventKind::BeforeAgent, Capabilities { block: NO_PROMPT, ..TOLD }),
    // `ask` is accepted here without effect.
    AgentEvent::new("preToolUse", EventKind::BeforeTool, Capabilities { modify: REWRITE, ..GATE }).with(&[TOOL]),
    AgentEvent::new("beforeShellExecution", EventKind::BeforeTool, ASKING_GATE)
        .with(&[SHELL])
        .only(Pick::Tool("Shell")),
    AgentEvent::new("beforeMCPExecution", EventKind::BeforeTool, ASKING_GATE).with(&[MCP]).only(Pick::Mcp),
    AgentEvent::new("beforeReadFile", EventKind::BeforeTool, GATE).with(&[READ]).only(Pick::Tool("Read")),
    AgentEvent::new("beforeTabFileRead", EventKind::BeforeTool, GATE).with(&[READ]).only(Pick::Tool("Read")),
    AgentEvent::new("postToolUseFailure", EventKind::AfterTool, TOLD).with(&[TOOL_FAILED]).only(Pick::With("error")),
    AgentEvent::new("postToolUse", EventKind::AfterTool, Capabilities { context: CONTEXT, ..TOLD }).with(&[TOOL_DONE]),
    AgentEvent::new("afterShellExecution", EventKind::AfterTool, TOLD).with(&[SHELL_DONE]).only(Pick::Tool("Shell")),
    AgentEvent::new("afterMCPExecution", EventKind::AfterTool, TOLD).with(&[MCP_DONE]).only(Pick::Mcp),
    AgentEvent::new("afterFileEdit", EventKind::FileEdited, TOLD).with(&[FILE]),
    AgentEvent::new("afterTabFileEdit", EventKind::FileEdited, TOLD).with(&[FILE]),
    AgentEvent::new("subagentStart", EventKind::SubagentStart, GATE).with(&[SUBAGENT]),
    AgentEvent::new("subagentStop", EventKind::SubagentStop, GOES_ON).with(&[SUBAGENT]),
    AgentEvent::new("preCompact", EventKind::PreCompress, Capabilities { message: MESSAGE, ..TOLD }),
    AgentEvent::new("stop", EventKind::AfterAgent, GOES_ON).with(&[TURN]),
    AgentEvent::new("afterAgentResponse", EventKind::AfterModel, TOLD).with(&[SAID]),
    AgentEvent::new("afterAgentThought", EventKind::Custom, TOLD),
    AgentEvent::new("workspaceOpen", EventKind::Custom, TOLD),
];
