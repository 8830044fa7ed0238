//! Calls a tool of an MCP server through a port. The embedding program has the servers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ollm_protocol::End;
use ollm_protocol::hook::action::McpSpec;
use serde_json::{Map, Value};

use super::{ActionContext, PreparedAction, RemoteTask, Task, TaskReply, limits};
use crate::template::{Template, TemplateWarning};

/// The variable with the event as the hook's dialect writes it, which a program would read from standard input.
const STDIN: &str = "stdin";

/// Calls tools of MCP servers.
pub trait ToolCaller: fmt::Debug + Send + Sync {
    /// Calls a tool and returns the text of its result, or the failure. It should return within the given time, because
    /// the caller waits no longer.
    fn call(&self, call: &ToolCall) -> Result<String, ToolFailure>;

    /// The last output of a server, for a caller whose deadline passed; empty if there is none.
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
    /// The tool's name on the server.
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
    /// The output of the failed tool. A refusal in it counts, as in the output of a program that fails.
    pub said: String,
}

impl From<String> for ToolFailure {
    fn from(why: String) -> ToolFailure {
        ToolFailure { why, said: String::new() }
    }
}

/// A call with its caller.
#[derive(Debug)]
struct Call {
    what: ToolCall,
    caller: Arc<dyn ToolCaller>,
    cap: usize,
}

/// Reports the state of a call.
pub(crate) struct CallTracker {
    caller: Arc<dyn ToolCaller>,
    server: String,
}

impl CallTracker {
    /// Describes a call that the engine has stopped waiting for.
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

    fn witness(&self) -> Option<CallTracker> {
        Some(CallTracker { caller: Arc::clone(&self.caller), server: self.what.server.clone() })
    }

    fn hand_over(&self) -> Result<Value, String> {
        Err("an async mcp hook needs a process that lives on; remove `async`".to_owned())
    }
}

pub(super) fn prepare(call: &McpSpec, context: &ActionContext<'_>) -> PreparedAction {
    let McpSpec { server, tool, mut args } = call.clone();
    let Some(caller) = context.tools else {
        let why = format!("no MCP servers are connected here, so `{tool}` of `{server}` cannot be called");
        return PreparedAction::Impossible(why);
    };
    let (mut warnings, mut scope) = (Vec::new(), context.scope());
    let event = serde_json::from_slice::<Value>(&super::written(context.hook(), context.event));
    if let (Some(scope), Ok(event)) = (scope.as_object_mut(), event) {
        scope.insert(STDIN.to_owned(), event);
    }
    args.values_mut().for_each(|value| fill(value, &scope, &mut warnings));
    let limits = limits(context.hook());
    let what = ToolCall { server, tool, args, timeout: limits.timeout };
    let call = Call { what, caller: Arc::clone(caller), cap: limits.output };
    PreparedAction::Task(Task::Remote(Box::new(call)), warnings)
}

/// Fills in each text of a value separately, so that a value from an event never becomes another argument.
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
