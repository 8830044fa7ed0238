//! Runs one turn: a prompt comes in, the model and its tools alternate, an answer goes out.

use std::time::SystemTime;

use ollm_protocol::{EventKind, Tool};
use serde_json::{Value, json};

use super::compress::Overflow;
use super::consent::Refusal;
use super::cycle::History;
use super::model::Step;
use super::{Session, Turn, TurnEnd};
use crate::message::Message;
use crate::port::Decision;
use crate::time::seconds;
use crate::tool::task;

/// The state of a turn.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) prompt: String,
    began: SystemTime,
    pub(super) response: String,
    pub(super) truncated: bool,
    pub(super) calls: Vec<Value>,
    pub(super) tokens: Option<u64>,
    /// The reasons with which hooks kept the turn going.
    refusals: Vec<String>,
    /// The calls so far with their results.
    pub(super) history: History,
    /// The only tools of a sub-agent, if its task names them.
    pub(super) subset: Option<Vec<String>>,
    /// The only tools that hooks leave on offer, if they limit them.
    pub(super) kept: Option<Vec<String>>,
    /// Whether a hook refused to shorten the conversation in this turn.
    pub(super) keep_all: bool,
    /// How many messages there were when shortening left the conversation full.
    pub(super) stuck_at: Option<usize>,
    /// The last report that the conversation could not be shortened.
    pub(super) stays: Option<String>,
    /// Whether the server refused the conversation as too long.
    pub(super) overflowed: Overflow,
}

