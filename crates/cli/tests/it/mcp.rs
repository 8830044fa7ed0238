//! `ollm mcp` from the outside: real servers, real processes, real sockets.

use serde_json::{Value, json};
use testkit::{RemoteServer, mcp_server};

use crate::lab::pty::LARGE;
use crate::lab::{Lab, Ran};

mod adding;
mod asking;
mod changing;
mod clients;
mod control;
mod escape;
mod faults;
mod guarding;
pub(crate) mod login;
mod malformed;
pub(crate) mod reviewing;
mod secrets;
mod signals;
mod telling;
mod trust;

pub(crate) const USER: &str = "home/.ollm/settings/mcp.json";
pub(crate) const PROJECT: &str = "project/.ollm/settings/mcp.json";

/// The server of the workshop, as a declaration.
pub(crate) fn server(flags: &[&str]) -> Value {
    json!({"command": mcp_server(), "args": flags})
}

pub(crate) fn declare(lab: &Lab, file: &str, servers: &Value) {
    lab.write(file, json!({"mcpServers": servers}).to_string());
}

/// A lab whose user has one server, `s`.
fn lab_with(declaration: &Value) -> Lab {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"s": declaration}));
    lab
}

fn call(lab: &Lab, tool: &str, args: &Value) -> Ran {
    lab.run(&["mcp", "call", "s", tool, "--args", &args.to_string(), "--json"])
}

