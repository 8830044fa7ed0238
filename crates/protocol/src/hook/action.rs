//! The actions of hooks. Each action has one descriptor in a file of its own: its keys as rows, its checks, its
//! approved parts, its texts for people, its needs and how it runs. All other code asks the descriptor and does not
//! distinguish actions: the reader, JSON Schema, reference, definition, trust, permissions and engine.
//!
//! Like its hook, an action has two stages: the declared [`ActionSpec`], and the checked [`Action`]. An [`Action`] is
//! one of the few things that an engine can do, as data. Several declared actions may result in the same kind of
//! [`Action`].
//!
//! A new action needs a file beside these and a line in the table below.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::key::HookKey;
use super::{Endpoint, Header, Hook, HookError, HookSpec, Rules};
use crate::event::EventKind;
use crate::verdict::Verdict;

/// Sets a field of the action that has it.
macro_rules! field {
    ($action:ident.$field:ident) => {
        |spec, value| {
            if let $crate::ActionSpec::$action(action) = &mut spec.action {
                action.$field = value;
            }
        }
    };
}

/// Binds approvals to a field of the action that has it.
macro_rules! part {
    ($action:ident.$field:ident) => {
        $crate::hook::key::ApprovedPart::Part(|hook| match &hook.spec.action {
            $crate::ActionSpec::$action(action) => serde_json::json!(action.$field),
            _ => serde_json::Value::Null,
        })
    };
}

mod ask_agent;
mod builtin;
pub(super) mod command;
mod http;
mod mcp;
mod run_command;
mod shell;

pub use ask_agent::AskAgentSpec;
pub use builtin::Builtin;
pub use command::{CommandSpec, holds_shell_characters};
pub use http::HttpSpec;
pub use mcp::McpSpec;
pub use run_command::RunCommandSpec;
pub use shell::ShellSpec;

/// A type of action, without the values of a particular one.
#[derive(Clone, Copy, Debug)]
pub struct ActionType {
    /// Its `type` in a file; the snake_case spelling is also read.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// Its keys. In the approved definition, the first has the name of the type.
    pub keys: &'static [HookKey],
    /// An action whose keys are not read yet; `None` if files cannot declare the type.
    pub blank: Option<fn() -> ActionSpec>,
}

impl ActionType {
    /// The types that files can declare.
    pub fn of_files() -> impl Iterator<Item = &'static ActionType> {
        ACTION_TYPES.iter().copied().filter(|kind| kind.blank.is_some())
    }
}

/// What a declared action needs for its work; trust and permissions depend on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Needs<'a> {
    /// Nothing outside of our process.
    Nothing,
    /// This program with these arguments, without a shell.
    Program { program: &'a str, args: &'a [String] },
    /// The shell, for this line.
    Shell(&'a str),
    /// A server at this address.
    Address(&'a str),
    /// A tool of an MCP server.
    Tool { server: &'a str, tool: &'a str },
}

impl Needs<'_> {
    /// Whether it needs a program of its own.
    pub fn is_program(self) -> bool {
        matches!(self, Needs::Program { .. } | Needs::Shell(_))
    }
}

/// The text of an action for people before they approve it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionText<'a> {
    /// The words of a command line; they are quoted as for a shell.
    Words(Vec<&'a str>),
    /// A text to show unchanged.
    Text(String),
}

/// The description of a declared action.
pub trait ActionDescriptor {
    /// Its type.
    fn kind(&self) -> &'static ActionType;

    /// Checks the action, applies values from the hook's place, and returns what the engine does.
    fn check(&self, hook: &HookSpec, events: &[EventKind], rules: &Rules) -> Result<Action, HookError>;

    /// What it needs.
    fn needs(&self) -> Needs<'_>;

    /// The words that distinguish it from other actions. The ids of unnamed hooks depend on them.
    fn words(&self) -> Vec<&str>;

    /// A name for a hook without one.
    fn title(&self) -> String;

    /// The command or target, for other programs.
    fn summary(&self) -> String;

    /// The text for people before they approve it.
    fn shown(&self) -> ActionText<'_>;

