//! The protocol, over every transport.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::plan::Plan;
use crate::tools;

const REVISIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";
/// How long a client may take to answer a question of ours.
const PATIENCE: Duration = Duration::from_mins(1);

/// The way to the client.
pub(crate) trait Out: Send + Sync {
    fn send(&self, message: &Value);
}

/// One server, for all its connections.
pub(crate) struct Server {
    pub(crate) plan: Plan,
    requests: AtomicUsize,
    pub(crate) grown: AtomicBool,
    asked: Mutex<HashMap<u64, Sender<Value>>>,
    next: AtomicUsize,
    cancelled: Mutex<Vec<Value>>,
    /// The streams that hear what concerns all of them.
    listeners: Mutex<Vec<Arc<dyn Out>>>,
}

impl Server {
    pub(crate) fn new(plan: Plan) -> Server {
        Server {
            plan,
            requests: AtomicUsize::new(0),
            grown: AtomicBool::new(false),
            asked: Mutex::default(),
            next: AtomicUsize::new(1),
            cancelled: Mutex::default(),
            listeners: Mutex::default(),
        }
    }

    /// Takes one message; answers go out, now or later.
    pub(crate) fn take(self: &Arc<Server>, message: &Value, out: &Arc<dyn Out>) {
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), Some(id)) => self.request(method, id, message, out),
            (Some(method), None) => self.notification(method, message),
            (None, _) => self.answered(message),
        }
    }

    pub(crate) fn listen(&self, out: Arc<dyn Out>) {
        lock(&self.listeners).push(out);
    }

    /// Tells all listeners something.
    pub(crate) fn announce(&self, method: &str) {
        for out in &*lock(&self.listeners) {
            out.send(&json!({"jsonrpc": "2.0", "method": method}));
        }
    }

    /// Asks the client something, and waits for the answer.
    pub(crate) fn ask(&self, method: &str, params: &Value, out: &Arc<dyn Out>) -> Value {
        let id = self.next.fetch_add(1, Ordering::Relaxed) as u64 + 1_000_000;
        let (sender, receiver) = mpsc::channel();
        lock(&self.asked).insert(id, sender);
        out.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| json!({"error": "no answer"}))
    }

    pub(crate) fn is_cancelled(&self, id: &Value) -> bool {
        lock(&self.cancelled).contains(id)
    }

    fn request(self: &Arc<Server>, method: &str, id: &Value, message: &Value, out: &Arc<dyn Out>) {
        self.plan.note(method);
        let count = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        if self.plan.die_after.is_some_and(|most| count > most) {
            std::process::exit(3);
        }
        if self.plan.mute {
            return;
        }
        let wait = self.plan.slow + if count == 1 { self.plan.slow_start } else { 0 };
        if wait > 0 {
            std::thread::sleep(Duration::from_millis(wait));
        }
        let params = message.get("params").unwrap_or(&Value::Null);
        if method == "tools/call" {
            return tools::call(self, id, params, out);
        }
        let answer = self.answer(method, params);
        out.send(&reply(id, answer));
    }

    fn answer(&self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        let mut result = match method {
            "initialize" if self.plan.only_modern => return Err((-32600, "there is no handshake".to_owned())),
            "initialize" => self.initialize(params),
            "server/discover" if self.plan.modern || self.plan.only_modern => discover(),
            "ping" | "logging/setLevel" => json!({}),
            "tools/list" => self.list("tools", tools::list(self), params),
            "resources/list" => self.list("resources", resources(), params),
            "resources/templates/list" => {
                json!({"resourceTemplates": [{"uriTemplate": "test://day/{day}", "name": "day"}]})
            }
            "resources/read" => read(params)?,
            "prompts/list" => self.list("prompts", prompts(), params),
            "prompts/get" => prompt(params)?,
            _ => return Err((-32601, format!("there is no method {method}"))),
        };
        if self.plan.modern || self.plan.only_modern {
            set(&mut result, "resultType", "complete".into());
            if method.ends_with("/list") || method == "resources/read" {
                set(&mut result, "ttlMs", 0.into());
                set(&mut result, "cacheScope", "private".into());
            }
        }
        Ok(result)
    }

    fn initialize(&self, params: &Value) -> Value {
        let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let known = REVISIONS.iter().find(|revision| **revision == asked).unwrap_or(&"2025-11-25");
        json!({
            "protocolVersion": self.plan.revision.as_deref().unwrap_or(known),
            "capabilities": capabilities(),
            "serverInfo": {"name": "mcp-server", "version": "1.0.0"},
            "instructions": "A server for tests."
        })
    }

    /// One page of a list.
    fn list(&self, key: &str, mut entries: Vec<Value>, params: &Value) -> Value {
        let cursor = params.get("cursor").and_then(Value::as_str);
        if self.plan.same_cursor && key == "tools" {
            return json!({key: entries, "nextCursor": "again"});
        }
        let start: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        if self.plan.endless && key == "tools" {
            return json!({key: [], "nextCursor": (start + 1).to_string()});
        }
        let size = if self.plan.page == 0 { entries.len() } else { self.plan.page };
        let end = start.saturating_add(size).min(entries.len());
        let more = end < entries.len();
        let page: Vec<Value> = entries.drain(start.min(end)..end).collect();
        let mut result = json!({key: page});
        if more {
            set(&mut result, "nextCursor", end.to_string().into());
        }
        result
    }

    fn notification(&self, method: &str, message: &Value) {
        self.plan.note(method);
        if method == "notifications/cancelled"
            && let Some(id) = message.pointer("/params/requestId")
        {
            lock(&self.cancelled).push(id.clone());
        }
    }

    fn answered(&self, message: &Value) {
        let waiting = message.get("id").and_then(Value::as_u64).and_then(|id| lock(&self.asked).remove(&id));
        if let Some(sender) = waiting {
            let result = message.get("result").or_else(|| message.get("error")).cloned().unwrap_or_default();
            let _ = sender.send(result);
        }
    }
}

