//! Reads the person's input line by line, with a history.
//!
//! The editor waits only for keys, so it has a thread of its own. A signal that ends us need not wait for a key. If
//! something else may need attention between two inputs, the editor begins with the first key. Until then the terminal
//! is free.

use std::borrow::Cow;
use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use ollm_agent::Cancel;
use ollm_app::{AppContext, Wait, WakeSignal};
use ollm_protocol::Code;
use ollm_store::without_hidden;
use rustix::termios::{ControlModes, InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, ExternalPrinter, Helper};
use signal_hook::consts::SIGCONT;
use signal_hook::iterator::Signals;

use super::complete::complete;
use super::front::{Input, Upcoming, written_text};
use crate::error::Failure;
use crate::output::say;

/// The limit of remembered lines.
const HISTORY: usize = 1000;
const PROMPT: &str = "> ";
/// Hides an empty prompt.
const NO_PROMPT: &str = "\r\x1b[K";

/// Nothing else needs attention between two inputs.
const ALONE: u8 = 0;
/// Something else may need attention.
const SHARED: u8 = 1;
/// Something else needs attention.
const WANTED: u8 = 2;

/// Reads the person's input.
pub(super) struct LineInput {
    wishes: Sender<()>,
    lines: Receiver<Input>,
    /// Woken by each input and by all other news.
    wake: WakeSignal,
    /// Whether the editor was already asked for an input.
    is_asked: bool,
    /// The use of the terminal between two inputs.
    between: Arc<AtomicU8>,
    /// Wakes the editor while it waits for the first key.
    editor: WakeSignal,
    cancel: Cancel,
    /// The terminal's modes before the editor changed them.
    modes: Option<Termios>,
}

impl LineInput {
    pub(super) fn new(completing: Completing, cancel: &Cancel, wake: &WakeSignal) -> Result<LineInput, Failure> {
        let unread =
            |error: ReadlineError| Failure::new(Code::Environment, format!("the terminal cannot be read: {error}"));
        let config = Config::builder().max_history_size(HISTORY).map_err(unread)?.auto_add_history(true);
        // The highlighter also removes hidden characters, so it must run even without colours.
        let config = config.completion_type(CompletionType::List).color_mode(ColorMode::Forced).build();
        let mut editor: ChatEditor = Editor::with_config(config).map_err(unread)?;
        let history = completing.context.places.home.join("state/chat-history");
        editor.set_helper(Some(completing));
        // There may be no history yet.
        let _ = editor.load_history(&history);
        let (wishes, asked) = channel();
        let (sender, lines) = channel();
        let between = Arc::new(AtomicU8::new(ALONE));
        let is_editing = editor.create_external_printer().map(redraw_after_stops).unwrap_or_default();
        let (woken, answered) = (WakeSignal::new()?, wake.clone());
        let thread = EditorThread {
            editor,
            history,
            cancel: cancel.clone(),
            between: Arc::clone(&between),
            wake: woken.clone(),
            is_editing,
        };
        let began = thread::Builder::new().name("editor".to_owned()).spawn(move || {
            thread.serve(&asked, &sender, &answered);
            // The closed channel tells the session that this thread has ended.
            drop(sender);
            answered.wake();
        });
        began.map_err(|error| unread(ReadlineError::Io(error)))?;
        let (cancel, modes) = (cancel.clone(), tcgetattr(io::stdin()).ok());
        Ok(LineInput { wishes, lines, wake: wake.clone(), is_asked: false, between, editor: woken, cancel, modes })
    }

    /// From now on, something else may need attention between two inputs.
    pub(super) fn share(&self) {
        // It may already need attention.
        let _ = self.between.compare_exchange(ALONE, SHARED, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The next input, or [`Input::Other`] when `upcoming` says that something else needs attention.
    pub(super) fn next(&mut self, upcoming: &mut dyn FnMut() -> Upcoming) -> Input {
        if !self.is_asked && self.wishes.send(()).is_err() {
            return Input::End;
        }
        self.is_asked = true;
        let mut is_wanted = false;
        loop {
            match self.lines.try_recv() {
                Ok(input) => {
                    self.is_asked = false;
                    let _ = self.between.compare_exchange(WANTED, SHARED, Ordering::Relaxed, Ordering::Relaxed);
                    return input;
                }
                Err(TryRecvError::Empty) if !self.cancel.is_final() => {}
                Err(_) => {
                    self.editor.wake();
                    return Input::End;
                }
            }
            // The request waits for the editor, which may have a half-typed line.
            let longest = match if is_wanted { Upcoming::OnWake } else { upcoming() } {
                // Without a terminal there is nothing to free.
                Upcoming::Now if self.modes.is_none() => return Input::Other,
                Upcoming::Now => {
                    is_wanted = true;
                    self.between.store(WANTED, Ordering::Relaxed);
                    self.editor.wake();
                    None
                }
                Upcoming::Within(pause) => Some(pause),
                Upcoming::OnWake => None,
            };
            self.wake.wait(longest);
        }
    }

    /// Restores the terminal, because the editor may still be waiting for a key.
    pub(super) fn leave(self) {
        if let Some(modes) = &self.modes {
            // A closed terminal needs no restoring.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, modes);
        }
    }
}

type ChatEditor = Editor<Completing, FileHistory>;

/// The completion on Tab.
pub(super) struct Completing {
    pub(super) context: AppContext,
    /// The model in its last typed form.
    pub(super) typed_model: Arc<Mutex<Option<String>>>,
}

impl Completer for Completing {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed_model = self.typed_model.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let found = complete(line.get(..at).unwrap_or_default(), typed_model.as_deref(), &self.context);
        Ok(found.map_or((at, Vec::new()), |found| (found.start, found.candidates)))
    }
}

impl Helper for Completing {}

/// Pasted text reaches the terminal as plain text: removed characters have no width.
impl Highlighter for Completing {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        without_hidden(line)
    }

