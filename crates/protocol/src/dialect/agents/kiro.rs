//! Kiro, and Amazon Q Developer CLI before it.
//!
//! It reads no JSON answers. Exit status 2 refuses with standard error as the reason. At the start of a session or
//! turn, plain text is context. The events of CLI 2.x have camelCase names, those of v3 PascalCase names.

use std::time::Duration;

use serde_json::{Value, json};

use super::home::{
    Commands, Form, Home, LineShell, MatcherForm, OwnFile, OwnFolder, SettingsSyntax, WAIT, WrittenForm, WrittenHooks,
};
use super::{AgentDialect, AgentEvent, Capabilities, Field, McpName, Way, field};
use crate::event::EventKind;
use crate::protected::row;

pub(super) static KIRO: AgentDialect = AgentDialect {
    name: "kiro",
    title: "Kiro",
    checked: "its documentation; not the client itself",
    event_fields: &["hook_event_name"],
    events: EVENTS,
    fields: &[],
    mcp: McpName::At,
    own_tools: &[],
    replaces_args: false,
    stamps_events: false,
    timeout_unit: Duration::from_secs(1),
    timeout: Some(Duration::from_secs(30)),
    refusal: Way::Status,
    nothing: "",
    protected: row(
        "Kiro",
        &[".kiro/hooks", ".kiro/settings", ".kiro/agents"],
        &[".kiro/hooks", ".kiro/settings", ".kiro/agents"],
    ),
    refusing: |_, status| status == 2,
    home: Home {
        programs: &["kiro-cli", "kiro"],
        user: ".kiro/hooks",
        variable: None,
        project: Some(".kiro/hooks"),
        also_reads: &[],
        form: Form::Own(files),
        shell: LineShell::Sh,
        events: &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"],
        taste: SettingsSyntax::ANYTHING,
        review: Some(
            "Kiro's CLI reads these hooks from version 3 on; for an older one, put their commands into the hooks of its agent",
        ),
        project_variables: &[],
        written: WrittenHooks {
            user: &[".kiro/hooks/*.json", ".kiro/agents/*.json"],
            project: &[".kiro/hooks/*.json", ".kiro/agents/*.json"],
            form: WrittenForm::Triggers,
            matcher: MatcherForm::Within,
            folder: OwnFolder::Unused,
        },
    },
};

const TOLD: Capabilities = Capabilities::NONE;
const CONTEXT: Capabilities = Capabilities { context: Way::Text, ..TOLD };
const BLOCKS: Capabilities = Capabilities { block: Way::Status, ..TOLD };

const TOOL: &[Field] = &[field("tool_input", "args")];
const TOOL_DONE: &[Field] = &[field("tool_input", "args"), field("tool_response", "result")];

const V3: u64 = 60_000;

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("agentSpawn", EventKind::SessionStart, CONTEXT).reading_text(),
    AgentEvent::new("userPromptSubmit", EventKind::BeforeAgent, CONTEXT).reading_text(),
    AgentEvent::new("preToolUse", EventKind::BeforeTool, BLOCKS).with(&[TOOL]),
    AgentEvent::new("postToolUse", EventKind::AfterTool, TOLD).with(&[TOOL_DONE]),
    AgentEvent::new("stop", EventKind::AfterAgent, TOLD),
    AgentEvent::new("SessionStart", EventKind::SessionStart, CONTEXT).within(V3).reading_text(),
    AgentEvent::new("UserPromptSubmit", EventKind::BeforeAgent, Capabilities { block: Way::Status, ..CONTEXT })
        .within(V3)
        .reading_text(),
    AgentEvent::new("PreToolUse", EventKind::BeforeTool, BLOCKS).with(&[TOOL]).within(V3),
    AgentEvent::new("PostToolUse", EventKind::AfterTool, TOLD).with(&[TOOL_DONE]).within(V3),
    AgentEvent::new("Stop", EventKind::AfterAgent, TOLD).within(V3),
    AgentEvent::new("PreTaskExec", EventKind::Custom, BLOCKS).within(V3),
    AgentEvent::new("PostTaskExec", EventKind::Custom, TOLD).within(V3),
    AgentEvent::new("PostFileCreate", EventKind::FileCreated, TOLD).within(V3),
    AgentEvent::new("PostFileSave", EventKind::FileEdited, TOLD).within(V3),
    AgentEvent::new("PostFileDelete", EventKind::FileDeleted, TOLD).within(V3),
    AgentEvent::new("Manual", EventKind::UserTriggered, TOLD).within(V3),
];

/// Writes one file with a list of hooks.
fn files(commands: &Commands<'_>) -> Vec<OwnFile> {
    let hook = |event: &&str| {
        json!({
            "name": format!("ollm-{event}"),
            "trigger": event,
            "action": {"type": "command", "command": (commands.line)(event)},
            "timeout": WAIT.as_secs(),
        })
    };
    let hooks: Vec<Value> = commands.events.iter().map(hook).collect();
    vec![OwnFile::new("ollm.json", format!("{:#}\n", json!({"version": "v1", "hooks": hooks})))]
}
