//! Servers as their documentation prints them: JSON and TOML in the forms that other programs read.

use serde_json::{Map, Value, json};
use toml_edit::DocumentMut;

use super::yaml_value;
use crate::file::{TrailingCommas, json_value, toml_value};

/// Servers by name, each with its declaration.
pub type ServerSnippet = Vec<(String, Value)>;

/// Why a snippet cannot be read. It repeats nothing of it: there may be secrets in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct SnippetError {
    /// What is wrong.
    pub message: String,
    /// The way out, where the message is none.
    pub hint: Option<&'static str>,
}

impl SnippetError {
    fn new(message: impl Into<String>) -> SnippetError {
        SnippetError { message: message.into(), hint: None }
    }

    fn hint(self, hint: &'static str) -> SnippetError {
        SnippetError { hint: Some(hint), ..self }
    }
}

/// The keys that programs have servers under.
const LISTS: &[&str] = &["mcpServers", "servers", "context_servers", "mcp_servers", "amp.mcpServers", "mcp.servers"];

/// The servers of a JSON snippet; one without a name gets the one that was given.
pub fn servers_from_json(text: &str, name: Option<&str>) -> Result<ServerSnippet, SnippetError> {
    read(parse(text)?, name)
}

/// The servers of a YAML snippet.
pub fn servers_from_yaml(text: &str, name: Option<&str>) -> Result<ServerSnippet, SnippetError> {
    let value = yaml_value(text).filter(|value| value.is_object() || value.is_array());
    let value = value.ok_or_else(|| {
        SnippetError::new("the snippet is neither JSON, TOML or YAML that declares servers, nor one command line")
            .hint("copy the declaration alone")
    })?;
    read(value, name)
}

fn read(value: Value, name: Option<&str>) -> Result<ServerSnippet, SnippetError> {
    let object = match value {
        Value::Object(object) => object,
        Value::Array(list) => return named(&by_name(&list)?, name),
        _ => return Err(SnippetError::new("the snippet must be a JSON object")),
    };
    if let Some(servers) = servers_of(&object) {
        return named(&servers, name);
    }
    if let Some(Value::Array(list)) = LISTS.iter().find_map(|key| object.get(*key)) {
        return named(&by_name(list)?, name);
    }
    if is_declaration(&object) {
        return single(object, name);
    }
    // `"time": {…}` inside of braces, which is how some print one entry.
    if !object.is_empty() && object.values().all(|value| value.as_object().is_some_and(is_declaration)) {
        return named(&object, name);
    }
    Err(SnippetError::new("the snippet holds neither `mcpServers` nor a `command` or `url`"))
}

/// Servers that stand in a list, each with its name.
fn by_name(list: &[Value]) -> Result<Map<String, Value>, SnippetError> {
    let entry = |entry: &Value| {
        let mut object = entry.as_object().filter(|object| is_declaration(object))?.clone();
        let name = object.shift_remove("name")?.as_str()?.to_owned();
        Some((name, Value::Object(object)))
    };
    let unnamed = || SnippetError::new("each server in a list needs its `name`, and a `command` or `url`");
    list.iter().map(|server| entry(server).ok_or_else(unnamed)).collect()
}

/// One declaration, which may hold its name.
fn single(mut object: Map<String, Value>, name: Option<&str>) -> Result<ServerSnippet, SnippetError> {
    let own = object.shift_remove("name").and_then(|name| name.as_str().map(str::to_owned));
    let name = name.map(str::to_owned).or(own);
    let name =
        name.ok_or_else(|| SnippetError::new("the snippet does not name the server; give its name before it"))?;
    Ok(vec![(name, usual(Value::Object(object)))])
}

/// Some print one entry of the map without the braces around it, or the comma behind it, and many print comments.
fn parse(text: &str) -> Result<Value, SnippetError> {
    let text = unfenced(text);
    let read = |text: &str| json_value(text, TrailingCommas::Allowed);
    let braced = || read(&format!("{{{text}\n}}")).ok();
    let listed = || match read(&format!("[{text}\n]")) {
        Ok(Value::Array(mut one)) if one.len() == 1 => one.pop(),
        _ => None,
    };
    read(text).or_else(|error| braced().or_else(listed).ok_or(error)).map_err(|error| {
        SnippetError::new(format!("the snippet is not JSON: {error}"))
            .hint("copy it whole, from the first brace to the last")
    })
}

/// What stands between the marks of a piece of code, if there are such.
pub fn unfenced(text: &str) -> &str {
    const FENCE: &str = "```";
    let Some((_, rest)) = text.trim().strip_prefix(FENCE).and_then(|rest| rest.split_once('\n')) else { return text };
    rest.trim_end().strip_suffix(FENCE).unwrap_or(rest)
}

