//! Orders from one terminal to the conversation in another.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Child;

use serde_json::{Value, json};

use super::{USER, declare, server};
use crate::lab::{Lab, OLLM, eventually, outcome, start};

/// A lab with a server and a model that says nothing of interest.
fn lab() -> Lab {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"s": server(&["--stderr", "hello there"])}));
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    lab
}

/// A conversation that goes on until its input is closed.
pub(super) fn chat(lab: &Lab) -> Child {
    start(lab.ollm(&["chat", "--model", "replay:../talk.jsonl"]))
}

fn status(lab: &Lab) -> Value {
    lab.run(&["mcp", "status", "s", "--json"]).answer()[0].clone()
}

fn states(lab: &Lab) -> Vec<String> {
    let status = status(lab);
    status["chats"].as_array().unwrap().iter().map(|chat| chat["state"].as_str().unwrap().to_owned()).collect()
}

pub(super) fn await_states(lab: &Lab, wanted: &[&str]) {
    eventually(&format!("the servers are {wanted:?}"), || states(lab) == wanted);
}

pub(super) fn end(mut chat: Child) {
    drop(chat.stdin.take());
    let ran = outcome(chat);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn servers_of_a_chat_are_seen_stopped_and_restarted_from_elsewhere() {
    let lab = lab();
    let chat = chat(&lab);
    await_states(&lab, &["ready"]);
    let seen = status(&lab);
    assert_eq!(
        (&seen["state"], &seen["status"], &seen["running"], &seen["chats"][0]["pid"]),
        (&json!("ready"), &json!("connected"), &json!(true), &json!(chat.id()))
    );
    let process = seen["chats"][0]["process"].as_u64().unwrap();
    let logs = lab.run(&["mcp", "logs", "s", "--json"]).answer();
    assert!(logs["chats"][0]["lines"].to_string().contains("hello there"), "{logs}");
    let table = lab.run(&["mcp", "status"]);
    assert!(table.stdout.contains("CONVERSATION") && table.stdout.contains("connected"), "{table:?}");

    let stopped = lab.run(&["mcp", "stop", "s", "--json"]);
    assert_eq!((stopped.code, &stopped.answer()[0]["state"]), (0, &json!("stopped")), "{stopped:?}");
    assert!(stopped.stderr.contains(&format!("(process {}): server `s` is stopped", chat.id())), "{stopped:?}");
    assert!(!fs::exists(format!("/proc/{process}")).unwrap(), "it ended");
    let seen = status(&lab);
    assert_eq!((&seen["status"], &seen["running"]), (&json!("disconnected"), &json!(false)));

    let restarted = lab.run(&["mcp", "restart", "s", "--json"]);
    assert_eq!((restarted.code, &restarted.answer()[0]["status"]), (0, &json!("connected")), "{restarted:?}");
    assert_ne!(status(&lab)["chats"][0]["process"].as_u64(), Some(process));
    let folder = lab.home.join(".ollm/state/chats");
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    end(chat);
    assert_eq!(states(&lab), Vec::<String>::new());
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "nothing is left behind");
    lab.assert_nobody_is_left();
}

#[test]
fn a_server_that_a_chat_got_later_is_seen_and_stopped_too() {
    let lab = Lab::new();
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    let mut chat = chat(&lab);
    let folder = lab.home.join(".ollm/state/chats");
    eventually("it listens", || fs::read_dir(&folder).is_ok_and(|mut sockets| sockets.next().is_some()));
    assert!(lab.run(&["mcp", "stop"]).stderr.contains("there is nothing to stop"));
    declare(&lab, USER, &json!({"s": server(&[])}));
    chat.stdin.as_mut().unwrap().write_all(b"/mcp\n").unwrap();
    await_states(&lab, &["ready"]);
    assert_eq!(lab.run(&["mcp", "stop", "s"]).code, 0);
    await_states(&lab, &["stopped"]);
    end(chat);
}

#[test]
fn all_chats_of_the_project_obey_and_those_of_others_do_not() {
    let lab = lab();
    let chats = [chat(&lab), chat(&lab)];
    await_states(&lab, &["ready", "ready"]);
    let other = lab.root.join("other");
    fs::create_dir_all(other.join(".git")).unwrap();
    let mut elsewhere = lab.ollm(&["mcp", "stop"]);
    elsewhere.current_dir(&other);
    let ran = crate::lab::finish(elsewhere, b"");
    assert!(ran.code == 1 && ran.stderr.contains("nothing to stop"), "{ran:?}");
    assert_eq!(states(&lab), ["ready", "ready"]);
    let ran = lab.run(&["mcp", "stop", "--json"]);
    assert_eq!((ran.code, ran.answer().as_array().unwrap().len()), (0, 2), "{ran:?}");
    assert_eq!(states(&lab), ["stopped", "stopped"]);
    chats.into_iter().for_each(end);
}

