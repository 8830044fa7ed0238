//! Runs both guards in one process. The effects of a call are found out once for both.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ollm_protocol::{Event, EventKind, Verdict};
use serde_json::Value;

use crate::call::{self, Script};
use crate::{ProtectedPlaces, destructive, tampering};

/// The guards, with what they know of their surroundings.
///
/// ```
/// use ollm_guard::{Guards, ProtectedPlaces};
/// use ollm_protocol::{Event, Flow};
///
/// let guards = Guards::new(ProtectedPlaces { home: Some("/home/ada".into()), cwd: "/home/ada/project".into(), ..ProtectedPlaces::default() });
/// let event = Event::before_tool("shell", [("command", "rm -rf ~".into())]);
/// assert_eq!(guards.destructive(&event).flow, Flow::Block);
/// ```
#[derive(Debug)]
pub struct Guards {
    shelter: ProtectedPlaces,
    /// What the last call was found to do: one guard is asked right after the other.
    last: Mutex<Option<SeenCall>>,
    /// The call that could not be judged in time.
    missed: Mutex<Option<Event>>,
    /// The verdict of each guard on a call, made in advance for the next question.
    destructive_verdict: Mutex<Option<(Call, Verdict)>>,
    tampering_verdict: Mutex<Option<(Call, Verdict)>>,
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
struct SeenCall {
    call: Call,
    scripts: Arc<[Script]>,
}

/// What tells a call from others.
#[derive(Debug)]
struct Call {
    kind: EventKind,
    /// The name of the tool and the arguments.
    parts: [Option<Value>; 2],
    here: PathBuf,
}

impl Call {
    /// The call of an event; none where it has no name, because all fields count then.
    fn of(event: &Event, here: &Path) -> Option<Call> {
        event.text("tool_name").filter(|name| !name.is_empty())?;
        let parts = parts(event).map(Option::<&Value>::cloned);
        Some(Call { kind: event.kind, parts, here: here.to_owned() })
    }

    fn is_of(&self, event: &Event, here: &Path) -> bool {
        self.kind == event.kind && self.here == here && self.parts.each_ref().map(Option::as_ref) == parts(event)
    }
}

fn parts(event: &Event) -> [Option<&Value>; 2] {
    ["tool_name", "args"].map(|field| event.data.get(field))
}

impl Guards {
    /// Guards in these surroundings.
    pub fn new(shelter: ProtectedPlaces) -> Guards {
        Guards {
            shelter,
            last: Mutex::default(),
            missed: Mutex::default(),
            destructive_verdict: Mutex::default(),
            tampering_verdict: Mutex::default(),
        }
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
        let known = self.taken(&self.destructive_verdict, event);
        known.unwrap_or_else(|| self.in_time(event, Guards::destructive))
    }

    /// As [`Guards::tampering`], with an answer in time.
    pub fn tampering_in_time(self: &Arc<Self>, event: &Event) -> Verdict {
        let known = self.taken(&self.tampering_verdict, event);
        known.unwrap_or_else(|| self.in_time(event, Guards::tampering))
    }

    /// As [`Guards::destructive_in_time`], ahead of the next who asks about the same call: they get the same verdict.
    pub fn destructive_ahead(self: &Arc<Self>, event: &Event) -> Verdict {
        self.kept(&self.destructive_verdict, event, self.in_time(event, Guards::destructive))
    }

    /// As [`Guards::tampering_in_time`], ahead of the next who asks about the same call: they get the same verdict.
    pub fn tampering_ahead(self: &Arc<Self>, event: &Event) -> Verdict {
        self.kept(&self.tampering_verdict, event, self.in_time(event, Guards::tampering))
    }

    fn kept(&self, ahead: &Mutex<Option<(Call, Verdict)>>, event: &Event, verdict: Verdict) -> Verdict {
        let call = Call::of(event, &call::here(event, &self.shelter.cwd));
        *ahead.lock().unwrap_or_else(PoisonError::into_inner) = call.map(|call| (call, verdict.clone()));
        verdict
    }

    /// The verdict made ahead, once: by the next question, the files may be others.
    fn taken(&self, ahead: &Mutex<Option<(Call, Verdict)>>, event: &Event) -> Option<Verdict> {
        let (call, verdict) = ahead.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        call.is_of(event, &call::here(event, &self.shelter.cwd)).then_some(verdict)
    }

    /// A separate thread with a deadline judges long text. Without an answer in time, the asking agent would continue.
    fn in_time(self: &Arc<Self>, event: &Event, judge: fn(&Guards, &Event) -> Verdict) -> Verdict {
        let length = event.data.values().map(length).sum::<usize>();
        if length <= LONG {
            return judge(self, event);
        }
        let patience = PATIENCE + PER_MEBIBYTE * u32::try_from(length >> 20).unwrap_or(u32::MAX).min(MOST_MEBIBYTES);
        let late = || Verdict::ask("the call is too long and tangled to be judged in time");
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        // A call that took too long once is not judged again.
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
        // Not held while the call is read: a tangled one may take longer than the agent waits.
        let last = || -> MutexGuard<'_, Option<SeenCall>> { self.last.lock().unwrap_or_else(PoisonError::into_inner) };
        if let Some(seen) = last().as_ref()
            && seen.call.is_of(event, here)
        {
            return Arc::clone(&seen.scripts);
        }
        let scripts: Arc<[Script]> = call::scripts(event, here, self.shelter.home.as_deref()).into();
        if let Some(call) = Call::of(event, here) {
            *last() = Some(SeenCall { call, scripts: Arc::clone(&scripts) });
        }
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
    use ollm_protocol::Flow;

    use super::*;

    #[test]
    fn what_was_judged_ahead_counts_once_and_for_the_same_call_alone() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let shelter =
            ProtectedPlaces { home: Some(home.clone()), cwd: home.join("project"), ..ProtectedPlaces::default() };
        let guards = Arc::new(Guards::new(shelter));
        let removes = |what: &str| Event::before_tool("shell", [("command", format!("rm -rf {what}").into())]);
        let (all, one) = (removes("~"), removes("one"));
        assert_eq!(guards.destructive_ahead(&all).flow, Flow::Block);
        // Another call has a verdict of its own, and takes what was said ahead away.
        assert_eq!(guards.destructive_in_time(&one).flow, Flow::NoOpinion);
        assert!(guards.taken(&guards.destructive_verdict, &all).is_none());
        let verdict = guards.destructive_ahead(&all);
        let mut later = all.clone();
        later.data.insert("timestamp".to_owned(), "now".into());
        assert_eq!(guards.taken(&guards.destructive_verdict, &later), Some(verdict));
        assert!(guards.taken(&guards.destructive_verdict, &later).is_none());
        assert_eq!(guards.destructive_in_time(&all).flow, Flow::Block);
    }

    #[test]
    fn a_call_is_read_once_for_both_guards() {
        let (guards, here) = (Guards::new(ProtectedPlaces::default()), Path::new("/home/ada/project"));
        let event = Event::before_tool("shell", [("command", "ls | wc -l".into())]);
        let first = guards.scripts(&event, here);
        assert!(Arc::ptr_eq(&first, &guards.scripts(&event, here)));
        let other = Event::before_tool("shell", [("command", "ls".into())]);
        assert!(!Arc::ptr_eq(&first, &guards.scripts(&other, here)));
    }
}
