//! Listeners: which one is told what, in which order, and that no event waits for them.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use ollm_engine::bus::{Bus, Filter, Message, MessageBody};
use ollm_protocol::{Event, EventKind, HookSpec, Verdict};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{PATIENCE, World, builtin, cases, event, eventually, prints, refuse, sh, spoken, within};

const GO_ON: &str = r#"echo '{"continue":true}'"#;

fn message(kind: EventKind) -> Message {
    Message::event(Event::unchecked(kind, [("session_id", "s1".into())]), SystemTime::UNIX_EPOCH)
}

/// A message that carries a number.
fn numbered(number: u64) -> Message {
    Message::event(Event::unchecked(EventKind::Notification, [("message", number.into())]), SystemTime::UNIX_EPOCH)
}

fn number(message: &Message) -> u64 {
    match &message.body {
        MessageBody::Event(event) => event.data["message"].as_u64().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// What a subscriber has heard, in its own words.
type Heard = Arc<Mutex<Vec<String>>>;

fn heard(heard: &Heard) -> Vec<String> {
    heard.lock().unwrap().clone()
}

fn listen(world: &World) -> Heard {
    let heard = Heard::default();
    let own = Arc::clone(&heard);
    world.engine.bus.subscribe(Filter::all(), 0, move |message| {
        let what = match &message.body {
            MessageBody::HookStart { hook, .. }
            | MessageBody::HookComplete { hook, .. }
            | MessageBody::HookError { hook, .. } => {
                format!(" {}", hook.id())
            }
            _ => String::new(),
        };
        own.lock().unwrap().push(format!("{}{what}", message.event_type()));
    });
    heard
}

#[test]
fn every_event_and_every_hook_that_runs_is_told_in_order() {
    let mut world = World::new();
    let listener = listen(&world);
    world.add(sh("first", GO_ON));
    world.add(sh("broken", "exit 3"));
    world.add(sh("refuses", &prints(&refuse("ollm", "no"))));
    world.add(sh("never", GO_ON));
    world.engine.dispatch(&event());
    assert_eq!(
        heard(&listener),
        [
            "before_tool",
            "hook_execution_start first",
            "hook_execution_complete first",
            "hook_execution_start broken",
            "hook_execution_error broken",
            "hook_execution_start refuses",
            "hook_execution_complete refuses",
        ]
    );
}

#[test]
fn hooks_that_run_at_once_all_start_before_any_is_complete() {
    let mut world = World::new();
    let listener = listen(&world);
    for id in ["a", "b"] {
        world.add(HookSpec { parallel: true, ..sh(id, GO_ON) });
    }
    world.engine.dispatch(&event());
    let expected = [
        "before_tool",
        "hook_execution_start a",
        "hook_execution_start b",
        "hook_execution_complete a",
        "hook_execution_complete b",
    ];
    assert_eq!(heard(&listener), expected);
}

fn told(world: &World, event: &Event) -> Vec<Value> {
    world.engine.bus.keep(100);
    let outcome = world.engine.dispatch(event);
    let messages = world.engine.bus.history();
    assert!(messages.iter().all(|message| message.trace_id.as_ref() == Some(&outcome.trace_id)));
    messages.iter().map(|message| message.to_json()).collect()
}

#[test]
fn the_messages_about_hooks_have_the_documented_fields() {
    let mut world = World::new();
    world.add(spoken("agent", sh("guard", r#"echo '{"decision":"block","reason":"no"}'; echo hm >&2"#)));
    let event = Event::unchecked(
        EventKind::BeforeTool,
        [("session_id", "s1".into()), ("tool_name", "shell".into()), ("args", json!({"command": "ls"}))],
    );
    let told = told(&world, &event);
    assert_eq!((&told[1]["event_type"], &told[1]["session_id"]), (&json!("hook_execution_start"), &json!("s1")));
    assert_eq!(told[1]["hook_type"], "PreToolUse");
    assert!(told[1]["hook_command"].as_str().unwrap().starts_with("/bin/sh -c echo"));
    assert_eq!(told[1]["context"]["args"]["command"], "ls");
    let result = &told[2]["result"];
    assert_eq!(told[2]["event_type"], "hook_execution_complete");
    assert_eq!(told[2]["hook_type"], "PreToolUse");
    let mut fields: Vec<&str> = result.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    let documented = [
        "decision",
        "execution_time",
        "exit_code",
        "json_output",
        "reason",
        "should_continue",
        "stderr",
        "stdout",
        "success",
    ];
    assert_eq!(fields, documented);
    assert_eq!(result["success"], true);
    assert_eq!(result["exit_code"], 0);
    assert_eq!(result["stderr"], "hm\n");
    assert_eq!(result["json_output"], json!({"decision": "block", "reason": "no"}));
    assert_eq!(
        (&result["should_continue"], &result["decision"], &result["reason"]),
        (&json!(false), &json!("block"), &json!("no"))
    );
}

#[test]
fn a_hook_that_fails_or_is_late_is_an_error_with_its_reason() {
    let mut world = World::new();
    world.add(sh("broken", "exit 3"));
    world.add(within(Duration::from_millis(50), sh("late", "exec sleep 1000")));
    world.add(builtin("panics", |_| panic!("on purpose")));
    let told = told(&world, &event());
    let errors: Vec<_> = told.iter().filter(|message| message["event_type"] == "hook_execution_error").collect();
    assert_eq!(errors.len(), 3);
    assert_eq!((&errors[0]["hook_command"], &errors[0]["error"]), (&json!("builtin"), &json!("it panicked")));
    assert!(errors[1]["error"].as_str().unwrap().contains('3'), "{}", errors[1]);
    assert!(errors[2]["error"].is_string() && errors[2]["hook_type"] == "before_tool");
}

#[test]
fn what_a_hook_wrote_reaches_listeners_without_secrets() {
    let mut world = World::with(&[("API_TOKEN", "hunter2-hunter2")]);
    world.add(HookSpec {
        pass_env: vec!["API_TOKEN".to_owned()],
        ..sh("leaks", r#"echo "{\"continue\":true,\"x\":\"$API_TOKEN\"}"; echo $API_TOKEN >&2"#)
    });
    let told = told(&world, &event());
    assert!(!Value::from(told.clone()).to_string().contains("hunter2"), "{told:?}");
    assert!(told.iter().any(|message| message.to_string().contains("[redacted:API_TOKEN]")));
}

#[test]
fn nothing_a_hook_wrote_is_kept_while_nobody_listens() {
    let world = World::new();
    let report = world.run(sh("says", GO_ON), &event());
    let process = report.process.unwrap();
    assert_eq!((process.exit, process.bytes_out, process.spoken), (Some(0), 18, None));
}

#[test]
fn filters_know_every_spelling_and_refuse_what_is_no_event() {
    let filter = Filter::named(["PreToolUse", "custom:deploy", "hook_execution_error"]).unwrap();
    assert!(filter.fits(&message(EventKind::BeforeTool)));
    assert!(!filter.fits(&message(EventKind::AfterTool)));
    let custom = |name: &str| {
        let event = Event::unchecked(EventKind::Custom, [("eventName", name.into())]);
        Message::event(event, SystemTime::UNIX_EPOCH)
    };
    assert!(filter.fits(&custom("deploy")) && !filter.fits(&custom("other")));
    let error = Filter::named(["befor_tool"]).unwrap_err();
    assert_eq!(error.nearest, Some("before_tool"));
    assert!(!Filter::named([]).unwrap().fits(&custom("deploy")));
}

#[test]
fn no_message_is_built_for_an_event_that_no_listener_wants() {
    let mut world = World::new();
    world.add(sh("first", GO_ON));
    let numbers = Heard::default();
    let own = Arc::clone(&numbers);
    let starts = Filter::named(["hook_execution_start"]).unwrap();
    world.engine.bus.subscribe(starts, 0, move |message| own.lock().unwrap().push(message.sequence.to_string()));
    world.engine.dispatch(&event());
    assert_eq!(heard(&numbers), ["1"], "the event, which may hold a whole conversation, is not copied");
}

#[test]
fn a_panicking_subscriber_holds_up_nobody_and_is_counted() {
    let bus = Bus::new();
    let after = Heard::default();
    let own = Arc::clone(&after);
    let bad = bus.subscribe(Filter::all(), 9, |_| panic!("on purpose"));
    bus.subscribe(Filter::all(), 0, move |message| own.lock().unwrap().push(message.sequence.to_string()));
    bus.emit(numbered(0));
    bus.emit(numbered(1));
    assert_eq!(heard(&after), ["1", "2"]);
    assert_eq!(bus.counts(bad).unwrap().panicked, 2);
}

#[test]
fn a_subscriber_may_use_the_bus() {
    let bus = Arc::new(Bus::new());
    let inner = Arc::downgrade(&bus);
    let count = Arc::new(Mutex::new(0));
    let own = Arc::clone(&count);
    bus.subscribe(Filter::named(["session_start"]).unwrap(), 0, move |_| {
        let (bus, own) = (inner.upgrade().unwrap(), Arc::clone(&own));
        let subscription = bus.subscribe(Filter::all(), 0, move |_| *own.lock().unwrap() += 1);
        bus.emit(message(EventKind::SessionEnd));
        assert!(bus.unsubscribe(subscription));
    });
    bus.emit(message(EventKind::SessionStart));
    assert_eq!((*count.lock().unwrap(), bus.history().len()), (1, 0));
}

/// An observer that hears nothing until it is let go.
fn stuck(bus: &Bus, capacity: usize) -> (ollm_engine::bus::Subscription, Receiver<u64>, Sender<()>) {
    let ((seen, numbers), (go, gate)) = (mpsc::channel(), mpsc::channel::<()>());
    let mut held = true;
    let observer = bus.observe(Filter::all(), capacity, move |message| {
        seen.send(number(message)).unwrap();
        if std::mem::take(&mut held) {
            let _ = gate.recv();
        }
    });
    (observer.unwrap(), numbers, go)
}

#[test]
fn an_observer_that_blocks_holds_up_no_event_and_loses_the_oldest() {
    let bus = Bus::new();
    let (observer, numbers, go) = stuck(&bus, 3);
    bus.emit(numbered(0));
    assert_eq!(numbers.recv_timeout(PATIENCE), Ok(0));
    for number in 1..=10 {
        bus.emit(numbered(number));
    }
    assert_eq!(bus.counts(observer).unwrap().dropped, 7);
    go.send(()).unwrap();
    let rest: Vec<u64> = (0..3).map(|_| numbers.recv_timeout(PATIENCE).unwrap()).collect();
    assert_eq!(rest, [8, 9, 10]);
}

#[test]
fn a_dispatch_ends_while_an_observer_still_sits_on_its_first_message() {
    let mut world = World::new();
    world.add(sh("hook", GO_ON));
    let (seen, started) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let wait = move |_: &Message| {
        let _ = seen.send(());
        let _ = gate.recv();
    };
    world.engine.bus.observe(Filter::all(), 1, wait).unwrap();
    assert!(world.engine.dispatch(&event()).continues());
    started.recv_timeout(PATIENCE).unwrap();
    assert!(world.engine.dispatch(&event()).continues());
    drop(go);
}

#[test]
fn an_observer_that_panics_is_counted_and_called_again() {
    let bus = Bus::new();
    let (seen, numbers) = mpsc::channel();
    let observer = bus.observe(Filter::all(), 10, move |message| {
        assert!(number(message) % 2 == 1, "on purpose");
        seen.send(number(message)).unwrap();
    });
    (0..4).for_each(|number| bus.emit(numbered(number)));
    assert_eq!((numbers.recv_timeout(PATIENCE), numbers.recv_timeout(PATIENCE)), (Ok(1), Ok(3)));
    assert_eq!(bus.counts(observer.unwrap()).unwrap().panicked, 2);
}

#[test]
fn an_observers_thread_ends_with_its_subscription_and_with_the_bus() {
    let bus = Bus::new();
    let (seen, numbers) = mpsc::channel::<()>();
    let observer = bus.observe(Filter::all(), 10, move |_| seen.send(()).unwrap()).unwrap();
    assert!(bus.unsubscribe(observer));
    assert!(!bus.unsubscribe(observer));
    assert_eq!(numbers.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));

    let (seen, numbers) = mpsc::channel();
    bus.observe(Filter::all(), 10, move |message| seen.send(number(message)).unwrap()).unwrap();
    bus.emit(numbered(7));
    drop(bus);
    assert_eq!(numbers.recv_timeout(PATIENCE), Ok(7), "what waited is still told");
    assert_eq!(numbers.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn wait_for_gets_the_message_that_fits_or_gives_up_in_time() {
    let bus = Bus::new();
    assert!(bus.wait_for(Filter::all(), Duration::from_millis(1), |_| true).is_none());
    assert!(!bus.is_listened(), "whoever waited is gone");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| bus.wait_for(Filter::all(), PATIENCE, |message| number(message) == 3));
        eventually("somebody waits", || bus.is_listened());
        (0..5).for_each(|number| bus.emit(numbered(number)));
        assert_eq!(waiting.join().unwrap().unwrap().sequence, 4);
    });
}

#[test]
fn a_watch_misses_nothing_from_its_beginning_on() {
    let mut world = World::new();
    world.add(sh("hook", GO_ON));
    let watch = world.engine.bus.watch(Filter::named(["hook_execution_complete"]).unwrap(), 10);
    world.engine.dispatch(&event());
    let message = watch.next(Duration::ZERO).unwrap();
    assert!(matches!(&message.body, MessageBody::HookComplete { hook, .. } if hook.id() == "hook"));
    assert!(watch.next(Duration::ZERO).is_none());
    assert_eq!(watch.dropped(), 0);
}

#[test]
fn the_history_is_empty_until_it_is_asked_for_and_can_be_forgotten() {
    let bus = Bus::new();
    bus.emit(numbered(0));
    assert!(bus.history().is_empty() && !bus.is_listened());
    bus.keep(2);
    (1..5).for_each(|number| bus.emit(numbered(number)));
    assert_eq!(bus.history().iter().map(|message| number(message)).collect::<Vec<_>>(), [3, 4]);
    bus.forget();
    assert!(bus.history().is_empty());
    bus.keep(0);
    assert!(!bus.is_listened());
}

#[test]
fn messages_of_many_threads_reach_every_observer_in_the_one_order_of_the_history() {
    const EACH: u64 = 200;
    let bus = Bus::new();
    bus.keep(10_000);
    let watches = [bus.watch(Filter::all(), 10_000), bus.watch(Filter::all(), 10_000)];
    thread::scope(|scope| {
        for thread in 0..8 {
            let bus = &bus;
            scope.spawn(move || (0..EACH).for_each(|number| bus.emit(numbered(thread * EACH + number))));
        }
    });
    let history: Vec<u64> = bus.history().iter().map(|message| message.sequence).collect();
    assert_eq!(history, (1..=8 * EACH).collect::<Vec<_>>());
    for watch in &watches {
        let seen: Vec<u64> =
            std::iter::from_fn(|| watch.next(Duration::ZERO)).map(|message| message.sequence).collect();
        assert_eq!(seen, history);
    }
}

#[test]
fn a_subscriber_changes_no_verdict() {
    let mut world = World::new();
    world.add(builtin("refuses", |_| Verdict::block("no")));
    let alone = world.engine.dispatch(&event());
    world.engine.bus.subscribe(Filter::all(), 0, |_| panic!("on purpose"));
    let watched = world.engine.dispatch(&event());
    assert_eq!(alone.verdict, watched.verdict);
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn subscribers_are_called_by_priority_then_in_the_order_they_came(
        priorities in prop::collection::vec(-3i32..4, 0..12),
        gone in prop::collection::vec(any::<bool>(), 12),
    ) {
        let bus = Bus::new();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut expected = Vec::new();
        for (at, priority) in priorities.iter().enumerate() {
            let order = Arc::clone(&order);
            let subscription = bus.subscribe(Filter::all(), *priority, move |_| order.lock().unwrap().push(at));
            if gone[at] {
                bus.unsubscribe(subscription);
            } else {
                expected.push(at);
            }
        }
        expected.sort_by_key(|at| -priorities[*at]);
        bus.emit(numbered(0));
        prop_assert_eq!(&*order.lock().unwrap(), &expected);
    }

    #[test]
    fn queues_and_history_hold_the_last_messages_and_count_the_rest(
        capacity in 1usize..20,
        kept in 0usize..20,
        emitted in 0u64..50,
    ) {
        let bus = Bus::new();
        bus.keep(kept);
        let watch = bus.watch(Filter::all(), capacity);
        (0..emitted).for_each(|number| bus.emit(numbered(number)));
        let last = |count: usize| (emitted.saturating_sub(count as u64)..emitted).collect::<Vec<u64>>();
        let history: Vec<u64> = bus.history().iter().map(|message| number(message)).collect();
        prop_assert_eq!(history, last(kept));
        prop_assert_eq!(watch.dropped(), emitted.saturating_sub(capacity as u64));
        let fetched: Vec<u64> = std::iter::from_fn(|| watch.next(Duration::ZERO)).map(|message| number(&message)).collect();
        prop_assert_eq!(fetched, last(capacity));
    }
}
