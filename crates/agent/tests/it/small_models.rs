//! What real servers with small models do, and how a session gets along with it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ollm_agent::{Connection, Model, Ollama, OpenAi, Patience};
use serde_json::json;
use testkit::{Asked, ModelReply, ModelServer, answer_events};

use crate::support::World;

mod answers;
mod dropped;
mod ollama;
mod summaries;
mod templates;
mod waiting;
mod window;

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
