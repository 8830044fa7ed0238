//! Every verdict has its effect, and no other.

use ollm_agent::{Decision, Message, StartError, TurnEnd};
use ollm_protocol::{EventKind, Flow};
use serde_json::{Value, json};

use crate::support::{World, calls, expecting, flow, said, text};

fn refused(event: EventKind) -> TurnEnd {
    TurnEnd::Refused { event, hook: "guard".into(), reason: "no".into() }
}

#[test]
fn a_refused_session_does_not_start() {
    let mut world = World::new(&[]).on(EventKind::SessionStart, Decision::block("guard", "not today"));
    let Err(StartError::Refused(refusal)) = world.try_start() else { panic!("it must not start") };
    assert_eq!((refusal.hook.as_str(), refusal.reason.as_str()), ("guard", "not today"));
    assert_eq!(world.events(), ["session_start"]);
    assert_eq!(world.shown("refused"), ["refused session_start - guard: not today"]);
}

#[test]
fn a_refused_prompt_never_reaches_the_model() {
    let mut world = World::new(&[]).on(EventKind::BeforeAgent, Decision::block("guard", "no"));
    let mut session = world.start();
    let turns = session.say("hello", None);
    assert_eq!(turns[0].end, refused(EventKind::BeforeAgent));
    assert!(session.messages().iter().all(|message| message.role() == "system"));
    session.end();
    assert_eq!(world.events(), ["session_start", "before_agent", "session_end"]);
}

#[test]
fn refused_tools_question_or_answer_end_the_turn() {
    for (kind, events) in [
        (EventKind::BeforeToolSelection, &["before_tool_selection"][..]),
        (EventKind::BeforeModel, &["before_tool_selection", "before_model"]),
        (EventKind::AfterModel, &["before_tool_selection", "before_model", "after_model"]),
    ] {
        let call = calls(&[("write_file", json!({"path": "a", "content": ""}))]);
        let mut world = World::new(&[call]).on(kind, Decision::block("guard", "no"));
        let mut session = world.start();
        assert_eq!(session.say("hello", None)[0].end, refused(kind));
        session.end();
        let expected = [&["session_start", "before_agent"], events, &["after_agent", "session_end"]].concat();
        assert_eq!(world.events(), expected);
        assert!(!world.path("a").exists(), "the calls of a refused answer are not made");
    }
}

#[test]
fn a_refused_call_is_told_to_the_model_and_the_person_and_has_no_end() {
    let blocked = json!({"last": "Tool execution blocked by hook: no", "role": "tool"});
    let answers =
        [calls(&[("write_file", json!({"path": "a", "content": "x"}))]), expecting(text("as you wish"), blocked)];
    let mut world = World::new(&answers).on(EventKind::BeforeTool, Decision::block("guard", "no"));
    let mut session = world.start();
    let turns = session.say("write", None);
    assert_eq!((turns[0].end.clone(), turns[0].response.as_str()), (TurnEnd::Done, "as you wish"));
    session.end();
    assert!(!world.path("a").exists());
    assert!(!world.events().contains(&"after_tool"));
    assert_eq!(world.shown("refused"), ["refused before_tool write_file guard: no"]);
}

#[test]
fn patched_arguments_are_what_the_tool_gets() {
    for patch in [
        json!({"path": "b", "file_path": "a", "content": "patched"}),
        json!({"path": "a", "file_path": "b", "content": "patched"}),
        json!({"path": "b", "file_path": "b", "content": "patched"}),
    ] {
        let args = patch.as_object().unwrap().clone();
        let decision = Decision { args: Some(args), ..Decision::default() };
        let answers = [calls(&[("write_file", json!({"path": "a", "content": "x"}))]), text("done")];
        let mut world = World::new(&answers).on(EventKind::BeforeTool, decision);
        world.start().say("write", None);
        assert_eq!(world.file("b"), "patched");
        assert!(!world.path("a").exists());
        let after = world.data(EventKind::AfterTool);
        assert_eq!(after[0]["args"], json!({"path": "b", "content": "patched", "file_path": "b"}));
    }
}

#[test]
fn a_filtered_list_is_what_the_model_sees_and_may_call() {
    let decision = Decision { tools: Some(vec!["todo".into(), "unknown".into()]), ..Decision::default() };
    let answers = [
        expecting(calls(&[("shell", json!({"command": "touch x"}))]), json!({"tools": ["todo"]})),
        expecting(text("ok"), json!({"last": "there is no tool `shell`"})),
    ];
    let mut world = World::new(&answers).on(EventKind::BeforeToolSelection, decision);
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
    assert!(!world.path("x").exists());
    assert!(!world.events().contains(&"before_tool"));
}

