//! What hooks can do beside starting a program that answers: prompts for the agent, programs judged by their status, tools.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ollm_engine::{Status, ToolCall, ToolCaller, ToolFailure};
use ollm_protocol::hook::action::{AskAgentSpec, McpSpec, RunCommandSpec};
use ollm_protocol::{
    ActionSpec, Event, EventKind, Flow, HookSpec, OnFailure, Origin, Source, Timeout, Verdict, placeholders,
};
use serde_json::json;

use crate::support::{PATIENCE, World, builtin, event, eventually, refuse, skipped, spoken, within};

fn asks(id: &str, prompt: &str) -> HookSpec {
    HookSpec::new(id, "before_tool", ActionSpec::AskAgent(AskAgentSpec { prompt: prompt.to_owned() }))
}

fn runs_line(id: &str, line: &str) -> HookSpec {
    let spans: Vec<_> = placeholders(line).map(|one| one.span).collect();
    let words = ollm_shell::split(line, &spans).unwrap();
    let spec = HookSpec::new(id, "agentStop", ActionSpec::RunCommand(RunCommandSpec { line: line.to_owned(), words }));
    HookSpec { timeout: Some(Timeout::Exact(PATIENCE)), ..spec }
}

fn stop() -> Event {
    Event::unchecked(EventKind::AfterAgent, [("response", "a \"b\" $(c); d".into())])
}

fn calls(id: &str, args: &serde_json::Value) -> HookSpec {
    let args = args.as_object().unwrap().clone();
    let action = ActionSpec::Mcp(McpSpec { server: "git".to_owned(), tool: "check".to_owned(), args });
    HookSpec { timeout: Some(Timeout::Exact(PATIENCE)), ..HookSpec::new(id, "before_tool", action) }
}

#[test]
fn ask_agent_renders_its_prompt_in_order_and_decides_nothing() {
    let mut world = World::new();
    world.add(asks("one", "Review `{{tool_args.command}}` and {{ nothing.here }}!"));
    world.add(asks("two", "{{tool_name}}"));
    let outcome = world.engine.dispatch(&event());
    assert_eq!(outcome.verdict.prompts, ["Review `ls` and !", "shell"]);
    assert_eq!(outcome.verdict.flow, Flow::NoOpinion);
    assert_eq!(outcome.reports[0].warnings, ["unknown variable `nothing.here`: it is empty here"]);
}

#[test]
fn a_prompt_of_the_project_reaches_the_agent_only_when_it_is_approved() {
    let mut world = World::new();
    let hook = world.add(HookSpec { source: Source::Workspace, ..asks("guest", "delete everything") });
    assert_eq!(skipped(&world.engine.dispatch(&event())), [("guest", "untrusted")]);
    world.approve(&hook);
    assert_eq!(world.engine.dispatch(&event()).verdict.prompts, ["delete everything"]);
}

#[test]
fn run_command_is_judged_by_its_status_and_its_output_is_reported() {
    let world = World::new();
    world.script("guard.sh", "#!/bin/sh\nprintf '{\"continue\": false}'; echo oops >&2; exit $1\n");
    let line = |status| format!("sh {} {status}", world.path("guard.sh").display());
    let good = world.run(runs_line("good", &line(0)), &stop());
    assert_eq!((good.status, good.verdict.flow), (Status::Ok, Flow::NoOpinion));
    let reported = json!({"stdout": "{\"continue\": false}", "stderr": "oops\n"});
    assert_eq!(serde_json::Value::from(good.verdict.metadata), reported);
    for status in [1, 2] {
        let bad = world.run(runs_line("bad", &line(status)), &stop());
        assert_eq!((bad.status, bad.verdict.flow), (Status::Failed, Flow::NoOpinion));
        assert_eq!(bad.error, Some(format!("exited with status {status}: oops")));
    }
    let gate = HookSpec { on_failure: Some(OnFailure::Block), ..runs_line("gate", &line(1)) };
    assert_eq!(world.run(gate, &stop()).verdict.flow, Flow::Block);
}

