//! The one loop in which a blocking caller waits for a server's answer. Meanwhile it answers the server's own
//! questions.

use std::sync::Arc;
use std::time::Duration;

use ollm_mcp::{CallError, PendingAnswer};

use crate::questions::Questions;

/// How often the loop checks for questions, and whether the caller gave up.
pub(super) const GLANCE: Duration = Duration::from_millis(20);

/// Waits until the answer comes or `over` says that it is no longer needed. Then the server is told to stop.
pub(super) fn wait<T: Send>(
    pending: PendingAnswer<T>,
    questions: Option<&Arc<Questions>>,
    over: &dyn Fn() -> bool,
    mut meanwhile: impl FnMut(),
) -> Result<T, CallError> {
    pending.wait_until(over, || {
        if let Some(questions) = questions {
            questions.attend(over);
        }
        meanwhile();
    })
}
