//! Hooks that people wrote for other agents: imported, and read where they are.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ollm_catalog::connection::{ImportedHooks, WrittenFile};
use ollm_protocol::dialect::agents::home::WrittenForm;
use ollm_protocol::dialect::agents::{AgentEvent, Pick};
use ollm_protocol::dialect::{AGENTS, AgentDialect, agent_named};
use ollm_protocol::{Event, EventKind, Hook, Matcher, Source, Subject};
use serde_json::{Value, json};

use crate::world::World;

fn file() -> WrittenFile {
    let label = ".agents/plugins/mine/hooks/hooks.json".to_owned();
    WrittenFile { path: Path::new("/home/me").join(&label), label, in_project: false }
}

fn imported(id: &str, settings: &Value) -> ImportedHooks {
    let mut imported = ImportedHooks::default();
    imported.add(&file(), &settings.to_string(), agent_named(id).unwrap()).unwrap();
    imported
}

#[test]
fn hooks_of_an_agent_become_entries_of_ours_in_its_dialect() {
    let settings = json!({"model": "opus", "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "check", "timeout": 5}]},
            {"matcher": "mcp__.*__write", "hooks": [{"type": "http", "url": "https://hooks.example/x", "headers": {"A": "b"}}]},
            {"matcher": "Edit, Write", "hooks": [{"command": "fmt", "args": ["--all", "${HOME}", "${CLAUDE_PROJECT_DIR}/a"], "async": true}]},
            {"hooks": [{"type": "command", "command": "/bin/ollm hook run PreToolUse --from claude"}]},
        ],
        "PostToolUseFailure": [{"hooks": [{"type": "command", "command": "log"}]}],
        "PostToolUse": [{"hooks": [{"type": "command", "command": "log"}]}],
        "Elicitation": [{"hooks": [{"type": "command", "command": "log"}]}],
    }});
    let found = imported("claude", &settings);
    assert_eq!(found.left, Vec::<String>::new());
    let before = json!([
        {"name": "claude-1", "dialect": "claude", "matcher": "Bash", "action": {"type": "shell", "command": "check"}, "timeout": "5000ms"},
        {"name": "claude-2", "dialect": "claude", "matcher": "re:mcp__.*__write",
            "action": {"type": "http", "url": "https://hooks.example/x", "headers": {"A": "b"}}},
        {"name": "claude-3", "dialect": "claude", "matcher": "Edit|Write",
            "action": {"type": "shell", "command": "fmt --all '${HOME}' \"${CLAUDE_PROJECT_DIR}\"/a"}, "async": true},
    ]);
    let file = found.file();
    assert_eq!(file["hooks"]["before_tool"], before);
    assert_eq!(file["hooks"]["after_tool"][0]["if"], "has(data.error)");
    assert_eq!(file["hooks"]["after_tool"][1]["if"], "!has(data.error)");
    assert_eq!(file["hooks"]["custom:Elicitation"][0]["action"]["command"], "log");
}

#[test]
fn what_is_posted_has_the_variables_in_its_headers_that_it_lists() {
    let headers = json!({"A": "Bearer $TOKEN", "B": "${TOKEN}-${TEAM}.", "C": "$HOME$TOKEN/5$ $", "D": "plain"});
    let hook = json!({"type": "http", "url": "https://hooks.example/x", "headers": headers, "allowedEnvVars": ["TOKEN", "TEAM"]});
    for (id, settings) in [
        ("claude", json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}})),
        ("copilot", json!({"version": 1, "hooks": {"preToolUse": [hook]}})),
    ] {
        let found = imported(id, &settings);
        let entry = &found.hooks[0].1;
        let headers = json!({"A": "Bearer ${TOKEN}", "B": "${TOKEN}-${TEAM}.", "C": "${TOKEN}/5$ $", "D": "plain"});
        assert_eq!((&entry["action"]["headers"], &entry["passEnv"]), (&headers, &json!(["TOKEN", "TEAM"])), "{id}");
    }
}

