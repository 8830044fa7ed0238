//! `task`: starts a sub-agent with its own conversation. The session runs it.

use ollm_protocol::tool::table::TASK;
use serde_json::{Map, Value};

use super::{Description, args, needs, takes};

/// Its description for the model.
pub(crate) const DESCRIPTION: Description = Description {
    declaration: TASK,
    text: "Have a sub-agent do a piece of work. It knows only your prompt, works with the same files, and answers with a report.",
    args: &[
        needs("prompt", "string", "The work, with everything the sub-agent needs to know"),
        takes("tools", "array", "The only tools it may use; all of yours if left out"),
    ],
};

/// A task for a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) prompt: String,
    /// The only tools it may use.
    pub(crate) tools: Option<Vec<String>>,
}

impl Task {
    /// Reads the model's arguments.
    pub(crate) fn read(given: &Map<String, Value>) -> Result<Task, String> {
        let prompt = args::text(given, "prompt")?.to_owned();
        if prompt.trim().is_empty() {
            return Err("`prompt` is empty".to_owned());
        }
        let tools = match given.get("tools") {
            None | Some(Value::Null) => None,
            Some(Value::Array(names)) => {
                let name = |value: &Value| value.as_str().map(str::to_owned);
                Some(names.iter().map(name).collect::<Option<Vec<_>>>().ok_or("`tools` must be a list of names")?)
            }
            Some(_) => return Err("`tools` must be a list of names".to_owned()),
        };
        Ok(Task { prompt, tools })
    }
}
