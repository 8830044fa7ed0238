//! Looks after a live server: its health, its idleness, its changes.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::error::{last_words, seconds};
use crate::life::tools;
use crate::link::{Failure, Link};
use crate::list::Listing;
use crate::shared::{Shared, needs_auth};
use crate::status::State;

/// Pings in a row that may stay unanswered before a server counts as gone.
pub(crate) const MISSES: u32 = 3;
/// The least time between two looks at a list that keeps changing.
const LULL: Duration = Duration::from_millis(500);

/// Why a server should not be kept as it is.
#[derive(Debug)]
pub(crate) enum Finding {
    /// It does not answer any more.
    Hung,
    /// Nobody used it.
    Idle,
    /// It wants to know who we are; this is what to do.
    Denied(String),
}

/// Watches one connection.
pub(crate) struct Watchman {
    shared: Arc<Shared>,
    link: Arc<Link>,
    /// Pings in a row that were not answered.
    missed: u32,
    doubtful: bool,
    errand: Option<Pin<Box<dyn Future<Output = Errand> + Send>>>,
}

/// What came of an errand.
enum Errand {
    Pinged(Result<(), Failure>),
    /// With the last change that had been announced before.
    Listed(u64, Result<Listing, Failure>),
}

impl Watchman {
    pub(crate) fn new(shared: Arc<Shared>, link: Arc<Link>) -> Self {
        Self { shared, link, missed: 0, doubtful: false, errand: None }
    }

    /// Has the server looked at soon.
    pub(crate) fn doubt(&mut self) {
        self.doubtful = true;
    }

    /// One round: an errand ends, or there is a reason for one, or the server is idle.
    pub(crate) async fn round(&mut self) -> Option<Finding> {
        if let Some(errand) = &mut self.errand {
            let done = errand.await;
            self.errand = None;
            return self.back(done);
        }
        let idle = self.shared.declaration.idle;
        let rest = idle.map(|idle| idle.saturating_sub(self.link.idleness()));
        tokio::select! {
            () = self.link.desk.changes.notify.notified() => self.look(),
            () = sleep(self.until_ping().unwrap_or_default()), if self.until_ping().is_some() => {
                // A reply may have come while we slept.
                if self.missed > 0 || self.until_ping().is_some_and(|time| time.is_zero()) {
                    self.ping();
                }
            }
            () = sleep(rest.unwrap_or_default()), if rest.is_some() => {
                if idle.is_some_and(|idle| self.link.idleness() >= idle) {
                    return Some(Finding::Idle);
                }
            }
        }
        None
    }

    /// When to ask for a sign of life, if at all.
    fn until_ping(&self) -> Option<Duration> {
        let pace = &self.shared.context.settings.pace;
        if self.doubtful {
            return Some(Duration::ZERO);
        }
        let health = pace.health?;
        Some(if self.missed > 0 { pace.ping.min(health) } else { health.saturating_sub(self.link.silence()) })
    }

    fn ping(&mut self) {
        self.doubtful = false;
        let (link, limit) = (Arc::clone(&self.link), self.shared.context.settings.pace.ping);
        self.errand = Some(Box::pin(async move { Errand::Pinged(link.ping(limit).await) }));
    }

    fn look(&mut self) {
        if !self.link.desk.changes.are_new() {
            return;
        }
        let (shared, link) = (Arc::clone(&self.shared), Arc::clone(&self.link));
        self.errand = Some(Box::pin(async move {
            let changes = &link.desk.changes;
            tokio::select! {
                () = sleep(LULL) => {}
                () = changes.urgent.notified() => {}
            }
            // What changed during the lull is looked at now.
            let change = changes.announced();
            Errand::Listed(change, tools(&shared, &link).await)
        }));
    }

    fn back(&mut self, errand: Errand) -> Option<Finding> {
        if let Errand::Listed(change, _) = &errand {
            self.link.desk.changes.see(*change);
        }
        match errand {
            Errand::Pinged(Err(Failure::Denied(challenge))) | Errand::Listed(_, Err(Failure::Denied(challenge))) => {
                return Some(Finding::Denied(needs_auth(&self.shared, &challenge)));
            }
            Errand::Pinged(Ok(())) => self.well(),
            Errand::Pinged(Err(_)) => {
                self.missed += 1;
                if self.missed >= MISSES {
                    return Some(Finding::Hung);
                }
                self.ail(&format!("it has not answered for {}", seconds(self.link.silence())));
            }
            Errand::Listed(_, Ok(listing)) => self.shared.change(|now| {
                now.state = State::Ready;
                now.tools = listing.items.into();
                now.warnings = listing.warnings;
            }),
            Errand::Listed(_, Err(_)) => self.ail("its tools have changed, and the new ones cannot be listed"),
        }
        None
    }

    fn ail(&self, what: &str) {
        let said = self.shared.log.tail(self.shared.now.borrow().mark);
        self.shared.set(State::Degraded(format!("{what}{}", last_words(&said))));
    }

    fn well(&mut self) {
        if std::mem::take(&mut self.missed) > 0 {
            self.shared.set(State::Ready);
        }
    }
}
