//! `grep`: finds lines that match a regular expression.

use std::fmt::Write as _;

use ollm_protocol::tool::table::GREP;
use regex_lite::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::{Bench, BuiltIn, Description, ToolOutcome, args, needs, takes, walk};

/// The most lines that are listed.
const MOST: usize = 500;
/// The longest line; longer ones are cut.
const LONGEST_LINE: usize = 500;

pub(crate) struct Grep;

impl BuiltIn for Grep {
    fn describe(&self) -> Description {
        const {
            Description {
                declaration: GREP,
                text: "Find lines in files of the workspace by a regular expression. Ignored files are left out.",
                args: &[
                    needs("pattern", "string", "The expression"),
                    takes("path", "string", "The file or folder to look in; the workspace if left out"),
                ],
            }
        }
    }

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<ToolOutcome, String> {
        let pattern = args::text(args, "pattern")?;
        let built = RegexBuilder::new(pattern).size_limit(1 << 20).build();
        let expression = built.map_err(|error| format!("`pattern` is no expression: {error}"))?;
        let path = bench.workspace.resolve(args::folder(args)?).map_err(|error| error.to_string())?;
        if !path.exists() {
            return Err(format!("there is no {}", bench.workspace.name(&path)));
        }
        let mut found = String::new();
        let mut count = 0;
        let whole = walk::files(&path, bench.cancel, |file| {
            // A file that is not text, too large or already gone has no lines.
            if let Ok(Some(bytes)) = bench.workspace.read(file)
                && !bytes.contains(&0)
            {
                let name = bench.workspace.name(file);
                count += search(&expression, &name, &String::from_utf8_lossy(&bytes), &mut found, bench.most);
            }
            count < MOST && found.len() < bench.most
        })?;
        if found.is_empty() {
            found.push_str("no line fits");
        }
        if !whole {
            found.push_str("\n[there may be more; narrow the expression or the path]");
        }
        Ok(ToolOutcome::text(found))
    }
}

fn search(expression: &Regex, name: &str, text: &str, found: &mut String, most: usize) -> usize {
    let mut count = 0;
    for (at, line) in text.lines().enumerate() {
        if count >= MOST || found.len() >= most {
            break;
        }
        if expression.is_match(line) {
            if !found.is_empty() {
                found.push('\n');
            }
            // Writing to a String cannot fail.
            let _ = write!(found, "{name}:{}:{}", at + 1, ollm_store::cut(line, LONGEST_LINE));
            count += 1;
        }
    }
    count
}
