//! What people see of commands that change things, in the order in which somebody would use them.

use std::fmt::Write;

use regex_lite::Regex;
use serde_json::json;

use crate::lab::{Lab, OLLM};

/// Runs the commands, one after the other; the text that a person would see.
fn story(lab: &Lab, steps: &[&[&str]]) -> String {
    let mut text = String::new();
    for step in steps {
        let shown: Vec<String> = step.iter().map(|word| word.replace(OLLM, "OLLM")).collect();
        let _ = writeln!(text, "$ ollm {}\n{}", lab.neutral(&shown.join(" ")), lab.screen(&lab.run(step)));
    }
    neutral(&text)
}

/// The text without what differs from run to run.
fn neutral(text: &str) -> String {
    let replaced = [
        ("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        ("sha256:[0-9a-f]{64}", "sha256:DIGEST"),
        (r#""durationMs": ?[0-9.]+"#, "\"durationMs\":N"),
    ];
    replaced.iter().fold(text.replace(OLLM, "OLLM"), |text, (pattern, with)| {
        Regex::new(pattern).unwrap().replace_all(&text, *with).into_owned()
    })
}

#[test]
fn a_hook_from_its_script_to_its_end() {
    let lab = Lab::new();
    lab.user("audit.sh", "printf '{\"continue\": true}'\n");
    let file = lab.home.join(".ollm/hooks/audit.json").display().to_string();
    let script = lab.home.join(".ollm/hooks/audit.sh").display().to_string();
    insta::assert_snapshot!(story(
        &lab,
        &[
            &["hook", "add", "before_tool", &script],
            &["hook", "edit", "audit", "timeout=5000", "matcher=shell"],
            &["hook", "run", "before_tool", "--data", r#"{"tool_name": "shell", "args": {"command": "ls"}}"#],
            &["hook", "disable", "audit"],
            &["hook", "disable", "audit"],
            &["hook", "enable", "audit"],
            &["hook", "trigger", "audit"],
            &["hook", "convert", &file],
            &["hook", "remove", "audit"],
            &["hook", "remove", "audit", "--yes"],
            &["hook", "remove", "audit", "--yes"],
        ],
    ));
}

#[test]
fn an_extension_from_its_first_file_to_its_end() {
    let lab = Lab::new();
    let folder = lab.home.join(".ollm/extensions/mine");
    let manifest = json!({
        "name": "mine", "version": "1.0.0", "description": "One of everything",
        "settings": [{"name": "mode", "type": "string", "description": "How strict", "default": "warn"}],
        "hooks": {"before_tool": [{"name": "look", "command": "sh", "args": ["look.sh"]}]},
        "skills": [{"name": "review", "description": "Reviews a file", "prompt": "Review {{file}}."}],
    });
    lab.write("home/.ollm/extensions/mine/manifest.json", manifest.to_string());
    lab.write("home/.ollm/extensions/mine/look.sh", "printf '{\"continue\": true}'\n");
    let folder = folder.display().to_string();
    insta::assert_snapshot!(story(
        &lab,
        &[
            &["ext", "validate", &folder],
            &["ext", "set", "mine", "mode=block"],
            &["ext", "set", "mine", "mood=block"],
            &["ext", "set", "mine", "--unset", "mode"],
            &["ext", "trust", "mine"],
            &["skill", "list"],
            &["skill", "show", "review"],
            &["skill", "run", "review"],
            &["ext", "test", "mine"],
            &["ext", "disable", "mine"],
            &["ext", "enable", "mine"],
            &["ext", "reload"],
            &["ext", "uninstall", "mine"],
            &["ext", "uninstall", "mine", "--yes"],
            &["ext", "dev", &folder],
        ],
    ));
}

#[test]
fn a_server_from_its_declaration_to_its_end() {
    let lab = Lab::new();
    insta::assert_snapshot!(story(
        &lab,
        &[
            &["mcp", "add", "demo", "--", OLLM, "demo", "server"],
            &["mcp", "add", "demo", "--", OLLM, "demo", "server"],
            &["mcp", "start", "demo"],
            &["mcp", "tools", "demo"],
            &["mcp", "resources", "demo"],
            &["mcp", "prompts", "demo"],
            &["mcp", "call", "demo", "nothing"],
            &["mcp", "status"],
            &["mcp", "stop"],
            &["mcp", "restart", "demo"],
            &["mcp", "review", "demo"],
            &["mcp", "trust", "demo"],
            &["mcp", "untrust", "demo"],
            &["mcp", "login", "demo"],
            &["mcp", "logout", "demo"],
            &["mcp", "logs", "demo"],
            &["mcp", "remove", "demo"],
            &["mcp", "remove", "demo"],
        ],
    ));
}

#[test]
fn commands_in_a_home_without_anything() {
    let lab = Lab::new();
    insta::assert_snapshot!(story(
        &lab,
        &[
            &["session", "list"],
            &["session", "show", "x"],
            &["session", "resume", "x"],
            &["trace", "stats"],
            &["trace", "export", "--format", "csv"],
            &["trust", "status"],
            &["trust", "init"],
            &["import", "claude"],
            &["git-hook", "status"],
            &["git-hook", "install"],
            &["git-hook", "uninstall"],
            &["box", "--", "no-such-program"],
            &["completions", "install", "bash"],
            &["config", "unset", "hooks.timeout"],
            &["replay"],
        ],
    ));
}
