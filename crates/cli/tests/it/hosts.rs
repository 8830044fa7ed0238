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
];

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
        hears: r#"'{"version":"1.0.0","event":"pre-tool-call","context":{'*'"tool":"shell"'*'"hookName":"speaker"'*"#,
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
        hears: r#"'{"hook_event_name":"PreToolUse",'*'"tool_input":{"command":"ls"}'*"#,
        continues: "exit 0",
        refuses: "echo 'not today' >&2; exit 2",
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
    let told: Vec<String> = HOSTS.iter().map(|host| lab.event_from(host.name, host.event).stdout).collect();
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

#[test]
fn an_event_that_cannot_be_read_is_refused_in_the_words_of_its_host() {
    let lab = Lab::new();
    let deep = format!("{{\"event\": {}", "[".repeat(10_000));
    for host in HOSTS {
        for garbled in
            ["", "{", "[]", r#"{"event": 5, "context": {}, "hook_event_name": 5, "method": "execute"}"#, &deep]
        {
            let ran = lab.event_from(host.name, garbled);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains("ollm cannot judge this event"), "{}: {garbled:.20}: {said}", host.name);
            let refused = match host.name {
                "ollm" => ran.answer()["continue"] == false,
                "gate" => ran.answer()["allow"] == false,
                "rpc" => ran.answer()["result"]["continue"] == false,
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
