//! What a person sees before they approve something: all that the approval is bound to, as data and as one screen.
//!
//! Files are taken from the copy that will run, never from the disk: what is seen is what is approved.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use ollm_store::{Digest, FileError, read_bounded};

use crate::approvable::Row;

mod difference;

pub use difference::{changed_lines, difference, files_in};

/// Larger files are only named.
const LARGEST_SHOWN: u64 = 256 << 10;

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
    /// Files that are approved along with these and not shown, and the folder to read them in.
    pub unseen: Option<(usize, PathBuf)>,
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
            write!(to, "\n--- {}\n{}\n---\n", file.path.display(), file.text)?;
        }
        match &self.unseen {
            None => Ok(()),
            Some((1, folder)) => {
                let folder = folder.display();
                writeln!(to, "\n1 more file is approved with these and not shown here; read it in {folder}")
            }
            Some((more, folder)) => {
                let folder = folder.display();
                writeln!(to, "\n{more} more files are approved with these and not shown here; read them in {folder}")
            }
        }
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
    /// What it holds, or in brackets why that is not shown.
    pub text: String,
}

impl ReviewFile {
    /// A file, with what its copy holds.
    pub fn of(path: &Path, copy: &Path) -> ReviewFile {
        let text = match read_bounded(copy, LARGEST_SHOWN) {
            Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            Ok(None) => "(it does not exist)".to_owned(),
            Err(FileError::TooLarge { size, .. }) => {
                format!("(its {size} bytes are too long to show here; read it before you approve it)")
            }
            Err(error) => format!("({error})"),
        };
        ReviewFile { path: path.to_owned(), text }
    }
}
