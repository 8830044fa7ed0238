//! A closure of the embedding program; its panic is a failed hook like any other.
//!
//! It runs on the calling thread, which costs nothing. One with a timeout of its own runs on another thread and is left behind
//! when the time is over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ollm_protocol::{Builtin, Event, Verdict};
use serde_json::Value;

use super::{ActionContext, Prepared, RemoteTask, Task, TaskReply};

/// A call that may take only so long.
#[derive(Debug)]
struct TimedCall {
    builtin: Builtin,
    event: Event,
    timeout: Duration,
}

impl RemoteTask for TimedCall {
    fn run(self: Box<Self>) -> TaskReply {
        verdict(&self.builtin, &self.event)
            .map_or_else(TaskReply::failed, |verdict| TaskReply::Decided(Box::new(verdict)))
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn hand_over(&self) -> Result<Value, String> {
        Err("an async hook that is built in needs a process that lives on; remove `async`".to_owned())
    }
}

pub(super) fn prepare(builtin: &Builtin, context: &ActionContext<'_>) -> Prepared {
    let (hook, event) = (context.hook(), context.event);
    if hook.spec.timeout.is_some() && !hook.detached(event.kind) {
        let call = TimedCall { builtin: builtin.clone(), event: event.clone(), timeout: hook.timeout.value };
        return Prepared::Task(Task::Remote(Box::new(call)), Vec::new());
    }
    match verdict(builtin, event) {
        Ok(verdict) => Prepared::Decided(Box::new(verdict), Vec::new()),
        Err(why) => Prepared::Impossible(why.to_owned()),
    }
}

fn verdict(builtin: &Builtin, event: &Event) -> Result<Verdict, &'static str> {
    // The closure's own state may be half changed after a panic; that is its owner's to guard, not ours to see.
    catch_unwind(AssertUnwindSafe(|| builtin.call(event))).map_err(|_| "it panicked")
}
