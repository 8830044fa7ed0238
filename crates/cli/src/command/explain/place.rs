//! Shows the location of a hook, or of a setting that decides about it, with the lines.

use std::path::Path;

use ollm_app::App;
use ollm_catalog::{Setting, edit};
use ollm_engine::Reason;
use ollm_protocol::{Hook, Origin};
use ollm_store::{cut, escape_for_people, read_bounded};
use serde_json::{Value, json};

/// A larger file is not opened for one line of it.
const LARGEST: u64 = 4 << 20;
/// A longer line is cut.
const LONGEST: usize = 120;
/// How many lines to show until one has content: a declaration may begin with a line of only a brace.
const MOST_LINES: usize = 3;

/// The place of a hook as people write it; none for one that no file declares.
pub(super) fn place(hook: &Hook) -> Option<String> {
    shown(&hook.spec.origin)
}

/// A place as people write it; none where there is no file.
pub(super) fn shown(origin: &Origin) -> Option<String> {
    let file = Some(origin.file.display().to_string()).filter(|file| !file.is_empty())?;
    Some(if origin.line > 0 { format!("{file}:{}:{}", origin.line, origin.column) } else { file })
}

/// The location of the obstacle that keeps a hook from running: its own key, or the configuration. Otherwise the
/// location of the hook.
pub(super) fn of_reason(hook: &Hook, reason: Reason, app: &App) -> Origin {
    let key = match reason {
        Reason::Disabled if !hook.spec.enabled => "enabled",
        Reason::Matcher => "matcher",
        Reason::Pattern => "filePatterns",
        Reason::Condition => "if",
        Reason::Requires => "requires",
        Reason::Scope => "scope",
        Reason::RateLimited => "rateLimit",
        _ => return hook.spec.origin.clone(),
    };
    let of_all = || {
        let named = ["hooks.rateLimit.perMinute", "hooks.rateLimit.cooldownMs"].into_iter();
        let mut said = named.filter_map(|path| app.config.default_for(path, hook.spec.source, hook.spec.layer));
        said.find_map(of_setting).filter(|_| reason == Reason::RateLimited)
    };
    edit::key_place(hook, key).or_else(of_all).unwrap_or_else(|| hook.spec.origin.clone())
}

/// Where a file gives a setting its value.
pub(super) fn of_setting(setting: &Setting) -> Option<Origin> {
    use ollm_catalog::Origin::{File, Policy};
    match &setting.origin {
        File { file, line, column, .. } | Policy { file, line, column } => {
            Some(Origin { file: file.clone(), line: *line, column: *column })
        }
        _ => None,
    }
}

/// The numbered lines of a location: its own line, and the next ones until one has content.
pub(super) fn lines(Origin { file, line, column }: &Origin) -> Vec<String> {
    found_lines(file, *line, *column).unwrap_or_default()
}

fn found_lines(file: &Path, line: usize, column: usize) -> Option<Vec<String>> {
    let text = read_bounded(file, LARGEST).ok()??;
    let text = String::from_utf8_lossy(&text);
    let found = (1..).zip(text.lines()).skip(line.checked_sub(1)?).take(MOST_LINES);
    let mut shown = Vec::new();
    for (number, text) in found {
        let part = if number == line { window(text, column) } else { text.trim().to_owned() };
        shown.push(format!("{number} | {}", escape_for_people(&cut(&part, LONGEST))));
        if text.contains(char::is_alphanumeric) {
            break;
        }
    }
    Some(shown)
}

/// The part of a long line from this column on.
fn window(line: &str, column: usize) -> String {
    let before = column.saturating_sub(1);
    if line.trim().len() <= LONGEST || before == 0 {
        return line.trim().to_owned();
    }
    let rest: String = line.chars().skip(before).collect();
    format!("… {}", rest.trim())
}

pub(super) fn to_json(hook: &Hook) -> Value {
    json_of(&hook.spec.origin)
}

/// A location as JSON.
pub(super) fn json_of(Origin { file, line, column }: &Origin) -> Value {
    let file = file.to_string_lossy();
    if file.is_empty() { Value::Null } else { json!({"file": file, "line": line, "column": column}) }
}
