//! The contract of `ollm hook run`, field by field: other programs rely on it.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};

use crate::lab::{Lab, Ran, finish, kept, lines, outcome, shell_event, start};

/// Every spelling of every event, and its canonical name.
const SPELLINGS: &[(&str, &str)] = &[
    ("session_start", "session_start"),
    ("on-session-start", "session_start"),
    ("SessionStart", "session_start"),
    ("session_end", "session_end"),
    ("on-session-end", "session_end"),
    ("SessionEnd", "session_end"),
    ("before_agent", "before_agent"),
    ("pre-execution", "before_agent"),
    ("promptSubmit", "before_agent"),
    ("UserPromptSubmit", "before_agent"),
    ("after_agent", "after_agent"),
    ("post-execution", "after_agent"),
    ("agentStop", "after_agent"),
    ("Stop", "after_agent"),
    ("before_model", "before_model"),
    ("after_model", "after_model"),
    ("before_tool_selection", "before_tool_selection"),
    ("before_tool", "before_tool"),
    ("pre-tool-call", "before_tool"),
    ("PreToolUse", "before_tool"),
    ("after_tool", "after_tool"),
    ("post-tool-call", "after_tool"),
    ("PostToolUse", "after_tool"),
    ("pre_compress", "pre_compress"),
    ("PreCompact", "pre_compress"),
    ("post_compress", "post_compress"),
    ("PostCompact", "post_compress"),
    ("context_overflow", "context_overflow"),
    ("on-context-overflow", "context_overflow"),
    ("notification", "notification"),
    ("Notification", "notification"),
    ("approval_request", "approval_request"),
    ("on-approval-request", "approval_request"),
    ("PermissionRequest", "approval_request"),
    ("error", "error"),
    ("on-error", "error"),
    ("file_created", "file_created"),
    ("fileCreated", "file_created"),
    ("file_edited", "file_edited"),
    ("fileEdited", "file_edited"),
    ("file_deleted", "file_deleted"),
    ("fileDeleted", "file_deleted"),
    ("git_commit", "git_commit"),
    ("on-git-commit", "git_commit"),
    ("user_triggered", "user_triggered"),
    ("userTriggered", "user_triggered"),
    ("subagent_start", "subagent_start"),
    ("SubagentStart", "subagent_start"),
    ("subagent_stop", "subagent_stop"),
    ("SubagentStop", "subagent_stop"),
    ("custom", "custom"),
    ("custom:deploy", "custom"),
];

fn one_line(lab: &Lab, ran: &Ran) -> String {
    assert!(ran.stdout.ends_with('\n') && ran.stdout.lines().count() == 1, "{ran:?}");
    lab.neutral(&ran.stdout)
}

