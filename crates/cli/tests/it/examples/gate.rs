//! The examples of the hook protocol: kebab-case events with `context`, answers with `allow`.

use serde_json::{Value, json};

use super::{Example, check};

const JQ: &str = include_str!("../hooks/jq.py");

fn call() -> Value {
    json!({
        "event": "pre-tool-call",
        "context": {
            "tool": "read-file", "args": {"path": "README.md"},
            "session": {"id": "abc123", "user": "developer", "startTime": "2026-01-16T10:00:00Z"},
        },
        "metadata": {
            "timestamp": "2026-01-16T10:05:30Z", "hookName": "safety-check", "hookVersion": "1.0.0",
            "sessionId": "abc123",
        },
    })
}

/// The same event from a program that wants our own answer.
fn own() -> Value {
    json!({"event": "pre-tool-call", "context": call()["context"]})
}

#[test]
fn the_protocols_messages() {
    let keeps =
        "import json, sys\njson.dump(json.load(sys.stdin), open('LAB/seen', 'w'))\nprint('{\"allow\": true}')\n";
    let versioned = json!({"version": "1.0.0", "event": "pre-tool-call", "context": call()["context"]});
    let success = json!({"allow": true, "message": "Operation approved", "metadata": {
        "checked": true, "duration": 0.05, "timestamp": "2026-01-16T10:05:30Z"}});
    let blocked = json!({"allow": false, "message": "Dangerous operation detected",
        "metadata": {"reason": "rm -rf detected", "severity": "critical"}});
    let error = json!({"allow": false, "message": "Hook execution failed: Invalid input",
        "metadata": {"error": "ValidationError", "code": "INVALID_INPUT"}});
    let invalid = json!({"allow": false, "message": "Invalid input: missing required field 'event'",
        "metadata": {"error": "ValidationError", "field": "event"}});
    let asked = |name| Example::new(name, own());
    check(vec![
        Example::new("example input", call())
            .from("gate")
            .hook("pre-tool-call", "home/.ollm/hooks/keeps.py", keeps)
            .gives("/allow", true)
            .leaves("seen", "\"event\": \"pre-tool-call\"")
            .leaves("seen", "\"tool\": \"read-file\"")
            .leaves("seen", "\"args\": {\"path\": \"README.md\"}")
            .leaves("seen", "\"startTime\": \"2026-01-16T10:00:00Z\"")
            .leaves("seen", "\"sessionId\": \"abc123\""),
        Example::new("version negotiation", versioned).from("gate").gives("/allow", true),
        asked("success")
            .answering("pre-tool-call", &success)
            .gives("/flow", "no_opinion")
            .gives("/messages/0/text", "Operation approved")
            .gives("/hooks/0/metadata/duration", 0.05),
        asked("blocked")
            .answering("pre-tool-call", &blocked)
            .exits(2)
            .gives("/flow", "block")
            .gives("/reason", "Dangerous operation detected")
            .gives("/hooks/0/metadata/severity", "critical"),
        asked("error")
            .answering("pre-tool-call", &error)
            .exits(2)
            .gives("/reason", "Hook execution failed: Invalid input"),
        asked("invalid input").answering("pre-tool-call", &invalid).exits(2).gives("/hooks/0/metadata/field", "event"),
        // And as the asking program sees a refusal.
        Example::new("blocked, for a program that speaks the protocol", call())
            .from("gate")
            .answering("pre-tool-call", &blocked)
            .exits(0)
            .gives("/allow", false)
            .gives("/message", "Dangerous operation detected"),
    ]);
}

/// Each event's context, with values of the types that the document names; the hook must find every one of them.
#[test]
fn the_context_of_each_event() {
    let session = json!({"id": "s1", "user": "dev"});
    let contexts = [
        ("pre-execution", json!({"prompt": "p", "config": {"model": "m", "temperature": 0.5}, "session": session})),
        (
            "post-execution",
            json!({"prompt": "p", "response": "r", "metrics": {"duration": 1.5, "tokens": 7}, "session": session}),
        ),
        ("pre-tool-call", json!({"tool": "t", "args": {"a": 1}, "session": session})),
        (
            "post-tool-call",
            json!({"tool": "t", "args": {}, "result": [1], "metrics": {"duration": 0.5, "success": true}, "session": session}),
        ),
        (
            "on-error",
            json!({"error": {"message": "m", "code": "c", "stack": "s"}, "operation": "o", "session": session}),
        ),
        (
            "on-file-change",
            json!({"file": "a.rs", "changes": {"type": "modified", "size": 3, "timestamp": "2026-01-16T10:00:00Z"}, "session": session}),
        ),
        ("on-git-commit", json!({"files": ["a", "b"], "message": "m", "branch": "main", "session": session})),
        (
            "on-session-start",
            json!({"session": {"id": "s1", "user": "dev", "startTime": "2026-01-16T10:00:00Z", "config": {"a": 1}}}),
        ),
        (
            "on-session-end",
            json!({"session": {"id": "s1", "user": "dev", "startTime": "2026-01-16T10:00:00Z", "endTime": "2026-01-16T11:00:00Z", "duration": 3600, "messageCount": 4}}),
        ),
        ("on-context-overflow", json!({"session": session, "context": {"size": 9, "maxSize": 8, "utilization": 1.0}})),
        ("on-approval-request", json!({"operation": "o", "details": {"d": 1}, "requester": "r", "session": session})),
        ("custom", json!({"eventName": "deploy", "data": {"x": 1}, "source": "ext", "session": session})),
    ];
    let examples = contexts.into_iter().map(|(name, context)| {
        let wanted = serde_json::to_string(&context.to_string()).unwrap();
        let script = format!(
            "import json, sys\nevent = json.load(sys.stdin)\nwanted = json.loads({wanted})\n\
             def holds(has, want):\n    if isinstance(want, dict):\n        return all(key in has and holds(has[key], want[key]) for key in want)\n    return has == want\n\
             good = event['event'] == '{name}' and holds(event['context'], wanted)\n\
             print(json.dumps({{'allow': good, 'message': json.dumps(event)}}))\n"
        );
        Example::new(name, json!({"event": name, "context": context}))
            .from("gate")
            .hook(name, "home/.ollm/hooks/holds.py", &script)
            .gives("/allow", true)
    });
    check(examples.collect());
}

