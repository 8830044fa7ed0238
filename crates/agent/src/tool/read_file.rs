//! `read_file`: the text of a file, or a part of it.

use ollm_protocol::tool::table::READ_FILE;
use serde_json::{Map, Value};

use super::{Bench, BuiltIn, Description, Done, args, needs, takes};

pub(crate) struct ReadFile;

impl BuiltIn for ReadFile {
    fn describe(&self) -> Description {
        const {
            Description {
                declaration: READ_FILE,
                text: "Read a text file of the workspace.",
                args: &[
                    needs("path", "string", "The file"),
                    takes("offset", "integer", "The first line to read, from 1"),
                    takes("limit", "integer", "How many lines to read"),
                ],
            }
        }
    }

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<Done, String> {
        let path = bench.workspace.resolve(args::path(args)?).map_err(|error| error.to_string())?;
        let bytes = bench.workspace.read(&path).map_err(|error| error.to_string())?;
        let bytes = bytes.ok_or_else(|| format!("there is no file {}", bench.workspace.name(&path)))?;
        if bytes.contains(&0) {
            return Err(format!("{} is no text: it has {} bytes", bench.workspace.name(&path), bytes.len()));
        }
        let text = String::from_utf8_lossy(&bytes);
        let (offset, limit) = (args::number(args, "offset")?, args::number(args, "limit")?);
        if offset.is_none() && limit.is_none() && text.len() <= bench.most {
            return Ok(Done::text(text));
        }
        Ok(Done::text(part(&text, offset.unwrap_or(1).max(1), limit.unwrap_or(usize::MAX), bench.most)))
    }
}

/// Some lines, and what was left out.
fn part(text: &str, first: usize, limit: usize, most: usize) -> String {
    let mut shown = String::new();
    let mut last = first - 1;
    for line in text.split_inclusive('\n').skip(first - 1).take(limit) {
        if shown.len() + line.len() > most {
            if shown.is_empty() {
                shown = ollm_store::cut(line, most).into_owned();
                last += 1;
            }
            break;
        }
        shown.push_str(line);
        last += 1;
    }
    let all = text.lines().count();
    format!("{shown}\n[lines {first} to {last} of {all}; use offset and limit for others]")
}
