//! Hooks in the settings files of shell-command agents, in the four places they are read from.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::lab::{Lab, eventually, shell_event};

const PROJECT_LOCAL: &str = "project/.config/agent/settings.local.json";
const PROJECT: &str = "project/.config/agent/settings.json";
const USER: &str = "home/.config/agent/settings.json";
const USER_CLI: &str = "home/.config/cli-agent/settings.json";

fn settings(event: &str, matcher: &str, commands: &[&str]) -> String {
    let hooks: Vec<_> = commands.iter().map(|command| json!({"type": "command", "command": command})).collect();
    json!({"hooks": {event: [{"matcher": matcher, "hooks": hooks}]}}).to_string()
}

fn bash_event(command: &str) -> String {
    json!({"event": "before_tool", "data": {"tool_name": "bash_execute", "args": {"command": command}}}).to_string()
}

#[test]
fn the_four_places_are_read_and_the_projects_need_approval() {
    let lab = Lab::new();
    for (place, word) in [(PROJECT_LOCAL, "local"), (PROJECT, "project"), (USER, "user"), (USER_CLI, "cli")] {
        lab.write(place, settings("PreToolUse", "*", &[&format!("echo {word} >> ran")]));
    }
    let ran = lab.event(bash_event("ls"));
    assert_eq!(fs::read_to_string(lab.project.join("ran")).unwrap(), "user\ncli\n");
    let answer = ran.answer();
    let skipped: Vec<_> =
        answer["skipped"].as_array().unwrap().iter().map(|skip| (&skip["reason"], &skip["name"])).collect();
    assert_eq!(json!(skipped), json!([["untrusted", "echo local >> ran"], ["untrusted", "echo project >> ran"]]));
    for skip in answer["skipped"].as_array().unwrap() {
        lab.approve(skip["id"].as_str().unwrap());
    }
    lab.event(bash_event("ls"));
    assert_eq!(fs::read_to_string(lab.project.join("ran")).unwrap(), "user\ncli\nuser\ncli\nlocal\nproject\n");
}

#[test]
fn the_configuration_example_works() {
    let lab = Lab::new();
    lab.write_executable("bin/notify-send", "#!/bin/sh\necho \"$1\" >> ~/notified\n");
    lab.write_executable("bin/logger", "#!/bin/sh\necho \"$1\" >> ~/logged\n");
    lab.write(
        USER,
        r#"{
  "hooks": {
    "PreToolUse": [{"matcher": "bash_execute", "hooks": [{"type": "command", "command": "echo 'About to execute bash command'"}]}],
    "PostToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "notify-send 'Tool completed: {{tool_name}}'"}]}],
    "Notification": [{"matcher": "*", "hooks": [{"type": "command", "command": "logger 'CLI-Agent: {{message}}'"}]}],
    "Stop": [{"matcher": "*", "hooks": [{"type": "command", "command": "echo 'Response complete' >> ~/.cli-agent-log"}]}]
  }
}"#,
    );
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", lab.root.join("bin").display());
    let lab = lab.set("PATH", &path);
    for (event, data) in [
        ("PreToolUse", json!({"tool_name": "bash_execute", "args": {"command": "ls"}})),
        ("PostToolUse", json!({"tool_name": "it's \"$(id)\"", "result": "x"})),
        ("Notification", json!({"message": "done `id`", "event_type": "status"})),
        ("Stop", json!({})),
    ] {
        let ran = lab.run(&["hook", "run", event, "--data", &data.to_string()]);
        assert_eq!((ran.code, &ran.answer()["hooks"][0]["status"]), (0, &json!("ok")), "{event}: {ran:?}");
    }
    let read = |name: &str| fs::read_to_string(lab.home.join(name)).unwrap();
    assert_eq!(read("notified"), "Tool completed: it's \"$(id)\"\n");
    // A hook of a notification runs in the background.
    let logged = lab.home.join("logged");
    eventually("the notification is logged", || fs::read_to_string(&logged).is_ok_and(|text| text.ends_with('\n')));
    assert_eq!(read("logged"), "CLI-Agent: done `id`\n");
    assert_eq!(read(".cli-agent-log"), "Response complete\n");
}

