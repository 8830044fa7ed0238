//! Emits events, and applies the decisions about them.

use ollm_protocol::{Event, EventKind, Flow};
use serde_json::{Map, Value, json};

use super::{Prompt, Session, Stage, subagent};
use crate::message::Message;
use crate::port::{Decision, Failure, HookNote, LateFailure, News};
use ollm_protocol::units::iso;

/// How many recent messages every event contains, and how many bytes of each.
const RECENT: usize = 10;
const RECENT_LENGTH: usize = 2 << 10;

/// The types of a notification.
#[derive(Clone, Copy)]
pub(super) enum Notice {
    Status,
    System,
    Error,
}

impl Session<'_> {
    /// Emits an event, and applies the hooks' messages to the conversation and the person.
    pub(super) fn emit<'a>(&mut self, kind: EventKind, data: impl IntoIterator<Item = (&'a str, Value)>) -> Decision {
        let event = self.event(kind, data);
        let decision = self.dispatch(&event);
        self.absorb(&event, &decision);
        decision
    }

    /// Like [`Self::emit`], for an event that contains the whole conversation. The event borrows it, because it may be
    /// long, and usually no hook listens.
    pub(super) fn emit_talk<'a>(
        &mut self,
        kind: EventKind,
        data: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Decision {
        let messages = ("messages", self.talk.lend().into());
        let mut event = self.event(kind, std::iter::once(messages).chain(data));
        let decision = self.dispatch(&event);
        if let Some(Value::Array(messages)) = event.data.get_mut("messages").map(Value::take) {
            self.talk.give_back(messages);
        }
        self.absorb(&event, &decision);
        decision
    }

    /// Dispatches an event. Failures of hooks that an interruption ended are only shown, because the hooks did not fail
    /// by themselves.
    fn dispatch(&mut self, event: &Event) -> Decision {
        let was_interrupted = self.cancel.is_set();
        let mut decision = self.ports.events.dispatch(event);
        if self.cancel.is_final() || self.cancel.is_set() && !was_interrupted {
            for failure in decision.failures.drain(..) {
                self.ports.show.show(&News::Error(&failure.message));
            }
        }
        decision
    }

    fn event<'a>(&self, kind: EventKind, data: impl IntoIterator<Item = (&'a str, Value)>) -> Event {
        let mut event = Event::unchecked(kind, self.common());
        event.data.extend(data.into_iter().map(|(name, value)| (name.to_owned(), value)));
        event
    }

    fn common(&self) -> Vec<(&'static str, Value)> {
        let mut fields = vec![
            ("session_id", self.settings.session_id.clone().into()),
            ("cwd", self.workspace.root().display().to_string().into()),
            ("timestamp", iso((self.ports.clock)()).into()),
            ("session", self.session_data().into()),
            (
                "agent",
                json!({
                    "mode": self.settings.mode,
                    "approval": self.settings.approval.name(),
                    "context": {"messages": self.talk.messages.len(), "size": self.size().tokens},
                    "history": self.talk.recent(RECENT, RECENT_LENGTH),
                }),
            ),
        ];
        if let Some(agent) = self.agents.last() {
            fields.extend([("agent_id", agent.as_str().into()), ("agent_type", subagent::TYPE.into())]);
        }
        fields.push(("user", self.settings.user_data.to_json()));
        fields.extend(self.user_input.clone().map(|input| ("user_input", input.into())));
        fields
    }

    fn absorb(&mut self, event: &Event, decision: &Decision) {
        for said in &decision.messages {
            self.ports.show.show(&News::Note(said));
        }
        for failure in &decision.failures {
            self.hook_failed(event.kind, failure);
        }
        let messages = entering(decision);
        for text in &messages {
            self.talk.wait(Message::System((*text).clone()));
        }
        for text in &decision.context {
            self.talk.wait(Message::System(text.clone()));
        }
        for prompt in &decision.prompts {
            self.queue_prompt(prompt);
        }
        if decision.flow == Flow::Halt {
            self.halted = Some((decision.who().to_owned(), decision.why()));
        }
        let quiet = event.kind == EventKind::Notification;
        for text in messages {
            self.ports.show.show(&News::System(text));
            if !quiet {
                self.notify(Notice::System, text);
            }
        }
        if decision.flow.refuses() {
            self.tell_refusal(event, decision, quiet);
        }
    }

    fn tell_refusal(&mut self, event: &Event, decision: &Decision, quiet: bool) {
        let reason = decision.why();
        let (hook, tool) = (decision.who().to_owned(), event.text("tool_name"));
        let args = event.data.get("args").and_then(Value::as_object).map(one_name);
        let args = args.as_ref();
        self.ports.show.show(&News::Refused { event: event.kind, tool, args, hook: &hook, reason: &reason });
        self.note(json!({
            "refused": {"event": event.kind.name(), "tool": tool, "hook": hook, "reason": reason, "flow": decision.flow.name()},
        }));
        if !quiet {
            let what = tool.unwrap_or(event.kind.name());
            self.notify(Notice::Status, &format!("hook `{hook}` refused {what}: {reason}"));
        }
    }

    /// Queues a prompt of a hook; a chain of such prompts has a limit.
    fn queue_prompt(&mut self, said: &HookNote) {
        let chain = self.chain + 1;
        let known = self.queue.iter().any(|prompt| prompt.text == said.text);
        if known || said.text.trim().is_empty() {
            return;
        }
        let why_not = if self.stage == Stage::Ended {
            Some("the session ends".to_owned())
        } else if chain > self.settings.limits.chain {
            Some(format!("its chain is {} prompts long", self.settings.limits.chain))
        } else if self.asked_left == 0 {
            Some(format!("hooks have added {} prompts already", self.settings.limits.asked))
        } else {
            None
        };
        if let Some(why) = why_not {
            let line = format!("a prompt of hook `{}` is left out: {why}", said.hook);
            let count = self.left_out.entry(line.clone()).or_default();
            *count += 1;
            if *count == 1 {
                // It is only shown, because a notification about it could cause the next one.
                self.ports.show.show(&News::Status(&line));
            }
            return;
        }
        self.asked_left -= 1;
        self.queue.push_back(Prompt { text: said.text.clone(), chain });
    }

    /// Shows how many more prompts were dropped for a reason that was already shown.
    pub(super) fn count_left_out(&mut self) {
        for (line, count) in std::mem::take(&mut self.left_out) {
            if count > 1 {
                self.ports.show.show(&News::Status(&format!("{line}; so are {} more", count - 1)));
            }
        }
    }

    /// Shows a status message, and tells the hooks that it was shown.
    pub(super) fn status(&mut self, text: &str) {
        self.ports.show.show(&News::Status(text));
        self.notify(Notice::Status, text);
    }

    /// Shows an error, and tells the hooks about it.
    pub(super) fn error(&mut self, operation: &str, code: &str, message: &str) {
        self.failed(operation, code, &Failure { message: message.to_owned(), stack: None });
    }

    /// Reports servers and background hooks that failed since the last call, each once.
    pub(super) fn tell_late_failures(&mut self) {
        let failures: Vec<Failure> = self.registry.sources.iter().flat_map(|source| source.failures()).collect();
        for failure in failures {
            self.failed("server", "server", &failure);
        }
        for LateFailure { at, failure, is_told } in self.ports.events.late_failures() {
            if is_told {
                self.ports.show.show(&News::Error(&failure.message));
            } else {
                self.hook_failed(at, &failure);
            }
        }
    }

    /// Tells the hooks about an error that the person already sees.
    pub(super) fn told_error(&mut self, operation: &str, code: &str, message: &str) {
        self.record(operation, code, &Failure { message: message.to_owned(), stack: None });
    }

    /// Shows a new failure and records it.
    fn failed(&mut self, operation: &str, code: &str, failure: &Failure) {
        self.ports.show.show(&News::Error(&failure.message));
        self.record(operation, code, failure);
    }

    fn record(&mut self, operation: &str, code: &str, failure: &Failure) {
        self.note(json!({"error": {"operation": operation, "code": code, "message": failure.message}}));
        self.tell_error(operation, code, failure);
    }

    /// Tells the hooks about a failure that the person has seen.
    pub(super) fn tell_error(&mut self, operation: &str, code: &str, failure: &Failure) {
        let Failure { message, stack } = failure;
        let mut error = json!({"message": message, "code": code});
        if let (Some(stack), Some(error)) = (stack, error.as_object_mut()) {
            error.insert("stack".to_owned(), stack.as_str().into());
        }
        self.emit(EventKind::Error, [("error", error), ("operation", operation.into())]);
        self.notify(Notice::Error, message);
    }

    /// Reports a failed hook. A failed hook of `error` or `notification` is only shown, because a broken hook must not
    /// call itself.
    fn hook_failed(&mut self, at: EventKind, failure: &Failure) {
        if matches!(at, EventKind::Error | EventKind::Notification) {
            self.ports.show.show(&News::Error(&failure.message));
        } else {
            self.failed(at.name(), "hook", failure);
        }
    }

    /// Emits a notification. Its hooks' messages are shown, but cause no further notification.
    pub(super) fn notify(&mut self, notice: Notice, message: &str) {
        let kind = match notice {
            Notice::Status => "status",
            Notice::System => "system_message",
            Notice::Error => "error",
        };
        self.emit(EventKind::Notification, [("message", message.into()), ("event_type", kind.into())]);
    }

    /// Adds a message to the conversation and its transcript.
    pub(super) fn push(&mut self, message: Message) {
        self.note(json!({"message": message.to_json()}));
        self.talk.push(message);
    }

    /// Adds an answer to the conversation, and saves with it what was learnt of the server's counts.
    pub(super) fn push_answer(&mut self, message: Message) {
        let mut entry = json!({"message": message.to_json()});
        let counts = self.meter.to_json(self.model.name(), self.model.server());
        if let (Some(counts), Some(entry)) = (counts, entry.as_object_mut()) {
            entry.insert("counts".to_owned(), counts);
        }
        self.note(entry);
        self.talk.push(message);
    }

    /// Adds the hooks' messages since the last question to the model.
    pub(super) fn flush(&mut self) {
        for message in self.talk.take_pending() {
            self.push(message);
        }
    }

    /// Writes a line of the transcript. If that fails, the person is told once, and the session continues without a
    /// transcript.
    pub(super) fn note(&mut self, mut entry: Value) {
        let Some(transcript) = &mut self.transcript else { return };
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("at".to_owned(), iso((self.ports.clock)()).into());
        }
        if let Err(error) = transcript.append(&entry) {
            self.transcript = None;
            self.error("transcript", "transcript", &format!("{error}; the session goes on without being saved"));
        }
    }
}

/// Arguments for people: a file that hooks get under two names is shown once.
pub(super) fn one_name(args: &Map<String, Value>) -> Map<String, Value> {
    let mut args = args.clone();
    if args.contains_key("path") && args.get("path") == args.get("file_path") {
        args.shift_remove("file_path");
    }
    args
}

/// The hook messages that enter the conversation. The text of a refusal is its reason, which is reported at the
/// refusal.
fn entering(decision: &Decision) -> Vec<&String> {
    let reason = decision.reason.as_deref().filter(|_| decision.flow.refuses()).unwrap_or_default();
    decision.system_messages.iter().filter(|text| !reason.contains(text.as_str())).collect()
}
