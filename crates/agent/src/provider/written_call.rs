//! Finds calls that a model wrote as text, because its template or its server does not support tool calls.
//!
//! If an answer consists only of calls of offered tools, it counts as these calls. A call among other text stays text:
//! it may be an example, and a model that explains a tool must not run it.

use ollm_protocol::Tool;
use serde_json::{Map, Value};

use crate::message::{Arguments, Call};

mod python;

/// The marks around calls.
const MARKS: &[(&str, &str)] = &[
    ("<tool_call>", "</tool_call>"),
    ("<tools>", "</tools>"),
    ("<function_call>", "</function_call>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<tool_use>", "</tool_use>"),
    ("<TOOLCALL>", "</TOOLCALL>"),
    ("<|tool_call_start|>", "<|tool_call_end|>"),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("<|python_tag|>", ""),
    ("[TOOL_CALLS]", ""),
    ("functools", ""),
];
/// The fence around code, and the languages that may hold calls.
const FENCE: &str = "```";
const LANGUAGES: &[&str] = &["json", "tool_call", "tool_code", "python", "py", "xml"];
/// The beginning of a call whose mark contains the tool's name.
const FUNCTION: &str = "<function=";
const PARAMETER: &str = "<parameter=";
/// The text between a tool's name and its arguments in Mistral's form.
const ARGS: &str = "[ARGS]";
/// An answer with such a beginning is meant as a call, readable or not.
const MEANT: &[&str] =
    &["<tool_call>", "<function", "[TOOL_CALLS]", "<|tool_call|>", "<|python_tag|>", "functools[", "{'name'"];
/// End marks of answers; servers that do not know a model's mark pass it on.
const ENDS: &[&str] = &["<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "</s>"];
/// How much of an answer is searched for the names of a tool and its arguments.
const BEGINNING: usize = 400;
/// How deep marks may be nested, and how many are examined among other text.
const DEEPEST: usize = 3;
const MOST_MARKS: usize = 20;

/// The meaning of an answer with written calls.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WrittenAnswer {
    /// The answer is these calls and nothing else.
    Calls(Vec<Call>),
    /// The answer mentions a call of this tool among other text.
    Mentioned(String),
    /// The answer is a call of this tool, which is not offered.
    Unknown(String),
    /// The answer is meant as a call, but cannot be read.
    Unreadable,
    /// The answer looks like a call of this tool in an unknown form.
    Resembling(String),
}

/// A call in its written form.
struct WrittenCall {
    name: String,
    arguments: Map<String, Value>,
    /// Whether the arguments have their own field. Otherwise they are all fields except the tool's name.
    is_explicit: bool,
}

/// Whether an answer that begins like this may turn out to be a call.
pub(crate) fn may_begin(text: &str, tools: &[Tool]) -> bool {
    let text = text.trim_start();
    let fits = |mark: &str| mark.starts_with(text) || text.starts_with(mark);
    if let Some(code) = text.strip_prefix(FENCE) {
        let (language, inside) = language_of(code);
        return match inside {
            "" => LANGUAGES.iter().any(|known| known.starts_with(&language)),
            inside => is_known(&language) && may_begin(inside, tools),
        };
    }
    let opens_list =
        text.strip_prefix('[').is_some_and(|list| matches!(list.trim_start().chars().next(), None | Some('{')));
    let listed = text.strip_prefix('[').map_or(text, str::trim_start);
    let is_named = |tool: &Tool| match listed.strip_prefix(tool.name.as_str()) {
        Some(behind) => behind.is_empty() || behind.starts_with('('),
        None => tool.name.starts_with(listed),
    };
    FENCE.starts_with(text)
        || opens_list
        || tools.iter().any(is_named)
        || text.starts_with('{')
        || fits(FUNCTION)
        || MARKS.iter().any(|(mark, _)| fits(mark))
}

