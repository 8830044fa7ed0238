//! What a hook does. Each action is one descriptor in a file of its own: its keys as rows, its checks, what an approval is bound
//! to, how people see it and what it needs. Reader, JSON Schema, reference, definition, trust and permissions ask the descriptor;
//! none of them knows one action from another.
//!
//! An action has two stages, like its hook: the declared [`ActionSpec`] and the valid [`Action`]. How a valid one is run is not
//! said here: the engine has a file of the same name for that.
//!
//! A new action is a file beside these, a file beside those of the engine, and a line in the table of each.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::key::HookKey;
use super::{Hook, HookError, HookSpec, Rules};
use crate::event::EventKind;

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
pub use command::{CommandSpec, Program, holds_shell_characters};
pub use http::{HttpSpec, HttpTarget};
pub use mcp::McpSpec;
pub use run_command::{RunCommand, RunCommandSpec};
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

    /// Checks it, and applies what the place of the hook says about it.
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

/// What a valid action says of itself to those who do not run it.
trait ValidAction {
    /// The file whose content decides what happens, where the place of the hook says which that is.
    fn script(&self) -> Option<&PathBuf> {
        None
    }
}

/// One line for each action: the declared type and the valid one.
macro_rules! actions {
    ($($(#[$about:meta])* $name:ident($declared:ty => $valid:ty),)+) => {
        /// What a hook does, as declared.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum ActionSpec {
            $($(#[$about])* $name($declared),)+
        }

        /// What a valid hook does.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Action {
            $($(#[$about])* $name($valid),)+
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

        impl Action {
            fn valid(&self) -> &dyn ValidAction {
                match self {
                    $(Action::$name(action) => action,)+
                }
            }
        }
    };
}

actions! {
    /// Starts a program, without a shell.
    Command(CommandSpec => Program),
    /// Runs a line of shell.
    Shell(ShellSpec => ShellSpec),
    /// Gives the agent a prompt.
    AskAgent(AskAgentSpec => AskAgentSpec),
    /// Runs a program whose answer is its exit status.
    RunCommand(RunCommandSpec => RunCommand),
    /// Posts the event to an address.
    Http(HttpSpec => HttpTarget),
    /// Calls a tool of an MCP server.
    Mcp(McpSpec => McpSpec),
    /// Calls a closure of the embedding program.
    Builtin(Builtin => Builtin),
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
        self.valid().script()
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
