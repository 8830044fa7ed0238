//! Servers for tests, and a look at processes from outside.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ollm_mcp::{
    BlockingClient, Bounds, Call, CallError, ClientContext, Endpoint, Ports, ReadyServer, ServerMemory, ServerNotice,
    ServerState, Settings, Timings, Watch,
};
use ollm_process::{Children, Limits};
use serde_json::{Map, Value, json};
pub(crate) use testkit::{PATIENCE, eventually, runs};

/// Settings with short pauses, and otherwise as ever.
pub(crate) fn settings() -> Settings {
    let timings = Timings {
        pause: Duration::from_millis(5),
        longest_pause: Duration::from_millis(20),
        parting: PATIENCE,
        ..Timings::default()
    };
    Settings { timings, bounds: Bounds { listing: PATIENCE, ..Bounds::default() }, ..Settings::default() }
}

pub(crate) fn fleet(settings: Settings, ports: Ports) -> BlockingClient {
    BlockingClient::new(Arc::new(ClientContext::new(settings, ports, Arc::new(Children::new())))).unwrap()
}

/// A server of any kind.
pub(crate) fn ready(name: &str, endpoint: Endpoint) -> ReadyServer {
    ReadyServer { connect_timeout: PATIENCE, tool_timeout: PATIENCE, ..ReadyServer::new(name, endpoint) }
}

/// A program as a server.
pub(crate) fn program(program: &str, args: &[&str]) -> ReadyServer {
    ready(
        "fake",
        Endpoint::Stdio {
            program: program.into(),
            args: args.iter().map(ToString::to_string).collect(),
            env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            cwd: None,
            limits: Limits { grace: Duration::from_millis(300), ..Limits::default() },
            program_box: None,
        },
    )
}

/// The scripted server in one of its moods.
pub(crate) fn scripted(mode: &str) -> ReadyServer {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/server.py");
    let python = ollm_process::find_program("python3", "/usr/local/bin:/usr/bin:/bin".as_ref()).unwrap();
    program(python.to_str().unwrap(), &[script.to_str().unwrap(), mode])
}

/// A fleet with one server, which is not started.
pub(crate) fn with(ready: ReadyServer) -> BlockingClient {
    let fleet = fleet(settings(), Ports::default());
    fleet.add(ready, ServerMemory::default());
    fleet
}

/// A fleet with the scripted server, started.
pub(crate) fn started(mode: &str) -> BlockingClient {
    let fleet = with(scripted(mode));
    fleet.start("fake").unwrap();
    fleet
}

pub(crate) fn state(fleet: &BlockingClient) -> ServerState {
    fleet.server("fake").unwrap().status().state
}

pub(crate) fn names(fleet: &BlockingClient) -> Vec<String> {
    let tools = fleet.server("fake").unwrap().tools();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn args(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(args) => args,
        other => panic!("{other}"),
    }
}

pub(crate) fn tool(name: &str, value: Value) -> Call {
    Call { tool: name.to_owned(), args: args(value), ..Call::default() }
}

pub(crate) fn call(fleet: &BlockingClient, name: &str, value: Value) -> Result<Value, CallError> {
    fleet.call("fake", tool(name, value)).unwrap().wait()
}

/// The text of a result that is one text.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[track_caller]
pub(crate) fn assert_echoes(fleet: &BlockingClient) {
    let result = call(fleet, "echo", json!({"word": "é", "number": 1.5})).unwrap();
    assert_eq!(result["structuredContent"], json!({"word": "é", "number": 1.5}));
}

/// Keeps what it hears.
#[derive(Default)]
pub(crate) struct Ear(pub(crate) Mutex<Vec<ServerNotice>>);

impl Watch for Ear {
    fn notice(&self, _: &str, notice: &ServerNotice) {
        self.0.lock().unwrap().push(notice.clone());
    }
}

impl Ear {
    pub(crate) fn heard(&self) -> Vec<ServerNotice> {
        self.0.lock().unwrap().clone()
    }
}
