//! Settings files of shell-command agents.

use std::time::Duration;

use ollm_catalog::Severity;
use ollm_protocol::hook::action::ShellSpec;
use ollm_protocol::{ActionSpec, Basis, Layer, Source};

use crate::world::{World, ids};

/// Each example of the format's documentation: the text, and event, matcher and command of each hook.
const EXAMPLES: &[(&str, &[(&str, &str, &str)])] = &[
    (
        r#"{"hooks": {
            "PreToolUse": [{"matcher": "bash_execute", "hooks": [
                {"type": "command", "command": "echo 'About to execute bash command'"}]}],
            "PostToolUse": [{"matcher": "*", "hooks": [
                {"type": "command", "command": "notify-send 'Tool completed: {{tool_name}}'"}]}],
            "Notification": [{"matcher": "*", "hooks": [
                {"type": "command", "command": "logger 'CLI-Agent: {{message}}'"}]}],
            "Stop": [{"matcher": "*", "hooks": [
                {"type": "command", "command": "echo 'Response complete' >> ~/.cli-agent-log"}]}]}}"#,
        &[
            ("before_tool", "bash_execute", "echo 'About to execute bash command'"),
            ("after_tool", "*", "notify-send 'Tool completed: {{tool_name}}'"),
            ("notification", "*", "logger 'CLI-Agent: {{message}}'"),
            ("after_agent", "*", "echo 'Response complete' >> ~/.cli-agent-log"),
        ],
    ),
    (
        r#"{"hooks": {"PostToolUse": [{"matcher": "write_file|replace_in_file", "hooks": [
            {"type": "command", "command": "black {{tool_args.file_path}} 2>/dev/null || true"},
            {"type": "command", "command": "git add {{tool_args.file_path}} 2>/dev/null || true"}]}]}}"#,
        &[
            ("after_tool", "write_file|replace_in_file", "black {{tool_args.file_path}} 2>/dev/null || true"),
            ("after_tool", "write_file|replace_in_file", "git add {{tool_args.file_path}} 2>/dev/null || true"),
        ],
    ),
    (
        r#"{"hooks": {
            "PreToolUse": [{"matcher": "bash_execute", "hooks": [{"type": "command",
                "command": "echo '[$(date)] BASH: {{tool_args.command}}' >> ~/.cli-agent-audit.log"}]}],
            "PostToolUse": [{"matcher": "*", "hooks": [{"type": "command",
                "command": "echo '[$(date)] TOOL: {{tool_name}} - {{result}}' | head -c 200 >> ~/.cli-agent-audit.log"}]}]}}"#,
        &[
            ("before_tool", "bash_execute", "echo '[$(date)] BASH: {{tool_args.command}}' >> ~/.cli-agent-audit.log"),
            (
                "after_tool",
                "*",
                "echo '[$(date)] TOOL: {{tool_name}} - {{result}}' | head -c 200 >> ~/.cli-agent-audit.log",
            ),
        ],
    ),
    (
        r#"{"hooks": {
            "Stop": [{"matcher": "*", "hooks": [{"type": "command",
                "command": "osascript -e 'display notification \"CLI-Agent finished\" with title \"Task Complete\"'"}]}],
            "Notification": [{"matcher": "*", "hooks": [{"type": "command",
                "command": "slack-cli send '#ai-agents' '{{message}}'"}]}]}}"#,
        &[
            (
                "after_agent",
                "*",
                "osascript -e 'display notification \"CLI-Agent finished\" with title \"Task Complete\"'",
            ),
            ("notification", "*", "slack-cli send '#ai-agents' '{{message}}'"),
        ],
    ),
    (
        r#"{"hooks": {"PreToolUse": [{"matcher": "bash_execute", "hooks": [
            {"type": "command", "command": "/usr/local/bin/security-check '{{tool_args.command}}'"}]}]}}"#,
        &[("before_tool", "bash_execute", "/usr/local/bin/security-check '{{tool_args.command}}'")],
    ),
];