/// Searches an answer's text for calls.
pub(crate) fn find(content: &str, tools: &[Tool]) -> Option<WrittenAnswer> {
    let mut text = content.trim();
    while let Some(before) = ENDS.iter().find_map(|end| text.strip_suffix(end)) {
        text = before.trim_end();
    }
    let reader = CallReader { tools };
    let is_offered = |call: &&WrittenCall| reader.tool(&call.name).is_some();
    match reader.sequence(text, 0) {
        (calls, rest) if !calls.is_empty() && rest.trim().is_empty() => {
            // JSON that a person asked for may also contain tool names.
            let is_marked = !text.starts_with(['{', '[']) || text.starts_with("[TOOL_CALLS]");
            let is_explicit = is_marked || calls.iter().all(|call| call.is_explicit);
            match calls.iter().find(|call| !is_offered(call)) {
                Some(unknown) => is_explicit.then(|| WrittenAnswer::Unknown(unknown.name.clone())),
                None => (is_explicit || calls.len() == 1).then(|| WrittenAnswer::Calls(reader.numbered(calls))),
            }
        }
        _ => {
            let marks = MARKS.iter().map(|(mark, _)| *mark).chain([FENCE, FUNCTION]);
            let mut places = marks.flat_map(|mark| text.match_indices(mark).take(MOST_MARKS));
            let mentioned = places.find_map(|(at, _)| {
                let (calls, _) = reader.piece(text.get(at..)?, 0)?;
                calls.iter().find(is_offered).map(|call| call.name.clone())
            });
            let is_meant = MEANT.iter().any(|mark| text.starts_with(mark)) || text.starts_with("```tool_c");
            let other = if is_meant {
                Some(WrittenAnswer::Unreadable)
            } else {
                reader.resembled(text).map(WrittenAnswer::Resembling)
            };
            mentioned.map(WrittenAnswer::Mentioned).or(other)
        }
    }
}

/// Reads calls in any of the forms that models write. Every step returns what it read, and the text after it.
struct CallReader<'a> {
    tools: &'a [Tool],
}

type Read<'t> = Option<(Vec<WrittenCall>, &'t str)>;

