//! Real agents from npm: told to ask us, refused, given another command, and left as they were. `scripts/real-agents.sh`
//! installs them and names the folder; where nobody did, there is nothing to test.

mod clients;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ollm_app::connect::TEST_EVENT;
use ollm_protocol::EventKind;
use ollm_protocol::dialect::AGENTS;
use ollm_protocol::dialect::agents::{Capabilities, Way};
use ollm_protocol::dialect::home::HOMES;
use serde_json::{Value, json};
use testkit::{Asked, ModelServer, ScriptedCall, reply_to_agent};

use crate::lab::{Lab, search_path};
use clients::{CLIENTS, PROMPT, RealClient, Surroundings};

/// How long an agent may take for a turn of two requests on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Why the hook refuses.
const REASON: &str = "the harbour is closed today";

/// What our hook has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Silent,
    Refuses,
    Rewrites,
    RefusesPrompt,
}

#[test]
fn gemini_cli_asks_us() {
    asks_us("gemini");
}

#[test]
fn codex_asks_us() {
    asks_us("codex");
}

#[test]
fn claude_code_asks_us() {
    asks_us("claude");
}

#[test]
fn qwen_code_asks_us() {
    asks_us("qwen");
}

#[test]
fn opencode_asks_us() {
    asks_us("opencode");
}

#[test]
fn copilot_cli_asks_us() {
    asks_us("copilot");
}

#[test]
fn droid_asks_us() {
    asks_us("droid");
}

#[test]
fn cline_asks_us() {
    asks_us("cline");
}

fn asks_us(id: &str) {
    let Some(folder) = std::env::var_os("OLLM_REAL_AGENTS").map(|folder| PathBuf::from(folder).join(id)) else {
        return;
    };
    let client = CLIENTS.iter().find(|client| client.id == id).unwrap();
    for case in [Case::Silent, Case::Refuses, Case::Rewrites, Case::RefusesPrompt] {
        try_case(client, &folder, case);
    }
}

fn try_case(client: &RealClient, folder: &Path, case: Case) {
    let id = client.id;
    let bin = folder.join("node_modules/.bin");
    let path = std::env::join_paths([bin.clone()].into_iter().chain(std::env::split_paths(search_path()))).unwrap();
    let lab = Lab::new().set("PATH", path.to_str().unwrap());
    let scratch = lab.root.join("scratch");
    fs::create_dir(&scratch).unwrap();
    let lab = lab.set("TMPDIR", scratch.to_str().unwrap());
    let call = ScriptedCall { tool: client.tool, arguments: (client.arguments)("touch first") };
    let server = ModelServer::answering(move |asked| reply_to_agent(asked, &call)).unwrap();
    let mut command = lab.program(bin.join(client.program).to_str().unwrap());
    (client.prepare)(&Surroundings { lab: &lab, server: &server, folder }, &mut command);
    let block = json!({"decision": "block", "reason": REASON});
    let modify = json!({"decision": "modify", "modified_args": {"command": "touch second"}});
    match case {
        Case::Silent => {}
        Case::Refuses => add_hook(&lab, "before_tool", &block),
        Case::Rewrites => add_hook(&lab, "before_tool", &modify),
        Case::RefusesPrompt => add_hook(&lab, "before_agent", &block),
    }

    let before = settings(&lab, id);
    let connected = lab.run(&["connect", id]);
    assert_eq!(connected.code, 0, "{id} {connected:?}");
    let told = settings(&lab, id);
    let said = run(&lab, command);
    let used = settings(&lab, id);
    let status = status(&lab, id);
    let events = lab.run(&["trace", "list", "--json", "-n", "1000"]).answer();
    let disconnected = lab.run(&["disconnect", id]);
    assert_eq!(disconnected.code, 0, "{id} {disconnected:?}");
    let left = settings(&lab, id);

    let what = format!("{id}, {case:?}\n{said}\n{}", conversation(&server.asked()));
    let ran = |name: &str| lab.project.join(name).exists();
    match case {
        Case::Silent => assert!(ran("first"), "the tool did not run: {what}"),
        Case::Refuses => {
            assert!(!ran("first"), "the refused tool ran: {what}");
            let is_told = server.asked().iter().any(|asked| asked.body.to_string().contains(REASON));
            assert_eq!(is_told, client.tells_reason, "whether the model is told the reason: {what}");
        }
        Case::Rewrites => {
            assert!(!ran("first"), "the original command ran: {what}");
            let can_rewrite = can(id, EventKind::BeforeTool, |can| can.modify);
            assert_eq!(ran("second"), can_rewrite, "whether the other command ran: {what}");
        }
        Case::RefusesPrompt => {
            let is_asked = events.as_array().unwrap().iter().any(|record| record["event"] == "before_agent");
            let can_refuse = is_asked && can(id, EventKind::BeforeAgent, |can| can.block);
            assert_eq!(ran("first"), !can_refuse, "whether the tool ran: {what}");
        }
    }
    assert!(status["connected"] == true && status["lastFired"].is_string(), "{status:#} {what}");
    assert_understood(&lab, &events, &what);
    if used == told {
        assert_eq!(left, before, "{id}");
    } else {
        assert_only_added(&before, &left);
    }
    lab.assert_nobody_is_left();
}