impl Session<'_> {
    pub(super) fn turn(&mut self, prompt: &str, context: Option<&str>, chain: u32) -> Turn {
        self.chain = chain;
        self.last_chain = chain;
        self.halted = None;
        let mut tally = Tally::new(prompt, (self.ports.clock)());
        let end = match self.begin(prompt, context) {
            Err(end) => end,
            Ok(()) => self.work(&mut tally),
        };
        // An interrupted hook refuses by its failure policy, but the real reason is the person's interruption.
        let end = match end {
            TurnEnd::Refused { .. } if self.cancel.is_set() => TurnEnd::Interrupted,
            end => end,
        };
        self.note(json!({"turn": end.name()}));
        let duration = seconds(tally.began, (self.ports.clock)());
        let Tally { prompt, response, truncated, calls, tokens, .. } = tally;
        Turn { prompt, end, response, truncated, calls, tokens, duration }
    }

    fn begin(&mut self, prompt: &str, context: Option<&str>) -> Result<(), TurnEnd> {
        if self.cancel.is_set() {
            return Err(TurnEnd::Interrupted);
        }
        let mut config = json!({"model": self.model.name()});
        if let (Some(temperature), Some(config)) = (self.settings.temperature, config.as_object_mut()) {
            config.insert("temperature".to_owned(), temperature.into());
        }
        let mut fields = vec![("prompt", prompt.into()), ("config", config)];
        fields.extend(context.map(|context| ("context", context.into())));
        self.tell_late_failures();
        let decision = self.emit(EventKind::BeforeAgent, fields);
        self.passes(EventKind::BeforeAgent, &decision).map_err(|refusal| refused(EventKind::BeforeAgent, refusal))?;
        self.flush();
        self.push(Message::User(match context {
            Some(context) => format!("{prompt}\n\n{context}"),
            None => prompt.to_owned(),
        }));
        Ok(())
    }

    /// Works until the model is done and no hook wants it to continue.
    fn work(&mut self, tally: &mut Tally) -> TurnEnd {
        let mut steps = self.settings.limits.model_calls;
        loop {
            let mut end = self.steps(tally, &mut steps);
            if let Some((hook, reason)) = self.halted.clone() {
                end = TurnEnd::Halted { hook, reason };
            }
            self.tell_late_failures();
            let decision = self.finish(tally);
            if end != TurnEnd::Done {
                return end;
            }
            if let Some(end) = self.stopping() {
                return end;
            }
            let refusal = self.passes(EventKind::AfterAgent, &decision).err();
            let reason = refusal.and_then(|refusal| self.goes_on(tally, refusal.reason));
            match (self.stopping(), reason) {
                (Some(end), _) => return end,
                (None, Some(_)) if steps == 0 => return self.bounded(),
                (None, Some(reason)) => self.push(Message::User(reason)),
                (None, None) => return TurnEnd::Done,
            }
        }
    }

    /// Tells the hooks that the agent is about to stop.
    fn finish(&mut self, tally: &Tally) -> Decision {
        let mut metrics = json!({"duration": seconds(tally.began, (self.ports.clock)())});
        if let (Some(tokens), Some(metrics)) = (tally.tokens, metrics.as_object_mut()) {
            metrics.insert("tokens".to_owned(), tokens.into());
        }
        self.emit(
            EventKind::AfterAgent,
            [
                ("response", tally.response.clone().into()),
                ("tool_calls", tally.calls.clone().into()),
                ("prompt", tally.prompt.clone().into()),
                ("metrics", metrics),
                ("conversation_length", self.talk.messages.len().into()),
                ("attempt", tally.refusals.len().into()),
            ],
        )
    }

    /// Whether hooks may keep the turn going once more.
    pub(super) fn goes_on(&mut self, tally: &mut Tally, reason: String) -> Option<String> {
        let limits = self.settings.limits;
        let same = tally.refusals.iter().filter(|earlier| **earlier == reason).count();
        if tally.refusals.len() >= limits.refusals {
            self.status(&format!("hooks kept the turn going {} times, which is the most; it ends", limits.refusals));
            return None;
        }
        if same >= limits.same_reason {
            self.status(&format!("a hook gave the same reason to go on {} times; the turn ends: {reason}", same + 1));
            return None;
        }
        tally.refusals.push(reason.clone());
        Some(reason)
    }

    /// Lets the model and its tools alternate.
    pub(super) fn steps(&mut self, tally: &mut Tally, left: &mut usize) -> TurnEnd {
        loop {
            if let Some(end) = self.stopping() {
                return end;
            }
            if *left == 0 {
                return self.bounded();
            }
            *left -= 1;
            match self.step(tally) {
                Ok(true) => {}
                Ok(false) => return self.stopping().unwrap_or(TurnEnd::Done),
                Err(end) => return end,
            }
        }
    }

    pub(super) fn bounded(&mut self) -> TurnEnd {
        let bound = format!("the model was asked {} times, the most for a turn", self.settings.limits.model_calls);
        self.error("turn", "bound", &format!("{bound}; ask again to go on"));
        TurnEnd::Bounded(bound)
    }

    /// Calls the model once, and then the tools it requests; returns whether there were any.
    fn step(&mut self, tally: &mut Tally) -> Result<bool, TurnEnd> {
        self.make_room(tally);
        let tools = self.select(tally)?;
        let Step::Answered(answer) = self.ask_model(&tools, tally)? else { return Ok(true) };
        if answer.calls.is_empty() {
            return Ok(false);
        }
        if self.meter.known_window().is_none() {
            // The window determines how long a result may be.
            self.measure_window();
        }
        self.calls(&answer.calls, &tools, tally)?;
        Ok(true)
    }

    /// The tools that hooks leave on offer.
    fn select(&mut self, tally: &mut Tally) -> Result<Vec<Tool>, TurnEnd> {
        let mut tools = self.registry.tools();
        if let Some(subset) = &tally.subset {
            tools.retain(|tool| subset.contains(&tool.name));
        }
        if self.agents.len() >= self.settings.limits.agent_depth {
            tools.retain(|tool| tool.name != task::DESCRIPTION.declaration.name);
        }
        let names: Value = tools.iter().map(|tool| Value::from(tool.name.as_str())).collect();
        let decision = self.emit(EventKind::BeforeToolSelection, [("available_tools", names)]);
        let kind = EventKind::BeforeToolSelection;
        self.passes(kind, &decision).map_err(|refusal| refused(kind, refusal))?;
        if let Some(kept) = &decision.tools {
            tools.retain(|tool| kept.contains(&tool.name));
        }
        tally.kept = decision.tools;
        Ok(tools)
    }

    /// Why the turn must stop now, if it must.
    pub(super) fn stopping(&self) -> Option<TurnEnd> {
        if self.cancel.is_set() {
            return Some(TurnEnd::Interrupted);
        }
        self.halted.clone().map(|(hook, reason)| TurnEnd::Halted { hook, reason })
    }
}

pub(super) fn refused(event: EventKind, refusal: Refusal) -> TurnEnd {
    TurnEnd::Refused { event, hook: refusal.who().to_owned(), reason: refusal.reason }
}

impl Tally {
    /// How often hooks kept the turn going.
    pub(super) fn attempts(&self) -> usize {
        self.refusals.len()
    }

    pub(super) fn new(prompt: &str, began: SystemTime) -> Tally {
        Tally {
            prompt: prompt.to_owned(),
            began,
            response: String::new(),
            truncated: false,
            calls: Vec::new(),
            tokens: None,
            refusals: Vec::new(),
            history: History::default(),
            subset: None,
            kept: None,
            keep_all: false,
            stuck_at: None,
            stays: None,
            overflowed: Overflow::Never,
        }
    }
}

impl TurnEnd {
    /// A short name, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            TurnEnd::Done => "done",
            TurnEnd::Refused { .. } => "refused",
            TurnEnd::Halted { .. } => "halted",
            TurnEnd::Failed { .. } => "failed",
            TurnEnd::Bounded(_) => "bounded",
            TurnEnd::Interrupted => "interrupted",
        }
    }
}
