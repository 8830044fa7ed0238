//! How long to wait before the next try, and when to stop trying.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use crate::settings::Timings;

/// The pause after this many failed tries. It doubles each time up to a cap, and the result lies between half of that
/// and all of it. So servers that failed together are not retried together.
pub(crate) fn pause(timings: &Timings, failed: u32) -> Duration {
    jitter(full(timings, failed), RandomState::new().hash_one(failed))
}

fn full(timings: &Timings, failed: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(failed.saturating_sub(1));
    timings.pause.saturating_mul(doubled).min(timings.longest_pause)
}

fn jitter(full: Duration, dice: u64) -> Duration {
    let share = 500 + u32::try_from(dice % 501).unwrap_or(0);
    full / 1000 * share
}

/// Counts crashes, and says when they form a loop.
#[derive(Debug, Default)]
pub(crate) struct Breaker(VecDeque<Instant>);

impl Breaker {
    /// Notes a crash.
    pub(crate) fn crashed(&mut self, timings: &Timings) {
        self.0.push_back(Instant::now());
        while self.0.len() > timings.crashes.max(1) {
            self.0.pop_front();
        }
    }

    /// Whether the last crashes came so fast that one more start makes no sense.
    pub(crate) fn is_open(&self, timings: &Timings) -> bool {
        let recent = self.0.iter().filter(|crash| crash.elapsed() < timings.window).count();
        recent >= timings.crashes.max(1)
    }

    /// How many crashes are remembered.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Forgets all crashes, because a person asked for a new start.
    pub(crate) fn reset(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn pauses_grow_to_their_cap_and_never_fall_below_half(failed in 1_u32..100, dice: u64, pause in 1_u64..5000) {
            let timings = Timings { pause: Duration::from_millis(pause), ..Timings::default() };
            let whole = full(&timings, failed);
            prop_assert!(whole <= timings.longest_pause && whole >= full(&timings, failed.saturating_sub(1)));
            let real = jitter(whole, dice);
            prop_assert!(real <= whole && real >= whole.mul_f64(0.49));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn crashes_are_a_loop_only_when_they_come_fast() {
        let timings = Timings { crashes: 2, window: Duration::from_secs(10), ..Timings::default() };
        let mut breaker = Breaker::default();
        breaker.crashed(&timings);
        assert!(!breaker.is_open(&timings));
        tokio::time::advance(Duration::from_secs(11)).await;
        breaker.crashed(&timings);
        assert!(!breaker.is_open(&timings), "the first one is long ago");
        breaker.crashed(&timings);
        assert!(breaker.is_open(&timings));
        tokio::time::advance(Duration::from_secs(11)).await;
        assert!(!breaker.is_open(&timings), "time heals");
        breaker.crashed(&timings);
        breaker.crashed(&timings);
        breaker.reset();
        assert!(!breaker.is_open(&timings));
    }
}
