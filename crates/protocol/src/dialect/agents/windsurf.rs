//! Windsurf (Cascade hooks).
//!
//! The exit status is the whole answer. Status 2 refuses an operation that has not happened yet, with standard error as
//! the reason. Standard output is only shown. There are events for some kinds of tools, and none for the rest.

use std::time::Duration;

use super::home::{
    FlatEntry, Form, Home, LineShell, MatcherForm, OwnFolder, SettingsSyntax, WrittenForm, WrittenHooks,
};
use super::{AgentDialect, AgentEvent, Capabilities, Field, McpName, Pick, Way, field};
use crate::event::EventKind;
use crate::protected::row;

pub(super) static WINDSURF: AgentDialect = AgentDialect {
    name: "windsurf",
    title: "Windsurf",
    checked: "its documentation; not the client itself",
    event_fields: &["agent_action_name"],
    events: EVENTS,
    fields: &[field("trajectory_id", "session_id")],
    mcp: McpName::Canonical,
    own_tools: &[],
    replaces_args: false,
    stamps_events: false,
    timeout_unit: Duration::from_secs(1),
    timeout: None,
    refusal: Way::Status,
    nothing: "",
    protected: row(
        "Windsurf",
        &[".codeium/windsurf/hooks.json", ".codeium/windsurf/mcp_config.json"],
        &[".windsurf/hooks.json", ".windsurf/hooks"],
    ),
    refusing: |_, status| status == 2,
    home: Home {
        programs: &["windsurf"],
        user: ".codeium/windsurf/hooks.json",
        variable: None,
        project: Some(".windsurf/hooks.json"),
        also_reads: &[],
        form: Form::Flat(FlatEntry {
            version: false,
            typed: false,
            command: "command",
            timeout: None,
            shows: Some("show_output"),
        }),
        shell: LineShell::Sh,
        events: &[
            "pre_read_code",
            "post_read_code",
            "pre_write_code",
            "post_write_code",
            "pre_run_command",
            "post_run_command",
            "pre_mcp_tool_use",
            "post_mcp_tool_use",
            "pre_user_prompt",
            "post_cascade_response",
        ],
        taste: SettingsSyntax::ANYTHING,
        review: None,
        project_variables: &[],
        written: WrittenHooks {
            user: &[".codeium/windsurf/hooks.json"],
            project: &[".windsurf/hooks.json"],
            form: WrittenForm::Flat,
            matcher: MatcherForm::NamesOrWithin,
            folder: OwnFolder::Unused,
        },
    },
};

const TOLD: Capabilities = Capabilities { message: Way::Text, ..Capabilities::NONE };
const BLOCKS: Capabilities = Capabilities { block: Way::Status, ..TOLD };

const COMMAND: &[Field] = &[field("tool_info.command_line", "args.command_line"), field("tool_info.cwd", "cwd")];
const OUTPUT: &[Field] = &[field("tool_info.output", "result")];
const READ: &[Field] = &[field("tool_info.file_path", "args.file_path")];
const WRITE: &[Field] = &[
    field("tool_info.file_path", "args.file_path"),
    field("tool_info.edits", "args.edits"),
    field("tool_info.content", "args.content"),
];
const MCP: &[Field] = &[
    field("tool_info.mcp_server_name", "mcp.server"),
    field("tool_info.mcp_tool_name", "mcp.tool"),
    field("tool_info.mcp_tool_arguments", "args"),
];
const MCP_RESULT: &[Field] = &[field("tool_info.mcp_result", "result")];
const PROMPT: &[Field] = &[field("tool_info.user_prompt", "prompt")];
const RESPONSE: &[Field] = &[field("tool_info.response", "response")];

const RUN: Pick = Pick::Tool("run_command");
const READS: Pick = Pick::Tool("read_code");
const WRITES: Pick = Pick::Tool("write_code");

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("pre_run_command", EventKind::BeforeTool, BLOCKS).with(&[COMMAND]).only(RUN),
    AgentEvent::new("pre_write_code", EventKind::BeforeTool, BLOCKS).with(&[WRITE]).only(WRITES),
    AgentEvent::new("pre_read_code", EventKind::BeforeTool, BLOCKS).with(&[READ]).only(READS),
    AgentEvent::new("pre_mcp_tool_use", EventKind::BeforeTool, BLOCKS).with(&[MCP]).only(Pick::Mcp),
    AgentEvent::new("post_run_command", EventKind::AfterTool, TOLD).with(&[COMMAND, OUTPUT]).only(RUN),
    AgentEvent::new("post_write_code", EventKind::AfterTool, TOLD).with(&[WRITE]).only(WRITES),
    AgentEvent::new("post_read_code", EventKind::AfterTool, TOLD).with(&[READ]).only(READS),
    AgentEvent::new("post_mcp_tool_use", EventKind::AfterTool, TOLD).with(&[MCP, MCP_RESULT]).only(Pick::Mcp),
    AgentEvent::new("pre_user_prompt", EventKind::BeforeAgent, BLOCKS).with(&[PROMPT]),
    AgentEvent::new("post_cascade_response", EventKind::AfterAgent, TOLD).with(&[RESPONSE]),
    AgentEvent::new("post_cascade_response_with_transcript", EventKind::Custom, TOLD),
    AgentEvent::new("post_setup_worktree", EventKind::Custom, TOLD),
];
