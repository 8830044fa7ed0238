//! Guesses the effect of undeclared arguments, strictly and by names alone.
//!
//! This covers the tools of MCP servers, unknown tools, and arguments that a declared tool does not have.

use serde_json::{Map, Value};

use super::effect::{Declaration, Effect, same_name};

/// Arguments that are usually shell text.
const COMMANDS: &[&str] = &["command", "cmd", "script", "shell_command", "command_line"];

/// Arguments that are shell text in a shell tool, and may be in an unknown tool.
const PERHAPS_COMMANDS: &[&str] = &["code", "input", "text", "bash", "chars", "run", "arguments"];

/// Words in the names of arguments that are commands: `pre_command`, `onSaveScript`.
const COMMAND_WORDS: &[&str] =
    &["cmd", "command", "commands", "exec", "execute", "hook", "hooks", "script", "scripts", "shell"];

/// Words in the names of arguments that are texts for people.
#[rustfmt::skip]
const TELLING_WORDS: &[&str] = &[
    "comment", "description", "explanation", "goal", "intent", "justification", "message", "note", "purpose", "rationale",
    "reason", "reasoning", "status", "summary", "task", "thinking", "thought", "title", "why",
];

/// Arguments that name the folder a command runs in.
const FOLDERS: &[&str] = &["cwd", "workdir", "working_directory", "directory", "dir", "dir_path"];

/// Arguments that name files.
const PATHS: &[&str] = &[
    "path",
    "file_path",
    "filename",
    "file",
    "target",
    "target_file",
    "target_path",
    "destination",
    "destination_path",
    "dest",
    "new_path",
    "old_path",
    "source",
    "source_path",
    "src",
    "dst",
    "from",
    "to",
    "paths",
    "files",
    "file_paths",
    "absolute_path",
    "relative_path",
    "relative_workspace_path",
    "notebook_path",
    "uri",
    "file_uri",
    "output_path",
    "output",
    "output_file",
    "link_path",
    "location",
    "root",
    "directory",
    "folder",
    "new_name",
    "filenames",
    "save_to",
    "targets",
    "destinations",
];

/// Those of them that name a destination.
const DESTINATIONS: &[&str] = &[
    "dest",
    "destination",
    "destination_path",
    "destinations",
    "dst",
    "link_path",
    "new_name",
    "new_path",
    "target",
    "to",
];

/// Arguments whose text may be a patch.
const PATCHES: &[&str] = &["patch", "diff", "input", "patch_text", "unified_diff", "changes", "command"];

/// Words in the name of a tool that only reads.
const LOOKS: &[&str] = &[
    "read", "list", "ls", "glob", "grep", "search", "view", "get", "stat", "cat", "find", "show", "fetch", "query",
    "head", "tail", "tree", "describe", "count", "exists", "info", "open", "diff", "lookup", "inspect", "preview",
];

/// Words in the name of a tool that changes something.
const CHANGES: &[&str] = &[
    "write",
    "edit",
    "create",
    "delete",
    "move",
    "rename",
    "replace",
    "apply",
    "patch",
    "update",
    "remove",
    "insert",
    "append",
    "copy",
    "put",
    "save",
    "set",
    "make",
    "mkdir",
    "modify",
    "rm",
    "mv",
    "cp",
    "link",
    "symlink",
    "chmod",
    "touch",
    "truncate",
    "upload",
    "download",
    "overwrite",
    "multi",
    "str",
    "new",
    "add",
    "trash",
];

/// Words in the name of a tool that removes or moves whole files.
const TAKES: &[&str] = &["delete", "move", "rename", "remove", "rm", "mv", "trash", "symlink", "link", "unlink"];

/// Arguments with written content, or that say that something is written.
const WRITTEN: &[&str] = &[
    "append",
    "body",
    "content",
    "contents",
    "data",
    "dest",
    "destination",
    "edits",
    "new_content",
    "new_path",
    "new_str",
    "new_string",
    "new_text",
    "output",
    "output_file",
    "output_path",
    "overwrite",
    "replacement",
    "save_as",
    "save_path",
    "save_to",
];

