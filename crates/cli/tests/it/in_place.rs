//! Hooks that people wrote for other agents: imported or read where they are, they run under every agent and are spoken to
//! as their own agent does.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Lab, Ran};

const CLAUDE: &str = "home/.claude/settings.json";

/// Refuses what it reads by Claude's own fields, in Claude's own words.
const GUARD: &str = r#"read -r event; case "$event" in *'"tool_name":"Bash"'*'"command":"git push'*) echo "no push in ${CLAUDE_PROJECT_DIR}" >&2; exit 2;; esac"#;

/// A lab whose user wants the hooks of these agents read.
fn reading(agents: &str) -> Lab {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", format!("hooks:\n  read: [{agents}]\n"));
    lab
}

fn guard() -> String {
    json!({"hooks": {"PreToolUse": [{"matcher": "Ba(sh|t)", "hooks": [{"type": "command", "command": GUARD, "timeout": 5}]}]}}).to_string()
}

fn call(lab: &Lab, host: &str, command: &str) -> Ran {
    let (event, tool) = match host {
        "gemini" => ("BeforeTool", "run_shell_command"),
        _ => ("PreToolUse", "Bash"),
    };
    let event = json!({"hook_event_name": event, "session_id": "s", "cwd": lab.project, "tool_name": tool,
        "tool_input": {"command": command}, "tool_use_id": "t"});
    lab.event_from(host, &event.to_string())
}

fn only_hook(lab: &Lab) -> Value {
    let list = lab.run(&["hook", "list", "--json"]).answer();
    let mut hooks = list.as_array().unwrap().iter().filter(|hook| hook["source"] != "builtin");
    let hook = hooks.next().unwrap().clone();
    assert_eq!(hooks.next(), None);
    hook
}

/// Every other agent is refused in its own words; Claude Code, where the hook is its own, is told nothing.
fn stands_in_the_way(lab: &Lab, in_place: bool) {
    let reason = format!("no push in {}", lab.project.display());
    assert_eq!(call(lab, "gemini", "git push").answer(), json!({"decision": "deny", "reason": reason}));
    let codex = call(lab, "codex", "git push").answer();
    assert_eq!(codex["hookSpecificOutput"]["permissionDecision"], "deny", "{codex}");
    assert_eq!(codex["hookSpecificOutput"]["permissionDecisionReason"], json!(reason), "{codex}");
    assert_eq!(call(lab, "gemini", "git status").stdout, "");
    let claude = call(lab, "claude", "git push");
    assert_eq!(claude.stdout.is_empty(), in_place, "{claude:?}");
}

#[test]
fn a_hook_of_one_agent_runs_under_all_others_imported_and_in_place() {
    let imported = Lab::new();
    imported.write(CLAUDE, guard());
    assert_eq!(imported.run(&["import", "claude"]).code, 0);
    stands_in_the_way(&imported, false);
    let in_place = reading("claude");
    in_place.write(CLAUDE, guard());
    stands_in_the_way(&in_place, true);
    let record = in_place.run(&["trace", "last", "--json"]).answer();
    let skipped = record["skipped"].to_string();
    assert!(skipped.contains("Claude Code runs it by itself"), "{record:#}");
}

/// Refuses what it reads where Cursor has the command of a shell call, and allows everything else.
const SHELL_GUARD: &str = r#"read -r event; case "$event" in *'"command":"git push --force'*) echo '{"permission": "deny", "user_message": "no force"}';; *) echo '{"permission": "allow"}';; esac"#;

#[test]
fn a_hook_for_one_tool_finds_the_command_where_its_agent_has_it() {
    let settings = json!({"version": 1, "hooks": {"beforeShellExecution": [{"command": SHELL_GUARD}]}}).to_string();
    let imported = Lab::new();
    imported.write("home/.cursor/hooks.json", &settings);
    assert_eq!(imported.run(&["import", "cursor"]).code, 0);
    let in_place = reading("cursor");
    in_place.write("home/.cursor/hooks.json", &settings);
    for lab in [&imported, &in_place] {
        let claude = call(lab, "claude", "git push --force").answer();
        assert_eq!(claude["hookSpecificOutput"]["permissionDecision"], "deny", "{claude}");
        assert_eq!(claude["hookSpecificOutput"]["permissionDecisionReason"], "no force", "{claude}");
        let allowed = call(lab, "claude", "git status").answer();
        assert_eq!(allowed["hookSpecificOutput"]["permissionDecision"], "allow", "{allowed}");
    }
    let event = json!({"hook_event_name": "preToolUse", "session_id": "s", "cwd": imported.project, "tool_name": "Shell",
        "tool_input": {"command": "git push --force"}, "tool_use_id": "t"});
    let answer = imported.event_from("cursor", &event.to_string()).answer();
    assert_eq!(answer, json!({"permission": "deny", "user_message": "no force"}));
}

