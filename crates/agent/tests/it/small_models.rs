//! What real servers with small models do, and how a session gets along with it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ollm_agent::{Cancel, Connection, Decision, Message, Model, Ollama, OpenAi, Patience, Piece, Question, TurnEnd};
use ollm_protocol::EventKind;
use serde_json::{Value, json};
use testkit::model_shapes::{
    llama_loading, llama_models, llama_template, llama_too_long, ollama_answer, ollama_counted, ollama_error,
    ollama_ps, ollama_show, ollama_tags, python_empty, python_extra_field,
};
use testkit::{Asked, ModelReply, ModelReplyEnd, ModelServer, answer_events};

use crate::support::{World, calls, text};

fn patience() -> Patience {
    Patience { pause: Duration::from_millis(1), retries: 2, ..Patience::default() }
}

fn connection(server: &ModelServer) -> Connection {
    Connection { patience: patience(), ..Connection::new(server.url(), "m", None) }
}

fn openai(server: &ModelServer) -> OpenAi {
    OpenAi::new(connection(server))
}

fn ollama(server: &ModelServer) -> Ollama {
    Ollama::new(connection(server))
}

fn says(words: &str) -> ModelReply {
    ModelReply::stream(&answer_events(words, &[], 5), 40)
}

/// A server whose answers come in order; its questions about models get no answer.
fn chat_server(replies: Vec<ModelReply>) -> ModelServer {
    let replies = Mutex::new(replies.into_iter());
    ModelServer::answering(move |asked| {
        let is_chat = asked.path.ends_with("/chat/completions") || asked.path.ends_with("/api/chat");
        if is_chat { replies.lock().unwrap().next() } else { Some(ModelReply::json(404, &json!({}))) }
    })
    .unwrap()
}

fn chats(server: &ModelServer) -> Vec<Asked> {
    server.asked().into_iter().filter(|asked| asked.path.contains("chat")).collect()
}

fn world(model: impl Model + 'static) -> World {
    let mut world = World::new(&[]);
    world.model = Some(Box::new(model));
    world
}

fn roles(asked: &Asked) -> Vec<&str> {
    asked.body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect()
}

#[test]
fn what_hooks_say_never_makes_a_second_system_message_and_prompts_never_stand_side_by_side() {
    let command = json!({"command": "true"}).to_string();
    let server = chat_server(vec![
        ModelReply::bytes(b"data: {\"error\": \"out of memory\"}\n\n", 64, ModelReplyEnd::Whole),
        ModelReply::stream(&answer_events("", &[("c1", "shell", &command)], 9), 99),
        says("ok"),
    ]);
    let note = Decision { system_messages: vec!["mind the gap".into()], ..Decision::default() };
    let mut world = world(openai(&server)).hooks(move |event| match event.kind {
        EventKind::Notification => Decision::default(),
        _ => note.clone(),
    });
    let mut session = world.start();
    assert!(matches!(session.say("one", None)[0].end, TurnEnd::Failed { .. }));
    assert_eq!(session.say("two", None)[0].end, TurnEnd::Done);
    let asked = chats(&server);
    assert_eq!(roles(&asked[1]), ["system", "user"]);
    assert_eq!(roles(&asked[2]), ["system", "user", "assistant", "tool"]);
    let prompt = asked[1].body["messages"][1]["content"].as_str().unwrap();
    assert!(prompt.starts_with("one") && prompt.contains("two") && prompt.contains("[system note] mind the gap"));
}

#[test]
fn a_model_without_tools_goes_on_without_them_and_says_so_once() {
    for refusal in
        [ollama_error(400, "m does not support tools"), ollama_error(500, "tools param requires --jinja flag")]
    {
        let server = chat_server(vec![refusal, says("hello"), says("again")]);
        let mut world = world(openai(&server));
        let mut session = world.start();
        assert_eq!(session.say("hi", None)[0].response, "hello");
        assert_eq!(session.say("hi", None)[0].response, "again");
        let asked = chats(&server);
        let offered: Vec<bool> = asked.iter().map(|asked| asked.body.get("tools").is_some()).collect();
        assert_eq!(offered, [true, false, false]);
        assert_eq!(world.shown("status"), ["status m cannot call tools; it goes on without them"]);
    }
}

#[test]
fn a_template_without_a_system_message_gets_it_with_the_first_prompt() {
    let server = chat_server(vec![llama_template("System role not supported"), says("ok")]);
    assert_eq!(world(openai(&server)).start().say("hi", None)[0].end, TurnEnd::Done);
    let asked = chats(&server);
    assert_eq!(roles(&asked[1]), ["user"]);
    assert_eq!(asked[1].body["messages"][0]["content"], "be good\n\nhi");
}

#[test]
fn a_field_that_a_server_does_not_know_is_left_out() {
    let server = chat_server(vec![python_extra_field("stream_options"), says("ok"), says("ok")]);
    let mut world = world(openai(&server));
    let mut session = world.start();
    session.say("hi", None);
    session.say("hi", None);
    let sent: Vec<bool> = chats(&server).iter().map(|asked| asked.body.get("stream_options").is_some()).collect();
    assert_eq!(sent, [true, false, false]);
}

#[test]
fn a_server_that_loads_its_model_is_waited_for_and_what_cannot_succeed_is_not_tried_again() {
    let mut replies: Vec<ModelReply> = (0..20).map(|_| llama_loading()).collect();
    replies.push(says("ok"));
    let server = chat_server(replies);
    let mut waiting = world(OpenAi::new(Connection {
        patience: Patience { longest_pause: Duration::from_millis(1), ..patience() },
        ..connection(&server)
    }));
    assert_eq!(waiting.start().say("hi", None)[0].end, TurnEnd::Done);
    assert_eq!(waiting.shown("status").len(), 1, "it is told once");
    let server = chat_server(vec![llama_template("Unexpected message role."), says("never")]);
    let turns = world(openai(&server)).start().say("hi", None);
    assert!(matches!(&turns[0].end, TurnEnd::Failed { message, .. } if message.contains("Unexpected message role")));
    assert_eq!(chats(&server).len(), 1);
    // One that takes the same conversation without a system message is asked once more.
    let server = chat_server(vec![llama_template("Conversation roles must alternate"), says("ok")]);
    assert_eq!(world(openai(&server)).start().say("hi", None)[0].end, TurnEnd::Done);
    assert_eq!(chats(&server).len(), 2);
}

