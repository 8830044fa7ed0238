//! Parses command lines that declare a server: ours, and those by which other programs add one.

use ollm_shell::shell_word;
use serde_json::{Map, Value, json};

use crate::error::Failure;

/// What a command line says about a server.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Line {
    pub(super) name: Option<String>,
    pub(super) target: Vec<String>,
    pub(super) env: Vec<String>,
    pub(super) headers: Vec<String>,
    pub(super) transport: Option<String>,
}

/// Options of other programs that take a value and mean nothing here.
const SWALLOWED: &[&str] = &[
    "-s",
    "--scope",
    "--timeout",
    "--description",
    "--include-tools",
    "--exclude-tools",
    "--client-id",
    "--callback-port",
];

pub(super) fn is_address(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

/// The declaration in a command line of another program that holds one as JSON, and its name where that stands beside.
pub(super) fn embedded(words: &[String]) -> Option<(Option<&str>, &str)> {
    const OPTION: &str = "--add-mcp";
    if let [_, second, third, rest @ ..] = words
        && (second.as_str(), third.as_str()) == ("mcp", "add-json")
    {
        let json = rest.iter().position(|word| word.trim_start().starts_with('{'))?;
        return Some((rest.get(json.checked_sub(1)?).map(String::as_str), rest.get(json)?));
    }
    let joined = words.iter().find_map(|word| word.strip_prefix(OPTION)?.strip_prefix('='));
    let next = || words.get(words.iter().position(|word| word == OPTION)? + 1).map(String::as_str);
    joined.or_else(next).map(|json| (None, json))
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
        // Words after a program are the program's arguments.
        let ours = line.target.first().is_none_or(|first| is_address(first));
        match option {
            "--" if ours => line.target.extend(rest.by_ref().cloned()),
            "-t" | "--transport" | "--type" if ours => line.transport = value(),
            "-e" | "--env" if ours => line.env.extend(value()),
            "-H" | "--header" if ours => line.headers.extend(value()),
            "--url" if ours => line.target.extend(value()),
            "--bearer-token-env-var" if ours => {
                line.headers.extend(value().map(|name| format!("Authorization: Bearer ${{{name}}}")));
            }
            option if ours && SWALLOWED.contains(&option) => drop(value()),
            option if ours && option.starts_with('-') => {}
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
    let headers: Vec<String> = line.headers.iter().map(|header| with_colon(header)).collect();
    let (env, headers) = (pairs(&line.env, '=', "--env")?, pairs(&headers, ':', "--header")?);
    let mut declaration = match line.target.as_slice() {
        [] => return Err(Failure::usage("neither a command behind -- nor an address was given")),
        [url] if is_address(url) => json!({"url": url}),
        [command, args @ ..] => json!({"command": command, "args": args}),
    };
    if let Some(object) = declaration.as_object_mut() {
        let remote = object.contains_key("url");
        if remote && !env.is_empty() || !remote && !headers.is_empty() {
            return Err(Failure::usage("--env is for programs, --header for addresses"));
        }
        if let Some(word) = line.transport.as_deref().filter(|word| !remote && *word != "stdio") {
            let failure = Failure::usage(format!("a program is spoken to on its standard streams, not by `{word}`"));
            return Err(failure.hint("give an address instead of a program, or leave the transport out"));
        }
        let told = [("env", env), ("headers", headers)];
        object
            .extend(told.into_iter().filter(|(_, map)| !map.is_empty()).map(|(key, map)| (key.to_owned(), map.into())));
        object.extend(line.transport.iter().filter(|_| remote).map(|word| ("type".to_owned(), word.as_str().into())));
    }
    Ok(declaration)
}

/// A header as we write it: some programs have an equals sign between its name and its value.
fn with_colon(header: &str) -> String {
    match header.split_once('=') {
        Some((name, value)) if !name.contains(':') => format!("{name}: {value}"),
        _ => header.to_owned(),
    }
}

/// Our own command line for it, with a name that fits.
pub(super) fn proposal(line: &Line) -> String {
    let name = shell_word(&fitting_name(&line.target)).into_owned();
    // The values may be secrets.
    let hidden = |flag: &str, items: &[String], mark: char| -> String {
        let names = items.iter().filter_map(|item| item.split_once(mark));
        names.map(|(name, _)| format!(" {flag} {}", shell_word(&format!("{name}{mark}…")))).collect::<Vec<_>>().concat()
    };
    let flags = hidden("--env", &line.env, '=') + &hidden("--header", &line.headers, ':');
    let words: Vec<_> = line.target.iter().map(|word| shell_word(word)).collect();
    match words.as_slice() {
        [url] if is_address(url.trim_matches('\'')) => format!("ollm mcp add {name} {url}{flags}"),
        words => format!("ollm mcp add {name}{flags} -- {}", words.join(" ")),
    }
}

/// A name for a server: that of its package or host, without parts that most servers have.
fn fitting_name(target: &[String]) -> String {
    const COMMON: &[&str] = &["mcp", "server", "www", "api", "com", "org", "net", "io", "dev", "ai", "app", "py", "js"];
    const RUNNERS: &[&str] =
        &["npx", "uvx", "uv", "run", "node", "python", "python3", "docker", "bunx", "deno", "pipx"];
    let plain = |word: &&String| !word.starts_with('-') && !RUNNERS.contains(&word.as_str());
    let word = target.iter().find(plain).or(target.first()).map(String::as_str).unwrap_or_default();
    let host = word.split_once("://").map(|(_, rest)| rest.split(['/', ':', '?']).next().unwrap_or_default());
    // A version follows an `@`, and a scope precedes a slash.
    let package = || word.rsplit('/').next().unwrap_or_default().split('@').next().unwrap_or_default();
    let named = host.unwrap_or_else(package);
    let parts = named.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let telling: Vec<&str> = parts.filter(|part| !part.is_empty() && !COMMON.contains(part)).collect();
    if telling.is_empty() { "NAME".to_owned() } else { telling.join("-") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
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
        for (text, expected) in [
            (
                "amp mcp add x --header K=v=w https://a.example/",
                json!({"url": "https://a.example/", "headers": {"K": "v=w"}}),
            ),
            ("droid mcp add x https://a.example/ --type http", json!({"url": "https://a.example/", "type": "http"})),
        ] {
            assert_eq!(declare(&from_line(&words(text)).unwrap()).unwrap(), expected);
        }
        for transport in ["sse", "http"] {
            let line = from_line(&words(&format!("claude mcp add -t {transport} x -- npx y"))).unwrap();
            assert!(declare(&line).is_err(), "a program has no such transport");
        }
        let line = from_line(&words("claude mcp add --transport=sse docs https://example.com/sse")).unwrap();
        assert_eq!(declare(&line).unwrap(), json!({"url": "https://example.com/sse", "type": "sse"}));
        assert_eq!(from_line(&words("uvx mcp-server-time")), None);
    }

    #[test]
    fn what_follows_a_program_is_for_the_program() {
        let line =
            from_line(&words("gemini mcp add --timeout 60 --trust -e A=1 x node server.js -e B=2 --url y")).unwrap();
        assert_eq!(line.name.as_deref(), Some("x"));
        assert_eq!((line.target.join(" "), line.env), ("node server.js -e B=2 --url y".to_owned(), words("A=1")));
        let line = from_line(&words("codex mcp add x --url https://a.example/ --bearer-token-env-var TK")).unwrap();
        assert_eq!(
            declare(&line).unwrap(),
            json!({"url": "https://a.example/", "headers": {"Authorization": "Bearer ${TK}"}})
        );
    }

    #[test]
    fn a_name_that_fits_is_proposed() {
        for (target, name) in [
            ("uvx mcp-server-time", "time"),
            ("npx -y @modelcontextprotocol/server-filesystem@1.2 /x", "filesystem"),
            ("https://mcp.example.com/mcp", "example"),
            ("docker run -i mcp/git", "git"),
            ("mcp-server", "NAME"),
        ] {
            assert_eq!(fitting_name(&words(target)), name, "{target}");
        }
        let line = Line { target: words("npx -y @x/foo"), env: words("A=secret"), ..Line::default() };
        assert_eq!(proposal(&line), "ollm mcp add foo --env 'A=…' -- npx -y @x/foo");
        let line = Line { target: words("https://a.example/x"), ..Line::default() };
        assert_eq!(proposal(&line), "ollm mcp add a-example https://a.example/x");
    }
}
