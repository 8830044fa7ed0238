//! Asks the model, and applies the hooks' decisions about the question and the answer.

use ollm_protocol::{EventKind, Tool};
use serde_json::Value;

use super::compress::{Overflow, SHORT, overhead};
use super::emit::Notice;
use super::turn::{Tally, refused};
use super::{Session, TurnEnd, subagent};
use crate::context::SentQuestion;
use crate::message::{Call, Message};
use crate::port::{News, Show};
use crate::provider::written_call::{self, WrittenAnswer};
use crate::provider::{CutReason, ModelAnswer, ModelError, Piece, Question};

impl Session<'_> {
    pub(super) fn ask_model(&mut self, tools: &[Tool], tally: &mut Tally) -> Result<Step, TurnEnd> {
        let kind = EventKind::BeforeModel;
        let model = self.model.name().to_owned();
        let decision = self.emit_talk(kind, [("model", model.into()), ("prompt", tally.prompt.clone().into())]);
        self.passes(kind, &decision).map_err(|refusal| refused(kind, refusal))?;
        self.flush();
        self.overhead = overhead(tools);
        let sent = self.talk.size();
        let mut heard = AnswerBuffer::new(tools, self.agents.is_empty());
        let (result, delays) = self.listen(tools, &mut heard);
        for delay in &delays {
            self.notify(Notice::Status, delay);
        }
        match result {
            Ok(mut answer) => {
                if !self.read_written_calls(&mut answer, tools) {
                    heard.release(&mut *self.ports.show);
                }
                self.answered(answer, sent, tally)
            }
            Err(error) => {
                heard.release(&mut *self.ports.show);
                self.unanswered(&error, &heard.text, tally)
            }
        }
    }

    fn listen(
        &mut self,
        tools: &[Tool],
        heard: &mut AnswerBuffer<'_>,
    ) -> (Result<ModelAnswer, ModelError>, Vec<String>) {
        let mut delays = Vec::new();
        let question =
            Question { messages: &self.talk.messages, tools, most: self.settings.limits.answer, cancel: &self.cancel };
        let show = &mut self.ports.show;
        let result = self.model.answer(&question, &mut |piece| match piece {
            Piece::Text(text) => heard.hear(text, &mut **show),
            Piece::Thought(text) => show.show(&News::Thought(text)),
            Piece::Waiting(time) => show.show(&News::Waiting { seconds: time.as_secs() }),
            Piece::Status(text) => {
                show.show(&News::Status(text));
                delays.push(text.to_owned());
            }
        });
        (result, delays)
    }

    fn answered(&mut self, mut answer: ModelAnswer, sent: usize, tally: &mut Tally) -> Result<Step, TurnEnd> {
        distinguish(&mut answer, &self.talk.messages);
        tally.tokens = match (tally.tokens, answer.tokens) {
            (None, None) => None,
            (before, now) => Some(before.unwrap_or(0).saturating_add(now.unwrap_or(0))),
        };
        self.show_answer(&answer.content);
        let mut fields: Vec<(&str, Value)> = vec![("response", answer.content.clone().into())];
        fields.extend(answer.tokens.map(|tokens| ("tokens", tokens.into())));
        let kind = EventKind::AfterModel;
        let decision = self.emit(kind, fields);
        self.passes(kind, &decision).map_err(|refusal| refused(kind, refusal))?;
        if answer.content.trim().is_empty() && answer.calls.is_empty() {
            return self.said_nothing(&answer, tally);
        }
        let message = Message::Assistant { content: answer.content.clone(), calls: answer.calls.clone() };
        if self.is_of_a_part(&answer, (sent, message.size()), tally) {
            return Ok(Step::Again);
        }
        // A later refusal in this turn concerns another conversation.
        tally.overflowed = Overflow::Never;
        tally.response.clone_from(&answer.content);
        tally.truncated = answer.cut.is_some();
        self.push_answer(message);
        self.tell_cut(&answer)?;
        Ok(Step::Answered(answer))
    }

    /// Shows a complete answer; the answer of a sub-agent is shown as progress of its task.
    fn show_answer(&mut self, content: &str) {
        if self.agents.is_empty() {
            self.ports.show.show(&News::Answered { content });
        } else if !content.trim().is_empty() {
            self.ports.show.show(&News::Progress { name: subagent::TYPE, text: content });
        }
    }

    /// Records the provider's count. If it shows that the server silently dropped messages, the model has answered only
    /// a part of the conversation: returns whether to ask again, with a shorter one.
    fn is_of_a_part(&mut self, answer: &ModelAnswer, (sent, size): (usize, usize), tally: &mut Tally) -> bool {
        let Some(read) = answer.tokens_read() else { return false };
        if self.meter.known_window().is_none() {
            // Some servers report it only once the model is loaded.
            self.measure_window();
        }
        let asked = SentQuestion { talk: sent, tools: self.overhead, read };
        // The provider counts the reasoning as written, but the next question does not contain it.
        let written = if answer.reasoning.is_empty() { answer.tokens_written() } else { None };
        let written = written.unwrap_or_else(|| self.meter.tokens(size));
        if let Some(expected) = self.meter.suspects(asked) {
            self.status(&format!(
                "the server counts {read} tokens in a question of about {expected}; if it reads no more, say so in model.contextWindow"
            ));
        }
        let is_told = self.meter.known_window().is_some();
        let Some(lost) = self.meter.count(asked, (size, written)) else { return false };
        let again = tally.overflowed == Overflow::Never && !tally.keep_all && self.can_be_shorter();
        let next = if again { "it is made shorter, and the model asked again" } else { "ask with less" };
        let doubt =
            if is_told { "" } else { "; if it read all of it, say in model.contextWindow how much it can read" };
        self.status(&format!(
            "the server dropped about {lost} tokens from the beginning of the conversation without a word; {next}{doubt}"
        ));
        if again {
            tally.overflowed = Overflow::Now { again: false };
        }
        again
    }

    /// Reports an incomplete answer. If it has no calls, the turn ends with that.
    fn tell_cut(&mut self, answer: &ModelAnswer) -> Result<(), TurnEnd> {
        match answer.cut {
            Some(CutReason::Bytes) => {
                let most = self.settings.limits.answer;
                self.status(&format!("the answer went on past {most} bytes and was cut"));
            }
            Some(CutReason::Length) if answer.calls.is_empty() => {
                let bound = "the model reached its limit of tokens, and its answer is not whole".to_owned();
                self.error("model", "length", &format!("{bound}; ask it to go on, or raise model.maxTokens"));
                return Err(TurnEnd::Bounded(bound));
            }
            Some(CutReason::Length) => self.status("the model reached its limit of tokens while it wrote a call"),
            None => {}
        }
        Ok(())
    }

    /// Handles an answer without text and calls. Some servers answer like this if the conversation is too long for
    /// them.
    fn said_nothing(&mut self, answer: &ModelAnswer, tally: &mut Tally) -> Result<Step, TurnEnd> {
        let size = self.size().tokens;
        let is_long = size > self.meter.known_window().map_or(SHORT, |window| window / 2);
        let suspect = answer.reasoning.is_empty()
            && tally.overflowed == Overflow::Never
            && !tally.keep_all
            && is_long
            && (self.talk.squeeze(self.talk.size() / 2, self.share()).is_some()
                || self.talk.has_result_beyond(self.talk.size() / 4));
        if suspect {
            tally.overflowed = Overflow::Now { again: false };
            self.meter.refuse(self.question_bytes(), self.meter.known_window(), None);
            self.status("the model returned nothing; the conversation may be too long for it");
            return Ok(Step::Again);
        }
        let message = match (answer.reasoning.is_empty(), answer.cut) {
            (false, Some(CutReason::Length)) => {
                "the model used up its tokens by thinking, and said nothing; raise model.maxTokens".to_owned()
            }
            (false, _) => "the model only thought, and said nothing; ask again".to_owned(),
            (true, _) if is_long => format!(
                "the model returned nothing; about {size} tokens may be too much for it: ask with less, or take another model"
            ),
            (true, _) => "the model returned nothing; ask again, or take another model".to_owned(),
        };
        self.error("model", "empty", &message);
        Err(TurnEnd::Failed { code: "empty", message })
    }

    /// Handles a failed call of the model, and emits the end that every beginning needs.
    fn unanswered(&mut self, error: &ModelError, heard: &str, tally: &mut Tally) -> Result<Step, TurnEnd> {
        let message = error.to_string();
        self.emit(EventKind::AfterModel, [("response", heard.into()), ("error", message.clone().into())]);
        if !heard.is_empty() {
            self.show_answer(heard);
            heard.clone_into(&mut tally.response);
            self.push(Message::Assistant { content: format!("{heard}\n[the answer broke off]"), calls: Vec::new() });
        }
        if matches!(error, ModelError::Cancelled) {
            return Err(TurnEnd::Interrupted);
        }
        if let ModelError::TooLong { window, sent, .. } = error {
            self.meter.refuse(self.question_bytes(), *window, *sent);
            if let Some(next) = tally.overflowed.refused(sent.is_some()).filter(|_| !tally.keep_all) {
                tally.overflowed = next;
                return Ok(Step::Again);
            }
            let fixed = self.fixed_tokens();
            let why = if fixed > self.meter.window() / 2 {
                format!(", of which tools, instructions and what hooks said at the beginning take about {fixed} tokens")
            } else {
                String::new()
            };
            let message = format!("{message}{why}; ask with less, or take a model that can look at more");
            self.error("model", error.code(), &message);
            return Err(TurnEnd::Failed { code: error.code(), message });
        }
        self.error("model", error.code(), &message);
        Err(TurnEnd::Failed { code: error.code(), message })
    }

    /// Converts an answer that consists only of calls written as text; returns whether it did.
    fn read_written_calls(&mut self, answer: &mut ModelAnswer, tools: &[Tool]) -> bool {
        if !answer.calls.is_empty() || answer.cut.is_some() || tools.is_empty() {
            return false;
        }
        let Some(found) = written_call::find(&answer.content, tools) else { return false };
        self.status(&match &found {
            WrittenAnswer::Calls(calls) => match calls.as_slice() {
                [call] => format!("the model wrote its call of {} as text; it counts as a call", call.name),
                calls => format!("the model wrote {} calls as text; they count as calls", calls.len()),
            },
            WrittenAnswer::Mentioned(name) => {
                format!("the answer holds a call of {name} among other words; it was not made")
            }
            WrittenAnswer::Unknown(name) => {
                format!("the answer is a call of {name}, which is no tool on offer; it was not made")
            }
            WrittenAnswer::Unreadable => {
                "the answer is a call in a form that cannot be read; it was not made".to_owned()
            }
            WrittenAnswer::Resembling(name) => {
                format!("the answer looks like a call of {name}, in a form that cannot be read; it was not made")
            }
        });
        let WrittenAnswer::Calls(calls) = found else { return false };
        answer.content = String::new();
        answer.calls = calls;
        true
    }
}