#[test]
fn the_workflow_example_formats_then_stages_in_order() {
    let lab = Lab::new();
    lab.write_executable("bin/black", "#!/bin/sh\necho \"black $*\" >> ~/steps\n");
    lab.write_executable("bin/git", "#!/bin/sh\necho \"git $*\" >> ~/steps\n");
    let commands =
        ["black {{tool_args.file_path}} 2>/dev/null || true", "git add {{tool_args.file_path}} 2>/dev/null || true"];
    lab.write(USER, settings("PostToolUse", "write_file|replace_in_file", &commands));
    let path = format!("{}:/usr/bin:/bin", lab.root.join("bin").display());
    let lab = lab.set("PATH", &path);
    let event = |tool: &str, file: &str| {
        let data = json!({"tool_name": tool, "args": {"file_path": file}, "result": "ok"}).to_string();
        lab.run(&["hook", "run", "PostToolUse", "--data", &data])
    };
    assert_eq!(event("write_file", "a b; touch pwned").code, 0);
    assert_eq!(event("read_file", "never").answer()["hooks"], json!([]));
    let steps = fs::read_to_string(lab.home.join("steps")).unwrap();
    assert_eq!(steps, "black a b; touch pwned\ngit add a b; touch pwned\n");
    assert!(!lab.project.join("pwned").exists());
}

#[test]
fn the_audit_example_logs_and_values_never_become_shell() {
    let lab = Lab::new();
    let command = "echo '[$(date)] BASH: {{tool_args.command}}' >> ~/.cli-agent-audit.log";
    lab.write(USER_CLI, settings("PreToolUse", "bash_execute", &[command]));
    for hostile in ["ls", "'; touch pwned; '", "$(touch pwned)", "\"; touch pwned #", "`touch pwned`"] {
        // What the built-in guard cannot parse it asks about; the hook runs all the same.
        assert!([0, 2].contains(&lab.event(bash_event(hostile)).code));
    }
    let log = fs::read_to_string(lab.home.join(".cli-agent-audit.log")).unwrap();
    let expected = "[$(date)] BASH: ls\n[$(date)] BASH: '; touch pwned; '\n[$(date)] BASH: $(touch pwned)\n\
                    [$(date)] BASH: \"; touch pwned #\n[$(date)] BASH: `touch pwned`\n";
    assert_eq!(log, expected);
    assert!(!lab.project.join("pwned").exists());
}

#[test]
fn the_security_check_example_blocks_with_its_reason_and_metadata() {
    let lab = Lab::new();
    let check = lab.write_executable(
        "bin/security-check",
        "#!/bin/sh\ncase $1 in *'rm -rf'*) cat <<'EOF'\n{\n  \"continue\": false,\n  \"decision\": \"block\",\n  \
         \"reason\": \"Command contains potentially dangerous operations\",\n  \"metadata\": {\"risk_level\": \"high\", \
         \"blocked_patterns\": [\"rm -rf\", \"sudo\"]}\n}\nEOF\n;; esac\n",
    );
    lab.write(
        USER,
        settings("PreToolUse", "bash_execute", &[&format!("{} '{{{{tool_args.command}}}}'", check.display())]),
    );
    let refused = lab.event(bash_event("sudo rm -rf /"));
    let answer = refused.answer();
    assert_eq!(refused.code, 2);
    assert!(answer["reason"].as_str().unwrap().ends_with("Command contains potentially dangerous operations"));
    let own = answer["hooks"].as_array().unwrap().iter().find(|hook| hook["source"] == "user").unwrap().clone();
    assert_eq!(own["metadata"]["risk_level"], "high");
    assert_eq!(lab.event(bash_event("ls")).code, 0);
}

