//! The only place that prints, beside the panels. Data goes to standard output; what a person should know goes to standard
//! error. Before the panels both go to their screen.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ollm_app::{AppContext, Notices};
use ollm_protocol::{Code, Reply};
use ollm_store::{escape_for_json, escape_for_people, one_line};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::{Value, json};

use crate::ask::Asker;
use crate::error::{Failure, Kind, OK};
use crate::log::Log;
use crate::spinner::Spinner;
use crate::timeline::{DIM, PLAIN};
use crate::tui::screen::Screen;

const RED: &str = "\x1b[1;31m";

/// The two streams.
#[derive(Debug)]
pub(crate) struct Output {
    /// Nothing but the answer may be written: another program reads both streams.
    silent: bool,
    /// What went well is told as well.
    verbose: bool,
    log: Log,
    /// Who is asked; in front of the panels it is also who reads.
    asker: Asker,
    /// Why a part of the answer could not be written.
    lost: Option<String>,
    /// What is printed and told is collected here, and becomes one JSON object at the end.
    collected: Option<Collected>,
    failure_form: FailureForm,
}

/// What is told of a failure beside the words on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureForm {
    /// Nothing: nobody asked for JSON, or standard output has an answer already.
    Words,
    /// A JSON object on standard output, for the program that asked for it.
    Json,
    /// The last line of a stream of JSON objects.
    Line,
}

/// What a command would have printed and told.
#[derive(Debug, Default)]
struct Collected {
    changed: Vec<Value>,
    output: String,
    messages: Vec<String>,
}

impl Output {
    pub(crate) fn new() -> Output {
        Output::with(Asker::default())
    }

    /// For whoever is asked: lines for the terminal, or the panels.
    pub(crate) fn with(asker: Asker) -> Output {
        Output {
            silent: false,
            verbose: false,
            log: Log::default(),
            asker,
            lost: None,
            collected: None,
            failure_form: FailureForm::Words,
        }
    }

    /// Who is asked.
    pub(crate) fn asker(&self) -> &Asker {
        &self.asker
    }

    /// The panels, where they are read instead of the streams.
    fn screen(&self) -> Option<&Screen> {
        match &self.asker {
            Asker::Lines(..) => None,
            Asker::Dialog(screen) => Some(screen),
        }
    }

    /// Runs something that needs the terminal for itself, such as an editor.
    pub(crate) fn with_terminal<T>(&mut self, works: impl FnOnce() -> T) -> T {
        match self.screen() {
            None => works(),
            Some(screen) => screen.suspended(works),
        }
    }

    /// Keeps everything but the answer to ourselves.
    pub(crate) fn silence(&mut self) {
        self.silent = true;
    }

    /// Tells also what went well.
    pub(crate) fn be_verbose(&mut self) {
        self.verbose = true;
    }

    /// Collects what is printed and told from now on, for one JSON object at the end.
    pub(crate) fn collect(&mut self) {
        self.collected = Some(Collected::default());
    }

    /// Tells a failure as JSON, unless something else was answered before it.
    pub(crate) fn tell_failures_as_json(&mut self) {
        self.failure_form = FailureForm::Json;
    }

    /// Tells a failure as the last line of a stream: what is written from now on are JSON objects, one per line.
    pub(crate) fn stream_json(&mut self) {
        self.failure_form = FailureForm::Line;
    }

    /// Says for programs what was changed; people are told in words.
    pub(crate) fn changed(&mut self, what: Value) {
        if let Some(collected) = &mut self.collected {
            collected.changed.push(what);
        }
    }

    /// Ends the output of a command; its exit code.
    pub(crate) fn finish(&mut self, done: Result<u8, Failure>) -> u8 {
        self.asker.spinner().stop();
        let collected = self.collected.take();
        let (code, failure) = match done {
            Ok(code) => (code, None),
            Err(failure) => (self.failure(&failure), Some(failure)),
        };
        let document = match (collected, failure) {
            (Some(Collected { changed, output, messages }), failure) => {
                let output = output.trim_end();
                let output = (!output.is_empty()).then_some(output);
                let error = failure.as_ref().map(Failure::to_json);
                json!({"exit": code, "changed": changed, "output": output, "messages": messages, "error": error})
            }
            (None, Some(failure)) => match self.failure_form {
                FailureForm::Json => failure.document(code),
                FailureForm::Line => return self.failure_line(&failure, code),
                FailureForm::Words => return code,
            },
            (None, None) => return code,
        };
        let told = self.pretty_json(&document);
        told.map_or_else(|failure| self.failure(&failure), |_| code)
    }

