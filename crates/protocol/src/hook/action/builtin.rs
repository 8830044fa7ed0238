//! `builtin`: calls a closure of the embedding program. No file can declare it.

use std::fmt;
use std::sync::Arc;

use super::{Action, ActionDescriptor, ActionType, Needs, Shown, ValidAction};
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

    /// Calls it.
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

    /// None: closures are told apart by who registered them.
    fn words(&self) -> Vec<&str> {
        Vec::new()
    }

    fn title(&self) -> String {
        Builtin::TYPE.name.to_owned()
    }

    fn summary(&self) -> String {
        self.title()
    }

    fn shown(&self) -> Shown<'_> {
        Shown::Text("built in".to_owned())
    }
}

impl ValidAction for Builtin {}
