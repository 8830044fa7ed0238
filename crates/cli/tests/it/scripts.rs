//! Hooks as people write them, in sh, Python and Node.

use std::fs;

use serde_json::json;

use crate::lab::{Lab, Ran, shell_event};

const INTERCEPT_JS: (&str, &str) = ("intercept.js", include_str!("hooks/intercept.js"));
const INTERCEPT_PY: (&str, &str) = ("intercept.py", include_str!("hooks/intercept.py"));
const LOG: (&str, &str) = ("log-model-calls.js", include_str!("hooks/log-model-calls.js"));
const BLOCK: (&str, &str) = ("block-dangerous.js", include_str!("hooks/block-dangerous.js"));
const VALIDATE: (&str, &str) = ("validate.js", include_str!("hooks/validate.js"));
const TIME: (&str, &str) = ("time.js", include_str!("hooks/time.js"));
const CONTEXT: (&str, &str) = ("add-context.py", include_str!("hooks/add-context.py"));
const MINIMAL: (&str, &str) = ("minimal.sh", include_str!("hooks/minimal.sh"));
const COMPLETE: (&str, &str) = ("complete.js", include_str!("hooks/complete.js"));

const MODEL_EVENT: &str = r#"{"event": "before_model", "data": {"sessionId": "abc123", "model": "llama2", "messages": [{"role": "user", "content": "Hello"}]}}"#;

/// A lab in which the user has this script, declared for an event and named `hook`.
fn lab_with((file, content): (&str, &str), event: &str) -> Lab {
    let lab = Lab::new();
    let command = match file.rsplit('.').next().unwrap() {
        "js" => "node",
        "py" => "python3",
        _ => "bash",
    };
    lab.user(file, content);
    let entry = json!({"name": "hook", "command": command, "args": [file], "timeout": "25s"});
    lab.user("hooks.json", json!({"hooks": {event: [entry]}}).to_string());
    lab
}

fn status(ran: &Ran) -> String {
    ran.hook("hook")["status"].as_str().unwrap().to_owned()
}

#[test]
fn the_node_example_works_though_it_logs_to_standard_output() {
    let ran = lab_with(INTERCEPT_JS, "before_model").event(MODEL_EVENT);
    let answer = ran.answer();
    assert_eq!((status(&ran).as_str(), ran.code), ("ok", 0));
    assert_eq!(answer["systemMessage"], "Hook executed for model: llama2");
    assert_eq!(answer["data"], json!({"hookExecuted": true}));
    assert_eq!(ran.hook("hook")["warnings"], json!(["there is other text in front of the JSON object"]));
}

#[test]
fn the_python_example_works() {
    let ran = lab_with(INTERCEPT_PY, "before_model").event(MODEL_EVENT);
    let answer = ran.answer();
    assert_eq!((status(&ran).as_str(), ran.code, ran.stderr.as_str()), ("ok", 0, ""));
    assert_eq!(answer["systemMessage"], "Hook executed for model: llama2");
    assert_eq!(answer["data"], json!({"hookExecuted": true}));
}

#[test]
fn the_examples_continue_at_events_they_do_not_know() {
    for script in [INTERCEPT_JS, INTERCEPT_PY, TIME, CONTEXT] {
        let ran = lab_with(script, "session_start").run(&["hook", "run", "session_start"]);
        assert_eq!((status(&ran).as_str(), ran.code), ("ok", 0), "{}", script.0);
    }
}

#[test]
fn an_example_that_meets_data_it_cannot_use_reports_an_error_and_continues() {
    let ran = lab_with(INTERCEPT_PY, "before_model").run(&["hook", "run", "before_model"]);
    let hook = ran.hook("hook");
    assert_eq!((hook["status"].as_str(), hook["error"].as_str(), ran.code), (Some("failed"), Some("'model'"), 0));
}

#[test]
fn the_logging_hook_logs() {
    let lab = lab_with(LOG, "before_model");
    let ran = lab.event(MODEL_EVENT);
    assert_eq!((status(&ran).as_str(), ran.code), ("ok", 0));
    let log = fs::read_to_string(lab.home.join(".ollm/model-calls.log")).unwrap();
    assert!(log.ends_with(" - Model: llama2\n"), "{log}");
}

#[test]
fn the_validation_hooks_refuse_dangerous_commands_and_no_others() {
    for (script, reason) in [(BLOCK, "Blocked dangerous command: rm -rf /"), (VALIDATE, "Blocked dangerous command")] {
        let lab = lab_with(script, "before_tool");
        let refused = lab.event(shell_event("sudo rm -rf / --no-preserve-root"));
        // The built-in guard has refused too, and first.
        let answer = refused.answer();
        assert!(answer["reason"].as_str().unwrap().ends_with(reason), "{}: {answer}", script.0);
        let statuses: Vec<_> = answer["hooks"].as_array().unwrap().iter().map(|hook| hook["status"].clone()).collect();
        assert!(statuses.len() > 1 && statuses.iter().all(|status| status == "blocked"), "{}: {answer}", script.0);
        assert_eq!((refused.code, refused.stderr.as_str()), (2, ""), "{}", script.0);
        let passed = lab.event(shell_event("ls"));
        assert_eq!((status(&passed).as_str(), passed.code), ("ok", 0), "{}", script.0);
    }
}

