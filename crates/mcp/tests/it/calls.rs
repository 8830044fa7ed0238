//! What a server that behaves can do for us, and we for it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ollm_mcp::{
    Call, CallErrorKind, Elicit, ElicitAnswer, Ports, Reply, Root, Sample, ServerMemory, ServerNotice, ServerState,
    Settings, ToolFilter,
};
use serde_json::{Value, json};

use crate::support::{
    Ear, args, assert_echoes, call, eventually, fleet, names, scripted, settings, started, state, text, tool, with,
};

#[test]
fn a_server_is_started_listed_called_and_stopped() {
    let fleet = with(scripted("normal"));
    assert_eq!(state(&fleet), ServerState::Configured);
    assert!(names(&fleet).is_empty());
    fleet.start("fake").unwrap();
    let status = fleet.server("fake").unwrap().status();
    assert_eq!((status.state.clone(), status.state.word()), (ServerState::Ready, "connected"));
    assert_eq!((status.tools, status.revision.as_deref()), (13, Some("2025-11-25")));
    assert_eq!(status.server, Some(json!({"name": "fake", "version": "1"})));
    assert_eq!(status.instructions.as_deref(), Some("be kind"));
    assert_echoes(&fleet);
    fleet.stop("fake").unwrap();
    assert_eq!((state(&fleet), names(&fleet)), (ServerState::Stopped, Vec::new()));
    let error = call(&fleet, "echo", json!({})).unwrap_err().to_string();
    assert_eq!(error, "MCP server `fake`: it was stopped; start it again");
    fleet.restart("fake").unwrap();
    assert_echoes(&fleet);
    fleet.close();
}

#[test]
fn a_call_starts_its_server() {
    let fleet = with(scripted("normal"));
    assert_echoes(&fleet);
    assert_eq!(state(&fleet), ServerState::Ready);
}

#[test]
fn a_tool_keeps_every_keyword_of_its_schema() {
    let fleet = started("normal");
    let tools = fleet.server("fake").unwrap().tools();
    assert_eq!(tools[0]["inputSchema"], json!({"type": "object", "x-own": [1, null]}));
}

#[test]
fn tools_are_offered_and_called_as_the_filter_says() {
    let tools = ToolFilter { allow: Some(vec!["echo".into(), "env".into()]), deny: vec!["env".into()] };
    let fleet = with(ollm_mcp::ReadyServer { tools, ..scripted("normal") });
    fleet.start("fake").unwrap();
    assert_eq!(names(&fleet), ["echo"]);
    assert_echoes(&fleet);
    let error = call(&fleet, "env", json!({})).unwrap_err();
    assert!(matches!(error.kind, CallErrorKind::Unavailable(_)), "{error}");
}

#[test]
fn a_failure_is_told_as_the_server_says_it_but_fit_for_eyes() {
    let fleet = started("normal");
    let error = call(&fleet, "error", json!({})).unwrap_err();
    let data = Some(Box::new(json!({"city": "Ys"})));
    assert_eq!(error.kind, CallErrorKind::Refused { code: -32001, message: "no such \\u{1b}[31mcity".into(), data });
    let result = call(&fleet, "failed", json!({})).unwrap();
    assert_eq!((&result["isError"], text(&result)), (&json!(true), "it did not work"));
    assert_eq!(state(&fleet), ServerState::Ready);
}

#[test]
fn calls_run_at_once_and_keep_their_answers() {
    let fleet = started("normal");
    let calls: Vec<_> =
        (0..50).map(|number| fleet.call("fake", tool("echo", json!({"number": number}))).unwrap()).collect();
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(call.wait().unwrap()["structuredContent"], json!({"number": number}));
    }
}

