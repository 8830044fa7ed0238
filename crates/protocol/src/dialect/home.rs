//! Where other agents are found, and how they are told to ask us: facts, as data.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// How long an agent is told to wait for us. Our hooks have limits of their own; this one is there for the worst day.
pub const WAIT: Duration = Duration::from_mins(10);

/// How long an agent is told to wait for us at an event; nothing where that is not in our hands, or it would wait too long.
pub fn waits(home: &Home, event: &str) -> Option<Duration> {
    let agent = super::agent_named(home.id)?;
    let own = agent.events.iter().find(|known| known.name == event).and_then(|known| known.timeout);
    let is_short = own.zip(agent.timeout).is_some_and(|(own, usual)| own < usual);
    let has_key = !matches!(home.form, Form::Flat(FlatEntry { timeout: None, .. }));
    (has_key && !is_short).then_some(WAIT)
}

/// Where an agent reads its hooks, and in what form.
#[derive(Debug)]
pub struct Home {
    /// The agent's name in configuration and behind `--from`.
    pub id: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The length of one unit of its timeouts.
    pub unit: Duration,
    /// The names of its program.
    pub programs: &'static [&'static str],
    /// The file for all work of a person, below their home; a folder where the files are ours alone.
    pub user: &'static str,
    /// The variable that names the first folder of that path instead.
    pub variable: Option<&'static str>,
    /// The same for one project, below its root.
    pub project: Option<&'static str>,
    /// What stands there.
    pub form: Form,
    /// The events at which it asks us: not those that happen for each piece of an answer.
    pub events: &'static [&'static str],
    /// What it does with a file that is not plain JSON.
    pub taste: Taste,
    /// What a person has to do in it before its hooks run.
    pub review: Option<&'static str>,
    /// The variables in which its hooks find the project's folder.
    pub project_variables: &'static [&'static str],
}

/// What stands in the place where an agent reads its hooks.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// `{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …, "timeout": …}]}]}}`
    Groups,
    /// `{"hooks": {EVENT: [{"command": …}]}}`, with the names of the keys that differ.
    Flat(FlatEntry),
    /// Files that are ours alone, made from the command for each event.
    Own(fn(&Commands<'_>) -> Vec<OwnFile>),
}

/// The keys of an entry in a flat list.
#[derive(Clone, Copy, Debug)]
pub struct FlatEntry {
    /// Whether the file begins with `"version": 1`.
    pub version: bool,
    /// Whether an entry says `"type": "command"`.
    pub typed: bool,
    /// The key of the command.
    pub command: &'static str,
    /// The key of the timeout.
    pub timeout: Option<&'static str>,
}

/// The line of shell by which an agent asks us at an event.
pub struct Commands<'a> {
    /// The events that it should ask at.
    pub events: &'static [&'static str],
    /// The line for one of them.
    pub line: &'a dyn Fn(&str) -> String,
}

/// A file that is ours alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFile {
    /// Where, in the agent's folder.
    pub path: String,
    /// What is in it.
    pub text: String,
    /// Whether it is a program.
    pub executable: bool,
}

/// What an agent does with a settings file that is not plain JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taste {
    /// It takes comments.
    pub comments: bool,
    /// It takes a comma after the last item.
    pub commas: bool,
    /// It takes a byte order mark.
    pub mark: bool,
}

impl Taste {
    /// It is not known to mind anything.
    pub const ANYTHING: Taste = Taste { comments: true, commas: true, mark: true };
    /// Plain JSON, which may begin with a mark.
    pub const PLAIN_OR_MARKED: Taste = Taste { comments: false, commas: false, mark: true };
    /// Plain JSON and nothing else.
    pub const PLAIN: Taste = Taste { comments: false, commas: false, mark: false };
}

/// Where the agent of this name lives.
pub fn home_of(agent: &str) -> Option<&'static Home> {
    HOMES.iter().find(|home| home.id == agent)
}

