//! The built-in guards of ollm: two looks at a tool call before it happens.
//!
//! [`destructive`] refuses shell commands that destroy a system, a home or the project. [`tampering`] refuses writes
//! to the files that decide which guards run. Both read shell text as a shell would, command by command, so that
//! `echo 'rm -rf /'` is data and `true && \rm -rf ~` is not.
//!
//! # How a guard decides
//!
//! From knowledge, not from its absence. Four steps lead from text to a verdict:
//!
//! 1. `field`: what words become. A variable has every value that the script assigns to it; one value that is not a
//!    literal makes it unknown. A variable that nothing sets is the user's own, or empty: both are looked at.
//! 2. `walk`: what runs. Known wrappers (`sudo`, `xargs`, `bash -c`, `find -exec`) are taken apart exactly. For any other
//!    program one rule holds: **what it is given may run**, as a command line in one argument or as its last words, unless
//!    `program` knows that it only prints, compares, searches or stores its arguments. What options and variables hold
//!    counts as given, and so do the strings in code that has a call which runs or removes something. What is found by
//!    this rule is left to a person. So is what is not known: a computed program, a text from elsewhere.
//! 3. `writes`: which files a program changes. **A program of which nothing is known may change every file that its
//!    arguments name.** `program` knows which ones only read.
//! 4. `destructive` and `tampering`: what that is worth. What is precious is a list of folders; what is protected is the
//!    table [`PROTECTED`].
//!
//! So a new wrapper needs no row. A new program that prints or searches needs one in `program`, or it asks too often.
//! No list of patterns of bad commands exists, and none should.
//!
//! Work is counted: the words that are looked at and the text that is read within the text are bounded by its length,
//! so that time grows with it. Past that bound a person looks. The same words behind several wrappers are looked at once,
//! and so are plain paths in a folder. `examples/cost.rs` measures commands of every shape. What is protected is only written out for a path that is
//! near some of it (`tampering/roots.rs`).
//!
//! Values come in: nothing is read from the environment. Links are followed in the file system; nothing is ever written
//! or run. Which argument is shell text and which names a file is what the tool declares in the table of
//! [`ollm_protocol::tool`].

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod call;
mod destructive;
mod field;
mod filter;
mod guards;
mod loose;
mod names;
mod path;
mod program;
mod tampering;
mod text;
mod walk;
mod writes;

pub use destructive::destructive;
pub use guards::Guards;
pub use tampering::{From, Lock, PROTECTED, Protected, ProtectedPlaces, Row, moved, tampering};
pub use writes::harmful_git_settings;
