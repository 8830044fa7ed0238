//! `ollm chat`: a conversation on the terminal, line by line.

use std::cell::RefCell;

use ollm_agent::{Cancel, Session, StartError};
use ollm_app::control::Control;
use ollm_app::session::{self, HookContext, SessionKind, SessionSetup};
use ollm_app::{App, AppContext, ReloadWatcher, Shared, tell_undeclared};

use crate::approver::HookApprover;
use crate::arguments::agent::AgentArguments;
use crate::display::{Display, Style};
use crate::error::{BLOCKED, Failure, INTERRUPTED, OK};
use crate::interrupt::{QuietTerminal, Stop};
use crate::output::Output;
use crate::person::Terminal;

mod files;
mod reader;
mod slash;

use files::ChatFiles;
use ollm_protocol::Code;
use reader::{Input, Reader};

pub(super) fn run(arguments: &AgentArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let cancel = Cancel::default();
    let app = session::load(context, SessionKind::Chat, Some(Box::new(HookApprover::new(context, &cancel))))?;
    context.tell_notices(output);
    app.tell_problems(output);
    tell_undeclared(context, output);
    let host = SessionSetup::gather(&arguments.options(SessionKind::Chat)?, &app, &cancel)?;
    for note in &host.notes {
        output.tell(note);
    }
    let stop = Stop::listen_for(&cancel);
    let _quiet = QuietTerminal::new();
    let app = RefCell::new(app);
    let code = talk(host, &app, context, output);
    let app = app.into_inner();
    app.close(output);
    // A person who leaves is done; a signal that ended us says so to whoever sent it.
    if cancel.is_final() && code.is_ok() { Ok(stop.code()) } else { code }
}

fn talk(host: SessionSetup, app: &RefCell<App>, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let (id, cancel) = (host.id().to_owned(), host.cancel.clone());
    // What changes while the session begins counts as well.
    let lookout = ReloadWatcher::new(&app.borrow(), context);
    let (model, state) = (host.model(), host.shell_box.name());
    output.tell(&format!("{model}; the box is {state}; /help lists the commands, Ctrl-D leaves"));
    let shared = Shared::new(output);
    let display = Display::new(&shared, Style::Text, &cancel);
    let desk = HookContext { app, notices: &shared };
    let files = ChatFiles::new(&cancel);
    let session = match host.start(desk, Box::new(Terminal::new(&cancel)), Box::new(display), files.listener()) {
        Ok(session) => session,
        Err(StartError::Refused(_)) => return Ok(BLOCKED),
        Err(StartError::Interrupted) => return Ok(INTERRUPTED),
        Err(error) => return Err(Failure::new(Code::Environment, error.to_string())),
    };
    let _control = Control::open(app.borrow().mcp_tools.as_ref(), &id, context).map_err(|why| shared.lock().tell(&why));
    let mut reader = Reader::new(context, &cancel)?;
    let mut chat = Chat { session, desk, output: &shared, cancel: cancel.clone(), id, lookout, files };
    chat.files.has_changes(app, &shared);
    loop {
        if chat.files.is_open() {
            reader.share();
        }
        let input = reader.next(&mut || chat.files.has_changes(app, &shared));
        let line = match input {
            Input::Text(line) => line,
            Input::Other => String::new(),
            Input::End => break,
        };
        cancel.rearm();
        chat.catch_up();
        let more = chat.take(line.trim())?;
        chat.lookout.rest();
        if !more || cancel.is_final() {
            break;
        }
    }
    chat.session.end();
    reader.leave();
    Ok(OK)
}

struct Chat<'a, 'o> {
    session: Session<'a>,
    desk: HookContext<'a, 'o>,
    output: &'a Shared<&'o mut Output>,
    cancel: Cancel,
    id: String,
    lookout: ReloadWatcher,
    files: ChatFiles,
}

impl Chat<'_, '_> {
    /// Takes in what has changed since the last turn, and tells hooks of files.
    fn catch_up(&mut self) {
        if let Some(news) = self.lookout.begin(self.desk.app) {
            self.output.lock().tell(&news);
        }
        if self.files.has_changes(self.desk.app, self.output) {
            self.files.tell(&mut self.session);
        }
    }
}
