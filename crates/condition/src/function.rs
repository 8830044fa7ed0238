//! The functions that a condition can call. A new one needs a variant, a row of the table, and its code.

use std::ops::RangeInclusive;

use crate::convert;
use crate::error::Fault;
use crate::fuel::Fuel;
use crate::operate::mismatch;
use crate::regex;
use crate::value::{CelValue, List};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Bool,
    Bytes,
    CharAt,
    Contains,
    Double,
    Dyn,
    EndsWith,
    IndexOf,
    Int,
    Join,
    LastIndexOf,
    LowerAscii,
    Matches,
    Replace,
    Size,
    Split,
    StartsWith,
    String,
    Substring,
    Trim,
    Type,
    Uint,
    UpperAscii,
}

/// The notation of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `f(value)`
    Function,
    /// `value.f()`
    Method,
    Both,
}

/// How a function is called.
#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    pub(crate) function: Function,
    pub(crate) form: Form,
    /// The number of values, including the one that a method is called on.
    pub(crate) values: RangeInclusive<usize>,
    /// An example for messages.
    pub(crate) usage: &'static str,
}

const fn signature(
    function: Function,
    form: Form,
    values: RangeInclusive<usize>,
    name: &'static str,
    usage: &'static str,
) -> Signature {
    Signature { name, function, form, values, usage }
}

/// Every function, by its name.
pub(crate) const SIGNATURES: &[Signature] = &[
    signature(Function::Bool, Form::Function, 1..=1, "bool", "bool(value)"),
    signature(Function::Bytes, Form::Function, 1..=1, "bytes", "bytes(value)"),
    signature(Function::CharAt, Form::Method, 2..=2, "charAt", "text.charAt(0)"),
    signature(Function::Contains, Form::Method, 2..=2, "contains", "text.contains('part')"),
    signature(Function::Double, Form::Function, 1..=1, "double", "double(value)"),
    signature(Function::Dyn, Form::Function, 1..=1, "dyn", "dyn(value)"),
    signature(Function::EndsWith, Form::Method, 2..=2, "endsWith", "text.endsWith('end')"),
    signature(Function::IndexOf, Form::Method, 2..=2, "indexOf", "text.indexOf('part')"),
    signature(Function::Int, Form::Function, 1..=1, "int", "int(value)"),
    signature(Function::Join, Form::Method, 1..=2, "join", "list.join(', ')"),
    signature(Function::LastIndexOf, Form::Method, 2..=2, "lastIndexOf", "text.lastIndexOf('part')"),
    signature(Function::LowerAscii, Form::Method, 1..=1, "lowerAscii", "text.lowerAscii()"),
    signature(Function::Matches, Form::Both, 2..=2, "matches", "text.matches(r'pattern')"),
    signature(Function::Replace, Form::Method, 3..=4, "replace", "text.replace('old', 'new')"),
    signature(Function::Size, Form::Both, 1..=1, "size", "size(value)"),
    signature(Function::Split, Form::Method, 2..=3, "split", "text.split(',')"),
    signature(Function::StartsWith, Form::Method, 2..=2, "startsWith", "text.startsWith('start')"),
    signature(Function::String, Form::Function, 1..=1, "string", "string(value)"),
    signature(Function::Substring, Form::Method, 2..=3, "substring", "text.substring(0, 4)"),
    signature(Function::Trim, Form::Method, 1..=1, "trim", "text.trim()"),
    signature(Function::Type, Form::Function, 1..=1, "type", "type(value)"),
    signature(Function::Uint, Form::Function, 1..=1, "uint", "uint(value)"),
    signature(Function::UpperAscii, Form::Method, 1..=1, "upperAscii", "text.upperAscii()"),
];