/// The usual events of agents that took over Claude Code's names.
const USUAL: &[&str] = &[
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "Stop",
];

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Every agent that can be told to ask us.
pub static HOMES: &[Home] = &[
    Home {
        id: "claude",
        title: "Claude Code",
        unit: SECOND,
        programs: &["claude"],
        user: ".claude/settings.json",
        variable: Some("CLAUDE_CONFIG_DIR"),
        project: Some(".claude/settings.json"),
        form: Form::Groups,
        events: &[
            "SessionStart",
            "SessionEnd",
            "UserPromptSubmit",
            "PreToolUse",
            "PermissionRequest",
            "PostToolUse",
            "PostToolUseFailure",
            "Notification",
            "PreCompact",
            "PostCompact",
            "SubagentStart",
            "SubagentStop",
            "Stop",
        ],
        taste: Taste::PLAIN_OR_MARKED,
        review: None,
        project_variables: &["CLAUDE_PROJECT_DIR"],
    },
    Home {
        id: "codex",
        title: "Codex CLI",
        unit: SECOND,
        programs: &["codex"],
        user: ".codex/hooks.json",
        variable: Some("CODEX_HOME"),
        project: Some(".codex/hooks.json"),
        form: Form::Groups,
        events: USUAL,
        taste: Taste::PLAIN,
        review: Some("Codex runs a hook only after you approved it there: start `codex` and review it, or type /hooks"),
        project_variables: &[],
    },
    Home {
        id: "gemini",
        title: "Gemini CLI",
        unit: MILLISECOND,
        programs: &["gemini"],
        user: ".gemini/settings.json",
        variable: None,
        project: Some(".gemini/settings.json"),
        form: Form::Groups,
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
        taste: Taste { comments: true, commas: false, mark: false },
        review: Some("Gemini runs hooks only in folders that you trust there"),
        project_variables: &["GEMINI_PROJECT_DIR", "GEMINI_CWD", "CLAUDE_PROJECT_DIR"],
    },
    Home {
        id: "qwen",
        title: "Qwen Code",
        // Values from 1,000 on count as milliseconds there, smaller ones as seconds.
        unit: SECOND,
        programs: &["qwen"],
        user: ".qwen/settings.json",
        variable: None,
        project: Some(".qwen/settings.json"),
        form: Form::Groups,
        events: USUAL,
        taste: Taste::ANYTHING,
        review: None,
        project_variables: &["QWEN_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
    },
    Home {
        id: "droid",
        title: "Factory Droid",
        unit: SECOND,
        programs: &["droid"],
        user: ".factory/settings.json",
        variable: None,
        project: Some(".factory/settings.json"),
        form: Form::Groups,
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
        taste: Taste::ANYTHING,
        review: None,
        project_variables: &["FACTORY_PROJECT_DIR"],
    },
    Home {
        id: "cursor",
        title: "Cursor",
        unit: SECOND,
        programs: &["cursor", "cursor-agent"],
        user: ".cursor/hooks.json",
        variable: None,
        project: Some(".cursor/hooks.json"),
        form: Form::Flat(FlatEntry { version: true, typed: false, command: "command", timeout: Some("timeout") }),
        // The events of single tools would ask a second time.
        events: &[
            "sessionStart",
            "sessionEnd",
            "beforeSubmitPrompt",
            "preToolUse",
            "postToolUse",
            "postToolUseFailure",
            "subagentStart",
            "subagentStop",
            "preCompact",
            "stop",
        ],
        taste: Taste::ANYTHING,
        review: None,
        project_variables: &["CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
    },
    Home {
        id: "copilot",
        title: "GitHub Copilot",
        unit: SECOND,
        programs: &["copilot"],
        user: ".copilot/hooks/ollm.json",
        variable: Some("COPILOT_HOME"),
        project: Some(".github/hooks/ollm.json"),
        form: Form::Flat(FlatEntry { version: true, typed: true, command: "bash", timeout: Some("timeoutSec") }),
        events: &[
            "SessionStart",
            "SessionEnd",
            "UserPromptSubmit",
            "PreToolUse",
            "PermissionRequest",
            "PostToolUse",
            "PostToolUseFailure",
            "PreCompact",
            "ErrorOccurred",
            "SubagentStop",
            "Stop",
        ],
        taste: Taste::PLAIN,
        review: Some("Copilot runs hooks of a project only in folders that you trust there"),
        project_variables: &[],
    },
    Home {
        id: "windsurf",
        title: "Windsurf",
        unit: SECOND,
        programs: &["windsurf"],
        user: ".codeium/windsurf/hooks.json",
        variable: None,
        project: Some(".windsurf/hooks.json"),
        form: Form::Flat(FlatEntry { version: false, typed: false, command: "command", timeout: None }),
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
        taste: Taste::ANYTHING,
        review: None,
        project_variables: &[],
    },
    Home {
        id: "kiro",
        title: "Kiro",
        unit: SECOND,
        programs: &["kiro-cli", "kiro"],
        user: ".kiro/hooks",
        variable: None,
        project: Some(".kiro/hooks"),
        form: Form::Own(kiro),
        events: &["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"],
        taste: Taste::ANYTHING,
        review: None,
        project_variables: &[],
    },
    Home {
        id: "goose",
        title: "goose",
        unit: SECOND,
        programs: &["goose"],
        user: ".agents/plugins/ollm",
        variable: None,
        project: Some(".agents/plugins/ollm"),
        form: Form::Own(goose),
        events: &[
            "SessionStart",
            "SessionEnd",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "Stop",
        ],
        taste: Taste::ANYTHING,
        review: None,
        project_variables: &[],
    },
    Home {
        id: "cline",
        title: "Cline",
        unit: SECOND,
        programs: &["cline"],
        user: "Documents/Cline/Hooks",
        variable: None,
        project: Some(".clinerules/hooks"),
        form: Form::Own(cline),
        events: &[
            "TaskStart",
            "TaskResume",
            "TaskCancel",
            "TaskComplete",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PreCompact",
        ],
        taste: Taste::ANYTHING,
        review: Some("Cline runs hooks only where its setting for hooks is on"),
        project_variables: &[],
    },
    Home {
        id: "opencode",
        title: "opencode",
        unit: SECOND,
        programs: &["opencode"],
        user: ".config/opencode/plugins",
        variable: None,
        project: Some(".opencode/plugins"),
        form: Form::Own(opencode),
        events: &[
            "tool.execute.before",
            "tool.execute.after",
            "permission.ask",
            "chat.message",
            "experimental.session.compacting",
            "session.created",
            "session.deleted",
            "session.idle",
            "session.compacted",
            "session.error",
            "file.edited",
        ],
        taste: Taste::ANYTHING,
        review: None,
        project_variables: &[],
    },
];

/// One file with a list of hooks.
fn kiro(commands: &Commands<'_>) -> Vec<OwnFile> {
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

/// A plugin.
fn goose(commands: &Commands<'_>) -> Vec<OwnFile> {
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

/// A program for each event.
fn cline(commands: &Commands<'_>) -> Vec<OwnFile> {
    let file = |event: &&str| OwnFile {
        executable: true,
        ..OwnFile::new(event, format!("#!/bin/sh\n{}\n", (commands.line)(event)))
    };
    commands.events.iter().map(file).collect()
}

/// A plugin in JavaScript that starts us: this agent runs no commands by itself.
fn opencode(commands: &Commands<'_>) -> Vec<OwnFile> {
    let is_told = |event: &&&str| event.starts_with("session.") || event.starts_with("file.");
    let told: Vec<&&str> = commands.events.iter().filter(is_told).collect();
    let asked: Vec<&&str> = commands.events.iter().filter(|event| !is_told(event)).collect();
    let text = include_str!("home/opencode.js")
        .replace("\"__LINE__\"", &Value::from((commands.line)("")).to_string())
        .replace("[\"__ASKED__\"]", &json!(asked).to_string())
        .replace("[\"__TOLD__\"]", &json!(told).to_string());
    vec![OwnFile::new("ollm.js", text)]
}

impl OwnFile {
    fn new(path: &str, text: String) -> OwnFile {
        OwnFile { path: path.to_owned(), text, executable: false }
    }
}
