//! `delete_file`: removes a file, and reports that to hooks.

use ollm_protocol::EventKind;
use ollm_protocol::tool::table::DELETE_FILE;
use serde_json::{Map, Value};

use super::{Bench, BuiltIn, Change, Description, ToolOutcome, args, diff, needs};
use crate::workspace::Workspace;

pub(crate) struct DeleteFile;

impl BuiltIn for DeleteFile {
    fn describe(&self) -> Description {
        const {
            Description {
                declaration: DELETE_FILE,
                text: "Delete one file of the workspace.",
                args: &[needs("path", "string", "The file")],
            }
        }
    }

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<ToolOutcome, String> {
        let change = change(args, bench.workspace)?;
        bench.workspace.remove(&change.path).map_err(|error| error.to_string())?;
        let text = format!("deleted {}", bench.workspace.name(&change.path));
        Ok(ToolOutcome { change: Some(change), ..ToolOutcome::text(text) })
    }

    fn preview(&self, args: &Map<String, Value>, workspace: &Workspace) -> Option<Change> {
        change(args, workspace).ok()
    }
}

/// The change that the call would make.
fn change(args: &Map<String, Value>, workspace: &Workspace) -> Result<Change, String> {
    let path = workspace.resolve(args::path(args)?).map_err(|error| error.to_string())?;
    let name = workspace.name(&path);
    let old = workspace.read(&path).map_err(|error| error.to_string())?;
    let old = old.ok_or_else(|| format!("there is no file {name}"))?;
    let diff = diff::unified(&name, Some(&String::from_utf8_lossy(&old)), None);
    Ok(Change { kind: EventKind::FileDeleted, path, diff, content: None, size: 0 })
}
