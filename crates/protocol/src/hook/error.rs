//! What can be wrong with a declared hook, in words that name the field, the value and the way out.

use super::endpoint::EndpointError;
use crate::dialect::UnknownEvent;
use crate::matcher::MatcherError;
use crate::pattern::PatternError;

/// Why a declared hook is not valid; each names the field, the value and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// The event is in no dialect.
    #[error(transparent)]
    Event(#[from] UnknownEvent),
    /// A hook without an event would never run.
    #[error("no event is named")]
    NoEvent,
    /// A named custom event beside events that have no such name.
    #[error("`custom:{0}` stands beside other events; declare the hook once for each")]
    Mixed(String),
    /// The matcher makes no sense.
    #[error(transparent)]
    Matcher(#[from] MatcherError),
    /// The dialect does not exist.
    #[error("unknown dialect `{0}`; known are ollm, gate, rpc and agent")]
    Dialect(String),
    /// The command word holds characters that mean something to a shell.
    #[error(
        "command `{0}` holds shell characters; name the program alone and put the rest into `args`, or wrap it in a script"
    )]
    Metacharacters(String),
    /// The command word holds its arguments too.
    #[error("command `{0}` holds arguments; name the program alone and put the rest into `args`")]
    Arguments(String),
    /// The command is neither a path nor on the whitelist.
    #[error(
        "command `{command}` is neither a path nor one of {whitelist}; give its absolute path, or one relative to the hook file"
    )]
    NotAllowed {
        /// The command word.
        command: String,
        /// The programs that need no path.
        whitelist: String,
    },
    /// An interpreter without a script would take the event for its program.
    #[error("`{0}` without a script would run the event as code; name the script in `args`")]
    ReadsEvent(String),
    /// The command is empty.
    #[error("`command` is empty")]
    NoCommand,
    /// `runCommand` at an event that it is not for.
    #[error(
        "runCommand is only for promptSubmit (before_agent) and agentStop (after_agent), not for {0}; use askAgent there, or a `command`"
    )]
    NotForEvent(&'static str),
    /// A key of the action whose value cannot be used.
    #[error("`{key}` of the action {why}")]
    Key {
        /// The key.
        key: &'static str,
        /// What is wrong with its value, and the way out.
        why: String,
    },
    /// The address of an `http` action cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A file pattern that makes no sense.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A limit that would never let the hook run.
    #[error("`{0}` of 0 would never let the hook run; write \"enabled\": false to switch it off, or remove it")]
    NeverRuns(&'static str),
    /// A required service that is no address.
    #[error("service `{0}` is no address; write it as host:port, as in \"127.0.0.1:11434\"")]
    Service(String),
    /// Permissions where there is no process to hold to them, or none that we start.
    #[error("`permissions` cannot be held here: {0}")]
    Permissions(&'static str),
    /// A timeout that is no time.
    #[error("timeout {0} is not a positive time")]
    Timeout(String),
}

impl HookError {
    /// A key of the action without a value.
    pub(super) fn empty(key: &'static str) -> HookError {
        HookError::Key { key, why: "is empty".to_owned() }
    }

    /// The key of the hook entry that is at fault.
    pub fn field(&self) -> &'static str {
        match self {
            HookError::Event(_) | HookError::NoEvent | HookError::Mixed(_) => "event",
            HookError::Matcher(_) => "matcher",
            HookError::Dialect(_) => "dialect",
            HookError::Metacharacters(_)
            | HookError::Arguments(_)
            | HookError::NotAllowed { .. }
            | HookError::ReadsEvent(_)
            | HookError::NoCommand => "command",
            HookError::NotForEvent(_) => "action",
            HookError::Key { key, .. } => key,
            HookError::Endpoint(error) => error.field(),
            HookError::Pattern(_) => "filePatterns",
            HookError::NeverRuns(_) => "rateLimit",
            HookError::Service(_) => "requires",
            HookError::Permissions(_) => "permissions",
            HookError::Timeout(_) => "timeout",
        }
    }
}
