//! The patterns of `matches`, compiled once and only when they are used.

use std::sync::OnceLock;

use regex_lite::{Regex, RegexBuilder};

use crate::error::{Fault, quoted};
use crate::fuel::Fuel;

/// Longer patterns are refused.
const LONGEST: usize = 1000;

/// Size limits for a compiled pattern. The smallest limit that suffices determines the cost per byte of text.
const SIZES: [usize; 6] = [1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15];

/// The product of pattern size and text bytes that one step pays for. A hostile pattern is about thirty times slower
/// than a usual one of its size, so this limit keeps an evaluation from taking seconds.
const WORK: usize = 1 << 15;

/// The steps for each use of a pattern that is not a literal.
const COMPILING: usize = 200;

/// A pattern written in the condition.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// The offset of `matches`.
    pub(crate) at: usize,
    text: String,
    compiled: OnceLock<Result<Compiled, String>>,
}

#[derive(Debug)]
struct Compiled {
    regex: Regex,
    size: usize,
}

impl Pattern {
    pub(crate) fn new(at: usize, text: String) -> Pattern {
        Pattern { at, text, compiled: OnceLock::new() }
    }

    /// Compiles the pattern, to check it.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.compiled().map(|_| ())
    }

    /// Whether the pattern matches a text.
    pub(crate) fn matches(&self, text: &str, fuel: &mut Fuel) -> Result<bool, Fault> {
        self.compiled()?.matches(text, fuel)
    }

    fn compiled(&self) -> Result<&Compiled, Fault> {
        let compiled = self.compiled.get_or_init(|| compile(&self.text)).as_ref();
        compiled.map_err(|reason| Fault::Pattern {
            pattern: format!("the pattern {}", quoted(&self.text)),
            reason: reason.clone(),
        })
    }
}

impl Compiled {
    fn matches(&self, text: &str, fuel: &mut Fuel) -> Result<bool, Fault> {
        fuel.take((text.len() + 1).saturating_mul(self.size) / WORK + 1)?;
        Ok(self.regex.is_match(text))
    }
}

/// Whether a pattern from the event, or one built by the condition, matches a text. Faults do not show it, because it
/// may be a secret and faults are logged.
pub(crate) fn matches(pattern: &str, text: &str, fuel: &mut Fuel) -> Result<bool, Fault> {
    fuel.take(COMPILING)?;
    let compiled = compile(pattern);
    let compiled = compiled.map_err(|reason| Fault::Pattern { pattern: "the pattern".to_owned(), reason })?;
    compiled.matches(text, fuel)
}

fn compile(pattern: &str) -> Result<Compiled, String> {
    if pattern.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    let mut failure = String::new();
    for size in SIZES {
        match RegexBuilder::new(pattern).size_limit(size).build() {
            Ok(regex) => return Ok(Compiled { regex, size }),
            Err(error) => failure = error.to_string(),
        }
    }
    Err(failure)
}
