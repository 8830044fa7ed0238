//! Events that cannot be read: exit status 3, nothing on standard output, and what is wrong with them.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, Ran, finish, kept};

fn refused(lab: &Lab, event: &[u8]) -> String {
    let ran = finish(lab.ollm_in_little_memory(&["hook", "run"]), event);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{ran:?}");
    assert!(!lab.project.join("ran").exists());
    ran.stderr
}

fn lab() -> Lab {
    Lab::with_hook("before_tool", "canary", "touch ran")
}

#[test]
fn an_event_that_is_no_json_is_refused_with_its_place() {
    let lab = lab();
    for (event, said) in [
        ("", "standard input holds no event"),
        (" \n\t", "standard input holds no event"),
        ("{", "the event is not valid JSON: EOF while parsing an object at line 1 column 1"),
        ("{\"event\": \"before_tool\",\n \"data\": {\"a\": }}", "expected value at line 2 column 16"),
        (r#"{"event": "before_tool", "data": {"tool_name": "she"#, "EOF while parsing a string at line 1 column 51"),
        ("before_tool", "the event cannot be read: it begins with `b`, not with a JSON object"),
        ("[]", "it begins with `[`, not with a JSON object"),
        ("null", "it begins with `n`"),
        ("\"before_tool\"", "it begins with `\\\"`"),
        ("5", "it begins with `5`"),
    ] {
        let stderr = refused(&lab, event.as_bytes());
        assert!(stderr.contains(said), "{event}: {stderr}");
        assert!(stderr.contains("hint: an event is {\"event\": NAME"), "{event}: {stderr}");
    }
}

#[test]
fn fields_of_the_wrong_type_are_named() {
    let lab = lab();
    for (event, said) in [
        ("{}", "the event has no `event`"),
        (r#"{"event": 5}"#, "`event` of the event must be text"),
        (r#"{"event": null}"#, "`event` of the event must be text"),
    ] {
        let stderr = refused(&lab, event.as_bytes());
        assert!(stderr.contains(said), "{event}: {stderr}");
    }
}

#[test]
fn an_unknown_event_is_refused_and_the_nearest_name_offered() {
    let lab = lab();
    for (name, near) in [
        ("before_tol", "`before_tool`"),
        ("PreToolUs", "`PreToolUse`"),
        ("pre_tool_call", "`pre-tool-call`"),
        ("BEFORE_TOOL", "`before_tool`"),
        ("sesion_start", "`session_start`"),
    ] {
        let expected = format!("unknown event `{name}`; did you mean {near}?");
        let stderr = refused(&lab, json!({"event": name}).to_string().as_bytes());
        assert!(stderr.contains(&expected), "{stderr}");
        let ran = lab.run(&["hook", "run", name]);
        assert_eq!((ran.code, ran.stderr.contains(&expected)), (3, true), "{ran:?}");
        let plan = lab.run(&["hook", "plan", name]);
        assert_eq!((plan.code, plan.stderr.contains(&expected)), (3, true), "{plan:?}");
    }
    let stderr = refused(&lab, br#"{"event": "something else entirely"}"#);
    assert!(stderr.contains("unknown event `something else entirely`\n"), "{stderr}");
}

#[test]
fn an_event_nested_ten_thousand_deep_is_refused_in_bounded_memory() {
    let lab = lab();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
        let event = format!(r#"{{"event": "before_tool", "data": {{"deep": {deep}}}}}"#);
        let stderr = refused(&lab, event.as_bytes());
        assert!(stderr.contains("the event is not valid JSON"), "{stderr}");
        refused(&lab, deep.as_bytes());
        refused(&lab, open.repeat(10_000).as_bytes());
    }
}

#[test]
fn text_that_is_no_text_is_refused() {
    let lab = lab();
    for event in [&b"\0\0\0"[..], b"\xff\xfe{\0}\0", b"{\"event\": \"a\0b\"}"] {
        assert!(refused(&lab, event).starts_with("error[C018]: "));
    }
}

#[test]
fn bytes_that_are_no_characters_are_replaced_and_the_hooks_still_run() {
    let lab = Lab::with_hook("before_tool", "echo", "cat > seen; printf '{\"continue\": true}'");
    let ran = lab.event(b"{\"event\": \"before_tool\", \"data\": {\"a\": \"\xff\"}}");
    assert_eq!((ran.code, ran.hook("echo")["status"].as_str()), (0, Some("ok")));
    let seen: Value = serde_json::from_slice(&fs::read(lab.project.join("seen")).unwrap()).unwrap();
    assert_eq!(seen["data"]["a"], "\u{fffd}");
}

#[test]
fn data_that_is_no_object_reaches_the_hooks_as_a_value() {
    let lab = Lab::with_hook("before_tool", "echo", "cat > seen; printf '{\"continue\": true}'");
    for data in ["5", "[1]", "\"text\""] {
        assert_eq!(lab.run(&["hook", "run", "before_tool", "--data", data]).code, 0);
        let seen = kept(&lab.project.join("seen"));
        assert_eq!(seen["data"], json!({"value": serde_json::from_str::<Value>(data).unwrap()}));
    }
}

#[test]
fn terminal_escapes_in_an_event_are_shown_escaped() {
    let lab = lab();
    let stderr = refused(&lab, json!({"event": "\u{1b}[2J\u{202e}evil\nollm: forged"}).to_string().as_bytes());
    assert!(stderr.contains(r"\u{1b}[2J\u{202e}evil"), "{stderr}");
    assert!(!stderr.lines().any(|line| line.starts_with("ollm: forged")), "{stderr}");
}

#[test]
fn data_on_the_command_line_is_checked_too() {
    let lab = lab();
    let exit = |data: &str| {
        let Ran { code, stdout, stderr } = lab.run(&["hook", "run", "before_tool", "--data", data]);
        assert_eq!(stdout, "");
        (code, stderr.lines().next().unwrap_or_default().to_owned())
    };
    assert_eq!(
        exit("{"),
        (3, "error[C018]: --data is not valid JSON: EOF while parsing an object at line 1 column 1".into())
    );
    assert_eq!(
        exit(""),
        (3, "error[C018]: --data is not valid JSON: EOF while parsing a value at line 1 column 0".into())
    );
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(exit(&deep).0, 3);
}