impl CallReader<'_> {
    fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The calls with ids. If a call has no field for its arguments, only the fields that the tool takes are kept.
    fn numbered(&self, calls: Vec<WrittenCall>) -> Vec<Call> {
        let takes = |call: &WrittenCall, name: &str| self.property(&call.name, name).is_some();
        let numbered = calls.into_iter().enumerate().map(|(at, mut call)| {
            let mut arguments = std::mem::take(&mut call.arguments);
            arguments.retain(|name, _| call.is_explicit || takes(&call, name));
            Call { id: format!("call_{}", at + 1), name: call.name, arguments: Arguments::Object(arguments) }
        });
        numbered.collect()
    }

    /// The schema of an argument.
    fn property(&self, tool: &str, name: &str) -> Option<&Value> {
        self.tool(tool)?.input.0.get("properties")?.get(name)
    }

    /// All calls that directly follow one another.
    fn sequence<'t>(&self, text: &'t str, depth: usize) -> (Vec<WrittenCall>, &'t str) {
        let (mut calls, mut rest) = (Vec::new(), text);
        let is_between = |char: char| char.is_whitespace() || matches!(char, ',' | ';');
        while let Some((more, behind)) = self.piece(rest.trim_start_matches(is_between), depth) {
            calls.extend(more);
            rest = behind;
        }
        (calls, rest)
    }

    /// The calls inside one mark, or of one JSON value.
    fn piece<'t>(&self, text: &'t str, depth: usize) -> Read<'t> {
        if depth > DEEPEST {
            return None;
        }
        if let Some(inside) = text.strip_prefix(FUNCTION) {
            return self.function(inside);
        }
        if let Some(code) = text.strip_prefix(FENCE) {
            let (language, inside) = language_of(code);
            return if is_known(&language) { self.inside(inside, FENCE, depth) } else { None };
        }
        let marked = MARKS.iter().find_map(|(begin, end)| Some((text.strip_prefix(begin)?, *end)));
        if let Some((inside, end)) = marked {
            return self.inside(inside, end, depth);
        }
        let json = if text.starts_with(['{', '[']) { json_calls(text, depth > 0) } else { None };
        let named = || if depth > 0 { named(text) } else { None };
        json.or_else(named).or_else(|| self.python(text))
    }

    /// `NAME(ARGUMENT=VALUE, …)`, or a list of such calls. Only for offered tools, because other text has this form,
    /// too.
    fn python<'t>(&self, text: &'t str) -> Read<'t> {
        if let Some(list) = text.strip_prefix('[') {
            let (mut calls, mut rest) = (Vec::new(), list);
            while let Some((more, behind)) =
                self.python(rest.trim_start()).filter(|_| !rest.trim_start().starts_with('['))
            {
                calls.extend(more);
                rest = behind.trim_start();
                rest = rest.strip_prefix(',').unwrap_or(rest);
            }
            return rest.strip_prefix(']').filter(|_| !calls.is_empty()).map(|rest| (calls, rest));
        }
        let (name, arguments, rest) = python::call(text)?;
        self.tool(name)?;
        Some((vec![WrittenCall { name: name.to_owned(), arguments, is_explicit: true }], rest))
    }

    /// The tool that an answer in an unknown form seems to call: the answer begins like code, and names the tool and
    /// one of its arguments.
    fn resembled(&self, text: &str) -> Option<String> {
        let code = match text.strip_prefix(FENCE).map(language_of) {
            Some((language, inside)) if is_known(&language) => inside,
            _ => text,
        };
        let begin = if code.starts_with(['<', '[', '{']) { code } else { code.get(code.find("Action:")?..)? };
        let begin = begin.get(..begin.floor_char_boundary(BEGINNING))?;
        let names = |word: &str| {
            let is_word = |char: char| char.is_alphanumeric() || char == '_';
            begin.match_indices(word).any(|(at, _)| {
                let (before, behind) = (begin.get(..at), begin.get(at + word.len()..));
                !before.is_some_and(|before| before.ends_with(is_word))
                    && !behind.is_some_and(|behind| behind.starts_with(is_word))
            })
        };
        let takes = |tool: &&Tool| {
            let arguments = tool.input.0.get("properties").and_then(Value::as_object);
            arguments.is_some_and(|arguments| arguments.keys().any(|argument| names(argument)))
        };
        self.tools.iter().filter(|tool| names(&tool.name)).find(takes).map(|tool| tool.name.clone())
    }

    /// The calls after an opening mark. A model that stops at the end of a call omits the closing mark.
    fn inside<'t>(&self, text: &'t str, end: &str, depth: usize) -> Read<'t> {
        let (calls, rest) = self.sequence(text, depth + 1);
        let rest = rest.trim_start();
        (!calls.is_empty()).then(|| (calls, rest.strip_prefix(end).unwrap_or(rest)))
    }

    /// `NAME>`, then the arguments as JSON or one by one, then the closing mark.
    fn function<'t>(&self, text: &'t str) -> Read<'t> {
        let (name, inside) = text.split_once('>')?;
        let inside = inside.trim_start();
        let (arguments, rest) = if inside.starts_with('{') {
            let (value, rest) = json_value(inside, true)?;
            (value.as_object()?.clone(), rest)
        } else {
            self.parameters(name, inside)?
        };
        let rest = rest.trim_start();
        let rest = rest.strip_prefix("</function>").unwrap_or(rest);
        Some((vec![WrittenCall { name: name.trim().to_owned(), arguments, is_explicit: true }], rest))
    }

    /// Arguments as text; those with another type in the tool's schema are parsed as JSON.
    fn parameters<'t>(&self, name: &str, text: &'t str) -> Option<(Map<String, Value>, &'t str)> {
        let (mut arguments, mut rest) = (Map::new(), text);
        while let Some(inside) = rest.strip_prefix(PARAMETER) {
            let (field, inside) = inside.split_once('>')?;
            let (value, behind) = inside.split_once("</parameter>")?;
            let value = value.strip_prefix('\n').unwrap_or(value);
            let value = value.strip_suffix('\n').unwrap_or(value);
            let is_text =
                self.property(name, field).is_none_or(|schema| schema.get("type").is_some_and(|kind| kind == "string"));
            let read = if is_text { None } else { serde_json::from_str(value.trim()).ok() };
            arguments.insert(field.to_owned(), read.unwrap_or_else(|| value.into()));
            rest = behind.trim_start();
        }
        (rest.len() < text.len() || rest.starts_with("</function>")).then_some((arguments, rest))
    }
}

/// `NAME[ARGS]{…}`.
fn named(text: &str) -> Read<'_> {
    let (name, inside) = text.split_once(ARGS)?;
    let is_name =
        !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.'));
    let (value, rest) = json_value(inside.trim_start(), true).filter(|_| is_name)?;
    let arguments = value.as_object()?.clone();
    Some((vec![WrittenCall { name: name.to_owned(), arguments, is_explicit: true }], rest))
}

