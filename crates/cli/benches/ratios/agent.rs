//! The agent host: its own CPU per turn, memory over many turns, and how fast the first words of a model are seen.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::lab::Lab;
use crate::measure::median;

const OLLM: &str = env!("CARGO_BIN_EXE_ollm");
const ROUNDS: usize = 5;
/// The most CPU of our own that a turn may cost.
const CPU: Duration = Duration::from_micros(500);
/// The most that memory may have grown after a thousand turns.
const GROWTH: f64 = 1.25;
const TALKS: usize = 40;
/// How much longer than the program `curl`, on the same server, we may take to show the first words.
const FIRST: f64 = 1.1;

/// The turns of a chat after which it is looked at.
const LOOKS: [usize; 4] = [1, 100, 900, 1000];

/// What a process has used up.
#[derive(Clone, Copy)]
struct Look {
    cpu: Duration,
    /// In KiB.
    resident: u64,
}

pub(crate) fn agent(lab: &Lab) {
    println!("{:<56} {:>10} {:>10}", "measure", "value", "target");
    let chats: Vec<[Look; 4]> = (0..ROUNDS).map(|_| chat(lab)).collect();
    cpu(&chats, (0, 1), "own CPU per turn, turns 2 to 100");
    cpu(&chats, (2, 3), "own CPU per turn, turns 901 to 1,000");
    memory(&chats);
    first_words(lab);
    connections(lab);
}

/// CPU per turn between two looks, so that starting and ending do not count.
fn cpu(chats: &[[Look; 4]], (from, to): (usize, usize), what: &str) {
    let turns = u32::try_from(LOOKS[to] - LOOKS[from]).unwrap();
    let mut costs: Vec<Duration> =
        chats.iter().map(|looks| looks[to].cpu.saturating_sub(looks[from].cpu) / turns).collect();
    let cost = median(&mut costs);
    let mark = if cost <= CPU { " " } else { "!" };
    println!("{what:<56} {:>7} µs {:>7} µs {mark}", cost.as_micros(), CPU.as_micros());
}

/// Resident memory after a thousand turns, against that after a hundred.
fn memory(chats: &[[Look; 4]]) {
    let mut ratios: Vec<(f64, u64)> =
        chats.iter().map(|looks| (ratio(looks[3].resident, looks[1].resident), looks[3].resident)).collect();
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (ratio, size) = ratios[ratios.len() / 2];
    let mark = if ratio <= GROWTH { " " } else { "!" };
    println!("{:<56} {ratio:>10.2} {GROWTH:>10.2} {mark} ({size} KiB)", "memory after 1,000 turns / after 100");
}

#[expect(clippy::cast_precision_loss, reason = "sizes of processes")]
fn ratio(one: u64, other: u64) -> f64 {
    one as f64 / other as f64
}

/// A chat of a thousand turns with a written model, without hooks.
fn chat(lab: &Lab) -> [Look; 4] {
    let home = lab.root.join("agent-turns");
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&home).unwrap();
    let turns = LOOKS[LOOKS.len() - 1];
    let answer = |turn| format!("{{\"content\": \"answer {turn}, in a few more words than that\"}}\n");
    fs::write(home.join("talk.jsonl"), (1..=turns).map(answer).collect::<String>()).unwrap();
    let mut child = start(&home, &["chat", "--model", "replay:talk.jsonl"]);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut looks = Vec::new();
    for turn in 1..=turns {
        writeln!(input, "question {turn}, and a little about it").unwrap();
        let (mut line, expected) = (String::new(), format!("answer {turn},"));
        while !line.starts_with(&expected) {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "the chat ended at turn {turn}");
        }
        if LOOKS.contains(&turn) {
            looks.push(look(&child));
        }
    }
    drop(input);
    output.read_to_string(&mut String::new()).unwrap();
    assert!(child.wait().unwrap().success());
    looks.try_into().ok().unwrap()
}

