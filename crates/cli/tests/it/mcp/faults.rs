//! Servers that misbehave: bounded, named, and nothing else is affected.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::RemoteServer;

use super::{PROJECT, USER, call, declare, lab_with, names, server, text_of};
use crate::lab::{Lab, outcome, start};

/// A declaration with little patience.
fn hasty(flags: &[&str]) -> Value {
    let mut declaration = server(flags);
    declaration["timeout"] = json!(700);
    declaration["toolTimeout"] = json!(700);
    declaration
}

#[test]
fn d08_a_server_that_does_not_start_is_named_and_the_others_work() {
    for (flags, text) in [
        (&["--exit", "0"][..], "exited with code 0"),
        (&["--exit", "9"], "exited with code 9"),
        (&["--mute"], "did not answer"),
        (&["--garbage"], "stdout: }{ this is no message"),
        (&["--flood", "stdout", "--mute"], "stdout: nothing to see here ("),
        (&["--flood", "stderr", "--mute"], "nothing to see here ("),
        (&["--long-line", "100000000", "--mute"], "stdout: xxxxx"),
        (&["--fork"], "exited with code 0"),
    ] {
        let lab = Lab::new();
        let flags = &[&["--stderr", "the last straw"], flags].concat();
        declare(&lab, USER, &json!({"bad": hasty(flags), "good": server(&[])}));
        let ran = lab.run(&["mcp", "tools", "--json"]);
        assert_eq!(ran.code, 0, "{flags:?} {ran:?}");
        assert!(names(&ran).iter().all(|name| name.starts_with("mcp__good__")) && names(&ran).len() == 21, "{flags:?}");
        // Its two streams are read as they come, in any order.
        let parts = ["`bad`", "; its last words: ", "the last straw", text];
        let told = ran.stderr.lines().find(|line| parts.iter().all(|part| line.contains(part)));
        assert!(told.is_some() && ran.stderr.len() < 20_000, "{flags:?} {ran:?}");
        lab.assert_nobody_is_left();
    }
}

/// A server whose first list of tools fails; the file says how often it was asked.
const FLAKY: &str = r#"
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "1"}}
    elif asked["method"] == "tools/list" and os.path.exists("asked"):
        answer["result"] = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    else:
        if asked["method"] == "tools/list":
            open("asked", "w").close()
        answer["error"] = {"code": -32603, "message": "not yet"}
    print(json.dumps(answer), flush=True)
"#;

#[test]
fn a_list_that_failed_is_told_and_not_remembered() {
    let lab = Lab::new();
    let path = lab.write("flaky.py", FLAKY);
    declare(&lab, USER, &json!({"flaky": {"command": "python3", "args": [path], "cwd": lab.root}}));
    let first = lab.run(&["mcp", "tools", "flaky", "--json"]);
    assert_eq!((first.code, first.answer()), (5, json!([])), "{first:?}");
    assert!(first.stderr.contains("server `flaky`: its tools cannot be listed: ") && first.stderr.contains("not yet"));
    assert_eq!(lab.run(&["mcp", "list", "--json"]).answer()[0]["tools"], Value::Null, "nothing is known of them");
    let second = lab.run(&["mcp", "tools", "flaky", "--json"]);
    assert_eq!((second.code, names(&second)), (0, vec!["mcp__flaky__echo".to_owned()]), "{second:?}");
}

#[test]
fn values_of_variables_are_not_shown_whatever_they_are_called() {
    let said = "${WHERE} in ${HOME}, hush-declared and x-${WHAT}";
    let args = ["--stderr", said, "--exit", "9", "--stderr", "${WHAT}"];
    let program = json!({"command": testkit::mcp_server(), "args": args, "env": {"MODE": "hush-declared"}});
    let address = json!({"url": "http://127.0.0.1:1/${WHAT}/mcp", "headers": {"X-Mode": "${WHERE}"}});
    for declaration in [program, address] {
        let lab = lab_with(&declaration).set("WHERE", "hush-where").set("WHAT", "hush-what");
        for command in
            [&["mcp", "start", "s"][..], &["mcp", "call", "s", "echo"], &["mcp", "status"], &["mcp", "logs", "s"]]
        {
            let ran = lab.run(command);
            assert!(!format!("{ran:?}").contains("hush"), "{command:?} {ran:?}");
        }
        let told = lab.run(&["mcp", "start", "s"]).stderr;
        assert!(told.contains("[redacted:WHAT]"), "{told}");
    }
}