#[test]
fn the_context_hooks_add_to_the_conversation() {
    let told = lab_with(TIME, "before_model").event(MODEL_EVENT).answer()["systemMessage"].as_str().unwrap().to_owned();
    assert!(told.starts_with("Current time: 20"), "{told}");
    let lab = lab_with(CONTEXT, "before_model").set("USER", "ada");
    let told = lab.event(MODEL_EVENT).answer()["systemMessage"].as_str().unwrap().to_owned();
    let folder = format!("Working directory: {}", lab.project.display());
    assert_eq!(told.lines().skip(1).collect::<Vec<_>>(), [folder.as_str(), "User: ada"]);
}

#[test]
fn the_minimal_gate_hook_allows() {
    let ran = lab_with(MINIMAL, "pre-tool-call").event(shell_event("ls"));
    assert_eq!((status(&ran).as_str(), ran.code), ("ok", 0));
    assert_eq!(ran.answer()["messages"][0]["text"], "OK");
}

#[test]
fn the_complete_gate_hook_allows_and_reports_its_metadata() {
    let ran = lab_with(COMPLETE, "pre-tool-call").event(shell_event("ls"));
    assert_eq!((status(&ran).as_str(), ran.code), ("ok", 0));
    assert_eq!(ran.answer()["messages"][0]["text"], "Success");
    assert!(ran.hook("hook")["metadata"]["timestamp"].is_string());
}

#[test]
fn the_complete_gate_hook_refuses_what_it_cannot_read() {
    let ran = lab_with(COMPLETE, "before_tool").event(shell_event("ls"));
    assert_eq!((status(&ran).as_str(), ran.code), ("blocked", 2));
    assert_eq!(ran.answer()["reason"], "Error: Invalid input");
}

#[test]
fn an_executable_script_is_a_command_of_its_own() {
    let lab = Lab::new();
    lab.write_executable("home/.ollm/hooks/guard", "#!/usr/bin/env python3\nprint('{\"continue\": false}')\n");
    lab.user("guard.json", r#"{"hooks": {"before_tool": [{"name": "hook", "command": "./guard"}]}}"#);
    let ran = lab.event(shell_event("ls"));
    assert_eq!((status(&ran).as_str(), ran.code), ("blocked", 2));
}

#[test]
fn a_hook_runs_in_the_folder_of_the_event_and_knows_its_surroundings() {
    let lab = Lab::with_hook("before_tool", "hook", "env > seen; pwd >> seen; printf '{\"continue\": true}'");
    lab.write("project/deep/down/x", "");
    let cwd = lab.project.join("deep/down");
    let event = json!({"event": "before_tool", "data": {"cwd": cwd}}).to_string();
    lab.event(event);
    let seen = fs::read_to_string(cwd.join("seen")).unwrap();
    for line in [
        "OLLM_AGENT=ollm".to_owned(),
        "OLLM_EVENT=before_tool".to_owned(),
        "OLLM_HOOK_ID=user:hook.json:before_tool:hook".to_owned(),
        format!("OLLM_HOOK_DIR={}", lab.home.join(".ollm/hooks").display()),
        format!("OLLM_PROJECT_DIR={}", lab.project.display()),
        cwd.display().to_string(),
    ] {
        assert!(seen.lines().any(|seen| seen == line), "{line} is not in {seen}");
    }
}

#[test]
fn arguments_with_templates_arrive_in_one_piece() {
    let lab = Lab::new();
    lab.user(
        "show.py",
        "import json, sys\njson.dump({'continue': True, 'data': {'argv': sys.argv[1:]}}, sys.stdout)\n",
    );
    lab.user(
        "show.json",
        r#"{"hooks": {"before_tool": [{"name": "hook", "command": "python3", "args": ["show.py", "{{tool_args.command}}", "x={{tool_name}}", "{{nothing}}"]}]}}"#,
    );
    let hostile = "'; \"$(touch pwned)\" `id` %PATH% !x! \n -- -rf {{tool_name}} é";
    let ran = lab.event(shell_event(hostile));
    assert_eq!(ran.answer()["data"]["argv"], json!([hostile, "x=shell", ""]));
    for name in ["args", "toolArgs", "tool_args"] {
        let data = json!({"tool_name": "shell", name: {"command": hostile}}).to_string();
        let ran = lab.run(&["hook", "run", "before_tool", "--data", &data]);
        assert_eq!(ran.answer()["data"]["argv"], json!([hostile, "x=shell", ""]), "{name}");
    }
    assert!(!lab.project.join("pwned").exists());
}
