//! The wire, to the letter: every file under `golden/<dialect>/` is one message that is read and, where it can be,
//! written.
//!
//! A `request` is read as `event` (or refused with `error`), and the event is written as `written`, or as the request
//! itself; `named` is what an event is called that does not say so itself. `replies` are what the host is told for each
//! sort of verdict: a text is standard output. An answer, that is `stdout`, `stderr` and `exit`, is read as `expect`; with
//! a `reply` the verdict is also written, and gives the same answer again or what `reply` says.

use std::fs;
use std::path::{Path, PathBuf};

use ollm_protocol::{Dialect, DialectError, End, Event, EventKind, Flow, Request, Verdict, dialect};
use serde_json::{Map, Value, json};

use crate::{HOOK, json, said_at};

#[test]
fn every_golden_message_is_read_and_written_to_the_letter() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut count = 0;
    for folder in sorted(&root) {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let dialect = dialect::by_name(&name).unwrap();
        for file in sorted(&folder) {
            let case: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            let shown = file.display().to_string();
            match case.get("request") {
                Some(request) => check_request(dialect, &case, request, &shown),
                None => check_answer(dialect, &case, &shown),
            }
            count += 1;
        }
    }
    assert!(count >= 50, "only {count} golden messages were found");
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn check_request(dialect: &dyn Dialect, case: &Value, request: &Value, shown: &str) {
    let bytes = text(request);
    let read = match case.get("named").and_then(Value::as_str) {
        Some(name) => dialect.read_event_named(name, bytes.as_bytes()),
        None => dialect.read_event(bytes.as_bytes()),
    };
    if let Some(error) = case.get("error") {
        let message = read.map_err(|error: DialectError| error.to_string()).unwrap_err();
        assert_eq!(Value::from(message), *error, "{shown}");
        return;
    }
    let expected = Event::unchecked(kind(&case["event"]["kind"]), pairs(case["event"]["data"].as_object().unwrap()));
    let read = read.unwrap();
    assert_eq!(read.event, expected, "{shown}");
    let written = json(&dialect.write_event(&expected, &HOOK));
    assert_eq!(&written, case.get("written").unwrap_or(request), "{shown}");
    if let Some(replies) = case.get("replies").and_then(Value::as_object) {
        let told: Map<String, Value> =
            verdicts(expected.kind).map(|(name, verdict)| (name.to_owned(), reply(dialect, &read, &verdict))).collect();
        assert_eq!(&told, replies, "{shown}");
    }
}

/// One verdict of each sort that means something at an event.
fn verdicts(kind: EventKind) -> impl Iterator<Item = (&'static str, Verdict)> {
    let flow = |flow, why: &str| Verdict { flow, reasons: vec![why.to_owned()], ..Verdict::default() };
    let patch = Map::from_iter([("command".to_owned(), Value::from("git status --short"))]);
    let all = [
        ("no_opinion", Verdict::default()),
        ("allow", Verdict { flow: Flow::Allow, ..Verdict::default() }),
        ("ask", flow(Flow::Ask, "is this meant?")),
        ("block", flow(Flow::Block, "not today")),
        ("halt", flow(Flow::Halt, "enough")),
        ("context", Verdict { context: vec!["remember this".to_owned()], ..Verdict::default() }),
        ("message", Verdict { messages: vec!["for you".to_owned()], ..Verdict::default() }),
        ("modify", Verdict { patch: patch.clone(), ..Verdict::default() }),
        ("allow_modified", Verdict { flow: Flow::Allow, patch, ..Verdict::default() }),
        ("result", Verdict { result: Some("replaced".into()), ..Verdict::default() }),
        ("tools", Verdict { tools: Some(vec!["read_file".to_owned()]), ..Verdict::default() }),
        ("no_tools", Verdict { tools: Some(Vec::new()), ..Verdict::default() }),
    ];
    all.into_iter().filter(move |(name, _)| match *name {
        "modify" => kind == EventKind::BeforeTool,
        "allow_modified" => kind == EventKind::ApprovalRequest,
        "result" => kind == EventKind::AfterTool,
        "tools" | "no_tools" => kind == EventKind::BeforeToolSelection,
        _ => true,
    })
}

