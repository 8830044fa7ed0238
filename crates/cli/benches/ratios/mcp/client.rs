//! Our two clients, each in a process of its own so that its time and memory are its own: `fleet` is what the agent
//! uses, `bare` has nothing but the SDK. Each line of input is a round to run.

use std::io::{BufRead, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use ollm_mcp::{
    BlockingClient, Call, ClientContext, Endpoint, Ports, ReadyServer, ServerMemory, Settings, read_result,
};
use ollm_process::{Children, Limits};
use rmcp::model::{CallToolRequestParams, ClientConfig, ProtocolVersion};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Map, Value, json};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::measure::median;

/// Calls that are made at once.
pub(super) const AT_ONCE: usize = 32;
/// Calls before anything is measured.
const WARM_UP: usize = 50;
/// How often a waiting client looks for news, as the agent does.
const GLANCE: Duration = Duration::from_millis(20);

/// What a client can be asked for; the answer is the time of one call.
trait Caller {
    fn one(&self, calls: usize) -> Duration;
    fn many(&self, calls: usize) -> Duration;
}

/// The life of a client: `fleet|bare stdio|http TARGET [FURTHER SERVERS]`.
pub(crate) fn client(words: &[String]) {
    let [who, transport, target, more @ ..] = words else { return };
    let further = more.first().map_or(0, |count| count.parse().unwrap());
    match who.as_str() {
        "fleet" => rounds(&Ours::connect(transport, target, further)),
        _ => rounds(&Bare::connect(transport, target)),
    }
}

fn rounds(caller: &impl Caller) {
    caller.one(WARM_UP);
    tell(Duration::ZERO);
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let (what, calls) = line.split_once(' ').unwrap();
        let calls = calls.parse().unwrap();
        tell(if what == "one" { caller.one(calls) } else { caller.many(calls) });
    }
}

fn tell(time: Duration) {
    println!("{}", time.as_secs_f64() * 1e6);
    std::io::stdout().flush().unwrap();
}

fn args() -> Map<String, Value> {
    Map::from_iter([("text".to_owned(), json!("hello"))])
}

struct Ours(BlockingClient);

impl Ours {
    fn connect(transport: &str, target: &str, further: usize) -> Ours {
        let context = ClientContext::new(Settings::default(), Ports::default(), Arc::new(Children::new()));
        let fleet = BlockingClient::new(Arc::new(context)).unwrap();
        fleet.add(ready("bench", transport, target), ServerMemory::default());
        fleet.start("bench").unwrap();
        for number in 0..further {
            let name = format!("bench-{number}");
            fleet.add(ready(&name, transport, target), ServerMemory::default());
            fleet.start(&name).unwrap();
            call(&fleet, &name)();
        }
        Ours(fleet)
    }
}

fn ready(name: &str, transport: &str, target: &str) -> ReadyServer {
    let endpoint = if transport == "stdio" {
        let (args, env) = (Vec::new(), Vec::new());
        Endpoint::Stdio { program: target.into(), args, env, cwd: None, limits: Limits::default(), program_box: None }
    } else {
        Endpoint::Http { url: target.to_owned(), headers: Vec::new() }
    };
    ReadyServer::new(name, endpoint)
}

/// A call that is made now, and how to wait for it.
fn call(fleet: &BlockingClient, server: &str) -> impl FnOnce() + use<> {
    let pending = fleet.call(server, Call { tool: "echo".into(), args: args(), ..Call::default() }).unwrap();
    move || {
        let answer = std::iter::repeat_with(|| pending.wait_for(GLANCE)).find_map(|answer| answer).unwrap();
        assert!(!read_result(&answer.unwrap(), None).result.is_error);
    }
}

impl Caller for Ours {
    fn one(&self, calls: usize) -> Duration {
        let mut times: Vec<Duration> = Vec::with_capacity(calls);
        for _ in 0..calls {
            let start = Instant::now();
            call(&self.0, "bench")();
            times.push(start.elapsed());
        }
        median(&mut times)
    }

    fn many(&self, calls: usize) -> Duration {
        let start = Instant::now();
        for _ in 0..calls / AT_ONCE {
            let pending: Vec<_> = (0..AT_ONCE).map(|_| call(&self.0, "bench")).collect();
            for wait in pending {
                wait();
            }
        }
        start.elapsed() / u32::try_from(calls).unwrap()
    }
}

struct Bare {
    runtime: tokio::runtime::Runtime,
    service: RunningService<RoleClient, ClientConfig>,
    server: Option<Child>,
}

impl Bare {
    fn connect(transport: &str, target: &str) -> Bare {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let us = ClientConfig::default().with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
        let (service, server) = runtime.block_on(async {
            if transport == "http" {
                let config = StreamableHttpClientTransportConfig::with_uri(target).max_concurrent_requests(AT_ONCE);
                // By itself the SDK makes a connection for every call, which would be too easy to beat.
                let transport = StreamableHttpClientTransport::with_client(reqwest::Client::new(), config);
                return (us.serve(transport).await.unwrap(), None);
            }
            let mut server = Command::new(target).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let (input, output): (OwnedFd, OwnedFd) =
                (server.stdin.take().unwrap().into(), server.stdout.take().unwrap().into());
            let pipes = (Receiver::from_owned_fd(output).unwrap(), Sender::from_owned_fd(input).unwrap());
            (us.serve(pipes).await.unwrap(), Some(server))
        });
        runtime.block_on(service.list_all_tools()).unwrap();
        Bare { runtime, service, server }
    }

    async fn call(&self) {
        let call = CallToolRequestParams::new("echo").with_arguments(args());
        assert_ne!(self.service.call_tool(call).await.unwrap().is_error, Some(true));
    }
}

impl Caller for Bare {
    fn one(&self, calls: usize) -> Duration {
        self.runtime.block_on(async {
            let mut times: Vec<Duration> = Vec::with_capacity(calls);
            for _ in 0..calls {
                let start = Instant::now();
                self.call().await;
                times.push(start.elapsed());
            }
            median(&mut times)
        })
    }

    fn many(&self, calls: usize) -> Duration {
        self.runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..calls / AT_ONCE {
                join_all((0..AT_ONCE).map(|_| self.call())).await;
            }
            start.elapsed() / u32::try_from(calls).unwrap()
        })
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}
