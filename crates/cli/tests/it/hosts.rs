//! `ollm hook run --from HOST`: standard output, standard error and exit status are the host's contract, and nothing
//! else is on either stream.

use crate::lab::{Lab, Ran};

struct Host {
    name: &'static str,
    event: &'static str,
    continues: (&'static str, &'static str, i32),
    refuses: (&'static str, &'static str, i32),
}

/// The same event as each host sends it, and what it expects to hear.
const HOSTS: &[Host] = &[
    Host {
        name: "ollm",
        event: r#"{"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": "ls"}, "session_id": "s1"}}"#,
        continues: ("{\"continue\":true}\n", "", 0),
        refuses: ("{\"continue\":false,\"systemMessage\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "gate",
        event: r#"{"version": "1.0.0", "event": "pre-tool-call", "context": {"tool": "shell", "args": {"command": "ls"}},
                   "metadata": {"sessionId": "s1"}}"#,
        continues: ("{\"allow\":true}\n", "", 0),
        refuses: ("{\"allow\":false,\"message\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "rpc",
        event: r#"{"jsonrpc": "2.0", "method": "execute", "id": "x-7", "params": {"event": {"type": "before_tool",
                   "data": {"tool_name": "shell", "args": {"command": "ls"}, "session_id": "s1"}}, "context": {}}}"#,
        continues: ("{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":\"x-7\"}\n", "", 0),
        refuses: (
            "{\"jsonrpc\":\"2.0\",\"result\":{\"continue\":false,\"reason\":\"not today\"},\"id\":\"x-7\"}\n",
            "",
            0,
        ),
    },
    Host {
        name: "agent",
        event: r#"{"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "shell", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("", "not today\n", 2),
    },
    Host {
        name: "claude",
        event: r#"{"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: (NESTED_DENY, "", 0),
    },
    Host {
        name: "codex",
        event: r#"{"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: (NESTED_DENY, "", 0),
    },
    Host {
        name: "gemini",
        event: r#"{"hook_event_name": "BeforeTool", "session_id": "s1", "tool_name": "run_shell_command",
                   "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("{\"decision\":\"deny\",\"reason\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "qwen",
        event: r#"{"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "run_shell_command",
                   "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: (
            "{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"not today\",\
             \"hookEventName\":\"PreToolUse\"},\"decision\":\"deny\",\"reason\":\"not today\"}\n",
            "",
            0,
        ),
    },
    Host {
        name: "droid",
        event: r#"{"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Execute", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("", "not today\n", 2),
    },
    Host {
        name: "goose",
        event: r#"{"event": "PreToolUse", "session_id": "s1", "tool_name": "developer__shell", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("{\"decision\":\"block\",\"reason\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "cursor",
        event: r#"{"hook_event_name": "preToolUse", "conversation_id": "s1", "tool_name": "Shell", "tool_input": {"command": "ls"}}"#,
        continues: ("{}\n", "", 0),
        refuses: ("{\"permission\":\"deny\",\"user_message\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "copilot",
        event: r#"{"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "kiro",
        event: r#"{"hook_event_name": "preToolUse", "session_id": "s1", "tool_name": "execute_bash", "tool_input": {"command": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("", "not today\n", 2),
    },
    Host {
        name: "windsurf",
        event: r#"{"agent_action_name": "pre_run_command", "trajectory_id": "s1", "tool_info": {"command_line": "ls"}}"#,
        continues: ("", "", 0),
        refuses: ("", "not today\n", 2),
    },
    Host {
        name: "cline",
        event: r#"{"hookName": "tool_call", "taskId": "s1", "tool_call": {"name": "run_commands", "input": {"commands": ["ls"]}}}"#,
        continues: ("", "", 0),
        refuses: ("{\"cancel\":true,\"errorMessage\":\"not today\"}\n", "", 0),
    },
    Host {
        name: "opencode",
        event: r#"{"hook": "tool.execute.before", "input": {"sessionID": "s1", "tool": "bash"}, "output": {"args": {"command": "ls"}}}"#,
        continues: ("", "", 0),
        refuses: ("", "not today\n", 2),
    },
];

const NESTED_DENY: &str = "{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\",\
    \"permissionDecisionReason\":\"not today\",\"hookEventName\":\"PreToolUse\"}}\n";

struct Speaker {
    dialect: &'static str,
    event: &'static str,
    /// What its requests always hold.
    hears: &'static str,
    continues: &'static str,
    refuses: &'static str,
}

