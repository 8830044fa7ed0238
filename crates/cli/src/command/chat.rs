//! `ollm chat`: a conversation on the terminal, line by line.

use std::cell::RefCell;
use std::path::PathBuf;

use ollm_agent::{Cancel, Session, StartError};
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};
use serde_json::Value;

use crate::app::App;
use crate::arguments::agent::AgentArguments;
use crate::display::{Display, Style};
use crate::error::{BLOCKED, Failure, Kind, OK};
use crate::host::{self, Host};
use crate::interrupt;
use crate::model;
use crate::output::Output;
use crate::world::World;

/// The most lines that are remembered.
const HISTORY: usize = 1000;

/// What the commands are for.
const HELP: &str = "\
/hooks          the hooks there are
/tools          the tools the model has
/model [NAME]   the model, or another one
/session        this conversation
/trigger NAME   tell the hooks of user_triggered
/help           this list
/quit           leave (as Ctrl-D does)";

pub(super) fn run(arguments: &AgentArguments, world: &World, output: &mut Output) -> Result<u8, Failure> {
    // What double-forks away from a tool or a hook comes back to us, and is ended with us.
    let _ = ollm_process::become_subreaper();
    let app = host::load(world)?;
    world.tell_notices(output);
    app.tell_problems(output);
    let host = Host::gather(arguments, world)?;
    for note in &host.notes {
        output.tell(note);
    }
    interrupt::listen(&host.cancel);
    let code = talk(host, &app, world, output);
    app.engine.children().reap_strays();
    app.engine.trust.remember();
    code
}

fn talk(host: Host, app: &App, world: &World, output: &mut Output) -> Result<u8, Failure> {
    let (id, cancel) = (host.id().to_owned(), host.cancel.clone());
    output.tell(&format!("{}; /help lists the commands, Ctrl-D leaves", host.model()));
    let shared = RefCell::new(output);
    let display = Display { output: &shared, style: Style::Text, open: false };
    let session = match host.start(&app.engine, display, |_, _| {}) {
        Ok(session) => session,
        Err(StartError::Refused(_)) => return Ok(BLOCKED),
        Err(error) => return Err(Failure::new(Kind::Environment, error.to_string())),
    };
    let mut reader = Reader::new(world)?;
    let mut chat = Chat { session, app, world, output: &shared, id };
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
    app: &'a App,
    world: &'a World,
    output: &'a RefCell<&'o mut Output>,
    id: String,
}

impl Chat<'_, '_> {
    /// Takes one input; says whether more is wanted.
    fn take(&mut self, line: &str) -> Result<bool, Failure> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word {
            "" => {}
            "/quit" | "/exit" => return Ok(false),
            "/help" => self.tell(HELP)?,
            "/tools" => self.tell(&self.session.tools().join("\n"))?,
            "/hooks" => self.tell(&self.hooks())?,
            "/model" => self.model(rest.trim())?,
            "/trigger" if !rest.trim().is_empty() => {
                self.session.trigger(rest.trim(), Value::Null);
            }
            "/session" => self.tell(&format!("{}  {} messages", self.id, self.session.messages().len()))?,
            // A path is no command.
            _ if word.starts_with('/') && !word.get(1..).is_some_and(|rest| rest.contains('/')) => {
                self.tell(&format!("there is no command {word}\n{HELP}"))?;
            }
            _ => {
                self.session.say(line, None);
            }
        }
        Ok(true)
    }

    fn tell(&self, text: &str) -> Result<(), Failure> {
        self.output.borrow_mut().text(&format!("{}\n", ollm_store::escape_for_people(text))).map(drop)
    }

    fn hooks(&self) -> String {
        let hooks = self.app.hooks();
        let lines: Vec<&str> = hooks.iter().map(|hook| hook.id()).collect();
        if lines.is_empty() { "there are no hooks".to_owned() } else { lines.join("\n") }
    }

    fn model(&mut self, name: &str) -> Result<(), Failure> {
        if !name.is_empty() {
            match model::open(Some(name), self.world) {
                Ok(model) => self.session.set_model(model),
                Err(failure) => return self.tell(&failure.message),
            }
        }
        self.tell(self.session.model())
    }
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
