//! `ollm hook background`: runs one hook that nobody waits for. `ollm hook run` starts it for itself; it is no part of the
//! command line that people see.

use std::ffi::OsString;
use std::io::Read;

use ollm_app::trace;
use ollm_process::{Children, ProcessSetup};
use ollm_protocol::Code;

use crate::error::{Failure, OK};

/// A larger task is refused: the event in it is smaller.
const LARGEST_TASK: u64 = 256 << 20;

/// `left_to` says where what came of it is written down, if anywhere.
pub(crate) fn run(left_to: &[OsString], process: &ProcessSetup) -> Result<u8, Failure> {
    // What a task names was approved when `ollm hook run` wrote it down; from anybody else it could name anything.
    if !ollm_process::is_released(std::io::stdin()) {
        return Err(Failure::usage("`ollm hook background` is for ollm itself: nobody handed us a task"));
    }
    // Whoever started us has ended, or will soon: neither its terminal nor what it leaves behind is our affair.
    let _ = process.leave_session();
    let mut task = Vec::new();
    let read = std::io::stdin().take(LARGEST_TASK).read_to_end(&mut task);
    read.map_err(|error| Failure::new(Code::Unreadable, format!("the task cannot be read: {error}")))?;
    let children = Children::new();
    let hold = children.hold_signals();
    let done = ollm_engine::run_handed_over(&task, &children);
    children.kill_adopted();
    if let (Ok(done), Some(trail)) = (&done, trace::told(left_to)) {
        trace::leave_late(&trail, done);
    }
    drop(hold);
    done.map(|_| OK).map_err(|why| Failure::usage(format!("`ollm hook background` is for ollm itself: {why}")))
}
