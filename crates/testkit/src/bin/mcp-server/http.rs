//! Messages over HTTP, in both ways: one address that answers, or a stream of events beside an address for messages.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::events::Events;
use crate::oauth::{Issuer, challenge_header, scope_header};
use crate::server::{Out, Server, lock};

/// How often a silent stream shows that it is alive.
const BREATH: Duration = Duration::from_millis(500);

struct Door {
    server: Arc<Server>,
    issuer: Issuer,
    streams: Mutex<HashMap<String, Arc<Events>>>,
    next: AtomicUsize,
    posts: AtomicUsize,
}

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn serve(server: &Arc<Server>) -> Result<u8, String> {
    let text = |error: io::Error| error.to_string();
    let listener = TcpListener::bind(("127.0.0.1", server.plan.port)).map_err(text)?;
    let port = listener.local_addr().map_err(text)?.port();
    let path = if server.plan.sse { "sse" } else { "mcp" };
    let line = json!({"url": format!("http://127.0.0.1:{port}/{path}")});
    writeln!(io::stdout(), "{line}").map_err(text)?;
    let door = Arc::new(Door {
        server: Arc::clone(server),
        issuer: Issuer::default(),
        streams: Mutex::default(),
        next: AtomicUsize::new(1),
        posts: AtomicUsize::new(0),
    });
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let door = Arc::clone(&door);
        std::thread::spawn(move || drop(converse(&door, &stream)));
    }
    Ok(0)
}

/// One connection, as long as the client wants it.
fn converse(door: &Door, stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream.try_clone()?);
    while let Some(request) = read(&mut input)? {
        door.answer(&request, stream.try_clone()?)?;
    }
    Ok(())
}

impl Door {
    fn answer(&self, request: &Request, mut stream: TcpStream) -> io::Result<()> {
        let plan = &self.server.plan;
        if let Some(target) = &plan.redirect {
            return plain(&mut stream, "307 Temporary Redirect", &format!("Location: {target}\r\n"), "");
        }
        if plan.oauth && self.issuer.answer(request, plan, &mut stream)? {
            return Ok(());
        }
        if plan.oauth && !self.issuer.admits(request, plan) {
            return plain(&mut stream, "401 Unauthorized", &challenge_header(request), "");
        }
        if plan.oauth
            && let Some(scope) = self.issuer.lacks(request, plan)
        {
            return plain(&mut stream, "403 Forbidden", &scope_header(&scope), "");
        }
        if plan.fault("blab") && String::from_utf8_lossy(&request.body).contains("tools/call") {
            let proof = request.headers.get("authorization").map(String::as_str).unwrap_or_default();
            return plain(&mut stream, "500 Internal Server Error", "", &format!("{proof} is too much for us"));
        }
        if plan.unauthorized && !request.headers.contains_key("authorization") {
            let challenge = "WWW-Authenticate: Bearer resource_metadata=\"http://127.0.0.1:1/\"\r\n";
            return plain(&mut stream, "401 Unauthorized", challenge, "");
        }
        let path = request.path.split('?').next().unwrap_or_default();
        match (request.method.as_str(), path) {
            ("GET", "/sse") if plan.sse => self.old_stream(stream),
            ("POST", "/messages") if plan.sse => self.old_message(request, &mut stream),
            ("POST", "/mcp") if plan.http => self.message(request, stream),
            ("GET", "/mcp") if plan.http => self.listen(stream),
            ("DELETE", "/mcp") if plan.http => plain(&mut stream, "200 OK", "", ""),
            (_, "/mcp" | "/sse") => plain(&mut stream, "405 Method Not Allowed", "", ""),
            _ => plain(&mut stream, "404 Not Found", "", ""),
        }
    }

