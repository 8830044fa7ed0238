//! Durations in seconds, and unique names.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use uuid::Uuid;

/// The duration in seconds; zero if the clock was set back.
pub(crate) fn seconds(from: SystemTime, to: SystemTime) -> f64 {
    let took = to.duration_since(from).unwrap_or(Duration::ZERO);
    (took.as_secs_f64() * 1e6).round() / 1e6
}

/// A unique id for a session that begins now; ids sort by time.
pub fn session_id(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let stamp = uuid::Timestamp::from_unix(uuid::NoContext, since.as_secs(), since.subsec_nanos());
    Uuid::new_v7(stamp).to_string()
}

/// A unique name that does not depend on a clock.
pub(crate) fn unique() -> String {
    Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 0, 0)).simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_ordered_by_time() {
        let first = session_id(UNIX_EPOCH + Duration::from_secs(1));
        let later = session_id(UNIX_EPOCH + Duration::from_secs(2));
        assert!(first < later);
        assert_ne!(unique(), unique());
    }
}
