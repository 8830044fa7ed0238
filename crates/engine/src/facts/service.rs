//! Checks whether services take connections, all at the same time and within a short deadline.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// The deadline for all services of an event together, including name look-ups.
const PATIENCE: Duration = Duration::from_millis(500);
/// The most services that are asked at once; more are asked in turns.
const AT_ONCE: usize = 16;

/// The services that took no connection, each with the reason.
pub(super) fn unreachable(services: &BTreeSet<String>) -> BTreeMap<String, String> {
    if services.is_empty() {
        return BTreeMap::new();
    }
    let deadline = Instant::now() + PATIENCE;
    let mut waiting: BTreeSet<&String> = services.iter().collect();
    let mut failed = BTreeMap::new();
    let (tell, told) = mpsc::channel();
    for turn in services.iter().collect::<Vec<_>>().chunks(AT_ONCE) {
        for service in turn {
            ask(service, deadline, &tell);
        }
        while turn.iter().any(|service| waiting.contains(service)) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok((service, result)) = told.recv_timeout(left) else { break };
            waiting.remove(&service);
            if let Err(why) = result {
                failed.insert(service, why);
            }
        }
    }
    let late = waiting.into_iter().map(|service| (service.clone(), format!("it did not answer within {PATIENCE:?}")));
    failed.extend(late.collect::<Vec<_>>());
    failed.into_iter().map(|(service, why)| (service.clone(), said(&service, &why))).collect()
}

fn said(service: &str, why: &str) -> String {
    format!("it requires the service {service}, which takes no connection ({why}); start it, or change `requires`")
}

/// Asks on a separate thread, because a name look-up has no deadline. If the caller stops waiting, the thread ends by
/// itself when the system's own timeout is over.
fn ask(service: &str, deadline: Instant, tell: &Sender<(String, Result<(), String>)>) {
    let own = service.to_owned();
    let asked = {
        let tell = tell.clone();
        thread::Builder::new().spawn(move || {
            let result = connect(&own, deadline);
            // The caller may have stopped waiting.
            let _ = tell.send((own, result));
        })
    };
    if let Err(error) = asked {
        let _ = tell.send((service.to_owned(), Err(error.to_string())));
    }
}

fn connect(service: &str, deadline: Instant) -> Result<(), String> {
    let mut last = "its name has no address".to_owned();
    for address in service.to_socket_addrs().map_err(|error| error.to_string())? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("there was no time left".to_owned());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(_) => return Ok(()),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}
