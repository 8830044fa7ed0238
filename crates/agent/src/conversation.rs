//! The conversation: its messages, its waiting messages, and how it is shortened when it grows too long.

use std::ops::Range;

use serde_json::{Value, json};

use crate::message::Message;

/// The messages that the model reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    /// Messages that hooks added since the last call of the model. They wait, because a call's result must directly
    /// follow the call.
    pending: Vec<Message>,
    /// Bytes of all messages, updated with each one, because every event reports them.
    size: usize,
    /// The first messages as JSON, cached because many events contain them: each is converted once, not at every turn.
    told: Vec<Value>,
}

/// How to shorten a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Squeeze {
    /// How many messages at the beginning stay.
    pub(crate) head: usize,
    /// How many messages at the end stay.
    pub(crate) tail: usize,
    /// How many bytes of the hooks' messages between them stay.
    pub(crate) notes: usize,
    /// The summary that replaces the rest.
    pub(crate) summary: String,
}

impl Squeeze {
    pub(crate) fn to_json(&self) -> Value {
        json!({"head": self.head, "tail": self.tail, "notes": self.notes, "summary": self.summary})
    }

    pub(crate) fn from_json(value: &Value) -> Option<Squeeze> {
        let count = |name: &str| usize::try_from(value.get(name)?.as_u64()?).ok();
        Some(Squeeze {
            head: count("head")?,
            tail: count("tail")?,
            notes: count("notes").unwrap_or(usize::MAX),
            summary: value.get("summary")?.as_str()?.to_owned(),
        })
    }
}

/// How a summary of earlier messages begins.
pub(crate) const SUMMARY: &str = "[Summary of earlier messages]";
/// The beginning of a project's own instructions.
pub(crate) const INSTRUCTIONS: &str = "Instructions of the project, from ";
/// Marks a text that was cut.
pub(crate) const CUT: &str = "\n[cut here]";
/// A squeeze must free at least this many bytes.
const LEAST_ROOM: usize = 128;
/// The longest list of the person's earlier prompts.
const LONGEST_LIST: usize = 4 << 10;

/// The messages of hooks for the present prompt may take this many times the room of earlier ones.
const PRESENT: usize = 2;

