//! The examples of the shell-command agent's document: settings files, templates, exit codes, JSON answers.

use serde_json::{Value, json};

use super::{Example, check};

const USER: &str = "home/.config/agent/settings.json";

const CONFIGURATION: &str = r#"{
  "hooks": {
    "PreToolUse": [{"matcher": "bash_execute", "hooks": [{"type": "command", "command": "echo 'About to execute bash command'"}]}],
    "PostToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "notify-send 'Tool completed: {{tool_name}}'"}]}],
    "Notification": [{"matcher": "*", "hooks": [{"type": "command", "command": "logger 'CLI-Agent: {{message}}'"}]}],
    "Stop": [{"matcher": "*", "hooks": [{"type": "command", "command": "echo 'Response complete' >> ~/.cli-agent-log"}]}]
  }
}"#;

fn event(name: &str, data: &Value) -> Value {
    json!({"event": name, "data": data})
}

fn bash(command: &str) -> Value {
    event("PreToolUse", &json!({"tool_name": "bash_execute", "args": {"command": command}}))
}

fn settings(name: &str, matcher: &str, commands: &[&str]) -> String {
    let hooks: Vec<_> = commands.iter().map(|command| json!({"type": "command", "command": command})).collect();
    json!({"hooks": {name: [{"matcher": matcher, "hooks": hooks}]}}).to_string()
}

/// A program that writes its arguments down.
fn recorder(file: &str) -> String {
    format!("#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done >> LAB/{file}\necho >> LAB/{file}\n")
}

#[test]
fn the_configuration() {
    let configured = |name, event| {
        Example::new(name, event)
            .file(USER, CONFIGURATION)
            .file("bin/notify-send", recorder("notified"))
            .file("bin/logger", recorder("logged"))
            .gives("/hooks/0/status", "ok")
    };
    check(vec![
        configured("PreToolUse", bash("ls")).gives("/flow", "no_opinion"),
        configured("PostToolUse", event("PostToolUse", &json!({"tool_name": "read_file", "result": "x"})))
            .leaves("notified", "<Tool completed: read_file>"),
        // Ruling 26: hooks of a notification run in the background.
        configured("Notification", event("Notification", &json!({"message": "hello", "event_type": "status"})))
            .gives("/hooks/0/async", true)
            .leaves("logged", "<CLI-Agent: hello>"),
        configured("Stop", event("Stop", &json!({}))).leaves("home/.cli-agent-log", "Response complete"),
    ]);
}

#[test]
fn the_template_variables() {
    let data = json!({
        "tool_name": "write_file", "args": {"file_path": "a b"}, "result": "it's done", "error": null, "session_id": "s1",
        "timestamp": "2026-01-02T03:04:05Z", "user_input": "please",
    });
    let after = "note {{tool_name}} {{tool_args}} {{tool_args.file_path}} {{result}} {{timestamp}} {{session_id}} {{user_input}}";
    check(vec![
        Example::new("of a tool", event("PostToolUse", &data))
            .file(USER, settings("PostToolUse", "*", &[after]))
            .file("bin/note", recorder("noted"))
            // Ruling 13: a value is one argument and never shell text, quoted or not.
            .leaves("noted", "<write_file><{\"file_path\":\"a b\"}><a b><it's done><2026-01-02T03:04:05Z><s1><please>"),
        Example::new("of a failure", event("PostToolUse", &json!({"tool_name": "t", "error": "broken"})))
            .file(USER, settings("PostToolUse", "*", &["note '{{error}}'"]))
            .file("bin/note", recorder("noted"))
            .leaves("noted", "<broken>"),
    ]);
}

#[test]
fn the_exit_codes_and_the_answer() {
    let answer = json!({"continue": true, "decision": "approve", "reason": "Command is safe to execute",
        "metadata": {"hook_name": "security_check", "timestamp": "2024-01-01T12:00:00Z"}});
    let refusal = json!({"continue": false, "decision": "block",
        "reason": "Command contains potentially dangerous operations",
        "metadata": {"risk_level": "high", "blocked_patterns": ["rm -rf", "sudo"]}});
    let modify = json!({"decision": "modify", "modified_args": {"command": "ls -a"}});
    let says = |name, answer: &Value| {
        let check = format!("#!/bin/sh\ncat <<'EOF'\n{answer:#}\nEOF\n");
        Example::new(name, bash("ls"))
            .file("bin/security-check", check)
            .file(USER, settings("PreToolUse", "bash_execute", &["LAB/bin/security-check '{{tool_args.command}}'"]))
    };
    let exits = |name, command| Example::new(name, bash("ls")).file(USER, settings("PreToolUse", "*", &[command]));
    check(vec![
        exits("exit 0", "exit 0").gives("/hooks/0/status", "ok"),
        exits("exit 2", "echo 'not this' >&2; exit 2").exits(2).gives("/reason", "not this"),
        exits("another exit code", "echo odd >&2; exit 7")
            .gives("/continue", true)
            .gives("/hooks/0/status", "failed")
            .tells("status 7"),
        says("JSON output", &answer).gives("/flow", "allow").gives("/hooks/0/metadata/hook_name", "security_check"),
        says("advanced control", &refusal)
            .exits(2)
            .gives("/reason", "Command contains potentially dangerous operations")
            .gives("/hooks/0/metadata/blocked_patterns", json!(["rm -rf", "sudo"])),
        says("modified arguments", &modify).gives("/modifiedArgs", json!({"command": "ls -a"})),
    ]);
}

