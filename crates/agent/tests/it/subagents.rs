//! Sub-agents: a conversation of their own, the same hooks and the same bounds.

use ollm_agent::{Approval, Consent, Decision, TurnEnd};
use ollm_protocol::EventKind;
use serde_json::{Value, json};

use crate::support::{World, calls, expecting, text};

fn task(prompt: &str) -> Value {
    calls(&[("task", json!({"prompt": prompt}))])
}

#[test]
fn a_sub_agent_has_a_conversation_of_its_own_and_reports() {
    let answers = [
        task("count the files"),
        expecting(
            calls(&[("shell", json!({"command": "echo 3"}))]),
            json!({"last": "count the files", "contains": ["be good", "You are a sub-agent"], "absent": "the whole story"}),
        ),
        expecting(text("there are three"), json!({"last": "3", "role": "tool"})),
        expecting(
            text("three, I hear"),
            json!({"last": "there are three", "contains": "the whole story", "messages": 4}),
        ),
    ];
    let mut world = World::new(&answers);
    let mut session = world.start();
    let turns = session.say("the whole story", None);
    assert_eq!((turns[0].end.clone(), turns[0].response.as_str()), (TurnEnd::Done, "three, I hear"));
    assert_eq!(session.messages().len(), 5, "what it said stays with it");
    session.end();
    assert_eq!(
        world.events(),
        [
            "session_start",
            "before_agent",
            "before_tool_selection",
            "before_model",
            "after_model",
            "before_tool",
            "subagent_start",
            "before_tool_selection",
            "before_model",
            "after_model",
            "before_tool",
            "after_tool",
            "before_tool_selection",
            "before_model",
            "after_model",
            "subagent_stop",
            "after_tool",
            "before_tool_selection",
            "before_model",
            "after_model",
            "after_agent",
            "session_end",
        ]
    );
    let (start, stop) = (&world.data(EventKind::SubagentStart)[0], &world.data(EventKind::SubagentStop)[0]);
    assert_eq!((&start["agent_id"], &start["agent_type"]), (&json!("s1-agent-1"), &json!("task")));
    assert_eq!((&start["prompt"], &stop["response"]), (&json!("count the files"), &json!("there are three")));
    let inside: Vec<bool> = world
        .data(EventKind::BeforeTool)
        .iter()
        .map(|data| data.get("agent_id") == Some(&json!("s1-agent-1")))
        .collect();
    assert_eq!(inside, [false, true]);
    assert_eq!(world.shown("text"), ["text three, I hear"], "its words are no answer to the person");
    assert_eq!(world.shown("progress task"), ["progress task there are three"]);
}

#[test]
fn a_refused_stop_keeps_it_going_with_the_reason() {
    let answers = [
        task("work"),
        text("done?"),
        expecting(text("really done"), json!({"last": "not yet"})),
        expecting(text("good"), json!({"last": "really done"})),
    ];
    let mut world = World::new(&answers).hooks(|event| {
        let first = event.kind == EventKind::SubagentStop && event.data["attempt"] == 0;
        if first { Decision::block("keeper", "not yet") } else { Decision::default() }
    });
    assert_eq!(world.start().say("go", None)[0].response, "good");
    assert_eq!(world.data(EventKind::SubagentStop).len(), 2);
}

#[test]
fn a_stop_that_is_refused_for_ever_is_bounded() {
    let mut answers = vec![task("work")];
    answers.extend(vec![text("done"); 20]);
    let mut world = World::new(&answers).on(EventKind::SubagentStop, Decision::block("keeper", "go on"));
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
    assert_eq!(world.data(EventKind::SubagentStop).len(), 3, "twice in the same words");
}

