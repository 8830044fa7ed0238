//! The results of background hooks, beside the record of their event.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use serde_json::{Value, json};

use super::id;
use crate::lab::{Lab, eventually, shell_event};

const ASYNC: &str = r#", "async": true"#;

/// The lines about background hooks.
fn late(lab: &Lab) -> Vec<Value> {
    lab.traces().into_iter().filter(|line| line.get("late").is_some()).collect()
}

/// What `trace show` knows of a hook.
fn shown(lab: &Lab, trace: &str, name: &str) -> Value {
    let record = lab.run(&["trace", "show", trace, "--json"]).answer();
    record["hooks"].as_array().unwrap().iter().find(|hook| hook["name"] == name).unwrap().clone()
}

#[test]
fn what_came_of_an_async_hook_is_joined_to_the_record_of_its_event() {
    let lab = Lab::with_hook("before_tool", "waits", "printf '{\"continue\": true}'");
    lab.user_hook("before_tool", "bad", "while [ ! -e ../go ]; do sleep 0.01; done; echo no >&2; exit 3", ASYNC);
    let ran = lab.event(shell_event("ls"));
    let trace = id(&ran);
    let before = shown(&lab, &trace, "bad");
    assert_eq!((&before["status"], &before["async"], before.get("late")), (&json!("ok"), &json!(true), None));
    let pretty = |lab: &Lab| lab.run(&["trace", "show", &trace]).stdout;
    assert!(pretty(&lab).contains("async: it ran in the background and has left no record yet"), "{}", pretty(&lab));

    lab.write("go", "");
    eventually("it has left its record", || !late(&lab).is_empty());
    let line = &late(&lab)[0];
    assert_eq!((&line["traceId"], &line["version"], &line["event"]), (&json!(trace), &json!(1), &json!("before_tool")));
    let after = shown(&lab, &trace, "bad");
    let end = &after["late"];
    assert_eq!((&end["status"], &end["exit"], &end["bytesErr"]), (&json!("failed"), &json!(3), &json!(3)));
    assert!(end["error"].as_str().unwrap().contains("status 3"), "{end}");
    assert!(pretty(&lab).contains("async: failed, exit 3, for "), "{}", pretty(&lab));
    assert_eq!(shown(&lab, &trace, "waits")["async"], false);
    let last = lab.run(&["trace", "last", "--json"]).answer();
    assert_eq!((&last["traceId"], last["hooks"].as_array().unwrap().len()), (&json!(trace), 4));
    let all = lab.run(&["trace", "list", "--json"]).answer();
    assert_eq!(all.as_array().unwrap().len(), 1, "what came later is no event of its own: {all:#}");
    lab.assert_nobody_is_left();
}

#[test]
fn it_is_found_wherever_its_line_stands() {
    let lab = Lab::with_hook("before_tool", "quick", "exit 0");
    lab.user("quick.json", crate::lab::hook_file("before_tool", "quick", ASYNC));
    let trace = id(&lab.event(shell_event("ls")));
    eventually("it has left its record", || !late(&lab).is_empty());
    // A quick hook may be done before its event has left its record.
    let (event, result): (Vec<Value>, Vec<Value>) =
        lab.traces().into_iter().partition(|line| line.get("late").is_none());
    let others = (0..5).map(|n| json!({"version": 1, "traceId": format!("other-{n}"), "event": "error"}));
    let order: Vec<Value> = result.into_iter().chain(others).chain(event).collect();
    let lines: Vec<String> = order.iter().map(Value::to_string).collect();
    fs::write(lab.trace_file(), lines.join("\n") + "\n").unwrap();
    for arguments in [&["trace", "last", "--json"][..], &["trace", "show", &trace, "--json"]] {
        let record = lab.run(arguments).answer();
        let hook = record["hooks"].as_array().unwrap().iter().find(|hook| hook["name"] == "quick").unwrap().clone();
        assert_eq!(hook["late"]["exit"], 0, "{arguments:?}: {record:#}");
    }
    assert_eq!(lab.run(&["trace", "list", "--json"]).answer().as_array().unwrap().len(), 6);
}

#[test]
fn a_line_that_belongs_to_no_record_is_none() {
    let lab = Lab::new();
    let trace = id(&lab.run(&["hook", "run", "session_start"]));
    let mut file = OpenOptions::new().append(true).open(lab.trace_file()).unwrap();
    for (id, late) in [("gone", json!({"id": "x"})), (&trace, json!({"id": "x"})), (&trace, json!({}))] {
        writeln!(file, "{}", json!({"version": 1, "traceId": id, "late": late})).unwrap();
    }
    let ran = lab.run(&["trace", "list", "--json"]);
    assert_eq!((ran.answer().as_array().unwrap().len(), ran.stderr.as_str()), (1, ""));
}

#[test]
fn it_has_a_deadline_and_no_secrets_and_is_bounded() {
    let lab = Lab::new().set("MY_TOKEN", "hunter2-hunter2");
    let script = "echo \"$MY_TOKEN\" >&2; head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1";
    lab.user_hook("before_tool", "leaks", script, r#", "async": true, "passEnv": ["MY_TOKEN"]"#);
    lab.user_hook("before_tool", "slow", "sleep 1000", r#", "async": true, "timeout": 50"#);
    let trace = id(&lab.event(shell_event("ls")));
    eventually("both have left their records", || late(&lab).len() == 2);
    let text = fs::read_to_string(lab.trace_file()).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    assert!(late(&lab).iter().all(|line| line.to_string().len() < 4096));
    assert_eq!(shown(&lab, &trace, "slow")["late"]["status"], "timeout");
    assert_eq!(shown(&lab, &trace, "leaks")["late"]["status"], "failed");
    lab.assert_nobody_is_left();
}

#[test]
fn where_traces_are_off_it_leaves_none_either() {
    let lab = Lab::new().set("OLLM_TRACE_ENABLED", "false");
    lab.user_hook("before_tool", "quick", "touch ../ran", ASYNC);
    lab.event(shell_event("ls"));
    eventually("it has run", || lab.root.join("ran").exists());
    lab.assert_nobody_is_left();
    assert!(!lab.home.join(".ollm/trace").exists());
}