#[test]
fn system_messages_and_context_enter_in_plan_order_before_the_model_is_asked() {
    let answers = [calls(&[("todo", json!({"items": []}))]), text("done")];
    let mut world = World::new(&answers).hooks(|event| {
        let name = event.kind.name();
        let speaks = matches!(
            event.kind,
            EventKind::SessionStart
                | EventKind::BeforeAgent
                | EventKind::BeforeModel
                | EventKind::BeforeTool
                | EventKind::AfterTool
        );
        if !speaks {
            return Decision::default();
        }
        Decision {
            system_messages: vec![format!("{name} 1"), format!("{name} 2")],
            context: vec![format!("{name} 3")],
            ..Decision::default()
        }
    });
    let mut session = world.start();
    session.say("go", None);
    let said: Vec<String> =
        session.messages().iter().map(|message| format!("{}: {}", message.role(), message.content())).collect();
    let three = |name: &str| (1..4).map(|at| format!("system: {name} {at}")).collect::<Vec<_>>();
    let expected = [
        vec!["system: be good".to_owned()],
        three("session_start"),
        three("before_agent"),
        vec!["user: go".to_owned()],
        three("before_model"),
        vec!["assistant: ".to_owned(), "tool: the list is empty".to_owned()],
        three("before_tool"),
        three("after_tool"),
        three("before_model"),
        vec!["assistant: done".to_owned()],
    ]
    .concat();
    assert_eq!(said, expected);
}

#[test]
fn a_refused_end_sends_its_reason_back_and_the_turn_goes_on() {
    let answers = [text("done"), expecting(text("now done"), json!({"last": "run the tests", "role": "user"}))];
    let mut left = 1;
    let mut world = World::new(&answers).hooks(move |event| {
        if event.kind != EventKind::AfterAgent || left == 0 {
            return Decision::default();
        }
        left -= 1;
        Decision::block("stop", "run the tests")
    });
    let turns = world.start().say("go", None);
    assert_eq!((turns.len(), turns[0].response.as_str(), turns[0].end.clone()), (1, "now done", TurnEnd::Done));
    let attempts: Vec<Value> = world.data(EventKind::AfterAgent).iter().map(|data| data["attempt"].clone()).collect();
    assert_eq!(attempts, [json!(0), json!(1)]);
}

#[test]
fn b16_nobody_keeps_a_turn_going_forever() {
    let answers = vec![text("done"); 100];
    let mut world = World::new(&answers).on(EventKind::AfterAgent, Decision::block("stop", "again"));
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
    assert_eq!(world.data(EventKind::AfterAgent).len(), 3, "the same words count twice");
    assert_eq!(world.shown("status a hook gave the same reason").len(), 1);

    let mut count = 0;
    let mut world = World::new(&answers).hooks(move |event| {
        count += 1;
        if event.kind == EventKind::AfterAgent {
            Decision::block("stop", format!("{count}"))
        } else {
            Decision::default()
        }
    });
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
    assert_eq!(world.data(EventKind::AfterAgent).len(), 9, "eight times, and then no more");
    assert_eq!(world.shown("status hooks kept the turn going 8 times").len(), 1);
}

#[test]
fn prompts_of_hooks_become_turns_of_their_own() {
    let answers = [text("one"), expecting(text("two"), json!({"last": "check it", "role": "user"}))];
    let mut asked = false;
    let mut world = World::new(&answers).hooks(move |event| {
        if event.kind == EventKind::BeforeModel && !asked {
            asked = true;
            return Decision { prompts: vec![said("check it"), said("check it")], ..Decision::default() };
        }
        Decision::default()
    });
    let turns = world.start().say("go", None);
    let seen: Vec<_> = turns.iter().map(|turn| (turn.prompt.as_str(), turn.response.as_str())).collect();
    assert_eq!(seen, [("go", "one"), ("check it", "two")]);
    assert_eq!(world.data(EventKind::BeforeAgent).len(), 2);
}

#[test]
fn a_chain_of_prompts_has_an_end() {
    let mut count = 0;
    let mut world = World::new(&vec![text("ok"); 100]).hooks(move |event| {
        count += 1;
        let prompts = if event.kind == EventKind::AfterAgent { vec![said(&format!("{count}"))] } else { Vec::new() };
        Decision { prompts, ..Decision::default() }
    });
    assert_eq!(world.start().say("go", None).len(), 4, "the person's turn, and a chain of three");
    assert_eq!(world.shown("status a prompt of hook `asker` is left out: its chain").len(), 1);

    let mut world = World::new(&vec![text("ok"); 100]).hooks(|event| {
        let many = |at| said(&format!("{at}"));
        let prompts = if event.kind == EventKind::BeforeModel { (0..50).map(many).collect() } else { Vec::new() };
        Decision { prompts, ..Decision::default() }
    });
    assert_eq!(world.start().say("go", None).len(), 17, "sixteen prompts at most");
}

