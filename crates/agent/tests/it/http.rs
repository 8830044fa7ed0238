//! The OpenAI-compatible provider against a server that speaks real HTTP, in pieces, with pauses, and badly.

use std::net::TcpListener;
use std::time::Duration;

use ollm_agent::{
    Arguments, Call, Cancel, Connection, CutReason, Message, Model, ModelAnswer, ModelError, OpenAi, Patience, Piece,
    Question, TurnEnd,
};
use ollm_protocol::{Tool, ToolSchema};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use testkit::{ModelReply, ModelReplyEnd, ModelServer, answer_events};

use crate::support::World;

fn patience() -> Patience {
    Patience { pause: Duration::from_millis(1), retries: 3, ..Patience::default() }
}

fn connection(url: &str, key: Option<&str>) -> Connection {
    Connection { patience: patience(), ..Connection::new(url, "m", key.map(str::to_owned)) }
}

fn model(server: &ModelServer, key: Option<&str>) -> OpenAi {
    OpenAi::new(connection(server.url(), key))
}

/// A model that is asked with another patience.
fn patient(server: &ModelServer, patience: Patience) -> OpenAi {
    OpenAi::new(Connection { patience, ..connection(server.url(), None) })
}

/// Asks once; what was heard on the way, and what came.
fn ask(model: &mut OpenAi, cancel: &Cancel) -> (Vec<String>, Result<ModelAnswer, ModelError>) {
    let messages = [Message::User("hi".into())];
    let question = Question { messages: &messages, tools: &[], most: 1 << 20, cancel };
    let mut heard = Vec::new();
    let answer = model.answer(&question, &mut |piece| match piece {
        Piece::Text(text) => heard.push(text.to_owned()),
        Piece::Status(text) => heard.push(format!("[{text}]")),
        other => heard.push(format!("{other:?}")),
    });
    (heard, answer)
}

fn once(replies: Vec<ModelReply>) -> (Vec<String>, Result<ModelAnswer, ModelError>) {
    let server = ModelServer::start(replies).unwrap();
    ask(&mut model(&server, None), &Cancel::default())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..crate::support::cases() })]

    #[test]
    fn chunk_boundaries_and_fragments_do_not_matter(
        words in "[a-zé\u{1f600} ]{0,30}",
        argument in "[a-zé\"{}]{0,20}",
        size in 1usize..40,
        fragment in 1usize..6,
    ) {
        let arguments = json!({"command": argument}).to_string();
        let calls = [("c1", "shell", arguments.as_str()), ("c2", "todo", "")];
        let (heard, answer) = once(vec![ModelReply::stream(&answer_events(&words, &calls, fragment), size)]);
        let answer = answer.unwrap();
        prop_assert_eq!(&heard.concat(), &words);
        prop_assert_eq!((answer.content, answer.tokens, answer.cut), (words, Some(7), None));
        let call = |id: &str, name: &str, arguments: &str| Call {
            id: id.into(),
            name: name.into(),
            arguments: Arguments::parse(arguments),
        };
        prop_assert_eq!(answer.calls, vec![call("c1", "shell", &arguments), call("c2", "todo", "{}")]);
    }

    #[test]
    fn whatever_a_server_sends_is_an_answer_or_an_error(
        status in prop_oneof![Just(200u16), 200u16..600],
        noise in prop::collection::vec(any::<u8>(), 0..60),
        events in prop::collection::vec(testkit::json_value(), 0..4),
        deltas in prop::collection::vec(testkit::json_value(), 0..4),
        json in any::<bool>(),
        dropped in any::<bool>(),
    ) {
        let mut body = noise;
        for event in events.iter().cloned().chain(deltas.into_iter().map(|delta| json!({"choices": [{"delta": delta}]}))) {
            body.extend(format!("\ndata: {event}\n\n").into_bytes());
        }
        let end = if dropped { ModelReplyEnd::Dropped } else { ModelReplyEnd::Whole };
        let headers = vec![format!("Content-Type: {}", if json { "application/json" } else { "text/event-stream" })];
        let reply = ModelReply::Pieces { status, headers, pieces: vec![body], end };
        let (heard, answer) = once(vec![reply]);
        if let Ok(answer) = answer {
            prop_assert_eq!(heard.concat(), answer.content);
        }
    }
}

