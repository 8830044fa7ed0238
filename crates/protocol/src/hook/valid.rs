//! The checks that turn what was declared into what is valid.

use std::path::PathBuf;
use std::time::Duration;

use super::endpoint::{Endpoint, Header};
use super::{Action, ActionSpec, Basis, HookError, HookSpec, METACHARACTERS, Rules, Runs, Setting, Timeout, runs};
use crate::dialect::{self, Dialect};
use crate::event::EventKind;
use crate::matcher::{Matcher, Pattern};
use crate::placeholder::placeholders;

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

pub(super) fn action(spec: &HookSpec, events: &[EventKind], rules: &Rules) -> Result<Action, HookError> {
    match &spec.action {
        ActionSpec::Command { command, args, .. } => {
            check_program(command, args, rules)?;
            Ok(Action::Command { program: command.clone(), args: args.clone() })
        }
        ActionSpec::Shell { script } if script.trim().is_empty() => Err(HookError::NoCommand),
        ActionSpec::Shell { script } => Ok(Action::Shell { script: script.clone() }),
        ActionSpec::AskAgent { prompt } if prompt.trim().is_empty() => Err(HookError::Empty("prompt")),
        ActionSpec::AskAgent { prompt } => Ok(Action::AskAgent { prompt: prompt.clone() }),
        ActionSpec::RunCommand { words, .. } => run_command(spec, words, events, rules),
        ActionSpec::Http { url, headers } => {
            let headers = headers.iter().map(|(name, value)| Header::parse(name, value, &spec.pass_env));
            Ok(Action::Http { endpoint: Endpoint::parse(url)?, headers: headers.collect::<Result<_, _>>()? })
        }
        ActionSpec::Mcp { server, .. } if server.trim().is_empty() => Err(HookError::Empty("server")),
        ActionSpec::Mcp { tool, .. } if tool.trim().is_empty() => Err(HookError::Empty("tool")),
        ActionSpec::Mcp { server, tool, args } => {
            Ok(Action::Mcp { server: server.clone(), tool: tool.clone(), args: args.clone() })
        }
        ActionSpec::Builtin(builtin) => Ok(Action::Builtin(builtin.clone())),
    }
}

fn check_program(command: &str, args: &[String], rules: &Rules) -> Result<(), HookError> {
    check_command(command, rules)?;
    if runs(command, args) == Runs::Input {
        return Err(HookError::ReadsEvent(command.to_owned()));
    }
    Ok(())
}

fn run_command(spec: &HookSpec, words: &[String], events: &[EventKind], rules: &Rules) -> Result<Action, HookError> {
    let meant = [EventKind::BeforeAgent, EventKind::AfterAgent];
    if let Some(other) = events.iter().find(|kind| !meant.contains(kind)) {
        return Err(HookError::NotForEvent(other.name()));
    }
    let (command, args) = words.split_first().ok_or(HookError::NoCommand)?;
    let mut args = args.to_vec();
    check_program(command, &args, rules)?;
    // The script is part of what is approved, so it must be one and the same file wherever the event happens.
    let mut script = None;
    if let Runs::Script(index) = runs(command, &args)
        && let Some(arg) = args.get_mut(index).filter(|arg| placeholders(arg).next().is_none())
    {
        let path = spec.origin.file.parent().map_or_else(|| PathBuf::from(&*arg), |folder| folder.join(&*arg));
        *arg = path.to_string_lossy().into_owned();
        script = Some(path);
    }
    Ok(Action::RunCommand { program: command.clone(), args, script })
}

/// What a hook may not say about when it runs.
pub(super) fn bounds(spec: &HookSpec) -> Result<(), HookError> {
    if spec.rate_limit.per_minute == Some(0) {
        return Err(HookError::NeverRuns("perMinute"));
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

/// Whether a word holds characters that mean something to a shell, which no program's name needs.
pub fn holds_shell_characters(word: &str) -> bool {
    word.contains(METACHARACTERS)
}

/// A command word is one program: absolute, or on the whitelist.
fn check_command(command: &str, rules: &Rules) -> Result<(), HookError> {
    if command.trim().is_empty() {
        return Err(HookError::NoCommand);
    }
    // No shell ever reads the command, so the folders it lies in may be called anything.
    let absolute = std::path::Path::new(command).is_absolute();
    let word = if absolute { command.rsplit('/').next().unwrap_or(command) } else { command };
    if holds_shell_characters(word) || command.contains('\0') {
        return Err(HookError::Metacharacters(command.to_owned()));
    }
    if absolute {
        return Ok(());
    }
    if rules.whitelist.iter().any(|allowed| allowed == command) {
        return Ok(());
    }
    if let Some((first, _)) = command.split_once(char::is_whitespace)
        && rules.whitelist.iter().any(|allowed| allowed == first)
    {
        return Err(HookError::Arguments(command.to_owned()));
    }
    Err(HookError::NotAllowed { command: command.to_owned(), whitelist: rules.whitelist.join(", ") })
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