#[test]
fn depth_number_and_tools_are_bounded() {
    let subset = calls(&[("task", json!({"prompt": "look", "tools": ["list_dir", "task"]}))]);
    let answers = [
        subset,
        expecting(task("deeper"), json!({"tools": ["list_dir", "task"]})),
        expecting(task("too deep"), json!({"absent": "look"})),
        expecting(text("alone"), json!({"last": "there is no tool `task`"})),
        text("middle"),
        text("outer"),
    ];
    let mut world = World::new(&answers);
    assert_eq!(world.start().say("go", None)[0].response, "outer");
    assert_eq!(world.data(EventKind::SubagentStart).len(), 2);
    let answers = [task("one"), text("1"), task("two"), expecting(text("end"), json!({"last": "which is the most"}))];
    let mut world = World::new(&answers).limits(|limits| limits.agents = 1);
    assert_eq!(world.start().say("go", None)[0].response, "end");
}

#[test]
fn a_sub_agent_never_has_more_tools_than_whoever_gave_it_the_work() {
    let with = |tools: &[&str]| calls(&[("task", json!({"prompt": "look", "tools": tools}))]);
    let answers = [
        with(&["task"]),
        with(&["shell"]),
        expecting(task("deeper"), json!({"last": "you have no tool `shell`"})),
        expecting(text("alone"), json!({"tools": []})),
        text("middle"),
        text("outer"),
    ];
    let mut world = World::new(&answers);
    assert_eq!(world.start().say("go", None)[0].response, "outer");
    assert_eq!(world.data(EventKind::SubagentStart).len(), 2);
}

#[test]
fn the_conversation_is_as_large_after_a_sub_agent_with_fewer_tools_as_before() {
    let answers = [calls(&[("task", json!({"prompt": "look", "tools": ["shell"]}))]), text("seen"), text("end")];
    let mut world = World::new(&answers);
    world.start().say("go", None);
    let size = |kind| world.data(kind)[0]["agent"]["context"]["size"].clone();
    assert_eq!(size(EventKind::AfterTool), size(EventKind::SubagentStart));
}

#[test]
fn guards_and_questions_apply_inside() {
    let answers = [
        task("work"),
        calls(&[
            ("shell", json!({"command": "touch refused"})),
            ("write_file", json!({"path": "asked", "content": "x"})),
        ]),
        text("could not"),
        text("ok"),
    ];
    let mut world = World::new(&answers).approval(Approval::Ask).consents(&[Consent::No]).hooks(|event| {
        let is_shell = event.kind == EventKind::BeforeTool && event.text("tool_name") == Some("shell");
        if is_shell { Decision::block("guard", "no shell") } else { Decision::default() }
    });
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
    assert!(!world.path("refused").exists() && !world.path("asked").exists());
    let questions = world.questions.lock().unwrap().clone();
    assert_eq!(questions.len(), 1);
    assert_eq!(questions[0].details["args"], json!({"path": "asked", "content": "x"}), "a file is named once");
    assert_eq!(world.data(EventKind::ApprovalRequest)[0]["agent_id"], "s1-agent-1");
}

#[test]
fn a_sub_agent_that_fails_is_a_failed_call_and_the_turn_goes_on() {
    for (inside, told) in [(json!({"error": "the line broke"}), "the line broke"), (text(" "), "returned nothing")] {
        let answers = [task("work"), inside, expecting(text("well"), json!({"last": told}))];
        let mut world = World::new(&answers);
        assert_eq!(world.start().say("go", None)[0].response, "well");
        assert_eq!(world.data(EventKind::SubagentStop).len(), 1, "what begins ends");
        assert_eq!(world.data(EventKind::AfterTool)[0]["metrics"]["success"], false);
    }
}

#[test]
fn a_call_without_work_is_sent_back() {
    for args in [
        json!({}),
        json!({"prompt": " "}),
        json!({"prompt": "x", "tools": "all"}),
        json!({"prompt": "x", "tools": [1]}),
        json!({"prompt": "x", "tools": ["nope"]}),
    ] {
        let answers = [calls(&[("task", args)]), expecting(text("ok"), json!({"last": "error: "}))];
        let mut world = World::new(&answers);
        assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
        assert_eq!(world.data(EventKind::SubagentStart).len(), 0);
    }
}
