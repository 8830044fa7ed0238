//! `ollm chat`: a conversation with a model. A [`ChatFront`] provides the input and shows the output: for the plain
//! terminal here, for the panel in `tui/chat`.

use ollm_agent::{Cancel, Session, StartError};
use ollm_app::control::Control;
use ollm_app::session::{self, HookContext, Resume, SessionKind, SessionOptions, SessionSetup};
use ollm_app::{AppContext, LiveApp, ReloadWatcher, SharedPort, tell_undeclared};

use crate::approver::HookApprover;
use crate::arguments::agent::AgentArguments;
use crate::error::{BLOCKED, Failure, INTERRUPTED, OK};
use crate::output::Output;
use crate::person::CallApprover;

pub(crate) mod complete;
mod files;
pub(crate) mod front;
mod reader;
mod recap;
pub(crate) mod slash;

use files::ChatFiles;
use front::{ChatFront, ChatStatus, Input, LineFront};
use ollm_protocol::Code;
pub(crate) use recap::{last_words, pick_session};

pub(super) fn run(arguments: &AgentArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let cancel = Cancel::default();
    let mut front = LineFront::new(context, &cancel, output.asker().spinner())?;
    let code = converse(arguments.options(SessionKind::Chat)?, context, &cancel, &mut front, output);
    // If a signal ended the conversation, the exit code says so.
    if cancel.is_final() && code.is_ok() { Ok(front.stop_code()) } else { code }
}

/// The end of a conversation.
enum ChatEnd {
    Code(u8),
    /// Another conversation begins: a new one, or an earlier one that continues.
    Anew(Option<Resume>),
}

/// Runs one conversation after the other, until the person leaves.
pub(crate) fn converse(
    mut options: SessionOptions,
    context: &AppContext,
    cancel: &Cancel,
    front: &mut dyn ChatFront,
    output: &mut Output,
) -> Result<u8, Failure> {
    loop {
        let approver = HookApprover::new(context, output.asker().clone(), cancel);
        let app = session::load(context, SessionKind::Chat, Some(Box::new(approver)))?;
        context.tell_notices(output);
        app.tell_problems(output);
        tell_undeclared(context, output);
        let host = SessionSetup::gather(&options, &app, cancel)?;
        for note in &host.notes {
            output.tell(note);
        }
        front.prepare();
        let app = LiveApp::new(app);
        let ended = talk(host, &app, &mut options, front, output);
        app.into_inner().close(output);
        match ended? {
            ChatEnd::Code(code) => return Ok(code),
            ChatEnd::Anew(resume) => {
                options.resume = resume;
                front.renew();
            }
        }
    }
}

fn talk(
    host: SessionSetup,
    app: &LiveApp,
    options: &mut SessionOptions,
    front: &mut dyn ChatFront,
    output: &mut Output,
) -> Result<ChatEnd, Failure> {
    let (id, cancel) = (host.id().to_owned(), host.cancel.clone());
    let context = app.read().context().clone();
    // Changes while the session starts count too.
    let watcher = ReloadWatcher::new(&app.read(), &context);
    let (model, state) = (host.model(), host.shell_box.name());
    output.tell(&format!("{model}; the box is {state}; /help lists the commands, Ctrl-D leaves"));
    let approve = Box::new(CallApprover::new(output.asker().clone(), &cancel));
    let shared = SharedPort::new(output);
    let show = front.show(&shared, &cancel);
    front.listen(&app.read().engine.bus);
    let hooks_context = HookContext { app, notices: &shared };
    let files = ChatFiles::new(&app.read(), &cancel, front.wake());
    let session = match host.start(hooks_context, approve, show, files.listener()) {
        Ok(session) => session,
        Err(StartError::Refused(_)) => return Ok(ChatEnd::Code(BLOCKED)),
        Err(StartError::Interrupted) => return Ok(ChatEnd::Code(INTERRUPTED)),
        Err(error) => return Err(Failure::new(Code::Environment, error.to_string())),
    };
    let _control = Control::open(app.read().mcp_tools.as_ref(), &id, &context).map_err(|why| shared.lock().tell(&why));
    front.begin()?;
    if options.resume.is_some() {
        front.recap(session.messages(), &shared);
    }
    let mut chat =
        Chat { session, hooks_context, output: &shared, cancel: cancel.clone(), id, watcher, files, options };
    chat.files.has_changes(app, &shared);
    // The servers of the session are known by now.
    chat.watcher.rest();
    front.status(&chat.status());
    front.work(false);
    let end = chat.listen(front);
    chat.files.tell_rest(&mut chat.session);
    chat.session.end();
    end
}

struct Chat<'a, 'o> {
    session: Session<'a>,
    hooks_context: HookContext<'a, 'o>,
    output: &'a SharedPort<&'o mut Output>,
    cancel: Cancel,
    id: String,
    watcher: ReloadWatcher,
    files: ChatFiles,
    /// The options of the next conversation.
    options: &'a mut SessionOptions,
}

/// The step after an input.
enum After {
    More,
    Leave,
    Anew(Option<Resume>),
}

impl Chat<'_, '_> {
    /// Handles inputs until one of them ends the conversation.
    fn listen(&mut self, front: &mut dyn ChatFront) -> Result<ChatEnd, Failure> {
        let app = self.hooks_context.app;
        loop {
            if self.files.is_open() {
                front.share();
            }
            let input = front.next(&mut || self.files.upcoming(app, self.output));
            let line = match input {
                Input::Text(line) => line,
                Input::Other => String::new(),
                Input::End => return Ok(ChatEnd::Code(OK)),
            };
            self.cancel.rearm();
            front.work(true);
            self.catch_up(front);
            let after = self.take(line.trim());
            self.catch_up_after(front);
            front.work(false);
            match after? {
                After::Anew(resume) => return Ok(ChatEnd::Anew(resume)),
                After::Leave => return Ok(ChatEnd::Code(OK)),
                After::More if self.cancel.is_final() => return Ok(ChatEnd::Code(OK)),
                After::More => {}
            }
        }
    }

    /// Reloads changes since the last turn, and tells hooks of changed files.
    fn catch_up(&mut self, front: &mut dyn ChatFront) {
        if self.reload() {
            front.listen(&self.hooks_context.app.read().engine.bus);
        }
        if self.files.has_changes(self.hooks_context.app, self.output) {
            self.files.tell(&mut self.session);
        }
    }

    fn catch_up_after(&mut self, front: &mut dyn ChatFront) {
        self.watcher.rest();
        front.status(&self.status());
    }

    /// Reloads changed files; returns whether anything changed.
    fn reload(&mut self) -> bool {
        let news = self.watcher.begin(self.hooks_context.app);
        news.as_ref().inspect(|news| self.output.lock().tell(news)).is_some()
    }

    fn status(&self) -> ChatStatus {
        ChatStatus {
            session: self.id.clone(),
            model: self.session.model().to_owned(),
            typed_model: self.options.model.clone(),
            approval: self.session.approval().name(),
            messages: self.session.messages().len(),
        }
    }
}
