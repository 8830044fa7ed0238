//! Sub-agents: a call of `task` is a turn within the turn, with a conversation, a list and tools of its own.
//!
//! Everything else is the session's: the model, the person, the hooks and their guards, what was allowed for good, and
//! the wish to stop. Events that happen inside name the sub-agent.

use ollm_protocol::{EventKind, ToolResult};
use serde_json::{Map, Value, json};

use super::turn::Tally;
use super::{Session, TurnEnd};
use crate::conversation::Conversation;
use crate::message::Message;
use crate::tool::task::Task;

/// What kind of agent hooks hear of.
pub(super) const TYPE: &str = "task";

/// What a sub-agent is told beside what the conversation begins with: the system prompt and the project's instructions.
const GUIDANCE: &str = "You are a sub-agent. Do the one piece of work you are given, then answer with a short report of \
what you found or did. Nobody can answer questions.";

impl Session<'_> {
    /// Has a sub-agent do a piece of work; what it reports is the result.
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

    /// The only tools that a sub-agent may use: never more than whoever gives it the work.
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

    /// Whether another sub-agent may begin.
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

    /// Puts the conversation aside.
    fn enter(&mut self, id: &str) -> Aside {
        self.agents.push(id.to_owned());
        let aside = Aside {
            talk: std::mem::take(&mut self.talk),
            todos: std::mem::take(&mut self.todos),
            transcript: self.transcript.take(),
            meter: self.meter.clone(),
        };
        self.meter.forget_count();
        aside
    }

    /// Goes on with the conversation that was put aside.
    fn leave(&mut self, aside: Aside) {
        self.agents.pop();
        self.talk = aside.talk;
        self.todos = aside.todos;
        self.transcript = aside.transcript;
        self.meter.recall_count(&aside.meter);
    }
}

/// What waits while a sub-agent works.
struct Aside {
    talk: Conversation,
    todos: Vec<crate::tool::todo::Item>,
    /// Only what the session itself says can be resumed.
    transcript: Option<crate::transcript::Transcript>,
    meter: crate::context::Meter,
}

fn about<'a>(id: &str, more: impl IntoIterator<Item = (&'a str, Value)>) -> Vec<(&'a str, Value)> {
    [("agent_id", id.into()), ("agent_type", TYPE.into())].into_iter().chain(more).collect()
}

/// What the model reads of a sub-agent's work.
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
