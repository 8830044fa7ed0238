//! The record of a dispatch: whole, bounded, and without secrets, for any event and any hooks.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ollm_engine::trace::{Payload, Recorder};
use ollm_engine::{Outcome, trace};
use ollm_protocol::{Event, EventKind, HookSpec, Source, Verdict};
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::hostile_text;

use crate::support::{World, builtin, cases, event, eventually, prints, refuse, sh, within};

const GO_ON: &str = r#"echo '{"continue":true}'"#;

fn line(world: &World, event: &Event) -> (String, Outcome) {
    let outcome = world.engine.dispatch(event);
    (recorder(world, Payload::Short).record(event, &outcome), outcome)
}

fn recorder(world: &World, payload: Payload) -> Recorder<'_> {
    Recorder { environment: world.engine.environment(), binary: "1.2.3", off: None, payload }
}

fn record(world: &World, event: &Event) -> Value {
    let (line, _) = line(world, event);
    assert!(line.len() <= trace::LONGEST && !line.contains('\n'), "{line}");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn a_hook_of_many_at_once_ends_after_the_last_thing_that_it_did() {
    let mut world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let file = |number: usize| folder.path().join(number.to_string());
    for number in 0..100 {
        let writes = format!(": > '{}'", file(number).display());
        world.add(HookSpec { parallel: true, ..sh(&number.to_string(), &writes) });
    }
    let outcome = world.engine.dispatch(&event());
    let (instant, now) = (Instant::now(), SystemTime::now());
    for (number, report) in outcome.reports.iter().enumerate() {
        let ended = now - (instant - (report.started + report.duration));
        let written = file(number).metadata().unwrap().modified().unwrap();
        assert!(written <= ended, "hook {number} wrote {:?} after it ended", written.duration_since(ended));
    }
}

#[test]
fn a_record_tells_what_was_planned_what_ran_and_what_came_of_it() {
    let mut world = World::new();
    world.add(HookSpec { parallel: true, ..sh("a", "cat >/dev/null; echo '{\"continue\":true}'; echo hm >&2") });
    world.add(HookSpec { parallel: true, ..sh("b", "kill -9 $$") });
    world.add(sh("c", &prints(&refuse("ollm", "not today"))));
    world.add(sh("d", GO_ON));
    world.add(HookSpec { enabled: false, ..sh("e", "") });
    let event = Event::unchecked(
        EventKind::BeforeTool,
        [("session_id", "s1".into()), ("tool_name", "shell".into()), ("args", json!({"command": "ls", "n": 3}))],
    );
    let (line, outcome) = line(&world, &event);
    let record: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(record["version"], 1);
    assert_eq!(record["binary"], "1.2.3");
    assert_eq!(record["traceId"], outcome.trace_id);
    assert_eq!(
        (&record["event"], &record["session"], &record["subject"]),
        (&json!("before_tool"), &json!("s1"), &json!("shell"))
    );
    assert_eq!(record["cwd"], json!(world.engine.environment().cwd));
    assert_eq!(record["plan"], json!([["a", "b"], ["c"], ["d"]]));
    let skips: Vec<_> =
        record["skipped"].as_array().unwrap().iter().map(|skip| (&skip["id"], &skip["reason"])).collect();
    assert_eq!(skips, [(&json!("e"), &json!("disabled")), (&json!("d"), &json!("after_block"))]);
    let hooks = record["hooks"].as_array().unwrap();
    let part = |hook: &Value| {
        json!([hook["id"], hook["status"], hook["flow"], hook["exit"], hook["signal"], hook["bytesErr"]])
    };
    assert_eq!(part(&hooks[0]), json!(["a", "ok", "no_opinion", 0, null, 3]));
    assert_eq!(part(&hooks[1]), json!(["b", "failed", "no_opinion", null, 9, 0]));
    assert_eq!(part(&hooks[2]), json!(["c", "blocked", "block", 0, null, 0]));
    assert!(hooks[0]["bytesIn"].as_u64().unwrap() > 10 && hooks[0]["bytesOut"] == 18, "{}", hooks[0]);
    assert!(hooks[1]["error"].as_str().unwrap().contains('9'));
    assert!(hooks[2]["startMs"].as_f64() > hooks[0]["startMs"].as_f64());
    assert_eq!(
        record["verdict"],
        json!({"flow": "block", "continue": false, "reason": "not today", "modifiedArgs": false})
    );
    assert!(record["durationMs"].as_f64().unwrap() >= hooks[0]["durationMs"].as_f64().unwrap());
    assert_eq!(record["data"]["args"], json!({"command": "ls", "n": 3}));
}

#[test]
fn a_hook_that_was_late_and_one_that_is_no_process_have_no_exit() {
    let mut world = World::new();
    world.add(builtin("built-in", |_| Verdict::default()));
    world.add(within(Duration::from_millis(50), sh("late", "exec sleep 1000")));
    let record = record(&world, &event());
    assert_eq!((&record["hooks"][0]["exit"], &record["hooks"][0]["bytesIn"]), (&json!(null), &json!(null)));
    assert_eq!((&record["hooks"][1]["exit"], &record["hooks"][1]["status"]), (&json!(null), &json!("timeout")));
}

#[test]
fn d01_secrets_are_hidden_in_every_field() {
    let secret = "hunter2-hunter2";
    let mut world = World::with(&[("API_TOKEN", secret), ("INNOCENT", "passed-on-value"), ("PIN_SECRET", "84629173")]);
    world.add(HookSpec {
        pass_env: vec!["INNOCENT".to_owned()],
        ..sh("says", r#"echo "{\"continue\":false,\"systemMessage\":\"$INNOCENT\"}""#)
    });
    world.add(HookSpec { name: secret.to_owned(), ..sh(secret, "") });
    world.add(HookSpec { env: vec![("MY_PASSWORD".to_owned(), "swordfish-1".to_owned())], ..sh("own", "") });
    world.add(HookSpec { source: Source::Workspace, ..sh("guest-hunter2-hunter2", "") });
    let event = Event::unchecked(
        EventKind::BeforeTool,
        [
            ("session_id", secret.into()),
            ("tool_name", secret.into()),
            ("cwd", format!("/tmp/{secret}").into()),
            (
                "args",
                json!({
                    "hunter2-hunter2": 1, "list": ["passed-on-value", {"deep": "swordfish-1"}], "pin": 84_629_173,
                    "password": "not known to anybody", "db": "https://bob:unheard-of@host/",
                    "passwords": ["not known either"], "auth": {"user": {"word": "not known at all"}}, "url": "https://u:hunter2-hunter2@host/",
                    "base64": "aHVudGVyMi1odW50ZXIy", "key": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
                }),
            ),
        ],
    );
    let (line, _) = line(&world, &event);
    for leak in
        ["hunter2", "passed-on", "swordfish", "84629173", "not known", "unheard-of", "aHVudGVy", "ghp_0123456789abc"]
    {
        assert!(!line.contains(leak), "{leak} in {line}");
    }
    serde_json::from_str::<Value>(&line).unwrap();
}

#[test]
fn d01_secrets_are_hidden_in_what_comes_late() {
    let mut world = World::with(&[("API_TOKEN", "hunter2-hunter2")]);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ears = Arc::clone(&heard);
    world.engine.on_late(move |late| ears.lock().unwrap().push(trace::late(&late.done(), UNIX_EPOCH, "1.0.0")));
    let fails = "echo hunter2-hunter2 >&2; exit 7";
    world.add(HookSpec { detached: Some(true), ..sh("id-hunter2-hunter2", fails) });
    let outcome = world.engine.dispatch(&event());
    eventually("it is told", || !heard.lock().unwrap().is_empty());
    let told = heard.lock().unwrap().pop().unwrap();
    assert!(!told.contains("hunter2"), "{told}");
    let record: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&record["traceId"], &record["time"]), (&json!(outcome.trace_id), &json!("1970-01-01T00:00:00.000Z")));
    let late = &record["late"];
    assert_eq!((&late["status"], &late["exit"], &late["bytesErr"]), (&json!("failed"), &json!(7), &json!(16)));
    let (of_event, _) = line(&world, &event());
    assert!(of_event.contains(late["id"].as_str().unwrap()), "both have the same id: {of_event}");
}

