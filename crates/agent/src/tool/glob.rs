//! `glob`: finds files by their names.

use ollm_protocol::FilePatterns;
use ollm_protocol::tool::table::GLOB;
use serde_json::{Map, Value};

use super::{Bench, BuiltIn, Description, ToolOutcome, args, needs, walk};

/// The most names that are listed.
const MOST: usize = 500;

pub(crate) struct Glob;

impl BuiltIn for Glob {
    fn describe(&self) -> Description {
        const {
            Description {
                declaration: GLOB,
                text: "Find files of the workspace by a pattern like src/**/*.rs. Ignored files are left out.",
                args: &[needs("pattern", "string", "The pattern; without a slash it fits names in every folder")],
            }
        }
    }

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<ToolOutcome, String> {
        let pattern = args::text(args, "pattern")?.to_owned();
        let patterns = FilePatterns::parse(&[pattern]).map_err(|error| format!("`pattern` is no pattern: {error}"))?;
        let mut found = Vec::new();
        let whole = walk::files(bench.workspace.root(), bench.cancel, |path| {
            let name = bench.workspace.name(path);
            if patterns.matches(&name) {
                found.push(name);
            }
            found.len() < MOST
        })?;
        let mut text = if found.is_empty() { "no file fits".to_owned() } else { found.join("\n") };
        if !whole {
            text.push_str("\n[there may be more; narrow the pattern]");
        }
        Ok(ToolOutcome::text(text))
    }
}