#[test]
fn a_program_that_is_not_installed_warns_and_continues() {
    let lab = Lab::new();
    let commands = ["slack-cli send '#ai-agents' '{{tool_name}}'"];
    lab.write(USER, settings("PostToolUse", "*", &commands));
    let ran = lab.run(&["hook", "run", "PostToolUse", "--data", r#"{"tool_name": "shell"}"#]);
    let answer = ran.answer();
    assert_eq!((ran.code, &answer["hooks"][0]["status"]), (0, &json!("failed")));
    assert!(answer["hooks"][0]["error"].as_str().unwrap().contains("exited with status 127"), "{answer}");
}

#[test]
fn nobody_waits_for_a_hook_at_a_notification_and_it_runs_all_the_same() {
    let lab = Lab::new();
    let (go, done) = (lab.root.join("go"), lab.root.join("done"));
    let command = format!(
        "while [ ! -e '{}' ]; do sleep 0.02; done; printf '%s' {{{{message}}}} > '{}'",
        go.display(),
        done.display()
    );
    lab.write(USER, settings("Notification", "*", &[&command]));
    let ran = lab.run(&["hook", "run", "Notification", "--data", r#"{"message": "it's done"}"#]);
    let hook = &ran.answer()["hooks"][0];
    assert_eq!((ran.code, &hook["status"], &hook["async"]), (0, &json!("ok"), &json!(true)));
    assert!(!done.exists());
    std::fs::write(&go, "").unwrap();
    eventually("the hook has run", || std::fs::read_to_string(&done).is_ok_and(|text| text == "it's done"));
}

#[test]
fn a_hook_nobody_waits_for_still_has_a_deadline() {
    let lab = Lab::new();
    let (pid, ended) = (lab.root.join("pid"), lab.root.join("ended"));
    let command = format!("trap 'echo > {}' TERM; echo $$ > '{}'; sleep 1000 & wait", ended.display(), pid.display());
    let hooks =
        json!({"hooks": {"Notification": [{"hooks": [{"type": "command", "command": command, "timeout": 1}]}]}});
    lab.write(USER, hooks.to_string());
    let ran = lab.run(&["hook", "run", "Notification", "--data", "{}"]);
    assert_eq!(ran.code, 0);
    eventually("it was told to end", || ended.exists());
    lab.assert_nobody_is_left();
}

#[test]
fn matchers_choose_by_tool() {
    for (matcher, fits, fits_not) in [
        ("*", &["shell", "mcp__git__push"][..], &[][..]),
        ("shell", &["shell"], &["shell2", "my_shell"]),
        ("write_*|shell", &["write_file", "shell"], &["read_file"]),
        ("builtin:*", &["shell"], &["mcp__git__push"]),
        ("mcp__*", &["mcp__git__push"], &["shell"]),
        ("re:^sh(ell)?$", &["sh", "shell"], &["shells"]),
    ] {
        let lab = Lab::new();
        lab.write(USER, settings("PreToolUse", matcher, &["exit 2"]));
        let code = |tool: &str| {
            lab.run(&["hook", "run", "PreToolUse", "--data", &json!({"tool_name": tool}).to_string()]).code
        };
        for tool in fits {
            assert_eq!(code(tool), 2, "{matcher} fits {tool}");
        }
        for tool in fits_not {
            assert_eq!(code(tool), 0, "{matcher} does not fit {tool}");
        }
    }
}

#[test]
fn a_bare_timeout_counts_seconds_here_and_milliseconds_in_hook_files() {
    let lab = Lab::with_hook("before_tool", "ms", "");
    lab.user("ms.json", crate::lab::hook_file("before_tool", "ms", r#", "timeout": 7"#));
    lab.write(
        USER,
        r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true", "timeout": 7}]}]}}"#,
    );
    let times: Vec<_> = lab.planned("before_tool").iter().map(|hook| hook["timeoutMs"].clone()).collect();
    assert_eq!(json!(times), json!([7.0, 7000.0]));
}

#[test]
fn the_timeout_comes_from_the_hook_then_the_configuration_then_the_dialect() {
    let lab = Lab::with_hook("before_tool", "a-ollm", "");
    lab.user_hook("pre-tool-call", "b-gate", "", "");
    lab.user_hook("before_tool", "c-own", "", r#", "timeout": "250ms""#);
    let times = |lab: &Lab| {
        let planned = lab.planned("before_tool");
        json!(planned.iter().map(|hook| (hook["timeoutMs"].clone(), hook["timeoutFrom"].clone())).collect::<Vec<_>>())
    };
    assert_eq!(times(&lab), json!([[30000.0, "dialect"], [5000.0, "dialect"], [250.0, "hook"]]));
    lab.write("home/.ollm/config.yaml", "hooks:\n  timeout: 8000\n");
    assert_eq!(times(&lab), json!([[8000.0, "config"], [8000.0, "config"], [250.0, "hook"]]));
    let lab = lab.set("HOOKS_TIMEOUT", "3");
    assert_eq!(times(&lab), json!([[3000.0, "config"], [3000.0, "config"], [250.0, "hook"]]));
    let lab = lab.set("OLLM_HOOKS_TIMEOUT", "4s");
    assert_eq!(times(&lab), json!([[4000.0, "config"], [4000.0, "config"], [250.0, "hook"]]));
}

#[test]
fn a_project_may_shorten_the_time_of_its_own_hooks_only() {
    let lab = Lab::with_hook("before_tool", "mine", "");
    lab.workspace_hook("before_tool", "theirs", "", "");
    lab.approve("theirs");
    lab.write("project/.ollm/config.yaml", "hooks: {timeout: 10}\n");
    let times: Vec<_> = lab.planned("before_tool").iter().map(|hook| hook["timeoutMs"].clone()).collect();
    assert_eq!(json!(times), json!([30000.0, 10.0]));
    lab.write("project/.ollm/config.yaml", "hooks: {timeout: 99999}\n");
    let ran = lab.run(&["hook", "plan", "before_tool", "--json"]);
    assert_eq!(ran.answer()["stages"][1][0]["timeoutMs"], 30000.0);
    assert!(
        ran.stderr.contains("config.yaml:1:18: `timeout` is ignored in a project: it may only be shorter"),
        "{}",
        ran.stderr
    );
}

#[test]
fn hooks_can_be_switched_off_by_the_user_but_by_no_project_and_no_variable() {
    let lab = Lab::with_hook("before_tool", "guard", "exit 1");
    let skip = |lab: &Lab| lab.event(shell_event("ls")).answer()["skipped"][0].clone();
    lab.write("project/.ollm/config.yaml", "hooks:\n  enabled: false\n");
    let ran = lab.event(shell_event("ls"));
    assert_eq!(ran.hook("guard")["status"], "failed");
    assert!(ran.stderr.contains("`enabled` is ignored in a project"), "{}", ran.stderr);
    lab.write("home/.ollm/config.yaml", "hooks:\n  enabled: false\n");
    assert_eq!(skip(&lab)["detail"], "hooks.enabled is false (~/.ollm/config.yaml:2:12)");
    let ran = lab.event(shell_event("ls"));
    assert!(ran.stderr.contains("hooks are off, except for the built-in guards"), "{}", ran.stderr);
    let on = lab.set("OLLM_HOOKS_ENABLED", "true");
    assert_eq!(on.event(shell_event("ls")).hook("guard")["status"], "failed", "a variable may be stricter");
}

#[test]
fn s07_no_variable_switches_a_guard_off() {
    for name in ["HOOKS_ENABLED", "OLLM_HOOKS_ENABLED"] {
        let lab = Lab::with_hook("before_tool", "mine", "exit 1").set(name, "false");
        let ran = lab.event(shell_event("rm -rf ~"));
        assert_eq!((ran.code, ran.hook("destructive-commands")["status"].as_str()), (2, Some("blocked")), "{name}");
        assert_eq!(lab.event(shell_event("ls")).hook("mine")["status"], "failed", "{name}");
    }
    let lab = Lab::new().set("OLLM_HOOKS_ENABLED", "false");
    let told = lab.event(shell_event("ls")).stderr;
    assert!(told.contains("OLLM_HOOKS_ENABLED: the variable cannot loosen `hooks.enabled`; it is ignored"), "{told}");
    let lab = Lab::new().set("OLLM_HOOKS_UNTRUSTED", "skip");
    lab.write("home/.ollm/config.yaml", "hooks: {untrusted: block}\n");
    lab.workspace_hook("before_tool", "guest", "exit 0", "");
    assert_eq!(lab.event(shell_event("ls")).code, 2);
}

#[test]
fn s07_hooks_that_are_off_leave_the_guards_on_and_what_is_off_is_said_in_one_line() {
    let lab = Lab::with_hook("before_tool", "mine", "exit 1");
    lab.write("home/.ollm/config.yaml", "hooks: {enabled: false}\n");
    let ran = lab.event(shell_event("rm -rf ~"));
    assert_eq!((ran.code, ran.skip("mine")["reason"].as_str()), (2, Some("disabled")));
    assert_eq!(ran.stderr.lines().filter(|line| line.contains("hooks are off")).count(), 1, "{}", ran.stderr);
    assert_eq!(lab.event_from("agent", r#"{"hook_event_name": "PreToolUse", "tool_name": "Read"}"#).stderr, "");
    lab.write("home/.ollm/config.yaml", "hooks: {guards: [self-protection]}\n");
    let ran = lab.event(shell_event("ls"));
    let line = "guard `destructive-commands` is off: hooks.guards does not name it (~/.ollm/config.yaml:1:17)";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
}

#[test]
fn settings_that_make_no_sense_are_named_and_the_default_applies() {
    let lab = Lab::with_hook("before_tool", "guard", "exit 0");
    lab.write("home/.ollm/config.yaml", "hooks:\n  timeout: soon\n  enabled: \"yes\"\n  timout: 5\n");
    let ran = lab.event(shell_event("ls"));
    assert_eq!(ran.hook("guard")["status"], "ok");
    for part in [
        "config.yaml:2:12: `timeout` must be a positive number",
        "config.yaml:3:12: `enabled` should be true or false",
        "did you mean `timeout`?",
    ] {
        assert!(ran.stderr.contains(part), "{part} is not in {}", ran.stderr);
    }
}

#[test]
fn a_security_setting_that_makes_no_sense_stops_everything_with_exit_3() {
    for setting in ["trustWorkspace: maybe", "untrusted: ignore", "whitelist: 5", "whitelist: [\"rm -rf\"]"] {
        let lab = Lab::with_hook("before_tool", "guard", "touch ran");
        lab.write("home/.ollm/config.yaml", format!("hooks:\n  {setting}\n"));
        let runs = [
            (3, lab.event(shell_event("ls"))),
            (2, lab.event_from("agent", r#"{"hook_event_name": "PreToolUse"}"#)),
            (3, lab.run(&["hook", "list"])),
        ];
        for (code, ran) in runs {
            assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{setting}");
            assert!(ran.stderr.contains("config.yaml:2:"), "{setting}: {}", ran.stderr);
        }
        assert!(!lab.project.join("ran").exists());
    }
}

#[test]
fn a_configuration_of_the_user_that_cannot_be_read_stops_everything_with_exit_3() {
    // The defaults would skip the project's hook and let the event pass, which this user forbade.
    let forbidding = "hooks:\n  untrusted: block\n";
    for (text, mode) in [
        (format!("{forbidding}model: {{\n"), 0o600),
        (format!("{forbidding}  untrusted: block\n"), 0o600),
        ("hooks: [untrusted, block]\n".to_owned(), 0o600),
        (format!("{forbidding}---\n"), 0o600),
        (forbidding.to_owned(), 0o666),
    ] {
        let lab = Lab::with_hook("before_tool", "guard", "touch ran");
        let file = lab.write("home/.ollm/config.yaml", &text);
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let runs = [
            (3, lab.event(shell_event("ls"))),
            (2, lab.event_from("agent", r#"{"hook_event_name": "PreToolUse"}"#)),
            (3, lab.run(&["hook", "list"])),
            (3, lab.run(&["mcp", "list"])),
            (3, lab.run(&["config", "validate"])),
        ];
        for (code, ran) in runs {
            assert_eq!(ran.code, code, "{text}: {}", ran.stderr);
            assert!(format!("{}{}", ran.stderr, ran.stdout).contains("config.yaml"), "{text}: {}", ran.stderr);
        }
        assert!(!lab.project.join("ran").exists());
    }
}

#[test]
fn the_whitelist_is_the_users_alone() {
    let lab = Lab::new();
    lab.user("deno.json", r#"{"hooks": {"before_tool": [{"name": "own", "command": "true"}]}}"#);
    lab.write("project/.ollm/config.yaml", "hooks: {whitelist: [\"true\"]}\n");
    let ran = lab.event(shell_event("ls"));
    assert_eq!(ran.answer()["hooks"], json!([]));
    assert!(ran.stderr.contains("command `true` is neither a path nor one of node"), "{}", ran.stderr);
    assert!(ran.stderr.contains("only the user decides which programs need no path"), "{}", ran.stderr);
    lab.write("home/.ollm/config.yaml", "hooks: {whitelist: [\"true\"]}\n");
    assert_eq!(lab.event(shell_event("ls")).hook("own")["status"], "ok");
}