#[test]
fn a_server_that_loads_for_ever_is_given_up() {
    let server = ModelServer::answering(|_| Some(llama_loading())).unwrap();
    let patience = Patience { loading: Duration::from_millis(30), retries: 1, ..patience() };
    let turns = world(OpenAi::new(Connection { patience, ..connection(&server) })).start().say("hi", None);
    assert!(matches!(&turns[0].end, TurnEnd::Failed { message, .. } if message.contains("Loading model")));
}

#[test]
fn an_answer_that_ran_out_of_tokens_is_told_and_no_success() {
    let mut events = answer_events("half a sent", &[], 50);
    for event in &mut events {
        if event["choices"][0]["finish_reason"] == "stop" {
            event["choices"][0]["finish_reason"] = json!("length");
        }
    }
    let server = chat_server(vec![ModelReply::stream(&events, 50)]);
    let mut world = world(openai(&server));
    let turns = world.start().say("hi", None);
    assert!(matches!(&turns[0].end, TurnEnd::Bounded(why) if why.contains("limit of tokens")), "{:?}", turns[0].end);
    assert!(turns[0].truncated && turns[0].response == "half a sent");
    assert_eq!(world.shown("error").len(), 1);
}

#[test]
fn a_call_that_was_cut_goes_back_to_the_model_as_cut() {
    let mut cut = calls(&[("write_file", json!("{\"path\": \"a\", \"content\": \"x"))]);
    cut["finish"] = json!("length");
    let mut world = World::new(&[cut, text("ok")]);
    let mut session = world.start();
    assert_eq!(session.say("hi", None)[0].end, TurnEnd::Done);
    let told = session.messages().iter().find(|message| message.role() == "tool").unwrap().content().to_owned();
    assert!(told.contains("limit of tokens"), "{told}");
}

#[test]
fn a_call_that_the_model_wrote_as_text_is_made() {
    let call = "```json\n{\"name\": \"shell\", \"arguments\": {\"command\": \"echo seen\"}}\n```";
    let mut world = World::new(&[text(call), text("done")]);
    let mut session = world.start();
    assert_eq!(session.say("hi", None)[0].response, "done");
    assert!(session.messages().iter().any(|message| message.role() == "tool" && message.content() == "seen"));
    session.end();
    assert_eq!(world.shown("text"), ["text done"], "a call is no answer");
    assert_eq!(world.data(EventKind::BeforeTool).len(), 1, "hooks have their say");
    let mut world = World::new(&[text(&format!("You could write this:\n{call}"))]);
    assert_eq!(world.start().say("hi", None)[0].end, TurnEnd::Done);
    assert_eq!(world.data(EventKind::BeforeTool).len(), 0);
    assert_eq!(world.shown("status"), ["status the answer holds a call of shell among other words; it was not made"]);
}

#[test]
fn thoughts_are_shown_and_are_no_answer() {
    let thinks = |words: &str| json!({"reasoning": "let me think", "content": words});
    let mut world = World::new(&[thinks("42"), thinks("")]);
    let mut session = world.start();
    assert_eq!(session.say("hi", None)[0].response, "42");
    let turns = session.say("hi", None);
    assert!(matches!(&turns[0].end, TurnEnd::Failed { message, .. } if message.contains("only thought")));
    assert!(!session.messages().iter().any(|message| message.content().contains("let me think")));
    assert_eq!(world.shown("thought").len(), 2);
}

