//! Servers as their documentation prints them: JSON in the forms that other programs read, and command lines of theirs.

use serde_json::{Map, Value, json};

use crate::error::Failure;

/// Servers by name, each with its declaration.
pub(super) type Snippet = Vec<(String, Value)>;

/// The servers of a JSON snippet; one without a name gets the one that was given.
pub(super) fn from_json(text: &str, name: Option<&str>) -> Result<Snippet, Failure> {
    let value: Value = parse(text)?;
    let Value::Object(object) = value else {
        return Err(Failure::usage("the snippet must be a JSON object"));
    };
    if let Some(servers) = servers_of(&object) {
        return named(servers, name);
    }
    if is_declaration(&object) {
        let name =
            name.ok_or_else(|| Failure::usage("the snippet does not name the server; give its name before it"))?;
        return Ok(vec![(name.to_owned(), usual(Value::Object(object)))]);
    }
    // `"time": {…}` inside of braces, which is how some print one entry.
    if !object.is_empty() && object.values().all(|value| value.as_object().is_some_and(is_declaration)) {
        return named(&object, name);
    }
    Err(Failure::usage("the snippet holds neither `mcpServers` nor a `command` or `url`"))
}

/// Some print one entry of the map without the braces around it, and many print comments.
fn parse(text: &str) -> Result<Value, Failure> {
    let relaxed = relaxed(unfenced(text));
    let text = relaxed.trim().trim_end_matches(',');
    let braced = || serde_json::from_str(&format!("{{{text}}}"));
    serde_json::from_str(text).or_else(|error| if text.starts_with('"') { braced() } else { Err(error) }).map_err(
        |error| {
            Failure::usage(format!("the snippet is not JSON: {error}"))
                .hint("copy it whole, from the first brace to the last")
        },
    )
}

/// What stands between the marks of a piece of code, if there are such.
fn unfenced(text: &str) -> &str {
    const FENCE: &str = "```";
    let Some((_, rest)) = text.trim().strip_prefix(FENCE).and_then(|rest| rest.split_once('\n')) else { return text };
    rest.trim_end().strip_suffix(FENCE).unwrap_or(rest)
}

/// The text without comments, and without commas that nothing follows.
fn relaxed(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (piece, after) = match first {
            '"' => rest.split_at(quoted(rest)),
            '/' if rest.starts_with("//") => rest.split_at(rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => rest.split_at(rest.find("*/").map_or(rest.len(), |end| end + 2)),
            other => rest.split_at(other.len_utf8()),
        };
        if matches!(first, '}' | ']') {
            let end = kept.trim_end().len();
            if kept.get(..end).is_some_and(|kept| kept.ends_with(',')) {
                kept.truncate(end - 1);
            }
        }
        if !piece.starts_with("//") && !piece.starts_with("/*") {
            kept.push_str(piece);
        }
        rest = after;
    }
    kept
}

/// The length of a text in quotes; to the end where it is not closed.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    let closes = |(_, letter): &(usize, char)| match letter {
        '"' if !escaped => true,
        '\\' => {
            escaped = !escaped;
            false
        }
        _ => {
            escaped = false;
            false
        }
    };
    text.char_indices().skip(1).find(closes).map_or(text.len(), |(at, _)| at + 1)
}

/// The map of servers, under the keys that programs use for it.
fn servers_of(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let direct = ["mcpServers", "servers", "context_servers"].iter().find_map(|key| object.get(*key)?.as_object());
    let below = || {
        let mcp = object.get("mcp")?.as_object()?;
        let all = mcp.values().all(|server| server.as_object().is_some_and(is_declaration));
        servers_of(mcp).or((!mcp.is_empty() && all).then_some(mcp))
    };
    direct.or_else(below)
}

/// A declaration in the usual words: some programs have the whole command line in one list, or the program in a map.
fn usual(mut declaration: Value) -> Value {
    let Some(object) = declaration.as_object_mut() else { return declaration };
    match object.get("command").cloned() {
        Some(Value::Array(mut words)) if !words.is_empty() => {
            let command = words.remove(0);
            object.insert("command".to_owned(), command);
            object.insert("args".to_owned(), words.into());
        }
        Some(Value::Object(mut program)) => {
            let path = program.remove("path").unwrap_or_default();
            object.insert("command".to_owned(), path);
            object.extend(program);
        }
        _ => {}
    }
    if let Some(variables) = object.shift_remove("environment") {
        object.entry("env").or_insert(variables);
    }
    // What these words say is told by the rest.
    if object.get("type").is_some_and(|kind| kind == "local" || kind == "remote") {
        object.shift_remove("type");
    }
    if object.get("source").is_some_and(|source| source == "custom") {
        object.shift_remove("source");
    }
    declaration
}

fn named(servers: &Map<String, Value>, name: Option<&str>) -> Result<Snippet, Failure> {
    let found: Snippet = servers.iter().map(|(name, value)| (name.clone(), usual(value.clone()))).collect();
    match (name, found.as_slice()) {
        (_, []) => Err(Failure::usage("the snippet holds no server")),
        (None, _) => Ok(found),
        (Some(name), [(_, declaration)]) => Ok(vec![(name.to_owned(), declaration.clone())]),
        (Some(_), _) => {
            Err(Failure::usage("the snippet holds several servers, each with its own name; leave NAME out"))
        }
    }
}

fn is_declaration(object: &Map<String, Value>) -> bool {
    let said = |key: &str| object.get(key).is_some_and(Value::is_string);
    let command = object.get("command").is_some_and(|command| command.is_array() || command.get("path").is_some());
    command || ["command", "url", "httpUrl", "serverUrl"].iter().any(|key| said(key))
}

