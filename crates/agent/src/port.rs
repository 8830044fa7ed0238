//! The ports of the host: hooks, a person, a display, more tools, a clock. The embedding program implements them.

use std::fmt::Debug;
use std::path::Path;
use std::time::SystemTime;

use ollm_process::{Children, Job, Outcome};
use ollm_protocol::{Event, EventKind, FileChange, Flow, Tool, ToolResult};
use serde_json::{Map, Value, json};

use crate::cancel::Cancel;

/// Tells the time.
pub type Clock = fn() -> SystemTime;

/// The port for events. It blocks until all hooks of the event have decided.
pub trait Events: Send {
    /// Passes an event on and returns the decision.
    fn dispatch(&mut self, event: &Event) -> Decision;

    /// How others changed a file that a tool is about to change, if hooks do not know it yet.
    fn changed_before(&mut self, _path: &Path) -> Option<FileChange> {
        None
    }

    /// The failures of background hooks since the last call, each once.
    fn late_failures(&mut self) -> Vec<LateFailure> {
        Vec::new()
    }
}

/// The decision about one event, for the host. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Whether and how the operation continues.
    pub flow: Flow,
    /// Why it does not simply continue.
    pub reason: Option<String>,
    /// The name of the hook that refuses.
    pub refused_by: Option<String>,
    /// Messages for the conversation, in plan order.
    pub system_messages: Vec<String>,
    /// Messages for the person.
    pub messages: Vec<HookNote>,
    /// Context for the model, in plan order.
    pub context: Vec<String>,
    /// The complete arguments, if a hook changed them.
    pub args: Option<Map<String, Value>>,
    /// A result that replaces the tool's.
    pub result: Option<Value>,
    /// The tools that are still offered.
    pub tools: Option<Vec<String>>,
    /// Prompts for the agent.
    pub prompts: Vec<HookNote>,
    /// Data that the hooks passed to each other.
    pub data: Map<String, Value>,
    /// The hooks that failed.
    pub failures: Vec<Failure>,
}

/// A failure of a hook, a server or another program, independent of the operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// What failed and why, for people; names the hook or server and its extension.
    pub message: String,
    /// The last output of the failed program, if it says more than the message.
    pub stack: Option<String>,
}

/// A background hook that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateFailure {
    /// The event for which it ran.
    pub at: EventKind,
    /// Its failure.
    pub failure: Failure,
    /// Whether the process that ran the hook reports the failure to the hooks for errors itself.
    pub is_told: bool,
}

/// A message from a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookNote {
    /// The hook's name.
    pub hook: String,
    /// Its text.
    pub text: String,
}

impl Decision {
    /// A refusal.
    pub fn block(hook: impl Into<String>, reason: impl Into<String>) -> Decision {
        Decision {
            flow: Flow::Block,
            reason: Some(reason.into()),
            refused_by: Some(hook.into()),
            ..Decision::default()
        }
    }

    pub(crate) fn why(&self) -> String {
        self.reason.clone().unwrap_or_else(|| "no reason was given".to_owned())
    }

    pub(crate) fn who(&self) -> &str {
        self.refused_by.as_deref().unwrap_or("a hook")
    }
}

/// More tools than the built-in ones, for example those of MCP servers.
pub trait ToolSource: Send + Sync {
    /// The tools that are available now.
    fn tools(&self) -> Vec<Tool>;

    /// Whether a tool is missing only because its server crashed: a call restarts the server.
    fn recalls(&self, _name: &str) -> bool {
        false
    }

    /// The failures of its servers since the last call, each once.
    fn failures(&self) -> Vec<Failure> {
        Vec::new()
    }

    /// Calls one of its tools, or one that it recalls. A failure is a result. The call should end soon after its token
    /// is set.
    fn call(&self, order: &Order) -> ToolResult;
}

/// A call of a tool of a [`ToolSource`].
pub struct Order {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub args: Map<String, Value>,
    /// Set when the caller no longer waits for the result.
    pub cancel: Cancel,
    /// Receives progress messages of the call.
    pub progress: Box<dyn Fn(&str) + Send>,
}

/// Runs shell commands in a box that protects files. Without one they run like any other program.
pub trait ShellBox: Debug + Send + Sync {
    /// Runs a job to its end, or until `stop` returns true. Returns the outcome, and notes for the model and the
    /// person.
    fn run(&self, children: &Children, job: Job, stop: &dyn Fn() -> bool) -> (Outcome, Vec<String>);
}

