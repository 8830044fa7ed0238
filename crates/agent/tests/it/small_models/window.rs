//! A window that is too small for the conversation.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ollm_agent::{Decision, Message, TurnEnd};
use ollm_protocol::EventKind;
use serde_json::json;
use testkit::model_shapes::{llama_models, llama_too_long, python_empty};
use testkit::{ModelReply, ModelServer, answer_events};

use super::{narrow, openai, says, world};

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
