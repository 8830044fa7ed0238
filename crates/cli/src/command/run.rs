//! `ollm run`: gives a model one task, with all hooks.

use std::io::{IsTerminal, Read};
use std::time::Duration;

use ollm_agent::{Cancel, Decision, SessionRefused, StartError, Turn, TurnEnd};
use ollm_app::session::{self, PromptPorts, SessionKind};
use ollm_app::{App, AppContext, SharedPort, tell_undeclared};
use ollm_engine::bus::{Bus, Filter, MessageBody};
use ollm_protocol::{Code, Event};
use serde_json::{Map, Value, json};

use crate::approver::HookApprover;
use crate::arguments::agent::TaskArguments;
use crate::display::{Display, Style, response, turn_json};
use crate::error::{BLOCKED, ErrorKind, Failure, OK};
use crate::interrupt::{QuietTerminal, Stop};
use crate::output::{Output, print_json};
use crate::person::CallApprover;

/// The exit code if a turn reached a limit, or differed from a replay.
const FINDING: u8 = 1;
/// The limit of standard input.
const LARGEST_INPUT: usize = 4 << 20;
/// How long to wait for more of it.
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) fn run(arguments: &TaskArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    if arguments.stream_json {
        output.stream_json();
    }
    let (prompt, piped) = task(arguments, output)?;
    let cancel = Cancel::default();
    let app = session::load(
        context,
        SessionKind::Prompt,
        Some(Box::new(HookApprover::new(context, output.asker().clone(), &cancel))),
    )?;
    context.tell_notices(output);
    app.tell_problems(output);
    tell_undeclared(context, output);
    let stop = Stop::listen_for(&cancel, || {});
    let _quiet = QuietTerminal::new();
    work(arguments, app, &stop, (&prompt, piped.as_deref()), output)
}

fn work(
    arguments: &TaskArguments,
    app: App,
    stop: &Stop,
    prompt: (&str, Option<&str>),
    output: &mut Output,
) -> Result<u8, Failure> {
    let style = match (arguments.json, arguments.stream_json) {
        (true, _) => Style::Quiet,
        (_, true) => Style::Lines,
        _ => Style::Text,
    };
    if style == Style::Lines {
        tell_executions(&app.engine.bus);
    }
    if style == Style::Text {
        output.busy("model");
    }
    let approve = Box::new(CallApprover::new(output.asker().clone(), stop.cancel()));
    let shared = SharedPort::new(output);
    let mut ports = PromptPorts::default();
    ports.approve = approve;
    ports.show = Box::new(Display::new(&shared, style, stop.cancel()));
    ports.hear = Box::new(|event, decision, _| {
        if style == Style::Lines {
            let _ = shared.lock().json(&event_json(event, decision));
        }
    });
    ports.cancel = stop.cancel().clone();
    let ran = session::run_prompt(app, &arguments.agent.options(SessionKind::Prompt)?, prompt, ports, &shared)?;
    let mut answer = json!({"session": ran.session, "model": ran.model, "box": ran.shell_box.to_json()});
    let (more, code) = match ran.turns {
        Ok(turns) => (said(&turns), turns.first().map_or(OK, |turn| exit_code(&turn.end, stop))),
        Err(StartError::Refused(refusal)) => (unstarted(&refusal), BLOCKED),
        Err(StartError::Interrupted) => (given_up(), stop.code()),
        Err(error) => return Err(Failure::new(Code::Environment, error.to_string())),
    };
    if let Some(answer) = answer.as_object_mut() {
        answer.extend(more);
    }
    finish(&answer, code, style, *shared.lock())
}

/// The JSON of a session that ran.
fn said(turns: &[Turn]) -> Map<String, Value> {
    let mut told = Map::from_iter([("response".to_owned(), response(turns).into())]);
    let first = turns.first().map(turn_json).unwrap_or_default();
    for field in ["end", "event", "hook", "reason"] {
        told.insert(field.to_owned(), first.get(field).cloned().unwrap_or_default());
    }
    told.insert("truncated".to_owned(), turns.iter().any(|turn| turn.truncated).into());
    told.insert("turns".to_owned(), turns.iter().map(turn_json).collect());
    told
}

/// The JSON of a session that was refused.
fn unstarted(refusal: &SessionRefused) -> Map<String, Value> {
    Map::from_iter([
        ("response".to_owned(), Value::Null),
        ("end".to_owned(), "refused".into()),
        ("event".to_owned(), "session_start".into()),
        ("hook".to_owned(), refusal.hook.as_str().into()),
        ("reason".to_owned(), refusal.reason.as_str().into()),
        ("turns".to_owned(), Value::Array(Vec::new())),
    ])
}

