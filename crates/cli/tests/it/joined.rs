//! Agent, hooks and MCP servers together, from the outside: a written model, real hooks, real servers.

use std::fs;

use serde_json::{Value, json};
use testkit::{ModelReply, ModelServer, answer_events, mcp_server};

use crate::lab::pty::LARGE;
use crate::lab::{Lab, Ran, eventually, finish, outcome, start};
use crate::terminal::on_a_terminal;

const USER: &str = "home/.ollm/settings/mcp.json";
const PROJECT: &str = "project/.ollm/settings/mcp.json";

/// A lab whose model gives these answers, and whose user has one server, `s`, that writes down what it is asked.
fn lab(answers: &[Value], flags: &[&str]) -> Lab {
    let lab = Lab::with_default_boxes();
    talk(&lab, answers);
    declare(&lab, USER, "s", flags);
    lab
}

fn talk(lab: &Lab, answers: &[Value]) {
    let lines: Vec<String> = answers.iter().map(Value::to_string).collect();
    lab.write("talk.jsonl", lines.join("\n"));
}

/// Declares the server of the workshop, which writes to `asked-NAME` what it is asked.
fn declare(lab: &Lab, file: &str, name: &str, flags: &[&str]) {
    let log = lab.root.join(format!("asked-{name}"));
    let args = [&["--log", log.to_str().unwrap()], flags].concat();
    lab.write(file, json!({"mcpServers": {name: {"command": mcp_server(), "args": args}}}).to_string());
}

/// What a server was asked, as it wrote it down itself.
fn asked(lab: &Lab, name: &str) -> Vec<String> {
    let text = fs::read_to_string(lab.root.join(format!("asked-{name}"))).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn run(lab: &Lab) -> Ran {
    lab.run(&["run", "do it", "--model", "replay:../talk.jsonl", "--approval", "yolo"])
}

#[expect(clippy::needless_pass_by_value, reason = "calls read better without references")]
fn call(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"id": "1", "name": name, "arguments": arguments}]})
}

/// A last answer that is given if the last message of the conversation has these texts.
fn after(texts: &[&str]) -> Value {
    json!({"content": "done", "expect": {"role": "tool", "last": texts}})
}

/// A hook that has a tool of a server judge an event.
fn judge(server: &str, answer: &str) -> String {
    let action = json!({"type": "mcp", "server": server, "tool": "echo", "args": {"text": answer}});
    json!({"hooks": {"before_tool": [{"name": "judge", "action": action, "timeout": 30000}]}}).to_string()
}

#[track_caller]
fn assert_done(ran: &Ran) {
    assert_eq!((ran.stdout.as_str(), ran.code), ("done\n", 0), "{ran:?}");
}