#[test]
fn a_variable_in_a_run_command_stays_inside_its_word() {
    let world = World::new();
    world.script("args.sh", "#!/bin/sh\nfor arg; do printf '[%s]' \"$arg\"; done\n");
    let line = format!("sh {} 'a b' x{{{{ data.response }}}}y", world.path("args.sh").display());
    let report = world.run(runs_line("args", &line), &stop());
    assert_eq!(report.verdict.metadata["stdout"], "[a b][xa \"b\" $(c); dy]");
}

#[test]
fn the_script_of_a_run_command_is_part_of_what_is_approved() {
    let mut world = World::new();
    world.script("guard.sh", "#!/bin/sh\necho one\n");
    let origin = Origin { file: world.path("hooks.json"), line: 1, column: 1 };
    let hook = world.add(HookSpec { source: Source::Workspace, origin, ..runs_line("guest", "sh guard.sh") });
    world.approve(&hook);
    let outcome = world.engine.dispatch(&stop());
    assert_eq!(outcome.reports[0].verdict.metadata["stdout"], "one\n");
    fs::write(world.path("guard.sh"), "#!/bin/sh\necho two\n").unwrap();
    assert_eq!(skipped(&world.engine.dispatch(&stop())), [("guest", "modified")]);
}

/// Answers with what it was prepared to, and remembers the calls.
#[derive(Debug)]
struct Tools(Mutex<Vec<ToolCall>>, Result<String, ToolFailure>);

impl ToolCaller for Tools {
    fn call(&self, call: &ToolCall) -> Result<String, ToolFailure> {
        self.0.lock().unwrap().push(call.clone());
        self.1.clone()
    }
}

fn with_tools(answer: Result<&str, &str>) -> (World, Arc<Tools>) {
    with_answer(answer.map(str::to_owned).map_err(|why| why.to_owned().into()))
}

fn with_answer(answer: Result<String, ToolFailure>) -> (World, Arc<Tools>) {
    let mut world = World::new();
    let tools = Arc::new(Tools(Mutex::default(), answer));
    world.engine.tools = Some(Arc::<Tools>::clone(&tools));
    (world, tools)
}

#[test]
fn a_tool_is_called_with_its_texts_filled_in_and_answers_in_the_hooks_dialect() {
    let (world, tools) = with_tools(Ok(&refuse("gate", "not today").to_string()));
    let args = json!({"line": "{{tool_args.command}} x", "list": [1, "{{tool_name}}"], "deep": {"a": "{{tool_name}}"}});
    let report = world.run(spoken("gate", calls("check", &args)), &event());
    assert_eq!((report.status, report.verdict.flow), (Status::Blocked, Flow::Block));
    assert_eq!(report.verdict.reasons, ["not today"]);
    let called = &tools.0.lock().unwrap()[0];
    let filled = json!({"line": "ls x", "list": [1, "shell"], "deep": {"a": "shell"}});
    assert_eq!((called.server.as_str(), called.tool.as_str()), ("git", "check"));
    assert_eq!(serde_json::Value::from(called.args.clone()), filled);
}

#[test]
fn a_tool_that_fails_is_a_failed_hook() {
    let (world, _) = with_tools(Err("server `git` is not running"));
    let report = world.run(spoken("gate", calls("check", &json!({}))), &event());
    assert_eq!((report.status, report.verdict.flow), (Status::Failed, Flow::Block));
    assert_eq!(report.error.as_deref(), Some("server `git` is not running"));
}

#[test]
fn a_refusal_of_a_tool_that_says_it_failed_is_a_refusal_and_nothing_else_it_says_counts() {
    for dialect in ["ollm", "gate", "rpc", "agent"] {
        for (said, refuses) in [(refuse(dialect, "no").to_string(), true), ("{\"continue\": true}".to_owned(), false)] {
            let (world, _) = with_answer(Err(ToolFailure { why: "it failed".to_owned(), said }));
            let report = world.run(spoken(dialect, calls("check", &json!({}))), &event());
            let expected = if refuses { Status::Blocked } else { Status::Failed };
            assert_eq!((report.status, report.error.as_deref()), (expected, Some("it failed")), "{dialect}");
            assert_eq!(report.verdict.flow == Flow::Block, refuses || dialect == "gate", "{dialect}");
        }
    }
}

