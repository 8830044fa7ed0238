//! What goes wrong is bounded, told clearly, and leaves the conversation whole.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ollm_agent::{Cancel, Decision, Message, Order, ToolSource, TurnEnd};
use ollm_protocol::{EventKind, Tool, ToolResult, ToolSchema};
use serde_json::{Value, json};

use crate::support::{World, calls, expecting, said, text};

fn failed(end: &TurnEnd) -> &'static str {
    match end {
        TurnEnd::Failed { code, .. } => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_model_that_breaks_off_is_told_of_and_its_turn_ends_in_order() {
    let mut world = World::new(&[json!({"error": "the line broke"}), text("ok")]);
    let mut session = world.start();
    assert_eq!(failed(&session.say("go", None)[0].end), "dropped");
    assert_eq!(session.say("again", None)[0].end, TurnEnd::Done, "the session goes on");
    session.end();
    let first = [
        "session_start",
        "before_agent",
        "before_tool_selection",
        "before_model",
        "after_model",
        "error",
        "after_agent",
    ];
    assert_eq!(world.events()[..7], first);
    assert!(world.data(EventKind::AfterModel)[0]["error"].as_str().unwrap().contains("the line broke"));
    let error = &world.data(EventKind::Error)[0];
    assert_eq!((&error["operation"], &error["error"]["code"]), (&json!("model"), &json!("dropped")));
    assert_eq!(world.data(EventKind::Notification)[0]["event_type"], "error");
}

#[test]
fn an_empty_answer_is_a_failure_with_a_way_out() {
    let mut world = World::new(&[json!({"content": " \n"})]);
    assert_eq!(failed(&world.start().say("go", None)[0].end), "empty");
    assert_eq!(world.shown("error"), ["error the model returned nothing; ask again, or take another model"]);
}

#[test]
fn broken_arguments_and_unknown_tools_are_told_to_the_model() {
    for (call, told) in [
        (("shell", json!("{\"command\": ")), "error: the arguments are no JSON object"),
        (("shel", json!({})), "there is no tool `shel`; did you mean `shell`?"),
        (("teleport", json!({})), "there is no tool `teleport`; there are read_file"),
    ] {
        let answers = [calls(&[call]), expecting(text("sorry"), json!({"last": told}))];
        let mut world = World::new(&answers);
        let mut session = world.start();
        assert_eq!(session.say("go", None)[0].end, TurnEnd::Done);
        session.end();
        assert!(!world.events().contains(&"before_tool"), "nothing can run, so nothing is asked");
        assert_eq!(world.data(EventKind::Error).len(), 1);
    }
}

#[test]
fn fifty_calls_at_once_are_bounded_and_all_answered() {
    let list: Vec<(&str, Value)> = (0..50).map(|at| ("todo", json!({"items": [format!("{at}")]}))).collect();
    let mut world = World::new(&[calls(&list), text("done")]);
    let mut session = world.start();
    assert_eq!(session.say("go", None)[0].end, TurnEnd::Done);
    assert_eq!(session.messages().iter().filter(|message| message.role() == "tool").count(), 50);
    session.end();
    assert_eq!(world.data(EventKind::BeforeTool).len(), 32);
    assert_eq!(world.shown("status"), ["status the model made 50 calls at once; 32 of them were run"]);
}

#[test]
fn every_call_of_a_conversation_has_an_id_of_its_own() {
    let call = |at: u8| ("todo", json!({"items": [at]}));
    // Ids begin anew in each answer, and one answer has the same id twice.
    let mut twice = calls(&[call(3), call(4)]);
    twice["tool_calls"][1]["id"] = twice["tool_calls"][0]["id"].clone();
    let mut world = World::new(&[calls(&[call(1), call(2)]), twice, calls(&[call(5)]), text("done")]);
    let mut session = world.start();
    assert_eq!(session.say("go", None)[0].end, TurnEnd::Done);
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    for message in session.messages() {
        match message {
            Message::Assistant { calls, .. } => asked.extend(calls.iter().map(|call| call.id.clone())),
            Message::Tool { call_id, .. } => answered.push(call_id.clone()),
            _ => {}
        }
    }
    assert_eq!(asked, answered);
    assert_eq!((asked.len(), asked.iter().collect::<BTreeSet<_>>().len()), (5, 5), "{asked:?}");
}

#[test]
fn the_same_call_over_and_over_is_stopped() {
    let answers = vec![calls(&[("list_dir", json!({}))]); 50];
    let mut world = World::new(&answers);
    let mut session = world.start();
    let TurnEnd::Bounded(why) = session.say("go", None)[0].end.clone() else { panic!("it must end") };
    assert_eq!(why, "the model wanted the same call of list_dir 7 times in a row, of which 3 were made; the turn ends");
    session.end();
    assert_eq!(world.data(EventKind::AfterTool).len(), 3, "three times it is run");
    assert_eq!(world.events().last(), Some(&"session_end"));
}

#[test]
fn a_cycle_of_calls_is_stopped_and_one_whose_results_change_is_not() {
    let edit = |old: &str, new: &str| calls(&[("edit_file", json!({"path": "a", "old": old, "new": new}))]);
    let answers: Vec<Value> = (0..50).map(|at| if at % 2 == 0 { edit("x", "y") } else { edit("y", "x") }).collect();
    let mut world = World::new(&answers);
    std::fs::write(world.path("a"), "x").unwrap();
    let TurnEnd::Bounded(why) = world.start().say("go", None)[0].end.clone() else { panic!("it must end") };
    assert_eq!(why, "the model wanted the same 2 calls 7 times in a row, of which 3 were made; the turn ends");
    let mut answers = vec![calls(&[("shell", json!({"command": "echo x >> a; wc -l < a"}))]); 12];
    answers.push(text("done"));
    let mut world = World::new(&answers);
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
}

#[test]
fn a_model_that_never_finishes_is_stopped() {
    let answers: Vec<Value> = (0..60).map(|at| calls(&[("todo", json!({"items": [format!("{at}")]}))])).collect();
    let mut world = World::new(&answers);
    assert!(matches!(world.start().say("go", None)[0].end, TurnEnd::Bounded(_)));
    assert_eq!(world.data(EventKind::BeforeModel).len(), 50);
    assert_eq!(world.shown("error").len(), 1);
}

#[test]
fn ten_megabytes_of_text_are_cut() {
    let mut world = World::new(&[text(&"é".repeat(5 << 20))]);
    let turns = world.start().say("go", None);
    assert_eq!((turns[0].end.clone(), turns[0].response.len()), (TurnEnd::Done, 1 << 20));
    assert_eq!(world.shown("status"), ["status the answer went on past 1048576 bytes and was cut"]);
}

#[test]
fn hooks_that_block_everything_leave_nothing_hanging() {
    let mut world = World::new(&[text("ok")]).hooks(|event| match event.kind {
        EventKind::SessionStart => Decision::default(),
        _ => Decision::block("wall", "no"),
    });
    let mut session = world.start();
    assert!(matches!(session.say("go", None)[0].end, TurnEnd::Refused { .. }));
    session.end();
    assert_eq!(world.events(), ["session_start", "before_agent", "session_end"]);
}

/// A tool of a source that misbehaves.
struct Odd(fn(&Order) -> ToolResult);

impl ToolSource for Odd {
    fn tools(&self) -> Vec<Tool> {
        let (name, description) = ("odd".to_owned(), String::new());
        vec![Tool { name, description, input: ToolSchema::default(), output: None, read_only: false }]
    }

    fn call(&self, order: &Order) -> ToolResult {
        (self.0)(order)
    }
}

fn with_odd(odd: fn(&Order) -> ToolResult, told: &str) -> World {
    let answers = [calls(&[("odd", json!({}))]), expecting(text("ok"), json!({"last": told}))];
    let mut world = World::new(&answers);
    world.sources.push(Arc::new(Odd(odd)));
    world
}

#[test]
fn a_tool_that_hangs_is_given_up() {
    let mut world = with_odd(
        |order| {
            // Well-behaved in one respect: it stops when the caller no longer waits.
            assert!(order.cancel.wait(Duration::from_mins(10)));
            ToolResult::text("late")
        },
        "error: no result came within 0.05 seconds",
    )
    .limits(|limits| limits.source_call = Duration::from_millis(50));
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
    assert_eq!(world.data(EventKind::AfterTool)[0]["metrics"]["success"], false);
}

#[test]
fn a_tool_that_breaks_down_is_a_failed_call() {
    let mut world = with_odd(|_| panic!("on purpose"), "error: the tool broke down");
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
}

#[test]
fn an_interruption_ends_the_turn_and_leaves_the_conversation_whole() {
    let touch = ("shell", json!({"command": "touch never; sleep 600"}));
    let mut world = World::new(&[calls(&[touch.clone(), touch]), text("ok")]);
    let cancel: Cancel = world.cancel.clone();
    world = world.hooks(move |event| {
        if event.kind == EventKind::BeforeTool {
            cancel.interrupt();
        }
        Decision::default()
    });
    let cancel = world.cancel.clone();
    let mut session = world.start();
    assert_eq!(session.say("go", None)[0].end, TurnEnd::Interrupted);
    let results = session.messages().iter().filter(|message| message.role() == "tool").count();
    assert_eq!(results, 2);
    assert_eq!(session.say("more", None)[0].end, TurnEnd::Interrupted, "until it is forgotten");
    cancel.rearm();
    assert_eq!(session.say("more", None)[0].end, TurnEnd::Done);
    session.end();
    let after = &world.data(EventKind::AfterTool);
    assert_eq!(after.len(), 1, "the call under way has its end, the other never began");
    assert_eq!(after[0]["error"], "interrupted before it began");
    assert!(!world.path("never").exists());
    assert_eq!(world.events().last(), Some(&"session_end"));
}

#[test]
fn an_interruption_reaches_a_running_tool() {
    let mut world = World::new(&[calls(&[("shell", json!({"command": "touch started; sleep 600"}))])]);
    let (cancel, started) = (world.cancel.clone(), world.path("started"));
    let watching = std::thread::spawn(move || {
        while !started.exists() {
            std::thread::yield_now();
        }
        cancel.interrupt();
    });
    let mut session = world.start();
    assert_eq!(session.say("go", None)[0].end, TurnEnd::Interrupted);
    watching.join().unwrap();
    session.end();
    assert_eq!(world.data(EventKind::AfterTool)[0]["error"], "[interrupted]");
}

#[test]
fn a_prompt_of_a_hook_at_the_very_end_is_left_out_visibly() {
    let decision = Decision { prompts: vec![said("one more")], ..Decision::default() };
    let mut world = World::new(&[]).on(EventKind::SessionEnd, decision);
    world.start().end();
    assert_eq!(world.shown("status"), ["status a prompt of hook `asker` is left out: the session ends"]);
}

#[test]
fn a_conversation_that_grew_too_long_is_made_shorter_unless_a_hook_objects() {
    let long = || text(&"x".repeat(1400));
    let answers = [long(), long(), text("in short"), long(), text("shorter still"), long()];
    let mut world = World::new(&answers).limits(|limits| limits.context = Some(2500));
    let mut session = world.start();
    for prompt in ["one", "two", "three", "four"] {
        assert_eq!(session.say(&format!("{prompt} {}", "y".repeat(700)), None)[0].end, TurnEnd::Done);
    }
    let summary = "[Summary of earlier messages] ";
    assert_eq!(session.messages().iter().filter(|message| message.content().starts_with(summary)).count(), 1);
    session.end();
    let overflow = &world.data(EventKind::ContextOverflow)[0];
    let used = overflow["utilization"].as_f64().unwrap();
    assert!((0.8..=1.0).contains(&used) && overflow["maxSize"] == 2500, "{overflow}");
    let (before, after) = (&world.data(EventKind::PreCompress)[0], &world.data(EventKind::PostCompress)[0]);
    assert!(before["size"].as_u64() > after["size"].as_u64());
    assert_eq!((&before["trigger"], &after["summary"]), (&json!("auto"), &json!("in short")));

    let answers = [long(), long(), long(), long()];
    let mut world = World::new(&answers)
        .limits(|limits| limits.context = Some(2500))
        .on(EventKind::PreCompress, Decision::block("keeper", "keep all"));
    let mut session = world.start();
    for prompt in ["one", "two", "three", "four"] {
        assert_eq!(session.say(prompt, None)[0].end, TurnEnd::Done);
    }
    assert_eq!(session.messages().len(), 9);
    session.end();
    assert_eq!(world.data(EventKind::PostCompress).len(), 0);
}
