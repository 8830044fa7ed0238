//! Where variables stand in a text, and what they are worth in a scope.

use super::{Spot, TemplateWarning};

/// The length of a snippet shown in a warning.
const SNIPPET: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Variable(String),
}

/// A variable looked up in a scope.
pub(super) struct Value<'a> {
    path: &'a str,
    found: Option<&'a serde_json::Value>,
}

impl<'a> Value<'a> {
    pub(super) fn find(scope: &'a serde_json::Value, path: &'a str) -> Self {
        // Tools call their file `path` or `file_path`; templates may use either.
        let other = match path {
            "tool_args.path" => Some("tool_args.file_path"),
            "tool_args.file_path" => Some("tool_args.path"),
            _ => None,
        };
        let found = look_up(scope, path).or_else(|| look_up(scope, other?));
        Self { path, found }
    }

    /// The value as text; an unknown variable leaves one warning however often it is used.
    pub(super) fn text(&self, warnings: &mut Vec<TemplateWarning>) -> String {
        match self.found {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(serde_json::Value::Null) => String::new(),
            Some(other) => other.to_string(),
            None => {
                let warning = TemplateWarning::Unknown { variable: self.path.to_owned() };
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
                String::new()
            }
        }
    }
}

fn look_up<'a>(scope: &'a serde_json::Value, path: &str) -> Option<&'a serde_json::Value> {
    path.split('.').try_fold(scope, |value, segment| match value {
        serde_json::Value::Object(fields) => fields.get(segment),
        serde_json::Value::Array(items) => segment.parse::<usize>().ok().and_then(|index| items.get(index)),
        _ => None,
    })
}

pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if let Some((path, length)) = variable(rest) {
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Variable(path.to_owned()));
            rest = rest.get(length..).unwrap_or_default();
        } else {
            literal.push(next);
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    pieces
}

/// The variable that begins the text: its path, and the length of its braces and all.
pub(super) fn variable(text: &str) -> Option<(&str, usize)> {
    let inner = text.strip_prefix("{{")?;
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || "_-. \t".contains(c)))?;
    let (path, tail) = inner.split_at_checked(end)?;
    let path = path.trim_matches([' ', '\t']);
    (tail.starts_with("}}") && is_path(path)).then_some((path, end + "{{}}".len()))
}

/// A warning for each run of braces that looks like a variable and is none.
pub(super) fn literals(text: &str) -> Vec<TemplateWarning> {
    let mut warnings = Vec::new();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("{{")) {
        let start = at + found;
        let run = text.get(start..).unwrap_or_default();
        let braces = run.len() - run.trim_start_matches('{').len();
        // Of a run of braces only the last two can open a variable.
        at = start + braces;
        let last = text.get(at - "{{".len()..).unwrap_or_default();
        if let Some((_, length)) = variable(last) {
            at += length - "{{".len();
        } else {
            warnings.push(TemplateWarning::Literal { text: snippet(run), at: Spot::of(text, start) });
        }
    }
    warnings
}

fn is_path(path: &str) -> bool {
    path.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && path.split('.').all(|segment| !segment.is_empty() && !segment.contains([' ', '\t']))
}

fn snippet(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let end = line.find("}}").map_or(line.len(), |end| end + "}}".len());
    line.get(..end).unwrap_or_default().chars().take(SNIPPET).collect()
}
