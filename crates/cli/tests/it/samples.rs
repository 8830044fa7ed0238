//! The samples that hooks are tried on are events that the program sends: recorded here again, and compared.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use ollm_protocol::{Event, EventKind};
use regex_lite::Regex;
use serde_json::{Value, json};

use crate::agent::{call, talk};
use crate::lab::{Lab, finish};

const TIME: &str = "2026-01-02T03:04:05.000Z";
/// Where the samples happened.
const FOLDER: &str = "/home/sample/project";
const PROMPT: &str = "Tidy up the build folder";
/// The keys under which durations stand, all in seconds.
const DURATIONS: [&str; 2] = ["duration", "execution_time"];

/// A lab in which every event that our host sends is written down as it comes.
fn lab() -> Lab {
    let lab = Lab::new().set("USER", "sample-user");
    lab.write("home/.ollm/config.yaml", "model:\n  temperature: 0.2\n  contextWindow: 1000\n");
    for kind in EventKind::all() {
        let name = kind.name();
        let script = format!("cat >> \"$HOME/{name}.seen\"; echo '{{\"continue\": true}}'");
        lab.user_hook(name, &format!("record-{}", name.replace('_', "-")), &script, "");
    }
    // One that fails with more than a line to say, so that there is an error with a stack.
    let broken = "echo 'Traceback (most recent call last):' >&2; echo 'ValueError: no' >&2; exit 1";
    lab.user_hook("session_start", "broken", broken, r#", "priority": "low""#);
    lab.write("project/build/main.o", "x".repeat(40_000));
    lab
}

/// The data of all events that came, by name.
fn seen(lab: &Lab) -> BTreeMap<&'static str, Vec<Value>> {
    let read = |kind: EventKind| {
        let text = fs::read_to_string(lab.home.join(format!("{}.seen", kind.name()))).unwrap_or_default();
        let data = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["data"].clone());
        (kind.name(), data.collect())
    };
    EventKind::all().map(read).collect()
}

/// Has the program send every event it has, and says how many seconds that took at most.
fn sent() -> (Lab, BTreeMap<&'static str, Vec<Value>>, f64) {
    let began = Instant::now();
    let lab = lab();
    talk(
        &lab,
        &[
            call("shell", json!({"command": "ls build"})),
            call("write_file", json!({"path": "src/main.rs", "content": "one\n"})),
            call("edit_file", json!({"path": "src/main.rs", "old": "one", "new": "two"})),
            call("delete_file", json!({"path": "src/main.rs"})),
            call("task", json!({"prompt": "Count the files in build"})),
            json!({"content": "There is one."}),
            call("read_file", json!({"path": "build/main.o"})),
            json!({"content": "The user wants the folder tidied; the files of the build were counted."}),
            json!({"content": "Done.", "usage": {"total_tokens": 340}}),
        ],
    );
    let task = ["run", PROMPT, "--model", "replay:../talk.jsonl", "--approval", "yolo"];
    let ran = finish(lab.ollm(&task), b"Only what make can build again.");
    assert_eq!(ran.code, 0, "{ran:?}");
    // Where a person would be asked.
    talk(&lab, &[call("shell", json!({"command": "rm -r build"})), json!({"content": "Done."})]);
    finish(lab.ollm(&["run", PROMPT, "--model", "replay:../talk.jsonl"]), b"");
    let input = b"/trigger tidy {\"folder\": \"build\"}\n/emit deploy {\"target\": \"staging\"}\n";
    finish(lab.ollm(&["chat", "--model", "replay:../talk.jsonl"]), input);
    commit(&lab);
    let seen = seen(&lab);
    (lab, seen, began.elapsed().as_secs_f64())
}

fn commit(lab: &Lab) {
    fs::remove_dir(lab.project.join(".git")).unwrap();
    let git = |args: &[&str]| {
        let mut command = lab.program("git");
        command.args(args);
        assert_eq!(finish(command, b"").code, 0, "{args:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.name", "a"]);
    git(&["config", "user.email", "a@b.c"]);
    assert_eq!(lab.run(&["git-hook", "install"]).code, 0);
    lab.write("project/src/lib.rs", "");
    git(&["add", "src"]);
    git(&["commit", "-q", "-m", "Tidy up"]);
}

