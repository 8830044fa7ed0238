//! Tools in the loop: what hooks hear of files, and what the person sees.

use ollm_agent::TurnEnd;
use ollm_protocol::EventKind;
use serde_json::json;

use crate::support::{World, calls, text};

#[test]
fn hooks_hear_of_every_file_the_agent_changes() {
    let answers = [
        calls(&[
            ("write_file", json!({"path": "a", "content": "one\n"})),
            ("edit_file", json!({"path": "a", "old": "one", "new": "two"})),
            ("delete_file", json!({"path": "a"})),
        ]),
        text("done"),
    ];
    let mut world = World::new(&answers);
    assert_eq!(world.start().say("go", None)[0].end, TurnEnd::Done);
    let path = world.path("a").canonicalize().unwrap_or(world.settings.cwd.canonicalize().unwrap().join("a"));
    let path = path.display().to_string();
    let created = &world.data(EventKind::FileCreated)[0];
    assert_eq!((&created["path"], &created["changes"]["type"]), (&json!(path), &json!("created")));
    assert_eq!((&created["changes"]["size"], &created["file"]["content"]), (&json!(4), &json!("one\n")));
    let edited = &world.data(EventKind::FileEdited)[0];
    assert!(edited["diff"].as_str().unwrap().contains("-one\n+two\n"));
    assert_eq!(edited["file"]["changes"], edited["diff"]);
    let deleted = &world.data(EventKind::FileDeleted)[0];
    assert_eq!((&deleted["changes"]["type"], &deleted["file"]["path"]), (&json!("deleted"), &json!("a")));
    assert_eq!((&deleted["path"], &deleted["file"]["absolutePath"]), (&json!(path), &json!(path)));
}

#[test]
fn hooks_find_the_file_under_both_its_names() {
    let answers = [
        calls(&[
            ("write_file", json!({"path": "a", "content": ""})),
            ("read_file", json!({"file_path": "a"})),
            ("todo", json!({"items": []})),
        ]),
        text("done"),
    ];
    let mut world = World::new(&answers);
    world.start().say("go", None);
    for kind in [EventKind::BeforeTool, EventKind::AfterTool] {
        let data = world.data(kind);
        for call in &data[..2] {
            assert_eq!((&call["args"]["path"], &call["args"]["file_path"]), (&json!("a"), &json!("a")));
        }
        assert_eq!(data[2]["args"], json!({"items": []}), "a tool without a file is left alone");
    }
}

#[test]
fn the_person_sees_diffs_and_results() {
    let answers = [
        calls(&[("write_file", json!({"path": "a", "content": "x\n"})), ("shell", json!({"command": "exit 3"}))]),
        text("done"),
    ];
    let mut world = World::new(&answers);
    world.start().say("go", None);
    let shown = world.shown("called");
    assert!(shown[0].starts_with("called write_file ok created a, 2 bytes diff ") && shown[0].contains("+x"));
    assert_eq!(shown[1], "called shell failed [exit code 3]");
    assert_eq!(world.shown("calling")[1], "calling shell {\"command\":\"exit 3\"}");
}
