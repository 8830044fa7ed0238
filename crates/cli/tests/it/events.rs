//! Events that really happen and say what the documents say: errors, events of hooks, the person, files, and who failed.

use std::fs;

use serde_json::{Value, json};
use testkit::mcp_server;

use crate::agent::{call, lab, run, talk, text};
use crate::lab::{Lab, Ran, eventually, finish};
use crate::live::Chat;

/// A hook of the user that writes down every event it gets, one a line.
fn recorder(lab: &Lab, event: &str) {
    let name = format!("record-{}", event.replace('_', "-"));
    lab.user_hook(event, &name, &format!("cat >> ../{event}.seen; echo '{{\"continue\": true}}'"), "");
}

fn recorded(lab: &Lab, event: &str) -> Vec<Value> {
    let text = fs::read_to_string(lab.root.join(format!("{event}.seen"))).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["data"].clone()).collect()
}

/// An extension with one hook at this event, approved; its files lie in the user's home.
fn extension(lab: &Lab, name: &str, event: &str, script: &str, more: &Value) {
    let hooks = json!({event: [{"name": "inner", "command": "sh", "args": ["run.sh"]}]});
    let mut manifest = json!({"name": name, "version": "1.0.0", "description": "d", "hooks": hooks});
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    lab.write(&format!("home/.ollm/extensions/{name}/manifest.json"), manifest.to_string());
    lab.write(&format!("home/.ollm/extensions/{name}/run.sh"), script);
    crate::bundled::approve(lab, name);
}

fn log(lab: &Lab) -> String {
    fs::read_to_string(lab.home.join(".ollm/log/ollm.log")).unwrap_or_default()
}

#[track_caller]
fn says(ran: &Ran, part: &str) {
    assert!(ran.stderr.contains(part), "`{part}` is missing: {ran:?}");
}

#[test]
fn a_failed_tool_is_one_error_and_one_notification() {
    let lab = lab(&[call("read_file", json!({"path": "nowhere"})), text("done")]);
    recorder(&lab, "error");
    recorder(&lab, "notification");
    assert_eq!(run(&lab, &[]).code, 0);
    let errors = recorded(&lab, "error");
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert_eq!((&errors[0]["operation"], &errors[0]["error"]["code"]), (&json!("tool"), &json!("tool")));
    assert!(errors[0]["error"]["message"].as_str().unwrap().starts_with("the tool read_file failed: "), "{errors:#?}");
    let told = recorded(&lab, "notification");
    let told: Vec<&Value> = told.iter().filter(|data| data["event_type"] == "error").collect();
    assert_eq!((told.len(), &told[0]["message"]), (1, &errors[0]["error"]["message"]));
}

#[test]
fn a_tool_that_says_why_it_failed_in_many_lines_has_a_stack() {
    let script = "import sys; print('out'); sys.exit('Traceback:\\n  line 1\\nValueError: no')";
    let command = format!("python3 -c \"{script}\"");
    let server = mcp_server();
    let lab = lab(&[call("shell", json!({"command": command})), call("mcp__s__crash", json!({})), text("done")]);
    lab.write(
        "home/.ollm/config.yaml",
        format!(
            "mcp:\n  servers:\n    s: {{command: sh, args: [-c, \"'{}'; echo one >&2; echo two >&2\"]}}\n",
            server.display()
        ),
    );
    recorder(&lab, "error");
    let ran = run(&lab, &["--approval", "yolo"]);
    let errors = recorded(&lab, "error");
    let error = json!({"message": "the tool shell failed: exit code 1: ValueError: no", "code": "tool",
        "stack": "Traceback:\n  line 1\nValueError: no"});
    assert_eq!(errors[0]["error"], error, "{ran:?}");
    // A server that ended, too.
    let of_tool = errors.iter().filter(|data| data["operation"] == "tool").nth(1).unwrap();
    let (message, stack) = (of_tool["error"]["message"].as_str().unwrap(), &of_tool["error"]["stack"]);
    assert!(!message.contains('\n') && stack.as_str().unwrap().contains("one\ntwo"), "{of_tool:#}");
}

#[test]
fn a_failed_hook_is_one_error_with_its_stack_and_a_broken_error_hook_calls_nobody() {
    let lab = lab(&[text("done")]);
    let broken = "echo 'Traceback: line 1' >&2; echo 'ValueError: no' >&2; exit 3";
    extension(&lab, "tools", "before_model", broken, &json!({}));
    recorder(&lab, "error");
    lab.user_hook("error", "broken-too", "echo called >> ../broken-too; exit 1", "");
    lab.user_hook("notification", "broken-as-well", "exit 1", "");
    let ran = run(&lab, &[]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("done\n", 0), "{ran:?}");
    let errors = recorded(&lab, "error");
    assert_eq!(errors.len(), 1, "{errors:#?}");
    let (error, operation) = (&errors[0]["error"], &errors[0]["operation"]);
    assert_eq!((&error["code"], operation), (&json!("hook"), &json!("before_model")));
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("hook `inner` of extension `tools` (") && message.contains("tools"), "{message}");
    assert!(message.ends_with("failed: exited with status 3: ValueError: no"), "{message}");
    assert_eq!(error["stack"], "Traceback: line 1\nValueError: no");
    assert_eq!(fs::read_to_string(lab.root.join("broken-too")).unwrap(), "called\n");
    says(&ran, message);
    says(&ran, "user hook `broken-too` (user:broken-too.json:error:broken-too) failed: exited with status 1");
    assert!(log(&lab).contains(message), "{}", log(&lab));
}

