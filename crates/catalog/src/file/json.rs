//! JSON: plain reading with `serde_json`, positions from the syntax tree of `jsonc_parser`.

use std::borrow::Cow;

use jsonc_parser::ast::Value;
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::Broken;
use super::lines::{Lines, Position};
use crate::node::{Node, Part, Spot};

/// Whether a comma may stand before a closing bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrailingCommas {
    /// It is an error, as it is in JSON.
    Refused,
    /// It is let pass, as programs let it whose settings are copied.
    Allowed,
}

/// Reads JSON as people write it: comments pass. Places in an error are those of the text.
///
/// ```
/// use ollm_catalog::{TrailingCommas, json_value};
/// let text = "{\"a\": [1, /* two */ 3,]} // end";
/// assert_eq!(json_value(text, TrailingCommas::Allowed).unwrap()["a"][1], 3);
/// assert_eq!(json_value(text, TrailingCommas::Refused).unwrap_err().line(), 1);
/// ```
pub fn json_value(text: &str, commas: TrailingCommas) -> Result<serde_json::Value, serde_json::Error> {
    read(text, commas).map_err(|(_, error)| error)
}

pub(super) fn parse(text: &str, commas: TrailingCommas) -> Result<Node, Broken> {
    read(text, commas).map_err(|(text, error)| broken(&text, &error))
}

/// Reads a text; why it cannot be, with the text that was tried last.
fn read<T: DeserializeOwned>(text: &str, commas: TrailingCommas) -> Result<T, (Cow<'_, str>, serde_json::Error)> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    // Only what cannot be read otherwise pays for the search for comments.
    let Loose { plain, comments, commas } = loose(text, commas);
    if comments || commas {
        return serde_json::from_str(&plain).map_err(|error| (Cow::Owned(plain), error));
    }
    Err((Cow::Borrowed(text), error))
}

/// What a text has that JSON has not.
pub(crate) struct Loose {
    /// The text with all of that turned into blanks, so that every place stays where it was.
    plain: String,
    pub(crate) comments: bool,
    /// Commas before a closing bracket, where they may stand.
    pub(crate) commas: bool,
}

/// Looks for comments, and for commas that may go.
pub(crate) fn loose(text: &str, allowed: TrailingCommas) -> Loose {
    let mut found = Loose { plain: String::with_capacity(text.len()), comments: false, commas: false };
    let mut rest = text;
    // The last comma, if nothing but blanks and comments has followed it.
    let mut comma = None;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => quoted(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            // A comment that is never closed stays, to be told.
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(1, |end| end + 2),
            other => other.len_utf8(),
        };
        let Some((piece, after)) = rest.split_at_checked(length) else { break };
        rest = after;
        if first == '/' && length > 1 {
            found.comments = true;
            found.plain.extend(piece.chars().flat_map(|letter| match letter {
                '\n' => std::iter::repeat_n('\n', 1),
                letter => std::iter::repeat_n(' ', letter.len_utf8()),
            }));
            continue;
        }
        if let (']' | '}', Some(at), TrailingCommas::Allowed) = (first, comma, allowed) {
            found.commas = true;
            found.plain.replace_range(at..=at, " ");
        }
        if !first.is_whitespace() {
            comma = (first == ',').then_some(found.plain.len());
        }
        found.plain.push_str(piece);
    }
    found
}

/// The length of a text in quotes; to the end where it is not closed.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Follows each spot through a second reading, which knows the place of every value.
pub(super) fn locate<'s>(text: &str, spots: impl Iterator<Item = &'s Spot>) -> Vec<Position> {
    let tree = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    let root = tree.ok().and_then(|tree| tree.value);
    let lines = Lines::new(text);
    spots
        .map(|spot| match root.as_ref().and_then(|root| range(root, spot)) {
            Some(range) => lines.position(range.start),
            None => Position::default(),
        })
        .collect()
}

fn range(root: &Value<'_>, spot: &Spot) -> Option<Range> {
    let mut value = root;
    let mut range = root.range();
    for step in &spot.steps {
        let key;
        (value, key) = match value {
            Value::Object(object) => {
                let entry = object.properties.get(*step)?;
                (&entry.value, Some(entry.name.range()))
            }
            Value::Array(list) => (list.elements.get(*step)?, None),
            _ => return None,
        };
        range = match (spot.part, key) {
            (Part::Key, Some(key)) => key,
            _ => value.range(),
        };
    }
    Some(range)
}

fn broken(text: &str, error: &serde_json::Error) -> Broken {
    if text.trim().is_empty() {
        return Broken {
            at: None,
            message: "it is empty".to_owned(),
            help: Some("write {\"hooks\": {}} or remove it"),
        };
    }
    let at = Lines::new(text).in_line(error.line(), error.column());
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    Broken { at: Some(at), message: format!("it is not valid JSON: {reason}"), help: hint(text, error) }
}

/// The usual slips, recognised by what stands at the place.
fn hint(text: &str, error: &serde_json::Error) -> Option<&'static str> {
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let mut at = error.column().saturating_sub(1).min(line.len());
    while !line.is_char_boundary(at) {
        at -= 1;
    }
    let (before, rest) = line.split_at_checked(at)?;
    let reason = error.to_string();
    let letter = rest.chars().next();
    match () {
        () if rest.starts_with("/*") || before.ends_with("/*") => Some("close the comment with */"),
        () if letter == Some('#') => Some("write comments as // or /* */ in JSON"),
        () if letter == Some('\'') => Some("write text in double quotes"),
        () if reason.starts_with("trailing comma") => Some("remove the comma before the closing bracket"),
        () if reason.starts_with("recursion limit") => {
            Some("nest less deeply; a hook file needs no more than six levels")
        }
        () if reason.contains("surrogate") || reason.contains("hex escape") => {
            Some("write the character itself, or both halves of the pair")
        }
        () if reason.starts_with("control character") => Some("write line breaks and tabs inside text as \\n and \\t"),
        () if reason.starts_with("trailing characters") => Some("one file holds one object; remove what follows it"),
        () if error.classify() == Category::Eof => Some("the file ends too early; close every bracket and quote"),
        () if letter == Some('\0') => Some("remove the NUL character; save it as UTF-8"),
        () if reason.starts_with("expected value") => {
            Some("a value is missing here: text in quotes, a number, true, false, null, [ or {")
        }
        () if reason.starts_with("expected ident") => {
            Some("write text in double quotes; the only bare words are true, false and null")
        }
        () if reason.starts_with("key must be") => Some("write every key in double quotes"),
        () if reason.starts_with("expected `:`") => Some("put a colon between the key and its value"),
        () if reason.starts_with("expected `,`") => Some("put a comma between the two, or close the bracket before"),
        () if reason.starts_with("invalid escape") => Some("write a backslash as \\\\"),
        () if reason.starts_with("invalid number") => Some("write numbers as 1, -2.5 or 3e8"),
        () => None,
    }
}
