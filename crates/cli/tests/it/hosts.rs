//! `ollm hook run --from HOST`: standard output, standard error and exit status are the host's contract, and nothing
//! else is on either stream.

mod files;
mod misused;
mod sender;
mod tables;
mod told;
mod unclear;

use ollm_protocol::dialect::AGENTS;
use serde_json::json;
use tables::{HOSTS, SPEAKERS, Speaker};

use crate::lab::{Lab, Ran, finish};

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
        assert!(
            said.contains("user hook `gate` (user:gate.json:pre-tool-call:gate) failed: exited with status 3"),
            "{}: {said}",
            host.name
        );
        assert_eq!(ran.code, host.refuses.2, "{}", host.name);
    }
}

#[test]
fn the_built_in_guards_refuse_under_every_host() {
    let lab = Lab::new();
    for host in HOSTS {
        let ran = lab.event_from(host.name, &host.event.replace("\"ls\"", "\"rm -rf ~\""));
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("removes or changes the home folder"), "{}: {said}", host.name);
        assert_eq!(ran.code, host.refuses.2, "{}", host.name);
    }
}

#[test]
fn an_event_of_any_size_is_answered_and_one_with_something_behind_it_refused() {
    let lab = lab_with(&SPEAKERS[0], SPEAKERS[0].refuses);
    let padding = "x".repeat(20 << 20);
    for host in HOSTS.iter().filter(|host| host.name != "rpc") {
        let event = host.event.trim_end().strip_suffix('}').unwrap();
        let large = format!("{event}, \"padding\": \"{padding}\"}}");
        assert_eq!(heard(&lab.event_from(host.name, &large)), host.refuses, "{}", host.name);
        if !AGENTS.iter().any(|agent| agent.name == host.name) {
            continue;
        }
        let ran = lab.event_from(host.name, &format!("{}{{\"event\": 1}}", host.event));
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("something follows the event"), "{}: {said}", host.name);
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
fn an_event_that_cannot_be_read_is_answered_in_the_form_of_the_event_it_was_named() {
    let lab = Lab::new();
    let told = |host: &str, event: &str| {
        let ran = finish(lab.ollm(&["hook", "run", event, "--from", host]), b"{\"a\":");
        (ran.code, ran.stdout)
    };
    for (host, event, part) in [
        ("claude", "PreToolUse", "\"permissionDecision\":\"deny\""),
        ("copilot", "PreToolUse", "deny"),
        ("cursor", "preToolUse", "deny"),
        ("gemini", "BeforeTool", "\"decision\":\"deny\""),
    ] {
        let (code, stdout) = told(host, event);
        assert!(stdout.contains(part) && stdout.contains("cannot judge this event"), "{host}: {code} {stdout}");
    }
    // At the end of a turn a refusal would only have the agent go on, without end.
    for (host, event) in [("claude", "Stop"), ("droid", "Stop"), ("gemini", "AfterAgent"), ("claude", "SessionEnd")] {
        let (code, stdout) = told(host, event);
        let answer: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        let keys: Vec<&str> = answer.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!((code, keys), (0, vec!["systemMessage"]), "{host} {event}: {stdout}");
        assert!(stdout.contains("cannot judge this event"), "{stdout}");
    }
    assert_eq!(told("cursor", "stop"), (0, "{}\n".to_owned()));
}

#[test]
fn a_refusal_that_an_agent_cannot_be_told_of_is_written_down_as_such() {
    let lab = Lab::with_hook("before_agent", "no", "printf '{\"continue\": false, \"systemMessage\": \"no\"}'");
    let event = r#"{"sessionId": "s", "cwd": "/", "prompt": "hi"}"#;
    let ran = finish(lab.ollm(&["hook", "run", "userPromptSubmitted", "--from", "copilot"]), event.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    let shown = lab.run(&["trace", "last"]).stdout;
    assert!(shown.contains("GitHub Copilot cannot be told of a refusal at this event, and went on"), "{shown}");
    let told = r#"{"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "hi"}"#;
    assert_ne!(lab.event_from("claude", told).stdout, "");
    assert!(!lab.run(&["trace", "last"]).stdout.contains("cannot be told"));
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
fn a_matcher_and_a_condition_hold_in_every_vocabulary() {
    let lab = Lab::new();
    let narrow = r#", "matcher": "Read", "if": "data.args.path.endsWith('.env')""#;
    lab.user_hook("before_tool", "secrets", r#"printf '{"continue": false, "systemMessage": "not today"}'"#, narrow);
    for (host, event) in [
        ("claude", r#"{"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {"file_path": "FILE"}}"#),
        (
            "gemini",
            r#"{"hook_event_name": "BeforeTool", "tool_name": "read_file", "tool_input": {"absolute_path": "FILE"}}"#,
        ),
        (
            "cursor",
            r#"{"hook_event_name": "beforeReadFile", "conversation_id": "s", "file_path": "FILE", "content": ""}"#,
        ),
        ("copilot", r#"{"hook_event_name": "PreToolUse", "tool_name": "view", "tool_input": {"path": "FILE"}}"#),
        ("kiro", r#"{"hook_event_name": "preToolUse", "tool_name": "fs_read", "tool_input": {"path": "FILE"}}"#),
        ("windsurf", r#"{"agent_action_name": "pre_read_code", "tool_info": {"file_path": "FILE"}}"#),
        (
            "cline",
            r#"{"hookName": "PreToolUse", "preToolUse": {"toolName": "read_file", "parameters": {"path": "FILE"}}}"#,
        ),
        (
            "opencode",
            r#"{"hook": "tool.execute.before", "input": {"tool": "read"}, "output": {"args": {"filePath": "FILE"}}}"#,
        ),
    ] {
        let refused = lab.event_from(host, &event.replace("FILE", "a/.env"));
        assert!(format!("{}{}", refused.stdout, refused.stderr).contains("not today"), "{host}: {refused:?}");
        let passed = lab.event_from(host, &event.replace("FILE", "a/b.rs"));
        assert!(["", "{}\n"].contains(&passed.stdout.as_str()) && passed.code == 0, "{host}: {passed:?}");
    }
}

#[test]
fn an_argument_that_a_hook_leaves_out_is_gone_where_its_agent_replaces_them_all() {
    let nested = r#"{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"path": "b.rs"}}}"#;
    let gemini = r#"{"hookSpecificOutput": {"tool_input": {"path": "b.rs"}}}"#;
    let ours = r#"{"decision": "modify", "modified_args": {"path": "b.rs"}}"#;
    let cut = r#"{"decision": "modify", "modified_args": {"path": "b.rs", "limit": null}}"#;
    let event =
        r#"{"hook_event_name": "BeforeTool", "tool_name": "read_file", "tool_input": {"file_path": "a", "limit": 9}}"#;
    for (dialect, answer, left) in [
        ("claude", nested, json!({"file_path": "b.rs"})),
        ("gemini", gemini, json!({"file_path": "b.rs"})),
        ("droid", nested, json!({"file_path": "b.rs", "limit": 9})),
        ("agent", ours, json!({"file_path": "b.rs", "limit": 9})),
        ("agent", cut, json!({"file_path": "b.rs"})),
    ] {
        let lab = Lab::new();
        lab.user_hook("before_tool", "cut", &format!("echo '{answer}'"), &format!(r#", "dialect": "{dialect}""#));
        let ran = lab.event_from("gemini", event);
        assert_eq!(ran.answer()["hookSpecificOutput"]["tool_input"], left, "{dialect} {answer}: {ran:?}");
    }
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
