//! Servers whose descendants leave group, session and parent: none of them outlives us, or its own server.

use std::process::Child;

use serde_json::{Value, json};
use testkit::mcp_server;

use super::{USER, declare};
use crate::lab::{Lab, eventually, lines, start};

/// A server behind a launcher that sends a daemon ahead, which sleeps for so long.
fn escaping(lab: &Lab, seconds: u32) -> Value {
    let ready = lab.fifo(&seconds.to_string());
    let daemon = format!("echo up > {}; exec sleep {seconds}", ready.display());
    let launcher = format!("(setsid sh -c '(setsid sh -c \"{daemon}\" &)' >/dev/null 2>&1 </dev/null &); exec \"$0\"");
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

#[test]
fn a_call_that_is_killed_leaves_no_daemon_of_its_server() {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"s": escaping(&lab, 1001)}));
    let call = start(lab.ollm(&["mcp", "call", "s", "slow", "--args", r#"{"ms": 600000}"#]));
    await_daemon(&lab, 1001);
    kill(call);
    lab.assert_nobody_is_left();
}

#[test]
fn a_call_that_ends_leaves_no_daemon_of_its_server() {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"s": escaping(&lab, 1001)}));
    let call = start(lab.ollm(&["mcp", "call", "s", "echo", "--args", r#"{"text": "hi"}"#]));
    assert!(call.wait_with_output().unwrap().status.success());
    lab.assert_nobody_is_left();
}

#[test]
fn a_chat_that_is_killed_leaves_no_daemon_of_its_servers() {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"s": escaping(&lab, 1001), "t": escaping(&lab, 1002)}));
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    let chat = super::control::chat(&lab);
    await_daemon(&lab, 1001);
    await_daemon(&lab, 1002);
    kill(chat);
    lab.assert_nobody_is_left();
}

#[test]
fn a_server_that_is_stopped_in_a_chat_takes_its_daemon_along_and_no_other() {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"s": escaping(&lab, 1001), "t": escaping(&lab, 1002)}));
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    let chat = super::control::chat(&lab);
    await_daemon(&lab, 1001);
    await_daemon(&lab, 1002);
    super::control::await_states(&lab, &["ready"]);
    let stopped = lab.run(&["mcp", "stop", "s", "--json"]);
    assert_eq!((stopped.code, &stopped.answer()[0]["state"]), (0, &json!("stopped")), "{stopped:?}");
    eventually("its daemon is gone", || !sleeps(&lab, 1001));
    assert!(sleeps(&lab, 1002), "the other one's is not");
    super::control::end(chat);
    lab.assert_nobody_is_left();
}
