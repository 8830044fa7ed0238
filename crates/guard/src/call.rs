//! Which tool calls are shell commands, and which write files.

use std::path::{Path, PathBuf};

use ollm_protocol::{Event, EventKind};
use serde_json::{Map, Value};

use crate::{
    field::Place,
    path, text,
    walk::{Deed, walk, walk_words},
};

/// Tools that run shell text under whatever argument.
const SHELL_TOOLS: &[&str] = &[
    "shell",
    "bash",
    "sh",
    "zsh",
    "bash_execute",
    "run_shell_command",
    "exec_command",
    "execute_command",
    "run_command",
    "terminal",
    "run_in_terminal",
    "run_terminal_cmd",
    "local_shell",
    "shell_command",
    "exec",
    "execute",
    "run_bash",
    "run_shell",
    "execute_bash",
    "container.exec",
    "unified_exec",
];

/// Arguments that are shell text in any tool.
const COMMANDS: &[&str] = &["command", "cmd", "script", "commands", "shell_command", "commandline", "command_line"];

/// Arguments that are shell text in a tool that is a shell.
const SHELL_ONLY: &[&str] = &["code", "input", "text", "bash", "chars", "run", "arguments"];

/// Arguments that name the folder a command runs in.
const FOLDERS: &[&str] = &["cwd", "workdir", "working_directory", "workingdirectory", "directory", "dir", "dir_path"];

/// Past this length a person looks at the command.
const LONGEST: usize = 64 << 10;

/// Past this length more of the same plain word adds nothing to look at.
const LONGEST_WORD: usize = 64;

/// The tool's name without the server it comes from.
pub(crate) fn tool_name(event: &Event) -> Option<&str> {
    if event.kind != EventKind::BeforeTool {
        return None;
    }
    let name = event.text("tool_name").unwrap_or_default();
    Some(name.rsplit("__").next().unwrap_or(name))
}

/// Everything a shell-like tool call does, or nothing if it is no such call.
pub(crate) fn shell_deeds(event: &Event, cwd: &Path, home: Option<&Path>) -> Option<Vec<Deed>> {
    let name = tool_name(event)?;
    let is_shell = SHELL_TOOLS.iter().any(|tool| tool.eq_ignore_ascii_case(name));
    let mut deeds = Vec::new();
    let mut found = false;
    let args = match event.data.get("args") {
        Some(Value::Object(args)) => args,
        Some(Value::String(script)) if is_shell => return Some(script_deeds(script, place(event, None, cwd, home))),
        _ => return None,
    };
    for (key, value) in args {
        if !is_command(key, is_shell) {
            continue;
        }
        found |= matches!(value, Value::String(_) | Value::Array(_));
        let place = place(event, Some(args), cwd, home);
        value_deeds(key, value, args, &place, &mut deeds);
    }
    found.then_some(deeds)
}

fn is_command(key: &str, is_shell: bool) -> bool {
    let is = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(key));
    is(COMMANDS) || (is_shell && is(SHELL_ONLY))
}

fn value_deeds(key: &str, value: &Value, args: &Map<String, Value>, place: &Place, deeds: &mut Vec<Deed>) {
    match value {
        Value::String(script) => {
            deeds.extend(script_deeds(script, place.clone()));
            // Many tools take the program and its arguments apart.
            if let Some(more) = args.get("args").or_else(|| args.get("arguments")).and_then(words) {
                deeds.extend(walk_words(std::iter::once(script.clone()).chain(more).collect(), place.clone()));
            }
        }
        Value::Array(_) => {
            let words = words(value).unwrap_or_default();
            if key.eq_ignore_ascii_case("commands") || words.len() == 1 {
                deeds.extend(words.iter().flat_map(|script| script_deeds(script, place.clone())));
            } else {
                deeds.extend(words.iter().filter(|word| text::is_disguised(word)).map(|word| disguised(word)));
                deeds.extend(walk_words(words, place.clone()));
            }
        }
        _ => {}
    }
}

fn words(value: &Value) -> Option<Vec<String>> {
    let list = value.as_array()?;
    Some(list.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect())
}

/// How much of a script there is to look at: one huge plain word is no reason to ask.
fn length(script: &str) -> usize {
    let mut run = 0;
    let counts = script.bytes().filter(|byte| {
        run = if byte.is_ascii_alphanumeric() { run + 1 } else { 0 };
        run <= LONGEST_WORD
    });
    counts.count()
}

fn script_deeds(script: &str, place: Place) -> Vec<Deed> {
    if length(script) > LONGEST {
        return vec![Deed::Unclear("the command is too long to be looked through".to_owned())];
    }
    let mut deeds = Vec::new();
    if text::is_disguised(script) {
        deeds.push(disguised(script));
    }
    // A NUL would end the text early for whoever reads it after us.
    if script.contains('\0') {
        return deeds;
    }
    if script.contains('\r') {
        deeds.extend(walk(&script.replace("\r\n", "\n").replace('\r', "\n"), place));
    } else {
        deeds.extend(walk(script, place));
    }
    deeds
}

fn disguised(script: &str) -> Deed {
    Deed::Unclear(format!("the command holds characters that hide what it does: {}", text::excerpt(script)))
}

/// Where the call runs: the event says, else the caller; a folder among the arguments is possible too.
pub(crate) fn place(event: &Event, args: Option<&Map<String, Value>>, cwd: &Path, home: Option<&Path>) -> Place {
    let here = here(event, cwd);
    let mut folders = vec![here.clone()];
    for (key, value) in args.into_iter().flatten() {
        if let (true, Some(folder)) = (FOLDERS.iter().any(|name| name.eq_ignore_ascii_case(key)), value.as_str()) {
            let folder = path::join(&here, folder);
            if folder != here {
                folders.push(folder);
            }
        }
    }
    Place { folders, lost: false, home: home.map(Path::to_owned) }
}

/// The folder of the event.
pub(crate) fn here(event: &Event, cwd: &Path) -> PathBuf {
    let claimed = event.text("cwd").map(Path::new).filter(|claimed| claimed.is_absolute());
    path::tidy(claimed.unwrap_or(cwd))
}
