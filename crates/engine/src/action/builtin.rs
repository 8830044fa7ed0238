//! Calls a closure of the embedding program. If it panics, the hook fails like any other hook.
//!
//! The closure runs on the calling thread, which costs nothing. If the hook has a timeout of its own, the closure runs
//! on another thread. After the timeout, the engine no longer waits for that thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use ollm_protocol::{Builtin, Event, Verdict};
use serde_json::Value;

use super::{ActionContext, PreparedAction, RemoteTask, Task, TaskReply};

/// A call with a deadline.
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

pub(super) fn prepare(builtin: &Builtin, context: &ActionContext<'_>) -> PreparedAction {
    let (hook, event) = (context.hook(), context.event);
    if hook.spec.timeout.is_some() && !hook.detached(event.kind) {
        let call = TimedCall { builtin: builtin.clone(), event: event.clone(), timeout: hook.timeout.value };
        return PreparedAction::Task(Task::Remote(Box::new(call)), Vec::new());
    }
    match verdict(builtin, event) {
        Ok(verdict) => PreparedAction::Decided(Box::new(verdict), Vec::new()),
        Err(why) => PreparedAction::Impossible(why.to_owned()),
    }
}

fn verdict(builtin: &Builtin, event: &Event) -> Result<Verdict, &'static str> {
    // A panic may leave the closure's own state half changed; its owner has to guard that state.
    catch_unwind(AssertUnwindSafe(|| builtin.call(event))).map_err(|_| "it panicked")
}
