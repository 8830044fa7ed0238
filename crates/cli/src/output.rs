//! The only place that prints. Data goes to standard output; what a person should know goes to standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ollm_app::{Notices, World};
use ollm_protocol::Reply;
use ollm_store::{escape_for_json, escape_for_people, one_line};
use serde_json::Value;

use crate::error::{Failure, Kind, OK};
use crate::log::Log;

/// The two streams.
#[derive(Debug)]
pub(crate) struct Output {
    /// Nothing but the answer may be written: another program reads both streams.
    silent: bool,
    /// What went well is told as well.
    verbose: bool,
    log: Log,
    /// Why a part of the answer could not be written.
    lost: Option<String>,
}

impl Output {
    pub(crate) fn new() -> Output {
        Output { silent: false, verbose: false, log: Log::default(), lost: None }
    }

    /// Keeps everything but the answer to ourselves.
    pub(crate) fn silence(&mut self) {
        self.silent = true;
    }

    /// Tells also what went well.
    pub(crate) fn be_verbose(&mut self) {
        self.verbose = true;
    }

    /// Writes down in the log what was told so far.
    pub(crate) fn write_log(&mut self, world: &World) {
        self.log.write(world);
    }

    /// Writes one line of data. A terminal would obey control characters in it; another program gets it byte for byte.
    pub(crate) fn line(&mut self, text: &str) -> Result<u8, Failure> {
        let text = if is_shown() { escape_for_people(text) } else { text.into() };
        self.bytes(format!("{text}\n").as_bytes(), &[], OK)
    }

    /// Writes one JSON value on a line.
    pub(crate) fn json(&mut self, value: &Value) -> Result<u8, Failure> {
        self.json_text(&value.to_string())
    }

    /// Writes indented JSON, for people who read along.
    pub(crate) fn pretty_json(&mut self, value: &Value) -> Result<u8, Failure> {
        self.json_text(&format!("{value:#}"))
    }

    /// Writes JSON that is text already. On a terminal it is the same JSON without characters that control, hide or reorder.
    pub(crate) fn json_text(&mut self, json: &str) -> Result<u8, Failure> {
        let json = if is_shown() { escape_for_json(json) } else { json.into() };
        self.line(&json)
    }

    /// Writes the answer to a host, byte for byte; on a terminal like [`Output::json_text`].
    pub(crate) fn reply(&mut self, reply: &Reply) -> Result<u8, Failure> {
        if is_shown() {
            let text = String::from_utf8_lossy(&reply.stdout);
            let said = String::from_utf8_lossy(&reply.stderr);
            return self.bytes(escape_for_json(&text).as_bytes(), escape_for_people(&said).as_bytes(), reply.exit);
        }
        self.bytes(&reply.stdout, &reply.stderr, reply.exit)
    }

    /// Writes styled text; the styles are dropped where nobody would see them.
    #[expect(clippy::unused_self, reason = "who may print holds an Output")]
    pub(crate) fn text(&mut self, text: &str) -> Result<u8, Failure> {
        written(anstream::stdout().write_all(text.as_bytes()).and_then(|()| anstream::stdout().flush()), OK)
    }

    /// Writes an answer byte for byte.
    pub(crate) fn bytes(&mut self, stdout: &[u8], stderr: &[u8], code: u8) -> Result<u8, Failure> {
        let mut out = io::stdout().lock();
        let result = out.write_all(stdout).and_then(|()| out.flush()).and_then(|()| io::stderr().write_all(stderr));
        written(result, code).inspect_err(|failure| self.lost = self.lost.take().or(Some(failure.message.clone())))
    }

    /// Fails if a part of an answer that was written as it came was lost.
    pub(crate) fn is_whole(&self) -> Result<(), Failure> {
        self.lost.as_ref().map_or(Ok(()), |why| Err(Failure::new(Kind::Environment, why)))
    }

    /// Tells the person something, in one line.
    pub(crate) fn tell(&mut self, text: &str) {
        self.log.add("note", text);
        self.say(text);
    }

    /// Tells the person what went well, if that is wanted.
    pub(crate) fn detail(&mut self, text: impl FnOnce() -> String) {
        if self.verbose {
            let text = text();
            self.log.add("detail", &text);
            self.say(&text);
        }
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    fn say(&mut self, text: &str) {
        if !self.silent {
            // There is nobody left to tell when standard error is closed.
            let _ = writeln!(io::stderr(), "ollm: {}", one_line(text));
        }
    }

    /// Tells the person something of several lines.
    pub(crate) fn explain(&mut self, text: &str) {
        if !self.silent {
            let _ = anstream::stderr().write_all(text.as_bytes());
        }
    }

    /// Tells why nothing came of it; the answer is the exit code.
    pub(crate) fn failure(&mut self, failure: &Failure) -> u8 {
        self.silent = false;
        if !failure.message.is_empty() {
            if failure.kind != Kind::Usage {
                self.log.add("error", &failure.message);
            }
            let _ = writeln!(io::stderr(), "ollm: {}", one_line(&failure.message));
        }
        for hint in &failure.hints {
            let _ = writeln!(io::stderr(), "  hint: {}", one_line(hint));
        }
        failure.kind as u8
    }
}

impl Notices for Output {
    fn tell(&mut self, text: &str) {
        Output::tell(self, text);
    }

