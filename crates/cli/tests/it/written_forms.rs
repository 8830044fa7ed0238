//! Forms that the documents write down: they work as written, through the program.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};
use testkit::RemoteServer;

use crate::agent::{call, lab, run, text};
use crate::lab::{Lab, shell_event};

#[test]
fn a_server_may_say_its_address_as_its_command() {
    for (flag, transport) in [("--http", "http"), ("--sse", "sse")] {
        let remote = RemoteServer::start(&[flag]).unwrap();
        let lab = Lab::new();
        let server = json!({"command": remote.url, "args": [], "transport": transport});
        lab.write("home/.ollm/settings/mcp.json", json!({"mcpServers": {"s": server}}).to_string());
        let ran = lab.run(&["mcp", "call", "s", "echo", "--args", r#"{"text": "over there"}"#]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains("over there"), "{ran:?}");
        let status = lab.run(&["mcp", "status", "s", "--json"]).answer();
        assert_eq!((&status[0]["lastFailure"], &status[0]["login"]), (&Value::Null, &Value::Null), "{status:#}");
    }
    let lab = Lab::new();
    let server = json!({"command": "http://127.0.0.1:9/mcp", "args": ["x"], "transport": "http"});
    lab.write("home/.ollm/settings/mcp.json", json!({"mcpServers": {"s": server}}).to_string());
    let ran = lab.run(&["mcp", "list"]);
    assert!(ran.stderr.contains("`args` has no meaning beside an address"), "{ran:?}");
}

#[test]
fn a_list_or_an_object_may_be_the_default_of_a_setting() {
    let lab = Lab::new();
    let settings = json!([
        {"name": "tags", "description": "d", "default": ["a", "b"]},
        {"name": "map", "description": "d", "default": {"x": {"y": 1}}},
    ]);
    let hooks = json!({"before_tool": [{"name": "h", "command": "sh", "args": ["run.sh"]}]});
    let manifest = json!({"name": "e", "version": "1.0.0", "description": "d", "settings": settings, "hooks": hooks});
    lab.write("home/.ollm/extensions/e/manifest.json", manifest.to_string());
    let script = "printf '%s\\n' \"$EXTENSION_E_TAGS\" \"$EXTENSION_E_MAP\" > \"$OLLM_PROJECT_DIR/../got\"; echo '{\"continue\": true}'";
    lab.write("home/.ollm/extensions/e/run.sh", script);
    crate::bundled::approve(&lab, "e");
    let got = || {
        lab.event(shell_event("ls"));
        fs::read_to_string(lab.root.join("got")).unwrap()
    };
    assert_eq!(got(), "[\"a\",\"b\"]\n{\"x\":{\"y\":1}}\n");
    assert_eq!(lab.run(&["ext", "set", "e", "tags=[\"c\"]"]).code, 0);
    assert_eq!(got(), "[\"c\"]\n{\"x\":{\"y\":1}}\n");
    let ran = lab.run(&["ext", "set", "e", "tags=c"]);
    assert!(ran.code != 0 && ran.stderr.contains("setting `tags` must be a list, in JSON"), "{ran:?}");
    lab.write("home/.ollm/config.yaml", "extensions:\n  settings:\n    e:\n      map: [1]\n");
    let ran = lab.run(&["ext", "list"]);
    assert!(format!("{ran:?}").contains("setting `map` must be an object"), "{ran:?}");
    lab.write("home/.ollm/config.yaml", "extensions:\n  settings:\n    e:\n      map: {z: [1]}\n");
    assert_eq!(got(), "[\"a\",\"b\"]\n{\"z\":[1]}\n");
}

/// Answers one request like this, and gives back its body.
fn answering(answer: &'static str) -> (String, thread::JoinHandle<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let heard = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len()).unwrap();
        serde_json::from_slice(&body).unwrap()
    });
    (url, heard)
}

