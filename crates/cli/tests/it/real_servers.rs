//! Real servers from npm and PyPI: listed and called over every transport they offer. `scripts/real-servers.sh`
//! installs them and names the folder; without it, there is nothing to test.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lab::Lab;

/// Real servers start slowly on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

fn installed() -> Option<PathBuf> {
    std::env::var_os("OLLM_REAL_SERVERS").map(PathBuf::from)
}

fn node(folder: &Path, name: &str, args: &[&str]) -> Value {
    json!({"command": folder.join("node_modules/.bin").join(name), "args": args, "timeout": "60s"})
}

fn python(folder: &Path, name: &str, args: &[&str]) -> Value {
    json!({"command": folder.join("python/bin").join(name), "args": args, "timeout": "60s"})
}

/// Lists the tools of a server, and calls one.
fn try_out(lab: &Lab, declaration: &Value, tool: &str, args: &Value, expected: &str) {
    lab.write("home/.ollm/settings/mcp.json", json!({"mcpServers": {"s": declaration}}).to_string());
    let listed = lab.run(&["mcp", "tools", "s", "--json"]);
    assert_eq!(listed.code, 0, "{declaration} {listed:?}");
    let tools = listed.answer();
    let found = tools.as_array().unwrap().iter().any(|entry| entry["tool"] == tool);
    assert!(found, "{tool} is not among {tools:#}");
    let called = lab.run(&["mcp", "call", "s", tool, "--args", &args.to_string(), "--json"]);
    assert_eq!(called.code, 0, "{tool} {called:?}");
    assert!(called.stdout.contains(expected), "{tool} {called:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn servers_from_npm_are_listed_and_called() {
    let Some(folder) = installed() else { return };
    let lab = Lab::new();
    let file = lab.write("project/notes.txt", "to be read");
    let project = lab.project.to_str().unwrap().to_owned();
    let everything = node(&folder, "mcp-server-everything", &["stdio"]);
    try_out(&lab, &everything, "echo", &json!({"message": "hello there"}), "hello there");
    let filesystem = node(&folder, "mcp-server-filesystem", &[&project]);
    try_out(&lab, &filesystem, "read_text_file", &json!({"path": file}), "to be read");
    let mut memory = node(&folder, "mcp-server-memory", &[]);
    memory["env"] = json!({"MEMORY_FILE_PATH": lab.root.join("memory.json")});
    try_out(&lab, &memory, "read_graph", &json!({}), "entities");
    let thought = json!({"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1});
    let thinking = node(&folder, "mcp-server-sequential-thinking", &[]);
    try_out(&lab, &thinking, "sequentialthinking", &thought, "thoughtNumber");
}

#[test]
fn servers_from_pypi_are_listed_and_called() {
    let Some(folder) = installed() else { return };
    let lab = Lab::new();
    let git = |args: &[&str]| assert!(lab.program("git").args(args).status().unwrap().success());
    std::fs::remove_dir(lab.project.join(".git")).unwrap();
    git(&["init", "--quiet", "--initial-branch=main"]);
    try_out(&lab, &python(&folder, "mcp-server-time", &[]), "get_current_time", &json!({"timezone": "UTC"}), "UTC");
    let project = lab.project.to_str().unwrap().to_owned();
    let declaration = python(&folder, "mcp-server-git", &["--repository", &project]);
    try_out(&lab, &declaration, "git_status", &json!({"repo_path": project}), "main");
    let url = page();
    let fetch = python(&folder, "mcp-server-fetch", &["--ignore-robots-txt", "--allow-private-ips"]);
    try_out(&lab, &fetch, "fetch", &json!({"url": url, "raw": true}), "a page of our own");
}

#[test]
fn everything_is_spoken_to_over_the_network_too() {
    let Some(folder) = installed() else { return };
    for (mode, path, transport) in [("streamableHttp", "mcp", "http"), ("sse", "sse", "sse"), ("sse", "sse", "http")] {
        let lab = Lab::new();
        let program = folder.join("node_modules/.bin/mcp-server-everything");
        let (running, port) = start(&lab, &program, mode);
        let declaration =
            json!({"url": format!("http://127.0.0.1:{port}/{path}"), "type": transport, "timeout": "60s"});
        let run = || try_remote(&lab, &declaration);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        drop(running);
        assert!(outcome.is_ok(), "{mode} as {transport}");
    }
}

fn try_remote(lab: &Lab, declaration: &Value) {
    lab.write("home/.ollm/settings/mcp.json", json!({"mcpServers": {"s": declaration}}).to_string());
    let listed = lab.run(&["mcp", "tools", "s", "--json"]);
    assert_eq!(listed.code, 0, "{declaration} {listed:?}");
    let called = lab.run(&["mcp", "call", "s", "echo", "--args", r#"{"message": "over the wire"}"#, "--json"]);
    assert!(called.code == 0 && called.stdout.contains("over the wire"), "{declaration} {called:?}");
}

/// A server on a port of its own, ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(lab: &Lab, program: &Path, mode: &str) -> (Running, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command: Command = lab.program(program.to_str().unwrap());
    command.arg(mode).env("PORT", port.to_string()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(command.spawn().unwrap());
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(start.elapsed() < PATIENCE, "{mode} does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    (running, port)
}

/// The address of a page that is always the same.
fn page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().filter_map(Result::ok) {
            let mut input = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while input.read_line(&mut line).is_ok_and(|size| size > 2) {
                line.clear();
            }
            let body = "a page of our own";
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    format!("http://127.0.0.1:{port}/")
}