/// What an agent is told that asks whether a call may go on.
fn asked(lab: &Lab, host: &str, command: &str) -> Value {
    let event = json!({"hook_event_name": "PermissionRequest", "session_id": "s", "cwd": lab.project, "tool_name": "Bash",
        "tool_input": {"command": command}});
    let answer = lab.event_from(host, &event.to_string());
    if answer.stdout.is_empty() { Value::Null } else { answer.answer()["hookSpecificOutput"]["decision"].clone() }
}

#[test]
fn an_approval_of_something_else_is_never_one_of_the_call_itself() {
    let decision = json!({"behavior": "allow", "updatedInput": {"command": "git status"}});
    let output = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
    let hook = json!({"type": "command", "command": format!("echo '{output}'")});
    let lab = Lab::new();
    lab.write(CLAUDE, json!({"hooks": {"PermissionRequest": [{"matcher": "Bash", "hooks": [hook]}]}}).to_string());
    assert_eq!(lab.run(&["import", "claude"]).code, 0);
    for host in ["claude", "qwen"] {
        assert_eq!(asked(&lab, host, "git push"), decision, "{host}");
    }
    let refused = asked(&lab, "codex", "git push");
    assert_eq!(refused["behavior"], "deny", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("Codex CLI cannot do that here"), "{refused}");
}

#[test]
fn a_matcher_means_the_tool_also_where_a_person_is_asked_about_it() {
    for (matcher, runs) in [("shell", true), ("*", true), ("run_shell_command", true), ("Read", false)] {
        let lab = Lab::new();
        let hook = json!({"name": "no", "matcher": matcher, "dialect": "agent", "action": {"type": "shell", "command": "echo no >&2; exit 2"}});
        lab.write("home/.ollm/hooks/a.json", json!({"hooks": {"approval_request": [hook]}}).to_string());
        assert_eq!(
            asked(&lab, "claude", "git push")["behavior"],
            if runs { json!("deny") } else { Value::Null },
            "{matcher}"
        );
    }
}

#[test]
fn a_hook_for_failed_calls_runs_where_the_result_says_that_it_is_none() {
    let lab = Lab::new();
    let hook = json!({"type": "command", "command": "echo '{\"systemMessage\": \"it failed\"}'"});
    lab.write(CLAUDE, json!({"hooks": {"PostToolUseFailure": [{"hooks": [hook]}]}}).to_string());
    assert_eq!(lab.run(&["import", "claude"]).code, 0);
    let done = |response: Value| {
        let event = json!({"hook_event_name": "AfterTool", "session_id": "s", "cwd": lab.project, "tool_name": "run_shell_command",
            "tool_input": {"command": "false"}, "tool_response": response});
        lab.event_from("gemini", &event.to_string()).stdout
    };
    assert!(done(json!({"llmContent": "1", "error": {"message": "exit 1"}})).contains("it failed"));
    assert_eq!(done(json!({"llmContent": "1", "error": null})), "");
}

#[test]
fn a_permission_rule_holds_under_every_agent() {
    let lab = reading("claude");
    let hook = json!({"type": "command", "command": "echo no >&2; exit 2", "if": "Bash(git push:*)"});
    lab.write(CLAUDE, json!({"hooks": {"PreToolUse": [{"matcher": "Edit|Bash", "hooks": [hook]}]}}).to_string());
    assert_eq!(call(&lab, "gemini", "cd a && git push").answer(), json!({"decision": "deny", "reason": "no"}));
    assert_eq!(call(&lab, "gemini", "git status").stdout, "");
}

