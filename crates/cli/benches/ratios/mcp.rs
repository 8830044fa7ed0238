//! MCP: calls through our fleet beside the bare SDK and the SDKs of other languages, all on one server; what a client
//! takes of processor and memory; and what servers cost those who need none.

mod client;
mod peers;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Map, Value, json};
use testkit::{RemoteServer, mcp_server};

pub(crate) use self::client::client;
use self::peers::{Peer, peers};
use crate::lab::{Lab, cli, start};
use crate::measure::{self, Case};

/// The word that makes this program a client.
pub(crate) const CLIENT: &str = "mcp-client";
const ROUNDS: usize = 15;
/// Calls of one round.
const CALLS: usize = 1024;
/// Servers beside the first one whose memory is looked at.
const FURTHER: u32 = 20;

pub(crate) fn mcp(lab: &Lab) {
    let peers = peers();
    println!("best of {ROUNDS} rounds of {CALLS} calls, the clients in turn; times in µs per call");
    for (transport, added) in [("stdio", 30.0), ("http", 60.0)] {
        calls(transport, added, &peers);
    }
    memory(lab);
    measure::table(unneeded(lab));
}

/// One client and what its best rounds were.
struct Contestant {
    name: &'static str,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    one: Best,
    many: Best,
}

/// The least that a round took.
#[derive(Clone, Copy)]
struct Best {
    time: f64,
    processor: f64,
}

impl Best {
    const NONE: Best = Best { time: f64::MAX, processor: f64::MAX };

    fn take(&mut self, round: Best) {
        self.time = self.time.min(round.time);
        self.processor = self.processor.min(round.processor);
    }
}

impl Contestant {
    fn start(name: &'static str, program: &Path, words: &[&str]) -> Contestant {
        let mut command = Command::new(program);
        // One of the others warns of itself with every call.
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut contestant = Contestant { name, child, input, output, one: Best::NONE, many: Best::NONE };
        contestant.answer();
        contestant
    }

    fn ours(name: &'static str, words: &[&str]) -> Contestant {
        let words: Vec<&str> = std::iter::once(CLIENT).chain(words.iter().copied()).collect();
        Contestant::start(name, &std::env::current_exe().unwrap(), &words)
    }

    fn compete(&mut self) {
        let (one, many) = (self.round("one"), self.round("many"));
        self.one.take(one);
        self.many.take(many);
    }

    fn round(&mut self, what: &str) -> Best {
        let before = processor(self.child.id());
        writeln!(self.input, "{what} {CALLS}").unwrap();
        let time = self.answer();
        let calls = f64::from(u32::try_from(CALLS).unwrap());
        Best { time, processor: (processor(self.child.id()) - before) / calls }
    }

    fn answer(&mut self) -> f64 {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().parse().unwrap()
    }
}

