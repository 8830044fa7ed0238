//! Codex CLI.
//!
//! It reads answers strictly. With an unknown key, a missing reason, `ask`, or `continue: false` before a tool, the
//! tool runs. Arguments are replaced only together with `allow`.

use std::time::Duration;

use super::Part::{Args, Event, Word};
use super::forms::{
    COMPACTED, DECISION_BLOCK, HALT, NESTED_BEHAVIOR_ALLOW, NESTED_BEHAVIOR_DENY, NESTED_CONTEXT, NESTED_DENY,
    PERMISSION, STOP, SYSTEM_MESSAGE, TOOL, TOOL_DONE,
};
use super::home::{Form, Home, LineShell, MatcherForm, OwnFolder, SettingsSyntax, USUAL, WrittenForm, WrittenHooks};
use super::{AgentDialect, AgentEvent, Capabilities, McpName, Way};
use crate::event::EventKind;
use crate::protected::row;

pub(super) static CODEX: AgentDialect = AgentDialect {
    name: "codex",
    title: "Codex CLI",
    checked: "0.169.0, the client itself at PreToolUse; else its source of 2026-08",
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
        "Codex",
        &[".codex/hooks.json", ".codex/hooks", ".codex/config.toml"],
        &[".codex/hooks.json", ".codex/hooks", ".codex/config.toml"],
    ),
    refusing: |_, status| status == 2,
    home: Home {
        programs: &["codex"],
        user: ".codex/hooks.json",
        variable: Some("CODEX_HOME"),
        project: Some(".codex/hooks.json"),
        also_reads: &[],
        form: Form::Groups,
        shell: LineShell::Login,
        events: USUAL,
        taste: SettingsSyntax { keys: Some(&["description", "hooks"]), ..SettingsSyntax::PLAIN },
        review: Some(
            "Codex runs a hook only after you approved it there: start `codex` and review it, or type /hooks; those of a project run only in folders that you trust there, too",
        ),
        project_variables: &[],
        written: WrittenHooks {
            user: &[".codex/hooks.json", ".codex/config.toml"],
            project: &[".codex/hooks.json", ".codex/config.toml"],
            form: WrittenForm::Groups,
            matcher: MatcherForm::NamesOrWithin,
            folder: OwnFolder::Unused,
        },
    },
};

const REWRITE: Way = Way::Json(&[
    ("hookSpecificOutput.updatedInput", Args),
    ("hookSpecificOutput.permissionDecision", Word("allow")),
    ("hookSpecificOutput.hookEventName", Event),
]);

const TOLD: Capabilities = Capabilities { message: SYSTEM_MESSAGE, ..Capabilities::NONE };
const BLOCKS: Capabilities = Capabilities { block: DECISION_BLOCK, halt: HALT, ..TOLD };
/// Events at which a hook can only end the whole turn, so a refusal does that.
const HALTS: Capabilities = Capabilities { block: HALT, halt: HALT, ..TOLD };

const CALL: Capabilities = Capabilities { block: NESTED_DENY, modify: REWRITE, context: NESTED_CONTEXT, ..TOLD };

const EVENTS: &[AgentEvent] = &[
    AgentEvent::new("SessionStart", EventKind::SessionStart, Capabilities { context: NESTED_CONTEXT, ..HALTS })
        .reading_text(),
    // Codex does not read an answer to it.
    AgentEvent::new("SessionEnd", EventKind::SessionEnd, Capabilities::NONE).within(1000),
    AgentEvent::new("UserPromptSubmit", EventKind::BeforeAgent, Capabilities { context: NESTED_CONTEXT, ..BLOCKS })
        .reading_text(),
    AgentEvent::new("PreToolUse", EventKind::BeforeTool, CALL).with(&[TOOL]),
    AgentEvent::new(
        "PermissionRequest",
        EventKind::ApprovalRequest,
        Capabilities { allow: NESTED_BEHAVIOR_ALLOW, block: NESTED_BEHAVIOR_DENY, ..TOLD },
    )
    .with(&[PERMISSION]),
    AgentEvent::new("PostToolUse", EventKind::AfterTool, Capabilities { context: NESTED_CONTEXT, ..BLOCKS })
        .with(&[TOOL_DONE]),
    AgentEvent::new("PreCompact", EventKind::PreCompress, HALTS),
    AgentEvent::new("PostCompact", EventKind::PostCompress, Capabilities { halt: HALT, ..TOLD }).with(&[COMPACTED]),
    AgentEvent::new("SubagentStart", EventKind::SubagentStart, Capabilities { context: NESTED_CONTEXT, ..TOLD })
        .reading_text(),
    AgentEvent::new("SubagentStop", EventKind::SubagentStop, BLOCKS).with(&[STOP]),
    AgentEvent::new("Stop", EventKind::AfterAgent, BLOCKS).with(&[STOP]),
];
