//! What a person or a program sees of a session.

use ollm_agent::{HookNote, News, Show, Turn, TurnEnd};
use ollm_app::Shared;
use ollm_protocol::joined;
use ollm_store::{cut, escape_for_people};
use serde_json::{Value, json};

use crate::output::Output;

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
    /// Whether the last line of standard output is unfinished.
    pub(crate) open: bool,
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
    }
}

impl Display<'_, '_> {
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

    /// Ends a line of the model's words before anything else is said.
    fn finish_line(&mut self) {
        if std::mem::take(&mut self.open) {
            let _ = self.output.lock().bytes(b"\n", b"", 0);
        }
    }

    fn text(&mut self, news: &News<'_>) {
        match news {
            News::Text(text) => {
                let shown = escape_for_people(text);
                let _ = self.output.lock().bytes(shown.as_bytes(), b"", 0);
                self.open = !text.ends_with('\n');
            }
            News::Answered { .. } => self.finish_line(),
            News::Calling { name, args, .. } => {
                let args = Value::from((*args).clone()).to_string();
                self.tell(&format!("→ {name} {}", cut(&args, LONGEST)));
            }
            News::Called { name, result, failed, diff, .. } => {
                if *failed {
                    return self.tell_trouble(news);
                }
                self.tell(&format!("✓ {name}: {}", cut(&gist(result), LONGEST)));
                if let Some(diff) = diff {
                    self.output.lock().explain(&escape_for_people(diff));
                }
            }
            News::Progress { name, text } => self.tell(&format!("… {name}: {}", cut(text, LONGEST))),
            News::Status(text) => self.tell(text),
            News::System(text) => self.tell(&format!("a hook tells the model: {}", cut(text, LONGEST))),
            trouble => self.tell_trouble(trouble),
        }
    }

    fn tell_trouble(&mut self, news: &News<'_>) {
        match news {
            News::Refused { event, tool, hook, reason } => {
                let what = tool.unwrap_or(event.name());
                self.tell(&format!("hook `{hook}` refused {what}: {reason}"));
            }
            News::Note(HookNote { hook, text }) => self.tell(&format!("hook `{hook}`: {text}")),
            News::Error(text) => self.tell_failure(text),
            News::Called { name, result, failed: true, .. } => {
                self.tell_failure(&format!("✗ {name}: {}", cut(&gist(result), LONGEST)));
            }
            _ => {}
        }
    }
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
