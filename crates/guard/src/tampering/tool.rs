//! The files a file tool is about to write.

use std::path::Path;

use ollm_protocol::tool::{CallEffect, Effect};

use super::watch::Reach;
use crate::{field::Field, path, writes::patch_files};

/// A file named by a tool call.
pub(crate) struct Written {
    pub(crate) field: Field,
    pub(super) reach: Reach,
}

/// The files this call may write.
pub(crate) fn written(effects: &[CallEffect<'_>], home: Option<&Path>) -> Vec<Written> {
    let written = |found: &CallEffect<'_>| {
        let text = found.text().unwrap_or_default();
        let (files, reach) = match found.effect {
            Effect::WritesPath => (vec![text.to_owned()], Reach::File),
            Effect::RemovesPath => (vec![text.to_owned()], Reach::Tree),
            Effect::AppliesPatch => (patch_files(text), Reach::File),
            _ => (Vec::new(), Reach::File),
        };
        files.into_iter().map(move |file| Written { field: Field::literal(path::spelled(&file, home)), reach })
    };
    effects.iter().flat_map(written).collect()
}
