//! The only place that prints, apart from the panels. Data goes to standard output, and messages to standard error.
//! With the panels, both go to their screen.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ollm_app::{AppContext, Notices};
use ollm_catalog::Problem;
use ollm_protocol::{Code, Reply};
use ollm_store::{escape_for_json, escape_for_people, one_line};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::{Value, json};

use crate::ask::Asker;
use crate::error::{ErrorKind, Failure, OK};
use crate::log::Log;
use crate::problem;
use crate::spinner::Spinner;
use crate::timeline::{DIM, PLAIN};
use crate::tui::screen::Screen;
use crate::wrap::{lines, sentence};

const RED: &str = "\x1b[1;31m";

/// The two streams.
#[derive(Debug)]
pub(crate) struct Output {
    /// Whether only the answer may be written, because another program reads both streams.
    silent: bool,
    /// Whether messages take one line each, because programs rely on that.
    has_lines_only: bool,
    /// Whether successes are reported too.
    verbose: bool,
    log: Log,
    /// Asks the person; with the panels it also shows texts.
    asker: Asker,
    /// The reason why a part of the answer could not be written.
    lost: Option<String>,
    /// Collects everything that is printed and told, for one JSON object at the end.
    collected: Option<Collected>,
    failure_form: FailureForm,
}

/// The form of a failure on standard output, in addition to the message on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureForm {
    /// Nothing: JSON is not wanted, or standard output already has an answer.
    Words,
    /// A JSON object on standard output, for the program that asked for it.
    Json,
    /// The last line of a stream of JSON objects.
    Line,
}

