//! A signal that ends us also ends what we asked for. A call is cancelled, and a server is told to go.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::{USER, declare, lab_with};
use crate::agent::call;
use crate::lab::{Lab, Ran, eventually, outcome, python, start};

/// A server that never answers a call and writes down what it hears, the end of its input included.
const STDIO: &str = r#"
import json, signal, sys
def heard(what):
    with open(sys.argv[1], "a") as log:
        log.write(what + "\n")
def term(*_):
    heard("TERM")
    sys.exit(0)
signal.signal(signal.SIGTERM, term)
for line in sys.stdin:
    asked = json.loads(line)
    heard(asked["method"])
    if "id" not in asked or asked["method"] in sys.argv[2:]:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}},
                            "serverInfo": {"name": "h", "version": "1"}}
    elif asked["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
heard("EOF")
if "deaf" in sys.argv:
    signal.pause()
"#;

/// The same over HTTP, which hears the end of a session too.
const HTTP: &str = r#"
import json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
def heard(what):
    with open(sys.argv[1], "a") as log:
        log.write(what + "\n")
class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_):
        pass
    def reply(self, code, body=b""):
        self.send_response(code)
        self.send_header("Mcp-Session-Id", "one")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.reply(405)
    def do_DELETE(self):
        heard("DELETE")
        self.reply(200)
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        heard(asked["method"])
        if "id" not in asked:
            return self.reply(202)
        if asked["method"] == "tools/call":
            threading.Event().wait()
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        if asked["method"] == "initialize":
            answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                "serverInfo": {"name": "h", "version": "1"}}
        elif asked["method"] == "tools/list":
            answer["result"] = {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]}
        else:
            answer["error"] = {"code": -32601, "message": "no"}
        self.reply(200, json.dumps(answer).encode())
server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
print(server.server_port, flush=True)
server.serve_forever()
"#;

fn heard(lab: &Lab) -> Vec<String> {
    fs::read_to_string(lab.root.join("heard")).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// A lab with a server that leaves these methods unanswered.
fn lab(unanswered: &[&str]) -> Lab {
    let lab = Lab::new();
    let script = lab.write("server.py", STDIO);
    let (script, log) = (script.to_str().unwrap(), lab.root.join("heard"));
    let args = [&[script, log.to_str().unwrap()], unanswered].concat();
    declare(&lab, USER, &json!({"s": {"command": python(), "args": args}}));
    lab
}

/// Runs a command until the server has heard of something, and then ends it.
fn ended(lab: &Lab, arguments: &[&str], until: &str, signal: &str) -> Ran {
    let mut child = start(lab.ollm(arguments));
    drop(child.stdin.take());
    eventually(until, || heard(lab).iter().any(|method| method == until));
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    outcome(child)
}

fn last(lab: &Lab, count: usize) -> Vec<String> {
    let heard = heard(lab);
    heard[heard.len().saturating_sub(count)..].to_vec()
}

#[test]
fn a_signal_cancels_the_call_and_the_server_goes_in_order() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let lab = lab(&["tools/call"]);
        let ran = ended(&lab, &["mcp", "call", "s", "wait"], "tools/call", signal);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{signal} {ran:?}");
        assert_eq!(last(&lab, 2), ["notifications/cancelled", "EOF"], "{signal} {ran:?}");
        lab.assert_nobody_is_left();
    }
}

#[test]
fn a_server_that_does_not_mind_the_end_of_its_input_is_asked_to_go() {
    let lab = lab(&["tools/call", "deaf"]);
    let ran = ended(&lab, &["mcp", "call", "s", "wait"], "tools/call", "-INT");
    assert_eq!(ran.code, 130, "{ran:?}");
    assert_eq!(last(&lab, 3), ["notifications/cancelled", "EOF", "TERM"], "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn a_signal_while_servers_are_asked_for_something_else_ends_them_in_order_too() {
    for (arguments, until) in [
        (&["mcp", "resources", "s"][..], "resources/list"),
        (&["mcp", "resources", "s", "a:b"], "resources/read"),
        (&["mcp", "prompts", "s", "greet"], "prompts/get"),
    ] {
        let lab = lab(&[until]);
        let ran = ended(&lab, arguments, until, "-INT");
        assert_eq!((ran.code, ran.stdout.as_str()), (130, ""), "{arguments:?} {ran:?}");
        assert_eq!(last(&lab, 2), ["notifications/cancelled", "EOF"], "{arguments:?} {ran:?}");
        lab.assert_nobody_is_left();
    }
}

#[test]
fn a_signal_while_servers_start_ends_them() {
    for arguments in [&["mcp", "start"][..], &["mcp", "tools"], &["mcp", "start", "s", "--json"]] {
        let lab = lab(&["tools/list"]);
        let ran = ended(&lab, arguments, "tools/list", "-TERM");
        let error = arguments.contains(&"--json").then(|| ran.answer()["error"]["message"].clone());
        assert_eq!((ran.code, error.is_none()), (143, ran.stdout.is_empty()), "{arguments:?} {ran:?}");
        assert!(error.is_none_or(|error| error == "interrupted"), "{arguments:?} {ran:?}");
        lab.assert_nobody_is_left();
    }
}

#[test]
fn a_task_that_is_interrupted_cancels_its_call() {
    let lab = lab(&["tools/call"]);
    lab.write("talk.jsonl", call("mcp__s__wait", json!({})).to_string());
    let arguments = ["run", "--model", "replay:../talk.jsonl", "--approval", "yolo", "wait"];
    let ran = ended(&lab, &arguments, "tools/call", "-INT");
    assert_eq!(ran.code, 130, "{ran:?}");
    assert_eq!(last(&lab, 2), ["notifications/cancelled", "EOF"], "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn over_http_the_call_is_cancelled_and_the_session_given_back() {
    let place = Lab::new();
    let script = place.write("remote.py", HTTP);
    let mut server = start({
        let mut command = place.program(python().to_str().unwrap());
        command.arg(script).arg(place.root.join("heard"));
        command
    });
    let port = {
        use std::io::{BufRead, BufReader};
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        line.trim().to_owned()
    };
    let lab = lab_with(&json!({"url": format!("http://127.0.0.1:{port}/mcp")}));
    lab.write("talk.jsonl", call("mcp__s__wait", json!({})).to_string());
    for (arguments, code) in [
        (&["mcp", "call", "s", "wait"][..], 130),
        (&["run", "--model", "replay:../talk.jsonl", "--approval", "yolo", "wait"], 130),
    ] {
        let _ = fs::remove_file(place.root.join("heard"));
        let mut child = start(lab.ollm(arguments));
        drop(child.stdin.take());
        eventually("the call", || heard(&place).iter().any(|method| method == "tools/call"));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let ran = outcome(child);
        assert_eq!(ran.code, code, "{arguments:?} {ran:?}");
        assert_eq!(last(&place, 2), ["notifications/cancelled", "DELETE"], "{arguments:?} {ran:?}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}
