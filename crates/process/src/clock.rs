//! Moments in the future, without overflow for very long times.

use std::time::{Duration, Instant};

/// Stands for "never"; any clock can hold it.
const NEVER: Duration = Duration::from_hours(100 * 365 * 24);

/// The moment this much later, at most a hundred years away.
///
/// ```
/// use std::time::{Duration, Instant};
/// let now = Instant::now();
/// assert_eq!(ollm_process::after(now, Duration::from_secs(1)), now + Duration::from_secs(1));
/// assert!(ollm_process::after(now, Duration::MAX) > now);
/// ```
pub fn after(moment: Instant, time: Duration) -> Instant {
    moment.checked_add(time.min(NEVER)).unwrap_or(moment)
}
