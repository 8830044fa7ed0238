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
        prepare: gemini,
    },
    RealClient {
        id: "codex",
        program: "codex",
        tool: "exec_command",
        arguments: |command| json!({"cmd": command}),
        tells_reason: true,
        prepare: codex,
    },
    RealClient {
        id: "claude",
        program: "claude",
        tool: "Bash",
        arguments: |command| json!({"command": command, "description": "Make a file"}),
        tells_reason: true,
        prepare: claude,
    },
    RealClient {
        id: "qwen",
        program: "qwen",
        tool: "run_shell_command",
        arguments: |command| json!({"command": command, "is_background": false}),
        tells_reason: true,
        prepare: qwen,
    },
    RealClient {
        id: "opencode",
        program: "opencode",
        tool: "bash",
        arguments: |command| json!({"command": command, "description": "Make a file"}),
        tells_reason: true,
        prepare: opencode,
    },
    RealClient {
        id: "copilot",
        program: "copilot",
        tool: "bash",
        arguments: |command| json!({"command": command, "description": "Make a file"}),
        tells_reason: true,
        prepare: copilot,
    },
    RealClient {
        id: "droid",
        program: "droid",
        tool: "Execute",
        arguments: |command| json!({"command": command, "summary": "Make a file", "riskLevel": "low", "riskLevelReason": "small"}),
        tells_reason: true,
        prepare: droid,
    },
    RealClient {
        id: "cline",
        program: "cline",
        tool: "run_commands",
        arguments: |command| json!({"commands": [command]}),
        // A refusal ends its run.
        tells_reason: false,
        prepare: cline,
    },
];

fn gemini(Surroundings { lab, server, .. }: &Surroundings<'_>, command: &mut Command) {
    let settings = "{\n  // mine\n  \"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}\n}\n";
    lab.write("home/.gemini/settings.json", settings);
    command.env("GOOGLE_GEMINI_BASE_URL", server.origin()).env("GEMINI_API_KEY", "none");
    command.args(["--skip-trust", "--yolo", "--model", "gemini-2.5-flash", "--prompt", PROMPT]);
}

fn codex(Surroundings { lab, server, .. }: &Surroundings<'_>, command: &mut Command) {
    let url = server.url();
    lab.write(
        "home/.codex/config.toml",
        format!(
            "model = \"scripted\"\nmodel_provider = \"loopback\"\n\n[model_providers.loopback]\nname = \"loopback\"\n\
             base_url = \"{url}\"\nwire_api = \"responses\"\n"
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
    // Without this package beside its plugins it waits for the network before it loads them.
    symlink(folder.join("node_modules"), lab.home.join(".config/opencode/node_modules")).unwrap();
    for file in ["package.json", "package-lock.json"] {
        fs::copy(folder.join(file), lab.home.join(".config/opencode").join(file)).unwrap();
    }
    command.args(["run", "--auto", "--model", "loopback/scripted", PROMPT]);
}

fn copilot(Surroundings { server, .. }: &Surroundings<'_>, command: &mut Command) {
    command.env("COPILOT_PROVIDER_BASE_URL", server.url()).env("COPILOT_MODEL", "scripted");
    command.args(["--allow-all-tools", "--prompt", PROMPT]);
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
