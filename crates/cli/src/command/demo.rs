//! `ollm demo`: a whole session in a throwaway home, with a scripted model.
//!
//! Everything else is real. Files are written, loaded, approved and run like a user's. The server is a process that
//! speaks MCP, and the agent is that of `ollm run`.

use std::time::Instant;

use ollm_agent::{Approval, Cancel, Session, Turn, TurnEnd};
use ollm_app::session::{self, HookContext, SessionKind, SessionOptions, SessionSetup};
use ollm_app::{App, AppContext, LiveApp};
use ollm_protocol::Code;
use serde_json::json;

use crate::ask::Asker;
use crate::display::{response, turn_json};
use crate::error::{Failure, OK};
use crate::interrupt::Stop;
use crate::output::Output;
use crate::person::CallApprover;

pub(crate) mod server;
mod stage;
mod story;

use story::Story;

const PROMPT: &str = "Please do what ticket DEMO-7 asks for, and push it.";

pub(super) fn run(context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let root = stage::Throwaway::new().map_err(|error| unwritable(&error))?;
    let cancel = Cancel::default();
    // On a request to end, we wait for hooks and server to end and for the folder to be removed.
    let stop = Stop::listen_for(&cancel, || {});
    let context = stage::furnish(root.path(), context).map_err(|error| unwritable(&error))?;
    stage::approve(&App::load(&context)?)?;
    // The story has an unapproved hook, and no person should be asked about it.
    let app = session::load(&context, SessionKind::Prompt, None)?;
    let host = SessionSetup::gather(&options(&root.path().join("talk.jsonl").display().to_string()), &app, &cancel)?;
    let app = LiveApp::new(app);
    let shown = show(host, &app, &stop, &Story::new(output, as_json));
    app.into_inner().close(output);
    shown
}

fn show(host: SessionSetup, app: &LiveApp, stop: &Stop, story: &Story<'_>) -> Result<u8, Failure> {
    let began = Instant::now();
    if !story.quiet {
        story.output.lock().text(INTRODUCTION)?;
    }
    let hook_context = HookContext { app, notices: &story.output };
    let hear = Box::new(|event: &_, decision: &_, outcome: &_| story.hear(event, decision, outcome));
    let session =
        host.start(hook_context, Box::new(CallApprover::new(Asker::default(), stop.cancel())), Box::new(story), hear);
    let session =
        session.map_err(|error| Failure::new(Code::DemoFailed, format!("the demo does not start: {error}")))?;
    if let Some(mcp_tools) = &app.read().mcp_tools {
        mcp_tools.settle(stop.cancel(), &mut |text| story.output.lock().tell(text));
    }
    let turns = say(session);
    let mut output = story.output.lock();
    if story.quiet {
        let turns_json: Vec<_> = turns.iter().map(turn_json).collect();
        output.json(&json!({"response": response(&turns), "turns": turns_json, "events": story.json()}))?;
    } else {
        output.text(&format!("{}{FAREWELL}", story.summary(began.elapsed())))?;
    }
    exit(&turns, stop)
}

fn say(mut session: Session<'_>) -> Vec<Turn> {
    let turns = session.say(PROMPT, None);
    session.end();
    turns
}

/// The exit code. The model's answers are written for exactly this story, so any other outcome is a bug.
fn exit(turns: &[Turn], stop: &Stop) -> Result<u8, Failure> {
    match turns.iter().map(|turn| &turn.end).find(|end| **end != TurnEnd::Done) {
        None => Ok(OK),
        Some(TurnEnd::Interrupted) => Ok(stop.code()),
        Some(end) => Err(Failure::new(Code::DemoFailed, format!("the demo ended otherwise than it should: {end:?}"))),
    }
}

fn options(talk: &str) -> SessionOptions {
    let mut options = SessionOptions::default();
    options.model = Some(format!("replay:{talk}"));
    options.approval = Approval::Yolo;
    options
}

fn unwritable(error: &std::io::Error) -> Failure {
    Failure::new(Code::DemoFailed, format!("the demo's throwaway home cannot be written: {error}"))
        .hint("point TMPDIR to a folder with some space")
}

const INTRODUCTION: &str = "\
\x1b[1mA session in a throwaway home.\x1b[0m The model's answers are recorded; all else is real: the project with a typo in
greet.sh, the extension `house-rules`, the MCP server `tickets`, and hooks in four dialects.
";
const FAREWELL: &str = "
\x1b[2mNothing of it is left. Next: `ollm hook new no-force` writes a hook, `ollm connect` lists the agents that can ask it, and
`ollm run PROMPT` does the same as this with a model and hooks of yours.\x1b[0m
";
