//! `write_file`: a file with this content, whatever was there before.

use ollm_protocol::tool::table::WRITE_FILE;
use serde_json::{Map, Value};

use super::{Bench, BuiltIn, Description, Done, args, diff, needs};
use crate::workspace::LARGEST;

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

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<Done, String> {
        let content = args::text(args, "content")?;
        if content.len() as u64 > LARGEST {
            return Err(format!("`content` has {} bytes; at most {LARGEST} are written", content.len()));
        }
        let path = bench.workspace.resolve(args::path(args)?).map_err(|error| error.to_string())?;
        let name = bench.workspace.name(&path);
        let old = bench.workspace.read(&path).map_err(|error| error.to_string())?;
        bench.workspace.write(&path, content.as_bytes()).map_err(|error| error.to_string())?;
        let verb = if old.is_some() { "replaced" } else { "created" };
        let change = diff::change(&path, &name, old.as_deref(), content);
        Ok(Done { change: Some(change), ..Done::text(format!("{verb} {name}, {} bytes", content.len())) })
    }
}
