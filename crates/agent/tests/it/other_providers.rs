//! Anthropic's Messages and OpenAI's Responses, against a server that speaks them.

use std::time::Duration;

use ollm_agent::{
    Anthropic, Cancel, Connection, CutReason, Message, Model, ModelError, Patience, Piece, Question, Responses, TurnEnd,
};
use serde_json::{Value, json};
use testkit::{ModelReply, ModelReplyEnd, ModelServer, ScriptedCall, reply_to_agent};

use crate::support::World;

fn patience() -> Patience {
    Patience { pause: Duration::from_millis(1), retries: 1, ..Patience::default() }
}

fn connection(server: &ModelServer) -> Connection {
    Connection { patience: patience(), ..Connection::new(server.url(), "m", Some("k-123456".into())) }
}

fn anthropic(server: &ModelServer) -> Anthropic {
    Anthropic::new(connection(server))
}

fn responses(server: &ModelServer) -> Responses {
    Responses::new(connection(server))
}

/// A stream of these events, in pieces of seven bytes.
fn stream(events: &[Value]) -> ModelReply {
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let text = events.iter().map(line).collect::<Vec<_>>().concat();
    ModelReply::bytes(text.as_bytes(), 7, ModelReplyEnd::Whole)
}

fn ask(model: &mut dyn Model) -> (Vec<String>, Result<ollm_agent::ModelAnswer, ModelError>) {
    let messages = [Message::User("hi".into())];
    let question = Question { messages: &messages, tools: &[], most: 1000, cancel: &Cancel::default() };
    let mut heard = Vec::new();
    let answer = model.answer(&question, &mut |piece| match piece {
        Piece::Text(text) => heard.push(text.to_owned()),
        Piece::Thought(text) => heard.push(format!("({text})")),
        _ => {}
    });
    (heard, answer)
}

#[test]
fn a_turn_with_a_call_runs_over_each_protocol() {
    for protocol in ["anthropic", "responses"] {
        let server = ModelServer::answering(|asked| {
            reply_to_agent(asked, &[ScriptedCall { tool: "shell", arguments: json!({"command": "echo hello"}) }])
        })
        .unwrap();
        let mut world = World::new(&[]);
        world.model = Some(match protocol {
            "anthropic" => Box::new(anthropic(&server)),
            _ => Box::new(responses(&server)),
        });
        let mut session = world.start();
        let turns = session.say("go", None);
        assert_eq!((turns[0].end.clone(), turns[0].response.as_str()), (TurnEnd::Done, "done"));
        assert!(turns[0].tokens.is_some());
        assert!(session.messages().iter().any(|message| message.role() == "tool" && message.content() == "hello"));
    }
}

#[test]
fn anthropic_gets_results_within_the_prompt_and_the_key_in_its_header() {
    let call = ScriptedCall { tool: "shell", arguments: json!({"command": "true"}) };
    let server = ModelServer::answering(move |asked| reply_to_agent(asked, std::slice::from_ref(&call))).unwrap();
    let mut world = World::new(&[]);
    world.model = Some(Box::new(anthropic(&server)));
    world.start().say("go", None);
    let asked = server.asked();
    assert_eq!((asked[0].path.as_str(), &asked[0].authorization), ("/v1/messages", &None));
    let header = |name: &str| asked[0].headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
    assert_eq!((header("x-api-key"), header("anthropic-version")), (Some("k-123456"), Some("2023-06-01")));
    let body = &asked[1].body;
    assert_eq!((&body["system"], &body["max_tokens"]), (&json!("be good"), &json!(8192)));
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "shell", "input": {"command": "true"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "[no output]"}]},
        ])
    );
}

