//! Cline.
//!
//! It ignores exit statuses: only `{"cancel": true}` refuses, and the model gets no reason. The command line client has
//! other event names (`tool_call`) than the extension (`PreToolUse`). It waits only for `tool_call`, and lets hooks
//! replace the arguments there.

use std::time::Duration;

use super::Part::{Args, Flag, Reason, Text};
use super::home::{
    Commands, Form, Home, LineShell, MatcherForm, OwnFile, OwnFolder, SettingsSyntax, WrittenForm, WrittenHooks,
};
use super::{AgentDialect, AgentEvent, Capabilities, Field, FieldForm, McpName, Way, field, formed};
use crate::event::EventKind;
use crate::protected::row;

pub(super) static CLINE: AgentDialect = AgentDialect {
    name: "cline",
    title: "Cline",
    checked: "3.0.65, the command line client itself before a tool; else its documentation",
    event_fields: &["hookName"],
    events: EVENTS,
    fields: &[field("taskId", "session_id"), formed("workspaceRoots", "cwd", FieldForm::First)],
    mcp: McpName::Arguments("use_mcp_tool"),
    own_tools: &[],
    replaces_args: false,
    stamps_events: false,
    timeout_unit: Duration::from_secs(1),
    // The time that a call waits for its hooks. A hook's file cannot change it.
    timeout: Some(Duration::from_mins(2)),
    refusal: CANCEL,
    nothing: "",
    protected: row("Cline", &["Documents/Cline/Hooks", ".cline"], &[".clinerules/hooks"]),
    refusing: |_, status| status == 2,
    home: Home {
        programs: &["cline"],
        user: "Documents/Cline/Hooks",
        variable: None,
        project: Some(".clinerules/hooks"),
        also_reads: &[],
        form: Form::Own(files),
        shell: LineShell::Sh,
        events: &[
            "TaskStart",
            "TaskResume",
            "TaskCancel",
            "TaskComplete",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PreCompact",
            "TaskError",
            "SessionShutdown",
        ],
        taste: SettingsSyntax::ANYTHING,
        review: Some("Cline runs hooks only where its setting for hooks is on"),
        project_variables: &[],
        written: WrittenHooks {
            user: &["Documents/Cline/Hooks/*"],
            project: &[".clinerules/hooks/*"],
            form: WrittenForm::Programs,
            matcher: MatcherForm::NamesOrWithin,
            folder: OwnFolder::Unused,
        },
    },
};

const CANCEL: Way = Way::Json(&[("cancel", Flag(true)), ("errorMessage", Reason)]);
const CONTEXT: Way = Way::Json(&[("contextModification", Text)]);
const OVERRIDE: Way = Way::Json(&[("overrideInput", Args)]);

const TOLD: Capabilities = Capabilities::NONE;
const CANCELS: Capabilities = Capabilities { block: CANCEL, context: CONTEXT, ..TOLD };

const OLD_TOOL: &[Field] = &[field("preToolUse.toolName", "tool_name"), field("preToolUse.parameters", "args")];
const TOOL: &[Field] =
    &[field("tool_call.name", "tool_name"), field("tool_call.input", "args"), field("tool_call.id", "call_id")];
const OLD_DONE: &[Field] = &[
    field("postToolUse.toolName", "tool_name"),
    field("postToolUse.parameters", "args"),
    field("postToolUse.result", "result"),
    field("postToolUse.executionTimeMs", "execution_time"),
];
const DONE: &[Field] = &[
    field("tool_result.name", "tool_name"),
    field("tool_result.input", "args"),
    field("tool_result.output", "result"),
    field("tool_result.id", "call_id"),
    field("tool_result.error", "error"),
];
const PROMPT: &[Field] = &[field("userPromptSubmit.prompt", "prompt")];
const TURN: &[Field] = &[field("turn.outputText", "response")];

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("agent_start", EventKind::SessionStart, TOLD).asked_as("TaskStart"),
    AgentEvent::new("agent_resume", EventKind::SessionStart, TOLD).asked_as("TaskResume"),
    AgentEvent::new("TaskStart", EventKind::SessionStart, CANCELS),
    AgentEvent::new("TaskResume", EventKind::SessionStart, CANCELS),
    AgentEvent::new("session_shutdown", EventKind::SessionEnd, TOLD).asked_as("SessionShutdown"),
    AgentEvent::new("SessionShutdown", EventKind::SessionEnd, TOLD),
    AgentEvent::new("agent_abort", EventKind::SessionEnd, TOLD).asked_as("TaskCancel"),
    AgentEvent::new("TaskCancel", EventKind::SessionEnd, TOLD),
    AgentEvent::new("prompt_submit", EventKind::BeforeAgent, TOLD).asked_as("UserPromptSubmit").with(&[PROMPT]),
    AgentEvent::new("UserPromptSubmit", EventKind::BeforeAgent, CANCELS).with(&[PROMPT]),
    AgentEvent::new("tool_call", EventKind::BeforeTool, Capabilities { modify: OVERRIDE, ..CANCELS })
        .asked_as("PreToolUse")
        .with(&[TOOL, OLD_TOOL]),
    AgentEvent::new("PreToolUse", EventKind::BeforeTool, CANCELS).with(&[OLD_TOOL]),
    AgentEvent::new("tool_result", EventKind::AfterTool, TOLD).asked_as("PostToolUse").with(&[DONE, OLD_DONE]),
    AgentEvent::new("PostToolUse", EventKind::AfterTool, CANCELS).with(&[OLD_DONE]),
    AgentEvent::new("agent_end", EventKind::AfterAgent, TOLD).asked_as("TaskComplete").with(&[TURN]),
    AgentEvent::new("TaskComplete", EventKind::AfterAgent, TOLD),
    AgentEvent::new("agent_error", EventKind::Error, TOLD).asked_as("TaskError"),
    AgentEvent::new("TaskError", EventKind::Error, TOLD),
    AgentEvent::new("pre_compact", EventKind::PreCompress, TOLD).asked_as("PreCompact"),
    AgentEvent::new("PreCompact", EventKind::PreCompress, CANCELS),
];

/// Writes one program per event.
fn files(commands: &Commands<'_>) -> Vec<OwnFile> {
    let file = |event: &&str| OwnFile {
        executable: true,
        ..OwnFile::new(event, format!("#!/bin/sh\n{}\n", (commands.line)(event)))
    };
    commands.events.iter().map(file).collect()
}
