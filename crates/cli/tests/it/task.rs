//! `ollm run` and `ollm session` from the outside: real hooks, a written or a real HTTP model, real signals.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use testkit::{ModelReply, ModelServer, answer_events};

use crate::agent::{call, expecting, lab, run, talk, task, text};
use crate::lab::{FOREVER, Lab, Ran, finish, lines, outcome, start};

#[test]
fn an_answer_is_all_that_is_on_standard_output() {
    let ran = run(&lab(&[text("Good morning.")]), &[]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("Good morning.\n", 0), "{ran:?}");
    let ran = run(
        &lab(&[call("write_file", json!({"path": "a", "content": "x\n"})), text("Done.")]),
        &["--approval", "auto"],
    );
    assert_eq!((ran.stdout.as_str(), ran.code), ("Done.\n", 0));
    assert!(ran.stderr.contains("✓ write_file: created a") && ran.stderr.contains("+x"), "{}", ran.stderr);
}

#[test]
fn a_refused_session_or_prompt_exits_with_2_and_says_who_refused() {
    for (event, shown) in [("session_start", "session_start"), ("before_agent", "before_agent")] {
        let lab = lab(&[text("never")]);
        lab.user_hook(event, "gate", r#"echo '{"continue": false, "systemMessage": "closed"}'"#, "");
        let ran = run(&lab, &["--json"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        let answer = ran.answer();
        let seen = json!([answer["end"], answer["event"], answer["hook"], answer["reason"], answer["response"]]);
        assert_eq!(seen, json!(["refused", shown, "gate", "closed", null]));
        assert!(ran.stderr.contains(&format!("hook `gate` refused {shown}: closed")), "{}", ran.stderr);
    }
}

#[test]
fn refusals_abort_and_messages_enter_the_conversation_in_order() {
    let told = json!({"last": "Tool execution blocked by hook: not that one"});
    let first = expecting(call("shell", json!({"command": "touch x"})), json!({"contains": ["note one", "note two"]}));
    let lab = lab(&[first, expecting(text("as you wish"), told)]);
    lab.user_hook("before_agent", "a", r#"echo '{"continue": true, "systemMessage": "note one"}'"#, "");
    lab.user_hook("before_agent", "b", r#"echo '{"continue": true, "systemMessage": "note two"}'"#, "");
    lab.user_hook("before_tool", "guard", r#"echo '{"continue": false, "systemMessage": "not that one"}'"#, "");
    let ran = run(&lab, &["--approval", "yolo"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("as you wish\n", 0), "{ran:?}");
    assert!(!lab.project.join("x").exists());
    let session = lab.run(&["session", "list", "--json"]).answer()[0]["id"].as_str().unwrap().to_owned();
    let saved = lab.run(&["session", "show", &session, "--json"]).answer();
    let said: Vec<&str> =
        saved["messages"].as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(said[1..4], ["note one", "note two", "do it"]);
}

#[test]
fn what_one_hook_returns_the_next_one_sees() {
    let lab = lab(&[text("ok")]);
    lab.user_hook("before_agent", "a", r#"echo '{"continue": true, "data": {"ticket": "T-42"}}'"#, "");
    lab.user_hook("before_agent", "b", "cat > ../seen; echo '{\"continue\": true}'", "");
    assert_eq!(run(&lab, &[]).code, 0);
    let seen: Value = serde_json::from_str(&fs::read_to_string(lab.root.join("seen")).unwrap()).unwrap();
    assert_eq!((&seen["data"]["ticket"], &seen["data"]["prompt"]), (&json!("T-42"), &json!("do it")));
}

#[test]
fn hooks_get_the_data_of_their_event() {
    let lab = lab(&[
        call("write_file", json!({"path": "a", "content": "x"})),
        json!({"content": "done", "usage": {"total_tokens": 7}}),
    ]);
    let events = [
        ("session_start", &["session_id", "sessionId", "cwd", "timestamp", "session"][..]),
        ("before_agent", &["prompt", "config", "user_input"]),
        ("before_tool_selection", &["available_tools"]),
        ("before_model", &["messages", "model", "prompt"]),
        ("after_model", &["response"]),
        ("before_tool", &["tool_name", "args", "call_id"]),
        ("file_created", &["path", "changes", "diff", "file"]),
        ("after_tool", &["tool_name", "args", "result", "metrics", "execution_time", "call_id"]),
        ("after_agent", &["response", "tool_calls", "prompt", "metrics", "conversation_length", "attempt"]),
        ("session_end", &["messages", "session"]),
    ];
    for (event, _) in events {
        let name = event.replace('_', "-");
        lab.user_hook(event, &name, &format!("cat > ../{event}.seen; echo '{{\"continue\": true}}'"), "");
    }
    assert_eq!(run(&lab, &["--approval", "yolo"]).code, 0);
    for (event, fields) in events {
        let seen = fs::read_to_string(lab.root.join(format!("{event}.seen"))).unwrap();
        let seen: Value = serde_json::from_str(&seen).unwrap();
        for field in fields {
            assert!(!seen["data"][field].is_null(), "{event} has no {field}: {seen:#}");
        }
    }
}

#[test]
fn hooks_for_other_agents_tools_work_as_the_documents_write_them() {
    let lab = lab(&[
        call("shell", json!({"command": "echo hello"})),
        call("write_file", json!({"path": "a.py", "content": "x"})),
        call("edit_file", json!({"path": "a.py", "old": "x", "new": "y"})),
        text("done"),
    ]);
    lab.write(
        "home/.config/agent/settings.json",
        r#"{"hooks": {
            "PreToolUse": [{"matcher": "bash_execute", "hooks": [
                {"type": "command", "command": "echo 'BASH: {{tool_args.command}}' >> ~/audit.log"}]}],
            "PostToolUse": [{"matcher": "write_file|replace_in_file", "hooks": [
                {"type": "command", "command": "echo {{tool_name}} {{tool_args.file_path}} >> ~/audit.log"}]}]}}"#,
    );
    let ran = run(&lab, &["--approval", "yolo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let log = fs::read_to_string(lab.home.join("audit.log")).unwrap();
    assert_eq!(log, "BASH: echo hello\nwrite_file a.py\nedit_file a.py\n");
}

#[test]
fn a_hook_can_change_arguments_and_filter_tools() {
    let first = expecting(call("shell", json!({"command": "echo bad"})), json!({"tools": ["shell", "todo"]}));
    let lab = lab(&[first, expecting(text("ok"), json!({"last": "good"}))]);
    lab.user_hook(
        "before_tool_selection",
        "few",
        r#"echo '{"continue": true, "data": {"available_tools": ["shell", "todo"]}}'"#,
        "",
    );
    lab.write(
        "home/.config/agent/settings.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "shell", "hooks": [{"type": "command",
            "command": "echo '{\"decision\": \"modify\", \"modified_args\": {\"command\": \"echo good\"}}'"}]}]}}"#,
    );
    let ran = run(&lab, &["--approval", "yolo"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("ok\n", 0), "{ran:?}");
}

#[test]
fn what_is_piped_in_is_context_or_the_prompt_itself() {
    let answers = [expecting(text("seen"), json!({"last": ["do it", "from the pipe"]}))];
    let ran = finish(lab(&answers).ollm(&task(&[])), b"from the pipe");
    assert_eq!((ran.stdout.as_str(), ran.code), ("seen\n", 0), "{ran:?}");
    let answers = [expecting(text("seen"), json!({"last": "from the pipe"}))];
    let ran = finish(lab(&answers).ollm(&["run", "--model", "replay:../talk.jsonl"]), b"from the pipe");
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = lab(&[]).run(&["run", "--model", "replay:../talk.jsonl"]);
    assert_eq!(ran.code, 64, "{ran:?}");
}

#[test]
fn where_nobody_can_be_asked_nothing_is_changed_and_the_way_out_is_told() {
    let told = json!({"last": ["Tool execution not approved", "the approval mode auto or yolo"]});
    let lab = lab(&[call("write_file", json!({"path": "a", "content": "x"})), expecting(text("ok"), told)]);
    let ran = run(&lab, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!lab.project.join("a").exists());
}

#[test]
fn a_recorded_conversation_can_be_replayed_and_an_expectation_that_fails_is_a_finding() {
    let lab = lab(&[call("todo", json!({"items": []})), text("done")]);
    assert_eq!(run(&lab, &["--record", "../recorded.jsonl"]).code, 0);
    let ran = lab.run(&["run", "do it", "--model", "replay:../recorded.jsonl"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("done\n", 0));
    assert_eq!(run(&lab, &["--record", "../recorded.jsonl"]).code, 5, "an old recording is not overwritten");
    talk(&lab, &[expecting(text("x"), json!({"last": "something else"}))]);
    let ran = run(&lab, &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("talk.jsonl:1: expected the last message to contain"), "{}", ran.stderr);
}

#[test]
fn a_conversation_goes_on_by_id_or_as_the_latest_of_the_folder() {
    let lab = lab(&[text("one")]);
    let id = run(&lab, &["--json"]).answer()["session"].as_str().unwrap().to_owned();
    talk(&lab, &[expecting(text("two"), json!({"contains": ["one", "do it"], "messages": 4}))]);
    assert_eq!(run(&lab, &["--resume", &id]).code, 0);
    talk(&lab, &[expecting(text("three"), json!({"contains": ["one", "two"], "messages": 6}))]);
    let ran = run(&lab, &["--continue", "--json"]);
    assert_eq!(ran.answer()["session"], json!(id), "{ran:?}");
    let shown = lab.run(&["session", "show", &id]);
    assert!(shown.stdout.contains("[assistant]\nthree"), "{shown:?}");
    assert_eq!(lab.run(&["session", "list"]).stdout.lines().count(), 1);
    assert_eq!(run(&lab, &["--resume", "nonsense"]).code, 64);
    assert_eq!(lab.run(&["session", "show", "../x"]).code, 64);
}

#[test]
fn a_stream_of_json_tells_everything_in_order() {
    let ran = run(&lab(&[text("Good morning.")]), &["--stream-json"]);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["event"].as_str().or(line["type"].as_str()).unwrap()).collect();
    let expected = [
        "session_start",
        "before_agent",
        "before_tool_selection",
        "before_model",
        "text",
        "answer",
        "after_model",
        "after_agent",
        "session_end",
        "end",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(lines.last().unwrap()["response"], "Good morning.");
}

#[test]
fn a_model_behind_real_http_works_and_one_that_is_not_there_is_told_of() {
    let arguments = json!({"command": "echo from the shell"}).to_string();
    let server = ModelServer::start(vec![
        ModelReply::stream(&answer_events("Let me see.", &[("c", "shell", &arguments)], 3), 7),
        ModelReply::stream(&answer_events("All done.", &[], 2), 3),
    ])
    .unwrap();
    let lab = Lab::new().set("OLLM_MODEL_KEY", "k-12345678").set("OPENAI_API_KEY", "sk-not-for-you");
    let model = format!("openai:m@{}", server.url());
    let ran = lab.run(&["run", "go", "--model", &model, "--approval", "yolo"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("Let me see.\nAll done.\n", 0), "{ran:?}");
    let asked = server.asked();
    assert_eq!(asked[0].authorization.as_deref(), Some("Bearer k-12345678"), "a server gets only its own key");
    assert_eq!(asked[1].body["messages"].as_array().unwrap().last().unwrap()["content"], "from the shell");

    let lab = lab.set("OLLAMA_HOST", "127.0.0.1:9");
    for arguments in [&["run", "go"][..], &["run", "go", "--model", "ollama:x"]] {
        let ran = lab.run(arguments);
        assert_eq!(ran.code, 5, "{ran:?}");
        assert!(ran.stderr.contains("openai:NAME@http://HOST:PORT/v1"), "{}", ran.stderr);
    }
    assert_eq!(lab.run(&["run", "go", "--model", "nonsense:x@http://127.0.0.1:9/v1"]).code, 64);
}

#[test]
fn an_agent_cannot_approve_hooks_and_secrets_stay_out_of_its_shell_and_transcript() {
    let lab = lab(&[
        call("shell", json!({"command": "echo agent=$OLLM_AGENT token=$GITHUB_TOKEN"})),
        text("the token is ghp-hush-hush-hush"),
    ])
    .set("GITHUB_TOKEN", "ghp-hush-hush-hush");
    let ran = run(&lab, &["--approval", "yolo", "--json"]);
    let id = ran.answer()["session"].as_str().unwrap().to_owned();
    let saved = lab.run(&["session", "show", &id]).stdout;
    assert!(saved.contains(&format!("agent={id} token=\n")), "{saved}");
    assert!(!saved.contains("ghp-hush-hush-hush"), "{saved}");
}

#[test]
fn an_interruption_ends_the_tool_and_leaves_everything_in_order() {
    let lab = lab(&[]);
    let fifo = lab.fifo("told");
    let command = format!("echo started > '{}'; {FOREVER}", fifo.display());
    talk(&lab, &[call("shell", json!({"command": command})), text("never")]);
    lab.user_hook("session_end", "end", "touch ../ended; echo '{\"continue\": true}'", "");
    let mut child = start(lab.ollm(&task(&["--approval", "yolo"])));
    drop(child.stdin.take());
    assert_eq!(lines(&fifo, 1), ["started"]);
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let ran = outcome(child);
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(lab.root.join("ended").exists(), "the session has its end");
    lab.assert_nobody_is_left();
    let list = lab.run(&["session", "list", "--json"]).answer();
    let saved = lab.run(&["session", "show", list[0]["id"].as_str().unwrap(), "--json"]).answer();
    assert_eq!(saved["messages"].as_array().unwrap().last().unwrap()["role"], "tool", "{saved:#}");
}

#[test]
fn a_killed_session_is_saved_up_to_the_call_under_way_and_leaves_nobody() {
    let lab = lab(&[]);
    let fifo = lab.fifo("told");
    let command = format!("echo started > '{}'; {FOREVER}", fifo.display());
    talk(&lab, &[call("shell", json!({"command": command}))]);
    let mut child = start(lab.ollm(&task(&["--approval", "yolo"])));
    drop(child.stdin.take());
    assert_eq!(lines(&fifo, 1), ["started"]);
    child.kill().unwrap();
    outcome(child);
    lab.assert_nobody_is_left();
    talk(&lab, &[expecting(text("again"), json!({"contains": ["do it", "the session ended before the call did"]}))]);
    let ran = run(&lab, &["--continue"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("again\n", 0), "{ran:?}");
}

#[test]
fn an_untrusted_hook_does_not_run_and_the_person_knows() {
    let lab = lab(&[text("ok")]);
    lab.workspace_hook("before_agent", "guest", "touch ../ran", "");
    let ran = run(&lab, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!lab.root.join("ran").exists());
    assert!(ran.stderr.contains("hook `guest`: did not run"), "{}", ran.stderr);
}

#[test]
fn an_approved_hook_whose_matcher_is_another_agents_word_for_a_tool_runs() {
    let lab = lab(&[call("shell", json!({"command": "touch done"})), text("ok")]);
    let refuse = "printf '{\"continue\": false, \"systemMessage\": \"no\"}'";
    lab.workspace_hook("before_tool", "guest", refuse, r#", "matcher": "bash_execute""#);
    lab.approve("guest");
    run(&lab, &["--approval", "yolo"]);
    assert!(!lab.project.join("done").exists());
}

/// What a chat says to these lines.
fn chat(lab: &Lab, input: &str) -> Ran {
    finish(lab.ollm(&["chat", "--model", "replay:../talk.jsonl", "--approval", "yolo"]), input.as_bytes())
}

#[test]
fn a_chat_goes_on_line_by_line_until_the_end() {
    let lab = lab(&[
        text("one"),
        expecting(text("two"), json!({"last": "a long\nquestion"})),
        call("shell", json!({"command": "echo tool"})),
        text("three"),
    ]);
    lab.user_hook("before_tool", "gate", r#"echo '{"continue": false, "systemMessage": "no shell"}'"#, "");
    let ran =
        chat(&lab, "first\n\na long\\\nquestion\n/tools\n/session\n/nonsense\n/usr/bin is a path\n/quit\nnever\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    let said: Vec<&str> = ran.stdout.lines().filter(|line| ["one", "two", "three"].contains(line)).collect();
    assert_eq!(said, ["one", "two", "three"], "{ran:?}");
    assert!(ran.stdout.contains("write_file") && ran.stdout.contains("there is no command /nonsense"), "{ran:?}");
    assert!(ran.stderr.contains("hook `gate` refused shell {\"command\":\"echo tool\"}: no shell"), "{ran:?}");
    assert_eq!(lab.run(&["session", "list", "--json"]).answer().as_array().unwrap().len(), 1);
}

#[test]
fn a_chat_can_change_its_model_and_survives_a_wrong_one() {
    let lab = lab(&[text("one")]);
    lab.write("other.jsonl", json!({"content": "two", "expect": {"contains": "one"}}).to_string());
    let ran = chat(&lab, "hi\n/model replay:../missing.jsonl\n/model replay:../other.jsonl\nhi again\n/model\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("there is no such file") && ran.stdout.contains("\ntwo\n"), "{ran:?}");
    assert!(ran.stdout.trim_end().ends_with("other.jsonl"), "{ran:?}");
}

#[test]
fn an_interruption_ends_the_hook_under_way_at_once_whatever_the_event() {
    let signals = [("-INT", 130), ("-TERM", 143), ("-HUP", 129)].into_iter().cycle();
    let events = ["session_start", "before_agent", "before_model", "before_tool", "after_agent"];
    for (event, (signal, code)) in events.into_iter().zip(signals) {
        let lab = lab(&[call("list_dir", json!({"path": "."})), text("never")]);
        let fifo = lab.fifo("told");
        let stuck = format!("echo started > '{}'; {FOREVER}", fifo.display());
        lab.user_hook(event, "stuck", &stuck, r#", "timeout": 600000, "onFailure": "block""#);
        lab.user_hook("session_end", "end", "touch ../ended; echo '{\"continue\": true}'", "");
        let mut child = start(lab.ollm(&task(&["--approval", "yolo"])));
        drop(child.stdin.take());
        assert_eq!(lines(&fifo, 1), ["started"], "{event}");
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let ran = outcome(child);
        assert_eq!(ran.code, code, "{event}: {ran:?}");
        assert!(ran.stderr.contains("was interrupted"), "{event}: {ran:?}");
        assert_eq!(lab.root.join("ended").exists(), event != "session_start", "{event}: {ran:?}");
        lab.assert_nobody_is_left();
    }
}

#[test]
fn hooks_on_the_way_out_hold_nobody_up_for_long() {
    let lab = lab(&[text("never")]);
    let fifo = lab.fifo("told");
    let stuck = format!("echo started > '{}'; {FOREVER}", fifo.display());
    lab.user_hook("before_agent", "stuck", &stuck, r#", "timeout": 600000"#);
    lab.user_hook("session_end", "end", FOREVER, r#", "timeout": 600000"#);
    let mut child = start(lab.ollm(&task(&[])));
    drop(child.stdin.take());
    assert_eq!(lines(&fifo, 1), ["started"]);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ran = outcome(child);
    assert_eq!(ran.code, 130, "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn a_second_interruption_ends_us_even_if_a_hook_does_not_come_back() {
    let lab = lab(&[text("never")]);
    let fifo = lab.fifo("told");
    let script = format!("echo started > '{}'; trap '' TERM INT; {FOREVER}", fifo.display());
    lab.user_hook("before_agent", "stuck", &script, r#", "timeout": 600000"#);
    let mut child = start(lab.ollm(&task(&[])));
    drop(child.stdin.take());
    assert_eq!(lines(&fifo, 1), ["started"]);
    // Two of a kind that come at once would count as one.
    for signal in ["-INT", "-TERM"] {
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    }
    let ran = outcome(child);
    assert!([130, 143].contains(&ran.code), "{ran:?}");
    lab.assert_nobody_is_left();
}

#[test]
fn a_person_can_send_an_event_of_their_own_in_a_chat() {
    let lab = lab(&[text("never mind")]);
    lab.user_hook("custom", "heard", "cat > ../heard; echo '{\"continue\": true}'", "");
    let input = b"/emit\n/trigger\n/emit deployed {broken\n/emit deployed {\"target\": \"staging\"}\n";
    let ran = finish(lab.ollm(&["chat", "--model", "replay:../talk.jsonl"]), input);
    assert_eq!(ran.code, 0, "{ran:?}");
    for part in ["write /emit NAME [JSON]", "write /trigger NAME", "what follows the name is not valid JSON"] {
        assert!(ran.stdout.contains(part), "{part} is missing: {ran:?}");
    }
    let heard = std::fs::read_to_string(lab.root.join("heard")).unwrap();
    assert!(heard.contains("deployed") && heard.contains("staging"), "{heard}");
}

#[test]
fn a_person_can_trigger_hooks_in_a_chat() {
    let lab = lab(&[text("never mind")]);
    lab.user_hook("user_triggered", "button", "cat > ../pressed; echo '{\"continue\": true}'", "");
    let ran = chat(&lab, "/trigger deploy\n/trigger\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    let seen: Value = serde_json::from_str(&fs::read_to_string(lab.root.join("pressed")).unwrap()).unwrap();
    assert_eq!((&seen["event"], &seen["data"]["eventName"]), (&json!("user_triggered"), &json!("deploy")));
    assert!(ran.stdout.contains("write /trigger NAME"), "a name is needed: {ran:?}");
}
