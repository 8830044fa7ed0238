//! A stream of events over HTTP.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Mutex;

use serde_json::Value;

use crate::server::{Out, lock};

/// A response that goes on as long as there is something to say.
pub(crate) struct Events {
    stream: Mutex<TcpStream>,
}

impl Events {
    /// Starts the response.
    pub(crate) fn open(mut stream: TcpStream, headers: &str) -> io::Result<Events> {
        let start = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n";
        stream.write_all(format!("{start}{headers}Transfer-Encoding: chunked\r\n\r\n").as_bytes())?;
        Ok(Events { stream: Mutex::new(stream) })
    }

    pub(crate) fn event(&self, name: &str, data: &str) -> io::Result<()> {
        self.chunk(&format!("event: {name}\ndata: {data}\n\n"))
    }

    /// A comment without a meaning: a failed write shows that the listener is gone.
    pub(crate) fn breathe(&self) -> io::Result<()> {
        self.chunk(": still here\n\n")
    }

    /// Ends the response; the connection can be used again.
    pub(crate) fn close(&self) -> io::Result<()> {
        lock(&self.stream).write_all(b"0\r\n\r\n")
    }

    fn chunk(&self, text: &str) -> io::Result<()> {
        lock(&self.stream).write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }
}

impl Out for Events {
    fn send(&self, message: &Value) {
        // A client that is gone needs no answer.
        let _ = self.event("message", &message.to_string());
    }
}
