//! Errors in declared hooks. Each message names the field, the value and the remedy.

use super::endpoint::EndpointError;
use crate::dialect::UnknownEvent;
use crate::matcher::MatcherError;
use crate::pattern::PatternError;

/// Why a declared hook is not valid; each names the field, the value and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// No dialect has the event.
    #[error(transparent)]
    Event(#[from] UnknownEvent),
    /// A hook without an event would never run.
    #[error("no event is named")]
    NoEvent,
    /// A named custom event beside events without such names.
    #[error("`custom:{0}` stands beside other events; declare the hook once for each")]
    Mixed(String),
    /// The matcher is invalid.
    #[error(transparent)]
    Matcher(#[from] MatcherError),
    /// A matcher for an event without a subject, so the hook would never run.
    #[error(
        "matcher `{matcher}` has nothing to look at: {event} has no tool and no name, so the hook would never run; leave it out, or \
         write a condition (`if`) or, for files, `filePatterns`"
    )]
    NoSubject {
        /// The matcher as written.
        matcher: String,
        /// The event, or one of them.
        event: &'static str,
    },
    /// The dialect does not exist.
    #[error("unknown dialect `{0}`; known are ollm, gate, rpc and agent")]
    Dialect(String),
    /// The agent of the dialect has no such event, or the event is not one of the hook's.
    #[error("`spokenAs: {event}` is not what `{dialect}` calls an event that the hook is for")]
    SpokenAs {
        /// The event as written.
        event: String,
        /// The hook's dialect.
        dialect: &'static str,
    },
    /// The command word has shell characters.
    #[error(
        "command `{0}` holds shell characters; name the program alone and put the rest into `args`, or wrap it in a script"
    )]
    Metacharacters(String),
    /// The command word also contains the arguments.
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
    /// An interpreter without a script would read the event as its program.
    #[error("`{0}` without a script would run the event as code; name the script in `args`")]
    ReadsEvent(String),
    /// The command is empty.
    #[error("`command` is empty")]
    NoCommand,
    /// `runCommand` at another event than its own.
    #[error(
        "runCommand is only for promptSubmit (before_agent) and agentStop (after_agent), not for {0}; use askAgent there, or a `command`"
    )]
    NotForEvent(&'static str),
    /// An invalid value for a key of the action.
    #[error("`{key}` of the action {why}")]
    Key {
        /// The key.
        key: &'static str,
        /// The fault of the value, and the remedy.
        why: String,
    },
    /// The address of an `http` action is invalid.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A file pattern is invalid.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A limit under which the hook would never run.
    #[error("`{0}` of 0 would never let the hook run; write \"enabled\": false to switch it off, or remove it")]
    NeverRuns(&'static str),
    /// A required service without a valid address.
    #[error("service `{0}` is no address; write it as host:port, as in \"127.0.0.1:11434\"")]
    Service(String),
    /// Permissions for a hook without a process, or for a process that we do not start.
    #[error("`permissions` cannot be held here: {0}")]
    Permissions(&'static str),
    /// A gate that nobody waits for.
    #[error("`onFailure: {0}` cannot be kept with `async`: an async hook decides nothing; remove one of them")]
    DecidesNothing(&'static str),
    /// An invalid timeout.
    #[error("timeout {0} is not a positive time")]
    Timeout(String),
}

impl HookError {
    /// An error for a key of the action without a value.
    pub(super) fn empty(key: &'static str) -> HookError {
        HookError::Key { key, why: "is empty".to_owned() }
    }

    /// The key of the hook entry with the error.
    pub fn field(&self) -> &'static str {
        match self {
            HookError::Event(_) | HookError::NoEvent | HookError::Mixed(_) => "event",
            HookError::Matcher(_) | HookError::NoSubject { .. } => "matcher",
            HookError::Dialect(_) => "dialect",
            HookError::SpokenAs { .. } => "spokenAs",
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
            HookError::DecidesNothing(_) => "onFailure",
            HookError::Timeout(_) => "timeout",
        }
    }
}
