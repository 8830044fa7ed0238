//! The names in a condition: looks them up, and suggests the nearest known name.

use super::Parser;
use crate::error::{ConditionError, quoted};
use crate::function::{Form, SIGNATURES, Signature};
use crate::nearest::nearest;
use crate::syntax::{Macro, Variable};

/// The words that CEL reserves.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Functions and types of CEL that this evaluator does not support.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("timestamp", "times are not supported; compare texts, or do it in the hook itself"),
    ("duration", "durations are not supported; compare numbers, or do it in the hook itself"),
    ("optional", "optional values are not supported; use `has(…)` and `? :`"),
];

impl Parser<'_> {
    pub(super) fn signature(&self, at: usize, name: &str, form: Form) -> Result<&'static Signature, ConditionError> {
        if let Some((_, way_out)) = UNSUPPORTED.iter().find(|(known, _)| *known == name) {
            return Err(self.text.error(at, format!("`{name}` is not supported"), *way_out));
        }
        let Some(signature) = SIGNATURES.iter().find(|signature| signature.name == name) else {
            let names = SIGNATURES.iter().map(|signature| signature.name);
            let names = names.chain(Macro::NAMES.iter().map(|(name, _)| *name)).chain(["has"]);
            let way_out =
                nearest(name, names).map_or_else(|| "see docs/conditions.md for those there are".into(), meant);
            return Err(self.text.error(at, format!("unknown function {}", quoted(name)), way_out));
        };
        if signature.form != Form::Both && signature.form != form {
            let (what, way_out) = match form {
                Form::Function => ("is called on a value", format!("write `value.{name}(…)`")),
                Form::Method | Form::Both => ("is not called on a value", format!("write `{name}(value)`")),
            };
            return Err(self.text.error(at, format!("`{name}` {what}"), way_out));
        }
        Ok(signature)
    }

    pub(super) fn check_count(&self, at: usize, signature: &Signature, count: usize) -> Result<(), ConditionError> {
        if signature.values.contains(&count) {
            return Ok(());
        }
        let what = format!("`{}` has the wrong number of arguments", signature.name);
        Err(self.text.error(at, what, format!("write `{}`", signature.usage)))
    }

    pub(super) fn check_reserved(&self, name: &str) -> Result<(), ConditionError> {
        if RESERVED.contains(&name) {
            return Err(self.text.error(self.at(), format!("`{name}` is a reserved word"), "use another name"));
        }
        Ok(())
    }

    pub(super) fn unknown_variable(&self, at: usize, name: &str) -> ConditionError {
        if let Some((_, way_out)) = UNSUPPORTED.iter().find(|(known, _)| *known == name) {
            return self.text.error(at, format!("`{name}` is not supported"), *way_out);
        }
        let known = Variable::NAMES.iter().map(|(name, _)| *name);
        let way_out = match nearest(name, known.clone().chain(self.locals.iter().copied())) {
            Some(known) => meant(known),
            None if name == "not" => "write `!` for not".to_owned(),
            None => format!("a condition sees {}; put text in quotes", known.collect::<Vec<_>>().join(", ")),
        };
        self.text.error(at, format!("unknown variable {}", quoted(name)), way_out)
    }
}

fn meant(name: &str) -> String {
    format!("did you mean `{name}`?")
}
