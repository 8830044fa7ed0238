//! A model's server that speaks real HTTP and server-sent events, well or badly on demand.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// A server on the loopback that gives a scripted reply to each request.
#[derive(Debug)]
pub struct ModelServer {
    url: String,
    seen: Arc<Mutex<Vec<Asked>>>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The path.
    pub path: String,
    /// The header lines, with names in small letters.
    pub headers: Vec<(String, String)>,
    /// The value of the `Authorization` header.
    pub authorization: Option<String>,
    /// The body, as JSON.
    pub body: Value,
    /// The port it came from, by which connections are told apart.
    pub connection: u16,
}

/// How the server replies.
#[derive(Clone, Debug)]
pub enum ModelReply {
    /// The status, more header lines, and the body, written in these pieces with a flush after each.
    Pieces {
        /// The HTTP status.
        status: u16,
        /// Header lines, without their line ends.
        headers: Vec<String>,
        /// The body.
        pieces: Vec<Vec<u8>>,
        /// How it ends.
        end: ModelReplyEnd,
    },
    /// The connection is closed without an answer.
    Nothing,
}

/// How a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelReplyEnd {
    /// In order.
    Whole,
    /// In the middle: the connection is closed before the last chunk.
    Dropped,
    /// Not at all: the connection stays open and silent.
    Hanging,
}

impl ModelReply {
    /// A whole stream of these events, cut into pieces of `size` bytes.
    pub fn stream(events: &[Value], size: usize) -> ModelReply {
        let mut text = String::from(": keep-alive\n\n");
        for event in events {
            text.push_str("data: ");
            text.push_str(&event.to_string());
            text.push_str("\n\n: still here\n\n");
        }
        text.push_str("data: [DONE]\n\n");
        ModelReply::bytes(text.as_bytes(), size, ModelReplyEnd::Whole)
    }

    /// An event stream of these bytes, cut into pieces of `size` bytes.
    pub fn bytes(bytes: &[u8], size: usize, end: ModelReplyEnd) -> ModelReply {
        let pieces = bytes.chunks(size.max(1)).map(<[u8]>::to_vec).collect();
        ModelReply::Pieces { status: 200, headers: vec!["Content-Type: text/event-stream".to_owned()], pieces, end }
    }

    /// A JSON body.
    pub fn json(status: u16, body: &Value) -> ModelReply {
        let headers = vec!["Content-Type: application/json".to_owned()];
        let pieces = vec![body.to_string().into_bytes()];
        ModelReply::Pieces { status, headers, pieces, end: ModelReplyEnd::Whole }
    }

    /// Lines of JSON, as Ollama streams them, cut into pieces of `size` bytes.
    pub fn lines(lines: &[Value], size: usize) -> ModelReply {
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
        let pieces = text.as_bytes().chunks(size.max(1)).map(<[u8]>::to_vec).collect();
        let headers = vec!["Content-Type: application/x-ndjson".to_owned()];
        ModelReply::Pieces { status: 200, headers, pieces, end: ModelReplyEnd::Whole }
    }

    /// The same with one more header line.
    #[must_use]
    pub fn header(mut self, line: &str) -> ModelReply {
        if let ModelReply::Pieces { headers, .. } = &mut self {
            headers.push(line.to_owned());
        }
        self
    }
}

/// The events of an answer with this text, in fragments of `size` characters, and these calls.
pub fn answer_events(text: &str, calls: &[(&str, &str, &str)], size: usize) -> Vec<Value> {
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let fragments = |text: &str| -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(size.max(1)).map(|chunk| chunk.iter().collect()).collect()
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    events.extend(fragments(text).into_iter().map(|text| delta(json!({"content": text}))));
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        let head = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        events.push(delta(json!({"tool_calls": [head]})));
        for fragment in fragments(arguments) {
            events.push(delta(json!({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})));
        }
    }
    let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
    events.push(json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}));
    events
}

impl ModelServer {
    /// Starts a server that gives these replies in order to what is posted; further requests are refused with 500.
    /// Requests for information about the server get a 404.
    pub fn start(replies: Vec<ModelReply>) -> io::Result<ModelServer> {
        let replies = Mutex::new(VecDeque::from(replies));
        ModelServer::answering(move |asked| if asked.body.is_null() { None } else { lock(&replies).pop_front() })
    }

    /// Starts a server that replies to each request as this says; without a reply it is refused with 500.
    pub fn answering(reply: impl Fn(&Asked) -> Option<ModelReply> + Send + Sync + 'static) -> io::Result<ModelServer> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&seen);
        let reply = Arc::new(reply);
        // It ends with the process of the test.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (reply, asked) = (Arc::clone(&reply), Arc::clone(&asked));
                thread::spawn(move || serve(&stream, &*reply, &asked));
            }
        });
        Ok(ModelServer { url, seen })
    }

    /// Its base address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its address without a path.
    pub fn origin(&self) -> &str {
        self.url.trim_end_matches("/v1")
    }

    /// What it was asked so far; questions about the server itself count where they were answered.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.seen).clone()
    }
}

/// Serves a connection until one side closes it.
fn serve(stream: &TcpStream, reply: &dyn Fn(&Asked) -> Option<ModelReply>, seen: &Mutex<Vec<Asked>>) -> io::Result<()> {
    let connection = stream.peer_addr()?.port();
    while let Some(asked) = request(stream, connection)? {
        let reply = match reply(&asked) {
            None if asked.body.is_null() => Some(ModelReply::json(404, &json!({}))),
            reply => {
                lock(seen).push(asked);
                reply
            }
        };
        if !answer(stream, reply)? {
            break;
        }
    }
    Ok(())
}

/// Writes a reply; says whether the connection stays open.
fn answer(stream: &TcpStream, reply: Option<ModelReply>) -> io::Result<bool> {
    let mut out = stream;
    match reply {
        None => {
            out.write_all(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
            Ok(false)
        }
        Some(ModelReply::Nothing) => Ok(false),
        Some(ModelReply::Pieces { status, headers, pieces, end }) => {
            let mut head = format!("HTTP/1.1 {status} Status\r\nTransfer-Encoding: chunked\r\n");
            for line in headers {
                head.push_str(&line);
                head.push_str("\r\n");
            }
            out.write_all(format!("{head}\r\n").as_bytes())?;
            for piece in pieces {
                out.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
                out.write_all(&piece)?;
                out.write_all(b"\r\n")?;
                out.flush()?;
            }
            match end {
                ModelReplyEnd::Whole => out.write_all(b"0\r\n\r\n").map(|()| true),
                ModelReplyEnd::Dropped => Ok(false),
                ModelReplyEnd::Hanging => hang(stream).map(|()| false),
            }
        }
    }
}

/// Holds the connection until the other side closes it, or for a minute.
fn hang(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_mins(1)))?;
    let mut stream = stream;
    let _ = stream.read(&mut [0; 1]);
    Ok(())
}

/// The next request; nothing at the end of the connection.
fn request(stream: &TcpStream, connection: u16) -> io::Result<Option<Asked>> {
    // A client sends nothing before it has the reply, so the buffer holds one request at most.
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let (mut length, mut authorization, mut headers) = (0, None, Vec::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "authorization" => authorization = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(Some(Asked { path, headers, authorization, body, connection }))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
