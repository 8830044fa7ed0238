//! The tools of one server, from the list it sent: each taken or refused on its own, so that one bad tool never takes
//! the others with it.

use ollm_protocol::schema::{self, Api, BadSchema};
use ollm_protocol::{Tool, ToolFilter, ToolSchema};
use serde_json::Value;

use crate::depth_limit::{DEEPEST, is_deep};
use crate::name::{BadName, tool_names};

/// More tools of one server are not offered: no model could choose among them.
const MOST_TOOLS: usize = 10_000;
/// Longer descriptions are cut.
pub(crate) const LONGEST_DESCRIPTION: usize = 16 << 10;

/// Smaller schemas without references are small for a model too.
const SMALL: usize = 16 << 10;

/// A tool of a server, as a model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The server's own name for it.
    pub raw: String,
    /// The tool, under the name the model uses.
    pub tool: Tool,
}

/// A tool that is not offered, or not as the server wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The server's own name for it, as far as it has one.
    pub tool: String,
    /// What is wrong with it.
    pub why: String,
}

/// What a server offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offers {
    /// The tools.
    pub tools: Vec<Offer>,
    /// What was wrong with others.
    pub remarks: Vec<Remark>,
}

#[derive(Debug, thiserror::Error)]
enum Refused {
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
                None => Err(Refused::Shapeless),
                Some(_) if is_deep(entry) => Err(Refused::Deep),
                Some(label) => label.map_err(Refused::from).and_then(|name| tool(name, entry, &mut offers.remarks)),
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

/// What the declaration says about tools that are not in a list.
fn idle(listed: &[Value], filter: &ToolFilter) -> Vec<Remark> {
    let names: Vec<&str> = listed.iter().filter_map(|entry| entry.get("name").and_then(Value::as_str)).collect();
    // A server that lists nothing has not said what it has.
    if names.is_empty() {
        return Vec::new();
    }
    let why = |key: &str| format!("`{key}` names it, but the server lists no such tool");
    filter.idle(&names).map(|(key, name)| Remark { tool: name.to_owned(), why: why(key) }).collect()
}

fn tool(name: String, entry: &Value, remarks: &mut Vec<Remark>) -> Result<Tool, Refused> {
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

/// How large a schema is for a model, if that is too large.
fn excess(input: &ToolSchema) -> Option<usize> {
    // Small ones grow by their references only.
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

/// A tool whose promise about its result makes no sense is still a tool.
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
