//! Checks a declared hook and makes it valid.

use std::time::Duration;

use super::{Basis, HookError, HookSpec, OnFailure, Rules, Setting, Timeout};
use crate::dialect::agents::AgentEvent;
use crate::dialect::{self, Dialect};
use crate::event::EventKind;
use crate::matcher::{Matcher, Pattern};

/// The events, and the names of custom events.
pub(super) fn events(written: &[String]) -> Result<(Vec<EventKind>, Vec<String>), HookError> {
    let mut kinds = Vec::new();
    let mut customs = Vec::new();
    for name in written {
        let named = dialect::event_named(name)?;
        customs.extend(named.custom);
        for kind in named.kinds {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    if kinds.is_empty() {
        return Err(HookError::NoEvent);
    }
    Ok((kinds, customs))
}

/// The matcher. An event key `custom:NAME` is a matcher on the name, which would exclude every other event.
pub(super) fn matcher(text: Option<&str>, events: &[EventKind], names: Vec<String>) -> Result<Matcher, HookError> {
    let written = Matcher::parse(text.unwrap_or_default())?;
    match (written, names.first()) {
        (Matcher::Any, Some(name)) if events.len() > 1 => Err(HookError::Mixed(name.clone())),
        (Matcher::Any, Some(_)) => Ok(Matcher::List(names.into_iter().map(Pattern::Exact).collect())),
        (Matcher::Any, None) => Ok(Matcher::Any),
        (written, _) => match events.first().filter(|_| events.iter().all(|event| event.subject_field().is_none())) {
            Some(event) => {
                Err(HookError::NoSubject { matcher: text.unwrap_or_default().to_owned(), event: event.name() })
            }
            None => Ok(written),
        },
    }
}

pub(super) fn spoken(spec: &HookSpec) -> Result<&'static dyn Dialect, HookError> {
    match (&spec.dialect, spec.events.first()) {
        (Some(name), _) => dialect::by_name(name).ok_or_else(|| HookError::Dialect(name.clone())),
        (None, Some(event)) => Ok(dialect::by_spelling(event)),
        (None, None) => Err(HookError::NoEvent),
    }
}

/// Checks that the agent's event is one that the hook is for.
pub(super) fn spoken_as(spec: &HookSpec, dialect: &dyn Dialect, events: &[EventKind]) -> Result<(), HookError> {
    let Some(name) = &spec.spoken_as else { return Ok(()) };
    let agent = dialect::agent_named(dialect.name());
    let is_it = |event: &AgentEvent| event.name == *name && events.contains(&event.kind);
    if agent.is_some_and(|agent| agent.events.iter().any(is_it)) {
        return Ok(());
    }
    Err(HookError::SpokenAs { event: name.clone(), dialect: dialect.name() })
}

/// Checks the limits on when the hook runs.
pub(super) fn bounds(spec: &HookSpec) -> Result<(), HookError> {
    if spec.rate_limit.per_minute == Some(0) {
        return Err(HookError::NeverRuns("perMinute"));
    }
    if spec.permissions.is_some() && !spec.runs_program() {
        return Err(HookError::Permissions("the hook runs no program of its own"));
    }
    let decides = spec.on_failure.filter(|failure| *failure != OnFailure::Allow);
    if let (Some(true), Some(failure)) = (spec.detached, decides) {
        return Err(HookError::DecidesNothing(failure.name()));
    }
    let is_address = |service: &str| {
        let (host, port) = service.rsplit_once(':').unwrap_or_default();
        let bracketed = host.starts_with('[') && host.ends_with(']');
        !host.is_empty()
            && (bracketed || !host.contains(':'))
            && !host.contains(|letter: char| letter.is_whitespace() || letter.is_control() || letter == '/')
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    match spec.requires.services.iter().find(|service| !is_address(service)) {
        Some(service) => Err(HookError::Service(service.clone())),
        None => Ok(()),
    }
}

pub(super) fn timeout(spec: &HookSpec, rules: &Rules, dialect: &dyn Dialect) -> Result<Setting<Duration>, HookError> {
    let defaults = dialect.defaults();
    // Of two limits, the smaller one counts.
    let mut own = None;
    for time in spec.timeout.into_iter().chain(spec.limits.time) {
        let value = time.duration(defaults.timeout_unit).filter(|value| !value.is_zero());
        let value = value.ok_or_else(|| HookError::Timeout(written(time)))?;
        own = Some(own.map_or(value, |own: Duration| own.min(value)));
    }
    Ok(match (own, rules.timeout.filter(|timeout| !timeout.is_zero())) {
        (Some(value), _) => Setting { value, basis: Basis::Hook },
        (None, Some(value)) => Setting { value, basis: Basis::Config },
        (None, None) => Setting { value: defaults.timeout, basis: Basis::Dialect },
    })
}

fn written(time: Timeout) -> String {
    match time {
        Timeout::Bare(number) => number.to_string(),
        Timeout::Exact(value) => value.as_secs_f64().to_string(),
    }
}