/// How to treat results that the model has not read yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnreadResults {
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

    /// Removes waiting messages that are already in the conversation, for a resumed session.
    pub(crate) fn forget_repeated(&mut self) {
        let messages = &self.messages;
        self.pending.retain(|message| !messages.contains(message));
        self.count();
    }

    /// Takes the waiting messages.
    pub(crate) fn take_pending(&mut self) -> Vec<Message> {
        let pending = std::mem::take(&mut self.pending);
        self.size -= pending.iter().map(Message::size).sum::<usize>();
        pending
    }

    /// All messages as JSON, including waiting ones. The caller returns the list by [`Self::give_back`], so that next
    /// time only new messages are converted.
    pub(crate) fn lend(&mut self) -> Vec<Value> {
        let mut told = std::mem::take(&mut self.told);
        let new = self.messages.iter().skip(told.len());
        told.extend(new.chain(&self.pending).map(Message::to_json));
        told
    }

    /// Takes the list of [`Self::lend`] back; the conversation must be unchanged since.
    pub(crate) fn give_back(&mut self, mut told: Vec<Value>) {
        told.truncate(self.messages.len());
        self.told = told;
    }

    /// The guidance at the beginning of the conversation.
    pub(crate) fn guidance(&self) -> Vec<Message> {
        self.messages.iter().take_while(|message| is_guidance(message)).cloned().collect()
    }

    /// The last few messages, each shortened.
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

    /// Recomputes cache and size after earlier messages have changed.
    fn count(&mut self) {
        self.told = Vec::new();
        self.size = self.messages.iter().chain(&self.pending).map(Message::size).sum();
    }

    /// A way to shorten the conversation; `None` if it would free too little. About `most` bytes stay unchanged, and at
    /// most `notes` bytes of the hooks' earlier messages. The summary is still empty.
    pub(crate) fn squeeze(&self, most: usize, notes: usize) -> Option<Squeeze> {
        let head = self.messages.iter().take_while(|message| is_guidance(message)).count();
        let rest = self.messages.get(head..).unwrap_or_default();
        let mut size = 0;
        let mut tail = 0;
        for (at, message) in rest.iter().rev().enumerate() {
            size += message.size();
            if size > most && tail > 0 {
                break;
            }
            // A result must not be kept without its call.
            if !matches!(message, Message::Tool { .. }) {
                tail = at + 1;
            }
        }
        let squeeze = Squeeze { head, tail, notes, summary: String::new() };
        (self.room(&squeeze) >= LEAST_ROOM).then_some(squeeze)
    }

    /// The bytes that a squeeze frees, without its summary.
    fn room(&self, squeeze: &Squeeze) -> usize {
        let size = |messages: &[Message]| messages.iter().map(Message::size).sum::<usize>();
        let dropped = self.dropped(squeeze);
        size(dropped).saturating_sub(size(&survivors(dropped, self.kept(squeeze), squeeze.notes)))
    }

    /// The squeeze with its summary, cut to `most` bytes and to half of the freed space. So the summary is shorter than
    /// the messages it replaces. Also returns whether it was cut.
    pub(crate) fn summed_up(&self, mut squeeze: Squeeze, summary: &str, most: usize) -> (Squeeze, bool) {
        let most = most.min(self.room(&squeeze) / 2).saturating_sub(SUMMARY.len() + 1);
        squeeze.summary = start_of(summary, most);
        let cut = squeeze.summary.len() < summary.len();
        (squeeze, cut)
    }

    /// The messages that a squeeze removes.
    pub(crate) fn dropped(&self, squeeze: &Squeeze) -> &[Message] {
        let from = self.messages.len().saturating_sub(squeeze.tail).max(squeeze.head);
        self.messages.get(squeeze.head..from).unwrap_or_default()
    }

    fn kept(&self, squeeze: &Squeeze) -> &[Message] {
        self.messages.get(self.messages.len().saturating_sub(squeeze.tail)..).unwrap_or_default()
    }

    /// Replaces the messages of a squeeze by its summary. Guidance, the hooks' latest messages, and the present prompt
    /// stay.
    pub(crate) fn apply(&mut self, squeeze: &Squeeze) {
        let mut put = survivors(self.dropped(squeeze), self.kept(squeeze), squeeze.notes);
        // The summary comes first: so the hooks' messages after it are not part of the head, and can be removed another
        // time.
        put.insert(0, Message::System(format!("{SUMMARY} {}", squeeze.summary)));
        let from = self.messages.len().saturating_sub(squeeze.tail).max(squeeze.head);
        if squeeze.head <= from && from <= self.messages.len() {
            self.messages.splice(squeeze.head..from, put);
        }
        self.count();
    }

    /// Cuts results that are longer than `most` bytes: `cut` gets the tool's name and the text. `unread` says whether
    /// results that the model has not read yet are spared.
    pub(crate) fn shorten(&mut self, most: usize, unread: UnreadResults, cut: &dyn Fn(&str, &str) -> String) {
        let pending = self.messages.iter().rev().take_while(|message| matches!(message, Message::Tool { .. })).count();
        let read = self.messages.len() - if unread == UnreadResults::Spared { pending } else { 0 };
        for message in self.messages.iter_mut().take(read) {
            if let Message::Tool { name, content, .. } = message
                && content.len() > most
            {
                let shorter = cut(name, content);
                if shorter.len() < content.len() {
                    *content = shorter;
                }
            }
        }
        self.count();
    }

    /// Cuts the project's instructions to about `most` bytes in all.
    pub(crate) fn shorten_instructions(&mut self, most: usize) {
        let mut left = most;
        for message in &mut self.messages {
            if let Message::System(text) = message
                && text.starts_with(INSTRUCTIONS)
            {
                if text.len() > left {
                    *text = format!("{}{CUT}", start_of(text, left.max(INSTRUCTIONS.len())));
                }
                left = left.saturating_sub(text.len());
            }
        }
        self.count();
    }

    /// Whether a result is longer than `most` bytes.
    pub(crate) fn has_result_beyond(&self, most: usize) -> bool {
        self.messages.iter().any(|message| matches!(message, Message::Tool { content, .. } if content.len() > most))
    }

    /// Makes sure that every call has a result, because a session can end between the two.
    pub(crate) fn mend(&mut self) {
        let mut mended = Vec::with_capacity(self.messages.len());
        let mut open: Vec<(String, String)> = Vec::new();
        for message in std::mem::take(&mut self.messages) {
            match &message {
                Message::Tool { call_id, .. } => match open.iter().position(|(id, _)| id == call_id) {
                    Some(at) => drop(open.remove(at)),
                    // Because of a result without a call, servers would refuse the whole conversation.
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

/// Whether a message guides the model: the system prompt, and the hooks' messages. A summary does not count.
fn is_guidance(message: &Message) -> bool {
    matches!(message, Message::System(text) if !text.starts_with(SUMMARY))
}

/// Whether a message holds instructions of the project. Their size is limited when they are read.
fn is_instruction(message: &Message) -> bool {
    matches!(message, Message::System(text) if text.starts_with(INSTRUCTIONS))
}

/// The removed messages that stay nevertheless: guidance, each text once and the latest up to `notes` bytes. If `kept`
/// has no prompt, the present prompt stays too. Messages of hooks right before that prompt may take twice as much.
fn survivors(dropped: &[Message], kept: &[Message], notes: usize) -> Vec<Message> {
    let mut staying: Vec<Message> = Vec::new();
    let (present, mut left) = (present(dropped, kept), notes);
    let size = dropped.get(present.clone()).unwrap_or_default().iter().map(Message::size).sum::<usize>();
    let is_held = size <= notes.saturating_mul(PRESENT);
    for (at, message) in dropped.iter().enumerate().rev().filter(|(_, message)| is_guidance(message)) {
        if staying.contains(message) || kept.contains(message) {
            continue;
        }
        let stays = is_instruction(message) || (is_held && present.contains(&at));
        if !stays {
            let Some(rest) = left.checked_sub(message.size()) else { continue };
            left = rest;
        }
        staying.push(message.clone());
    }
    staying.reverse();
    let is_prompt = |message: &&Message| matches!(message, Message::User(_));
    if !kept.iter().any(|message| is_prompt(&message)) {
        staying.extend(dropped.iter().rev().find(is_prompt).cloned());
    }
    staying
}

/// The range of the removed messages in which hooks spoke right before the present prompt.
fn present(dropped: &[Message], kept: &[Message]) -> Range<usize> {
    let whole: Vec<&Message> = dropped.iter().chain(kept).collect();
    let end = whole.iter().rposition(|message| matches!(message, Message::User(_))).unwrap_or(0);
    let before = whole.get(..end).unwrap_or_default();
    let count = before.iter().rev().take_while(|message| is_guidance(message)).count();
    (end - count).min(dropped.len())..end.min(dropped.len())
}

/// The start of a text, of at most `most` bytes.
fn start_of(text: &str, most: usize) -> String {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default().to_owned()
}

/// The person's prompts in the removed messages, as a summary if no model can write one.
pub(crate) fn wishes(dropped: &[Message]) -> String {
    let prompts: Vec<String> = dropped
        .iter()
        .filter(|message| matches!(message, Message::User(_)))
        .map(|message| format!("- {}", ollm_store::cut(message.content(), 500)))
        .collect();
    // The latest prompts matter most.
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
        let squeeze = talk.squeeze(most, usize::MAX)?;
        let summary = wishes(talk.dropped(&squeeze));
        Some(talk.summed_up(squeeze, &summary, 4096).0)
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

    /// One exchange: a prompt, hooks' messages around it, calls with their results, and perhaps an answer.
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
            summary in 0usize..20_000,
            longest in 0usize..20_000,
            room_for_notes in prop_oneof![Just(usize::MAX), 0usize..200],
        ) {
            let system = Message::System("be good".into());
            let messages: Vec<Message> = std::iter::once(system.clone()).chain(exchanges.concat()).collect();
            let mut notes: Vec<Message> = messages.iter().filter(|message| is_guidance(message)).cloned().collect();
            let prompt = messages.iter().rev().find(|message| matches!(message, Message::User(_))).cloned().unwrap();
            let unread: Vec<Message> =
                messages.iter().rev().take_while(|message| matches!(message, Message::Tool { .. })).cloned().collect();
            let mut talk = Conversation::new(messages);
            let meter = crate::context::Meter::default();
            for most in [most, again] {
                let before = (talk.size(), talk.messages.len());
                let Some(squeeze) = talk.squeeze(most, room_for_notes) else { continue };
                let dropped = talk.dropped(&squeeze).to_vec();
                let (squeeze, _) = talk.summed_up(squeeze, &"é".repeat(summary), longest);
                talk.apply(&squeeze);
                prop_assert_eq!(talk.messages.first(), Some(&system));
                let gone: Vec<Message> =
                    notes.iter().filter(|note| !talk.messages.contains(note)).cloned().collect();
                prop_assert!(gone.iter().all(|note| dropped.contains(note)), "what goes was to be summed up");
                prop_assert!(gone.is_empty() || room_for_notes < usize::MAX, "what hooks said stays where it has room");
                notes.retain(|note| !gone.contains(note));
                prop_assert!(talk.messages.contains(&prompt), "the present prompt stays");
                let end: Vec<Message> = talk.messages.iter().rev().take(unread.len()).cloned().collect();
                prop_assert_eq!(&end, &unread, "results that nobody has read stay");
                let summaries = talk.messages.iter().filter(|message| message.content().starts_with(SUMMARY)).count();
                prop_assert_eq!(summaries, 1);
                prop_assert!(talk.messages.len() <= before.1);
                prop_assert!(meter.size(talk.size()).tokens < meter.size(before.0).tokens, "the conversation is shorter");
                let whole = talk.messages.clone();
                talk.mend();
                prop_assert_eq!(&talk.messages, &whole, "no call without result, no result without call");
            }
        }
    }

    #[test]
    fn what_hooks_said_goes_with_what_it_stands_beside_once_it_has_no_room_and_the_latest_goes_last() {
        let mut talk = Conversation::new(vec![Message::System("be good".into())]);
        for turn in 0..40 {
            talk.push(Message::System(format!("note {turn} {}", "n".repeat(40))));
            talk.push(Message::User(format!("wish {turn}")));
            talk.push(assistant(&[]));
        }
        for _ in 0..2 {
            let squeeze = talk.squeeze(300, 120).unwrap();
            let (squeeze, _) = talk.summed_up(squeeze, "in short", 99);
            talk.apply(&squeeze);
            let notes = talk.messages.iter().filter(|message| message.content().contains("note ")).count();
            assert!(talk.messages.iter().any(|message| message.content().starts_with("note 39")), "the latest");
            assert!((3..8).contains(&notes), "{notes}");
            for turn in 40..60 {
                talk.push(Message::System(format!("note 39 {turn} {}", "n".repeat(40))));
                talk.push(assistant(&[]));
            }
        }
    }

    #[test]
    fn what_hooks_said_of_the_present_prompt_stays_longer_than_the_rest() {
        for most in [0, 100, 400] {
            let mut talk = Conversation::new(vec![Message::System("be good".into())]);
            for prompt in ["earlier", "present"] {
                talk.push(Message::System(format!("of the {prompt} {}", "n".repeat(150))));
                talk.push(Message::User(prompt.into()));
                (0..5).for_each(|_| talk.push(assistant(&[])));
            }
            let squeeze = talk.squeeze(most, 100).unwrap();
            talk.apply(&squeeze);
            let said = |prompt: &str| talk.messages.iter().any(|message| message.content().starts_with(prompt));
            assert_eq!((said("of the earlier"), said("of the present"), said("present")), (true, true, true), "{most}");
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
            |talk| talk.shorten(10, UnreadResults::Spared, &|_, text| ollm_store::cut(text, 10).into_owned()),
            |talk| talk.apply(&talk.squeeze(500, 0).unwrap()),
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
        assert_eq!(talk.squeeze(10, 0), None);
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
