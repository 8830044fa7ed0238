//! A fresh clone of a repository, and what changes in it after an approval.

use serde_json::{Value, json};

use super::{CANARY, ID, canaries, guests, judged, lab, standing};
use crate::lab::{Lab, finish, hook_file, python, shell_event};

/// One of each kind: kept names, other spellings, and events that only some dialects know.
const EVENTS: &[&str] = &[
    "session_start",
    "session_end",
    "before_agent",
    "after_agent",
    "before_model",
    "after_model",
    "before_tool_selection",
    "before_tool",
    "after_tool",
    "pre_compress",
    "post_compress",
    "context_overflow",
    "notification",
    "approval_request",
    "error",
    "file_created",
    "file_edited",
    "file_deleted",
    "git_commit",
    "user_triggered",
    "subagent_start",
    "subagent_stop",
    "custom",
];

/// A repository with a hook for every event in every file that is read, and everything that could speak for it.
fn hostile() -> Lab {
    let lab = Lab::new();
    lab.workspace("guest.sh", CANARY);
    let entry = json!({"name": "guest", "command": "sh", "args": ["guest.sh"], "trusted": true, "enabled": true});
    let all: Value =
        EVENTS.iter().map(|event| ((*event).to_owned(), json!([entry]))).collect::<serde_json::Map<_, _>>().into();
    lab.workspace("guest.json", json!({"hooks": all, "trusted": true}).to_string());
    lab.workspace("more.yaml", json!({"hooks": all}).to_string());
    lab.workspace("trusted/guest.sh", CANARY);
    lab.workspace("trusted/guest.json", json!({"hooks": all}).to_string());
    let shell = json!([{"matcher": "*", "hooks": [{"type": "command", "command": CANARY}]}]);
    let names = [
        "PreToolUse",
        "PostToolUse",
        "UserPromptSubmit",
        "Stop",
        "SessionStart",
        "SessionEnd",
        "Notification",
        "PreCompact",
    ];
    let settings: Value =
        names.iter().map(|event| ((*event).to_owned(), shell.clone())).collect::<serde_json::Map<_, _>>().into();
    for place in ["settings.json", "settings.local.json"] {
        lab.write(&format!("project/.config/agent/{place}"), json!({"hooks": settings}).to_string());
    }
    lab.write("project/.ollm/config.yaml", "hooks: {trustWorkspace: true, untrusted: skip, enabled: true}\n");
    lab.write("project/.ollm/trusted-hooks.json", r#"{"version": 1, "approvals": []}"#);
    lab.write(
        "project/.ollm/settings/mcp.json",
        json!({"mcpServers": {"x": {"command": "sh", "args": ["-c", CANARY]}}}).to_string(),
    );
    lab.write(
        "project/.ollm/extensions/x/manifest.json",
        json!({"name": "x", "version": "1.0.0", "description": "x", "hooks": all, "mcpServers": {"y": {"command": "sh", "args": ["-c", CANARY]}}})
            .to_string(),
    );
    lab.write("project/.ollm/extensions/x/guest.sh", CANARY);
    let line = json!({"type": "runCommand", "command": "sh guest.sh"});
    lab.workspace("modern.json", json!({"name": "m", "eventType": "promptSubmit", "action": line}).to_string());
    lab.workspace("old.kiro.hook", json!({"name": "o", "when": {"type": "agentStop"}, "then": line}).to_string());
    lab.write("project/.env", "OLLM_HOME=.ollm\nHOME=.\n");
    lab
}

/// Everything that only looks.
fn look_around(lab: &Lab) {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &[],
        &["hook"],
        &["hook", "--help"],
        &["hook", "run", "--help"],
        &["hook", "list"],
        &["hook", "list", "--json"],
        &["hook", "trust", "--list"],
        &["hook", "trust", "--list", "--json"],
        &["hook", "trust", "--all"],
        &["hook", "trust", "--review"],
        &["hook", "test", "--all"],
        &["hook", "test", "guest"],
        &["hook", "trigger", "guest"],
        &["hook", "add", "before_tool", "guest.sh", "--project", "--name", "added"],
        &["emit", "deploy"],
        &["emit", "notification", "--data", "{\"event_type\": \"status\", \"message\": \"x\"}"],
        &["trace", "list"],
        &["config", "show"],
        &["config", "validate"],
        &["schema", "hooks"],
        &["mcp", "list"],
        &["mcp", "status"],
        &["mcp", "tools"],
        &["mcp", "start", "x"],
        &["mcp", "call", "x", "y"],
        &["ext", "list"],
        &["ext", "list", "--json"],
        &["ext", "enable", "x"],
        &["ext", "test", "x"],
        &["ext", "validate", "x"],
        &["skill", "list"],
        &["run", "hello", "--model", "replay:/dev/null", "--approval", "yolo"],
        &["session", "list"],
        &["demo"],
        &["demo", "--json"],
    ] {
        lab.run(arguments);
        assert_eq!(canaries(lab), 0, "{arguments:?}");
    }
    let ids = guests(lab);
    assert!(ids.len() > EVENTS.len() * 3 / 2, "{ids:?}");
    for id in ids {
        lab.run(&["hook", "show", &id]);
        lab.run(&["hook", "trust", &id]);
    }
    assert_eq!(canaries(lab), 0, "show and trust");
}

