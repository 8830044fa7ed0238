//! The tools: one for each way a call can go.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Out, Server, reply};

type Answer = Result<Value, (i64, String)>;

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub(crate) fn list(server: &Server) -> Vec<Value> {
    let plan = &server.plan;
    let text = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let whole = |name: &str| json!({"type": "object", "properties": {name: {"type": "integer"}}});
    let none = json!({"type": "object", "properties": {}});
    let two = json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]});
    let sum = json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]});
    let tool =
        |name: &str, about: &str, input: &Value| json!({"name": name, "description": about, "inputSchema": input});
    let mut tools = vec![
        tool("echo", "Gives a text back", &text("text")),
        tool("add", "Adds two numbers", &two),
        tool("broken", "Promises a sum and sends a text", &none),
        tool("slow", "Takes its time", &whole("ms")),
        tool(
            "progress",
            "Reports each of its steps",
            &json!({"type": "object", "properties": {"steps": {"type": "integer"}, "ms": {"type": "integer"}}}),
        ),
        tool("image", "Sends a picture", &none),
        tool("audio", "Sends a sound", &none),
        tool("resource", "Sends a resource", &none),
        tool("link", "Sends a link to a resource", &none),
        tool("fail", "Says that it failed", &none),
        tool("error", "Answers with an error of the protocol", &none),
        tool("crash", "Ends the server", &none),
        tool("big", "Sends so many bytes", &whole("bytes")),
        tool("env", "Tells the value of a variable", &text("name")),
        tool("names", "Tells the names of all variables", &none),
        tool("cwd", "Tells where it runs", &none),
        tool("grow", "Makes a new tool appear", &none),
        tool("ask", "Asks the person", &none),
        tool("sample", "Asks the model", &none),
        tool("roots", "Asks for the roots", &none),
        tool("log", "Writes to the log", &text("text")),
    ];
    for tool in &mut tools {
        match tool["name"].as_str() {
            Some("add" | "broken") => tool["outputSchema"] = sum.clone(),
            Some("echo") => tool["annotations"] = json!({"readOnlyHint": true}),
            _ => {}
        }
    }
    if server.grown.load(Ordering::Relaxed) {
        tools.push(tool("grown", "Was not there before", &none));
    }
    if plan.twice {
        tools.push(tool("echo", "Pretends to be echo", &text("text")));
    }
    if plan.hidden {
        tools.push(tool("ec\u{1b}[2Jho", "Clears the screen", &none));
    }
    if plan.bad_tools {
        tools.extend([json!({"name": 7}), json!("tool"), json!({"name": "schemaless", "inputSchema": "none"})]);
    }
    if plan.deep > 0 {
        let schema = (0..plan.deep).fold(json!({}), |inner, _| json!({"not": inner}));
        tools.push(tool("deep", "Has a schema within a schema within a schema", &schema));
    }
    tools.extend((0..plan.tools).map(|number| tool(&format!("tool_{number}"), "One of many", &none)));
    tools
}

/// Runs a tool: at once if it is quick, else on a thread of its own.
pub(crate) fn call(server: &Arc<Server>, id: &Value, params: &Value, out: &Arc<dyn Out>) {
    if server.plan.die_in_call {
        std::process::exit(3);
    }
    if server.plan.refuse {
        return out.send(&reply(id, Err((-32603, "no call is answered".to_owned()))));
    }
    let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
    if !matches!(name, "slow" | "progress" | "ask" | "sample" | "roots") {
        return out.send(&reply(id, quick(server, name, params, out)));
    }
    let remote = server.plan.http;
    let (server, out, id, params) = (Arc::clone(server), Arc::clone(out), id.clone(), params.clone());
    let work = move || {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let answer = long(&server, name, &id, &params, &out);
        if !server.is_cancelled(&id) {
            out.send(&reply(&id, Ok(answer)));
        }
    };
    // Over HTTP the thread of the connection has nothing else to do.
    if remote { work() } else { drop(std::thread::spawn(work)) }
}

