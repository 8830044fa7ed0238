//! Many processes at once.

use std::collections::BTreeSet;
use std::fs;
use std::thread;

use serde_json::{Value, json};

use super::{GO_ON, id};
use crate::lab::{Lab, shell_event};

/// So many processes, all at the same time; the ids of what they left.
fn at_once(lab: &Lab, count: usize) -> BTreeSet<String> {
    thread::scope(|scope| {
        let runs: Vec<_> = (0..count)
            .map(|number| {
                // Records of very different lengths.
                let event = shell_event(&"x".repeat(number * 97 % 3000));
                scope.spawn(move || id(&lab.event(event)))
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    })
}

fn ids(records: &[Value]) -> BTreeSet<String> {
    records.iter().map(|record| record["traceId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn b14_the_records_of_64_processes_at_once_are_all_there_and_whole() {
    let lab = Lab::with_hook("before_tool", "guard", GO_ON);
    let left = at_once(&lab, 64);
    assert_eq!(left.len(), 64);
    let records = lab.traces();
    assert_eq!((records.len(), ids(&records)), (64, left));
}

#[test]
fn b14_rotation_among_many_processes_loses_and_tears_nothing() {
    let lab = Lab::new();
    let filler = json!({"version": 1, "traceId": "old", "fill": "x".repeat(1000)}).to_string() + "\n";
    let almost = (4 << 20) / filler.len();
    lab.write("home/.ollm/trace/trace.jsonl", filler.repeat(almost));
    let left = at_once(&lab, 32);
    let read = |name: &str| fs::read_to_string(lab.home.join(".ollm/trace").join(name)).unwrap();
    let text = read("trace.jsonl.1") + &read("trace.jsonl");
    // A process that looks at the end of the file during another's write may put an empty line first.
    let lines = text.lines().filter(|line| !line.is_empty());
    let mut records: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    records.retain(|record| record["traceId"] != "old");
    assert_eq!((records.len(), ids(&records)), (32, left));
    assert!(read("trace.jsonl").len() < 1 << 20);
    assert!(!lab.home.join(".ollm/trace/trace.jsonl.2").exists(), "one rotation is enough");
}
