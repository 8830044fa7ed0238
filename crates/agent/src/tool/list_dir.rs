//! `list_dir`: lists the entries of a folder.

use ollm_protocol::tool::table::LIST_DIR;
use serde_json::{Map, Value};

use super::{Bench, BuiltIn, Description, ToolOutcome, args, takes};

/// The most entries that are listed; further ones are only counted.
const MOST: usize = 1000;

pub(crate) struct ListDir;

impl BuiltIn for ListDir {
    fn describe(&self) -> Description {
        const {
            Description {
                declaration: LIST_DIR,
                text: "List a folder of the workspace. Folders end in a slash, links in an at sign.",
                args: &[takes("path", "string", "The folder; the workspace itself if left out")],
            }
        }
    }

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<ToolOutcome, String> {
        let path = bench.workspace.resolve(args::folder(args)?).map_err(|error| error.to_string())?;
        let name = bench.workspace.name(&path);
        let entries = std::fs::read_dir(&path).map_err(|error| format!("cannot list {name}: {error}"))?;
        let mut names: Vec<String> = entries
            .filter_map(Result::ok)
            .map(|entry| {
                let mark = match entry.file_type() {
                    Ok(kind) if kind.is_dir() => "/",
                    Ok(kind) if kind.is_symlink() => "@",
                    _ => "",
                };
                format!("{}{mark}", entry.file_name().to_string_lossy())
            })
            .collect();
        names.sort_unstable();
        let more = names.len().saturating_sub(MOST);
        names.truncate(MOST);
        let mut text = if names.is_empty() { "the folder is empty".to_owned() } else { names.join("\n") };
        if more > 0 {
            text.push_str("\n[and ");
            text.push_str(&more.to_string());
            text.push_str(" more]");
        }
        Ok(ToolOutcome::text(text))
    }
}
