//! What decides whether a hook runs: scope, file patterns, condition, requirements, duplicates.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use ollm_engine::{Engine, Environment, Plan};
use ollm_protocol::hook::action::AskAgentSpec;
use ollm_protocol::{
    ActionSpec, Event, EventKind, Flow, Hook, HookSpec, LimitsSpec, OnFailure, Reach, Requires, Rules, Source, Timeout,
    Variable, Verdict,
};
use ollm_trust::{Approver, Choice, Question, Trust};
use serde_json::json;

use crate::support::{World, builtin, command, event, logs, ran, sh, skipped, spoken};

fn skips(plan: &Plan) -> Vec<(&str, &str)> {
    plan.skipped.iter().map(|skip| (skip.hook.id(), skip.reason.name())).collect()
}

fn from_subagent(kind: EventKind) -> Event {
    Event::unchecked(kind, [("tool_name", "shell".into()), ("agent_id", "a1".into())])
}

#[test]
fn agent_hooks_skip_sub_agents_unless_they_say_otherwise() {
    let mut world = World::new();
    world.add(HookSpec { reach: None, ..spoken("agent", logs("agent")) });
    world.add(HookSpec { reach: Some(Reach::All), ..spoken("agent", logs("agent-all")) });
    world.add(logs("ollm"));
    world.add(HookSpec { reach: Some(Reach::Main), ..logs("ollm-main") });
    world.add(HookSpec { reach: Some(Reach::Subagents), ..logs("ollm-sub") });

    let main = world.engine.plan(&event());
    assert_eq!(skips(&main), [("ollm-sub", "scope")]);
    let sub = world.engine.plan(&from_subagent(EventKind::BeforeTool));
    assert_eq!(skips(&sub), [("agent", "scope"), ("ollm-main", "scope")]);
    assert_eq!(
        sub.skipped[0].detail,
        "the event comes from a sub-agent, and the hook's scope is main (from the dialect); \"scope\": \"all\" has it run for both"
    );
}

#[test]
fn the_start_and_the_end_of_a_sub_agent_happen_to_the_main_agent() {
    let mut world = World::new();
    for kind in ["subagent_start", "subagent_stop"] {
        world.add(HookSpec { events: vec![kind.to_owned()], ..spoken("agent", logs(kind)) });
    }
    assert_eq!(skips(&world.engine.plan(&from_subagent(EventKind::SubagentStart))), []);
    assert_eq!(skips(&world.engine.plan(&from_subagent(EventKind::SubagentStop))), []);
}

