//! A conversation that fills the model's window is made shorter, and hooks hear of it.

use std::fmt::Write as _;

use ollm_protocol::{EventKind, Tool};
use serde_json::{Value, json};

use super::Session;
use super::turn::Tally;
use crate::context::Size;
use crate::conversation::{Unread, wishes};
use crate::message::Message;
use crate::provider::Question;

/// The share of the window that one result may keep when room is made.
const SHARE: u64 = 8;
/// The share of the window that a summary may take, and the most bytes of one.
const SUMMARY_SHARE: u64 = 10;
const LONGEST_SUMMARY: usize = 8 << 10;
/// The least of a message that the model sees when it sums up.
const SHORTEST_EXCERPT: usize = 200;

/// What is said where nothing stands for the rest.
const NOTHING: &str = "nothing of it can go";

/// What the model is told when it sums up.
const SUM_UP: &str = "You sum up a conversation between a person and an assistant that works with tools, so that the \
assistant can go on without having read it. Write plain sentences, no calls. Keep: what the person wants and the rules they \
gave, decisions, names of files, commands and values that matter, what was done, what failed and why, and what is left to \
do. Leave out everything else.";

/// Who wants the conversation shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// The window is full.
    Auto,
    /// The person.
    Manual,
}

impl Trigger {
    fn name(self) -> &'static str {
        match self {
            Trigger::Auto => "auto",
            Trigger::Manual => "manual",
        }
    }
}