#[test]
fn the_question_is_sent_as_the_server_expects_it() {
    let server = ModelServer::start(vec![ModelReply::stream(&answer_events("ok", &[], 9), 9)]).unwrap();
    let call = Call { id: "1".into(), name: "shell".into(), arguments: Arguments::parse("{\"command\":\"ls\"}") };
    let messages = [
        Message::System("s".into()),
        Message::User("u".into()),
        Message::Assistant { content: String::new(), calls: vec![call] },
        Message::Tool { call_id: "1".into(), name: "shell".into(), content: "out".into() },
    ];
    let schema = ToolSchema(Map::from_iter([("properties".to_owned(), json!({}))]));
    let tools = [Tool { name: "shell".into(), description: "d".into(), input: schema, output: None, read_only: false }];
    let cancel = Cancel::default();
    let question = Question { messages: &messages, tools: &tools, most: 99, cancel: &cancel };
    let connection = Connection { temperature: Some(0.5), ..connection(server.url(), Some("k-123456")) };
    OpenAi::new(connection).answer(&question, &mut |_| {}).unwrap();
    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/v1/chat/completions");
    assert_eq!(asked.authorization.as_deref(), Some("Bearer k-123456"));
    let expected = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "shell", "arguments": "{\"command\":\"ls\"}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "out"},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": [{"type": "function", "function": {
            "name": "shell", "description": "d", "parameters": {"properties": {}, "type": "object"}}}],
        "temperature": 0.5,
    });
    assert_eq!(asked.body, expected);
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let whole = json!({"choices": [{"message": {"role": "assistant", "content": "all at once", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "todo", "arguments": "{}"}}]}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let answer = once(vec![ModelReply::json(200, &whole)]).1.unwrap();
    assert_eq!((answer.content.as_str(), answer.calls.len(), answer.tokens), ("all at once", 1, Some(3)));
}

#[test]
fn a_busy_server_is_asked_again_and_the_person_knows() {
    let busy = || ModelReply::json(429, &json!({"error": "busy"})).header("Retry-After: 0");
    let down = ModelReply::json(503, &json!({}));
    let good = ModelReply::stream(&answer_events("ok", &[], 9), 9);
    let (heard, answer) = once(vec![busy(), down, good]);
    assert_eq!(answer.unwrap().content, "ok");
    assert!(heard[0].contains("answered 429; it is asked up to 3 times more, in 0.0 s"), "{heard:?}");
    assert_eq!(heard[1..], ["ok"], "what follows is told once");

    let (heard, answer) = once(vec![busy(), busy(), busy(), busy(), busy()]);
    let Err(ModelError::Refused { status: 429, text, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!((text.as_str(), heard.len()), ("busy", 1));
}

#[test]
fn a_refusal_is_told_once_without_the_key_and_with_the_way_out() {
    let server = ModelServer::start(vec![
        ModelReply::json(401, &json!({"error": {"message": "bad key sk-verysecretkey"}})),
        ModelReply::json(404, &json!({"error": {"message": "no such model"}})),
        ModelReply::json(400, &json!({"error": {"message": "x does not support tools"}})),
        ModelReply::json(307, &json!({})).header("Location: http://127.0.0.1:9/"),
    ])
    .unwrap();
    let mut model = model(&server, Some("sk-verysecretkey"));
    let mut complaint = || ask(&mut model, &Cancel::default()).1.unwrap_err().to_string();
    let first = complaint();
    assert!(first.contains("answered 401: bad key [redacted") && first.contains("set OLLM_MODEL_KEY"), "{first}");
    assert!(!first.contains("sk-verysecretkey"));
    assert!(complaint().contains("check the model's name"));
    assert!(complaint().ends_with("x does not support tools"));
    assert!(complaint().contains("answered 307"), "the key does not follow a redirection");
    assert_eq!(server.asked().len(), 4, "such refusals are not asked again");
}

#[test]
fn a_stream_that_breaks_off_or_complains_is_a_failure_that_keeps_what_was_heard() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let complaint = format!("{half}data: {{\"error\":{{\"message\":\"out of memory\"}}}}\n\n");
    for (bytes, end, why) in [
        (half.to_owned(), ModelReplyEnd::Dropped, "broke off"),
        (half.to_owned(), ModelReplyEnd::Whole, "the stream ended before the answer did"),
        (complaint, ModelReplyEnd::Whole, "out of memory"),
    ] {
        let (heard, answer) = once(vec![ModelReply::bytes(bytes.as_bytes(), 7, end)]);
        let error = answer.unwrap_err();
        assert!(matches!(error, ModelError::Dropped { .. }) && error.to_string().contains(why), "{error}");
        assert_eq!(heard, ["half"]);
    }
    let garbage = ModelReply::bytes(b"data: {not json}\n\n", 7, ModelReplyEnd::Whole);
    assert!(matches!(once(vec![garbage]).1, Err(ModelError::Malformed { .. })));
    let hung_up = once(vec![ModelReply::Nothing]).1.unwrap_err();
    assert_eq!(hung_up.code(), "dropped", "the server is there");
    assert!(hung_up.to_string().ends_with("broke off: the server hung up before it began; ask again"), "{hung_up}");
}

#[test]
fn an_endless_answer_is_cut() {
    let events = answer_events(&"x".repeat(5000), &[], 100);
    let server = ModelServer::start(vec![ModelReply::stream(&events, 1000)]).unwrap();
    let cancel = Cancel::default();
    let question = Question { messages: &[], tools: &[], most: 1000, cancel: &cancel };
    let answer = model(&server, None).answer(&question, &mut |_| {}).unwrap();
    assert_eq!((answer.content.len(), answer.cut), (1000, Some(CutReason::Bytes)));
}

#[test]
fn a_silent_server_is_given_up_by_the_person_or_in_time() {
    let half = b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let hanging = || ModelReply::bytes(half, 99, ModelReplyEnd::Hanging);
    let server = ModelServer::start(vec![hanging(), hanging()]).unwrap();
    let cancel = Cancel::default();
    let messages = [];
    let question = Question { messages: &messages, tools: &[], most: 99, cancel: &cancel };
    let mut model = model(&server, None);
    let interrupted = model.answer(&question, &mut |_| cancel.interrupt());
    assert!(matches!(interrupted, Err(ModelError::Cancelled)), "{interrupted:?}");
    let impatient = Patience { silence: Duration::from_millis(50), connect: Duration::from_millis(50), ..patience() };
    let mut model = patient(&server, impatient);
    let (_, answer) = ask(&mut model, &Cancel::default());
    assert!(matches!(answer, Err(ModelError::Silent { .. })), "{answer:?}");
}

#[test]
fn signs_of_life_without_end_are_given_up_in_time() {
    let alive = ": still here\n\n".repeat(100_000);
    let server = ModelServer::start(vec![ModelReply::bytes(alive.as_bytes(), 14, ModelReplyEnd::Hanging)]).unwrap();
    let patience = Patience { answer: Duration::from_millis(50), ..patience() };
    let (_, answer) = ask(&mut patient(&server, patience), &Cancel::default());
    assert!(matches!(answer, Err(ModelError::Endless { .. })), "{answer:?}");
}

#[test]
fn an_interruption_ends_the_pause_before_another_try() {
    let server = ModelServer::start(vec![ModelReply::json(503, &json!({})).header("Retry-After: 600")]).unwrap();
    let patience = Patience { longest_pause: Duration::from_mins(10), ..patience() };
    let cancel = Cancel::default();
    let question = Question { messages: &[], tools: &[], most: 99, cancel: &cancel };
    let answer = patient(&server, patience).answer(&question, &mut |_| cancel.interrupt());
    assert!(matches!(answer, Err(ModelError::Cancelled)), "{answer:?}");
}

/// An address without a listener.
fn nowhere() -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("http://127.0.0.1:{port}/v1")
}