/// The JSON of a session that was interrupted before it began.
fn given_up() -> Map<String, Value> {
    let mut told = Map::from_iter([("response".to_owned(), Value::Null), ("end".to_owned(), "interrupted".into())]);
    told.extend(["event", "hook", "reason"].map(|field| (field.to_owned(), Value::Null)));
    told.insert("turns".to_owned(), Value::Array(Vec::new()));
    told
}

fn event_json(event: &Event, decision: &Decision) -> Value {
    json!({
        "type": "event",
        "event": event.kind.name(),
        "flow": decision.flow.name(),
        "hook": decision.refused_by,
        "reason": decision.reason,
    })
}

/// Prints a line when a hook starts, and when it ends or fails.
fn tell_executions(bus: &Bus) {
    let Ok(filter) = Filter::named(["hook_execution_start", "hook_execution_complete", "hook_execution_error"]) else {
        return;
    };
    bus.subscribe(filter, 0, |message| {
        let (MessageBody::HookStart { hook, .. }
        | MessageBody::HookComplete { hook, .. }
        | MessageBody::HookError { hook, .. }) = &message.body
        else {
            return;
        };
        let mut line = message.to_json();
        if let Some(line) = line.as_object_mut() {
            line.insert("type".to_owned(), message.event_type().into());
            line.insert("hook".to_owned(), hook.id().into());
            line.insert("extension".to_owned(), hook.spec.extension.clone().into());
            // Other lines contain the conversation; it would be repeated for every hook.
            if let Some(context) = line.get_mut("context").and_then(Value::as_object_mut) {
                context.shift_remove("messages");
            }
        }
        print_json(&line);
    });
}

fn finish(answer: &Value, code: u8, style: Style, output: &mut Output) -> Result<u8, Failure> {
    // The other styles reported it when it happened, and every style reports it if it ended the turn.
    if style == Style::Quiet && answer["truncated"] == true && answer["end"] == "done" {
        output.tell("the answer was too long and was cut; its object says `truncated`");
    }
    match style {
        Style::Text => output.is_whole()?,
        Style::Quiet => drop(output.json(answer)?),
        Style::Lines => {
            let mut last = answer.clone();
            if let Some(map) = last.as_object_mut() {
                map.insert("type".to_owned(), "end".into());
            }
            output.json(&last)?;
        }
    }
    Ok(code)
}

fn exit_code(end: &TurnEnd, stop: &Stop) -> u8 {
    match end {
        TurnEnd::Done => OK,
        TurnEnd::Refused { .. } | TurnEnd::Halted { .. } => BLOCKED,
        TurnEnd::Failed { code: "replay" | "empty", .. } | TurnEnd::Bounded(_) => FINDING,
        TurnEnd::Interrupted => stop.code(),
        _ => ErrorKind::Environment as u8,
    }
}

/// The prompt, and the text on standard input.
fn task(arguments: &TaskArguments, output: &mut Output) -> Result<(String, Option<String>), Failure> {
    let piped = piped(output)?.filter(|text| !text.trim().is_empty());
    match (&arguments.prompt, piped) {
        (Some(prompt), piped) if !prompt.trim().is_empty() => Ok((prompt.clone(), piped)),
        (_, Some(piped)) => Ok((piped, None)),
        _ => Err(Failure::usage("there is nothing to do").hint("write `ollm run PROMPT`, or pipe something in")),
    }
}

fn piped(output: &mut Output) -> Result<Option<String>, Failure> {
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 << 10];
    loop {
        if !comes(&stdin) {
            output
                .tell("standard input stays open but nothing comes; we go on with what came (`< /dev/null` closes it)");
            break;
        }
        match stdin.read(&mut chunk) {
            // A closed standard input is empty.
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(chunk.get(..count).unwrap_or_default()),
        }
        if bytes.len() > LARGEST_INPUT {
            return Err(Failure::usage(format!("more than {LARGEST_INPUT} bytes were piped in; pipe in less")));
        }
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Waits for input or its end; the process that started us may have left the stream open.
fn comes(stdin: &std::io::StdinLock<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let patience = Timespec::try_from(PATIENCE).ok();
    poll(&mut [PollFd::new(stdin, PollFlags::IN)], patience.as_ref()) != Ok(0)
}
