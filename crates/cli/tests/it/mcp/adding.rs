//! Servers are written down as their documentation prints them.

use serde_json::{Value, json};

use super::{PROJECT, USER};
use crate::lab::{Lab, finish};

fn written(lab: &Lab, file: &str) -> Value {
    let text = std::fs::read_to_string(lab.root.join(file)).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["mcpServers"].take()
}

#[test]
fn every_usual_form_is_understood() {
    let time = json!({"command": "uvx", "args": ["mcp-server-time"]});
    let snippet = json!({"mcpServers": {"time": time}}).to_string();
    let named = json!({"name": "time", "command": "uvx", "args": ["mcp-server-time"]}).to_string();
    for arguments in [
        &["time", "--", "uvx", "mcp-server-time"][..],
        &[snippet.as_str()],
        &["time", &time.to_string()],
        &["--", "claude", "mcp", "add", "time", "--", "uvx", "mcp-server-time"],
        &["--", "claude", "mcp", "add", "-s", "user", "time", "uvx", "mcp-server-time"],
        &["claude mcp add time -- uvx mcp-server-time"],
        &["$ codex mcp add time \\\n  -- uvx mcp-server-time"],
        &["gemini mcp add --trust --timeout 5 time uvx mcp-server-time"],
        &["time", "uvx mcp-server-time"],
        &["--", "claude", "mcp", "add-json", "time", &time.to_string()],
        &["--", "code", "--add-mcp", &named],
        &[&format!("code --add-mcp '{named}'")],
        &[&format!("code --add-mcp='{named}'")],
        &[&named],
        &["[mcp_servers.time]\ncommand = \"uvx\"\nargs = [\"mcp-server-time\"]\n"],
    ] {
        let lab = Lab::new();
        let ran = lab.run(&[&["mcp", "add"], arguments].concat());
        assert_eq!(ran.code, 0, "{arguments:?} {ran:?}");
        assert_eq!(written(&lab, USER), json!({"time": time}), "{arguments:?}");
    }
    let toml = "```toml\n[mcp_servers.time]\ncommand = 'uvx'\nargs = ['mcp-server-time']\n```\n";
    for input in [snippet.as_str(), toml, "claude mcp add time -- uvx mcp-server-time\n"] {
        let lab = Lab::new();
        let ran = finish(lab.ollm(&["mcp", "add", "-"]), input.as_bytes());
        assert_eq!(ran.code, 0, "{input} {ran:?}");
        assert_eq!(written(&lab, USER), json!({"time": time}), "{input}");
    }
}

#[test]
fn without_a_name_the_whole_command_is_proposed() {
    let lab = Lab::new();
    for (arguments, proposal) in [
        (&["https://mcp.example.com/mcp"][..], "ollm mcp add example https://mcp.example.com/mcp"),
        (&["--", "npx", "-y", "@scope/server-files"], "ollm mcp add files -- npx -y @scope/server-files"),
        (&["--env", "K=hush-hush", "--", "uvx", "x"], "ollm mcp add x --env 'K=…' -- uvx x"),
    ] {
        let ran = lab.run(&[&["mcp", "add"], arguments].concat());
        assert_eq!(ran.code, 64, "{ran:?}");
        assert!(ran.stderr.contains("needs a name") && ran.stderr.contains(proposal), "{ran:?}");
        assert!(!ran.stderr.contains("hush-hush"), "{ran:?}");
    }
}