    /// Tells a failure also on standard output, where that is a stream that goes on.
    pub(crate) fn failure_in_stream(&mut self, failure: &Failure) {
        let code = self.failure(failure);
        if self.failure_form == FailureForm::Line {
            self.failure_line(failure, code);
        }
    }

    /// Writes a failure as a line of the stream. A signal is the usual end of one, and what cannot be written cannot be told.
    fn failure_line(&mut self, failure: &Failure, code: u8) -> u8 {
        if failure.code.is_none() || self.lost.is_some() {
            return code;
        }
        let told = self.json(&failure.line(code));
        told.map_or_else(|failure| self.failure(&failure), |_| code)
    }

    /// Shows on a terminal that something goes on, once that takes long.
    pub(crate) fn busy(&self, what: &str) {
        if !self.silent && self.collected.is_none() && self.screen().is_none() {
            self.asker.spinner().start(what);
        }
    }

    /// Nothing goes on any more.
    pub(crate) fn idle(&self) {
        self.asker.spinner().stop();
    }

    /// Writes down in the log what was told so far.
    pub(crate) fn write_log(&mut self, context: &AppContext) {
        self.log.write(context);
    }

    /// Writes one line of data. A terminal would obey control characters in it; another program gets it byte for byte.
    pub(crate) fn line(&mut self, text: &str) -> Result<u8, Failure> {
        let text = if is_shown() { escape_for_people(text) } else { text.into() };
        if let Some(screen) = self.screen() {
            screen.show(&format!("{text}\n"));
            return Ok(OK);
        }
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
    pub(crate) fn text(&mut self, text: &str) -> Result<u8, Failure> {
        if let Some(collected) = &mut self.collected {
            collected.output.extend(anstream::adapter::strip_str(text));
            return Ok(OK);
        }
        if let Some(screen) = self.screen() {
            screen.show(text);
            return Ok(OK);
        }
        self.answered();
        let shown = || anstream::stdout().write_all(text.as_bytes()).and_then(|()| anstream::stdout().flush());
        written(self.asker.spinner().hidden(shown), OK)
    }

    /// Writes an answer byte for byte.
    pub(crate) fn bytes(&mut self, stdout: &[u8], stderr: &[u8], code: u8) -> Result<u8, Failure> {
        if let Some(collected) = &mut self.collected {
            collected.output.push_str(&String::from_utf8_lossy(stdout));
            collected.messages.extend((!stderr.is_empty()).then(|| String::from_utf8_lossy(stderr).into_owned()));
            return Ok(code);
        }
        if let Some(screen) = self.screen() {
            for part in [stdout, stderr].into_iter().filter(|part| !part.is_empty()) {
                screen.show(&escape_for_people(&String::from_utf8_lossy(part)));
            }
            return Ok(code);
        }
        self.answered();
        // An answer may end within a line, below which there is no room.
        self.asker.spinner().stop();
        let mut out = io::stdout().lock();
        let result = out.write_all(stdout).and_then(|()| out.flush()).and_then(|()| io::stderr().write_all(stderr));
        written(result, code).inspect_err(|failure| self.lost = self.lost.take().or(Some(failure.message.clone())))
    }

    /// Standard output has an answer, which no second one may follow; lines of a stream may.
    fn answered(&mut self) {
        if self.failure_form == FailureForm::Json {
            self.failure_form = FailureForm::Words;
        }
    }

    /// Fails if a part of an answer that was written as it came was lost.
    pub(crate) fn is_whole(&self) -> Result<(), Failure> {
        self.lost.as_ref().map_or(Ok(()), |why| Err(Failure::new(Code::OutputLost, why)))
    }

    /// Whether nobody reads standard output any more.
    pub(crate) fn is_unread(&self) -> bool {
        if self.screen().is_some() {
            return false;
        }
        let stdout = io::stdout();
        let mut look = [PollFd::new(&stdout, PollFlags::empty())];
        rustix::event::poll(&mut look, Some(&Timespec::default())).is_ok()
            && look.iter().any(|seen| seen.revents().contains(PollFlags::ERR))
    }

    /// Tells the person something, in one line.
    pub(crate) fn tell(&mut self, text: &str) {
        self.log.add("note", text);
        self.say(text);
    }

    /// Tells the person that something failed, in one line.
    pub(crate) fn tell_failure(&mut self, text: &str) {
        self.log.add("error", text);
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
        if let Some(collected) = &mut self.collected {
            return collected.messages.push(one_line(text));
        }
        if self.silent {
            return;
        }
        match self.screen() {
            Some(screen) => screen.show(&format!("{}\n", one_line(text))),
            // There is nobody left to tell when standard error is closed.
            None => self.asker.spinner().hidden(|| drop(writeln!(io::stderr(), "ollm: {}", one_line(text)))),
        }
    }

    /// Tells the person something of several lines.
    pub(crate) fn explain(&mut self, text: &str) {
        if let Some(collected) = &mut self.collected {
            return collected.messages.push(anstream::adapter::strip_str(text).to_string().trim_end().to_owned());
        }
        if self.silent {
            return;
        }
        match self.screen() {
            Some(screen) => screen.show(text),
            None => self.asker.spinner().hidden(|| drop(anstream::stderr().write_all(text.as_bytes()))),
        }
    }

    /// Shows on a terminal how far something is that takes long.
    pub(crate) fn progress(&self) -> Progress {
        let is_watched = !self.silent && self.collected.is_none() && self.screen().is_none();
        Progress { spinner: self.asker.spinner(), bar: None, is_watched }
    }

    /// Tells why nothing came of it; the answer is the exit code.
    pub(crate) fn failure(&mut self, failure: &Failure) -> u8 {
        self.silent = false;
        if let Some(styled) = &failure.styled {
            self.explain(styled);
        } else if !failure.message.is_empty() {
            if failure.kind != Kind::Usage {
                self.log.add("error", &failure.message);
            }
            let code = failure.code.map(|code| format!("{RED}error[{code}]{PLAIN}: "));
            let message = one_line(&failure.message);
            if let Some(screen) = self.screen() {
                screen.show(&format!("{}{message}\n", code.unwrap_or_default()));
            } else {
                let who = code.unwrap_or_else(|| "ollm: ".to_owned());
                let _ = writeln!(anstream::stderr(), "{who}{message}");
            }
        }
        for hint in &failure.hints {
            self.explain(&format!("  hint: {}\n", one_line(hint)));
        }
        if let Some(code) = failure.code.filter(|_| io::stderr().is_terminal()) {
            self.explain(&format!("{DIM}  `ollm help {code}` explains it{PLAIN}\n"));
        }
        failure.kind as u8
    }
}

impl Notices for Output {
    fn tell(&mut self, text: &str) {
        Output::tell(self, text);
    }

