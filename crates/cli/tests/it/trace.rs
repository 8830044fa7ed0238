//! What events leave behind: one whole record each, private to its user, and no obstacle to any verdict.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::lab::{Lab, Ran, shell_event};

mod clock;
mod disk;
mod late;
mod log;
mod many;
mod secrets;
mod shown;
mod views;

pub(crate) const GO_ON: &str = "printf '{\"continue\": true}'";
pub(crate) const REFUSE: &str = "printf '{\"continue\": false, \"systemMessage\": \"not today\"}'";

impl Lab {
    pub(crate) fn trace_file(&self) -> PathBuf {
        self.home.join(".ollm/trace/trace.jsonl")
    }

    /// The lines of the present trace file, each of them whole.
    pub(crate) fn traces(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.trace_file()).unwrap_or_default();
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        // A process that looks at the end of the file during another's write may put an empty line first.
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }
}

pub(crate) fn id(ran: &Ran) -> String {
    ran.answer()["traceId"].as_str().unwrap().to_owned()
}

#[test]
fn every_event_leaves_one_record_with_the_id_of_its_answer() {
    let lab = Lab::with_hook("before_tool", "guard", REFUSE);
    let first = lab.event(shell_event("ls"));
    let second = lab.run(&["hook", "run", "session_start"]);
    let ids: Vec<String> = lab.traces().iter().map(|record| record["traceId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, [id(&first), id(&second)]);
    let record = &lab.traces()[0];
    assert_eq!((&record["event"], &record["subject"]), (&Value::from("before_tool"), &Value::from("shell")));
    assert_eq!(record["cwd"], lab.project.display().to_string());
    assert_eq!(record["binary"], env!("CARGO_PKG_VERSION"));
    let hook = record["hooks"].as_array().unwrap().iter().find(|hook| hook["name"] == "guard").unwrap();
    assert_eq!((&hook["status"], &hook["exit"], &hook["flow"]), (&"blocked".into(), &0.into(), &"block".into()));
    assert_eq!(record["verdict"]["reason"], "not today");
}

#[test]
fn an_event_of_another_agent_leaves_a_record_and_nothing_on_its_streams() {
    let lab = Lab::with_hook("before_tool", "guard", GO_ON);
    let event = r#"{"hook_event_name": "PreToolUse", "tool_name": "shell", "session_id": "s9", "tool_input": {}}"#;
    let with = lab.event_from("agent", event);
    assert_eq!(lab.traces()[0]["session"], "s9");
    let lab = lab.set("OLLM_TRACE_ENABLED", "off");
    assert_eq!(with, lab.event_from("agent", event));
}

#[test]
fn folder_and_file_are_the_owners_alone() {
    let lab = Lab::new();
    lab.run(&["hook", "run", "session_start"]);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(lab.home.join(".ollm/trace")), mode(lab.trace_file())), (0o700, 0o600));
}

#[test]
fn no_record_is_left_where_traces_are_switched_off() {
    for off in ["off", "OFF", "0", "false", "no"] {
        let lab = Lab::new().set("OLLM_TRACE_ENABLED", off);
        let ran = lab.run(&["hook", "run", "session_start"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert!(!lab.home.join(".ollm/trace").exists(), "{off}");
        let last = lab.run(&["trace", "last"]);
        assert_eq!(
            (last.code, last.stderr.as_str()),
            (1, "ollm: there is no trace: trace.enabled or OLLM_TRACE_ENABLED switches it off\n")
        );
    }
}

#[test]
fn the_older_names_of_the_variables_still_count() {
    let lab = Lab::new().set("OLLM_TRACE", "off").set("OLLM_LOG", "off");
    lab.user("broken.json", "{");
    assert!(!lab.run(&["hook", "run", "session_start"]).stderr.is_empty());
    assert!(!lab.home.join(".ollm/trace").exists() && !lab.home.join(".ollm/log").exists());
    assert_eq!(lab.run(&["config", "get", "trace.enabled"]).stdout, "false\n");
}

#[test]
fn planning_and_looking_leave_no_record() {
    let lab = Lab::with_hook("before_tool", "guard", GO_ON);
    for arguments in [&["hook", "plan", "before_tool"][..], &["hook", "list"], &["trace", "list"], &["--version"]] {
        lab.run(arguments);
    }
    assert!(!lab.home.join(".ollm/trace").exists());
}

#[test]
fn traces_differ_in_their_ids() {
    let lab = Lab::new();
    (0..20).for_each(|_| drop(lab.run(&["hook", "run", "session_start"])));
    let ids: BTreeSet<String> = lab.traces().iter().map(|record| record["traceId"].to_string()).collect();
    assert_eq!(ids.len(), 20);
}