#[test]
fn a_hook_in_place_is_listed_shown_planned_and_switched_but_edited_where_it_is() {
    let lab = reading("claude");
    lab.write(CLAUDE, guard());
    let hook = only_hook(&lab);
    let id = hook["id"].as_str().unwrap();
    assert!(id.starts_with("user:.claude/settings.json:before_tool:"), "{id}");
    assert_eq!(
        (&hook["dialect"], &hook["trust"], &hook["line"]),
        (&json!("claude"), &json!("trusted"), &json!(1)),
        "{hook}"
    );
    let shown = lab.run(&["hook", "show", id]);
    assert!(shown.stdout.contains("re:Ba(sh|t)") && shown.stdout.contains(".claude/settings.json"), "{shown:?}");
    let plan = lab
        .run(&["hook", "plan", "before_tool", "--data", "{\"tool_name\": \"run_shell_command\"}", "--json"])
        .answer();
    assert!(plan["stages"].to_string().contains(id), "{plan:#}");
    for change in [&["hook", "edit", id, "timeout=1"][..], &["hook", "remove", id, "--yes"][..]] {
        let ran = lab.run(change);
        assert_eq!(ran.code, 64, "{ran:?}");
        assert!(ran.stderr.contains("is a hook of Claude Code, read where it is"), "{ran:?}");
        assert!(ran.stderr.contains(".claude/settings.json:1;"), "{ran:?}");
    }
    assert_eq!(fs::read_to_string(lab.root.join(CLAUDE)).unwrap(), guard());
    assert_eq!(lab.run(&["hook", "disable", id]).code, 0);
    assert_eq!(call(&lab, "gemini", "git push").stdout, "");
}

#[test]
fn a_projects_hook_in_place_needs_approval_and_loses_it_with_a_changed_byte() {
    let lab = reading("gemini");
    lab.write_executable(
        "project/.gemini/hooks/guard.sh",
        "#!/bin/sh\necho '{\"decision\": \"deny\", \"reason\": \"not here\"}'\n",
    );
    let line = "\"$GEMINI_PROJECT_DIR\"/.gemini/hooks/guard.sh";
    let hook = json!({"matcher": "run_shell_command", "hooks": [{"type": "command", "name": "guard", "command": line, "timeout": 4000}]});
    lab.write("project/.gemini/settings.json", json!({"hooks": {"BeforeTool": [hook]}}).to_string());
    let hook = only_hook(&lab);
    assert_eq!((&hook["source"], &hook["trust"]), (&json!("workspace"), &json!("untrusted")), "{hook}");
    assert_eq!(call(&lab, "claude", "ls").stdout, "", "nobody approved it");
    let id = hook["id"].as_str().unwrap();
    assert_eq!(id, "workspace:.gemini/settings.json:before_tool:guard");
    lab.approve(id);
    let ran = call(&lab, "claude", "ls");
    assert_eq!(ran.answer()["hookSpecificOutput"]["permissionDecisionReason"], "not here", "{ran:?}");
    lab.write_executable("project/.gemini/hooks/guard.sh", "#!/bin/sh\n:\n");
    assert_eq!(only_hook(&lab)["trust"], "modified");
    // Another call: the same one gets the answer of a moment ago.
    assert_eq!(call(&lab, "claude", "ls -a").stdout, "");
}

#[test]
fn nothing_of_a_connected_agent_calls_itself() {
    let lab = reading("claude, kiro, cline, goose");
    for agent in ["claude", "kiro", "cline", "goose"] {
        assert_eq!(lab.run(&["connect", agent]).code, 0);
        let ran = lab.run(&["import", agent]);
        assert!(ran.code == 0 && ran.stderr.contains("has no hooks to take over"), "{ran:?}");
    }
    let list = lab.run(&["hook", "list", "--json"]).answer();
    assert!(list.as_array().unwrap().iter().all(|hook| hook["source"] == "builtin"), "{list:#}");
    assert_eq!(call(&lab, "gemini", "git push").stdout, "");
}