#[test]
fn progress_is_heard_and_keeps_a_call_alive() {
    let fleet = started("normal");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let call = Call {
        timeout: Some(Duration::from_millis(2500)),
        progress: Some(Arc::new(move |progress| ear.lock().unwrap().push(progress))),
        ..tool("steps", json!({"count": 4, "pause": 1}))
    };
    let result = fleet.call("fake", call).unwrap().wait().unwrap();
    assert_eq!(text(&result), "done", "it took longer than its timeout, and never as long without a sign");
    let steps: Vec<_> =
        heard.lock().unwrap().iter().map(|step| (step.done, step.total, step.message.clone())).collect();
    let expected = |step: f64| (step, Some(4.0), Some(format!("step {step}")));
    assert_eq!(steps, [1.0, 2.0, 3.0, 4.0].map(expected));
}

#[test]
fn progress_does_not_lift_the_ceiling() {
    let mut settings = settings();
    settings.timings.ceiling = Duration::from_secs(3);
    let fleet = fleet(settings, Ports::default());
    fleet.add(scripted("normal"), ServerMemory::default());
    let call =
        Call { timeout: Some(Duration::from_millis(2900)), ..tool("steps", json!({"count": 1000, "pause": 0.2})) };
    let error = fleet.call("fake", call).unwrap().wait().unwrap_err();
    let after = Duration::from_secs(3);
    assert_eq!(error.kind, CallErrorKind::TimedOut { what: "steps".into(), after });
}

#[test]
fn a_call_that_takes_too_long_is_cancelled_and_hurts_nobody() {
    let fleet = started("normal");
    let hang = Call { timeout: Some(Duration::from_millis(50)), ..tool("hang", json!({})) };
    let error = fleet.call("fake", hang).unwrap().wait().unwrap_err();
    assert!(
        error.to_string().starts_with("MCP server `fake`: no answer to `hang` within 50 ms; its last words:\n"),
        "{error}"
    );
    eventually("the server knows", || fleet.server("fake").unwrap().log(0).0.iter().any(|line| line == "cancelled"));
    assert_echoes(&fleet);
}

#[test]
fn a_dropped_call_is_cancelled() {
    let fleet = started("normal");
    let pending = fleet.call("fake", tool("hang", json!({}))).unwrap();
    assert!(pending.wait_for(Duration::from_millis(50)).is_none());
    drop(pending);
    eventually("the server knows", || fleet.server("fake").unwrap().log(0).0.iter().any(|line| line == "cancelled"));
    assert_echoes(&fleet);
}

#[test]
fn tools_that_change_are_listed_again_and_announced() {
    let ear = Arc::new(Ear::default());
    let fleet = fleet(settings(), Ports { watch: Some(ear.clone()), ..Ports::default() });
    fleet.add(scripted("normal"), ServerMemory::default());
    fleet.start("fake").unwrap();
    let before = names(&fleet).len();
    call(&fleet, "grow", json!({})).unwrap();
    eventually("the new tool is there", || names(&fleet).len() == before + 1);
    let heard = ear.heard();
    let expected = [ServerState::Starting(1), ServerState::Ready].map(ServerNotice::State);
    assert_eq!(
        heard.iter().filter(|notice| matches!(notice, ServerNotice::State(_))).cloned().collect::<Vec<_>>(),
        expected
    );
    assert_eq!(heard.iter().filter(|notice| **notice == ServerNotice::Tools).count(), 2, "{heard:?}");
}

#[test]
fn prompts_and_resources_are_listed_and_read() {
    let fleet = started("normal");
    assert_eq!(fleet.prompts("fake").unwrap().wait().unwrap().items, [json!({"name": "greet"})]);
    let prompt = fleet.prompt("fake", "greet".into(), args(json!({"who": "you"}))).unwrap().wait().unwrap();
    assert_eq!(prompt["messages"][0]["content"]["text"], "Hello you");
    assert_eq!(fleet.resources("fake").unwrap().wait().unwrap().items[0]["uri"], "mem:one");
    assert_eq!(fleet.templates("fake").unwrap().wait().unwrap().items[0]["uriTemplate"], "mem:{x}");
    let resource = fleet.read("fake", "mem:one".into()).unwrap().wait().unwrap();
    assert_eq!(resource["contents"][0]["text"], "its text");
}