/// A server with a window: it refuses longer conversations with its own words.
fn narrow(window: u64, refuse: fn(u64, u64) -> ModelReply) -> (ModelServer, Arc<AtomicUsize>) {
    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    let server = ModelServer::answering(move |asked| {
        if !asked.path.ends_with("/chat/completions") {
            return Some(ModelReply::json(404, &json!({})));
        }
        let tokens = (asked.body["messages"].to_string().len() + asked.body["tools"].to_string().len()) as u64 / 4;
        if tokens > window {
            count.fetch_add(1, Ordering::Relaxed);
            return Some(refuse(tokens, window));
        }
        let summing = asked.body["messages"][0]["content"].as_str().unwrap_or_default().starts_with("You sum up");
        let mut events = answer_events(if summing { "they talked" } else { "ok" }, &[], 50);
        events.pop();
        events.push(json!({"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 2}}));
        Some(ModelReply::stream(&events, 4096))
    })
    .unwrap();
    (server, refused)
}

#[test]
fn a_conversation_that_a_server_refuses_or_swallows_is_shortened_and_asked_again() {
    for (window, refuse) in [(3000, llama_too_long as fn(u64, u64) -> ModelReply), (3000, |_, _| python_empty())] {
        let (server, refused) = narrow(window, refuse);
        let mut world = world(openai(&server));
        let mut session = world.start();
        for turn in 0..12 {
            let turns = session.say(&format!("prompt {turn} {}", "x".repeat(1500)), None);
            assert_eq!(turns[0].end, TurnEnd::Done, "turn {turn}");
            assert_eq!(turns[0].response, "ok");
        }
        assert_eq!(session.messages()[0], Message::System("be good".into()));
        assert!(
            session.messages().iter().any(|message| message.content().contains("they talked")),
            "the model sums up"
        );
        session.end();
        assert!(refused.load(Ordering::Relaxed) >= 1);
        let overflow = world.data(EventKind::ContextOverflow);
        assert!(!overflow.is_empty());
        assert!(overflow.iter().all(|data| data["utilization"].as_f64().unwrap() <= 1.0));
        let (pre, post) = (world.data(EventKind::PreCompress), world.data(EventKind::PostCompress));
        assert_eq!(pre.len(), overflow.len());
        assert_eq!(post[0]["summary"], "they talked");
        assert!(pre[0]["size"].as_u64() > post[0]["size"].as_u64());
    }
}

#[test]
fn a_prompt_that_alone_is_too_long_is_told_once_and_the_conversation_stays_usable() {
    let (server, refused) = narrow(3000, llama_too_long);
    let mut world = world(openai(&server));
    let mut session = world.start();
    let turns = session.say(&"x".repeat(100_000), None);
    assert!(matches!(&turns[0].end, TurnEnd::Failed { code: "too_long", .. }), "{:?}", turns[0].end);
    assert_eq!(refused.load(Ordering::Relaxed), 2);
    assert_eq!(session.say("short", None)[0].end, TurnEnd::Done);
    session.end();
    assert_eq!(world.shown("error").len(), 1);
    let stays = world.shown("status").iter().filter(|status| status.contains("stays as long as before")).count();
    assert_eq!(stays, 1, "{:?}", world.shown("status"));
}

/// vLLM's refusal, which names the room for the answer beside the window.
fn vllm_too_long(sent: u64, window: u64) -> ModelReply {
    let message = format!(
        "This model's maximum context length is {window} tokens. However, you requested {} tokens ({sent} in the \
         messages, 300 in the completion). Please reduce the length of the messages or completion.",
        sent + 300
    );
    ModelReply::json(400, &json!({"object": "error", "message": message, "type": "BadRequestError", "code": 400}))
}

#[test]
fn a_large_result_in_the_first_turn_is_shortened_where_the_server_refuses_or_swallows_it() {
    for refuse in [llama_too_long as fn(u64, u64) -> ModelReply, vllm_too_long, |_, _| python_empty()] {
        let window = 6000;
        let read = json!({"path": "big"}).to_string();
        let sizes = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&sizes);
        let server = ModelServer::answering(move |asked| {
            if !asked.path.ends_with("/chat/completions") {
                return Some(ModelReply::json(404, &json!({})));
            }
            let tokens = asked.body.to_string().len() as u64 / 4;
            if tokens > window {
                return Some(refuse(tokens, window));
            }
            taken.lock().unwrap().push(tokens);
            let has_read = asked.body["messages"].as_array().unwrap().iter().any(|message| message["role"] == "tool");
            let call = [("c1", "read_file", read.as_str())];
            let events = if has_read { answer_events("read", &[], 50) } else { answer_events("", &call, 50) };
            Some(ModelReply::stream(&events, 4096))
        })
        .unwrap();
        let mut world = world(openai(&server));
        std::fs::write(world.path("big"), "a line of the file\n".repeat(5500)).unwrap();
        let mut session = world.start();
        let turns = session.say("what is in big?", None);
        assert_eq!((turns[0].end.clone(), turns[0].response.as_str()), (TurnEnd::Done, "read"));
        session.end();
        let last = *sizes.lock().unwrap().last().unwrap();
        assert!(last > 1500, "no more is cut than must be: {last}");
    }
}

#[test]
fn a_model_that_says_nothing_in_a_short_conversation_does_not_make_its_window_smaller() {
    let server = chat_server(vec![says("one"), says("two"), python_empty(), says("three")]);
    let mut world = world(openai(&server));
    let mut session = world.start();
    let ends: Vec<TurnEnd> =
        (0..4).map(|turn| session.say(&format!("{turn} {}", "word ".repeat(100)), None)[0].end.clone()).collect();
    assert!(matches!(&ends[2], TurnEnd::Failed { code: "empty", .. }), "{ends:?}");
    assert_eq!([&ends[0], &ends[1], &ends[3]], [&TurnEnd::Done; 3]);
    session.end();
    assert!(world.data(EventKind::PreCompress).is_empty());
    assert_eq!(chats(&server).len(), 4);
}

#[test]
fn a_server_that_counts_the_same_of_every_question_is_told_of_once_and_keeps_its_conversation() {
    let server = ModelServer::answering(move |asked| {
        if !asked.path.ends_with("/chat/completions") {
            return Some(ModelReply::json(404, &json!({})));
        }
        let mut events = answer_events("ok", &[], 50);
        events.pop();
        events.push(json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 2}}));
        Some(ModelReply::stream(&events, 4096))
    })
    .unwrap();
    let mut world = world(openai(&server));
    let mut session = world.start();
    for turn in 0..20 {
        assert_eq!(session.say(&format!("prompt {turn} {}", "x".repeat(900)), None)[0].end, TurnEnd::Done);
    }
    let prompts = session.messages().iter().filter(|message| message.content().starts_with("prompt ")).count();
    assert!(prompts >= 16, "{prompts}");
    session.end();
    let told = world.shown("status").iter().filter(|status| status.contains("not believed any more")).count();
    assert_eq!((told, world.data(EventKind::PostCompress).len()), (1, 1), "{:?}", world.shown("status"));
}

#[test]
fn a_window_that_the_server_tells_is_never_exceeded() {
    let (refusals, window) = (Arc::new(AtomicUsize::new(0)), 4000);
    let count = Arc::clone(&refusals);
    let server = ModelServer::answering(move |asked| {
        if asked.path.ends_with("/models") {
            return Some(llama_models(window));
        }
        let tokens = asked.body.to_string().len() as u64 / 4;
        if tokens > window {
            count.fetch_add(1, Ordering::Relaxed);
            return Some(llama_too_long(tokens, window));
        }
        Some(says("ok"))
    })
    .unwrap();
    let mut world = world(openai(&server));
    let mut session = world.start();
    for turn in 0..20 {
        assert_eq!(session.say(&format!("{turn} {}", "word ".repeat(200)), None)[0].end, TurnEnd::Done);
    }
    session.end();
    assert_eq!(refusals.load(Ordering::Relaxed), 0);
    for data in world.data(EventKind::ContextOverflow) {
        assert_eq!(data["maxSize"], 4000);
        let used = data["utilization"].as_f64().unwrap();
        assert!((0.8..=1.0).contains(&used), "{used}");
        assert_eq!(data["estimated"], true);
    }
    assert!(!world.data(EventKind::ContextOverflow).is_empty());
}

#[test]
fn a_refusal_to_compress_is_obeyed() {
    let (server, _) = narrow(3000, llama_too_long);
    let mut world = world(openai(&server)).on(EventKind::PreCompress, Decision::block("keeper", "keep all"));
    let mut session = world.start();
    let before = "x".repeat(5500);
    assert_eq!(session.say(&before, None)[0].end, TurnEnd::Done);
    let turns = session.say(&before, None);
    assert!(matches!(&turns[0].end, TurnEnd::Failed { code: "too_long", .. }), "{:?}", turns[0].end);
    assert!(session.messages().iter().filter(|message| message.content() == before).count() == 2, "all of it is there");
    session.end();
    assert_eq!(world.data(EventKind::PostCompress).len(), 0);
}

