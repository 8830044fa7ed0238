//! The review that a person sees before an approval: everything that the approval is bound to, as data and as one
//! screen.
//!
//! The files come from the copy that will run, never from their original place. So the person sees what is approved.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use ollm_store::{Digest, Hasher, read_bounded};

use crate::approvable::Row;

mod difference;

pub(crate) use difference::difference;
pub use difference::{changed_lines, files_in};

/// The most bytes that a review shows. Files beyond that are only named, and the approval does not cover them.
pub(crate) const LONGEST_SHOWN: usize = 1 << 20;
/// The text for a file that is only named.
const UNSHOWN: &str = "(it is no text, or there is too much of it: it cannot be shown here)";

/// Everything that a person checks before an approval.
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
    /// Copies of files that the approval would include but the screen cannot show: binary or too long. Approving the
    /// screen does not approve them.
    pub unshown: Vec<PathBuf>,
    /// Code that may run without being part of what is approved.
    pub uncovered: Vec<String>,
    /// The digest that the approval is bound to.
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

/// One row of a screen: the name, and beside it every line of the value.
pub fn review_row(name: &str, value: &str) -> String {
    format!("{name:<11} {}\n", value.replace('\n', "\n            "))
}

/// A file that is part of what is approved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReviewFile {
    /// The original path; for a whole folder, the place in it.
    pub path: PathBuf,
    /// The content, if it can be shown.
    pub text: Option<String>,
}

impl ReviewFile {
    /// A file with the content of its copy, if the screen has room for it.
    pub(crate) fn of(path: &Path, copy: &Path, room: &mut usize) -> ReviewFile {
        let text = match Content::of(copy) {
            Content::Text(text) => shown_in(room, text),
            Content::Unshown(_) => None,
        };
        ReviewFile { path: path.to_owned(), text }
    }
}

/// The text, if the screen has room for it.
fn shown_in(room: &mut usize, text: String) -> Option<String> {
    *room = room.checked_sub(text.len())?;
    Some(text)
}

/// The content of a file.
#[derive(PartialEq)]
enum Content {
    Text(String),
    /// A binary or too long content. The digest distinguishes two of them.
    Unshown(Option<Digest>),
}

impl Content {
    /// The content of a file; for a link, its target.
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
