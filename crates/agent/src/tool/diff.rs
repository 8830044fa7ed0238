//! The change of a file as a diff, for people, hooks and the model.

use similar::TextDiff;

use super::Change;
use ollm_protocol::EventKind;
use std::path::Path;
use std::time::Duration;

/// The longest diff; longer ones are cut.
const LONGEST: usize = 32 << 10;
/// The most time for a comparison: two large files without common lines could take minutes.
const PATIENCE: Duration = Duration::from_millis(500);

/// A unified diff of two texts with file names in Git's form, bounded in time and length. A missing file has no text.
pub fn unified(name: &str, old: Option<&str>, new: Option<&str>) -> String {
    let (before, after) = (old.unwrap_or_default(), new.unwrap_or_default());
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    let (from, to) = (side("a", name, old), side("b", name, new));
    let text = diff.unified_diff().context_radius(3).header(&from, &to).to_string();
    ollm_store::cut(&text, LONGEST).into_owned()
}

/// The name of one side; a name that does not fit on one line is quoted.
fn side(prefix: &str, name: &str, text: Option<&str>) -> String {
    if text.is_none() {
        return "/dev/null".to_owned();
    }
    let path = format!("{prefix}/{name}");
    if !path.contains(|character: char| character.is_control() || matches!(character, '"' | '\\')) {
        return path;
    }
    let quoted = path.chars().map(|character| match character {
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '"' | '\\' => format!("\\{character}"),
        _ if character.is_ascii_control() => format!("\\{:03o}", u32::from(character)),
        _ => character.to_string(),
    });
    format!("\"{}\"", quoted.collect::<String>())
}

/// The change from the old bytes of a file to the new text.
pub(crate) fn change(path: &Path, name: &str, old: Option<&[u8]>, new: &str) -> Change {
    let kind = if old.is_some() { EventKind::FileEdited } else { EventKind::FileCreated };
    let old = old.map(String::from_utf8_lossy);
    Change {
        kind,
        path: path.to_owned(),
        diff: unified(name, old.as_deref(), Some(new)),
        content: Some(new.to_owned()),
        size: new.len(),
    }
}