impl Function {
    fn name(self) -> &'static str {
        SIGNATURES.iter().find(|signature| signature.function == self).map_or("", |signature| signature.name)
    }

    /// Calls the function on its values, the one it is called on first.
    pub(crate) fn call<'a>(self, values: &[CelValue<'a>], fuel: &mut Fuel) -> Result<CelValue<'a>, Fault> {
        match values {
            [value] => self.convert(value, fuel)?.map_or_else(|| self.change(values, fuel), Ok),
            [CelValue::Text(text), CelValue::Text(other)] => self.search(text, other, fuel),
            _ => self.change(values, fuel),
        }
    }

    /// The functions that convert a value to another type.
    fn convert<'a>(self, value: &CelValue<'a>, fuel: &mut Fuel) -> Result<Option<CelValue<'a>>, Fault> {
        let converted = match self {
            Self::Bool => convert::to_bool(value)?,
            Self::Bytes => convert::to_bytes(value, fuel)?,
            Self::Double => convert::to_double(value)?,
            Self::Dyn => Some(value.clone()),
            Self::Int => convert::to_int(value)?,
            Self::String => convert::to_text(value, fuel)?,
            Self::Type => Some(CelValue::Type(value.kind())),
            Self::Uint => convert::to_uint(value)?,
            Self::Size => size(value, fuel)?,
            _ => return Ok(None),
        };
        converted.map(Some).ok_or_else(|| self.mismatch(std::slice::from_ref(value)))
    }

    /// The functions that search one text in another.
    fn search<'a>(self, text: &str, other: &str, fuel: &mut Fuel) -> Result<CelValue<'a>, Fault> {
        fuel.read(text.len())?;
        Ok(match self {
            Self::Contains => CelValue::Bool(text.contains(other)),
            Self::StartsWith => CelValue::Bool(text.starts_with(other)),
            Self::EndsWith => CelValue::Bool(text.ends_with(other)),
            Self::Matches => CelValue::Bool(regex::matches(other, text, fuel)?),
            Self::IndexOf => position(text, text.find(other)),
            Self::LastIndexOf => position(text, text.rfind(other)),
            Self::Split => split(text, other, None, fuel)?,
            _ => return Err(self.mismatch(&[CelValue::borrowed(""), CelValue::borrowed("")])),
        })
    }

    /// The functions that make a new text or list.
    fn change<'a>(self, values: &[CelValue<'a>], fuel: &mut Fuel) -> Result<CelValue<'a>, Fault> {
        if let [CelValue::Text(text), ..] = values {
            fuel.read(text.len())?;
        }
        let made = match (self, values) {
            (Self::LowerAscii, [CelValue::Text(text)]) => {
                fuel.build(text.len())?;
                text.to_ascii_lowercase()
            }
            (Self::UpperAscii, [CelValue::Text(text)]) => {
                fuel.build(text.len())?;
                text.to_ascii_uppercase()
            }
            (Self::Trim, [CelValue::Text(text)]) => owned(text.trim(), fuel)?,
            (Self::CharAt, [CelValue::Text(text), CelValue::Int(at)]) => char_at(text, *at)?,
            (Self::Substring, [CelValue::Text(text), CelValue::Int(from)]) => substring(text, *from, None, fuel)?,
            (Self::Substring, [CelValue::Text(text), CelValue::Int(from), CelValue::Int(to)]) => {
                substring(text, *from, Some(*to), fuel)?
            }
            (Self::Replace, [CelValue::Text(text), CelValue::Text(old), CelValue::Text(new)]) => {
                replace(text, old, new, None, fuel)?
            }
            (Self::Replace, [CelValue::Text(text), CelValue::Text(old), CelValue::Text(new), CelValue::Int(limit)]) => {
                replace(text, old, new, usize::try_from(*limit).ok(), fuel)?
            }
            (Self::Join, [CelValue::List(list)]) => join(list, "", fuel)?.ok_or_else(|| self.mismatch(values))?,
            (Self::Join, [CelValue::List(list), CelValue::Text(between)]) => {
                join(list, between, fuel)?.ok_or_else(|| self.mismatch(values))?
            }
            (Self::Split, [CelValue::Text(text), CelValue::Text(at), CelValue::Int(limit)]) => {
                return split(text, at, usize::try_from(*limit).ok(), fuel);
            }
            _ => return Err(self.mismatch(values)),
        };
        Ok(CelValue::text(made))
    }

    fn mismatch(self, values: &[CelValue<'_>]) -> Fault {
        mismatch(self.name(), &values.iter().collect::<Vec<_>>())
    }
}

