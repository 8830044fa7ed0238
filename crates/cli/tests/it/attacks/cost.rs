//! Projects that are dear to look at, so that the waiting agent goes on without an answer.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::lab::{Lab, finish, shell_event};

#[test]
fn s03_hook_files_of_a_project_cost_an_event_only_so_much() {
    let lab = Lab::new();
    lab.workspace_hook("before_tool", "a-small-one", "exit 0", "");
    lab.approve("workspace:a-small-one.json:before_tool:a-small-one");
    let slow = "data.args.command.matches('(a*)*b(.*x){20}')";
    let entry = |index| json!({"name": format!("h{index}"), "command": "sh", "args": ["x.sh"], "if": slow});
    for file in ["b.json", "c.json", "d.json"] {
        let entries: Vec<_> = (0..20_000).map(entry).collect();
        lab.workspace(file, json!({"hooks": {"before_tool": entries}}).to_string());
    }
    let ran = lab.event(shell_event(&"a".repeat(200_000)));
    assert_eq!(ran.hook("a-small-one")["status"], "ok", "what fits still runs");
    assert_eq!(ran.stderr.matches("what the project brings holds more than 1024 KiB").count(), 1, "{}", ran.stderr);
    for file in ["b.json", "c.json", "d.json"] {
        assert!(ran.stderr.contains(file), "{}", ran.stderr);
    }
    let refused = lab.event(shell_event("rm -rf ~"));
    assert_eq!((refused.code, refused.stderr.as_str()), (2, ""), "nothing of the project is read before a refusal");
    assert_eq!(refused.skip("hooks of the project")["reason"], "after_block");
    // A person who asks for a list has the time.
    let listed = lab.run(&["hook", "list", "--json"]).answer();
    assert!(listed.as_array().unwrap().len() > 60_000);
}

#[test]
fn s03_files_of_a_hook_that_nobody_approved_are_not_opened() {
    let lab = Lab::new();
    let large = lab.workspace("large", "");
    File::options().write(true).open(&large).unwrap().set_len(66 << 20).unwrap();
    let inputs: Vec<String> = (0..1000).map(|index| format!("link-{index}")).collect();
    for input in &inputs {
        symlink(&large, lab.project.join(".ollm/hooks").join(input)).unwrap();
    }
    let entry = json!({"name": "guest", "command": "sh", "args": ["guest.sh"], "inputs": inputs});
    lab.workspace("guest.sh", "exit 0");
    lab.workspace("guest.json", json!({"hooks": {"before_tool": [entry]}}).to_string());
    let traced = lab.event(shell_event("ls"));
    assert_eq!(traced.skip("guest")["reason"], "untrusted");
}

/// An ordinary event, answered with one line about what was left out; and a refusal, which does not even look.
fn answers_at_once(lab: &Lab) {
    let ran = lab.event(shell_event("ls"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let told: Vec<&str> = ran.stderr.lines().filter(|line| !line.contains("not approved")).collect();
    assert!(matches!(told.as_slice(), [line] if line.contains("it is not loaded")), "{told:#?}");
    let refused = lab.event(shell_event("rm -rf ~"));
    assert_eq!((refused.code, refused.stderr.as_str()), (2, ""));
}

#[test]
fn s03_manifests_of_a_project_cost_an_event_only_so_much() {
    let lab = Lab::new();
    let manifest = |index: usize| {
        let hook = json!({"name": "h", "command": "sh", "args": ["h.sh"]});
        let hooks = json!({"session_start": [hook, hook, hook]});
        json!({"name": format!("e{index}"), "version": "1.0.0", "description": "x", "hooks": hooks}).to_string()
    };
    for index in 0..10_000 {
        lab.write(&format!("project/.ollm/extensions/e{index}/manifest.json"), manifest(index));
    }
    answers_at_once(&lab);
    let listed = lab.run(&["ext", "list", "--json"]).answer();
    assert!(listed.as_array().unwrap().len() >= 2000, "whoever asks for a list has the time");
}

#[test]
fn s03_one_huge_file_of_a_project_is_left_out() {
    for file in [
        ".ollm/extensions/e/manifest.json",
        ".ollm/config.yaml",
        ".ollm/hooks/guest.json",
        ".config/agent/settings.json",
    ] {
        let lab = Lab::new();
        let path = lab.write(&format!("project/{file}"), "");
        File::options().write(true).open(path).unwrap().set_len(60 << 20).unwrap();
        answers_at_once(&lab);
    }
}

#[test]
fn s03_text_that_is_tangled_keeps_nobody_waiting() {
    let lab = Lab::new();
    for tangled in ["find . -exec ", "fd x -x ", "ls | xargs find . -exec ", "find / -ok "] {
        let command = format!("{} ls \\; ; rm -rf ~", tangled.repeat(60_000 / tangled.len()));
        let ran = lab.event(shell_event(&command));
        assert_eq!(ran.code, 2, "{tangled}: {ran:?}");
    }
}

#[test]
fn s03_projects_within_projects_keep_nobody_waiting_and_shed_no_guard() {
    let lab = Lab::new();
    let mut folder = lab.project.clone();
    for _ in 0..60 {
        folder.push("n");
        fs::create_dir_all(folder.join(".ollm/hooks")).unwrap();
        fs::write(folder.join(".ollm/config.yaml"), "hooks: {timeout: 5s}\n").unwrap();
    }
    let judge = |command: &str| {
        let event = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": folder, "tool_name": "Bash",
            "tool_input": {"command": command}});
        let mut asked = lab.ollm(&["hook", "run", "--from", "claude"]);
        asked.current_dir(&folder);
        finish(asked, event.to_string().as_bytes()).answer()["hookSpecificOutput"].clone()
    };
    let refused = judge("rm -rf ~");
    assert_eq!(refused["permissionDecision"], "deny", "{refused}");
    // No guard of the projects around could be asked in time, so nothing passes.
    let unjudged = judge("ls");
    assert_eq!(unjudged["permissionDecision"], "deny", "{unjudged}");
    let why = unjudged["permissionDecisionReason"].as_str().unwrap();
    assert!(why.contains("it lies in more than 32 projects, one within another"), "{why}");
}