#[test]
fn what_a_killed_chat_leaves_is_cleared_away() {
    let lab = lab();
    let mut chat = chat(&lab);
    await_states(&lab, &["ready"]);
    chat.kill().unwrap();
    chat.wait().unwrap();
    let folder = lab.home.join(".ollm/state/chats");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    assert_eq!(states(&lab), Vec::<String>::new());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let restarted = lab.run(&["mcp", "restart", "s"]);
    assert!(restarted.code == 0 && restarted.stderr.contains("no conversation with servers runs"), "{restarted:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn d14_a_folder_that_others_can_enter_is_not_used() {
    let lab = lab();
    let folder = lab.home.join(".ollm/state/chats");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let mut chat = chat(&lab);
    drop(chat.stdin.take());
    let ran = outcome(chat);
    assert!(ran.code == 0 && ran.stderr.contains("cannot stop or restart servers of this conversation"), "{ran:?}");
    let ran = lab.run(&["mcp", "stop"]);
    assert!(ran.code == 5 && ran.stderr.contains("chmod 700"), "{ran:?}");
}

/// Speaks to the socket without `ollm`.
const ORDER: &str = r#"
import glob, json, os, socket, sys
place = os.path.realpath(sys.argv[1])
path = glob.glob(os.path.expanduser("~/.ollm/state/chats/*.sock"))[0]
s = socket.socket(socket.AF_UNIX)
s.connect(path)
s.sendall((sys.argv[2].replace("PLACE", place) + "\n").encode())
print(s.makefile().readline().strip())
"#;

#[test]
fn an_agent_may_look_but_not_stop_what_may_judge_it() {
    let lab = lab();
    lab.write("order.py", ORDER);
    let place = lab.project.display();
    let stop = format!(
        "python3 ../order.py {place} '{{\"version\": 1, \"do\": \"stop\", \"place\": \"PLACE\", \"servers\": []}}'"
    );
    let look = stop.replace("stop", "status");
    let commands = [format!("{OLLM} mcp stop s; echo code $?"), format!("setsid {stop}"), look];
    let calls: String = commands
        .iter()
        .map(|command| json!({"tool_calls": [{"name": "shell", "arguments": {"command": command}}]}).to_string() + "\n")
        .collect();
    lab.write("talk.jsonl", calls + "{\"content\": \"done\"}\n");
    let ran = lab.run(&["run", "go", "--model", "replay:../talk.jsonl", "--approval", "yolo", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = fs::read_dir(lab.home.join(".ollm/sessions")).unwrap().flatten().next().unwrap().path();
    let told = fs::read_to_string(told).unwrap();
    for part in ["an agent may not stop servers of a conversation", "code 4", "an agent may not stop servers: process"]
    {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert!(told.contains(r#"\"state\":\"ready\""#), "{told}");
    lab.assert_nobody_is_left();
}

#[test]
fn a_frozen_chat_is_named_soon_and_does_not_obey_later() {
    let lab = lab();
    let chat = chat(&lab);
    await_states(&lab, &["ready"]);
    let signal = |name: &str| {
        let sent = std::process::Command::new("kill").args([name, &chat.id().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    for command in [["mcp", "stop", "s"], ["mcp", "restart", "s"], ["mcp", "status", "s"]] {
        let ran = lab.run(&command);
        assert_eq!(ran.code, if command[1] == "status" { 0 } else { 5 }, "{ran:?}");
        assert!(ran.stderr.contains("it did not answer within 5 seconds"), "{ran:?}");
        assert!(ran.stderr.contains(&format!("kill -CONT {}", chat.id())), "{ran:?}");
        assert!(!ran.stderr.contains("no server runs") && !ran.stderr.contains("nothing to stop"), "{ran:?}");
    }
    signal("-CONT");
    await_states(&lab, &["ready"]);
    end(chat);
    lab.assert_nobody_is_left();
}

#[test]
fn a_chat_that_freezes_while_it_obeys_is_named_soon() {
    let lab = Lab::new();
    // It takes its time to end, so that there is a while to freeze in.
    declare(&lab, USER, &json!({"s": server(&["--stubborn"]), "t": server(&[])}));
    lab.write("talk.jsonl", "{\"content\": \"done\"}\n");
    let chat = chat(&lab);
    await_states(&lab, &["ready"]);
    let signal = |name: &str| {
        let sent = std::process::Command::new("kill").args([name, &chat.id().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    let stop = start(lab.ollm(&["mcp", "stop", "s"]));
    await_states(&lab, &["stopped"]);
    signal("-STOP");
    let ran = outcome(stop);
    let told = format!("conversation {}: it did not answer within 5 seconds", chat.id());
    assert!(ran.code == 5 && ran.stderr.contains(&told), "{ran:?}");
    assert!(ran.stderr.contains(&format!("kill -CONT {}", chat.id())), "{ran:?}");
    assert!(ran.stderr.contains("it was told to stop servers, and does so then"), "{ran:?}");
    signal("-CONT");
    await_states(&lab, &["stopped"]);
    end(chat);
    lab.assert_nobody_is_left();
}

#[test]
fn d14_what_is_no_order_is_refused_and_harms_nobody() {
    let lab = lab();
    lab.write("order.py", ORDER);
    let chat = chat(&lab);
    await_states(&lab, &["ready"]);
    let send = |order: &str| {
        let mut command = lab.program("python3");
        command.args(["../order.py", lab.project.to_str().unwrap(), order]);
        crate::lab::finish(command, b"").stdout
    };
    assert!(send("no json").contains("cannot be read"));
    assert!(send(r#"{"version": 2, "do": "stop", "place": "PLACE"}"#).contains("version 1"));
    assert!(send(r#"{"version": 1, "do": "dance", "place": "PLACE"}"#).contains("no order `dance`"));
    assert!(send(r#"{"version": 1, "do": "stop", "place": "/elsewhere"}"#).contains("elsewhere"));
    assert!(send(&"x".repeat(100_000)).contains("too long"));
    let unknown = send(r#"{"version": 1, "do": "stop", "place": "PLACE", "servers": ["nobody"]}"#);
    assert!(unknown.contains("there is no server `nobody`"), "{unknown}");
    assert_eq!(states(&lab), ["ready"]);
    end(chat);
}