#[test]
fn what_a_server_logs_is_kept() {
    let fleet = started("normal");
    let (lines, next) = fleet.server("fake").unwrap().log(0);
    assert!(lines.iter().any(|line| line.contains("hello from the log")), "{lines:?}");
    assert!(fleet.server("fake").unwrap().log(next).0.is_empty());
}

struct Person(ElicitAnswer);

impl Elicit for Person {
    fn elicit(&self, server: &str, question: Value, reply: Reply<ElicitAnswer>) {
        assert_eq!((server, &question["message"]), ("fake", &json!("Who?")));
        reply.send(self.0.clone());
    }
}

struct Model;

impl Sample for Model {
    fn sample(&self, _: &str, request: Value, reply: Reply<Result<Value, String>>) {
        assert_eq!(request["messages"][0]["content"]["text"], "Hi");
        let content = json!({"type": "text", "text": "Hello"});
        reply.send(Ok(json!({"role": "assistant", "content": content, "model": "m"})));
    }
}

fn asked(mode: &str, ports: Ports, question: &str) -> Value {
    let roots = vec![Root { uri: "file:///home".into(), name: Some("home".into()) }];
    let fleet = fleet(Settings { roots, ..settings() }, ports);
    fleet.add(scripted(mode), ServerMemory::default());
    serde_json::from_str(text(&call(&fleet, question, json!({})).unwrap())).unwrap()
}

#[test]
fn questions_of_a_server_reach_who_can_answer_them() {
    let accept = ElicitAnswer::Accept(Some(json!({"name": "Ada"})));
    let ports = Ports { elicit: Some(Arc::new(Person(accept))), sample: Some(Arc::new(Model)), ..Ports::default() };
    let accepted = json!({"action": "accept", "content": {"name": "Ada"}});
    assert_eq!(asked("normal", ports.clone(), "ask"), accepted);
    assert_eq!(asked("stateless", ports.clone(), "ask"), accepted);
    assert_eq!(asked("normal", ports.clone(), "sample")["content"]["text"], "Hello");
    assert_eq!(asked("normal", ports, "roots")["roots"], json!([{"uri": "file:///home", "name": "home"}]));
}

#[test]
fn questions_that_nobody_can_answer_are_declined() {
    assert_eq!(asked("normal", Ports::default(), "ask"), json!({"action": "decline"}));
    assert_eq!(asked("stateless", Ports::default(), "ask"), json!({"action": "decline"}));
    assert_eq!(asked("normal", Ports::default(), "sample")["code"], -32601);
    let ports = Ports { elicit: Some(Arc::new(Person(ElicitAnswer::Cancel))), ..Ports::default() };
    assert_eq!(asked("normal", ports, "ask"), json!({"action": "cancel"}));
}

#[test]
fn every_request_may_come_back_with_a_question_but_not_for_ever() {
    let accept = ElicitAnswer::Accept(Some(json!({"name": "Ada"})));
    let fleet = fleet(settings(), Ports { elicit: Some(Arc::new(Person(accept))), ..Ports::default() });
    fleet.add(scripted("stateless"), ServerMemory::default());
    assert_eq!(text(&call(&fleet, "later", json!({})).unwrap()), "now");
    let prompt = fleet.prompt("fake", "greet".into(), args(json!({"who": "you"}))).unwrap().wait().unwrap();
    assert_eq!(prompt["messages"][0]["content"]["text"], "Hello you");
    let resource = fleet.read("fake", "mem:one".into()).unwrap().wait().unwrap();
    assert_eq!(resource["contents"][0]["text"], "its text");
    let told = |tool: &str| call(&fleet, tool, json!({})).unwrap_err().to_string();
    assert!(told("again").contains("it asked back 10 times"), "{}", told("again"));
    assert!(told("nothing").contains("it asked back without a question"), "{}", told("nothing"));
    assert_echoes(&fleet);
}

