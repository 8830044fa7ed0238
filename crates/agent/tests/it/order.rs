//! Events come in the promised order, for every model, hook, tool and person.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ollm_agent::{
    Approval, Cancel, Consent, Decision, Model, ModelAnswer, ModelError, Order, Piece, Question, ToolSource,
};
use ollm_protocol::{Event, EventKind, Flow, Tool, ToolResult, ToolSchema};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::language::{Rules, Token, accept};
use crate::support::{World, calls, cases, replay, said, text};

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
    /// Whether the last answer wants tools called.
    more: Arc<AtomicBool>,
    trace: Arc<Mutex<Vec<Token>>>,
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
        self.trace.lock().unwrap().push(Token {
            kind: event.kind,
            flow: decision.flow,
            more: event.kind == EventKind::AfterModel && self.more.load(Ordering::Relaxed),
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

/// What a model does when it is asked.
#[derive(Clone, Debug)]
enum Mood {
    /// It answers.
    Answers(Value),
    /// It says something and breaks off.
    BreaksOff(String),
    /// It cannot be asked, in every way there is.
    Fails(u8),
    /// The person loses patience while it speaks: once, or for good.
    IsInterrupted(u8),
}

/// A model of changing moods; at last it has nothing to say.
struct Moody {
    moods: VecDeque<Mood>,
    cancel: Cancel,
    more: Arc<AtomicBool>,
}

impl Model for Moody {
    fn name(&self) -> &'static str {
        "moody"
    }

    fn answer(&mut self, question: &Question<'_>, hear: &mut dyn FnMut(Piece<'_>)) -> Result<ModelAnswer, ModelError> {
        let url = || "http://moody/v1".to_owned();
        self.more.store(false, Ordering::Relaxed);
        match self.moods.pop_front() {
            None => Ok(ModelAnswer::default()),
            Some(Mood::Answers(answer)) => {
                self.more.store(answer.get("tool_calls").is_some(), Ordering::Relaxed);
                replay(&[answer]).answer(question, hear)
            }
            Some(Mood::BreaksOff(words)) => {
                hear(Piece::Text(&words));
                Err(ModelError::Dropped { url: url(), why: "the line broke".to_owned() })
            }
            Some(Mood::Fails(how)) => Err(match how % 5 {
                0 => ModelError::Unreachable { url: url(), why: "nobody".to_owned(), hint: "; wait".to_owned() },
                1 => ModelError::Refused { url: url(), status: 429, text: "busy".to_owned(), hint: String::new() },
                2 => ModelError::Malformed { url: url(), why: "noise".to_owned() },
                3 => ModelError::Silent { url: url(), seconds: 1 },
                _ => ModelError::Endless { url: url() },
            }),
            Some(Mood::IsInterrupted(times)) => {
                (0..times).for_each(|_| self.cancel.interrupt());
                Err(ModelError::Cancelled)
            }
        }
    }
}

/// A source whose tools fail in every way.
struct Fickle(Cancel);

const FICKLE: &[&str] = &["x__works", "x__fails", "x__hangs", "x__panics", "x__interrupts"];

impl ToolSource for Fickle {
    fn tools(&self) -> Vec<Tool> {
        let tool = |name: &&str| Tool {
            name: (*name).to_owned(),
            description: String::new(),
            input: ToolSchema::default(),
            output: None,
            read_only: false,
        };
        FICKLE.iter().map(tool).collect()
    }

    fn call(&self, order: &Order) -> ToolResult {
        match order.name.as_str() {
            "x__works" => ToolResult::text("fine"),
            "x__fails" => ToolResult::error("no"),
            "x__panics" => panic!("on purpose"),
            _ => {
                if order.name == "x__interrupts" {
                    self.0.interrupt();
                }
                // It hangs until the caller no longer waits.
                order.cancel.wait(Duration::from_mins(10));
                ToolResult::text("late")
            }
        }
    }
}

