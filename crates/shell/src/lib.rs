//! Reads shell text: words, quoting, commands.
//!
//! One reader serves all callers that must know what a text means to a shell. [`parse`] returns the tree of a script;
//! the guards search it for commands that would run. [`template`] finds where values may stand in a script without ever
//! becoming part of it. [`commands`] lists every command as plain words, [`split`] splits a plain line, and
//! [`shell_word`] quotes one word for people. [`Shebang`] is the first line of a script, and [`program_variable`] knows
//! the variables that decide what programs run.
//!
//! The grammar is bash's, read strictly. Nesting and look-ahead are bounded, so no text exhausts stack or time. This
//! crate expands nothing and runs nothing.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod commands;
mod line;
mod quote;
mod read;
mod shebang;
mod shells;
pub mod template;

mod tree;
mod variables;
pub mod wrapper;

pub use commands::commands;
pub use line::{LineError, split, split_loosely};
pub use quote::{shell_word, single_quoted};
pub use read::{DEEPEST, ParseError, parse, replaceable};
pub use shebang::Shebang;
pub use shells::{OTHER_SHELLS, POSIX_SHELLS, is_posix_shell, is_shell, program_stem};
pub use tree::{Assign, Body, Command, Elements, List, ListOperator, Piece, Redirect, Step, Word, bare};
pub use variables::{PROGRAM_VARIABLES, ProgramVariable, VariableHolds, program_variable};