#[test]
fn a_settings_file_may_have_hooks_that_are_posted() {
    let (url, heard) = answering(r#"{"decision": "block", "reason": "not from here"}"#);
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "hooks:\n  http:\n    allow: [127.0.0.1]\n");
    let hook = json!({"type": "http", "url": url, "headers": {"X-Team": "core"}, "timeout": 30});
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}});
    lab.write("home/.config/agent/settings.json", settings.to_string());
    let ran = lab.event(shell_event("ls"));
    assert_eq!((ran.code, &ran.answer()["reason"]), (2, &json!("not from here")), "{ran:?}");
    let body = heard.join().unwrap();
    assert_eq!((&body["hook_event_name"], &body["tool_name"]), (&json!("PreToolUse"), &json!("shell")), "{body:#}");
}

#[test]
fn older_names_of_settings_are_migrated_when_they_are_first_read() {
    let lab = Lab::with_default_boxes();
    let old = "# mine\nhooksTimeout: 9000\nmcpEnabled: false\n";
    lab.write("home/.ollm/config.yaml", old);
    let ran = lab.event(shell_event("ls"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let file = lab.home.join(".ollm/config.yaml");
    let line = format!("ollm: older names in {} were replaced: ", file.display());
    assert_eq!(ran.stderr.lines().filter(|said| said.starts_with(&line)).count(), 1, "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    let new = fs::read_to_string(&file).unwrap();
    assert!(new.contains("# mine") && new.contains("timeout: 9000") && !new.contains("hooksTimeout"), "{new}");
    assert_eq!(fs::read_to_string(lab.home.join(".ollm/config.yaml.bak")).unwrap(), old);
    assert!(fs::read_to_string(lab.home.join(".ollm/state/migrations.jsonl")).unwrap().contains("hooksTimeout"));
    assert_eq!(lab.event(shell_event("ls")).stderr, "", "it is told once");
    // A project's file is not ours to rewrite, and an agent may not have ours rewritten.
    lab.write("project/.ollm/config.yaml", "hooksTimeout: 5000\n");
    assert!(lab.event(shell_event("ls")).stderr.contains("hooksTimeout"));
    assert_eq!(fs::read_to_string(lab.project.join(".ollm/config.yaml")).unwrap(), "hooksTimeout: 5000\n");
    let lab = Lab::with_default_boxes().set("CLAUDECODE", "1");
    lab.write("home/.ollm/config.yaml", old);
    lab.event(shell_event("ls"));
    assert_eq!(fs::read_to_string(lab.home.join(".ollm/config.yaml")).unwrap(), old);
}

#[test]
fn servers_under_an_older_name_are_there_at_once_and_their_file_is_migrated() {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "mcpServers:\n  time: {command: sh}\n");
    let ran = lab.run(&["mcp", "list", "--json"]);
    assert_eq!(ran.answer()[0]["name"], "time", "{ran:?}");
    assert!(ran.stderr.contains("were replaced: `mcpServers` is now `mcp.servers`"), "{ran:?}");
    let again = lab.run(&["mcp", "list", "--json"]);
    assert_eq!((again.stdout, again.stderr.as_str()), (ran.stdout, ""), "it is told once");
}

#[test]
fn a_stream_of_lines_tells_when_each_hook_starts_ends_and_fails() {
    let lab = lab(&[call("list_dir", json!({"path": "."})), text("done")]);
    lab.user_hook("before_tool", "fine", "echo '{\"continue\": true}'", "");
    lab.user_hook("after_tool", "broken", "exit 3", "");
    let ran = run(&lab, &["--stream-json"]);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |kind: &str, name: &str| {
        let id = format!("user:{name}.json:{}:{name}", if name == "fine" { "before_tool" } else { "after_tool" });
        lines.iter().position(|line| line["type"] == kind && line["hook"] == id.as_str())
    };
    let (start, complete) = (told("hook_execution_start", "fine"), told("hook_execution_complete", "fine"));
    assert!(start.is_some() && start < complete, "{lines:#?}");
    let fine = &lines[start.unwrap()];
    assert_eq!((&fine["hook_type"], &fine["context"]["tool_name"]), (&json!("before_tool"), &json!("list_dir")));
    assert_eq!(lines[complete.unwrap()]["result"]["success"], true);
    let error = &lines[told("hook_execution_error", "broken").unwrap()];
    assert_eq!((&error["error"], &error["extension"]), (&json!("exited with status 3"), &Value::Null));
}