#[test]
fn a_secret_behind_a_long_text_or_across_the_cut_is_hidden_as_well() {
    let secret = "0123456789abcdef".repeat(40);
    let mut world = World::with(&[("API_TOKEN", &secret)]);
    world.add(sh("hook", GO_ON));
    for before in [0, 900, 1000, 1023, 4000, 4090, 100_000] {
        let text = format!("{}{secret} and on", "x".repeat(before)) + &"y".repeat(200_000);
        let event = Event::unchecked(EventKind::BeforeAgent, [("prompt", text.into())]);
        let (line, _) = line(&world, &event);
        assert!(!line.contains("0123456789abcdef"), "{before}: {line}");
        assert!(line.contains("bytes in all]"), "{line}");
    }
}

#[test]
fn a_record_of_very_much_is_still_short_and_whole() {
    let mut world = World::new();
    for number in 0..300 {
        let id = format!("{number}-{}", "\u{1}\"\u{202e}".repeat(200));
        world.add(HookSpec { enabled: number % 3 != 0, ..builtin(&id, |_| Verdict::block("\u{7}".repeat(9000))) });
    }
    let deep = (0..200).fold(json!("x"), |value, _| json!([value]));
    let event = Event::unchecked(
        EventKind::BeforeTool,
        [
            ("tool_name", "\u{1b}".repeat(100_000).into()),
            ("session_id", "é".repeat(100_000).into()),
            ("args", json!({"deep": deep, "long": "\\".repeat(1 << 20), "many": vec![0; 100_000]})),
        ],
    );
    let record = record(&world, &event);
    assert!(record["hooks"].as_array().unwrap().iter().any(|hook| hook["id"].is_string()));
    assert!(record.to_string().contains("nested too deep"));
    assert!(record["data"]["args"]["many"].is_null() || record.to_string().contains(" more]"));
}

