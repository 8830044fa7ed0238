//! Looks variables up in a scope and renders their values.

use ollm_condition::Spot;
use ollm_protocol::placeholders;

use super::TemplateWarning;

/// The longest snippet in a warning.
const SNIPPET: usize = 40;

/// A variable looked up in a scope.
pub(super) struct ScopeValue<'a> {
    path: &'a str,
    found: Option<&'a serde_json::Value>,
}

impl<'a> ScopeValue<'a> {
    pub(super) fn find(scope: &'a serde_json::Value, path: &'a str) -> Self {
        let other = match path {
            // Tools name their file `path` or `file_path`; templates may use either.
            "tool_args.path" => Some("tool_args.file_path"),
            "tool_args.file_path" => Some("tool_args.path"),
            // In `rpc`, the event object holds the event's name, time and data.
            "event.type" => Some("event"),
            "event.timestamp" => Some("timestamp"),
            path => path.strip_prefix("event.").filter(|inner| inner.starts_with("data.")),
        };
        let found = look_up(scope, path).or_else(|| look_up(scope, other?));
        Self { path, found }
    }

    /// The value as text. An unknown variable adds one warning, however often it is used.
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

/// Warnings for braces that look like a variable but are not one.
pub(super) fn literals(text: &str) -> Vec<TemplateWarning> {
    let mut warnings = Vec::new();
    let mut variables = placeholders(text).peekable();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("{{")) {
        let start = at + found;
        let run = text.get(start..).unwrap_or_default();
        let braces = run.len() - run.trim_start_matches('{').len();
        at = start + braces;
        // In a longer run of braces, only the last two can open a variable.
        if let Some(variable) = variables.next_if(|variable| variable.span.start < at) {
            at = variable.span.end;
        } else {
            warnings.push(TemplateWarning::Literal { text: snippet(run), at: Spot::of(text, start) });
        }
    }
    warnings
}

fn snippet(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let end = line.find("}}").map_or(line.len(), |end| end + "}}".len());
    line.get(..end).unwrap_or_default().chars().take(SNIPPET).collect()
}
