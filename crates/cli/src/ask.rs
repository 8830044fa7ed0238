//! Asks the person. Every question of the program goes through an [`Asker`]: what was typed before it is shown, or right
//! after that, answers nothing.

use std::io;
use std::time::{Duration, Instant};

use ollm_protocol::Code;
use ollm_store::one_line;
use rustix::termios::{QueueSelector, tcflush};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

use crate::error::Failure;
use crate::interrupt::{self, HeldSignals};
use crate::output::{is_terminal, say};
use crate::pager::{Seen, page};
use crate::spinner::Spinner;
use crate::tui::screen::{AnswerKind, Screen};

/// Longer lines than a terminal lets anybody type.
const LONGEST_LINE: usize = 64 << 10;

/// How often somebody who waits for an answer looks whether it is still needed.
const LOOKING: Duration = Duration::from_millis(250);
/// How long a question takes no answer after it appeared, and the variable that says otherwise, in milliseconds.
const GRACE: Duration = Duration::from_millis(300);
pub(crate) const GRACE_VARIABLE: &str = "OLLM_QUESTION_GRACE";

/// How long a question takes no answer where the variable has this value.
pub(crate) fn question_grace(value: Option<&str>) -> Duration {
    value.and_then(|millis| millis.parse().ok()).map_or(GRACE, Duration::from_millis)
}

/// What a person chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen<T> {
    /// One of what was offered.
    One(T),
    /// None of it.
    No,
    /// There is no terminal.
    Nobody,
}

/// The only way but no.
pub(crate) const YES: &[(&str, ())] = &[("[y]es", ())];

/// Who is asked, and where.
#[derive(Clone, Debug)]
pub(crate) enum Asker {
    /// The person at the terminal, line by line; no one where there is no terminal. What moves there stops for a question, and
    /// a question takes no answer for this long.
    Lines(Spinner, Duration),
    /// The person before the panels, in a dialog.
    Dialog(Screen),
}

impl Default for Asker {
    fn default() -> Asker {
        Asker::Lines(Spinner::default(), GRACE)
    }
}

impl Asker {
    /// What moves on the terminal while something works.
    pub(crate) fn spinner(&self) -> Spinner {
        match self {
            Asker::Lines(spinner, _) => spinner.clone(),
            Asker::Dialog(_) => Spinner::default(),
        }
    }

    /// Whether anybody can be asked.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Asker::Lines(..) => is_terminal(),
            Asker::Dialog(_) => true,
        }
    }

    /// Tells the person something.
    pub(crate) fn say(&self, text: &str) {
        match self {
            Asker::Lines(spinner, _) => spinner.hidden(|| say(text)),
            Asker::Dialog(screen) => screen.show(text),
        }
    }

    /// Has a person choose one of the ways that are shown, each with its letter in brackets, as in `one [s]ession`. Only these
    /// letters and words count; anything else is no, and so is `over`.
    pub(crate) fn choose<T: Clone>(&self, question: &str, offered: &[(&str, T)], over: &dyn Fn() -> bool) -> Chosen<T> {
        if !self.is_there() {
            return Chosen::Nobody;
        }
        let ways: String = match offered {
            [("[y]es", _)] => "[y/N] ".to_owned(),
            _ => offered.iter().map(|(way, _)| format!("{way}, ")).chain(["[N]o: ".to_owned()]).collect(),
        };
        let answer = match self {
            Asker::Lines(spinner, grace) => ask_lines(spinner, *grace, &format!("{question} {ways}"), over),
            Asker::Dialog(screen) => {
                let ways = offered.iter().map(|(way, _)| (*way).to_owned()).collect();
                screen.ask(question, AnswerKind::Ways(ways), over)
            }
        };
        let answer = answer.unwrap_or_default();
        if let Some((_, chosen)) = offered.iter().find(|(way, _)| is_meant(way, &answer)) {
            return Chosen::One(chosen.clone());
        }
        if !answer.is_empty() && !is_meant("[n]o", &answer) {
            self.say(&format!("`{}` is not among the answers; that counts as no.\n", one_line(&answer)));
        }
        Chosen::No
    }

    /// Asks for a line of text; without anybody to ask there is none.
    pub(crate) fn ask(&self, question: &str) -> Option<String> {
        self.is_there().then(|| self.ask_unless(question, &|| false).unwrap_or_default())
    }

    /// Asks like [`Asker::ask`], until `over` says that the answer is not needed any more: then, and at the end of the input, there is none. What
    /// stands before the last line is shown page by page, and who does not want to see it all is not asked.
    pub(crate) fn ask_unless(&self, question: &str, over: &dyn Fn() -> bool) -> Option<String> {
        match self {
            Asker::Lines(spinner, grace) => ask_lines(spinner, *grace, question, over),
            Asker::Dialog(screen) => screen.ask(question, AnswerKind::Text, over),
        }
    }

    /// Asks for a secret, which is not shown.
    pub(crate) fn ask_secret(&self, question: &str) -> Option<String> {
        match self {
            Asker::Lines(spinner, grace) => secret_line(spinner, *grace, question),
            Asker::Dialog(screen) => screen.ask(question, AnswerKind::Secret, &|| false),
        }
    }

    /// Has a person pick one of several rows; nothing where they pick none, or there is no terminal.
    pub(crate) fn pick(&self, question: &str, rows: &[String]) -> Option<usize> {
        match self {
            Asker::Lines(spinner, grace) => {
                let mut list: Vec<String> =
                    (1..).zip(rows).map(|(number, row)| format!("{number:>3}  {row}")).collect();
                list.push(format!("{question} [1-{}, Enter for none]: ", rows.len()));
                let answer = ask_lines(spinner, *grace, &list.join("\n"), &|| false)?;
                answer.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at < rows.len())
            }
            Asker::Dialog(screen) => screen.ask(question, AnswerKind::Rows(rows.to_vec()), &|| false)?.parse().ok(),
        }
    }

    /// Goes on with the removal of something only if a person says yes; `--yes` says it beforehand.
    pub(crate) fn confirm(&self, question: &str, what: &str) -> Result<(), Failure> {
        match self.choose(question, YES, &|| false) {
            Chosen::One(()) => Ok(()),
            Chosen::No => Err(not_removed(what)),
            Chosen::Nobody => Err(not_asked(what)),
        }
    }
}