#[test]
fn times_that_look_like_seconds_are_pointed_out() {
    let lab = Lab::new();
    let ran = lab.run(&["mcp", "add", "a", r#"{"command": "x", "timeout": 60, "toolTimeout": 60000}"#]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("`timeout` of server `a` is 60 milliseconds; write \"60s\" for seconds"), "{ran:?}");
    assert!(!ran.stderr.contains("toolTimeout"), "{ran:?}");
}

#[test]
fn addresses_headers_and_variables_are_written_down() {
    let lab = Lab::new();
    for arguments in [
        &["docs", "https://example.com/mcp", "--header", "Authorization: Bearer ${TOKEN}"][..],
        &["old", "https://example.com/sse", "--transport", "sse"],
        &["local", "--env", "KEY=a=b", "--", "server", "--flag"],
    ] {
        let ran = lab.run(&[&["mcp", "add"], arguments].concat());
        assert_eq!(ran.code, 0, "{arguments:?} {ran:?}");
    }
    assert_eq!(
        written(&lab, USER),
        json!({
            "docs": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            "old": {"url": "https://example.com/sse", "type": "sse"},
            "local": {"command": "server", "args": ["--flag"], "env": {"KEY": "a=b"}},
        })
    );
}

#[test]
fn what_cannot_be_read_back_is_not_written_down() {
    let lab = Lab::new();
    for arguments in [
        &["x", "--", "a b"][..],
        &["x", "ftp://example.com"],
        &["x"],
        &["{}"],
        &["x", "{"],
        &["x", "https://example.com", "--env", "A=1"],
        &["x", "--env", "A", "--", "server"],
        &["--", "server"],
        &["x", "{\"command\": \"x\", \"env\": []}"],
    ] {
        let ran = lab.run(&[&["mcp", "add"], arguments].concat());
        assert_eq!(ran.code, 64, "{arguments:?} {ran:?}");
        assert!(!ran.stderr.is_empty());
    }
    assert!(!lab.root.join(USER).exists());
}

#[test]
fn a_name_is_given_once_and_a_server_is_taken_out_where_it_stands() {
    let lab = Lab::new();
    assert_eq!(lab.run(&["mcp", "add", "a", "--", "server"]).code, 0);
    let again = lab.run(&["mcp", "add", "a", "--", "other"]);
    assert_eq!(again.code, 64);
    assert!(again.stderr.contains("there is a server `a` already"), "{again:?}");
    let ran = lab.run(&["mcp", "add", "--project", "b", "--", "server"]);
    assert!(ran.stderr.contains("`ollm mcp trust b` approves it"), "{ran:?}");
    let ran = lab.run(&["mcp", "remove", "b"]);
    assert_eq!(ran.code, 64);
    assert!(ran.stderr.contains("`ollm mcp remove b --project` removes it"), "{ran:?}");
    assert_eq!(lab.run(&["mcp", "remove", "b", "--project"]).code, 0);
    assert_eq!(lab.run(&["mcp", "remove", "a"]).code, 0);
    assert_eq!((written(&lab, USER), written(&lab, PROJECT)), (json!({}), json!({})));
    assert_eq!(lab.run(&["mcp", "remove", "a"]).code, 64);
}

#[test]
fn nothing_of_a_snippet_is_ever_repeated() {
    for text in [
        "extensions:\n  gh:\n    envs:\n      TOKEN: hush-hush-1\n    args: [x]\n",
        "some words\nand hush-hush-1",
        "uvx server --token hush-hush-1",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"apiToken\": \"hush-hush-1\"}}}",
        "[mcp_servers.x]\ntoken = hush-hush-1",
        "a: hush-hush-1",
        "export T=hush-hush-1",
    ] {
        let lab = Lab::new();
        let ran = finish(lab.ollm(&["mcp", "add", "-"]), text.as_bytes());
        assert!(!ran.stderr.contains("hush-hush") && !ran.stdout.contains("hush-hush"), "{text} {ran:?}");
    }
}

#[test]
fn a_piece_of_yaml_is_understood() {
    let lab = Lab::new();
    let text =
        "extensions:\n  time:\n    type: stdio\n    cmd: uvx\n    args:\n      - mcp-server-time\n    envs: {A: b}\n";
    let ran = finish(lab.ollm(&["mcp", "add", "-"]), text.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    let time = json!({"type": "stdio", "args": ["mcp-server-time"], "command": "uvx", "env": {"A": "b"}});
    assert_eq!(written(&lab, USER), json!({"time": time}));
}

#[test]
fn a_program_has_no_transport_of_the_web() {
    let lab = Lab::new();
    let ran = lab.run(&["mcp", "add", "x", "-t", "sse", "--", "npx", "y"]);
    assert_eq!(ran.code, 64, "{ran:?}");
    assert!(ran.stderr.contains("standard streams, not by `sse`") && !lab.root.join(USER).exists(), "{ran:?}");
}

#[test]
fn without_a_home_nothing_is_written_down() {
    let lab = Lab::new();
    let mut command = lab.ollm(&["mcp", "add", "x", "--", "true"]);
    command.env("HOME", "relative").env_remove("OLLM_HOME");
    let ran = finish(command, b"");
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("there is no home to write to") && ran.stderr.contains("set HOME or OLLM_HOME"));
}
