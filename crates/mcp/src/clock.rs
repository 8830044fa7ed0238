//! Moments in the future, without overflow for very long times.

use std::time::Duration;

use tokio::time::Instant;

/// Stands for "never" where a time exceeds what the clock can hold.
const NEVER: Duration = Duration::from_hours(30 * 365 * 24);

/// The moment after some time.
pub(crate) fn after(time: Duration) -> Instant {
    Instant::now() + time.min(NEVER)
}