    fn detail(&mut self, text: &dyn Fn() -> String) {
        Output::detail(self, text);
    }
}

/// A path as JSON tells it: JSON has no way to write a name that is not Unicode, so that what is wrong in it becomes `�`.
pub(crate) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Whether a person types, and reads what we answer.
pub(crate) fn is_conversation() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Whether a person reads what we answer.
pub(crate) fn is_shown() -> bool {
    io::stdout().is_terminal()
}

/// Whether there is a person to ask.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question on the terminal; without one there is nobody to ask.
pub(crate) fn ask(question: &str) -> Option<String> {
    is_terminal().then(|| ask_unless(question, &|| false).unwrap_or_default())
}

/// Asks like [`ask`], until nobody wants the answer any more: then, and at the end of the input, there is none.
pub(crate) fn ask_unless(question: &str, over: &dyn Fn() -> bool) -> Option<String> {
    if !is_terminal() {
        return None;
    }
    say(question);
    while !is_answered() {
        if over() {
            say("\n");
            return None;
        }
    }
    let mut answer = String::new();
    // A line is there as a whole or not at all, so that reading it does not block.
    let read = if over() { 0 } else { io::stdin().read_line(&mut answer).ok()? };
    if read == 0 {
        say("\n");
        return None;
    }
    Some(answer.trim().to_owned())
}

/// Whether a line was typed, or none will be; looks for a moment.
fn is_answered() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let moment = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    match poll(&mut [PollFd::new(&io::stdin(), PollFlags::IN)], Some(&moment)) {
        Ok(ready) => ready > 0,
        // A signal came in between; whatever else it is, reading will tell.
        Err(error) => error != rustix::io::Errno::INTR,
    }
}

/// Goes on with the removal of something only if a person says yes; `--yes` says it beforehand.
pub(crate) fn confirm(question: &str, what: &str) -> Result<(), Failure> {
    match ask(question) {
        Some(answer) if answer.eq_ignore_ascii_case("y") => Ok(()),
        Some(_) => Err(Failure::new(Kind::Usage, format!("{what} stays, because you did not say yes"))),
        None => Err(Failure::new(Kind::Usage, format!("{what} stays: there is no terminal to ask on"))
            .hint("`--yes` removes it without asking")),
    }
}

/// Shows something to the person at the terminal, from any thread: a part of a question, not a message of its own.
pub(crate) fn say(text: &str) {
    let _ = write!(io::stderr(), "{text}");
}

/// A line that was typed already; nobody waits for one.
pub(crate) fn typed() -> Option<String> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = io::stdin();
    let there = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).ok()? > 0;
    let mut line = String::new();
    let read = if there { stdin.read_line(&mut line).ok()? } else { 0 };
    (read > 0).then(|| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// Asks for something that nobody else should see on the screen. However it ends, the terminal is as it was.
pub(crate) fn ask_secret(question: &str) -> Option<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let before = tcgetattr(io::stdin()).ok()?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    let signals = Signals::hold();
    loop {
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet).ok()?;
        let answer = ask_unless(question, &|| signals.came().is_some());
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
        let Some(signal) = signals.take() else {
            let _ = writeln!(io::stderr());
            return is_terminal().then(|| answer.unwrap_or_default());
        };
        // Whoever was only stopped is asked again.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

/// Signals that would end or stop us in the middle of something; dropped, they do so again.
struct Signals {
    came: Arc<AtomicUsize>,
    pass: Arc<AtomicBool>,
}

impl Signals {
    fn hold() -> Signals {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
        let held = Signals { came: Arc::default(), pass: Arc::default() };
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP] {
            // One that cannot be held ends us at once, as ever.
            let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&held.pass));
            let number = usize::try_from(signal).unwrap_or_default();
            let _ = signal_hook::flag::register_usize(signal, Arc::clone(&held.came), number);
        }
        held
    }

    fn came(&self) -> Option<i32> {
        i32::try_from(self.came.load(Ordering::SeqCst)).ok().filter(|signal| *signal > 0)
    }

    fn take(&self) -> Option<i32> {
        let came = self.came();
        self.came.store(0, Ordering::SeqCst);
        came
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.pass.store(true, Ordering::SeqCst);
    }
}

fn written(result: io::Result<()>, code: u8) -> Result<u8, Failure> {
    match result {
        Ok(()) => Ok(code),
        // The reader went away; that is its own business.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(code),
        Err(error) => Err(Failure::new(Kind::Environment, format!("cannot write the answer: {error}"))),
    }
}
