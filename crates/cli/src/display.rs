//! Shows a session to a person or to a program.

use ollm_agent::{Cancel, HookNote, News, Show, Turn, TurnEnd};
use ollm_app::SharedPort;
use ollm_protocol::joined;
use ollm_store::{cut, escape_for_people, one_line};
use serde_json::{Map, Value, json};

use crate::output::{Output, shown_width};
use crate::timeline::{DIM, PLAIN, RED};
use crate::wrap::Wrap;

/// How to show a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The model's words on standard output, everything else on standard error.
    Text,
    /// Only failures, on standard error; the answer comes at the end.
    Quiet,
    /// Every piece of news as a line of JSON on standard output.
    Lines,
}

/// Shows a session while it runs.
pub(crate) struct Display<'a, 'o> {
    pub(crate) output: &'a SharedPort<&'o mut Output>,
    pub(crate) style: Style,
    /// Interrupts the turn if no program reads the output any more.
    pub(crate) cancel: Cancel,
    /// The kind of the last, unfinished line.
    open: OpenLine,
    /// Breaks lines for a terminal.
    wrap: Option<Wrap>,
}

/// An unfinished line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenLine {
    None,
    /// The model's words, on standard output.
    Words,
    /// The model's thoughts, on standard error.
    Thoughts,
}

/// The longest result or argument in one line.
const LONGEST: usize = 300;

impl Show for Display<'_, '_> {
    fn show(&mut self, news: &News<'_>) {
        match self.style {
            Style::Lines => self.line(&news.to_json()),
            Style::Quiet => self.tell_trouble(news),
            Style::Text => self.text(news),
        }
        // Without a reader of the output, the model can stop.
        if self.output.lock().is_unread() {
            self.cancel.end();
        }
    }
}

impl<'a, 'o> Display<'a, 'o> {
    pub(crate) fn new(output: &'a SharedPort<&'o mut Output>, style: Style, cancel: &Cancel) -> Display<'a, 'o> {
        let wrap = shown_width().map(Wrap::new);
        Display { output, style, cancel: cancel.clone(), open: OpenLine::None, wrap }
    }
}

/// A text with lines broken between words at the terminal's edge.
pub(crate) fn broken(text: &str) -> String {
    let Some(mut wrap) = shown_width().map(Wrap::new) else { return text.to_owned() };
    wrap.push(text) + &wrap.finish()
}

impl Display<'_, '_> {
    /// The complete words of a text, with lines broken at the terminal's edge.
    fn wrapped(&mut self, text: &str) -> String {
        let shown = escape_for_people(text);
        match (&mut self.wrap, shown_width()) {
            (Some(wrap), Some(width)) => {
                wrap.resize(width);
                wrap.push(&shown)
            }
            _ => shown.into_owned(),
        }
    }

    fn line(&self, value: &Value) {
        // A reader that went away needs no message; other errors show when the answer is written.
        let _ = self.output.lock().json(value);
    }

    fn tell(&mut self, text: &str) {
        self.finish_line();
        self.output.lock().tell(text);
    }

    fn tell_failure(&mut self, text: &str) {
        self.finish_line();
        self.output.lock().tell_failure(text);
    }

    /// Ends an unfinished line of the model before other output.
    fn finish_line(&mut self) {
        match std::mem::replace(&mut self.open, OpenLine::None) {
            OpenLine::None => {}
            OpenLine::Words => {
                let rest = self.wrap.as_mut().map(Wrap::finish).unwrap_or_default();
                let _ = self.output.lock().bytes(format!("{rest}\n").as_bytes(), b"", 0);
            }
            OpenLine::Thoughts => {
                let rest = self.wrap.as_mut().map(Wrap::finish).unwrap_or_default();
                self.output.lock().explain(&format!("{DIM}{rest}{PLAIN}\n"));
            }
        }
    }

    /// Continues a line of this kind.
    fn go_on(&mut self, kind: OpenLine, text: &str) {
        if self.open != kind {
            self.finish_line();
        }
        self.open = if text.ends_with('\n') { OpenLine::None } else { kind };
    }

    fn text(&mut self, news: &News<'_>) {
        match news {
            News::Text(text) => {
                // Below an unfinished line there is no room for the spinner.
                self.output.lock().asker().spinner().stop();
                self.go_on(OpenLine::Words, text);
                let shown = self.wrapped(text);
                let _ = self.output.lock().bytes(shown.as_bytes(), b"", 0);
            }
            News::Thought(text) => {
                self.output.lock().asker().spinner().stop();
                self.go_on(OpenLine::Thoughts, text);
                let shown = self.wrapped(text);
                self.output.lock().explain(&format!("{DIM}{shown}{PLAIN}"));
            }
            News::Answered { .. } => self.finish_line(),
            News::Calling { name, .. } => {
                self.sentence(news);
                self.output.lock().asker().spinner().start(&format!("tool {}", one_line(name)));
            }
            News::Called { .. } | News::Rejected { .. } => {
                self.sentence(news);
                self.output.lock().asker().spinner().start("model");
            }
            news => self.sentence(news),
        }
    }

