//! opencode.
//!
//! It has no command hooks. A small plugin starts us for each of its hooks and sends
//! `{"hook": NAME, "directory": …, "input": …, "output": …}`: the hook's name and its two arguments. At exit status 2,
//! the plugin throws with standard error as the reason. The plugin assigns `output` of an answer to the hook's own
//! `output`. For its `event` hook, the name is the event's type and `input` is its properties.

use std::time::Duration;

use serde_json::{Value, json};

use super::Part::{Args, Result, Word};
use super::home::{
    Commands, Form, Home, LineShell, MatcherForm, OwnFile, OwnFolder, SettingsSyntax, WrittenForm, WrittenHooks,
};
use super::{AgentDialect, AgentEvent, Capabilities, Field, FieldForm, McpName, Way, field, formed};
use crate::event::EventKind;
use crate::protected::row;

pub(super) static OPENCODE: AgentDialect = AgentDialect {
    name: "opencode",
    title: "opencode",
    checked: "1.18.33, the client itself before a tool and a prompt, through a plugin; else its declarations",
    event_fields: &["hook"],
    events: EVENTS,
    fields: &[field("directory", "cwd"), field("input.sessionID", "session_id")],
    mcp: McpName::Joined("_"),
    own_tools: OWN_TOOLS,
    replaces_args: false,
    stamps_events: false,
    timeout_unit: Duration::from_secs(1),
    timeout: None,
    refusal: Way::Status,
    nothing: "",
    protected: row("opencode", &[".config/opencode"], &[".opencode", "opencode.json", "opencode.jsonc"]),
    refusing: |_, status| status == 2,
    home: Home {
        programs: &["opencode"],
        user: ".config/opencode/plugins",
        variable: None,
        project: Some(".opencode/plugins"),
        also_reads: &[],
        form: Form::Own(files),
        shell: LineShell::Sh,
        events: &[
            "tool.execute.before",
            "tool.execute.after",
            "permission.ask",
            "permission.asked",
            "chat.message",
            "experimental.session.compacting",
            "session.created",
            "session.deleted",
            "session.idle",
            "session.compacted",
            "session.error",
            "file.edited",
        ],
        taste: SettingsSyntax::ANYTHING,
        review: None,
        project_variables: &[],
        written: WrittenHooks {
            user: &[],
            project: &[],
            form: WrittenForm::Code,
            matcher: MatcherForm::NamesOrWithin,
            folder: OwnFolder::Unused,
        },
    },
};

const OWN_TOOLS: &[(&str, &str)] = &[
    ("plan_enter", "plan_enter"),
    ("plan_exit", "plan_exit"),
    ("list_mcp_resources", "list_mcp_resources"),
    ("read_mcp_resource", "read_mcp_resource"),
];

const ASSIGN_ARGS: Way = Way::Json(&[("output.args", Args)]);
const ASSIGN_RESULT: Way = Way::Json(&[("output.output", Result)]);
const ALLOW: Way = Way::Json(&[("output.status", Word("allow"))]);
const DENY: Way = Way::Json(&[("output.status", Word("deny"))]);

const TOLD: Capabilities = Capabilities::NONE;

const TOOL: &[Field] =
    &[field("input.tool", "tool_name"), field("input.callID", "call_id"), field("output.args", "args")];
const TOOL_DONE: &[Field] = &[
    field("input.tool", "tool_name"),
    field("input.callID", "call_id"),
    field("input.args", "args"),
    field("output.output", "result"),
    // For a server's tool, there are only the parts that the server sent.
    formed("output.content", "result", FieldForm::PartsIfNone),
];
const PERMISSION: &[Field] = &[field("input.type", "operation"), field("input.metadata", "details")];
const PERMISSION_ASKED: &[Field] = &[field("input.permission", "operation"), field("input.metadata", "details")];
const PROMPT: &[Field] = &[formed("output.parts", "prompt", FieldForm::Parts)];
const SAID: &[Field] = &[field("output.text", "response")];
const FILE: &[Field] = &[field("input.file", "path")];
const ERROR: &[Field] = &[field("input.error", "error")];

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("session.created", EventKind::SessionStart, TOLD),
    AgentEvent::new("session.deleted", EventKind::SessionEnd, TOLD),
    // The person only learns that something went wrong.
    AgentEvent::new("chat.message", EventKind::BeforeAgent, Capabilities { block: Way::Status, ..TOLD })
        .with(&[PROMPT]),
    AgentEvent::new("session.idle", EventKind::AfterAgent, TOLD),
    AgentEvent::new("chat.params", EventKind::BeforeModel, TOLD),
    AgentEvent::new("chat.headers", EventKind::Custom, TOLD),
    AgentEvent::new("experimental.text.complete", EventKind::AfterModel, TOLD).with(&[SAID]),
    AgentEvent::new(
        "tool.execute.before",
        EventKind::BeforeTool,
        Capabilities { block: Way::Status, modify: ASSIGN_ARGS, ..TOLD },
    )
    .with(&[TOOL]),
    AgentEvent::new("tool.execute.after", EventKind::AfterTool, Capabilities { result: ASSIGN_RESULT, ..TOLD })
        .with(&[TOOL_DONE]),
    AgentEvent::new("tool.definition", EventKind::Custom, TOLD),
    AgentEvent::new("permission.ask", EventKind::ApprovalRequest, Capabilities { allow: ALLOW, block: DENY, ..TOLD })
        .with(&[PERMISSION]),
    // Newer versions send this event instead of the question above.
    AgentEvent::new("permission.asked", EventKind::ApprovalRequest, TOLD).with(&[PERMISSION_ASKED]),
    AgentEvent::new("command.execute.before", EventKind::Custom, TOLD),
    AgentEvent::new("shell.env", EventKind::Custom, TOLD),
    AgentEvent::new("experimental.chat.messages.transform", EventKind::Custom, TOLD),
    AgentEvent::new("experimental.chat.system.transform", EventKind::Custom, TOLD),
    AgentEvent::new("experimental.session.compacting", EventKind::PreCompress, TOLD),
    AgentEvent::new("session.compacted", EventKind::PostCompress, TOLD),
    AgentEvent::new("session.error", EventKind::Error, TOLD).with(&[ERROR]),
    AgentEvent::new("file.edited", EventKind::FileEdited, TOLD).with(&[FILE]),
];

/// Writes a plugin in JavaScript that starts us, because this agent runs no commands itself.
fn files(commands: &Commands<'_>) -> Vec<OwnFile> {
    let is_told = |event: &&&str| ["session.", "file.", "permission.asked"].iter().any(|told| event.starts_with(told));
    let told: Vec<&&str> = commands.events.iter().filter(is_told).collect();
    let asked: Vec<&&str> = commands.events.iter().filter(|event| !is_told(event)).collect();
    let text = include_str!("opencode.js")
        .replace("\"__LINE__\"", &Value::from((commands.line)("")).to_string())
        .replace("[\"__ASKED__\"]", &json!(asked).to_string())
        .replace("[\"__TOLD__\"]", &json!(told).to_string());
    vec![OwnFile::new("ollm.js", text)]
}
