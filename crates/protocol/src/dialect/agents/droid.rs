//! Factory Droid.
//!
//! It ignores `decision: "block"` and `ask`, and of several `permissionDecision`s the first wins. So we refuse with
//! exit status 2, which always wins, and never send an approval. Arguments are merged into the original ones.

use std::time::Duration;

use super::forms::{HALT, NESTED_CONTEXT, NOTIFICATION, STOP, SYSTEM_MESSAGE, UPDATED_INPUT};
use super::home::{Form, Home, LineShell, MatcherForm, OwnFolder, SettingsSyntax, WrittenForm, WrittenHooks};
use super::{AgentDialect, AgentEvent, Capabilities, Field, McpName, Way, field};
use crate::event::EventKind;
use crate::protected::row;

pub(super) static DROID: AgentDialect = AgentDialect {
    name: "droid",
    title: "Factory Droid",
    checked: "0.215.0, the client itself at PreToolUse; else its documentation",
    event_fields: &["hook_event_name"],
    events: EVENTS,
    fields: &[],
    mcp: McpName::Joined("___"),
    own_tools: &[],
    replaces_args: false,
    stamps_events: false,
    timeout_unit: Duration::from_secs(1),
    timeout: None,
    refusal: Way::Status,
    nothing: "",
    protected: row(
        "Droid",
        &[".factory/hooks.json", ".factory/hooks", ".factory/settings.json", ".factory/mcp.json"],
        &[".factory/hooks.json", ".factory/hooks", ".factory/settings.json", ".factory/mcp.json"],
    ),
    refusing: |_, status| status == 2 || status == 3,
    home: Home {
        programs: &["droid"],
        user: ".factory/settings.json",
        variable: None,
        project: Some(".factory/settings.json"),
        also_reads: &[],
        form: Form::Groups,
        shell: LineShell::Sh,
        events: &[
            "SessionStart",
            "SessionEnd",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "Notification",
            "PreCompact",
            "SubagentStop",
            "Stop",
        ],
        taste: SettingsSyntax::ANYTHING,
        review: None,
        project_variables: &["FACTORY_PROJECT_DIR"],
        written: WrittenHooks {
            user: &[".factory/settings.json", ".factory/hooks.json"],
            project: &[".factory/settings.json", ".factory/hooks.json"],
            form: WrittenForm::Groups,
            matcher: MatcherForm::NamesOrWithin,
            folder: OwnFolder::Unused,
        },
    },
};

const TOLD: Capabilities = Capabilities { message: SYSTEM_MESSAGE, ..Capabilities::NONE };
const CONTEXT: Capabilities = Capabilities { context: NESTED_CONTEXT, ..TOLD };
const BLOCKS: Capabilities = Capabilities { block: Way::Status, halt: HALT, ..TOLD };

/// The client does not number its calls.
const TOOL: &[Field] = &[field("tool_input", "args")];
const TOOL_DONE: &[Field] = &[field("tool_input", "args"), field("tool_response", "result")];

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("SessionStart", EventKind::SessionStart, CONTEXT).reading_text(),
    AgentEvent::new("SessionEnd", EventKind::SessionEnd, TOLD),
    AgentEvent::new("UserPromptSubmit", EventKind::BeforeAgent, Capabilities { context: NESTED_CONTEXT, ..BLOCKS })
        .reading_text(),
    AgentEvent::new("PreToolUse", EventKind::BeforeTool, Capabilities { modify: UPDATED_INPUT, ..BLOCKS })
        .with(&[TOOL]),
    AgentEvent::new("PostToolUse", EventKind::AfterTool, Capabilities { context: NESTED_CONTEXT, ..BLOCKS })
        .with(&[TOOL_DONE]),
    AgentEvent::new("Notification", EventKind::Notification, TOLD).with(&[NOTIFICATION]),
    // There is no limit on how often a hook may refuse the end.
    AgentEvent::new("Stop", EventKind::AfterAgent, BLOCKS).with(&[STOP]),
    AgentEvent::new("SubagentStop", EventKind::SubagentStop, BLOCKS).with(&[STOP]),
    // No document says that `continue: false` prevents it.
    AgentEvent::new("PreCompact", EventKind::PreCompress, Capabilities { halt: Way::No, ..BLOCKS }),
];
