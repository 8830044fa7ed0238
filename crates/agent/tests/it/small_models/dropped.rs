//! Servers that read a part of a question without a word, and servers that count wrongly.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ollm_agent::{Header, Message, Model, Transcript, TurnEnd, load};
use ollm_protocol::EventKind;
use serde_json::{Value, json};
use testkit::model_shapes::{ollama_answer, ollama_counted, ollama_ps};
use testkit::{ModelReply, ModelServer, answer_events};

use super::{chat_server, ollama, openai, says, world};
use crate::support::World;

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

/// A server that keeps the latest 2,048 tokens of a question, without a word, and tells no window. Returns the counts of
/// whole questions beside it.
fn silent_dropper() -> (ModelServer, Arc<Mutex<Vec<u64>>>) {
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sizes);
    let server = ModelServer::answering(move |asked| {
        if !asked.path.ends_with("/chat/completions") {
            return None;
        }
        let read = (asked.body["messages"].to_string().len() + asked.body["tools"].to_string().len()) as u64 / 4;
        seen.lock().unwrap().push(read);
        let mut events = answer_events(if read > 2048 { "of a part" } else { "of all" }, &[], 99);
        events.push(json!({"choices": [], "usage": {"prompt_tokens": read.min(2048), "completion_tokens": 5}}));
        Some(ModelReply::stream(&events, 4096))
    })
    .unwrap();
    (server, sizes)
}

/// Says one prompt in a program of its own, which continues the saved conversation.
fn say_in_a_program_of_its_own(folder: &Path, model: impl Model + 'static, prompt: &str) -> (String, World) {
    let mut world = world(model);
    let sessions = folder.join("sessions");
    let transcript = if let Ok((transcript, saved)) = Transcript::resume(&sessions, "s1", Arc::default()) {
        (world.messages, world.counts) = (saved.messages, saved.counts);
        transcript
    } else {
        let header = Header { id: "s1".into(), started: "t".into(), cwd: "/w".into(), model: "m".into() };
        Transcript::create(&sessions, &header, Arc::default()).unwrap()
    };
    world.transcript = Some(transcript);
    let mut session = world.start();
    let turns = session.say(prompt, None);
    assert_eq!(turns[0].end, TurnEnd::Done);
    session.end();
    (turns[0].response.clone(), world)
}

#[test]
fn a_server_that_drops_messages_without_a_word_is_noticed_by_the_program_that_continues() {
    let (server, sizes) = silent_dropper();
    let folder = tempfile::tempdir().unwrap();
    let (mut parts, mut dropped) = (0, Vec::new());
    for _ in 0..8 {
        let (answer, world) = say_in_a_program_of_its_own(folder.path(), openai(&server), &"word ".repeat(400));
        parts += usize::from(answer == "of a part");
        dropped.extend(world.shown("status the server dropped"));
    }
    assert_eq!(parts, 1, "a count that grows too little shows nothing yet: {:?}", sizes.lock().unwrap());
    assert_eq!(dropped.len(), 1, "later programs know the window: {dropped:?}");
}

#[test]
fn what_was_learnt_of_one_server_is_not_held_against_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let (narrow, _) = silent_dropper();
    for _ in 0..5 {
        say_in_a_program_of_its_own(folder.path(), openai(&narrow), &"word ".repeat(400));
    }
    let learnt = || load(&folder.path().join("sessions"), "s1").unwrap().entries;
    let is_learnt = |entries: &[Value]| entries.iter().rev().find_map(|entry| entry["counts"]["learnt"].as_u64());
    assert_eq!(is_learnt(&learnt()), Some(2053));
    let wide = chat_server(vec![says("ok")]);
    let (_, world) = say_in_a_program_of_its_own(folder.path(), openai(&wide), &"word ".repeat(800));
    assert_eq!(world.data(EventKind::ContextOverflow).len(), 0);
}

#[test]
fn a_window_that_the_person_sets_replaces_what_an_earlier_program_learnt() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = silent_dropper();
    for _ in 0..5 {
        say_in_a_program_of_its_own(folder.path(), openai(&server), &"word ".repeat(400));
    }
    let (_, saved) = Transcript::resume(&folder.path().join("sessions"), "s1", Arc::default()).unwrap();
    let mut world = world(openai(&server)).limits(|limits| limits.context = Some(8000));
    (world.messages, world.counts) = (saved.messages, saved.counts);
    let mut session = world.start();
    session.say("hi", None);
    session.end();
    assert_eq!(world.data(EventKind::ContextOverflow).len(), 0);
}