#[test]
fn without_hooks_every_field_is_there_and_empty() {
    let lab = Lab::with_default_boxes();
    let ran = lab.event(r#"{"event": "before_tool", "data": {"tool_name": "read_file"}}"#);
    let expected = concat!(
        r#"{"event":"before_tool","continue":true,"flow":"no_opinion","reason":null,"systemMessage":null,"messages":[],"#,
        r#""context":null,"data":{},"modifiedArgs":null,"result":null,"tools":null,"askAgent":[],"#,
        r#""hooks":[],"skipped":[],"traceId":"…"}"#,
        "\n"
    );
    assert_eq!((one_line(&lab, &ran).as_str(), ran.stderr.as_str(), ran.code), (expected, "", 0));
}

#[test]
fn a_hook_that_continues_is_reported() {
    let lab = Lab::with_hook("before_tool", "guard", "cat >/dev/null; printf '{\"continue\": true}'");
    let ran = lab.event(shell_event("ls"));
    let expected = concat!(
        r#"{"event":"before_tool","continue":true,"flow":"no_opinion","reason":null,"systemMessage":null,"messages":[],"#,
        r#""context":null,"data":{},"modifiedArgs":null,"result":null,"tools":null,"askAgent":[],"#,
        r#""hooks":[{"id":"user:guard.json:before_tool:guard","name":"guard","extension":null,"source":"user","#,
        r#""dialect":"ollm","status":"ok","durationMs":0,"error":null,"metadata":null}],"skipped":[],"traceId":"…"}"#,
        "\n"
    );
    assert_eq!((one_line(&lab, &ran).as_str(), ran.stderr.as_str(), ran.code), (expected, "", 0));
}

#[test]
fn a_refusal_has_a_reason_and_exit_status_2_and_ends_the_chain() {
    let lab = Lab::with_hook("before_tool", "a", "printf '{\"continue\": false, \"systemMessage\": \"not today\"}'");
    lab.user_hook("before_tool", "b", "touch ran", "");
    let ran = lab.event(shell_event("ls"));
    let expected = concat!(
        r#"{"event":"before_tool","continue":false,"flow":"block","reason":"not today","systemMessage":"not today","#,
        r#""messages":[],"context":null,"data":{},"modifiedArgs":null,"result":null,"tools":null,"askAgent":[],"#,
        r#""hooks":[{"id":"user:a.json:before_tool:a","name":"a","extension":null,"source":"user","dialect":"ollm","#,
        r#""status":"blocked","durationMs":0,"error":null,"metadata":null}],"#,
        r#""skipped":[{"id":"user:b.json:before_tool:b","name":"b","extension":null,"reason":"after_block","#,
        r#""detail":"hook `user:a.json:before_tool:a` refused before its turn"}],"traceId":"…"}"#,
        "\n"
    );
    assert_eq!((one_line(&lab, &ran).as_str(), ran.stderr.as_str(), ran.code), (expected, "", 2));
    assert!(!lab.project.join("ran").exists());
}

#[test]
fn what_hooks_add_is_joined_and_merged_in_plan_order() {
    let lab = Lab::with_default_boxes();
    lab.user_hook(
        "before_tool",
        "a",
        r#"printf '{"continue": true, "systemMessage": "one", "data": {"x": 1, "y": 1}}'"#,
        "",
    );
    let second = r#"printf '{"reason": "for you", "systemMessage": "two", "metadata": {"rule": 7},
        "decision": "modify", "modified_args": {"command": "ls -l"},
        "hookSpecificOutput": {"additionalContext": "more"}}'"#;
    lab.user_hook("PreToolUse", "b", second, "");
    let third =
        r#"printf '{"jsonrpc": "2.0", "id": 1, "result": {"action": "askAgent", "prompt": "why?", "data": {"y": 2}}}'"#;
    lab.user_hook("before_tool", "c", third, r#", "dialect": "rpc""#);
    let ran =
        lab.event(r#"{"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": "ls", "cwd": "/"}}}"#);
    let answer = ran.answer();
    assert_eq!(answer["systemMessage"], "one\ntwo");
    assert_eq!(answer["messages"], json!([{"hook": "user:b.json:PreToolUse:b", "text": "for you"}]));
    assert_eq!(answer["context"], "more");
    assert_eq!(answer["data"], json!({"x": 1, "y": 2}));
    assert_eq!(answer["modifiedArgs"], json!({"command": "ls -l", "cwd": "/"}));
    assert_eq!(answer["askAgent"], json!([{"hook": "user:c.json:before_tool:c", "prompt": "why?"}]));
    assert_eq!(ran.hook("b")["metadata"], json!({"rule": 7}));
    assert_eq!((answer["continue"].clone(), answer["flow"].clone(), ran.code), (json!(true), json!("no_opinion"), 0));
}

#[test]
fn a_replaced_result_and_the_kept_tools_are_told() {
    let lab =
        Lab::with_hook("PostToolUse", "hide", r#"printf '{"hookSpecificOutput": {"updatedToolOutput": "[hidden]"}}'"#);
    lab.user_hook(
        "before_tool_selection",
        "keep",
        r#"printf '{"continue": true, "data": {"available_tools": ["read_file"]}}'"#,
        "",
    );
    let replaced = lab.event(r#"{"event": "after_tool", "data": {"tool_name": "shell", "result": "secret"}}"#);
    assert_eq!(replaced.answer()["result"], "[hidden]");
    let offered = r#"{"event": "before_tool_selection", "data": {"available_tools": ["read_file", "shell"]}}"#;
    assert_eq!(lab.event(offered).answer()["tools"], json!(["read_file"]));
}

#[test]
fn the_flow_tells_ask_from_block_and_both_exit_with_2() {
    let lab = Lab::with_hook("PreToolUse", "judge", "printf '{\"decision\": \"%s\"}' \"$OLLM_SAYS\"");
    let says = |word: &str| {
        let mut command = lab.ollm(&["hook", "run"]);
        command.env("OLLM_SAYS", word);
        let ran = finish(command, shell_event("ls").as_bytes());
        let answer = ran.answer();
        (answer["flow"].as_str().unwrap().to_owned(), answer["continue"] == true, ran.code)
    };
    assert_eq!(says("approve"), ("allow".into(), true, 0));
    assert_eq!(says("ask"), ("ask".into(), false, 2));
    assert_eq!(says("block"), ("block".into(), false, 2));
    assert_eq!(says("deny"), ("block".into(), false, 2));
}

#[test]
fn a_refusal_without_words_still_has_a_reason() {
    let lab = Lab::with_hook("before_tool", "mute", "printf '{\"continue\": false}'");
    let answer = lab.event(shell_event("ls")).answer();
    assert_eq!(answer["reason"], "refused by hook `mute`");
    assert_eq!(answer["systemMessage"], Value::Null);
}

#[test]
fn data_reaches_later_hooks_but_cannot_replace_what_the_event_says() {
    let lab = Lab::with_hook(
        "before_tool",
        "a",
        r#"printf '{"continue": true, "data": {"note": "hello", "tool_name": "other"}}'"#,
    );
    lab.user_hook("before_tool", "b", "cat > seen; printf '{\"continue\": true}'", "");
    lab.event(shell_event("ls"));
    let seen: Value = serde_json::from_slice(&fs::read(lab.project.join("seen")).unwrap()).unwrap();
    assert_eq!((&seen["data"]["note"], &seen["data"]["tool_name"]), (&json!("hello"), &json!("shell")));
}

#[test]
fn each_later_hook_sees_the_patched_arguments() {
    let patch = |value: &str| format!(r#"printf '{{"decision": "modify", "modified_args": {{"{value}": true}}}}'"#);
    let lab = Lab::with_hook("PreToolUse", "a", &patch("first"));
    lab.user_hook("PreToolUse", "b", &format!("cat > seen; {}", patch("second")), "");
    let answer = lab.event(shell_event("ls")).answer();
    let seen: Value = serde_json::from_slice(&fs::read(lab.project.join("seen")).unwrap()).unwrap();
    assert_eq!(seen["tool_input"], json!({"command": "ls", "first": true}));
    assert_eq!(answer["modifiedArgs"], json!({"command": "ls", "first": true, "second": true}));
}

#[test]
fn parallel_hooks_run_at_once_and_are_merged_in_plan_order() {
    let lab = Lab::with_default_boxes();
    // Each waits for the other: one after the other they would never end.
    let (to_a, to_b) = (lab.fifo("to-a"), lab.fifo("to-b"));
    let a = format!(
        "echo go > {}; read go < {}; printf '{{\"continue\": true, \"systemMessage\": \"a\"}}'",
        to_b.display(),
        to_a.display()
    );
    let b = format!(
        "read go < {}; printf '{{\"continue\": true, \"systemMessage\": \"b\"}}'; echo go > {}",
        to_b.display(),
        to_a.display()
    );
    lab.user_hook("before_tool", "a", &a, r#", "parallel": true"#);
    lab.user_hook("before_tool", "b", &b, r#", "parallel": true"#);
    assert_eq!(lab.event(shell_event("ls")).answer()["systemMessage"], "a\nb");
}

#[test]
fn hooks_run_by_scope_then_priority_then_name_of_their_file() {
    let lab = Lab::with_default_boxes().set("OLLM_HOOKS_TIMEOUT", "20s");
    let say = "printf '{\"continue\": true, \"systemMessage\": \"%s\"}' \"$OLLM_HOOK_ID\"";
    lab.user_hook("before_tool", "b-normal", say, "");
    lab.user_hook("before_tool", "c-critical", say, r#", "priority": "critical""#);
    lab.user_hook("before_tool", "a-low", say, r#", "priority": "low""#);
    lab.workspace_hook("before_tool", "first", say, r#", "priority": "critical""#);
    lab.approve("first");
    let answer = lab.event(shell_event("ls")).answer();
    let names: Vec<&str> =
        answer["hooks"].as_array().unwrap().iter().map(|hook| hook["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["c-critical", "b-normal", "a-low", "first"]);
    let order: Vec<&str> = answer["systemMessage"].as_str().unwrap().lines().collect();
    let ids: Vec<&str> = answer["hooks"].as_array().unwrap().iter().map(|hook| hook["id"].as_str().unwrap()).collect();
    assert_eq!(order, ids);
}

#[test]
fn every_spelling_of_an_event_is_understood() {
    let lab = Lab::with_default_boxes();
    for (spelled, canonical) in SPELLINGS {
        let ran = lab.run(&["hook", "run", spelled]);
        assert_eq!((ran.answer()["event"].as_str().unwrap(), ran.code), (*canonical, 0), "{spelled}");
    }
}

#[test]
fn one_name_for_all_file_changes_is_told_apart_by_the_data() {
    let lab = Lab::with_default_boxes();
    for spelled in ["on-file-change", "FileChanged"] {
        for (change, canonical) in
            [("created", "file_created"), ("modified", "file_edited"), ("deleted", "file_deleted")]
        {
            let data = json!({"path": "a.rs", "changes": {"type": change}}).to_string();
            let ran = lab.run(&["hook", "run", spelled, "--data", &data]);
            assert_eq!(ran.answer()["event"], canonical, "{spelled} {change}");
        }
    }
}

#[test]
fn the_event_may_stand_on_the_command_line() {
    let lab = Lab::with_hook("before_tool", "echo", "cat > seen; printf '{\"continue\": true}'");
    let ran = lab.run(&["hook", "run", "PreToolUse", "--data", r#"{"tool_name": "shell"}"#]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let seen = kept(&lab.project.join("seen"));
    assert_eq!(seen, json!({"event": "before_tool", "data": {"tool_name": "shell"}}));
}

#[test]
fn context_stands_for_data() {
    let lab = Lab::with_hook("before_tool", "echo", "cat > seen; printf '{\"continue\": true}'");
    lab.event(r#"{"event": "pre-tool-call", "context": {"tool_name": "shell"}}"#);
    let seen = kept(&lab.project.join("seen"));
    assert_eq!(seen["data"], json!({"tool_name": "shell"}));
}

#[test]
fn b13_reading_stops_at_the_end_of_the_value_though_the_stream_stays_open() {
    let lab = Lab::with_hook("before_tool", "guard", "cat >/dev/null; printf '{\"continue\": true}'");
    let mut child = start(lab.ollm(&["hook", "run"]));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(shell_event("a } in a string").as_bytes()).unwrap();
    let ran = outcome(child);
    drop(stdin);
    assert_eq!((ran.code, ran.hook("guard")["status"].as_str()), (0, Some("ok")));
}

#[test]
fn what_follows_the_value_is_not_read() {
    let lab = Lab::with_default_boxes();
    let ran = lab.event(r#"{"event": "before_tool"}{"event": "nonsense"} garbage"#);
    assert_eq!((ran.code, ran.answer()["event"].as_str()), (0, Some("before_tool")));
}

#[test]
fn an_untrusted_and_a_failed_hook_are_told_on_standard_error_one_line_each() {
    let lab = Lab::with_hook("before_tool", "broken", "echo why >&2; exit 1");
    lab.workspace_hook("before_tool", "stranger", "touch ran", "");
    let ran = lab.event(shell_event("ls"));
    assert_eq!(ran.code, 0);
    let expected = "ollm: workspace hook `stranger` did not run: not approved; review and approve it with \
                    `ollm hook trust workspace:stranger.json:before_tool:stranger`\n\
                    ollm: user hook `broken` (user:broken.json:before_tool:broken) failed: exited with status 1: why; \
                    the call goes on: `\"onFailure\": \"block\"` in the hook would stop it\n";
    assert_eq!(ran.stderr, expected);
    assert_eq!(ran.hook("broken")["status"], "failed");
    assert_eq!(ran.hook("broken")["error"], "exited with status 1: why");
    assert_eq!(ran.skip("stranger")["reason"], "untrusted");
    assert!(!lab.project.join("ran").exists());
}

#[test]
fn each_skip_says_why() {
    let lab = Lab::with_hook("before_tool", "off", "");
    lab.user("off.json", crate::lab::hook_file("before_tool", "off", r#", "enabled": false"#));
    lab.user("gone.json", crate::lab::hook_file("before_tool", "gone", ""));
    lab.user_hook("before_tool", "other", "", r#", "matcher": "write_*""#);
    let mut command = lab.ollm(&["hook", "run", "--explain"]);
    command.env("OLLM_HOOKS_TIMEOUT", "20s");
    let ran = finish(command, shell_event("ls").as_bytes());
    let reason = |name: &str| ran.skip(name)["reason"].as_str().unwrap().to_owned();
    assert_eq!(
        (reason("off"), reason("gone"), reason("other")),
        ("disabled".into(), "missing".into(), "matcher".into())
    );
    let unfitting = lab.event(shell_event("ls")).answer()["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .any(|skip| skip["reason"] == "matcher");
    assert!(!unfitting, "what does not fit is listed on request only");
}

#[test]
fn wrong_usage_exits_with_64_and_says_how_it_is_meant() {
    let lab = Lab::with_default_boxes();
    for arguments in [
        &["hook", "run", "--from", "nobody"][..],
        &["hook", "run", "--from"],
        &["hook", "run", "--data", "{}"],
        &["hook", "run", "before_tool", "after_tool"],
        &["hook", "run", "before_tool", "--from", "gate"],
        &["hook", "run", "--unknown"],
        &["hook", "fly"],
        &["fly"],
        &["hook"],
    ] {
        let ran = lab.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (64, ""), "{arguments:?}");
        assert!(!ran.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_options_of_hook_run_mean_the_same_in_every_place() {
    let lab = Lab::with_default_boxes();
    let plain = lab.run(&["hook", "run", "session_start", "--explain"]).answer();
    for arguments in [
        &["hook", "run", "--explain", "session_start", "--explain"][..],
        &["hook", "run", "--data", "{", "--data={}", "--explain", "--", "session_start"],
        &["hook", "-v", "run", "session_start", "--explain"],
        &["-v", "hook", "run", "-v", "session_start", "--explain", "--verbose"],
    ] {
        let ran = lab.run(arguments);
        assert_eq!(
            (ran.code, ran.answer()["continue"].clone()),
            (0, plain["continue"].clone()),
            "{arguments:?} {ran:?}"
        );
    }
}

#[test]
fn an_answer_nobody_reads_is_no_failure() {
    let lab = Lab::with_hook("before_tool", "slow", &format!("echo > {}; cat >/dev/null; printf '{{}}'", "ready"));
    let fifo = lab.root.join("project/ready");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut child = start(lab.ollm(&["hook", "run"]));
    child.stdin.take().unwrap().write_all(shell_event("ls").as_bytes()).unwrap();
    drop(child.stdout.take());
    lines(&fifo, 1);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_version_is_told() {
    let ran = Lab::with_default_boxes().run(&["--version"]);
    assert_eq!((ran.stdout, ran.code), (format!("ollm {}\n", env!("CARGO_PKG_VERSION")), 0));
}