/// The map of servers, under the keys that programs use for it.
fn servers_of(object: &Map<String, Value>) -> Option<Map<String, Value>> {
    let direct = LISTS.iter().find_map(|key| object.get(*key)?.as_object().cloned());
    let below = || {
        let mcp = object.get("mcp")?.as_object()?;
        let all = mcp.values().all(|server| server.as_object().is_some_and(is_declaration));
        servers_of(mcp).or((!mcp.is_empty() && all).then(|| mcp.clone()))
    };
    // Goose keeps what is built in among them.
    let goose = || {
        let all = object.get("extensions")?.as_object()?;
        let servers = all.iter().filter(|(_, entry)| entry.as_object().is_some_and(is_declaration));
        Some(servers.map(|(name, entry)| (name.clone(), entry.clone())).collect())
    };
    direct.or_else(below).or_else(goose)
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
    goose(object);
    codex(object);
    for key in ["env", "headers"] {
        let values = object.get_mut(key).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
        values.for_each(braced);
    }
    opencode(&mut declaration);
    declaration
}

/// Variables in every text, as opencode writes them, in our form.
fn opencode(value: &mut Value) {
    match value {
        Value::String(text) => *text = with_variables(text),
        Value::Array(items) => items.iter_mut().for_each(opencode),
        Value::Object(fields) => fields.values_mut().for_each(opencode),
        _ => {}
    }
}

/// `{env:NAME}` as `${NAME}`; the form of editors, `${env:NAME}`, is understood without a change.
fn with_variables(text: &str) -> String {
    const START: &str = "{env:";
    let is_name = |name: &str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        name.chars().all(plain) && name.starts_with(|first: char| !first.is_ascii_digit())
    };
    let mut parts = text.split(START);
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}').filter(|(name, _)| !written.ends_with('$') && is_name(name)) {
            Some((name, rest)) => written.extend(["${", name, "}", rest]),
            None => written.extend([START, part]),
        }
    }
    written
}

/// A text in which `$NAME` as a word of its own is written in our way.
fn braced(value: &mut Value) {
    let letter = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    let is_name = |name: &str| name.starts_with(|first: char| !first.is_ascii_digit()) && name.chars().all(letter);
    let word = |word: &str| match word.strip_prefix('$').filter(|name| is_name(name)) {
        Some(name) => format!("${{{name}}}"),
        None => word.to_owned(),
    };
    if let Value::String(text) = value {
        *text = text.split(' ').map(word).collect::<Vec<_>>().join(" ");
    }
}

/// Words that only Goose has, in ours.
fn goose(object: &mut Map<String, Value>) {
    if !object.contains_key("cmd") && !object.contains_key("uri") {
        return;
    }
    for (theirs, ours) in [("cmd", "command"), ("uri", "url"), ("envs", "env"), ("available_tools", "allowTools")] {
        let said = object.shift_remove(theirs).filter(|value| !value.as_array().is_some_and(Vec::is_empty));
        if let Some(value) = said {
            object.entry(ours).or_insert(value);
        }
    }
    // It counts in seconds.
    if let Some(seconds) = object.get("timeout").and_then(Value::as_u64) {
        object.insert("timeout".to_owned(), format!("{seconds}s").into());
    }
    for name in object.shift_remove("env_keys").as_ref().and_then(Value::as_array).into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        put(object, "env", name, &format!("${{{name}}}"));
    }
    for key in ["name", "display_name", "bundled"] {
        object.shift_remove(key);
    }
}

/// Words that only Codex has, in ours.
fn codex(object: &mut Map<String, Value>) {
    for (theirs, ours) in
        [("enabled_tools", "allowTools"), ("disabled_tools", "denyTools"), ("http_headers", "headers")]
    {
        if let Some(value) = object.shift_remove(theirs) {
            object.entry(ours).or_insert(value);
        }
    }
    for (theirs, ours) in [("startup_timeout_sec", "timeout"), ("tool_timeout_sec", "toolTimeout")] {
        if let Some(seconds) = object.shift_remove(theirs) {
            object.entry(ours).or_insert(format!("{seconds}s").into());
        }
    }
    if let Some(Value::String(name)) = object.shift_remove("bearer_token_env_var") {
        put(object, "headers", "Authorization", &format!("Bearer ${{{name}}}"));
    }
    for (header, name) in
        object.shift_remove("env_http_headers").as_ref().and_then(Value::as_object).into_iter().flatten()
    {
        put(object, "headers", header, &format!("${{{}}}", name.as_str().unwrap_or_default()));
    }
    for name in object.shift_remove("env_vars").as_ref().and_then(Value::as_array).into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        put(object, "env", name, &format!("${{{name}}}"));
    }
}

