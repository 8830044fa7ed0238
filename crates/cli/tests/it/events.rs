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

/// Hooks that nobody waits for, all broken: one at the start, one at errors.
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
    let wait = r#"until grep -q '"late"' "$HOME/.ollm/trace/trace.jsonl"; do sleep 0.02; done"#;
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
    let status = lab.run(&["mcp", "status", "s", "--json"]).answer();
    assert!(!status[0]["lastFailure"]["message"].as_str().unwrap().is_empty(), "{status:#}");
    says(&lab.run(&["mcp", "status"]), "server `s` of extension `tools` failed at ");
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
    assert_eq!(said.matches("the event is not sent: it is inside 3 others that hooks sent").count(), 1, "{said}");
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
    let seen = recorded(&lab, "file_edited");
    assert_eq!(seen.len(), 6, "{seen:#?}");
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
}

#[test]
fn a_hook_that_a_limit_ended_names_the_limit() {
    let cases = [
        ("head -c 5000 /dev/zero > ../big", r#", "limits": {"fileSize": 1000}"#, "its limit `fileSize` of 1000 bytes"),
        ("while :; do :; done", r#", "limits": {"cpu": "1s"}"#, "its limit `cpu` of 1s"),
        ("yes | head -c 5000", r#", "limits": {"output": 1000}"#, "its limit `output` of 1000 bytes"),
        ("sleep 100", r#", "timeout": "300ms""#, "did not answer within 300ms"),
    ];
    for (script, more, named) in cases {
        let lab = Lab::new();
        lab.user_hook("before_tool", "greedy", script, more);
        let error = lab.event(crate::lab::shell_event("ls")).hook("greedy")["error"].as_str().unwrap().to_owned();
        assert!(error.contains(named), "{script}: {error}");
    }
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