#[test]
fn anthropics_thoughts_go_back_with_their_call() {
    let start =
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 7}}});
    let block =
        |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let end = |reason: &str| {
        [
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}}),
            json!({"type": "message_stop"}),
        ]
    };
    let mut first = vec![
        start.clone(),
        json!({"type": "ping"}),
        block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "a shell "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "helps"})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
        block(1, json!({"type": "tool_use", "id": "t1", "name": "shell", "input": {}})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"command\":"})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "\"true\"}"})),
    ];
    first.extend(end("tool_use"));
    let mut second = vec![
        start,
        block(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "half"})),
    ];
    second.extend(end("max_tokens"));
    let server = ModelServer::start(vec![stream(&first), stream(&second)]).unwrap();
    let mut world = World::new(&[]);
    world.model = Some(Box::new(anthropic(&server)));
    let turns = world.start().say("go", None);
    assert!(matches!(turns[0].end, TurnEnd::Bounded(_)) && turns[0].truncated, "{:?}", turns[0]);
    assert_eq!(turns[0].tokens, Some(30));
    assert_eq!(world.shown("thought"), ["thought a shell ", "thought helps"]);
    let sent = server.asked()[1].body["messages"][1]["content"][0].clone();
    assert_eq!(sent, json!({"type": "thinking", "thinking": "a shell helps", "signature": "sig"}));
}

#[test]
fn responses_are_asked_and_read_as_they_are_meant() {
    let usage = json!({"input_tokens": 9, "output_tokens": 4, "total_tokens": 13});
    let thought = json!({"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "sealed"});
    let call = json!({"type": "function_call", "id": "f1", "call_id": "c1", "name": "shell", "arguments": "{\"command\":\"true\"}"});
    let first = [
        json!({"type": "response.created", "response": {}}),
        json!({"type": "response.reasoning_summary_text.delta", "delta": "hm"}),
        json!({"type": "response.output_item.done", "item": thought}),
        json!({"type": "response.function_call_arguments.delta", "delta": "{"}),
        json!({"type": "response.output_item.done", "item": call}),
        json!({"type": "response.completed", "response": {"usage": usage}}),
    ];
    let second = [
        json!({"type": "response.output_text.delta", "delta": "do"}),
        json!({"type": "response.output_text.delta", "delta": "ne"}),
        json!({"type": "response.output_item.done", "item": {"type": "message", "content": [{"type": "output_text", "text": "done"}]}}),
        json!({"type": "response.completed", "response": {"usage": usage}}),
    ];
    let refused =
        ModelReply::json(400, &json!({"error": {"message": "Encrypted content is not supported with this model."}}));
    let server = ModelServer::start(vec![stream(&first), stream(&second)]).unwrap();
    let mut world = World::new(&[]);
    world.model = Some(Box::new(responses(&server)));
    let turns = world.start().say("go", None);
    assert_eq!((turns[0].response.as_str(), turns[0].tokens), ("done", Some(26)));
    let body = &server.asked()[1].body;
    assert_eq!((&body["instructions"], &body["store"]), (&json!("be good"), &json!(false)));
    assert_eq!(
        body["input"],
        json!([
            {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
            thought,
            {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{\"command\":\"true\"}"},
            {"type": "function_call_output", "call_id": "c1", "output": "[no output]"},
        ])
    );
    let server = ModelServer::start(vec![refused, stream(&second)]).unwrap();
    assert_eq!(ask(&mut responses(&server)).1.unwrap().content, "done");
    assert!(server.asked()[1].body.get("include").is_none());
}

#[test]
fn what_goes_wrong_is_told_in_plain_words() {
    let failed = [json!({"type": "response.failed", "response": {"error": {"message": "out of memory"}}})];
    let cut =
        [json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}})];
    let server = ModelServer::start(vec![stream(&failed), stream(&cut)]).unwrap();
    let mut model = responses(&server);
    assert!(ask(&mut model).1.unwrap_err().to_string().contains("out of memory"));
    assert_eq!(ask(&mut model).1.unwrap().cut, Some(CutReason::Length));
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let long = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}});
    let denied = json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}});
    let server = ModelServer::start(vec![
        stream(std::slice::from_ref(&error)),
        ModelReply::json(400, &long),
        ModelReply::json(401, &denied),
    ])
    .unwrap();
    let mut model = anthropic(&server);
    assert!(ask(&mut model).1.unwrap_err().to_string().contains("Overloaded"));
    let too_long = ask(&mut model).1.unwrap_err();
    assert!(matches!(too_long, ModelError::TooLong { window: Some(200_000), sent: Some(213_462), .. }), "{too_long:?}");
    assert!(
        ask(&mut model)
            .1
            .unwrap_err()
            .to_string()
            .ends_with("set OLLM_MODEL_KEY to the key for this server and try again")
    );
}

