//! The normalised definition of a hook: what an approval is bound to.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};

use super::key::HOOK_KEYS;
use super::{Hook, LimitsSpec, Timeout};

impl Hook {
    /// Every key that changes what the hook does, as its row says, independent of where in its file it stands.
    ///
    /// Left out are `enabled` and `description`, the id and the position, and everything the configuration decides.
    pub fn definition(&self) -> Value {
        let parts = HOOK_KEYS.iter().filter_map(|key| Some((key.name.to_owned(), key.part(self)?)));
        let broken = self.broken.as_deref().map(|why| ("broken".to_owned(), why.into()));
        Value::Object(parts.chain(broken).collect())
    }
}

/// A path as text, or as bytes where it is no text: two different paths never look the same.
pub(super) fn path(path: &Path) -> Value {
    path.to_str().map_or_else(|| path.as_os_str().as_encoded_bytes().into(), Value::from)
}

pub(super) fn limits(limits: &LimitsSpec, unit: Duration) -> Value {
    let time = limits.time.map(|time| match time {
        Timeout::Bare(number) => number * unit.as_secs_f64(),
        Timeout::Exact(duration) => duration.as_secs_f64(),
    });
    let fields = [
        ("time", time.map(Value::from)),
        ("cpu", limits.cpu.as_ref().map(Duration::as_secs_f64).map(Value::from)),
        ("memory", limits.memory.map(Value::from)),
        ("processes", limits.processes.map(Value::from)),
        ("files", limits.files.map(Value::from)),
        ("fileSize", limits.file_size.map(Value::from)),
        ("output", limits.output.map(Value::from)),
    ];
    let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(set.collect::<Map<_, _>>())
}

pub(super) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