/// A hook of each dialect.
const SPEAKERS: &[Speaker] = &[
    Speaker {
        dialect: "ollm",
        event: "before_tool",
        hears: r#"'{"event":"before_tool","data":{'*'"session_id":"s1"'*'"sessionId":"s1"'*"#,
        continues: r#"printf '{"continue": true}'"#,
        refuses: r#"printf '{"continue": false, "systemMessage": "not today"}'"#,
    },
    Speaker {
        dialect: "gate",
        event: "pre-tool-call",
        hears: r#"'{"version":"1.0.0","event":"pre-tool-call","context":{'*'"tool":"'*'"hookName":"speaker"'*"#,
        continues: r#"printf '{"allow": true}'"#,
        refuses: r#"printf '{"allow": false, "message": "not today"}'"#,
    },
    Speaker {
        dialect: "rpc",
        event: "before_tool",
        hears: r#"'{"jsonrpc":"2.0","method":"execute","params":{"event":{"type":"before_tool"'*'"id":1}'"#,
        continues: r#"printf '{"jsonrpc": "2.0", "result": {}, "id": 1}'"#,
        refuses: r#"printf '{"jsonrpc": "2.0", "result": {"continue": false, "reason": "not today"}, "id": 1}'"#,
    },
    Speaker {
        dialect: "agent",
        event: "PreToolUse",
        hears: r#"'{"hook_event_name":"PreToolUse",'*'"tool_input":{'*'"command":"ls"'*"#,
        continues: "exit 0",
        refuses: "echo 'not today' >&2; exit 2",
    },
    Speaker {
        dialect: "claude",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"PreToolUse"'*'"tool_name":"Bash"'*'"tool_input":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: r#"printf '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not today"}}'"#,
    },
    Speaker {
        dialect: "codex",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"PreToolUse"'*'"tool_name":"Bash"'*'"tool_input":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: r#"printf '{"decision": "block", "reason": "not today"}'"#,
    },
    Speaker {
        dialect: "gemini",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"BeforeTool"'*'"tool_name":"run_shell_command"'*'"tool_input":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: r#"printf '{"decision": "deny", "reason": "not today"}'"#,
    },
    Speaker {
        dialect: "qwen",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"PreToolUse"'*'"tool_name":"run_shell_command"'*"#,
        continues: "exit 0",
        refuses: r#"echo 'not today' >&2; exit 2"#,
    },
    Speaker {
        dialect: "droid",
        event: "before_tool",
        hears: r#"*'"tool_name":"Execute"'*'"tool_input":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: r#"echo 'not today' >&2; exit 2"#,
    },
    Speaker {
        dialect: "goose",
        event: "before_tool",
        hears: r#"*'"event":"PreToolUse"'*'"tool_name":"developer__shell"'*"#,
        continues: "exit 0",
        refuses: r#"printf '{"decision": "block", "reason": "not today"}'"#,
    },
    Speaker {
        dialect: "cursor",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"preToolUse"'*'"tool_name":"Shell"'*'"conversation_id":"s1"'*"#,
        continues: "printf '{}'",
        refuses: r#"printf '{"permission": "deny", "user_message": "not today"}'"#,
    },
    Speaker {
        dialect: "copilot",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"PreToolUse"'*'"tool_name":"Bash"'*'"tool_input":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: r#"printf '{"permissionDecision": "deny", "permissionDecisionReason": "not today"}'"#,
    },
    Speaker {
        dialect: "kiro",
        event: "before_tool",
        hears: r#"*'"hook_event_name":"preToolUse"'*'"tool_name":"execute_bash"'*"#,
        continues: "exit 0",
        refuses: r#"echo 'not today' >&2; exit 2"#,
    },
    Speaker {
        dialect: "windsurf",
        event: "before_tool",
        hears: r#"*'"agent_action_name":"pre_run_command"'*'"command_line":"ls"'*"#,
        continues: "exit 0",
        refuses: r#"echo 'not today' >&2; exit 2"#,
    },
    Speaker {
        dialect: "cline",
        event: "before_tool",
        hears: r#"*'"hookName":"tool_call"'*'"name":"run_commands","input":{"commands":["ls"]}'*"#,
        continues: "exit 0",
        refuses: r#"printf '{"cancel": true, "errorMessage": "not today"}'"#,
    },
    Speaker {
        dialect: "opencode",
        event: "before_tool",
        hears: r#"*'"hook":"tool.execute.before"'*'"args":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: r#"echo 'not today' >&2; exit 2"#,
    },
];