/// What a process has used up so far: the time of its threads on a processor, and its resident memory.
fn look(child: &Child) -> Look {
    let folder = PathBuf::from(format!("/proc/{}", child.id()));
    let threads = fs::read_dir(folder.join("task")).unwrap().flatten();
    let time = |thread: fs::DirEntry| -> u64 {
        let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0)
    };
    let status = fs::read_to_string(folder.join("status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let resident = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    Look { cpu: Duration::from_nanos(threads.map(time).sum()), resident }
}

fn start(home: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(OLLM);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.current_dir(home).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").spawn().unwrap()
}

/// When the first words of a model are seen: by us, by the program `curl` where it is there, and by a bare reader of the socket.
fn first_words(lab: &Lab) {
    let home = lab.root.join("agent-words");
    fs::create_dir_all(&home).unwrap();
    let has_curl = Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_ok_and(|ran| ran.success());
    let (mut ours, mut bare, mut curl) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TALKS {
        bare.push(first(|url| read_bare(&url)));
        ours.push(first(|url| read_by_run(&home, &url)));
        if has_curl {
            curl.push(first(|url| read_by_curl(&url)));
        }
    }
    against_curl("first words since the start, ours / curl", &ours, &curl, |one| one.after_start);
    against_curl("first words since the question, ours / curl", &ours, &curl, |one| one.after_question);
    println!(
        "{:<56} {:>7} µs {:>10}   (a bare reader of the socket: {} µs)",
        "first words of the model, from server to screen",
        middle(&ours, |one| one.from_server).as_micros(),
        "as it comes",
        middle(&bare, |one| one.from_server).as_micros()
    );
}

/// How much longer than `curl` we took, of both the median.
fn against_curl(what: &str, ours: &[FirstWords], curl: &[FirstWords], time: fn(&FirstWords) -> Duration) {
    if curl.is_empty() {
        println!("{what:<56} {:>10} {FIRST:>10.2}   (there is no program `curl` here)", "-");
        return;
    }
    let (our, other) = (middle(ours, time), middle(curl, time));
    let ratio = our.as_secs_f64() / other.as_secs_f64();
    let mark = if ratio <= FIRST { " " } else { "!" };
    let times = format!("({:.1} and {:.1} ms)", our.as_secs_f64() * 1000.0, other.as_secs_f64() * 1000.0);
    println!("{what:<56} {ratio:>10.3} {FIRST:>10.2} {mark} {times}");
}

fn middle(all: &[FirstWords], time: fn(&FirstWords) -> Duration) -> Duration {
    median(&mut all.iter().map(time).collect::<Vec<_>>())
}

/// How long the first words take to be seen.
struct FirstWords {
    /// After the program that reads them was started.
    after_start: Duration,
    /// After the server had read the question; it thinks for twenty milliseconds.
    after_question: Duration,
    /// From the moment it wrote them.
    from_server: Duration,
}

/// How long the first words take from a server to a reader, which says when it has seen them.
fn first(read: impl FnOnce(String) -> Instant) -> FirstWords {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, sent) = channel();
    let server = thread::spawn(move || serve(&listener, &sender));
    let started = Instant::now();
    let seen = read(url);
    let (asked, written) = (sent.recv().unwrap(), sent.recv().unwrap());
    server.join().unwrap();
    FirstWords {
        after_start: seen.saturating_duration_since(started),
        after_question: seen.saturating_duration_since(asked),
        from_server: seen.saturating_duration_since(written),
    }
}

const NOT_FOUND: &str = "HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}";
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
const WORDS: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn serve(listener: &TcpListener, sender: &Sender<Instant>) {
    loop {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        // Questions about the server itself come before the one that counts.
        while let Some(method) = request(&stream) {
            if method == "GET" {
                stream.write_all(NOT_FOUND.as_bytes()).unwrap();
                continue;
            }
            sender.send(Instant::now()).unwrap();
            stream.write_all(HEAD.as_bytes()).unwrap();
            // The reader has the head and waits.
            thread::sleep(Duration::from_millis(20));
            sender.send(Instant::now()).unwrap();
            stream.write_all(WORDS.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(20));
            stream.write_all(END.as_bytes()).unwrap();
            return;
        }
    }
}

/// Reads one request; gives its method, or nothing at the end of the connection.
fn request(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length, mut method) = (String::new(), 0, None);
    while reader.read_line(&mut line).ok().filter(|read| *read > 0)? > 2 {
        method = method.or_else(|| line.split(' ').next().map(str::to_owned));
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    method
}

/// How many connections a chat of some turns opens.
fn connections(lab: &Lab) {
    let home = lab.root.join("agent-connections");
    fs::create_dir_all(&home).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, opened) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            sender.send(()).unwrap();
            thread::spawn(move || answer_all(&stream));
        }
    });
    let mut child = start(&home, &["chat", "--model", &format!("openai:m@{url}")]);
    let mut input = child.stdin.take().unwrap();
    (0..TALKS).for_each(|turn| writeln!(input, "question {turn}").unwrap());
    drop(input);
    child.stdout.take().unwrap().read_to_string(&mut String::new()).unwrap();
    assert!(child.wait().unwrap().success());
    let count = opened.try_iter().count();
    let mark = if count <= 1 { " " } else { "!" };
    println!("{:<56} {count:>10} {:>10} {mark}", format!("connections for {TALKS} questions"), 1);
}

/// Answers every request of a connection.
fn answer_all(mut stream: &TcpStream) {
    stream.set_nodelay(true).unwrap();
    let body = format!("{WORDS}{END}");
    let answer =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    while let Some(method) = request(stream) {
        let reply = if method == "GET" { NOT_FOUND } else { &answer };
        if stream.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

fn read_bare(url: &str) -> Instant {
    let address = url.trim_start_matches("http://").trim_end_matches("/v1");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n").unwrap();
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    while !seen.windows(5).any(|window| window == b"Hello") {
        let count = stream.read(&mut buffer).unwrap();
        seen.extend_from_slice(&buffer[..count]);
    }
    let now = Instant::now();
    stream.read_to_end(&mut Vec::new()).unwrap();
    now
}

fn read_by_curl(url: &str) -> Instant {
    let mut command = Command::new("curl");
    command.args(["-q", "-sN", "--noproxy", "*", "-d", "{}", &format!("{url}/chat/completions")]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0; 5]).unwrap();
    let now = Instant::now();
    output.read_to_end(&mut Vec::new()).unwrap();
    child.wait().unwrap();
    now
}

fn read_by_run(home: &Path, url: &str) -> Instant {
    let mut child = start(home, &["run", "go", "--model", &format!("openai:m@{url}")]);
    drop(child.stdin.take());
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0; 5]).unwrap();
    let now = Instant::now();
    output.read_to_end(&mut Vec::new()).unwrap();
    assert!(child.wait().unwrap().success());
    now
}
