//! The patterns of `matches`, compiled once and only when they are asked.

use std::sync::OnceLock;

use regex_lite::{Regex, RegexBuilder};

use crate::error::{Fault, quoted};
use crate::fuel::Fuel;

/// Longer patterns are refused.
const LONGEST: usize = 1000;

/// How large a compiled pattern may be. The smallest of these that suffices says how costly each byte of text is.
const SIZES: [usize; 6] = [1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15];

/// Size of pattern times bytes of text that one step pays for. A hostile pattern is some thirty times slower than a
/// usual one of its size, so this is what keeps a question from taking seconds.
const WORK: usize = 1 << 15;

/// What a pattern that is no literal costs at each use, in steps.
const COMPILING: usize = 200;

/// A pattern written in the condition.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// Where `matches` stands.
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

    /// Compiles the pattern, to see whether it does.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.compiled().map(|_| ())
    }

    /// Whether the pattern is found in a text.
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

/// Whether a pattern that comes from the event, or was put together, is found in a text. It is not shown in a fault: it
/// may be a secret, and faults are logged.
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