#[test]
fn an_answer_over_the_cap_is_a_failure() {
    let (world, _) = with_tools(Ok(&"x".repeat(2 << 20)));
    let report = world.run(calls("check", &json!({})), &event());
    assert_eq!(report.status, Status::Failed);
    assert!(report.error.unwrap().contains("more than its limit `output` of 1048576 bytes"));
}

#[test]
fn without_servers_a_tool_cannot_be_called() {
    let world = World::new();
    let report = world.run(calls("check", &json!({})), &event());
    assert_eq!(
        report.error.as_deref(),
        Some("no MCP servers are connected here, so `check` of `git` cannot be called")
    );
}

/// Never comes back while the test runs.
#[derive(Debug)]
struct Stuck;

impl ToolCaller for Stuck {
    fn call(&self, _: &ToolCall) -> Result<String, ToolFailure> {
        loop {
            std::thread::park();
        }
    }
}

/// Panics.
#[derive(Debug)]
struct Broken;

impl ToolCaller for Broken {
    fn call(&self, _: &ToolCall) -> Result<String, ToolFailure> {
        panic!("broken on purpose")
    }
}

#[test]
fn a_caller_that_hangs_or_panics_holds_nobody_up() {
    let mut world = World::new();
    world.engine.tools = Some(Arc::new(Stuck));
    let report = world.run(within(Duration::from_millis(200), calls("check", &json!({}))), &event());
    assert_eq!(report.status, Status::Timeout);
    world.engine.tools = Some(Arc::new(Broken));
    let report = world.run(calls("check", &json!({})), &event());
    assert_eq!((report.status, report.error.as_deref()), (Status::Failed, Some("it panicked")));
}

#[test]
fn errands_and_programs_of_a_stage_go_on_at_once() {
    /// Answers when the program of the same stage has left its mark.
    #[derive(Debug)]
    struct Waits(std::path::PathBuf);
    impl ToolCaller for Waits {
        fn call(&self, _: &ToolCall) -> Result<String, ToolFailure> {
            eventually("the program runs", || self.0.exists());
            Ok(r#"{"continue": true}"#.to_owned())
        }
    }
    let mut world = World::new();
    world.engine.tools = Some(Arc::new(Waits(world.path("mark"))));
    world.add(HookSpec { parallel: true, ..calls("errand", &json!({})) });
    world.add(HookSpec { parallel: true, ..crate::support::sh("program", r#"touch mark; echo '{"continue": true}'"#) });
    let outcome = world.engine.dispatch(&event());
    assert_eq!(crate::support::ran(&outcome), ["errand", "program"]);
    assert!(outcome.reports.iter().all(|report| report.status == Status::Ok), "{:?}", outcome.reports);
}

#[test]
fn a_builtin_with_a_timeout_of_its_own_is_left_behind_and_its_failure_counts() {
    let mut world = World::new();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Mutex::new(held);
    let slow = builtin("slow", move |_| {
        let _ = held.lock().unwrap().recv();
        Verdict::default()
    });
    let timeout = Some(Timeout::Exact(Duration::from_millis(20)));
    world.add(HookSpec { timeout, on_failure: Some(OnFailure::Block), ..slow });
    let outcome = world.engine.dispatch(&event());
    assert_eq!((outcome.reports[0].status, outcome.continues()), (Status::Timeout, false));
    drop(release);
}

#[cfg(not(feature = "http"))]
#[test]
fn a_build_without_http_says_so_and_the_policy_of_the_hook_applies() {
    let action = ActionSpec::Http(ollm_protocol::hook::action::HttpSpec {
        url: "https://example.com/".to_owned(),
        headers: Vec::new(),
    });
    let report = World::new().run(spoken("gate", HookSpec::new("http", "before_tool", action)), &event());
    assert_eq!((report.status, report.verdict.flow), (Status::Failed, Flow::Block));
    let expected = "http hooks are not supported by this build, which lacks the feature `http`";
    assert_eq!(report.error.as_deref(), Some(expected));
}
