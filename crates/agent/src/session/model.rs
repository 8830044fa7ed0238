//! Asking the model, and what hooks make of the question and the answer.

use ollm_protocol::{EventKind, Tool};
use serde_json::Value;

use super::compress::{Overflow, overhead};
use super::emit::Notice;
use super::turn::{Tally, refused};
use super::{Session, TurnEnd, subagent};
use crate::context::Asked;
use crate::message::{Call, Message};
use crate::port::{News, Show};
use crate::provider::written_call::{self, Written};
use crate::provider::{Answer, Cut, ModelError, Piece, Question};

impl Session<'_> {
    pub(super) fn ask_model(&mut self, tools: &[Tool], tally: &mut Tally) -> Result<Step, TurnEnd> {
        let kind = EventKind::BeforeModel;
        let model = self.model.name().to_owned();
        let decision = self.emit_talk(kind, [("model", model.into()), ("prompt", tally.prompt.clone().into())]);
        self.passes(kind, &decision).map_err(|refusal| refused(kind, refusal))?;
        self.flush();
        self.overhead = overhead(tools);
        let sent = self.talk.size();
        let mut heard = Heard::new(tools, self.agents.is_empty());
        let (result, delays) = self.listen(tools, &mut heard);
        for delay in &delays {
            self.notify(Notice::Status, delay);
        }
        match result {
            Ok(mut answer) => {
                if !self.read_written_call(&mut answer, tools) {
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

    fn listen(&mut self, tools: &[Tool], heard: &mut Heard) -> (Result<Answer, ModelError>, Vec<String>) {
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

    fn answered(&mut self, mut answer: Answer, sent: usize, tally: &mut Tally) -> Result<Step, TurnEnd> {
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
        tally.response.clone_from(&answer.content);
        tally.truncated = answer.cut.is_some();
        let message = Message::Assistant { content: answer.content.clone(), calls: answer.calls.clone() };
        self.count(&answer, sent, message.size());
        self.push(message);
        self.tell_cut(&answer)?;
        Ok(Step::Answered(answer))
    }

    /// Shows that an answer is whole; that of a sub-agent is news of its task.
    fn show_answer(&mut self, content: &str) {
        if self.agents.is_empty() {
            self.ports.show.show(&News::Answered { content });
        } else if !content.trim().is_empty() {
            self.ports.show.show(&News::Progress { name: subagent::TYPE, text: content });
        }
    }

    /// Takes the provider's count, and tells where a server has dropped a part of the conversation without a word.
    fn count(&mut self, answer: &Answer, sent: usize, size: usize) {
        let Some(read) = answer.tokens_read() else { return };
        let asked = Asked { talk: sent, tools: self.overhead, read };
        let lost = self.meter.count(asked, (size, answer.tokens_written().unwrap_or(0)));
        if let Some(lost) = lost {
            self.status(&format!(
                "the server dropped about {lost} tokens from the beginning of the conversation; it is made shorter before the next question"
            ));
        }
    }

    /// Says that an answer is not whole. Where only words are missing, the turn ends with that.
    fn tell_cut(&mut self, answer: &Answer) -> Result<(), TurnEnd> {
        match answer.cut {
            Some(Cut::Bytes) => {
                let most = self.settings.limits.answer;
                self.status(&format!("the answer went on past {most} bytes and was cut"));
            }
            Some(Cut::Length) if answer.calls.is_empty() => {
                let bound = "the model reached its limit of tokens, and its answer is not whole".to_owned();
                self.error("model", "length", &format!("{bound}; ask it to go on, or raise model.maxTokens"));
                return Err(TurnEnd::Bounded(bound));
            }
            Some(Cut::Length) => self.status("the model reached its limit of tokens while it wrote a call"),
            None => {}
        }
        Ok(())
    }

    /// An answer without words or calls. Some servers say nothing where the conversation is too long for them.
    fn said_nothing(&mut self, answer: &Answer, tally: &mut Tally) -> Result<Step, TurnEnd> {
        let suspect = answer.reasoning.is_empty()
            && tally.overflowed == Overflow::Never
            && !tally.keep_all
            && self.meter.known_window().is_none_or(|window| self.size().tokens > window / 2)
            && self.talk.squeeze(self.talk.size() / 2).is_some();
        if suspect {
            tally.overflowed = Overflow::Now;
            self.meter.refuse(self.question_bytes(), self.meter.known_window(), None);
            self.status("the model returned nothing; the conversation may be too long for it");
            return Ok(Step::Again);
        }
        let message = match (answer.reasoning.is_empty(), answer.cut) {
            (false, Some(Cut::Length)) => {
                "the model used up its tokens by thinking, and said nothing; raise model.maxTokens"
            }
            (false, _) => "the model only thought, and said nothing; ask again",
            (true, _) => "the model returned nothing; ask again, or take another model",
        };
        self.error("model", "empty", message);
        Err(TurnEnd::Failed { code: "empty", message: message.to_owned() })
    }

    /// The end of a call of the model that failed: every beginning has one.
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
            if tally.overflowed == Overflow::Never && !tally.keep_all {
                tally.overflowed = Overflow::Now;
                return Ok(Step::Again);
            }
            let message = format!("{message}; ask with less, or take a model that can look at more");
            self.error("model", error.code(), &message);
            return Err(TurnEnd::Failed { code: error.code(), message });
        }
        self.error("model", error.code(), &message);
        Err(TurnEnd::Failed { code: error.code(), message })
    }

    /// Understands a call that the model wrote as its answer, where it is nothing else; says whether it is one.
    fn read_written_call(&mut self, answer: &mut Answer, tools: &[Tool]) -> bool {
        if !answer.calls.is_empty() || answer.cut.is_some() {
            return false;
        }
        let offered = |name: &str| tools.iter().any(|tool| tool.name == name);
        match written_call::find(&answer.content, &offered) {
            Some(Written::Call(call)) => {
                self.status(&format!("the model wrote its call of {} as text; it counts as a call", call.name));
                answer.content = String::new();
                answer.calls.push(call);
                return true;
            }
            Some(Written::Mentioned(name)) => {
                self.status(&format!("the answer holds a call of {name} among other words; it was not made"));
            }
            Some(Written::Unknown(name)) => {
                self.status(&format!("the answer is a call of {name}, which is no tool on offer; it was not made"));
            }
            None => {}
        }
        false
    }
}

/// The words of an answer as they come. Those that may turn out to be a call wait until that is known.
struct Heard {
    text: String,
    /// How many bytes of it were shown.
    shown: usize,
    waits: bool,
    /// A sub-agent's words are no answer to the person.
    is_shown: bool,
}

impl Heard {
    fn new(tools: &[Tool], is_shown: bool) -> Heard {
        Heard { text: String::new(), shown: 0, waits: !tools.is_empty(), is_shown }
    }

    fn hear(&mut self, text: &str, show: &mut dyn Show) {
        self.text.push_str(text);
        self.waits = self.waits && written_call::may_begin(&self.text);
        if !self.waits {
            self.release(show);
        }
    }

    /// Shows what has waited.
    fn release(&mut self, show: &mut dyn Show) {
        let waiting = self.text.get(self.shown..).unwrap_or_default();
        if self.is_shown && !waiting.is_empty() {
            show.show(&News::Text(waiting));
        }
        self.shown = self.text.len();
    }
}

/// What came of asking the model.
pub(super) enum Step {
    /// An answer.
    Answered(Answer),
    /// The conversation is too long and is to be made shorter first.
    Again,
}

/// Gives every call an id that no other has in the conversation: results could not be told apart otherwise. Many models name
/// none, and servers number the calls of each answer anew.
fn distinguish(answer: &mut Answer, before: &[Message]) {
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
