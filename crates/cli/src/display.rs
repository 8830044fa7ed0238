//! What a person or a program sees of a session.

use ollm_agent::{Cancel, HookNote, News, Show, Turn, TurnEnd};
use ollm_app::Shared;
use ollm_protocol::joined;
use ollm_store::{cut, escape_for_people, one_line};
use serde_json::{Value, json};

use crate::output::{Output, is_shown, screen_size};
use crate::timeline::{DIM, PLAIN, RED};
use crate::wrap::Wrap;

/// How a session is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The model's words on standard output, everything else on standard error.
    Text,
    /// Only what went wrong, on standard error; the answer comes at the end.
    Quiet,
    /// Every piece of news as a line of JSON on standard output.
    Lines,
}

/// Shows a session as it happens.
pub(crate) struct Display<'a, 'o> {
    pub(crate) output: &'a Shared<&'o mut Output>,
    pub(crate) style: Style,
    /// Interrupts the turn when nobody reads any more.
    pub(crate) cancel: Cancel,
    /// Which unfinished line is the last.
    open: OpenLine,
    /// Breaks lines for a terminal.
    wrap: Option<Wrap>,
}

/// A line that is not finished yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenLine {
    None,
    /// The model's words, on standard output.
    Words,
    /// The model's thoughts, on standard error.
    Thoughts,
}

/// The most of a result or an argument that one line shows.
const LONGEST: usize = 300;

impl Show for Display<'_, '_> {
    fn show(&mut self, news: &News<'_>) {
        match self.style {
            Style::Lines => self.line(&news.to_json()),
            Style::Quiet => self.tell_trouble(news),
            Style::Text => self.text(news),
        }
        // Whoever stops reading wants no more of it, and the model need not go on.
        if self.output.lock().is_unread() {
            self.cancel.end();
        }
    }
}

impl<'a, 'o> Display<'a, 'o> {
    pub(crate) fn new(output: &'a Shared<&'o mut Output>, style: Style, cancel: &Cancel) -> Display<'a, 'o> {
        let wrap = shown_width().map(Wrap::new);
        Display { output, style, cancel: cancel.clone(), open: OpenLine::None, wrap }
    }
}

/// The columns of the terminal that shows the model's words, as it is now.
fn shown_width() -> Option<usize> {
    let width = screen_size().filter(|_| is_shown()).map(|(_, columns)| usize::from(columns));
    width.filter(|width| *width > 0)
}

/// A text broken between words where the terminal ends.
pub(crate) fn broken(text: &str) -> String {
    let Some(mut wrap) = shown_width().map(Wrap::new) else { return text.to_owned() };
    wrap.push(text) + &wrap.finish()
}

impl Display<'_, '_> {
    /// The same text as far as its words are whole, broken where the terminal ends.
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
        // A reader that went away is its own business; other errors show when the answer is written.
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

    /// Ends a line of the model's words or thoughts before anything else is said.
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

    /// Goes on with a line of this kind.
    fn go_on(&mut self, kind: OpenLine, text: &str) {
        if self.open != kind {
            self.finish_line();
        }
        self.open = if text.ends_with('\n') { OpenLine::None } else { kind };
    }

    fn text(&mut self, news: &News<'_>) {
        match news {
            News::Text(text) => {
                // A line that is not finished has no room below it.
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
            News::Called { .. } => {
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
        let is_trouble =
            matches!(news, News::Refused { .. } | News::Note(_) | News::Error(_) | News::Called { failed: true, .. });
        if is_trouble {
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

/// What is told of a piece of news; nothing of what the model itself says.
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
        News::Refused { event, tool, args, hook, reason } => {
            let what = tool.unwrap_or(event.name());
            let args = args
                .filter(|args| !args.is_empty())
                .map(|args| format!(" {}", cut(&Value::from(args.clone()).to_string(), LONGEST)));
            format!("hook `{hook}` refused {what}{}: {reason}", args.unwrap_or_default())
        }
        News::Note(HookNote { hook, text }) => format!("hook `{hook}`: {text}"),
        _ => return None,
    };
    let is_failure = matches!(news, News::Error(_) | News::Called { failed: true, .. });
    Some(Told { text, is_failure })
}

/// A difference with what goes and what comes in colours; they are dropped where nobody would see them.
pub(crate) fn coloured(diff: &str) -> String {
    let line = |line: &str| match line.chars().next() {
        Some('+') => format!("\x1b[32m{line}{PLAIN}\n"),
        Some('-') => format!("{RED}{line}{PLAIN}\n"),
        _ => format!("{line}\n"),
    };
    diff.lines().map(line).collect()
}

/// A result in one line: its first one, and how it ended if it says so.
fn gist(result: &str) -> String {
    let mut lines = result.lines().filter(|line| !line.trim().is_empty());
    let is_note = |line: &str| line.starts_with('[') && line.ends_with(']');
    let mut said = lines.clone().filter(|line| !is_note(line));
    let first = said.next().unwrap_or_default();
    // A line that announces others says little without the last of them.
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