/// The calls of one JSON value: one call, or a list of calls.
fn json_calls(text: &str, is_marked: bool) -> Read<'_> {
    let (value, rest) = json_value(text, is_marked)?;
    let calls = match value.get("tool_calls").cloned().unwrap_or(value) {
        Value::Array(list) => list.into_iter().map(call_of).collect::<Option<Vec<_>>>()?,
        value => vec![call_of(value)?],
    };
    (!calls.is_empty()).then_some((calls, rest))
}

/// The call of a JSON value, with any of the field names that models use.
fn call_of(value: Value) -> Option<WrittenCall> {
    let wrapped =
        ["function", "function_call"].iter().find_map(|field| value.get(field).filter(|inside| inside.is_object()));
    let value = wrapped.cloned().unwrap_or(value);
    let names = ["name", "tool", "tool_name", "function", "action"];
    let (field, name) = names.iter().find_map(|field| Some((*field, value.get(field)?.as_str()?)))?;
    let arguments =
        ["arguments", "parameters", "args", "input", "action_input"].iter().find_map(|field| value.get(field));
    let is_explicit = arguments.is_some();
    let arguments = match arguments {
        // Any JSON object may have a name, but only a call has arguments.
        None if field == "name" => Map::new(),
        None => {
            let mut beside = value.as_object()?.clone();
            beside.shift_remove(field);
            beside
        }
        Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map.clone(),
        Some(Value::String(text)) => match Arguments::parse(text) {
            Arguments::Object(map) => map,
            Arguments::Broken(_) => return None,
        },
        Some(_) => return None,
    };
    Some(WrittenCall { name: name.to_owned(), arguments, is_explicit })
}

/// The JSON value at the beginning of a text. Some templates teach models to double the braces, and some models omit
/// the last brace; inside a mark, its place is clear. Many models write line breaks in strings without escapes.
fn json_value(text: &str, is_marked: bool) -> Option<(Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if let Some(Ok(value)) = values.next() {
        return Some((value, text.get(values.byte_offset()..).unwrap_or_default()));
    }
    let ends = MARKS.iter().map(|(_, end)| *end).chain([FENCE, "</function>"]).filter(|end| !end.is_empty());
    let end = ends.filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    let (body, rest) = text.split_at_checked(end)?;
    let body = body.trim_end();
    let read = |text: String| serde_json::from_str(&with_escapes(&text)).ok();
    let value = match body.strip_prefix("{{").and_then(|inner| inner.strip_suffix("}}")) {
        Some(inner) => read(format!("{{{inner}}}")).or_else(|| read(body.replace("{{", "{").replace("}}", "}"))),
        None => read(body.to_owned()).or_else(|| if is_marked { read(format!("{body}}}")) } else { None }),
    };
    Some((value?, rest))
}

/// JSON with the line breaks and tabs inside its strings escaped.
fn with_escapes(json: &str) -> String {
    let (mut escaped, mut in_string, mut after_backslash) = (String::with_capacity(json.len()), false, false);
    for char in json.chars() {
        in_string ^= char == '"' && !after_backslash;
        after_backslash = char == '\\' && !after_backslash;
        match char {
            '\n' if in_string => escaped.push_str("\\n"),
            '\r' if in_string => escaped.push_str("\\r"),
            '\t' if in_string => escaped.push_str("\\t"),
            char => escaped.push(char),
        }
    }
    escaped
}

/// The language after a fence, in small letters, and the code.
fn language_of(code: &str) -> (String, &str) {
    let end = code.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(code.len());
    let (language, inside) = code.split_at_checked(end).unwrap_or((code, ""));
    (language.to_lowercase(), inside.trim_start())
}

