//! Asks the person. Every question of the program goes through an [`Asker`], which ignores input from before the
//! question and right after it.

use std::io;
use std::time::{Duration, Instant};

use ollm_protocol::Code;
use ollm_store::one_line;
use rustix::termios::{QueueSelector, tcflush};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

use crate::error::Failure;
use crate::interrupt::{self, HeldSignals};
use crate::output::{is_terminal, on_screen, say, say_lines};
use crate::pager::{Seen, page};
use crate::spinner::Spinner;
use crate::tui::screen::{AnswerKind, Screen};

/// The longest input line; no person types a longer one at a terminal.
const LONGEST_LINE: usize = 64 << 10;

/// How often a waiting thread checks whether the answer is still needed.
const LOOKING: Duration = Duration::from_millis(250);
/// How long a new question ignores input. The variable overrides it, in milliseconds.
const GRACE: Duration = Duration::from_millis(300);
pub(crate) const GRACE_VARIABLE: &str = "OLLM_QUESTION_GRACE";

/// How long a new question ignores input, if the variable has this value.
pub(crate) fn question_grace(value: Option<&str>) -> Duration {
    value.and_then(|millis| millis.parse().ok()).map_or(GRACE, Duration::from_millis)
}

/// A person's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PickedChoice<T> {
    /// One of the offered choices.
    One(T),
    /// None of them.
    No,
    /// There is no terminal.
    Nobody,
}

/// The only choice besides no.
pub(crate) const YES: &[(&str, ())] = &[("[y]es", ())];

/// Asks the person, on the terminal or in a dialog.
#[derive(Clone, Debug)]
pub(crate) enum Asker {
    /// Line by line on the terminal; without a terminal there is no person. The spinner stops for a question, and a new
    /// question ignores input for this long.
    Lines(Spinner, Duration),
    /// In a dialog of the panels.
    Dialog(Screen),
}

impl Default for Asker {
    fn default() -> Asker {
        Asker::Lines(Spinner::default(), GRACE)
    }
}

impl Asker {
    /// The spinner on the terminal while something works.
    pub(crate) fn spinner(&self) -> Spinner {
        match self {
            Asker::Lines(spinner, _) => spinner.clone(),
            Asker::Dialog(_) => Spinner::default(),
        }
    }

    /// Whether there is a person to ask.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Asker::Lines(..) => is_terminal(),
            Asker::Dialog(_) => true,
        }
    }

    /// Tells the person something.
    pub(crate) fn say(&self, text: &str) {
        match self {
            Asker::Lines(spinner, _) => spinner.hidden(|| say_lines(text)),
            Asker::Dialog(screen) => screen.show(text),
        }
    }

    /// Asks the person to choose one of the shown choices, each with its letter in brackets, as in `one [s]ession`.
    /// Only these letters and words count; any other answer means no, and so does `over`.
    pub(crate) fn choose<T: Clone>(
        &self,
        question: &str,
        offered: &[(&str, T)],
        over: &dyn Fn() -> bool,
    ) -> PickedChoice<T> {
        if !self.is_there() {
            return PickedChoice::Nobody;
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
            return PickedChoice::One(chosen.clone());
        }
        if !answer.is_empty() && !is_meant("[n]o", &answer) {
            self.say(&format!("`{}` is not among the answers; that counts as no.\n", one_line(&answer)));
        }
        PickedChoice::No
    }

    /// Asks for a line of text; `None` if there is no person.
    pub(crate) fn ask(&self, question: &str) -> Option<String> {
        self.is_there().then(|| self.ask_unless(question, &|| false).unwrap_or_default())
    }

    /// Asks like [`Asker::ask`], until `over` says that the answer is no longer needed. Then, and at the end of the
    /// input, the answer is `None`. The text before the last line is shown page by page; a person who stops the pages
    /// is not asked.
    pub(crate) fn ask_unless(&self, question: &str, over: &dyn Fn() -> bool) -> Option<String> {
        match self {
            Asker::Lines(spinner, grace) => ask_lines(spinner, *grace, question, over),
            Asker::Dialog(screen) => screen.ask(question, AnswerKind::Text, over),
        }
    }

    /// Asks for a secret, which is not shown while it is typed.
    pub(crate) fn ask_secret(&self, question: &str) -> Option<String> {
        match self {
            Asker::Lines(spinner, grace) => secret_line(spinner, *grace, question),
            Asker::Dialog(screen) => screen.ask(question, AnswerKind::Secret, &|| false),
        }
    }

    /// Asks the person to pick one of several rows; `None` if they pick none, or if there is no terminal.
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

    /// Fails unless a person agrees to a removal; `--yes` agrees in advance.
    pub(crate) fn confirm(&self, question: &str, what: &str) -> Result<(), Failure> {
        match self.choose(question, YES, &|| false) {
            PickedChoice::One(()) => Ok(()),
            PickedChoice::No => Err(not_removed(what)),
            PickedChoice::Nobody => Err(not_asked(what)),
        }
    }
}

/// Whether an answer is the letter in brackets or the word that begins with it.
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
            say_lines("-- What was not shown cannot be answered; that counts as no.\n");
            None
        }
        Seen::Over => {
            say("\n");
            None
        }
    }
}

/// Waits for an answer that was typed after the question appeared.
fn answer(line: &str, grace: Duration, over: &dyn Fn() -> bool) -> Option<String> {
    let asked = Instant::now();
    loop {
        let answer = prompt(line, over)?;
        if asked.elapsed() >= grace {
            return Some(answer);
        }
        say_lines("-- That came too soon to be an answer to this.\n");
    }
}

/// Shows one line and waits for an answer. Earlier input is dropped: it was meant for something else.
pub(crate) fn prompt(line: &str, over: &dyn Fn() -> bool) -> Option<String> {
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    say(&on_screen(line));
    while !is_answered(LOOKING) {
        if over() {
            say("\n");
            return None;
        }
    }
    // A terminal delivers whole lines, so reading one does not block.
    let answer = if over() { None } else { read_line() };
    if answer.is_none() {
        say("\n");
    }
    answer
}

/// A line that was already typed; this does not wait for one.
pub(crate) fn typed() -> Option<String> {
    let line = if is_answered(Duration::ZERO) { read_line() } else { None };
    line.filter(|line| !line.is_empty())
}

/// Waits this long at most; returns whether a line was typed or the input has ended.
fn is_answered(moment: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let moment = Timespec::try_from(moment).ok();
    match poll(&mut [PollFd::new(&io::stdin(), PollFlags::IN)], moment.as_ref()) {
        Ok(ready) => ready > 0,
        // A signal interrupted the wait; reading finds every other error.
        Err(error) => error != rustix::io::Errno::INTR,
    }
}

/// Reads one line without a buffer, which could hold back a second line; `None` at the end of the input.
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

/// The failure if a person does not want a removal.
pub(crate) fn not_removed(what: &str) -> Failure {
    Failure::new(Code::NotConfirmed, format!("{what} stays, because you did not say yes"))
}

/// The failure if there is no terminal to ask about a removal.
pub(crate) fn not_asked(what: &str) -> Failure {
    let message = format!("{what} stays: there is no terminal to ask on");
    Failure::new(Code::NotConfirmed, message).hint("`--yes` removes it without asking")
}

/// Reads a line without showing it, and restores the terminal in every case.
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
        // The session handles the signal itself.
        if interrupt::is_listening(signal) {
            return None;
        }
        // After a stop and continue, the question is asked again.
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