/// The text of an answer while it arrives. Text that may turn out to be a call waits until that is known.
struct AnswerBuffer<'a> {
    tools: &'a [Tool],
    text: String,
    /// How many bytes of the text were shown.
    shown: usize,
    waits: bool,
    /// False for a sub-agent, whose text is no answer to the person.
    is_shown: bool,
}

impl<'a> AnswerBuffer<'a> {
    fn new(tools: &'a [Tool], is_shown: bool) -> AnswerBuffer<'a> {
        AnswerBuffer { tools, text: String::new(), shown: 0, waits: !tools.is_empty(), is_shown }
    }

    fn hear(&mut self, text: &str, show: &mut dyn Show) {
        self.text.push_str(text);
        self.waits = self.waits && written_call::may_begin(&self.text, self.tools);
        if !self.waits {
            self.release(show);
        }
    }

    /// Shows the waiting text.
    fn release(&mut self, show: &mut dyn Show) {
        let waiting = self.text.get(self.shown..).unwrap_or_default();
        if self.is_shown && !waiting.is_empty() {
            show.show(&News::Text(waiting));
        }
        self.shown = self.text.len();
    }
}

/// The result of asking the model.
pub(super) enum Step {
    /// An answer.
    Answered(ModelAnswer),
    /// The conversation is too long, and must be shortened before the next try.
    Again,
}

/// Gives every call an id that is unique in the conversation, because results refer to ids. Many models give no ids,
/// and servers number the calls of each answer anew.
fn distinguish(answer: &mut ModelAnswer, before: &[Message]) {
    let is_taken = |id: &str, now: &[Call]| {
        let of_message = |message: &Message| match message {
            Message::Assistant { calls, .. } => calls.iter().any(|call| call.id == id),
            _ => false,
        };
        id.is_empty() || now.iter().any(|call| call.id == id) || before.iter().any(of_message)
    };
    for at in 0..answer.calls.len() {
        let Some((call, earlier)) = answer.calls.get_mut(..=at).and_then(<[Call]>::split_last_mut) else { return };
        if is_taken(&call.id, earlier) {
            let mut numbered = (before.len() + at..).map(|number| format!("{}-{number}", call.id));
            let free = numbered.find(|id| !is_taken(id, earlier));
            call.id = free.unwrap_or_default();
        }
    }
}