fn text_of(ran: &Ran) -> String {
    ran.answer()["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

fn names(ran: &Ran) -> Vec<String> {
    ran.answer().as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// What the server was asked, as it wrote it down itself.
fn asked(lab: &Lab) -> Vec<String> {
    let text = std::fs::read_to_string(lab.root.join("asked")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_list_starts_nothing() {
    let lab = Lab::new();
    let log = lab.root.join("asked");
    let mut one = server(&["--log", log.to_str().unwrap()]);
    one["env"] = json!({"TOKEN": "hush-hush-hush"});
    declare(&lab, USER, &json!({"one": one, "off": {"url": "http://127.0.0.1:1/mcp", "enabled": false}}));
    declare(&lab, PROJECT, &json!({"theirs": {"command": "no-such-program"}, "one": {"command": "evil"}}));
    let ran = lab.run(&["mcp", "list", "--json"]);
    assert_eq!(ran.code, 0);
    let mut rows = ran.answer();
    for row in rows.as_array_mut().unwrap() {
        assert!(row["digest"].take().as_str().unwrap().starts_with("sha256:"));
    }
    assert_eq!(
        rows,
        json!([
            {"name": "one", "transport": "stdio", "state": "configured", "tools": null, "error": null, "source": "user", "trust": "trusted", "digest": null},
            {"name": "off", "transport": "http", "state": "stopped", "tools": null, "error": null, "source": "user", "trust": "trusted", "digest": null},
            {"name": "theirs", "transport": "stdio", "state": "configured", "tools": null, "source": "workspace", "trust": "untrusted", "digest": null,
             "error": "`no-such-program` is not on PATH; install it, or give its absolute path; it can be approved after that"},
        ])
    );
    assert!(ran.stderr.contains("server `one` is one of the user's own servers"), "{ran:?}");
    let table = lab.run(&["mcp", "list"]);
    assert_eq!((table.code, table.stdout.lines().count()), (0, 4));
    assert_eq!(asked(&lab), Vec::<String>::new());
    assert!(!format!("{ran:?}{table:?}").contains("hush-hush"));
}

#[test]
fn tools_of_all_servers_are_one_list_and_a_bad_server_is_only_named() {
    let lab = Lab::new();
    declare(
        &lab,
        USER,
        &json!({"a": server(&["--page", "4"]), "b.c": server(&[]), "bad": server(&["--exit", "7", "--stderr", "out of luck"])}),
    );
    let ran = lab.run(&["mcp", "tools", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let tools = ran.answer();
    let first = &tools[0];
    assert_eq!(first["server"], "a");
    assert_eq!(
        (&first["name"], &first["tool"], &first["state"]),
        (&json!("mcp__a__echo"), &json!("echo"), &json!("ready"))
    );
    assert_eq!(first["inputSchema"]["required"], json!(["text"]));
    let names = names(&ran);
    assert!(names.contains(&"mcp__b_c__add".to_owned()), "{names:?}");
    assert!(
        ran.stderr.contains("`bad`") && ran.stderr.contains("out of luck") && ran.stderr.contains("code 7"),
        "{ran:?}"
    );
    assert_eq!(lab.run(&["mcp", "tools", "bad", "--json"]).code, 5);
    lab.assert_nobody_is_left();
}

#[test]
fn nothing_but_failures_is_a_failure_and_what_is_switched_off_is_none() {
    let lab = Lab::new();
    let mut off = server(&[]);
    off["enabled"] = json!(false);
    let bad = server(&["--exit", "7"]);
    declare(&lab, USER, &json!({"off": off}));
    assert_eq!(lab.run(&["mcp", "tools", "--json"]).code, 0);
    declare(&lab, PROJECT, &json!({"theirs": server(&[])}));
    assert_eq!(lab.run(&["mcp", "tools", "--json"]).code, 4);
    declare(&lab, USER, &json!({"off": off, "bad": bad, "worse": {"command": "no-such-program"}}));
    let ran = lab.run(&["mcp", "tools", "--json"]);
    assert_eq!((ran.code, ran.answer()), (5, json!([])), "{ran:?}");
    assert_eq!(lab.run(&["mcp", "start", "--json"]).code, 5);
    assert_eq!(lab.run(&["mcp", "list", "--json"]).code, 0);
    declare(&lab, USER, &json!({"bad": bad, "good": server(&[])}));
    assert_eq!(lab.run(&["mcp", "tools", "--json"]).code, 0);
    assert_eq!(lab.run(&["mcp", "start", "--json"]).code, 5);
}

#[test]
fn what_a_server_lists_is_remembered_for_its_exact_declaration() {
    let lab = Lab::new();
    let log = lab.root.join("asked");
    let flags = ["--log", log.to_str().unwrap()];
    declare(&lab, USER, &json!({"s": server(&flags)}));
    let first = lab.run(&["mcp", "tools", "--json"]);
    let before = asked(&lab).len();
    assert!(before > 0);
    let second = lab.run(&["mcp", "tools", "--json"]);
    assert_eq!((asked(&lab).len(), second.answer()[0]["state"].as_str()), (before, Some("configured")));
    assert_eq!(names(&first), names(&second));
    assert_eq!(lab.run(&["mcp", "list", "--json"]).answer()[0]["tools"], names(&first).len());
    lab.run(&["mcp", "tools", "--refresh", "--json"]);
    assert!(asked(&lab).len() > before);
    declare(&lab, USER, &json!({"s": server(&[&flags[..], &["--tools", "1"]].concat())}));
    assert_eq!(names(&lab.run(&["mcp", "tools", "--json"])).len(), names(&first).len() + 1);
}

#[test]
fn only_the_tools_that_are_admitted_are_offered_and_called() {
    let mut one = server(&["--stderr", "hello"]);
    one["includeTools"] = json!(["echo", "add"]);
    one["excludeTools"] = json!(["add"]);
    let lab = lab_with(&one);
    assert_eq!(names(&lab.run(&["mcp", "tools", "--json"])), ["mcp__s__echo"]);
    for named in [&["s", "add"][..], &["s", "mcp__s__add"], &["mcp__s__add"]] {
        let ran = lab.run(&[&["mcp", "call"], named, &["--args", r#"{"a": 1, "b": 2}"#]].concat());
        assert_eq!(ran.code, 64, "{ran:?}");
        assert!(ran.stderr.contains("tool `add` of server `s` is denied by its declaration"), "{ran:?}");
        assert!(ran.stderr.contains("`denyTools`") && !ran.stderr.contains("mcp logs"), "{ran:?}");
    }
}

#[test]
fn a_call_prints_the_result_and_nothing_else() {
    let lab = lab_with(&server(&[]));
    let ran = call(&lab, "add", &json!({"a": 2, "b": 2}));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        ran.answer(),
        json!({"content": [{"type": "text", "text": "{\"sum\":4.0}"}], "structuredContent": {"sum": 4.0}, "isError": false})
    );
    assert_eq!(text_of(&call(&lab, "mcp__s__echo", &json!({"text": "hi"}))), "hi");
    let shown = lab.run(&["mcp", "call", "s", "echo", "--args", "{\"text\": \"a\\u001b[2Jb\"}"]);
    assert_eq!(shown.stdout, "a\\u{1b}[2Jb\n");
    lab.assert_nobody_is_left();
}

#[test]
fn every_kind_of_content_comes_through() {
    let lab = lab_with(&server(&[]));
    for (tool, kind) in [("image", "image"), ("audio", "audio"), ("resource", "resource"), ("link", "resource_link")] {
        let ran = call(&lab, tool, &json!({}));
        assert_eq!((ran.code, &ran.answer()["content"][0]["type"]), (0, &json!(kind)), "{ran:?}");
    }
}

#[test]
fn progress_is_streamed_to_standard_error() {
    let lab = lab_with(&server(&[]));
    let ran = call(&lab, "progress", &json!({"steps": 3, "ms": 20}));
    assert_eq!((ran.code, text_of(&ran).as_str()), (0, "done"));
    let steps: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("progress")).collect();
    assert_eq!(steps.last(), Some(&"ollm: progress 3 of 3: step 3"), "{ran:?}");
}

#[test]
fn a_tool_that_fails_says_so_in_its_result_and_in_the_exit_code() {
    let lab = lab_with(&server(&[]));
    for (tool, text) in [("fail", "it did not work"), ("error", "error -32603: something is wrong inside")] {
        let ran = call(&lab, tool, &json!({}));
        assert_eq!((ran.code, text_of(&ran).as_str()), (1, text), "{ran:?}");
        assert_eq!(ran.answer()["isError"], true);
    }
}

#[test]
fn a_broken_promise_is_named_and_dropped() {
    let lab = lab_with(&server(&[]));
    let ran = call(&lab, "broken", &json!({}));
    assert_eq!((ran.code, &ran.answer()["structuredContent"]), (0, &Value::Null));
    assert!(ran.stderr.contains("it is not what the tool promised"), "{ran:?}");
}

#[test]
fn a_large_result_is_kept_in_a_file_whose_path_is_told() {
    let lab = lab_with(&server(&[]));
    let ran = call(&lab, "big", &json!({"bytes": 300_000}));
    let text = text_of(&ran);
    let path = text.rsplit_once("the whole is in ").unwrap().1.trim_end_matches(']').to_owned();
    assert!(text.len() < 20_000 && path.starts_with(lab.home.to_str().unwrap()), "{path}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "x".repeat(300_000));
    let full = lab.run(&["mcp", "call", "s", "big", "--args", r#"{"bytes": 300000}"#, "--json", "--full"]);
    assert_eq!(text_of(&full).len(), 300_000);
}

#[test]
fn wrong_usage_is_told_before_anything_starts() {
    let lab = lab_with(&server(&[]));
    for (arguments, text) in [
        (&["mcp", "call", "t", "echo"][..], "there is no server `t`"),
        (&["mcp", "call", "s", "echo", "--args", "[]"], "--args must be a JSON object"),
        (&["mcp", "call", "s", "echo", "--args", "{"], "--args is not valid JSON"),
        (&["mcp", "call", "s", "echo", "--timeout", "soon"], "--timeout must be a time"),
        (&["mcp", "tools", "nobody"], "there is no server `nobody`"),
        (&["mcp", "trust", "nobody"], "there is no server `nobody`"),
        (&["mcp", "logs", "nobody"], "there is no server `nobody`"),
    ] {
        let ran = lab.run(arguments);
        assert_eq!(ran.code, 64, "{arguments:?} {ran:?}");
        assert!(ran.stderr.contains(text), "{arguments:?} {ran:?}");
    }
}

#[test]
fn a_tool_is_called_by_its_full_name_alone_and_a_slip_is_named() {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"b.c": server(&[])}));
    let ran = lab.run(&["mcp", "call", "mcp__b_c__echo", "--args", r#"{"text": "hi"}"#, "--json"]);
    assert_eq!(text_of(&ran), "hi");
    for (arguments, texts) in [
        (&["mcp__b_c__ecco"][..], ["server `b.c` has no tool `mcp__b_c__ecco`", "did you mean `mcp__b_c__echo`?"]),
        (&["b.c", "ecco"], ["server `b.c` has no tool `ecco`", "did you mean `echo`?"]),
        (&["b.c", "zzzzzzzz"], ["server `b.c` has no tool `zzzzzzzz`", "`ollm mcp tools b.c` shows those it has"]),
        (&["mcp__x__echo"], ["no server has a tool `mcp__x__echo`", "ollm mcp tools"]),
        (&["b.c"], ["a tool is missing", "mcp__SERVER__TOOL"]),
        (
            &["b.c", "echo"],
            ["the arguments do not fit tool `echo` of `b.c`: `text` is missing", "it wants `text` (string)"],
        ),
        (&["b.c", "echo", "--args", r#"{"text": 7}"#], ["at /text: it must be string, not a number", "it wants"]),
    ] {
        let ran = lab.run(&[&["mcp", "call"], arguments].concat());
        assert_eq!(ran.code, 64, "{ran:?}");
        assert!(texts.iter().all(|text| ran.stderr.contains(text)), "{texts:?} {ran:?}");
    }
}

#[test]
fn arguments_can_be_given_one_by_one_and_mean_what_the_tool_wants() {
    let lab = lab_with(&server(&[]));
    for text in ["text=hi there", "text=7", "text=a=b", "text={\"x\": 1}", "text="] {
        let ran = lab.run(&["mcp", "call", "s", "echo", text, "--json"]);
        assert_eq!(text_of(&ran), text.strip_prefix("text=").unwrap(), "{ran:?}");
    }
    assert_eq!(text_of(&lab.run(&["mcp", "call", "mcp__s__echo", "text=hi", "--json"])), "hi");
    assert_eq!(text_of(&lab.run(&["mcp", "call", "s", "big", "bytes=3", "--json"])), "xxx");
    for (arguments, text) in [
        (&["s", "echo", "text"][..], "`text` is no KEY=VALUE"),
        (&["s", "echo", "text=a", "text=b"], "the argument `text` is there twice"),
        (&["s", "echo", "text=a", "--args", "{\"text\": \"b\"}"], "the argument `text` is there twice"),
        (&["s", "big", "bytes=many"], "at /bytes"),
    ] {
        let ran = lab.run(&[&["mcp", "call"], arguments].concat());
        assert_eq!((ran.code, ran.stderr.contains(text)), (64, true), "{ran:?}");
    }
    let tools = lab.run(&["mcp", "tools"]).stdout;
    let echo = tools.lines().find(|line| line.starts_with("mcp__s__echo ")).unwrap();
    assert_eq!(echo.split_whitespace().nth(1), Some("text"), "{tools}");
}

#[test]
fn a_server_that_may_have_to_be_downloaded_has_longer_for_its_first_answer_and_that_is_told() {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "mcp: {connectionTimeout: 1}\n");
    let declared = server(&[]);
    let words: Vec<String> = std::iter::once(&declared["command"])
        .chain(declared["args"].as_array().into_iter().flatten())
        .map(|word| ollm_shell::shell_word(word.as_str().unwrap()).to_string())
        .collect();
    let runner = |name: &str, seconds: f32| {
        let script = format!("#!/bin/sh\nsleep {seconds}\nexec {}\n", words.join(" "));
        lab.write_executable(&format!("bin/{name}"), &script)
    };
    let (slow, fetched) = (runner("other", 60.0), runner("uvx", 0.3));
    declare(&lab, USER, &json!({"slow": {"command": slow}, "fetched": {"command": fetched}}));
    let fetched = lab.run(&["mcp", "call", "fetched", "echo", "text=hi", "--json"]);
    assert_eq!((fetched.code, text_of(&fetched)), (0, "hi".to_owned()), "{fetched:?}");
    assert!(fetched.stderr.contains("may have to download it first; it has 2 minutes"), "{fetched:?}");
    assert_ne!(lab.run(&["mcp", "call", "slow", "echo", "text=hi"]).code, 0, "it has no time at all");
    let again = || lab.run(&["mcp", "call", "fetched", "echo", "text=hi"]);
    assert_ne!(again().code, 0, "what is known needs no download");
    let once_more = again();
    assert!(once_more.code == 0 && once_more.stderr.contains("it has 2 minutes"), "{once_more:?}");
}

#[test]
fn a_file_that_cannot_be_read_is_no_success() {
    let lab = Lab::new();
    declare(&lab, PROJECT, &json!({}));
    lab.write(USER, "{\"mcpServers\": {\"s\": ");
    for arguments in
        [&["list"][..], &["list", "--json"], &["tools"], &["start"], &["status", "--json"], &["call", "s", "x"]]
    {
        let ran = lab.run(&[&["mcp"], arguments].concat());
        assert_eq!(ran.code, 3, "{arguments:?} {ran:?}");
        assert!(ran.stderr.contains("mcp.json:1:"), "{arguments:?} {ran:?}");
    }
}

#[test]
fn every_transport_lists_and_calls() {
    for (flags, transport) in
        [(&["--http"][..], "http"), (&["--sse"], "sse"), (&["--sse"], "http"), (&["--http", "--modern"], "http")]
    {
        let remote = RemoteServer::start(flags).unwrap();
        let lab = lab_with(&json!({"url": remote.url, "type": transport}));
        let ran = lab.run(&["mcp", "tools", "--json"]);
        assert!(names(&ran).contains(&"mcp__s__echo".to_owned()), "{flags:?} {transport} {ran:?}");
        assert_eq!(
            text_of(&call(&lab, "echo", &json!({"text": "over the wire"}))),
            "over the wire",
            "{flags:?} {transport}"
        );
        let ran = call(&lab, "progress", &json!({"steps": 2, "ms": 20}));
        assert!(ran.stderr.contains("progress 2 of 2"), "{flags:?} {transport} {ran:?}");
        // An address says how it is spoken to only once it was.
        let reached = if flags.contains(&"--sse") { "sse" } else { "http" };
        for command in ["list", "start", "status"] {
            let rows = lab.run(&["mcp", command, "--json"]).answer();
            assert_eq!(rows[0]["transport"], reached, "{command} {flags:?} {transport}");
        }
    }
}

#[test]
fn a_server_without_a_handshake_is_spoken_to_as_well() {
    let lab = lab_with(&server(&["--only-modern"]));
    assert_eq!(text_of(&call(&lab, "echo", &json!({"text": "new"}))), "new");
    assert_eq!(lab.run(&["mcp", "status", "s", "--json"]).answer()[0]["revision"], "2026-07-28");
}

#[test]
fn resources_and_prompts_are_listed_and_read() {
    let lab = lab_with(&server(&[]));
    let listed = lab.run(&["mcp", "resources", "s", "--json"]).answer();
    assert_eq!(listed[0]["uri"], "test://text");
    assert_eq!(listed[2]["uriTemplate"], "test://day/{day}");
    assert!(lab.run(&["mcp", "resources", "s"]).stdout.contains("test://day/{day}"));
    assert!(lab.run(&["mcp", "prompts", "s"]).stdout.contains("name (required)"));
    assert_eq!(lab.run(&["mcp", "resources", "s", "test://text"]).stdout, "a text\n");
    let gone = lab.run(&["mcp", "resources", "s", "test://gone"]);
    assert!(gone.code == 1 && gone.stderr.contains("MCP server `s`: there is no resource test://gone"), "{gone:?}");
    assert_eq!(lab.run(&["mcp", "prompts", "s", "--json"]).answer()[0]["name"], "greet");
    let filled = lab.run(&["mcp", "prompts", "s", "greet", "--args", r#"{"name": "Ada"}"#]);
    assert_eq!(filled.stdout, "user: Greet Ada.\n");
}

#[test]
fn servers_get_the_usual_variables_and_what_they_declare() {
    let mut one = server(&[]);
    one["env"] = json!({"TOKEN": "<${SECRET_TOKEN}>", "MISSING": "${NOT_THERE}"});
    let lab = lab_with(&one).set("SECRET_TOKEN", "t0psecret").set("AWS_SECRET_ACCESS_KEY", "k").set("LC_ALL", "C");
    let names = text_of(&call(&lab, "names", &json!({})));
    let expected = ["HOME", "LC_ALL", "MISSING", "OLLM_AGENT", "OLLM_LIFELINE", "PATH", "TOKEN"];
    assert_eq!(names.lines().collect::<Vec<_>>(), expected);
    let token = text_of(&call(&lab, "env", &json!({"name": "TOKEN"})));
    assert!(token.contains("[redacted:") && !token.contains("t0psecret"), "it is there, and not shown: {token}");
    let ran = call(&lab, "env", &json!({"name": "MISSING"}));
    assert_eq!(text_of(&ran), "");
    assert!(
        ran.stderr.contains("`NOT_THERE`, which is not set; it is empty") && !ran.stderr.contains("t0psecret"),
        "{ran:?}"
    );
}

#[test]
fn variables_as_editors_write_them_are_filled_in_or_named() {
    let mut one = server(&[]);
    one["env"] = json!({"MODE": "${env:WANTED_MODE}", "GONE": "${env:NOT_THERE}", "ROOT": "${workspaceFolder}/a", "ASK": "${input:tk}"});
    let lab = lab_with(&one).set("WANTED_MODE", "as wanted");
    let of = |name: &str| call(&lab, "env", &json!({"name": name}));
    assert_eq!(text_of(&of("MODE")), "as wanted");
    assert_eq!(text_of(&of("GONE")), "");
    assert_eq!(text_of(&of("ASK")), "");
    assert_eq!(text_of(&of("ROOT")), lab.project.join("a").to_str().unwrap());
    let ran = lab.run(&["mcp", "start", "s"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("`NOT_THERE`, which is not set"), "{ran:?}");
    assert!(ran.stderr.contains("env.ASK` holds ${input:tk}") && ran.stderr.contains("write ${TK}"), "{ran:?}");
    let ran = lab.run(&["mcp", "add", "t", r#"{"command": "x", "env": {"K": "${input:tk}"}}"#]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("env.K` holds ${input:tk}") && ran.stderr.contains("write ${TK}"), "{ran:?}");
}

#[test]
fn a_server_runs_where_it_says() {
    let lab = Lab::new();
    std::fs::create_dir(lab.project.join("sub")).unwrap();
    let mut there = server(&[]);
    there["cwd"] = json!("sub");
    declare(&lab, USER, &json!({"s": there}));
    assert_eq!(text_of(&call(&lab, "cwd", &json!({}))), lab.project.join("sub").to_str().unwrap());
}

#[test]
fn a_switch_that_is_off_starts_nothing_whoever_turns_it() {
    for (file, flags, variable) in [
        (Some("mcp:\n  enabled: false\n"), &[][..], None),
        (None, &["--set", "mcp.enabled=false"][..], None),
        (None, &[][..], Some("false")),
    ] {
        let mut lab = Lab::new();
        let log = lab.root.join("asked");
        declare(&lab, USER, &json!({"s": server(&["--log", log.to_str().unwrap()])}));
        if let Some(text) = file {
            lab.write("home/.ollm/config.yaml", text);
        }
        if let Some(value) = variable {
            lab = lab.set("OLLM_MCP_ENABLED", value);
        }
        for command in [&["mcp", "tools", "--json"][..], &["mcp", "call", "s", "echo"], &["mcp", "start"]] {
            let ran = lab.run(&[flags, command].concat());
            assert!(ran.code == 0 || ran.code == 3, "{command:?} {ran:?}");
        }
        assert_eq!(lab.run(&[flags, &["mcp", "list", "--json"]].concat()).answer()[0]["state"], "stopped");
        assert_eq!(asked(&lab), Vec::<String>::new());
    }
}

#[test]
fn start_tries_servers_and_stop_and_status_tell_the_truth() {
    let lab = Lab::new();
    declare(&lab, USER, &json!({"good": server(&[]), "bad": server(&["--exit", "1"])}));
    let ran = lab.run(&["mcp", "start", "good", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((&ran.answer()[0]["state"], &ran.answer()[0]["tools"]), (&json!("ready"), &json!(21)));
    let ran = lab.run(&["mcp", "start", "--json"]);
    assert_eq!((ran.code, &ran.answer()[1]["state"]), (5, &json!("failed")), "{ran:?}");
    let status = lab.run(&["mcp", "status", "good", "--json"]).answer();
    assert_eq!((&status[0]["status"], &status[0]["running"]), (&json!("disconnected"), &json!(false)));
    let stop = lab.run(&["mcp", "stop"]);
    assert!(stop.code == 1 && stop.stderr.contains("nothing to stop"), "{stop:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn start_without_names_tells_of_each_that_cannot_be_started() {
    let lab = Lab::new();
    let mut off = server(&[]);
    off["enabled"] = json!(false);
    declare(&lab, USER, &json!({"good": server(&[]), "gone": {"command": "no-such-program"}, "off": off}));
    let ran = lab.run(&["mcp", "start", "--json"]);
    let states: Vec<Value> = ran.answer().as_array().unwrap().iter().map(|row| row["state"].clone()).collect();
    assert_eq!((ran.code, states), (5, vec![json!("ready"), json!("failed"), json!("stopped")]), "{ran:?}");
    assert!(ran.stderr.contains("server `gone` is not started: `no-such-program` is not on PATH"), "{ran:?}");
    assert!(!ran.stderr.contains("`off`"), "{ran:?}");
    declare(&lab, USER, &json!({"good": server(&[])}));
    declare(&lab, PROJECT, &json!({"theirs": server(&[])}));
    let ran = lab.run(&["mcp", "start"]);
    assert_eq!(ran.code, 0, "what waits for approval is no failure: {ran:?}");
    assert!(ran.stderr.contains("server `theirs` is not started: it is not approved"), "{ran:?}");
}

#[test]
fn what_nobody_can_approve_yet_says_why() {
    let lab = Lab::new();
    declare(&lab, PROJECT, &json!({"gone": {"command": "no-such-program"}}));
    let entry = &lab.run(&["mcp", "list", "--json"]).answer()[0];
    let error = entry["error"].as_str().unwrap();
    assert!(error.starts_with("`no-such-program` is not on PATH") && !error.contains("mcp trust"), "{error}");
    let ran = lab.run(&["mcp", "start", "gone"]);
    assert!(ran.code == 5 && ran.stderr.contains("`no-such-program` is not on PATH"), "{ran:?}");
}

#[test]
fn logs_show_what_a_server_said_last() {
    let lab = lab_with(&server(&["--stderr", "hello \u{1b}[2J there"]));
    assert!(lab.run(&["mcp", "logs", "s"]).stderr.contains("has said nothing yet"));
    lab.run(&["mcp", "start"]);
    let ran = lab.run(&["mcp", "logs", "s"]);
    assert!(ran.stdout.contains("hello") && !ran.stdout.contains('\u{1b}'), "{ran:?}");
    assert!(lab.run(&["mcp", "logs", "s", "--json"]).answer()["lines"].to_string().contains("hello"));
}

#[test]
fn a_person_who_waits_for_a_server_sees_for_whom() {
    let lab = lab_with(&server(&[]));
    let mut person = lab.pty(LARGE, &["mcp", "call", "s", "slow", "ms=1500"]);
    person.sees("waiting for server `s`");
    person.sees_no_more("waiting for server `s`");
    let ran = person.ends();
    assert_eq!(ran.code, 0, "{ran:?}");
}
