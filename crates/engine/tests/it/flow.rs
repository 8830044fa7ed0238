//! From one hook to the next: which one stops which, what passes on, and in which order answers are merged.

use std::fs;

use ollm_engine::Status;
use ollm_protocol::{ActionSpec, Builtin, Event, EventKind, Flow, HookSpec, Verdict};
use serde_json::{Value, json};

use crate::support::{DIALECTS, World, builtin, event, go_on, logs, prints, ran, refuse, sh, skipped, spoken};

#[test]
fn a_refusal_stops_the_chain_but_in_the_agent_dialect() {
    for dialect in DIALECTS {
        let mut world = World::new();
        world.add(spoken(dialect, sh("guard", &prints(&refuse(dialect, "no")))));
        world.add(logs("second"));
        world.add(logs("third"));
        let outcome = world.engine.dispatch(&event());
        assert!(!outcome.continues());
        if dialect == "agent" {
            assert_eq!((ran(&outcome), skipped(&outcome)), (vec!["guard", "second", "third"], vec![]));
        } else {
            assert_eq!(ran(&outcome), ["guard"]);
            assert_eq!(skipped(&outcome), [("second", "after_block"), ("third", "after_block")]);
            assert_eq!(outcome.skipped[0].detail, "hook `guard` refused before its turn");
            assert!(world.log().is_empty());
        }
    }
}

#[test]
fn refusals_of_the_agent_dialect_are_joined() {
    let mut world = World::new();
    world.add(spoken("agent", sh("one", "echo first >&2; exit 2")));
    world.add(spoken("agent", sh("two", "echo second >&2; exit 2")));
    let outcome = world.engine.dispatch(&event());
    assert_eq!(outcome.verdict.reason().as_deref(), Some("first\nsecond"));
}

#[test]
fn a_later_hook_never_softens_an_earlier_one() {
    let mut world = World::new();
    world.add(spoken("agent", sh("ask", &prints(&json!({"decision": "ask", "reason": "sure?"})))));
    world.add(spoken("agent", sh("approve", &prints(&json!({"decision": "approve"})))));
    assert_eq!(world.engine.dispatch(&event()).verdict.flow, Flow::Ask);
    world.add(spoken("agent", sh("block", "exit 2")));
    world.add(spoken("agent", sh("again", &prints(&json!({"decision": "approve"})))));
    assert_eq!(world.engine.dispatch(&event()).verdict.flow, Flow::Block);
}

#[test]
fn a_refusal_in_a_stage_lets_its_neighbours_finish_and_stops_the_next_stage() {
    let mut world = World::new();
    let wait = |mine: &str, other: &str, answer: &Value| {
        format!("touch {mine}; while ! [ -e {other} ]; do sleep 0.01; done; {}", prints(answer))
    };
    for (id, other) in [("one", "two"), ("two", "one")] {
        world.add(HookSpec { parallel: true, ..sh(id, &wait(id, other, &refuse("ollm", id))) });
    }
    world.add(logs("last"));
    let outcome = world.engine.dispatch(&event());
    assert_eq!(outcome.verdict.reasons, ["one", "two"]);
    assert_eq!(skipped(&outcome), [("last", "after_block")]);
}

#[test]
fn a_stage_is_merged_in_plan_order_whoever_finishes_first() {
    let mut world = World::new();
    let order = ["a", "b", "c", "d"];
    // Each waits for the next one to be done: they finish in reverse.
    for (index, id) in order.iter().enumerate() {
        let wait = order
            .get(index + 1)
            .map_or_else(String::new, |next| format!("while ! [ -e {next}.done ]; do sleep 0.01; done; "));
        let answer = json!({"continue": true, "systemMessage": id, "data": {"who": id}});
        let script = format!("{wait}echo {id} >>log; {}; : >{id}.done", prints(&answer));
        world.add(HookSpec { parallel: true, ..sh(id, &script) });
    }
    let outcome = world.engine.dispatch(&event());
    assert_eq!(world.log(), ["d", "c", "b", "a"]);
    assert_eq!(ran(&outcome), order);
    assert_eq!(outcome.verdict.system_messages, order);
    assert_eq!(outcome.verdict.data["who"], "d");
}

#[test]
fn only_neighbours_that_are_all_parallel_share_a_stage() {
    let mut world = World::new();
    for (id, parallel) in [("a", true), ("b", true), ("c", false), ("d", true), ("e", true), ("f", true)] {
        world.add(HookSpec { parallel, ..logs(id) });
    }
    let plan = world.engine.plan(&event());
    let stages: Vec<Vec<_>> = plan.stages.iter().map(|stage| stage.iter().map(|hook| hook.id()).collect()).collect();
    assert_eq!(stages, [vec!["a", "b"], vec!["c"], vec!["d", "e", "f"]]);
}

fn modify(id: &str, args: &Value) -> HookSpec {
    let answer = json!({"decision": "modify", "modified_args": args});
    spoken("agent", sh(id, &format!("cat >{id}.in; {}", prints(&answer))))
}