#[test]
fn a_window_of_two_thousand_tokens_and_a_large_file_work_together() {
    let server = ModelServer::answering(move |asked| {
        if !asked.path.ends_with("/chat/completions") {
            return Some(ModelReply::json(404, &json!({})));
        }
        let messages = asked.body["messages"].as_array().unwrap();
        let tokens = asked.body.to_string().len() as u64 / 4;
        if tokens > 2000 {
            return Some(llama_too_long(tokens, 2000));
        }
        let read = messages.iter().any(|message| message["role"] == "tool");
        let arguments = json!({"path": "big"}).to_string();
        let call = [("c1", "read_file", arguments.as_str())];
        let mut events =
            if read { answer_events("I read a part of it", &[], 50) } else { answer_events("", &call, 50) };
        events.pop();
        events.push(json!({"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 20}}));
        Some(ModelReply::stream(&events, 4096))
    })
    .unwrap();
    let mut world = world(openai(&server)).limits(|limits| limits.context = Some(2000));
    std::fs::write(world.path("big"), "a line of the file\n".repeat(5500)).unwrap();
    let mut session = world.start();
    let turns = session.say("what is in big?", None);
    assert_eq!((turns[0].end.clone(), turns[0].response.as_str()), (TurnEnd::Done, "I read a part of it"));
    let result = session.messages().iter().find(|message| message.role() == "tool").unwrap().content().to_owned();
    assert!(result.contains("use offset and limit for others") && result.len() < 8000, "{}", result.len());
}

#[test]
fn the_person_can_have_the_conversation_made_shorter() {
    let answers = [text("one"), text("two"), text("three"), json!({"content": "a short story"}), text("go on")];
    let mut world = World::new(&answers);
    let mut session = world.start();
    for prompt in ["first", "second", "third"] {
        session.say(&format!("{prompt} {}", "x".repeat(200)), None);
    }
    assert_eq!(session.compress(), Ok("a short story".to_owned()));
    assert!(
        session.messages().iter().any(|message| message.content() == "[Summary of earlier messages] a short story")
    );
    assert_eq!(session.say("fourth", None)[0].response, "go on");
    session.end();
    assert_eq!(world.data(EventKind::PreCompress)[0]["trigger"], "manual");
    assert_eq!(world.data(EventKind::ContextOverflow).len(), 0);
    let mut world = World::new(&[]);
    assert_eq!(world.start().compress(), Err("nothing of it can go".to_owned()));
}

#[test]
fn connections_are_kept_and_we_say_who_we_are() {
    let server = chat_server((0..5).map(|_| says("ok")).collect());
    let mut world = world(openai(&server));
    let mut session = world.start();
    for _ in 0..5 {
        assert_eq!(session.say("hi", None)[0].end, TurnEnd::Done);
    }
    let asked = chats(&server);
    assert!(asked.iter().all(|one| one.connection == asked[0].connection), "{asked:?}");
    let agent = &asked[0].headers.iter().find(|(name, _)| name == "user-agent").unwrap().1;
    assert!(agent.starts_with("ollm/"), "{agent}");
}

#[test]
fn a_kept_connection_that_the_server_closed_is_opened_again() {
    let server = chat_server(vec![says("one"), ModelReply::Nothing, says("two")]);
    let mut world = world(openai(&server));
    let mut session = world.start();
    assert_eq!(session.say("hi", None)[0].response, "one");
    assert_eq!(session.say("hi", None)[0].response, "two");
}

#[test]
fn ollama_answers_in_its_own_language_with_thoughts_and_tools() {
    for size in [1, 3, 50] {
        let command = json!({"command": "echo hello"});
        let server = chat_server(vec![
            ollama_answer("hm, a shell", "let me see", &[("shell", command)], size),
            ollama_answer("", "all done", &[], size),
        ]);
        let mut world = world(ollama(&server));
        let turns = world.start().say("go", None);
        assert_eq!((turns[0].end.clone(), turns[0].response.as_str()), (TurnEnd::Done, "all done"));
        assert_eq!(turns[0].tokens, Some(68));
        assert_eq!(world.shown("thought").concat().replace("thought ", ""), "hm, a shell");
        let second = chats(&server).remove(1).body;
        let messages = second["messages"].as_array().unwrap();
        let call = json!({"function": {"name": "shell", "arguments": {"command": "echo hello"}}});
        assert_eq!(messages[2], json!({"role": "assistant", "content": "let me see", "tool_calls": [call]}));
        assert_eq!(messages[3], json!({"role": "tool", "tool_name": "shell", "content": "hello"}));
        assert_eq!(second["stream"], true);
    }
}

#[test]
fn ollamas_faults_are_told() {
    let ask = |reply: ModelReply| {
        let server = chat_server(vec![reply]);
        let question = Question { messages: &[], tools: &[], most: 1000, cancel: &Cancel::default() };
        ollama(&server).answer(&question, &mut |_| {})
    };
    let missing = ask(ollama_error(404, "model 'm' not found")).unwrap_err().to_string();
    assert!(missing.ends_with("fetch it first: `ollama pull m`"), "{missing}");
    let (headers, pieces) = (vec!["Content-Type: text/html".to_owned()], vec![b"<html>Log in</html>".to_vec()]);
    let page = ModelReply::Pieces { status: 200, headers, pieces, end: ModelReplyEnd::Whole };
    for reply in [ModelReply::json(404, &json!({})), page] {
        let foreign = ask(reply).unwrap_err().to_string();
        assert!(foreign.contains("this is no Ollama"), "{foreign}");
    }
    let broken = ask(ModelReply::lines(&[json!({"error": "out of memory"})], 9)).unwrap_err().to_string();
    assert!(broken.contains("out of memory"), "{broken}");
    let half = json!({"message": {"role": "assistant", "content": "half"}, "done": false});
    assert_eq!(ask(ModelReply::lines(&[half], 9)).unwrap_err().code(), "dropped");
    let cut = ask(ollama_counted(("", "half"), &[], ("length", 5, 5), 9)).unwrap();
    assert!(cut.cut.is_some());
}

#[test]
fn ollamas_window_is_what_the_model_was_loaded_with() {
    let cancel = Cancel::default();
    let server = |ps: ModelReply, show: ModelReply| {
        ModelServer::answering(move |asked| match asked.path.as_str() {
            "/api/ps" => Some(ps.clone()),
            "/api/show" => Some(show.clone()),
            _ => None,
        })
        .unwrap()
    };
    let shown = || ollama_show(&["completion"], "stop \"<eot>\"\nnum_ctx                        8192");
    let loaded = server(ollama_ps(&[("other:1b", 1), ("m:latest", 4096)]), shown());
    assert_eq!(ollama(&loaded).window(&cancel), Some(4096));
    let unloaded = server(ollama_ps(&[]), shown());
    assert_eq!(ollama(&unloaded).window(&cancel), Some(8192));
    let silent = server(ollama_ps(&[]), ollama_show(&[], ""));
    assert_eq!(ollama(&silent).window(&cancel), None);
    let options = json!({"num_ctx": 2000}).as_object().unwrap().clone();
    let mut set = Ollama::new(Connection { options, ..connection(&silent) });
    assert_eq!(set.window(&cancel), Some(2000));
}

/// An Ollama that takes what it is sent, drops the oldest messages that have no room, and tells its window once the model
/// is loaded.
fn dropper(window: u64) -> (ModelServer, Arc<AtomicUsize>) {
    let dropped = Arc::new(AtomicUsize::new(0));
    let (count, loaded) = (Arc::clone(&dropped), AtomicUsize::new(0));
    let server = ModelServer::answering(move |asked| {
        if asked.path == "/api/ps" {
            let models = [("m:latest", window)];
            return Some(ollama_ps(&models[..loaded.load(Ordering::Relaxed)]));
        }
        if asked.path != "/api/chat" {
            return Some(ModelReply::json(404, &json!({})));
        }
        loaded.store(1, Ordering::Relaxed);
        let size = |value: &Value| value.to_string().len() as u64 / 4;
        let messages = asked.body["messages"].as_array().unwrap();
        let (system, rest) = messages.split_first().unwrap();
        if system["content"].as_str().unwrap_or_default().starts_with("You sum up") {
            return Some(ollama_answer("", "in short", &[], 50));
        }
        let mut kept = rest;
        let read = |kept: &[Value]| size(system) + size(&asked.body["tools"]) + kept.iter().map(size).sum::<u64>();
        while read(kept) > window && kept.len() > 1 {
            kept = &kept[1..];
        }
        count.fetch_add(usize::from(kept.len() < rest.len()), Ordering::Relaxed);
        let words = if kept.len() < rest.len() { "of a part" } else { "of all" };
        Some(ollama_counted(("", words), &[], ("stop", read(kept).min(window), 10), 50))
    })
    .unwrap();
    (server, dropped)
}

#[test]
fn a_server_whose_count_shows_that_it_dropped_messages_is_asked_again_in_the_same_turn() {
    let reads = Mutex::new(vec![1500u64, 3000, 2048, 900].into_iter());
    let server = ModelServer::answering(move |asked| {
        if asked.path != "/api/chat" {
            return Some(ModelReply::json(404, &json!({})));
        }
        if asked.body["messages"][0]["content"].as_str().unwrap_or_default().starts_with("You sum up") {
            return Some(ollama_answer("", "in short", &[], 50));
        }
        let read = reads.lock().unwrap().next()?;
        let words = if read == 2048 { "of a part" } else { "of all" };
        Some(ollama_counted(("", words), &[], ("stop", read, 10), 50))
    })
    .unwrap();
    let mut world = world(ollama(&server));
    let mut session = world.start();
    for _ in 0..3 {
        let turns = session.say(&"x".repeat(6000), None);
        assert_eq!((&turns[0].end, turns[0].response.as_str()), (&TurnEnd::Done, "of all"));
    }
    assert!(!session.messages().iter().any(|message| message.content() == "of a part"));
    session.end();
    let told = world.shown("status the server dropped");
    assert_eq!(told.len(), 1, "{:?}", world.shown("status"));
    assert_eq!(world.data(EventKind::ContextOverflow)[0]["maxSize"], 2058);
    assert_eq!(world.data(EventKind::BeforeModel).len(), world.data(EventKind::AfterModel).len());
}

#[test]
fn a_window_that_is_told_once_the_model_is_loaded_is_kept_from_then_on() {
    let (server, dropped) = dropper(4096);
    let mut world = world(ollama(&server));
    let mut session = world.start();
    for turn in 0..12 {
        let turns = session.say(&format!("{turn} {}", "word ".repeat(500)), None);
        assert_eq!((&turns[0].end, turns[0].response.as_str()), (&TurnEnd::Done, "of all"), "turn {turn}");
    }
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
}

#[test]
fn the_first_question_of_a_long_conversation_is_asked_again_where_it_was_cut() {
    let (server, dropped) = dropper(4096);
    let mut world = world(ollama(&server));
    let answer = Message::Assistant { content: "ok".into(), calls: Vec::new() };
    let exchange = |at| [Message::User(format!("{at} {}", "word ".repeat(500))), answer.clone()];
    world.messages = std::iter::once(Message::System("be good".into())).chain((0..20).flat_map(exchange)).collect();
    let mut session = world.start();
    let turns = session.say("and now?", None);
    assert_eq!((&turns[0].end, turns[0].response.as_str()), (&TurnEnd::Done, "of all"));
    session.end();
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    assert_eq!(world.shown("status the server dropped").len(), 1, "{:?}", world.shown("status"));
}

#[test]
fn the_models_of_an_ollama_are_listed_shown_and_fetched() {
    let cancel = Cancel::default();
    let steps: Vec<Value> = vec![
        json!({"status": "pulling manifest"}),
        json!({"status": "pulling abc", "digest": "sha256:abc", "total": 100, "completed": 40}),
        json!({"status": "pulling abc", "digest": "sha256:abc", "total": 100, "completed": 100}),
        json!({"status": "success"}),
    ];
    let server = ModelServer::answering(move |asked| match asked.path.as_str() {
        "/api/tags" => Some(ollama_tags(&["llama3.2:3b", "qwen3:4b"])),
        "/api/show" => Some(ollama_show(&["completion", "tools"], "")),
        "/api/pull" if asked.body["model"] == "gone" => {
            Some(ModelReply::lines(&[json!({"error": "pull model manifest: file does not exist"})], 9))
        }
        "/api/pull" if asked.body["model"] == "half" => Some(ModelReply::lines(&steps[..2], 9)),
        "/api/pull" => Some(ModelReply::lines(&steps, 9)),
        _ => None,
    })
    .unwrap();
    let names: Vec<String> = ollama(&server).list(&cancel).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["llama3.2:3b", "qwen3:4b"]);
    let details = ollama(&server).show(&cancel).unwrap();
    assert!(details.has_tools() && details.context_length == Some(131_072));
    let mut seen = Vec::new();
    ollama(&server).pull(&cancel, &mut |step| seen.push((step.completed, step.total))).unwrap();
    assert_eq!(seen, [(None, None), (Some(40), Some(100)), (Some(100), Some(100)), (None, None)]);
    let failed = |name: &str| {
        let model = Ollama::new(Connection { model: name.to_owned(), ..connection(&server) });
        model.pull(&cancel, &mut |_| {}).unwrap_err().to_string()
    };
    assert!(failed("gone").contains("file does not exist"));
    assert!(failed("half").contains("ended before its end"));
}

#[test]
fn a_silent_model_gives_signs_of_life() {
    // The head comes late, so the first wait is long; nothing here depends on how long exactly.
    let server = chat_server(vec![says("ok")]);
    let question = Question { messages: &[], tools: &[], most: 100, cancel: &Cancel::default() };
    let mut waits = 0;
    openai(&server).answer(&question, &mut |piece| waits += usize::from(matches!(piece, Piece::Waiting(_)))).unwrap();
    assert_eq!(waits, 0, "a quick answer is no wait");
}

/// A server that has a file read part by part, ten times, and then answers. Its window is real, even if it tells
/// another one.
fn reader_of_parts(window: u64, tells: bool) -> (ModelServer, Arc<Mutex<Vec<u64>>>) {
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let (seen, step) = (Arc::clone(&sizes), AtomicUsize::new(0));
    let server = ModelServer::answering(move |asked| {
        if asked.path.ends_with("/models") && tells {
            return Some(llama_models(window));
        }
        if !asked.path.ends_with("/chat/completions") {
            return Some(ModelReply::json(404, &json!({})));
        }
        let tokens = (asked.body["messages"].to_string().len() + asked.body["tools"].to_string().len()) as u64 / 4;
        seen.lock().unwrap().push(tokens);
        if tokens > window {
            return Some(llama_too_long(tokens, window));
        }
        let summing = asked.body["messages"][0]["content"].as_str().unwrap_or_default().starts_with("You sum up");
        let step = if summing { 10 } else { step.fetch_add(1, Ordering::Relaxed) };
        let part = json!({"path": "big", "offset": step * 50 + 1, "limit": 30}).to_string();
        let mut events = match (summing, step) {
            (true, _) => answer_events("it read some parts", &[], 50),
            (false, 0..10) => answer_events("", &[("c1", "read_file", part.as_str())], 50),
            (false, _) => answer_events("I read it", &[], 50),
        };
        events.pop();
        events.push(json!({"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 20}}));
        Some(ModelReply::stream(&events, 4096))
    })
    .unwrap();
    (server, sizes)
}

#[test]
fn room_is_made_again_and_again_in_a_turn_of_many_calls() {
    for (window, tells, set) in [(2000, false, Some(2000)), (2000, true, None), (2600, false, None)] {
        let (server, sizes) = reader_of_parts(window, tells);
        let mut world = world(openai(&server)).limits(|limits| limits.context = set);
        std::fs::write(world.path("big"), "a line of the file\n".repeat(1000)).unwrap();
        let mut session = world.start();
        let turns = session.say(&"word ".repeat(480), None);
        let sizes = sizes.lock().unwrap().clone();
        assert_eq!((&turns[0].end, turns[0].response.as_str()), (&TurnEnd::Done, "I read it"), "{window} {sizes:?}");
        let refused = sizes.iter().filter(|size| **size > window).count();
        assert!(refused <= usize::from(!tells && set.is_none()) * 3, "{window} {sizes:?}");
        session.end();
        assert_eq!(world.data(EventKind::PreCompress).len(), world.data(EventKind::PostCompress).len());
        let sizes = |kind| world.data(kind).iter().map(|data| data["size"].as_u64()).collect::<Vec<_>>();
        assert!(
            sizes(EventKind::PreCompress)
                .into_iter()
                .zip(sizes(EventKind::PostCompress))
                .all(|(pre, post)| post <= pre)
        );
    }
}

/// A server whose summaries are these; everything else it answers with `ok`.
fn summing_up(summary: impl Fn() -> ModelReply + Send + Sync + 'static) -> ModelServer {
    ModelServer::answering(move |asked| {
        if !asked.path.ends_with("/chat/completions") {
            return Some(ModelReply::json(404, &json!({})));
        }
        let summing = asked.body["messages"][0]["content"].as_str().unwrap_or_default().starts_with("You sum up");
        Some(if summing { summary() } else { says("ok") })
    })
    .unwrap()
}

#[test]
fn a_server_that_keeps_a_summary_waiting_is_told_of() {
    let server = chat_server(vec![says("one"), says("two"), llama_loading(), says("in short")]);
    let mut world = world(openai(&server));
    let mut session = world.start();
    for prompt in ["first", "second"] {
        session.say(&format!("{prompt} {}", "x".repeat(900)), None);
    }
    assert_eq!(session.compress(), Ok("in short".to_owned()));
    session.end();
    assert!(world.shown("status").iter().any(|told| told.contains("is loading the model")), "{:?}", world.shown(""));
}

#[test]
fn a_summary_is_shorter_than_what_it_stands_for_and_it_is_told_where_it_is_cut() {
    let mut ran_out = answer_events("It began with", &[], 50);
    for event in &mut ran_out {
        if event["choices"][0]["finish_reason"] == "stop" {
            event["choices"][0]["finish_reason"] = json!("length");
        }
    }
    for summary in [says(&"long summary ".repeat(600)), ModelReply::stream(&ran_out, 99)] {
        let server = summing_up(move || summary.clone());
        let mut world = world(openai(&server));
        let mut session = world.start();
        for prompt in ["first", "second", "third"] {
            session.say(&format!("{prompt} {}", "x".repeat(400)), None);
        }
        assert!(session.compress().is_ok());
        session.end();
        let size = |kind| world.data(kind)[0]["size"].as_u64().unwrap();
        assert!(size(EventKind::PostCompress) < size(EventKind::PreCompress));
        assert_eq!(world.shown("status the summary of the conversation was too long and is cut").len(), 1);
    }
}

#[test]
fn an_interruption_while_the_model_sums_up_leaves_the_conversation_as_it_was() {
    let cancel = Cancel::default();
    let (interrupt, half) = (cancel.clone(), ModelReply::bytes(b": wait\n\n", 9, ModelReplyEnd::Hanging));
    let server = summing_up(move || {
        interrupt.interrupt();
        half.clone()
    });
    let mut world = world(openai(&server));
    world.cancel = cancel;
    let mut session = world.start();
    for prompt in ["first", "second", "third"] {
        session.say(&format!("{prompt} {}", "x".repeat(400)), None);
    }
    let before = session.messages().to_vec();
    assert_eq!(session.compress(), Err("interrupted".to_owned()));
    assert_eq!(session.messages(), before);
    session.end();
    assert_eq!(world.data(EventKind::PostCompress)[0]["summary"], "interrupted");
}

#[test]
fn hooks_that_say_something_else_each_time_do_not_fill_a_small_window_for_good() {
    let (server, refused) = narrow(3000, llama_too_long);
    let mut count = 0;
    let mut world = world(openai(&server)).hooks(move |event| match event.kind {
        EventKind::BeforeModel | EventKind::AfterModel | EventKind::BeforeAgent => {
            count += 1;
            let note = format!("note {count} {}", "n".repeat(150));
            Decision { system_messages: vec![note], ..Decision::default() }
        }
        _ => Decision::default(),
    });
    let mut session = world.start();
    for turn in 0..40 {
        assert_eq!(session.say(&format!("prompt {turn}"), None)[0].end, TurnEnd::Done, "turn {turn}");
    }
    let first = session.messages().iter().any(|message| message.content().contains("note 1 "));
    assert!(first, "what was said before the conversation began stays");
    session.end();
    assert!(refused.load(Ordering::Relaxed) <= 2);
}

#[test]
fn a_page_in_place_of_a_stream_is_told() {
    for (body, told) in [("<html><body>Log in first</body></html>", "a web page: Log in first"), ("teapot", "teapot")] {
        let server = chat_server(vec![ModelReply::bytes(body.as_bytes(), 9, ModelReplyEnd::Whole)]);
        let turns = world(openai(&server)).start().say("hi", None);
        let TurnEnd::Failed { message, .. } = &turns[0].end else { panic!("{:?}", turns[0].end) };
        assert!(message.ends_with(&format!("it holds no events, but {told}")), "{message}");
    }
}

#[test]
fn what_a_model_thought_is_no_part_of_the_next_question() {
    let reads = Mutex::new(vec![1000u64, 1040, 1080].into_iter());
    let server = ModelServer::answering(move |asked| {
        if asked.path != "/api/chat" {
            return Some(ModelReply::json(404, &json!({})));
        }
        let read = reads.lock().unwrap().next()?;
        Some(ollama_counted(("a long thought", "ok"), &[], ("stop", read, 900), 50))
    })
    .unwrap();
    let mut world = world(ollama(&server));
    let mut session = world.start();
    for _ in 0..3 {
        assert_eq!(session.say("go on with it", None)[0].end, TurnEnd::Done);
    }
    session.end();
    assert_eq!(world.shown("status"), Vec::<String>::new(), "nothing was dropped");
}

#[test]
fn the_window_is_asked_for_before_a_question_only_where_that_is_long() {
    let asked_first = |prompt: &str, read: bool| {
        let answers = Mutex::new(vec![("", vec![("c1", "read_file", "{\"path\": \"big\"}")]), ("ok", vec![])]);
        let server = ModelServer::answering(move |asked| {
            if asked.path.ends_with("/models") {
                return Some(llama_models(4096));
            }
            let answer = if read { answers.lock().unwrap().remove(0) } else { ("ok", vec![]) };
            let mut events = answer_events(answer.0, &answer.1, 50);
            events.pop();
            Some(ModelReply::stream(&events, 4096))
        })
        .unwrap();
        let mut world = world(openai(&server));
        std::fs::write(world.path("big"), "a line of the file\n".repeat(5500)).unwrap();
        let mut session = world.start();
        assert_eq!(session.say(prompt, None)[0].end, TurnEnd::Done);
        let longest = session.messages().iter().map(Message::size).max();
        (server.asked().iter().map(|asked| asked.path.clone()).collect::<Vec<_>>(), longest)
    };
    let (models, chat) = ("/v1/models", "/v1/chat/completions");
    assert_eq!(asked_first("hi", false).0, [chat]);
    assert_eq!(asked_first(&"word ".repeat(2000), false).0, [models, chat]);
    let (asked, longest) = asked_first("hi", true);
    assert_eq!(asked, [chat, models, chat]);
    assert!(longest < Some(8000), "a result has its share of the window: {longest:?}");
}

#[test]
fn what_hooks_say_at_the_beginning_is_not_said_again_when_a_conversation_goes_on() {
    let mut messages = Vec::new();
    for _ in 0..3 {
        let context = Decision { context: vec!["mind the gap".into()], ..Decision::default() };
        let mut world = World::new(&[text("ok")]).on(EventKind::SessionStart, context);
        world.messages = messages;
        let mut session = world.start();
        assert_eq!(session.say("hi", None)[0].end, TurnEnd::Done);
        messages = session.messages().to_vec();
    }
    assert_eq!(messages.iter().filter(|message| message.content() == "mind the gap").count(), 1);
}

#[test]
fn what_fills_the_window_for_good_is_named() {
    let (server, _) = narrow(1500, llama_too_long);
    let context = Decision { context: vec!["x".repeat(20_000)], ..Decision::default() };
    let mut world = world(openai(&server)).on(EventKind::SessionStart, context);
    let turns = world.start().say("hi", None);
    let TurnEnd::Failed { message, .. } = &turns[0].end else { panic!("{:?}", turns[0].end) };
    assert!(
        message.contains("of which tools, instructions and what hooks said at the beginning take about"),
        "{message}"
    );
}

#[test]
fn many_long_results_at_once_are_cut_to_what_has_room() {
    let step = AtomicUsize::new(0);
    let server = ModelServer::answering(move |asked| {
        if !asked.path.ends_with("/chat/completions") {
            return None;
        }
        let tokens = (asked.body["messages"].to_string().len() + asked.body["tools"].to_string().len()) as u64 / 4;
        if tokens > 4096 {
            return Some(llama_too_long(tokens, 4096));
        }
        let parts: Vec<String> = (0..6).map(|at| json!({"path": "big", "offset": at * 100 + 1}).to_string()).collect();
        let ids = ["a", "b", "c", "d", "e", "f"];
        let calls: Vec<_> = ids.iter().zip(&parts).map(|(id, part)| (*id, "read_file", part.as_str())).collect();
        let is_first = step.fetch_add(1, Ordering::Relaxed) == 0;
        Some(ModelReply::stream(
            &answer_events(if is_first { "" } else { "I read it" }, if is_first { &calls } else { &[] }, 99),
            4096,
        ))
    })
    .unwrap();
    let mut world = world(openai(&server));
    std::fs::write(world.path("big"), "a line of the file\n".repeat(5500)).unwrap();
    let turns = world.start().say("read all of it", None);
    assert_eq!((&turns[0].end, turns[0].response.as_str()), (&TurnEnd::Done, "I read it"));
}

#[test]
fn what_is_cut_of_unread_results_is_kept_where_the_model_may_read_it() {
    let step = AtomicUsize::new(0);
    let server = ModelServer::answering(move |asked| {
        if !asked.path.ends_with("/chat/completions") {
            return None;
        }
        let commands = ["seq 1 900", "seq 2000 2900", "seq 3000 3900", "seq 5000 5900"];
        let commands = commands.map(|command| json!({"command": command}).to_string());
        let calls: Vec<_> =
            ["a", "b", "c", "d"].iter().zip(&commands).map(|(id, args)| (*id, "shell", &**args)).collect();
        let is_first = step.fetch_add(1, Ordering::Relaxed) == 0;
        let (words, calls) = if is_first { ("", &calls[..]) } else { ("I read it", &[][..]) };
        Some(ModelReply::stream(&answer_events(words, calls, 99), 4096))
    })
    .unwrap();
    let mut world = world(openai(&server));
    world.settings.limits.context = Some(2000);
    let mut session = world.start();
    assert_eq!(session.say("count", None)[0].end, TurnEnd::Done);
    let results: Vec<&str> = session.messages().iter().filter(|it| it.role() == "tool").map(Message::content).collect();
    assert_eq!(results.len(), 4);
    for (result, first) in results.iter().zip(["1", "2000", "3000", "5000"]) {
        let place = result.split("all of it is in ").nth(1).unwrap_or_else(|| panic!("{result}"));
        let kept = std::fs::read_to_string(place.split(';').next().unwrap()).unwrap();
        assert_eq!((kept.lines().next(), kept.lines().count() >= 900), (Some(first), true));
    }
}

#[test]
fn a_server_that_drops_a_large_result_and_tells_no_window_is_asked_again() {
    let step = AtomicUsize::new(0);
    let server = ModelServer::answering(move |asked| {
        if !asked.path.ends_with("/chat/completions") {
            return None;
        }
        let read = asked.body.to_string().len() as u64 / 4;
        let args = json!({"path": "big"}).to_string();
        let is_first = step.fetch_add(1, Ordering::Relaxed) == 0;
        let calls: &[_] = if is_first { &[("a", "read_file", args.as_str())] } else { &[] };
        let words = if read > 8000 { "of a part" } else { "of all" };
        let mut events = answer_events(if is_first { "" } else { words }, calls, 99);
        events.push(json!({"choices": [], "usage": {"prompt_tokens": read.min(8000), "completion_tokens": 5}}));
        Some(ModelReply::stream(&events, 4096))
    })
    .unwrap();
    let mut world = world(openai(&server));
    std::fs::write(world.path("big"), "a line of the file\n".repeat(5500)).unwrap();
    let turns = world.start().say("read all of it", None);
    assert_eq!((&turns[0].end, turns[0].response.as_str()), (&TurnEnd::Done, "of all"));
    assert_eq!(world.shown("status the server dropped").len(), 1, "{:?}", world.shown("status"));
}

#[test]
fn an_empty_answer_to_a_long_prompt_says_that_it_may_be_too_long() {
    let server = chat_server(vec![python_empty()]);
    let mut world = world(openai(&server));
    let turns = world.start().say(&"word ".repeat(20_000), None);
    let TurnEnd::Failed { code: "empty", message } = &turns[0].end else { panic!("{:?}", turns[0].end) };
    assert!(message.contains("tokens may be too much for it: ask with less"), "{message}");
}

#[test]
fn a_template_that_refuses_everything_is_told_with_a_way_out() {
    let server = chat_server(vec![llama_template("raise_exception(\"no such conversation\")")]);
    let mut world = world(openai(&server));
    let turns = world.start().say("go", None);
    let TurnEnd::Failed { message, .. } = &turns[0].end else { panic!("{:?}", turns[0].end) };
    assert!(message.contains("the model's chat template refuses this conversation: begin another one"), "{message}");
}

#[test]
fn a_download_may_take_longer_than_an_answer() {
    let step = json!({"status": "pulling abc", "digest": "sha256:abc", "total": 100, "completed": 40});
    let steps = [vec![step; 40], vec![json!({"status": "success"})]].concat();
    let server = ModelServer::start(vec![ModelReply::lines(&steps, 9)]).unwrap();
    let patience = Patience { answer: Duration::ZERO, ..patience() };
    let model = Ollama::new(Connection { patience, ..connection(&server) });
    model.pull(&Cancel::default(), &mut |_| {}).unwrap();
}
