//! Reads a model's arguments for a tool, and reports errors to the model.

use serde_json::{Map, Value};

/// A required text.
pub(crate) fn text<'a>(args: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    match args.get(name) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!("`{name}` must be a text, not {other}")),
        None => Err(format!("`{name}` is missing")),
    }
}

/// The path of a file, under either of its argument names.
pub(crate) fn path(args: &Map<String, Value>) -> Result<&str, String> {
    let path = match (args.get("path"), args.get("file_path")) {
        (None, Some(_)) => text(args, "file_path")?,
        _ => text(args, "path")?,
    };
    if path.is_empty() || path.contains('\0') {
        Err(format!("`path` must name a file, not {path:?}"))
    } else {
        Ok(path)
    }
}

/// A folder; the workspace itself if none is named.
pub(crate) fn folder(args: &Map<String, Value>) -> Result<&str, String> {
    match args.get("path") {
        None | Some(Value::Null) => Ok("."),
        Some(Value::String(path)) if path.is_empty() => Ok("."),
        Some(_) => path(args),
    }
}

/// An optional number.
pub(crate) fn number(args: &Map<String, Value>, name: &str) -> Result<Option<usize>, String> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().parse::<usize>().is_ok() => Ok(text.trim().parse().ok()),
        Some(value) => {
            let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
            number.map(Some).ok_or_else(|| format!("`{name}` must be a whole number, not {value}"))
        }
    }
}
