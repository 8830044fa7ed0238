//! What a call costs beside the bare SDK: `cargo run --release -p ollm-mcp --example call_cost`.
//!
//! All clients speak to the same small server, in turns; the best round of each counts.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement is told on a terminal, or fails loudly")]

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ollm_mcp::{Call, Context, Declaration, Endpoint, Filter, Fleet, Memory, Ports, Server, Settings};
use ollm_process::{Children, Job, Limits};
use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, ClientConfig, ProtocolVersion};
use serde_json::{Map, Value, json};
use tokio::net::unix::pipe::{Receiver, Sender};

const ROUNDS: usize = 5;
const CALLS: usize = 2000;
const AT_ONCE: usize = 32;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut best = [[Duration::MAX; 2]; 3];
    for _ in 0..ROUNDS {
        let round = [runtime.block_on(bare()), runtime.block_on(server()), fleet()];
        for (best, round) in best.iter_mut().zip(round) {
            for (best, time) in best.iter_mut().zip(round) {
                *best = time.min(*best);
            }
        }
    }
    let [[base, base_many], ..] = best;
    for (name, [one, many]) in ["bare SDK", "Server::call", "Fleet::call"].iter().zip(best) {
        let ratio = |time: Duration, base: Duration| time.as_secs_f64() / base.as_secs_f64();
        println!(
            "{name:<13} one at a time: p50 {one:>9.1?} ({:.2}×)   {AT_ONCE} at once: {many:>9.1?} each ({:.2}×)",
            ratio(one, base),
            ratio(many, base_many)
        );
    }
}

fn args() -> Map<String, Value> {
    Map::from_iter([("text".to_owned(), json!("hello"))])
}

/// The client that has nothing but the SDK.
async fn bare() -> [Duration; 2] {
    let program = std::env::current_exe().unwrap();
    let mut resident = Children::new().start(&Job { args: vec!["serve".into()], ..Job::new(program) }).unwrap();
    let streams = resident.streams().unwrap();
    let pipes = (Receiver::from_owned_fd(streams.stdout).unwrap(), Sender::from_owned_fd(streams.stdin).unwrap());
    let us = ClientConfig::default().with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
    let client = us.serve(pipes).await.unwrap();
    let call = || client.call_tool(CallToolRequestParams::new("echo").with_arguments(args()));
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = Instant::now();
        call().await.unwrap();
        times.push(start.elapsed());
    }
    let start = Instant::now();
    for _ in 0..CALLS / AT_ONCE {
        futures_util::future::join_all((0..AT_ONCE).map(|_| call())).await;
    }
    [median(times), each(start)]
}

/// Our client, for those who have a runtime.
async fn server() -> [Duration; 2] {
    let server = Server::new(context(), declaration(), Memory::default());
    server.start().await.unwrap();
    let call = || server.call(Call { tool: "echo".into(), args: args(), ..Call::default() });
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = Instant::now();
        call().await.unwrap();
        times.push(start.elapsed());
    }
    let start = Instant::now();
    for _ in 0..CALLS / AT_ONCE {
        futures_util::future::join_all((0..AT_ONCE).map(|_| call())).await;
    }
    [median(times), each(start)]
}

/// Our client, for those who have none.
fn fleet() -> [Duration; 2] {
    let fleet = Fleet::new(context()).unwrap();
    fleet.add(declaration(), Memory::default());
    fleet.start("echo").unwrap();
    let call = || fleet.call("echo", Call { tool: "echo".into(), args: args(), ..Call::default() }).unwrap();
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = Instant::now();
        call().wait().unwrap();
        times.push(start.elapsed());
    }
    let start = Instant::now();
    for _ in 0..CALLS / AT_ONCE {
        let pending: Vec<_> = (0..AT_ONCE).map(|_| call()).collect();
        for call in pending {
            call.wait().unwrap();
        }
    }
    [median(times), each(start)]
}

fn context() -> Arc<Context> {
    Arc::new(Context::new(Settings::default(), Ports::default(), Arc::new(Children::new())))
}

fn declaration() -> Declaration {
    Declaration {
        name: "echo".into(),
        endpoint: Endpoint::Stdio {
            program: std::env::current_exe().unwrap(),
            args: vec!["serve".into()],
            env: Vec::new(),
            cwd: None,
            limits: Limits::default(),
        },
        connect_timeout: Duration::from_secs(10),
        tool_timeout: Duration::from_mins(1),
        enabled: true,
        lazy: false,
        auto_restart: false,
        tools: Filter::default(),
        hidden: Vec::new(),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn each(start: Instant) -> Duration {
    start.elapsed() / u32::try_from(CALLS / AT_ONCE * AT_ONCE).unwrap_or(u32::MAX)
}

/// A server that costs next to nothing.
fn serve() {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap();
        let Some(id) = message.get("id") else { continue };
        let result = match message.get("method").and_then(Value::as_str) {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
            Some("tools/call") => json!({"content": [{"type": "text", "text": "hello"}]}),
            _ => json!({}),
        };
        writeln!(out, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result})).unwrap();
        out.flush().unwrap();
    }
}
