//! The files a file tool is about to write.

use std::path::Path;

use ollm_protocol::{
    Event,
    tool::{CallEffect, Effect, declared},
};

use super::watch::Reach;
use crate::{field::Field, path, writes::patch_files};

/// A file named by a tool call.
pub(crate) struct NamedFile {
    pub(crate) field: Field,
    pub(super) reach: Reach,
}

/// The files that an undeclared tool names: it may do more than read them.
pub(super) fn named(event: &Event, effects: &[CallEffect<'_>], home: Option<&Path>) -> Vec<Field> {
    let undeclared = event.text("tool_name").is_none_or(|name| declared(name).is_none());
    let read = effects.iter().filter(|found| undeclared && found.effect == Effect::ReadsPath);
    read.filter_map(CallEffect::text).map(|file| Field::literal(path::spelled(file, home))).collect()
}

/// The files this call may write.
pub(crate) fn written(effects: &[CallEffect<'_>], home: Option<&Path>) -> Vec<NamedFile> {
    let written = |found: &CallEffect<'_>| {
        let text = found.text().unwrap_or_default();
        let (files, reach) = match found.effect {
            Effect::WritesPath => (vec![text.to_owned()], Reach::File),
            Effect::RemovesPath => (vec![text.to_owned()], Reach::Tree),
            Effect::AppliesPatch => (patch_files(text), Reach::File),
            _ => (Vec::new(), Reach::File),
        };
        files.into_iter().map(move |file| NamedFile { field: Field::literal(path::spelled(&file, home)), reach })
    };
    effects.iter().flat_map(written).collect()
}