#[test]
fn the_model_calls_a_tool_of_a_server_as_any_other() {
    let lab = lab(&[call("mcp__s__add", json!({"a": 2, "b": 3})), after(&["{\"sum\":5"])], &["--child"]);
    let ran = run(&lab);
    assert_done(&ran);
    assert!(ran.stderr.contains("✓ mcp__s__add"), "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn a_server_whose_tools_are_remembered_starts_with_the_first_call_only() {
    let lab = lab(&[json!({"content": "done"})], &[]);
    assert_done(&run(&lab));
    let before = asked(&lab, "s").len();
    assert!(before > 0, "its tools were not known yet");
    assert_done(&run(&lab));
    assert_eq!(asked(&lab, "s").len(), before);
    talk(&lab, &[call("mcp__s__echo", json!({"text": "hello"})), after(&["hello"])]);
    assert_done(&run(&lab));
    assert!(asked(&lab, "s").len() > before);
}

#[test]
fn hooks_refuse_and_rewrite_calls_of_servers_by_their_names() {
    let lab = lab(
        &[
            call("mcp__s__echo", json!({"text": "as the model wrote it"})),
            json!({"tool_calls": [{"id": "2", "name": "mcp__s__crash", "arguments": {}}],
                "expect": {"last": "as the hook wants it"}}),
            after(&["Tool execution blocked by hook: never"]),
        ],
        &[],
    );
    let change =
        r#"echo '{"continue": true, "modified_args": {"text": "as the hook wants it"}, "decision": "modify"}'"#;
    lab.user_hook("before_tool", "change", change, r#", "dialect": "agent", "matcher": "mcp__s__echo""#);
    let refuse = r#"echo '{"continue": false, "systemMessage": "never"}'"#;
    lab.user_hook("before_tool", "refuse", refuse, r#", "matcher": "mcp__s__c*""#);
    let ran = run(&lab);
    assert_done(&ran);
    assert!(ran.stderr.contains("hook `refuse` refused mcp__s__crash: never"), "{ran:?}");
    assert_eq!(asked(&lab, "s").iter().filter(|method| *method == "tools/call").count(), 1);
}

#[test]
fn a_tool_of_a_server_judges_an_event_and_only_that_server_is_started() {
    let lab = lab(&[], &[]);
    declare(&lab, PROJECT, "theirs", &[]);
    let servers = json!({"mcp": {"servers": {"other": {"command": mcp_server(), "args": ["--log", lab.root.join("asked-other")]}}}});
    lab.write("home/.ollm/config.yaml", servers.to_string());
    lab.user("judge.json", judge("s", r#"{"continue": false, "systemMessage": "{{tool_name}} is judged"}"#));
    let ran = lab.event(r#"{"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": "ls"}}}"#);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_eq!(ran.answer()["reason"], "shell is judged");
    lab.assert_nobody_is_left();
    assert!(asked(&lab, "s").contains(&"tools/call".to_owned()));
    assert_eq!((asked(&lab, "other").len(), asked(&lab, "theirs").len()), (0, 0));
    let ran = lab.event(r#"{"event": "session_start", "data": {}}"#);
    assert_eq!(ran.code, 0);

    for (server, told) in [("theirs", "ollm mcp trust theirs"), ("nobody", "there is no server `nobody`")] {
        lab.user("judge.json", judge(server, "{}"));
        let ran = lab.event(r#"{"event": "before_tool", "data": {"tool_name": "shell"}}"#);
        assert!(ran.hook("judge")["error"].as_str().unwrap().contains(told), "{ran:?}");
    }
    assert_eq!(asked(&lab, "theirs").len(), 0);
}

#[test]
fn a_judging_server_that_hangs_is_given_up_in_time_and_ended() {
    let lab = lab(&[], &["--mute", "--child"]);
    let hook = judge("s", "{}").replace("30000", "300").replace("\"judge\"", "\"judge\", \"onFailure\": \"block\"");
    lab.user("judge.json", hook);
    let ran = lab.event(r#"{"event": "before_tool", "data": {"tool_name": "shell"}}"#);
    assert_eq!((ran.code, &ran.hook("judge")["status"]), (2, &json!("timeout")), "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn the_agents_own_servers_judge_its_calls() {
    let lab = lab(&[call("todo", json!({"items": []})), after(&["blocked by hook: judged"])], &[]);
    lab.user("judge.json", judge("s", r#"{"continue": false, "systemMessage": "judged"}"#));
    assert_done(&run(&lab));
    assert_eq!(asked(&lab, "s").iter().filter(|method| *method == "tools/list").count(), 1, "one server for both");
    lab.assert_nobody_is_left();
}

#[test]
fn a_server_of_the_project_is_not_started_before_somebody_approved_it() {
    let lab = Lab::with_default_boxes();
    talk(&lab, &[call("mcp__theirs__echo", json!({"text": "x"})), json!({"content": "done"})]);
    declare(&lab, PROJECT, "theirs", &[]);
    let ran = run(&lab);
    assert_done(&ran);
    let told = "server `theirs` is not started: it is not approved; review and approve it with `ollm mcp trust theirs`";
    assert_eq!(ran.stderr.matches(told).count(), 1, "{ran:?}");
    assert_eq!(asked(&lab, "theirs").len(), 0);
}

#[test]
fn servers_that_are_switched_off_are_neither_started_nor_talked_about() {
    let lab = lab(&[json!({"content": "done"})], &[]);
    lab.write("home/.ollm/config.yaml", "mcp:\n  enabled: false\n");
    let ran = run(&lab);
    assert_done(&ran);
    assert!(!ran.stderr.contains("server"), "{ran:?}");
    assert_eq!(asked(&lab, "s").len(), 0);
}

#[test]
fn a_server_that_does_not_start_is_told_of_and_the_rest_goes_on() {
    let lab = lab(&[json!({"content": "done"})], &["--exit", "7", "--stderr", "out of luck"]);
    let ran = run(&lab);
    assert_done(&ran);
    assert!(ran.stderr.contains("server `s`") && ran.stderr.contains("out of luck"), "{ran:?}");
}

#[test]
fn nobody_is_left_when_the_agent_is_killed_or_interrupted_in_a_call() {
    for (signal, code) in [("-KILL", 137), ("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let lab = lab(&[call("mcp__s__slow", json!({"ms": 600_000}))], &["--child"]);
        let arguments = ["run", "do it", "--model", "replay:../talk.jsonl", "--approval", "yolo"];
        let mut child = start(lab.ollm(&arguments));
        drop(child.stdin.take());
        eventually("the call is made", || asked(&lab, "s").contains(&"tools/call".to_owned()));
        let kill = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let ran = outcome(child);
        assert_eq!(ran.code, code, "{signal}: {ran:?}");
        lab.assert_nobody_is_left();
    }
}

#[test]
fn a_result_too_large_for_the_model_is_kept_where_the_model_can_read_it() {
    let lab = lab(&[call("mcp__s__big", json!({"bytes": 90_000})), after(&["the whole is in"])], &[]);
    assert_done(&run(&lab));
    let kept: Vec<_> = fs::read_dir(lab.home.join(".ollm/state/mcp-results")).unwrap().collect();
    let path = kept[0].as_ref().unwrap().path();
    talk(&lab, &[call("read_file", json!({"path": path, "limit": 1})), after(&["xxxxxxxx"])]);
    assert_done(&run(&lab));
}

#[test]
fn every_event_of_a_run_and_of_a_chat_leaves_its_record() {
    let lab = Lab::with_default_boxes();
    talk(&lab, &[json!({"content": "done"})]);
    assert_done(&run(&lab));
    let records = || {
        let text = fs::read_to_string(lab.home.join(".ollm/trace/trace.jsonl")).unwrap();
        let event = |line: &str| serde_json::from_str::<Value>(line).unwrap()["event"].clone();
        text.lines().map(|line| event(line).to_string().replace('"', "")).collect::<Vec<_>>()
    };
    let whole = [
        "session_start",
        "before_agent",
        "before_tool_selection",
        "before_model",
        "after_model",
        "after_agent",
        "session_end",
    ];
    assert_eq!(records(), whole);
    chat(&lab, "hi\n");
    assert_eq!(records(), [whole, whole].concat());
}

/// What a chat says to these lines.
fn chat(lab: &Lab, input: &str) -> Ran {
    finish(lab.ollm(&["chat", "--model", "replay:../talk.jsonl", "--approval", "yolo"]), input.as_bytes())
}

#[test]
fn async_hooks_of_a_chat_run_beside_it() {
    let lab = Lab::with_default_boxes();
    talk(&lab, &[json!({"content": "done"})]);
    let script = "tr '\\0' ' ' < /proc/$PPID/cmdline > ../parent";
    lab.user_hook("before_agent", "late", script, r#", "async": true"#);
    lab.user_hook("session_end", "last", "touch ../last", r#", "async": true"#);
    assert_eq!(chat(&lab, "hi\n").code, 0);
    let parent = fs::read_to_string(lab.root.join("parent")).unwrap();
    assert!(parent.contains(" chat "), "{parent}");
    assert!(lab.root.join("last").exists(), "the end of the session is an event like any other");
    let late = lab.traces().into_iter().filter_map(|line| line["late"]["id"].as_str().map(str::to_owned));
    assert_eq!(late.count(), 2, "each leaves what came of it");
}

#[test]
fn a_chat_shows_servers_hooks_and_tools_and_stops_and_starts_servers() {
    let lab = lab(&[json!({"content": "one"}), call("mcp__s__echo", json!({"text": "x"})), after(&["x"])], &[]);
    declare(&lab, PROJECT, "theirs", &[]);
    lab.workspace_hook("before_tool", "guest", "touch ../ran", "");
    let lines = "hi\n/mcp\n/mcp s\n/tools\n/hooks\n/mcp stop s\n/mcp restart s\n/mcp theirs\n/mcp nobody\ncall it\n";
    let ran = chat(&lab, lines);
    assert_eq!(ran.code, 0, "{ran:?}");
    let row = |start: &str| ran.stdout.lines().filter(|line| line.starts_with(start)).count();
    let rows =
        [row("s       ready    21"), row("s       stopped  0 "), row("theirs  stopped  ?"), row("mcp__s__echo  ")];
    assert_eq!(rows, [2, 0, 3, 2], "{}", ran.stdout);
    assert!(ran.stdout.contains("s       stopped"), "{}", ran.stdout);
    assert!(ran.stdout.contains("read_file  ") && ran.stdout.contains("untrusted"), "{}", ran.stdout);
    assert!(ran.stdout.contains("`ollm mcp trust theirs`\n") && ran.stdout.contains("no server `nobody`"), "{ran:?}");
    assert!(ran.stdout.ends_with("done\n"), "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn plain_ollm_on_a_terminal_is_the_panels_and_a_welcome_elsewhere() {
    let lab = Lab::with_default_boxes().set("OLLM_MODEL", "replay:../talk.jsonl");
    talk(&lab, &[]);
    let mut panels = lab.pty(LARGE, &[]);
    panels.sees("talk.jsonl; the box is ");
    panels.types("/quit\r");
    let ran = panels.ends();
    assert!(ran.code == 0 && ran.has_restored(), "{ran:?}");
    let ran = lab.run(&[]);
    assert!(ran.code == 0 && ran.stdout.contains("Three ways to begin"), "{ran:?}");
    let lab = Lab::with_default_boxes();
    // Where the home holds nothing yet.
    fs::remove_dir_all(lab.home.join(".ollm")).unwrap();
    let ran = on_a_terminal(&lab, "", &[]);
    assert!(ran.code == 0 && ran.stdout.contains("Three ways to begin"), "{ran:?}");
}

#[test]
fn the_configured_model_is_asked_as_configured_unless_another_one_is_named() {
    let reply = || ModelReply::stream(&answer_events("hello", &[], 2), 7);
    let server = ModelServer::start(vec![reply(), reply()]).unwrap();
    let stranger = ModelServer::start(vec![reply()]).unwrap();
    let lab = Lab::with_default_boxes().set("MY_KEY", "k-12345678").set("OPENAI_API_KEY", "sk-not-for-you");
    let url = server.url();
    let config = format!(
        "model:\n  provider: openai\n  name: qwen\n  baseUrl: {url}\n  apiKeyEnv: MY_KEY\n  temperature: 0.5\n  maxTokens: 77\n  top_p: 0.9\n  stream: false\n"
    );
    lab.write("home/.ollm/config.yaml", config);
    let ran = lab.run(&["run", "go"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("hello\n", 0), "{ran:?}");
    assert_eq!(lab.run(&["run", "go", "--model", &format!("openai:other@{url}")]).code, 0);
    assert_eq!(lab.run(&["run", "go", "--model", &format!("openai:other@{}", stranger.url())]).code, 0);
    let asked = server.asked();
    let body = |at: usize| {
        let body = &asked[at].body;
        json!([body["model"], body["temperature"], body["max_tokens"], body["top_p"], body["stream"]])
    };
    assert_eq!((body(0), body(1)), (json!(["qwen", 0.5, 77, 0.9, true]), json!(["other", 0.5, 77, 0.9, true])));
    let keys: Vec<Option<&str>> = asked.iter().map(|question| question.authorization.as_deref()).collect();
    assert_eq!(keys, [Some("Bearer k-12345678"); 2]);
    assert_eq!(stranger.asked()[0].authorization, None, "the key is for the configured server");

    talk(&lab, &[json!({"content": "written"})]);
    let lab = lab.set("OLLM_MODEL", "replay:../talk.jsonl");
    assert_eq!(lab.run(&["run", "go"]).stdout, "written\n");
}

#[test]
fn a_model_that_cannot_be_meant_is_a_configuration_error() {
    let lab = Lab::with_default_boxes();
    for (config, told) in [
        ("model:\n  provider: clouds\n  name: x\n", "model.provider: there is no provider `clouds`"),
        ("model:\n  provider: openai\n", "model.name is missing"),
    ] {
        lab.write("home/.ollm/config.yaml", config);
        let ran = lab.run(&["run", "go"]);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.stderr.contains(told), "{ran:?}");
    }
}
