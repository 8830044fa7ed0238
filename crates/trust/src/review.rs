//! What a person sees before they approve something: all that the approval is bound to, as data and as one screen.
//!
//! Files are taken from the copy that will run, never from the disk: what is seen is what is approved.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use ollm_store::{Digest, Hasher, read_bounded};

use crate::approvable::Row;

mod difference;

pub(crate) use difference::difference;
pub use difference::{changed_lines, files_in};

/// No one reads more than this; what is beyond it is named, and a yes does not count for it.
pub(crate) const LONGEST_SHOWN: usize = 1 << 20;
/// What stands for a file that is only named.
const UNSHOWN: &str = "(it is no text, or there is too much of it: it cannot be shown here)";

/// Everything to look at before an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Review {
    /// What it is, in a few words.
    pub title: String,
    /// Its declaration, line by line.
    pub rows: Vec<Row>,
    /// What changed in its files since it was last approved, as lines with `+` and `-`.
    pub changes: Option<String>,
    /// Its files.
    pub files: Vec<ReviewFile>,
    /// Copies of the files that would be approved as well and cannot be shown: they are no text, or too long. A yes to what is
    /// shown is none to them.
    pub unshown: Vec<PathBuf>,
    /// What may run without being part of what is approved.
    pub uncovered: Vec<String>,
    /// What the approval is bound to.
    pub digest: Digest,
}

/// The whole screen, as plain text.
impl Display for Review {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.rows {
            to.write_str(&review_row(name, value))?;
        }
        for uncovered in &self.uncovered {
            to.write_str(&review_row("uncovered", uncovered))?;
        }
        to.write_str(&review_row("digest", &self.digest.to_string()))?;
        if let Some(changes) = &self.changes {
            write!(to, "\n--- changed since it was approved\n{changes}---\n")?;
        }
        for file in &self.files {
            let text = file.text.as_deref().unwrap_or(UNSHOWN);
            write!(to, "\n--- {}\n{text}\n---\n", file.path.display())?;
        }
        Ok(())
    }
}

/// One row of a screen: its name, and its value beside that on every line.
pub fn review_row(name: &str, value: &str) -> String {
    format!("{name:<11} {}\n", value.replace('\n', "\n            "))
}

/// A file that is part of what is approved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReviewFile {
    /// Where it came from; of a whole folder, its place in that.
    pub path: PathBuf,
    /// What it holds, where that can be shown.
    pub text: Option<String>,
}

impl ReviewFile {
    /// A file, with what its copy holds as far as there is room on the screen.
    pub(crate) fn of(path: &Path, copy: &Path, room: &mut usize) -> ReviewFile {
        let text = match Content::of(copy) {
            Content::Text(text) => shown_in(room, text),
            Content::Unshown(_) => None,
        };
        ReviewFile { path: path.to_owned(), text }
    }
}

/// A text, where there is room for it on the screen.
fn shown_in(room: &mut usize, text: String) -> Option<String> {
    *room = room.checked_sub(text.len())?;
    Some(text)
}

/// What a file holds.
#[derive(PartialEq)]
enum Content {
    Text(String),
    /// No text, or too much of it; two of them are told apart by their digests.
    Unshown(Option<Digest>),
}

impl Content {
    /// What a file holds; of a link, where it leads.
    fn of(path: &Path) -> Content {
        if let Ok(target) = path.read_link() {
            return Content::Text(format!("→ {}", target.display()));
        }
        let bytes = read_bounded(path, LONGEST_SHOWN as u64).ok().flatten();
        match bytes.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|text| !text.contains('\0')) {
            Some(text) => Content::Text(text),
            None => Content::Unshown(Hasher::new().file("file", path, u64::MAX).ok().map(Hasher::finish)),
        }
    }
}
