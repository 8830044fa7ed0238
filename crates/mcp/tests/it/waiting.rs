//! A waiting caller drives the runtime; no other caller may notice.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ollm_mcp::{BlockingClient, Call, CallErrorKind, Ports, ReadyServer, ServerMemory};
use serde_json::json;

use crate::support::{assert_echoes, call, eventually, fleet, runs, scripted, settings, started, text, tool, with};

fn process(fleet: &BlockingClient) -> String {
    fleet.server("fake").unwrap().status().process.unwrap().to_string()
}

#[test]
fn a_server_outlives_the_thread_that_asked_for_it() {
    let fleet = with(scripted("normal"));
    thread::scope(|scope| drop(scope.spawn(|| assert_echoes(&fleet)).join()));
    let pid = process(&fleet);
    thread::scope(|scope| drop(scope.spawn(|| assert_echoes(&fleet)).join()));
    assert_echoes(&fleet);
    assert_eq!(process(&fleet), pid);
}

#[test]
fn a_server_that_is_started_while_another_is_waited_for_outlives_who_waited() {
    let fleet = started("normal");
    fleet.add(ReadyServer { name: "other".into(), ..scripted("normal") }, ServerMemory::default());
    thread::scope(|scope| {
        let waiting = fleet.call("fake", Call { timeout: None, ..tool("hang", json!({})) }).unwrap();
        let waiter = scope.spawn(move || waiting.wait_for(Duration::from_secs(2)).is_none());
        fleet.server("other").unwrap().begin();
        assert!(waiter.join().unwrap());
    });
    let other = fleet.server("other").unwrap();
    eventually("it is ready", || other.status().state.name() == "ready");
    assert!(runs(&other.status().process.unwrap().to_string()));
    assert_echoes(&fleet);
}

#[test]
fn many_threads_wait_at_once_and_each_gets_its_own_answer() {
    let fleet = started("normal");
    thread::scope(|scope| {
        for caller in 0..8 {
            let fleet = &fleet;
            scope.spawn(move || {
                for number in 0..50 {
                    let given = json!({"caller": caller, "number": number});
                    assert_eq!(call(fleet, "echo", given.clone()).unwrap()["structuredContent"], given);
                }
            });
        }
    });
}

#[test]
fn a_call_goes_on_while_nobody_waits_for_it() {
    let fleet = started("normal");
    let (sender, steps) = channel();
    let sender = Mutex::new(sender);
    let progress: ollm_mcp::OnProgress = Arc::new(move |_| sender.lock().unwrap().send(()).unwrap_or_default());
    let steps_of = json!({"steps": ["a", "b"], "result": {"content": []}});
    assert_echoes(&fleet);
    let pending = fleet.call("fake", Call { progress: Some(progress), ..tool("give", steps_of) }).unwrap();
    for _ in 0..2 {
        steps.recv_timeout(crate::support::PATIENCE).unwrap();
    }
    pending.wait().unwrap();
}

#[test]
fn an_answer_is_given_once_and_a_wait_has_its_end() {
    let fleet = started("normal");
    let hanging = fleet.call("fake", tool("hang", json!({}))).unwrap();
    assert!(hanging.wait_for(Duration::from_millis(5)).is_none());
    let echo = fleet.call("fake", tool("echo", json!({}))).unwrap();
    assert!(echo.wait_for(crate::support::PATIENCE).unwrap().is_ok());
    assert_eq!(echo.wait_for(Duration::ZERO).unwrap().unwrap_err().kind, CallErrorKind::Cancelled);
}

#[test]
fn who_waits_when_the_fleet_is_dropped_is_told() {
    let fleet = started("normal");
    let pid = process(&fleet);
    let hanging = fleet.call("fake", tool("hang", json!({}))).unwrap();
    let waiter = thread::spawn(move || hanging.wait());
    drop(fleet);
    assert_eq!(waiter.join().unwrap().unwrap_err().kind, CallErrorKind::Cancelled);
    eventually("its program is gone", || !runs(&pid));
}

#[test]
fn one_can_wait_on_a_runtime_of_ones_own() {
    let fleet = started("normal");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        assert_echoes(&fleet);
        let hanging = fleet.call("fake", tool("hang", json!({}))).unwrap();
        assert!(hanging.wait_for(Duration::from_millis(5)).is_none());
    });
}

#[test]
fn a_port_that_would_wait_for_itself_is_refused() {
    let fleet = Arc::new(fleet(settings(), Ports::default()));
    fleet.add(scripted("normal"), ServerMemory::default());
    let (inner, heard) = (Arc::downgrade(&fleet), Arc::new(Mutex::new(None)));
    let told = Arc::clone(&heard);
    let progress: ollm_mcp::OnProgress = Arc::new(move |_| {
        let outcome = inner.upgrade().unwrap().call("fake", tool("echo", json!({})));
        *told.lock().unwrap() = Some(outcome.unwrap_err().kind);
    });
    let steps = json!({"steps": ["a"], "result": {"content": [{"type": "text", "text": "t"}]}});
    let result = fleet.call("fake", Call { progress: Some(progress), ..tool("give", steps) }).unwrap().wait().unwrap();
    assert_eq!(text(&result), "t");
    eventually("it is heard", || heard.lock().unwrap().is_some());
    assert!(matches!(heard.lock().unwrap().take(), Some(CallErrorKind::Unavailable(_))));
}

#[test]
fn a_port_that_waits_for_an_earlier_call_is_refused() {
    let client = started("normal");
    let earlier = Mutex::new(Some(client.call("fake", tool("hang", json!({}))).unwrap()));
    let (sender, outcomes) = channel();
    let sender = Mutex::new(sender);
    let progress: ollm_mcp::OnProgress = Arc::new(move |_| {
        if let Some(earlier) = earlier.lock().unwrap().take() {
            let waited = earlier.wait_for(Duration::from_secs(1)).map(|answer| answer.unwrap_err().kind);
            let stopped = earlier.cancel().kind;
            sender.lock().unwrap().send((waited, stopped)).unwrap_or_default();
        }
    });
    let steps = json!({"steps": ["a"], "result": {"content": []}});
    client.call("fake", Call { progress: Some(progress), ..tool("give", steps) }).unwrap().wait().unwrap();
    let (waited, stopped) = outcomes.recv_timeout(crate::support::PATIENCE).unwrap();
    assert!(matches!(waited, Some(CallErrorKind::Unavailable(_))), "{waited:?}");
    assert_eq!(stopped, CallErrorKind::Cancelled);
    assert_echoes(&client);
}

#[test]
fn a_wait_with_something_to_do_ends_with_the_answer_or_when_it_is_stopped() {
    let client = started("normal");
    let mut ticks = 0;
    let echo = client.call("fake", tool("echo", json!({}))).unwrap();
    echo.wait_until(|| false, || ticks += 1).unwrap();
    assert!(ticks > 0, "also when the answer is there");
    let ticks = std::cell::Cell::new(0);
    let hanging = client.call("fake", tool("hang", json!({}))).unwrap();
    let outcome = hanging.wait_until(|| ticks.get() == 2, || ticks.set(ticks.get() + 1));
    assert_eq!((outcome.unwrap_err().kind, ticks.get()), (CallErrorKind::Cancelled, 2));
    let hanging = client.call("fake", tool("hang", json!({}))).unwrap();
    assert_eq!(hanging.wait_until(|| true, || unreachable!()).unwrap_err().kind, CallErrorKind::Cancelled);
    assert_echoes(&client);
}
