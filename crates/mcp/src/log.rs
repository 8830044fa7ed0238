//! The log of a server: lines of its standard error and of its log messages, bounded, with secrets hidden.
//!
//! Output on standard output that is no message is limited separately, so that it does not push out the server's own
//! log lines.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ollm_store::{Redactor, cut, escape_for_people};

/// Bytes kept of one line. More than are shown, because half a secret would not be recognised.
const KEPT: usize = 4096;
/// Bytes shown of one line.
pub(crate) const SHOWN: usize = 2048;
/// Bytes of the last lines that a message shows.
pub(crate) const TAIL: usize = 2048;
/// Noise lines kept per connection.
const NOISE: usize = 50;
/// Noise lines shown in a message.
const NOISE_TOLD: usize = 3;

/// Lines that a server wrote; beyond the bound the oldest is dropped.
#[derive(Debug)]
pub(crate) struct Log {
    secrets: RwLock<Secrets>,
    bound: usize,
    lines: Mutex<Lines>,
}

struct Secrets {
    /// Hides secrets and possible secrets.
    redactor: Arc<Redactor>,
    /// Hides only secrets.
    strict: Arc<Redactor>,
    /// The secrets.
    known: Vec<(String, String)>,
    /// The possible secrets.
    hidden: Vec<(String, String)>,
    /// The last token that we sent for authorization.
    proof: Option<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("redactor", &self.redactor).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Lines {
    /// The number of the next line, counted from the very first.
    next: u64,
    kept: VecDeque<Line>,
    /// Noise lines since the last mark.
    noise: usize,
    /// Whether the next line is kept separate from an equal line before it, because a reader counts from it.
    marked: bool,
}

#[derive(Debug)]
struct Line {
    text: String,
    /// How often the line came in a row.
    times: u64,
    noise: bool,
}

impl Log {
    /// A log that hides secrets and possible secrets.
    pub(crate) fn new(known: Vec<(String, String)>, hidden: Vec<(String, String)>, bound: usize) -> Self {
        let mut secrets = Secrets { redactor: Arc::default(), strict: Arc::default(), known, hidden, proof: None };
        secrets.renew(&[]);
        Self { secrets: RwLock::new(secrets), bound: bound.max(1), lines: Mutex::default() }
    }

    /// The redactor for results and lists: it hides only secrets.
    pub(crate) fn strict(&self) -> Arc<Redactor> {
        Arc::clone(&self.secrets.read().unwrap_or_else(PoisonError::into_inner).strict)
    }

    /// The redactor that hides secrets and possible secrets.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.secrets.read().unwrap_or_else(PoisonError::into_inner).redactor)
    }

    /// Hides our authorization token, in place of the earlier one.
    pub(crate) fn hide(&self, proof: &str) {
        let known = |secrets: &Secrets| secrets.proof.as_deref() == Some(proof);
        if known(&self.secrets.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut secrets = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        // An answer under way may still contain the earlier token.
        let before = secrets.proof.replace(proof.to_owned());
        let both: Vec<&str> = before.iter().map(String::as_str).chain([proof]).collect();
        secrets.renew(&both);
    }

    /// The text without secrets, safe to show to people.
    pub(crate) fn clean(&self, text: &str) -> String {
        escape_for_people(&self.redactor().redact_str(text)).into_owned()
    }

    /// Adds a line. Secrets are hidden only when it is read, so that a flood of lines costs little.
    pub(crate) fn add(&self, line: &str) {
        self.put(line, false);
    }

    /// Adds a line from standard output that is no message.
    pub(crate) fn add_noise(&self, line: &str) {
        self.put(&format!("stdout: {line}"), true);
    }

    fn put(&self, line: &str, noise: bool) {
        let text = line.get(..line.floor_char_boundary(KEPT)).unwrap_or_default();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut lines.marked)
            && let Some(last) = lines.kept.back_mut().filter(|last| last.text == text)
        {
            last.times += 1;
            return;
        }
        lines.noise += usize::from(noise);
        let text = match lines.noise {
            count if noise && count > NOISE + 1 => return,
            count if noise && count > NOISE => "stdout: further lines that are no messages are left out",
            _ => text,
        };
        lines.next += 1;
        lines.kept.push_back(Line { text: text.to_owned(), times: 1, noise });
        while lines.kept.len() > self.bound {
            lines.kept.pop_front();
        }
    }

