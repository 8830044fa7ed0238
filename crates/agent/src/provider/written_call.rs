//! Calls that a model wrote as text, because its template or its server knows no better.
//!
//! An answer that is nothing but one call of an offered tool is that call. A call amid other words stays text: it may be
//! an example, and a model that explains a tool must not run it.

use serde_json::{Map, Value};

use crate::message::{Arguments, Call};

/// What stands around calls: how they begin and end.
const MARKS: &[(&str, &str)] = &[
    ("<tool_call>", "</tool_call>"),
    ("<tools>", "</tools>"),
    ("<function_call>", "</function_call>"),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("<|python_tag|>", ""),
    ("[TOOL_CALLS]", ""),
    ("```json", "```"),
    ("```tool_call", "```"),
    ("```", "```"),
];

/// What an answer that holds a written call means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Written {
    /// The answer is this call and nothing else.
    Call(Call),
    /// The answer holds a call of this tool among other words.
    Mentioned(String),
    /// The answer is a call of this tool, which is not offered.
    Unknown(String),
}

/// Whether an answer that begins like this may turn out to be a call.
pub(crate) fn may_begin(text: &str) -> bool {
    let text = text.trim_start();
    let marks = MARKS.iter().map(|(begin, _)| *begin).filter(|begin| *begin != "```");
    text.is_empty()
        || text.starts_with('{')
        || marks.into_iter().any(|mark| mark.starts_with(text) || text.starts_with(mark))
}

/// Looks for a call in an answer's words; `offered` says which tools there are.
pub(crate) fn find(content: &str, offered: &dyn Fn(&str) -> bool) -> Option<Written> {
    let text = content.trim();
    if !text.contains('{') {
        return None;
    }
    let whole = unwrapped(text);
    if let Some((name, arguments)) = call_in(whole) {
        if offered(&name) {
            let call = Call { id: "call_1".to_owned(), name, arguments: Arguments::Object(arguments) };
            return Some(Written::Call(call));
        }
        // JSON that a person asked for may have a name, too.
        let is_marked = whole != text || ["\"arguments\"", "\"parameters\""].iter().any(|field| whole.contains(field));
        return is_marked.then_some(Written::Unknown(name));
    }
    let marked = MARKS.iter().filter(|(begin, _)| !begin.is_empty()).find_map(|(begin, end)| {
        let inside = text.split_once(begin)?.1;
        let inside = if end.is_empty() { inside } else { inside.split_once(end)?.0 };
        call_in(inside.trim()).filter(|(name, _)| offered(name))
    });
    marked.map(|(name, _)| Written::Mentioned(name))
}

/// The text without what stands around it.
fn unwrapped(text: &str) -> &str {
    let mut text = text;
    // A fence may stand around a tag, or the other way round.
    for _ in 0..2 {
        let inside = MARKS.iter().find_map(|(begin, end)| {
            let inside = text.strip_prefix(begin)?;
            // A model that stops at the end of a call leaves the closing mark out.
            Some(inside.trim().strip_suffix(end).unwrap_or(inside).trim())
        });
        match inside {
            Some(inside) => text = inside,
            None => break,
        }
    }
    text
}

/// The call that a text is, in any of the forms models write.
fn call_in(text: &str) -> Option<(String, Map<String, Value>)> {
    let value = parsed(text)?;
    let value = match value {
        Value::Array(mut list) if list.len() == 1 => list.pop()?,
        other => other,
    };
    let value = value.get("function").filter(|inside| inside.is_object()).cloned().unwrap_or(value);
    let name = ["name", "tool", "tool_name", "function"].iter().find_map(|field| value.get(field)?.as_str())?;
    let arguments = ["arguments", "parameters", "args", "input"].iter().find_map(|field| value.get(field));
    let arguments = match arguments {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map.clone(),
        Some(Value::String(text)) => match Arguments::parse(text) {
            Arguments::Object(map) => map,
            Arguments::Broken(_) => return None,
        },
        Some(_) => return None,
    };
    Some((name.to_owned(), arguments))
}

/// The JSON of a text; some templates teach models to double the outer braces.
fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| {
        let inner = text.strip_prefix("{{")?.strip_suffix("}}")?;
        let single = |text: String| serde_json::from_str(&text).ok();
        single(format!("{{{inner}}}")).or_else(|| single(text.replace("{{", "{").replace("}}", "}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn look(text: &str) -> Option<Written> {
        find(text, &|name| name == "shell")
    }

    #[test]
    fn an_answer_that_is_one_call_is_that_call() {
        let call = json!({"name": "shell", "arguments": {"command": "ls"}}).to_string();
        let arguments = json!({"command": "ls"}).as_object().unwrap().clone();
        let expected =
            Written::Call(Call { id: "call_1".into(), name: "shell".into(), arguments: Arguments::Object(arguments) });
        for text in [
            call.clone(),
            format!(" \n{call}\n"),
            format!("```json\n{call}\n```"),
            format!("```\n{call}\n```"),
            format!("<tool_call>\n{call}\n</tool_call>"),
            format!("<tool_call>{call}"),
            format!("<tools>{call}</tools>"),
            format!("```json\n<tool_call>{call}</tool_call>\n```"),
            format!("[TOOL_CALLS][{call}]"),
            format!("<|python_tag|>{call}"),
            format!("{{{call}}}"),
            call.replace('{', "{{").replace('}', "}}"),
            json!({"type": "function", "function": {"name": "shell", "arguments": "{\"command\":\"ls\"}"}}).to_string(),
            json!({"tool": "shell", "parameters": {"command": "ls"}}).to_string(),
        ] {
            assert_eq!(look(&text), Some(expected.clone()), "{text}");
        }
    }

    #[test]
    fn what_may_become_a_call_is_known_by_its_beginning() {
        for text in ["", " ", "`", "```", "```json\n{", "{\"name\"", "<tool", "<tool_call>{", "[TOOL"] {
            assert!(may_begin(text), "{text}");
        }
        for text in ["Sure", "```rust", "<p>", "[1]", "I call {"] {
            assert!(!may_begin(text), "{text}");
        }
    }

    #[test]
    fn a_call_amid_other_words_is_only_named() {
        let call = json!({"name": "shell", "arguments": {}}).to_string();
        for text in [format!("I would run this:\n```json\n{call}\n```"), format!("Sure. <tool_call>{call}</tool_call>")]
        {
            assert_eq!(look(&text), Some(Written::Mentioned("shell".into())), "{text}");
        }
    }

    #[test]
    fn what_is_no_call_of_an_offered_tool_is_text() {
        for text in [
            "no braces at all",
            "{\"name\": \"launch\"}",
            "{\"name\": \"shell\", \"arguments\": [1]}",
            "{\"name\": \"shell\", \"arguments\": \"broken {\"}",
            "[{\"name\": \"shell\"}, {\"name\": \"shell\"}]",
            "{\"answer\": 42}",
            "{{}}",
            "use {\"name\": \"shell\"} for that",
        ] {
            assert_eq!(look(text), None, "{text}");
        }
    }

    #[test]
    fn a_call_of_a_tool_that_is_not_offered_is_named() {
        for text in [r#"{"name": "launch", "arguments": {}}"#, r#"<tool_call>{"name": "launch"}</tool_call>"#] {
            assert_eq!(look(text), Some(Written::Unknown("launch".to_owned())), "{text}");
        }
    }
}