    fn sentence(&mut self, news: &News<'_>) {
        match told(news) {
            Some(Told { text, is_failure: true }) => self.tell_failure(&text),
            Some(Told { text, is_failure: false }) => self.tell(&text),
            None => {}
        }
        if let News::Called { diff: Some(diff), failed: false, .. } = news {
            self.output.lock().explain(&coloured(&escape_for_people(diff)));
        }
    }

    fn tell_trouble(&mut self, news: &News<'_>) {
        let is_trouble = matches!(news, News::Refused { .. } | News::Note(_));
        if is_trouble || is_failure(news) {
            self.sentence(news);
        }
    }
}

/// A piece of news in one sentence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) is_failure: bool,
}

/// The text for a piece of news; `None` for the model's own words.
pub(crate) fn told(news: &News<'_>) -> Option<Told> {
    let text = match news {
        News::Waiting { seconds } => format!("still waiting for the model, {seconds} s so far"),
        News::Calling { name, args, .. } => {
            format!("→ {name} {}", cut(&Value::from((*args).clone()).to_string(), LONGEST))
        }
        News::Called { name, result, failed, .. } => {
            let mark = if *failed { "✗" } else { "✓" };
            format!("{mark} {name}: {}", cut(&gist(result), LONGEST))
        }
        News::Progress { name, text } => format!("… {name}: {}", cut(text, LONGEST)),
        News::Status(text) | News::Error(text) => (*text).to_owned(),
        News::System(text) => format!("a hook tells the model: {}", cut(text, LONGEST)),
        News::Rejected { name, args, result, .. } => {
            format!("✗ {name}{}: {}", arguments(*args), cut(&gist(result), LONGEST))
        }
        News::Refused { event, tool, args, hook, reason } => {
            let what = tool.unwrap_or(event.name());
            format!("hook `{hook}` refused {what}{}: {reason}", arguments(*args))
        }
        News::Note(HookNote { hook, text }) => format!("hook `{hook}`: {text}"),
        _ => return None,
    };
    Some(Told { text, is_failure: is_failure(news) })
}

fn is_failure(news: &News<'_>) -> bool {
    matches!(news, News::Error(_) | News::Rejected { .. } | News::Called { failed: true, .. })
}

/// The arguments of a call that was not made, after a blank; empty if there are none.
fn arguments(args: Option<&Map<String, Value>>) -> String {
    let args = args.filter(|args| !args.is_empty());
    args.map(|args| format!(" {}", cut(&Value::from(args.clone()).to_string(), LONGEST))).unwrap_or_default()
}

/// A diff with colours for removed and added lines; the colours are dropped if they would not be visible.
pub(crate) fn coloured(diff: &str) -> String {
    let line = |line: &str| match line.chars().next() {
        Some('+') => format!("\x1b[32m{line}{PLAIN}\n"),
        Some('-') => format!("{RED}{line}{PLAIN}\n"),
        _ => format!("{line}\n"),
    };
    diff.lines().map(line).collect()
}

/// A result in one line: its first line, and its end if it says how the call ended.
fn gist(result: &str) -> String {
    let mut lines = result.lines().filter(|line| !line.trim().is_empty());
    let is_note = |line: &str| line.starts_with('[') && line.ends_with(']');
    let mut said = lines.clone().filter(|line| !is_note(line));
    let first = said.next().unwrap_or_default();
    // A first line that only announces others says little without the last one.
    let last = said.next_back().filter(|_| first.ends_with(':'));
    let first = last.map_or_else(|| first.to_owned(), |last| format!("{first} {}", last.trim()));
    match lines.next_back().filter(|last| is_note(last) && *last != "[standard error]") {
        Some(end) if first.is_empty() => end.to_owned(),
        Some(end) => format!("{first} {end}"),
        None => first,
    }
}

/// One turn, for programs.
pub(crate) fn turn_json(turn: &Turn) -> Value {
    let (event, hook, reason) = match &turn.end {
        TurnEnd::Refused { event, hook, reason } => (Some(event.name()), Some(hook), Some(reason)),
        TurnEnd::Halted { hook, reason } => (None, Some(hook), Some(reason)),
        TurnEnd::Failed { message, .. } => (None, None, Some(message)),
        TurnEnd::Bounded(why) => (None, None, Some(why)),
        _ => (None, None, None),
    };
    json!({
        "prompt": turn.prompt,
        "end": turn.end.name(),
        "event": event,
        "hook": hook,
        "reason": reason,
        "response": turn.response,
        "truncated": turn.truncated,
        "toolCalls": turn.calls,
        "tokens": turn.tokens,
        "durationSeconds": turn.duration,
    })
}

/// All answers of a prompt together.
pub(crate) fn response(turns: &[Turn]) -> Option<String> {
    let texts: Vec<String> = turns.iter().map(|turn| turn.response.clone()).filter(|text| !text.is_empty()).collect();
    joined(&texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_in_one_line_says_what_matters() {
        for (result, shown) in [
            ("", ""),
            ("one\ntwo", "one"),
            ("\n[standard error]\nit broke\n[exit code 3]\n", "it broke [exit code 3]"),
            ("[exit code 3]", "[exit code 3]"),
            ("it ended; its last words:\nfirst\n  the last\n", "it ended; its last words: the last"),
            ("its last words:", "its last words:"),
        ] {
            assert_eq!(gist(result), shown, "{result:?}");
        }
    }
}
