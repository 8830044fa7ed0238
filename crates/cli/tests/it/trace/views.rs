//! `ollm trace`: a session as a waterfall, counts, other programs' forms, and what happens now.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::shown::{furnished, screen};
use super::{GO_ON, REFUSE};
use crate::lab::{Lab, Ran, shell_event};

fn event(lab: &Lab, name: &str, session: &str) {
    lab.event(json!({"event": name, "data": {"session_id": session, "tool_name": "shell"}}).to_string());
}

/// Two sessions that were at work at the same time.
fn two_sessions() -> Lab {
    let lab = Lab::with_hook("before_tool", "guard", REFUSE);
    for (name, session) in [
        ("session_start", "one"),
        ("session_start", "two"),
        ("before_model", "one"),
        ("before_model", "two"),
        ("before_model", "one"),
        ("before_tool", "one"),
    ] {
        event(&lab, name, session);
    }
    lab.user("guard.sh", GO_ON);
    event(&lab, "before_tool", "one");
    event(&lab, "session_end", "one");
    lab
}

#[test]
fn the_last_session_is_a_waterfall_in_which_events_without_hooks_are_folded() {
    let lab = two_sessions();
    insta::assert_snapshot!(screen(&lab, &lab.run(&["trace"])));
}

#[test]
fn another_session_is_found_by_its_id_and_one_that_is_not_there_is_refused() {
    let lab = two_sessions();
    let other = lab.run(&["trace", "--session", "two", "--json"]).answer();
    let events: Vec<&str> = other.as_array().unwrap().iter().map(|record| record["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["session_start", "before_model"]);
    let none = lab.run(&["trace", "--session", "three"]);
    assert!(none.code == 64 && none.stderr.contains("the trace has no session `three`"), "{none:?}");
    let empty = Lab::new().run(&["trace"]);
    assert!(empty.code == 1 && empty.stderr.contains("there is no trace yet"), "{empty:?}");
}

#[test]
fn the_last_refusal_is_found_behind_what_came_after_it() {
    let lab = two_sessions();
    let last = lab.run(&["trace", "last", "--blocked", "--json"]).answer();
    assert_eq!((&last["event"], &last["verdict"]["flow"]), (&json!("before_tool"), &json!("block")));
    let none = Lab::new();
    event(&none, "session_start", "one");
    let none = none.run(&["trace", "last", "--blocked"]);
    assert!(none.code == 1 && none.stderr.contains("no event of the trace was refused"), "{none:?}");
}

#[test]
fn a_list_is_narrowed_down_by_session_and_by_how_a_hook_ended() {
    let lab = furnished();
    let count = |arguments: &[&str]| {
        lab.run(&[&["trace", "list", "--json"], arguments].concat()).answer().as_array().unwrap().len()
    };
    assert_eq!(count(&["--session", "s1"]), 1);
    assert_eq!(["blocked", "failed", "skipped", "timeout"].map(|status| count(&["--status", status])), [1, 1, 2, 0]);
}

#[test]
fn options_that_no_event_fits_are_told_and_not_passed_over_in_silence() {
    let lab = two_sessions();
    for command in
        [&["trace", "list"] as &[&str], &["trace", "stats"], &["trace", "export", "--format", "csv"], &["replay"]]
    {
        let ran = lab.run(&[command, &["--hook", "no-such-hook"]].concat());
        assert_eq!((ran.code, ran.stderr.matches("none that fits").count()), (0, 1), "{command:?}: {ran:?}");
        let all = lab.run(command);
        assert!(!all.stderr.contains("none that fits"), "{all:?}");
    }
    let ran = lab.run(&["trace", "list", "--json", "--until", "2020-01-01"]);
    assert_eq!((ran.answer(), ran.code), (serde_json::json!([]), 0));
}

#[test]
fn counts_name_failures_times_and_hooks_that_never_ran() {
    let lab = furnished();
    let stats = lab.run(&["trace", "stats", "--json"]).answer();
    assert_eq!((&stats["events"], &stats["refused"]), (&json!(3), &json!(1)));
    assert_eq!(stats["byEvent"]["before_tool"], json!({"count": 2, "refused": 1}));
    assert_eq!(stats["neverFired"], json!(["user:off.json:before_tool:off"]));
    let hooks = stats["hooks"].as_array().unwrap();
    let log = hooks.iter().find(|hook| hook["id"] == "user:log.json:before_tool:log").unwrap();
    assert_eq!((&log["runs"], &log["failureRate"]), (&json!(1), &json!(1.0)));
    assert_eq!(log["p50Ms"], log["maxMs"]);
    let shown = lab.run(&["trace", "stats", "--event", "session_start"]);
    assert!(shown.stdout.starts_with("1 event from ") && shown.stdout.contains("never ran"), "{}", shown.stdout);
}

#[test]
fn records_leave_in_the_forms_of_other_programs() {
    let lab = furnished();
    let exported = |format: &str| lab.run(&["trace", "export", "--format", format]).stdout;
    let records: Value = serde_json::from_str(&exported("json")).unwrap();
    assert_eq!(records, Value::from(lab.traces()));
    let table = exported("csv");
    assert!(table.starts_with("time,traceId,session,event,subject,") && table.contains(",user:guard.json:"), "{table}");
    let chrome: Value = serde_json::from_str(&exported("chrome")).unwrap();
    let slices = chrome["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    assert!(slices.clone().all(|slice| slice["ts"].is_number() && slice["dur"].is_number()));
    assert_eq!(slices.filter(|slice| slice["cat"] == "event").count(), 3);
    let page = exported("html");
    assert!(page.starts_with("<!doctype html>") && page.contains("Session s1"), "{page}");
    assert!(!page.contains("http://") && !page.contains("https://"), "it needs nothing from elsewhere");
}

#[test]
fn what_happens_now_is_shown_until_somebody_interrupts() {
    let lab = furnished();
    let mut following = lab.ollm(&["trace", "follow", "--json", "--blocked"]);
    let mut following = following.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    lab.user("guard.sh", REFUSE);
    // It hears only what comes after it listens, and it does not tell when that begins. A reader that stops ends it,
    // too.
    let heard = std::thread::spawn(move || (lines.next().unwrap().unwrap(), lines));
    while !heard.is_finished() {
        lab.event(shell_event("ls"));
    }
    let (line, _reader) = heard.join().unwrap();
    let record: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(record["verdict"]["flow"], "block");
    assert!(Command::new("kill").args(["-INT", &following.id().to_string()]).status().unwrap().success());
    assert_eq!(following.wait().unwrap().code(), Some(130));
}

#[test]
fn what_is_followed_is_shown_like_what_is_listed() {
    let lab = furnished();
    lab.user("guard.sh", REFUSE);
    let mut following = lab.ollm(&["trace", "follow", "--blocked"]);
    let mut following = following.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    // A reader that stops ends it, too.
    let heard = std::thread::spawn(move || (lines.next().unwrap().unwrap(), lines));
    while !heard.is_finished() {
        lab.event(shell_event("ls"));
    }
    let (line, _reader) = heard.join().unwrap();
    let stdout = format!("{line}\n");
    assert!(Command::new("kill").args(["-INT", &following.id().to_string()]).status().unwrap().success());
    let code = following.wait().unwrap().code().unwrap();
    let ran = Ran { stdout, stderr: String::new(), code };
    insta::assert_snapshot!(format!("$ ollm trace follow --blocked\n{}", screen(&lab, &ran)));
}

#[test]
fn following_ends_when_nobody_reads_any_more() {
    let lab = furnished();
    let mut following = lab.ollm(&["trace", "follow"]);
    let mut following = following.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(following.stdout.take());
    assert_eq!(following.wait().unwrap().code(), Some(0));
}

#[test]
fn a_followed_trace_that_cannot_be_read_any_more_says_so_in_its_last_line() {
    let lab = furnished();
    let mut following = lab.ollm(&["trace", "follow", "--json"]);
    let mut following = following.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let (sender, heard) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let lines = lines.map(Result::unwrap).inspect(|_| sender.send(()).unwrap_or_default());
        lines.last().unwrap()
    });
    // It hears only what comes after it listens, and it does not tell when that begins.
    while heard.try_recv().is_err() {
        lab.event(shell_event("ls"));
    }
    let file = lab.home.join(".ollm/trace/trace.jsonl");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let last: Value = serde_json::from_str(&reader.join().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["exit"], &last["error"]["code"]), (&json!("error"), &json!(5), &json!("E010")));
    assert_eq!(following.wait().unwrap().code(), Some(5));
}
