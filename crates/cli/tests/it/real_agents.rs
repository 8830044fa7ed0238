//! Real agents from npm: told to ask us, refused, given another command, and left as they were.
//! `scripts/real-agents.sh` installs them and names the folder; without it, there is nothing to test.

mod clients;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ollm_app::connect::TEST_EVENT;
use ollm_protocol::EventKind;
use ollm_protocol::dialect::agents::{Capabilities, Way};
use ollm_protocol::dialect::{AGENTS, agent_named};
use serde_json::{Value, json};
use testkit::{Asked, ModelServer, ScriptedCall, reply_to_agent};

use crate::lab::{Lab, OLLM, search_path};
use clients::{CLIENTS, PROMPT, RealClient, SERVER, Surroundings, Trial};

/// How long an agent may take for a turn of two requests on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Why the hook refuses.
const REASON: &str = "the harbour is closed today";

/// What our hook has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Silent,
    Refuses,
    /// It refuses, and the agent is told to ask us in this project only.
    RefusesInProject,
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
    for case in [Case::Silent, Case::Refuses, Case::RefusesInProject, Case::Rewrites, Case::RefusesPrompt] {
        try_case(client, &folder, case);
    }
    try_asking_twice(client, &folder);
    if !client.tools.is_empty() {
        try_tools(client, &folder);
    }
}