/// What an agent sends is read in our words: its session, its folder, its prompt and its command.
fn assert_understood(lab: &Lab, events: &Value, what: &str) {
    let of = |kind: &'static str| events.as_array().unwrap().iter().filter(move |record| record["event"] == kind);
    assert!(of("session_start").next().is_some(), "it told of no session: {events:#}");
    let unknown = of("custom").find(|record| record["subject"] != TEST_EVENT);
    assert_eq!(unknown, None, "we asked for events that we do not know: {what}");
    if let Some(call) = of("before_tool").next() {
        let told = (&call["data"]["args"]["command"], &call["cwd"]);
        assert_eq!(told, (&json!("touch first"), &json!(lab.project)), "{what}");
        assert!(call["session"].is_string(), "{call:#} {what}");
    }
    if let Some(first) = of("before_agent").next() {
        assert!(first["data"]["prompt"].as_str().is_some_and(|prompt| prompt.contains(PROMPT)), "{first:#} {what}");
    }
}

/// A hook of the user's with this answer.
fn add_hook(lab: &Lab, event: &str, answer: &Value) {
    lab.user_hook(event, "gate", &format!("echo '{answer}'"), "");
}

/// Whether an agent can be told something at an event, by our own table.
fn can(id: &str, kind: EventKind, what: fn(&Capabilities) -> Way) -> bool {
    let dialect = AGENTS.iter().find(|dialect| dialect.name == id).unwrap();
    dialect.events.iter().any(|event| event.kind == kind && what(&event.can).is_possible())
}

/// Runs an agent to its end, and what it said.
fn run(lab: &Lab, mut command: Command) -> String {
    let said = lab.root.join("said");
    let file = File::create(&said).unwrap();
    command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    let end = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.to_string(),
            None if start.elapsed() > PATIENCE => break "it did not end".to_owned(),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    // Some leave a helper for their next start.
    for left in lab.processes() {
        let pid = left.split(':').next().unwrap();
        let _ = Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status();
    }
    let _ = child.wait();
    format!("{end}\n{}", String::from_utf8_lossy(&fs::read(&said).unwrap()))
}

fn status(lab: &Lab, id: &str) -> Value {
    let listed = lab.run(&["connect", "--json"]).answer();
    let found = listed.as_array().unwrap().iter().find(|agent| agent["id"] == id);
    found.unwrap().clone()
}

/// The files of an agent in which our entries stand, with their texts.
fn settings(lab: &Lab, id: &str) -> BTreeMap<PathBuf, String> {
    let place = lab.home.join(HOMES.iter().find(|home| home.id == id).unwrap().user);
    let inside = fs::read_dir(&place).map(|entries| entries.map(|entry| entry.unwrap().path()).collect());
    let files = inside.unwrap_or_else(|_| vec![place]);
    files.into_iter().filter_map(|file| fs::read_to_string(&file).ok().map(|text| (file, text))).collect()
}

/// The agent wrote to its own settings: what was there is there still, and our entries are not.
fn assert_only_added(before: &BTreeMap<PathBuf, String>, left: &BTreeMap<PathBuf, String>) {
    for (file, text) in left {
        assert!(!text.contains("hook run"), "{} {text}", file.display());
    }
    for (file, text) in before {
        let (old, new): (Value, Value) =
            (serde_json::from_str(text).unwrap(), serde_json::from_str(&left[file]).unwrap());
        for (key, value) in old.as_object().unwrap() {
            assert_eq!(&new[key], value, "{}: {key}", file.display());
        }
    }
}

/// What the model was asked, for a person who looks for the cause.
fn conversation(asked: &[Asked]) -> String {
    let line = |asked: &Asked| {
        let body = asked.body.to_string();
        let end: String = body.chars().rev().take(1500).collect::<Vec<_>>().into_iter().rev().collect();
        format!("{} {} bytes …{end}", asked.path, body.len())
    };
    asked.iter().map(line).collect::<Vec<_>>().join("\n")
}