fn lab_with(speaker: &Speaker, answer: &str) -> Lab {
    let lab = Lab::new();
    let script = format!(
        "case $(cat) in {}) {answer} ;; *) printf '{{\"continue\": false, \"systemMessage\": \"not my language\"}}' ;; esac",
        speaker.hears
    );
    lab.user_hook(speaker.event, "speaker", &script, &format!(r#", "dialect": "{}""#, speaker.dialect));
    lab
}

fn heard(ran: &Ran) -> (&str, &str, i32) {
    (&ran.stdout, &ran.stderr, ran.code)
}

#[test]
fn a_hook_of_every_dialect_works_under_a_host_of_every_dialect() {
    for speaker in SPEAKERS {
        let (mild, strict) = (lab_with(speaker, speaker.continues), lab_with(speaker, speaker.refuses));
        for host in HOSTS {
            let pair = format!("{} hook under {} host", speaker.dialect, host.name);
            assert_eq!(heard(&mild.event_from(host.name, host.event)), host.continues, "{pair}, continuing");
            assert_eq!(heard(&strict.event_from(host.name, host.event)), host.refuses, "{pair}, refusing");
        }
    }
}

#[test]
fn hosts_hear_nothing_about_failed_and_untrusted_hooks() {
    let lab = Lab::with_hook("before_tool", "broken", "echo noise >&2; echo noise; exit 1");
    lab.user_hook("before_tool", "slow", crate::lab::FOREVER, r#", "timeout": "100ms""#);
    lab.user("missing.json", crate::lab::hook_file("before_tool", "missing", ""));
    lab.user("unreadable.json", "{");
    lab.workspace_hook("before_tool", "stranger", "touch ran", "");
    for host in HOSTS {
        assert_eq!(heard(&lab.event_from(host.name, host.event)), host.continues, "{}", host.name);
    }
    assert!(!lab.project.join("ran").exists());
    lab.assert_nobody_is_left();
}

#[test]
fn a_failed_gate_hook_refuses_under_every_host() {
    let lab = Lab::with_hook("pre-tool-call", "gate", "exit 3");
    for host in HOSTS {
        let ran = lab.event_from(host.name, host.event);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("hook `gate` failed: exited with status 3"), "{}: {said}", host.name);
        assert_eq!(ran.code, host.refuses.2, "{}", host.name);
    }
}

#[test]
fn hosts_hear_what_hooks_add() {
    let answer = r#"printf '{"continue": true, "systemMessage": "note", "reason": "for you", "metadata": {"rule": 7},
        "decision": "modify", "modified_args": {"command": "ls -l"}, "hookSpecificOutput": {"additionalContext": "more"}}'"#;
    let lab = Lab::with_hook("PreToolUse", "adds", answer);
    let told: Vec<String> = HOSTS.iter().take(4).map(|host| lab.event_from(host.name, host.event).stdout).collect();
    let expected = [
        "{\"continue\":true,\"systemMessage\":\"note\\nmore\"}\n",
        "{\"allow\":true,\"message\":\"for you\",\"metadata\":{\"rule\":7}}\n",
        "{\"jsonrpc\":\"2.0\",\"result\":{\"metadata\":{\"rule\":7}},\"id\":\"x-7\"}\n",
        "{\"decision\":\"modify\",\"modified_args\":{\"command\":\"ls -l\"},\"reason\":\"for you\",\"systemMessage\":\"note\",\
         \"metadata\":{\"rule\":7},\"hookSpecificOutput\":{\"additionalContext\":\"more\",\"hookEventName\":\"PreToolUse\"},\
         \"continue\":true}\n",
    ];
    assert_eq!(told, expected);
}

/// A name that is no text, wherever a host has it.
const NAMED_BY_NUMBERS: &str = r#"{"event": 5, "context": {}, "hook_event_name": 5, "agent_action_name": 5, "hookName": 5, "hook": 5,
    "method": "execute"}"#;

#[test]
fn an_event_that_cannot_be_read_is_refused_in_the_words_of_its_host() {
    let lab = Lab::new();
    let deep = format!("{{\"event\": {}", "[".repeat(10_000));
    for host in HOSTS {
        for garbled in ["", "{", "[]", NAMED_BY_NUMBERS, &deep] {
            let ran = lab.event_from(host.name, garbled);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains("ollm cannot judge this event"), "{}: {garbled:.20}: {said}", host.name);
            let refused = match host.name {
                "ollm" => ran.answer()["continue"] == false,
                "gate" => ran.answer()["allow"] == false,
                "rpc" => ran.answer()["result"]["continue"] == false,
                "cline" => ran.answer()["cancel"] == true && ran.code == 0,
                _ => ran.code == 2 && ran.stdout.is_empty(),
            };
            assert!(refused, "{}: {garbled:.20}: {said}", host.name);
        }
    }
}

