//! Calls that an event does not tell of in the words of the agent whose line asks, and changes that a call cannot take.

use ollm_protocol::EventKind;
use ollm_protocol::dialect::AGENTS;
use serde_json::{Value, json};

use super::tables::HOSTS;
use crate::lab::{Lab, Ran, finish};

fn named(lab: &Lab, from: &str, name: &str, event: &str) -> Ran {
    finish(lab.ollm(&["hook", "run", name, "--from", from]), event.as_bytes())
}

/// What an agent calls the moment before a tool runs, where its line names it.
fn gates() -> Vec<(&'static str, &'static str)> {
    let gate = |agent: &&'static ollm_protocol::dialect::agents::AgentDialect| {
        let mut events = agent.events.iter().filter(|event| event.kind == EventKind::BeforeTool);
        Some((agent.name, events.find(|event| agent.asks_at(event))?.name))
    };
    AGENTS.iter().filter_map(gate).collect()
}

#[test]
fn no_agents_event_passes_unjudged_under_the_named_line_of_another() {
    let lab = Lab::new();
    for (from, name) in gates() {
        for host in HOSTS.iter().skip(4) {
            let ran = named(&lab, from, name, &host.event.replace("\"ls\"", "\"rm -rf ~\""));
            let said = format!("{}{}", ran.stdout, ran.stderr);
            let is_judged = said.contains("removes or changes the home folder") || said.contains("ollm cannot judge");
            assert!(is_judged, "{} under {from} {name}: {ran:?}", host.name);
        }
    }
}

#[test]
fn a_call_without_a_tool_or_without_what_it_does_is_refused() {
    let lab = Lab::new();
    for (from, name) in gates() {
        for event in [json!({"session_id": "a"}), json!({}), json!({"tool_name": 5, "toolName": 5})] {
            let ran = named(&lab, from, name, &event.to_string());
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains("ollm cannot judge"), "{from} {name} {event}: {ran:?}");
        }
    }
    let shell = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash", "input": {"command": "rm -rf ~"}});
    let ran = lab.event_from("claude", &shell.to_string());
    assert!(ran.code == 2 && ran.stderr.contains("it does not say `tool_input`"), "{ran:?}");
    // A tool of which nothing is known may have no arguments.
    let other = json!({"hook_event_name": "PreToolUse", "tool_name": "mcp__clock__now"});
    assert_eq!(lab.event_from("claude", &other.to_string()).stdout, "");
}

#[test]
fn a_second_value_behind_an_agents_event_is_refused() {
    let lab = Lab::new();
    let event = r#"{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}"#;
    for more in ["{}", "x", "\n{\"event\": \"before_tool\"}"] {
        let ran = lab.event_from("claude", &format!("{event}{more}"));
        assert!(ran.code == 2 && ran.stderr.contains("something follows the event"), "{ran:?}");
    }
    assert_eq!(lab.event_from("claude", &format!("{event}\n \n")).code, 0);
}

#[test]
fn a_change_of_what_the_call_does_not_have_is_refused() {
    let answer = r#"printf '{"decision": "modify", "modified_args": {"path": "/tmp/other"}}'"#;
    let lab = Lab::with_hook("PreToolUse", "mover", answer);
    let event = |tool: &str, args: Value| {
        json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": tool, "tool_input": args}).to_string()
    };
    let patch = event("apply_patch", json!({"command": "*** Begin Patch\n*** Update File: a\n*** End Patch"}));
    let ran = lab.event_from("codex", &patch);
    assert!(ran.stdout.contains("deny") && ran.stdout.contains("`apply_patch` has no `path`"), "{ran:?}");
    let ran = lab.event_from("claude", &event("Read", json!({"file_path": "a"})));
    assert_eq!(ran.answer()["hookSpecificOutput"]["updatedInput"], json!({"file_path": "/tmp/other"}));
}

