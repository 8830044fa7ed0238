//! `ollm mcp call`: one tool, called once.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use ollm_app::dispatch::tell_server_failure;
use ollm_app::servers::{DeclaredServer, LiveServers, Servers, taken, told};
use ollm_app::{AppContext, Notices};
use ollm_mcp::{
    Call, CallError, CheckedResult, LARGEST_RESULT, Offers, Progress, SchemaMismatch, Spill, bound_result, check,
    show_result, split, tool_names, write_result,
};
use ollm_protocol::{Code, ToolResult, did_you_mean, units};
use ollm_shell::shell_word;
use ollm_store::cut;
use serde_json::{Map, Value};

use super::{object, read_input, unanswered, with_server};
use crate::arguments::mcp::CallArguments;
use crate::error::{FINDING, Failure, OK};
use crate::output::Output;

/// More of a schema is not shown.
const LONGEST_SCHEMA: usize = 1 << 10;

pub(super) fn run(arguments: &CallArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let args = GivenArguments::read(arguments)?;
    let timeout = arguments.timeout.as_deref().map(time).transpose()?;
    let servers = Servers::load(context)?;
    let meant = named(arguments, &servers);
    servers.tell_problems_of(meant.as_ref().map_or(arguments.server.as_str(), |(server, _)| server), output);
    let (server, tool) = meant?;
    call((server, tool), &args, Call { timeout, ..Call::default() }, arguments, &servers, output)
}

/// Calls, and shows what came of it.
fn call(
    (server, tool): (&str, &str),
    args: &GivenArguments,
    call: Call,
    arguments: &CallArguments,
    servers: &Servers<'_>,
    output: &mut Output,
) -> Result<u8, Failure> {
    let mut broken = None;
    let done = with_server(servers, server, output, |live, known, output| {
        let Fitting { raw: tool, args, .. } = fitting(tool, args, known, live, output)?;
        let answer = ask(live, server, Call { tool: tool.clone(), args, ..call }, output);
        broken = answer.as_ref().err().map(|error| (known.spec.label(), error.clone()));
        let taken = take(answer, &tool, &known.offers(&live.listed(server)))?;
        Ok((taken, live.spill(servers.context, server)))
    });
    if let Some((label, error)) = &broken {
        tell_server_failure(label, error, servers.context, output);
    }
    let (taken, spill) = done?;
    if taken.result.is_error && taken.notes.is_empty() {
        output.tell(&format!("server `{server}`, tool `{tool}`: it says that it failed"));
    }
    for note in &taken.notes {
        output.tell(&format!("server `{server}`, tool `{tool}`: {note}"));
    }
    show(taken.result, arguments, &spill, output)
}

/// The server and the tool that are meant.
fn named<'a>(arguments: &'a CallArguments, servers: &'a Servers<'_>) -> Result<(&'a str, &'a str), Failure> {
    if let Some(tool) = arguments.tool.as_ref().filter(|_| !arguments.names_both()) {
        return Ok((&arguments.server, tool));
    }
    let name = &arguments.server;
    match servers.labels.resolve(name) {
        Some((server, _)) => Ok((server, name)),
        None if split(name).is_some() => Err(Failure::new(Code::UnknownTool, format!("no server has a tool `{name}`"))
            .hint("`ollm mcp tools` shows the tools there are")),
        None => Err(Failure::usage("a tool is missing")
            .hint("write `ollm mcp call SERVER TOOL`, or `ollm mcp call mcp__SERVER__TOOL`")),
    }
}

/// Calls, and streams what the server says about its progress.
fn ask(live: &LiveServers, server: &str, call: Call, output: &mut Output) -> Result<serde_json::Value, CallError> {
    let (sender, steps) = channel();
    let progress: ollm_mcp::OnProgress = Arc::new(move |step: Progress| drop(sender.send(step)));
    let pending = live.fleet().call(server, Call { progress: Some(progress), ..call });
    let tell = |notices: &mut dyn Notices| steps.try_iter().for_each(|step| notices.tell(&told(&step)));
    live.wait(pending, tell, output)
}

/// The result, checked against what the tool promised.
fn take(answer: Result<serde_json::Value, CallError>, tool: &str, offers: &Offers) -> Result<CheckedResult, Failure> {
    let promised = offers.tools.iter().find(|offer| offer.raw == tool).and_then(|offer| offer.tool.output.as_ref());
    taken(answer, promised).map_err(unanswered)
}

fn show(result: ToolResult, arguments: &CallArguments, spill: &Spill, output: &mut Output) -> Result<u8, Failure> {
    let most = if arguments.full { usize::MAX } else { LARGEST_RESULT };
    let bounded = bound_result(result, most, spill);
    bounded.notes.iter().for_each(|note| output.tell(note));
    let code = if bounded.result.is_error { FINDING } else { OK };
    if arguments.json {
        output.pretty_json(&write_result(&bounded.result))?;
    } else {
        output.data(&show_result(&bounded.result))?;
    }
    Ok(code)
}

