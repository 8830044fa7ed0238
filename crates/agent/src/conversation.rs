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

/// How a summary of earlier messages begins.
pub(crate) const SUMMARY: &str = "[Summary of earlier messages]";
/// The longest list of what the person had asked.
const LONGEST_LIST: usize = 4 << 10;

/// What happens to results that the model has not read yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    Spared,
    Cut,
}

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

    /// The guidance that the conversation begins with.
    pub(crate) fn guidance(&self) -> Vec<Message> {
        self.messages.iter().take_while(|message| is_guidance(message)).cloned().collect()
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

    /// How the conversation can be made shorter so that about `most` bytes of it stay as they are; nothing if no message
    /// can go. The summary is still to be written.
    pub(crate) fn squeeze(&self, most: usize) -> Option<Squeeze> {
        let head = self.messages.iter().take_while(|message| is_guidance(message)).count();
        let rest = self.messages.get(head..).unwrap_or_default();
        let mut size = 0;
        let mut tail = 0;
        for (at, message) in rest.iter().rev().enumerate() {
            size += message.size();
            if size > most && tail > 0 {
                break;
            }
            // A result without its call is no conversation.
            if !matches!(message, Message::Tool { .. }) {
                tail = at + 1;
            }
        }
        let squeeze = Squeeze { head, tail, summary: String::new() };
        let dropped = self.dropped(&squeeze);
        // Only what does not survive makes room.
        (dropped.len() > survivors(dropped, self.kept(&squeeze)).len()).then_some(squeeze)
    }

    /// The messages that a squeeze takes out.
    pub(crate) fn dropped(&self, squeeze: &Squeeze) -> &[Message] {
        let from = self.messages.len().saturating_sub(squeeze.tail).max(squeeze.head);
        self.messages.get(squeeze.head..from).unwrap_or_default()
    }

    fn kept(&self, squeeze: &Squeeze) -> &[Message] {
        self.messages.get(self.messages.len().saturating_sub(squeeze.tail)..).unwrap_or_default()
    }

    /// Puts the summary in the place of what a squeeze takes out. Guidance, what hooks said, and the present prompt stay.
    pub(crate) fn apply(&mut self, squeeze: &Squeeze) {
        let mut put = survivors(self.dropped(squeeze), self.kept(squeeze));
        let at = put.iter().take_while(|message| is_guidance(message)).count();
        put.insert(at, Message::System(format!("{SUMMARY} {}", squeeze.summary)));
        let from = self.messages.len().saturating_sub(squeeze.tail).max(squeeze.head);
        if squeeze.head <= from && from <= self.messages.len() {
            self.messages.splice(squeeze.head..from, put);
        }
        self.count();
    }

    /// Cuts results that are longer than `most` bytes. Those that the model has not read yet are spared where `unread` says so.
    pub(crate) fn shorten(&mut self, most: usize, unread: Unread) {
        let pending = self.messages.iter().rev().take_while(|message| matches!(message, Message::Tool { .. })).count();
        let read = self.messages.len() - if unread == Unread::Spared { pending } else { 0 };
        for message in self.messages.iter_mut().take(read) {
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

/// Whether a message guides the model: the system prompt, and what hooks said. A summary is none.
fn is_guidance(message: &Message) -> bool {
    matches!(message, Message::System(text) if !text.starts_with(SUMMARY))
}

/// What stays of the messages that go: guidance, each text once, and the present prompt where `kept` has none.
fn survivors(dropped: &[Message], kept: &[Message]) -> Vec<Message> {
    let mut staying: Vec<Message> = Vec::new();
    for message in dropped.iter().filter(|message| is_guidance(message)) {
        if !staying.contains(message) && !kept.contains(message) {
            staying.push(message.clone());
        }
    }
    let is_prompt = |message: &&Message| matches!(message, Message::User(_));
    if !kept.iter().any(|message| is_prompt(&message)) {
        staying.extend(dropped.iter().rev().find(is_prompt).cloned());
    }
    staying
}

/// What the person asked for in the messages that go, for when no model can sum them up.
pub(crate) fn wishes(dropped: &[Message]) -> String {
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
        if size > LONGEST_LIST {
            break;
        }
        kept.push(prompt);
    }
    kept.reverse();
    let note = format!("{} messages were left out to make room.", dropped.len());
    if kept.is_empty() { note } else { format!("{note} In them the person asked:\n{}", kept.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Arguments, Call};
    use proptest::prelude::*;

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

    /// A squeeze with its summary.
    fn summed_up(talk: &Conversation, most: usize) -> Option<Squeeze> {
        let squeeze = talk.squeeze(most)?;
        let summary = wishes(talk.dropped(&squeeze));
        Some(Squeeze { summary, ..squeeze })
    }

    #[test]
    fn a_shorter_conversation_fits_and_is_whole() {
        for most in [100, 500, 1000, 2500] {
            let mut talk = talk();
            let squeeze = summed_up(&talk, most).unwrap();
            talk.apply(&squeeze);
            assert_eq!(talk.messages[0], Message::System("be good".into()));
            assert!(talk.messages[1].content().contains("asked:\n- wish 0"), "{:?}", talk.messages[1]);
            assert!(talk.size() <= most + 1000, "{most}: {}", talk.size());
            let before = talk.messages.clone();
            talk.mend();
            assert_eq!(talk.size(), Conversation::new(talk.messages.clone()).size());
            assert_eq!(talk.messages, before, "{most}: no call without result, no result without call");
            assert_eq!(Squeeze::from_json(&squeeze.to_json()), Some(squeeze));
        }
    }

    /// One exchange: a prompt, what hooks said around it, calls with their results, and perhaps an answer.
    fn exchange() -> impl Strategy<Value = Vec<Message>> {
        let note = || prop::option::of("[a-c]{1,40}");
        (note(), "[a-z ]{1,200}", note(), prop::collection::vec("[a-z]{0,300}", 0..4), note(), any::<bool>()).prop_map(
            |(before, prompt, after, results, between, ends)| {
                let note = |text: Option<String>| text.map(|text| Message::System(format!("hook {text}")));
                let mut messages: Vec<Message> = note(before).into_iter().collect();
                messages.push(Message::User(prompt));
                messages.extend(note(after));
                for (at, result) in results.into_iter().enumerate() {
                    messages.push(assistant(&[&at.to_string()]));
                    messages.push(Message::Tool { call_id: at.to_string(), name: "x".into(), content: result });
                }
                messages.extend(note(between));
                if ends {
                    messages.push(assistant(&[]));
                }
                messages
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        #[test]
        fn what_must_survive_a_compression_survives_and_the_rest_makes_room(
            exchanges in prop::collection::vec(exchange(), 1..12),
            most in 0usize..3000,
            again in 0usize..3000,
        ) {
            let system = Message::System("be good".into());
            let messages: Vec<Message> = std::iter::once(system.clone()).chain(exchanges.concat()).collect();
            let notes: Vec<Message> = messages.iter().filter(|message| is_guidance(message)).cloned().collect();
            let prompt = messages.iter().rev().find(|message| matches!(message, Message::User(_))).cloned().unwrap();
            let unread: Vec<Message> =
                messages.iter().rev().take_while(|message| matches!(message, Message::Tool { .. })).cloned().collect();
            let mut talk = Conversation::new(messages);
            for most in [most, again] {
                let before = (talk.size(), talk.messages.len());
                let Some(squeeze) = talk.squeeze(most) else { continue };
                let squeeze = Squeeze { summary: "in short".into(), ..squeeze };
                talk.apply(&squeeze);
                prop_assert_eq!(talk.messages.first(), Some(&system));
                prop_assert!(notes.iter().all(|note| talk.messages.contains(note)), "what hooks said stays");
                prop_assert!(talk.messages.contains(&prompt), "the present prompt stays");
                let end: Vec<Message> = talk.messages.iter().rev().take(unread.len()).cloned().collect();
                prop_assert_eq!(&end, &unread, "results that nobody has read stay");
                let summaries = talk.messages.iter().filter(|message| message.content().starts_with(SUMMARY)).count();
                prop_assert_eq!(summaries, 1);
                prop_assert!(talk.messages.len() <= before.1);
                prop_assert!(talk.size() <= before.0 + SUMMARY.len() + " in short".len());
                let whole = talk.messages.clone();
                talk.mend();
                prop_assert_eq!(&talk.messages, &whole, "no call without result, no result without call");
            }
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
            |talk| talk.shorten(10, Unread::Spared),
            |talk| talk.apply(&talk.squeeze(500).unwrap()),
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
