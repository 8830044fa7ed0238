//! The built-in tools of the model. Each has one file, and one line in [`TOOLS`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ollm_process::Children;
use ollm_protocol::tool::{Declaration, Effect};
use ollm_protocol::{EventKind, Tool, ToolSchema};
use serde_json::{Map, Value, json};

use crate::cancel::Cancel;
use crate::port::{Failure, ShellBox};
use crate::workspace::Workspace;

mod args;
mod delete_file;
mod diff;
mod edit_file;
mod glob;
mod grep;
mod list_dir;
mod read_file;
mod shell;
pub(crate) mod spill;
pub(crate) mod task;
pub(crate) mod todo;
mod walk;
mod write_file;

pub use diff::unified as unified_diff;

/// Every built-in tool.
pub(crate) const TOOLS: &[&dyn BuiltIn] = &[
    &read_file::ReadFile,
    &write_file::WriteFile,
    &edit_file::EditFile,
    &delete_file::DeleteFile,
    &list_dir::ListDir,
    &glob::Glob,
    &grep::Grep,
    &shell::Shell,
    &todo::Todo,
];

/// A built-in tool.
pub(crate) trait BuiltIn: Sync {
    /// Its description for the model.
    fn describe(&self) -> Description;

    /// Runs the tool. An error is a message for the model.
    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<ToolOutcome, String>;

    /// The change that it would make to a file; `None` if it changes no file, or would fail.
    fn preview(&self, _args: &Map<String, Value>, _workspace: &Workspace) -> Option<Change> {
        None
    }
}

/// The description of a built-in tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    /// Its name and effects, from the table of tools that guards and matchers use.
    pub(crate) declaration: &'static Declaration,
    pub(crate) text: &'static str,
    /// Name, JSON type and meaning of each argument.
    pub(crate) args: &'static [Argument],
}

/// One argument of a built-in tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
    pub(crate) required: bool,
    /// The fields of a list's items.
    pub(crate) fields: &'static [Argument],
}

impl Argument {
    fn schema(&self) -> Value {
        let mut schema = json!({"type": self.kind, "description": self.text});
        if let (false, Some(schema)) = (self.fields.is_empty(), schema.as_object_mut()) {
            schema.insert("items".to_owned(), object(self.fields).into());
        }
        schema
    }
}

/// The schema of an object with these fields.
fn object(fields: &[Argument]) -> Map<String, Value> {
    let properties: Map<String, Value> = fields.iter().map(|arg| (arg.name.to_owned(), arg.schema())).collect();
    let required: Vec<&str> = fields.iter().filter(|arg| arg.required).map(|arg| arg.name).collect();
    Map::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), properties.into()),
        ("required".to_owned(), required.into()),
    ])
}

/// How far a tool's effects reach, by its declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// It changes nothing.
    Looks,
    /// It changes files of the workspace.
    Edits,
    /// It can do anything.
    Acts,
}

impl Reach {
    pub(crate) fn of(declaration: &Declaration) -> Reach {
        let reach = |effect: &Effect| match effect {
            effect if effect.is_harmless() => Reach::Looks,
            Effect::WritesPath | Effect::RemovesPath => Reach::Edits,
            _ => Reach::Acts,
        };
        declaration.effects.iter().map(|(_, effect)| reach(effect)).max().unwrap_or(Reach::Looks)
    }
}

impl Description {
    pub(crate) fn tool(&self) -> Tool {
        Tool {
            name: self.declaration.name.to_owned(),
            description: self.text.to_owned(),
            input: ToolSchema(object(self.args)),
            output: None,
            read_only: Reach::of(self.declaration) == Reach::Looks,
        }
    }

    /// Checks that required arguments are present and texts are texts; a path may also be called `file_path`.
    pub(crate) fn fits(&self, args: &Map<String, Value>) -> Result<(), String> {
        for arg in self.args {
            let given = args.get(arg.name).or_else(|| args.get("file_path").filter(|_| arg.name == "path"));
            match given.filter(|value| !value.is_null()) {
                None if arg.required => return Err(format!("`{}` is missing", arg.name)),
                Some(value) if arg.kind == "string" && !value.is_string() => {
                    return Err(format!("`{}` must be a text, not {value}", arg.name));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether it has a file argument called `path`.
    pub(crate) fn has_path(&self) -> bool {
        self.args.iter().any(|arg| arg.name == "path")
    }
}

/// A required argument.
pub(crate) const fn needs(name: &'static str, kind: &'static str, text: &'static str) -> Argument {
    Argument { name, kind, text, required: true, fields: &[] }
}

/// A required list of objects with these fields.
pub(crate) const fn lists(name: &'static str, fields: &'static [Argument], text: &'static str) -> Argument {
    Argument { name, kind: "array", text, required: true, fields }
}

/// An optional argument.
pub(crate) const fn takes(name: &'static str, kind: &'static str, text: &'static str) -> Argument {
    Argument { name, kind, text, required: false, fields: &[] }
}

/// The tools' access to the session.
pub(crate) struct Bench<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) children: &'a Children,
    pub(crate) shell: &'a ShellSettings,
    pub(crate) todos: &'a mut Vec<todo::Item>,
    pub(crate) cancel: &'a Cancel,
    /// The most bytes of a result that the model is shown.
    pub(crate) most: usize,
}

/// How shell commands are run.
#[derive(Clone, Debug)]
pub struct ShellSettings {
    /// The shell.
    pub program: PathBuf,
    /// Its whole environment, to which `OLLM_AGENT` is added.
    pub env: Vec<(OsString, OsString)>,
    /// The value of `OLLM_AGENT`.
    pub agent: String,
    /// How long a command may run.
    pub timeout: Duration,
    /// The most bytes that a command may write; more output ends it.
    pub output: usize,
    /// The folder for the whole text of long output.
    pub spill: PathBuf,
    /// The box that commands run in; none when absent.
    pub shell_box: Option<Arc<dyn ShellBox>>,
}

impl ShellSettings {
    /// `/bin/sh` with this environment; the whole text of long output goes to `spill`.
    pub fn new(env: Vec<(OsString, OsString)>, spill: &Path) -> ShellSettings {
        ShellSettings {
            program: "/bin/sh".into(),
            env,
            agent: "1".to_owned(),
            timeout: Duration::from_mins(2),
            output: 16 << 20,
            spill: spill.to_owned(),
            shell_box: None,
        }
    }
}

/// The outcome of a built-in tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolOutcome {
    pub(crate) text: String,
    pub(crate) failed: bool,
    pub(crate) change: Option<Change>,
    /// Notes for the person beside the result.
    pub(crate) notes: Vec<String>,
    /// Why it failed, if the result contains more than the reason.
    pub(crate) failure: Option<Failure>,
}

impl ToolOutcome {
    pub(crate) fn text(text: impl Into<String>) -> ToolOutcome {
        ToolOutcome { text: text.into(), ..ToolOutcome::default() }
    }
}

/// A tool's change of a file.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) kind: EventKind,
    pub(crate) path: PathBuf,
    pub(crate) diff: String,
    pub(crate) content: Option<String>,
    pub(crate) size: usize,
}

/// The built-in tool with this name.
pub(crate) fn find(name: &str) -> Option<&'static dyn BuiltIn> {
    TOOLS.iter().copied().find(|tool| tool.describe().declaration.name == name)
}

#[cfg(test)]
mod tests;
