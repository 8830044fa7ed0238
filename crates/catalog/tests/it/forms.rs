//! Every form in every syntax: what is written in it reaches the hook, wherever the form keeps it.

use std::time::Duration;

use ollm_catalog::Severity;
use ollm_protocol::hook::action::{AskAgentSpec, CommandSpec, HttpSpec, McpSpec, ShellSpec};
use ollm_protocol::hook::{RateLimit, Reach, Requires};
use ollm_protocol::{Action, ActionSpec, Basis, EventKind, Hook};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, ids};

/// One hook for `fileEdited` in each form and syntax, by file name.
fn everywhere(entry: &Value) -> Vec<(&'static str, String)> {
    let mut parts = entry.clone();
    let map = parts.as_object_mut().unwrap();
    let action = map.remove("action").unwrap_or_else(|| {
        let mut action = json!({"type": "command", "command": map.remove("command")});
        if let Some(args) = map.remove("args") {
            action["args"] = args;
        }
        action
    });
    let mut when = json!({"type": "fileEdited"});
    if let Some(patterns) = map.remove("filePatterns") {
        when["patterns"] = patterns;
    }
    (parts["when"], parts["then"]) = (when, action);
    let mut modern = entry.clone();
    modern["eventType"] = json!("fileEdited");
    let listed = json!({"hooks": {"fileEdited": [entry]}});
    let bare = json!({"fileEdited": [entry]});
    vec![
        ("x.json", listed.to_string()),
        ("x.yaml", yaml(&listed, 0)),
        ("x.yml", bare.to_string()),
        ("x.kiro.hook", modern.to_string()),
        ("x.json", modern.to_string()),
        ("x.yaml", yaml(&modern, 0)),
        ("x.kiro.hook", format!("// a hook\n{parts:#}")),
        ("x.kiro.hook", yaml(&parts, 0)),
        ("x.json", format!("{parts}")),
        ("x.yml", yaml(&parts, 0)),
    ]
}

/// A value in block style; texts are quoted as in JSON.
fn yaml(value: &Value, depth: usize) -> String {
    let pad = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => map.iter().fold(String::new(), |text, (key, value)| {
            let nested =
                !matches!(value, Value::Object(map) if map.is_empty()) && (value.is_object() || value.is_array());
            let gap = if nested { "\n" } else { " " };
            format!("{text}{pad}{key}:{gap}{}", yaml(value, depth + 1))
        }),
        Value::Array(items) if !items.is_empty() => items.iter().fold(String::new(), |text, item| {
            let inner = yaml(item, depth + 1);
            format!("{text}{pad}- {}", inner.trim_start())
        }),
        Value::Array(_) => format!("{pad}[]\n"),
        other => format!("{other}\n"),
    }
}

/// What a hook comes to, without what depends on the name and the form of its file.
fn essence(hook: &Hook) -> Value {
    hook.definition()
}

#[test]
fn every_key_means_the_same_in_every_form_and_syntax() {
    let entry = json!({
        "name": "look", "description": "d", "command": "npx", "args": ["a", "{{file.path}}"], "dialect": "ollm",
        "filePatterns": ["*.rs", "src/**"], "if": "data.path != ''", "timeout": 500, "onFailure": "allow",
        "priority": "low", "parallel": true, "async": true, "rateLimit": {"perMinute": 6, "cooldownMs": 250},
        "requires": {"commands": ["git"], "files": ["Cargo.toml"], "services": ["127.0.0.1:11434"]}, "scope": "all",
        "env": {"A": "b"}, "passEnv": ["TOKEN"], "cwd": "sub", "limits": {"files": 9, "output": "1MiB"},
        "version": "2.0.0", "enabled": false
    });
    let mut seen: Option<Value> = None;
    for (name, text) in everywhere(&entry) {
        let world = World::new();
        world.write(&format!("home/.ollm/hooks/{name}"), &text);
        let hook = world.hook();
        let spec = &hook.spec;
        assert_eq!(hook.id(), format!("user:{name}:fileEdited:look"), "{text}");
        assert_eq!(spec.file_patterns, ["*.rs", "src/**"], "{text}");
        assert_eq!(spec.condition.as_deref(), Some("data.path != ''"));
        let rate = RateLimit { per_minute: Some(6), cooldown: Some(Duration::from_millis(250)) };
        assert_eq!((spec.rate_limit, spec.reach, spec.detached), (rate, Some(Reach::All), Some(true)));
        let requires = Requires {
            commands: vec!["git".into()],
            files: vec!["Cargo.toml".into()],
            services: vec!["127.0.0.1:11434".into()],
        };
        assert_eq!((&spec.requires, spec.enabled), (&requires, false));
        assert_eq!(hook.timeout.value, Duration::from_millis(500));
        let first = seen.get_or_insert_with(|| essence(&hook));
        assert_eq!(&essence(&hook), first, "{text}");
    }
}