    /// A message, answered where it came from.
    fn message(&self, request: &Request, mut stream: TcpStream) -> io::Result<()> {
        let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
            return plain(&mut stream, "400 Bad Request", "", "");
        };
        let posts = self.posts.fetch_add(1, Ordering::Relaxed) + 1;
        let method = message.get("method").and_then(Value::as_str);
        let known = request.headers.contains_key("mcp-session-id");
        if self.server.plan.forget.is_some_and(|most| posts > most) && known {
            self.posts.store(0, Ordering::Relaxed);
            return plain(&mut stream, "404 Not Found", "", "");
        }
        if message.get("id").is_none() || method.is_none() {
            let out: Arc<dyn Out> = Arc::new(Nobody);
            self.server.take(&message, &out);
            return plain(&mut stream, "202 Accepted", "", "");
        }
        let headers = match method {
            Some("initialize") => format!("Mcp-Session-Id: s{}\r\n", self.next.fetch_add(1, Ordering::Relaxed)),
            _ => String::new(),
        };
        if self.server.plan.garbage {
            return plain(&mut stream, "200 OK", "Content-Type: application/json\r\n", "}{ this is no message");
        }
        let response = Arc::new(Response { stream: Mutex::new(Some(stream)), headers, events: Mutex::new(None) });
        let out: Arc<dyn Out> = Arc::<Response>::clone(&response);
        self.server.take(&message, &out);
        match lock(&response.events).as_ref() {
            Some(events) => events.close(),
            None => Ok(()),
        }
    }

    /// A stream for what concerns all listeners.
    fn listen(&self, stream: TcpStream) -> io::Result<()> {
        let events = Arc::new(Events::open(stream, "")?);
        self.server.listen(Arc::<Events>::clone(&events));
        linger(&events)
    }

    fn old_stream(&self, stream: TcpStream) -> io::Result<()> {
        let session = format!("s{}", self.next.fetch_add(1, Ordering::Relaxed));
        let events = Arc::new(Events::open(stream, "")?);
        lock(&self.streams).insert(session.clone(), Arc::clone(&events));
        self.server.listen(Arc::<Events>::clone(&events));
        let usual = format!("/messages?session={session}");
        events.event("endpoint", self.server.plan.endpoint.as_deref().unwrap_or(&usual))?;
        linger(&events)
    }

    fn old_message(&self, request: &Request, stream: &mut TcpStream) -> io::Result<()> {
        let session = request.path.split("session=").nth(1).unwrap_or_default();
        let events = lock(&self.streams).get(session).cloned();
        let (Some(events), Ok(message)) = (events, serde_json::from_slice::<Value>(&request.body)) else {
            return plain(stream, "404 Not Found", "", "");
        };
        plain(stream, "202 Accepted", "", "")?;
        let out: Arc<dyn Out> = events;
        self.server.take(&message, &out);
        Ok(())
    }
}

/// Holds a stream open until its reader is gone.
fn linger(events: &Events) -> io::Result<()> {
    loop {
        std::thread::sleep(BREATH);
        events.breathe()?;
    }
}

/// One response: a plain one if the answer is all there is to say, else a stream of events.
struct Response {
    stream: Mutex<Option<TcpStream>>,
    headers: String,
    events: Mutex<Option<Events>>,
}

impl Out for Response {
    fn send(&self, message: &Value) {
        let mut events = lock(&self.events);
        let last = message.get("method").is_none();
        if let (None, Some(mut stream)) = (events.as_ref(), lock(&self.stream).take()) {
            if last {
                let headers = format!("Content-Type: application/json\r\n{}", self.headers);
                let _ = plain(&mut stream, "200 OK", &headers, &message.to_string());
                return;
            }
            *events = Events::open(stream, &self.headers).ok();
        }
        if let Some(events) = events.as_ref() {
            events.send(message);
        }
    }
}

struct Nobody;

impl Out for Nobody {
    fn send(&self, _: &Value) {}
}

pub(crate) fn plain(stream: &mut TcpStream, status: &str, headers: &str, body: &str) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice())
}

fn read(input: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let body = body(input, &headers)?;
    Ok(Some(Request { method, path, headers, body }))
}

fn body(input: &mut BufReader<TcpStream>, headers: &HashMap<String, String>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        loop {
            let mut line = String::new();
            input.read_line(&mut line)?;
            let size = u64::from_str_radix(line.trim(), 16).unwrap_or_default();
            Read::by_ref(input).take(size).read_to_end(&mut body)?;
            input.read_line(&mut String::new())?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    let size = headers.get("content-length").and_then(|size| size.parse().ok()).unwrap_or(0);
    Read::by_ref(input).take(size).read_to_end(&mut body)?;
    Ok(body)
}
