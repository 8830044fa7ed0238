//! `glob`: files by their names.

use globset::GlobBuilder;
use ollm_protocol::tool::table::GLOB;
use serde_json::{Map, Value};

use super::{Bench, BuiltIn, Description, Done, args, needs, walk};

/// More names than this are not listed.
const MOST: usize = 500;
/// Longer patterns are none.
const LONGEST: usize = 1000;

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

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<Done, String> {
        let pattern = args::text(args, "pattern")?.trim_start_matches("./");
        if pattern.is_empty() || pattern.len() > LONGEST {
            return Err(format!("`pattern` must have 1 to {LONGEST} characters"));
        }
        let built = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob = built.map_err(|error| format!("`pattern` is no pattern: {error}"))?.compile_matcher();
        let mut found = Vec::new();
        let whole = walk::files(bench.workspace.root(), bench.cancel, |path| {
            let name = bench.workspace.name(path);
            let subject = if pattern.contains('/') { name.as_str() } else { name.rsplit('/').next().unwrap_or(&name) };
            if glob.is_match(subject) {
                found.push(name);
            }
            found.len() < MOST
        })?;
        let mut text = if found.is_empty() { "no file fits".to_owned() } else { found.join("\n") };
        if !whole {
            text.push_str("\n[there may be more; narrow the pattern]");
        }
        Ok(Done::text(text))
    }
}
