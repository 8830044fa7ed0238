//! How each agent is run without a person, an account or the network.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use testkit::ModelServer;

use crate::lab::Lab;

/// What every agent is asked.
pub(super) const PROMPT: &str = "Make the file.";

/// A tool of an agent, our name for it if we have one, and the arguments of a call about a file.
pub(super) type Trial = (&'static str, &'static str, fn(&Path) -> Value);

/// An MCP server with one tool.
pub(super) const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {}
    if asked["method"] == "initialize":
        answer = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "notes", "version": "1"}}
    elif asked["method"] == "tools/list":
        answer = {"tools": [{"name": "add_note", "description": "Adds", "inputSchema": {"type": "object", "properties": {}}}]}
    elif asked["method"] == "tools/call":
        answer = {"content": [{"type": "text", "text": "ok"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"#;

/// A real agent.
pub(super) struct RealClient {
    /// Its name with us.
    pub(super) id: &'static str,
    /// Its program.
    pub(super) program: &'static str,
    /// The tool by which it runs shell commands.
    pub(super) tool: &'static str,
    /// The arguments of that tool for a command.
    pub(super) arguments: fn(&str) -> Value,
    /// Whether its model is told why a call was refused.
    pub(super) tells_reason: bool,
    /// Whether it asks us at a prompt although no person is there to type one.
    pub(super) asks_at_prompt: bool,
    /// Its other tools that are tried; empty where none is.
    pub(super) tools: &'static [Trial],
    /// Gives it the server `my-notes`.
    pub(super) add_server: fn(&Lab, &mut Command),
    /// Points it at a model, and lets it run tools without asking.
    pub(super) prepare: fn(&Surroundings<'_>, &mut Command),
}

/// What an agent is run in.
pub(super) struct Surroundings<'a> {
    pub(super) lab: &'a Lab,
    pub(super) server: &'a ModelServer,
    /// The folder that it was installed into.
    pub(super) folder: &'a Path,
}

pub(super) static CLIENTS: &[RealClient] = &[
    RealClient {
        id: "gemini",
        program: "gemini",
        tool: "run_shell_command",
        arguments: |command| json!({"command": command}),
        tells_reason: true,
        asks_at_prompt: true,
        tools: &[
            ("write_file", "write_file", |file| json!({"file_path": file, "content": "one\n"})),
            ("read_file", "read_file", |file| json!({"file_path": file})),
            (
                "replace",
                "edit_file",
                |file| json!({"file_path": file, "instruction": "x", "old_string": "one", "new_string": "two"}),
            ),
            ("glob", "glob", |_| json!({"pattern": "*.txt"})),
            ("grep_search", "grep", |_| json!({"pattern": "two"})),
            ("write_todos", "todo", |_| json!({"todos": [{"description": "x", "status": "pending"}]})),
            ("mcp_my-notes_add_note", "mcp__my-notes__add_note", |_| json!({})),
        ],
        add_server: |lab, _| in_settings(lab, "home/.gemini/settings.json"),
        prepare: gemini,
    },
    RealClient {
        id: "codex",
        program: "codex",
        tool: "exec_command",
        arguments: |command| json!({"cmd": command}),
        tells_reason: true,
        asks_at_prompt: true,
        tools: &[],
        add_server: |_, _| {},
        prepare: codex,
    },
    RealClient {
        id: "claude",
        program: "claude",
        tool: "Bash",
        arguments: |command| json!({"command": command, "description": "Make a file"}),
        tells_reason: true,
        asks_at_prompt: true,
        tools: &[
            ("Write", "write_file", |file| json!({"file_path": file, "content": "one\n"})),
            ("Read", "read_file", |file| json!({"file_path": file})),
            ("Edit", "edit_file", |file| json!({"file_path": file, "old_string": "one", "new_string": "two"})),
            ("mcp__my-notes__add_note", "mcp__my-notes__add_note", |_| json!({})),
        ],
        add_server: |lab, command| {
            in_settings(lab, "home/servers.json");
            command.env("ENABLE_TOOL_SEARCH", "false").arg("--mcp-config").arg(lab.home.join("servers.json"));
            command.args(["--allowedTools", "Write", "Read", "Edit", "mcp__my-notes__add_note"]);
        },
        prepare: claude,
    },
    RealClient {
        id: "qwen",
        program: "qwen",
        tool: "run_shell_command",
        arguments: |command| json!({"command": command, "is_background": false}),
        tells_reason: true,
        asks_at_prompt: true,
        tools: &[
            ("write_file", "write_file", |file| json!({"file_path": file, "content": "one\n"})),
            ("read_file", "read_file", |file| json!({"file_path": file})),
            ("edit", "edit_file", |file| json!({"file_path": file, "old_string": "one", "new_string": "two"})),
            ("glob", "glob", |_| json!({"pattern": "*.txt"})),
            ("grep_search", "grep", |_| json!({"pattern": "two"})),
        ],
        // It offers our model no tools of servers.
        add_server: |_, _| {},
        prepare: qwen,
    },
    RealClient {
        id: "opencode",
        program: "opencode",
        tool: "bash",
        arguments: |command| json!({"command": command, "description": "Make a file"}),
        tells_reason: true,
        asks_at_prompt: true,
        tools: &[
            ("write", "write_file", |file| json!({"filePath": file, "content": "one\n"})),
            ("read", "read_file", |file| json!({"filePath": file})),
            ("edit", "edit_file", |file| json!({"filePath": file, "oldString": "one", "newString": "two"})),
            ("glob", "glob", |_| json!({"pattern": "*.txt"})),
            ("grep", "grep", |_| json!({"pattern": "two"})),
            ("webfetch", "web_fetch", |_| json!({"url": "http://127.0.0.1:1/x", "format": "text"})),
            ("my-notes_add_note", "mcp__my-notes__add_note", |_| json!({})),
            ("todowrite", "todo", |_| json!({"todos": [{"content": "x", "status": "pending", "priority": "low"}]})),
        ],
        add_server: |lab, _| {
            let path = "home/.config/opencode/opencode.json";
            let mut settings: Value = serde_json::from_str(&fs::read_to_string(lab.root.join(path)).unwrap()).unwrap();
            let command = json!(["python3", lab.root.join("server.py")]);
            settings["mcp"] = json!({"my-notes": {"type": "local", "command": command, "enabled": true}});
            lab.write(path, settings.to_string());
        },
        prepare: opencode,
    },
    RealClient {
        id: "copilot",
        program: "copilot",
        tool: "bash",
        arguments: |command| json!({"command": command, "description": "Make a file"}),
        tells_reason: true,
        asks_at_prompt: true,
        tools: &[
            ("create", "write_file", |file| json!({"path": file, "file_text": "one\n"})),
            ("view", "read_file", |file| json!({"path": file})),
            ("edit", "edit_file", |file| json!({"path": file, "old_str": "one", "new_str": "two"})),
            ("glob", "glob", |_| json!({"pattern": "*.txt"})),
            ("grep", "grep", |_| json!({"pattern": "two"})),
            ("web_fetch", "web_fetch", |_| json!({"url": "http://127.0.0.1:1/x"})),
            ("my-notes-add_note", "mcp__my-notes__add_note", |_| json!({})),
        ],
        add_server: |lab, command| {
            let server =
                json!({"type": "local", "command": "python3", "args": [lab.root.join("server.py")], "tools": ["*"]});
            command.args(["--additional-mcp-config", &json!({"mcpServers": {"my-notes": server}}).to_string()]);
            command.args(["--allow-all-paths", "--allow-all-urls"]);
        },
        prepare: copilot,
    },
    RealClient {
        id: "droid",
        program: "droid",
        tool: "Execute",
        arguments: |command| json!({"command": command, "summary": "Make a file", "riskLevel": "low", "riskLevelReason": "small"}),
        tells_reason: true,
        asks_at_prompt: false,
        tools: &[
            ("Create", "write_file", |file| json!({"file_path": file, "content": "one\n"})),
            ("Read", "read_file", |file| json!({"file_path": file})),
            ("Edit", "edit_file", |file| json!({"file_path": file, "old_str": "one", "new_str": "two"})),
            ("Glob", "glob", |_| json!({"patterns": ["*.txt"]})),
            ("Grep", "grep", |_| json!({"pattern": "two"})),
            ("LS", "list_dir", |_| json!({})),
            ("ToolSearch", "", |_| json!({"query": "select:my-notes___add_note"})),
            ("my-notes___add_note", "mcp__my-notes__add_note", |_| json!({})),
        ],
        add_server: |lab, _| in_settings(lab, "home/.factory/mcp.json"),
        prepare: droid,
    },
    RealClient {
        id: "cline",
        program: "cline",
        tool: "run_commands",
        arguments: |command| json!({"commands": [command]}),
        // A refusal ends its run.
        tells_reason: false,
        asks_at_prompt: false,
        tools: &[
            ("editor", "file_writer", |file| json!({"path": file, "new_text": "two\n"})),
            ("read_files", "read_file", |file| json!({"files": [{"path": file}]})),
            ("search_codebase", "grep", |_| json!({"queries": ["two"]})),
            ("my-notes__add_note", "mcp__my-notes__add_note", |_| json!({})),
        ],
        add_server: |lab, _| in_settings(lab, "home/.cline/data/settings/cline_mcp_settings.json"),
        prepare: cline,
    },
];

/// Gives an agent the server in its settings, by the key that most have for that.
fn in_settings(lab: &Lab, path: &str) {
    let text = fs::read_to_string(lab.root.join(path)).unwrap_or_else(|_| "{}".to_owned());
    let mut settings: Value = serde_json::from_str(&text.replace("// mine", "")).unwrap();
    let server = json!({"type": "stdio", "command": "python3", "args": [lab.root.join("server.py")]});
    settings["mcpServers"] = json!({"my-notes": server});
    lab.write(path, settings.to_string());
}

fn gemini(Surroundings { lab, server, .. }: &Surroundings<'_>, command: &mut Command) {
    let settings = "{\n  // mine\n  \"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}\n}\n";
    lab.write("home/.gemini/settings.json", settings);
    command.env("GOOGLE_GEMINI_BASE_URL", server.origin()).env("GEMINI_API_KEY", "none");
    // Hooks run only in trusted folders.
    command.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    command.args(["--yolo", "--model", "gemini-2.5-flash", "--prompt", PROMPT]);
}

fn codex(Surroundings { lab, server, .. }: &Surroundings<'_>, command: &mut Command) {
    let url = server.url();
    lab.write(
        "home/.codex/config.toml",
        format!(
            "model = \"scripted\"\nmodel_provider = \"loopback\"\n\n[model_providers.loopback]\nname = \"loopback\"\n\
             base_url = \"{url}\"\nwire_api = \"responses\"\n\n[projects.{}]\ntrust_level = \"trusted\"\n",
            json!(lab.project)
        ),
    );
    command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]);
    // What we registered is reviewed by a person on their first start; there is none here.
    command.args(["--dangerously-bypass-hook-trust", PROMPT]);
}

fn claude(Surroundings { lab, server, .. }: &Surroundings<'_>, command: &mut Command) {
    lab.write("home/.claude/settings.json", "{\n  \"cleanupPeriodDays\": 9\n}\n");
    command.env("ANTHROPIC_BASE_URL", server.origin()).env("ANTHROPIC_API_KEY", "none");
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    command.args(["--allowedTools", "Bash", "--print", PROMPT]);
}

fn qwen(Surroundings { lab, server, .. }: &Surroundings<'_>, command: &mut Command) {
    lab.write("home/.qwen/settings.json", "{\n  \"ui\": {\"hideTips\": true}\n}\n");
    command.env("OPENAI_BASE_URL", server.url()).env("OPENAI_API_KEY", "none").env("OPENAI_MODEL", "scripted");
    command.args(["--auth-type", "openai", "--yolo", "--prompt", PROMPT]);
}

fn opencode(Surroundings { lab, server, folder }: &Surroundings<'_>, command: &mut Command) {
    let options = json!({"baseURL": server.url(), "apiKey": "none"});
    let provider =
        json!({"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"scripted": {"tool_call": true}}});
    let settings = json!({"provider": {"loopback": provider}, "autoupdate": false, "share": "disabled"});
    lab.write("home/.config/opencode/opencode.json", settings.to_string());
    // Without this package beside its plugins it waits for the network before it loads them, in the project as well.
    for own in [lab.home.join(".config/opencode"), lab.project.join(".opencode")] {
        fs::create_dir_all(&own).unwrap();
        symlink(folder.join("node_modules"), own.join("node_modules")).unwrap();
        for file in ["package.json", "package-lock.json"] {
            fs::copy(folder.join(file), own.join(file)).unwrap();
        }
    }
    command.args(["run", "--auto", "--model", "loopback/scripted", PROMPT]);
}

fn copilot(Surroundings { server, .. }: &Surroundings<'_>, command: &mut Command) {
    command.env("COPILOT_PROVIDER_BASE_URL", server.url()).env("COPILOT_MODEL", "scripted");
    command.args(["--allow-all-tools", "--trust-folder", "--prompt", PROMPT]);
}

fn droid(Surroundings { lab, server, .. }: &Surroundings<'_>, command: &mut Command) {
    let model = json!({
        "model": "scripted", "displayName": "scripted", "baseUrl": server.url(), "apiKey": "none",
        "provider": "generic-chat-completion-api", "maxOutputTokens": 1000,
    });
    lab.write("home/.factory/settings.json", format!("{:#}\n", json!({"customModels": [model]})));
    command.args(["exec", "--skip-permissions-unsafe", "--model", "custom:scripted-0", PROMPT]);
}

fn cline(Surroundings { lab, server, .. }: &Surroundings<'_>, command: &mut Command) {
    let model =
        json!({"provider": "openai-compatible", "apiKey": "none", "model": "scripted", "baseUrl": server.url()});
    let providers = json!({
        "version": 1, "lastUsedProvider": "openai-compatible", "modes": {},
        "providers": {"openai-compatible": {"settings": model, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}},
    });
    lab.write("home/.cline/data/settings/providers.json", providers.to_string());
    command.args(["--provider", "openai-compatible", "--auto-approve", "true", PROMPT]);
}