    fn highlight_char(&self, line: &str, _: usize, _: CmdKind) -> bool {
        matches!(without_hidden(line), Cow::Owned(_))
    }
}

impl Validator for Completing {}

impl Hinter for Completing {
    type Hint = String;
}

/// The data of the editor's thread.
struct EditorThread {
    editor: ChatEditor,
    history: PathBuf,
    cancel: Cancel,
    between: Arc<AtomicU8>,
    wake: WakeSignal,
    is_editing: Arc<AtomicBool>,
}

impl EditorThread {
    fn serve(mut self, asked: &Receiver<()>, lines: &Sender<Input>, answered: &WakeSignal) {
        while asked.recv().is_ok() {
            let input = self.read();
            // A history that cannot be saved is no reason for a message during a conversation.
            let _ = self.editor.append_history(&self.history);
            if lines.send(input).is_err() {
                return;
            }
            answered.wake();
        }
    }

    fn read(&mut self) -> Input {
        let mut input = String::new();
        let mut interrupted = false;
        if self.between.load(Ordering::Relaxed) != ALONE && !self.is_key_pressed() {
            return Input::Other;
        }
        loop {
            if self.cancel.is_final() {
                return Input::End;
            }
            self.is_editing.store(true, Ordering::SeqCst);
            let read = self.editor.readline(if input.is_empty() { PROMPT } else { "… " });
            self.is_editing.store(false, Ordering::SeqCst);
            match read {
                Ok(line) => match line.strip_suffix('\\') {
                    Some(part) => {
                        input.push_str(part);
                        input.push('\n');
                    }
                    None => return Input::Text(written_text(&(input + &line))),
                },
                // The first interrupt discards the typed text, the second one leaves.
                Err(ReadlineError::Interrupted) if !interrupted => {
                    interrupted = true;
                    input.clear();
                }
                Err(_) => return Input::End,
            }
        }
    }

    /// Waits for a key and leaves it to the editor; false if something else needed attention first.
    fn is_key_pressed(&self) -> bool {
        let Ok(before) = tcgetattr(io::stdin()) else { return true };
        let mut key_by_key = before.clone();
        key_by_key.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        if tcsetattr(io::stdin(), OptionalActions::Now, &key_by_key).is_err() {
            return true;
        }
        say(PROMPT);
        let stdin = io::stdin();
        let is_wanted = || self.between.load(Ordering::Relaxed) == WANTED;
        while !is_wanted() && !self.cancel.is_final() {
            if self.wake.wait_or_read(Some(stdin.as_fd()), None) == Wait::Readable {
                break;
            }
        }
        let is_wanted = is_wanted();
        say(NO_PROMPT);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        !is_wanted
    }
}

/// Redraws a line that is being edited when the process continues after a stop: a shell has used the terminal
/// meanwhile, and changed its modes. The returned flag says whether there is such a line.
fn redraw_after_stops(mut printer: impl ExternalPrinter + Send + 'static) -> Arc<AtomicBool> {
    let is_editing = Arc::<AtomicBool>::default();
    let edits = Arc::clone(&is_editing);
    let Ok(mut signals) = Signals::new([SIGCONT]) else { return is_editing };
    let _ = thread::Builder::new().name("continued".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if edits.load(Ordering::SeqCst) && edit_modes().is_some() {
                // The editor redraws its line below other output.
                let _ = printer.print(String::new());
            }
        }
    });
    is_editing
}

/// Sets the terminal modes for editing lines.
fn edit_modes() -> Option<()> {
    let mut modes = tcgetattr(io::stdin()).ok()?;
    modes
        .input_modes
        .remove(InputModes::BRKINT | InputModes::ICRNL | InputModes::INPCK | InputModes::ISTRIP | InputModes::IXON);
    modes.control_modes.insert(ControlModes::CS8);
    modes.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN | LocalModes::ISIG);
    tcsetattr(io::stdin(), OptionalActions::Now, &modes).ok()
}