#[test]
fn a_replaced_result_is_what_the_model_reads() {
    for (result, read) in [(json!("nothing to see"), "nothing to see"), (json!({"a": 1}), "{\"a\":1}")] {
        let decision = Decision { result: Some(result), ..Decision::default() };
        let answers = [
            calls(&[("shell", json!({"command": "echo secret"}))]),
            expecting(text("ok"), json!({"last": read, "absent": "secret\n"})),
        ];
        let mut world = World::new(&answers).on(EventKind::AfterTool, decision);
        let mut session = world.start();
        assert_eq!(session.say("go", None)[0].end, TurnEnd::Done);
        assert!(session.messages().iter().all(|message| message.content() != "secret"));
    }
}

#[test]
fn a_refused_result_is_feedback_for_the_model() {
    let objection = json!({"last": ["out", "Hook `guard` objects to this result: format it"]});
    let answers = [calls(&[("shell", json!({"command": "echo out"}))]), expecting(text("ok"), objection)];
    let mut world = World::new(&answers).on(EventKind::AfterTool, Decision::block("guard", "format it"));
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
}

#[test]
fn halt_ends_the_turn_and_not_the_session() {
    for kind in [
        EventKind::BeforeAgent,
        EventKind::BeforeToolSelection,
        EventKind::BeforeModel,
        EventKind::AfterModel,
        EventKind::BeforeTool,
        EventKind::AfterTool,
        EventKind::AfterAgent,
        EventKind::FileCreated,
    ] {
        let write = |name: &str| ("write_file", json!({"path": name, "content": "x"}));
        let answers = [calls(&[write("a"), write("b")]), text("one"), text("two"), text("three")];
        let mut halted = false;
        let mut world = World::new(&answers).hooks(move |event| {
            if event.kind == kind && !halted {
                halted = true;
                return flow(Flow::Halt, "enough");
            }
            Decision::default()
        });
        let mut session = world.start();
        let turns = session.say("go", None);
        let end = turns[0].end.clone();
        let halted = matches!(end, TurnEnd::Halted { .. });
        let refused = kind == EventKind::BeforeAgent && matches!(end, TurnEnd::Refused { .. });
        assert!(halted || refused, "{kind:?}: {end:?}");
        assert!(kind == EventKind::AfterAgent || !world.path("b").exists(), "{kind:?}: the second call is not made");
        assert_eq!(session.say("again", None)[0].end, TurnEnd::Done, "{kind:?}");
    }
}

#[test]
fn every_call_has_a_result_when_the_turn_ends_in_between() {
    let call = ("shell", json!({"command": "true"}));
    let answers = [calls(&[call.clone(), call.clone(), call])];
    let mut world = World::new(&answers).on(EventKind::BeforeTool, flow(Flow::Halt, "enough"));
    let mut session = world.start();
    session.say("go", None);
    let results: Vec<&str> =
        session.messages().iter().filter(|message| message.role() == "tool").map(Message::content).collect();
    let unrun = "not run: the turn ended before";
    assert_eq!(results, ["Tool execution blocked by hook: enough", unrun, unrun]);
}

#[test]
fn messages_for_the_person_are_shown_and_not_told_to_the_model() {
    let decision = Decision { messages: vec![said("for you")], ..Decision::default() };
    let mut world =
        World::new(&[expecting(text("ok"), json!({"absent": "for you"}))]).on(EventKind::BeforeModel, decision);
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
    assert_eq!(world.shown("note"), ["note asker: for you"]);
}

#[test]
fn a_notification_is_never_caused_by_a_notification() {
    let mut world = World::new(&[text("ok")]).hooks(|event| match event.kind {
        EventKind::Notification | EventKind::BeforeModel => Decision {
            system_messages: vec!["psst".into()],
            messages: vec![said("hey")],
            ..Decision::block("guard", "no")
        },
        _ => Decision::default(),
    });
    let mut session = world.start();
    session.say("go", None);
    session.end();
    let notices: Vec<Value> =
        world.data(EventKind::Notification).iter().map(|data| json!([data["event_type"], data["message"]])).collect();
    let refusal = json!(["status", "hook `guard` refused before_model: no"]);
    assert_eq!(notices, [json!(["system_message", "psst"]), refusal]);
}

#[test]
fn a_refusal_where_nothing_is_left_to_stop_is_only_reported() {
    let answers = [calls(&[("write_file", json!({"path": "a", "content": ""}))]), text("ok")];
    let mut world = World::new(&answers).on(EventKind::FileCreated, Decision::block("guard", "too late"));
    let mut session = world.start();
    assert_eq!(session.say("go", None)[0].end, TurnEnd::Done);
    session.end();
    assert!(world.path("a").exists());
    assert_eq!(world.shown("refused"), ["refused file_created - guard: too late"]);
}
