//! The normalised definition of a hook, which an approval is bound to.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::Hook;
use super::key::{HOOK_KEYS, parts};

impl Hook {
    /// Every key that changes what the hook does, with the value that its row gives. The place in the file does not
    /// matter.
    ///
    /// Without `enabled` and `description`, the id and the position, and everything from the configuration.
    pub fn definition(&self) -> Value {
        let mut definition = parts(HOOK_KEYS, self);
        definition.extend(self.broken.as_deref().map(|why| ("broken".to_owned(), why.into())));
        definition.into()
    }
}

/// A path as text, or as bytes if it is not UTF-8, so that two different paths always differ here.
pub(super) fn path(path: &Path) -> Value {
    path.to_str().map_or_else(|| path.as_os_str().as_encoded_bytes().into(), Value::from)
}

pub(super) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
