//! Both guards of one process: what a call does is found out once for both.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ollm_protocol::{Event, EventKind, Verdict};
use serde_json::Value;

use crate::call::{self, Script};
use crate::{Shelter, destructive, tampering};

/// The guards, with what they know of their surroundings.
///
/// ```
/// use ollm_guard::{Guards, Shelter};
/// use ollm_protocol::{Event, Flow};
///
/// let guards = Guards::new(Shelter { home: Some("/home/ada".into()), cwd: "/home/ada/project".into(), ..Shelter::default() });
/// let event = Event::before_tool("shell", [("command", "rm -rf ~".into())]);
/// assert_eq!(guards.destructive(&event).flow, Flow::Block);
/// ```
#[derive(Debug)]
pub struct Guards {
    shelter: Shelter,
    /// What the last call was found to do: one guard is asked right after the other.
    last: Mutex<Option<Seen>>,
}

/// A call, and what it does.
#[derive(Debug)]
struct Seen {
    kind: EventKind,
    /// The name of the tool and the arguments.
    call: [Option<Value>; 2],
    here: PathBuf,
    scripts: Arc<[Script]>,
}

impl Guards {
    /// Guards in these surroundings.
    pub fn new(shelter: Shelter) -> Guards {
        Guards { shelter, last: Mutex::default() }
    }

    /// As [`destructive`](crate::destructive()).
    pub fn destructive(&self, event: &Event) -> Verdict {
        let here = call::here(event, &self.shelter.cwd);
        destructive::judged(event, &self.scripts(event, &here), &here, self.shelter.home.as_deref())
    }

    /// As [`tampering`](crate::tampering()).
    pub fn tampering(&self, event: &Event) -> Verdict {
        let here = call::here(event, &self.shelter.cwd);
        tampering::judged(event, &self.scripts(event, &here), &here, &self.shelter)
    }

    fn scripts(&self, event: &Event, here: &Path) -> Arc<[Script]> {
        let call = ["tool_name", "args"].map(|field| event.data.get(field));
        // Of a call without a name all fields count.
        if call.first().is_none_or(Option::is_none) {
            return call::scripts(event, here, self.shelter.home.as_deref()).into();
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = last.as_ref()
            && seen.kind == event.kind
            && seen.here == here
            && seen.call.each_ref().map(Option::as_ref) == call
        {
            return Arc::clone(&seen.scripts);
        }
        let scripts: Arc<[Script]> = call::scripts(event, here, self.shelter.home.as_deref()).into();
        let call = call.map(Option::<&Value>::cloned);
        *last = Some(Seen { kind: event.kind, call, here: here.to_owned(), scripts: Arc::clone(&scripts) });
        scripts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_once_for_both_guards() {
        let (guards, here) = (Guards::new(Shelter::default()), Path::new("/home/ada/project"));
        let event = Event::before_tool("shell", [("command", "ls | wc -l".into())]);
        let first = guards.scripts(&event, here);
        assert!(Arc::ptr_eq(&first, &guards.scripts(&event, here)));
        let other = Event::before_tool("shell", [("command", "ls".into())]);
        assert!(!Arc::ptr_eq(&first, &guards.scripts(&other, here)));
    }
}