impl Drop for Contestant {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn calls(transport: &str, added: f64, peers: &[Peer]) {
    let remote = (transport == "http").then(|| RemoteServer::start(&["--http"]).unwrap());
    let server = mcp_server().to_str().unwrap();
    let target = remote.as_ref().map_or(server, |remote| remote.url.as_str());
    let mut all = vec![
        Contestant::ours("ours", &["fleet", transport, target]),
        Contestant::ours("bare rmcp", &["bare", transport, target]),
    ];
    for peer in peers {
        match &peer.program {
            Ok([program, script]) => {
                all.push(Contestant::start(peer.name, program, &[script.to_str().unwrap(), transport, target]));
            }
            Err(why) => println!("{} is not measured, it could not be installed: {why}", peer.name),
        }
    }
    (0..ROUNDS).for_each(|_| all.iter_mut().for_each(Contestant::compete));
    report(transport, added, &all);
}

fn report(transport: &str, added: f64, all: &[Contestant]) {
    let at_once = format!("{} at once", client::AT_ONCE);
    println!("\n{transport:<16} {:>8} {:>12} {:>9} {:>13} {:>6}", "one", at_once, "CPU one", "CPU at once", "MiB");
    for who in all {
        let (one, many, memory) = (who.one, who.many, resident(who.child.id()));
        println!(
            "{:<16} {:>8.1} {:>12.1} {:>9.1} {:>13.1} {memory:>6.1}",
            who.name, one.time, many.time, one.processor, many.processor
        );
    }
    let [ours, bare, others @ ..] = all else { return };
    println!("\n{:<56} {:>7} {:>7}", "case", "value", "target");
    for (rival, target) in std::iter::once((bare, 1.25)).chain(others.iter().map(|other| (other, 1.0))) {
        row(&format!("{transport}, p50 of one call: ours / {}", rival.name), ours.one.time / rival.one.time, target);
        row(&format!("{transport}, {at_once}: ours / {}", rival.name), ours.many.time / rival.many.time, target);
    }
    let more = |ours: Best, bare: Best| ours.processor - bare.processor;
    row(&format!("{transport}, µs of CPU added to a call"), more(ours.one, bare.one), added);
    row(&format!("{transport}, µs of CPU added, {at_once}"), more(ours.many, bare.many), added);
}

fn memory(lab: &Lab) {
    println!("\n{:<56} {:>7} {:>7}", "case", "value", "target");
    let server = mcp_server().to_str().unwrap();
    let used = |further: u32| {
        let mut client = Contestant::ours("ours", &["fleet", "stdio", server, &further.to_string()]);
        client.compete();
        resident(client.child.id())
    };
    let (one, all) = (used(0), used(FURTHER));
    row("MiB of a client with one server", one, 15.0);
    row("MiB for each further server", (all - one) / f64::from(FURTHER), 1.0);
    row("MiB of `ollm mcp call` while its server works", program(lab), 15.0);
}

/// The memory of the program itself while it waits for a slow call.
fn program(lab: &Lab) -> f64 {
    let home = home(lab, "calling", 1);
    let words = ["mcp", "call", "server-0", "slow", "--args", r#"{"ms": 2000}"#];
    let mut child = start(&lab.ollm, &words, Some(&home));
    let mut most = 0.0_f64;
    while child.try_wait().unwrap().is_none() {
        most = most.max(resident(child.id()));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(child.wait().unwrap().success());
    most
}

/// Commands that need no server, with and without servers that are declared.
fn unneeded(lab: &Lab) -> Vec<Case> {
    let ollm = lab.ollm.clone();
    let (none, twenty, configured) = (home(lab, "none", 0), home(lab, "twenty", 20), configured(lab, 20));
    let event = json!({"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": "ls"}}}).to_string();
    let case = |name, words: &[&'static str], home: &Path, input: &str| Case {
        name,
        target: 1.05,
        floor: cli(&ollm, words, &none, input),
        run: cli(&ollm, words, home, input),
    };
    vec![
        case("ollm --version, 20 servers declared / none", &["--version"], &twenty, ""),
        case("ollm hook list, 20 servers declared / none", &["hook", "list"], &twenty, ""),
        case("ollm hook run, 20 servers declared / none", &["hook", "run"], &twenty, &event),
        case("ollm hook run, 20 servers in config.yaml / none", &["hook", "run"], &configured, &event),
    ]
}

/// A home with so many servers, none of which runs, in a file of their own.
fn home(lab: &Lab, name: &str, servers: usize) -> PathBuf {
    let home = lab.root.join(format!("mcp-{name}"));
    fs::create_dir_all(home.join(".ollm/settings")).unwrap();
    fs::write(home.join(".ollm/config.yaml"), "hooks:\n  enabled: true\n").unwrap();
    if servers > 0 {
        let file = json!({"mcpServers": declared(servers)}).to_string();
        fs::write(home.join(".ollm/settings/mcp.json"), file).unwrap();
    }
    home
}

/// The same with the servers in the configuration, of which every YAML reader reads JSON too.
fn configured(lab: &Lab, servers: usize) -> PathBuf {
    let home = home(lab, "configured", 0);
    let text = format!("hooks:\n  enabled: true\nmcp:\n  servers: {}\n", json!(declared(servers)));
    fs::write(home.join(".ollm/config.yaml"), text).unwrap();
    home
}

fn declared(servers: usize) -> Map<String, Value> {
    (0..servers).map(|number| (format!("server-{number}"), json!({"command": mcp_server()}))).collect()
}

fn row(name: &str, value: f64, target: f64) {
    let mark = if value <= target { " " } else { "!" };
    println!("{name:<56} {value:>7.2} {target:>7.2} {mark}");
}

/// Microseconds that all threads of a process have run.
fn processor(process: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let time = |path: PathBuf| -> Option<f64> {
        fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    threads.filter_map(|thread| time(thread.path())).sum::<f64>() / 1e3
}

/// Mebibytes of a process that are in memory.
fn resident(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0.0) / 1024.0
}