#[test]
fn an_event_of_a_newer_host_passes_through() {
    let lab = Lab::with_hook("before_tool", "guard", "touch ran; printf '{\"continue\": false}'");
    let ran = lab.event_from("agent", r#"{"hook_event_name": "PreDream", "session_id": "s"}"#);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
    assert!(!lab.project.join("ran").exists());
}

#[test]
fn events_that_only_an_agent_knows_reach_the_hooks_for_them() {
    let lab = Lab::with_hook(
        "custom:ConfigChange",
        "guard",
        "cat > got; printf '{\"continue\": false, \"systemMessage\": \"no\"}'",
    );
    let ran = lab.event_from(
        "claude",
        r#"{"hook_event_name": "ConfigChange", "session_id": "s", "source": "project_settings"}"#,
    );
    assert_eq!(heard(&ran), ("{\"decision\":\"block\",\"reason\":\"no\"}\n", "", 0));
    let got: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(lab.project.join("got")).unwrap()).unwrap();
    assert_eq!(
        (&got["data"]["eventName"], &got["data"]["data"]),
        (&serde_json::json!("ConfigChange"), &serde_json::json!({"source": "project_settings"}),)
    );
    for (host, event) in [
        ("claude", r#"{"hook_event_name": "PreDream"}"#),
        ("cursor", r#"{"hook_event_name": "preDream"}"#),
        ("cline", r#"{"hookName": "pre_dream"}"#),
    ] {
        let ran = lab.event_from(host, event);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{host}");
        assert!(["", "{}\n"].contains(&ran.stdout.as_str()), "{host}");
    }
}

#[test]
fn an_event_without_a_name_is_named_on_the_command_line() {
    let lab = Lab::with_hook("before_tool", "guard", "echo 'not today' >&2; exit 2");
    lab.user_hook("before_tool", "strict", "exit 3", r#", "onFailure": "block""#);
    let event = r#"{"sessionId": "s1", "timestamp": 1768557930000, "toolName": "bash", "toolArgs": {"command": "ls"}}"#;
    let named = crate::lab::finish(lab.ollm(&["hook", "run", "--from", "copilot", "preToolUse"]), event.as_bytes());
    assert!(named.stdout.starts_with("{\"permissionDecision\":\"deny\""), "{named:?}");
    let nameless = lab.event_from("copilot", event);
    assert_eq!((nameless.code, nameless.stdout.as_str()), (2, ""));
    assert!(nameless.stderr.contains("the event has no `hook_event_name`"), "{nameless:?}");
}

#[test]
fn an_agent_is_answered_before_its_patience_ends() {
    let lab = Lab::new();
    lab.user_hook("session_end", "slow", crate::lab::FOREVER, r#", "timeout": "10m""#);
    let ran = lab.event_from("claude", r#"{"hook_event_name": "SessionEnd", "session_id": "s", "reason": "other"}"#);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn changed_arguments_come_back_under_the_names_of_the_host() {
    let lab = Lab::with_hook(
        "before_tool",
        "elsewhere",
        r#"printf '{"modified_args": {"path": "b.rs"}, "decision": "modify"}'"#,
    );
    lab.user_hook(
        "before_tool",
        "later",
        r#"case $(cat) in *'"file_path":"b.rs"'*) echo seen > seen ;; esac"#,
        r#", "dialect": "claude""#,
    );
    for (host, event, told) in [
        (
            "claude",
            r#"{"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {"file_path": "a.rs", "limit": 9}}"#,
            r#"{"hookSpecificOutput":{"updatedInput":{"file_path":"b.rs","limit":9},"hookEventName":"PreToolUse"}}"#,
        ),
        (
            "opencode",
            r#"{"hook": "tool.execute.before", "input": {"tool": "read"}, "output": {"args": {"filePath": "a.rs"}}}"#,
            r#"{"output":{"args":{"filePath":"b.rs"}}}"#,
        ),
        (
            "qwen",
            r#"{"hook_event_name": "PreToolUse", "tool_name": "read_file", "tool_input": {"absolute_path": "a.rs"}}"#,
            "this call must be changed, and Qwen Code cannot do that here",
        ),
    ] {
        let ran = lab.event_from(host, event);
        assert!(ran.stdout.contains(told), "{host}: {ran:?}");
        assert!(lab.project.join("seen").exists(), "{host}");
        std::fs::remove_file(lab.project.join("seen")).unwrap();
    }
}

#[test]
fn hosts_are_answered_though_their_stream_stays_open() {
    use std::io::Write;
    let lab = lab_with(&SPEAKERS[0], SPEAKERS[0].refuses);
    for host in HOSTS {
        let mut child = crate::lab::start(lab.ollm(&["hook", "run", "--from", host.name]));
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(host.event.as_bytes()).unwrap();
        assert_eq!(heard(&crate::lab::outcome(child)), host.refuses, "{}", host.name);
        drop(stdin);
    }
}