#[test]
fn programs_and_triggers_are_taken_over_too() {
    let lab = Lab::new();
    lab.write_executable(
        "home/Documents/Cline/Hooks/PreToolUse",
        "#!/bin/sh\necho '{\"cancel\": true, \"errorMessage\": \"cline says no\"}'\n",
    );
    assert_eq!(lab.run(&["import", "cline"]).code, 0);
    let ran = call(&lab, "gemini", "ls");
    assert_eq!(ran.answer()["reason"], "cline says no", "{ran:?}");
    fs::remove_file(lab.home.join(".ollm/hooks/cline.json")).unwrap();
    fs::create_dir_all(lab.project.join(".clinerules/hooks")).unwrap();
    fs::rename(lab.home.join("Documents/Cline/Hooks/PreToolUse"), lab.project.join(".clinerules/hooks/PreToolUse"))
        .unwrap();
    assert_eq!(lab.run(&["import", "cline", "--project"]).code, 0);
    lab.approve("workspace:cline.json:before_tool:cline-1");
    assert_eq!(call(&lab, "gemini", "ls").answer()["reason"], "cline says no");
    fs::remove_dir_all(lab.project.join(".ollm")).unwrap();
    let hook = json!({"name": "k", "trigger": "PreToolUse", "action": {"type": "command", "command": "echo kiro says no >&2; exit 2"}});
    lab.write("home/.kiro/hooks/k.json", json!({"version": "v1", "hooks": [hook]}).to_string());
    assert_eq!(lab.run(&["import", "kiro"]).code, 0);
    assert_eq!(call(&lab, "gemini", "ls").answer()["reason"], "kiro says no");
    fs::remove_file(lab.home.join(".ollm/hooks/kiro.json")).unwrap();
    let plugin = json!({"hooks": {"PreToolUse": [{"hooks": [{"command": "echo '{\"decision\": \"block\", \"reason\": \"goose says no\"}'"}]}]}});
    lab.write("home/.agents/plugins/mine/hooks/hooks.json", plugin.to_string());
    assert_eq!(lab.run(&["import", "goose"]).code, 0);
    assert_eq!(call(&lab, "gemini", "ls").answer()["reason"], "goose says no");
}