#[test]
fn an_earlier_hook_cannot_make_an_event_a_sub_agents() {
    let mut world = World::new();
    world.add(sh("liar", r#"echo '{"continue": true, "data": {"agent_id": "a1"}}'"#));
    world.add(sh("witness", "cat >seen; echo '{}'"));
    assert_eq!(ran(&world.engine.dispatch(&event())), ["liar", "witness"]);
    assert!(!std::fs::read_to_string(world.path("seen")).unwrap().contains("a1"));
}

#[test]
fn file_patterns_look_at_the_paths_of_the_event_from_the_project_root() {
    let mut world = World::new();
    let environment = Environment {
        project: Some("/project".into()),
        cwd: "/project/sub".into(),
        ..world.engine.environment().clone()
    };
    world.engine = Engine::new(Trust::new(world.path("a.json"), std::time::SystemTime::now), environment);
    world.add(HookSpec { file_patterns: vec!["src/*.rs".to_owned()], ..logs("rust") });
    let plan = |args: serde_json::Value| {
        let plan =
            world.engine.plan(&Event::unchecked(EventKind::BeforeTool, [("tool_name", "edit".into()), ("args", args)]));
        plan.skipped.first().map(|skip| (skip.reason.name(), skip.detail.clone()))
    };
    assert_eq!(plan(json!({"path": "/project/src/a.rs"})), None);
    assert_eq!(plan(json!({"file_path": "../src/a.rs"})), None);
    let other = "`a.md` does not match `src/*.rs`".to_owned();
    assert_eq!(plan(json!({"path": "a.md"})), Some(("pattern", other)));
    let both = "neither `a.md` nor `b.md` matches `src/*.rs`".to_owned();
    assert_eq!(plan(json!({"path": "a.md", "file_path": "b.md"})), Some(("pattern", both)));
    let none = "`filePatterns` wants a file that matches `src/*.rs`, and the event names none".to_owned();
    assert_eq!(plan(json!({})), Some(("pattern", none)));
}

#[test]
fn a_condition_decides_and_sees_the_event_and_the_variables_that_hooks_see() {
    let mut world = World::with(&[("OLLM_MODE", "strict"), ("MY_SECRET", "s3cret")]);
    for (id, condition) in [
        ("true", "data.args.command == 'ls' && env.OLLM_MODE == 'strict' && source == 'user'"),
        ("false", "data.args.command == 'rm'"),
        ("hidden", "'MY_SECRET' in env"),
    ] {
        world.add(HookSpec { condition: Some(condition.to_owned()), ..logs(id) });
    }
    let outcome = world.engine.dispatch(&event());
    assert_eq!(
        (ran(&outcome), skipped(&outcome)),
        (vec!["true"], vec![("false", "condition"), ("hidden", "condition")])
    );
    assert_eq!(outcome.skipped[0].detail, "`if` is false for this event: data.args.command == 'rm'");
}

#[test]
fn a_condition_that_cannot_be_answered_skips_the_hook_unless_it_is_a_gate() {
    let mut world = World::new();
    let broken = |id: &str, on_failure| HookSpec {
        condition: Some("data.nothing.here == 1".to_owned()),
        on_failure,
        parallel: true,
        ..logs(id)
    };
    world.add(broken("log", None));
    world.add(broken("gate", Some(OnFailure::Block)));
    world.add(broken("question", Some(OnFailure::Ask)));
    let outcome = world.engine.dispatch(&event());
    assert_eq!(skipped(&outcome), [("log", "condition")]);
    assert!(outcome.skipped[0].detail.contains("nothing"), "{}", outcome.skipped[0].detail);
    let flows: Vec<_> = outcome.reports.iter().map(|report| (report.hook.id(), report.verdict.flow)).collect();
    assert_eq!(flows, [("gate", Flow::Block), ("question", Flow::Ask)]);
    assert!(outcome.verdict.reasons[0].starts_with("user hook `gate` failed: its `if` cannot be answered"));
    assert!(world.log().is_empty(), "none of them ran");
}

#[test]
fn a_gate_nobody_approved_has_no_say_through_its_condition_either() {
    let mut world = World::new();
    world.add(HookSpec {
        condition: Some("data.nothing.here".to_owned()),
        on_failure: Some(OnFailure::Block),
        source: Source::Workspace,
        ..logs("stranger")
    });
    let outcome = world.engine.dispatch(&event());
    assert_eq!((outcome.continues(), skipped(&outcome)), (true, vec![("stranger", "untrusted")]));
}

#[test]
fn a_hook_without_what_it_requires_is_skipped_and_the_missing_thing_is_named() {
    let mut world = World::new();
    world.file("here", "");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let open = listener.local_addr().unwrap().to_string();
    let closed = {
        let gone = TcpListener::bind("127.0.0.1:0").unwrap();
        gone.local_addr().unwrap().to_string()
    };
    let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
    for (id, commands, files, services) in [
        ("all", list(&["sh", "/bin/sh"]), list(&["here"]), list(&[&open])),
        ("command", list(&["sh", "no-such-command"]), vec![], vec![]),
        ("file", vec![], list(&["here", "gone"]), vec![]),
        ("service", vec![], vec![], list(&[&open, &closed])),
    ] {
        world.add(HookSpec { requires: Requires { commands, files, services }, ..logs(id) });
    }
    let outcome = world.engine.dispatch(&event());
    assert_eq!(ran(&outcome), ["all"]);
    assert_eq!(skipped(&outcome), [("command", "requires"), ("file", "requires"), ("service", "requires")]);
    for (skip, word) in outcome.skipped.iter().zip(["`no-such-command`", "/gone", closed.as_str()]) {
        assert!(skip.detail.contains(word), "{}", skip.detail);
    }
}

#[test]
fn a_gate_without_what_it_requires_has_failed_and_refuses() {
    let mut world = World::new();
    let requires = Requires { commands: vec!["no-such-command".to_owned()], ..Requires::default() };
    world.add(HookSpec { requires, on_failure: Some(OnFailure::Block), ..logs("gate") });
    let outcome = world.engine.dispatch(&event());
    let reason = outcome.verdict.reasons.first().cloned().unwrap_or_default();
    assert!(reason.starts_with("user hook `gate` failed: it requires the command `no-such-command`"), "{outcome:?}");
    assert!(world.log().is_empty(), "it did not run");
}

#[test]
fn no_connection_is_opened_for_a_hook_nobody_approved() {
    let mut world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let services = vec![listener.local_addr().unwrap().to_string()];
    let requires = Requires { services, ..Requires::default() };
    world.add(HookSpec { requires, source: Source::Workspace, ..logs("stranger") });
    let outcome = world.engine.dispatch(&event());
    assert_eq!(skipped(&outcome), [("stranger", "untrusted")]);
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "somebody came");
}

#[derive(Debug)]
struct Yes;

impl Approver for Yes {
    fn ask(&self, _: &Question<'_>) -> Choice {
        Choice::Once
    }
}

#[test]
fn a_hook_that_was_approved_on_the_spot_still_needs_its_services() {
    let mut world = World::new();
    world.engine.trust.approver = Some(Box::new(Yes));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let requires = Requires { services: vec![closed], ..Requires::default() };
    world.add(HookSpec { requires, source: Source::Workspace, ..logs("guest") });
    assert_eq!(skipped(&world.engine.dispatch(&event())), [("guest", "requires")]);
}

#[test]
fn the_same_hook_declared_twice_runs_once_and_the_other_is_named() {
    let mut world = World::new();
    let spec = |id: &str, line| HookSpec {
        id: id.to_owned(),
        origin: ollm_protocol::Origin { file: "/x/hooks.json".into(), line, column: 1 },
        ..command("", "/bin/sh", &["-c", "echo x >>log"])
    };
    world.add(spec("one", 3));
    world.add(spec("two", 9));
    world.add(HookSpec { matcher: Some("shell".to_owned()), ..spec("matcher", 12) });
    world.add(HookSpec { env: vec![("A".to_owned(), "b".to_owned())], ..spec("env", 13) });
    world.add(HookSpec { on_failure: Some(OnFailure::Block), ..spec("gate", 14) });
    world.add(spoken("rpc", spec("dialect", 15)));
    let brief = Some(Timeout::Exact(Duration::from_secs(9)));
    world.add(HookSpec { timeout: brief, ..spec("brief", 16) });
    world.add(HookSpec { limits: LimitsSpec { files: Some(64), ..LimitsSpec::default() }, ..spec("bounded", 17) });
    world.add(HookSpec { inputs: vec!["/bin/sh".into()], ..spec("inputs", 18) });
    for (id, value) in [("set", "b"), ("set otherwise", "c"), ("set again", "c")] {
        let settings = vec![Variable { name: "A".to_owned(), value: value.into(), secret: false }];
        let hook = Hook { settings, ..Hook::new(spec(id, 19), &Rules::default()).unwrap() };
        world.engine.registry.register(hook).unwrap();
    }
    let outcome = world.engine.dispatch(&event());
    let expected = ["one", "matcher", "env", "gate", "dialect", "brief", "bounded", "inputs", "set", "set otherwise"];
    assert_eq!(ran(&outcome), expected);
    assert_eq!(skipped(&outcome), [("two", "duplicate"), ("set again", "duplicate")]);
    assert_eq!(
        outcome.skipped[0].detail,
        "does the same as hook `one`, declared in /x/hooks.json:3:1, which runs; remove one of the two"
    );
    assert_eq!(world.log().len(), expected.len());
}

#[test]
fn a_program_is_the_same_by_its_name_and_by_the_path_that_the_name_leads_to() {
    let path = std::env::var("PATH").unwrap();
    let mut world = World::with(&[("PATH", &path)]);
    let found = std::env::split_paths(&path).map(|folder| folder.join("sh")).find(|file| file.is_file()).unwrap();
    let elsewhere = std::env::current_dir().unwrap().join("sh").display().to_string();
    let arguments = ["-c", "echo x >>log"];
    for (id, program) in [("bare", "sh"), ("placed", found.to_str().unwrap()), ("elsewhere", &elsewhere)] {
        world.add(HookSpec { id: id.to_owned(), ..command("", program, &arguments) });
    }
    let outcome = world.engine.dispatch(&event());
    assert_eq!(ran(&outcome).first(), Some(&"bare"));
    assert!(skipped(&outcome).contains(&("placed", "duplicate")), "{:?}", skipped(&outcome));
    assert!(!skipped(&outcome).contains(&("elsewhere", "duplicate")), "{:?}", skipped(&outcome));
}

#[test]
fn a_hook_is_no_duplicate_of_one_that_may_not_run() {
    let mut world = World::new();
    let spec =
        |id: &str, source| HookSpec { id: id.to_owned(), source, ..command("", "/bin/sh", &["-c", "echo x >>log"]) };
    // By rank a user-wide extension comes before the project.
    world.add(spec("stranger", Source::Extension));
    let guard = world.add(spec("guard", Source::Workspace));
    let third = world.add(spec("third", Source::Workspace));
    world.approve(&guard);
    world.approve(&third);
    let outcome = world.engine.dispatch(&event());
    assert_eq!(ran(&outcome), ["guard"]);
    assert_eq!(skipped(&outcome), [("stranger", "untrusted"), ("third", "duplicate")]);

    let plan = world.engine.plan(&event());
    assert_eq!(plan.skipped.iter().map(|skip| skip.hook.id()).collect::<Vec<_>>(), ["stranger"]);
    let (hook, skips) = world.engine.forecast(&plan.stages[0][0]);
    assert_eq!(hook.map(|step| step.hook.id().to_owned()).as_deref(), Some("guard"));
    assert_eq!(skips.iter().map(|skip| skip.reason.name()).collect::<Vec<_>>(), ["duplicate"]);
}

#[test]
fn after_a_refusal_duplicates_are_skipped_with_the_rest() {
    let mut world = World::new();
    world.add(builtin("guard", |_| Verdict::block("no")));
    for id in ["one", "two"] {
        world.add(HookSpec { id: id.to_owned(), ..command("", "/bin/true", &[]) });
    }
    assert_eq!(skipped(&world.engine.dispatch(&event())), [("one", "after_block"), ("two", "after_block")]);
}

#[test]
fn closures_are_never_duplicates() {
    let mut world = World::new();
    for id in ["one", "two"] {
        world.add(builtin(id, |_| Verdict::default()));
    }
    assert_eq!(ran(&world.engine.dispatch(&event())), ["one", "two"]);
}

#[test]
fn c08_a_subject_full_of_expression_signs_is_a_plain_name() {
    let mut world = World::new();
    let name = "a.*(+)+$[";
    world.add(HookSpec { matcher: Some("re:^(a+)+$".to_owned()), ..logs("expression") });
    world.add(HookSpec { matcher: Some("a*".to_owned()), ..logs("prefix") });
    let long = format!("{}!", "a".repeat(100_000));
    for subject in [name, long.as_str()] {
        let event = Event::unchecked(EventKind::BeforeTool, [("tool_name", subject.into())]);
        assert_eq!(ran(&world.engine.dispatch(&event)), ["prefix"]);
    }
}

#[test]
fn c09_a_tool_nobody_knows_reaches_only_hooks_for_everything() {
    let mut world = World::new();
    world.add(HookSpec { matcher: Some("shell|edit_*".to_owned()), ..logs("known") });
    world.add(logs("all"));
    let event =
        Event::unchecked(EventKind::BeforeTool, [("tool_name", "tool_of_2031".into()), ("new_field", json!([1]))]);
    assert_eq!(ran(&world.engine.dispatch(&event)), ["all"]);
}

#[test]
fn a_plan_with_everything_in_it_runs_nothing() {
    let mut world = World::new();
    world.add(HookSpec { condition: Some("true".to_owned()), ..logs("one") });
    let action = ActionSpec::AskAgent(AskAgentSpec { prompt: "x".to_owned() });
    world.add(HookSpec::new("two", "before_tool", action));
    let plan = world.engine.plan(&event());
    assert_eq!(
        plan.stages.iter().map(|stage| Arc::clone(&stage[0]).id().to_owned()).collect::<Vec<_>>(),
        ["one", "two"]
    );
    assert!(world.log().is_empty());
}
