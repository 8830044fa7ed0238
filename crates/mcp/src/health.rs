//! Monitors a live server: pings, idle time, changed tools.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::error::{last_words, seconds};
use crate::lifecycle::tools;
use crate::list::Listing;
use crate::requester::{RequestError, Requester};
use crate::shared::{ServerShared, needs_auth};
use crate::status::ServerState;

/// Pings in a row that may stay unanswered before a server counts as gone.
pub(crate) const MISSES: u32 = 3;
/// The shortest time between two readings of a list that keeps changing.
const LULL: Duration = Duration::from_millis(500);

/// Why a connection should be closed.
#[derive(Debug)]
pub(crate) enum HealthFinding {
    /// The server does not answer any more.
    Hung,
    /// No call used the server for its idle time.
    Idle,
    /// The server wants authorization; the text says what to do.
    Denied(String),
}

/// Watches one connection.
pub(crate) struct HealthMonitor {
    shared: Arc<ServerShared>,
    requester: Arc<Requester>,
    /// Pings in a row that the server did not answer.
    missed: u32,
    is_suspect: bool,
    task: Option<Pin<Box<dyn Future<Output = HealthTask> + Send>>>,
}

/// The outcome of a task.
enum HealthTask {
    Pinged(Result<(), RequestError>),
    /// The last change that was announced before the list was requested, and the list.
    Listed(u64, Result<Listing, RequestError>),
}

impl HealthMonitor {
    pub(crate) fn new(shared: Arc<ServerShared>, requester: Arc<Requester>) -> Self {
        Self { shared, requester, missed: 0, is_suspect: false, task: None }
    }

    /// Makes the monitor ping the server soon.
    pub(crate) fn suspect(&mut self) {
        self.is_suspect = true;
    }

    /// One round: finishes a task, starts one, or finds that the server is idle.
    pub(crate) async fn round(&mut self) -> Option<HealthFinding> {
        if let Some(task) = &mut self.task {
            let done = task.await;
            self.task = None;
            return self.finish(done);
        }
        let idle = self.shared.ready.idle;
        let rest = idle.map(|idle| idle.saturating_sub(self.requester.idleness()));
        tokio::select! {
            () = self.requester.handler.changes.notify.notified() => self.list_again(),
            () = sleep(self.until_ping().unwrap_or_default()), if self.until_ping().is_some() => {
                // A reply may have come during the sleep.
                if self.missed > 0 || self.until_ping().is_some_and(|time| time.is_zero()) {
                    self.ping();
                }
            }
            () = sleep(rest.unwrap_or_default()), if rest.is_some() => {
                if idle.is_some_and(|idle| self.requester.idleness() >= idle) {
                    return Some(HealthFinding::Idle);
                }
            }
        }
        None
    }

    /// The time until the next ping; `None` without health checks.
    fn until_ping(&self) -> Option<Duration> {
        let timings = &self.shared.context.settings.timings;
        if self.is_suspect {
            return Some(Duration::ZERO);
        }
        let health = timings.health?;
        Some(if self.missed > 0 { timings.ping.min(health) } else { health.saturating_sub(self.requester.silence()) })
    }

    fn ping(&mut self) {
        self.is_suspect = false;
        let (requester, limit) = (Arc::clone(&self.requester), self.shared.context.settings.timings.ping);
        self.task = Some(Box::pin(async move { HealthTask::Pinged(requester.ping(limit).await) }));
    }

    fn list_again(&mut self) {
        if !self.requester.handler.changes.are_new() {
            return;
        }
        let (shared, requester) = (Arc::clone(&self.shared), Arc::clone(&self.requester));
        self.task = Some(Box::pin(async move {
            let changes = &requester.handler.changes;
            tokio::select! {
                () = sleep(LULL) => {}
                () = changes.urgent.notified() => {}
            }
            // The coming list includes changes announced during the pause.
            let change = changes.announced();
            HealthTask::Listed(change, tools(&shared, &requester).await)
        }));
    }

    fn finish(&mut self, task: HealthTask) -> Option<HealthFinding> {
        if let HealthTask::Listed(change, _) = &task {
            self.requester.handler.changes.see(*change);
        }
        match task {
            HealthTask::Pinged(Err(RequestError::Denied(challenge)))
            | HealthTask::Listed(_, Err(RequestError::Denied(challenge))) => {
                return Some(HealthFinding::Denied(needs_auth(&self.shared, &challenge)));
            }
            HealthTask::Pinged(Ok(())) => self.recover(),
            HealthTask::Pinged(Err(_)) => {
                self.missed += 1;
                if self.missed >= MISSES {
                    return Some(HealthFinding::Hung);
                }
                self.degrade(&format!("it has not answered for {}", seconds(self.requester.silence())));
            }
            HealthTask::Listed(_, Ok(listing)) => self.shared.change(|now| {
                now.state = ServerState::Ready;
                now.tools = listing.items.into();
                now.warnings = listing.warnings;
            }),
            HealthTask::Listed(_, Err(_)) => self.degrade("its tools have changed, and the new ones cannot be listed"),
        }
        None
    }

    fn degrade(&self, what: &str) {
        let said = self.shared.log.tail(self.shared.now.borrow().mark);
        self.shared.set(ServerState::Degraded(format!("{what}{}", last_words(&said))));
    }

    fn recover(&mut self) {
        if std::mem::take(&mut self.missed) > 0 {
            self.shared.set(ServerState::Ready);
        }
    }
}