#[test]
fn odd_files_are_read_as_their_authors_meant_them_or_told() {
    let lab = reading("claude, gemini, codex");
    let loose = guard().replacen('{', "{\r\n // mine\r\n", 1);
    let loose = loose.strip_suffix('}').unwrap().to_owned() + ",\r\n}\r\n";
    lab.write("home/dotfiles/claude.json", format!("\u{feff}{loose}"));
    fs::create_dir_all(lab.home.join(".claude")).unwrap();
    symlink(lab.home.join("dotfiles/claude.json"), lab.root.join(CLAUDE)).unwrap();
    lab.write("home/.gemini/settings.json", "{\"hooks\": {}, \"hooks\": {}}");
    let unreadable = lab.write("home/.codex/hooks.json", guard());
    fs::set_permissions(&unreadable, fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(call(&lab, "gemini", "git push").answer()["decision"], "deny");
    let ran = lab.run(&["hook", "list"]);
    assert!(ran.stderr.contains("`hooks` is in it twice"), "{ran:?}");
    let is_root = fs::read(&unreadable).is_ok();
    assert!(is_root || ran.stderr.contains("chmod u+r"), "{ran:?}");
    let ran = lab.run(&["import", "gemini"]);
    assert!(ran.code == 3 && ran.stderr.contains("`hooks` is in it twice"), "{ran:?}");
    assert!(!Path::new(&lab.home).join(".ollm/hooks/gemini.json").exists());
    let ran = lab.run(&["import", "claude"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn timeouts_are_read_in_each_agents_own_unit() {
    let group = |timeout: u64| json!([{"hooks": [{"type": "command", "command": "true", "timeout": timeout}]}]);
    let flat = |key: &str| json!([{"type": "command", "command": "true", key: 5}]);
    let kiro =
        json!([{"name": "k", "trigger": "PreToolUse", "timeout": 5, "action": {"type": "command", "command": "true"}}]);
    for (agent, file, hooks) in [
        ("claude", ".claude/settings.json", json!({"PreToolUse": group(5)})),
        ("codex", ".codex/hooks.json", json!({"PreToolUse": group(5)})),
        ("gemini", ".gemini/settings.json", json!({"BeforeTool": group(5000)})),
        ("qwen", ".qwen/settings.json", json!({"PreToolUse": group(5)})),
        ("qwen", ".qwen/settings.json", json!({"PreToolUse": group(5000)})),
        ("droid", ".factory/settings.json", json!({"PreToolUse": group(5)})),
        ("goose", ".agents/plugins/a/hooks/hooks.json", json!({"PreToolUse": group(5)})),
        ("cursor", ".cursor/hooks.json", json!({"preToolUse": flat("timeout")})),
        ("copilot", ".copilot/hooks/a.json", json!({"preToolUse": flat("timeoutSec")})),
        ("kiro", ".kiro/hooks/a.json", kiro),
    ] {
        let lab = reading(agent);
        lab.write(&format!("home/{file}"), json!({"hooks": hooks}).to_string());
        let hook = only_hook(&lab);
        let shown = lab.run(&["hook", "show", hook["id"].as_str().unwrap()]);
        assert!(shown.stdout.contains("5s (from the hook)"), "{agent} {hooks}: {shown:?}");
    }
}

#[test]
fn a_matcher_of_how_a_session_starts_holds_under_every_agent() {
    let lab = reading("claude");
    let hook = json!({"matcher": "resume|clear", "hooks": [{"type": "command", "command": "echo read the notes"}]});
    lab.write(CLAUDE, json!({"hooks": {"SessionStart": [hook]}}).to_string());
    let start = |source: Value| {
        let event = json!({"hook_event_name": "SessionStart", "session_id": "s", "cwd": lab.project, "source": source});
        lab.event_from("gemini", &event.to_string()).stdout
    };
    assert!(start(json!("resume")).contains("read the notes"));
    assert_eq!(start(json!("startup")), "");
}

#[test]
fn a_hook_finds_the_files_beside_its_own_as_under_its_agent() {
    let lab = reading("goose, cursor");
    let plugin = "project/.agents/plugins/mine";
    lab.write_executable(
        &format!("{plugin}/no.sh"),
        "#!/bin/sh\necho \"goose says no in ${PLUGIN_ROOT##*/}\" >&2\nexit 2\n",
    );
    let hook = json!({"hooks": [{"type": "command", "command": "\"${PLUGIN_ROOT}\"/no.sh"}]});
    lab.write(&format!("{plugin}/hooks/hooks.json"), json!({"hooks": {"PreToolUse": [hook]}}).to_string());
    let hook = only_hook(&lab);
    let id = hook["id"].as_str().unwrap();
    assert!(id.starts_with("workspace:.agents/plugins/mine/hooks/hooks.json:before_tool:"), "{id}");
    lab.approve(id);
    assert_eq!(call(&lab, "gemini", "ls").answer()["reason"], "goose says no in mine");
    lab.write_executable(&format!("{plugin}/no.sh"), "#!/bin/sh\n:\n");
    assert_eq!(only_hook(&lab)["trust"], "modified");
    fs::remove_dir_all(lab.root.join(plugin)).unwrap();
    lab.write_executable(
        "home/.cursor/hooks/no.sh",
        "#!/bin/sh\necho '{\"permission\": \"deny\", \"user_message\": \"cursor says no\"}'\n",
    );
    let hook = json!({"command": "./hooks/no.sh", "matcher": "^git"});
    lab.write("home/.cursor/hooks.json", json!({"version": 1, "hooks": {"beforeShellExecution": [hook]}}).to_string());
    assert_eq!(call(&lab, "gemini", "git push").answer()["reason"], "cursor says no");
    assert_eq!(call(&lab, "gemini", "ls").stdout, "");
}

#[test]
fn hooks_in_the_toml_of_codex_are_read_and_taken_over() {
    let lab = reading("codex");
    let guard = "echo '{\"decision\": \"block\", \"reason\": \"no push\"}'";
    let settings = format!(
        "model = \"x\"\nsecret = \"sk-123\"\n\n[[hooks.PreToolUse]]\nmatcher = \"Bash\"\n\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = '''{guard}'''\ntimeout = 5\n\n[hooks.state.\"a:b\"]\ntrusted_hash = \"sha256:0\"\n"
    );
    let file = lab.write("home/.codex/config.toml", &settings);
    let hook = only_hook(&lab);
    assert_eq!((&hook["dialect"], &hook["trust"]), (&json!("codex"), &json!("trusted")), "{hook}");
    let ran = call(&lab, "claude", "git push");
    assert_eq!(ran.answer()["hookSpecificOutput"]["permissionDecisionReason"], "no push", "{ran:?}");
    let taken = lab.run(&["import", "codex", "--dry-run"]);
    assert!(taken.code == 0 && taken.stdout.contains("no push") && !taken.stdout.contains("sk-123"), "{taken:?}");
    lab.write("home/.codex/config.toml", "model = \n");
    let broken = lab.run(&["hook", "list"]);
    assert!(broken.stderr.contains("config.toml") && broken.stderr.contains("not valid TOML"), "{broken:?}");
    assert!(file.exists());
}
