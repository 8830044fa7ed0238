//! What a hook does. Each action is one descriptor in a file of its own: its keys as rows, its checks, what an approval is bound
//! to, how people see it, what it needs and how it is run. Reader, JSON Schema, reference, definition, trust, permissions and
//! engine ask the descriptor; none of them knows one action from another.
//!
//! An action has two stages, like its hook: the declared [`ActionSpec`], and the [`Action`] that is made of it when it is found
//! valid. The latter is one of the few things that an engine can do, as data; several actions may end in the same.
//!
//! A new action is a file beside these and a line in the table below.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::key::HookKey;
use super::{Endpoint, Header, Hook, HookError, HookSpec, Rules};
use crate::event::EventKind;
use crate::verdict::Verdict;

/// Puts a value into a field of the action that has it.
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
        $crate::hook::key::Approved::Part(|hook| match &hook.spec.action {
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

/// A type of action: what can be said of it before there is one.
#[derive(Clone, Copy, Debug)]
pub struct ActionType {
    /// Its `type` in a file; its spelling in snake case is read as well.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// Its keys. In what is approved, the first goes by the name of the type.
    pub keys: &'static [HookKey],
    /// One whose keys have yet to be read; nothing for what no file can declare.
    pub blank: Option<fn() -> ActionSpec>,
}

impl ActionType {
    /// The types that a file can declare.
    pub fn of_files() -> impl Iterator<Item = &'static ActionType> {
        ACTION_TYPES.iter().copied().filter(|kind| kind.blank.is_some())
    }
}

/// What a declared action needs to do its work: what trust and permissions are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Needs<'a> {
    /// Nothing outside of us.
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

/// What people see of an action before they approve it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown<'a> {
    /// The words of a command line, to be quoted where a shell would need it.
    Words(Vec<&'a str>),
    /// A text that is shown like this.
    Text(String),
}

/// What a declared action says of itself.
pub trait ActionDescriptor {
    /// Its type.
    fn kind(&self) -> &'static ActionType;

    /// How it is run: checks it, applies what the place of the hook says about it, and says what an engine does.
    fn check(&self, hook: &HookSpec, events: &[EventKind], rules: &Rules) -> Result<Action, HookError>;

    /// What it needs.
    fn needs(&self) -> Needs<'_>;

    /// The words that tell it from others; the ids of hooks without a name rest on them.
    fn words(&self) -> Vec<&str>;

    /// A name for a hook that has none.
    fn title(&self) -> String;

    /// What it runs, as other programs are told.
    fn summary(&self) -> String;

    /// What people see before they approve it.
    fn shown(&self) -> Shown<'_>;

    /// The file whose content decides what happens, if it is declared.
    fn script(&self) -> Option<&PathBuf> {
        None
    }

    /// What it sends along beside the event: names and values, some of them secret.
    fn headers(&self) -> &[(String, String)] {
        &[]
    }

    /// Whether another one does the same although it is not equal, by what is known of programs.
    fn is_twin(&self, _other: &ActionSpec, _same_program: &dyn Fn(&str, &str) -> bool) -> bool {
        false
    }
}

/// What a valid hook does: one of the few things that an engine can do. Texts may hold templates.
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
    /// The file whose content decides what happens, if there is one.
    pub script: Option<PathBuf>,
    /// What of it is the answer.
    pub answer: ProgramAnswer,
}

/// What of a program is its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramAnswer {
    /// What it prints and how it ends, in the words of the hook's dialect.
    Dialect,
    /// How it ends, and nothing else.
    Status,
}

/// An address that an event may be posted to.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpTarget {
    /// The address.
    pub endpoint: Endpoint,
    /// Headers beside our own.
    pub headers: Vec<Header>,
}

/// One line for each action.
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
            /// What it says of itself.
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

    /// Whether two actions do the same, also if one names the program and the other says where it is.
    pub fn is_same(&self, other: &ActionSpec, same_program: &dyn Fn(&str, &str) -> bool) -> bool {
        self == other || self.descriptor().is_twin(other, same_program)
    }
}

impl Action {
    /// The file whose content decides what happens, if there is one.
    pub fn script(&self) -> Option<&PathBuf> {
        match self {
            Action::Program(program) => program.script.as_ref(),
            _ => None,
        }
    }
}

/// What an approval is bound to of the action of a hook.
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
