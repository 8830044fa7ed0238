//! Servers whose descendants leave group, session and parent: none of them outlives us, or its own server.

use std::process::Child;

use serde_json::{Value, json};
use testkit::mcp_server;

use super::{USER, declare};
use crate::lab::{Lab, eventually, lines, start};

/// A server behind a launcher that sends a daemon ahead, which sleeps for so long and takes nothing of its environment along.
fn escaping(lab: &Lab, seconds: u32) -> Value {
    let ready = lab.fifo(&seconds.to_string());
    let daemon = format!("echo up > {}; sleep {seconds}; :", ready.display());
    let launcher =
        format!("(setsid sh -c '(setsid env -i /bin/sh -c \"{daemon}\" &)' >/dev/null 2>&1 </dev/null &); exec \"$0\"");
    json!({"command": "/bin/sh", "args": ["-c", launcher, mcp_server()]})
}

fn await_daemon(lab: &Lab, seconds: u32) {
    assert_eq!(lines(&lab.root.join(seconds.to_string()), 1), ["up"]);
    eventually("it sleeps", || sleeps(lab, seconds));
}

fn sleeps(lab: &Lab, seconds: u32) -> bool {
    lab.processes().iter().any(|process| process.contains(&format!("sleep {seconds}")))
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Calls a tool of a server with a daemon.
fn call(lab: &Lab, tool: &str, args: &Value) -> Child {
    declare(lab, USER, &json!({"s": escaping(lab, 1001)}));
    start(lab.ollm(&["mcp", "call", "s", tool, "--args", &args.to_string()]))
}

/// A chat with two servers whose daemons sleep.
fn chat(lab: &Lab) -> Child {
    declare(lab, USER, &json!({"s": escaping(lab, 1001), "t": escaping(lab, 1002)}));
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    let chat = super::control::chat(lab);
    await_daemon(lab, 1001);
    await_daemon(lab, 1002);
    chat
}

#[test]
fn a_call_that_is_killed_leaves_no_daemon_of_its_server() {
    let lab = Lab::new();
    let call = call(&lab, "slow", &json!({"ms": 600_000}));
    await_daemon(&lab, 1001);
    kill(call);
    lab.assert_nobody_is_left();
}

#[test]
fn a_call_that_ends_leaves_no_daemon_of_its_server() {
    let lab = Lab::new();
    let call = call(&lab, "echo", &json!({"text": "hi"}));
    assert!(call.wait_with_output().unwrap().status.success());
    lab.assert_nobody_is_left();
}

#[test]
fn a_chat_that_is_killed_leaves_no_daemon_of_its_servers() {
    let lab = Lab::new();
    kill(chat(&lab));
    lab.assert_nobody_is_left();
}

#[test]
fn a_server_that_is_stopped_in_a_chat_takes_its_daemon_along_and_no_other() {
    let lab = Lab::new();
    let chat = chat(&lab);
    super::control::await_states(&lab, &["ready"]);
    let stopped = lab.run(&["mcp", "stop", "s", "--json"]);
    assert_eq!((stopped.code, &stopped.answer()[0]["state"]), (0, &json!("stopped")), "{stopped:?}");
    eventually("its daemon is gone", || !sleeps(&lab, 1001));
    assert!(sleeps(&lab, 1002), "the other one's is not");
    super::control::end(chat);
    lab.assert_nobody_is_left();
}
