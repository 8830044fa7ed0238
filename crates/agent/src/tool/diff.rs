//! What changed in a file, for people, hooks and the model.

use similar::TextDiff;

use super::Change;
use ollm_protocol::EventKind;
use std::path::Path;
use std::time::Duration;

/// Longer differences say no more.
const LONGEST: usize = 32 << 10;
/// Two large files that share nothing could be compared for minutes.
const PATIENCE: Duration = Duration::from_millis(500);

/// A unified diff of two texts, bounded in time and length.
pub fn unified(name: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let (from, to) = (format!("a/{name}"), format!("b/{name}"));
    let text = diff.unified_diff().context_radius(3).header(&from, &to).to_string();
    ollm_store::cut(&text, LONGEST).into_owned()
}

/// What replacing the bytes of a file amounts to.
pub(crate) fn change(path: &Path, name: &str, old: Option<&[u8]>, new: &str) -> Change {
    let kind = if old.is_some() { EventKind::FileEdited } else { EventKind::FileCreated };
    let old = old.map(String::from_utf8_lossy).unwrap_or_default();
    Change {
        kind,
        path: path.to_owned(),
        diff: unified(name, &old, new),
        content: Some(new.to_owned()),
        size: new.len(),
    }
}
