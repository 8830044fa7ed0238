//! Limits the depth and the number of values of a message.
//!
//! One tool that is nested too deeply must not make the whole list unreadable. So it is cut at a depth that is still
//! too deep, and [`crate::Offers`] later refuses it by its name.

use rmcp::model::ServerJsonRpcMessage;
use serde_json::Value;

use crate::fast_decode;

/// Levels of a message that are kept. The JSON reader accepts a few more, but kept messages are nested inside files as
/// well.
const KEPT: usize = 110;
/// The most levels of an entry of a list. An entry that was cut still has more.
pub(crate) const DEEPEST: usize = 100;
/// The most values of a message. Each takes about a hundred bytes in memory, and at least two in the text.
pub(crate) const MOST_VALUES: usize = 1_000_000;

/// Reads a message. A list of tools is readable even if one tool is nested too deeply.
pub(crate) fn read(text: &[u8]) -> serde_json::Result<ServerJsonRpcMessage> {
    if let Some(answer) = fast_decode::read(text) {
        return Ok(answer);
    }
    serde_json::from_slice(text).or_else(|error| match (shallow(text), resolved(text)) {
        (Some(text), _) => serde_json::from_slice(&text),
        (None, Some(message)) => serde_json::from_value(message),
        (None, None) => Err(error),
    })
}

/// An answer with both `result` and `error`, without the one that is null.
fn resolved(text: &[u8]) -> Option<Value> {
    let Value::Object(mut message) = serde_json::from_slice(text).ok()? else { return None };
    let nothing = ["error", "result"].into_iter().find(|key| message.get(*key) == Some(&Value::Null))?;
    let both = message.contains_key("error") && message.contains_key("result");
    message.remove(nothing).filter(|_| both)?;
    Some(Value::Object(message))
}

/// Whether a text has more values than allowed.
pub(crate) fn is_heavy(text: &[u8]) -> bool {
    if text.len() < 2 * MOST_VALUES {
        return false;
    }
    let (mut values, mut quoted, mut escaped) = (1_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' | b',' if !quoted => values += 1,
            _ => {}
        }
    }
    values > MOST_VALUES
}

/// The first entries of a list, each as written.
pub(crate) fn elements(text: &[u8], most: usize) -> Vec<&[u8]> {
    let (mut depth, mut quoted, mut escaped, mut start) = (0_usize, false, false, 1);
    let mut found = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted && depth > 1 => depth -= 1,
            b',' | b']' if !quoted && depth == 1 => {
                found.extend(text.get(start..at).map(<[u8]>::trim_ascii));
                start = at + 1;
                if found.len() == most {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}

/// A list of tools, cut where it is nested too deeply. `None` if the message is no list of tools, or not too deep.
pub(crate) fn shallow(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() <= 2 * KEPT || !text.windows(7).any(|part| part == b"\"tools\"") {
        return None;
    }
    let cut = cut(text)?;
    let message: Value = serde_json::from_slice(&cut).ok()?;
    message.pointer("/result/tools")?.is_array().then_some(cut)
}

/// Whether a value has more levels than allowed.
pub(crate) fn is_deep(value: &Value) -> bool {
    let mut level = vec![value];
    for _ in 0..DEEPEST {
        let below = level.iter().flat_map(|value| match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => Vec::new(),
        });
        level = below.filter(|value| value.is_array() || value.is_object()).collect();
        if level.is_empty() {
            return false;
        }
    }
    true
}

/// The text without everything below a certain level; `None` if there is nothing below it.
fn cut(text: &[u8]) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(text.len());
    let (mut depth, mut quoted, mut escaped, mut found) = (0_usize, false, false, false);
    for byte in text {
        let (before, inside) = (depth, quoted);
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !inside => depth += 1,
            b'}' | b']' if !inside => depth = depth.saturating_sub(1),
            _ => {}
        }
        if before <= KEPT && depth <= KEPT {
            kept.push(*byte);
        } else if before == KEPT {
            found = true;
            kept.extend(b"null");
        }
    }
    found.then_some(kept)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(levels: usize) -> String {
        let schema = format!("{}\"}} ]\\\"\"{}", "{\"a\":[".repeat(levels / 2), "]}".repeat(levels / 2));
        let good = r#"{"name":"good","inputSchema":{}}"#;
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{{"name":"deep","inputSchema":{schema}}},{good}]}}}}"#)
    }

    #[test]
    fn a_tool_that_is_nested_too_deeply_leaves_the_others_readable() {
        for levels in [10, 90, 110, 130, 200, 1_000_000] {
            let text = list(levels);
            let message = serde_json::to_value(read(text.as_bytes()).unwrap()).unwrap();
            let tools = message.pointer("/result/tools").unwrap();
            assert_eq!(tools[1], json!({"name": "good", "inputSchema": {}}), "{levels}");
            assert_eq!((is_deep(&tools[0]), is_deep(&tools[1])), (levels > 99, false), "{levels}");
            assert_eq!(shallow(text.as_bytes()).is_some(), levels > 106, "{levels}");
        }
    }

    #[test]
    fn the_entries_of_a_list_are_found_however_deep_they_are() {
        let deep = list(1_000_000);
        let text = format!(r#"[ {deep}, {{"a":"],[\\\"}}"}} ,[1,2], 3]"#);
        let found: Vec<&str> =
            elements(text.as_bytes(), 9).iter().map(|part| std::str::from_utf8(part).unwrap()).collect();
        assert_eq!(found, [deep.as_str(), r#"{"a":"],[\\\"}"}"#, "[1,2]", "3"]);
        assert_eq!(elements(text.as_bytes(), 1), [deep.as_bytes()]);
    }

    #[test]
    fn a_text_is_heavy_by_its_values_and_not_by_its_length() {
        let list = |entry: &str, count| format!("[{}]", vec![entry; count].join(","));
        assert!(is_heavy(list("[]", MOST_VALUES).as_bytes()));
        assert!(is_heavy(list("10", MOST_VALUES + 1).as_bytes()));
        assert!(!is_heavy(list("10", MOST_VALUES - 1).as_bytes()));
        assert!(!is_heavy(format!("[\"{}\"]", "[,\\\"{".repeat(MOST_VALUES)).as_bytes()));
    }

    #[test]
    fn what_is_no_list_of_tools_is_not_changed() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let other = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[],"tools":7,"x":{deep}}}}}"#);
        assert_eq!(shallow(other.as_bytes()), None);
        assert!(read(other.as_bytes()).is_err());
    }
}
