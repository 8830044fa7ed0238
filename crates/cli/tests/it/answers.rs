//! What each dialect makes of failures and odd answers.

use serde_json::json;

use crate::lab::{Lab, Ran, shell_event};

/// One hook of each dialect with the same script.
const KEYS: &[(&str, &str, &str)] = &[
    ("ollm", "before_tool", ""),
    ("gate", "pre-tool-call", ""),
    ("rpc", "before_tool", r#", "dialect": "rpc""#),
    ("agent", "PreToolUse", ""),
];

fn ask(dialect: &str, script: &str) -> Ran {
    let (_, event, more) = KEYS.iter().find(|(name, ..)| *name == dialect).unwrap();
    let lab = Lab::new();
    lab.user_hook(event, "hook", &format!("cat >/dev/null\n{script}"), more);
    lab.event(shell_event("ls"))
}

/// Whether the operation goes on, and the hook's status.
fn outcome(dialect: &str, script: &str) -> (bool, String) {
    let ran = ask(dialect, script);
    assert_eq!(ran.answer()["continue"] == true, ran.code == 0, "{ran:?}");
    (ran.code == 0, ran.hook("hook")["status"].as_str().unwrap().to_owned())
}

/// Each dialect's outcome: ollm, gate, rpc, agent.
fn outcomes(script: &str) -> Vec<(bool, String)> {
    KEYS.iter().map(|(dialect, ..)| outcome(dialect, script)).collect()
}

fn all(continues: bool, status: &str) -> Vec<(bool, String)> {
    vec![(continues, status.to_owned()); 4]
}

fn each(expected: [(bool, &str); 4]) -> Vec<(bool, String)> {
    expected.map(|(continues, status)| (continues, status.to_owned())).into()
}

#[test]
fn a_crash_blocks_in_gate_and_nowhere_else() {
    let crash = each([(true, "failed"), (false, "failed"), (true, "failed"), (true, "failed")]);
    assert_eq!(outcomes("echo why >&2; exit 1"), crash);
    assert_eq!(outcomes("kill -SEGV $$"), crash);
}

#[test]
fn silence_is_an_answer_in_ollm_and_agent_only() {
    assert_eq!(outcomes(""), each([(true, "ok"), (false, "failed"), (true, "failed"), (true, "ok")]));
    assert_eq!(ask("ollm", "").hook("hook")["warnings"], json!(["the hook answered nothing"]));
}

#[test]
fn plain_text_is_an_answer_in_agent_only() {
    assert_eq!(outcomes("echo fine"), each([(true, "failed"), (false, "failed"), (true, "failed"), (true, "ok")]));
}

#[test]
fn b07_exit_status_2_refuses_in_agent_whatever_the_words() {
    assert_eq!(outcome("agent", "exit 2"), (false, "blocked".into()));
    assert_eq!(outcome("agent", r#"printf '{"decision": "allow"}'; exit 2"#), (false, "blocked".into()));
    assert_eq!(ask("agent", "echo because >&2; exit 2").answer()["reason"], "because");
    assert_eq!(outcome("ollm", "exit 2"), (true, "failed".into()));
}

#[test]
fn a_refusal_counts_in_every_dialect_whatever_stands_around_it() {
    for refusal in
        [r#"{"continue": false}"#, r#"{"allow": false}"#, r#"{"decision": "block"}"#, r#"{"decision": "deny"}"#]
    {
        for around in [
            "printf 'R'",
            "printf 'log\\nR'",
            "printf 'R\\nlog'",
            "printf '{\"continue\": true}\\nR'",
            "printf 'R'; exit 1",
        ] {
            let script = around.replace('R', refusal);
            for (continues, _) in outcomes(&script) {
                assert!(!continues, "{script}");
            }
        }
    }
}

#[test]
fn a_refusal_with_a_bad_exit_status_is_a_refusal() {
    for (dialect, ..) in KEYS {
        let ran = ask(dialect, r#"printf '{"continue": false, "systemMessage": "no"}'; exit 7"#);
        assert_eq!((ran.code, ran.hook("hook")["status"].as_str()), (2, Some("blocked")), "{dialect}");
    }
}

#[test]
fn b06_log_lines_before_the_answer_are_tolerated_except_in_gate() {
    let script = r#"echo starting; printf '{"continue": true, "allow": true, "result": {}}'"#;
    assert_eq!(outcomes(script), each([(true, "ok"), (false, "failed"), (true, "ok"), (true, "ok")]));
}

#[test]
fn b06_two_answers_are_a_failure() {
    let script =
        r#"printf '{"continue": true, "allow": true, "result": {}}\n{"continue": true, "allow": true, "result": {}}'"#;
    assert_eq!(outcomes(script), each([(true, "failed"), (false, "failed"), (true, "failed"), (true, "failed")]));
}

#[test]
fn what_can_be_read_of_a_half_wrong_answer_counts() {
    let ran = ask("ollm", r#"printf '{"continue": true, "systemMessage": 5, "data": {"kept": 1}}'"#);
    assert_eq!((ran.code, ran.hook("hook")["status"].as_str()), (0, Some("failed")));
    assert_eq!(ran.answer()["data"], json!({"kept": 1}));
    let refused = ask("ollm", r#"printf '{"continue": "false", "systemMessage": "no"}'"#);
    assert_eq!((refused.code, refused.answer()["reason"].as_str()), (2, Some("no")));
}

#[test]
fn a_hook_that_reports_an_error_has_failed_and_its_other_fields_count() {
    let ran = ask("ollm", r#"printf '{"continue": true, "error": "disk full", "systemMessage": "kept"}'"#);
    let hook = ran.hook("hook");
    assert_eq!((hook["status"].as_str(), hook["error"].as_str()), (Some("failed"), Some("disk full")));
    assert_eq!((ran.answer()["systemMessage"].as_str(), ran.code), (Some("kept"), 0));
    let rpc = ask("rpc", r#"printf '{"jsonrpc": "2.0", "error": {"code": -32000, "message": "broken"}, "id": 1}'"#);
    assert_eq!((rpc.code, rpc.hook("hook")["error"].as_str()), (0, Some("broken (code -32000)")));
}

#[test]
fn b08_an_unknown_decision_never_allows() {
    for decision in ["Allow", "maybe", "DENY"] {
        let ran = ask("agent", &format!(r#"printf '{{"decision": "{decision}"}}'"#));
        assert_ne!(ran.answer()["flow"], "allow", "{decision}");
        assert_eq!(ran.hook("hook")["status"], "failed", "{decision}");
    }
    assert_eq!(ask("agent", r#"printf '{"decision": "Deny"}'"#).code, 2);
}

#[test]
fn gate_wants_one_object_with_a_boolean() {
    for answer in [
        "{}",
        r#"{"allow": "true"}"#,
        r#"{"allow": 1}"#,
        r#"[{"allow": true}]"#,
        r#"{"allow": true"#,
        r#"{"version": "2.0.0", "allow": true}"#,
    ] {
        assert_eq!(outcome("gate", &format!("printf '{answer}'")), (false, "failed".into()), "{answer}");
    }
    assert_eq!(outcome("gate", r#"printf '{"version": "1.4.0", "allow": true, "unknown": 1}'"#), (true, "ok".into()));
}

#[test]
fn on_failure_of_the_hook_decides_over_the_dialect() {
    let run = |event: &str, policy: &str| {
        let lab = Lab::new();
        lab.user_hook(event, "hook", "exit 1", &format!(r#", "onFailure": "{policy}""#));
        let ran = lab.event(shell_event("ls"));
        (
            ran.answer()["flow"].as_str().unwrap().to_owned(),
            ran.hook("hook")["status"].as_str().unwrap().to_owned(),
            ran.code,
        )
    };
    assert_eq!(run("before_tool", "block"), ("block".into(), "failed".into(), 2));
    assert_eq!(run("before_tool", "ask"), ("ask".into(), "failed".into(), 2));
    assert_eq!(run("pre-tool-call", "allow"), ("no_opinion".into(), "failed".into(), 0));
}

#[test]
fn a_failure_never_ends_the_chain_and_a_refusal_does_except_in_agent() {
    for (dialect, event, more) in KEYS {
        let second_runs = |script: &str| {
            let lab = Lab::new();
            lab.user_hook(event, "a", script, more);
            lab.user_hook("before_tool", "b", "touch ran", "");
            lab.event(shell_event("ls"));
            lab.project.join("ran").exists()
        };
        assert!(second_runs("exit 1"), "{dialect}");
        let refusal = r#"printf '{"continue": false, "allow": false}'"#;
        assert_eq!(second_runs(refusal), *dialect == "agent", "{dialect}");
    }
}

#[test]
fn reasons_of_several_refusals_are_joined() {
    let lab = Lab::with_hook("PreToolUse", "a", "echo one >&2; exit 2");
    lab.user_hook("PreToolUse", "b", "echo two >&2; exit 2", "");
    assert_eq!(lab.event(shell_event("ls")).answer()["reason"], "one\ntwo");
}

#[test]
fn an_approval_never_lifts_a_refusal() {
    let lab = Lab::with_hook("PreToolUse", "a", "exit 2");
    lab.user_hook("PreToolUse", "b", r#"printf '{"decision": "approve"}'"#, "");
    let ran = lab.event(shell_event("ls"));
    assert_eq!((ran.answer()["flow"].as_str(), ran.code), (Some("block"), 2));
}

#[test]
fn a_hook_that_continues_has_no_opinion() {
    for (dialect, script) in [
        ("ollm", r#"printf '{"continue": true}'"#),
        ("gate", r#"printf '{"allow": true}'"#),
        ("rpc", r#"printf '{"jsonrpc": "2.0", "result": {}, "id": 1}'"#),
        ("agent", r#"printf '{"continue": true}'"#),
    ] {
        assert_eq!(ask(dialect, script).answer()["flow"], "no_opinion", "{dialect}");
    }
}

#[test]
fn junk_is_a_failure_and_never_allows() {
    for junk in
        [r#"printf '{"continue": tru\377\376'"#, r"printf '\000\000'", "printf '{'", "printf 'null'", "printf '[]'"]
    {
        for ((continues, status), (dialect, ..)) in outcomes(junk).into_iter().zip(KEYS) {
            // What is not even half an object is plain text to an agent.
            let plain = *dialect == "agent" && !junk.contains('{');
            assert_eq!(
                (continues, status.as_str()),
                (*dialect != "gate", if plain { "ok" } else { "failed" }),
                "{dialect}: {junk}"
            );
        }
    }
}

#[test]
fn where_nothing_can_be_stopped_a_refusal_is_told_all_the_same() {
    let lab = Lab::with_hook("session_end", "late", r#"printf '{"continue": false, "systemMessage": "too late"}'"#);
    let ran = lab.run(&["hook", "run", "session_end"]);
    assert_eq!(
        (ran.answer()["reason"].as_str(), ran.hook("late")["status"].as_str()),
        (Some("too late"), Some("blocked"))
    );
}

#[test]
fn an_approval_of_another_dialect_approves_nothing() {
    assert_eq!(
        outcomes(r#"printf '{"continue": true, "allow": true, "decision": "approve", "result": {}}'"#),
        all(true, "ok")
    );
    let flow = ask("ollm", r#"printf '{"continue": true, "decision": "approve"}'"#).answer()["flow"].clone();
    assert_eq!(flow, "no_opinion");
}
