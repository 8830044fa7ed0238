//! `delete_file`: a file removed, in a way that hooks hear of.

use ollm_protocol::EventKind;
use ollm_protocol::tool::table::DELETE_FILE;
use serde_json::{Map, Value};

use super::{Bench, BuiltIn, Change, Description, Done, args, diff, needs};

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

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<Done, String> {
        let path = bench.workspace.resolve(args::path(args)?).map_err(|error| error.to_string())?;
        let name = bench.workspace.name(&path);
        let old = bench.workspace.read(&path).map_err(|error| error.to_string())?;
        let old = old.ok_or_else(|| format!("there is no file {name}"))?;
        bench.workspace.remove(&path).map_err(|error| error.to_string())?;
        let diff = diff::unified(&name, &String::from_utf8_lossy(&old), "");
        let change = Change { kind: EventKind::FileDeleted, path, diff, content: None, size: 0 };
        Ok(Done { change: Some(change), ..Done::text(format!("deleted {name}")) })
    }
}
