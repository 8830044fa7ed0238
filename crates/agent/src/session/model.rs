//! Asking the model, and what hooks make of the question and the answer.

use std::collections::BTreeSet;

use ollm_protocol::{EventKind, Tool};
use serde_json::Value;

use super::emit::Notice;
use super::turn::{Tally, refused};
use super::{Session, TurnEnd};
use crate::message::Message;
use crate::port::News;
use crate::provider::{Answer, ModelError, Piece, Question};

impl Session<'_> {
    pub(super) fn ask_model(&mut self, tools: &[Tool], tally: &mut Tally) -> Result<Answer, TurnEnd> {
        let kind = EventKind::BeforeModel;
        let model = self.model.name().to_owned();
        let decision = self.emit_talk(kind, [("model", model.into()), ("prompt", tally.prompt.clone().into())]);
        self.passes(kind, &decision).map_err(|refusal| refused(kind, refusal))?;
        self.flush();
        let mut heard = String::new();
        let (result, delays) = self.listen(tools, &mut heard);
        for delay in &delays {
            self.notify(Notice::Status, delay);
        }
        match result {
            Ok(answer) => self.answered(answer, tally),
            Err(error) => Err(self.unanswered(&error, &heard, tally)),
        }
    }

    fn listen(&mut self, tools: &[Tool], heard: &mut String) -> (Result<Answer, ModelError>, Vec<String>) {
        let mut delays = Vec::new();
        let question =
            Question { messages: &self.talk.messages, tools, most: self.settings.limits.answer, cancel: &self.cancel };
        let show = &mut self.ports.show;
        let result = self.model.answer(&question, &mut |piece| match piece {
            Piece::Text(text) => {
                heard.push_str(text);
                show.show(&News::Text(text));
            }
            Piece::Status(text) => {
                show.show(&News::Status(text));
                delays.push(text.to_owned());
            }
        });
        (result, delays)
    }

    fn answered(&mut self, mut answer: Answer, tally: &mut Tally) -> Result<Answer, TurnEnd> {
        distinguish(&mut answer);
        tally.tokens = match (tally.tokens, answer.tokens) {
            (None, None) => None,
            (before, now) => Some(before.unwrap_or(0).saturating_add(now.unwrap_or(0))),
        };
        self.ports.show.show(&News::Answered { content: &answer.content });
        let mut fields: Vec<(&str, Value)> = vec![("response", answer.content.clone().into())];
        fields.extend(answer.tokens.map(|tokens| ("tokens", tokens.into())));
        let kind = EventKind::AfterModel;
        let decision = self.emit(kind, fields);
        self.passes(kind, &decision).map_err(|refusal| refused(kind, refusal))?;
        if answer.content.trim().is_empty() && answer.calls.is_empty() {
            let message = "the model returned nothing; ask again, or take another model";
            self.error("model", "empty", message);
            return Err(TurnEnd::Failed { code: "empty", message: message.to_owned() });
        }
        if answer.cut {
            let most = self.settings.limits.answer;
            self.status(&format!("the answer went on past {most} bytes and was cut"));
        }
        tally.response.clone_from(&answer.content);
        tally.truncated = answer.cut;
        self.push(Message::Assistant { content: answer.content.clone(), calls: answer.calls.clone() });
        Ok(answer)
    }

    /// The end of a call of the model that failed: every beginning has one.
    fn unanswered(&mut self, error: &ModelError, heard: &str, tally: &mut Tally) -> TurnEnd {
        let message = error.to_string();
        self.emit(EventKind::AfterModel, [("response", heard.into()), ("error", message.clone().into())]);
        if !heard.is_empty() {
            self.ports.show.show(&News::Answered { content: heard });
            heard.clone_into(&mut tally.response);
            self.push(Message::Assistant { content: format!("{heard}\n[the answer broke off]"), calls: Vec::new() });
        }
        if matches!(error, ModelError::Cancelled) {
            return TurnEnd::Interrupted;
        }
        self.error("model", error.code(), &message);
        TurnEnd::Failed { code: error.code(), message }
    }
}

/// Gives every call an id of its own: results could not be told apart otherwise.
fn distinguish(answer: &mut Answer) {
    let mut seen = BTreeSet::new();
    for (at, call) in answer.calls.iter_mut().enumerate() {
        if call.id.is_empty() || !seen.insert(call.id.clone()) {
            call.id = format!("{}-{}", call.id, at + 1);
            seen.insert(call.id.clone());
        }
    }
}
