//! `edit_file`: one passage of a file replaced by another.

use ollm_protocol::tool::table::EDIT_FILE;
use serde_json::{Map, Value};

use super::{Bench, BuiltIn, Change, Description, ToolOutcome, args, diff, needs};
use crate::workspace::Workspace;

pub(crate) struct EditFile;

impl BuiltIn for EditFile {
    fn describe(&self) -> Description {
        const {
            Description {
                declaration: EDIT_FILE,
                text: "Replace one passage of a file. The old passage must occur exactly once.",
                args: &[
                    needs("path", "string", "The file"),
                    needs("old", "string", "The exact passage, with enough around it to occur only once"),
                    needs("new", "string", "What to put in its place"),
                ],
            }
        }
    }

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<ToolOutcome, String> {
        let change = change(args, bench.workspace)?;
        let after = change.content.as_deref().unwrap_or_default();
        bench.workspace.write(&change.path, after.as_bytes()).map_err(|error| error.to_string())?;
        let text = format!("edited {}\n{}", bench.workspace.name(&change.path), change.diff);
        Ok(ToolOutcome { change: Some(change), ..ToolOutcome::text(text) })
    }

    fn preview(&self, args: &Map<String, Value>, workspace: &Workspace) -> Option<Change> {
        change(args, workspace).ok()
    }
}

/// The change that the call would make.
fn change(args: &Map<String, Value>, workspace: &Workspace) -> Result<Change, String> {
    let (old, new) = (args::text(args, "old")?, args::text(args, "new")?);
    let path = workspace.resolve(args::path(args)?).map_err(|error| error.to_string())?;
    let name = workspace.name(&path);
    let bytes = workspace.read(&path).map_err(|error| error.to_string())?;
    let bytes = bytes.ok_or_else(|| format!("there is no file {name}; write_file creates one"))?;
    let before = String::from_utf8(bytes).map_err(|_| format!("{name} is no text; it is not changed"))?;
    let after = replaced(&before, old, new).map_err(|why| format!("{why} in {name}"))?;
    Ok(diff::change(&path, &name, Some(before.as_bytes()), &after))
}

fn replaced(text: &str, old: &str, new: &str) -> Result<String, String> {
    if old.is_empty() {
        return Err("`old` is empty: nothing is replaced".to_owned());
    }
    if old == new {
        return Err("`old` and `new` are the same: nothing is replaced".to_owned());
    }
    match text.matches(old).count() {
        0 => Err("`old` does not occur".to_owned()),
        1 => Ok(text.replacen(old, new, 1)),
        many => Err(format!("`old` occurs {many} times; give more of what stands around it")),
    }
}
