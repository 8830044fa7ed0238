//! Both guards of one process: what a call does is found out once for both.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

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
    /// The call that was not judged in time.
    missed: Mutex<Option<Event>>,
}

/// Longer calls are judged apart. The dearest of this length that are known take less than a tenth of a second.
const LONG: usize = 16 << 10;
/// How long a long one may take. What is not tangled takes a hundredth of it.
const PATIENCE: Duration = Duration::from_secs(3);
/// What plain text takes beyond that, generously, and up to which length.
const PER_MEBIBYTE: Duration = Duration::from_millis(500);
const MOST_MEBIBYTES: u32 = 10;

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
        Guards { shelter, last: Mutex::default(), missed: Mutex::default() }
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

    /// As [`Guards::destructive`], with an answer in time.
    pub fn destructive_in_time(self: &Arc<Self>, event: &Event) -> Verdict {
        self.in_time(event, Guards::destructive)
    }

    /// As [`Guards::tampering`], with an answer in time.
    pub fn tampering_in_time(self: &Arc<Self>, event: &Event) -> Verdict {
        self.in_time(event, Guards::tampering)
    }

    /// Long text is judged by a thread of its own, which must be done in time: whoever asks would go on without an answer.
    fn in_time(self: &Arc<Self>, event: &Event, judge: fn(&Guards, &Event) -> Verdict) -> Verdict {
        let length = event.data.values().map(length).sum::<usize>();
        if length <= LONG {
            return judge(self, event);
        }
        let patience = PATIENCE + PER_MEBIBYTE * u32::try_from(length >> 20).unwrap_or(u32::MAX).min(MOST_MEBIBYTES);
        let late = || Verdict::ask("the call is too long and tangled to be judged in time");
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody waits for the same call again.
        if missed.as_ref() == Some(event) {
            return late();
        }
        let (guards, call, (sender, receiver)) = (Arc::clone(self), event.clone(), mpsc::channel());
        thread::spawn(move || drop(sender.send(judge(&guards, &call))));
        match receiver.recv_timeout(patience) {
            Ok(verdict) => verdict,
            Err(RecvTimeoutError::Timeout) => {
                *missed = Some(event.clone());
                late()
            }
            // It panicked, which is a failure like any other.
            Err(RecvTimeoutError::Disconnected) => judge(self, event),
        }
    }

    fn scripts(&self, event: &Event, here: &Path) -> Arc<[Script]> {
        let call = ["tool_name", "args"].map(|field| event.data.get(field));
        // Of a call without a name all fields count.
        if call.first().is_none_or(Option::is_none) {
            return call::scripts(event, here, self.shelter.home.as_deref()).into();
        }
        // Not held while the call is read: a tangled one may take longer than anybody waits.
        let last = || -> MutexGuard<'_, Option<Seen>> { self.last.lock().unwrap_or_else(PoisonError::into_inner) };
        if let Some(seen) = last().as_ref()
            && seen.kind == event.kind
            && seen.here == here
            && seen.call.each_ref().map(Option::as_ref) == call
        {
            return Arc::clone(&seen.scripts);
        }
        let scripts: Arc<[Script]> = call::scripts(event, here, self.shelter.home.as_deref()).into();
        let call = call.map(Option::<&Value>::cloned);
        *last() = Some(Seen { kind: event.kind, call, here: here.to_owned(), scripts: Arc::clone(&scripts) });
        scripts
    }
}

/// How much text there is in a value.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(length).sum(),
        Value::Object(map) => map.values().map(length).sum(),
        _ => 0,
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
