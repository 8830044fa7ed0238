//! `read_file`: returns the text of a file, or a part of it.

use ollm_protocol::tool::table::READ_FILE;
use serde_json::{Map, Value};

use super::{Bench, BuiltIn, Description, ToolOutcome, args, needs, takes};

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
                    takes(
                        "column",
                        "integer",
                        "The first byte to read of the line at offset, from 1; for lines that are cut",
                    ),
                ],
            }
        }
    }

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<ToolOutcome, String> {
        let path = bench.workspace.resolve(args::path(args)?).map_err(|error| error.to_string())?;
        let bytes = bench.workspace.read(&path).map_err(|error| error.to_string())?;
        let bytes = bytes.ok_or_else(|| format!("there is no file {}", bench.workspace.name(&path)))?;
        if bytes.contains(&0) {
            return Err(format!("{} is no text: it has {} bytes", bench.workspace.name(&path), bytes.len()));
        }
        let text = String::from_utf8_lossy(&bytes);
        let (offset, limit) = (args::number(args, "offset")?, args::number(args, "limit")?);
        let column = args::number(args, "column")?.unwrap_or(1).max(1);
        if offset.is_none() && limit.is_none() && column == 1 && text.len() <= bench.most {
            return Ok(ToolOutcome::text(text));
        }
        let first = offset.unwrap_or(1).max(1);
        let line = text.split_inclusive('\n').nth(first - 1).unwrap_or_default();
        Ok(ToolOutcome::text(if column > 1 || line.len() > bench.most {
            piece(line.trim_end_matches(['\r', '\n']), (first, column), bench.most)
        } else {
            part(&text, first, limit.unwrap_or(usize::MAX), bench.most)
        }))
    }
}

/// A piece of a line that is too long to be shown at once, and where the next piece begins.
fn piece(line: &str, (number, column): (usize, usize), most: usize) -> String {
    let from = line.ceil_char_boundary((column - 1).min(line.len()));
    let rest = line.get(from..).unwrap_or_default();
    let shown = rest.get(..rest.floor_char_boundary(most)).unwrap_or_default();
    let (to, all) = (from + shown.len(), line.len());
    let next = if to < all { format!("; go on with offset {number} and column {}", to + 1) } else { String::new() };
    format!("{shown}\n[bytes {} to {to} of the {all} in line {number}{next}]", from + 1)
}

/// Some lines, and a note on the omitted ones.
fn part(text: &str, first: usize, limit: usize, most: usize) -> String {
    let mut shown = String::new();
    let mut last = first - 1;
    for line in text.split_inclusive('\n').skip(first - 1).take(limit) {
        if shown.len() + line.len() > most {
            break;
        }
        shown.push_str(line);
        last += 1;
    }
    let all = text.lines().count();
    format!("{shown}\n[lines {first} to {last} of {all}; use offset and limit for others]")
}
