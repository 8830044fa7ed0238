//! A line that makes no sense: agents go on when a hook merely fails, so what it would have guarded is refused in their form.

use serde_json::json;

use super::tables::HOSTS;
use crate::lab::{Lab, Ran, finish};

fn asked(lab: &Lab, arguments: &[&str], event: &str) -> Ran {
    finish(lab.ollm(arguments), event.as_bytes())
}

#[test]
fn an_option_that_is_not_known_refuses_in_the_form_of_the_agent() {
    let lab = Lab::new();
    for host in HOSTS {
        for wrong in [&["--nonsense"][..], &["--within", "soon"], &["--data", "{}"]] {
            let ran = asked(&lab, &[&["hook", "run", "--from", host.name], wrong].concat(), host.event);
            let (stdout, stderr, code) = host.refuses;
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains("the line that asks makes no sense"), "{} {wrong:?}: {ran:?}", host.name);
            let shape = (ran.stdout.is_empty(), ran.stderr.is_empty(), ran.code);
            assert_eq!(shape, (stdout.is_empty(), stderr.is_empty(), code), "{} {wrong:?}: {ran:?}", host.name);
        }
    }
}

#[test]
fn an_agent_that_is_not_known_is_refused_as_every_agent_understands() {
    let lab = Lab::new();
    for host in HOSTS.iter().skip(4) {
        for arguments in [&["hook", "run", "--from", "nobody"][..], &["hook", "run", "--from=nobody", "--within", "9s"]]
        {
            let ran = asked(&lab, arguments, host.event);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains("'nobody'"), "{}: {ran:?}", host.name);
            let refused = match host.name {
                "cline" => ran.answer()["cancel"] == true && ran.code == 0,
                _ => ran.code == 2 && ran.stdout.is_empty(),
            };
            assert!(refused, "{}: {ran:?}", host.name);
        }
    }
    for garbled in ["{", "[]", "{\"hook_event_name\": 5}"] {
        let ran = asked(&lab, &["hook", "run", "--from", "nobody"], garbled);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{garbled}: {ran:?}");
    }
}

#[test]
fn an_event_that_holds_nothing_up_is_only_told() {
    let lab = Lab::new();
    let event = json!({"hook_event_name": "SessionEnd", "session_id": "s", "reason": "other"}).to_string();
    for arguments in [&["hook", "run", "--from", "claude", "--nonsense"][..], &["hook", "run", "--from", "nobody"]] {
        let ran = asked(&lab, arguments, &event);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
        assert!(ran.answer()["systemMessage"].as_str().unwrap().contains("makes no sense"), "{ran:?}");
    }
}

#[test]
fn an_event_is_answered_in_the_form_of_the_name_on_the_line() {
    let lab = Lab::new();
    let event = json!({"sessionId": "s", "toolName": "bash", "toolArgs": {"command": "ls"}}).to_string();
    let ran = asked(&lab, &["hook", "run", "preToolUse", "--from", "copilot", "--nonsense"], &event);
    assert_eq!((ran.code, &ran.answer()["permissionDecision"]), (0, &json!("deny")), "{ran:?}");
}

#[test]
fn settings_in_front_of_the_line_count_as_a_part_of_it() {
    let lab = Lab::new();
    let event =
        json!({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}).to_string();
    for arguments in [
        &["--set", "nonsense", "hook", "run", "--from", "claude"][..],
        &["hook", "-v", "run", "--from", "claude", "--nonsense"],
    ] {
        let ran = asked(&lab, arguments, &event);
        let decision = &ran.answer()["hookSpecificOutput"]["permissionDecision"];
        assert_eq!((ran.code, decision), (0, &json!("deny")), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn without_an_event_or_an_agent_it_is_wrong_usage() {
    let lab = Lab::new();
    let event = json!({"hook_event_name": "PreToolUse"}).to_string();
    for (arguments, event) in [
        (&["hook", "run", "--from", "claude", "--nonsense"][..], ""),
        (&["hook", "run", "--nonsense"], event.as_str()),
        (&["hook", "list", "--from", "claude"], event.as_str()),
    ] {
        let ran = asked(&lab, arguments, event);
        assert_eq!((ran.code, ran.stdout.as_str()), (64, ""), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("Usage: ollm hook"), "{arguments:?}: {ran:?}");
    }
}
