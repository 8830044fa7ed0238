//! What the host needs of the world: hooks, a person, a display, more tools, a clock. Whoever embeds it plugs them in.

use std::fmt::Debug;
use std::path::Path;
use std::time::SystemTime;

use ollm_process::{Children, Job, Outcome};
use ollm_protocol::{Event, EventKind, FileChange, Flow, Tool, ToolResult};
use serde_json::{Map, Value, json};

use crate::cancel::Cancel;

/// Tells the time.
pub type Clock = fn() -> SystemTime;

/// Where events go. It blocks until everybody concerned has had a say.
pub trait Events: Send {
    /// Passes one event on and brings back what was decided.
    fn dispatch(&mut self, event: &Event) -> Decision;

    /// What others did to a file that a tool is about to change, if hooks have not heard of it.
    fn changed_before(&mut self, _path: &Path) -> Option<FileChange> {
        None
    }

    /// What failed since this was last asked among hooks that nobody waited for, each once.
    fn late_failures(&mut self) -> Vec<LateFailure> {
        Vec::new()
    }
}

/// What came of one event, as far as it concerns the host. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Where the operation goes.
    pub flow: Flow,
    /// Why it does not simply continue.
    pub reason: Option<String>,
    /// The name of the hook that stands in the way.
    pub refused_by: Option<String>,
    /// Messages for the conversation, in plan order.
    pub system_messages: Vec<String>,
    /// Messages for the person.
    pub messages: Vec<HookNote>,
    /// Context for the model, in plan order.
    pub context: Vec<String>,
    /// The complete arguments, when they were changed.
    pub args: Option<Map<String, Value>>,
    /// A result in place of the tool's.
    pub result: Option<Value>,
    /// The tools that stay on offer.
    pub tools: Option<Vec<String>>,
    /// Prompts for the agent.
    pub prompts: Vec<HookNote>,
    /// What the hooks passed on among themselves.
    pub data: Map<String, Value>,
    /// The hooks that failed.
    pub failures: Vec<Failure>,
}

/// A hook, a server or something else that failed by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// What failed and why, for people; it names the hook or server and the extension it belongs to.
    pub message: String,
    /// What the failed program wrote before its end, where that is more than the message says.
    pub stack: Option<String>,
}

/// A hook that nobody waited for, and that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateFailure {
    /// The event at which it ran.
    pub at: EventKind,
    /// Its failure.
    pub failure: Failure,
}

/// Something a hook said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookNote {
    /// The hook's name.
    pub hook: String,
    /// Its words.
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

/// More tools than the built-in ones, for instance those of MCP servers.
pub trait ToolSource: Send + Sync {
    /// The tools there are now.
    fn tools(&self) -> Vec<Tool>;

    /// Whether a tool is missing among them only because whoever does its work ended unasked: a call brings it back.
    fn recalls(&self, _name: &str) -> bool {
        false
    }

    /// What failed among those who do the work since this was last asked, each once.
    fn failures(&self) -> Vec<Failure> {
        Vec::new()
    }

    /// Calls one of them, or one that is recalled. A failure is a result; the call should end soon after its token is set.
    fn call(&self, order: &Order) -> ToolResult;
}

/// A call of a tool of a [`ToolSource`].
pub struct Order {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub args: Map<String, Value>,
    /// Set when nobody waits for the result any more.
    pub cancel: Cancel,
    /// Takes news about how far the call is.
    pub progress: Box<dyn Fn(&str) + Send>,
}

/// Runs shell commands where they cannot change what must not change. Without one they run as any other program.
pub trait ShellBox: Debug + Send + Sync {
    /// Runs a job to its end, or until `stop` says so; with the outcome comes what the model and the person should know.
    fn run(&self, children: &Children, job: Job, stop: &dyn Fn() -> bool) -> (Outcome, Vec<String>);
}

/// Somebody who can be asked whether something may happen.
pub trait Approve: Send {
    /// Asks, and waits for the answer.
    fn ask(&mut self, request: &Request) -> Consent;
}

/// What a person is asked about.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// The tool to be called, or the event that is to go on.
    pub operation: String,
    /// The particulars, for instance the tool's arguments.
    pub details: Map<String, Value>,
    /// What would change in a file, as a unified diff; nothing where the tool changes none, or would fail.
    pub diff: Option<String>,
    /// Why the person is asked: the hook's words, if a hook wants it.
    pub reason: Option<String>,
    /// What [`Consent::Always`] would cover, for people; nothing where it would mean no more than yes.
    pub standing: Option<String>,
}

/// A person's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// This time.
    Yes,
    /// For all that the request's `standing` covers, until the session ends.
    Always,
    /// No.
    No,
    /// There is nobody to ask.
    Nobody,
}

/// Nobody: every question stays unanswered.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyAsked;

impl Approve for NobodyAsked {
    fn ask(&mut self, _: &Request) -> Consent {
        Consent::Nobody
    }
}

/// Where the person sees what happens.
pub trait Show: Send {
    /// Shows one piece of news.
    fn show(&mut self, news: &News<'_>);
}

/// What there is to see. All text may come from a model or a program: escape it before a terminal sees it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum News<'a> {
    /// The next words of the model.
    Text(&'a str),
    /// The next thoughts of the model, which are no part of its answer.
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
        /// What it is given, after the hooks had their say.
        args: &'a Map<String, Value>,
    },
    /// A running tool says how far it is.
    Progress {
        /// The tool.
        name: &'a str,
        /// Its words.
        text: &'a str,
    },
    /// A call is over.
    Called {
        /// The call.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// What the model reads.
        result: &'a str,
        /// Whether it failed.
        failed: bool,
        /// What changed in a file.
        diff: Option<&'a str>,
    },
    /// A hook stood in the way.
    Refused {
        /// Of which event.
        event: EventKind,
        /// The tool, for a tool call.
        tool: Option<&'a str>,
        /// What the tool was to be given.
        args: Option<&'a Map<String, Value>>,
        /// The hook.
        hook: &'a str,
        /// Its reason.
        reason: &'a str,
    },
    /// A hook has something to say to the person.
    Note(&'a HookNote),
    /// A message that entered the conversation.
    System(&'a str),
    /// What the host is doing.
    Status(&'a str),
    /// What went wrong, and the way out.
    Error(&'a str),
}

impl News<'_> {
    /// The same for programs: an object with its `type`.
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

/// Nothing is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unseen;

impl Show for Unseen {
    fn show(&mut self, _: &News<'_>) {}
}
