//! A line that names another agent than the one that asks.

use crate::lab::{Lab, finish};

#[test]
fn an_event_of_another_agent_than_the_one_that_was_named_is_noticed() {
    let lab = Lab::with_hook("before_tool", "hook", "echo '{\"continue\": true}'");
    let claude = |event: &str| {
        format!(r#"{{"hook_event_name": "{event}", "session_id": "s", "tool_name": "x", "tool_input": {{}}}}"#)
    };
    let cline = r#"{"hookName": "tool_call", "taskId": "s", "tool_call": {"name": "run_commands", "input": {}}}"#;
    let windsurf = r#"{"agent_action_name": "pre_run_command", "tool_info": {"command_line": "ls"}}"#;
    for (from, event, sender) in [
        ("claude", claude("BeforeTool"), "Gemini CLI"),
        ("claude", claude("beforeSubmitPrompt"), "Cursor"),
        ("gemini", claude("PreToolUse"), "Claude Code"),
        ("cursor", claude("UserPromptSubmit"), "Claude Code"),
        ("claude", windsurf.to_owned(), "Windsurf"),
        ("cline", claude("PreToolUse"), "Claude Code"),
        ("agent", claude("BeforeTool"), "Gemini CLI"),
        ("agent", claude("preToolUse"), "Cursor"),
        ("ollm", claude("PreToolUse"), "Claude Code"),
    ] {
        let ran = lab.event_from(from, &event);
        let refused = ran.code == 2 && ran.stdout.is_empty();
        assert!(refused && ran.stderr.contains(&format!("which is one of {sender}")), "{from} {event}: {ran:?}");
    }
    let ran = lab.event_from("claude", cline);
    assert!(ran.answer()["cancel"] == true && ran.stdout.contains("one of Cline"), "{ran:?}");
    // Nothing is held up there, so the person is only told.
    let ran = lab.event_from("claude", &claude("AfterTool"));
    assert!(ran.code == 0 && ran.answer()["systemMessage"].as_str().unwrap().contains("one of Gemini CLI"), "{ran:?}");
    assert_eq!(
        lab.run(&["connect", "--json"])
            .answer()
            .as_array()
            .unwrap()
            .iter()
            .filter(|agent| !agent["lastFired"].is_null())
            .count(),
        0
    );
}

#[test]
fn an_agents_event_on_a_line_that_names_no_agent_is_told_which_name_is_missing() {
    let lab = Lab::with_hook("before_tool", "hook", "echo '{\"continue\": true}'");
    let event =
        r#"{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}}"#;
    let ran = finish(lab.ollm(&["hook", "run"]), event.as_bytes());
    assert!(ran.code != 0 && ran.stderr.contains("the line that asks needs `--from claude`"), "{ran:?}");
}

#[test]
fn a_line_that_names_the_event_of_another_agent_than_its_own_is_noticed() {
    let lab = Lab::with_hook("before_tool", "hook", "echo '{\"continue\": true}'");
    let call = r#""session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}"#;
    let claude = format!(r#"{{"hook_event_name": "PreToolUse", {call}}}"#);
    let shell = r#"{"hook_event_name": "beforeShellExecution", "session_id": "s", "command": "ls"}"#;
    let camel = r#"{"sessionId": "s", "toolName": "bash", "toolArgs": {"command": "ls"}}"#;
    let windsurf = r#"{"agent_action_name": "pre_run_command", "tool_info": {"command_line": "ls"}}"#;
    for (from, name, event) in [
        ("gemini", "PreToolUse", claude.as_str()),
        ("opencode", "PreToolUse", &claude),
        ("windsurf", "PreToolUse", &claude),
        ("cursor", "PreToolUse", &claude),
        ("claude", "beforeShellExecution", shell),
        ("claude", "preToolUse", camel),
        ("gemini", "preToolUse", camel),
        ("windsurf", "preToolUse", camel),
        ("claude", "pre_run_command", windsurf),
        ("kiro", "pre_run_command", windsurf),
    ] {
        let ran = finish(lab.ollm(&["hook", "run", name, "--from", from]), event.as_bytes());
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code == 2 && said.contains("which is one of "), "{from} {name}: {ran:?}");
    }
    // What the named agent knows is its own, whoever sent it, and so is what a newer one may well have.
    for (from, name, event) in [
        ("claude", "PreToolUse", claude.replace("PreToolUse", "preToolUse")),
        ("gemini", "PreDream", r#"{"session_id": "s"}"#.to_owned()),
        ("claude", "workspaceOpen", r#"{"session_id": "s"}"#.to_owned()),
    ] {
        let ran = finish(lab.ollm(&["hook", "run", name, "--from", from]), event.as_bytes());
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{from} {name}: {ran:?}");
    }
}

#[test]
fn an_event_that_a_newer_agent_may_well_have_is_not_taken_for_anothers() {
    let lab = Lab::with_hook("before_tool", "hook", "echo '{\"continue\": true}'");
    for (from, event) in [
        ("claude", "BeforeModel"),
        ("claude", "workspaceOpen"),
        ("claude", "PreDream"),
        ("droid", "PostToolUseFailure"),
        ("gemini", "SubagentStart"),
        ("codex", "PermissionDenied"),
        ("cursor", "PostFileSave"),
    ] {
        let ran = lab.event_from(from, &format!(r#"{{"hook_event_name": "{event}", "session_id": "s"}}"#));
        assert!(ran.code == 0 && matches!(ran.stdout.trim(), "" | "{}"), "{from} {event}: {ran:?}");
    }
}
