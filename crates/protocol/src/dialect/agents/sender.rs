//! Finds the agent that sent an event, if the command line that asks us names another agent.

use super::{AGENTS, AgentDialect, AgentEvent, Pick};
use crate::dialect::Request;
use crate::event::{EventKind, Power};

/// The first agent that has such an event, and the event as that agent means it. For command lines that name no agent.
pub fn sender_of(bytes: &[u8]) -> Option<(&'static AgentDialect, Request)> {
    AGENTS.iter().copied().find_map(|agent| {
        let request = agent.read(bytes, None).ok()?;
        agent.asked(&request).is_some().then_some((agent, request))
    })
}

impl AgentDialect {
    /// The agent that certainly sent an event, if it was not this one, and the event as that agent means it.
    ///
    /// If this agent finds no event name, another agent that finds one is the sender. A name that this agent does not
    /// know may be a newer event of its own. But if another agent has that name for an event that this agent names
    /// differently, that agent is the sender. `named` is the event's name if the event does not contain it.
    pub fn actual_sender(&self, bytes: &[u8], named: Option<&str>) -> Option<(&'static AgentDialect, Request)> {
        self.other_sender(bytes, None).or_else(|| self.other_sender(bytes, Some(named?)))
    }

    fn other_sender(&self, bytes: &[u8], named: Option<&str>) -> Option<(&'static AgentDialect, Request)> {
        let read = self.read(bytes, named).ok();
        if read.as_ref().is_some_and(|request| self.asked(request).is_some()) {
            return None;
        }
        AGENTS.iter().copied().filter(|other| other.name != self.name).find_map(|other| {
            let request = other.read(bytes, named).ok()?;
            let event = other.asked(&request)?;
            let same_name = |own: &Request| own.spelling.event == request.spelling.event;
            let is_others = read.as_ref().is_none_or(|own| same_name(own) && self.calls_otherwise(event));
            is_others.then_some((other, request))
        })
    }

    /// Whether a request is about one of its events.
    pub fn knows(&self, request: &Request) -> bool {
        self.asked(request).is_some()
    }

    /// Whether this agent has a different name for another agent's event.
    fn calls_otherwise(&self, event: &AgentEvent) -> bool {
        let is_usual = |event: &AgentEvent| {
            let is_general = matches!(event.pick, Pick::Any | Pick::Tool(_) | Pick::Mcp);
            is_general && event.kind.row().power != Power::Reports
        };
        event.kind != EventKind::Custom && is_usual(event) && self.events_of(event.kind).any(is_usual)
    }
}