/// Puts a text into a map that may not be there yet.
fn put(object: &mut Map<String, Value>, map: &str, name: &str, text: &str) {
    let map = object.entry(map).or_insert_with(|| json!({}));
    if let Some(map) = map.as_object_mut() {
        map.entry(name).or_insert(text.into());
    }
}

/// Whether a text is a piece of Codex's configuration.
pub fn is_toml_snippet(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("[mcp_servers"))
}

/// The servers of a piece of Codex's configuration.
pub fn servers_from_toml(text: &str, name: Option<&str>) -> Result<ServerSnippet, SnippetError> {
    let read: Result<DocumentMut, _> = text.parse();
    let document = read.map_err(|error| {
        SnippetError::new(format!("the snippet is not TOML: {}", error.message().trim()))
            .hint("copy it whole, with its headings in brackets")
    })?;
    match toml_value(document.as_item()) {
        Value::Object(object) => named(&servers_of(&object).unwrap_or_default(), name),
        _ => named(&Map::new(), name),
    }
}

fn named(servers: &Map<String, Value>, name: Option<&str>) -> Result<ServerSnippet, SnippetError> {
    let found: ServerSnippet = servers.iter().map(|(name, value)| (name.clone(), usual(value.clone()))).collect();
    match (name, found.as_slice()) {
        (_, []) => Err(SnippetError::new("the snippet holds no server")),
        (None, _) => Ok(found),
        (Some(name), [(_, declaration)]) => Ok(vec![(name.to_owned(), declaration.clone())]),
        (Some(_), _) => {
            Err(SnippetError::new("the snippet holds several servers, each with its own name; leave NAME out"))
        }
    }
}