/// Passes every event in every way.
fn all_events(lab: &Lab) {
    for event in EVENTS {
        lab.run(&["hook", "plan", event]);
        let ran = lab.run(&["hook", "run", event, "--explain"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stderr.contains("did not run: not approved"), "{ran:?}");
        let answer = ran.answer();
        assert_eq!(answer["hooks"], json!([]), "{event}");
        assert!(answer["skipped"].as_array().unwrap().iter().any(|skip| skip["reason"] == "untrusted"), "{answer}");
    }
    lab.event(shell_event("ls"));
    lab.event_from("gate", r#"{"version": "1.0.0", "event": "pre-tool-call", "context": {"tool": "shell"}}"#);
    lab.event_from("agent", r#"{"hook_event_name": "PreToolUse", "tool_name": "shell", "tool_input": {}}"#);
    lab.event_from("ollm", &shell_event("ls"));
    assert_eq!(canaries(lab), 0);
}

#[test]
fn a01_nothing_of_a_fresh_clone_is_started_by_any_command() {
    let lab = hostile();
    look_around(&lab);
    all_events(&lab);
    assert!(!lab.home.join(".ollm/trusted-hooks.json").exists());
    lab.write("home/.ollm/config.yaml", "hooks: {trustWorkspace: true}\n");
    for event in EVENTS {
        lab.run(&["hook", "run", event]);
        assert!(canaries(&lab) >= 1, "the canary is alive at {event}");
    }
}

#[test]
fn a02_without_a_person_nothing_is_trusted_either() {
    let lab = hostile();
    let signs = ["CI", "CONTINUOUS_INTEGRATION", "GITHUB_ACTIONS", "GITLAB_CI", "BUILD_NUMBER", "OLLM_TRUST_WORKSPACE"];
    let lab = signs.iter().fold(lab, |lab, sign| lab.set(sign, "true"));
    look_around(&lab);
    all_events(&lab);
}

#[test]
fn a03_a_project_cannot_loosen_what_the_user_set() {
    let lab = lab();
    lab.user_hook("before_tool", "own", "printf '{\"continue\": false, \"systemMessage\": \"no\"}'", "");
    let config = "trust: all\nmanaged: true\nhooks:\n  enabled: false\n  trustWorkspace: true\n  untrusted: skip\n  on_failure: allow\n  whitelist: [sh, evil]\n";
    lab.write("project/.ollm/config.yaml", config);
    let ran = lab.event(shell_event("ls"));
    assert_eq!((judged(&lab, &ran).as_str(), ran.code), ("untrusted", 2));
    for (line, key) in [(4, "enabled"), (5, "trustWorkspace"), (6, "untrusted"), (8, "whitelist")] {
        let place = format!("config.yaml:{line}:");
        let said =
            ran.stderr.lines().any(|said| said.contains(&place) && said.contains(&format!("`{key}` is ignored")));
        assert!(said, "{key}: {}", ran.stderr);
    }
}

#[test]
fn a03_a_project_cannot_take_the_place_of_a_hook_of_the_user() {
    let lab = Lab::new();
    lab.user_hook("before_tool", "own", "printf '{\"continue\": false}'", r#", "id": "own""#);
    for more in [r#", "id": "own""#, r#", "id": "own", "enabled": false"#] {
        lab.workspace_hook("before_tool", "own", CANARY, more);
        lab.workspace("0.json", hook_file("before_tool", "own", more));
        lab.workspace("0.sh", CANARY);
        let ran = lab.event(shell_event("ls"));
        assert_eq!((ran.code, &ran.hook("own")["source"]), (2, &json!("user")), "{ran:?}");
        assert_eq!(canaries(&lab), 0);
    }
}

#[test]
fn a04_the_script_is_found_behind_options() {
    for (command, args, name) in [
        ("sh", r#"["-e", "guest.sh"]"#, "guest.sh"),
        ("bash", r#"["--norc", "-e", "guest.sh"]"#, "guest.sh"),
        ("bash", r#"["-o", "pipefail", "./guest.sh", "x"]"#, "guest.sh"),
        ("sh", r#"["sub/../guest.sh"]"#, "guest.sh"),
        ("python3", r#"["-u", "-W", "ignore", "guest.py"]"#, "guest.py"),
        ("./guest.sh", "[]", "guest.sh"),
        ("guest.sh", "[]", "guest.sh"),
    ] {
        let lab = Lab::new();
        lab.workspace("sub/x", "");
        let script = |more: &str| match name {
            "guest.py" => format!("open('canary', 'a').write('1\\n'){more}\n"),
            _ => format!("#!/bin/sh\n{CANARY}{more}\n"),
        };
        lab.write_executable(&format!("project/.ollm/hooks/{name}"), &script(""));
        lab.workspace(
            "guest.json",
            format!(r#"{{"hooks": {{"before_tool": [{{"name": "guest", "command": "{command}", "args": {args}}}]}}}}"#),
        );
        lab.approve(ID);
        assert_eq!(standing(&lab), "ran", "{command} {args}");
        lab.workspace(name, script(" #"));
        assert_eq!(standing(&lab), "modified", "{command} {args}");
    }
}

#[test]
fn a04_a_program_of_the_project_is_covered_however_it_is_named() {
    let script = |more: &str| format!("#!/bin/sh\n{CANARY}{more}\n");
    for (name, is_on_path) in [("check", false), ("bash", true)] {
        let lab = Lab::new();
        let program = lab.write_executable(&format!("project/scripts/{name}"), &script(""));
        let command = if is_on_path { name } else { program.to_str().unwrap() };
        let entry = json!({"name": "guest", "command": command, "args": ["-c", "true"]});
        lab.workspace("guest.json", json!({"hooks": {"before_tool": [entry]}}).to_string());
        let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
        let lab = lab.set("PATH", &path);
        lab.approve(ID);
        assert_eq!(standing(&lab), "ran", "{command}");
        lab.write(&format!("project/scripts/{name}"), script(" #"));
        assert_eq!(standing(&lab), "modified", "{command}");
    }
}

#[test]
fn a05_a_changed_input_takes_the_approval_back_whether_or_not_it_is_declared() {
    const ID: &str = "workspace:hooks.json:before_tool:guest";
    let lab = Lab::new();
    lab.workspace("guest.sh", ". \"${0%/*}/lib.sh\"");
    for declared in [r#", "inputs": ["lib.sh"]"#, ""] {
        lab.workspace("lib.sh", CANARY);
        lab.workspace("hooks.json", hook_file("before_tool", "guest", declared));
        lab.approve(ID);
        assert_eq!(standing(&lab), "ran", "{declared}");
        lab.workspace("lib.sh", format!("{CANARY} #"));
        assert_eq!(standing(&lab), "modified", "{declared}");
    }
}

#[test]
fn a06_the_order_of_hooks_and_of_files_does_not_matter() {
    let lab = lab();
    lab.approve(ID);
    lab.workspace("0.sh", "");
    lab.workspace("0.json", hook_file("before_tool", "0", r#", "priority": "critical""#));
    let guest: Value = serde_json::from_str(&hook_file("before_tool", "guest", "")).unwrap();
    let other = json!({"name": "other", "command": "sh", "args": ["0.sh"]});
    let hooks = json!({"hooks": {"before_tool": [other, guest["hooks"]["before_tool"][0], other]}});
    lab.workspace("guest.json", hooks.to_string());
    assert_eq!(standing(&lab), "ran");
}

#[test]
fn a_script_whose_first_line_gives_options_to_env_is_approved_and_runs() {
    for options in ["-S -i /bin/sh", "-S -u X sh", "-S FOO=1 sh", "-S -i FOO='a b' PATH=/usr/bin:/bin sh"] {
        let lab = Lab::new().set("PATH", "/usr/bin:/bin");
        lab.write_executable("project/.ollm/hooks/guest", &format!("#!/usr/bin/env {options}\n{CANARY}\n"));
        lab.workspace("guest.json", r#"{"hooks": {"before_tool": [{"name": "guest", "command": "./guest"}]}}"#);
        lab.approve(ID);
        let listed = lab.run(&["hook", "list"]);
        assert!(!listed.stdout.contains("cannot run"), "{options}: {listed:?}");
        assert_eq!(standing(&lab), "ran", "{options}");
    }
}

#[test]
fn a07_an_interpreter_found_by_env_is_part_of_what_was_approved() {
    let lab = Lab::new();
    lab.write_executable("bin/lang", &format!("#!/bin/sh\n{CANARY}\n"));
    lab.write_executable("project/.ollm/hooks/guest", "#!/usr/bin/env lang\n");
    lab.workspace("guest.json", r#"{"hooks": {"before_tool": [{"name": "guest", "command": "./guest"}]}}"#);
    let path =
        |first: &str| format!("{}:{}:/usr/bin:/bin", lab.root.join(first).display(), lab.root.join("bin").display());
    let with = |first: &str, arguments: &[&str], input: &[u8]| {
        let mut command = lab.ollm(arguments);
        command.env("PATH", path(first));
        finish(command, input)
    };
    let shown = with("early", &["hook", "show", ID, "--json"], b"").answer();
    let digest = shown["digest"].as_str().unwrap();
    assert_eq!(with("early", &["hook", "trust", ID, "--digest", digest], b"").code, 0);
    let event = shell_event("ls");
    assert_eq!(judged(&lab, &with("early", &["hook", "run"], event.as_bytes())), "ran");
    lab.write_executable("early/lang", &format!("#!/bin/sh\n{CANARY}\n"));
    assert_eq!(judged(&lab, &with("early", &["hook", "run"], event.as_bytes())), "modified");
    assert_eq!(judged(&lab, &with("nowhere", &["hook", "run"], event.as_bytes())), "ran");
}

#[test]
fn a_hook_in_python_is_approved_with_what_it_imports() {
    let lab = Lab::new();
    lab.workspace("guest.py", "import rules\nopen('canary', 'w').write(rules.VALUE + '\\n')\n");
    lab.workspace("rules.py", "VALUE = 'approved'\n");
    let program = python();
    let entry = json!({"name": "guest", "command": program, "args": ["guest.py"], "inputs": ["rules.py"]});
    lab.workspace("guest.json", json!({"hooks": {"before_tool": [entry]}}).to_string());
    lab.approve(ID);
    assert_eq!([standing(&lab), standing(&lab)], ["ran", "ran"]);
    lab.workspace("rules.py", "VALUE = 'changed'\n");
    assert_eq!(standing(&lab), "modified");
}

#[test]
fn d16_nothing_that_the_git_configuration_of_a_repository_names_runs() {
    let lab = Lab::new();
    let canary = lab.write_executable("canary.sh", "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\n");
    let run = canary.display();
    let config = format!(
        "[core]\n\tfsmonitor = {run}\n\thooksPath = {}\n\tpager = {run}\n\teditor = {run}\n\tsshCommand = {run}\n\
         [diff]\n\texternal = {run}\n[diff \"x\"]\n\ttextconv = {run}\n[alias]\n\tstatus = !{run}\n[credential]\n\thelper = {run}\n",
        lab.root.join("githooks").display()
    );
    for file in ["HEAD", "objects/info/packs", "refs/heads/none"] {
        lab.write(&format!("project/.git/{file}"), if file == "HEAD" { "ref: refs/heads/x\n" } else { "" });
    }
    lab.write("project/.git/config", config);
    lab.write("project/.gitattributes", "* diff=x\n");
    for hook in ["pre-commit", "post-checkout", "fsmonitor-watchman"] {
        lab.write_executable(&format!("project/.git/hooks/{hook}"), &format!("#!/bin/sh\n{run}\n"));
        lab.write_executable(&format!("githooks/{hook}"), &format!("#!/bin/sh\n{run}\n"));
    }
    lab.user("git.json", r#"{"hooks": {"before_tool": [{"name": "git", "command": "sh", "args": ["ok.sh"], "if": "git.branch == 'x'"}]}}"#);
    lab.user("ok.sh", "exit 0\n");
    lab.write("talk.jsonl", r#"{"content": "done"}"#);
    for arguments in [
        &["hook", "list"] as &[&str],
        &["hook", "plan", "before_tool"],
        &["hook", "run", "before_tool"],
        &["hook", "run", "git_commit"],
        &["mcp", "list"],
        &["config", "show"],
        &["run", "do it", "--model", "replay:../talk.jsonl"],
    ] {
        lab.run(arguments);
        assert!(!lab.root.join("ran").exists(), "{arguments:?}");
    }
}

#[test]
fn s09_hooks_of_the_project_that_an_event_names_run_wherever_we_were_started() {
    let lab = Lab::new();
    lab.workspace_hook("before_tool", "guest", "exit 0", "");
    lab.approve("guest");
    lab.write("elsewhere/.git/HEAD", "");
    let event =
        json!({"event": "before_tool", "data": {"tool_name": "shell", "args": {"command": "ls"}, "cwd": lab.project}});
    for folder in ["elsewhere", "."] {
        let mut command = lab.ollm(&["hook", "run"]);
        command.current_dir(lab.root.join(folder));
        finish(command, event.to_string().as_bytes()).hook("guest");
    }
}
