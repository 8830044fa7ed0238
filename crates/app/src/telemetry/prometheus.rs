//! The HTTP endpoint for Prometheus. It answers one request at a time, and every request in the same way.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::metrics::Metrics;

/// How long a request may take, from its first byte to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longer requests are cut.
const LONGEST_REQUEST: usize = 8 << 10;

/// An open endpoint; dropping it closes the endpoint.
#[derive(Debug)]
pub(super) struct Endpoint {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    pub(super) fn open(address: &str, metrics: &Arc<Metrics>) -> Result<Endpoint, String> {
        let closed = |why: &str| format!("Prometheus cannot ask at {address}: {why}");
        let wanted: SocketAddr =
            address.parse().map_err(|_| closed("an address has a number and a port, as in 127.0.0.1:9464"))?;
        let listener = TcpListener::bind(wanted)
            .map_err(|error| closed(&format!("{error}; `telemetry.prometheus.listen` may name another address")))?;
        let address = listener.local_addr().map_err(|error| closed(&error.to_string()))?;
        let (closing, metrics) = (Arc::new(AtomicBool::new(false)), Arc::clone(metrics));
        let is_closing = Arc::clone(&closing);
        let thread = thread::Builder::new().name("prometheus".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                if is_closing.load(Ordering::Acquire) {
                    return;
                }
                // A client that hangs up or sends nonsense gets no answer.
                let _ = stream.and_then(|stream| answer(stream, &metrics));
            }
        });
        let thread = thread.map_err(|error| closed(&error.to_string()))?;
        Ok(Endpoint { address, closing, thread: Some(thread) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        // Wakes the thread. If that fails, the thread ends with our process.
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, metrics: &Metrics) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = head(&mut stream)?;
    let mut words = request.split(|byte| *byte == b' ');
    let (status, body) = match (words.next(), words.next()) {
        (Some(b"GET"), Some(b"/metrics")) => ("200 OK", metrics.text()),
        (Some(b"GET"), _) => ("404 Not Found", "ask for /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "ask with GET\n".to_owned()),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// The request up to its empty line, within the deadline.
fn head(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let deadline = Instant::now() + PATIENCE;
    let (mut request, mut chunk) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < LONGEST_REQUEST {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut chunk)?;
        if read == 0 || Instant::now() >= deadline {
            break;
        }
        request.extend_from_slice(chunk.get(..read).unwrap_or_default());
    }
    Ok(request)
}
