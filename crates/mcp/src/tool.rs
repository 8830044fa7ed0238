//! Reads the tools of one server from its list. Each tool is accepted or refused separately, so that one bad tool does
//! not affect the others.

use ollm_protocol::schema::{self, Api, BadSchema};
use ollm_protocol::{Tool, ToolFilter, ToolSchema};
use serde_json::Value;

use crate::depth_limit::{DEEPEST, is_deep};
use crate::name::{BadName, tool_names};

/// The most tools of one server; no model could choose among more.
const MOST_TOOLS: usize = 10_000;
/// The longest description; longer ones are cut.
pub(crate) const LONGEST_DESCRIPTION: usize = 16 << 10;

/// A schema up to this size needs no size check, unless it contains references.
const SMALL: usize = 16 << 10;

/// A tool of a server, as a model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The server's own name for the tool.
    pub raw: String,
    /// The tool, with the name that the model uses.
    pub tool: Tool,
}

/// A remark about a tool that is not offered, or is offered with changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The server's own name for the tool, if it has one.
    pub tool: String,
    /// What is wrong with it.
    pub why: String,
}

/// What a server offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offers {
    /// The tools.
    pub tools: Vec<Offer>,
    /// Remarks about tools that are refused or changed.
    pub remarks: Vec<Remark>,
}

#[derive(Debug, thiserror::Error)]
enum ToolFault {
    #[error("it is not an object with a `name`")]
    Shapeless,
    #[error("it is nested more than {DEEPEST} levels deep")]
    Deep,
    #[error(transparent)]
    Name(#[from] BadName),
    #[error(transparent)]
    Schema(#[from] BadSchema),
}

impl Offers {
    /// The tools in the entries of `tools/list`, under the label of their server (see [`Labels`](crate::Labels)).
    pub fn read(server: &str, listed: &[Value], filter: &ToolFilter) -> Offers {
        let mut offers = Offers { remarks: idle(listed, filter), ..Offers::default() };
        let raw = |entry: &Value| entry.get("name").and_then(Value::as_str).map(str::to_owned);
        let wanted: Vec<(&Value, Option<String>)> = listed
            .iter()
            .map(|entry| (entry, raw(entry)))
            .filter(|(_, name)| name.as_deref().is_none_or(|name| filter.admits(name)))
            .collect();
        let names: Vec<&str> = wanted.iter().filter_map(|(_, name)| name.as_deref()).take(MOST_TOOLS).collect();
        let mut settled = tool_names(server, &names).into_iter();
        let more = wanted.len().saturating_sub(MOST_TOOLS);
        for (entry, raw) in wanted.into_iter().take(MOST_TOOLS) {
            let label = raw.as_ref().map(|_| settled.next().unwrap_or(Err(BadName::Taken)));
            let taken = match label {
                None => Err(ToolFault::Shapeless),
                Some(_) if is_deep(entry) => Err(ToolFault::Deep),
                Some(label) => label.map_err(ToolFault::from).and_then(|name| tool(name, entry, &mut offers.remarks)),
            };
            let raw = raw.unwrap_or_default();
            match taken {
                Ok(tool) => offers.tools.push(Offer { raw, tool }),
                Err(why) => offers.remarks.push(Remark { tool: raw, why: format!("{why}; it is not offered") }),
            }
        }
        if more > 0 {
            let why = format!("{more} tools beyond the first {MOST_TOOLS} are not offered");
            offers.remarks.push(Remark { tool: String::new(), why });
        }
        offers
    }

    /// The server's own name for a tool that a model calls.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.tools.iter().find(|offer| offer.tool.name == name).map(|offer| offer.raw.as_str())
    }
}

/// Names in the declaration's filter that match no listed tool.
fn idle(listed: &[Value], filter: &ToolFilter) -> Vec<Remark> {
    let names: Vec<&str> = listed.iter().filter_map(|entry| entry.get("name").and_then(Value::as_str)).collect();
    // An empty list does not show which tools the server has.
    if names.is_empty() {
        return Vec::new();
    }
    let why = |key: &str| format!("`{key}` names it, but the server lists no such tool");
    filter.idle(&names).map(|(key, name)| Remark { tool: name.to_owned(), why: why(key) }).collect()
}

fn tool(name: String, entry: &Value, remarks: &mut Vec<Remark>) -> Result<Tool, ToolFault> {
    let input = schema::read("inputSchema", entry.get("inputSchema"))?;
    if let Some(size) = excess(&input) {
        let tool = entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let why = format!("its inputSchema takes {size} bytes of every question; models see parts of it as open");
        remarks.push(Remark { tool, why });
    }
    Ok(Tool {
        name,
        description: description(entry),
        input,
        output: output(entry, remarks),
        read_only: entry.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true)),
    })
}

/// The size of a schema if it is too large for a model, else `None`.
fn excess(input: &ToolSchema) -> Option<usize> {
    // Small schemas become large only through references.
    let text = Value::Object(input.0.clone()).to_string();
    if text.len() <= SMALL && !text.contains("Ref\"") && !text.contains("$ref") {
        return None;
    }
    schema::lower(input, Api::Object).size
}

fn description(entry: &Value) -> String {
    let texts = [entry.get("description"), entry.get("title"), entry.pointer("/annotations/title")];
    let text = texts.into_iter().flatten().filter_map(Value::as_str).find(|text| !text.is_empty());
    ollm_store::cut(text.unwrap_or_default(), LONGEST_DESCRIPTION).into_owned()
}

/// The output schema. A tool with an invalid output schema is offered without it.
fn output(entry: &Value, remarks: &mut Vec<Remark>) -> Option<ToolSchema> {
    let written = entry.get("outputSchema").filter(|written| !written.is_null())?;
    match schema::read("outputSchema", Some(written)) {
        Ok(schema) => Some(schema),
        Err(why) => {
            let tool = entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            remarks.push(Remark { tool, why: format!("{why}; its results are not checked") });
            None
        }
    }
}