/// Arguments as a person wrote them.
struct GivenArguments {
    object: Map<String, Value>,
    /// What stands on the command line; what it means depends on the tool.
    values: Vec<(String, String)>,
}

impl GivenArguments {
    fn read(arguments: &CallArguments) -> Result<GivenArguments, Failure> {
        let object = match arguments.args.as_deref() {
            Some("-") => object("standard input", Some(&read_input()?))?,
            text => object("--args", text)?,
        };
        let mut values: Vec<(String, String)> = Vec::new();
        let first = arguments.tool.iter().filter(|_| arguments.names_both());
        for written in first.chain(&arguments.values) {
            let Some((name, value)) = written.split_once('=').filter(|(name, _)| !name.is_empty()) else {
                return Err(Failure::new(Code::InvalidArguments, format!("`{written}` is no KEY=VALUE"))
                    .hint("for instance path=README.md, or --args with a JSON object"));
            };
            if object.contains_key(name) || values.iter().any(|(known, _)| known == name) {
                return Err(Failure::new(Code::InvalidArguments, format!("the argument `{name}` is there twice")));
            }
            values.push((name.to_owned(), value.to_owned()));
        }
        Ok(GivenArguments { object, values })
    }

    /// The arguments for a tool with this schema. A value for a text stays text, even if it looks like a number.
    fn typed(&self, schema: Option<&Map<String, Value>>) -> Map<String, Value> {
        let wants_text = |name: &str| {
            let wanted = schema.and_then(|schema| schema.get("properties")?.get(name)?.get("type"));
            wanted.is_some_and(|wanted| wanted == "string")
        };
        let value = |name: &str, text: &str| match serde_json::from_str(text) {
            Ok(value) if !wants_text(name) => value,
            _ => Value::from(text),
        };
        let mut args = self.object.clone();
        args.extend(self.values.iter().map(|(name, text)| (name.clone(), value(name, text))));
        args
    }
}

/// Finds the tool and checks the arguments. Cached tools may be out of date, so only a fresh list is a reason to
/// refuse. If changed tools wait for a review, only a fresh list is a reason to call.
fn fitting(
    tool: &str,
    args: &GivenArguments,
    known: &DeclaredServer,
    live: &LiveServers,
    output: &mut Output,
) -> Result<Fitting, Failure> {
    let name = &known.spec.name;
    if let Some(entry) = known.cached.as_ref().filter(|_| known.review().is_none())
        && let Ok(fitting) = fit(tool, args, name, &known.offers(entry.listed()))
    {
        return Ok(fitting.told(tool, name, output));
    }
    live.start(output);
    let listed = live.listed(name);
    // A server that does not start reports that at the call.
    if listed.is_empty() {
        return Ok(Fitting::unknown(tool, args));
    }
    let offers = known.offers(&listed);
    let offered = offers.tools.iter().any(|offer| offer.raw == tool || offer.tool.name == tool);
    if let Some(tool) = denied(tool, known, &listed).filter(|_| !offered) {
        return Err(withheld(&tool, known));
    }
    if let Some(why) = waits(tool, known, &listed) {
        return Err(why);
    }
    let there = |listed: &Value| listed.get("name").and_then(Value::as_str) == Some(tool);
    if listed.iter().any(there) && offers.tools.iter().all(|offer| offer.raw != tool) {
        return Ok(Fitting::unknown(tool, args));
    }
    Ok(fit(tool, args, name, &offers)?.told(tool, name, output))
}

/// A tool that takes the arguments.
struct Fitting {
    /// The server's own name for it.
    raw: String,
    /// What it is called with.
    args: Map<String, Value>,
    /// What of its schema could not be checked.
    unchecked: Vec<String>,
}

impl Fitting {
    /// A tool of which nothing is known.
    fn unknown(tool: &str, args: &GivenArguments) -> Fitting {
        Fitting { raw: tool.to_owned(), args: args.typed(None), unchecked: Vec::new() }
    }

    fn told(self, tool: &str, server: &str, output: &mut Output) -> Fitting {
        for what in &self.unchecked {
            output.tell(&format!("server `{server}`, tool `{tool}`: the arguments are not checked in full: {what}"));
        }
        self
    }
}