#[test]
fn the_hooks() {
    check(vec![
        Example::new("minimal hook", own())
            .hook("pre-tool-call", "home/.ollm/hooks/minimal.sh", include_str!("../hooks/minimal-jq.sh"))
            .file("bin/jq", JQ)
            .gives("/hooks/0/status", "ok")
            .gives("/messages/0/text", "OK"),
        Example::new("complete hook", own())
            .hook("pre-tool-call", "home/.ollm/hooks/complete.js", include_str!("../hooks/complete.js"))
            .gives("/hooks/0/status", "ok")
            .gives("/messages/0/text", "Success"),
        // Declared for our own spelling it gets no context, and says so.
        Example::new("complete hook, invalid input", own())
            .hook("before_tool", "home/.ollm/hooks/complete.js", include_str!("../hooks/complete.js"))
            .exits(2)
            .gives("/reason", "Error: Invalid input")
            .gives("/hooks/0/metadata/error", "Error"),
        Example::new("input validation", own())
            .hook("pre-tool-call", "home/.ollm/hooks/valid.js", include_str!("../hooks/validate-input.js"))
            .gives("/continue", true),
        Example::new("input validation, invalid", own())
            .hook("before_tool", "home/.ollm/hooks/valid.js", include_str!("../hooks/validate-input.js"))
            .exits(2)
            .gives("/reason", "Missing context field"),
        // Ruling 2: what it says before it leaves with a bad status is a refusal that can be read, and counts.
        Example::new("timeout handling in hooks", own())
            .hook("pre-tool-call", "home/.ollm/hooks/own.js", include_str!("../hooks/own-timeout.js"))
            .exits(2)
            .gives("/hooks/0/status", "blocked")
            .gives("/reason", "Hook timed out"),
        Example::new(
            "safe handling of a file's name",
            json!({"event": "on-file-change", "context": {
                "file": "LAB/a file; touch pwned", "changes": {"type": "modified"}}}),
        )
        .hook("on-file-change", "home/.ollm/hooks/show.sh", include_str!("../hooks/show-file.sh"))
        .file("bin/jq", JQ)
        .file("a file; touch pwned", "content")
        .gives("/hooks/0/status", "ok")
        .leaves("shown", "content")
        .lacks("project/pwned"),
    ]);
}

/// What each failure of a hook means: the operation is blocked, the next hook runs all the same.
#[test]
fn the_failures() {
    let scripts = [
        ("non-zero exit code", "exit 3", "failed"),
        ("invalid JSON", "echo '{\"allow\": tru'", "failed"),
        ("missing required field", "echo '{\"message\": \"ok\"}'", "failed"),
        ("wrong data type", "echo '{\"allow\": \"yes\"}'", "failed"),
        ("empty output", "exit 0", "failed"),
        ("crash", "kill -SEGV $$", "failed"),
        ("timeout", "sleep 1000", "timeout"),
    ];
    let examples = scripts.into_iter().map(|(name, script, status)| {
        let timeout = if status == "timeout" { 50 } else { 20_000 };
        let entry =
            |name, timeout| json!({"name": name, "command": "sh", "args": [format!("{name}.sh")], "timeout": timeout});
        let declared = json!({"hooks": {"pre-tool-call": [entry("first", timeout), entry("next", 20_000)]}});
        Example::new(name, own())
            .file("home/.ollm/hooks/first.sh", script)
            .file("home/.ollm/hooks/next.sh", "touch LAB/next; echo '{\"allow\": true}'")
            .file("home/.ollm/hooks/hooks.json", declared.to_string())
            .exits(2)
            .gives("/hooks/0/status", status)
            .gives("/hooks/1/status", "ok")
            .tells("user hook `first` (user:hooks.json:pre-tool-call:first) failed")
            .leaves("next", "")
    });
    check(examples.collect());
}
