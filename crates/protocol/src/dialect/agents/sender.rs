//! Whose event it is, where the line that asks us names another agent.

use super::{AGENTS, AgentDialect, AgentEvent, Pick};
use crate::dialect::Request;
use crate::event::{EventKind, Power};

/// The first agent that has an event like this, and the event as that agent means it: for where none is named that is known.
pub fn sender_of(bytes: &[u8]) -> Option<(&'static AgentDialect, Request)> {
    AGENTS.iter().copied().find_map(|agent| {
        let request = agent.read(bytes, None).ok()?;
        agent.asked(&request).is_some().then_some((agent, request))
    })
}

impl AgentDialect {
    /// The agent that sent an event for certain, if it was not this one, and the event as that agent means it.
    ///
    /// An event without a name for this agent is another's that names it. A name that this agent does not know may be that of a
    /// newer event, unless another agent has it for something that this one has a name of its own for.
    pub fn actual_sender(&self, bytes: &[u8]) -> Option<(&'static AgentDialect, Request)> {
        let read = self.read(bytes, None).ok();
        if read.as_ref().is_some_and(|request| self.asked(request).is_some()) {
            return None;
        }
        AGENTS.iter().copied().filter(|other| other.name != self.name).find_map(|other| {
            let request = other.read(bytes, None).ok()?;
            let event = other.asked(&request)?;
            let same_name = |own: &Request| own.spelling.event == request.spelling.event;
            let is_others = read.as_ref().is_none_or(|own| same_name(own) && self.calls_otherwise(event));
            is_others.then_some((other, request))
        })
    }

    /// Whether it has a name of its own for another agent's event.
    fn calls_otherwise(&self, event: &AgentEvent) -> bool {
        let is_usual = |event: &AgentEvent| event.pick == Pick::Any && event.kind.row().power != Power::Reports;
        event.kind != EventKind::Custom && is_usual(event) && self.events_of(event.kind).any(is_usual)
    }
}
