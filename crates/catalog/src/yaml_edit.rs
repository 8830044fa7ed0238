//! Writing YAML into a text of somebody else's: values as they are written, where each part of a text stands, and pieces of
//! it replaced so that every other byte stays. Where a piece belongs is for those to say who change configurations and hook
//! files.

mod source;
mod tree;
mod value;

pub(crate) use source::{Source, Span};
pub(crate) use tree::{Kind, Pair, Tree, read};
pub(crate) use value::{block, inline, item, pair, word};
