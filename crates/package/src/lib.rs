//! Packages of extensions, and the index that lists them. An archive is checked as a whole before anything is written.
//!
//! A leaf crate: it uses no socket, no process and no home. Bytes come in, a [`Package`] goes out, and only
//! [`Package::write_to`] touches the disk.
//!
//! - [`read_archive`], [`pack`]: read `.tar.gz` and `.zip` into a package, and write a package as `.tar.gz`.
//! - [`Collector`]: the rules for every entry from any source: an archive, a folder, a repository.
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
