//! The files a file tool is about to write.

use std::path::Path;

use ollm_protocol::Event;
use serde_json::{Map, Value};

use super::watch::Reach;
use crate::{
    call,
    field::{Field, Place},
    writes::patch_files,
};

/// A file named by a tool call.
pub(super) struct Written {
    pub(super) field: Field,
    pub(super) place: Place,
    pub(super) reach: Reach,
}

/// Words in the name of a tool that only looks.
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

/// Words in the name of a tool that takes something away as a whole.
const TAKES: &[&str] = &["delete", "move", "rename", "remove", "rm", "mv", "trash", "symlink", "link", "unlink"];

/// Arguments that name files, without underscores and in lower case.
const PATHS: &[&str] = &[
    "path",
    "filepath",
    "filename",
    "file",
    "target",
    "targetfile",
    "targetpath",
    "destination",
    "destinationpath",
    "dest",
    "newpath",
    "oldpath",
    "source",
    "sourcepath",
    "src",
    "dst",
    "from",
    "to",
    "paths",
    "files",
    "filepaths",
    "absolutepath",
    "relativepath",
    "relativeworkspacepath",
    "notebookpath",
    "uri",
    "fileuri",
    "outputpath",
    "output",
    "outputfile",
    "linkpath",
    "location",
    "root",
    "directory",
    "folder",
    "newname",
    "filenames",
    "saveto",
    "targets",
    "destinations",
];

/// Arguments whose text may be a patch.
const PATCHES: &[&str] = &["patch", "diff", "input", "patchtext", "unifieddiff", "changes", "command", "content"];

/// The files this call may write, if it is a call of a file tool.
pub(super) fn written(event: &Event, cwd: &Path, home: Option<&Path>) -> Vec<Written> {
    let Some(name) = call::tool_name(event) else { return Vec::new() };
    let words = words(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if has(LOOKS) && !has(CHANGES) {
        return Vec::new();
    }
    let reach = if has(TAKES) { Reach::Tree } else { Reach::File };
    let place = call::place(event, None, cwd, home);
    let mut files = Vec::new();
    match event.data.get("args") {
        Some(Value::Object(args)) if !only_looks(args) => object(args, has(&["patch"]), 0, &mut files),
        Some(Value::String(text)) => files.extend(patch_files(text)),
        _ => {}
    }
    let field = |file: &String| Field::literal(spelled(file, home));
    files.iter().map(|file| Written { field: field(file), place: place.clone(), reach }).collect()
}

/// An editor tool with a command of its own that only looks.
fn only_looks(args: &Map<String, Value>) -> bool {
    let command = args.get("command").or_else(|| args.get("action")).or_else(|| args.get("operation"));
    command.and_then(Value::as_str).is_some_and(|command| LOOKS.contains(&command.to_lowercase().as_str()))
}

fn object(args: &Map<String, Value>, is_patch: bool, depth: usize, files: &mut Vec<String>) {
    const DEEPEST: usize = 6;
    for (key, value) in args {
        let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        let names_file = PATHS.contains(&plain.as_str());
        match value {
            Value::String(text) if names_file => files.push(text.clone()),
            Value::String(text) if PATCHES.contains(&plain.as_str()) && (is_patch || plain != "content") => {
                files.extend(patch_files(text));
            }
            Value::Array(list) => {
                for item in list {
                    match item {
                        Value::String(text) if names_file => files.push(text.clone()),
                        Value::String(text) if is_patch => files.extend(patch_files(text)),
                        Value::Object(inner) if depth < DEEPEST => object(inner, is_patch, depth + 1, files),
                        _ => {}
                    }
                }
            }
            Value::Object(inner) if depth < DEEPEST => {
                // Some tools list their files as the keys of an object.
                if names_file {
                    files.extend(inner.keys().cloned());
                }
                object(inner, is_patch, depth + 1, files);
            }
            _ => {}
        }
    }
}

/// A path as tools spell it: an address, or with the home written out.
fn spelled(file: &str, home: Option<&Path>) -> String {
    let file = file.trim();
    let decoded = file.strip_prefix("file://").map(|rest| decode(rest.strip_prefix("localhost").unwrap_or(rest)));
    let file = decoded.unwrap_or_else(|| file.to_owned());
    let Some(home) = home.and_then(Path::to_str) else { return file };
    for sign in ["~", "$HOME", "${HOME}", "%USERPROFILE%"] {
        if let Some(rest) = file.strip_prefix(sign).filter(|rest| rest.is_empty() || rest.starts_with(['/', '\\'])) {
            return format!("{home}{rest}");
        }
    }
    file
}

/// Text with `%2e` and the like written out.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&next, behind)) = rest.split_first() {
        let code = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.filter(|_| next == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(next));
        rest = behind.get(if code.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
