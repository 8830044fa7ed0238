//! What a hostile repository, a neighbour on the machine, an agent or a broken disk can do, by the numbers of the
//! abuse cases.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::lab::{FOREVER, Lab, OLLM, Ran, finish, hook_file, lines, outcome, python, shell_event, start};

const ID: &str = "workspace:guest.json:before_tool:guest";

/// Leaves its process id where it can be counted.
const CANARY: &str = "echo $$ >> canary";

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

fn lab() -> Lab {
    let lab = Lab::new();
    lab.workspace_hook("before_tool", "guest", CANARY, "");
    lab
}

/// The processes that were started.
fn canaries(lab: &Lab) -> usize {
    let canary = lab.project.join("canary");
    let count = fs::read_to_string(&canary).unwrap_or_default().lines().count();
    fs::remove_file(canary).ok();
    count
}

/// The ids of the hooks that came with the project.
fn guests(lab: &Lab) -> BTreeSet<String> {
    let listed = lab.run(&["hook", "list", "--json"]).answer();
    let guests = listed.as_array().unwrap().iter().filter(|hook| hook["source"] == "workspace");
    guests.map(|hook| hook["id"].as_str().unwrap().to_owned()).collect()
}

/// Whether the project's hook runs, and if not, why.
fn standing(lab: &Lab) -> String {
    judged(lab, &lab.event(shell_event("ls")))
}

