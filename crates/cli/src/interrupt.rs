//! Signals that ask us to end: the first ends the turn, the next the session, and if even that takes too long, us.

use std::thread;
use std::time::Duration;

use ollm_agent::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How long an orderly end may take. Whatever runs for us then dies with us.
const GRACE: Duration = Duration::from_secs(5);

/// Listens for signals until the process ends. Where that cannot be had, they end us at once, as ever.
pub(crate) fn listen(cancel: &Cancel) {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    let cancel = cancel.clone();
    let _ = thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if signal == SIGINT {
                cancel.interrupt();
            } else {
                cancel.end();
            }
            if cancel.is_final() {
                thread::spawn(move || {
                    thread::sleep(GRACE);
                    std::process::exit(128 + signal);
                });
            }
        }
    });
}
