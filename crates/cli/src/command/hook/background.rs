//! `ollm hook background`: runs one background hook. `ollm hook run` starts it for itself; it is no part of the command
//! line that people see.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

use ollm_app::dispatch::tell_late_failure;
use ollm_app::{AppContext, trace};
use ollm_process::{Children, ProcessSetup};
use ollm_protocol::Code;
use serde_json::Value;

use crate::error::{Failure, OK};
use crate::output::Output;

/// A larger task is refused: the event in it is smaller.
const LARGEST_TASK: u64 = 256 << 20;

/// Runs the task on standard input; `left_to` names the log for its result, if there is one.
pub(crate) fn run<'a>(
    left_to: &[OsString],
    process: &ProcessSetup,
    context: impl FnOnce(Option<&Path>) -> Result<&'a AppContext, Failure>,
    output: &mut Output,
) -> Result<u8, Failure> {
    // A task from `ollm hook run` names approved hooks. A task from any other process could name anything.
    if !ollm_process::is_released(std::io::stdin()) {
        return Err(Failure::usage("`ollm hook background` is for ollm itself: no task was handed over"));
    }
    // Our parent has ended, or will soon, so we leave its terminal and its session.
    let _ = process.leave_session();
    let mut task = Vec::new();
    let read = std::io::stdin().take(LARGEST_TASK).read_to_end(&mut task);
    read.map_err(|error| Failure::new(Code::Unreadable, format!("the task cannot be read: {error}")))?;
    let children = Children::new();
    let hold = children.hold_signals();
    let done = ollm_engine::run_handed_over(&task, &children);
    children.kill_adopted();
    if let (Ok(done), Some(trace_log)) = (&done, trace::told(left_to)) {
        trace::leave_late(&trace_log, done);
    }
    drop(hold);
    if let Ok(done) = done.as_ref()
        && done.error.is_some()
    {
        output.silence();
        let folder = done.about.get("cwd").and_then(Value::as_str).map(Path::new);
        tell_late_failure(done, context(folder)?, output);
    }
    done.map(|_| OK).map_err(|why| Failure::usage(format!("`ollm hook background` is for ollm itself: {why}")))
}
