//! The files a file tool is about to write.

use std::path::Path;

use ollm_protocol::tool::{CallEffect, Effect};

use super::watch::Reach;
use crate::{field::Field, writes::patch_files};

/// A file named by a tool call.
pub(super) struct Written {
    pub(super) field: Field,
    pub(super) reach: Reach,
}

/// The files this call may write.
pub(super) fn written(effects: &[CallEffect<'_>], home: Option<&Path>) -> Vec<Written> {
    let written = |found: &CallEffect<'_>| {
        let text = found.text().unwrap_or_default();
        let (files, reach) = match found.effect {
            Effect::WritesPath => (vec![text.to_owned()], Reach::File),
            Effect::RemovesPath => (vec![text.to_owned()], Reach::Tree),
            Effect::AppliesPatch => (patch_files(text), Reach::File),
            _ => (Vec::new(), Reach::File),
        };
        files.into_iter().map(move |file| Written { field: Field::literal(spelled(&file, home)), reach })
    };
    effects.iter().flat_map(written).collect()
}

/// A path as tools spell it: an address, or with the home written out.
fn spelled(file: &str, home: Option<&Path>) -> String {
    let file = file.trim();
    let decoded = file.strip_prefix("file://").map(|rest| decode(rest.strip_prefix("localhost").unwrap_or(rest)));
    let file = decoded.unwrap_or_else(|| file.to_owned());
    let Some(home) = home.and_then(Path::to_str) else { return file };
    for sign in ["~", "$HOME", "${HOME}", "%USERPROFILE%"] {
        if let Some(rest) = file.strip_prefix(sign).filter(|rest| rest.is_empty() || rest.starts_with(['/', '\\'])) {
            return format!("{home}{rest}");
        }
    }
    file
}

/// Text with `%2e` and the like written out.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&next, behind)) = rest.split_first() {
        let code = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.filter(|_| next == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(next));
        rest = behind.get(if code.is_some() { 2 } else { 0 }..).unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
