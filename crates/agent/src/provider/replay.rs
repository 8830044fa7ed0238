//! Replays a recorded conversation as the model: deterministic, offline, and with checks of the questions.
//!
//! The file is JSON Lines, one line per answer: `{"content": "…", "tool_calls": [{"id", "name", "arguments"}], "usage":
//! {…}}`. Empty lines and lines that begin with `#` are skipped. An optional `expect` object asserts on the question:
//! `last` (text that the last message contains), `role` (of the last message), `contains` (text, or a list of texts,
//! that some message contains), `absent` (text that no message contains), `tools` (the exact names on offer, in any
//! order), `messages` (how many). `error` in place of an answer makes the model fail with that text. `reasoning` is
//! what the model thought, and `finish: "length"` says that it ran into its limit of tokens.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ollm_store::read_bounded;
use serde_json::{Map, Value};

use super::{CutReason, Model, ModelAnswer, ModelError, Piece, Question, tokens};
use crate::message::{Message, calls_from};

/// The largest file that is read.
const LARGEST: u64 = 64 << 20;

/// The fields of a line.
const FIELDS: &[&str] = &["content", "tool_calls", "usage", "expect", "error", "reasoning", "finish"];
/// The fields of a call.
const CALL_FIELDS: &[&str] = &["id", "name", "arguments"];

/// A model whose answers come from a file.
#[derive(Debug)]
pub struct Replay {
    file: PathBuf,
    name: String,
    lines: Vec<(usize, Map<String, Value>)>,
    next: usize,
}

impl Replay {
    /// Reads a replay file whole.
    pub fn open(file: &Path) -> Result<Replay, ModelError> {
        let bytes = read_bounded(file, LARGEST)?.ok_or_else(|| missing(file))?;
        let text = String::from_utf8(bytes).map_err(|_| wrong(file, 1, "it is not UTF-8"))?;
        Replay::parse(file, &text)
    }

    /// A replay of the text of such a file; messages use `file` as its name.
    pub fn parse(file: &Path, text: &str) -> Result<Replay, ModelError> {
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            if !line.trim().is_empty() && !line.starts_with('#') {
                lines.push((at + 1, answer_line(file, at + 1, line)?));
            }
        }
        let name = format!("replay:{}", file.display());
        Ok(Replay { file: file.to_owned(), name, lines, next: 0 })
    }
}

impl Model for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn answer(&mut self, question: &Question<'_>, hear: &mut dyn FnMut(Piece<'_>)) -> Result<ModelAnswer, ModelError> {
        if question.cancel.is_set() {
            return Err(ModelError::Cancelled);
        }
        let Some((line, fields)) = self.lines.get(self.next) else {
            let last = self.lines.last().map_or(1, |(line, _)| *line);
            let why = format!("the file has no answer left after {}; add a line", self.lines.len());
            return Err(wrong(&self.file, last, why));
        };
        self.next += 1;
        if let Some(expected) = fields.get("expect") {
            check(expected, question).map_err(|why| wrong(&self.file, *line, why))?;
        }
        if let Some(error) = fields.get("error") {
            let why = error.as_str().unwrap_or("an error").to_owned();
            return Err(ModelError::Dropped { url: self.name.clone(), why });
        }
        let mut answer = read(fields);
        if answer.content.len() > question.most {
            answer.content.truncate(answer.content.floor_char_boundary(question.most));
            answer.cut = Some(CutReason::Bytes);
        }
        if !answer.reasoning.is_empty() {
            hear(Piece::Thought(&answer.reasoning));
        }
        if !answer.content.is_empty() {
            hear(Piece::Text(&answer.content));
        }
        Ok(answer)
    }
}

fn read(fields: &Map<String, Value>) -> ModelAnswer {
    let usage = fields.get("usage").cloned();
    let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    ModelAnswer {
        content: text("content"),
        reasoning: text("reasoning"),
        calls: calls_from(&Value::Object(fields.clone())),
        tokens: usage.as_ref().and_then(tokens),
        usage,
        cut: (text("finish") == "length").then_some(CutReason::Length),
    }
}

fn answer_line(file: &Path, number: usize, line: &str) -> Result<Map<String, Value>, ModelError> {
    let fields: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| wrong(file, number, format!("no JSON object: {error}")))?;
    if let Some(unknown) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(wrong(file, number, format!("unknown field `{unknown}`; known are {}", FIELDS.join(", "))));
    }
    for field in ["content", "reasoning"] {
        if fields.get(field).is_some_and(|content| !content.is_string() && !content.is_null()) {
            return Err(wrong(file, number, format!("`{field}` is not text")));
        }
    }
    if fields.get("finish").is_some_and(|finish| finish != "length" && finish != "stop") {
        return Err(wrong(file, number, "`finish` is `stop` or `length`"));
    }
    match fields.get("tool_calls") {
        None | Some(Value::Null) => {}
        Some(Value::Array(calls)) if calls.iter().all(|call| call.get("name").is_some_and(Value::is_string)) => {}
        Some(_) => return Err(wrong(file, number, "`tool_calls` is not a list of calls with a `name`")),
    }
    let calls = fields.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let mut keys = calls.filter_map(Value::as_object).flat_map(|call| call.keys());
    if let Some(unknown) = keys.find(|key| !CALL_FIELDS.contains(&key.as_str())) {
        let known = CALL_FIELDS.join(", ");
        return Err(wrong(file, number, format!("unknown field `{unknown}` in `tool_calls`; known are {known}")));
    }
    Ok(fields)
}

