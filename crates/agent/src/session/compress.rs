//! Shortens a conversation that fills the model's window, and tells hooks about it.

use std::fmt::Write as _;

use ollm_protocol::{EventKind, Tool};
use serde_json::{Value, json};

use super::Session;
use super::turn::Tally;
use crate::context::Size;
use crate::conversation::{Squeeze, UnreadResults, wishes};
use crate::message::Message;
use crate::port::News;
use crate::provider::{ModelAnswer, Piece, Question};
use crate::tool::spill;

/// One divided by the share of the window for one result after shortening, for hooks' earlier messages, and for the
/// project's instructions.
const SHARE: u64 = 8;
/// The same for one result when even unread results must be cut, because there may be many.
const SHARES: [u64; 3] = [SHARE, 4 * SHARE, SMALLEST_SHARE];
const SMALLEST_SHARE: u64 = 16 * SHARE;
/// One divided by the share of the window for a summary, and the most bytes of one.
const SUMMARY_SHARE: u64 = 10;
const LONGEST_SUMMARY: usize = 8 << 10;
/// Shorter questions, in tokens, fit into any window. So the server need not be asked for its window before the first
/// answer.
pub(super) const SHORT: u64 = 1500;
/// The model sees at least this much of each message that it sums up.
const SHORTEST_EXCERPT: usize = 200;

/// Why a conversation is not shortened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum StaysLong {
    /// A hook refuses.
    #[error("hook `{who}` wants to keep it: {reason}")]
    Refused { who: String, reason: String },
    #[error("nothing of it can go")]
    Nothing,
    #[error("interrupted")]
    Interrupted,
}

/// The instruction for the model that writes a summary.
const SUM_UP: &str = "You sum up a conversation between a person and an assistant that works with tools, so that the \
assistant can go on without having read it. Write plain sentences, no calls. Keep: what the person wants and the rules they \
gave, decisions, names of files, commands and values that matter, what was done, what failed and why, and what is left to \
do. Leave out everything else.";

/// The reason to shorten the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// The window is full.
    Auto,
    /// The server refused the question as too long, or dropped a part of it.
    Refused,
    /// The person asked for it.
    Manual,
}

impl Trigger {
    fn name(self) -> &'static str {
        match self {
            Trigger::Auto | Trigger::Refused => "auto",
            Trigger::Manual => "manual",
        }
    }
}

