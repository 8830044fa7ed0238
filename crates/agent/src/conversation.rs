//! The conversation: what was said, what waits to be said, and how it is made shorter when it grows too long.

use serde_json::{Value, json};

use crate::message::Message;

/// What the model reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    /// What hooks added since the last call of the model. A call's result must follow the call, so it has to wait.
    pending: Vec<Message>,
    /// Bytes of all of them, counted as they come: every event tells of it.
    size: usize,
    /// The first messages as JSON, as far as events have told of them: each is written down once, not at every turn.
    told: Vec<Value>,
}

/// How a conversation was made shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Squeeze {
    /// How many messages at the beginning stay.
    pub(crate) head: usize,
    /// How many messages at the end stay.
    pub(crate) tail: usize,
    /// What stands for those between.
    pub(crate) summary: String,
}

impl Squeeze {
    pub(crate) fn to_json(&self) -> Value {
        json!({"head": self.head, "tail": self.tail, "summary": self.summary})
    }

    pub(crate) fn from_json(value: &Value) -> Option<Squeeze> {
        let count = |name: &str| usize::try_from(value.get(name)?.as_u64()?).ok();
        Some(Squeeze {
            head: count("head")?,
            tail: count("tail")?,
            summary: value.get("summary")?.as_str()?.to_owned(),
        })
    }
}

/// The longest summary.
const LONGEST_SUMMARY: usize = 4 << 10;

impl Conversation {
    pub(crate) fn new(messages: Vec<Message>) -> Conversation {
        let mut talk = Conversation { messages, ..Conversation::default() };
        talk.count();
        talk
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.size += message.size();
        self.messages.push(message);
    }

    /// Keeps a message until the model is asked again.
    pub(crate) fn wait(&mut self, message: Message) {
        self.size += message.size();
        self.pending.push(message);
    }

    /// Takes what waited.
    pub(crate) fn take_pending(&mut self) -> Vec<Message> {
        let pending = std::mem::take(&mut self.pending);
        self.size -= pending.iter().map(Message::size).sum::<usize>();
        pending
    }

    /// The messages, with those that wait, as JSON. To be given [back](Self::give_back), so that the next time only what
    /// is new has to be written.
    pub(crate) fn lend(&mut self) -> Vec<Value> {
        let mut told = std::mem::take(&mut self.told);
        let new = self.messages.iter().skip(told.len());
        told.extend(new.chain(&self.pending).map(Message::to_json));
        told
    }

    /// Takes back what was lent; the conversation is the same as then.
    pub(crate) fn give_back(&mut self, mut told: Vec<Value>) {
        told.truncate(self.messages.len());
        self.told = told;
    }

