//! Hooks for files run when an agent's tool has changed one.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lab::Lab;

const HEARS: &str = r#"cat >> "$OLLM_HOOK_DIR/heard"; echo '{"continue": true}'"#;

fn lab() -> Lab {
    Lab::with_hook("file_edited", "format", HEARS)
}

/// The events that hooks heard of, each with its file.
fn heard(lab: &Lab) -> Vec<String> {
    let text = fs::read_to_string(lab.home.join(".ollm/hooks/heard")).unwrap_or_default();
    let event = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let shown =
        |event: Value| format!("{} {}", event["event"].as_str().unwrap(), event["data"]["path"].as_str().unwrap());
    text.lines().map(event).map(shown).collect()
}

fn done(event: &str, tool: &str, input: &Value) -> Value {
    json!({"hook_event_name": event, "session_id": "s", "tool_name": tool, "tool_input": input, "tool_use_id": "c"})
}

#[test]
fn a_tool_that_wrote_a_file_edited_it_under_every_agent() {
    let file = json!({"file_path": "/p/a.rs"});
    let path = json!({"path": "/p/a.rs", "command": "create"});
    let windsurf = json!({"agent_action_name": "post_write_code", "tool_info": {"file_path": "/p/a.rs", "edits": []}});
    let cline = json!({"hookName": "tool_result", "taskId": "s",
        "tool_result": {"name": "write_to_file", "input": {"path": "/p/a.rs"}, "id": "c"}});
    let copilot = json!({"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "create", "tool_input": path,
        "tool_result": {"result_type": "success", "text_result_for_llm": "done"}});
    let goose = json!({"event": "AfterFileEdit", "session_id": "s", "matcher_context": "/p/a.rs"});
    let opencode = json!({"hook": "file.edited", "directory": "/p", "input": {"file": "/p/a.rs"}, "output": {}});
    let update = json!({"command": "*** Begin Patch\n*** Update File: /p/a.rs\n@@\n-a\n+b\n*** End Patch\n"});
    for (agent, event) in [
        ("claude", done("PostToolUse", "Edit", &file)),
        ("claude", done("PostToolUse", "Write", &file)),
        ("claude", json!({"hook_event_name": "FileChanged", "event": "change", "file_path": "/p/a.rs"})),
        ("gemini", done("AfterTool", "replace", &file)),
        ("qwen", done("PostToolUse", "write_file", &file)),
        ("codex", done("PostToolUse", "apply_patch", &update)),
        ("droid", done("PostToolUse", "Create", &file)),
        ("kiro", done("postToolUse", "fs_write", &path)),
        ("copilot", copilot),
        ("cursor", json!({"hook_event_name": "afterFileEdit", "file_path": "/p/a.rs", "edits": []})),
        ("windsurf", windsurf),
        ("cline", cline),
        ("goose", goose),
        ("opencode", opencode),
    ] {
        let lab = lab();
        let ran = lab.event_from(agent, &event.to_string());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{agent}: {ran:?}");
        assert_eq!(heard(&lab), ["file_edited /p/a.rs"], "{agent} {event}");
    }
}

#[test]
fn what_changed_no_file_or_is_told_by_another_event_fires_no_hook_for_files() {
    let file = json!({"file_path": "/p/a.rs"});
    let mut failed = done("AfterTool", "write_file", &file);
    failed["tool_response"] = json!({"llmContent": "no", "error": {"message": "disk full"}});
    let mut denied = done("PostToolUse", "create", &json!({"path": "/p/a.rs"}));
    denied["tool_result"] = json!({"result_type": "denied"});
    for (agent, event) in [
        ("claude", done("PreToolUse", "Write", &file)),
        ("claude", done("PostToolUse", "Read", &file)),
        ("claude", done("PostToolUse", "Bash", &json!({"command": "echo > /p/a.rs"}))),
        ("claude", done("PostToolUse", "mcp__files__write", &file)),
        ("claude", done("PostToolUseFailure", "Write", &json!({"file_path": "/p/a.rs"}))),
        ("gemini", failed),
        ("copilot", denied),
        ("kiro", done("postToolUse", "fs_write", &json!({"path": "/p/a.rs", "command": "view"}))),
        ("cursor", done("postToolUse", "Write", &file)),
        (
            "goose",
            json!({"event": "PostToolUse", "tool_name": "developer__text_editor",
            "tool_input": {"command": "write", "path": "/p/a.rs"}}),
        ),
    ] {
        let lab = lab();
        let mut event = event;
        if event["hook_event_name"] == "PostToolUseFailure" {
            event["error"] = "no such folder".into();
        }
        assert_eq!(lab.event_from(agent, &event.to_string()).code, 0);
        assert_eq!(heard(&lab), Vec::<String>::new(), "{agent} {event}");
    }
}

#[test]
fn a_patch_says_which_files_came_changed_and_went() {
    let lab = Lab::new();
    for event in ["file_created", "file_edited", "file_deleted"] {
        lab.user_hook(event, event, HEARS, "");
    }
    let patch = "*** Begin Patch\n*** Add File: new\n+a\n*** Update File: old\n*** Move to: moved\n@@\n*** Update File: same\n@@\n*** Delete File: gone\n*** End Patch\n";
    lab.event_from("codex", &done("PostToolUse", "apply_patch", &json!({"command": patch})).to_string());
    assert_eq!(
        heard(&lab),
        ["file_created new", "file_deleted old", "file_created moved", "file_edited same", "file_deleted gone"]
    );
}

#[test]
fn what_a_hook_for_files_says_reaches_the_agent_and_its_refusal_stops_nothing() {
    let lab = Lab::with_hook(
        "file_edited",
        "format",
        "echo '{\"decision\": \"block\", \"reason\": \"tabs\", \"additionalContext\": \"use spaces\"}'",
    );
    lab.user_hook("after_tool", "log", "echo '{\"continue\": true}'", "");
    let ran = lab.event_from("claude", &done("PostToolUse", "Edit", &json!({"file_path": "/p/a.rs"})).to_string());
    let answer = ran.answer();
    assert_eq!(answer["systemMessage"], "tabs", "{ran:?}");
    assert_eq!(answer.get("decision"), None, "{ran:?}");
}

#[test]
fn a_file_that_two_entries_tell_of_is_heard_of_once() {
    let event = done("PostToolUse", "Edit", &json!({"file_path": "/p/a.rs"})).to_string();
    // A decision is taken over for two seconds; a machine that was too slow for that is asked again.
    let lab = loop {
        let (lab, started) = (lab(), Instant::now());
        lab.event_from("claude", &event);
        lab.event_from("claude", &event);
        if started.elapsed() < Duration::from_secs(2) {
            break lab;
        }
    };
    assert_eq!(heard(&lab).len(), 1);
}