    /// The file whose content decides what it does, if it is declared.
    fn script(&self) -> Option<&PathBuf> {
        None
    }

    /// The headers it sends with the event: names and values, some of them secret.
    fn headers(&self) -> &[(String, String)] {
        &[]
    }

    /// Whether another action does the same although it is not equal: `same_program` knows which programs are the same.
    fn is_twin(&self, _other: &ActionSpec, _same_program: &dyn Fn(&str, &str) -> bool) -> bool {
        false
    }
}

/// What a valid hook does: one of the few things that an engine can do. Texts may have templates.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Start this program, without a shell.
    Program(Program),
    /// Run this line of shell.
    Shell(String),
    /// Give this verdict.
    Verdict(Box<Verdict>),
    /// Post the event to this address.
    Post(HttpTarget),
    /// Call this tool of an MCP server.
    Tool(McpSpec),
    /// Call this closure of the embedding program.
    Builtin(Builtin),
}

/// A program that may be started.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The program: absolute, or to be found on the search path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The file whose content decides what it does, if there is one.
    pub script: Option<PathBuf>,
    /// The part of its output that is the answer.
    pub answer: ProgramAnswer,
}

/// Which part of a program's output is its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramAnswer {
    /// Its output and exit, in the hook's dialect.
    Dialect,
    /// Only its exit status.
    Status,
}

/// An address that an event may be posted to.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpTarget {
    /// The address.
    pub endpoint: Endpoint,
    /// Headers in addition to our own.
    pub headers: Vec<Header>,
}

/// Declares all actions, one per line.
macro_rules! actions {
    ($($(#[$about:meta])* $name:ident($declared:ty),)+) => {
        /// What a hook does, as declared.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum ActionSpec {
            $($(#[$about])* $name($declared),)+
        }

        /// Every type of action.
        pub const ACTION_TYPES: &[&ActionType] = &[$(<$declared>::TYPE,)+];

        impl ActionSpec {
            /// Its description.
            pub fn descriptor(&self) -> &dyn ActionDescriptor {
                match self {
                    $(ActionSpec::$name(action) => action,)+
                }
            }
        }
    };
}

actions! {
    /// Starts a program, without a shell.
    Command(CommandSpec),
    /// Runs a line of shell.
    Shell(ShellSpec),
    /// Gives the agent a prompt.
    AskAgent(AskAgentSpec),
    /// Runs a program whose answer is its exit status.
    RunCommand(RunCommandSpec),
    /// Posts the event to an address.
    Http(HttpSpec),
    /// Calls a tool of an MCP server.
    Mcp(McpSpec),
    /// Calls a closure of the embedding program.
    Builtin(Builtin),
}

impl ActionSpec {
    /// Its type.
    pub fn kind(&self) -> &'static ActionType {
        self.descriptor().kind()
    }

    /// What it needs.
    pub fn needs(&self) -> Needs<'_> {
        self.descriptor().needs()
    }

    /// Whether two actions do the same, even if one names the program and the other gives its path.
    pub fn is_same(&self, other: &ActionSpec, same_program: &dyn Fn(&str, &str) -> bool) -> bool {
        self == other || self.descriptor().is_twin(other, same_program)
    }
}

impl Action {
    /// The file whose content decides what it does, if there is one.
    pub fn script(&self) -> Option<&PathBuf> {
        match self {
            Action::Program(program) => program.script.as_ref(),
            _ => None,
        }
    }
}

/// The approved part of a hook's action.
pub(super) fn definition(hook: &Hook) -> Value {
    let kind = hook.spec.action.kind();
    let part = |(index, key): (usize, &HookKey)| {
        let name = if index == 0 { kind.name } else { key.name };
        Some((name.to_owned(), key.part(hook)?))
    };
    match kind.keys {
        [] => kind.name.into(),
        keys => Value::Object(keys.iter().enumerate().filter_map(part).collect::<Map<_, _>>()),
    }
}

/// The beginning of a text, on one line.
fn short(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = words.chars().take(40).collect();
    if short.len() < words.len() { format!("{short}…") } else { short }
}