    /// The last few messages, none of them long.
    pub(crate) fn recent(&self, count: usize, longest: usize) -> Value {
        let from = self.messages.len().saturating_sub(count);
        let recent = self.messages.iter().skip(from);
        recent
            .map(|message| json!({"role": message.role(), "content": ollm_store::cut(message.content(), longest)}))
            .collect()
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Starts anew where messages have changed that were there before.
    fn count(&mut self) {
        self.told = Vec::new();
        self.size = self.messages.iter().chain(&self.pending).map(Message::size).sum();
    }

    /// How the conversation can be made to fit into half of `most` bytes; nothing if no message can go.
    pub(crate) fn squeeze(&self, most: usize) -> Option<Squeeze> {
        let head = self.messages.iter().take_while(|message| matches!(message, Message::System(_))).count();
        let rest = self.messages.get(head..).unwrap_or_default();
        let mut size = 0;
        let mut tail = 0;
        for (at, message) in rest.iter().rev().enumerate() {
            size += message.size();
            if size > most / 2 && tail > 0 {
                break;
            }
            // A result without its call is no conversation.
            if !matches!(message, Message::Tool { .. }) {
                tail = at + 1;
            }
        }
        let dropped = rest.get(..rest.len() - tail).filter(|dropped| !dropped.is_empty())?;
        Some(Squeeze { head, tail, summary: summary(dropped) })
    }

    /// Drops what a squeeze drops.
    pub(crate) fn apply(&mut self, squeeze: &Squeeze) {
        let from = self.messages.len().saturating_sub(squeeze.tail).max(squeeze.head);
        if squeeze.head <= from && from <= self.messages.len() {
            self.messages.splice(squeeze.head..from, [Message::System(squeeze.summary.clone())]);
        }
        self.count();
    }

    /// Cuts results that are longer than `most` bytes.
    pub(crate) fn shorten(&mut self, most: usize) {
        for message in &mut self.messages {
            if let Message::Tool { content, .. } = message
                && content.len() > most
            {
                *content = ollm_store::cut(content, most).into_owned();
            }
        }
        self.count();
    }

    /// Gives every call a result: a session can end between the two.
    pub(crate) fn mend(&mut self) {
        let mut mended = Vec::with_capacity(self.messages.len());
        let mut open: Vec<(String, String)> = Vec::new();
        for message in std::mem::take(&mut self.messages) {
            match &message {
                Message::Tool { call_id, .. } => match open.iter().position(|(id, _)| id == call_id) {
                    Some(at) => drop(open.remove(at)),
                    // A result without a call would make servers refuse the whole conversation.
                    None => continue,
                },
                Message::Assistant { calls, .. } => {
                    mended.extend(open.drain(..).map(lost));
                    open = calls.iter().map(|call| (call.id.clone(), call.name.clone())).collect();
                }
                _ => mended.extend(open.drain(..).map(lost)),
            }
            mended.push(message);
        }
        mended.extend(open.drain(..).map(lost));
        self.messages = mended;
        self.count();
    }
}

fn lost((call_id, name): (String, String)) -> Message {
    Message::Tool { call_id, name, content: "[no result: the session ended before the call did]".to_owned() }
}

/// What the person asked for in the messages that go.
fn summary(dropped: &[Message]) -> String {
    let prompts: Vec<String> = dropped
        .iter()
        .filter(|message| matches!(message, Message::User(_)))
        .map(|message| format!("- {}", ollm_store::cut(message.content(), 500)))
        .collect();
    // The latest wishes matter most.
    let mut kept: Vec<&str> = Vec::new();
    let mut size = 0;
    for prompt in prompts.iter().rev() {
        size += prompt.len() + 1;
        if size > LONGEST_SUMMARY {
            break;
        }
        kept.push(prompt);
    }
    kept.reverse();
    let note = format!("[{} earlier messages were left out to make room.]", dropped.len());
    if kept.is_empty() { note } else { format!("{note} In them the person asked:\n{}", kept.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Arguments, Call};

    fn assistant(ids: &[&str]) -> Message {
        let call = |id: &&str| Call { id: (*id).into(), name: "x".into(), arguments: Arguments::parse("{}") };
        Message::Assistant { content: "a".repeat(100), calls: ids.iter().map(call).collect() }
    }

    fn tool(id: &str) -> Message {
        Message::Tool { call_id: id.into(), name: "x".into(), content: "r".repeat(100) }
    }

    fn talk() -> Conversation {
        let mut messages = vec![Message::System("be good".into())];
        for turn in 0..10 {
            messages.push(Message::User(format!("wish {turn}")));
            messages.push(assistant(&["1", "2"]));
            messages.push(tool("1"));
            messages.push(tool("2"));
            messages.push(assistant(&[]));
        }
        Conversation::new(messages)
    }

    #[test]
    fn a_shorter_conversation_fits_and_is_whole() {
        for most in [100, 500, 1000, 3000] {
            let mut talk = talk();
            let squeeze = talk.squeeze(most).unwrap();
            talk.apply(&squeeze);
            assert_eq!(talk.messages[0], Message::System("be good".into()));
            assert!(talk.messages[1].content().contains("asked:\n- wish 0"), "{:?}", talk.messages[1]);
            assert!(talk.size() <= most / 2 + LONGEST_SUMMARY + 600, "{most}: {}", talk.size());
            let before = talk.messages.clone();
            talk.mend();
            assert_eq!(talk.size(), Conversation::new(talk.messages.clone()).size());
            assert_eq!(talk.messages, before, "{most}: no call without result, no result without call");
            assert_eq!(Squeeze::from_json(&squeeze.to_json()), Some(squeeze));
        }
    }

    #[test]
    fn what_is_lent_is_all_that_was_said_however_it_came_about() {
        let whole = |talk: &Conversation| -> Vec<Value> {
            talk.messages.iter().chain(&talk.pending).map(Message::to_json).collect()
        };
        let mut talk = talk();
        let changes: [fn(&mut Conversation); 7] = [
            |_| {},
            |talk| talk.push(Message::User("more".into())),
            |talk| talk.wait(Message::System("a hook's word".into())),
            |talk| talk.take_pending().into_iter().for_each(|message| talk.push(message)),
            |talk| talk.shorten(10),
            |talk| talk.apply(&talk.squeeze(1000).unwrap()),
            Conversation::mend,
        ];
        for (at, change) in changes.into_iter().enumerate() {
            change(&mut talk);
            let (lent, expected) = (talk.lend(), whole(&talk));
            assert_eq!(lent, expected, "{at}");
            talk.give_back(lent);
        }
        drop(talk.lend());
        assert_eq!(talk.lend(), whole(&talk), "what is not given back is written again");
    }

    #[test]
    fn what_cannot_be_shorter_stays() {
        let talk = Conversation::new(vec![Message::System("s".into()), Message::User("u".repeat(99))]);
        assert_eq!(talk.squeeze(10), None);
    }

    #[test]
    fn missing_results_are_added_and_stray_ones_dropped() {
        let mut talk = Conversation::new(vec![
            tool("0"),
            assistant(&["1", "2"]),
            tool("2"),
            Message::User("u".into()),
            assistant(&["3"]),
        ]);
        talk.mend();
        let seen: Vec<&str> = talk.messages.iter().map(Message::role).collect();
        assert_eq!(seen, ["assistant", "tool", "tool", "user", "assistant", "tool"]);
    }
}
