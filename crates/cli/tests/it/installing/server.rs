//! A web server on this machine that holds files, and can be told to misbehave.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// How a file is answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The bytes, with a mark by which they are known again.
    File(Vec<u8>),
    /// The length of the bytes is told, and only half of them come.
    Cut(Vec<u8>),
    /// Somewhere else.
    Redirect(String),
    /// A length is told, and the connection stays open without a word.
    Silence,
}

pub(crate) struct WebServer {
    address: SocketAddr,
    files: Arc<Mutex<HashMap<String, Answer>>>,
    /// The first line of each request, with the status that it got.
    asked: Arc<Mutex<Vec<String>>>,
}

impl WebServer {
    pub(crate) fn new() -> WebServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = WebServer { address, files: Arc::default(), asked: Arc::default() };
        let (files, asked) = (Arc::clone(&server.files), Arc::clone(&server.asked));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (files, asked) = (Arc::clone(&files), Arc::clone(&asked));
                thread::spawn(move || serve(client, &files, &asked));
            }
        });
        server
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub(crate) fn put(&self, path: &str, answer: Answer) {
        self.files.lock().unwrap().insert(format!("/{path}"), answer);
    }

    pub(crate) fn remove(&self, path: &str) {
        self.files.lock().unwrap().remove(&format!("/{path}"));
    }

    /// What was asked since the last time.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn serve(mut client: TcpStream, files: &Mutex<HashMap<String, Answer>>, asked: &Mutex<Vec<String>>) {
    let reader = BufReader::new(client.try_clone().unwrap());
    let head: Vec<String> = reader.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let header = |name: &str| {
        let found =
            head.iter().filter_map(|line| line.split_once(": ")).find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned())
    };
    let answer = files.lock().unwrap().get(&path).cloned();
    let known = header("if-none-match");
    let (status, head, body) = match answer {
        None => (404, String::new(), Vec::new()),
        Some(Answer::File(bytes)) if known == Some(mark(&bytes)) => (304, String::new(), Vec::new()),
        Some(Answer::File(bytes)) => {
            (200, format!("etag: {}\r\ncontent-length: {}\r\n", mark(&bytes), bytes.len()), bytes)
        }
        Some(Answer::Cut(bytes)) => {
            let half = bytes[..bytes.len() / 2].to_vec();
            (200, format!("content-length: {}\r\n", bytes.len()), half)
        }
        Some(Answer::Redirect(to)) => (302, format!("location: {to}\r\ncontent-length: 0\r\n"), Vec::new()),
        Some(Answer::Silence) => (200, "content-length: 1000\r\n".to_owned(), vec![0; 10]),
    };
    asked.lock().unwrap().push(format!("{status} {path}"));
    let _ = write!(client, "HTTP/1.1 {status} x\r\n{head}connection: close\r\n\r\n");
    let _ = client.write_all(&body);
    if matches!(files.lock().unwrap().get(&path), Some(Answer::Silence)) {
        // Until the other side gives up.
        let _ = std::io::copy(&mut client, &mut std::io::sink());
    }
}

/// What a server says of bytes so that they are known again.
fn mark(bytes: &[u8]) -> String {
    format!("\"{}\"", ollm_store::digest_bytes(bytes).hex())
}