impl Session<'_> {
    /// Makes the conversation shorter because the person wants it; says what stands for the rest, or why it stays.
    pub fn compress(&mut self) -> Result<String, String> {
        self.halted = None;
        self.measure_window();
        self.compressed(Trigger::Manual)
    }

    /// Makes room if there is none, or if the server refused what was sent, unless a hook objects.
    pub(super) fn make_room(&mut self, tally: &mut Tally) {
        self.measure_window();
        // Afterwards it is what the last question offered.
        if self.overhead == 0 {
            self.overhead = overhead(&self.registry.tools());
        }
        let size = self.size();
        if !(self.meter.is_full(size) || tally.overflowed == Overflow::Now) || tally.keep_all {
            return;
        }
        let mut fields = self.measures(size);
        fields.push(("utilization", self.meter.utilization(size).into()));
        self.emit(EventKind::ContextOverflow, fields);
        if tally.overflowed == Overflow::Now {
            tally.overflowed = Overflow::Handled;
        }
        match self.compressed(Trigger::Auto) {
            // What is left cannot be made shorter: trying again at every step would only make noise.
            Ok(_) => tally.keep_all = self.meter.is_full(self.size()),
            Err(why) => {
                tally.keep_all = true;
                self.status(&format!("the conversation stays as long as it is: {why}"));
            }
        }
    }

    /// The size of the next question.
    pub(super) fn size(&self) -> Size {
        self.meter.size(self.question_bytes())
    }

    /// The bytes of the next question, with the tools on offer.
    pub(super) fn question_bytes(&self) -> usize {
        self.meter.read_bytes(self.talk.size(), self.overhead)
    }

    /// Asks what the model can look at; the person's word counts before the server's.
    fn measure_window(&mut self) {
        let told = self.model.window(&self.cancel);
        let set = self.settings.limits.context;
        self.meter.tell(match (set, told) {
            (Some(set), Some(told)) => Some(set.min(told)),
            (set, told) => set.or(told),
        });
    }

    fn measures(&self, size: Size) -> Vec<(&'static str, Value)> {
        vec![
            ("size", size.tokens.into()),
            ("maxSize", self.meter.window().into()),
            ("estimated", (size.estimated || self.meter.known_window().is_none()).into()),
        ]
    }

    fn compressed(&mut self, trigger: Trigger) -> Result<String, String> {
        let before = self.size();
        let mut fields = self.measures(before);
        fields.push(("trigger", trigger.name().into()));
        let decision = self.emit(EventKind::PreCompress, fields);
        self.passes(EventKind::PreCompress, &decision)
            .map_err(|refusal| format!("hook `{}` wants to keep it: {}", refusal.who(), refusal.reason))?;
        let summary = self.shorten(trigger);
        self.meter.forget_count();
        let now = self.size();
        let told = summary.clone().unwrap_or_else(|| NOTHING.to_owned());
        let mut fields = self.measures(now);
        fields.extend([("trigger", trigger.name().into()), ("summary", told.into())]);
        self.emit(EventKind::PostCompress, fields);
        let summary = summary.ok_or(NOTHING)?;
        self.status(&format!(
            "the conversation was made shorter, from about {} to {} tokens",
            before.tokens, now.tokens
        ));
        Ok(summary)
    }

    /// Leaves out what can go; gives what stands for it.
    fn shorten(&mut self, trigger: Trigger) -> Option<String> {
        let window = self.meter.window();
        let fixed = self.meter.read_bytes(0, self.overhead) + self.meter.bytes(window / SUMMARY_SHARE);
        let half = self.meter.bytes(window / 2).saturating_sub(fixed).max(self.meter.bytes(window / SHARE));
        let most = if trigger == Trigger::Manual { half.min(self.talk.size() / 4) } else { half };
        let mut summary = None;
        if let Some(mut squeeze) = self.talk.squeeze(most) {
            let dropped = self.talk.dropped(&squeeze).to_vec();
            squeeze.summary = self.summary(&dropped);
            self.talk.apply(&squeeze);
            self.note(json!({"compressed": squeeze.to_json()}));
            summary = Some(squeeze.summary);
        }
        for unread in [Unread::Spared, Unread::Cut] {
            self.meter.forget_count();
            let full = self.meter.is_full(self.size());
            if full && (unread == Unread::Spared || self.size().tokens > window) {
                let before = self.talk.size();
                self.talk.shorten(self.meter.bytes(window / SHARE), unread);
                if self.talk.size() < before {
                    summary.get_or_insert_with(|| "long results were cut".to_owned());
                }
            }
        }
        summary
    }

    /// What the model says about messages that go; where it says nothing, what the person had asked in them.
    fn summary(&mut self, dropped: &[Message]) -> String {
        self.ports.show.show(&crate::port::News::Status("the conversation is being summed up"));
        let window = self.meter.window();
        let most = self.meter.bytes(window / SUMMARY_SHARE).clamp(SHORTEST_EXCERPT, LONGEST_SUMMARY);
        let text = excerpt(dropped, self.meter.bytes(window / 2));
        let messages = [Message::System(SUM_UP.to_owned()), Message::User(text)];
        let question = Question { messages: &messages, tools: &[], most, cancel: &self.cancel };
        match self.model.answer(&question, &mut |_| {}) {
            Ok(answer) if !answer.content.trim().is_empty() => answer.content.trim().to_owned(),
            _ => wishes(dropped),
        }
    }
}

/// How far a refusal for length was dealt with in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overflow {
    /// There was none.
    Never,
    /// The server just refused.
    Now,
    /// The conversation was made shorter once.
    Handled,
}

/// The bytes of the tools on offer.
pub(super) fn overhead(tools: &[Tool]) -> usize {
    let size =
        |tool: &Tool| tool.name.len() + tool.description.len() + Value::Object(tool.input.0.clone()).to_string().len();
    tools.iter().map(size).sum()
}

/// The messages as a text of at most about `most` bytes, of which each has its share.
fn excerpt(messages: &[Message], most: usize) -> String {
    let share = (most / messages.len().max(1)).max(SHORTEST_EXCERPT);
    let lines = messages.iter().map(|message| {
        let mut words = message.content().to_owned();
        if let Message::Assistant { calls, .. } = message {
            for call in calls {
                // Writing to a String cannot fail.
                let _ = write!(words, " [called {} {}]", call.name, call.arguments.text());
            }
        }
        format!("{}: {}", message.role(), ollm_store::cut(&words, share))
    });
    let text = lines.collect::<Vec<_>>().join("\n\n");
    // Many short messages may still be too many; the latest matter most.
    let from = text.ceil_char_boundary(text.len().saturating_sub(most.max(SHORTEST_EXCERPT)));
    text.get(from..).unwrap_or_default().to_owned()
}