/// Which of the events of a kind is the sample: the first that has something to tell.
fn chosen(kind: EventKind, events: &[Value]) -> Option<&Value> {
    let telling = |data: &&Value| match kind {
        EventKind::Error => !data["error"]["stack"].is_null(),
        EventKind::AfterAgent => data["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty()),
        EventKind::AfterModel => data["tokens"].is_number(),
        EventKind::BeforeAgent => !data["context"].is_null(),
        _ => true,
    };
    events.iter().find(telling)
}

/// The same without what differs from run to run; long texts and lists are cut.
fn neutral(value: &Value, key: &str, lab: &Lab) -> Value {
    let time = Regex::new(r"^\d{4}-\d\d-\d\dT[0-9:.]+Z$").unwrap();
    match value {
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), neutral(value, name, lab))).collect(),
        Value::Array(list) => list.iter().take(12).map(|value| neutral(value, key, lab)).collect(),
        Value::String(_) if key == "agent_id" => "agent-1".into(),
        Value::Number(_) if DURATIONS.contains(&key) => json!(0.25),
        Value::String(text) if time.is_match(text) => TIME.into(),
        Value::String(_) if ["session_id", "sessionId", "id"].contains(&key) && !key.is_empty() => {
            let text = value.as_str().unwrap();
            if text.len() > 10 { "sample-session".into() } else { value.clone() }
        }
        Value::String(text) => {
            let model = format!("replay:{}/../talk.jsonl", lab.project.display());
            let text = text.replace(&model, "sample-model").replace(&lab.project.display().to_string(), FOLDER);
            let text = text.replace(&lab.root.display().to_string(), "/home/sample");
            text.chars().take(400).collect::<String>().into()
        }
        other => other.clone(),
    }
}

fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "flag",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// Keys and types of both are the same; what a conversation holds differs.
fn compare(sample: &Value, sent: &Value, path: &str) {
    assert_eq!(shape(sample), shape(sent), "{path}");
    if let (Value::Object(one), Value::Object(other)) = (sample, sent) {
        let names =
            |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(names(one), names(other), "{path}");
        for (name, value) in one.iter().filter(|(name, _)| !["history", "messages"].contains(&name.as_str())) {
            compare(value, &other[name], &format!("{path}.{name}"));
        }
    }
}

/// Every duration in seconds cannot be longer than the whole test.
fn durations(value: &Value, most: f64, path: &str) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if let Some(seconds) = value.as_f64().filter(|_| DURATIONS.contains(&name.as_str())) {
                    assert!(seconds <= most, "{path}.{name} is {seconds}, not in seconds");
                }
                durations(value, most, &format!("{path}.{name}"));
            }
        }
        Value::Array(list) => list.iter().for_each(|value| durations(value, most, path)),
        _ => {}
    }
}

#[test]
fn every_sample_has_the_keys_types_and_units_of_what_the_program_sends() {
    let (lab, seen, seconds) = sent();
    let mut recorded = serde_json::Map::new();
    for kind in EventKind::all() {
        let sent = chosen(kind, &seen[kind.name()]).unwrap_or_else(|| panic!("{} never came", kind.name()));
        durations(sent, seconds, kind.name());
        let mut sample = neutral(sent, "", &lab);
        // The dialect writes the session's id in two spellings.
        sample.as_object_mut().unwrap().shift_remove("sessionId");
        recorded.insert(kind.name().to_owned(), sample);
    }
    if std::env::var_os("UPDATE_SAMPLES").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../protocol/src/event/samples.json");
        fs::write(file, format!("{:#}\n", Value::Object(recorded.clone()))).unwrap();
        return;
    }
    for (name, sent) in &recorded {
        let sample = Value::Object(Event::sample(EventKind::from_name(name).unwrap()).data);
        compare(&sample, sent, name);
        durations(&sample, 1.0, name);
    }
}
