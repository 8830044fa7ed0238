//! A program that embeds the application is as strict as ours on the same home.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::bundled::{approve, extension};
use crate::lab::{Lab, OLLM, Ran, finish};

/// The example, as `cargo test --workspace` has built it; built here where only our own tests were asked for.
pub(crate) fn embed() -> PathBuf {
    let program = Path::new(OLLM).with_file_name("examples").join("embed");
    if !program.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "-p", "ollm-app", "--example", "embed", "--offline"]);
        let output = build.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    program
}

fn command(lab: &Lab, program: &Path) -> Command {
    let mut command = lab.program(program.to_str().unwrap());
    command.args(ARGUMENTS).current_dir(&lab.project);
    command
}

/// What the example is given.
pub(crate) const ARGUMENTS: [&str; 2] = ["replay:../talk.jsonl", "go"];

fn embedded(lab: &Lab, program: &Path) -> Ran {
    finish(command(lab, program), b"")
}

/// A model that calls the shell with each of these commands, one after the other.
pub(crate) fn talk(lab: &Lab, commands: &[&str]) {
    let call = |(id, command): (usize, &&str)| {
        json!({"tool_calls": [{"id": id.to_string(), "name": "shell", "arguments": {"command": command}}]}).to_string()
    };
    let mut lines: Vec<String> = commands.iter().enumerate().map(call).collect();
    lines.push(json!({"content": "done"}).to_string());
    lab.write("talk.jsonl", lines.join("\n"));
}

/// What our own program refused: hook and reason.
fn refused(lab: &Lab) -> Vec<String> {
    let ran = lab.run(&["run", "go", "--model", "replay:../talk.jsonl", "--stream-json"]);
    let lines = ran.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let refusals = lines.filter(|line| line["type"] == "event" && line["flow"] == "block");
    refusals
        .map(|line| format!("refused at {}: {}: {}", text(&line["event"]), text(&line["hook"]), text(&line["reason"])))
        .collect()
}

/// The first line of a text.
fn text(value: &Value) -> &str {
    value.as_str().and_then(|text| text.lines().next()).unwrap_or_default()
}

#[test]
fn an_embedding_program_is_as_strict_as_ours_on_the_same_home() {
    let program = embed();
    let lab = Lab::new();
    lab.user_hook(
        "before_tool",
        "mine",
        "grep -q forbidden && printf '{\"continue\": false, \"systemMessage\": \"not that\"}'",
        r#", "matcher": "shell""#,
    );
    lab.user_hook("before_tool", "off", "printf '{\"continue\": false, \"systemMessage\": \"off\"}'", "");
    assert_eq!(lab.run(&["hook", "disable", "off"]).code, 0);
    lab.workspace_hook("before_tool", "theirs", "printf '{\"continue\": false, \"systemMessage\": \"theirs\"}'", "");
    let hooks = json!({"hooks": {"before_tool": [{"name": "bundled", "command": "sh", "args": ["no.sh"]}]}});
    let folder = extension(&lab, "home", "tools", "srv", &hooks);
    std::fs::write(
        folder.join("no.sh"),
        "grep -q bundled && printf '{\"continue\": false, \"systemMessage\": \"bundled\"}'\n",
    )
    .unwrap();
    approve(&lab, "tools");
    talk(&lab, &["rm -rf ~", "echo forbidden", "echo bundled", "echo > ../home/.ollm/config.yaml"]);

    let (ours, theirs) = (refused(&lab), embedded(&lab, &program));
    let lines: Vec<&str> = theirs.stdout.lines().filter(|line| line.starts_with("refused at ")).collect();
    assert_eq!(lines, ours, "{theirs:?}");
    assert_eq!(ours.len(), 4, "{ours:?}");
    assert!(theirs.stdout.contains("ended: Some(Done)"), "{theirs:?}");
    lab.assert_nobody_is_left();

    // Where an agent has started it, no person is asked whether a hook may run.
    let asked = "is not approved: may it run this time?";
    assert!(theirs.stdout.contains(asked) && theirs.stdout.contains("theirs.sh"), "{theirs:?}");
    let mut under_agent = command(&lab, &program);
    under_agent.env("CLAUDECODE", "1");
    let ran = finish(under_agent, b"");
    assert!(!ran.stdout.contains(asked) && ran.stdout.contains("ended: Some(Done)"), "{ran:?}");

    // A configuration that cannot be relied on is no reason to go on without guards.
    lab.write("home/.ollm/config.yaml", "hooks: {guards: 7}\n");
    let (ours, theirs) = (lab.run(&["hook", "list"]), embedded(&lab, &program));
    assert_eq!((ours.code, theirs.code), (3, 1), "{ours:?} {theirs:?}");
    assert!(theirs.stderr.contains("hooks.guards"), "{theirs:?}");
}