#[test]
fn b17_modified_arguments_are_folded_in_order_and_complete() {
    let mut world = World::new();
    world.add(modify("one", &json!({"command": "ls -l", "timeout": 5})));
    world.add(modify("two", &json!({"timeout": 9, "shell": "sh"})));
    let args = json!({"command": "ls", "cwd": "/tmp"});
    let outcome = world.engine.dispatch(&Event::unchecked(EventKind::BeforeTool, [("args", args)]));

    let expected = json!({"command": "ls -l", "cwd": "/tmp", "timeout": 9, "shell": "sh"});
    assert_eq!(outcome.modified_args.map(Value::from), Some(expected));
    let seen: Value = serde_json::from_slice(&fs::read(world.path("two.in")).unwrap()).unwrap();
    assert_eq!(seen["tool_input"], json!({"command": "ls -l", "cwd": "/tmp", "timeout": 5}));
}

#[test]
fn b18_a_later_guard_judges_the_arguments_as_they_were_rewritten() {
    for (rewritten, continues) in [("rm -rf /", false), ("ls", true)] {
        let mut world = World::new();
        world.add(modify("rewrite", &json!({"command": rewritten})));
        world.add(HookSpec {
            source: ollm_protocol::Source::User,
            ..builtin("guard", |event| match event.args().and_then(|args| args.get("command")) {
                Some(command) if command == "rm -rf /" => Verdict::block("no"),
                _ => Verdict::default(),
            })
        });
        let event = Event::unchecked(EventKind::BeforeTool, [("args", json!({"command": "true"}))]);
        assert_eq!(world.engine.dispatch(&event).continues(), continues);
    }
}

#[test]
fn b18_a_rewrite_gets_nothing_past_a_built_in_guard_in_either_direction() {
    for (written, rewritten) in [("rm -rf /", "ls"), ("ls", "rm -rf /")] {
        let mut world = World::new();
        world.add(builtin("guard", |event| match event.args().and_then(|args| args.get("command")) {
            Some(command) if command == "rm -rf /" => Verdict::block("no"),
            _ => Verdict::default(),
        }));
        world.add(modify("rewrite", &json!({"command": rewritten})));
        let event = Event::unchecked(EventKind::BeforeTool, [("args", json!({"command": written}))]);
        let outcome = world.engine.dispatch(&event);
        assert_eq!((outcome.continues(), outcome.verdict.reasons.as_slice()), (false, &["no".to_owned()][..]));
    }
}

#[test]
fn arguments_given_to_a_tool_that_had_none_reach_the_later_hooks() {
    let mut world = World::new();
    world.add(modify("one", &json!({"command": "ls"})));
    world.add(modify("two", &json!({})));
    let outcome = world.engine.dispatch(&Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into())]));
    assert_eq!(outcome.modified_args.map(Value::from), Some(json!({"command": "ls"})));
    let seen: Value = serde_json::from_slice(&fs::read(world.path("two.in")).unwrap()).unwrap();
    assert_eq!(seen["tool_input"], json!({"command": "ls"}));
}

#[test]
fn arguments_that_end_as_they_began_are_not_modified() {
    let mut world = World::new();
    world.add(modify("there", &json!({"command": "rm"})));
    world.add(modify("back", &json!({"command": "ls"})));
    assert_eq!(world.engine.dispatch(&event()).modified_args, None);
    world.engine.registry.clear();
    assert_eq!(world.engine.dispatch(&event()).modified_args, None);
}

#[test]
fn the_last_replacement_of_a_result_counts() {
    let mut world = World::new();
    for result in ["first", "second"] {
        let answer = json!({"hookSpecificOutput": {"updatedToolOutput": result}});
        let spec = spoken("agent", sh(result, &prints(&answer)));
        world.add(HookSpec { events: vec!["after_tool".to_owned()], ..spec });
    }
    let outcome = world.engine.dispatch(&Event::unchecked(EventKind::AfterTool, [("tool_name", "shell".into())]));
    assert_eq!(outcome.verdict.result, Some("second".into()));
}

