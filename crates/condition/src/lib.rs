//! Conditions of hooks (`if`): expressions in CEL, the Common Expression Language, that are true or false for an event.
//!
//! The evaluator is our own, because each process parses and evaluates a hook's condition once. It parses in one pass,
//! borrows the event's data, and compiles a pattern only when it is used. `docs/conditions.md` is the guide for users.
//!
//! A condition cannot loop, cannot access anything but its [`ConditionScope`], and is limited: in length, in nesting,
//! and in the steps and memory of one evaluation.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod convert;
mod error;
mod eval;
mod fuel;
mod function;
mod lexer;
mod literal;
mod nearest;
mod operate;
mod parser;
mod regex;
mod scope;
mod seen;
mod spot;
mod syntax;
mod value;

pub use error::{ConditionError, ConditionFault, Fault};
pub use nearest::{did_you_mean, nearest};
pub use scope::{ConditionScope, session};
pub use seen::SeenValue;
pub use spot::Spot;

use error::{Failure, Text};
use eval::Run;
use regex::Pattern;
use syntax::Expr;

/// The longest condition, in bytes.
const LONGEST: usize = 16 * 1024;

/// The deepest nesting of a condition.
const DEEPEST: usize = 100;

/// The most steps of one evaluation.
const STEPS: usize = 100_000;

/// A parsed condition.
///
/// ```
/// use ollm_condition::{Condition, ConditionScope};
/// use serde_json::Map;
///
/// let condition = Condition::parse("data.command.contains('push') && source == 'user'").unwrap();
/// let (data, env) = (Map::from_iter([("command".to_owned(), "git push --force".into())]), Map::new());
/// let scope = ConditionScope::new("before_tool", &data, "/project", &env, "user");
/// assert_eq!(condition.holds(&scope), Ok(true));
/// ```
#[derive(Debug)]
pub struct Condition {
    text: String,
    expr: Expr,
    patterns: Vec<Pattern>,
}

impl Condition {
    /// Parses a condition. Patterns of `matches` are compiled by [`Condition::check`] or by the first evaluation.
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        if text.len() > LONGEST {
            return Err(Text(text).too_long());
        }
        let (expr, patterns) = parser::parse(text)?;
        Ok(Condition { text: text.to_owned(), expr, patterns })
    }

    /// Compiles the literal patterns of `matches`, for callers that need their errors before the first evaluation.
    pub fn check(&self) -> Result<(), ConditionFault> {
        self.patterns.iter().try_for_each(|pattern| {
            pattern.check().map_err(|fault| Text(&self.text).fault(Failure { at: pattern.at, fault }))
        })
    }

    /// The condition as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The parts of the scope that the condition uses, with their values for an event. They show a person why the
    /// condition holds or not.
    pub fn values(&self, scope: &ConditionScope<'_>) -> Vec<SeenValue> {
        seen::seen(&self.expr, scope)
    }

    /// Whether the condition is true for an event.
    pub fn holds(&self, scope: &ConditionScope<'_>) -> Result<bool, ConditionFault> {
        Run::new(&self.patterns, scope).holds(&self.expr).map_err(|failure| Text(&self.text).fault(failure))
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        self.text == other.text
    }
}
