//! What people see of commands that change things, in the order in which a person would use them.

use std::fs;
use std::path::{Path, PathBuf};

use regex_lite::Regex;
use serde_json::json;

use crate::agent;
use crate::agents_refused::commands;
use crate::documents::root;
use crate::lab::{Lab, OLLM, Ran, finish};

/// Runs the commands, one after the other; the text that a person would see.
fn story(lab: &Lab, steps: &[&[&str]]) -> String {
    let steps: Vec<String> = steps.iter().map(|step| shown(lab, step, &lab.run(step))).collect();
    steps.join("\n")
}

/// A command line, and what a person sees of it.
pub(crate) fn shown(lab: &Lab, words: &[&str], ran: &Ran) -> String {
    let line: Vec<String> = words.iter().map(|word| word.replace(OLLM, "OLLM")).collect();
    neutral(&format!("$ ollm {}\n{}", lab.neutral(&line.join(" ")), lab.screen(ran)))
}

/// The text without what differs from run to run.
fn neutral(text: &str) -> String {
    let replaced = [
        ("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        ("sha256:[0-9a-f]{64}", "sha256:DIGEST"),
        (r#""durationMs": ?[0-9.]+"#, "\"durationMs\":N"),
        (r"the box is [^;]+;", "the box is …;"),
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
            &["config", "migrate"],
            &["disconnect", "claude"],
            &["man", "--out", "."],
            &["replay"],
            &["tui"],
        ],
    ));
}

#[test]
fn an_extension_from_its_package_to_its_pin() {
    let lab = Lab::new();
    insta::assert_snapshot!(story(
        &lab,
        &[
            &["ext", "new", "mine", "--in", "sh", "--folder", "work"],
            &["ext", "search", "no-such-thing"],
            &["ext", "install", "work/mine", "--yes"],
            &["ext", "update", "mine"],
            &["ext", "pin", "mine"],
            &["ext", "update", "mine"],
            &["ext", "pin", "mine", "--remove"],
            &["ext", "index", "build", "work/mine", "--out", "shared"],
        ],
    ));
}

#[test]
fn what_doctor_finds_and_how_it_is_mended() {
    let lab = Lab::new();
    lab.user_hook("before_tool", "needs", "exit 0", r#", "requires": {"commands": ["no-such-program"]}"#);
    lab.workspace_hook("before_tool", "theirs", "exit 0", "");
    let ran = lab.run(&["doctor"]);
    // What the machine has is not the same everywhere.
    let of_machine = ["box", "root", "yourself", "agent", "model", "runner", "shell"];
    let is_kept = |line: &&str| !of_machine.iter().any(|word| line.to_lowercase().contains(word));
    let kept = |text: &str| text.split_inclusive('\n').filter(is_kept).collect::<String>();
    let ran = Ran { stdout: kept(&ran.stdout), stderr: kept(&ran.stderr), code: ran.code };
    insta::assert_snapshot!(shown(&lab, &["doctor"], &ran));
}

#[test]
fn a_chat_whose_lines_come_from_a_pipe() {
    let lab = agent::lab(&[agent::text("Hello, Ada.")]);
    let words = ["chat", "--model", "replay:../talk.jsonl"];
    insta::assert_snapshot!(shown(&lab, &words, &finish(lab.ollm(&words), b"I am Ada.\n")));
}

/// Every snapshot of the program below a folder.
fn snapshots(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => snapshots(&path, found),
            path if path.extension().is_some_and(|end| end == "snap") => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn every_command_has_a_snapshot_of_what_it_prints() {
    let mut files = Vec::new();
    snapshots(&root().join("crates/cli/tests/it"), &mut files);
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let has_one = |command: &String| {
        let words: Vec<String> = command.split(' ').map(|word| format!("\\\"{word}\\\"")).collect();
        let words = words.join(", ");
        // The words of the test that took it, or the line in front of a screen.
        let run = [format!("[{words}]"), format!("[{words},")];
        let line = format!("$ ollm {command}");
        let is_line = |text: &str| text.lines().any(|one| one == line || one.starts_with(&format!("{line} ")));
        texts.iter().any(|text| run.iter().any(|run| text.contains(run)) || is_line(text))
    };
    let missing: Vec<String> = commands().into_iter().filter(|command| !has_one(command)).collect();
    assert!(missing.is_empty(), "without a snapshot: {missing:?}");
}