/// The answer to a request.
pub(crate) fn reply(id: &Value, answer: Result<Value, (i64, String)>) -> Value {
    match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err((code, message)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}),
    }
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn capabilities() -> Value {
    json!({"tools": {"listChanged": true}, "resources": {}, "prompts": {}, "logging": {}})
}

fn discover() -> Value {
    json!({
        "supportedVersions": [MODERN],
        "capabilities": capabilities(),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "mcp-server", "version": "1.0.0"}}
    })
}

fn resources() -> Vec<Value> {
    vec![
        json!({"uri": "test://text", "name": "text", "description": "A text", "mimeType": "text/plain"}),
        json!({"uri": "test://bytes", "name": "bytes", "mimeType": "application/octet-stream"}),
    ]
}

fn read(params: &Value) -> Result<Value, (i64, String)> {
    match params.get("uri").and_then(Value::as_str) {
        Some(uri @ "test://text") => {
            Ok(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": "a text"}]}))
        }
        Some(uri @ "test://bytes") => {
            Ok(json!({"contents": [{"uri": uri, "mimeType": "application/octet-stream", "blob": "AAEC"}]}))
        }
        other => Err((-32002, format!("there is no resource {}", other.unwrap_or("without a uri")))),
    }
}

fn prompts() -> Vec<Value> {
    let argument = json!({"name": "name", "description": "Who", "required": true});
    vec![json!({"name": "greet", "description": "Greets somebody", "arguments": [argument]})]
}

fn prompt(params: &Value) -> Result<Value, (i64, String)> {
    if params.get("name").and_then(Value::as_str) != Some("greet") {
        return Err((-32602, "there is no such prompt".to_owned()));
    }
    let name = params.pointer("/arguments/name").and_then(Value::as_str).unwrap_or("nobody");
    let message = json!({"role": "user", "content": {"type": "text", "text": format!("Greet {name}.")}});
    Ok(json!({"description": "Greets somebody", "messages": [message]}))
}