/// Hooks for our names of tools hear of each tool of an agent, with the file that it is about, and of a tool of a server.
fn try_tools(client: &RealClient, folder: &Path) {
    let id = client.id;
    let lab = lab_with(folder);
    lab.write("server.py", SERVER);
    let file = lab.project.join("a.txt");
    let call = |(tool, _, arguments): &Trial| ScriptedCall { tool, arguments: arguments(&file) };
    let calls: Vec<ScriptedCall> = client.tools.iter().map(call).collect();
    let server = ModelServer::answering(move |asked| reply_to_agent(asked, &calls)).unwrap();
    let mut command = lab.program(folder.join("node_modules/.bin").join(client.program).to_str().unwrap());
    (client.prepare)(&Surroundings { lab: &lab, server: &server, folder }, &mut command);
    (client.add_server)(&lab, &mut command);
    let heard = lab.root.join("heard");
    let named = client.tools.iter().map(|(_, name, _)| *name).filter(|name| !name.is_empty());
    for name in named.clone() {
        let matcher = format!(r#", "matcher": "{name}""#);
        lab.user_hook("before_tool", &name.replace('_', "-"), &format!("echo {name} >> {}", heard.display()), &matcher);
    }
    assert_eq!(lab.run(&["connect", id]).code, 0, "{id}");
    let said = run(&lab, command);
    let what = format!("{id}\n{said}\n{}", conversation(&server.asked()));
    let wanted: Vec<&str> = named.collect();
    assert_eq!(fs::read_to_string(&heard).unwrap_or_default().lines().collect::<Vec<_>>(), wanted, "{what}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "two\n", "{what}");
    let events = lab.run(&["trace", "list", "--json", "-n", "1000"]).answer();
    let named = |record: &&Value| record["event"] == "before_tool" && !record["data"]["args"]["path"].is_null();
    let paths: Vec<&Value> =
        events.as_array().unwrap().iter().filter(named).map(|record| &record["data"]["args"]["path"]).collect();
    assert!(paths.len() >= 2 && paths.iter().all(|path| **path == json!(file)), "{paths:?} {what}");
    lab.assert_nobody_is_left();
}

/// An agent that is told to ask for its user and in the project, and by every other agent's file that it reads, runs the hooks
/// of a call once, if it numbers its calls as we declare.
fn try_asking_twice(client: &RealClient, folder: &Path) {
    let id = client.id;
    let lab = lab_with(folder);
    let call = ScriptedCall { tool: client.tool, arguments: (client.arguments)("touch first") };
    let server = ModelServer::answering(move |asked| reply_to_agent(asked, std::slice::from_ref(&call))).unwrap();
    let mut command = lab.program(folder.join("node_modules/.bin").join(client.program).to_str().unwrap());
    (client.prepare)(&Surroundings { lab: &lab, server: &server, folder }, &mut command);
    let runs = lab.root.join("runs");
    lab.user_hook("before_tool", "count", &format!("echo ran >> {}", runs.display()), "");
    let agent = agent_named(id).unwrap();
    for arguments in [["connect", id].as_slice(), &["connect", id, "--project"]] {
        assert_eq!(lab.run(arguments).code, 0, "{id}");
    }
    for foreign in agent.home.also_reads {
        assert_eq!(lab.run(&["connect", foreign.agent, "--project"]).code, 0, "{id}");
    }
    assert_eq!(status(&lab, id)["duplicated"], true, "{id}");
    let said = run(&lab, command);
    let events = lab.run(&["trace", "list", "--json", "-n", "1000"]).answer();
    let asked = events.as_array().unwrap().iter().filter(|record| record["event"] == "before_tool");
    let asked: Vec<&Value> = asked.collect();
    let ran = fs::read_to_string(&runs).unwrap_or_default().lines().count();
    let what = format!("{id}\n{said}\n{asked:#?}");
    assert!(lab.project.join("first").exists() && !asked.is_empty(), "the tool did not run: {what}");
    let numbered = agent.stamps_events || agent.events.iter().any(|event| agent.numbers_calls_at(event));
    assert_eq!(ran, if numbered { 1 } else { asked.len() }, "how often the hook ran: {what}");
    for foreign in agent.home.also_reads {
        assert_eq!(status(&lab, foreign.agent)["lastFired"], Value::Null, "it is taken for another: {what}");
    }
    lab.assert_nobody_is_left();
}

fn try_case(client: &RealClient, folder: &Path, case: Case) {
    let id = client.id;
    let lab = lab_with(folder);
    let call = ScriptedCall { tool: client.tool, arguments: (client.arguments)("touch first") };
    let server = ModelServer::answering(move |asked| reply_to_agent(asked, std::slice::from_ref(&call))).unwrap();
    let mut command = lab.program(folder.join("node_modules/.bin").join(client.program).to_str().unwrap());
    (client.prepare)(&Surroundings { lab: &lab, server: &server, folder }, &mut command);
    add_hook(&lab, case);

    let before = settings(&lab, id, case);
    change_connection(&lab, "connect", id, case);
    let told = settings(&lab, id, case);
    let said = run(&lab, command);
    let used = settings(&lab, id, case);
    let status = status(&lab, id);
    let events = lab.run(&["trace", "list", "--json", "-n", "1000"]).answer();
    change_connection(&lab, "disconnect", id, case);
    let left = settings(&lab, id, case);

    let what = format!("{id}, {case:?}\n{said}\n{}", conversation(&server.asked()));
    assert_obeyed(client, case, &lab, &server, &what);
    assert!(status["connected"] == true && status["lastFired"].is_string(), "{status:#} {what}");
    assert_understood(client, &lab, &events, &what);
    if used == told {
        assert_eq!(left, before, "{id}");
    } else {
        assert_only_added(&before, &left);
    }
    lab.assert_nobody_is_left();
}

/// A lab in which the agent of a folder is found, and ours.
fn lab_with(folder: &Path) -> Lab {
    let own = [folder.join("node_modules/.bin"), Path::new(OLLM).parent().unwrap().to_owned()];
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(search_path()))).unwrap();
    let lab = Lab::new();
    let scratch = lab.root.join("scratch");
    fs::create_dir(&scratch).unwrap();
    lab.set("PATH", path.to_str().unwrap()).set("TMPDIR", scratch.to_str().unwrap())
}

