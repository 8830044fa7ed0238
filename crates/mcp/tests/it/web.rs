//! A small web server on this machine that answers as a test says.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// With names in small letters.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What is answered.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Body,
}

pub(crate) enum Body {
    Whole(Vec<u8>),
    /// Pieces until the sender is gone.
    Stream(std::sync::mpsc::Receiver<String>),
}

impl Response {
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::Whole(Vec::new()) }
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self { body: Body::Whole(value.to_string().into_bytes()), ..Self::empty(200) }
            .with("content-type", "application/json")
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A running web server; its thread lasts as long as the test program.
pub(crate) struct Web {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Web {
    pub(crate) fn start(answer: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (answer, seen) = (Arc::new(answer), Arc::new(Mutex::new(Vec::new())));
        let noted = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, noted) = (Arc::clone(&answer), Arc::clone(&noted));
                thread::spawn(move || serve(&stream, &*answer, &noted));
            }
        });
        Self { url, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, answer: &dyn Fn(&Request) -> Response, noted: &Mutex<Vec<Request>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let request = read(&mut reader)?;
        noted.lock().unwrap().push(request.clone());
        write(stream, answer(&request)).ok()?;
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, headers, body })
}

fn write(mut stream: &TcpStream, response: Response) -> io::Result<()> {
    let headers = response.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let head = format!("HTTP/1.1 {} X\r\n{}", response.status, headers.collect::<Vec<_>>().concat());
    match response.body {
        Body::Whole(body) => {
            stream.write_all(format!("{head}content-length: {}\r\n\r\n", body.len()).as_bytes())?;
            stream.write_all(&body)
        }
        Body::Stream(pieces) => {
            stream.write_all((head + "transfer-encoding: chunked\r\n\r\n").as_bytes())?;
            for piece in pieces {
                stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes())?;
            }
            stream.write_all(b"0\r\n\r\n")
        }
    }
}
