//! What a person is told of hooks that failed and files that cannot be read, where an agent asks and shows neither.

use serde_json::{Value, json};

use crate::lab::{Lab, Ran};

const BROKEN: &str = r#"{"hooks": {"before_tool": [{"name": "c", "comand": "/bin/true"}]}}"#;

fn starts(lab: &Lab, agent: &str) -> Ran {
    lab.event_from(
        agent,
        &json!({"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}).to_string(),
    )
}

fn calls(lab: &Lab) -> Ran {
    let call = json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash",
        "tool_input": {"command": "ls"}});
    lab.event_from("claude", &call.to_string())
}

/// A lab with a file that cannot be read, and a hook that failed before a tool.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.user("broken.json", BROKEN);
    lab.user_hook("before_tool", "typo", "exit 7", "");
    lab.user_hook("session_start", "greets", "exit 9", "");
    lab.workspace_hook("session_start", "stranger", "exit 0", "");
    assert_eq!(calls(&lab).stdout, "");
    lab
}

#[test]
fn an_agent_that_shows_messages_tells_of_them_when_a_session_begins() {
    for agent in ["claude", "codex", "gemini", "qwen", "droid"] {
        let lab = lab();
        let ran = starts(&lab, agent);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{agent}: {ran:?}");
        let answer = ran.answer();
        assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["systemMessage"], "{agent}");
        let told = answer["systemMessage"].as_str().unwrap();
        for part in
            ["broken.json:1:", "`greets`", "status 9", ":typo` failed", "status 7", "`stranger`", "not approved"]
        {
            assert!(told.contains(part), "{agent}: no {part} in {told}");
        }
        assert!(told.lines().all(|line| line.starts_with("ollm: ")), "{told}");
    }
}

#[test]
fn where_an_agent_shows_no_message_the_model_is_told() {
    let lab = lab();
    for (agent, event) in [
        ("kiro", json!({"hook_event_name": "agentSpawn", "cwd": lab.project})),
        ("cursor", json!({"hook_event_name": "sessionStart", "session_id": "s"})),
        ("copilot", json!({"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"})),
        ("cline", json!({"hookName": "TaskStart", "taskId": "t", "workspaceRoots": [lab.project]})),
    ] {
        let ran = lab.event_from(agent, &event.to_string());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{agent}: {ran:?}");
        assert!(ran.stdout.contains("ollm: ") && ran.stdout.contains("`stranger`"), "{agent}: {ran:?}");
    }
}

#[test]
fn an_agent_that_shows_nothing_at_the_start_tells_with_the_first_prompt() {
    let lab = lab();
    let prompt = |session: &str| {
        let event = json!({"agent_action_name": "pre_user_prompt", "trajectory_id": session, "tool_info": {"user_prompt": "hi"}});
        let ran = lab.event_from("windsurf", &event.to_string());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
        ran.stdout
    };
    let told = prompt("s");
    assert!(told.contains("ollm: ") && told.contains("broken.json:1:") && told.contains(":typo` failed"), "{told}");
    assert_eq!(prompt("s"), "", "once in a session");
    assert_eq!(prompt("t"), told);
    assert_eq!(prompt("s"), "");
}

#[test]
fn where_an_agent_shows_nothing_its_capabilities_say_so() {
    let lab = Lab::new();
    for agent in ["goose", "opencode"] {
        let ran = lab.run(&["connect", agent, "--capabilities"]);
        assert!(ran.stderr.contains("`ollm connect` and `ollm doctor` tell of them"), "{ran:?}");
        let listed = lab.run(&["connect", agent, "--capabilities", "--json"]).answer();
        assert_eq!(listed["newsAt"], Value::Null, "{agent}");
    }
    let listed = lab.run(&["connect", "windsurf", "--capabilities", "--json"]).answer();
    assert_eq!(listed["newsAt"], "before_agent");
}

#[test]
fn where_nothing_is_wrong_nothing_is_told() {
    let lab = Lab::new();
    lab.user_hook("session_start", "fine", "exit 0", "");
    assert_eq!(starts(&lab, "claude").stdout, "");
    lab.user("broken.json", BROKEN);
    let shorter = json!({"hook_event_name": "SessionStart", "session_id": "s", "source": "compact"}).to_string();
    assert_eq!(lab.event_from("claude", &shorter).stdout, "");
}

