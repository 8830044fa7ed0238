//! Reads shell text: words, quoting, commands.
//!
//! One reader serves everyone who must know what a text means to a shell. [`parse`] gives the tree of a script; the
//! guards look through it for what would run. [`template`] finds where values may stand in a script without ever becoming
//! part of it. [`commands`] gives every command as plain words, [`split`] takes a plain line apart, and [`shell_word`] quotes one word for people.
//!
//! The grammar is bash's, read strictly. Nesting and look-ahead are bounded, so no text exhausts stack or time. Nothing
//! is expanded and nothing is run.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod commands;
mod line;
mod quote;
mod read;
pub mod template;

mod tree;

pub use commands::commands;
pub use line::{LineError, split, split_loosely};
pub use quote::{shell_word, single_quoted};
pub use read::{DEEPEST, Unreadable, parse, replaceable};
pub use tree::{Assign, Body, Command, Joint, List, Piece, Redirect, Step, Word, bare};
