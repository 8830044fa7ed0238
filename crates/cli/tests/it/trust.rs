//! Nothing that came with a repository runs before a person approved exactly its content; secrets stay where they are.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, Ran, finish, hook_file, python, shell_event};

const ID: &str = "workspace:guest.json:before_tool:guest";
const CANARY: &str = "touch canary; printf '{\"continue\": true}'";

fn lab() -> Lab {
    let lab = Lab::new();
    lab.workspace_hook("before_tool", "guest", CANARY, "");
    lab
}

/// Whether the project's hook runs, and if not, why.
fn standing(lab: &Lab) -> String {
    judged(lab, &lab.event(shell_event("ls")))
}

fn judged(lab: &Lab, ran: &Ran) -> String {
    let canary = lab.project.join("canary");
    let did_run = fs::remove_file(canary).is_ok();
    let answer = ran.answer();
    let reason = answer["skipped"].as_array().unwrap().iter().find(|skip| skip["name"] == "guest");
    assert_eq!(did_run, reason.is_none(), "{answer}");
    reason.map_or_else(|| "ran".to_owned(), |skip| skip["reason"].as_str().unwrap().to_owned())
}

#[test]
fn no_command_runs_what_came_with_a_repository() {
    let lab = Lab::new();
    let events = ["session_start", "before_tool", "PreToolUse", "pre-tool-call", "after_tool", "Stop", "custom"];
    let entry = json!({"name": "guest", "command": "sh", "args": ["guest.sh"]});
    lab.workspace("guest.sh", CANARY);
    lab.workspace("guest.json", json!({"hooks": events.map(|event| (event.to_owned(), json!([entry]))).into_iter().collect::<serde_json::Map<_, _>>()}).to_string());
    lab.write(
        "project/.config/agent/settings.json",
        r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "touch canary"}]}]}}"#,
    );
    let lab = lab.set("CI", "true");
    for event in events {
        let ran = lab.run(&["hook", "run", event]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stderr.contains("did not run: not approved"), "{ran:?}");
        lab.run(&["hook", "plan", event]);
    }
    lab.run(&["hook", "list"]);
    lab.run(&["hook", "show", "workspace:guest.json:before_tool:guest"]);
    lab.run(&["hook", "trust", "workspace:guest.json:before_tool:guest"]);
    lab.run(&["demo"]);
    assert!(!lab.project.join("canary").exists());
}

#[test]
fn an_approved_hook_runs_and_one_changed_byte_takes_that_back() {
    let lab = lab();
    assert_eq!(standing(&lab), "untrusted");
    lab.approve(ID);
    assert_eq!(standing(&lab), "ran");
    lab.workspace("guest.sh", CANARY.replace("touch", "Touch"));
    let ran = lab.event(shell_event("ls"));
    assert_eq!(judged(&lab, &ran), "modified");
    assert!(ran.stderr.contains("workspace hook `guest` did not run: changed since it was approved"), "{}", ran.stderr);
    lab.workspace("guest.sh", CANARY);
    assert_eq!(standing(&lab), "ran");
}