#[test]
fn a_program_that_does_not_exist_is_told_without_a_try() {
    let lab = lab_with(&json!({"command": "no-such-server"}));
    let ran = call(&lab, "echo", &json!({}));
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains("`no-such-server` is not on PATH"), "{ran:?}");
    let lab = lab_with(&json!({"command": "/nowhere/server"}));
    assert!(call(&lab, "echo", &json!({})).stderr.contains("/nowhere/server does not exist"));
}

#[test]
fn d08_noise_among_the_messages_is_put_up_with() {
    for flags in [&["--noise"][..], &["--flood", "stderr"], &["--child"], &["--slow", "30"]] {
        let lab = lab_with(&server(flags));
        let ran = call(&lab, "echo", &json!({"text": "hi"}));
        assert_eq!(text_of(&ran), "hi", "{flags:?}");
        lab.assert_nobody_is_left();
    }
}

#[test]
fn d08_a_server_that_ignores_everything_is_ended_all_the_same() {
    let lab = lab_with(&server(&["--stubborn", "--child"]));
    assert_eq!(text_of(&call(&lab, "echo", &json!({"text": "hi"}))), "hi");
    lab.assert_nobody_is_left();
}

#[test]
fn a_call_that_does_not_end_well_is_told() {
    for (flags, tool, args, text) in [
        (&["--die-in-call"][..], "echo", json!({"text": "hi"}), "it exited with code 3"),
        (&[], "crash", json!({}), "may have had an effect"),
        (&[], "slow", json!({"ms": 60000}), "no answer to `slow` within 700 ms"),
    ] {
        let lab = lab_with(&hasty(&[&["--stderr", "my end"], flags].concat()));
        let ran = call(&lab, tool, &args);
        assert_eq!(ran.code, 5, "{tool} {ran:?}");
        assert!(ran.stderr.contains(text) && ran.stderr.contains("`s`"), "{tool} {ran:?}");
        assert!(ran.stderr.contains("; its last words: my end\n"), "{tool} {ran:?}");
        lab.assert_nobody_is_left();
    }
    let lab = lab_with(&server(&["--refuse", "--stderr", "my end"]));
    let ran = call(&lab, "echo", &json!({"text": "hi"}));
    let told = "server `s`, tool `echo`: no call is answered (error -32603); its last words: my end\n";
    assert!(ran.code == 1 && ran.stderr.contains(told), "{ran:?}");
    let ran = call(&lab_with(&server(&[])), "fail", &json!({}));
    assert!(ran.code == 1 && ran.stderr.contains("server `s`, tool `fail`: it says that it failed"), "{ran:?}");
}

#[test]
fn programs_read_why_there_is_no_answer() {
    let lab = lab_with(&hasty(&[]));
    declare(&lab, PROJECT, &json!({"theirs": server(&[])}));
    let wait = r#"{"ms": 60000}"#;
    for (command, code, text) in [
        (&["call", "s", "slow", "--args", wait][..], 5, "MCP server `s`: no answer to `slow` within 700 ms"),
        (&["call", "mcp__s__slow", "--args", wait], 5, "MCP server `s`: no answer to `slow` within 700 ms"),
        (&["call", "theirs", "echo"], 4, "server `theirs` is not started: it is not approved"),
        (&["resources", "theirs"], 4, "server `theirs` is not started: it is not approved"),
        (&["resources", "s", "no://where"], 1, "MCP server `s`: "),
        (&["prompts", "s", "nowhere"], 1, "MCP server `s`: "),
        (&["call", "s", "nothing"], 64, "server `s` has no tool `nothing`"),
    ] {
        let ran = lab.run(&[&["mcp"], command, &["--json"]].concat());
        assert_eq!((ran.code, &ran.answer()["exit"]), (code, &json!(code)), "{command:?} {ran:?}");
        let error = ran.answer()["error"]["message"].as_str().unwrap().to_owned();
        assert!(error.starts_with(text) && ran.stderr.contains(text), "{command:?} {ran:?}");
        let plain = lab.run(&[&["mcp"], command].concat());
        assert_eq!((plain.code, plain.stdout.as_str()), (code, ""), "{command:?} {plain:?}");
    }
}