/// The meant tool, by either of its names, if the server has it and its declaration keeps it back.
fn denied(tool: &str, known: &DeclaredServer, listed: &[Value]) -> Option<String> {
    let names = listed.iter().filter_map(|entry| entry.get("name").and_then(Value::as_str));
    let held: Vec<&str> = names.filter(|name| !known.admits(name)).collect();
    let full = tool_names(&known.label, &held);
    let meant = held.iter().zip(full).find(|(raw, full)| **raw == tool || full.as_deref() == Ok(tool));
    meant.map(|(raw, _)| (*raw).to_owned())
}

/// The failure for a tool that waits for a person's review.
fn waits(tool: &str, known: &DeclaredServer, listed: &[Value]) -> Option<Failure> {
    let name = &known.spec.name;
    let kept_back = |why: String| Failure::new(Code::NotApproved, format!("tool `{tool}` of server `{name}` {why}"));
    let waiting = match known.review()?.waiting(listed) {
        Ok(waiting) => waiting,
        Err(why) => return Some(kept_back(format!("is not called: {why}"))),
    };
    let names: Vec<&str> = waiting.iter().map(|tool| tool.name.as_str()).collect();
    let full = tool_names(&known.label, &names);
    let is_meant = |raw: &str, full: &Result<String, _>| raw == tool || full.as_deref() == Ok(tool);
    let waiting = waiting.iter().zip(&full).find(|(waiting, full)| is_meant(&waiting.name, full))?.0;
    let what = if waiting.before.is_some() { "changed" } else { "is new" };
    let way_out = format!("`ollm mcp review {}` shows and offers it", shell_word(name));
    Some(kept_back(format!("{what} since you last saw its tools")).hint(way_out))
}

/// The failure for a tool that the declaration excludes, whatever the server says.
fn withheld(tool: &str, known: &DeclaredServer) -> Failure {
    let (name, origin) = (&known.spec.name, &known.spec.origin);
    Failure::new(Code::UnknownTool, format!("tool `{tool}` of server `{name}` is denied by its declaration"))
        .hint(format!("`allowTools` and `denyTools` in {}:{} say so", origin.file.display(), origin.line))
}

fn fit(tool: &str, args: &GivenArguments, server: &str, offers: &Offers) -> Result<Fitting, Failure> {
    let found = offers.tools.iter().find(|offer| offer.raw == tool || offer.tool.name == tool);
    let Some(offer) = found else {
        let failure = Failure::new(Code::UnknownTool, format!("server `{server}` has no tool `{tool}`"));
        let names = offers.tools.iter().flat_map(|offer| [offer.raw.as_str(), offer.tool.name.as_str()]);
        let list = || format!("`ollm mcp tools {}` shows those it has", shell_word(server));
        return Err(failure.hint(did_you_mean(tool, names).unwrap_or_else(list)));
    };
    let (raw, args) = (offer.raw.clone(), args.typed(Some(&offer.tool.input.0)));
    match check(&Value::Object(args.clone()), &offer.tool.input.0) {
        Ok(unchecked) => Ok(Fitting { raw, args, unchecked }),
        Err(error @ SchemaMismatch::Endless) => Ok(Fitting { raw, args, unchecked: vec![error.to_string()] }),
        Err(SchemaMismatch::Broken { at, why }) => {
            let place = if at.is_empty() { String::new() } else { format!(" at {at}") };
            Err(Failure::new(
                Code::InvalidArguments,
                format!("the arguments do not fit tool `{tool}` of `{server}`{place}: {why}"),
            )
            .hint(format!("it wants {}", cut(&wanted(&offer.tool.input.0), LONGEST_SCHEMA)))
            .hint(format!("`ollm mcp tools {} --json` prints its schema", shell_word(server))))
        }
    }
}

/// The arguments that a schema names, as people write them.
fn wanted(schema: &Map<String, Value>) -> String {
    let needed = |name: &String| {
        schema.get("required").and_then(Value::as_array).is_some_and(|list| list.iter().any(|one| one == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let described = properties.map(|(name, property)| {
        let kind = match (property.get("enum").and_then(Value::as_array), property.get("type")) {
            (Some(words), _) => {
                let words: Vec<String> =
                    words.iter().map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect();
                format!("one of {}", words.join(", "))
            }
            (None, Some(Value::String(kind))) => kind.clone(),
            (None, Some(Value::Array(kinds))) => {
                kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
            }
            _ => "any value".to_owned(),
        };
        format!("`{name}` ({kind}{})", if needed(name) { "" } else { ", optional" })
    });
    let described: Vec<String> = described.collect();
    if described.is_empty() { "no arguments that it names".to_owned() } else { described.join(", ") }
}

fn time(text: &str) -> Result<Duration, Failure> {
    let read = units::duration(text).or_else(|| text.parse().ok().map(Duration::from_millis));
    read.filter(|time| !time.is_zero())
        .ok_or_else(|| Failure::new(Code::InvalidValue, format!("--timeout must be a time such as 90s, not {text}")))
}