/// Checks whether the question is as expected.
fn check(expected: &Value, question: &Question<'_>) -> Result<(), String> {
    let map = expected.as_object().ok_or("`expect` is not an object")?;
    let last = question.messages.last();
    for (field, value) in map {
        match field.as_str() {
            "last" => holds(last.map_or("", Message::content), value, "the last message")?,
            "role" => same(last.map_or("", Message::role), value, "the last message's role")?,
            "contains" => each(value, |text| {
                if said(question, text) {
                    Ok(())
                } else {
                    Err(format!("expected some message to contain {text:?}; none does"))
                }
            })?,
            "absent" => each(value, |text| {
                if said(question, text) {
                    Err(format!("expected no message to contain {text:?}; one does"))
                } else {
                    Ok(())
                }
            })?,
            "tools" => tools(question, value)?,
            "messages" if value.as_u64() == Some(question.messages.len() as u64) => {}
            "messages" => return Err(format!("expected {value} messages, got {}", question.messages.len())),
            unknown => {
                return Err(format!(
                    "`expect` knows last, role, contains, absent, tools and messages, not `{unknown}`"
                ));
            }
        }
    }
    Ok(())
}

fn said(question: &Question<'_>, text: &str) -> bool {
    question.messages.iter().any(|message| message.content().contains(text))
}

fn each(value: &Value, check: impl Fn(&str) -> Result<(), String>) -> Result<(), String> {
    match value {
        Value::String(text) => check(text),
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).try_for_each(check),
        other => Err(format!("expected a text or a list of texts, got {other}")),
    }
}

fn holds(text: &str, value: &Value, what: &str) -> Result<(), String> {
    each(value, |part| {
        if text.contains(part) {
            Ok(())
        } else {
            Err(format!("expected {what} to contain {part:?}, got {:?}", ollm_store::cut(text, 500)))
        }
    })
}

fn same(text: &str, value: &Value, what: &str) -> Result<(), String> {
    if value.as_str() == Some(text) { Ok(()) } else { Err(format!("expected {what} to be {value}, got {text:?}")) }
}

fn tools(question: &Question<'_>, value: &Value) -> Result<(), String> {
    let offered: BTreeSet<&str> = question.tools.iter().map(|tool| tool.name.as_str()).collect();
    let expected: BTreeSet<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if offered == expected { Ok(()) } else { Err(format!("expected the tools {expected:?}, got {offered:?}")) }
}

fn missing(file: &Path) -> ModelError {
    wrong(file, 1, "there is no such file")
}

fn wrong(file: &Path, line: usize, why: impl Into<String>) -> ModelError {
    ModelError::Replay { file: file.to_owned(), line, why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cancel;

    fn ask(replay: &mut Replay, messages: &[Message]) -> Result<ModelAnswer, ModelError> {
        let question = Question { messages, tools: &[], most: 1000, cancel: &Cancel::default() };
        replay.answer(&question, &mut |_| {})
    }

    fn parse(text: &str) -> Result<Replay, ModelError> {
        Replay::parse(Path::new("talk.jsonl"), text)
    }

    #[test]
    fn answers_come_line_by_line_and_then_no_more() {
        let text = "# a talk\n{\"content\": \"a\", \"usage\": {\"total_tokens\": 3}}\n\n{\"tool_calls\": [{\"name\": \"todo\"}]}\n";
        let mut replay = parse(text).unwrap();
        let first = ask(&mut replay, &[]).unwrap();
        assert_eq!((first.content.as_str(), first.tokens), ("a", Some(3)));
        assert_eq!(ask(&mut replay, &[]).unwrap().calls[0].id, "call_1");
        let over = ask(&mut replay, &[]).unwrap_err().to_string();
        assert!(over.starts_with("talk.jsonl:4: the file has no answer left"), "{over}");
    }

    #[test]
    fn a_question_that_is_not_as_expected_fails_with_its_line() {
        for (expect, fits) in [
            (r#"{"last": "hel", "role": "user", "messages": 1, "tools": []}"#, true),
            (r#"{"contains": ["hello"], "absent": "bye"}"#, true),
            (r#"{"last": "bye"}"#, false),
            (r#"{"role": "tool"}"#, false),
            (r#"{"absent": "hello"}"#, false),
            (r#"{"contains": "bye"}"#, false),
            (r#"{"tools": ["shell"]}"#, false),
            (r#"{"messages": 2}"#, false),
            (r#"{"wrong": 2}"#, false),
        ] {
            let mut replay = parse(&format!("{{\"content\": \"a\", \"expect\": {expect}}}")).unwrap();
            let result = ask(&mut replay, &[Message::User("hello".into())]);
            assert_eq!(result.is_ok(), fits, "{expect}: {result:?}");
        }
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, what) in [
            ("{", "no JSON object"),
            ("{\"contents\": 1}", "unknown field `contents`"),
            ("{\"content\": 1}", "`content` is not text"),
            ("{\"tool_calls\": [{}]}", "`tool_calls` is not a list"),
            ("{\"tool_calls\": [{\"name\": \"shell\", \"args\": {}}]}", "unknown field `args` in `tool_calls`"),
        ] {
            let error = parse(&format!("{{\"content\": \"fine\"}}\n{text}")).unwrap_err().to_string();
            assert!(error.starts_with("talk.jsonl:2: ") && error.contains(what), "{error}");
        }
    }

    #[test]
    fn a_long_answer_is_cut_at_a_character() {
        let mut replay = parse(&format!("{{\"content\": \"{}\"}}", "é".repeat(1000))).unwrap();
        let answer = ask(&mut replay, &[]).unwrap();
        assert_eq!((answer.content.len(), answer.cut), (1000, Some(CutReason::Bytes)));
    }
}