fn judged(lab: &Lab, ran: &Ran) -> String {
    let answer = ran.answer();
    let skip = answer["skipped"].as_array().unwrap().iter().find(|skip| skip["name"] == "guest");
    assert_eq!(canaries(lab) > 0, skip.is_none(), "{answer}");
    skip.map_or_else(|| "ran".to_owned(), |skip| skip["reason"].as_str().unwrap().to_owned())
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Whether files can be given to others, which the tests about that need.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn is_root(lab: &Lab) -> bool {
    let root = fs::metadata(&lab.root).unwrap().uid() == 0;
    if !root {
        eprintln!("skipped: only root can give files away");
    }
    root
}

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
        json!({"name": "x", "version": "1.0.0", "hooks": all}).to_string(),
    );
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
fn a05_a_changed_input_takes_the_approval_back_and_an_undeclared_one_is_not_found() {
    const ID: &str = "workspace:hooks.json:before_tool:guest";
    let lab = Lab::new();
    lab.workspace("lib.sh", CANARY);
    lab.workspace("guest.sh", ". \"${0%/*}/lib.sh\"");
    lab.workspace("hooks.json", hook_file("before_tool", "guest", r#", "inputs": ["lib.sh"]"#));
    lab.approve(ID);
    assert_eq!(standing(&lab), "ran");
    lab.workspace("lib.sh", format!("{CANARY} #"));
    assert_eq!(standing(&lab), "modified");

    lab.workspace("hooks.json", hook_file("before_tool", "guest", ""));
    lab.approve(ID);
    let ran = lab.event(shell_event("ls"));
    assert_eq!((canaries(&lab), &ran.hook("guest")["status"]), (0, &json!("failed")));
    let error = ran.hook("guest")["error"].as_str().unwrap().to_owned();
    assert!(error.ends_with(r#"add "inputs": ["lib.sh"] to the hook"#), "{error}");
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

/// The hook file, the script, and the folders of a hook.
const PLACES: [&str; 5] = [
    "project/.ollm/hooks/guest.json",
    "project/.ollm/hooks/guest.sh",
    "project/.ollm/hooks",
    "project/.ollm",
    "project",
];

#[test]
fn a09_what_others_can_write_to_does_not_run() {
    for place in PLACES {
        let lab = lab();
        lab.approve(ID);
        let path = lab.root.join(place);
        let mode = if path.is_dir() { 0o777 } else { 0o666 };
        set_mode(&path, mode);
        let ran = lab.event(shell_event("ls"));
        assert_eq!(judged(&lab, &ran), "unsafe", "{place}");
        let detail = ran.skip("guest")["detail"].as_str().unwrap().to_owned();
        let complaint = format!("{} is writable by others (mode {mode:04o})", path.display());
        assert!(detail.starts_with(&complaint), "{detail}");
        assert!(ran.stderr.contains(&complaint), "{}", ran.stderr);
        set_mode(&path, mode & 0o755);
        assert_eq!(standing(&lab), "ran", "{place}");
    }
}

#[test]
fn a09_what_others_can_write_to_cannot_be_approved() {
    for place in PLACES {
        let lab = lab();
        let digest = lab.digest(ID);
        let path = lab.root.join(place);
        set_mode(&path, if path.is_dir() { 0o777 } else { 0o666 });
        let ran = lab.run(&["hook", "trust", ID, "--digest", &digest]);
        assert_eq!(ran.code, 5, "{place}: {ran:?}");
        assert!(ran.stderr.contains("is writable by others"), "{}", ran.stderr);
        assert_eq!(standing(&lab), "untrusted", "{place}");
    }
}

#[test]
fn a09_hooks_of_the_user_are_the_users_alone() {
    for place in ["home/.ollm/hooks/own.json", "home/.ollm/hooks/own.sh", "home/.ollm/hooks", "home/.ollm", "home"] {
        let lab = Lab::with_hook("before_tool", "own", CANARY);
        let path = lab.root.join(place);
        set_mode(&path, if path.is_dir() { 0o777 } else { 0o666 });
        let ran = lab.event(shell_event("ls"));
        assert_eq!((canaries(&lab), &ran.skip("own")["reason"]), (0, &json!("unsafe")), "{place}");
    }
}

#[test]
fn a09_what_belongs_to_somebody_else_does_not_run() {
    for place in PLACES {
        let lab = lab();
        if !is_root(&lab) {
            return;
        }
        lab.approve(ID);
        let path = lab.root.join(place);
        chown(&path, Some(65534), None).unwrap();
        let ran = lab.event(shell_event("ls"));
        assert_eq!(judged(&lab, &ran), "unsafe", "{place}");
        let detail = ran.skip("guest")["detail"].as_str().unwrap().to_owned();
        assert!(detail.starts_with(&format!("{} belongs to uid 65534", path.display())), "{detail}");
    }
}

/// Approvals that are spoilt approve nothing, stay as they are, and count again when they are mended.
fn assert_useless(spoil: impl Fn(&Path), mend: impl Fn(&Path)) {
    let lab = lab();
    lab.approve(ID);
    let file = lab.home.join(".ollm/trusted-hooks.json");
    let good = fs::read(&file).unwrap();
    spoil(&file);
    let ran = lab.event(shell_event("ls"));
    assert_eq!(judged(&lab, &ran), "untrusted");
    assert!(ran.stderr.contains("trusted-hooks.json"), "{}", ran.stderr);
    assert_eq!(lab.run(&["hook", "untrust", ID]).code, 5);
    assert_eq!(fs::read(&file).unwrap(), good, "it is not overwritten");
    mend(&file);
    assert_eq!(standing(&lab), "ran");
}

#[test]
fn a10_approvals_that_others_can_write_to_approve_nothing() {
    assert_useless(|file| set_mode(file, 0o666), |file| set_mode(file, 0o600));
}

#[test]
fn a10_approvals_of_somebody_else_approve_nothing() {
    if is_root(&Lab::new()) {
        let give = |uid| move |file: &Path| chown(file, Some(uid), None).unwrap();
        assert_useless(give(65534), give(0));
    }
}

#[test]
fn a11_fifty_approvals_at_once_are_all_kept() {
    let lab = Lab::new();
    let names: Vec<String> = (0..50).map(|number| format!("guest-{number}")).collect();
    for name in &names {
        lab.workspace_hook("before_tool", name, CANARY, &format!(r#", "id": "{name}""#));
    }
    assert_eq!(guests(&lab).len(), 50);
    let digests: Vec<String> = names.iter().map(|name| lab.digest(name)).collect();
    let file = lab.home.join(".ollm/trusted-hooks.json");
    thread::scope(|scope| {
        let approving: Vec<_> = names
            .iter()
            .zip(&digests)
            .map(|(name, digest)| scope.spawn(|| lab.run(&["hook", "trust", name, "--digest", digest])))
            .collect();
        while approving.iter().any(|thread| !thread.is_finished()) {
            if let Ok(text) = fs::read(&file) {
                serde_json::from_slice::<Value>(&text).unwrap();
            }
        }
        for thread in approving {
            let ran = thread.join().unwrap();
            assert_eq!(ran.code, 0, "{ran:?}");
        }
    });
    let ran = lab.event(shell_event("ls"));
    assert_eq!((canaries(&lab), &ran.answer()["skipped"]), (50, &json!([])));
}

#[test]
fn a12_a_forged_pointer_to_a_trusted_repository_changes_nothing() {
    let lab = lab();
    for (path, content) in [
        ("trusted/.git/config", ""),
        ("trusted/.git/worktrees/x/commondir", "../..\n"),
        ("trusted/.ollm/hooks/guest.sh", CANARY),
        ("trusted/.ollm/hooks/guest.json", &hook_file("before_tool", "guest", "")),
    ] {
        lab.write(path, content);
    }
    let trusted = lab.root.join("trusted");
    lab.write("home/.ollm/config.yaml", format!("hooks:\n  trustWorkspace: [\"{}\"]\n", trusted.display()));
    let there = |lab: &Lab, arguments: &[&str]| {
        let mut command = lab.ollm(arguments);
        command.current_dir(&trusted);
        finish(command, b"")
    };
    assert_eq!(there(&lab, &["hook", "run", "before_tool"]).hook("guest")["status"], "ok");
    let gitdir = format!("gitdir: {}\n", trusted.join(".git/worktrees/x").display());
    let common = trusted.join(".git").display().to_string();
    fs::remove_dir(lab.project.join(".git")).unwrap();
    lab.write("project/.git", &gitdir);
    assert_eq!(standing(&lab), "untrusted", "a worktree that says so itself");
    fs::remove_file(lab.project.join(".git")).unwrap();
    lab.write("project/.git/commondir", &common);
    lab.write("project/.git/gitdir", &common);
    lab.write("project/.git/config", format!("[core]\n\tworktree = {}\n", trusted.display()));
    assert_eq!(standing(&lab), "untrusted", "a folder that says so itself");
    fs::remove_dir_all(lab.project.join(".git")).unwrap();
    symlink(trusted.join(".git"), lab.project.join(".git")).unwrap();
    assert_eq!(standing(&lab), "untrusted", "a link");
}

#[test]
fn a12_an_approval_is_for_one_place() {
    let lab = lab();
    lab.approve(ID);
    let copy = lab.root.join("clone");
    let copied = Command::new("cp").arg("-r").args([&lab.project, &copy]).status().unwrap();
    assert!(copied.success());
    let mut command = lab.ollm(&["hook", "run"]);
    command.current_dir(&copy);
    assert_eq!(finish(command, shell_event("ls").as_bytes()).skip("guest")["reason"], "untrusted");
}

#[test]
fn a13_files_of_a_project_set_no_variables() {
    let lab = lab();
    lab.user_hook("before_tool", "own", "printf '{\"continue\": false}'", "");
    lab.write("project/fake/config.yaml", "hooks: {trustWorkspace: true}\n");
    let lines = "OLLM_HOME=fake\nHOME=fake\nOLLM_HOOKS_ENABLED=false\nHOOKS_ENABLED=false\n";
    for file in [".env", ".env.local", ".envrc", ".ollm/.env", ".config/agent/.env"] {
        lab.write(&format!("project/{file}"), lines);
    }
    let ran = lab.event(shell_event("ls"));
    assert_eq!((judged(&lab, &ran).as_str(), ran.code), ("untrusted", 2));
}

#[test]
fn a14_one_project_has_one_identity_however_its_path_is_written() {
    let lab = lab();
    lab.approve(ID);
    lab.write("project/sub/deep/x", "");
    symlink("project", lab.root.join("link")).unwrap();
    symlink(lab.project.join("sub"), lab.root.join("other")).unwrap();
    for place in [
        "project/.",
        "project/../project",
        "project/sub/deep/../..",
        "project/sub/deep",
        "link",
        "link/sub",
        "other/deep",
    ] {
        let mut command = lab.ollm(&["hook", "run"]);
        command.current_dir(lab.root.join(place)).env("PWD", lab.root.join(place));
        let ran = finish(command, shell_event("ls").as_bytes());
        assert_eq!(ran.hook("guest")["status"], "ok", "{place}");
    }
}

#[test]
fn a14_a_link_to_approved_hooks_of_another_project_is_not_approved() {
    let lab = lab();
    lab.approve(ID);
    for (project, link, target) in
        [("one", ".ollm", "../project/.ollm"), ("two", ".ollm/hooks", "../../project/.ollm/hooks")]
    {
        let folder = lab.root.join(project);
        fs::create_dir_all(folder.join(".git")).unwrap();
        fs::create_dir_all(folder.join(link).parent().unwrap()).unwrap();
        symlink(target, folder.join(link)).unwrap();
        let mut command = lab.ollm(&["hook", "run"]);
        command.current_dir(&folder);
        let ran = finish(command, shell_event("ls").as_bytes());
        assert!(ran.answer()["hooks"].as_array().unwrap().is_empty(), "{project}: {ran:?}");
        assert!(!folder.join("canary").exists(), "{project}");
    }
}

/// Words that are trouble for a shell, a terminal or a hurried reader.
const WORDS: &[&str] = &[
    "plain",
    "two words",
    "",
    "it's",
    "\"quoted\"",
    "$(id)",
    "`id`",
    "a;b",
    "a|b>c",
    "*",
    "~",
    "--",
    "-n",
    "back\\slash",
    "new\nline",
    "tab\there",
    "ümlaut 🦀",
    "#x",
    "!x",
    "a=b",
];

#[test]
fn a18_what_is_shown_is_what_runs_word_by_word() {
    let lab = Lab::new();
    let dump = "for word in \"$@\"; do printf '%s\\0' \"$word\"; done > words";
    lab.user("dump.sh", dump);
    lab.workspace("dump.sh", dump);
    for (source, id) in
        [("user", "user:dump.json:before_tool:dump"), ("workspace", "workspace:dump.json:before_tool:dump")]
    {
        let args: Vec<&str> = std::iter::once("dump.sh").chain(WORDS.iter().copied()).collect();
        let file = json!({"hooks": {"before_tool": [{"name": "dump", "command": "sh", "args": args}]}}).to_string();
        if source == "user" {
            lab.user("dump.json", file)
        } else {
            lab.workspace("dump.json", file)
        };
        if source == "workspace" {
            fs::remove_file(lab.home.join(".ollm/hooks/dump.json")).unwrap();
            lab.approve(id);
        }
        lab.event(shell_event("ls"));
        let ran = fs::read(lab.project.join("words")).unwrap();
        fs::remove_file(lab.project.join("words")).unwrap();
        let shown = lab.run(&["hook", "show", id, "--json"]).answer()["command"].as_str().unwrap().to_owned();
        let parsed = Command::new("sh").args(["-c", &format!("printf '%s\\0' {shown}")]).output().unwrap().stdout;
        let words = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec()).unwrap().split('\0').map(str::to_owned).collect::<Vec<_>>()
        };
        let (ran, parsed) = (words(&ran), words(&parsed));
        assert_eq!(parsed[0], "sh", "{source}");
        assert!(parsed[1].ends_with("/.ollm/hooks/dump.sh"), "{source}: {}", parsed[1]);
        assert_eq!(parsed[2..], ran[..], "{source}");
    }
}

#[test]
fn a18_the_hooks_that_are_listed_are_the_hooks_that_run() {
    let lab = Lab::new();
    let flat = json!({"name": "flat", "command": "sh", "args": ["x.sh"], "surprise": {"command": "evil"}});
    let lone = json!({"hooks": {"before_tool": flat}});
    let nested = json!({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [
        {"type": "command", "command": "echo one >> ran"}, {"type": "command", "command": "echo two >> ran", "x": 1}]}]}});
    lab.workspace("x.sh", "echo flat >> ran");
    lab.workspace("flat.json", json!({"hooks": {"before_tool": [flat], "hooks": {"before_tool": [flat]}}}).to_string());
    lab.workspace("lone.json", lone.to_string());
    lab.workspace("nested.json", nested.to_string().replace("echo ", "echo nested "));
    lab.write("project/.config/agent/settings.json", nested.to_string());
    lab.write("project/.config/agent/settings.local.json", json!({"hooks": nested}).to_string());
    let listed = guests(&lab);
    assert!(listed.len() >= 3, "{listed:?}");
    for id in &listed {
        lab.approve(id);
    }
    let ran = lab.event(shell_event("ls"));
    let answer = ran.answer();
    let ids: BTreeSet<String> =
        answer["hooks"].as_array().unwrap().iter().map(|hook| hook["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((ids, &answer["skipped"]), (listed.clone(), &json!([])));
    let marks = fs::read_to_string(lab.project.join("ran")).unwrap();
    assert_eq!(marks.lines().count(), listed.len(), "{marks}");
}

/// Runs `ollm` where `$HOME` is on a disk prepared by a line of shell; nothing when we may not mount.
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn on_a_bad_disk(lab: &Lab, prepare: &str, event: &str) -> Option<Ran> {
    let mut may_mount = Command::new("unshare");
    may_mount.args(["-m", "true"]).stderr(Stdio::null());
    if !may_mount.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: no right to mount a disk");
        return None;
    }
    let ollm = lab.ollm(&["hook", "run"]);
    let mut command = lab.program("unshare");
    command.args(["-m", "sh", "-ec", &format!("{prepare}\nexec \"$0\" hook run")]).arg(ollm.get_program());
    Some(finish(command, event.as_bytes()))
}

const READ_ONLY: &str = "mount --bind \"$HOME\" \"$HOME\"; mount -o remount,ro,bind \"$HOME\"";
const FULL: &str = "cp -a \"$HOME\" \"$HOME.kept\"; mount -t tmpfs -o size=256k,mode=755 tmpfs \"$HOME\"
cp -a \"$HOME.kept/.\" \"$HOME\"; rm -r \"$HOME.kept\"; dd if=/dev/zero of=\"$HOME/filling\" 2>/dev/null || true";

#[test]
fn b20_a_disk_that_takes_nothing_takes_no_guard_down() {
    for prepare in [READ_ONLY, FULL] {
        let lab = lab();
        lab.workspace_hook("before_tool", "other", CANARY, "");
        lab.user_hook("before_tool", "own", "echo own >> ran", "");
        lab.approve(ID);
        let Some(ran) = on_a_bad_disk(&lab, prepare, &shell_event("ls")) else { return };
        assert_eq!(judged(&lab, &ran), "ran", "{prepare}: what was approved has its copy");
        assert_eq!((ran.code, &ran.hook("own")["status"]), (0, &json!("ok")), "{prepare}");
        assert_eq!(ran.skip("other")["reason"], "untrusted", "{prepare}");

        lab.user_hook("before_tool", "own", "printf '{\"continue\": false}'", "");
        let ran = on_a_bad_disk(&lab, prepare, &shell_event("ls")).unwrap();
        assert_eq!(ran.code, 2, "{prepare}: {ran:?}");
    }
}

#[test]
fn b20_without_a_copy_and_room_for_one_nothing_runs_and_the_reason_is_told() {
    for (prepare, reason) in [(READ_ONLY, "its file system is read-only"), (FULL, "free some space")] {
        let lab = lab();
        lab.approve(ID);
        let store = lab.home.join(".ollm/store");
        assert!(Command::new("rm").args(["-r"]).arg(&store).status().unwrap().success());
        let Some(ran) = on_a_bad_disk(&lab, prepare, &shell_event("ls")) else { return };
        assert_eq!(judged(&lab, &ran), "unsafe", "{ran:?}");
        assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    }
}

#[test]
fn b20_a_home_that_is_not_named_or_not_there_is_no_obstacle() {
    let own = "printf '{\"continue\": false}'";
    let lab = Lab::with_hook("before_tool", "own", own);
    let folder = lab.home.join(".ollm");
    let homes: [&dyn Fn(&mut Command); 4] = [
        &|command| _ = command.env_remove("HOME"),
        &|command| _ = command.env("HOME", ""),
        &|command| _ = command.env("HOME", "relative"),
        &|command| _ = command.env("HOME", "/nonexistent"),
    ];
    for (number, set) in homes.iter().enumerate() {
        let mut command = lab.ollm(&["hook", "run"]);
        command.env("OLLM_HOME", &folder);
        set(&mut command);
        let ran = finish(command, shell_event("ls").as_bytes());
        assert_eq!((ran.code, &ran.hook("own")["status"]), (2, &json!("blocked")), "{number}: {ran:?}");
    }
    let empty = lab.ollm(&["hook", "run"]).env("HOME", "/nonexistent").stdin(Stdio::null()).output().unwrap();
    assert_eq!(empty.status.code(), Some(3), "no event, and nothing worse");
    let mut command = lab.ollm(&["hook", "run"]);
    command.env("HOME", "/nonexistent");
    assert_eq!(finish(command, shell_event("ls").as_bytes()).answer()["continue"], true);
}

#[test]
fn c06_an_agent_cannot_approve_or_withdraw_in_any_way() {
    for sign in ["OLLM_AGENT", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CURSOR_AGENT", "QWEN_CODE"] {
        let lab = lab();
        let digest = lab.digest(ID);
        let lab = lab.set(sign, "1");
        for arguments in [
            &["hook", "trust", ID, "--digest", &digest][..],
            &["hook", "trust", "--all"],
            &["hook", "trust", "--review"],
            &["hook", "untrust", "--all"],
        ] {
            assert_eq!(lab.run(arguments).code, 4, "{sign}: {arguments:?}");
        }
        assert_eq!(lab.run(&["hook", "trust", "--list"]).code, 0, "looking is free");
        assert_eq!(standing(&lab), "untrusted");
    }
}

#[test]
fn c06_a_hook_that_hides_where_it_runs_cannot_approve_either() {
    let lab = lab();
    let digest = lab.digest(ID);
    let clean = format!("env -i HOME=\"$HOME\" PATH=\"$PATH\" {OLLM}");
    let script = format!("{clean} hook trust '{ID}' --digest {digest} 2>said; echo $? >> said");
    lab.user_hook("session_start", "helper", &script, "");
    lab.run(&["hook", "run", "session_start"]);
    let said = fs::read_to_string(lab.project.join("said")).unwrap();
    assert!(said.contains("an agent may not approve hooks") && said.ends_with("4\n"), "{said}");
    assert_eq!(standing(&lab), "untrusted");
}

#[test]
fn c07_nothing_a_project_writes_reaches_the_terminal_unescaped() {
    let lab = Lab::new();
    let tricks = "\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}\u{2066}\u{200b}\u{8}\r\u{9b}31m";
    let name = format!("evil{tricks}");
    let script = format!("{name}.sh");
    lab.workspace(&script.replace('/', ""), format!("echo '{tricks}' >&2; exit 1\n"));
    let entry = json!({"name": name, "id": "evil", "description": tricks, "matcher": "*", "command": "sh", "args": [script],
        "env": {"A": tricks}});
    lab.workspace(
        &format!("{name}.json"),
        json!({"hooks": {"before_tool": [entry], tricks: []}, tricks: 1}).to_string(),
    );
    let shell =
        json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": format!("true {tricks}")}]}]}});
    lab.write("project/.config/agent/settings.json", shell.to_string());
    let check = |what: &str, ran: &Ran| {
        for text in [&ran.stderr, &ran.stdout] {
            let raw: Vec<char> = text
                .chars()
                .filter(|letter| {
                    (letter.is_control() && *letter != '\n') || "\u{202e}\u{2066}\u{200b}".contains(*letter)
                })
                .collect();
            assert_eq!(raw, [], "{what}: {text:?}");
        }
    };
    for arguments in [
        &["hook", "list"][..],
        &["hook", "show", "evil"],
        &["hook", "show", &name],
        &["hook", "show", tricks],
        &["hook", "plan", "before_tool"],
        &["hook", "plan", tricks],
        &["hook", "run", tricks],
        &["hook", "trust", "evil"],
        &["hook", "trust", tricks],
    ] {
        check(&format!("{arguments:?}"), &lab.run(arguments));
    }
    let told = |ran: Ran| Ran { stdout: String::new(), ..ran };
    check("untrusted", &told(lab.event(shell_event(tricks))));
    lab.approve("evil");
    check("failed", &told(lab.event(shell_event(tricks))));
    check("trust --list", &lab.run(&["hook", "trust", "--list"]));
    check("untrust", &lab.run(&["hook", "untrust", "evil"]));
}

#[test]
fn d01_a_hook_that_prints_every_secret_it_was_given_tells_none() {
    let lab = Lab::new();
    let names: Vec<String> = (0..200).map(|number| format!("SERVICE_{number}_TOKEN")).collect();
    let passed = serde_json::to_string(&names).unwrap();
    lab.user_hook("before_tool", "hook", "env >&2; exit 1", &format!(r#", "passEnv": {passed}"#));
    let values: Vec<String> = (0..200).map(|number| format!("hidden-{number:03}-5f2c9a7e")).collect();
    let mut command = lab.ollm(&["hook", "run"]);
    command.envs(names.iter().zip(&values));
    let ran = finish(command, shell_event("ls").as_bytes());
    assert_eq!(ran.hook("hook")["status"], "failed");
    let told = format!("{}{}", ran.stdout, ran.stderr);
    let leaked: Vec<&String> = values.iter().filter(|value| told.contains(value.as_str())).collect();
    assert_eq!(leaked, Vec::<&String>::new());
    assert!(told.contains("SERVICE_"), "it was printed: {told}");
}

#[test]
fn d02_a_secret_in_pieces_or_in_other_clothes_is_known() {
    const SECRET: &str = "pa\"ss/4f9d2c7b1e8a6053";
    let parts = r#"first="${SERVICE_TOKEN%9d2c*}"; rest="${SERVICE_TOKEN#"$first"}""#;
    for script in [
        format!("{parts}; printf '%s' \"$first\" >&2; sleep 0.05; printf '%s' \"$rest\" >&2; exit 1"),
        format!("{parts}; printf '%s' \"$first\"; sleep 0.05; printf '%s' \"$rest\"; exit 1"),
        "printf '%s' \"$SERVICE_TOKEN\" | base64 >&2; exit 1".to_owned(),
        "printf 'x%s' \"$SERVICE_TOKEN\" | base64 >&2; exit 1".to_owned(),
        "printf '%s' \"$SERVICE_TOKEN\" | sed 's/\"/\\\\\"/' >&2; exit 1".to_owned(),
        "printf '%s' \"$SERVICE_TOKEN\" | sed 's/\"/%22/; s,/,%2F,' >&2; exit 1".to_owned(),
    ] {
        let lab = Lab::new();
        lab.user_hook("before_tool", "hook", &script, r#", "passEnv": ["SERVICE_TOKEN"]"#);
        let ran = finish(lab.set("SERVICE_TOKEN", SECRET).ollm(&["hook", "run"]), shell_event("ls").as_bytes());
        let told = format!("{}{}", ran.stdout, ran.stderr);
        let forms = ["4f9d2c7b1e8a6053", "cGEic3MvNGY5ZDJjN2IxZThhNjA1Mw", "eHBhInNzLzRmOWQyYzdiMWU4YTYwNT"];
        let leaked: Vec<&&str> = forms.iter().filter(|form| told.contains(**form)).collect();
        assert_eq!(leaked, Vec::<&&str>::new(), "{script}: {told}");
    }
}

#[test]
fn d03_nobody_sees_the_event_or_a_secret_in_the_list_of_processes() {
    let lab = Lab::new();
    let fifo = lab.fifo("fifo");
    lab.user_hook(
        "before_tool",
        "hook",
        &format!("echo up > '{}'; {FOREVER}", fifo.display()),
        r#", "timeout": "30s""#,
    );
    let mut command = lab.ollm(&["hook", "run"]);
    command.env("SERVICE_TOKEN", "hidden-5f2c9a7e");
    let mut child = start(command);
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, shell_event("the-payload").as_bytes()).unwrap();
    assert_eq!(lines(&fifo, 1), ["up"]);
    let ours = child.id().to_string();
    let mut seen = 0;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let own =
            |file: &str| String::from_utf8_lossy(&fs::read(entry.path().join(file)).unwrap_or_default()).into_owned();
        let (arguments, environment) = (own("cmdline"), own("environ"));
        if !environment.contains(&lab.root.display().to_string()) {
            continue;
        }
        seen += 1;
        assert!(!arguments.contains("the-payload") && !environment.contains("the-payload"), "{arguments}");
        // Whoever keeps watch over our children was started as we were.
        let is_ours = arguments.starts_with(OLLM);
        assert!(!arguments.contains("hidden-5f2c9a7e"), "{arguments}");
        assert!(is_ours || !environment.contains("hidden-5f2c9a7e"), "{arguments}");
    }
    assert!(seen >= 3, "ourselves, the hook and what it started: {seen}");
    let killed = Command::new("kill").args(["-s", "TERM", &ours]).status().unwrap();
    assert!(killed.success());
    outcome(child);
    lab.assert_nobody_is_left();
}

#[test]
fn d15_links_in_place_of_our_own_files_are_not_followed() {
    let lab = lab();
    let elsewhere = lab.root.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, lab.home.join(".ollm/store")).unwrap();
    let digest = lab.digest(ID);
    let ran = lab.run(&["hook", "trust", ID, "--digest", &digest]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("must be a folder and is a"), "{}", ran.stderr);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    fs::remove_file(lab.home.join(".ollm/store")).unwrap();

    let precious = lab.write("precious", "mine");
    symlink(&precious, lab.home.join(".ollm/trusted-hooks.json")).unwrap();
    lab.run(&["hook", "trust", ID, "--digest", &digest]);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
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
