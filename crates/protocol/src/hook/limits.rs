//! The limits of a hook: the keys of their section, and the fields for them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Timeout;
use super::key::{ApprovedPart, HookKey, KeyKind, OF_PROGRAM, ROW, Unknown};

/// The limits of a hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct LimitsSpec {
    pub time: Option<Timeout>,
    pub cpu: Option<Duration>,
    pub memory: Option<u64>,
    pub processes: Option<u64>,
    pub files: Option<u64>,
    pub file_size: Option<u64>,
    pub output: Option<u64>,
}

/// A limit that only a program can have.
const BOUND: HookKey = HookKey { unknown: Unknown::Refused, ..OF_PROGRAM };

pub(super) const LIMITS_KEYS: &[HookKey] = &[
    HookKey {
        name: "time",
        about: "A number in the dialect's unit, or text such as \"5s\"",
        kind: KeyKind::Time(|spec, time| spec.limits.time = Some(time)),
        approved: ApprovedPart::PartIfSet(|hook| {
            let unit = hook.dialect.defaults().timeout_unit.as_secs_f64();
            hook.spec.limits.time.map(|time| match time {
                Timeout::Bare(number) => (number * unit).into(),
                Timeout::Exact(duration) => duration.as_secs_f64().into(),
            })
        }),
        ..ROW
    },
    HookKey {
        name: "cpu",
        about: "Text such as \"5s\"",
        kind: KeyKind::Span(|spec, span| spec.limits.cpu = Some(span)),
        approved: ApprovedPart::PartIfSet(|hook| hook.spec.limits.cpu.map(|cpu| cpu.as_secs_f64().into())),
        ..BOUND
    },
    HookKey {
        name: "memory",
        about: "A number of bytes, or text such as \"256MiB\"",
        kind: KeyKind::Size(|spec, size| spec.limits.memory = Some(size)),
        approved: ApprovedPart::PartIfSet(|hook| hook.spec.limits.memory.map(Value::from)),
        ..BOUND
    },
    HookKey {
        name: "processes",
        about: "How many at once; does not hold for root",
        kind: KeyKind::Count(|spec, count| spec.limits.processes = Some(count)),
        approved: ApprovedPart::PartIfSet(|hook| hook.spec.limits.processes.map(Value::from)),
        ..BOUND
    },
    HookKey {
        name: "files",
        about: "How many open at once",
        kind: KeyKind::Count(|spec, count| spec.limits.files = Some(count)),
        approved: ApprovedPart::PartIfSet(|hook| hook.spec.limits.files.map(Value::from)),
        ..BOUND
    },
    HookKey {
        name: "fileSize",
        about: "A number of bytes, or text such as \"16MiB\"",
        kind: KeyKind::Size(|spec, size| spec.limits.file_size = Some(size)),
        approved: ApprovedPart::PartIfSet(|hook| hook.spec.limits.file_size.map(Value::from)),
        ..BOUND
    },
    HookKey {
        name: "output",
        about: "A number of bytes of each stream, or text such as \"1MiB\"",
        kind: KeyKind::Size(|spec, size| spec.limits.output = Some(size)),
        approved: ApprovedPart::PartIfSet(|hook| hook.spec.limits.output.map(Value::from)),
        ..ROW
    },
];