fn is_declaration(object: &Map<String, Value>) -> bool {
    let said = |key: &str| object.get(key).is_some_and(Value::is_string);
    let command = object.get("command").is_some_and(|command| command.is_array() || command.get("path").is_some());
    command || ["command", "url", "httpUrl", "serverUrl", "cmd", "uri"].iter().any(|key| said(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_snippets_are_understood() {
        let time = json!({"command": "uvx", "args": ["mcp-server-time"]});
        let expected = vec![("time".to_owned(), time.clone())];
        for text in [
            json!({"mcpServers": {"time": time}}).to_string(),
            json!({"servers": {"time": time}, "inputs": []}).to_string(),
            json!({"mcp": {"servers": {"time": time}}}).to_string(),
            json!({"time": time}).to_string(),
            json!({"name": "time", "command": "uvx", "args": ["mcp-server-time"]}).to_string(),
            json!({"amp.mcpServers": {"time": time}}).to_string(),
            format!("\"amp.mcpServers\": {}", json!({"time": time})),
            format!("\"time\": {time},"),
            json!({"mcp.servers": {"time": time}}).to_string(),
            json!([{"name": "time", "command": "uvx", "args": ["mcp-server-time"]}]).to_string(),
            json!({"mcpServers": [{"name": "time", "command": "uvx", "args": ["mcp-server-time"]}]}).to_string(),
            format!("```json\n{}\n```\n", json!({"mcpServers": {"time": time}})),
            "{\"mcpServers\": { // all of them\n \"time\": {\"command\": \"uvx\", /* no, */ \"args\": [\"mcp-server-time\", ], }, }, }"
                .to_owned(),
            format!("// one of many\n\"time\": {time}, // the next"),
            format!("{}, // and so on", json!({"mcpServers": {"time": time}})),
            json!({"mcp": {"time": {"type": "local", "command": ["uvx", "mcp-server-time"]}}}).to_string(),
            json!({"context_servers": {"time": {"source": "custom", "command": {"path": "uvx", "args": ["mcp-server-time"]}}}})
                .to_string(),
        ] {
            assert_eq!(servers_from_json(&text, None).unwrap(), expected, "{text}");
        }
        assert_eq!(servers_from_json(&time.to_string(), Some("time")).unwrap(), expected);
        assert!(servers_from_json(&time.to_string(), None).is_err());
    }

    #[test]
    fn variables_of_opencode_become_ours() {
        let theirs = json!({"mcp": {"docs": {
            "type": "remote", "url": "https://{env:HOST}/mcp", "enabled": true,
            "headers": {"Authorization": "Bearer {env:TOKEN}", "X": "${env:A}{env:B}{env:} {env:C D} {env:1} {env:E"},
        }, "local": {"type": "local", "command": ["x", "--key={env:KEY}"], "environment": {"KEY": "{env:KEY}"}}}});
        let found = servers_from_json(&theirs.to_string(), None).unwrap();
        let headers = json!({"Authorization": "Bearer ${TOKEN}", "X": "${env:A}${B}{env:} {env:C D} {env:1} {env:E"});
        let docs = json!({"url": "https://${HOST}/mcp", "enabled": true, "headers": headers});
        let local = json!({"command": "x", "args": ["--key=${KEY}"], "env": {"KEY": "${KEY}"}});
        assert_eq!(found, [("docs".to_owned(), docs), ("local".to_owned(), local)]);
    }

    #[test]
    fn pieces_of_configurations_in_yaml_are_understood() {
        let goose = "extensions:\n  memory:\n    type: builtin\n    enabled: true\n  gh:\n    name: GitHub\n    cmd: npx\n    \
            args: [-y, gh]\n    enabled: true\n    envs: {TOKEN: hush}\n    env_keys: [KEY]\n    timeout: 300\n    type: stdio\n";
        let gh = json!({"args": ["-y", "gh"], "enabled": true, "timeout": "300s", "type": "stdio", "command": "npx",
            "env": {"TOKEN": "hush", "KEY": "${KEY}"}});
        assert_eq!(servers_from_yaml(goose, None).unwrap(), [("gh".to_owned(), gh)]);
        let list = "mcpServers:\n  - name: docs\n    type: sse\n    url: https://example.com/sse\n";
        let docs = json!({"type": "sse", "url": "https://example.com/sse"});
        assert_eq!(servers_from_yaml(list, None).unwrap(), [("docs".to_owned(), docs)]);
        let map = "mcpServers:\n  files:\n    command: npx\n    args:\n      - -y\n      - files\n";
        assert_eq!(servers_from_yaml(map, Some("f")).unwrap()[0].0, "f");
        for text in ["some words\nmore of them", "- a\n- b", "mcpServers:\n  - url: https://a.example/\n", "a: 1\nb: 2"]
        {
            assert!(servers_from_yaml(text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn variables_without_braces_get_them() {
        let text = r#"{"a": {"httpUrl": "https://a.example/", "headers": {"A": "Bearer $TOKEN", "B": "pa$$word $5"}}}"#;
        let (_, a) = &servers_from_json(text, None).unwrap()[0];
        assert_eq!(a["headers"], json!({"A": "Bearer ${TOKEN}", "B": "pa$$word $5"}));
    }

    #[test]
    fn a_piece_of_codex_configuration_is_understood() {
        let text = "model = \"x\"\n[mcp_servers.time]\ncommand = \"uvx\" # fast\nargs = [\"mcp-server-time\"]\n\
            startup_timeout_sec = 20\nenv_vars = [\"TZ\"]\n[mcp_servers.time.env]\nA = \"1\"\n\
            [mcp_servers.docs]\nurl = \"https://example.com/mcp\"\nbearer_token_env_var = \"TK\"\nenabled_tools = [\"a\"]\n";
        let time =
            json!({"command": "uvx", "args": ["mcp-server-time"], "env": {"A": "1", "TZ": "${TZ}"}, "timeout": "20s"});
        let headers = json!({"Authorization": "Bearer ${TK}"});
        let docs = json!({"url": "https://example.com/mcp", "allowTools": ["a"], "headers": headers});
        assert!(is_toml_snippet(text));
        assert_eq!(servers_from_toml(text, None).unwrap(), [("time".to_owned(), time), ("docs".to_owned(), docs)]);
        for broken in ["[mcp_servers.x", "[mcp_servers]", "[mcp_servers.x]\ncommand = uvx"] {
            assert!(servers_from_toml(broken, None).is_err(), "{broken}");
        }
    }

    #[test]
    fn what_looks_like_a_comment_in_a_text_is_none() {
        let text = r#"{"a": {"url": "https://example.com/x", "headers": {"A": "/* b, */ \"//,]", "C": ",}"}}}"#;
        let found = servers_from_json(text, None).unwrap();
        assert_eq!(found, [("a".to_owned(), serde_json::from_str::<Value>(text).unwrap()["a"].clone())]);
        for broken in ["\"", "\"\\", "/*", "{\"a\": \"é", "//", "```", "```json"] {
            assert!(servers_from_json(broken, None).is_err(), "{broken}");
        }
    }

    #[test]
    fn what_is_no_snippet_is_named() {
        for text in ["", "{", "[]", "{}", "{\"mcpServers\": {}}", "{\"a\": 1}"] {
            assert!(servers_from_json(text, Some("x")).is_err(), "{text}");
        }
    }
}