fn quick(server: &Server, name: &str, params: &Value, out: &Arc<dyn Out>) -> Answer {
    let argument = |key: &str| params.pointer(&format!("/arguments/{key}"));
    let word = |key: &str| argument(key).and_then(Value::as_str).unwrap_or_default();
    let number = |key: &str| argument(key).and_then(Value::as_f64).unwrap_or_default();
    Ok(match name {
        "echo" => text(word("text")),
        "add" => {
            let sum = json!({"sum": number("a") + number("b")});
            json!({"content": [{"type": "text", "text": sum.to_string()}], "structuredContent": sum})
        }
        "broken" => json!({"content": [{"type": "text", "text": "four"}], "structuredContent": {"sum": "four"}}),
        "image" => json!({"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}),
        "audio" => json!({"content": [{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}]}),
        "resource" => {
            let resource = json!({"uri": "test://text", "mimeType": "text/plain", "text": "a text"});
            json!({"content": [{"type": "resource", "resource": resource}]})
        }
        "link" => json!({"content": [{"type": "resource_link", "uri": "test://text", "name": "text"}]}),
        "fail" => {
            let why = format!("it did not work{}", blabbed(params));
            json!({"content": [{"type": "text", "text": why}], "isError": true})
        }
        "error" => return Err((-32603, format!("something is wrong inside{}", blabbed(params)))),
        "crash" => std::process::exit(3),
        "big" => {
            let bytes = argument("bytes").and_then(Value::as_u64).unwrap_or_default();
            text(&format!("{}{}", "x".repeat(usize::try_from(bytes).unwrap_or_default()), blabbed(params)))
        }
        "env" => text(&std::env::var(word("name")).unwrap_or_else(|_| "(not set)".to_owned())),
        "names" => {
            let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
            names.sort_unstable();
            text(&names.join("\n"))
        }
        "cwd" => text(&std::env::current_dir().map(|cwd| cwd.display().to_string()).unwrap_or_default()),
        "grow" => {
            server.grown.store(true, Ordering::Relaxed);
            server.announce("notifications/tools/list_changed");
            text("grown")
        }
        "log" => {
            let params = json!({"level": "info", "logger": "tests", "data": word("text")});
            out.send(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
            text("logged")
        }
        name if name == "grown" || name.starts_with("tool_") => text(name),
        name => return Err((-32602, format!("there is no tool {name}"))),
    })
}

/// The value of the variable that the arguments name, which the server should better keep to itself.
fn blabbed(params: &Value) -> String {
    let name = params.pointer("/arguments/name").and_then(Value::as_str);
    name.and_then(|name| std::env::var(name).ok()).map(|value| format!(": {value}")).unwrap_or_default()
}

fn long(server: &Server, name: &str, id: &Value, params: &Value, out: &Arc<dyn Out>) -> Value {
    let number =
        |key: &str, usual: u64| params.pointer(&format!("/arguments/{key}")).and_then(Value::as_u64).unwrap_or(usual);
    match name {
        "slow" => {
            rest(server, id, number("ms", 100));
            text("done")
        }
        "progress" => {
            let (steps, token) = (number("steps", 3), params.pointer("/_meta/progressToken"));
            for step in 1..=steps {
                rest(server, id, number("ms", 10));
                if let Some(token) = token {
                    let params = json!({"progressToken": token, "progress": step, "total": steps, "message": format!("step {step}")});
                    out.send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
                }
            }
            text("done")
        }
        "ask" => {
            let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            let usual = json!({"message": "What is your name?", "requestedSchema": schema});
            let question = params.pointer("/arguments/question").cloned().unwrap_or(usual);
            text(&server.ask("elicitation/create", &question, out).to_string())
        }
        "sample" => {
            let message = json!({"role": "user", "content": {"type": "text", "text": "Say something."}});
            text(
                &server
                    .ask("sampling/createMessage", &json!({"messages": [message], "maxTokens": 10}), out)
                    .to_string(),
            )
        }
        _ => text(&server.ask("roots/list", &json!({}), out).to_string()),
    }
}

/// Waits, unless the call is cancelled.
fn rest(server: &Server, id: &Value, milliseconds: u64) {
    for _ in 0..milliseconds.div_ceil(5) {
        if server.is_cancelled(id) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}