#[test]
fn a_hook_that_fails_at_a_single_event_is_one_error_and_a_broken_error_hook_calls_nobody() {
    let call = json!({"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "ls"}});
    let (call, data) = (call.to_string(), r#"{"tool_name": "shell", "args": {"command": "ls"}}"#);
    let ways: [(&[&str], &[u8]); 3] = [
        (&["hook", "run", "--from", "claude"], call.as_bytes()),
        (&["hook", "run", "before_tool", "--data", data], b""),
        (&["emit", "before_tool", "--data", data], b""),
    ];
    for (arguments, event) in ways {
        let lab = Lab::new();
        lab.user_hook("before_tool", "broken", "echo 'line 1' >&2; echo 'line 2' >&2; exit 3", "");
        lab.user_hook("error", "broken-too", "echo called >> ../broken-too; exit 1", "");
        recorder(&lab, "error");
        recorder(&lab, "notification");
        let ran = crate::lab::finish(lab.ollm(arguments), event);
        assert_eq!(ran.code, 0, "{arguments:?} {ran:?}");
        let (errors, notices) = (recorded(&lab, "error"), recorded(&lab, "notification"));
        assert_eq!((errors.len(), notices.len()), (1, 1), "{arguments:?} {errors:#?} {notices:#?}");
        assert_eq!((&errors[0]["operation"], &errors[0]["error"]["code"]), (&json!("before_tool"), &json!("hook")));
        assert_eq!(errors[0]["error"]["stack"], "line 1\nline 2");
        assert_eq!(notices[0]["message"], errors[0]["error"]["message"]);
        assert_eq!(notices[0]["event_type"], "error");
        assert_eq!(fs::read_to_string(lab.root.join("broken-too")).unwrap(), "called\n");
        let is_agents = arguments.contains(&"--from");
        assert_eq!(errors[0]["session_id"], if is_agents { json!("s1") } else { Value::Null });
        assert_eq!(ran.stderr.contains("`broken` "), !is_agents, "{ran:?}");
    }
}

#[test]
fn a_hook_that_is_not_done_when_the_answer_is_due_is_an_error_as_well() {
    let lab = Lab::new();
    lab.user_hook("before_tool", "slow", crate::lab::FOREVER, r#", "timeout": "10m", "onFailure": "block""#);
    recorder(&lab, "error");
    let call = json!({"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash", "tool_input": {}});
    let asked = lab.ollm(&["hook", "run", "--from", "claude", "--within", "1s"]);
    let ran = crate::lab::finish(asked, call.to_string().as_bytes());
    assert!(ran.stdout.contains("deny"), "{ran:?}");
    let errors = recorded(&lab, "error");
    assert!(errors.len() == 1 && errors[0]["error"]["message"].as_str().unwrap().contains("`slow`"), "{errors:#?}");
    lab.assert_nobody_is_left();
}

#[test]
fn a_hook_that_fails_while_files_are_watched_is_one_error() {
    for more in ["", r#", "async": true"#] {
        let lab = Lab::new();
        lab.user_hook("file_created", "broken", "exit 3", &format!(r#", "filePatterns": ["*.txt"]{more}"#));
        lab.user_hook("error", "broken-too", "exit 1", "");
        lab.user_hook("error", "keep", "cat >> ~/error.seen; echo '{\"continue\": true}'", "");
        let mut watch = crate::watch::Watch::new(&lab);
        lab.write("project/a.txt", "1\n");
        watch.was_told("`broken` ");
        crate::lab::eventually("the error is told", || lab.home.join("error.seen").exists());
        watch.events();
        let text = fs::read_to_string(lab.home.join("error.seen")).unwrap();
        assert_eq!(text.lines().count(), 1, "{more} {text}");
        let error: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(error["data"]["operation"], "file_created", "{error:#}");
        watch.was_told("`broken-too` ");
    }
}

/// Background hooks, all broken: one at the start, one at errors.
fn broken_in_the_background(lab: &Lab) {
    lab.user_hook("session_start", "late", "echo 'ValueError: no' >&2; exit 3", r#", "async": true"#);
    lab.user_hook("error", "late-too", "echo called >> ../late-too; exit 1", r#", "async": true"#);
    recorder(lab, "error");
}

#[track_caller]
fn one_late_error(lab: &Lab) {
    let errors = recorded(lab, "error");
    assert_eq!(errors.len(), 1, "{errors:#?}");
    let (error, operation) = (&errors[0]["error"], &errors[0]["operation"]);
    assert_eq!((&error["code"], operation), (&json!("hook"), &json!("session_start")));
    let message = error["message"].as_str().unwrap();
    let expected = "user hook `late` (user:late.json:session_start:late) failed: exited with status 3: ValueError: no";
    assert_eq!(message, expected);
}

#[test]
fn a_hook_that_fails_beside_a_run_is_one_error() {
    let wait = r#"until grep -q '"late":{' "$HOME/.ollm/trace/trace.jsonl"; do sleep 0.02; done"#;
    let lab = lab(&[call("shell", json!({"command": wait})), call("shell", json!({"command": "true"})), text("done")]);
    broken_in_the_background(&lab);
    let ran = run(&lab, &["--approval", "yolo"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("done\n", 0), "{ran:?}");
    one_late_error(&lab);
    says(&ran, "user hook `late` (user:late.json:session_start:late) failed: exited with status 3: ValueError: no");
}

#[test]
fn a_hook_that_fails_beside_a_chat_is_one_error_and_a_broken_error_hook_calls_nobody() {
    let lab = Lab::new();
    broken_in_the_background(&lab);
    let mut chat = Chat::new(&lab, &[text("one"), text("two"), text("three")]);
    let ended = |count: usize| {
        eventually("the hooks have left their records", || {
            lab.traces().iter().filter(|line| line["late"].is_object()).count() >= count
        });
    };
    ended(1);
    chat.say("one");
    ended(2);
    chat.say("two");
    chat.was_told("user hook `late-too` (user:late-too.json:error:late-too) failed: exited with status 1");
    chat.say("three");
    chat.end();
    one_late_error(&lab);
    assert_eq!(fs::read_to_string(lab.root.join("late-too")).unwrap(), "called\n");
}

#[test]
fn a_hook_that_fails_at_the_end_of_a_session_is_one_error() {
    let lab = lab(&[text("done")]);
    lab.user_hook("session_end", "broken", "exit 3", "");
    lab.user_hook("error", "broken-too", "echo called >> ../broken-too; exit 3", "");
    recorder(&lab, "error");
    recorder(&lab, "notification");
    let ran = run(&lab, &[]);
    says(&ran, "user hook `broken` (user:broken.json:session_end:broken) failed");
    let errors = recorded(&lab, "error");
    assert_eq!((errors.len(), &errors[0]["operation"]), (1, &json!("session_end")), "{ran:?}");
    let told = recorded(&lab, "notification");
    let told = told.iter().filter(|data| data["message"].as_str().unwrap_or_default().contains("`broken` "));
    assert_eq!((told.count(), fs::read_to_string(lab.root.join("broken-too")).unwrap().lines().count()), (1, 1));
}

#[test]
fn a_hook_that_fails_after_the_program_has_ended_is_one_error_with_its_stack() {
    let at_run = lab(&[text("done")]);
    let at_event = Lab::new();
    for (lab, event, is_run) in [(&at_run, "session_end", true), (&at_event, "before_agent", false)] {
        let script = format!(
            "until test -e {}; do sleep 0.01; done; echo one >&2; echo 'ValueError: no' >&2; exit 3",
            lab.root.join("ended").display()
        );
        lab.user_hook(event, "late", &script, r#", "async": true"#);
        lab.user_hook("error", "late-too", "exit 3", r#", "async": true"#);
        recorder(lab, "error");
        recorder(lab, "notification");
        if is_run {
            run(lab, &[]);
        } else {
            lab.event(json!({"event": event, "data": {"session_id": "s1", "prompt": "x"}}).to_string());
        }
        lab.write("ended", "");
        let message =
            format!("user hook `late` (user:late.json:{event}:late) failed: exited with status 3: ValueError: no");
        eventually("the failure is told", || {
            recorded(lab, "notification").iter().any(|data| data["message"] == message.as_str())
        });
        let errors = recorded(lab, "error");
        let expected = json!({"message": message, "code": "hook", "stack": "one\nValueError: no"});
        assert_eq!((errors.len(), &errors[0]["error"], &errors[0]["operation"]), (1, &expected, &json!(event)));
        assert!(errors[0]["session_id"].is_string(), "{errors:#?}");
        eventually("the log tells it", || log(lab).contains(&message));
        eventually("all have ended", || lab.processes().is_empty());
        assert_eq!(recorded(lab, "error").len(), 1);
        let stats = lab.run(&["trace", "stats", "--json"]).answer();
        let mut hooks = stats["hooks"].as_array().unwrap().iter();
        let late = hooks.find(|hook| hook["id"].as_str().unwrap().ends_with(":late")).unwrap();
        assert_eq!(late["statuses"], json!({"failed": 1}));
    }
}

#[test]
fn a_crashed_server_is_one_error_that_names_its_extension() {
    let lab = lab(&[call("mcp__s__crash", json!({})), text("done")]);
    let server = json!({"mcpServers": {"s": {"command": mcp_server(), "args": []}}});
    extension(&lab, "tools", "session_start", "echo '{\"continue\": true}'", &server);
    recorder(&lab, "error");
    let ran = run(&lab, &["--approval", "yolo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let errors = recorded(&lab, "error");
    let servers: Vec<&Value> = errors.iter().filter(|data| data["operation"] == "server").collect();
    assert_eq!(servers.len(), 1, "{errors:#?} {ran:?}");
    let message = servers[0]["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("server `s` of extension `tools`: "), "{message}");
    says(&ran, message.lines().next().unwrap());
    // Its call failed as well, which is another error.
    assert_eq!(errors.iter().filter(|data| data["operation"] == "tool").count(), 1, "{errors:#?}");
    fs::remove_file(lab.root.join("error.seen")).unwrap();
    // A hook for failures that calls it does not hear of that.
    lab.user_hook("error", "caller", &format!("'{}' mcp call s crash", crate::lab::OLLM), "");
    assert_eq!(lab.run(&["mcp", "call", "s", "crash"]).code, 5);
    let errors = recorded(&lab, "error");
    assert_eq!((errors.len(), &errors[0]["operation"]), (1, &json!("server")), "{errors:#?}");
    assert!(errors[0]["error"]["message"].as_str().unwrap().starts_with("server `s` of extension `tools`: "));
    let status = lab.run(&["mcp", "status", "s", "--json"]).answer();
    assert!(!status[0]["lastFailure"]["message"].as_str().unwrap().is_empty(), "{status:#}");
    says(&lab.run(&["mcp", "status"]), "server `s` of extension `tools` failed at ");
    for list in ["list", "status"] {
        let shown = lab.run(&["mcp", list]).stdout;
        assert!(shown.contains("failed the last time: "), "{list}: {shown}");
    }
}

#[test]
fn an_event_that_a_hook_of_an_extension_sends_carries_its_name_and_ends_three_deep() {
    let lab = Lab::new();
    let program = crate::lab::OLLM;
    let again = format!(
        "cat >> ../custom.seen\n'{program}' emit again --data '{{\"n\": 1}}' > /dev/null 2>> ../said\necho '{{\"continue\": true}}'"
    );
    extension(&lab, "loop", "custom", &again, &json!({}));
    let ran = lab.run(&["emit", "again"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let sources: Vec<Value> = recorded(&lab, "custom").iter().map(|data| data["source"].clone()).collect();
    assert_eq!(sources, [json!(null), json!("loop"), json!("loop"), json!("loop")]);
    let said = fs::read_to_string(lab.root.join("said")).unwrap();
    assert_eq!(said.matches("the event is not sent: it is inside 3 events that hooks sent").count(), 1, "{said}");
}

#[test]
fn what_hooks_begin_inside_events_ends_three_deep_too() {
    let program = crate::lab::OLLM;
    let event = r#"{"event": "session_start", "data": {}}"#;
    let ways = [
        (format!("echo '{event}' | '{program}' hook run"), "the event is not sent: it is inside 3 events"),
        (format!("'{program}' run again --model replay:../talk.jsonl"), "no session begins: it is inside 3 events"),
    ];
    for (way, refusal) in ways {
        let lab = lab(&[text("done")]);
        let script = format!(
            "cat > /dev/null; echo ran >> ../ran; {way} > /dev/null 2>> ../said; echo '{{\"continue\": true}}'"
        );
        lab.user_hook("session_start", "again", &script, "");
        assert_eq!(lab.event(event).code, 0);
        let read = |name: &str| fs::read_to_string(lab.root.join(name)).unwrap();
        assert_eq!(read("ran").lines().count(), 4, "{}", read("said"));
        assert_eq!(read("said").matches(refusal).count(), 1, "{}", read("said"));
    }
}

#[test]
fn a_matcher_where_nothing_can_match_is_an_error_and_a_gate_with_one_refuses() {
    let lab = Lab::new();
    lab.user_hook("session_start", "greets", "exit 0", r#", "matcher": "startup""#);
    let event = r#"{"event": "session_start", "data": {"source": "startup"}}"#;
    let ran = lab.event(event);
    assert_eq!(ran.code, 0, "{ran:?}");
    says(&ran, "matcher `startup` has nothing to look at: session_start has no tool and no name");
    assert_eq!(lab.run(&["hook", "validate"]).code, 1);
    lab.user_hook("session_start", "gate", "exit 0", r#", "matcher": "startup", "onFailure": "block""#);
    assert_eq!(lab.event(event).code, 2);
}

#[test]
fn an_event_that_a_hook_sends_from_its_box_never_passes_the_gates_outside_unheard() {
    let lab = Lab::with_default_boxes();
    if !lab.run(&["doctor"]).stdout.contains("Landlock") {
        return;
    }
    lab.user_hook(
        "custom:deploy",
        "gate",
        "echo called >> \"$OLLM_PROJECT_DIR/../gate\"; exit 1",
        r#", "onFailure": "block""#,
    );
    let program = crate::lab::OLLM;
    let script = format!(
        "'{program}' emit deploy > $TMPDIR/said 2>&1\nsent=$?\necho '{{\"event\": \"custom\", \"data\": {{\"eventName\": \"deploy\"}}}}' | '{program}' hook run > /dev/null 2>&1\necho '{{\"systemMessage\": \"sent '$sent', run '$?': '$(grep -c 'in the box of a hook' $TMPDIR/said)'\"}}'"
    );
    let hooks = |permissions: Value| json!({"hooks": {"session_start": [{"name": "inner", "command": "sh", "args": ["run.sh"], "permissions": permissions}]}});
    let told = |read: &[&str]| {
        let _ = fs::remove_dir_all(lab.home.join(".ollm/extensions"));
        let read: Vec<&str> = read.iter().copied().chain([program]).collect();
        extension(&lab, "sender", "session_start", &script, &hooks(json!({"read": read})));
        let answer = lab.event(r#"{"event": "session_start", "data": {}}"#).answer();
        answer["systemMessage"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(told(&[]), "sent 3, run 3: 1");
    assert!(!lab.root.join("gate").exists());
    // The gate hears it where the hook may read it.
    assert_eq!(told(&["~/.ollm"]), "sent 2, run 2: 0");
}

#[test]
fn an_event_without_the_files_of_a_pattern_is_refused_by_gates_and_told_otherwise() {
    for (event, field) in [("file_edited", "path"), ("git_commit", "files")] {
        let lab = Lab::new();
        let nothing = json!({"event": event, "data": {"message": "m"}}).to_string();
        lab.user_hook(event, "watcher", "echo '{\"continue\": true}'", r#", "filePatterns": ["*.rs"]"#);
        let ran = lab.event(&nothing);
        assert_eq!((ran.code, &ran.skip("watcher")["reason"]), (0, &json!("pattern")), "{ran:?}");
        let line = format!("the {event} event has no `{field}`, so these hooks did not run: user hook `watcher`");
        says(&ran, &line);
        let gate = r#", "filePatterns": ["*.rs"], "onFailure": "block""#;
        lab.user_hook(event, "gate", "echo '{\"continue\": true}'", gate);
        assert_ne!(lab.event(&nothing).answer()["flow"], "no_opinion", "{event}");
    }
    let lab = Lab::new();
    lab.user_hook(
        "git_commit",
        "gate",
        "echo '{\"continue\": false}'",
        r#", "filePatterns": ["*.rs"], "onFailure": "block""#,
    );
    for (files, is_refused) in [(json!([]), false), (json!(["a.md"]), false), (json!("a.rs"), true), (json!(7), true)] {
        let ran = lab.event(json!({"event": "git_commit", "data": {"files": files}}).to_string());
        assert_eq!(ran.answer()["flow"] == "block", is_refused, "{files}: {ran:?}");
    }
}

#[test]
fn an_event_without_the_subject_of_a_matcher_is_refused_by_gates_and_told_otherwise() {
    let lab = Lab::new();
    let nothing = lab.event(r#"{"event": "before_tool", "data": {"name": "shell"}}"#);
    says(&nothing, "the before_tool event has no `tool_name`, so nothing that depends on the tool was judged");
    // Where not even the name of the tool is known, the guards take every field for an argument.
    for command in ["rm -rf ~", "echo x > ~/.ollm/config.yaml"] {
        let data = json!({"tol": "shell", "argz": {"command": command}});
        let ran = lab.event(json!({"event": "before_tool", "data": data}).to_string());
        assert_ne!(ran.answer()["flow"], "no_opinion", "{command}: {ran:?}");
    }
    lab.user_hook("before_tool", "watcher", "echo '{\"continue\": true}'", r#", "matcher": "shell""#);
    for event in
        [r#"{"event": "before_tool", "data": {"args": {}}}"#, r#"{"event": "before_tool", "data": {"tool_name": ""}}"#]
    {
        // The second time from what was kept of the files.
        for _ in 0..2 {
            let ran = lab.event(event);
            assert_eq!(ran.code, 0, "{ran:?}");
            says(&ran, "the before_tool event has no `tool_name`, so these hooks did not run: user hook `watcher`");
            assert_eq!(ran.skip("watcher")["reason"], "matcher");
        }
    }
    lab.user_hook(
        "before_tool",
        "gate",
        "echo '{\"continue\": true}'",
        r#", "matcher": "shell", "onFailure": "block""#,
    );
    for _ in 0..2 {
        let ran = lab.event(r#"{"event": "before_tool", "data": {"args": {}}}"#);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(
            ran.answer()["reason"]
                .as_str()
                .unwrap()
                .contains("the event has no `tool_name`, which its matcher `shell` looks at")
        );
    }
    let ran = lab.event_from("claude", r#"{"hook_event_name": "PreToolUse", "tool_input": {}}"#);
    assert!(ran.stdout.contains("deny") || ran.code == 2, "{ran:?}");
}

#[test]
fn every_event_tells_of_the_person_the_agents_mode_and_its_approval() {
    let lab = lab(&[text("done")]);
    lab.write(
        "home/.ollm/config.yaml",
        "user:\n  preferences:\n    editor: vim\n    colours: [red, blue]\n  settings:\n    team: {name: core}\n",
    );
    recorder(&lab, "session_start");
    recorder(&lab, "before_tool");
    assert_eq!(run(&lab, &["--approval", "auto"]).code, 0);
    let user =
        json!({"preferences": {"editor": "vim", "colours": ["red", "blue"]}, "settings": {"team": {"name": "core"}}});
    let start = &recorded(&lab, "session_start")[0];
    assert_eq!(start["user"], user);
    assert_eq!((&start["agent"]["mode"], &start["agent"]["approval"]), (&json!("run"), &json!("auto")));
    lab.event(r#"{"event": "before_tool", "data": {"tool_name": "shell"}}"#);
    assert_eq!(recorded(&lab, "before_tool")[0]["user"], user);
    talk(&lab, &[]);
    finish(lab.ollm(&["chat", "--model", "replay:../talk.jsonl"]), b"");
    assert_eq!(recorded(&lab, "session_start")[1]["agent"]["mode"], "chat");
}

#[test]
fn a_file_is_named_by_its_path_in_the_project_with_the_whole_one_beside() {
    let lab = lab(&[call("write_file", json!({"path": "a.txt", "content": "x\n"})), text("done")]);
    fs::create_dir(lab.project.join("sub")).unwrap();
    recorder(&lab, "file_created");
    lab.user(
        "rpc.sh",
        "cat >> \"$OLLM_PROJECT_DIR/../fileCreated.seen\"; echo '{\"jsonrpc\": \"2.0\", \"result\": {}, \"id\": 1}'",
    );
    lab.user("rpc.json", r#"{"name": "rpc", "eventType": "fileCreated", "action": {"type": "command", "command": "sh", "args": ["rpc.sh"]}}"#);
    let mut command = lab.ollm(&["run", "do it", "--model", "replay:../../talk.jsonl", "--approval", "yolo"]);
    command.current_dir(lab.project.join("sub"));
    assert_eq!(finish(command, b"").code, 0);
    let whole = lab.project.join("sub/a.txt").display().to_string();
    let seen = fs::read_to_string(lab.root.join("fileCreated.seen")).unwrap();
    let seen: Value = serde_json::from_str(seen.lines().next().unwrap()).unwrap();
    let (event, context) = (&seen["params"]["event"], &seen["params"]["context"]);
    assert_eq!((&event["data"]["path"], &context["file"]["path"]), (&json!("sub/a.txt"), &json!("sub/a.txt")));
    assert_eq!((&context["file"]["absolutePath"], &context["user"]["preferences"]), (&json!(whole), &json!({})));
    // Also where another agent tells of it.
    let edit = json!({"hook_event_name": "PostToolUse", "session_id": "s", "cwd": lab.project, "tool_name": "Write",
        "tool_input": {"file_path": lab.project.join("b.txt"), "content": "x"}, "tool_response": {}});
    recorder(&lab, "file_edited");
    lab.event_from("claude", &edit.to_string());
    let edited = &recorded(&lab, "file_edited")[0];
    assert_eq!((&edited["file"]["path"], &edited["file"]["absolutePath"]), (&json!("b.txt"), &edited["path"]));
}

#[test]
fn a_file_that_a_gate_calls_modified_was_edited() {
    let lab = Lab::new();
    recorder(&lab, "file_edited");
    recorder(&lab, "file_created");
    let context =
        |changes: Value| json!({"event": "on-file-change", "context": {"file": "src/a.ts", "changes": changes}});
    for changes in [json!({"type": "modified"}), json!("modified")] {
        let event = context(changes).to_string();
        lab.event(&event);
        lab.event_from("gate", &event);
    }
    let seen = recorded(&lab, "file_edited");
    assert_eq!(seen.len(), 4, "{seen:#?}");
    for data in seen {
        assert_eq!((&data["changes"], &data["diff"]), (&json!({"type": "edited"}), &Value::Null));
    }
    lab.event(context(json!("created")).to_string());
    assert_eq!(recorded(&lab, "file_created").len(), 1);
}

#[test]
fn what_stands_beside_the_data_of_an_event_is_read_in_the_spelling_of_its_name() {
    let lab = Lab::new();
    recorder(&lab, "before_tool");
    let gate = json!({"event": "pre-tool-call", "context": {"tool": "read-file", "args": {"path": "README.md"}, "session": {"id": "abc"}},
        "metadata": {"timestamp": "2026-01-16T10:05:30Z", "sessionId": "abc"}});
    lab.event(gate.to_string());
    lab.event_from("gate", &gate.to_string());
    lab.event(json!({"event": "pre-tool-call", "data": gate["context"], "metadata": gate["metadata"]}).to_string());
    let seen = recorded(&lab, "before_tool");
    assert_eq!(seen.len(), 3, "{seen:#?}");
    for data in seen {
        let told = (&data["session_id"], &data["timestamp"], &data["tool_name"]);
        assert_eq!(told, (&json!("abc"), &json!("2026-01-16T10:05:30Z"), &json!("read-file")), "{data:#}");
    }
    // The session says who it is where nothing else does.
    lab.run(&["hook", "run", "pre-tool-call", "--data", &gate["context"].to_string()]);
    assert_eq!(recorded(&lab, "before_tool")[3]["session_id"], "abc");

    recorder(&lab, "file_edited");
    let millis = 1_700_000_000_000_i64;
    let (data, context) =
        (json!({"path": "src/a.ts"}), json!({"agent": {"mode": "developer"}, "file": {"content": "x"}}));
    lab.event(json!({"event": "fileEdited", "data": data, "context": context, "timestamp": millis}).to_string());
    lab.run(&["hook", "run", "fileEdited", "--data", &json!({"path": "src/a.ts", "timestamp": millis}).to_string()]);
    let seen = recorded(&lab, "file_edited");
    assert_eq!((&seen[0]["agent"]["mode"], &seen[0]["file"]["content"]), (&json!("developer"), &json!("x")));
    for data in seen {
        assert_eq!(data["timestamp"], "2023-11-14T22:13:20Z", "{data:#}");
    }
}

#[test]
fn a_file_that_is_only_described_has_its_path_and_its_difference_in_every_dialect() {
    let lab = Lab::new();
    recorder(&lab, "file_edited");
    lab.user("gate.sh", "cat > ~/gate.seen; echo '{\"allow\": true}'");
    lab.user("gate.json", r#"{"hooks": {"on-file-change": [{"name": "gate", "command": "sh", "args": ["gate.sh"], "filePatterns": ["*.ts"]}]}}"#);
    let file = json!({"path": "src/a.ts", "changes": "-old\n+new\n"});
    lab.run(&["hook", "run", "fileEdited", "--data", &json!({"file": file}).to_string()]);
    lab.event(
        json!({"jsonrpc": "2.0", "method": "execute", "id": 1,
        "params": {"event": {"type": "fileEdited", "data": {}}, "context": {"file": file}}})
        .to_string(),
    );
    let whole = lab.project.join("src/a.ts").display().to_string();
    let seen = recorded(&lab, "file_edited");
    assert_eq!(seen.len(), 2, "{seen:#?}");
    for data in seen {
        assert_eq!((&data["path"], &data["file"]["absolutePath"]), (&json!(whole), &json!(whole)), "{data:#}");
        assert_eq!((&data["diff"], &data["file"]["changes"]), (&file["changes"], &file["changes"]), "{data:#}");
    }
    let seen: Value = serde_json::from_slice(&fs::read(lab.home.join("gate.seen")).unwrap()).unwrap();
    assert_eq!(seen["context"]["file"], json!(whole));
    // What says only the difference has it in the description of the file, too.
    lab.run(&["hook", "run", "fileEdited", "--data", r#"{"path": "src/a.ts", "changes": "-x"}"#]);
    assert_eq!(recorded(&lab, "file_edited")[2]["file"]["changes"], "-x");
}

#[test]
fn the_changes_of_a_file_are_read_in_every_way_an_rpc_event_can_come_in() {
    let data = json!({"path": "src/a.ts", "changes": "-old\n+new\n", "changeInfo": {"type": "modified", "size": 4}});
    let envelope = json!({"jsonrpc": "2.0", "method": "execute", "id": 1,
        "params": {"event": {"type": "fileEdited", "timestamp": 1_700_000_000_000_i64, "data": data}, "context": {}}});
    let plain = |name: &str| json!({"event": name, "data": data}).to_string();
    let lab = Lab::new();
    recorder(&lab, "file_edited");
    lab.event_from("rpc", &envelope.to_string());
    lab.event(envelope.to_string());
    lab.event(plain("fileEdited"));
    lab.event(plain("file_edited"));
    lab.run(&["hook", "run", "fileEdited", "--data", &data.to_string()]);
    lab.run(&["emit", "fileEdited", "--data", &data.to_string()]);
    // The parameters of a request say what they are, too.
    lab.event(envelope["params"].to_string());
    let seen = recorded(&lab, "file_edited");
    assert_eq!(seen.len(), 7, "{seen:#?}");
    for data in seen {
        assert_eq!((&data["diff"], &data["changes"]["size"]), (&json!("-old\n+new\n"), &json!(4)), "{data:#}");
    }
}

#[test]
fn failures_name_extension_and_hook_on_the_stream_and_in_a_log_of_errors_only() {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "log:\n  level: error\n");
    extension(&lab, "tools", "before_tool", "exit 3", &json!({}));
    lab.workspace_hook("before_tool", "guest", "true", "");
    let ran = lab.event(crate::lab::shell_event("ls"));
    let label =
        ran.stderr.lines().find_map(|line| line.strip_prefix("ollm: hook `inner` of extension `tools` (")).unwrap();
    let id = ran.hook("inner")["id"].as_str().unwrap().to_owned();
    assert!(label.starts_with(&format!("{id}) failed: exited with status 3")), "{ran:?}");
    let log = log(&lab);
    assert!(log.contains(&format!("hook `inner` of extension `tools` ({id}) failed")), "{log}");
    assert!(!log.contains("guest"), "that it was not approved is no failure: {log}");
    // One that lost its script is named in a session, too.
    fs::remove_file(lab.home.join(".ollm/extensions/tools/run.sh")).unwrap();
    talk(&lab, &[call("shell", json!({"command": "true"})), text("done")]);
    says(&run(&lab, &["--approval", "yolo"]), "hook `inner`: did not run (extension `tools`): ");
}

#[test]
fn a_hook_that_a_limit_ended_names_the_limit() {
    let cases = [
        ("head -c 5000 /dev/zero > ../big", r#", "limits": {"fileSize": 1000}"#, "its limit `fileSize` of 1000 bytes"),
        ("while :; do :; done", r#", "limits": {"cpu": "1s"}"#, "its limit `cpu` of 1s"),
        ("yes | head -c 5000", r#", "limits": {"output": 1000}"#, "its limit `output` of 1000 bytes"),
        ("sleep 100", r#", "timeout": "300ms""#, "did not answer within 300ms"),
        ("sleep 100", r#", "limits": {"time": "300ms"}"#, "was stopped; it ran into its limit `time` of 300ms"),
    ];
    for (script, more, named) in cases {
        let lab = Lab::new();
        lab.user_hook("before_tool", "greedy", script, more);
        let error = lab.event(crate::lab::shell_event("ls")).hook("greedy")["error"].as_str().unwrap().to_owned();
        assert!(error.contains(named), "{script}: {error}");
    }
    // The kernel holds root to no limit of processes.
    let lab = Lab::new();
    lab.user_hook("before_tool", "many", "echo '{\"continue\": true}'", r#", "limits": {"processes": 9}"#);
    let why = "its limit `processes` does not hold for root";
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let ran = lab.event(crate::lab::shell_event("ls"));
    assert_eq!(ran.hook("many")["warnings"].to_string().contains(why), is_root, "{ran:?}");
    assert_eq!(lab.run(&["hook", "show", "many"]).stdout.contains(why), is_root);
}

#[test]
fn a_script_that_nothing_declares_is_told_once_a_day_and_once_per_session() {
    let lab = lab(&[text("done")]);
    lab.user("lonely.sh", "echo before_tool\n");
    let line = "lonely.sh is declared by no hook file and never runs; `ollm hook add";
    for arguments in [&["hook", "plan", "before_tool"][..], &["run", "do it", "--model", "replay:../talk.jsonl"]] {
        let ran = lab.run(arguments);
        assert_eq!(ran.stderr.matches(line).count(), 1, "{arguments:?}: {ran:?}");
    }
    let chat = finish(lab.ollm(&["chat", "--model", "replay:../talk.jsonl"]), b"/session\n/session\n");
    assert_eq!(chat.stderr.matches(line).count(), 1, "{chat:?}");
    // Under another agent it stands in the trace only.
    let event =
        r#"{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}}"#;
    let ran = lab.event_from("claude", event);
    assert!(!ran.stderr.contains("lonely") && !ran.stdout.contains("lonely"), "{ran:?}");
    assert!(lab.run(&["trace", "last"]).stdout.contains(line), "{:?}", lab.run(&["trace", "last"]));
    let told = || lab.event(crate::lab::shell_event("ls")).stderr.matches(line).count();
    assert_eq!(told(), 0, "it was told today");
    let stamp = lab.home.join(".ollm/state/told/undeclared");
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_hours(25);
    fs::File::options().append(true).open(&stamp).unwrap().set_modified(yesterday).unwrap();
    assert_eq!((told(), told()), (1, 0));
}

#[test]
fn a_script_that_comes_after_an_event_is_told_on_the_same_day() {
    let lab = Lab::new();
    lab.user_hook("before_tool", "declared", "exit 0", "");
    let told = || lab.event(crate::lab::shell_event("ls")).stderr.matches("lonely.sh is declared by no hook").count();
    assert_eq!((told(), told()), (0, 0));
    lab.user("lonely.sh", "echo before_tool\n");
    assert_eq!((told(), told()), (1, 0));
}

#[test]
fn a_file_event_without_a_path_is_refused_by_a_gate_that_looks_at_paths() {
    let lab = Lab::new();
    lab.user_hook("file_edited", "types", "exit 0", r#", "filePatterns": ["*.ts"], "onFailure": "block""#);
    let ran = lab.event(r#"{"event": "file_edited", "data": {}}"#);
    assert!(ran.stderr.contains("the event has no `path`"), "{ran:?}");
    assert_eq!(ran.hook("types")["status"], "failed", "{ran:?}");
}