/// The value without fields that say nothing but `evil`.
fn without_evil(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| *value != "evil");
            kept.map(|(name, value)| (name.clone(), without_evil(value))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn data_never_overwrites_the_fields_of_the_event() {
    for dialect in DIALECTS {
        let mut world = World::new();
        let evil = json!({"tool_name": "evil", "args": {"command": "evil"}, "tool": "evil", "tool_input": "evil",
            "event": "evil", "sessionId": "evil", "hook_event_name": "evil", "extra": 1});
        world.add(sh("first", &prints(&json!({"continue": true, "data": evil}))));
        world.add(spoken(dialect, sh("second", &format!("cat >seen; {}", prints(&go_on(dialect))))));
        let mut event = event();
        event.data.insert("session_id".to_owned(), "s".into());
        world.engine.dispatch(&event);
        let seen = fs::read_to_string(world.path("seen")).unwrap();
        let seen: Value = serde_json::from_str(&seen).unwrap();
        let read = ollm_protocol::dialect::by_name(dialect).unwrap();
        // A reader of the event finds the true fields; the hook's own words stand beside them under other names.
        let read = read.read_event(without_evil(&seen).to_string().as_bytes()).unwrap().event;
        assert_eq!(read.kind, EventKind::BeforeTool, "{dialect}");
        assert_eq!(read.text("tool_name"), Some("shell"), "{dialect}");
        assert_eq!(read.args().unwrap()["command"], "ls", "{dialect}");
        assert_eq!(read.session_id(), Some("s"), "{dialect}");
        assert_eq!(read.data["extra"], 1, "{dialect}");
        if dialect == "ollm" {
            assert_eq!(seen["data"]["sessionId"], "s");
        }
    }
}

#[test]
fn a_filter_of_tools_only_takes_away_and_later_hooks_see_what_is_left() {
    let mut world = World::new();
    let filter = |id: &str, tools: Value| {
        let answer = json!({"continue": true, "data": {"available_tools": tools}});
        let spec = sh(id, &format!("cat >{id}.in; {}", prints(&answer)));
        HookSpec { events: vec!["before_tool_selection".to_owned()], ..spec }
    };
    world.add(filter("one", json!(["read", "write", "invented"])));
    world.add(filter("two", json!([{"name": "write"}, "shell"])));
    let offered = json!(["read", {"name": "write", "description": "writes"}, "shell"]);
    let outcome =
        world.engine.dispatch(&Event::unchecked(EventKind::BeforeToolSelection, [("available_tools", offered)]));

    assert_eq!(outcome.verdict.tools, Some(vec!["write".to_owned()]));
    let seen: Value = serde_json::from_slice(&fs::read(world.path("two.in")).unwrap()).unwrap();
    assert_eq!(seen["data"]["available_tools"], json!(["read", {"name": "write", "description": "writes"}]));
}

#[test]
fn tools_that_were_never_offered_are_not_kept() {
    let mut world = World::new();
    let answer = json!({"continue": true, "data": {"available_tools": ["read", "invented"]}});
    world.add(HookSpec { events: vec!["before_tool_selection".to_owned()], ..sh("one", &prints(&answer)) });
    let offered = json!(["read", "shell"]);
    let outcome =
        world.engine.dispatch(&Event::unchecked(EventKind::BeforeToolSelection, [("available_tools", offered)]));
    assert_eq!(outcome.verdict.tools, Some(vec!["read".to_owned()]));
}

#[test]
fn what_is_for_the_conversation_the_person_and_the_agent_stays_apart() {
    let mut world = World::new();
    let builtin = Builtin::new(|_| Verdict { context: vec!["context".into()], ..Verdict::system_message("system") });
    world.add(HookSpec {
        source: ollm_protocol::Source::Builtin,
        ..HookSpec::new("b", "before_tool", ActionSpec::Builtin(builtin))
    });
    world.add(spoken("gate", sh("g", &prints(&json!({"allow": true, "message": "person", "metadata": {"k": 1}})))));
    let ask = json!({"jsonrpc": "2.0", "result": {"action": "askAgent", "prompt": "review"}, "id": 1});
    world.add(spoken("rpc", sh("r", &prints(&ask))));
    let verdict = world.engine.dispatch(&event()).verdict;
    assert_eq!(verdict.system_messages, ["system"]);
    assert_eq!(verdict.messages, ["person"]);
    assert_eq!(verdict.context, ["context"]);
    assert_eq!(verdict.prompts, ["review"]);
    assert_eq!(verdict.metadata["k"], 1);
    assert_eq!(verdict.flow, Flow::NoOpinion);
}

#[test]
fn an_event_without_hooks_continues() {
    let outcome = World::new().engine.dispatch(&event());
    assert!(outcome.continues() && outcome.reports.is_empty() && outcome.skipped.is_empty());
    assert_eq!(outcome.verdict, Verdict::default());
}

#[test]
fn hooks_that_do_not_fit_are_listed_only_when_asked_for() {
    let mut world = World::new();
    world.add(HookSpec { matcher: Some("write_*".to_owned()), ..logs("other") });
    world.add(HookSpec { enabled: false, ..logs("off") });
    let disabled = ("off", "disabled");
    assert_eq!(skipped(&world.engine.dispatch(&event())), [disabled]);
    let outcome = world.engine.dispatch_explained(&event());
    assert_eq!(skipped(&outcome), [disabled, ("other", "matcher")]);
    assert_eq!(outcome.skipped[0].detail, "`enabled` is false in a user hook");
    assert_eq!(outcome.skipped[1].detail, "`write_*` does not match `shell`");
    assert!(world.log().is_empty());
}

#[test]
fn many_hooks_can_be_run_without_registering_them() {
    let world = World::new();
    let trust = |spec| world.engine.trusted(&world.hook(spec)).unwrap();
    let first = trust(sh("first", &prints(&json!({"continue": true, "data": {"seen": "yes"}}))));
    let second = trust(sh("second", "cat >seen; echo '{\"continue\":false}'"));
    let third = trust(logs("third"));
    let reports = world.engine.run_many(&[first, second, third], &event());
    assert_eq!(reports.iter().map(|report| report.status).collect::<Vec<_>>(), [Status::Ok, Status::Blocked]);
    assert!(fs::read_to_string(world.path("seen")).unwrap().contains("\"seen\":\"yes\""));
    assert!(world.log().is_empty());
}
