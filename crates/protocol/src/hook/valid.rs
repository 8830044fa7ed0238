//! The checks that turn what was declared into what is valid.

use std::time::Duration;

use super::{Basis, HookError, HookSpec, Rules, Setting, Timeout};
use crate::dialect::{self, Dialect};
use crate::event::EventKind;
use crate::matcher::{Matcher, Pattern};

/// The events, and the names of the custom ones among them.
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

/// `custom:NAME` as an event key is a matcher on the name; it would keep the hook from every other event.
pub(super) fn matcher(text: Option<&str>, events: &[EventKind], names: Vec<String>) -> Result<Matcher, HookError> {
    let written = Matcher::parse(text.unwrap_or_default())?;
    match (written, names.first()) {
        (Matcher::Any, Some(name)) if events.len() > 1 => Err(HookError::Mixed(name.clone())),
        (Matcher::Any, Some(_)) => Ok(Matcher::List(names.into_iter().map(Pattern::Exact).collect())),
        (written, _) => Ok(written),
    }
}

pub(super) fn spoken(spec: &HookSpec) -> Result<&'static dyn Dialect, HookError> {
    match (&spec.dialect, spec.events.first()) {
        (Some(name), _) => dialect::by_name(name).ok_or_else(|| HookError::Dialect(name.clone())),
        (None, Some(event)) => Ok(dialect::by_spelling(event)),
        (None, None) => Err(HookError::NoEvent),
    }
}

/// What a hook may not say about when it runs.
pub(super) fn bounds(spec: &HookSpec) -> Result<(), HookError> {
    if spec.rate_limit.per_minute == Some(0) {
        return Err(HookError::NeverRuns("perMinute"));
    }
    if spec.permissions.is_some() && !spec.runs_program() {
        return Err(HookError::Permissions("the hook runs no program of its own"));
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
    let own = spec.timeout.or(spec.limits.time);
    let Some(own) = own else {
        return Ok(match rules.timeout.filter(|timeout| !timeout.is_zero()) {
            Some(value) => Setting { value, basis: Basis::Config },
            None => Setting { value: defaults.timeout, basis: Basis::Dialect },
        });
    };
    let value = match own {
        Timeout::Exact(value) => value,
        Timeout::Bare(number) => Duration::try_from_secs_f64(number * defaults.timeout_unit.as_secs_f64())
            .map_err(|_| HookError::Timeout(number.to_string()))?,
    };
    if value.is_zero() {
        return Err(HookError::Timeout("0".to_owned()));
    }
    Ok(Setting { value, basis: Basis::Hook })
}
