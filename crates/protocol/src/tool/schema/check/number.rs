//! Checks the keywords for numbers, exactly: `0.3` is a multiple of `0.1`, and two large numbers are different even if
//! they are close.

use std::cmp::Ordering;
use std::fmt::Write;

use serde_json::{Map, Number, Value};

use super::{Check, SchemaMismatch, broken};

/// The largest power of ten; numbers of this kind have no larger one.
const MOST_SHIFT: i32 = 1_000;

impl Check<'_> {
    pub(super) fn number(
        &mut self,
        number: &Number,
        schema: &Map<String, Value>,
        at: &str,
    ) -> Result<(), SchemaMismatch> {
        bounds(number, schema, at)?;
        let Some(Value::Number(step)) = schema.get("multipleOf") else { return Ok(()) };
        match is_multiple(number, step) {
            Some(true) => {}
            Some(false) => return broken(at, format!("{number} is no multiple of {step}")),
            None => self.doubt(&format!("whether {number} is a multiple of {step} is not checked")),
        }
        Ok(())
    }
}

fn bounds(number: &Number, schema: &Map<String, Value>, at: &str) -> Result<(), SchemaMismatch> {
    let order = |key: &str| match schema.get(key) {
        Some(Value::Number(limit)) => compare(number, limit),
        _ => None,
    };
    // In draft 4, a boolean says whether the bound itself is excluded.
    let strict = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let outside = |key: &str, beyond: Ordering, exclusive: bool| {
        order(key).is_some_and(|order| order == beyond || (exclusive && order == Ordering::Equal))
    };
    let broken_by = [
        ("minimum", outside("minimum", Ordering::Less, strict("exclusiveMinimum"))),
        ("maximum", outside("maximum", Ordering::Greater, strict("exclusiveMaximum"))),
        ("exclusiveMinimum", outside("exclusiveMinimum", Ordering::Less, true)),
        ("exclusiveMaximum", outside("exclusiveMaximum", Ordering::Greater, true)),
    ];
    match broken_by.iter().find(|(_, broken)| *broken) {
        Some((rule, _)) => {
            let limit = schema.get(*rule).unwrap_or(&Value::Null);
            broken(at, format!("{number} breaks `{rule}` ({limit})"))
        }
        None => Ok(()),
    }
}

fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// A number that is a count; some schemas write `2.0`.
pub(super) fn count(value: &Value) -> Option<usize> {
    let Value::Number(number) = value else { return None };
    usize::try_from(whole(number)?).ok()
}

/// The number as an integer, if it has no fraction.
fn whole(number: &Number) -> Option<i128> {
    let exact = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is within the bounds")]
    let rounded =
        || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e37).map(|float| float as i128);
    exact.or_else(rounded)
}

/// Whether two values are equal in JSON Schema, for which `1.0` is `1`.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || compare(one, other) == Some(Ordering::Equal),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

/// A text that is the same only for equal values.
pub(super) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    let _ = match value {
        Value::Number(number) => match whole(number) {
            Some(whole) => write!(text, "{whole}"),
            None => write!(text, "{number}"),
        },
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            write!(text, "]")
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in sorted {
                let _ = write!(text, "{}:", Value::String(name.clone()));
                write(value, text);
                text.push(',');
            }
            write!(text, "}}")
        }
        other => write!(text, "{other}"),
    };
}

/// Whether a number is a multiple of another; `None` if that needs more digits than we have.
fn is_multiple(number: &Number, step: &Number) -> Option<bool> {
    let ((digits, power), (step, step_power)) = (decimal(number)?, decimal(step)?);
    if step == 0 {
        return None;
    }
    let shift = power - step_power;
    if shift.abs() > MOST_SHIFT {
        return None;
    }
    if shift >= 0 {
        let mut rest = digits % step;
        for _ in 0..shift {
            rest = rest.checked_mul(10)? % step;
        }
        return Some(rest == 0);
    }
    let mut step = step;
    for _ in 0..-shift {
        match step.checked_mul(10) {
            Some(more) if more <= digits => step = more,
            // A multiple of a larger number is zero or larger itself.
            _ => return Some(digits == 0),
        }
    }
    Some(digits % step == 0)
}

/// The digits of a number without its sign, and the power of ten that belongs to them.
fn decimal(number: &Number) -> Option<(u128, i32)> {
    let text = number.to_string();
    let (digits, power) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let power: i32 = power.parse().ok()?;
    let digits = format!("{}{fraction}", whole.trim_start_matches('-')).parse().ok()?;
    Some((digits, power.checked_sub(i32::try_from(fraction.len()).ok()?)?))
}
