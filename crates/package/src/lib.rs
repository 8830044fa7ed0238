//! Packages of extensions: archives that are checked as a whole before anything is written, and the index that lists them.
//!
//! A leaf: no socket, no process, no home. Bytes come in, a [`Package`] goes out, and only [`Package::write_to`] touches the
//! disk.
//!
//! - [`read_archive`], [`pack`]: `.tar.gz` and `.zip` into a package, a package into `.tar.gz`.
//! - [`Collector`]: the rules that every entry has to keep, whatever it comes from: an archive, a folder, a repository.
//! - [`Index`], [`IndexEntry`], [`rank`]: the list of packages on a server, and the search in it.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod archive;
mod collect;
mod index;
mod name;
mod package;

pub use archive::{ArchiveError, pack, read_archive};
pub use collect::{Collector, LinkBase, Refusal};
pub use index::{Index, IndexEntry, IndexError, rank};
pub use package::{Bounds, Package, PackedFile};