/// Whether an answer is the letter in brackets, or the word that begins with it.
pub(crate) fn is_meant(way: &str, answer: &str) -> bool {
    let Some((letter, rest)) = way.split_once('[').and_then(|(_, rest)| rest.split_once(']')) else { return false };
    let ending: String = rest.chars().take_while(|char| char.is_alphabetic()).collect();
    answer.eq_ignore_ascii_case(letter) || answer.eq_ignore_ascii_case(&format!("{letter}{ending}"))
}

fn ask_lines(spinner: &Spinner, grace: Duration, question: &str, over: &dyn Fn() -> bool) -> Option<String> {
    spinner.stop();
    if !is_terminal() {
        return None;
    }
    let (text, line) = question.split_at(question.rfind('\n').map_or(0, |end| end + 1));
    match page(text, over) {
        Seen::All => answer(line, grace, over),
        Seen::Part => {
            say("-- What was not shown cannot be answered; that counts as no.\n");
            None
        }
        Seen::Over => {
            say("\n");
            None
        }
    }
}

/// Waits for an answer that is none to what was there before the question.
fn answer(line: &str, grace: Duration, over: &dyn Fn() -> bool) -> Option<String> {
    let asked = Instant::now();
    loop {
        let answer = prompt(line, over)?;
        if asked.elapsed() >= grace {
            return Some(answer);
        }
        say("-- That came too soon to be an answer to this.\n");
    }
}

/// Shows one line and waits for another. Whatever was typed until now is forgotten: it was meant for something else.
pub(crate) fn prompt(line: &str, over: &dyn Fn() -> bool) -> Option<String> {
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    say(line);
    while !is_answered(LOOKING) {
        if over() {
            say("\n");
            return None;
        }
    }
    // A line is there as a whole or not at all, so that reading it does not block.
    let answer = if over() { None } else { read_line() };
    if answer.is_none() {
        say("\n");
    }
    answer
}

/// A line that was typed already; it does not wait for one.
pub(crate) fn typed() -> Option<String> {
    let line = if is_answered(Duration::ZERO) { read_line() } else { None };
    line.filter(|line| !line.is_empty())
}

/// Whether a line was typed, or none will be; looks for a moment.
fn is_answered(moment: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let moment = Timespec::try_from(moment).ok();
    match poll(&mut [PollFd::new(&io::stdin(), PollFlags::IN)], moment.as_ref()) {
        Ok(ready) => ready > 0,
        // A signal came in between; whatever else it is, reading will tell.
        Err(error) => error != rustix::io::Errno::INTR,
    }
}

/// One line, without a buffer in which a second one could wait; nothing at the end of the input.
fn read_line() -> Option<String> {
    let mut line = Vec::new();
    let mut room = [0; 4096];
    loop {
        match rustix::io::read(io::stdin(), &mut room) {
            Ok(0) if line.is_empty() => return None,
            Ok(0) => break,
            Ok(count) => line.extend_from_slice(room.get(..count).unwrap_or_default()),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
        if line.ends_with(b"\n") || line.len() > LONGEST_LINE {
            break;
        }
    }
    Some(String::from_utf8_lossy(&line).trim().to_owned())
}

/// A person did not want something removed.
pub(crate) fn not_removed(what: &str) -> Failure {
    Failure::new(Code::NotConfirmed, format!("{what} stays, because you did not say yes"))
}

/// There was no terminal to ask on whether something is to be removed.
pub(crate) fn not_asked(what: &str) -> Failure {
    let message = format!("{what} stays: there is no terminal to ask on");
    Failure::new(Code::NotConfirmed, message).hint("`--yes` removes it without asking")
}

/// However it ends, the terminal is as it was.
fn secret_line(spinner: &Spinner, grace: Duration, question: &str) -> Option<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let before = tcgetattr(io::stdin()).ok()?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    let signals = HeldSignals::hold(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP]);
    loop {
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet).ok()?;
        let answer = ask_lines(spinner, grace, question, &|| signals.came().is_some());
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
        let Some(signal) = signals.take() else {
            say("\n");
            return is_terminal().then(|| answer.unwrap_or_default());
        };
        // A session obeys it by itself.
        if interrupt::is_listening(signal) {
            return None;
        }
        // After a stop the question is asked again.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_letter_and_the_word_that_are_shown_count() {
        for answer in ["s", "S", "session", "Session"] {
            assert!(is_meant("one [s]ession", answer), "{answer}");
        }
        for answer in ["", "y", "one", "one session", "sess", "sessions", "[s]", "ss", "s "] {
            assert!(!is_meant("one [s]ession", answer), "{answer}");
        }
        assert!(is_meant("[a]lways (`git status`)", "always"));
    }
}
