//! Properties 27 and 35 to 38 of the specification, at the level of this crate.

use std::sync::Arc;

use ollm_agent::{Decision, Events, Message, Order, ToolSource, TurnEnd};
use ollm_protocol::event::COMMON;
use ollm_protocol::{Content, Event, EventKind, Tool, ToolResult, ToolSchema};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::{World, calls, cases, expecting, text};

/// Fields that the host cannot know, or that only some events of the kind have.
fn may_miss(kind: EventKind, field: &str) -> bool {
    matches!(
        (kind, field),
        (_, "user")
            | (EventKind::SessionStart, "user_input")
            | (EventKind::BeforeAgent, "context")
            | (EventKind::AfterModel, "tokens")
            | (EventKind::AfterTool, "result" | "error")
            | (EventKind::UserTriggered | EventKind::Custom, "source" | "user_input")
    )
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn property_27_every_event_has_the_data_of_its_kind(
        prompt in "[a-zé\"\\\\]{1,20}",
        content in "[a-z\n]{0,40}",
        context in prop::option::of("[a-z]{1,9}"),
        tokens in prop::option::of(1u64..1000),
        fails in any::<bool>(),
    ) {
        let mut write = calls(&[
            ("write_file", json!({"path": "a", "content": content})),
            ("edit_file", json!({"path": "a", "old": "\0", "new": "x"})),
            ("write_file", json!({"path": "a", "content": "again"})),
            ("delete_file", json!({"path": "a"})),
        ]);
        if let Some(tokens) = tokens {
            write["usage"] = json!({"total_tokens": tokens});
        }
        let last = if fails { json!({"error": "broken"}) } else { text("done") };
        let mut world = World::new(&[write, last]).approval(ollm_agent::Approval::Ask)
            .consents(&[ollm_agent::Consent::Yes; 9])
            .limits(|limits| limits.context = Some(60));
        let mut session = world.start();
        session.say(&prompt, context.as_deref());
        session.trigger("t", json!(null));
        session.custom("c", json!({}), None);
        session.end();
        let trace = world.trace.lock().unwrap();
        for event in trace.iter() {
            // Only what happens in a sub-agent names one, and we have none.
            let foreign = |field: &str| matches!(field, "agent_id" | "agent_type");
            prop_assert!(!event.data.keys().any(|field| foreign(field)));
            let optional = |field: &str| foreign(field) || may_miss(event.kind, field);
            for (field, _) in COMMON.iter().chain(event.kind.row().fields).filter(|(field, _)| !optional(field)) {
                prop_assert!(event.data.contains_key(*field), "{} has no {field}", event.kind.name());
            }
            prop_assert_eq!(event.text("session_id"), Some("s1"));
        }
        for kind in EventKind::all() {
            let foreign = matches!(kind, EventKind::GitCommit | EventKind::SubagentStart | EventKind::SubagentStop | EventKind::Error | EventKind::Notification);
            prop_assert!(foreign || trace.iter().any(|event| event.kind == kind), "{} never happened", kind.name());
        }
        let of = |kind| trace.iter().find(|event| event.kind == kind).unwrap();
        prop_assert_eq!(of(EventKind::BeforeAgent).text("prompt"), Some(prompt.as_str()));
        prop_assert_eq!(of(EventKind::BeforeAgent).text("context"), context.as_deref());
        prop_assert_eq!(of(EventKind::AfterModel).data.get("tokens").cloned(), tokens.map(Value::from));
        prop_assert!(of(EventKind::AfterTool).data["metrics"]["success"].as_bool().unwrap());
    }

    #[test]
    fn property_35_a_refusal_aborts_and_messages_enter_in_order(
        texts in prop::collection::vec("[a-z]{1,9}", 0..6),
        refuses in any::<bool>(),
        at in prop_oneof![Just(EventKind::BeforeAgent), Just(EventKind::BeforeToolSelection), Just(EventKind::BeforeModel)],
    ) {
        let flow = if refuses { ollm_protocol::Flow::Block } else { ollm_protocol::Flow::NoOpinion };
        let decision = Decision { flow, system_messages: texts.clone(), ..Decision::default() };
        let mut world = World::new(&[text("ok")]).on(at, decision);
        let mut session = world.start();
        let end = session.say("go", None)[0].end.clone();
        if refuses {
            let refused = matches!(end, TurnEnd::Refused { event, .. } if event == at);
            prop_assert!(refused, "{end:?}");
            prop_assert!(!session.messages().iter().any(|message| message.role() == "assistant"));
        } else {
            prop_assert_eq!(end, TurnEnd::Done);
            let messages = session.messages();
            let entered: Vec<&str> =
                messages.iter().filter(|message| message.role() == "system").skip(1).map(Message::content).collect();
            prop_assert_eq!(entered, texts.iter().map(String::as_str).collect::<Vec<_>>());
            prop_assert_eq!(messages.last().unwrap().role(), "assistant");
        }
    }

    #[test]
    fn property_36_what_hooks_pass_on_stays_among_them(
        data in prop::collection::btree_map("[a-z]{1,5}", any::<u8>(), 0..4),
    ) {
        // The chain itself is the engine's; the host must hand each event out whole and keep the data to itself.
        let data: Map<String, Value> = data.into_iter().map(|(name, value)| (name, value.into())).collect();
        let mut chain = Chain { data: data.clone(), seen: Vec::new() };
        let event = Event::unchecked(EventKind::BeforeModel, [("model", "m".into())]);
        let decision = chain.dispatch(&event);
        prop_assert_eq!(&decision.data, &data);
        prop_assert_eq!(chain.seen, vec![event.clone(), event.with_extra(&data)]);
        let mut world = World::new(&[text("ok")]).hooks({
            let data = data.clone();
            move |_| Decision { data: data.clone(), ..Decision::default() }
        });
        let mut session = world.start();
        prop_assert_eq!(session.say("go", None)[0].end.clone(), TurnEnd::Done);
        prop_assert_eq!(session.messages().len(), 3, "data is no message");
    }

    #[test]
    fn property_37_a_tool_of_a_source_is_called_with_what_the_model_wrote_and_its_result_comes_back(
        args in testkit::json_object(),
        answer in "[a-zé ]{1,30}",
        is_error in any::<bool>(),
    ) {
        let source = Arc::new(Echo::new(move |order: &Order| {
            let text = format!("{answer}|{}|{}", order.name, Value::from(order.args.clone()));
            ToolResult { is_error, ..ToolResult::text(text) }
        }));
        let mut world = World::new(&[calls(&[("mcp__git__push", args.clone().into())]), text("done")]);
        world.sources.push(source);
        let mut session = world.start();
        prop_assert_eq!(session.say("go", None)[0].end.clone(), TurnEnd::Done);
        let told = session.messages().iter().find(|message| message.role() == "tool").unwrap().content().to_owned();
        prop_assert!(told.ends_with(&format!("|mcp__git__push|{}", Value::from(args))), "{told}");
        prop_assert_eq!(told.starts_with("error: "), is_error);
        let after = &world.data(EventKind::AfterTool)[0];
        prop_assert_eq!(after.get("error").is_some(), is_error);
        prop_assert_eq!(after.get("result").is_some(), !is_error);
    }

    #[test]
    fn property_38_progress_is_shown_and_structured_data_reaches_agent_and_hooks(
        steps in prop::collection::vec("[a-z]{1,9}", 0..5),
        structured in testkit::json_object(),
        words in prop::option::of("[a-z]{1,9}"),
    ) {
        let (steps_sent, value, said) = (steps.clone(), Value::from(structured.clone()), words.clone());
        let source = Arc::new(Echo::new(move |order: &Order| {
            for step in &steps_sent {
                (order.progress)(step);
            }
            let content = said.iter().map(|text| Content::Text(text.clone())).collect();
            ToolResult { content, structured: Some(value.clone()), is_error: false }
        }));
        let read = words.unwrap_or_else(|| Value::from(structured.clone()).to_string());
        let answers = [calls(&[("mcp__git__push", json!({}))]), expecting(text("done"), json!({"last": read}))];
        let mut world = World::new(&answers);
        world.sources.push(source);
        prop_assert_eq!(world.start().say("go", None)[0].end.clone(), TurnEnd::Done);
        let shown: Vec<String> = steps.iter().map(|step| format!("progress mcp__git__push {step}")).collect();
        prop_assert_eq!(world.shown("progress"), shown);
        prop_assert_eq!(&world.data(EventKind::AfterTool)[0]["result"], &Value::from(structured));
    }
}

/// Two hooks, the second of which sees what the first returned.
struct Chain {
    data: Map<String, Value>,
    seen: Vec<Event>,
}

impl Events for Chain {
    fn dispatch(&mut self, event: &Event) -> Decision {
        self.seen.push(event.clone());
        self.seen.push(event.clone().with_extra(&self.data));
        Decision { data: self.data.clone(), ..Decision::default() }
    }
}

type Answers = Box<dyn Fn(&Order) -> ToolResult + Send + Sync>;

/// A source with one tool.
struct Echo(Answers);

impl Echo {
    fn new(answers: impl Fn(&Order) -> ToolResult + Send + Sync + 'static) -> Echo {
        Echo(Box::new(answers))
    }
}

impl ToolSource for Echo {
    fn tools(&self) -> Vec<Tool> {
        let (name, description) = ("mcp__git__push".to_owned(), "pushes".to_owned());
        vec![Tool { name, description, input: ToolSchema::default(), output: None, read_only: false }]
    }

    fn call(&self, order: &Order) -> ToolResult {
        (self.0)(order)
    }
}
