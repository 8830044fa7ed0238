//! Models, tools, hooks and disks that fail: bounded, told clearly, the transcript intact, no process left.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::{ModelReply, ModelReplyEnd, ModelServer, answer_events, mcp_server};

use super::{call, expecting, lab, run, saved, talk, task, text};
use crate::lab::{FOREVER, Lab, finish};
use crate::network::proxy;

fn by_http(lab: &Lab, server: &ModelServer, more: &[&str]) -> crate::lab::Ran {
    let model = format!("openai:m@{}", server.url());
    lab.run(&[&["run", "go", "--model", &model, "--approval", "yolo"], more].concat())
}

#[test]
fn a_stream_that_breaks_off_is_told_and_what_came_of_it_is_kept() {
    let whole = ModelReply::stream(&answer_events("Once upon a time", &[], 4), 50);
    let ModelReply::Pieces { pieces, .. } = whole else { unreachable!("a stream has pieces") };
    let bytes: Vec<u8> = pieces.concat();
    let half = ModelReply::bytes(&bytes[..bytes.len() / 2], 9, ModelReplyEnd::Dropped);
    let server = ModelServer::start(vec![half, ModelReply::stream(&answer_events("the end", &[], 3), 7)]).unwrap();
    let lab = Lab::new();
    let ran = by_http(&lab, &server, &[]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stdout.starts_with("Once"), "what came is shown: {ran:?}");
    assert!(ran.stderr.contains("broke off") && ran.stderr.contains("ask again"), "{ran:?}");
    assert!(saved(&lab).last().unwrap()["content"].as_str().unwrap().ends_with("[the answer broke off]"));
    assert_eq!(by_http(&lab, &server, &["--continue"]).stdout, "the end\n", "the conversation goes on");
}

#[test]
fn arguments_that_are_no_json_and_tools_that_are_none_are_told_to_the_model() {
    let server = ModelServer::start(vec![
        ModelReply::stream(&answer_events("", &[("a", "shell", "{\"command\": "), ("b", "shel", "{}")], 5), 9),
        ModelReply::stream(&answer_events("sorry", &[], 5), 9),
    ])
    .unwrap();
    let lab = Lab::new();
    let ran = by_http(&lab, &server, &[]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("sorry\n", 0), "{ran:?}");
    let asked = server.asked();
    let told: Vec<&str> = asked[1].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .take(2)
        .rev()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert!(told[0].starts_with("error: the arguments are no JSON object"), "{told:?}");
    assert!(told[1].contains("there is no tool `shel`; did you mean `shell`?"), "{told:?}");
}