/// What a command line says about a server.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Line {
    pub(super) name: Option<String>,
    pub(super) target: Vec<String>,
    pub(super) env: Vec<String>,
    pub(super) headers: Vec<String>,
    pub(super) transport: Option<String>,
}

/// A command line of another program that adds a server: `claude mcp add …`, and those that copied it.
pub(super) fn from_line(words: &[String]) -> Option<Line> {
    let [_, second, third, rest @ ..] = words else { return None };
    if (second.as_str(), third.as_str()) != ("mcp", "add") {
        return None;
    }
    let mut line = Line::default();
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        let (option, joined) = word
            .split_once('=')
            .filter(|_| word.starts_with("--"))
            .map_or((word.as_str(), None), |(option, value)| (option, Some(value.to_owned())));
        let mut value = || joined.clone().or_else(|| rest.next().cloned());
        match option {
            "--" => {
                line.target.extend(rest.by_ref().cloned());
            }
            "-t" | "--transport" => line.transport = value(),
            "-e" | "--env" => line.env.extend(value()),
            "-H" | "--header" => line.headers.extend(value()),
            "-s" | "--scope" => drop(value()),
            option if option.starts_with('-') && line.target.is_empty() => {}
            _ if line.name.is_none() => line.name = Some(word.clone()),
            _ => line.target.push(word.clone()),
        }
    }
    Some(line)
}

/// The declaration of a program or an address with what was said beside it.
pub(super) fn declare(line: &Line) -> Result<Value, Failure> {
    let pairs = |items: &[String], mark: char, what: &str| -> Result<Map<String, Value>, Failure> {
        let pair = |item: &String| match item.split_once(mark) {
            Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().into())),
            _ => Err(Failure::usage(format!("{what} must be NAME{mark}VALUE"))),
        };
        items.iter().map(pair).collect()
    };
    let (env, headers) = (pairs(&line.env, '=', "--env")?, pairs(&line.headers, ':', "--header")?);
    let mut declaration = match line.target.as_slice() {
        [] => return Err(Failure::usage("neither a command behind -- nor an address was given")),
        [url] if url.starts_with("http://") || url.starts_with("https://") => json!({"url": url}),
        [command, args @ ..] => json!({"command": command, "args": args}),
    };
    if let Some(object) = declaration.as_object_mut() {
        let remote = object.contains_key("url");
        if remote && !env.is_empty() || !remote && !headers.is_empty() {
            return Err(Failure::usage("--env is for programs, --header for addresses"));
        }
        let told = [("env", env), ("headers", headers)];
        object
            .extend(told.into_iter().filter(|(_, map)| !map.is_empty()).map(|(key, map)| (key.to_owned(), map.into())));
        object.extend(line.transport.iter().filter(|_| remote).map(|word| ("type".to_owned(), word.as_str().into())));
    }
    Ok(declaration)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_usual_snippets_are_understood() {
        let time = json!({"command": "uvx", "args": ["mcp-server-time"]});
        let expected = vec![("time".to_owned(), time.clone())];
        for text in [
            json!({"mcpServers": {"time": time}}).to_string(),
            json!({"servers": {"time": time}, "inputs": []}).to_string(),
            json!({"mcp": {"servers": {"time": time}}}).to_string(),
            json!({"time": time}).to_string(),
            format!("\"time\": {time},"),
            format!("```json\n{}\n```\n", json!({"mcpServers": {"time": time}})),
            "{\"mcpServers\": { // all of them\n \"time\": {\"command\": \"uvx\", /* no, */ \"args\": [\"mcp-server-time\", ], }, }, }"
                .to_owned(),
            json!({"mcp": {"time": {"type": "local", "command": ["uvx", "mcp-server-time"]}}}).to_string(),
            json!({"context_servers": {"time": {"source": "custom", "command": {"path": "uvx", "args": ["mcp-server-time"]}}}})
                .to_string(),
        ] {
            assert_eq!(from_json(&text, None).unwrap(), expected, "{text}");
        }
        assert_eq!(from_json(&time.to_string(), Some("time")).unwrap(), expected);
        assert!(from_json(&time.to_string(), None).is_err());
    }

    #[test]
    fn what_looks_like_a_comment_in_a_text_is_none() {
        let text = r#"{"a": {"url": "https://example.com/x", "headers": {"A": "/* b, */ \"//,]", "C": ",}"}}}"#;
        let found = from_json(text, None).unwrap();
        assert_eq!(found, [("a".to_owned(), serde_json::from_str::<Value>(text).unwrap()["a"].clone())]);
        for broken in ["\"", "\"\\", "/*", "{\"a\": \"é", "//", "```", "```json"] {
            assert!(from_json(broken, None).is_err(), "{broken}");
        }
    }

    #[test]
    fn what_is_no_snippet_is_named() {
        for text in ["", "{", "[]", "{}", "{\"mcpServers\": {}}", "{\"a\": 1}"] {
            assert!(from_json(text, Some("x")).is_err(), "{text}");
        }
    }

    #[test]
    fn other_programs_command_lines_are_understood() {
        let line =
            from_line(&words("claude mcp add --scope user -e KEY=1 --transport stdio time -- uvx mcp-server-time --x"))
                .unwrap();
        assert_eq!(line.name.as_deref(), Some("time"));
        assert_eq!(
            declare(&line).unwrap(),
            json!({"command": "uvx", "args": ["mcp-server-time", "--x"], "env": {"KEY": "1"}})
        );
        let line = from_line(&words("claude mcp add --transport=sse docs https://example.com/sse")).unwrap();
        assert_eq!(declare(&line).unwrap(), json!({"url": "https://example.com/sse", "type": "sse"}));
        assert_eq!(from_line(&words("uvx mcp-server-time")), None);
    }
}