#[test]
fn when_nobody_listens_another_model_is_named() {
    let url = nowhere();
    let (_, answer) = ask(&mut OpenAi::new(connection(&url, None)), &Cancel::default());
    let error = answer.unwrap_err().to_string();
    assert!(error.starts_with(&format!("no model can be reached at {url}")), "{error}");
    assert!(error.contains("ollama:NAME"), "{error}");
    assert!(OpenAi::new(connection(&url, None)).models(&Cancel::default()).is_err());
}

#[test]
fn the_models_of_a_server_are_listed() {
    let list = json!({"object": "list", "data": [{"id": "llama3.2"}, {"id": "qwen3"}]});
    let replies = std::sync::Mutex::new(
        vec![
            ModelReply::json(200, &list),
            ModelReply::json(200, &json!({"data": null})),
            ModelReply::json(404, &json!({})),
        ]
        .into_iter(),
    );
    let server = ModelServer::answering(move |_| replies.lock().unwrap().next()).unwrap();
    let ask = || model(&server, None).models(&Cancel::default());
    assert_eq!(ask().unwrap(), ["llama3.2", "qwen3"]);
    assert_eq!(ask().unwrap(), Vec::<String>::new());
    assert!(matches!(ask(), Err(ModelError::Refused { status: 404, .. })));
    assert_eq!(server.asked()[0].path, "/v1/models");
}

#[test]
fn a_whole_turn_runs_over_real_http() {
    let command = json!({"command": "echo hello from the shell"}).to_string();
    let server = ModelServer::start(vec![
        ModelReply::stream(&answer_events("let me see", &[("c1", "shell", &command)], 3), 5),
        ModelReply::stream(&answer_events("all done", &[], 2), 3),
    ])
    .unwrap();
    let mut world = World::new(&[]);
    world.model = Some(Box::new(model(&server, None)));
    let turns = world.start().say("go", None);
    assert_eq!(
        (turns[0].end.clone(), turns[0].response.as_str(), turns[0].tokens),
        (TurnEnd::Done, "all done", Some(14))
    );
    let second: Vec<Value> = server.asked()[1].body["messages"].as_array().unwrap().clone();
    assert_eq!(second.last().unwrap()["content"], "hello from the shell");
}

#[test]
fn a_web_page_is_no_answer() {
    let pieces = vec![b"<html><body>Welcome to the router</body></html>".to_vec()];
    let headers = vec!["Content-Type: text/html; charset=utf-8".to_owned()];
    let (_, answer) = once(vec![ModelReply::Pieces { status: 200, headers, pieces, end: ModelReplyEnd::Whole }]);
    let told = answer.unwrap_err().to_string();
    assert!(told.contains("answered 200: a web page: Welcome to the router"), "{told}");
    let pieces = vec![b"<html><body>Welcome to the router</body></html>".to_vec()];
    let headers = vec!["Content-Type: application/json".to_owned()];
    let (_, answer) = once(vec![ModelReply::Pieces { status: 200, headers, pieces, end: ModelReplyEnd::Whole }]);
    let told = answer.unwrap_err().to_string();
    assert!(told.ends_with("it is no JSON, but a web page: Welcome to the router"), "{told}");
}
