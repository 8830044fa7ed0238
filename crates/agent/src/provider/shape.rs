//! Shapes messages for servers: one leading system message, and never two messages of one role in a row.
//!
//! A conversation contains system messages where hooks added them, and two prompts in a row after a failed turn. Strict
//! chat templates refuse both, and with them the whole conversation. Nothing is removed here: a message without a valid
//! place is merged into its neighbour.

use super::refusal::Refusal;
use super::{Piece, Question};
use crate::message::{Arguments, Call, Message};

/// What the model's template supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// Calls and their results.
    pub(crate) tools: bool,
    /// A system message.
    pub(crate) system: bool,
}

impl Default for Form {
    fn default() -> Form {
        Form { tools: true, system: true }
    }
}

impl Form {
    /// Adapts to features that the model lacks by the server's refusal; returns whether something changed.
    pub(crate) fn adapt(
        &mut self,
        model: &str,
        refusal: &Refusal,
        question: &Question<'_>,
        hear: &mut dyn FnMut(Piece<'_>),
    ) -> bool {
        if self.tools && !question.tools.is_empty() && refusal.is_without_tools() {
            self.tools = false;
            hear(Piece::Status(&format!("{model} cannot call tools; it goes on without them")));
            return true;
        }
        self.system && refusal.is_without_system() && {
            self.system = false;
            true
        }
    }
}

/// Inserted between the result of a call and the next prompt, if a turn ended without an answer.
const NO_ANSWER: &str = "[The turn ended here.]";
/// Inserted before an answer whose prompt was removed.
const NO_PROMPT: &str = "[Earlier messages were left out.]";

/// The messages in a form that strict chat templates accept.
pub(crate) fn shaped(messages: &[Message], form: Form) -> Vec<Message> {
    let mut wire = Wire::default();
    for message in messages {
        match message {
            Message::System(text) => wire.system(text),
            Message::User(text) => wire.user(text),
            Message::Assistant { content, calls } if form.tools => wire.assistant(content, calls),
            Message::Assistant { content, calls } => wire.assistant(&written(content, calls), &[]),
            Message::Tool { .. } if form.tools => wire.messages.push(message.clone()),
            Message::Tool { name, content, .. } => wire.user(&format!("[result of {name}]\n{content}")),
        }
    }
    wire.finish(form)
}

#[derive(Default)]
struct Wire {
    leading: String,
    messages: Vec<Message>,
    /// System messages that wait for the next prompt.
    held: String,
}

impl Wire {
    fn system(&mut self, text: &str) {
        match self.messages.last_mut() {
            None => join(&mut self.leading, text),
            Some(Message::User(content) | Message::Tool { content, .. }) => join(content, &note(text)),
            Some(_) => join(&mut self.held, &note(text)),
        }
    }

    fn user(&mut self, text: &str) {
        let mut whole = std::mem::take(&mut self.held);
        join(&mut whole, text);
        match self.messages.last_mut() {
            Some(Message::User(content)) => join(content, &whole),
            Some(Message::Tool { .. }) => {
                self.messages.push(Message::Assistant { content: NO_ANSWER.to_owned(), calls: Vec::new() });
                self.messages.push(Message::User(whole));
            }
            _ => self.messages.push(Message::User(whole)),
        }
    }

    fn assistant(&mut self, content: &str, calls: &[Call]) {
        self.release();
        if content.is_empty() && calls.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            None => self.messages.push(Message::User(NO_PROMPT.to_owned())),
            Some(Message::Assistant { content: before, calls: none }) if none.is_empty() => {
                join(before, content);
                none.extend_from_slice(calls);
                return;
            }
            Some(_) => {}
        }
        self.messages.push(Message::Assistant { content: content.to_owned(), calls: calls.to_vec() });
    }

    /// Adds waiting system messages for which no prompt came.
    fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.user(&held);
        }
    }

    fn finish(mut self, form: Form) -> Vec<Message> {
        self.release();
        if self.leading.is_empty() {
            return self.messages;
        }
        match self.messages.first_mut() {
            Some(Message::User(first)) if !form.system => {
                *first = format!("{}\n\n{first}", self.leading);
            }
            _ if !form.system => self.messages.insert(0, Message::User(self.leading)),
            _ => self.messages.insert(0, Message::System(self.leading)),
        }
        self.messages
    }
}

fn join(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

fn note(text: &str) -> String {
    format!("[system note] {text}")
}

/// Calls as text, for a model without tools.
fn written(content: &str, calls: &[Call]) -> String {
    let mut text = content.to_owned();
    for call in calls {
        let arguments = match &call.arguments {
            Arguments::Object(_) => call.arguments.text(),
            Arguments::Broken(broken) => broken.clone(),
        };
        join(&mut text, &format!("[called {} with {arguments}]", call.name));
    }
    text
}

#[cfg(test)]
mod tests;
