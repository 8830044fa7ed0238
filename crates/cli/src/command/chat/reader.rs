//! What the person writes, line by line, with a history.
//!
//! The editor waits for keys and for nothing else, so it has a thread of its own: whoever tells us to end need not wait
//! until somebody presses one.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use ollm_agent::Cancel;
use ollm_app::AppContext;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};

use crate::error::{Failure, Kind};

/// The most lines that are remembered.
const HISTORY: usize = 1000;
/// How often a waiting caller looks whether it is still wanted.
const LOOKING: Duration = Duration::from_millis(50);

/// Reads what the person writes.
pub(super) struct Reader {
    wishes: Sender<()>,
    lines: Receiver<Option<String>>,
    cancel: Cancel,
    /// How the terminal was before the editor changed it.
    modes: Option<Termios>,
}

impl Reader {
    pub(super) fn new(context: &AppContext, cancel: &Cancel) -> Result<Reader, Failure> {
        let unread =
            |error: ReadlineError| Failure::new(Kind::Environment, format!("the terminal cannot be read: {error}"));
        let config = Config::builder().max_history_size(HISTORY).map_err(unread)?.auto_add_history(true).build();
        let mut editor = DefaultEditor::with_config(config).map_err(unread)?;
        let history = context.places.home.join("state/chat-history");
        // There may be none yet.
        let _ = editor.load_history(&history);
        let (wishes, asked) = channel();
        let (sender, lines) = channel();
        let desk = EditorThread { editor, history, cancel: cancel.clone() };
        let began = thread::Builder::new().name("editor".to_owned()).spawn(move || desk.serve(&asked, &sender));
        began.map_err(|error| unread(ReadlineError::Io(error)))?;
        Ok(Reader { wishes, lines, cancel: cancel.clone(), modes: tcgetattr(io::stdin()).ok() })
    }

    /// The next input, which may have several lines; nothing at the end.
    pub(super) fn next(&self) -> Option<String> {
        self.wishes.send(()).ok()?;
        loop {
            match self.lines.recv_timeout(LOOKING) {
                Ok(line) => return line,
                Err(RecvTimeoutError::Timeout) if !self.cancel.is_final() => {}
                Err(_) => return None,
            }
        }
    }

    /// Leaves the terminal as it was: the editor may still be waiting for a key.
    pub(super) fn leave(self) {
        if let Some(modes) = &self.modes {
            // A terminal that is gone needs nothing.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, modes);
        }
    }
}

/// The thread's side.
struct EditorThread {
    editor: DefaultEditor,
    history: PathBuf,
    cancel: Cancel,
}

impl EditorThread {
    fn serve(mut self, asked: &Receiver<()>, lines: &Sender<Option<String>>) {
        while asked.recv().is_ok() {
            let line = self.read();
            // A history that cannot be kept is no reason to complain in the middle of a talk.
            let _ = self.editor.save_history(&self.history);
            if lines.send(line).is_err() {
                return;
            }
        }
    }

    fn read(&mut self) -> Option<String> {
        let mut input = String::new();
        let mut interrupted = false;
        loop {
            if self.cancel.is_final() {
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
}
