//! One plausible event of each kind, with every field of the table: to try hooks on, and to show what they get.

use serde_json::{Map, Value, json};

use super::{Event, EventKind};

impl Event {
    /// An event of this kind as an agent might send it, with every field that belongs to it.
    ///
    /// ```
    /// use ollm_protocol::{Event, EventKind};
    /// assert_eq!(Event::sample(EventKind::BeforeTool).subject(), Some("shell"));
    /// ```
    pub fn sample(kind: EventKind) -> Event {
        let mut data = object(json!({
            "session_id": "sample-session",
            "timestamp": "2026-01-02T03:04:05.000Z",
            "session": {"id": "sample-session", "user": "sample-user", "startTime": "2026-01-02T03:00:00.000Z", "config": {}},
            "agent": {"mode": "interactive", "context": {}, "history": []},
            "user": {"preferences": {}, "settings": {}},
            "user_input": "Tidy up the build folder",
        }));
        data.extend(object(own(kind)));
        Event { kind, data }
    }
}

/// The fields that only this kind has.
fn own(kind: EventKind) -> Value {
    match kind {
        EventKind::SessionStart => json!({}),
        EventKind::SessionEnd => json!({
            "messages": [{"role": "user", "content": "Tidy up the build folder"}],
            "session": {
                "id": "sample-session", "endTime": "2026-01-02T03:04:05.000Z", "duration": 245_000, "messageCount": 2,
            },
        }),
        EventKind::BeforeAgent => json!({
            "prompt": "Tidy up the build folder", "context": {}, "config": {"model": "sample-model", "temperature": 0.2},
        }),
        EventKind::AfterAgent => json!({
            "response": "Done.", "tool_calls": [{"name": "shell", "args": {"command": "ls build"}}],
            "prompt": "Tidy up the build folder", "metrics": {"duration": 1200, "tokens": 340},
            "conversation_length": 4, "attempt": 0,
        }),
        EventKind::BeforeModel => json!({
            "messages": [{"role": "user", "content": "Tidy up the build folder"}], "model": "sample-model",
            "prompt": "Tidy up the build folder",
        }),
        EventKind::AfterModel => json!({"response": "I will list the folder first.", "tokens": 120}),
        EventKind::BeforeToolSelection => json!({"available_tools": ["read_file", "write_file", "shell"]}),
        EventKind::BeforeTool => json!({
            "tool_name": "shell", "args": {"command": "ls build"}, "call_id": "call-1",
        }),
        EventKind::AfterTool => json!({
            "tool_name": "shell", "args": {"command": "ls build"}, "call_id": "call-1", "result": "main.o\n",
            "metrics": {"duration": 12, "success": true}, "execution_time": 0.012,
        }),
        EventKind::PreCompress => json!({"trigger": "auto", "size": 30_000, "maxSize": 32_000}),
        EventKind::PostCompress => json!({
            "trigger": "auto", "size": 8_000, "maxSize": 32_000, "summary": "The build folder was looked at.",
        }),
        EventKind::ContextOverflow => json!({"size": 26_000, "maxSize": 32_000, "utilization": 0.813}),
        EventKind::Notification => json!({"message": "Waiting for your answer", "event_type": "status"}),
        EventKind::ApprovalRequest => json!({
            "operation": "shell", "details": {"command": "rm -r build"}, "requester": "agent",
        }),
        EventKind::Error => json!({
            "error": {"message": "connection refused", "code": "ECONNREFUSED", "stack": ""}, "operation": "before_model",
        }),
        EventKind::FileCreated => file("created"),
        EventKind::FileEdited => file("edited"),
        EventKind::FileDeleted => file("deleted"),
        EventKind::GitCommit => json!({"files": ["src/main.rs"], "message": "Tidy up", "branch": "main"}),
        EventKind::UserTriggered => json!({"eventName": "tidy", "data": {}, "source": "user"}),
        EventKind::SubagentStart | EventKind::SubagentStop => json!({"agent_id": "agent-1", "agent_type": "reviewer"}),
        EventKind::Custom => {
            json!({"eventName": "deploy", "data": {"target": "staging"}, "source": "sample-extension"})
        }
    }
}

fn file(change: &str) -> Value {
    let changes = json!({"type": change, "size": 42, "timestamp": "2026-01-02T03:04:05.000Z"});
    json!({
        "path": "src/main.rs", "changes": changes, "diff": "-old line\n+new line\n",
        "file": {"path": "src/main.rs", "content": "new line\n", "changes": changes},
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Shape;

    #[test]
    fn a_sample_has_every_field_of_its_row_in_the_right_shape() {
        for kind in EventKind::all() {
            let sample = Event::sample(kind);
            for (field, shape) in kind.fields() {
                // A tool either has a result or has failed, the folder is where the hook is tried, and only sub-agents
                // name themselves.
                let absent = field == "cwd" || (kind == EventKind::AfterTool && field == "error");
                let names_subagent = ["agent_id", "agent_type"].contains(&field);
                if absent || (names_subagent && !kind.name().starts_with("subagent")) {
                    continue;
                }
                let value = sample.data.get(field).unwrap_or_else(|| panic!("{} has no {field}", kind.name()));
                let fits = match shape {
                    Shape::Text => value.is_string(),
                    Shape::Number => value.is_number(),
                    Shape::List => value.is_array(),
                    Shape::Object => value.is_object(),
                    Shape::Any => true,
                };
                assert!(fits, "{}: {field} is {value}", kind.name());
            }
        }
    }

    #[test]
    fn every_dialect_can_say_every_sample() {
        for dialect in crate::dialect::all() {
            for kind in EventKind::all() {
                let addressee = crate::dialect::Addressee { name: "hook", version: "1.0.0" };
                let bytes = dialect.write_event(&Event::sample(kind), &addressee);
                assert_eq!(dialect.read_event(&bytes).unwrap().event.kind, kind, "{}", dialect.name());
            }
        }
    }
}
