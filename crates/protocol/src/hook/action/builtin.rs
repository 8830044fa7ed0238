//! `builtin`: calls a closure of the embedding program. No file can declare it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::{Action, ActionDescriptor, ActionText, ActionType, Needs};
use crate::event::{Event, EventKind};
use crate::hook::{HookError, HookSpec, Rules};
use crate::verdict::Verdict;

/// A closure of the embedding program.
#[derive(Clone)]
pub struct Builtin(Arc<dyn Fn(&Event) -> Verdict + Send + Sync>);

impl Builtin {
    pub(super) const TYPE: &ActionType =
        &ActionType { name: "builtin", about: "Calls a closure of the embedding program", keys: &[], blank: None };

    /// Wraps a closure.
    pub fn new(closure: impl Fn(&Event) -> Verdict + Send + Sync + 'static) -> Builtin {
        Builtin(Arc::new(closure))
    }

    /// Calls the closure.
    pub fn call(&self, event: &Event) -> Verdict {
        (self.0)(event)
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Builtin")
    }
}

impl PartialEq for Builtin {
    fn eq(&self, other: &Builtin) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The error for writing a closure to a file.
const NO_TEXT: &str = "a closure has no text";

impl Serialize for Builtin {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(ser::Error::custom(NO_TEXT))
    }
}

impl<'de> Deserialize<'de> for Builtin {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Builtin, D::Error> {
        Err(de::Error::custom(NO_TEXT))
    }
}

impl ActionDescriptor for Builtin {
    fn kind(&self) -> &'static ActionType {
        Builtin::TYPE
    }

    fn check(&self, _: &HookSpec, _: &[EventKind], _: &Rules) -> Result<Action, HookError> {
        Ok(Action::Builtin(self.clone()))
    }

    fn needs(&self) -> Needs<'_> {
        Needs::Nothing
    }

    /// No words: closures are distinguished by the hook that registered them.
    fn words(&self) -> Vec<&str> {
        Vec::new()
    }

    fn title(&self) -> String {
        Builtin::TYPE.name.to_owned()
    }

    fn summary(&self) -> String {
        self.title()
    }

    fn shown(&self) -> ActionText<'_> {
        ActionText::Text("built in".to_owned())
    }
}