#[test]
fn fetch_and_mcp_are_names_of_tools_under_every_agent() {
    let lab = Lab::new();
    let refuse = "printf '{\"continue\": false, \"systemMessage\": \"not today\"}'";
    lab.user_hook("before_tool", "fetches", refuse, r#", "matcher": "fetch""#);
    lab.user_hook("before_tool", "servers", refuse, r#", "matcher": "mcp""#);
    for tool in ["WebFetch", "web_fetch", "webfetch", "FetchUrl", "fetch", "mcp__db__query"] {
        let data = json!({"tool_name": tool, "args": {"url": "http://127.0.0.1"}});
        let ran = lab.event(json!({"event": "before_tool", "data": data}).to_string());
        assert_eq!(ran.code, 2, "{tool}: {ran:?}");
    }
    let cline = json!({"hookName": "tool_call", "taskId": "s", "tool_call": {"name": "use_mcp_tool",
        "input": {"server_name": "db", "tool_name": "query", "arguments": "{}"}}});
    assert_eq!(lab.event_from("cline", &cline.to_string()).answer()["cancel"], true);
    let shown = lab.run(&["hook", "show", "fetches"]).stdout;
    assert!(shown.contains("claude: WebFetch"), "{shown}");
    lab.user_hook("before_tool", "typo", refuse, r#", "matcher": "Bsh""#);
    let shown = lab.run(&["hook", "show", "typo"]).stdout;
    assert!(shown.contains("no tool that is known of any agent"), "{shown}");
}

#[test]
fn tools_of_servers_are_matched_however_an_agent_joins_their_names() {
    let lab = Lab::new();
    let refuse = "printf '{\"continue\": false, \"systemMessage\": \"not today\"}'";
    lab.user_hook("before_tool", "issues", refuse, r#", "matcher": "mcp__git-hub__list_issues""#);
    lab.user_hook("before_tool", "database", refuse, r#", "matcher": "mcp__my_db__*""#);
    let copilot = |tool: &str| json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": {}});
    let opencode = |tool: &str| json!({"hook": "tool.execute.before", "input": {"tool": tool}, "output": {"args": {}}});
    for (host, event, refused) in [
        ("copilot", copilot("git-hub-list_issues"), true),
        ("copilot", copilot("my_db-query"), true),
        ("copilot", copilot("git-hub-list_pulls"), false),
        ("copilot", copilot("report_intent"), false),
        ("opencode", opencode("git-hub_list_issues"), true),
        ("opencode", opencode("my_db_query"), true),
        ("opencode", opencode("my_database_query"), false),
        ("droid", copilot("git-hub___list_issues"), true),
        ("droid", copilot("my_db___query"), true),
        ("droid", copilot("git-hub___list_pulls"), false),
        ("codex", copilot("mcp__git_hub__list_issues"), true),
    ] {
        let ran = lab.event_from(host, &event.to_string());
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(said.contains("not today"), refused, "{host} {event}: {ran:?}");
    }
    // A hook of the same agent reads the name as it came.
    lab.user_hook(
        "before_tool",
        "own",
        "grep -q '\"git-hub-list_pulls\"' && echo own >&2 && exit 2",
        r#", "dialect": "copilot""#,
    );
    let ran = lab.event_from("copilot", &copilot("git-hub-list_pulls").to_string());
    assert_eq!(ran.answer()["permissionDecisionReason"], "own", "{ran:?}");
}

#[test]
fn the_one_tool_by_which_an_agent_writes_is_matched_as_an_edit_and_as_a_write() {
    let lab = Lab::new();
    let refuse = "printf '{\"continue\": false, \"systemMessage\": \"not today\"}'";
    lab.user_hook("before_tool", "edits", refuse, r#", "matcher": "Edit", "filePatterns": ["*.rs"]"#);
    let call = |host: &str, event: &str, file: &str| {
        let event = json!({"hook_event_name": event, "session_id": "s", "tool_name": "Write",
            "tool_input": {"file_path": file, "content": "x"}});
        let ran = lab.event_from(host, &event.to_string());
        ran.stdout.contains("not today")
    };
    assert!(call("cursor", "preToolUse", "a.rs"));
    assert!(!call("cursor", "preToolUse", "a.md"));
    // Elsewhere a tool of this name writes a whole file.
    assert!(!call("claude", "PreToolUse", "a.rs"));
    let shown = lab.run(&["hook", "show", "edits"]).stdout;
    assert!(shown.contains("cursor: Write") && shown.contains("claude: Edit"), "{shown}");
    lab.user_hook(
        "before_tool",
        "own",
        "grep -q '\"tool_name\":\"Write\"' && echo own >&2 && exit 2",
        r#", "dialect": "cursor""#,
    );
    let event = json!({"hook_event_name": "preToolUse", "session_id": "s", "tool_name": "Write", "tool_input": {"file_path": "a.md"}});
    assert_eq!(lab.event_from("cursor", &event.to_string()).answer()["user_message"], "own");
}

#[test]
fn a_hook_written_for_an_agent_finds_the_folder_where_there_is_no_project() {
    let lab = Lab::new();
    lab.user_hook(
        "PreToolUse",
        "prints",
        "printf '%s' \"$CLAUDE_PROJECT_DIR\" >&2; exit 2",
        r#", "dialect": "claude""#,
    );
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let event =
        json!({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "cwd": folder});
    let mut command = lab.ollm(&["hook", "run", "--from", "claude"]);
    command.current_dir(&folder);
    let ran = finish(command, event.to_string().as_bytes());
    assert!(ran.stdout.contains(folder.to_str().unwrap()), "{ran:?}");
}

#[test]
fn a_call_is_judged_under_whatever_names_its_fields_have() {
    let lab = Lab::new();
    let args = json!({"command": "rm -rf /"});
    let text = args.to_string();
    for data in [
        json!({"tool_name": "Bash", "tool_input": args}),
        json!({"tool_name": "Bash", "toolInput": args}),
        json!({"tool_name": "Bash", "input": args}),
        json!({"tool_name": "shell", "args": {}, "tool_input": args}),
        json!({"tool_name": "shell", "args": null, "tool_input": args}),
        json!({"tool_name": "shell", "command": "rm -rf /"}),
        json!({"tool_name": "shell", "args": text}),
        json!({"tool_name": "shell", "args": ["rm", "-rf", "/"]}),
        json!({"tool_name": "shell", "args": [{"command": "rm -rf /"}]}),
    ] {
        for name in ["before_tool", "pre-tool-call", "PreToolUse"] {
            let ran = lab.event(json!({"event": name, "data": data}).to_string());
            assert_eq!(ran.code, 2, "{name} {data}: {ran:?}");
        }
        let ran = lab.event_from("ollm", &json!({"event": "before_tool", "data": data}).to_string());
        assert_eq!(ran.answer()["continue"], false, "{data}: {ran:?}");
        let gate = json!({"event": "pre-tool-call", "version": "1.0", "context": data});
        assert_eq!(lab.event_from("gate", &gate.to_string()).answer()["allow"], false, "{gate}");
        let flat = data.as_object().unwrap().iter().map(|(name, value)| (name.clone(), value.clone()));
        let flat: Value =
            flat.chain([("event".to_owned(), "before_tool".into())]).collect::<serde_json::Map<_, _>>().into();
        assert_eq!(lab.event(flat.to_string()).code, 2, "{flat}");
    }
}

#[test]
fn an_event_that_says_two_things_is_not_judged_by_one_of_them() {
    let lab = Lab::new();
    let (safe, evil) = (json!({"command": "ls"}), json!({"command": "rm -rf /"}));
    let both = json!({"event": "before_tool", "data": {"tool_name": "shell", "args": safe, "tool_input": evil}});
    let ran = lab.event(both.to_string());
    assert!(
        ran.code != 0 && ran.stderr.contains("`args` and `tool_input` of the event say different things"),
        "{ran:?}"
    );
    assert_eq!(lab.event_from("ollm", &both.to_string()).answer()["continue"], false);
    let both = json!({"event": "pre-tool-call", "data": {"tool": "shell", "args": safe}, "context": {"tool": "shell", "args": evil}});
    let ran = lab.event(both.to_string());
    assert!(ran.code != 0 && ran.stderr.contains("`data` and `context`"), "{ran:?}");
}