#[test]
fn counts_beyond_every_number_are_no_fault_of_ours() {
    let most = u64::MAX;
    let events = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": most, "cache_read_input_tokens": most}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": most}}),
        json!({"type": "message_stop"}),
    ];
    let server = ModelServer::start(vec![stream(&events)]).unwrap();
    let mut world = World::new(&[]);
    world.model = Some(Box::new(anthropic(&server)));
    let turns = world.start().say("go", None);
    assert_eq!((&turns[0].end, turns[0].tokens), (&TurnEnd::Done, Some(most)));
}

/// Each protocol, at a server that answers `done`, after it refused what `refuses` is true of in these words.
fn refusing(protocol: &str, refuses: fn(&Value) -> bool, words: &'static str) -> (ModelServer, Box<dyn Model>) {
    let server = ModelServer::answering(move |asked| {
        if asked.path.ends_with("/models") {
            return Some(ModelReply::json(200, &json!({"data": [{"id": "m", "max_model_len": 5000}]})));
        }
        let refusal = ModelReply::json(400, &json!({"error": {"type": "invalid_request_error", "message": words}}));
        if refuses(&asked.body) { Some(refusal) } else { reply_to_agent(asked, &[]) }
    })
    .unwrap();
    let model: Box<dyn Model> = match protocol {
        "anthropic" => Box::new(anthropic(&server)),
        "responses" => Box::new(responses(&server)),
        _ => Box::new(ollm_agent::OpenAi::new(connection(&server))),
    };
    (server, model)
}

#[test]
fn what_a_model_lacks_is_done_without_over_each_protocol() {
    for protocol in ["anthropic", "responses", "openai"] {
        let (server, model) = refusing(protocol, |body| !body["tools"].is_null(), "m does not support tools");
        let mut world = World::new(&[]);
        world.model = Some(model);
        let mut session = world.start();
        for _ in 0..2 {
            assert_eq!(session.say("go", None)[0].response, "done", "{protocol}");
        }
        session.end();
        assert_eq!(world.shown("status"), ["status m cannot call tools; it goes on without them"], "{protocol}");
        let questions = |server: &ModelServer| {
            server.asked().into_iter().map(|asked| asked.body).filter(|body| !body.is_null()).collect::<Vec<_>>()
        };
        assert_eq!(questions(&server).len(), 3, "{protocol}: it is learnt once");
        let has_system = |body: &Value| {
            !body["system"].is_null() || !body["instructions"].is_null() || body.to_string().contains("\"system\"")
        };
        let (server, model) = refusing(protocol, has_system, "System role not supported");
        let mut world = World::new(&[]);
        world.model = Some(model);
        assert_eq!(world.start().say("go", None)[0].response, "done", "{protocol}");
        assert!(questions(&server)[1].to_string().contains(r"be good\n\ngo"), "{protocol}");
    }
}

#[test]
fn the_window_is_read_from_the_server_over_each_protocol() {
    for protocol in ["anthropic", "responses", "openai"] {
        let (_server, mut model) = refusing(protocol, |_| false, "");
        assert_eq!(model.window(&Cancel::default()), Some(5000), "{protocol}");
    }
}
