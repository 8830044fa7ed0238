//! Limits the bytes and the time that all files of projects may cost for one event. After a while, the caller that
//! waits for the answer goes on without it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ollm_protocol::Code;

use crate::file::whole_file;
use crate::problem::{Problem, Severity};

const BYTES: u64 = 1 << 20;
const TIME: Duration = Duration::from_millis(500);
/// The cost of a small file, in bytes.
const SMALLEST: u64 = 1 << 10;
/// The most files that a message names.
const NAMED: usize = 4;

/// The remaining budget for files of projects, and the files that were left out.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: u64,
    /// The deadline; it starts with the first file.
    until: Option<Instant>,
    /// The first files that were left out.
    left_out: Vec<PathBuf>,
    /// The number of files left out.
    count: usize,
}

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget { bytes: BYTES, until: None, left_out: Vec::new(), count: 0 }
    }

    /// Whether no file was left out.
    pub(crate) fn is_complete(&self) -> bool {
        self.count == 0
    }

    /// Takes a file's cost from the budget. If too little is left, the file is left out.
    pub(crate) fn allows(&mut self, file: &Path, size: u64) -> bool {
        let until = *self.until.get_or_insert_with(|| Instant::now() + TIME);
        let left = self.bytes.checked_sub(size.max(SMALLEST)).filter(|_| Instant::now() < until);
        self.bytes = left.unwrap_or(self.bytes);
        if left.is_none() {
            self.count += 1;
            if self.left_out.len() < NAMED {
                self.left_out.push(file.to_owned());
            }
        }
        left.is_some()
    }

    /// The problem about files that were left out, if there are any.
    pub(crate) fn problem(&self) -> Option<Problem> {
        let (first, others) = self.left_out.split_first()?;
        let others: Vec<String> = others.iter().map(|file| file.display().to_string()).collect();
        let more = match (self.count - 1).checked_sub(others.len()) {
            Some(0) | None if others.is_empty() => String::new(),
            Some(0) | None => format!(", nor is {}", others.join(", ")),
            Some(more) => format!(", nor is {} and at least {more} more", others.join(", ")),
        };
        let message = format!(
            "what the project brings holds more than {} KiB, or takes longer than {} ms to read, which is too much at every \
             event; it is not loaded{more}",
            BYTES >> 10,
            TIME.as_millis()
        );
        let help = Some("make the files smaller and fewer, or move hooks that you need to ~/.ollm/hooks".to_owned());
        Some(Problem { help, ..whole_file(Code::TooMuch, Severity::Error, first, message) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_told_in_one_line() {
        let mut budget = Budget::new();
        assert!(budget.allows(Path::new("a"), BYTES - SMALLEST) && budget.allows(Path::new("b"), 1));
        assert!(budget.problem().is_none());
        assert!(!budget.allows(Path::new("c"), 1));
        assert!(budget.problem().unwrap().message.ends_with("it is not loaded"));
        for file in ["d", "e", "f", "g", "h"] {
            assert!(!budget.allows(Path::new(file), 1));
        }
        let problem = budget.problem().unwrap();
        assert_eq!(problem.file, Path::new("c"));
        assert!(
            problem.message.ends_with("it is not loaded, nor is d, e, f and at least 2 more"),
            "{}",
            problem.message
        );
    }
}
