//! `ollm chat`: a conversation on the terminal, line by line.

use std::cell::RefCell;
use std::path::PathBuf;

use ollm_agent::{Cancel, Session, StartError};
use ollm_process::Children;
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};

use crate::app::App;
use crate::arguments::agent::AgentArguments;
use crate::control::Control;
use crate::display::{Display, Style};
use crate::error::{BLOCKED, Failure, Kind, OK};
use crate::host::{self, Desk, Host, Visit};
use crate::interrupt;
use crate::output::Output;
use crate::world::World;

mod slash;

/// The most lines that are remembered.
const HISTORY: usize = 1000;

pub(super) fn run(arguments: &AgentArguments, world: &World, output: &mut Output) -> Result<u8, Failure> {
    // What double-forks away from a tool or a hook comes back to us, and is ended with us.
    let _ = ollm_process::become_subreaper();
    let app = host::load(world, Visit::Talk)?;
    world.tell_notices(output);
    app.tell_problems(output);
    let host = Host::gather(arguments, &app, world)?;
    for note in &host.notes {
        output.tell(note);
    }
    interrupt::listen(&host.cancel);
    let code = talk(host, &app, world, output);
    if let Some(toolbox) = &app.toolbox {
        toolbox.close(output);
    }
    app.engine.trust.remember();
    // Async hooks get their last moment; only what is left then is nobody's.
    drop(app);
    Children::new().reap_strays();
    code
}

fn talk(host: Host, app: &App, world: &World, output: &mut Output) -> Result<u8, Failure> {
    let (id, cancel) = (host.id().to_owned(), host.cancel.clone());
    output.tell(&format!("{}; /help lists the commands, Ctrl-D leaves", host.model()));
    let shared = RefCell::new(output);
    let display = Display { output: &shared, style: Style::Text, open: false };
    let desk = Desk { app, world, output: &shared };
    let session = match host.start(desk, display, |_, _| {}) {
        Ok(session) => session,
        Err(StartError::Refused(_)) => return Ok(BLOCKED),
        Err(error) => return Err(Failure::new(Kind::Environment, error.to_string())),
    };
    let _control = Control::open(app.toolbox.as_ref(), &id, world).map_err(|why| shared.borrow_mut().tell(&why));
    let mut reader = Reader::new(world)?;
    let mut chat = Chat { session, desk, cancel: cancel.clone(), id };
    while let Some(line) = reader.next(&cancel) {
        cancel.rearm();
        if !chat.take(line.trim())? || cancel.is_final() {
            break;
        }
    }
    reader.save();
    chat.session.end();
    Ok(OK)
}

struct Chat<'a, 'o> {
    session: Session<'a>,
    desk: Desk<'a, 'o>,
    cancel: Cancel,
    id: String,
}

/// Reads what the person writes, with a history.
struct Reader {
    editor: DefaultEditor,
    history: PathBuf,
}

impl Reader {
    fn new(world: &World) -> Result<Reader, Failure> {
        let unread =
            |error: ReadlineError| Failure::new(Kind::Environment, format!("the terminal cannot be read: {error}"));
        let config = Config::builder().max_history_size(HISTORY).map_err(unread)?.auto_add_history(true).build();
        let mut editor = DefaultEditor::with_config(config).map_err(unread)?;
        let history = world.places.home.join("state/chat-history");
        // There may be none yet.
        let _ = editor.load_history(&history);
        Ok(Reader { editor, history })
    }

    /// The next input, which may have several lines; nothing at the end.
    fn next(&mut self, cancel: &Cancel) -> Option<String> {
        let mut input = String::new();
        let mut interrupted = false;
        loop {
            if cancel.is_final() {
                return None;
            }
            match self.editor.readline(if input.is_empty() { "> " } else { "… " }) {
                Ok(line) => match line.strip_suffix('\\') {
                    Some(part) => {
                        input.push_str(part);
                        input.push('\n');
                    }
                    None => return Some(input + &line),
                },
                // The first throws away what was written so far, the second leaves.
                Err(ReadlineError::Interrupted) if !interrupted => {
                    interrupted = true;
                    input.clear();
                }
                Err(_) => return None,
            }
        }
    }

    fn save(&mut self) {
        // A history that cannot be kept is no reason to complain at the very end.
        let _ = self.editor.save_history(&self.history);
    }
}