    /// The kept lines from a number on, and the number of the next line.
    pub(crate) fn since(&self, number: u64) -> (Vec<String>, u64) {
        let (lines, next) = self.read(number);
        (lines.into_iter().map(|(text, _)| text).collect(), next)
    }

    /// The number of the next line.
    pub(crate) fn mark(&self) -> u64 {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        (lines.noise, lines.marked) = (0, true);
        lines.next
    }

    /// The last lines from a number on, as many as fit into a message.
    pub(crate) fn tail(&self, number: u64) -> String {
        let (lines, _) = self.read(number);
        let (mut room, mut noise) = (TAIL, 0);
        let mut last = Vec::new();
        for (line, is_noise) in lines.iter().rev() {
            noise += usize::from(*is_noise);
            if *is_noise && noise > NOISE_TOLD {
                continue;
            }
            if line.len() >= room {
                break;
            }
            room -= line.len() + 1;
            last.push(line.as_str());
        }
        last.reverse();
        last.join("\n")
    }

    /// Lines for people, each with whether it is noise.
    fn read(&self, number: u64) -> (Vec<(String, bool)>, u64) {
        let redactor = self.redactor();
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let first = lines.next.saturating_sub(lines.kept.len() as u64);
        let skipped = usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX);
        let shown = lines.kept.iter().skip(skipped).map(|line| (line.shown(&redactor), line.noise));
        (shown.collect(), lines.next)
    }
}

impl Line {
    fn shown(&self, redactor: &Redactor) -> String {
        let clean = escape_for_people(&redactor.redact_str(&self.text)).into_owned();
        let text = cut(&clean, SHOWN);
        if self.times > 1 { format!("{text} ({} times)", self.times) } else { text.into_owned() }
    }
}

impl Secrets {
    fn renew(&mut self, proofs: &[&str]) {
        let pair = |(name, value): &'_ (String, String)| (name.clone(), value.clone());
        let proofs = proofs.iter().map(|proof| ("Authorization".to_owned(), (*proof).to_owned()));
        let known: Vec<(String, String)> = self.known.iter().map(pair).chain(proofs).collect();
        self.redactor = Arc::new(Redactor::new(known.iter().chain(&self.hidden).map(pair)));
        self.strict = Arc::new(Redactor::new(known));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_does_not_push_out_what_was_said_and_repetitions_are_counted() {
        let log = Log::new(Vec::new(), Vec::new(), 300);
        log.add("before");
        let mark = log.mark();
        log.add("before");
        log.add("my last words");
        for number in 0..10_000 {
            log.add_noise(&format!("noise {number}"));
        }
        for _ in 0..10_000 {
            log.add("again");
        }
        let (lines, _) = log.since(mark);
        assert_eq!(lines.len(), 2 + NOISE + 1 + 1);
        let tail = log.tail(mark);
        assert!(tail.starts_with("before\nmy last words\nstdout: noise "), "{tail}");
        assert!(tail.ends_with("no messages are left out\nagain (10000 times)"), "{tail}");
    }

    #[test]
    fn what_proves_who_we_are_is_hidden_also_the_one_before() {
        let log = Log::new(vec![("KEY".to_owned(), "declared-value".to_owned())], Vec::new(), 300);
        log.hide("first-token");
        log.hide("other-token");
        let text = log.clean("declared-value first-token other-token");
        assert_eq!(text, "[redacted:KEY] [redacted:Authorization] [redacted:Authorization]");
    }
}
