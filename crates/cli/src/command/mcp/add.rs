//! `ollm mcp add` and `remove`: servers are written down, and taken out again.

use std::path::PathBuf;

use ollm_app::servers::Servers;
use ollm_app::{AppContext, refuse_agents};
use ollm_catalog::{
    Problem, ServerEditError, ServerSnippet, Severity, add_server, check_server, is_toml_snippet, remove_server,
    servers_from_json, servers_from_toml, servers_from_yaml, settings_file, unfenced,
};
use ollm_protocol::Code;
use ollm_shell::{shell_word, split_loosely};
use serde_json::{Value, json};

use super::line::{Line, declare, embedded, from_line, is_address, proposal};
use super::read_input;
use crate::arguments::mcp::AddArguments;
use crate::error::{Failure, OK};
use crate::output::Output;
use crate::remedy::COMMANDS;

const UNNAMED: &str = "the server needs a name";
/// Keys whose values are times.
const TIMES: &[&str] = &["timeout", "toolTimeout", "tool_timeout"];

pub(super) fn add(arguments: &AddArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    // Servers of the user need no approval, so an agent that could add servers could start anything.
    refuse_agents(context, "add servers")?;
    context.tell_notices(output);
    let snippet = understand(arguments)?;
    let path = file(context, arguments.project)?;
    let servers = Servers::load(context)?;
    for (name, declaration) in &snippet {
        check(name, declaration, output)?;
        if let Some(known) = servers.all.iter().find(|known| known.spec.name == *name) {
            let place = known.spec.origin.file.display();
            return Err(Failure::new(Code::AlreadyThere, format!("there is a server `{name}` already, in {place}"))
                .hint("give this one another name, or remove that one first"));
        }
    }
    for (name, declaration) in &snippet {
        add_server(&path, name, declaration).map_err(unwritten)?;
        output.changed(json!({"server": name, "file": path.to_string_lossy()}));
        output.tell(&format!("server `{name}` was added to {}", path.display()));
        let next = if arguments.project { "trust" } else { "start" };
        let why = if arguments.project { "approves it, which a project's server needs" } else { "tries it" };
        output.tell(&format!("`ollm mcp {next} {}` {why}", shell_word(name)));
    }
    Ok(OK)
}

pub(super) fn remove(name: &str, project: bool, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "remove servers")?;
    context.tell_notices(output);
    let path = file(context, project)?;
    if remove_server(&path, name).map_err(unwritten)? {
        output.changed(json!({"server": name, "removedFrom": path.to_string_lossy()}));
        output.tell(&format!("server `{name}` was removed from {}", path.display()));
        return Ok(OK);
    }
    let servers = Servers::load(context)?;
    let known = servers.find(name)?;
    let place = &known.spec.origin;
    let failure = Failure::new(
        Code::Elsewhere,
        format!("server `{name}` is declared in {}:{}, not in {}", place.file.display(), place.line, path.display()),
    );
    if let Some(bundle) = &known.bundle {
        let name = shell_word(&bundle.extension);
        return Err(failure.hint(format!("`ollm ext disable {name}` switches the extension off that it is part of")));
    }
    Err(match settings_file(&context.places, true) {
        Some(file) if file == place.file => {
            failure.hint(format!("`ollm mcp remove {} --project` removes it", shell_word(name)))
        }
        _ => failure.hint("remove it there"),
    })
}

/// What is to be written down, from any form of the arguments.
fn understand(arguments: &AddArguments) -> Result<ServerSnippet, Failure> {
    let name = arguments.name.as_deref();
    let target = arguments.target.as_deref();
    match (name, target, arguments.command.as_slice()) {
        (Some("-"), None, []) => from_text(&read_input()?, None, arguments),
        (Some(name), Some("-"), []) => from_text(&read_input()?, Some(name), arguments),
        (Some(text), None, []) if is_text(text) => from_text(text, None, arguments),
        (Some(name), Some(text), []) if is_text(text) => from_text(text, Some(name), arguments),
        (Some(url), None, []) if is_address(url) => from_command(None, &[url.to_owned()], arguments),
        (name, None, command) => from_command(name, command, arguments),
        (name, Some(url), []) => from_words(name, Line { target: vec![url.to_owned()], ..Line::default() }, arguments),
        (_, Some(_), _) => Err(Failure::usage("give either an address or a command behind --, not both")),
    }
}

/// Whether a word is more than one: a snippet, or a whole command line.
fn is_text(text: &str) -> bool {
    text.trim_start().starts_with(['{', '"', '[']) || text.contains(char::is_whitespace)
}

