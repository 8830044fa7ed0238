//! What a template can name.

use ollm_protocol::{Event, EventKind, scope};
use proptest::prelude::*;
use serde_json::json;
use testkit::event;

use crate::cases;

#[test]
fn a_tool_event_has_its_short_names() {
    let event = Event::unchecked(
        EventKind::AfterTool,
        [
            ("tool_name", json!("write_file")),
            ("args", json!({"path": "a.rs"})),
            ("result", json!("ok")),
            ("error", json!("no")),
            ("timestamp", json!("2024-01-01T12:00:00Z")),
            ("user_input", json!("please")),
            ("execution_time", json!(0.5)),
            ("session", json!({"id": "abc123"})),
        ],
    );
    let expected = json!({
        "tool_name": "write_file", "tool_args": {"path": "a.rs"}, "result": "ok", "error": "no",
        "timestamp": "2024-01-01T12:00:00Z", "user_input": "please", "execution_time": 0.5, "session_id": "abc123",
        "session": {"id": "abc123"}, "event": "after_tool", "data": event.data,
    });
    assert_eq!(scope(&event), expected);
}

#[test]
fn the_session_has_its_id_wherever_the_host_put_it() {
    for (data, session) in [
        (json!({"session_id": "s"}), json!({"id": "s"})),
        (json!({"session_id": "s", "session": {"user": "ada"}}), json!({"user": "ada", "id": "s"})),
        (json!({"session_id": "s", "session": {"id": "t"}}), json!({"id": "t"})),
        (json!({"session_id": "s", "session": "odd"}), json!("odd")),
        (json!({}), json!(null)),
    ] {
        assert_eq!(scope(&Event::from_loose(EventKind::BeforeTool, data))["session"], session);
    }
}

#[test]
fn a_file_event_has_its_file() {
    let event = Event::unchecked(EventKind::FileEdited, [("path", json!("src/a.rs")), ("diff", json!("+x"))]);
    assert_eq!(scope(&event)["file"], json!({"path": "src/a.rs", "changes": "+x"}));
    let event =
        Event::unchecked(EventKind::FileEdited, [("path", json!("a")), ("file", json!({"path": "b", "content": "c"}))]);
    assert_eq!(scope(&event)["file"], json!({"path": "b", "content": "c"}));
    assert_eq!(scope(&Event::unchecked(EventKind::BeforeTool, [("path", json!("a"))])).get("file"), None);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_event_names_itself_and_its_data(event in event()) {
        let scope = scope(&event);
        prop_assert_eq!(&scope["event"], event.kind.name());
        prop_assert_eq!(&scope["data"], &json!(event.data));
    }
}
