//! Events come in the promised order, whatever model, hooks, tools and people do.

use std::cell::RefCell;
use std::rc::Rc;

use ollm_agent::{Approval, Cancel, Consent, Decision};
use ollm_protocol::{Event, EventKind, Flow};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::language::{Rules, Token, accept};
use crate::support::{World, calls, cases, said, text};

#[test]
fn a_turn_with_a_tool_has_every_event_once_and_in_order() {
    let answers = [calls(&[("write_file", json!({"path": "a", "content": "x"}))]), text("done")];
    let mut world = World::new(&answers).approval(Approval::Ask).consents(&[Consent::Yes]);
    let mut session = world.start();
    session.say("go", None);
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
            "approval_request",
            "file_created",
            "after_tool",
            "before_tool_selection",
            "before_model",
            "after_model",
            "after_agent",
            "session_end",
        ]
    );
}

#[test]
fn what_the_person_triggers_is_an_event_and_may_start_turns() {
    let mut world = World::new(&[text("ok"), text("ok")]).hooks(|event| match event.kind {
        EventKind::UserTriggered | EventKind::Custom => Decision { prompts: vec![said("go")], ..Decision::default() },
        _ => Decision::default(),
    });
    let mut session = world.start();
    assert_eq!(session.trigger("deploy", json!({"to": "here"})).1.len(), 1);
    assert_eq!(session.custom("mine", json!(1), Some("ext")).1.len(), 1);
    session.end();
    let triggered = &world.data(EventKind::UserTriggered)[0];
    assert_eq!((&triggered["eventName"], &triggered["data"]["to"]), (&json!("deploy"), &json!("here")));
    assert_eq!(world.data(EventKind::Custom)[0]["source"], "ext");
}

#[test]
fn a_dropped_session_ends_in_order() {
    let mut world = World::new(&[]);
    drop(world.start());
    assert_eq!(world.events(), ["session_start", "session_end"]);
}

/// Hooks that follow a script: one byte per event.
struct Script {
    bytes: Vec<u8>,
    at: usize,
    cancel: (usize, Cancel),
    trace: Rc<RefCell<Vec<Token>>>,
}

impl Script {
    fn decide(&mut self, event: &Event) -> Decision {
        self.at += 1;
        if self.at == self.cancel.0 {
            self.cancel.1.interrupt();
        }
        let byte = self.bytes.get(self.at % self.bytes.len().max(1)).copied().unwrap_or(0);
        let decision = decision(byte, self.at);
        let call =
            event.text("call_id").map(|id| (event.text("tool_name").unwrap_or_default().to_owned(), id.to_owned()));
        self.trace.borrow_mut().push(Token {
            kind: event.kind,
            flow: decision.flow,
            failed: event.kind == EventKind::AfterModel && event.data.contains_key("error"),
            call,
        });
        decision
    }
}

fn decision(byte: u8, at: usize) -> Decision {
    let flow = match byte {
        0..=9 => Flow::Block,
        10..=14 => Flow::Halt,
        15..=24 => Flow::Ask,
        25..=34 => Flow::Allow,
        _ => Flow::NoOpinion,
    };
    let mut decision = Decision { flow, ..Decision::default() };
    match byte {
        40..=44 => decision.system_messages.push(format!("psst {at}")),
        45..=49 => decision.prompts.push(said(&format!("prompt {at}"))),
        50..=54 => decision.tools = Some(vec!["todo".into(), "write_file".into()]),
        55..=59 => decision.result = Some(json!({"replaced": at})),
        _ => {}
    }
    decision
}

fn answer() -> impl Strategy<Value = Value> {
    let call = prop_oneof![
        Just(("list_dir", json!({}))),
        Just(("todo", json!({"items": ["a"]}))),
        Just(("todo", json!({"items": 7}))),
        Just(("write_file", json!({"path": "a", "content": "x"}))),
        Just(("write_file", json!({"path": "../a", "content": "x"}))),
        Just(("write_file", json!("broken"))),
        Just(("nonsense", json!({}))),
    ];
    prop_oneof![
        3 => "[a-z]{0,8}".prop_map(|words| text(&words)),
        1 => Just(json!({"error": "the line broke"})),
        6 => prop::collection::vec(call, 1..5).prop_map(|list| calls(&list)),
    ]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_trace_is_in_the_language(
        answers in prop::collection::vec(answer(), 0..12),
        bytes in prop::collection::vec(any::<u8>(), 1..60),
        prompts in 1usize..4,
        cancel_at in prop_oneof![3 => Just(0usize), 1 => 1usize..60],
        approval in prop_oneof![Just(Approval::Ask), Just(Approval::Auto), Just(Approval::Yolo)],
        consent in prop_oneof![Just(Consent::Yes), Just(Consent::No), Just(Consent::Nobody)],
        context in prop_oneof![Just(200usize), Just(400 << 10)],
        dropped in any::<bool>(),
    ) {
        let trace = Rc::new(RefCell::new(Vec::new()));
        let mut world = World::new(&answers).approval(approval).consents(&[consent; 400]).limits(|limits| {
            limits.context = context;
            limits.model_calls = 6;
            limits.tool_calls = 3;
        });
        let cancel = (cancel_at, world.cancel.clone());
        let mut script = Script { bytes, at: 0, cancel, trace: Rc::clone(&trace) };
        world = world.hooks(move |event| script.decide(event));
        if let Ok(mut session) = world.try_start() {
            for prompt in 0..prompts {
                session.say(&format!("prompt {prompt}"), None);
            }
            if dropped { drop(session) } else { session.end() }
        }
        let trace = trace.borrow();
        prop_assert_eq!(accept(&trace, Rules { approval, consent }), Ok(()));
    }
}
