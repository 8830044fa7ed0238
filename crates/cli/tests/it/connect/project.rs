//! Entries in a project, for all who work in it.

use std::fs;

use serde_json::{Value, json};

use super::{bare_lab, read, status};
use crate::lab::{Lab, OLLM, Ran, finish};

const NOTE: &str = "the hooks of this project do not run: ollm is not installed";

/// The line of a project for an event, in the file of its agent.
fn line(lab: &Lab, file: &str, event: &str) -> String {
    let settings: Value = serde_json::from_str(&read(lab, file)).unwrap();
    let all = match &settings["hooks"] {
        Value::Array(hooks) => hooks.iter().find(|hook| hook["trigger"] == event).unwrap()["action"].clone(),
        hooks => hooks[event][0].clone(),
    };
    let handler = if all["hooks"].is_array() { &all["hooks"][0] } else { &all };
    ["command", "bash"].iter().find_map(|key| handler[key].as_str()).unwrap().to_owned()
}

/// What a person without `ollm` gets from a line.
fn without_us(lab: &Lab, line: &str) -> Ran {
    assert!(!line.contains(OLLM), "a path of this machine means nothing to others: {line}");
    let mut shell = lab.program("/bin/sh");
    shell.args(["-c", line]);
    finish(shell, json!({"hook_event_name": "X"}).to_string().as_bytes())
}

#[test]
fn people_without_us_are_told_once_where_their_agent_shows_it_and_go_on() {
    let lab = bare_lab();
    let by = |key: &str| format!("{}\n", json!({key: NOTE}));
    for (agent, file, first, second, told) in [
        ("claude", ".claude/settings.json", "SessionStart", "PreToolUse", (0, by("systemMessage"), "")),
        ("codex", ".codex/hooks.json", "SessionStart", "PreToolUse", (0, by("systemMessage"), "")),
        ("gemini", ".gemini/settings.json", "SessionStart", "BeforeTool", (0, by("systemMessage"), "")),
        ("qwen", ".qwen/settings.json", "SessionStart", "PreToolUse", (0, by("systemMessage"), "")),
        ("droid", ".factory/settings.json", "SessionStart", "PreToolUse", (0, by("systemMessage"), "")),
        ("cursor", ".cursor/hooks.json", "sessionStart", "preToolUse", (0, by("additional_context"), "")),
        ("copilot", ".github/hooks/ollm.json", "SessionStart", "PreToolUse", (0, by("additionalContext"), "")),
        ("windsurf", ".windsurf/hooks.json", "pre_user_prompt", "pre_run_command", (0, format!("{NOTE}\n"), "")),
        ("kiro", ".kiro/hooks/ollm.json", "SessionStart", "PreToolUse", (1, String::new(), NOTE)),
        ("goose", ".agents/plugins/ollm/hooks/hooks.json", "SessionStart", "PreToolUse", (1, String::new(), NOTE)),
    ] {
        assert_eq!(lab.run(&["connect", agent, "--project"]).code, 0, "{agent}");
        let file = format!("project/{file}");
        let ran = without_us(&lab, &line(&lab, &file, first));
        assert_eq!((ran.code, ran.stdout, ran.stderr.trim()), told, "{agent}");
        let ran = without_us(&lab, &line(&lab, &file, second));
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""), "{agent} {second}");
        assert_eq!(status(&lab, agent)["links"][0]["state"], "moved", "{agent}: ollm is not on the PATH");
    }
    assert_eq!(lab.run(&["connect", "cline", "--project"]).code, 0);
    let program = read(&lab, "project/.clinerules/hooks/TaskStart");
    let ran = without_us(&lab, &program);
    assert_eq!((ran.code, ran.stdout), (0, by("contextModification")));
    assert_eq!(lab.run(&["disconnect", "--all", "--project"]).code, 0);
    let left = super::files(&lab).into_iter().filter(|file| file.starts_with("project/") && !file.contains(".git/"));
    assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn outside_a_project_there_is_no_place_for_its_entries() {
    let outside = Lab::new();
    fs::remove_dir_all(outside.project.join(".git")).unwrap();
    assert_eq!(outside.run(&["connect", "claude", "--project"]).code, 64);
}
