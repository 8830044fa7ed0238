//! The built-in guards of ollm: two looks at a tool call before it happens.
//!
//! [`destructive`] refuses shell commands that destroy a system, a home or the project. [`tampering`] refuses writes
//! to the files that decide which guards run. Both read shell text as a shell would, command by command, so that
//! `echo 'rm -rf /'` is data and `true && \rm -rf ~` is not. What cannot be known beforehand is left to a person.
//!
//! Values come in: nothing is read from the environment. Links are followed in the file system; nothing is ever written
//! or run. Which argument is shell
//! text and which names a file is what the tool declares in the table of [`ollm_protocol::tool`].

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod call;
mod destructive;
mod field;
mod path;
mod program;
mod tampering;
mod text;
mod walk;
mod writes;

pub use destructive::destructive;
pub use tampering::{From, PROTECTED, Row, Shelter, tampering};