#[test]
fn a_hook_that_asks_us_is_not_taken_over_whatever_our_program_is_called() {
    let entry = |command: &str| json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}});
    for ours in [
        "/opt/renamed hook run Stop --from claude --within 600s",
        "'/my tools/renamed' hook run --from=gemini",
        "FAST=1 /bin/ollm hook run Stop --from claude | tee log",
    ] {
        assert_eq!(imported("claude", &entry(ours)), ImportedHooks::default(), "{ours}");
    }
    for theirs in
        ["/opt/renamed hook run Stop --from claude | tee log", "husky hook run", "echo ' hook run --from claude'"]
    {
        let found = imported("claude", &entry(theirs));
        assert_eq!(found.hooks[0].1["action"]["command"], theirs, "{found:?}");
    }
}

#[test]
fn timeouts_are_read_in_the_agents_own_unit() {
    let groups = |timeout: u64, event: &str| json!({"hooks": {event: [{"hooks": [{"type": "command", "command": "x", "timeout": timeout}]}]}});
    let flat = |key: &str, timeout: u64, event: &str| json!({"hooks": {event: [{"type": "command", "command": "x", key: timeout}]}});
    for (id, settings, timeout) in [
        ("claude", groups(5, "PreToolUse"), "5000ms"),
        ("gemini", groups(5000, "BeforeTool"), "5000ms"),
        ("qwen", groups(5, "PreToolUse"), "5000ms"),
        ("qwen", groups(5000, "PreToolUse"), "5000ms"),
        ("cursor", flat("timeout", 5, "preToolUse"), "5000ms"),
        ("copilot", flat("timeoutSec", 5, "PreToolUse"), "5000ms"),
    ] {
        let found = imported(id, &settings);
        assert_eq!(found.hooks[0].1["timeout"], timeout, "{id}: {found:?}");
    }
}

#[test]
fn what_cannot_be_taken_over_is_named() {
    let claude = |event: &str, group: Value| ("claude", json!({"hooks": {event: [group]}}));
    let one = |hook: Value| json!({"hooks": [hook]});
    let run = |key: &str, value: Value| json!({"hooks": [{"type": "command", "command": "x", key: value}]});
    let tool = |text: &str| json!({"type": "mcp_tool", "server": "s", "tool": "t", "input": {"a": [text]}});
    let matched = |matcher: &str| json!({"matcher": matcher, "hooks": [{"type": "command", "command": "x"}]});
    for ((id, settings), why) in [
        (claude("PreToolUse", one(json!({"type": "prompt", "prompt": "is it safe?"}))), "only Claude Code can do"),
        (claude("PreToolUse", one(json!({"type": "agent", "prompt": "look"}))), "type `agent`"),
        (claude("PreToolUse", one(json!({"type": "command"}))), "has no command"),
        (claude("PreToolUse", one(json!({"type": "mcp_tool", "tool": "scan"}))), "names no server and tool"),
        (claude("PreToolUse", one(tool("${a b}"))), "which is no field of an event"),
        (claude("PreToolUse", one(tool("${a"))), "without an end"),
        (claude("PreToolUse", one(tool("{{a}}"))), "which is a variable here"),
        (claude("PreToolUse", run("asyncRewake", true.into())), "wakes the model when it is done"),
        (claude("PreToolUse", run("if", "Edit(~/.ssh/**)".into())), "permission rule `Edit(~/.ssh/**)`"),
        (claude("PermissionRequest", run("if", "Bash".into())), "which only its agent can judge"),
        (claude("Stop", run("if", "Bash".into())), "without a tool, where it never runs"),
        (claude("PreToolUse", run("shell", "powershell".into())), "shell that is not there"),
        (claude("PreToolUse", run("args", json!([1]))), "not a list of texts"),
        (claude("PreToolUse", run("timeout", "soon".into())), "`timeout` that is no positive number"),
        (claude("PreToolUse", matched("Bash(?=x)")), "cannot be read here"),
        (claude("PreToolUse", json!({"matcher": "Bash"})), "has no list"),
        (claude("UserPromptExpansion", matched("deploy")), "means nothing at events of other agents"),
        (claude("FileChanged", matched(".env")), "no name elsewhere"),
        (claude("NoSuchEvent", matched("*")), "event that the agent does not have"),
    ] {
        let found = imported(id, &settings);
        assert_eq!(found.hooks, Vec::new(), "{settings}");
        assert!(matches!(&found.left[..], [left] if left.contains(why)), "{settings}: {:?}", found.left);
    }
}