#[test]
fn the_trace_and_connect_and_doctor_tell_of_them_whichever_agent_asked() {
    let lab = lab();
    let shown = lab.run(&["trace", "last"]).stdout;
    assert!(shown.contains("broken.json:1:") && shown.contains("status 7"), "{shown}");
    for arguments in [&["connect"][..], &["connect", "claude"]] {
        let ran = lab.run(arguments);
        assert!(ran.stderr.contains("broken.json:1:"), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(":typo` failed") && ran.stderr.contains("status 7"), "{arguments:?}: {ran:?}");
    }
    let found = lab.run(&["doctor", "--json"]).answer();
    let told = |area: &str, part: &str| {
        let findings = found["findings"].as_array().unwrap();
        findings.iter().any(|it| it["area"] == area && it["what"].as_str().unwrap().contains(part))
    };
    assert!(told("files", "broken.json:1:") && told("hooks", ":typo` failed"), "{found:#}");
}

#[test]
fn a_hook_that_works_again_or_is_gone_is_not_told_of() {
    let lab = Lab::new();
    let failing = |lab: &Lab| lab.run(&["doctor"]).stdout.contains("` failed");
    lab.user_hook("before_tool", "typo", "exit 7", "");
    calls(&lab);
    calls(&lab);
    assert!(lab.run(&["doctor"]).stdout.contains("failed 2 times in a row"));
    lab.user_hook("before_tool", "typo", "exit 0", "");
    calls(&lab);
    assert!(!failing(&lab));
    lab.user_hook("before_tool", "typo", "exit 7", "");
    calls(&lab);
    assert!(failing(&lab));
    std::fs::remove_file(lab.home.join(".ollm/hooks/typo.json")).unwrap();
    assert!(!failing(&lab));
}

#[test]
fn a_flood_of_problems_is_cut_short() {
    let lab = Lab::new();
    for number in 0..40 {
        lab.user(&format!("broken{number}.json"), BROKEN);
    }
    let ran = starts(&lab, "claude").answer();
    let told = ran["systemMessage"].as_str().unwrap();
    assert_eq!(told.lines().count(), 11, "{told}");
    assert!(told.ends_with("70 more lines; `ollm doctor` shows what is wrong"), "{told}");
}

#[test]
fn a_hook_that_is_not_done_in_time_says_whose_time_it_was_and_how_to_have_more() {
    let lab = Lab::new();
    lab.user_hook("before_tool", "slow", crate::lab::FOREVER, r#", "timeout": "10m", "onFailure": "block""#);
    let call = json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash",
        "tool_input": {"command": "ls"}});
    let arguments = ["hook", "run", "--from", "claude", "--within", "1s"];
    let ran = crate::lab::finish(lab.ollm(&arguments), call.to_string().as_bytes());
    let answer = ran.answer();
    let reason = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    for part in ["`slow`", "was still running", "Claude Code waits 1s", "`--within`", "`timeout`"] {
        assert!(reason.contains(part), "no {part} in {reason}");
    }
    lab.assert_nobody_is_left();
}

#[test]
fn what_an_agent_cannot_be_told_is_in_the_trace() {
    let lab = Lab::new();
    let answer = r#"{"continue": true, "systemMessage": "remember", "result": "other"}"#;
    lab.user_hook("after_tool", "adds", &format!("echo '{answer}'"), "");
    let unheard = |agent: &str, event: Value| {
        let ran = lab.event_from(agent, &event.to_string());
        assert_eq!(ran.code, 0, "{ran:?}");
        lab.run(&["trace", "last", "--json"]).answer()["unheard"].clone()
    };
    let claude = json!({"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {},
        "tool_response": "x"});
    assert_eq!(unheard("claude", claude), Value::Null);
    let kiro = json!({"hook_event_name": "postToolUse", "tool_name": "execute_bash", "tool_input": {}});
    let lost = unheard("kiro", kiro);
    assert!(lost.as_str().unwrap().contains("Kiro cannot be given context at this event"), "{lost}");
}