/// The user's hook.
fn add_hook(lab: &Lab, case: Case) {
    let block = json!({"decision": "block", "reason": REASON});
    let (event, answer) = match case {
        Case::Silent => return,
        Case::Refuses | Case::RefusesInProject => ("before_tool", block),
        Case::Rewrites => ("before_tool", json!({"decision": "modify", "modified_args": {"command": "touch second"}})),
        Case::RefusesPrompt => ("before_agent", block),
    };
    lab.user_hook(event, "gate", &format!("echo '{answer}'"), "");
}

/// Connects or disconnects.
fn change_connection(lab: &Lab, verb: &str, id: &str, case: Case) {
    let scope: &[&str] = if case == Case::RefusesInProject { &["--project"] } else { &[] };
    let ran = lab.run(&[&[verb, id], scope].concat());
    assert_eq!(ran.code, 0, "{verb} {id}, {case:?} {ran:?}");
}

/// The agent did what our hook wanted.
fn assert_obeyed(client: &RealClient, case: Case, lab: &Lab, server: &ModelServer, what: &str) {
    let ran = |name: &str| lab.project.join(name).exists();
    match case {
        Case::Silent => assert!(ran("first"), "the tool did not run: {what}"),
        Case::Refuses | Case::RefusesInProject => {
            assert!(!ran("first"), "the refused tool ran: {what}");
            let is_told = server.asked().iter().any(|asked| asked.body.to_string().contains(REASON));
            assert_eq!(is_told, client.tells_reason, "whether the model is told the reason: {what}");
        }
        Case::Rewrites => {
            assert!(!ran("first"), "the original command ran: {what}");
            let can_rewrite = can(client.id, EventKind::BeforeTool, |can| can.modify);
            assert_eq!(ran("second"), can_rewrite, "whether the other command ran: {what}");
        }
        Case::RefusesPrompt => {
            let can_refuse = client.asks_at_prompt && can(client.id, EventKind::BeforeAgent, |can| can.block);
            assert_eq!(ran("first"), !can_refuse, "whether the tool ran: {what}");
        }
    }
}

/// What an agent sends is read in our words: its session, its folder, its prompt and its command.
fn assert_understood(client: &RealClient, lab: &Lab, events: &Value, what: &str) {
    let of = |kind: &'static str| events.as_array().unwrap().iter().filter(move |record| record["event"] == kind);
    assert!(of("session_start").next().is_some(), "it told of no session: {events:#}");
    let unknown = of("custom").find(|record| record["subject"] != TEST_EVENT);
    assert_eq!(unknown, None, "we asked for events that we do not know: {what}");
    if let Some(call) = of("before_tool").next() {
        let told = (&call["data"]["args"]["command"], &call["cwd"]);
        assert_eq!(told, (&json!("touch first"), &json!(lab.project)), "{what}");
        assert!(call["session"].is_string(), "{call:#} {what}");
    }
    let prompt = of("before_agent").next().map(|first| first["data"]["prompt"].as_str().unwrap_or_default());
    assert_eq!(prompt.is_some_and(|prompt| prompt.contains(PROMPT)), client.asks_at_prompt, "{prompt:?} {what}");
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
            None if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
            end => break end,
        }
    };
    // Some leave a helper for their next start.
    for left in lab.processes() {
        let pid = left.split(':').next().unwrap();
        let _ = Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status();
    }
    let _ = child.wait();
    let said = String::from_utf8_lossy(&fs::read(&said).unwrap()).into_owned();
    assert!(end.is_some(), "it did not end: {said}");
    said
}

fn status(lab: &Lab, id: &str) -> Value {
    let listed = lab.run(&["connect", "--json"]).answer();
    let found = listed.as_array().unwrap().iter().find(|agent| agent["id"] == id);
    found.unwrap().clone()
}

/// The files of an agent in which our entries stand, with their texts.
fn settings(lab: &Lab, id: &str, case: Case) -> BTreeMap<PathBuf, String> {
    let home = &agent_named(id).unwrap().home;
    let place = match case {
        Case::RefusesInProject => lab.project.join(home.project.unwrap()),
        _ => lab.home.join(home.user),
    };
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