#[test]
fn every_action_is_read_in_every_form_and_syntax() {
    for (action, expected) in [
        (
            json!({"type": "askAgent", "prompt": "Run: x"}),
            ActionSpec::AskAgent(AskAgentSpec { prompt: "Run: x".into() }),
        ),
        (json!({"type": "ask_agent", "prompt": "x"}), ActionSpec::AskAgent(AskAgentSpec { prompt: "x".into() })),
        (
            json!({"type": "shell", "command": "echo hi | cat"}),
            ActionSpec::Shell(ShellSpec { script: "echo hi | cat".into() }),
        ),
        (
            json!({"type": "http", "url": "https://example.com/x", "headers": {"X-A": "b"}}),
            ActionSpec::Http(HttpSpec {
                url: "https://example.com/x".into(),
                headers: vec![("X-A".into(), "b".into())],
            }),
        ),
        (
            json!({"type": "mcp", "server": "s", "tool": "t", "args": {"a": [1, {"b": null}]}}),
            ActionSpec::Mcp(McpSpec {
                server: "s".into(),
                tool: "t".into(),
                args: json!({"a": [1, {"b": null}]}).as_object().unwrap().clone(),
            }),
        ),
        (
            json!({"type": "command", "command": "npx", "args": ["x"]}),
            ActionSpec::Command(CommandSpec { command: "npx".into(), args: vec!["x".into()], script: None }),
        ),
    ] {
        for (name, text) in everywhere(&json!({"name": "n", "action": action})) {
            let world = World::new();
            world.write(&format!("home/.ollm/hooks/{name}"), &text);
            assert_eq!(world.hook().spec.action, expected, "{text}");
        }
    }
}

