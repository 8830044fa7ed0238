//! What servers are entrusted with is not shown when they fail, and not kept where it does not belong.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::json;
use testkit::RemoteServer;

use super::{call, lab_with, server, text_of};
use crate::lab::Lab;

const SECRET: &str = "hush-hush-value";

/// A server that knows a secret from its declaration.
fn confidant() -> Lab {
    let mut one = server(&["--stderr", "it begins"]);
    one["env"] = json!({"MODE": SECRET});
    lab_with(&one)
}

/// Everything that was written below a folder, with its mode.
fn written(folder: &Path) -> Vec<(std::path::PathBuf, u32, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(written(&path));
        } else {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            all.push((path.clone(), fs::metadata(path).unwrap().mode() & 0o777, text));
        }
    }
    all
}

#[test]
fn a_secret_is_hidden_in_results_too_and_what_is_none_is_not() {
    let mut one = server(&[]);
    one["env"] = json!({"MODE": "production", "API_TOKEN": SECRET});
    let lab = lab_with(&one);
    assert_eq!(text_of(&call(&lab, "env", &json!({"name": "MODE"}))), "production");
    assert_eq!(text_of(&call(&lab, "env", &json!({"name": "API_TOKEN"}))), "[redacted:API_TOKEN]");
}

#[test]
fn a_failure_of_a_call_does_not_show_what_the_server_was_given() {
    let lab = confidant();
    for (tool, shown) in [
        ("fail", "it did not work: [redacted:MODE]"),
        ("error", "error -32603: something is wrong inside: [redacted:MODE]"),
    ] {
        let ran = call(&lab, tool, &json!({"name": "MODE"}));
        assert_eq!((ran.code, text_of(&ran).as_str()), (1, shown), "{ran:?}");
        assert!(ran.stderr.contains("server `s`") && !format!("{ran:?}").contains(SECRET), "{ran:?}");
    }
}

#[test]
fn what_is_kept_of_servers_is_the_owners_alone_and_holds_no_secrets() {
    let lab = confidant();
    let ran = call(&lab, "big", &json!({"bytes": 300_000, "name": "MODE"}));
    assert!(ran.code == 0 && text_of(&ran).contains("the whole is in "), "{ran:?}");
    call(&lab, "fail", &json!({"name": "MODE"}));
    let turn = json!({"tool_calls": [{"name": "mcp__s__big", "arguments": {"bytes": 400_000, "name": "MODE"}}]});
    lab.write("talk.jsonl", format!("{turn}\n{}\n", json!({"content": "done"})));
    let ran = lab.run(&["run", "x", "--model", "replay:../talk.jsonl", "--approval", "yolo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let kept = written(&lab.home.join(".ollm/state"));
    let results: Vec<_> = kept.iter().filter(|(path, ..)| path.to_string_lossy().contains("mcp-results")).collect();
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(results.iter().all(|(_, _, text)| text.ends_with(": [redacted:MODE]")));
    assert!(kept.iter().any(|(path, ..)| path.ends_with("mcp-logs/s.log")));
    for (path, mode, text) in kept {
        assert_eq!(mode, 0o600, "{path:?}");
        assert!(!text.contains(SECRET), "{path:?}");
    }
}

#[test]
fn a_token_that_a_server_throws_back_is_not_shown() {
    let remote = RemoteServer::start(&["--http", "--oauth", "--oauth-fault", "blab"]).unwrap();
    let lab = lab_with(&json!({"url": remote.url}));
    assert_eq!(super::login::login(&lab).code, 0);
    let ran = call(&lab, "echo", &json!({"text": "hi"}));
    assert!(ran.code == 5 && ran.stderr.contains("Bearer [redacted:Authorization] is too much for us"), "{ran:?}");
    assert!(!format!("{ran:?}{:?}", lab.run(&["mcp", "logs", "s"])).contains("access-secret"), "{ran:?}");
}