#[test]
fn a_stateless_server_is_spoken_to_without_a_handshake() {
    let fleet = started("stateless");
    assert_echoes(&fleet);
    let status = fleet.server("fake").unwrap().status();
    assert_eq!((status.state, status.revision.as_deref()), (ServerState::Ready, Some("2026-07-28")));
    assert_eq!(fleet.server("fake").unwrap().memory().revision.as_deref(), Some("2026-07-28"));
}

#[test]
fn a_server_that_cannot_stand_the_newer_question_is_asked_in_the_older_way() {
    let fleet = started("allergic");
    assert_eq!(state(&fleet), ServerState::Ready);
    assert_echoes(&fleet);
    let mut settings = settings();
    settings.timings.probe = Duration::from_millis(50);
    let fleet = crate::support::fleet(settings, Ports::default());
    fleet.add(scripted("quiet"), ServerMemory::default());
    assert_echoes(&fleet);
}

#[test]
fn what_worked_before_is_tried_first() {
    let fleet = fleet(settings(), Ports::default());
    let memory = ServerMemory { revision: Some("2025-11-25".into()), ..ServerMemory::default() };
    fleet.add(scripted("allergic"), memory);
    fleet.start("fake").unwrap();
    let (lines, _) = fleet.server("fake").unwrap().log(0);
    assert!(!lines.iter().any(|line| line.contains("failed")), "no try was wasted: {lines:?}");
}

#[test]
fn what_worked_before_is_forgotten_when_it_works_no_more() {
    for (revision, mode) in [("2025-11-25", "stateless"), ("2026-07-28", "normal"), ("2026-07-28", "allergic")] {
        let fleet = fleet(settings(), Ports::default());
        fleet.add(scripted(mode), ServerMemory { revision: Some(revision.into()), ..ServerMemory::default() });
        assert_echoes(&fleet);
        assert_ne!(fleet.server("fake").unwrap().memory().revision.as_deref(), Some(revision));
    }
}

#[test]
fn a_lazy_server_with_known_tools_starts_with_its_first_call() {
    let fleet = fleet(settings(), Ports::default());
    let lazy = |name: &str| ollm_mcp::ReadyServer { name: name.into(), lazy: true, ..scripted("normal") };
    let tools = Some(vec![json!({"name": "echo", "inputSchema": {}})]);
    let known = ServerMemory { tools, ..ServerMemory::default() };
    fleet.add(lazy("fake"), known);
    fleet.add(lazy("unknown"), ServerMemory::default());
    fleet.begin();
    let state_of = |name| fleet.server(name).unwrap().status().state;
    eventually("the unknown one has started", || state_of("unknown") == ServerState::Ready);
    assert_eq!((state_of("fake"), names(&fleet)), (ServerState::Configured, vec!["echo".to_owned()]));
    assert_echoes(&fleet);
    assert_eq!(state_of("fake"), ServerState::Ready);
}

#[test]
fn an_idle_server_is_stopped_and_starts_again_with_the_next_call() {
    let fleet = with(ollm_mcp::ReadyServer { idle: Some(Duration::from_millis(100)), ..scripted("normal") });
    assert_echoes(&fleet);
    eventually("it has stopped", || state(&fleet) == ServerState::Configured);
    assert_eq!(names(&fleet).len(), 13, "its tools stay on offer");
    assert_echoes(&fleet);
}

#[test]
fn a_disabled_server_is_not_started() {
    let fleet = with(ollm_mcp::ReadyServer { enabled: false, ..scripted("normal") });
    fleet.begin();
    let error = fleet.start("fake").unwrap_err().to_string();
    assert_eq!(error, "MCP server `fake`: it is disabled; `enabled: true` in its declaration changes that");
    assert_eq!(state(&fleet), ServerState::Configured);
    let error = fleet.start("nobody").unwrap_err().to_string();
    assert!(error.starts_with("MCP server `nobody`: there is no such server"), "{error}");
}
