//! A tool of an MCP server, called through a port: whoever embeds the engine has the servers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ollm_protocol::End;
use ollm_protocol::hook::action::McpSpec;
use serde_json::{Map, Value};

use super::{ActionContext, Prepared, RemoteTask, Task, TaskReply, limits};
use crate::template::{Template, TemplateWarning};

/// Calls tools of MCP servers.
pub trait ToolCaller: fmt::Debug + Send + Sync {
    /// Calls a tool; the text of its result, otherwise what went wrong. It should end within the time it is given;
    /// nobody waits for it longer than that.
    fn call(&self, call: &ToolCall) -> Result<String, ToolFailure>;

    /// What a server said last, for whoever waited for it in vain; nothing if it said nothing.
    fn last_words(&self, _server: &str) -> String {
        String::new()
    }
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The server.
    pub server: String,
    /// The tool, by the server's own name for it.
    pub tool: String,
    /// Its arguments.
    pub args: Map<String, Value>,
    /// How long it may take.
    pub timeout: Duration,
}

/// Why a call of a tool failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFailure {
    /// What went wrong.
    pub why: String,
    /// What the tool said all the same: a refusal in that counts, as in the output of a program that fails.
    pub said: String,
}

impl From<String> for ToolFailure {
    fn from(why: String) -> ToolFailure {
        ToolFailure { why, said: String::new() }
    }
}

/// A call, and who makes it.
#[derive(Debug)]
struct Call {
    what: ToolCall,
    caller: Arc<dyn ToolCaller>,
    cap: usize,
}

/// Who knows what became of a call.
pub(crate) struct Witness {
    caller: Arc<dyn ToolCaller>,
    server: String,
}

impl Witness {
    /// What there is to say about a call that nobody waits for any more.
    pub(crate) fn testify(&self) -> String {
        let (server, said) = (&self.server, self.caller.last_words(&self.server));
        if said.is_empty() {
            return format!("server `{server}` said nothing");
        }
        format!("server `{server}`, its last words:\n{said}")
    }
}

impl RemoteTask for Call {
    fn run(self: Box<Self>) -> TaskReply {
        match self.caller.call(&self.what) {
            Ok(text) if text.len() > self.cap => TaskReply::Something(Vec::new(), End::Overflowed(self.cap)),
            Ok(text) => TaskReply::Something(text.into_bytes(), End::Exited(0)),
            Err(ToolFailure { why, said }) if said.len() > self.cap => TaskReply::failed(why),
            Err(ToolFailure { why, said }) => TaskReply::Failure(why, said.into_bytes()),
        }
    }

    fn timeout(&self) -> Duration {
        self.what.timeout
    }

    fn witness(&self) -> Option<Witness> {
        Some(Witness { caller: Arc::clone(&self.caller), server: self.what.server.clone() })
    }

    fn hand_over(&self) -> Result<Value, String> {
        Err("an async mcp hook needs a process that lives on; remove `async`".to_owned())
    }
}

pub(super) fn prepare(call: &McpSpec, context: &ActionContext<'_>) -> Prepared {
    let McpSpec { server, tool, mut args } = call.clone();
    let Some(caller) = context.tools else {
        let why = format!("no MCP servers are connected here, so `{tool}` of `{server}` cannot be called");
        return Prepared::Impossible(why);
    };
    let (mut warnings, scope) = (Vec::new(), context.scope());
    args.values_mut().for_each(|value| fill(value, &scope, &mut warnings));
    let limits = limits(context.hook());
    let what = ToolCall { server, tool, args, timeout: limits.timeout };
    let call = Call { what, caller: Arc::clone(caller), cap: limits.output };
    Prepared::Task(Task::Remote(Box::new(call)), warnings)
}

/// Fills in the texts of a value, each on its own: what an event holds never becomes another argument.
fn fill(value: &mut Value, scope: &Value, warnings: &mut Vec<TemplateWarning>) {
    match value {
        Value::String(text) => {
            let rendered = Template::parse(text).render(scope);
            *text = rendered.text;
            warnings.extend(rendered.warnings);
        }
        Value::Array(list) => list.iter_mut().for_each(|value| fill(value, scope, warnings)),
        Value::Object(map) => map.values_mut().for_each(|value| fill(value, scope, warnings)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
