//! The guards as their callers see them: a tool call in, a verdict out.

mod cases;
mod classes;
mod commands;
mod deceit;
mod deeds;
mod escapes;
mod everyday;
#[cfg(unix)]
mod executed;
mod folders;
mod hidden;
mod logins;
mod lost;
mod properties;
mod targets;
mod tools;
mod unseen;
mod worded;

use std::path::{Path, PathBuf};

use ollm_guard::{ProtectedPlaces, destructive, tampering};
use ollm_protocol::{Event, EventKind, Flow, Verdict};
use serde_json::{Value, json};

const HOME: &str = "/home/ada";
const PROJECT: &str = "/home/ada/work/project";

/// A call of a tool.
fn call(tool: &str, args: Value) -> Event {
    Event::unchecked(EventKind::BeforeTool, [("tool_name", tool.into()), ("args", args), ("cwd", PROJECT.into())])
}

/// A call of the shell tool.
fn shell(command: &str) -> Event {
    call("shell", json!({ "command": command }))
}

/// What the first guard says about a command.
fn first(command: &str) -> Verdict {
    destructive(&shell(command), Path::new(PROJECT), Some(Path::new(HOME)))
}

/// What is usually protected, around a home that does not exist.
fn shelter() -> ProtectedPlaces {
    let home = PathBuf::from(HOME);
    ProtectedPlaces {
        ollm_home: home.join(".ollm"),
        projects: vec![PathBuf::from(PROJECT)],
        cwd: PathBuf::from(PROJECT),
        home: Some(home),
        ..ProtectedPlaces::default()
    }
}

/// What the second guard says about a command.
fn second(command: &str) -> Verdict {
    tampering(&shell(command), &shelter())
}

/// Every command of a table has the flow it should have.
fn check(judge: impl Fn(&str) -> Verdict, flow: Flow, commands: &[&str]) {
    let wrong: Vec<String> = commands
        .iter()
        .map(|command| (command, judge(command)))
        .filter(|(_, verdict)| verdict.flow != flow)
        .map(|(command, verdict)| format!("{command:?} is {} {:?}", verdict.flow.name(), verdict.reasons))
        .collect();
    assert!(wrong.is_empty(), "expected {}:\n{}", flow.name(), wrong.join("\n"));
}
