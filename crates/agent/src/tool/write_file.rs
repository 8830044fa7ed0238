//! `write_file`: creates a file with this content, or replaces its content.

use ollm_protocol::EventKind;
use ollm_protocol::tool::table::WRITE_FILE;
use serde_json::{Map, Value};

use super::{Bench, BuiltIn, Change, Description, ToolOutcome, args, diff, needs};
use crate::workspace::{LARGEST, Workspace};

pub(crate) struct WriteFile;

impl BuiltIn for WriteFile {
    fn describe(&self) -> Description {
        const {
            Description {
                declaration: WRITE_FILE,
                text: "Create a file in the workspace, or replace its whole content.",
                args: &[needs("path", "string", "The file"), needs("content", "string", "Its whole new content")],
            }
        }
    }

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<ToolOutcome, String> {
        let change = change(args, bench.workspace)?;
        let content = change.content.as_deref().unwrap_or_default();
        bench.workspace.write(&change.path, content.as_bytes()).map_err(|error| error.to_string())?;
        let verb = if change.kind == EventKind::FileCreated { "created" } else { "replaced" };
        let text = format!("{verb} {}, {} bytes", bench.workspace.name(&change.path), content.len());
        Ok(ToolOutcome { change: Some(change), ..ToolOutcome::text(text) })
    }

    fn preview(&self, args: &Map<String, Value>, workspace: &Workspace) -> Option<Change> {
        change(args, workspace).ok()
    }
}

/// The change that the call would make.
fn change(args: &Map<String, Value>, workspace: &Workspace) -> Result<Change, String> {
    let content = args::text(args, "content")?;
    if content.len() as u64 > LARGEST {
        return Err(format!("`content` has {} bytes; at most {LARGEST} are written", content.len()));
    }
    let path = workspace.resolve(args::path(args)?).map_err(|error| error.to_string())?;
    let old = workspace.read(&path).map_err(|error| error.to_string())?;
    Ok(diff::change(&path, &workspace.name(&path), old.as_deref(), content))
}
