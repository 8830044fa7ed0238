//! When a hook may run: its rate limit and its requirements. The keys, and the fields for them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::{ApprovedPart, HookKey, KeyKind, ROW};

/// How often a hook may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// The most runs in any sixty seconds.
    pub per_minute: Option<u32>,
    /// The shortest time between the starts of two runs.
    pub cooldown: Option<Duration>,
}

impl RateLimit {
    /// The limit in a few words, if there is one.
    pub fn describe(&self) -> Option<String> {
        let per_minute = self.per_minute.map(|count| format!("{count} per minute"));
        let cooldown = self.cooldown.filter(|pause| !pause.is_zero()).map(|pause| format!("once in {pause:?}"));
        let parts: Vec<String> = [per_minute, cooldown].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

pub(super) const RATE_KEYS: &[HookKey] = &[
    HookKey {
        name: "perMinute",
        about: "At most so often in any sixty seconds",
        kind: KeyKind::Positive(|spec, count| spec.rate_limit.per_minute = Some(count)),
        ..ROW
    },
    HookKey {
        name: "cooldownMs",
        aliases: &["cooldown"],
        about: "At least so long between two runs: a number of milliseconds, or text such as \"5s\"",
        kind: KeyKind::Pause(|spec, pause| spec.rate_limit.cooldown = Some(pause).filter(|pause| !pause.is_zero())),
        ..ROW
    },
];

/// The requirements of a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requires {
    /// Programs on the search path.
    pub commands: Vec<String>,
    /// Files, relative to the project root or absolute.
    pub files: Vec<String>,
    /// Services that answer, as `host:port`.
    pub services: Vec<String>,
}

pub(super) const REQUIRES_KEYS: &[HookKey] = &[
    HookKey {
        name: "commands",
        about: "Programs on the search path",
        kind: KeyKind::Texts("a list of programs", |spec, commands| spec.requires.commands = commands),
        approved: ApprovedPart::Part(|hook| hook.spec.requires.commands.as_slice().into()),
        ..ROW
    },
    HookKey {
        name: "files",
        about: "Files, from the project's root",
        kind: KeyKind::Texts("a list of paths", |spec, files| spec.requires.files = files),
        approved: ApprovedPart::Part(|hook| hook.spec.requires.files.as_slice().into()),
        ..ROW
    },
    HookKey {
        name: "services",
        about: "Services that answer, as host:port",
        kind: KeyKind::Services(|spec, services| spec.requires.services = services),
        approved: ApprovedPart::Part(|hook| hook.spec.requires.services.as_slice().into()),
        ..ROW
    },
];