#[test]
fn the_usage_examples() {
    let written =
        |tool: &str| event("PostToolUse", &json!({"tool_name": tool, "args": {"file_path": "a b.py"}, "result": "ok"}));
    let workflow = settings(
        "PostToolUse",
        "write_file|replace_in_file",
        &["black {{tool_args.file_path}} 2>/dev/null || true", "git add {{tool_args.file_path}} 2>/dev/null || true"],
    );
    let formatting = |name, tool| {
        let example = Example::new(name, written(tool)).file(USER, workflow.clone());
        example.file("bin/black", recorder("steps")).file("bin/git", recorder("steps"))
    };
    let audit = json!({"hooks": {
        "PreToolUse": [{"matcher": "bash_execute", "hooks": [{"type": "command",
            "command": "echo '[$(date)] BASH: {{tool_args.command}}' >> ~/.cli-agent-audit.log"}]}],
        "PostToolUse": [{"matcher": "*", "hooks": [{"type": "command",
            "command": "echo '[$(date)] TOOL: {{tool_name}} - {{result}}' | head -c 200 >> ~/.cli-agent-audit.log"}]}],
    }});
    let notify = json!({"hooks": {
        "Stop": [{"matcher": "*", "hooks": [{"type": "command",
            "command": "osascript -e 'display notification \"CLI-Agent finished\" with title \"Task Complete\"'"}]}],
        "Notification": [{"matcher": "*", "hooks": [{"type": "command",
            "command": "slack-cli send '#ai-agents' '{{message}}'"}]}],
    }});
    let notifying = |name, event| {
        let example = Example::new(name, event).file(USER, notify.to_string());
        example.file("bin/osascript", recorder("shown")).file("bin/slack-cli", recorder("sent"))
    };
    check(vec![
        formatting("development workflow, one tool", "write_file").leaves("steps", "<a b.py>\n<add><a b.py>\n"),
        formatting("development workflow, the other", "replace_in_file").leaves("steps", "<a b.py>\n<add><a b.py>\n"),
        formatting("development workflow, a third", "read_file").gives("/hooks", json!([])),
        // In single quotes the shell runs no command, so the document's own `$(date)` stays text.
        Example::new("audit logging, before", bash("'; touch pwned; '"))
            .file(USER, audit.to_string())
            .leaves("home/.cli-agent-audit.log", "[$(date)] BASH: '; touch pwned; '\n")
            .lacks("project/pwned"),
        Example::new("audit logging, after", event("PostToolUse", &json!({"tool_name": "t", "result": "r"})))
            .file(USER, audit.to_string())
            .leaves("home/.cli-agent-audit.log", "[$(date)] TOOL: t - r\n"),
        notifying("notification at the end", event("Stop", &json!({})))
            .leaves("shown", "<-e><display notification \"CLI-Agent finished\" with title \"Task Complete\">"),
        notifying("notification", event("Notification", &json!({"message": "it's \"here\""})))
            .leaves("sent", "<send><#ai-agents><it's \"here\">"),
    ]);
}

#[test]
fn the_variables_of_the_environment() {
    let refuses = || Example::new("HOOKS_ENABLED", bash("ls")).file(USER, settings("PreToolUse", "*", &["exit 2"]));
    check(vec![
        refuses().exits(2),
        refuses().env(&[("HOOKS_ENABLED", "false")]).gives("/skipped/0/reason", "disabled"),
        // In seconds, as the document has it.
        Example::new("HOOKS_TIMEOUT", bash("ls"))
            .file(USER, settings("PreToolUse", "*", &["sleep 1000"]))
            .env(&[("HOOKS_TIMEOUT", "1")])
            .gives("/hooks/0/status", "timeout"),
    ]);
}