#[test]
fn fifty_calls_at_once_are_all_answered_and_not_all_made() {
    let calls: Vec<Value> = (0..50)
        .map(
            |at| json!({"id": at.to_string(), "name": "shell", "arguments": {"command": format!("echo {at} >> made")}}),
        )
        .collect();
    let lab = lab(&[json!({"tool_calls": calls}), text("done")]);
    let ran = run(&lab, &["--approval", "yolo"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("done\n", 0), "{ran:?}");
    assert!(ran.stderr.contains("the model made 50 calls at once; 32 of them were run"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(lab.project.join("made")).unwrap().lines().count(), 32);
    assert_eq!(saved(&lab).iter().filter(|message| message["role"] == "tool").count(), 50);
}

#[test]
fn a_model_that_makes_the_same_call_for_ever_is_stopped() {
    let lab = lab(&vec![call("shell", json!({"command": "echo x >> made"})); 60]);
    let ran = run(&lab, &["--approval", "yolo", "--json"]);
    assert_eq!((ran.code, &ran.answer()["end"]), (1, &json!("bounded")), "{ran:?}");
    assert!(
        ran.stderr.contains("the same call of shell 7 times in a row, of which 3 were made; the turn ends"),
        "{ran:?}"
    );
    assert_eq!(fs::read_to_string(lab.project.join("made")).unwrap().lines().count(), 3);
}

#[test]
fn a_model_that_says_nothing_is_told_of() {
    let ran = run(&lab(&[json!({"content": ""})]), &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
    assert!(ran.stderr.contains("the model returned nothing; ask again, or take another model"), "{ran:?}");
    let server = ModelServer::start(vec![ModelReply::Nothing]).unwrap();
    assert_eq!(by_http(&Lab::new(), &server, &[]).code, 5, "a server that hangs up without a word");
}

#[test]
fn ten_megabytes_of_answer_are_cut_at_one() {
    let events = answer_events(&"long ".repeat(2 << 20), &[], 64 << 10);
    let server = ModelServer::start(vec![ModelReply::stream(&events, 1 << 20)]).unwrap();
    let lab = Lab::new();
    let ran = by_http(&lab, &server, &[]);
    assert_eq!((ran.code, ran.stdout.len()), (0, (1 << 20) + 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("went on past 1048576 bytes and was cut"), "{}", ran.stderr);
    assert_eq!(saved(&lab).last().unwrap()["content"].as_str().unwrap().len(), 1 << 20);
}

#[test]
fn a_tool_of_a_server_that_hangs_is_given_up_in_its_time() {
    let told = expecting(text("done"), json!({"role": "tool", "last": "error: "}));
    let lab = lab(&[call("mcp__s__slow", json!({"ms": 600_000})), told]);
    let server = json!({"command": mcp_server(), "args": [], "toolTimeout": 300});
    lab.write("home/.ollm/settings/mcp.json", json!({"mcpServers": {"s": server}}).to_string());
    let ran = run(&lab, &["--approval", "yolo"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("done\n", 0), "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn a_command_that_hangs_leaves_nobody_when_its_agent_is_told_to_end() {
    let lab = lab(&[]);
    let fifo = lab.fifo("told");
    let command = format!("trap '' TERM INT HUP; echo started > '{}'; ({FOREVER}) & {FOREVER}", fifo.display());
    talk(&lab, &[call("shell", json!({"command": command}))]);
    lab.user_hook("session_end", "end", "touch ../ended; echo '{\"continue\": true}'", "");
    let mut child = crate::lab::start(lab.ollm(&task(&["--approval", "yolo"])));
    drop(child.stdin.take());
    assert_eq!(crate::lab::lines(&fifo, 1), ["started"]);
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let ran = crate::lab::outcome(child);
    assert_eq!(ran.code, 143, "{ran:?}");
    lab.assert_nobody_is_left();
    assert!(lab.root.join("ended").exists(), "the session has its end: {ran:?}");
    assert_eq!(saved(&lab).last().unwrap()["role"], "tool");
}

#[test]
fn hooks_that_refuse_everything_leave_nothing_hanging() {
    let wall = r#"echo '{"continue": false, "systemMessage": "no"}'"#;
    let all = ["before_agent", "before_tool_selection", "before_model", "after_model", "after_agent", "session_end"];
    for (at, first) in all.iter().enumerate() {
        let lab = lab(&vec![text("never mind"); 20]);
        for event in &all[at..] {
            lab.user_hook(event, &format!("wall-{}", event.replace('_', "-")), wall, "");
        }
        let ran = run(&lab, &["--json"]);
        // What cannot be refused goes on: after_agent a few times, the end of a session at once.
        let code = if at < 4 { 2 } else { 0 };
        assert_eq!(ran.code, code, "{first}: {ran:?}");
        let answer = ran.answer();
        assert_eq!(answer["event"].as_str(), (at < 4).then_some(*first), "{ran:?}");
        lab.assert_nobody_is_left();
    }
}

/// A home on a disk of a quarter of a megabyte, which is full.
const FULL: &str = "cp -a \"$HOME\" \"$HOME.kept\"; mount -t tmpfs -o size=256k,mode=755 tmpfs \"$HOME\"
cp -a \"$HOME.kept/.\" \"$HOME\"; rm -r \"$HOME.kept\"; mkdir -p \"$HOME/.ollm/sessions\" \"$HOME/work\"; cd \"$HOME/work\"
dd if=/dev/zero of=\"$HOME/filling\" 2>/dev/null || true";

#[test]
fn on_a_full_disk_the_session_goes_on_and_says_what_is_missing() {
    let may = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no right to mount a disk");
        return;
    }
    let write = call("write_file", json!({"path": "large", "content": "x".repeat(20_000)}));
    let lab = lab(&[write, expecting(text("as far as I could"), json!({"role": "tool", "last": "error: "}))]);
    let model = format!("replay:{}", lab.root.join("talk.jsonl").display());
    let mut command = lab.program("unshare");
    let script = format!("{FULL}\n\"$0\" run 'do it' --approval yolo --model \"{model}\"; code=$?; ls -A; exit $code");
    command.args(["-m", "sh", "-ec", &script, crate::lab::OLLM]);
    let ran = finish(command, b"");
    assert_eq!((ran.stdout.as_str(), ran.code), ("as far as I could\n", 0), "no half file is left: {ran:?}");
    let told: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("saved")).collect();
    assert_eq!(told.len(), 1, "{ran:?}");
}

#[test]
fn a_model_elsewhere_is_asked_through_the_proxy_and_one_here_is_not() {
    let reply = || ModelReply::stream(&answer_events("hello", &[], 5), 99);
    let server = ModelServer::start(vec![reply(), reply()]).unwrap();
    let here = server.url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let (address, asked) = proxy(move |_| here.clone());
    let lab = Lab::new().set("http_proxy", &format!("http://{address}"));
    let ran = lab.run(&["run", "go", "--model", "openai:m@http://model.example:8000/v1"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("hello\n", 0), "{ran:?}");
    assert_eq!(asked.try_recv().as_deref(), Ok("CONNECT model.example:8000 HTTP/1.1"));
    while asked.try_recv().is_ok() {}
    let ran = lab.run(&["run", "go", "--model", &format!("openai:m@{}", server.url())]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("hello\n", 0), "{ran:?}");
    assert!(asked.try_recv().is_err(), "this machine is reached without it");
    let lab = Lab::new().set("HTTPS_PROXY", "http://me:hush-hush@x y");
    let ran = lab.run(&["run", "go", "--model", "openai:m@https://model.example/v1"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("the variable HTTPS_PROXY names no proxy") && !ran.stderr.contains("hush"), "{ran:?}");
}

#[test]
fn the_schemas_of_a_servers_tools_reach_a_model_in_a_form_it_takes() {
    let server = ModelServer::start(vec![ModelReply::stream(&answer_events("hello", &[], 5), 99)]).unwrap();
    let lab = Lab::new();
    lab.write(
        "home/.ollm/settings/mcp.json",
        json!({"mcpServers": {"s": {"command": mcp_server(), "args": []}}}).to_string(),
    );
    let ran = by_http(&lab, &server, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let asked = server.asked();
    let tools = asked[0].body["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["function"]["name"] == "mcp__s__add"), "{tools:?}");
    for tool in tools {
        let parameters = &tool["function"]["parameters"];
        assert_eq!(parameters["type"], "object", "{tool:#}");
        assert!(parameters["properties"].is_object() && !parameters.to_string().contains("$ref"), "{tool:#}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure_in_every_form() {
    let lab = lab(&[text("lost words")]);
    for more in [&[][..], &["--json"], &["--stream-json"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = lab.ollm(&task(more));
        let ran = command.stdin(std::process::Stdio::null()).stdout(full).output().unwrap();
        let told = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(5), "{more:?}: {told}");
        assert!(told.contains("cannot write the answer"), "{more:?}: {told}");
    }
}

#[test]
fn an_answer_that_was_cut_says_so_to_programs_and_people() {
    let lab = lab(&[text(&"x".repeat((1 << 20) + 1)), text("short")]);
    let ran = run(&lab, &["--json"]);
    let answer = ran.answer();
    assert_eq!(
        (&answer["truncated"], &answer["turns"][0]["truncated"]),
        (&json!(true), &json!(true)),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("was cut"), "{}", ran.stderr);
    talk(&lab, &[text("short")]);
    assert_eq!(run(&lab, &["--json"]).answer()["truncated"], false);
}
