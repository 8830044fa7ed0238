//! Messages on the standard streams, one per line.

use std::io::{self, BufRead, BufReader, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::server::{Out, Server, lock};

struct Lines {
    stdout: Mutex<io::Stdout>,
    garbage: bool,
    batch: bool,
}

impl Lines {
    fn line(&self, text: &str) -> io::Result<()> {
        let mut stdout = lock(&self.stdout);
        stdout.write_all(text.as_bytes())?;
        stdout.write_all(b"\n")?;
        stdout.flush()
    }
}

impl Out for Lines {
    fn send(&self, message: &Value) {
        let text = match (self.garbage, self.batch) {
            (true, _) => "}{ this is no message".to_owned(),
            (false, true) => format!("[{message}]"),
            (false, false) => message.to_string(),
        };
        // A client that is gone needs no answer.
        let _ = self.line(&text);
    }
}

pub(crate) fn serve(server: &Arc<Server>) -> Result<u8, String> {
    let plan = &server.plan;
    let lines = Arc::new(Lines { stdout: Mutex::new(io::stdout()), garbage: plan.garbage, batch: plan.batch });
    if plan.noise {
        let _ = lines.line("welcome to the server\n\n{\"not\": \"a message\"}");
    }
    if plan.long_line > 0 {
        long_line(plan.long_line);
    }
    if let Some(stream) = plan.flood.clone() {
        std::thread::spawn(move || flood(&stream));
    }
    let out: Arc<dyn Out> = lines;
    server.listen(Arc::clone(&out));
    let mut input = BufReader::new(io::stdin().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).map_err(|error| error.to_string())? > 0 {
        if let Ok(message) = serde_json::from_slice(&line) {
            server.take(&message, &out);
        }
        line.clear();
    }
    if plan.stubborn {
        std::thread::sleep(Duration::MAX);
    }
    Ok(0)
}

/// One line without an end in sight.
fn long_line(length: usize) {
    let mut stdout = io::stdout().lock();
    let block = vec![b'x'; 1 << 16];
    let mut left = length;
    while left > 0 {
        let size = left.min(block.len());
        if stdout.write_all(block.get(..size).unwrap_or_default()).is_err() {
            return;
        }
        left -= size;
    }
    let _ = stdout.write_all(b"\n");
}

/// Writes until there is no reader any more.
fn flood(stream: &str) {
    let block = "nothing to see here\n".repeat(1000);
    let mut open = true;
    while open {
        open = match stream {
            "stderr" => io::stderr().write_all(block.as_bytes()).is_ok(),
            _ => io::stdout().write_all(block.as_bytes()).is_ok(),
        };
    }
}