#[test]
fn every_documented_example_loads_completely() {
    for (text, expected) in EXAMPLES {
        for place in [
            "home/.config/agent/settings.json",
            "home/.config/cli-agent/settings.json",
            "project/.config/agent/settings.local.json",
        ] {
            let world = World::new();
            world.write(place, text);
            let hooks = world.hooks();
            let seen: Vec<_> = hooks
                .iter()
                .map(|hook| {
                    let ActionSpec::Shell(ShellSpec { script }) = &hook.spec.action else { panic!("no shell") };
                    (hook.events[0].name(), hook.matcher.text(), script.as_str())
                })
                .collect();
            let expected: Vec<_> =
                expected.iter().map(|(event, matcher, line)| (*event, (*matcher).to_owned(), *line)).collect();
            assert_eq!(seen, expected);
            assert!(hooks.iter().all(|hook| hook.dialect.name() == "agent"));
        }
    }
}

#[test]
fn all_four_places_count_the_users_first_and_nearest_first_within_a_layer() {
    let world = World::new();
    for (place, name) in [
        ("home/.config/cli-agent/settings.json", "user-cli"),
        ("home/.config/agent/settings.json", "user"),
        ("project/.config/agent/settings.json", "project"),
        ("project/.config/agent/settings.local.json", "local"),
    ] {
        let text = format!(
            r#"{{"model": {{"x": 1}}, "hooks": {{"before_tool": [{{"hooks": [{{"name": "{name}", "command": "true"}}]}}]}}}}"#
        );
        world.write(place, text);
    }
    world.entry(r#"{"name": "file", "command": "/bin/true"}"#);
    let hooks = world.hooks();
    let expected = [
        "user:a.json:before_tool:file",
        "user:.config/agent/settings.json:before_tool:user",
        "user:.config/cli-agent/settings.json:before_tool:user-cli",
        "workspace:.config/agent/settings.local.json:before_tool:local",
        "workspace:.config/agent/settings.json:before_tool:project",
    ];
    assert_eq!(ids(&hooks), expected);
    let of = |hook: &ollm_protocol::Hook| (hook.spec.source, hook.spec.layer);
    assert_eq!(of(&hooks[2]), (Source::User, Layer::User));
    assert_eq!(of(&hooks[3]), (Source::Workspace, Layer::Workspace));
}

#[test]
fn a_hook_of_a_settings_file_has_its_own_timeout_folder_and_environment() {
    let world = World::new();
    let text = r#"{"hooks": {"PreToolUse": [{"hooks": [
        {"type": "command", "command": "true", "timeout": 7, "working_directory": "/tmp", "env": {"A": "b"}}]}]}}"#;
    world.write("home/.config/agent/settings.json", text);
    let hook = world.hook();
    assert_eq!((hook.timeout.value, hook.timeout.basis), (Duration::from_secs(7), Basis::Hook));
    assert_eq!(hook.spec.cwd.as_deref(), Some("/tmp".as_ref()));
    assert_eq!(hook.spec.env, [("A".to_owned(), "b".to_owned())]);
    assert_eq!(hook.matcher.text(), "*");
    assert_eq!(hook.spec.name, "true");
}

#[test]
fn positions_are_there_when_asked_for() {
    let world = World::new();
    let text = "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [\n  {\"command\": \"a\"},\n  {\"command\": \"b\"}]}]}}";
    world.write("home/.config/agent/settings.json", text);
    world.write("home/.ollm/hooks/a.json", "{\n\t\"before_tool\": [ {\"command\": \"/bin/true\"} ]}");
    let hooks = world.hooks();
    let places: Vec<_> = hooks.iter().map(|hook| (hook.spec.origin.line, hook.spec.origin.column)).collect();
    assert_eq!(places, [(2, 19), (2, 3), (3, 3)]);
}