fn size<'a>(value: &CelValue<'a>, fuel: &mut Fuel) -> Result<Option<CelValue<'a>>, Fault> {
    Ok(Some(CelValue::count(match value {
        CelValue::Text(text) => {
            fuel.read(text.len())?;
            text.chars().count()
        }
        CelValue::Bytes(bytes) => bytes.len(),
        CelValue::List(list) => list.len(),
        CelValue::Map(map) => map.len(),
        _ => return Ok(None),
    })))
}

/// A position as a result: counted in characters, -1 if not found.
fn position<'a>(text: &str, at: Option<usize>) -> CelValue<'a> {
    match at.and_then(|at| text.get(..at)) {
        Some(before) => CelValue::count(before.chars().count()),
        None => CelValue::Int(-1),
    }
}

fn owned(text: &str, fuel: &mut Fuel) -> Result<String, Fault> {
    fuel.build(text.len())?;
    Ok(text.to_owned())
}

/// The offset of a character, or of the end.
fn offset(text: &str, index: i64) -> Result<usize, Fault> {
    let wanted = usize::try_from(index).ok();
    let offsets = || text.char_indices().map(|(at, _)| at).chain([text.len()]);
    wanted
        .and_then(|wanted| offsets().nth(wanted))
        .ok_or_else(|| Fault::NoIndex { index: index.to_string(), size: text.chars().count() })
}

fn char_at(text: &str, index: i64) -> Result<String, Fault> {
    let at = offset(text, index)?;
    Ok(text.get(at..).and_then(|rest| rest.chars().next()).map(String::from).unwrap_or_default())
}

fn substring(text: &str, from: i64, to: Option<i64>, fuel: &mut Fuel) -> Result<String, Fault> {
    let start = offset(text, from)?;
    let end = to.map_or(Ok(text.len()), |to| offset(text, to))?;
    let part = text.get(start..end).ok_or_else(|| Fault::NoIndex {
        index: from.to_string(),
        size: to.and_then(|to| usize::try_from(to).ok()).unwrap_or_default(),
    })?;
    owned(part, fuel)
}

/// Replaces text. The steps for the whole length are taken before the first piece is copied, because a short
/// replacement can make a long text.
fn replace(text: &str, old: &str, new: &str, limit: Option<usize>, fuel: &mut Fuel) -> Result<String, Fault> {
    let count = text.matches(old).take(limit.unwrap_or(usize::MAX)).count();
    fuel.build(text.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(text.replacen(old, new, count))
}

fn join(list: &List<'_>, between: &str, fuel: &mut Fuel) -> Result<Option<String>, Fault> {
    let mut joined = String::new();
    for (index, element) in list.iter().enumerate() {
        let CelValue::Text(text) = element else { return Ok(None) };
        fuel.build(between.len() + text.len())?;
        joined.push_str(if index == 0 { "" } else { between });
        joined.push_str(&text);
    }
    Ok(Some(joined))
}

fn split<'a>(text: &str, at: &str, limit: Option<usize>, fuel: &mut Fuel) -> Result<CelValue<'a>, Fault> {
    let mut pieces = Vec::new();
    let mut add = |piece: &str| {
        pieces.push(CelValue::text(owned(piece, fuel)?));
        Ok(())
    };
    match (limit, at) {
        (Some(0), _) => {}
        (limit, "") => characters(text, limit.unwrap_or(usize::MAX), &mut add)?,
        (limit, at) => text.splitn(limit.unwrap_or(usize::MAX), at).try_for_each(&mut add)?,
    }
    CelValue::list(pieces)
}

/// Each character separately; the rest beyond the limit as one piece.
fn characters(text: &str, limit: usize, add: &mut impl FnMut(&str) -> Result<(), Fault>) -> Result<(), Fault> {
    let mut rest = text;
    let mut left = limit;
    while let Some(first) = rest.chars().next() {
        let length = if left == 1 { rest.len() } else { first.len_utf8() };
        let (piece, more) = rest.split_at(length);
        add(piece)?;
        rest = more;
        left -= 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_in_the_guide_and_its_usage_names_it() {
        let guide = include_str!("../../../docs/conditions.md");
        for signature in SIGNATURES {
            let call = format!("{}(", signature.name);
            assert!(guide.contains(&call) && signature.usage.contains(&call), "{call}");
        }
    }
}