/// Asks the person for approval.
pub trait Approve: Send {
    /// Asks, and waits for the answer.
    fn ask(&mut self, request: &Request) -> Consent;
}

/// A question about an operation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// The tool to call, or the event that waits for the answer.
    pub operation: String,
    /// Details, for example the tool's arguments.
    pub details: Map<String, Value>,
    /// The change of a file as a unified diff; `None` if the tool changes no file, or would fail.
    pub diff: Option<String>,
    /// Why the person is asked: the hook's text, if a hook wants it.
    pub reason: Option<String>,
    /// The operations that [`Consent::Always`] would cover, for people; `None` if it would mean no more than yes.
    pub standing: Option<String>,
}

/// A person's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Yes, for this operation.
    Yes,
    /// Yes, until the session ends, for everything that the request's `standing` covers.
    Always,
    /// No.
    No,
    /// There is no person to ask.
    Nobody,
}

/// Stands for a missing person: every question stays unanswered.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyAsked;

impl Approve for NobodyAsked {
    fn ask(&mut self, _: &Request) -> Consent {
        Consent::Nobody
    }
}

/// Shows the person what happens.
pub trait Show: Send {
    /// Shows one piece of news.
    fn show(&mut self, news: &News<'_>);
}

/// Something to show. All text may come from a model or a program: escape it before printing it to a terminal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum News<'a> {
    /// The next part of the model's answer.
    Text(&'a str),
    /// The next part of the model's reasoning, which is not part of its answer.
    Thought(&'a str),
    /// The model has been silent for this long.
    Waiting {
        /// In seconds.
        seconds: u64,
    },
    /// The model has finished an answer.
    Answered {
        /// The whole text.
        content: &'a str,
    },
    /// A tool is about to run.
    Calling {
        /// The call.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// The arguments, after the hooks have changed them.
        args: &'a Map<String, Value>,
    },
    /// Progress of a running tool.
    Progress {
        /// The tool.
        name: &'a str,
        /// Its message.
        text: &'a str,
    },
    /// A call has ended.
    Called {
        /// The call.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// The result that the model reads.
        result: &'a str,
        /// Whether it failed.
        failed: bool,
        /// What changed in a file.
        diff: Option<&'a str>,
    },
    /// A call was not made: it was not approved, or it is impossible.
    Rejected {
        /// The call.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// The arguments; `None` if they cannot be read.
        args: Option<&'a Map<String, Value>>,
        /// The result that the model reads.
        result: &'a str,
    },
    /// A hook refused an event.
    Refused {
        /// The event.
        event: EventKind,
        /// The tool, for a tool call.
        tool: Option<&'a str>,
        /// The arguments for the tool.
        args: Option<&'a Map<String, Value>>,
        /// The hook.
        hook: &'a str,
        /// Its reason.
        reason: &'a str,
    },
    /// A hook's message to the person.
    Note(&'a HookNote),
    /// A message that entered the conversation.
    System(&'a str),
    /// What the host is doing.
    Status(&'a str),
    /// What failed, and what to do.
    Error(&'a str),
}

impl News<'_> {
    /// The news as JSON for programs: an object with its `type`.
    pub fn to_json(&self) -> Value {
        match self {
            News::Text(text) => json!({"type": "text", "text": text}),
            News::Thought(text) => json!({"type": "thought", "text": text}),
            News::Waiting { seconds } => json!({"type": "waiting", "seconds": seconds}),
            News::Answered { content } => json!({"type": "answer", "content": content}),
            News::Calling { id, name, args } => json!({"type": "call", "id": id, "name": name, "args": args}),
            News::Progress { name, text } => json!({"type": "progress", "name": name, "text": text}),
            News::Called { id, name, result, failed, diff } => {
                json!({"type": "result", "id": id, "name": name, "result": result, "failed": failed, "diff": diff})
            }
            News::Rejected { id, name, args, result } => {
                json!({"type": "result", "id": id, "name": name, "result": result, "failed": true, "diff": null, "args": args})
            }
            News::Refused { event, tool, args, hook, reason } => {
                json!({"type": "refused", "event": event.name(), "tool": tool, "args": args, "hook": hook, "reason": reason})
            }
            News::Note(HookNote { hook, text }) => json!({"type": "note", "hook": hook, "text": text}),
            News::System(text) => json!({"type": "system", "text": text}),
            News::Status(text) => json!({"type": "status", "text": text}),
            News::Error(text) => json!({"type": "error", "text": text}),
        }
    }
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentShow;

impl Show for SilentShow {
    fn show(&mut self, _: &News<'_>) {}
}