/// The output of a command that is collected.
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

    /// Output for this asker: to the terminal, or to the panels.
    pub(crate) fn with(asker: Asker) -> Output {
        Output {
            silent: false,
            has_lines_only: false,
            verbose: false,
            log: Log::default(),
            asker,
            lost: None,
            collected: None,
            failure_form: FailureForm::Words,
        }
    }

    /// Asks the person.
    pub(crate) fn asker(&self) -> &Asker {
        &self.asker
    }

    /// The panels' screen, if it replaces the streams.
    fn screen(&self) -> Option<&Screen> {
        match &self.asker {
            Asker::Lines(..) => None,
            Asker::Dialog(screen) => Some(screen),
        }
    }

    /// Runs something that needs the terminal alone, such as an editor.
    pub(crate) fn with_terminal<T>(&mut self, works: impl FnOnce() -> T) -> T {
        match self.screen() {
            None => works(),
            Some(screen) => screen.suspended(works),
        }
    }

    /// Suppresses everything but the answer.
    pub(crate) fn silence(&mut self) {
        self.silent = true;
    }

    /// Writes every message in one line, even on a terminal.
    pub(crate) fn keep_to_lines(&mut self) {
        self.has_lines_only = true;
    }

    /// Also reports successes.
    pub(crate) fn be_verbose(&mut self) {
        self.verbose = true;
    }

    /// Collects all further output for one JSON object at the end.
    pub(crate) fn collect(&mut self) {
        self.collected = Some(Collected::default());
    }

    /// Writes a failure as JSON, unless another answer came before it.
    pub(crate) fn tell_failures_as_json(&mut self) {
        self.failure_form = FailureForm::Json;
    }

    /// Writes a failure as the last line of a stream of JSON objects, one per line.
    pub(crate) fn stream_json(&mut self) {
        self.failure_form = FailureForm::Line;
    }

    /// Reports a change to programs; people get a message in words.
    pub(crate) fn changed(&mut self, what: Value) {
        if let Some(collected) = &mut self.collected {
            collected.changed.push(what);
        }
    }

    /// Ends the output of a command; returns its exit code.
    pub(crate) fn finish(&mut self, done: Result<u8, Failure>) -> u8 {
        self.asker.spinner().stop();
        let collected = self.collected.take();
        let (code, failure) = match done {
            Ok(code) => (code, None),
            // On a terminal, a person would read the failure on both streams, so it is written only once.
            Err(failure) if self.tells_as_json(collected.is_some()) => {
                self.log.add("error", &failure.message);
                (failure.kind as u8, Some(failure))
            }
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

    /// Whether a failure is written as JSON instead of words.
    fn tells_as_json(&self, is_collected: bool) -> bool {
        let is_json = is_collected || self.failure_form == FailureForm::Json;
        is_json && self.screen().is_none() && is_shown() && io::stderr().is_terminal()
    }

    /// Writes a failure to standard output too, if that is a running stream.
    pub(crate) fn failure_in_stream(&mut self, failure: &Failure) {
        let code = self.failure(failure);
        if self.failure_form == FailureForm::Line {
            self.failure_line(failure, code);
        }
    }

    /// Writes a failure as a line of the stream. A signal is the usual end of a stream, and after a failed write
    /// nothing can be reported.
    fn failure_line(&mut self, failure: &Failure, code: u8) -> u8 {
        if failure.code.is_none() || self.lost.is_some() {
            return code;
        }
        let told = self.json(&failure.line(code));
        told.map_or_else(|failure| self.failure(&failure), |_| code)
    }

    /// Shows on a terminal that something is running, if it takes long.
    pub(crate) fn busy(&self, what: &str) {
        if !self.silent && self.collected.is_none() && self.screen().is_none() {
            self.asker.spinner().start(what);
        }
    }

    /// Hides that again.
    pub(crate) fn idle(&self) {
        self.asker.spinner().stop();
    }

    /// Writes all messages so far to the log.
    pub(crate) fn write_log(&mut self, context: &AppContext) {
        self.log.write(context);
    }

    /// Writes a sentence as a line. A terminal breaks it between words; another program gets it byte for byte.
    pub(crate) fn line(&mut self, text: &str) -> Result<u8, Failure> {
        match shown_width().filter(|_| self.collected.is_none() && self.screen().is_none()) {
            Some(width) => self.data(&lines(text, width)),
            None => self.data(text),
        }
    }

    /// Writes data as a line. A terminal would obey control characters in it; another program gets it byte for byte.
    pub(crate) fn data(&mut self, text: &str) -> Result<u8, Failure> {
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

    /// Writes indented JSON, for people to read.
    pub(crate) fn pretty_json(&mut self, value: &Value) -> Result<u8, Failure> {
        self.json_text(&format!("{value:#}"))
    }

    /// Writes JSON text. On a terminal, characters that control, hide or reorder text are escaped.
    pub(crate) fn json_text(&mut self, json: &str) -> Result<u8, Failure> {
        let json = if is_shown() { escape_for_json(json) } else { json.into() };
        self.data(&json)
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

    /// Writes styled text; the styles are dropped if they would not be visible.
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
        let text = shown_width().map_or_else(|| text.into(), |width| Cow::from(lines(text, width)));
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
        // An answer may end within a line, and then there is no room below it.
        self.asker.spinner().stop();
        let mut out = io::stdout().lock();
        let result = out.write_all(stdout).and_then(|()| out.flush()).and_then(|()| io::stderr().write_all(stderr));
        written(result, code).inspect_err(|failure| self.lost = self.lost.take().or(Some(failure.message.clone())))
    }

    /// Notes that standard output has an answer: only lines of a stream may follow.
    fn answered(&mut self) {
        if self.failure_form == FailureForm::Json {
            self.failure_form = FailureForm::Words;
        }
    }

    /// Fails if a part of a streamed answer was lost.
    pub(crate) fn is_whole(&self) -> Result<(), Failure> {
        self.lost.as_ref().map_or(Ok(()), |why| Err(Failure::new(Code::OutputLost, why)))
    }

    /// Whether no program reads standard output any more.
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

    /// Reports a success, if that is wanted.
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
        if let Some(screen) = self.screen() {
            return screen.show(&format!("{}\n", one_line(text)));
        }
        let line = on_screen(&format!("ollm: {}", one_line(text)));
        // If standard error is closed, nothing can be reported.
        self.asker.spinner().hidden(|| drop(writeln!(io::stderr(), "{line}")));
    }

    /// Tells the person something of several lines.
    pub(crate) fn explain(&mut self, text: &str) {
        if let Some(collected) = &mut self.collected {
            return collected.messages.push(anstream::adapter::strip_str(text).to_string().trim_end().to_owned());
        }
        if self.silent {
            return;
        }
        if let Some(screen) = self.screen() {
            return screen.show(text);
        }
        let text = told_width().map_or_else(|| text.into(), |width| Cow::from(lines(text, width)));
        self.asker.spinner().hidden(|| drop(anstream::stderr().write_all(text.as_bytes())));
    }

    /// Shows a problem with a file, with its line.
    pub(crate) fn problem(&mut self, problem: &Problem) {
        let is_streamed = self.collected.is_none() && self.screen().is_none();
        let width = told_width().filter(|_| is_streamed).unwrap_or(usize::MAX);
        self.explain(&problem::render(problem, width));
    }

    /// Whether a person reads the messages, so that lines of files can be shown.
    fn shows_places(&self) -> bool {
        !self.has_lines_only && self.collected.is_none() && self.screen().is_none() && io::stderr().is_terminal()
    }

    /// Shows the progress of long work on a terminal.
    pub(crate) fn progress(&self) -> Progress {
        let is_watched = !self.silent && self.collected.is_none() && self.screen().is_none();
        Progress { spinner: self.asker.spinner(), bar: None, is_watched }
    }

    /// Reports a failure; returns the exit code.
    pub(crate) fn failure(&mut self, failure: &Failure) -> u8 {
        self.silent = false;
        if let Some(styled) = &failure.styled {
            self.explain(styled);
        } else if let Some(problem) = failure.problem.as_deref().filter(|_| self.shows_places()) {
            self.log.add("error", &failure.message);
            self.problem(problem);
        } else if !failure.message.is_empty() {
            if failure.kind != ErrorKind::Usage {
                self.log.add("error", &failure.message);
            }
            let code = failure.code.map(|code| format!("{RED}error[{code}]{PLAIN}: "));
            let message = one_line(&failure.message);
            let who = code.unwrap_or_else(|| if self.screen().is_some() { String::new() } else { "ollm: ".to_owned() });
            let line = format!("{who}{message}\n");
            if self.has_lines_only {
                let _ = anstream::stderr().write_all(line.as_bytes());
            } else {
                self.explain(&line);
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

    fn tell_problem(&mut self, problem: &Problem) {
        if self.shows_places() {
            self.log.add("note", &problem.to_string());
            self.problem(problem);
        } else {
            Output::tell(self, &problem.to_string());
        }
    }

    fn detail(&mut self, text: &dyn Fn() -> String) {
        Output::detail(self, text);
    }

    fn wants_details(&self) -> bool {
        self.is_verbose()
    }
}

/// The progress of long work on a terminal; elsewhere nothing is drawn.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Turns while the total is unknown.
    spinner: Spinner,
    bar: Option<ProgressBar>,
    is_watched: bool,
}

impl Progress {
    /// Shows the current step, and how many of all bytes are done; a total of zero is unknown.
    pub(crate) fn step(&mut self, what: &str, done: u64, total: u64) {
        if !self.is_watched {
            return;
        }
        if total == 0 {
            self.bar.take().iter().for_each(ProgressBar::finish_and_clear);
            return self.spinner.start(what);
        }
        self.spinner.stop();
        let bar = self.bar.get_or_insert_with(|| bytes_bar(total));
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message(what.to_owned());
    }

    /// Restores the terminal.
    pub(crate) fn clear(self) {
        self.spinner.stop();
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

fn bytes_bar(total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {eta} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// A path as text for JSON, which has no form for names that are not Unicode: invalid parts become `�`.
pub(crate) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Whether a person types the input and reads the output.
pub(crate) fn is_conversation() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Whether a person reads the output.
pub(crate) fn is_shown() -> bool {
    io::stdout().is_terminal()
}

/// Whether there is a person to ask.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The rows and columns of the person's terminal; zero if the terminal does not know them.
pub(crate) fn screen_size() -> Option<(u16, u16)> {
    let of_messages = rustix::termios::tcgetwinsize(io::stderr());
    let size = of_messages.or_else(|_| rustix::termios::tcgetwinsize(io::stdout())).ok()?;
    Some((size.ws_row, size.ws_col))
}

/// The width of the terminal if a person reads the output; `None` if another program does.
pub(crate) fn shown_width() -> Option<usize> {
    let columns = screen_size().filter(|_| is_shown()).map(|(_, columns)| usize::from(columns));
    columns.filter(|columns| *columns > 0)
}

/// The width of the terminal if a person reads the messages.
fn told_width() -> Option<usize> {
    let columns = screen_size().filter(|_| io::stderr().is_terminal()).map(|(_, columns)| usize::from(columns));
    columns.filter(|columns| *columns > 0)
}

/// A sentence, with lines broken for the person's terminal.
pub(crate) fn on_screen(text: &str) -> String {
    match screen_size() {
        Some((_, columns)) if columns > 0 => sentence(text, usize::from(columns)),
        _ => text.to_owned(),
    }
}

/// Shows a text to the person at the terminal, from any thread: as part of a question, not as a message.
pub(crate) fn say(text: &str) {
    let _ = write!(io::stderr(), "{text}");
}

/// Like [`say`], with lines broken between words.
pub(crate) fn say_lines(text: &str) {
    match screen_size() {
        Some((_, columns)) if columns > 0 => say(&lines(text, usize::from(columns))),
        _ => say(text),
    }
}

/// A text for the person at the terminal; without colours if they are not wanted.
pub(crate) fn painted(text: String) -> String {
    match anstream::AutoStream::choice(&io::stderr()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(&text).to_string(),
        _ => text,
    }
}

/// Writes one JSON value on a line of a stream, from any thread.
pub(crate) fn print_json(value: &Value) {
    let json = value.to_string();
    let json = if is_shown() { escape_for_json(&json) } else { json.into() };
    // A reader that went away needs no message; other errors show when the answer is written.
    let _ = writeln!(io::stdout().lock(), "{json}");
}

fn written(result: io::Result<()>, code: u8) -> Result<u8, Failure> {
    match result {
        Ok(()) => Ok(code),
        // The reader went away, which is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(code),
        Err(error) => Err(Failure::new(Code::OutputLost, format!("cannot write the answer: {error}"))),
    }
}
