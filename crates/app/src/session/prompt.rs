//! Runs one prompt from beginning to end: starts the session, waits for servers, lets the model work, and closes
//! everything.

use ollm_agent::{Approve, Cancel, NobodyAsked, Show, SilentShow, StartError, Turn};

use super::{EventListener, HookContext, SessionOptions, SessionSetup};
use crate::app::App;
use crate::command_box::BoxStatus;
use crate::control::Control;
use crate::error::AppError;
use crate::live_app::LiveApp;
use crate::port::{Notices, SharedPort};

/// The ports that a program hands in for a prompt: for decisions, display, events and interruptions.
///
/// By default nothing is shown and no person is asked: a call that needs a person is refused.
#[non_exhaustive]
pub struct PromptPorts<'a> {
    /// Decides about tool calls that need consent.
    pub approve: Box<dyn Approve + 'a>,
    /// Receives the model's words and the tools' results as they come.
    pub show: Box<dyn Show + 'a>,
    /// Receives every event with its decision and outcome.
    pub hear: EventListener<'a>,
    /// Interrupts the work.
    pub cancel: Cancel,
}

impl Default for PromptPorts<'_> {
    fn default() -> Self {
        PromptPorts {
            approve: Box::new(NobodyAsked),
            show: Box::new(SilentShow),
            hear: Box::new(|_, _, _| {}),
            cancel: Cancel::default(),
        }
    }
}

/// The result of a prompt.
#[derive(Debug)]
#[non_exhaustive]
pub struct PromptOutcome {
    /// The session's id.
    pub session: String,
    /// The model's name.
    pub model: String,
    /// The box that shell commands ran in.
    pub shell_box: BoxStatus,
    /// The turns, the first of them for the prompt. An error if the session did not start.
    pub turns: Result<Vec<Turn>, StartError>,
}

/// Runs one prompt with a model, hooks, servers and consent. Blocks until everything has ended.
pub fn run_prompt(
    app: App,
    options: &SessionOptions,
    (prompt, context): (&str, Option<&str>),
    ports: PromptPorts<'_>,
    notices: &SharedPort<dyn Notices + '_>,
) -> Result<PromptOutcome, AppError> {
    let host = SessionSetup::gather(options, &app, &ports.cancel)?;
    for note in &host.notes {
        notices.lock().tell(note);
    }
    let (session, model, shell_box) = (host.id().to_owned(), host.model().to_owned(), host.shell_box.clone());
    let app = LiveApp::new(app);
    let turns = work(host, &app, (prompt, context), ports, notices);
    app.into_inner().close(&mut *notices.lock());
    Ok(PromptOutcome { session, model, shell_box, turns })
}

fn work(
    host: SessionSetup,
    app: &LiveApp,
    (prompt, context): (&str, Option<&str>),
    ports: PromptPorts<'_>,
    notices: &SharedPort<dyn Notices + '_>,
) -> Result<Vec<Turn>, StartError> {
    let id = host.id().to_owned();
    let mut session = host.start(HookContext { app, notices }, ports.approve, ports.show, ports.hear)?;
    let servers = app.read().mcp_tools.clone();
    // Unlike a chat, a prompt gets no servers later.
    let reachable = servers.as_ref().filter(|servers| !servers.statuses().is_empty());
    let _control = Control::open(reachable, &id, app.read().context()).map_err(|why| notices.lock().tell(&why));
    if let Some(servers) = &servers {
        servers.settle(&ports.cancel, &mut |text| notices.lock().tell(text));
    }
    let turns = session.say(prompt, context);
    session.end();
    Ok(turns)
}