impl Session<'_> {
    /// Shortens the conversation on the person's request; returns the summary, or why it stays.
    pub fn compress(&mut self) -> Result<String, String> {
        self.halted = None;
        self.measure_window();
        self.compressed(Trigger::Manual).map_err(|why| why.to_string())
    }

    /// Shortens a conversation that is too long, or that the server refused, unless a hook refuses.
    pub(super) fn make_room(&mut self, tally: &mut Tally) {
        // Later calls use the size of the last offer.
        if self.overhead == 0 {
            self.overhead = overhead(&self.registry.tools());
        }
        let is_unknown = self.settings.limits.context.is_none() && self.meter.known_window().is_none();
        if is_unknown && self.size().tokens < SHORT {
            return;
        }
        self.measure_window();
        let size = self.size();
        let is_forced = matches!(tally.overflowed, Overflow::Now { .. });
        if !is_forced && (!self.meter.is_full(size) || tally.keep_all || self.is_stuck(tally)) {
            return;
        }
        let mut fields = self.measures(size);
        fields.push(("utilization", self.meter.utilization(size).into()));
        self.emit(EventKind::ContextOverflow, fields);
        let made = self.compressed(if is_forced { Trigger::Refused } else { Trigger::Auto });
        if let Overflow::Now { again } = tally.overflowed {
            // If it could not be shortened now, another refusal will not change that.
            tally.overflowed = Overflow::Handled { again: again || made.is_err() };
        }
        tally.keep_all = matches!(made, Err(StaysLong::Refused { .. }));
        tally.stuck_at = self.meter.is_full(self.size()).then_some(self.talk.messages.len());
        match made {
            Ok(_) | Err(StaysLong::Interrupted) => {}
            Err(why) => {
                let why = format!("the conversation stays as long as before: {why}");
                if tally.stays.as_ref() != Some(&why) {
                    self.status(&why);
                    tally.stays = Some(why);
                }
            }
        }
    }

    /// Whether shortening is useless: the last try left the conversation full, and since then nothing was added, or
    /// nothing that can be removed.
    fn is_stuck(&self, tally: &Tally) -> bool {
        tally.stuck_at.is_some_and(|then| then == self.talk.messages.len() || !self.can_be_shorter())
    }

    /// The size of the next question.
    pub(super) fn size(&self) -> Size {
        self.meter.size(self.question_bytes())
    }

    /// The bytes of the next question, with the offered tools.
    pub(super) fn question_bytes(&self) -> usize {
        self.meter.read_bytes(self.talk.size(), self.overhead)
    }

    /// Whether messages can be removed, or results be cut.
    pub(super) fn can_be_shorter(&self) -> bool {
        self.squeeze(Trigger::Auto).is_some() || self.talk.has_result_beyond(self.share())
    }

    /// A way to shorten the conversation.
    fn squeeze(&self, trigger: Trigger) -> Option<Squeeze> {
        let window = self.meter.window();
        let fixed = self.meter.read_bytes(0, self.overhead).saturating_add(self.meter.bytes(window / SUMMARY_SHARE));
        let half = self.meter.bytes(window / 2).saturating_sub(fixed).max(self.share());
        let most = if trigger == Trigger::Manual { half.min(self.talk.size() / 4) } else { half };
        self.talk.squeeze(most, self.share())
    }

    /// The tokens that no shortening removes: the offered tools, and the guidance at the beginning of the conversation.
    pub(super) fn fixed_tokens(&self) -> u64 {
        let guidance = self.talk.guidance().iter().map(Message::size).sum();
        self.meter.tokens(self.meter.read_bytes(guidance, self.overhead))
    }

    /// The bytes of a share of the window.
    pub(super) fn share(&self) -> usize {
        self.meter.bytes(self.meter.window() / SHARE)
    }

    /// Asks the server for the model's window; a setting of the person takes precedence.
    pub(super) fn measure_window(&mut self) {
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

    fn compressed(&mut self, trigger: Trigger) -> Result<String, StaysLong> {
        let (before, meter) = (self.size(), self.meter.clone());
        let mut fields = self.measures(before);
        fields.push(("trigger", trigger.name().into()));
        let decision = self.emit(EventKind::PreCompress, fields);
        self.passes(EventKind::PreCompress, &decision).map_err(|refusal| {
            let who = refusal.who().to_owned();
            StaysLong::Refused { who, reason: refusal.reason }
        })?;
        self.meter.settle(self.question_bytes());
        let made = self.shorten(trigger);
        if made.is_err() {
            self.meter = meter;
        }
        let now = self.size();
        let told = made.as_ref().map_or_else(StaysLong::to_string, String::clone);
        let mut fields = self.measures(now);
        fields.extend([("trigger", trigger.name().into()), ("summary", told.into())]);
        self.emit(EventKind::PostCompress, fields);
        let summary = made?;
        self.status(&format!(
            "the conversation was made shorter, from about {} to {} tokens",
            before.tokens, now.tokens
        ));
        Ok(summary)
    }

    /// Removes what can be removed; returns the summary.
    fn shorten(&mut self, trigger: Trigger) -> Result<String, StaysLong> {
        let window = self.meter.window();
        let mut summary = None;
        if let Some(squeeze) = self.squeeze(trigger) {
            let squeeze = self.summed_up(squeeze)?;
            self.talk.apply(&squeeze);
            self.note(json!({"compressed": squeeze.to_json()}));
            summary = Some(squeeze.summary);
        }
        let before = self.talk.size();
        if self.meter.is_full(self.size()) {
            self.cut_results(self.share(), UnreadResults::Spared);
        }
        for share in SHARES {
            if self.has_no_room(trigger) {
                self.cut_results(self.meter.bytes(window / share), UnreadResults::Cut);
            }
        }
        if self.has_no_room(trigger) {
            // There are so many results that even the notes about their files do not fit.
            let most = self.meter.bytes(window / SMALLEST_SHARE);
            self.talk.shorten(most, UnreadResults::Cut, &|_, text| ollm_store::cut(text, most).into_owned());
        }
        if self.has_no_room(trigger) {
            self.talk.shorten_instructions(self.share());
        }
        if self.talk.size() < before {
            summary.get_or_insert_with(|| "long results were cut".to_owned());
        }
        summary.ok_or(StaysLong::Nothing)
    }

    /// Cuts long results. Each whole result is kept in a file, which the cut text names.
    fn cut_results(&mut self, most: usize, unread: UnreadResults) {
        let folder = &self.settings.shell.spill;
        self.talk.shorten(most, unread, &|name, text| spill::fit(text, most, name, folder));
    }

    /// Whether even unread results must be cut. If a server has refused, our estimate was too low.
    fn has_no_room(&self, trigger: Trigger) -> bool {
        let size = self.size();
        size.tokens > self.meter.window() || (trigger == Trigger::Refused && self.meter.is_full(size))
    }

    /// The squeeze with the model's summary of the removed messages; if the model gives none, with the person's prompts
    /// in them.
    fn summed_up(&mut self, squeeze: Squeeze) -> Result<Squeeze, StaysLong> {
        self.ports.show.show(&News::Status("the conversation is being summed up"));
        let window = self.meter.window();
        let most = self.meter.bytes(window / SUMMARY_SHARE).clamp(SHORTEST_EXCERPT, LONGEST_SUMMARY);
        let dropped = self.talk.dropped(&squeeze);
        let text = excerpt(dropped, self.meter.bytes(window / 2));
        let messages = [Message::System(SUM_UP.to_owned()), Message::User(text)];
        let question = Question { messages: &messages, tools: &[], most, cancel: &self.cancel };
        let show = &mut self.ports.show;
        let answer = self.model.answer(&question, &mut |piece| match piece {
            Piece::Waiting(time) => show.show(&News::Waiting { seconds: time.as_secs() }),
            Piece::Status(text) => show.show(&News::Status(text)),
            Piece::Text(_) | Piece::Thought(_) => {}
        });
        if self.cancel.is_set() {
            return Err(StaysLong::Interrupted);
        }
        let (text, ran_out) = match &answer {
            Ok(answer) if !answer.content.trim().is_empty() => (answer.content.trim().to_owned(), answer.cut.is_some()),
            _ => (wishes(dropped), false),
        };
        let read = answer.as_ref().ok().and_then(ModelAnswer::tokens_read);
        let asked = messages.iter().map(Message::size).sum();
        if let Some(read) = read.filter(|read| self.meter.unmasks(asked, *read)) {
            self.status(&format!(
                "the server counts {read} tokens whatever it is sent; its counts are not believed any more"
            ));
        }
        let (squeeze, cut) = self.talk.summed_up(squeeze, &text, most);
        if ran_out || cut {
            self.status("the summary of the conversation was too long and is cut");
        }
        Ok(squeeze)
    }
}