#[test]
fn a_hook_whose_server_is_too_slow_is_told_with_the_last_words_of_the_server() {
    let lab = lab_with(&server(&["--stderr", "my end"]));
    let action = json!({"type": "mcp", "server": "s", "tool": "slow", "args": {"ms": 60_000}});
    let hook = json!({"name": "judge", "timeout": 1500, "onFailure": "block", "action": action});
    lab.write("home/.ollm/hooks/judge.json", json!({"hooks": {"before_tool": [hook]}}).to_string());
    let ran = lab.run(&["hook", "run", "before_tool", "--data", r#"{"tool_name": "shell", "args": {}}"#]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let told = "did not answer within 1.5s and was stopped; server `s`, its last words: my end\n";
    assert!(ran.stderr.contains(told) && ran.stdout.contains("\"status\":\"timeout\""), "{ran:?}");
    lab.assert_nobody_is_left();
}

/// A server that never answers `slow`, takes its time to leave, and writes down how it left.
const LEISURELY: &str = r#"
import json, os, signal, sys, time
def leave(how):
    open("left", "a").write(how + "\n")
    os._exit(0)
signal.signal(signal.SIGTERM, lambda *_: leave("asked"))
tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ["slow", "echo"]]
info = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "l", "version": "1"}}
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": asked.get("id")}
    if "id" not in asked or asked.get("params", {}).get("name") == "slow":
        continue
    elif asked["method"] in ["initialize", "tools/list", "tools/call"]:
        said = {"content": [{"type": "text", "text": "hi"}]}
        answer["result"] = {"initialize": info, "tools/list": {"tools": tools}, "tools/call": said}[asked["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
time.sleep(2)
leave("by itself")
"#;

#[test]
fn whoever_waited_in_vain_does_not_wait_for_the_server_to_leave() {
    let lab = Lab::new();
    let path = lab.write("leisurely.py", LEISURELY);
    declare(&lab, USER, &json!({"s": {"command": "python3", "args": [path], "cwd": lab.root, "toolTimeout": 700}}));
    let action = json!({"type": "mcp", "server": "s", "tool": "slow"});
    let hook = json!({"name": "judge", "timeout": 6000, "action": action});
    lab.write("home/.ollm/hooks/judge.json", json!({"hooks": {"before_tool": [hook]}}).to_string());
    let event = ["hook", "run", "before_tool", "--data", r#"{"tool_name": "shell", "args": {}}"#];
    for (command, code, how) in [
        (&event[..], 0, "asked\n"),
        (&["mcp", "call", "s", "slow"], 5, "asked\n"),
        (&["mcp", "call", "s", "echo"], 0, "by itself\n"),
    ] {
        let ran = lab.run(command);
        assert_eq!(ran.code, code, "{command:?} {ran:?}");
        assert_eq!(std::fs::read_to_string(lab.root.join("left")).unwrap(), how, "{command:?} {ran:?}");
        std::fs::remove_file(lab.root.join("left")).unwrap();
        lab.assert_nobody_is_left();
    }
}

#[test]
fn progress_keeps_a_slow_call_alive() {
    let lab = lab_with(&hasty(&[]));
    let ran = call(&lab, "progress", &json!({"steps": 6, "ms": 300}));
    assert_eq!((ran.code, text_of(&ran).as_str()), (0, "done"), "{ran:?}");
}

/// The server of the workshop in every transport, and those it runs on.
fn everywhere() -> ([Value; 3], [RemoteServer; 2]) {
    let remote = ["--http", "--sse"].map(|flag| RemoteServer::start(&[flag]).unwrap());
    let [http, sse] = [0, 1].map(|number: usize| json!({"url": remote[number].url}));
    ([server(&[]), http, sse], remote)
}

#[test]
fn a_large_result_is_kept_whole_in_a_file_whose_path_is_told() {
    let (declarations, _remote) = everywhere();
    for declaration in declarations {
        let lab = lab_with(&declaration);
        let ran = call(&lab, "big", &json!({"bytes": 12_000_000}));
        assert_eq!((ran.code, &ran.answer()["isError"]), (0, &json!(false)), "{declaration} {}", ran.stderr);
        assert!(ran.stdout.len() < 20_000, "{declaration}");
        let text = text_of(&ran);
        let path = text.rsplit_once("[12000000 bytes are too many to show; the whole is in ").unwrap().1;
        let kept = std::fs::read(path.trim_end_matches(']')).unwrap();
        assert!(kept.len() == 12_000_000 && kept.iter().all(|byte| *byte == b'x'), "{declaration} {}", kept.len());
    }
}

#[test]
fn d08_a_message_that_is_too_large_is_refused() {
    let (declarations, _remote) = everywhere();
    let sizes = [(100_000_000, 1), (70_000_000, 5), (70_000_000, 1)];
    for (declaration, (bytes, code)) in declarations.into_iter().zip(sizes) {
        let lab = lab_with(&declaration);
        let ran = call(&lab, "big", &json!({"bytes": bytes}));
        assert_eq!(ran.code, code, "{declaration} {}", ran.stderr);
        assert!(ran.stderr.contains("`s`") && ran.stderr.contains("64 MiB"), "{declaration} {}", ran.stderr);
        assert!(ran.stdout.len() < 2000 && ran.stderr.len() < 2000, "{declaration} {}", ran.stderr);
        lab.assert_nobody_is_left();
    }
}

#[test]
fn lists_without_end_are_cut() {
    for flags in [&["--tools", "10000"][..], &["--tools", "10000", "--page", "50"], &["--same-cursor"], &["--endless"]]
    {
        let lab = lab_with(&server(flags));
        let ran = lab.run(&["mcp", "tools", "s", "--json"]);
        assert_eq!(ran.code, 0, "{flags:?} {}", ran.stderr);
        assert!(ran.stderr.contains("the rest is left out"), "{flags:?} {}", ran.stderr);
        assert!(names(&ran).len() <= 2048, "{flags:?}");
        // From memory, and by every other command that deals with its tools.
        lab.write("talk.jsonl", json!({"content": "done"}).to_string());
        let (start, run) = (["mcp", "start", "s"], ["run", "x", "--model", "replay:../talk.jsonl"]);
        for command in [&["mcp", "tools", "s"][..], &start, &run] {
            let ran = lab.run(command);
            let told =
                ran.stderr.lines().find(|line| line.contains("server `s`") && line.contains("the rest is left out"));
            assert!(ran.code == 0 && told.is_some(), "{command:?} {flags:?} {}", ran.stderr);
        }
    }
}

#[test]
fn d09_bad_tools_are_refused_one_by_one() {
    let lab = lab_with(&server(&["--twice", "--hidden", "--bad-tools"]));
    let ran = lab.run(&["mcp", "tools", "--json"]);
    assert_eq!((ran.code, names(&ran).len()), (0, 21), "{ran:?}");
    assert!(ran.answer().as_array().unwrap().iter().all(|tool| tool["description"] != "Pretends to be echo"));
    assert!(ran.stderr.contains("another tool of that name") && ran.stderr.contains("control or invisible"), "{ran:?}");
    assert!(ran.stderr.contains("its inputSchema must be an object") && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    let lab = lab_with(&server(&["--twice", "--bad-tools"]));
    lab.write("talk.jsonl", json!({"content": "done"}).to_string());
    for command in [&["run", "x", "--model", "replay:../talk.jsonl"][..], &["mcp", "start"]] {
        let ran = lab.run(command);
        assert!(ran.stderr.contains("server `s`, tool `echo`: the server lists another tool of that name"), "{ran:?}");
    }
}

#[test]
fn a_tool_that_is_nested_too_deeply_is_refused_and_no_other() {
    let remote =
        [["--http", "--deep", "180"], ["--sse", "--deep", "180"]].map(|flags| RemoteServer::start(&flags).unwrap());
    let over = |remote: &RemoteServer| json!({"url": remote.url});
    let batch = server(&["--deep", "180", "--batch"]);
    for declaration in
        [server(&["--deep", "180"]), server(&["--deep", "1000"]), batch, over(&remote[0]), over(&remote[1])]
    {
        let lab = lab_with(&declaration);
        // The second time it is the list that was remembered.
        for _ in 0..2 {
            let ran = lab.run(&["mcp", "tools", "--json"]);
            assert_eq!((ran.code, names(&ran).len()), (0, 21), "{declaration} {ran:?}");
            assert!(ran.stderr.contains("server `s`, tool `deep`: it is nested more than 100 levels deep"), "{ran:?}");
        }
    }
}

#[test]
fn a_remote_server_that_misbehaves_is_named() {
    let other = RemoteServer::start(&["--http"]).unwrap();
    for (flags, text) in [
        (&["--http", "--redirect", &other.url][..], "`s`"),
        (&["--http", "--garbage"], "`s`"),
        (&["--http", "--mute"], "`s`"),
        (&["--http", "--unauthorized"], "needs a login"),
        (&["--sse", "--endpoint", "http://example.com/messages"], "it redirects to http://example.com"),
    ] {
        let remote = RemoteServer::start(flags).unwrap();
        let lab = lab_with(&json!({"url": remote.url, "timeout": 700}));
        let ran = call(&lab, "echo", &json!({"text": "hi"}));
        assert_eq!(ran.code, 5, "{flags:?} {ran:?}");
        assert!(ran.stderr.contains(text), "{flags:?} {ran:?}");
    }
    let lab = lab_with(&json!({"url": "http://127.0.0.1:1/mcp", "timeout": 700}));
    assert_eq!(call(&lab, "echo", &json!({})).code, 5);
}

#[test]
fn proxies_are_used_but_for_those_who_are_named_and_for_this_machine() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let was_asked = || {
        let mut asked = false;
        while proxy.accept().is_ok() {
            asked = true;
        }
        asked
    };
    for (variables, used) in [
        (&[("http_proxy", address.as_str())][..], true),
        (&[("ALL_PROXY", &address)], true),
        (&[("https_proxy", &address)], false),
        (&[("http_proxy", &address), ("NO_PROXY", "example.org, server.invalid")], false),
        (&[("http_proxy", &address), ("no_proxy", ".invalid")], false),
        (&[("http_proxy", &address), ("no_proxy", "example.org")], true),
    ] {
        let lab = lab_with(&json!({"url": "http://server.invalid/mcp", "timeout": 300}));
        let lab = variables.iter().fold(lab, |lab, (name, value)| lab.set(name, value));
        assert_eq!(call(&lab, "echo", &json!({})).code, 5);
        assert_eq!(was_asked(), used, "{variables:?}");
    }
    let remote = RemoteServer::start(&["--http"]).unwrap();
    let lab = lab_with(&json!({"url": remote.url})).set("http_proxy", &address).set("NO_PROXY", "example.org");
    assert_eq!(text_of(&call(&lab, "echo", &json!({"text": "hi"}))), "hi");
    assert!(!was_asked());
}

#[test]
fn a_session_that_was_forgotten_is_begun_anew() {
    let remote = RemoteServer::start(&["--http", "--forget", "3"]).unwrap();
    let lab = lab_with(&json!({"url": remote.url}));
    for _ in 0..3 {
        assert_eq!(text_of(&call(&lab, "echo", &json!({"text": "hi"}))), "hi");
    }
}

#[test]
fn nobody_is_left_when_we_are_ended_in_the_middle_of_a_call() {
    for signal in ["-KILL", "-TERM", "-INT", "-HUP"] {
        let lab = Lab::new();
        let log = lab.root.join("asked");
        let flags = ["--stubborn", "--child", "--log", log.to_str().unwrap()];
        declare(&lab, USER, &json!({"s": server(&flags)}));
        let child = start(lab.ollm(&["mcp", "call", "s", "slow", "--args", r#"{"ms": 600000}"#]));
        let begun = Instant::now();
        while !super::asked(&lab).iter().any(|method| method == "tools/call") {
            assert!(begun.elapsed() < Duration::from_mins(1), "{signal}: the call never came");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(lab.program("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        outcome(child);
        lab.assert_nobody_is_left();
    }
}
