//! Sub-agents: a call of `task` is a turn within the turn, with a separate conversation, task list and set of tools.
//!
//! Everything else is shared with the session: the model, the person, the hooks and their guards, permissions, and the
//! request to stop. Events inside name the sub-agent.

use ollm_protocol::{EventKind, ToolResult};
use serde_json::{Map, Value, json};

use super::turn::Tally;
use super::{Session, TurnEnd};
use crate::conversation::Conversation;
use crate::message::Message;
use crate::tool::task::Task;

/// The kind of agent in events for hooks.
pub(super) const TYPE: &str = "task";

/// The instruction for a sub-agent, after the system prompt and the project's instructions.
const GUIDANCE: &str = "You are a sub-agent. Do the one piece of work you are given, then answer with a short report of \
what you found or did. Nobody can answer questions.";

impl Session<'_> {
    /// Runs a sub-agent for a task; its report is the result.
    pub(super) fn subagent(&mut self, args: &Map<String, Value>, outer: &mut Tally) -> ToolResult {
        let admitted = Task::read(args).and_then(|task| self.admit().map(|()| task));
        let admitted = admitted.and_then(|task| self.tools_of(&task, outer).map(|tools| (task, tools)));
        let (task, tools) = match admitted {
            Ok(admitted) => admitted,
            Err(why) => return ToolResult::error(why),
        };
        self.agents_begun += 1;
        let id = format!("{}-agent-{}", self.settings.session_id, self.agents_begun);
        self.emit(EventKind::SubagentStart, about(&id, [("prompt", task.prompt.as_str().into())]));
        let guidance = self.talk.guidance();
        let begun = self.enter(&id);
        for message in guidance {
            self.push(message);
        }
        // Instructions that were read only in the other conversation do not count here.
        self.recall_instructions();
        let mut tally = Tally::new(&task.prompt, (self.ports.clock)());
        tally.subset = tools;
        let end = match self.stopping() {
            Some(end) => end,
            None => self.do_task(&id, &task.prompt, &mut tally),
        };
        self.leave(begun);
        self.note(
            json!({"subagent": {"id": id, "prompt": task.prompt, "end": end.name(), "response": tally.response}}),
        );
        outer.tokens = match (outer.tokens, tally.tokens) {
            (None, None) => None,
            (before, now) => Some(before.unwrap_or(0).saturating_add(now.unwrap_or(0))),
        };
        reported(&end, &tally.response)
    }

    /// The only tools that a sub-agent may use: never more than those of the agent that starts it.
    fn tools_of(&self, task: &Task, outer: &Tally) -> Result<Option<Vec<String>>, String> {
        let Some(wanted) = &task.tools else { return Ok(outer.subset.clone()) };
        let offered = self.registry.tools();
        let is_yours = |name: &&String| {
            offered.iter().any(|tool| tool.name == **name)
                && outer.subset.as_ref().is_none_or(|subset| subset.contains(name))
        };
        match wanted.iter().find(|name| !is_yours(name)) {
            Some(unknown) => Err(format!("you have no tool `{unknown}`; name only tools of yours in `tools`")),
            None => Ok(Some(wanted.clone())),
        }
    }

    /// Whether another sub-agent may start.
    fn admit(&self) -> Result<(), String> {
        let limits = &self.settings.limits;
        if self.agents.len() >= limits.agent_depth {
            return Err(format!("sub-agents are at most {} deep; do it yourself", limits.agent_depth));
        }
        if self.agents_begun >= limits.agents {
            return Err(format!(
                "{} sub-agents have worked in this session, which is the most; do it yourself",
                limits.agents
            ));
        }
        Ok(())
    }

    /// Works until the sub-agent has nothing more to do and no hook wants it to go on.
    fn do_task(&mut self, id: &str, prompt: &str, tally: &mut Tally) -> TurnEnd {
        self.push(Message::System(GUIDANCE.to_owned()));
        self.flush();
        self.push(Message::User(prompt.to_owned()));
        let mut steps = self.settings.limits.model_calls;
        loop {
            let end = self.steps(tally, &mut steps);
            let fields = [
                ("response", tally.response.clone().into()),
                ("prompt", prompt.into()),
                ("end", end.name().into()),
                ("attempt", tally.attempts().into()),
            ];
            let decision = self.emit(EventKind::SubagentStop, about(id, fields));
            if end != TurnEnd::Done || self.stopping().is_some() {
                return self.stopping().unwrap_or(end);
            }
            let refusal = self.passes(EventKind::SubagentStop, &decision).err();
            match refusal.and_then(|refusal| self.goes_on(tally, refusal.reason)) {
                Some(reason) if steps > 0 => self.push(Message::User(reason)),
                Some(_) => return self.bounded(),
                None => return self.stopping().unwrap_or(TurnEnd::Done),
            }
        }
    }

    /// Suspends the present conversation and starts the sub-agent's.
    fn enter(&mut self, id: &str) -> SuspendedTurn {
        self.agents.push(id.to_owned());
        let aside = SuspendedTurn {
            talk: std::mem::take(&mut self.talk),
            todos: std::mem::take(&mut self.todos),
            transcript: self.transcript.take(),
            meter: self.meter.clone(),
            overhead: self.overhead,
            instructions: std::mem::take(&mut self.instructions),
        };
        self.meter.forget_count();
        aside
    }

    /// Resumes the suspended conversation.
    fn leave(&mut self, aside: SuspendedTurn) {
        self.agents.pop();
        self.talk = aside.talk;
        self.todos = aside.todos;
        self.transcript = aside.transcript;
        self.instructions = aside.instructions;
        self.meter.recall_count(&aside.meter);
        self.overhead = aside.overhead;
    }
}

/// The suspended state while a sub-agent works.
struct SuspendedTurn {
    talk: Conversation,
    todos: Vec<crate::tool::todo::Item>,
    /// Only the session's own messages are saved and can be resumed.
    transcript: Option<crate::transcript::Transcript>,
    meter: crate::context::Meter,
    /// The bytes of the offered tools.
    overhead: usize,
    instructions: crate::instructions::Instructions,
}

fn about<'a>(id: &str, more: impl IntoIterator<Item = (&'a str, Value)>) -> Vec<(&'a str, Value)> {
    [("agent_id", id.into()), ("agent_type", TYPE.into())].into_iter().chain(more).collect()
}

/// The result of a sub-agent's work for the model.
fn reported(end: &TurnEnd, response: &str) -> ToolResult {
    let why = match end {
        TurnEnd::Done if response.trim().is_empty() => "it said nothing".to_owned(),
        TurnEnd::Done => return ToolResult::text(response),
        TurnEnd::Refused { hook, reason, .. } | TurnEnd::Halted { hook, reason } => {
            format!("hook `{hook}` stopped it: {reason}")
        }
        TurnEnd::Failed { message, .. } => message.clone(),
        TurnEnd::Bounded(why) => why.clone(),
        TurnEnd::Interrupted => "interrupted".to_owned(),
    };
    let said = if response.is_empty() { String::new() } else { format!("; its last words: {response}") };
    ToolResult::error(format!("the sub-agent did not finish: {why}{said}"))
}