/// Whether the server refused a conversation as too long in this turn, and what was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overflow {
    /// There was no refusal.
    Never,
    /// It has just refused, perhaps even the shortened conversation.
    Now { again: bool },
    /// The conversation was made shorter.
    Handled { again: bool },
}

impl Overflow {
    /// What to do after a refusal; `None` means give up. The question is repeated once in a shorter conversation. If
    /// the server counts tokens, it is repeated once more, because our estimate then uses its count.
    pub(super) fn refused(self, is_counted: bool) -> Option<Overflow> {
        match self {
            Overflow::Never => Some(Overflow::Now { again: false }),
            Overflow::Handled { again: false } if is_counted => Some(Overflow::Now { again: true }),
            Overflow::Handled { .. } | Overflow::Now { .. } => None,
        }
    }
}

/// The bytes of the offered tools.
pub(super) fn overhead(tools: &[Tool]) -> usize {
    let size =
        |tool: &Tool| tool.name.len() + tool.description.len() + Value::Object(tool.input.0.clone()).to_string().len();
    tools.iter().map(size).sum()
}

/// The messages as a text of at most about `most` bytes, with an equal share for each.
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
    // Many short messages may still be too long together; the latest matter most.
    let from = text.ceil_char_boundary(text.len().saturating_sub(most.max(SHORTEST_EXCERPT)));
    text.get(from..).unwrap_or_default().to_owned()
}