/// The likely effect of a tool.
pub(super) struct Guess {
    /// Its effect on the files that it names.
    path: Effect,
    pub(super) only_reads: bool,
    /// Whether it is about patches, so that any list and any content may be one.
    patches: bool,
    /// Whether it runs text without a clear name, and if so, whether that is certain; `None` if it does not.
    runs: Option<bool>,
}

impl Guess {
    /// A guess by the declaration if there is one, else by the words of the name.
    pub(super) fn new(name: &str, tool: Option<&Declaration>) -> Guess {
        if let Some(tool) = tool {
            let runs = tool.has(|effect| effect == Effect::RunsShell);
            return Guess {
                path: if tool.has(|effect| effect == Effect::RemovesPath) {
                    Effect::RemovesPath
                } else {
                    Effect::WritesPath
                },
                only_reads: tool.only_reads(),
                patches: tool.has(|effect| effect == Effect::AppliesPatch),
                runs: runs.then_some(true),
            };
        }
        let words = words(name);
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        Guess {
            path: if has(TAKES) { Effect::RemovesPath } else { Effect::WritesPath },
            only_reads: has(LOOKS) && !has(CHANGES),
            patches: has(&["patch"]),
            runs: Some(false),
        }
    }

    /// Whether an argument names an action that only reads.
    pub(super) fn reads_by(args: &Map<String, Value>) -> bool {
        let verb = ["command", "action", "operation"].into_iter().find_map(|name| args.get(name));
        verb.and_then(Value::as_str).is_some_and(|verb| LOOKS.contains(&verb.to_lowercase().as_str()))
    }

    /// Whether any argument is about writing, whatever the tool's name.
    pub(super) fn writes_by(args: &Map<String, Value>) -> bool {
        let has_path = args.keys().any(|name| PATHS.iter().any(|known| same_name(known, name)));
        args.iter().any(|(name, value)| {
            let is = |names: &[&str]| names.iter().any(|known| same_name(known, name));
            let says = !matches!(value, Value::Null | Value::Bool(false));
            let opens = || value.as_str().is_some_and(|mode| mode.len() < 6 && mode.contains(['w', 'a', 'x', '+']));
            is(WRITTEN) && says || is(&["mode", "flags"]) && opens() || is(&["text"]) && has_path
        })
    }

    /// The possible effects of an argument, each with whether it is certain.
    pub(super) fn argument(&self, name: &str, value: &Value) -> Vec<(Effect, bool)> {
        let is = |names: &[&str]| names.iter().any(|known| same_name(known, name));
        let mut meanings = Vec::new();
        if is(COMMANDS) {
            meanings.push((Effect::RunsShell, true));
        }
        if is(&["commands"]) {
            meanings.push((Effect::RunsEach, true));
        }
        if is(&["args", "arguments"]) && value.is_array() {
            meanings.push((Effect::ProgramArguments, true));
        }
        if let (true, Some(sure)) = (is(PERHAPS_COMMANDS), self.runs) {
            meanings.push((Effect::RunsShell, sure));
        }
        if is(FOLDERS) {
            meanings.push((Effect::RunsIn, true));
        }
        if is(PATHS) {
            meanings.push((self.path, true));
            // A moved file appears at its destination.
            if self.path == Effect::RemovesPath && is(DESTINATIONS) {
                meanings.push((Effect::WritesPath, true));
            }
        }
        if (is(PATCHES) && value.is_string()) || (self.patches && (is(&["content"]) || value.is_array())) {
            meanings.push((Effect::AppliesPatch, true));
        }
        meanings
    }
}

/// Whether an argument's name is about commands.
pub(super) fn speaks_of_commands(name: &str) -> bool {
    words(name).iter().any(|word| COMMAND_WORDS.contains(&word.as_str()))
}

/// Whether an argument's name says that it is a text for people.
pub(super) fn is_for_people(name: &str) -> bool {
    words(name).iter().any(|word| TELLING_WORDS.contains(&word.as_str()))
}

/// The words of a name in snake, kebab or camel case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    for next in name.chars() {
        let breaks = !next.is_alphanumeric() || (next.is_uppercase() && before.is_lowercase());
        if breaks {
            words.push(String::new());
        }
        if next.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(next.to_lowercase());
        }
        before = next;
    }
    words
}