#[test]
fn what_is_wrong_in_a_settings_file_is_named_and_hides_nothing_else() {
    let good = r#"{"hooks": [{"command": "good"}]}"#;
    for (group, field, message) in [
        (r#"{"hooks": [{"type": "prompt", "command": "x"}]}"#, "hooks[0].type", "only hooks of type \"command\""),
        (r#"{"hooks": [{"type": "http", "command": "x"}]}"#, "hooks[0]", "the hook has both a `command` and an action"),
        (r#"{"hooks": [{"type": "http", "headers": {}}]}"#, "hooks[0]", "a hook of type \"http\" needs `url`"),
        (r#"{"hooks": [{"command": ""}]}"#, "hooks[0].command", "`command` is empty"),
        (r#"{"hooks": [{"command": "x", "args": ["y"]}]}"#, "hooks[0].args", "`args` has no meaning"),
        (r#"{"hooks": [{"command": "x", "matcher": "y"}]}"#, "hooks[0].matcher", "`matcher` has no meaning"),
        (r#"{"matcher": "mcp__.*", "hooks": [{"command": "x"}]}"#, "matcher", "matcher `mcp__.*` looks like"),
        (r#"{"matcher": 7, "hooks": [{"command": "x"}]}"#, "matcher", "`matcher` must be text"),
        (r#"{"matcher": "*", "command": "x"}"#, "", "a group must have a list `hooks`"),
        (r#"{"hooks": {"command": "x"}}"#, "hooks", "`hooks` must be a list"),
        ("7", "", "a group must have a list `hooks`"),
    ] {
        let world = World::new();
        let text = format!(r#"{{"hooks": {{"PreToolUse": [{group}, {good}]}}}}"#);
        world.write("project/.config/agent/settings.json", text);
        let (problem, loaded) = world.problem();
        assert_eq!(loaded, 1, "{group}");
        assert_eq!(problem.severity, Severity::Error);
        let expected = if field.is_empty() { String::new() } else { format!(".{field}") };
        assert_eq!(problem.field, format!("hooks.PreToolUse[0]{expected}"), "{group}");
        assert!(problem.message.starts_with(message), "{group}: {}", problem.message);
    }
}

#[test]
fn what_promises_something_beside_the_hooks_of_a_group_is_refused_and_no_gate_opens() {
    let group = |beside: &str| {
        let hooks = r#"[{"type": "command", "command": "true"}, {"type": "command", "command": "false"}]"#;
        format!(r#"{{"hooks": {{"PreToolUse": [{{"matcher": "shell", {beside}, "hooks": {hooks}}}]}}}}"#)
    };
    // What stands there, how many hooks are loaded, how many of them only refuse, and what a person is told.
    for (beside, loaded, broken, help) in [
        (r#""onFailure": "block""#, 2, 2, "write `onFailure` into each of its hooks"),
        (r#""on_failur": "block""#, 2, 2, "write `onFailure` into each of its hooks"),
        (r#""permissions": {"net": false}"#, 0, 0, "write `permissions` into each of its hooks"),
        (r#""limits": {"memory": "1MiB"}"#, 0, 0, "write `limits` into each of its hooks"),
        (r#""matchr": "x""#, 0, 0, "did you mean `matcher`?"),
        (r#""onFailure": null"#, 2, 0, ""),
        (r#""timeout": 5"#, 2, 0, ""),
        (r#""note": "x""#, 2, 0, ""),
    ] {
        let world = World::new();
        world.write("home/.config/agent/settings.json", group(beside));
        let (catalog, problems) = world.load();
        assert_eq!((catalog.hooks.len(), problems.len()), (loaded, 1), "{beside}: {problems:?}");
        assert_eq!(catalog.hooks.iter().filter(|hook| hook.broken.is_some()).count(), broken, "{beside}");
        let severity = if help.is_empty() { Severity::Warning } else { Severity::Error };
        assert_eq!(
            (problems[0].severity, problems[0].help.as_deref().unwrap_or_default()),
            (severity, help),
            "{beside}"
        );
    }
}