#[test]
fn what_hides_or_reorders_is_escaped_in_the_record_itself() {
    let world = World::new();
    let event = Event::unchecked(EventKind::BeforeTool, [("tool_name", "a\u{202e}b\u{9b}31m\u{7f}\u{e0041}".into())]);
    let (line, _) = line(&world, &event);
    assert!(line.contains(r"a\u202eb\u009b31m\u007f\udb40\udc41"), "{line}");
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["subject"], "a\u{202e}b\u{9b}31m\u{7f}\u{e0041}");
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_event_leaves_one_whole_line_of_bounded_json(event in testkit::event(), text in hostile_text()) {
        let mut world = World::with(&[("SOME_SECRET", "abcdef")]);
        world.add(builtin("hook", move |_| Verdict::block(text.clone())));
        let record = record(&world, &event);
        prop_assert_eq!(&record["event"], event.kind.name());
        prop_assert!(record["data"].is_object());
    }
}

#[test]
fn the_data_of_an_event_is_kept_whole_only_where_that_is_wanted_and_never_with_secrets() {
    let mut world = World::new();
    world.add(HookSpec { env: vec![("API_TOKEN".to_owned(), "t0p-s3cret-value".to_owned())], ..sh("a", GO_ON) });
    let long = "x".repeat(20_000);
    let event = event_with(json!({"command": long, "note": "\u{202e}odd\n", "n": 3}));
    let outcome = world.engine.dispatch(&event);
    let kept = |event: &Event| -> Value {
        let line = recorder(&world, Payload::Whole).record(event, &outcome);
        assert!(line.len() <= trace::LONGEST + trace::PAYLOAD && !line.contains('\n'));
        serde_json::from_str(&line).unwrap()
    };
    let whole = kept(&event);
    assert_eq!((&whole["payload"], &whole["payloadRedacted"]), (&Value::Object(event.data.clone()), &Value::Null));
    let (short, _) = line(&world, &event);
    assert!(!short.contains("\"payload"), "{short}");
    let secret = kept(&event_with(json!({"command": "curl -H t0p-s3cret-value", "password": "x"})));
    assert_eq!(secret["payload"]["args"], json!({"command": "curl -H [redacted:API_TOKEN]", "password": "[redacted]"}));
    assert_eq!(secret["payloadRedacted"], true);
    let huge = kept(&event_with(json!({"command": "x".repeat(trace::PAYLOAD)})));
    assert!(huge.get("payload").is_none() && huge["payloadMissing"].is_string(), "{huge}");
}

fn event_with(args: Value) -> Event {
    Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into()), ("args", args)])
}
