//! goose.
//!
//! Hooks decide only at PreToolUse and Stop. An empty output means no opinion. Any other output that it does not know,
//! including `{}`, counts as a failed hook.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Part::Word;
use super::forms::DECISION_BLOCK;
use super::home::{
    Commands, Form, Home, LineShell, MatcherForm, OwnFile, OwnFolder, SettingsSyntax, WAIT, WrittenForm, WrittenHooks,
};
use super::{AgentDialect, AgentEvent, Capabilities, Field, FieldForm, McpName, Pick, Way, field, formed};
use crate::event::EventKind;
use crate::protected::row;

pub(super) static GOOSE: AgentDialect = AgentDialect {
    name: "goose",
    title: "goose",
    checked: "its documentation of 2026",
    event_fields: &["event"],
    events: EVENTS,
    fields: &[field("working_dir", "cwd")],
    mcp: McpName::Joined("__"),
    own_tools: &[],
    replaces_args: false,
    stamps_events: false,
    timeout_unit: Duration::from_secs(1),
    timeout: Some(Duration::from_secs(30)),
    refusal: Way::Status,
    nothing: "",
    protected: row("goose", &[".config/goose", ".agents/plugins"], &[".agents/plugins"]),
    refusing: |_, status| status == 2,
    home: Home {
        programs: &["goose"],
        user: ".agents/plugins/ollm",
        variable: None,
        project: Some(".agents/plugins/ollm"),
        also_reads: &[],
        form: Form::Own(files),
        shell: LineShell::Sh,
        events: &[
            "SessionStart",
            "SessionEnd",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "AfterFileEdit",
            "Stop",
        ],
        taste: SettingsSyntax::ANYTHING,
        review: None,
        project_variables: &[],
        written: WrittenHooks {
            user: &[".agents/plugins/*/hooks/hooks.json"],
            project: &[".agents/plugins/*/hooks/hooks.json"],
            form: WrittenForm::Groups,
            matcher: MatcherForm::Within,
            folder: OwnFolder::Above("PLUGIN_ROOT"),
        },
    },
};

const ALLOW: Way = Way::Json(&[("decision", Word("allow"))]);
const TOLD: Capabilities = Capabilities::NONE;

const TOOL: &[Field] = &[field("tool_input", "args"), field("tool_call_id", "call_id")];
const PROMPT: &[Field] = &[field("message", "prompt")];
const TURN: &[Field] =
    &[field("last_assistant_message", "response"), formed("stop_hook_active", "attempt", FieldForm::Again)];
/// The text that the hook's rule was matched with is the file.
const FILE: &[Field] = &[field("matcher_context", "path")];

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("SessionStart", EventKind::SessionStart, TOLD),
    AgentEvent::new("SessionEnd", EventKind::SessionEnd, TOLD),
    AgentEvent::new("UserPromptSubmit", EventKind::BeforeAgent, TOLD).with(&[PROMPT]),
    AgentEvent::new(
        "PreToolUse",
        EventKind::BeforeTool,
        Capabilities { allow: ALLOW, block: DECISION_BLOCK, ..Capabilities::NONE },
    )
    .with(&[TOOL]),
    AgentEvent::new("PreToolUseResult", EventKind::Custom, TOLD),
    AgentEvent::new("PostToolUseFailure", EventKind::AfterTool, TOLD).with(&[TOOL]).only(Pick::With("error")),
    AgentEvent::new("PostToolUse", EventKind::AfterTool, TOLD).with(&[TOOL]),
    AgentEvent::new("Stop", EventKind::AfterAgent, Capabilities { block: DECISION_BLOCK, ..Capabilities::NONE })
        .with(&[TURN]),
    AgentEvent::new("BeforeReadFile", EventKind::Custom, TOLD),
    AgentEvent::new("AfterFileEdit", EventKind::FileEdited, TOLD).with(&[FILE]),
    AgentEvent::new("BeforeShellExecution", EventKind::Custom, TOLD),
    AgentEvent::new("AfterShellExecution", EventKind::Custom, TOLD),
];

/// Writes a plugin.
fn files(commands: &Commands<'_>) -> Vec<OwnFile> {
    let group = |event: &&str| {
        let hook = json!({"type": "command", "command": (commands.line)(event), "timeout": WAIT.as_secs()});
        ((*event).to_owned(), json!([{"hooks": [hook]}]))
    };
    let hooks: Map<String, Value> = commands.events.iter().map(group).collect();
    let about = format!("Asks at each event: {}", (commands.line)(""));
    let plugin = json!({"name": "ollm", "version": "1.0.0", "description": about});
    vec![
        OwnFile::new("plugin.json", format!("{plugin:#}\n")),
        OwnFile::new("hooks/hooks.json", format!("{:#}\n", json!({"hooks": hooks}))),
    ]
}
