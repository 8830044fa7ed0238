//! The one loop in which a blocking caller waits for an answer of a server. Meanwhile the server's own questions are answered.

use std::sync::Arc;
use std::time::Duration;

use ollm_mcp::{CallError, Pending};

use crate::questions::Questions;

/// How often the loop looks for news, and whether somebody gave up.
pub(super) const GLANCE: Duration = Duration::from_millis(20);

/// Waits until the answer comes or `over` says that nobody needs it: then the server is told to stop working on it.
pub(super) fn wait<T: Send>(
    pending: Pending<T>,
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