fn reply(dialect: &dyn Dialect, request: &Request, verdict: &Verdict) -> Value {
    let reply = dialect.write_verdict(request, verdict);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    match reply.exit {
        0 if reply.stderr.is_empty() => text(reply.stdout).into(),
        exit if reply.stdout.is_empty() => json!({"stderr": text(reply.stderr), "exit": exit}),
        _ => panic!("both streams at once, or an error that is none: {verdict:?}"),
    }
}

#[test]
fn every_event_of_every_agent_has_a_golden_message() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for agent in dialect::AGENTS {
        let mut seen: Vec<String> = Vec::new();
        for file in sorted(&root.join(agent.name)) {
            let case: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            assert!(case.get("replies").is_some(), "{}", file.display());
            let said = agent.event_fields.iter().filter_map(|field| case["request"][field].as_str());
            seen.extend(said.chain(case["named"].as_str()).map(str::to_owned));
        }
        for event in agent.events {
            assert!(seen.iter().any(|name| name == event.name), "{} of {} is missing", event.name, agent.name);
        }
    }
}

fn check_answer(dialect: &dyn Dialect, case: &Value, shown: &str) {
    let kind = kind(&case["at"]);
    let stdout = text(&case["stdout"]);
    let stderr = case["stderr"].as_str().unwrap_or_default();
    let exit = case["exit"].as_i64().unwrap_or_default();
    let end = End::Exited(i32::try_from(exit).unwrap());
    let answer = said_at(dialect, kind, end, stdout.as_bytes(), stderr.as_bytes());
    let expect = case["expect"].as_object().unwrap();
    let verdict = verdict(expect);
    assert_eq!(answer.verdict, verdict, "{shown}");
    assert_eq!(answer.failure.map(Value::from), expect.get("failure").cloned(), "{shown}");
    assert_eq!(json!(answer.warnings), expect.get("warnings").cloned().unwrap_or(json!([])), "{shown}");
    if let Some(reply) = case.get("reply") {
        let request = Request { id: 1.into(), ..Request::new(Event::unchecked(kind, [])) };
        let written = dialect.write_verdict(&request, &verdict);
        let of = |field: &str| reply.get(field).unwrap_or(&case[field]);
        let stdout = String::from_utf8(written.stdout).unwrap();
        let stdout = serde_json::from_str(&stdout).unwrap_or(Value::from(stdout));
        assert_eq!(&stdout, of("stdout"), "{shown}");
        assert_eq!(Value::from(written.exit), of("exit").as_u64().unwrap_or_default(), "{shown}");
        assert_eq!(String::from_utf8(written.stderr).unwrap(), of("stderr").as_str().unwrap_or_default(), "{shown}");
    }
}

/// A message as its bytes: text stands for itself, everything else for its JSON.
fn text(message: &Value) -> String {
    message.as_str().map_or_else(|| message.to_string(), str::to_owned)
}

fn kind(name: &Value) -> EventKind {
    EventKind::from_name(name.as_str().unwrap()).unwrap()
}

fn verdict(expect: &Map<String, Value>) -> Verdict {
    let texts = |field: &str| -> Vec<String> {
        let texts = expect.get(field).and_then(Value::as_array).into_iter().flatten();
        texts.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let map = |field: &str| expect.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
    let flow = expect.get("flow").and_then(Value::as_str).unwrap_or("no_opinion");
    Verdict {
        flow: Flow::ALL.into_iter().find(|known| known.name() == flow).unwrap(),
        reasons: texts("reasons"),
        system_messages: texts("systemMessages"),
        messages: texts("messages"),
        context: texts("context"),
        patch: map("patch"),
        result: expect.get("result").cloned(),
        tools: expect.get("tools").map(|_| texts("tools")),
        prompts: texts("prompts"),
        data: map("data"),
        metadata: map("metadata"),
    }
}

fn pairs(data: &serde_json::Map<String, Value>) -> impl Iterator<Item = (&str, Value)> {
    data.iter().map(|(name, value)| (name.as_str(), value.clone()))
}
