//! Errands under way: each on a thread of its own, which is left behind if it takes too long.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::action::{Errand, Said};

/// An errand under way.
pub(super) struct Away {
    told: Receiver<Said>,
    started: Instant,
    timeout: Duration,
}

impl Away {
    pub(super) fn send(errand: Errand, started: Instant) -> Away {
        let timeout = errand.timeout();
        let (tell, told) = mpsc::channel();
        let failed = tell.clone();
        let sent = thread::Builder::new().name("ollm-errand".to_owned()).spawn(move || {
            // Whoever sent us may have lost patience.
            let _ = tell.send(errand.run());
        });
        if let Err(error) = sent {
            let _ = failed.send(Said::failed(format!("no thread could be started for it: {error}")));
        }
        Away { told, started, timeout }
    }

    pub(super) fn wait(self) -> (Said, Duration) {
        let left = self.timeout.saturating_sub(self.started.elapsed());
        let said = match self.told.recv_timeout(left) {
            Ok(said) => said,
            Err(RecvTimeoutError::Timeout) => Said::late(self.timeout),
            Err(RecvTimeoutError::Disconnected) => Said::failed("it panicked"),
        };
        (said, self.started.elapsed())
    }
}