fn mood() -> impl Strategy<Value = Mood> {
    let own = prop_oneof![
        Just(("list_dir", json!({}))),
        Just(("todo", json!({"items": ["a"]}))),
        Just(("todo", json!({"items": 7}))),
        Just(("write_file", json!({"path": "a", "content": "x"}))),
        Just(("write_file", json!({"path": "../a", "content": "x"}))),
        Just(("write_file", json!("broken"))),
        Just(("nonsense", json!({}))),
    ];
    let foreign = (0..FICKLE.len()).prop_map(|at| (FICKLE[at], json!({})));
    let call = prop_oneof![8 => own, 2 => foreign];
    prop_oneof![
        3 => "[a-z]{0,8}".prop_map(|words| Mood::Answers(text(&words))),
        1 => "[a-z]{0,8}".prop_map(Mood::BreaksOff),
        1 => any::<u8>().prop_map(Mood::Fails),
        1 => (1u8..3).prop_map(Mood::IsInterrupted),
        8 => prop::collection::vec(call, 1..5).prop_map(|list| Mood::Answers(calls(&list))),
    ]
}

/// What the person does.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Says,
    Triggers,
    TellsOfSomething,
    /// After an interruption the next prompt counts again.
    GoesOn,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![4 => Just(Deed::Says), 1 => Just(Deed::Triggers), 1 => Just(Deed::TellsOfSomething), 2 => Just(Deed::GoesOn)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..cases() })]

    #[test]
    fn every_trace_is_in_the_language(
        moods in prop::collection::vec(mood(), 0..12),
        bytes in prop::collection::vec(any::<u8>(), 1..60),
        deeds in prop::collection::vec(deed(), 1..6),
        cancel_at in prop_oneof![3 => Just(0usize), 1 => 1usize..60],
        approval in prop_oneof![Just(Approval::Ask), Just(Approval::Auto), Just(Approval::Yolo)],
        consent in prop_oneof![Just(Consent::Yes), Just(Consent::No), Just(Consent::Nobody)],
        context in prop_oneof![Just(200u64), Just(100_000)],
        dropped in any::<bool>(),
    ) {
        let trace = Arc::new(Mutex::new(Vec::new()));
        let mut world = World::new(&[]).approval(approval).consents(&[consent; 400]).limits(|limits| {
            limits.context = Some(context);
            limits.model_calls = 6;
            limits.tool_calls = 3;
            limits.source_call = Duration::from_millis(1);
        });
        let more = Arc::new(AtomicBool::new(false));
        world.model =
            Some(Box::new(Moody { moods: moods.into(), cancel: world.cancel.clone(), more: Arc::clone(&more) }));
        world.sources.push(Arc::new(Fickle(world.cancel.clone())));
        let cancel = (cancel_at, world.cancel.clone());
        let mut script = Script { bytes, at: 0, cancel, more, trace: Arc::clone(&trace) };
        let person = world.cancel.clone();
        world = world.hooks(move |event| script.decide(event));
        if let Ok(mut session) = world.try_start() {
            for (at, deed) in deeds.iter().enumerate() {
                match deed {
                    Deed::Says => drop(session.say(&format!("prompt {at}"), None)),
                    Deed::Triggers => drop(session.trigger("button", json!(at))),
                    Deed::TellsOfSomething => drop(session.custom("mine", json!(at), None)),
                    Deed::GoesOn => person.rearm(),
                }
            }
            if dropped { drop(session) } else { session.end() }
        }
        let trace = trace.lock().unwrap();
        prop_assert_eq!(accept(&trace, Rules { approval, consent }), Ok(()));
        // Each error is told of, by exactly one notification.
        let told = world.data(EventKind::Notification).iter().filter(|data| data["event_type"] == "error").count();
        prop_assert_eq!(told, world.data(EventKind::Error).len());
        // A failed tool, and a call that cannot be made, is shown by its result.
        let errors = world.data(EventKind::Error);
        let is_of_tool = |data: &&Value| {
            let message = data["error"]["message"].as_str().unwrap();
            ["the tool ", "the call of "].iter().any(|start| message.starts_with(start))
        };
        let tools = errors.iter().filter(is_of_tool);
        let shown = world.shown("error").len() + tools.count();
        prop_assert_eq!(shown, told, "what is shown is told to the hooks, and nothing else");
    }
}