#[test]
fn files_of_an_action_are_found_beside_the_hook_file_and_stay_inside_its_folder() {
    let world = World::new();
    let script = world.write("home/.ollm/hooks/x.py", "");
    for (name, text) in everywhere(&json!({"action": {"type": "command", "command": "python3", "args": ["x.py"]}})) {
        let file = world.write(&format!("home/.ollm/hooks/{name}"), text);
        assert_eq!(world.hook().spec.script(), Some(&script));
        std::fs::remove_file(file).unwrap();
    }
    for (name, text) in everywhere(&json!({"action": {"type": "command", "command": "sh", "args": ["../../x.sh"]}})) {
        let file = world.write(&format!("home/.ollm/hooks/{name}"), text);
        let (problem, loaded) = world.problem();
        assert_eq!(loaded, 0);
        assert!(problem.message.contains("out of the hook's folder"), "{problem}");
        assert!(problem.field.ends_with(".args[0]"), "{problem}");
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn keys_may_be_spelled_in_snake_case() {
    let world = World::new();
    let text = "event_type: [promptSubmit, agentStop]\nfile_patterns: ['*.rs']\non_failure: block\nrate_limit: {per_minute: '3', cooldown_ms: 5s}\npass_env: [A]\nworking_directory: /tmp\nlimits: {file_size: 5}\naction: {type: run_command, command: /bin/true}\n";
    world.write("home/.ollm/hooks/a.yaml", text);
    let (catalog, problems) = world.load();
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages, ["`per_minute` should be a whole number above zero, not text; it is read as meant"]);
    let hook = &catalog.hooks[0];
    assert_eq!(hook.events, [EventKind::BeforeAgent, EventKind::AfterAgent]);
    assert_eq!(hook.spec.file_patterns, ["*.rs"]);
    assert_eq!(hook.on_failure.basis, Basis::Hook);
    let rate = RateLimit { per_minute: Some(3), cooldown: Some(Duration::from_secs(5)) };
    assert_eq!(hook.spec.rate_limit, rate);
    assert_eq!((hook.spec.pass_env.as_slice(), hook.spec.limits.file_size), (&["A".to_owned()][..], Some(5)));
    assert_eq!(hook.spec.cwd.as_deref(), Some("/tmp".as_ref()));
}

#[test]
fn two_spellings_of_one_key_are_one_too_many() {
    let world = World::new();
    world.entry(r#"{"command": "npx", "onFailure": "allow", "on_failure": "block"}"#);
    let (problem, loaded) = world.problem();
    // Which of the two counts is not known, so it is the stricter one.
    let message = "`onFailure` is written twice; until that is mended it refuses whatever it is for";
    assert_eq!((loaded, problem.message.as_str()), (1, message));
}

#[test]
fn groups_of_shell_commands_are_read_in_a_hook_file_too() {
    let world = World::new();
    let text = "hooks:\n  PostToolUse:\n    - matcher: write_file|replace_in_file\n      hooks:\n        - type: command\n          command: black {{tool_args.file_path}}\n";
    world.write("home/.ollm/hooks/a.yaml", text);
    let hook = world.hook();
    assert_eq!(hook.matcher.text(), "write_file|replace_in_file");
    assert_eq!(hook.dialect.name(), "agent");
    assert!(matches!(hook.action, Action::Shell(_)));
}

#[test]
fn comments_in_json_do_no_harm_and_hide_nothing() {
    let world = World::new();
    let text = "/* guards */ {\n // \"hooks\": {}\n \"hooks\": {\"before_tool\": [ // all\n  {\"command\": \"npx\", \"args\": [\"https://x\", \"/* not */\", \"a\\\"//b\"]} /* ö\n */ ]}}\n//";
    world.write("home/.ollm/hooks/a.json", text);
    world.write(
        "home/.config/agent/settings.json",
        "{ // theirs\n\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"true\"}]}]}}",
    );
    let hooks = world.hooks();
    assert_eq!(hooks.len(), 2);
    let ActionSpec::Command(CommandSpec { args, .. }) = &hooks[0].spec.action else { panic!("{:?}", hooks[0]) };
    assert_eq!(args, &["https://x", "/* not */", "a\"//b"]);
}

#[test]
fn the_trusted_folder_of_a_project_is_a_group_and_that_of_the_user_is_not() {
    let world = World::new();
    let text = r#"{"before_tool": [{"name": "n", "command": "sh", "args": ["x.sh"], "trusted": true}]}"#;
    world.write("home/.ollm/hooks/trusted/a.json", text);
    world.write("project/.ollm/hooks/trusted/a.json", text);
    let script = world.write("project/.ollm/hooks/trusted/x.sh", "");
    world.write("project/.ollm/hooks/b.json", text.replace("\"trusted\": true", "\"trusted\": false"));
    let (catalog, problems) = world.load();
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert_eq!(problems[0].severity, Severity::Warning);
    assert_eq!(problems[0].message, "`trusted` is ignored: a project cannot vouch for itself");
    let expected = [
        "user:trusted/a.json:before_tool:n",
        "workspace:b.json:before_tool:n",
        "workspace:trusted/a.json:before_tool:n",
    ];
    assert_eq!(ids(&catalog.hooks), expected);
    let groups: Vec<_> = catalog.hooks.iter().map(|hook| hook.spec.group.as_deref()).collect();
    assert_eq!(groups, [None, None, Some("trusted")]);
    assert_eq!(catalog.hooks[2].spec.script(), Some(&script));
}

#[test]
fn scripts_that_nothing_declares_are_found_when_positions_are() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.entry(r#"{"command": "sh", "args": ["used.sh"], "inputs": ["lib.py"]}, {"command": "node", "args": ["used.js"], "timeout": "soon"}"#);
    let folder = "home/.ollm/hooks";
    for name in ["used.sh", "lib.py", "used.js", "notes.txt", ".hidden.sh", "rules.json5"] {
        world.write(&format!("{folder}/{name}"), "");
    }
    let log = world.write(&format!("{folder}/log.js"), "if (event === 'before_model') {}");
    let many = world.write(&format!("{folder}/many.py"), "before_model after_model");
    let program = world.write("project/.ollm/hooks/trusted/program", "");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let found: Vec<_> = world.load().0.undeclared.into_iter().map(|script| (script.path, script.event)).collect();
    assert_eq!(found, [(log, Some("before_model")), (many, None), (program, None)]);
}

/// A hook in any form and syntax, in the user's folder or the project's, perhaps with a timeout of its own.
fn declared() -> impl Strategy<Value = (usize, bool, Option<u64>)> {
    (0..10_usize, any::<bool>(), prop::option::of(1..9000_u64))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn property_02_the_order_of_registration_does_not_depend_on_the_form(
        hooks in prop::collection::vec(declared(), 1..12),
    ) {
        let world = World::new();
        let (mut user, mut project) = (Vec::new(), Vec::new());
        for (index, (form, own, timeout)) in hooks.iter().enumerate() {
            let name = format!("hook-{index:02}");
            let mut entry = json!({"name": name, "command": "npx", "args": [name]});
            if let Some(timeout) = timeout {
                entry["timeout"] = json!(timeout);
            }
            let (file, text) = everywhere(&entry).swap_remove(*form);
            let folder = if *own { "home" } else { "project" };
            world.write(&format!("{folder}/.ollm/hooks/{name}-{file}"), text);
            if *own { &mut user } else { &mut project }.push(name);
        }
        let loaded = world.hooks();
        let names: Vec<&str> = loaded.iter().map(|hook| hook.spec.name.as_str()).collect();
        prop_assert_eq!(names, user.iter().chain(&project).map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn property_39_the_configuration_reaches_hooks_of_every_form(
        hooks in prop::collection::vec(declared(), 1..8),
        timeout in prop::option::of(1..60_000_u64),
        enabled: bool,
        trust: bool,
    ) {
        let world = World::new();
        let line = timeout.map(|timeout| format!("  timeout: {timeout}\n")).unwrap_or_default();
        world.write("home/.ollm/config.yaml", format!("hooks:\n  enabled: {enabled}\n  trustWorkspace: {trust}\n{line}"));
        for (index, (form, own, timeout)) in hooks.iter().enumerate() {
            let mut entry = json!({"name": format!("{index}"), "command": "npx", "args": [index.to_string()], "dialect": "ollm"});
            if let Some(timeout) = timeout {
                entry["timeout"] = json!(timeout);
            }
            let (file, text) = everywhere(&entry).swap_remove(*form);
            let folder = if *own { "home" } else { "project" };
            world.write(&format!("{folder}/.ollm/hooks/{index}-{file}"), text);
        }
        let (catalog, problems) = world.load();
        prop_assert_eq!(problems, []);
        prop_assert_eq!((catalog.settings.enabled, catalog.settings.trust_workspace), (enabled, trust));
        for hook in &catalog.hooks {
            let (_, _, own) = hooks[hook.spec.name.parse::<usize>().unwrap()];
            let (expected, basis) = match (own, timeout) {
                (Some(own), _) => (own, Basis::Hook),
                (None, Some(timeout)) => (timeout, Basis::Config),
                (None, None) => (30_000, Basis::Dialect),
            };
            prop_assert_eq!((hook.timeout.value, hook.timeout.basis), (Duration::from_millis(expected), basis));
        }
    }
}