#[test]
fn a_matcher_for_tools_of_servers_has_our_names_for_them() {
    let trigger = |matcher: &str| {
        let action = json!({"type": "command", "command": "x"});
        json!({"version": "v1", "hooks": [{"trigger": "PreToolUse", "matcher": matcher, "action": action}]})
    };
    let group = |matcher: &str| json!({"hooks": {"BeforeTool": [{"matcher": matcher, "hooks": [{"command": "x"}]}]}});
    let flat = |matcher: &str| json!({"hooks": {"preToolUse": [{"command": "x", "matcher": matcher}]}});
    for (id, settings, matcher) in [
        ("kiro", trigger("@db/.*"), "re:mcp__db__.*"),
        ("kiro", trigger(r"^@db\/[^/]+$"), "re:^mcp__db__[^/]+$"),
        ("kiro", trigger("execute_bash|@db/query"), "re:execute_bash|mcp__db__query"),
        ("gemini", group("mcp_db_.*"), "re:mcp_{1,2}db_{1,2}.*"),
        ("gemini", group("mcp_db_query"), "mcp_db_query"),
        ("cursor", flat("MCP:query"), "re:mcp__.+__query"),
    ] {
        let found = imported(id, &settings);
        assert_eq!(found.hooks[0].1["matcher"], matcher, "{id}: {found:?}");
        let fits = Matcher::parse(matcher).unwrap();
        assert!(fits.matches(Some(Subject::new(EventKind::BeforeTool, "mcp__db__query"))), "{id}: {matcher}");
        assert!(!fits.matches(Some(Subject::new(EventKind::BeforeTool, "mcp__db2__drop"))), "{id}: {matcher}");
    }
}