    fn tell_failure(&mut self, text: &str) {
        Output::tell_failure(self, text);
    }

    fn detail(&mut self, text: &dyn Fn() -> String) {
        Output::detail(self, text);
    }

    fn wants_details(&self) -> bool {
        self.is_verbose()
    }
}

/// How far something long is, on a terminal; elsewhere nothing is drawn.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Moves while it is not known how much there is.
    spinner: Spinner,
    bar: Option<ProgressBar>,
    is_watched: bool,
}

impl Progress {
    /// Shows what happens, and how many bytes of how many are done; a total of zero is unknown.
    pub(crate) fn step(&mut self, what: &str, done: u64, total: u64) {
        if !self.is_watched {
            return;
        }
        if total == 0 {
            self.bar.take().iter().for_each(ProgressBar::finish_and_clear);
            return self.spinner.start(what);
        }
        self.spinner.stop();
        let bar = self.bar.get_or_insert_with(bytes_bar);
        bar.set_message(what.to_owned());
        bar.set_length(total);
        bar.set_position(done);
    }

    /// Leaves the terminal as it was.
    pub(crate) fn clear(self) {
        self.spinner.stop();
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

fn bytes_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {eta} {msg}") {
        bar.set_style(style);
    }
    bar
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

/// Rows and columns of the terminal that the person reads; zero for what it does not know.
pub(crate) fn screen_size() -> Option<(u16, u16)> {
    rustix::termios::tcgetwinsize(io::stderr()).ok().map(|size| (size.ws_row, size.ws_col))
}

/// Shows something to the person at the terminal, from any thread: a part of a question, not a message of its own.
pub(crate) fn say(text: &str) {
    let _ = write!(io::stderr(), "{text}");
}

/// A text for the person at the terminal, without colours where they are not wanted.
pub(crate) fn painted(text: String) -> String {
    match anstream::AutoStream::choice(&io::stderr()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(&text).to_string(),
        _ => text,
    }
}

/// Writes one JSON value on a line, from any thread: a part of a stream of them.
pub(crate) fn print_json(value: &Value) {
    let json = value.to_string();
    let json = if is_shown() { escape_for_json(&json) } else { json.into() };
    // A reader that went away is its own business; other errors show when the answer is written.
    let _ = writeln!(io::stdout().lock(), "{json}");
}

fn written(result: io::Result<()>, code: u8) -> Result<u8, Failure> {
    match result {
        Ok(()) => Ok(code),
        // The reader went away; that is its own business.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(code),
        Err(error) => Err(Failure::new(Code::OutputLost, format!("cannot write the answer: {error}"))),
    }
}