/// The server in a documentation's snippet: JSON, TOML, YAML or a command line. The snippet may contain secrets, so
/// messages do not repeat it.
fn from_text(text: &str, name: Option<&str>, arguments: &AddArguments) -> Result<ServerSnippet, Failure> {
    let text = unfenced(text).trim();
    let text = text.strip_prefix("$ ").unwrap_or(text);
    if is_toml_snippet(text) && !text.starts_with('{') {
        return Ok(servers_from_toml(text, name)?);
    }
    if text.starts_with(['{', '"', '[']) || text.starts_with("//") || text.starts_with("/*") {
        return Ok(servers_from_json(text, name)?);
    }
    // Documentation may break a long line, or put a comment before it.
    let joined = text.replace("\\\n", " ");
    let mut lines = joined.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    match (lines.next(), lines.next()) {
        (Some(line), None) if !line.trim_end().ends_with(':') => {
            let words = split_loosely(line).unwrap_or_default();
            from_command(name, &words, arguments).map_err(unrepeated)
        }
        _ => servers_from_yaml(text, name).map_err(|error| {
            let command = error.hint.map(|_| "or write `ollm mcp add NAME -- COMMAND`");
            command.into_iter().fold(error.into(), Failure::hint)
        }),
    }
}

/// A failure without the hint that would show what was given.
fn unrepeated(failure: Failure) -> Failure {
    match failure.message.as_str() {
        UNNAMED => Failure::new(Code::Usage, UNNAMED).hint("give its name before it: ollm mcp add NAME -"),
        _ => failure,
    }
}

/// A command line: one that starts a server, or one with which another program adds a server.
fn from_command(name: Option<&str>, words: &[String], arguments: &AddArguments) -> Result<ServerSnippet, Failure> {
    if let Some((own, json)) = embedded(words) {
        return Ok(servers_from_json(json, name.or(own))?);
    }
    let line = from_line(words).unwrap_or_else(|| Line { target: words.to_vec(), ..Line::default() });
    from_words(name, line, arguments)
}

fn from_words(name: Option<&str>, mut line: Line, arguments: &AddArguments) -> Result<ServerSnippet, Failure> {
    line.env.extend(arguments.env.iter().cloned());
    line.headers.extend(arguments.header.iter().cloned());
    line.transport = arguments.transport.clone().or(line.transport);
    let name = name.map(str::to_owned).or_else(|| line.name.clone());
    let Some(name) = name else {
        let failure = Failure::new(Code::Usage, UNNAMED);
        let way = if line.target.is_empty() { "ollm mcp add NAME -- COMMAND".to_owned() } else { proposal(&line) };
        return Err(failure.hint(format!("for instance: {way}")));
    };
    Ok(vec![(name, declare(&line)?)])
}

/// Fails for a declaration that could not be read back.
fn check(name: &str, declaration: &Value, output: &mut Output) -> Result<(), Failure> {
    for (key, value) in TIMES.iter().filter_map(|key| Some((key, declaration.get(key)?.as_f64()?))) {
        // A real timeout has at least a second; other programs count in seconds.
        if value > 0.0 && value < 1000.0 {
            output.tell(&format!("`{key}` of server `{name}` is {value} milliseconds; write \"{value}s\" for seconds"));
        }
    }
    let (server, problems) = check_server(name, declaration);
    for problem in problems.iter().filter(|problem| problem.severity == Severity::Warning) {
        // A given value may be a secret.
        output.tell(&Problem { value: None, ..problem.clone() }.to_string());
    }
    match (server, problems.into_iter().find(|problem| problem.severity != Severity::Warning)) {
        (Some(_), None) => Ok(()),
        (_, Some(problem)) => {
            let failure =
                Failure::new(Code::InvalidValue, format!("server `{name}` was not added: {}", problem.message));
            Err(problem.way_out(COMMANDS).into_iter().fold(failure, Failure::hint))
        }
        (None, None) => Err(Failure::new(Code::InvalidValue, format!("server `{name}` cannot be understood"))),
    }
}

fn file(context: &AppContext, project: bool) -> Result<PathBuf, Failure> {
    if !project {
        context.need_home()?;
    }
    settings_file(&context.places, project).ok_or_else(|| {
        Failure::new(Code::NoProject, "there is no project here").hint("change into a folder with .git or .ollm in it")
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn unwritten(error: ServerEditError) -> Failure {
    let code = match error {
        ServerEditError::File(_) => Code::NotWritten,
        ServerEditError::Broken { .. } => Code::WrongForm,
        ServerEditError::Taken { .. } => Code::AlreadyThere,
    };
    Failure::new(code, error.to_string())
}