#[test]
fn a_hook_that_is_a_tool_of_a_server_calls_it_with_what_its_agent_sends() {
    let input = json!({"file": "in ${tool_input.file_path}: $5", "deep": [{"who": "${session_id}"}, 3]});
    for id in ["claude", "codex"] {
        let hook = json!({"type": "mcp_tool", "server": "sec", "tool": "scan", "input": input, "timeout": 9});
        let found = imported(id, &json!({"hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [hook]}]}}));
        let args =
            json!({"file": "in {{stdin.tool_input.file_path}}: $5", "deep": [{"who": "{{stdin.session_id}}"}, 3]});
        let action = json!({"type": "mcp", "server": "sec", "tool": "scan", "args": args});
        assert_eq!(found.hooks[0].1["action"], action, "{id}: {found:?}");
        assert_eq!(found.hooks[0].1["timeout"], "9000ms");
    }
}

#[test]
fn a_prompt_that_is_sent_for_the_person_asks_the_agent() {
    let settings = json!({"version": 1, "hooks": {"sessionStart": [{"type": "prompt", "prompt": "Run the tests."}]}});
    let found = imported("copilot", &settings);
    assert_eq!(found.hooks[0].1["action"], json!({"type": "askAgent", "prompt": "Run the tests."}), "{found:?}");
    let cursor = json!({"version": 1, "hooks": {"preToolUse": [{"type": "prompt", "prompt": "Is it safe?"}]}});
    assert!(imported("cursor", &cursor).left[0].contains("only Cursor can do"));
}

/// What an agent sends to its hooks at an event, and what we make of it.
fn golden(agent: &AgentDialect, event: &AgentEvent) -> (Value, Event) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/tests/golden").join(agent.name);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let cases = paths.iter().map(|path| serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap());
    let mut cases = cases.filter(|case| case["event"]["kind"] == event.kind.name());
    let case = cases.find(|case| {
        let said = agent.event_fields.iter().filter_map(|field| case["request"][field].as_str());
        let is_edit = case["event"]["data"]["args"]["path"].is_string() && event.pick == Pick::Any;
        !is_edit && said.chain(case["named"].as_str()).any(|name| name == event.name)
    });
    let case = case.unwrap_or_else(|| panic!("{} {}", agent.name, event.name));
    let data = case["event"]["data"].as_object().unwrap();
    let data = data.iter().map(|(name, value)| (name.as_str(), value.clone()));
    (case["request"].clone(), Event::unchecked(event.kind, data))
}

/// A hook that was written for an event of an agent, as we import it.
fn imported_for(agent: &'static AgentDialect, event: &AgentEvent) -> Hook {
    let name = event.asked_as.unwrap_or(event.name);
    let command = json!({"type": "command", "command": "x"});
    let settings = match agent.home.written.form {
        WrittenForm::Groups => json!({"hooks": {name: [{"hooks": [command]}]}}),
        WrittenForm::Flat => json!({"hooks": {name: [command]}}),
        WrittenForm::Triggers => json!({"hooks": [{"trigger": name, "action": command}]}),
        WrittenForm::Programs | WrittenForm::Code => Value::Null,
    };
    let path = Path::new("/home/me").join(name);
    let file = WrittenFile { label: name.to_owned(), path, in_project: false };
    let mut found = ImportedHooks::default();
    found.add(&file, &if settings.is_null() { "#!/bin/sh\n".to_owned() } else { settings.to_string() }, agent).unwrap();
    let world = World::new();
    world.write("home/.ollm/hooks/a.json", found.file().to_string());
    let (catalog, problems) = world.load();
    assert_eq!(problems, Vec::new(), "{} {name}", agent.name);
    catalog.hooks.into_iter().next().unwrap_or_else(|| panic!("{} {name}: {found:?}", agent.name))
}

#[test]
fn an_imported_hook_is_told_of_its_event_as_its_agent_tells_it() {
    let mut wrong = Vec::new();
    for agent in AGENTS.iter().copied().filter(|agent| agent.home.written.form != WrittenForm::Code) {
        let keys = |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        for event in agent.events.iter().filter(|event| !matches!(event.pick, Pick::Marked(..))) {
            // A program of Cline is told as the client itself does it, where that and the extension differ.
            if agent.events.iter().any(|sent| sent.asked_as == Some(event.name)) {
                continue;
            }
            let (request, told) = golden(agent, event);
            let heard: Value = serde_json::from_slice(&imported_for(agent, event).written(&told)).unwrap();
            // A field of ours names the session's own agent.
            let is_own = |key: &String| heard["agent"]["id"] == request["agent_id"] && key == "agent_id";
            let missing = keys(&request).into_iter().filter(|key| heard.get(key).is_none() && !is_own(key));
            let more = keys(&heard).into_iter().filter(|key| request.get(key).is_none());
            // What is known beside what the agent tells.
            let more =
                more.filter(|key| !matches!(key.as_str(), "attempt" | "session_id" | "cwd" | "agent" | "preToolUse"));
            let differ: Vec<String> = missing.chain(more).collect();
            if !differ.is_empty() {
                wrong.push(format!("{} {}: {differ:?} in {heard}", agent.name, event.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_matcher_means_what_it_meant_to_its_agent() {
    let groups =
        |event: &str, matcher: &str| json!({"hooks": {event: [{"matcher": matcher, "hooks": [{"command": "x"}]}]}});
    let flat = |event: &str, matcher: &str| json!({"hooks": {event: [{"command": "x", "matcher": matcher}]}});
    for (id, settings, matcher, condition) in [
        ("claude", groups("PreToolUse", "Edit, Write"), json!("Edit|Write"), Value::Null),
        ("claude", groups("PreToolUse", "^mcp__"), json!("re:^mcp__"), Value::Null),
        (
            "claude",
            groups("SessionStart", "startup|resume"),
            Value::Null,
            json!(r#"(!has(data.source) || data.source in ["startup","resume","new"])"#),
        ),
        (
            "claude",
            groups("SubagentStop", "^rev"),
            Value::Null,
            json!(r#"(!has(data.agent_type) || data.agent_type.matches("^rev"))"#),
        ),
        ("claude", groups("PermissionRequest", "Bash"), json!("Bash"), Value::Null),
        ("claude", groups("Stop", "anything"), Value::Null, Value::Null),
        ("claude", groups("Notification", "idle_prompt"), json!("idle_prompt"), Value::Null),
        ("gemini", groups("Notification", "idle"), Value::Null, Value::Null),
        ("gemini", groups("BeforeTool", "write_.*"), json!("re:write_.*"), Value::Null),
        ("gemini", groups("BeforeTool", "write_file|replace"), json!("write_file|replace"), Value::Null),
        // A part of a name is found in every name that has it.
        ("gemini", groups("BeforeTool", "file"), json!("re:file"), Value::Null),
        ("gemini", groups("BeforeTool", "write"), json!("re:write"), Value::Null),
        ("claude", groups("PreToolUse", "file"), json!("file"), Value::Null),
        ("qwen", groups("PreToolUse", "WriteFile|Shell"), json!("WriteFile|Shell"), Value::Null),
        ("qwen", groups("Notification", "idle"), json!("idle"), Value::Null),
        ("goose", groups("PreToolUse", "shell"), json!("shell"), Value::Null),
        ("goose", groups("PreToolUse", "developer"), json!("re:developer"), Value::Null),
        ("copilot", flat("preToolUse", "ba.*"), json!("re:^(?:ba.*)$"), Value::Null),
        // Tools of servers.
        ("copilot", flat("preToolUse", "bash|git-push"), json!("bash|mcp__git__push"), Value::Null),
        ("copilot", flat("preToolUse", "git-.*"), json!("re:^(?:(?:mcp__)?(?:git(?:-|__).*))$"), Value::Null),
        ("droid", groups("PreToolUse", "Execute|my-git___push"), json!("Execute|mcp__my-git__push"), Value::Null),
        (
            "droid",
            groups("PreToolUse", "^my-git___p[^x]"),
            json!("re:(?:mcp__)?(?:^(?:mcp__)?my-git__p[^x])"),
            Value::Null,
        ),
        ("goose", groups("PreToolUse", "^git__push$"), json!("re:(?:mcp__)?(?:^(?:mcp__)?git__push$)"), Value::Null),
        (
            "cursor",
            flat("beforeShellExecution", "git push|rm"),
            json!("Shell"),
            json!(r#"(!has(data.args.command) || data.args.command.matches("git push|rm"))"#),
        ),
        ("cursor", flat("beforeMCPExecution", "*"), json!("mcp__*"), Value::Null),
        (
            "goose",
            groups("UserPromptSubmit", "deploy"),
            Value::Null,
            json!(r#"(!has(data.prompt) || data.prompt.matches("deploy"))"#),
        ),
    ] {
        let found = imported(id, &settings);
        let [(_, entry)] = &found.hooks[..] else { panic!("{settings}: {found:?}") };
        let of = |key: &str| entry.get(key).cloned().unwrap_or_default();
        assert_eq!((of("matcher"), of("if")), (matcher, condition), "{id} {settings}");
    }
}

#[test]
fn what_a_file_says_about_its_hooks_holds_for_them() {
    let hook = json!({"type": "command", "command": "x"});
    let groups = |event: &str, hook: &Value| json!({event: [{"hooks": [hook]}]});
    let tool = json!({"type": "command", "command": "x", "if": "Bash(*)"});
    let goose = json!({"command": "x", "on_failure": "block"});
    let cursor = json!({"preToolUse": [{"command": "x", "failClosed": true}]});
    let copilot =
        json!({"preToolUse": [{"type": "command", "exec": "x", "args": ["a b"], "env": {"A": "1"}, "cwd": "s"}]});
    for (id, settings, key, value) in [
        ("claude", json!({"disableAllHooks": true, "hooks": groups("PreToolUse", &hook)}), "enabled", json!(false)),
        (
            "gemini",
            json!({"hooksConfig": {"enabled": false}, "hooks": groups("BeforeTool", &hook)}),
            "enabled",
            json!(false),
        ),
        (
            "gemini",
            json!({"hooksConfig": {"disabled": ["x"]}, "hooks": groups("BeforeTool", &hook)}),
            "enabled",
            json!(false),
        ),
        ("claude", json!({"hooks": groups("PreToolUse", &tool)}), "matcher", json!("Bash")),
        ("goose", json!({"hooks": groups("PreToolUse", &goose)}), "onFailure", json!("block")),
        ("cursor", json!({"version": 1, "hooks": cursor}), "onFailure", json!("block")),
        ("copilot", json!({"hooks": copilot}), "env", json!({"A": "1"})),
        ("copilot", json!({"hooks": copilot}), "cwd", json!("s")),
        ("copilot", json!({"hooks": copilot}), "action", json!({"type": "shell", "command": "x 'a b'"})),
        ("droid", groups("PreToolUse", &hook), "dialect", json!("droid")),
        ("cursor", json!({"hooks": cursor}), "cwd", json!("/home/me/.agents/plugins/mine/hooks")),
        (
            "goose",
            json!({"hooks": groups("PreToolUse", &goose)}),
            "action",
            json!({"type": "shell", "command": "PLUGIN_ROOT=\"${HOME}/.agents/plugins/mine\"; export PLUGIN_ROOT; x"}),
        ),
    ] {
        let found = imported(id, &settings);
        assert_eq!(found.hooks[0].1.get(key), Some(&value), "{id} {settings}: {found:?}");
    }
}

#[test]
fn kiro_names_the_trigger_in_each_hook() {
    let settings = json!({"version": "v1", "hooks": [
        {"name": "guard", "trigger": "PreToolUse", "matcher": "execute_bash", "timeout": 7,
            "action": {"type": "command", "command": "check"}},
        {"name": "docs", "trigger": "PostFileSave", "matcher": "\\.md$", "enabled": false,
            "action": {"type": "agent", "prompt": "Check the links."}},
        {"name": "ollm-Stop", "trigger": "Stop", "action": {"type": "command", "command": "/bin/ollm hook run Stop --from kiro"}},
    ]});
    let found = imported("kiro", &settings);
    assert_eq!(found.left, Vec::<String>::new());
    assert_eq!(
        found.file(),
        json!({"hooks": {
            "before_tool": [{"name": "guard", "dialect": "kiro", "spokenAs": "PreToolUse", "matcher": "execute_bash",
                "action": {"type": "shell", "command": "check"}, "timeout": "7000ms"}],
            "file_edited": [{"name": "docs", "dialect": "kiro", "if": r#"(!has(data.path) || data.path.matches("\\.md$"))"#,
                "action": {"type": "askAgent", "prompt": "Check the links."}, "enabled": false}],
        }})
    );
}

#[test]
fn the_configuration_of_an_agent_of_kiro_has_hooks_by_event() {
    let hook =
        |matcher: &str| json!({"matcher": matcher, "command": "check", "timeout_ms": 700, "cache_ttl_seconds": 5});
    let later = json!({"command": "log", "only_when_turn_complete": true});
    let settings = json!({"name": "reviewer", "tools": ["*"], "hooks": {
        "preToolUse": [hook("fs_*"), hook("execute_bash"), hook("@git"), hook("@git/push"), hook("*"), hook("@builtin"), hook("*_bash")],
        "agentSpawn": [{"command": "git status"}],
        "postToolUse": [later],
    }});
    let found = imported("kiro", &settings);
    let file = found.file();
    let hooks = file["hooks"]["before_tool"].as_array().unwrap();
    let matchers: Vec<Value> = hooks.iter().map(|hook| hook["matcher"].clone()).collect();
    assert_eq!(
        matchers,
        [
            json!("fs_*"),
            json!("execute_bash"),
            json!("mcp__git__*"),
            json!("mcp__git__push"),
            Value::Null,
            json!("builtin:*"),
            json!("re:^.*_bash$")
        ]
    );
    assert!(hooks.iter().all(|hook| hook["dialect"] == "kiro" && hook["timeout"] == "700ms"), "{hooks:?}");
    assert_eq!(file["hooks"]["session_start"][0]["action"]["command"], "git status");
    let left = &found.left[..];
    assert!(matches!(left, [turn] if turn.contains("waits for the end of a turn")), "{left:?}");
    assert_eq!(imported("kiro", &json!({"name": "plain"})), ImportedHooks::default());
}

#[test]
fn a_file_that_cannot_be_understood_says_why() {
    for (text, why) in [
        ("[1]", "not a JSON object"),
        ("{\"hooks\": {}, \"hooks\": {}}", "twice"),
        ("{\"hooks\": {\"Stop\": 1}}", "not a list"),
        ("{\"hooks\": ", "JSON"),
    ] {
        let said = ImportedHooks::default().add(&file(), text, agent_named("claude").unwrap()).unwrap_err();
        assert!(said.contains(why), "{text}: {said}");
    }
    for text in ["", "\u{feff}{}", "{} // nothing\r\n", "{\"permissions\": {},}"] {
        let mut found = ImportedHooks::default();
        found.add(&file(), text, agent_named("claude").unwrap()).unwrap();
        assert_eq!(found, ImportedHooks::default(), "{text:?}");
    }
}

/// A world whose user wants the hooks of these agents read.
fn reading(agents: &str) -> World {
    let world = World::new();
    world.write("home/.ollm/config.yaml", format!("hooks:\n  read: [{agents}]\n"));
    world
}

const GUARD: &str =
    r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check"}]}]}}"#;

fn shown(hooks: &[Hook]) -> Vec<(String, Source, Option<&'static str>)> {
    hooks.iter().map(|hook| (hook.id().to_owned(), hook.spec.source, hook.spec.read_from)).collect()
}

#[test]
fn hooks_of_agents_are_read_where_they_are_only_if_the_user_says_so() {
    let world = reading("claude");
    world.write("home/.claude/settings.json", GUARD);
    world.write("project/.claude/settings.json", GUARD);
    world.write("project/.claude/settings.local.json", GUARD);
    world.write("home/.gemini/settings.json", GUARD.replace("PreToolUse", "BeforeTool"));
    let (catalog, problems) = world.load();
    assert_eq!(problems, Vec::new());
    let id = |start: &str| format!("{start}:before_tool:20f65c28");
    assert_eq!(
        shown(&catalog.hooks),
        [
            (id("user:.claude/settings.json"), Source::User, Some("claude")),
            (id("workspace:.claude/settings.local.json"), Source::Workspace, Some("claude")),
            (id("workspace:.claude/settings.json"), Source::Workspace, Some("claude")),
        ]
    );
    assert!(catalog.hooks.iter().all(|hook| hook.dialect.name() == "claude"));
    world.write("home/.ollm/config.yaml", "");
    assert!(world.load().0.hooks.is_empty());
    world.write("project/.ollm/config.yaml", "hooks:\n  read: [claude]\n");
    let (catalog, problems) = world.load();
    assert!(catalog.hooks.is_empty(), "a project cannot ask for it");
    assert!(problems[0].message.contains("only the user decides whose hooks are read"), "{problems:?}");
}

#[test]
fn the_id_of_a_hook_does_not_depend_on_those_beside_it_or_on_the_event() {
    let world = reading("claude");
    let file = |others: &str| {
        format!(
            r#"{{"hooks": {{"Stop": [{{"hooks": [{{"command": "a"}}]}}], "PreToolUse": [{others}{{"hooks": [{{"command": "b"}}]}}]}}}}"#
        )
    };
    world.write("home/.claude/settings.json", file(""));
    let ids = |world: &World| shown(&world.load().0.hooks).into_iter().map(|(id, ..)| id).collect::<Vec<_>>();
    let before = ids(&world);
    world.write("home/.claude/settings.json", file(r#"{"hooks": [{"command": "c"}]}, "#));
    let after = ids(&world);
    assert_eq!((before.len(), after.len()), (2, 3));
    assert!(before.iter().all(|id| after.contains(id)), "{before:?} {after:?}");
}

#[test]
fn what_is_wrong_with_a_hook_in_place_is_told_where_it_stands() {
    let world = reading("claude, gemini");
    let file = world.write(
        "home/.claude/settings.json",
        "\u{feff}{\r\n  // mine\r\n  \"hooks\": {\"PreToolUse\": [\r\n    {\"hooks\": [{\"type\": \"prompt\", \"prompt\": \"ok?\"},\r\n      {\"command\": \"a\", \"command\": \"b\"},\r\n      {\"command\": \"x\"},]}\r\n  ]}\r\n}\r\n",
    );
    world.write("home/.gemini/settings.json", "{\"hooks\": 7}");
    let (catalog, problems) = world.load();
    assert_eq!(catalog.hooks.len(), 1);
    let of: Vec<_> = problems.iter().filter(|problem| problem.file == file).collect();
    assert_eq!(of.iter().map(|problem| problem.line).collect::<Vec<_>>(), [4, 5], "{problems:?}");
    assert!(of[0].message.contains("only Claude Code can do; it is left out"), "{}", of[0].message);
    assert!(of[1].message.contains("`command` twice"), "{}", of[1].message);
    assert!(
        problems.iter().any(|problem| problem.message.contains("`hooks` is a number, not an object")),
        "{problems:?}"
    );
}

#[test]
fn every_agent_with_files_of_its_own_is_read() {
    let world = reading("goose, kiro, cline, copilot, cursor, windsurf, droid");
    world.write("project/.kiro/agents/reviewer.json", r#"{"hooks": {"preToolUse": [{"command": "x"}]}}"#);
    world.write("home/.agents/plugins/mine/hooks/hooks.json", GUARD);
    world.write(
        "home/.kiro/hooks/a.json",
        r#"{"hooks": [{"trigger": "Stop", "action": {"type": "command", "command": "x"}}]}"#,
    );
    world.write("home/Documents/Cline/Hooks/PreToolUse", "#!/bin/sh\n");
    world.write("home/Documents/Cline/Hooks/TaskStart", "#!/bin/sh\n/bin/ollm hook run TaskStart --from cline\n");
    world.write("home/Documents/Cline/Hooks/README", "none");
    world.write("home/.copilot/hooks/b.json", r#"{"hooks": {"preToolUse": [{"type": "command", "bash": "x"}]}}"#);
    world.write("project/.cursor/hooks.json", r#"{"hooks": {"stop": [{"command": "x"}]}}"#);
    world.write("project/.windsurf/hooks.json", r#"{"hooks": {"pre_run_command": [{"command": "x"}]}}"#);
    world.write("project/.factory/hooks.json", r#"{"PreToolUse": [{"hooks": [{"command": "x"}]}]}"#);
    let (catalog, problems) = world.load();
    assert_eq!(problems, Vec::new());
    let found: Vec<_> = catalog.hooks.iter().map(|hook| hook.spec.read_from.unwrap()).collect();
    assert_eq!(found, ["goose", "kiro", "cline", "copilot", "kiro", "cursor", "windsurf", "droid"]);
}

#[test]
fn what_cannot_be_looked_at_is_told_and_what_is_not_there_is_not() {
    let world = reading("claude, kiro, gemini");
    let link = world.base().join("home/.gemini/settings.json");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("nowhere", link).unwrap();
    std::fs::create_dir_all(world.base().join("home/.kiro/hooks/folder.json")).unwrap();
    assert_eq!(world.load().1, Vec::new());
    std::fs::create_dir_all(world.base().join("home/.claude/settings.json")).unwrap();
    let (_, problems) = world.load();
    assert!(matches!(&problems[..], [one] if one.message.contains("not a regular file")), "{problems:?}");
    let folder = world.base().join("home/.kiro/hooks");
    let close = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    close(0o000);
    // Root may look everywhere.
    let is_root = std::fs::read_dir(&folder).is_ok();
    let (_, problems) = world.load();
    assert!(is_root || problems.len() == 2, "{problems:?}");
    close(0o700);
}

#[test]
fn a_variable_moves_the_users_files_but_not_into_a_project() {
    let mut world = reading("claude");
    world.write("elsewhere/settings.json", GUARD);
    world.write("project/config/settings.json", GUARD);
    let folder = |path: &str, world: &World| world.base().join(path).display().to_string();
    let elsewhere = folder("elsewhere", &world);
    world.env.insert("CLAUDE_CONFIG_DIR".to_owned(), elsewhere);
    assert_eq!(world.load().0.hooks.len(), 1);
    let inside = folder("project/config", &world);
    world.env.insert("CLAUDE_CONFIG_DIR".to_owned(), inside);
    let (catalog, problems) = world.load();
    assert_eq!(catalog.hooks.len(), 0);
    assert!(problems[0].message.contains("leads into the project"), "{problems:?}");
}