#[test]
fn an_approval_covers_the_whole_definition() {
    for more in [
        r#", "timeout": 5"#,
        r#", "env": {"A": "1"}"#,
        r#", "matcher": "shell""#,
        r#", "onFailure": "block""#,
        r#", "passEnv": ["A"]"#,
        r#", "cwd": "..""#,
    ] {
        let lab = lab();
        lab.approve(ID);
        lab.workspace("guest.json", hook_file("before_tool", "guest", more));
        assert_eq!(standing(&lab), "modified", "{more}");
    }
    let lab = lab();
    lab.approve(ID);
    lab.workspace("guest.json", hook_file("before_tool", "guest", r#", "description": "says what it does""#));
    assert_eq!(standing(&lab), "ran", "a description changes nothing");
}

#[test]
fn declared_inputs_are_covered_and_the_place_in_the_file_is_not() {
    let lab = lab();
    lab.workspace("rules.json", "[]");
    lab.workspace("guest.json", hook_file("before_tool", "guest", r#", "inputs": ["rules.json"]"#));
    lab.approve(ID);
    let entry: Value =
        serde_json::from_str(&hook_file("before_tool", "guest", r#", "inputs": ["rules.json"]"#)).unwrap();
    let other = json!({"name": "other", "command": "sh", "args": ["guest.sh", "x"]});
    let both = json!({"hooks": {"after_tool": [other], "before_tool": [other, entry["hooks"]["before_tool"][0]]}});
    lab.workspace("guest.json", format!("\n\n{both:#}"));
    assert_eq!(standing(&lab), "ran", "another hook beside it");
    lab.workspace("rules.json", "[1]");
    assert_eq!(standing(&lab), "modified", "a changed input");
}

#[test]
fn another_interpreter_earlier_on_the_path_takes_the_approval_back() {
    let lab = Lab::new();
    lab.workspace("guest.py", "open('canary', 'w')\nprint('{\"continue\": true}')\n");
    lab.workspace(
        "guest.json",
        r#"{"hooks": {"before_tool": [{"name": "guest", "command": "python3", "args": ["guest.py"]}]}}"#,
    );
    lab.approve(ID);
    assert_eq!(standing(&lab), "ran");
    fs::create_dir(lab.root.join("bin")).unwrap();
    std::os::unix::fs::symlink(python(), lab.root.join("bin/python3")).unwrap();
    let mut command = lab.ollm(&["hook", "run"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", lab.root.join("bin").display()));
    let ran = finish(command, shell_event("ls").as_bytes());
    assert_eq!(judged(&lab, &ran), "modified");
    let detail = ran.skip("guest")["detail"].as_str().unwrap().to_owned();
    let other =
        format!("changed since it was approved: {} would run it, no longer ", lab.root.join("bin/python3").display());
    assert!(detail.starts_with(&other), "{detail}");
}

#[test]
fn an_approval_can_be_withdrawn() {
    let lab = lab();
    lab.approve(ID);
    let ran = lab.run(&["hook", "untrust", ID]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, &*format!("ollm: hook `{ID}` is no longer approved\n")));
    assert_eq!(standing(&lab), "untrusted");
}

#[test]
fn a_wrong_digest_approves_nothing() {
    let lab = lab();
    let zeros = format!("sha256:{}", "0".repeat(64));
    for digest in [zeros.as_str(), "", "sha256:", "yes"] {
        let ran = lab.run(&["hook", "trust", ID, "--digest", digest]);
        assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{digest}");
    }
    assert_eq!(standing(&lab), "untrusted");
    let digest = lab.digest(ID);
    lab.approve(ID);
    assert_eq!(lab.run(&["hook", "trust", ID, "--digest", &zeros]).code, 4, "what is approved is something else");
    assert_eq!(lab.run(&["hook", "trust", ID, "--digest", &digest]).code, 0);
    lab.workspace("guest.sh", "touch canary; echo other");
    assert_eq!(lab.run(&["hook", "trust", ID, "--digest", &digest]).code, 4, "a digest of what it was before");
}

#[test]
fn without_a_terminal_nothing_is_approved() {
    let lab = lab();
    let ran = finish(lab.ollm(&["hook", "trust", ID]), b"y\n");
    assert_eq!(ran.code, 4);
    assert_eq!(standing(&lab), "untrusted");
}

#[test]
fn approvals_that_cannot_be_read_approve_nothing_and_are_not_overwritten() {
    let lab = lab();
    lab.approve(ID);
    let file = lab.home.join(".ollm/trusted-hooks.json");
    let good = fs::read_to_string(&file).unwrap();
    for bad in [
        &good[..good.len() / 2],
        "",
        "[]",
        "{\"version\": 1}",
        &good.replace("\"version\": 1", "\"version\": 99"),
        "{\"version\": 1, \"approvals\": 5}",
    ] {
        fs::write(&file, bad).unwrap();
        let ran = lab.event(shell_event("ls"));
        assert_eq!(judged(&lab, &ran), "untrusted", "{bad}");
        assert!(ran.stderr.contains("trusted-hooks.json"), "{bad}: {}", ran.stderr);
        let list = lab.run(&["hook", "list"]);
        assert!(list.stdout.contains("untrusted") && list.stderr.contains("trusted-hooks.json"), "{bad}: {list:?}");
        let trust = lab.run(&["hook", "trust", ID, "--digest", &lab.digest(ID)]);
        assert_eq!(trust.code, 5, "{bad}: {trust:?}");
        assert_eq!(lab.run(&["hook", "untrust", ID]).code, 5, "{bad}");
        assert_eq!(fs::read_to_string(&file).unwrap(), bad);
    }
    fs::write(&file, &good).unwrap();
    assert_eq!(standing(&lab), "ran");
}

#[test]
fn the_approvals_are_the_owners_alone_and_in_the_documented_form() {
    use std::os::unix::fs::PermissionsExt;
    let lab = lab().set("USER", "ada");
    lab.approve(ID);
    let file = lab.home.join(".ollm/trusted-hooks.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let stored: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let entry = &stored["approvals"][0];
    assert_eq!(stored["version"], 1);
    assert_eq!(entry["source"], lab.project.join(".ollm/hooks/guest.sh").display().to_string());
    assert_eq!((&entry["approvedBy"], &entry["digest"]), (&json!("ada"), &json!(lab.digest(ID))));
    assert!(
        entry["hash"].as_str().unwrap().starts_with("sha256:") && entry["approvedAt"].as_str().unwrap().ends_with('Z')
    );
}

#[test]
fn a_home_inside_the_project_is_ignored_with_a_notice() {
    let lab = lab();
    lab.write("project/fake/config.yaml", "hooks: {trustWorkspace: true}\n");
    lab.write("project/fake/hooks/own.json", r#"{"hooks": {"before_tool": [{"name": "own", "command": "touch"}]}}"#);
    for home in [lab.project.join("fake").display().to_string(), "fake".to_owned(), "./x/../fake".to_owned()] {
        let lab = lab_again(&lab, &home);
        let ran = lab.event(shell_event("ls"));
        assert_eq!(judged(&lab, &ran), "untrusted", "{home}");
        assert!(ran.stderr.contains("lies inside the project and is ignored"), "{home}: {}", ran.stderr);
        for arguments in [&["hook", "list"][..], &["hook", "show", ID], &["hook", "plan", "before_tool"]] {
            let ran = lab.run(arguments);
            assert!(ran.stderr.contains("lies inside the project and is ignored"), "{arguments:?}: {}", ran.stderr);
        }
    }
}

/// The same kind of lab with `OLLM_HOME` set.
fn lab_again(like: &Lab, home: &str) -> Lab {
    let fresh = lab();
    fresh.write("project/fake/config.yaml", "hooks: {trustWorkspace: true}\n");
    fresh.write("project/x/y", "");
    let home = home.replace(&like.project.display().to_string(), &fresh.project.display().to_string());
    fresh.set("OLLM_HOME", &home)
}

#[test]
fn a_home_that_a_link_puts_inside_the_project_is_ignored_too() {
    for make_it in [true, false] {
        let lab = lab();
        if make_it {
            lab.write("project/fake/config.yaml", "hooks: {trustWorkspace: true}\n");
        }
        let link = lab.root.join("link");
        std::os::unix::fs::symlink("project/fake", &link).unwrap();
        let lab = lab.set("OLLM_HOME", &link.join("deep").display().to_string());
        let ran = lab.event(shell_event("ls"));
        assert!(ran.stderr.contains("lies inside the project and is ignored"), "{make_it}: {}", ran.stderr);
    }
}

#[test]
fn a_home_elsewhere_is_used() {
    let lab = lab();
    lab.write("moved/config.yaml", "hooks: {trustWorkspace: true, box: declared}\n");
    let moved = lab.root.join("moved").display().to_string();
    assert_eq!(standing(&lab.set("OLLM_HOME", &moved)), "ran");
}

#[test]
fn only_the_user_can_trust_whole_workspaces() {
    let lab = lab();
    lab.write("project/.ollm/config.yaml", "hooks:\n  trustWorkspace: true\n  untrusted: skip\n");
    let ran = lab.event(shell_event("ls"));
    assert_eq!(judged(&lab, &ran), "untrusted");
    assert!(ran.stderr.contains("config.yaml:2:19: `trustWorkspace` is ignored in a project"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`untrusted` is ignored in a project"), "{}", ran.stderr);
    fs::remove_file(lab.project.join(".ollm/config.yaml")).unwrap();
    for (setting, expected) in [
        ("true".to_owned(), "ran"),
        (format!("[\"{}\"]", lab.root.display()), "ran"),
        (format!("[\"{}\"]", lab.project.display()), "ran"),
        (format!("[\"{}\"]", lab.home.display()), "untrusted"),
        (format!("[\"{}x\"]", lab.project.display()), "untrusted"),
        ("false".to_owned(), "untrusted"),
    ] {
        lab.write("home/.ollm/config.yaml", format!("hooks:\n  trustWorkspace: {setting}\n"));
        assert_eq!(standing(&lab), expected, "{setting}");
    }
}

#[test]
fn a_workspace_may_say_that_it_is_not_trusted() {
    let lab = lab();
    lab.write("home/.ollm/config.yaml", "hooks: {trustWorkspace: true}\n");
    lab.write("project/.ollm/config.yaml", "hooks: {trustWorkspace: false}\n");
    assert_eq!(standing(&lab), "untrusted");
}

#[test]
fn a_file_cannot_vouch_for_itself() {
    let lab = lab();
    lab.workspace("guest.json", hook_file("before_tool", "guest", r#", "trusted": true"#));
    let ran = lab.event(shell_event("ls"));
    assert_eq!(judged(&lab, &ran), "untrusted");
    assert!(ran.stderr.contains("`trusted` is ignored: a project cannot vouch for itself"), "{}", ran.stderr);
}

#[test]
fn unapproved_hooks_can_be_made_to_block() {
    for file in ["home/.ollm/config.yaml", "project/.ollm/config.yaml"] {
        let lab = lab();
        lab.write(file, "hooks:\n  untrusted: block\n");
        let ran = lab.event(shell_event("ls"));
        assert_eq!((judged(&lab, &ran).as_str(), ran.code), ("untrusted", 2), "{file}");
        let reason = ran.answer()["reason"].as_str().unwrap().to_owned();
        assert!(reason.starts_with("hook `guest` is not approved"), "{file}: {reason}");
        lab.approve(ID);
        assert_eq!(lab.event(shell_event("ls")).code, 0, "{file}");
    }
}

#[test]
fn an_agent_may_not_approve_for_itself() {
    for sign in ["OLLM_AGENT", "CLAUDECODE", "GEMINI_CLI", "CODEX_SANDBOX"] {
        let lab = lab();
        let digest = lab.digest(ID);
        let lab = lab.set(sign, "1");
        for arguments in
            [&["hook", "trust", ID, "--digest", &digest][..], &["hook", "trust", ID], &["hook", "untrust", ID]]
        {
            let ran = lab.run(arguments);
            assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{arguments:?}");
            assert!(ran.stderr.contains(&format!("{sign} is set")), "{}", ran.stderr);
        }
        assert_eq!(standing(&lab), "untrusted");
    }
}

#[test]
fn a_hook_cannot_approve_another() {
    let lab = lab();
    let digest = lab.digest(ID);
    let script = format!(
        "{} hook trust '{ID}' --digest {digest} 2>said; echo $? >> said; printf '{{\"continue\": true}}'",
        crate::lab::OLLM
    );
    lab.user_hook("session_start", "helper", &script, "");
    lab.run(&["hook", "run", "session_start"]);
    let said = fs::read_to_string(lab.project.join("said")).unwrap();
    assert!(said.contains("an agent may not approve hooks") && said.ends_with("4\n"), "{said}");
    assert_eq!(standing(&lab), "untrusted");
}

#[test]
fn the_users_own_folder_is_never_a_project() {
    let lab = Lab::with_hook("before_tool", "guest", CANARY);
    let mut command = lab.ollm(&["hook", "run"]);
    command.current_dir(&lab.home);
    let ran = finish(command, shell_event("ls").as_bytes());
    assert_eq!(ran.hook("guest")["source"], "user");
    assert_eq!(ran.answer()["skipped"], json!([]));
}

#[test]
fn hooks_see_the_allowed_variables_and_what_they_declare() {
    let lab = Lab::new();
    lab.user_hook("before_tool", "hook", "env > seen", r#", "env": {"MODE": "strict"}, "passEnv": ["PASSED_TOKEN"]"#);
    let mut command = lab.ollm(&["hook", "run"]);
    for number in 0..200 {
        command.env(format!("SERVICE_{number}_TOKEN"), format!("hidden-value-{number}"));
    }
    command.envs([
        ("PASSED_TOKEN", "passed-value-1"),
        ("LC_ALL", "C"),
        ("XDG_CONFIG_HOME", "/x"),
        ("TZ", "UTC"),
        ("LD_PRELOAD", ""),
        ("NODE_OPTIONS", "--x"),
    ]);
    finish(command, shell_event("ls").as_bytes());
    let seen = fs::read_to_string(lab.project.join("seen")).unwrap();
    let names: Vec<&str> = seen.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    let known =
        ["HOME", "PATH", "LC_ALL", "XDG_CONFIG_HOME", "TZ", "MODE", "PASSED_TOKEN", "PWD", "_", "SHLVL", "OLDPWD"];
    let strange: Vec<&&str> = names.iter().filter(|name| !known.contains(name) && !name.starts_with("OLLM_")).collect();
    assert_eq!(strange, Vec::<&&str>::new());
    for name in ["HOME", "PATH", "LC_ALL", "XDG_CONFIG_HOME", "TZ", "MODE", "PASSED_TOKEN"] {
        assert!(names.contains(&name), "{name}");
    }
}

const SECRET: &str = "tok-4f9d2c7b1e8a6053";

fn leak(event: &str, script: &str) -> Ran {
    let lab = Lab::new();
    lab.user_hook(event, "hook", script, r#", "passEnv": ["SERVICE_TOKEN"]"#);
    finish(lab.set("SERVICE_TOKEN", SECRET).ollm(&["hook", "run"]), shell_event("ls").as_bytes())
}

#[test]
fn secrets_are_hidden_on_every_way_out() {
    for (event, script) in [
        ("before_tool", r#"printf '{"continue": false, "systemMessage": "it is %s"}' "$SERVICE_TOKEN""#),
        ("before_tool", r#"printf '{"continue": true, "error": "it is %s"}' "$SERVICE_TOKEN""#),
        ("before_tool", r#"echo "it is $SERVICE_TOKEN" >&2; exit 1"#),
        ("before_tool", r#"printf 'it is %s' "$SERVICE_TOKEN""#),
        ("pre-tool-call", r#"printf '{"allow": false, "message": "it is %s"}' "$SERVICE_TOKEN""#),
        ("PreToolUse", r#"echo "it is $SERVICE_TOKEN" >&2; exit 2"#),
        ("PreToolUse", r#"printf '{"hookSpecificOutput": {"additionalContext": "it is %s"}}' "$SERVICE_TOKEN""#),
        ("PreToolUse", r#"printf '{"decision": "it is %s"}' "$SERVICE_TOKEN""#),
        (
            "before_tool",
            r#"printf '{"continue": true, "systemMessage": "%s"}' "$(printf %s "$SERVICE_TOKEN" | base64)""#,
        ),
    ] {
        let ran = leak(event, script);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let encoded = "dG9rLTRmOWQyYzdiMWU4YTYwNTM";
        assert!(!said.contains(SECRET) && !said.contains(encoded), "{script}: {said}");
    }
}

#[test]
fn secrets_are_hidden_in_metadata() {
    let ran = leak("PreToolUse", r#"printf '{"metadata": {"it": "is %s"}}' "$SERVICE_TOKEN""#);
    assert!(!ran.stdout.contains(SECRET), "{}", ran.stdout);
}

#[test]
fn the_command_that_is_offered_can_be_copied_without_harm() {
    let lab = Lab::new();
    lab.workspace("x.sh", "");
    lab.workspace(
        "x.json",
        r#"{"hooks": {"before_tool": [{"name": "x; touch pwned", "command": "sh", "args": ["x.sh"]}]}}"#,
    );
    let detail = lab.event(shell_event("ls")).skip("x; touch pwned")["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("`ollm hook trust 'workspace:x.json:before_tool:x; touch pwned'`"), "{detail}");
}

#[test]
fn an_event_stands_neither_in_the_arguments_nor_in_the_environment_of_a_hook() {
    let script = "tr '\\0' '\\n' < /proc/$$/cmdline > seen; tr '\\0' '\\n' < /proc/$$/environ >> seen; tr '\\0' '\\n' < /proc/$PPID/cmdline >> seen";
    let lab = Lab::with_hook("before_tool", "hook", script);
    lab.event(shell_event("the-payload"));
    let seen = fs::read_to_string(lab.project.join("seen")).unwrap();
    assert!(seen.contains("OLLM_HOOK_ID=") && !seen.contains("the-payload"), "{seen}");
}

#[test]
fn what_people_see_is_escaped_and_cut() {
    let lab = Lab::with_hook("before_tool", "hook", "printf '\\033[2J\\342\\200\\256evil' >&2; exit 1");
    let ran = lab.event(shell_event("ls"));
    let line = "ollm: user hook `hook` (user:hook.json:before_tool:hook) failed: exited with status 1: \\u{1b}[2J\\u{202e}evil";
    let goes_on = "; the call goes on: `\"onFailure\": \"block\"` in the hook would stop it\n";
    assert_eq!(ran.stderr, format!("{line}{goes_on}"));
    let long = Lab::with_hook(
        "before_tool",
        "hook",
        "printf '{\"continue\": false, \"systemMessage\": \"%s\"}' \"$(yes x | head -n 20000 | tr -d '\\n')\"",
    );
    let reason = long.event(shell_event("ls")).answer()["reason"].as_str().unwrap().to_owned();
    assert!(reason.ends_with("… [cut: 9760 bytes]") && reason.len() < 11_000, "{}", reason.len());
}