fn is_known(language: &str) -> bool {
    language.is_empty() || LANGUAGES.contains(&language)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ollm_protocol::ToolSchema;
    use serde_json::json;

    fn shell() -> Tool {
        let schema =
            json!({"type": "object", "properties": {"command": {"type": "string"}, "times": {"type": "integer"}}});
        let input = ToolSchema(schema.as_object().unwrap().clone());
        Tool { name: "shell".into(), description: String::new(), input, output: None, read_only: false }
    }

    fn look(text: &str) -> Option<WrittenAnswer> {
        find(text, &[shell()])
    }

    /// Calls of the shell with these arguments.
    fn calls(arguments: &[Value]) -> WrittenAnswer {
        let call = |(at, arguments): (usize, &Value)| Call {
            id: format!("call_{}", at + 1),
            name: "shell".into(),
            arguments: Arguments::Object(arguments.as_object().unwrap().clone()),
        };
        WrittenAnswer::Calls(arguments.iter().enumerate().map(call).collect())
    }

    #[test]
    fn an_answer_that_is_one_call_is_that_call() {
        let call = json!({"name": "shell", "arguments": {"command": "ls"}}).to_string();
        for text in [
            call.clone(),
            format!(" \n{call}\n"),
            format!("```json\n{call}\n```"),
            format!("```JSON\n{call}\n```"),
            format!("```python\n{call}\n```"),
            format!("```\n{call}\n```"),
            format!("<tool_call>\n{call}\n</tool_call>"),
            format!("<tool_call>{call}"),
            format!("<tools>{call}</tools>"),
            format!("```json\n<tool_call>{call}</tool_call>\n```"),
            format!("[TOOL_CALLS][{call}]"),
            format!("[TOOL_CALLS] [{call}]"),
            "[TOOL_CALLS]shell[ARGS]{\"command\": \"ls\"}".to_owned(),
            format!("<|python_tag|>{call}"),
            format!("functools[{call}]"),
            format!("[{call}]"),
            format!("{{{call}}}"),
            call.replace('{', "{{").replace('}', "}}"),
            format!("<tool_call>{}</tool_call>", call.strip_suffix('}').unwrap()),
            format!("<tool_call>{}", call.strip_suffix('}').unwrap()),
            json!({"type": "function", "function": {"name": "shell", "arguments": "{\"command\":\"ls\"}"}}).to_string(),
            json!({"tool": "shell", "parameters": {"command": "ls"}}).to_string(),
            json!({"tool_calls": [{"name": "shell", "arguments": {"command": "ls"}}]}).to_string(),
            json!({"function_call": {"name": "shell", "arguments": "{\"command\": \"ls\"}"}}).to_string(),
            json!({"action": "shell", "action_input": {"command": "ls"}}).to_string(),
            json!({"tool": "shell", "command": "ls", "why": "to look"}).to_string(),
            format!("{call}<|im_end|>\n<|endoftext|>"),
            format!("<tool_call>{call}</tool_call></s>"),
            format!("<tool_calls>[{call}]</tool_calls>"),
            format!("<TOOLCALL>[{call}]</TOOLCALL>"),
            "shell(command=\"ls\")".to_owned(),
            "[shell(command='ls')]".to_owned(),
            "```tool_code\nshell(command=\"ls\")\n```".to_owned(),
            "<|python_tag|>shell(command=\"ls\")".to_owned(),
            "<|tool_call_start|>[shell(command=\"ls\")]<|tool_call_end|>".to_owned(),
            "<function=shell>{\"command\": \"ls\"}</function>".to_owned(),
            "<tool_call>\n<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>"
                .to_owned(),
            "<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>"
                .to_owned()
                .replace("\n</tool_call>", ""),
        ] {
            assert_eq!(look(&text), Some(calls(&[json!({"command": "ls"})])), "{text}");
        }
    }

    #[test]
    fn an_answer_that_is_nothing_but_calls_is_all_of_them() {
        let arguments = [json!({"command": "ls"}), json!({"command": "echo '```' </tool_call>"})];
        let [one, two] =
            arguments.clone().map(|arguments| json!({"name": "shell", "arguments": arguments}).to_string());
        for text in [
            format!("[{one}, {two}]"),
            format!("{one}\n{two}"),
            format!("{one}; {two}"),
            format!("<tool_call>{one}</tool_call>\n<tool_call>\n{two}\n</tool_call>"),
            format!("<tool_call>{one}\n{two}</tool_call>"),
            format!("```json\n{one}\n```\n```json\n{two}\n```"),
            format!("[TOOL_CALLS]shell[ARGS]{}[TOOL_CALLS]shell[ARGS]{}", arguments[0], arguments[1]),
            "[shell(command=\"ls\"), shell(command=\"echo '```' </tool_call>\")]".to_owned(),
            "shell(command='ls')\nshell(command='echo \\'```\\' </tool_call>')".to_owned(),
        ] {
            assert_eq!(look(&text), Some(calls(&arguments)), "{text}");
        }
    }

    #[test]
    fn a_text_with_lines_of_its_own_is_read() {
        let arguments = json!({"command": "cat <<X\n\ta \\ \"b\"\nX"});
        let text = "{\"name\": \"shell\",\n \"arguments\": {\"command\": \"cat <<X\n\ta \\\\ \\\"b\\\"\nX\"}}";
        for text in [text.to_owned(), format!("<tool_call>{text}</tool_call>")] {
            assert_eq!(look(&text), Some(calls(std::slice::from_ref(&arguments))), "{text}");
        }
    }

    #[test]
    fn parameters_are_read_by_the_schema_of_the_tool() {
        let text = "<function=shell>\n<parameter=command>\n 42\nx\n</parameter>\n<parameter=times>\n3\n</parameter>\n</function>";
        assert_eq!(look(text), Some(calls(&[json!({"command": " 42\nx", "times": 3})])));
    }

    #[test]
    fn what_may_become_a_call_is_known_by_its_beginning() {
        for text in [
            "",
            " ",
            "`",
            "```",
            "```json\n{",
            "```JSON",
            "```\n[",
            "{\"name\"",
            "<tool",
            "<tool_call>{",
            "[TOOL",
            "[",
            "[ {",
            "<function=sh",
            "functools[{",
            "func",
            "```py",
            "sh",
            "shell",
            "shell(com",
            "[shell(",
            "```tool_code\nshell(",
        ] {
            assert!(may_begin(text, &[shell()]), "{text}");
        }
        for text in [
            "Sure",
            "```rust",
            "```python\nprint",
            "```\ncargo",
            "<p>",
            "[1]",
            "I call {",
            "function",
            "shells",
            "shell it",
        ] {
            assert!(!may_begin(text, &[shell()]), "{text}");
        }
    }

    #[test]
    fn a_call_amid_other_words_is_only_named() {
        let call = json!({"name": "shell", "arguments": {}}).to_string();
        for text in [
            format!("I would run this:\n```json\n{call}\n```"),
            format!("Sure. <tool_call>{call}</tool_call>"),
            "Sure. <function=shell>{}</function>".to_owned(),
            format!("<tool_call>{call}</tool_call> And then?"),
        ] {
            assert_eq!(look(&text), Some(WrittenAnswer::Mentioned("shell".into())), "{text}");
        }
    }

    #[test]
    fn what_is_meant_as_a_call_and_cannot_be_read_is_named() {
        for text in [
            "<tool_call>shell ls</tool_call>",
            "[TOOL_CALLS]shell",
            "```tool_code\nshell(\"ls\")\n```",
            "{'name': 'shell', 'arguments': {}}",
            &"<tool_call>".repeat(100_000),
        ] {
            assert_eq!(look(text), Some(WrittenAnswer::Unreadable), "{}", ollm_store::cut(text, 99));
        }
    }

    #[test]
    fn what_looks_like_a_call_in_an_unknown_form_is_named() {
        for text in [
            "<|channel|>commentary to=functions.shell <|message|>{\"command\": \"ls\"}<|call|>",
            "<｜tool▁calls▁begin｜>function<｜tool▁sep｜>shell\n```json\n{\"command\": \"ls\"}\n```",
            "<x:call><invoke name=\"shell\"><parameter name=\"command\">ls</parameter></invoke></x:call>",
            "Thought: look first\nAction: shell\nAction Input: {\"command\": \"ls\"}",
            "{\"shell\": {\"command\": \"ls\"}}",
            "```json\n{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"},}\n```",
            "[shell(command=line)]",
        ] {
            assert_eq!(look(text), Some(WrittenAnswer::Resembling("shell".into())), "{text}");
        }
        for text in
            ["<p>a shell has commands</p>", "{\"subshell\": \"command\"}", "a shell(command=\"ls\") runs", "[1, 2]"]
        {
            assert_eq!(look(text), None, "{text}");
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
            "{\"name\": \"shell\", \"arguments\": {}",
            "```rust\nfn main() {}\n```",
        ] {
            assert_eq!(look(text), None, "{text}");
        }
    }

    #[test]
    fn a_call_of_a_tool_that_is_not_offered_is_named() {
        for text in [
            r#"{"name": "launch", "arguments": {}}"#,
            r#"<tool_call>{"name": "launch"}</tool_call>"#,
            r#"[{"name": "shell", "arguments": {}}, {"name": "launch", "arguments": {}}]"#,
        ] {
            assert_eq!(look(text), Some(WrittenAnswer::Unknown("launch".to_owned())), "{text}");
        }
    }
}
