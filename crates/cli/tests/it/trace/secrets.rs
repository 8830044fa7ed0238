//! Secrets stay out of the trace and the log.

use serde_json::json;

use crate::lab::Lab;

/// Everything that is written under the trace and log folders.
fn written(lab: &Lab) -> String {
    let read = |path: &str| std::fs::read_to_string(lab.home.join(".ollm").join(path)).unwrap_or_default();
    read("trace/trace.jsonl") + &read("log/ollm.log")
}

#[test]
fn d01_no_field_of_a_trace_and_no_line_of_the_log_shows_a_secret() {
    let mut lab = Lab::new();
    let secrets: Vec<String> = (0..200).map(|number| format!("s3cr3t-{number}-value")).collect();
    for (number, secret) in secrets.iter().enumerate() {
        lab = lab.set(&format!("SERVICE_{number}_TOKEN"), secret);
    }
    let all: Vec<String> = (0..200).map(|number| format!("\"SERVICE_{number}_TOKEN\"")).collect();
    let lab = lab.set("HARMLESS", "passed-0n-value");
    // It is given everything, prints everything, and fails.
    let pass = format!(r#", "passEnv": [{}, "HARMLESS"], "env": {{"OWN_PASSWORD": "0wn-password"}}"#, all.join(","));
    lab.user_hook("before_tool", "leaks", "env; env >&2; exit 3", &pass);
    let event = json!({"event": "before_tool", "data": {
        "tool_name": "s3cr3t-3-value", "session_id": "s3cr3t-4-value", "cwd": "/s3cr3t-5-value",
        "args": {"s3cr3t-6-value": ["s3cr3t-7-value", "passed-0n-value", "0wn-password"], "password": "unkn0wn"},
    }});
    let ran = lab.event(event.to_string());
    lab.run(&["-v", "hook", "run", "custom:s3cr3t-8-value", "--data", r#"{"x": "s3cr3t-9-value"}"#]);
    let text = written(&lab) + &ran.stderr;
    for leak in ["s3cr3t", "passed-0n", "0wn-password", "unkn0wn"] {
        assert!(!text.contains(leak), "{leak} in {text}");
    }
    assert_eq!(lab.traces().len(), 2);
}

#[test]
fn what_a_command_assigns_to_the_name_of_a_secret_is_not_kept_in_whole_payloads_either() {
    for payload in ["full", "short"] {
        let lab = Lab::new().set("OLLM_TRACE_PAYLOAD", payload);
        lab.user_hook("before_tool", "fine", "echo '{\"continue\": true}'", "");
        lab.event(crate::lab::shell_event(
            "export AWS_SECRET_ACCESS_KEY=wJalr/abc; curl 'https://x/?password=hunter2&a=b'",
        ));
        let text = written(&lab);
        assert!(!text.contains("wJalr") && !text.contains("hunter2"), "{text}");
        assert!(text.contains("AWS_SECRET_ACCESS_KEY=[redacted]; curl") && text.contains("&a=b"), "{text}");
    }
}
