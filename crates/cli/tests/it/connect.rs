//! Other agents are told to ask us, and told no more, as a person would do it.

mod project;
mod read_only;
mod standing;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::lab::{Lab, OLLM, Ran};

const AGENTS: &[&str] = &[
    "claude", "codex", "gemini", "qwen", "droid", "cursor", "copilot", "windsurf", "kiro", "goose", "cline", "opencode",
];

const SETTINGS: &str = "home/.claude/settings.json";

fn read(lab: &Lab, path: &str) -> String {
    fs::read_to_string(lab.root.join(path)).unwrap()
}

fn status(lab: &Lab, agent: &str) -> Value {
    let all = lab.run(&["connect", "--json"]).answer();
    all.as_array().unwrap().iter().find(|entry| entry["id"] == agent).unwrap().clone()
}

/// The line that Claude Code would run before a tool.
fn line(lab: &Lab) -> String {
    let settings: Value = serde_json::from_str(&read(lab, SETTINGS)).unwrap();
    settings["hooks"]["PreToolUse"].as_array().unwrap().last().unwrap()["hooks"][0]["command"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn call(lab: &Lab, line: &str, command: &str) -> Ran {
    let event = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": lab.project, "tool_name": "Bash",
        "tool_input": {"command": command}, "tool_use_id": "t"});
    let mut shell = lab.program("/bin/sh");
    shell.args(["-c", line]);
    crate::lab::finish(shell, event.to_string().as_bytes())
}

/// A lab in which no program is found: neither agents nor another copy of us.
fn bare_lab() -> Lab {
    let lab = Lab::new();
    let nothing = lab.root.join("no-programs");
    lab.set("PATH", nothing.to_str().unwrap())
}

/// Every file below the lab's root but ours.
fn files(lab: &Lab) -> Vec<String> {
    let mut folders = vec![lab.root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.file_name().is_some_and(|name| name == ".ollm") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(&lab.root).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_agent_is_connected_and_nothing_is_left_when_all_are_disconnected() {
    let lab = Lab::new();
    let before = files(&lab);
    for agent in AGENTS {
        let ran = lab.run(&["connect", agent]);
        assert_eq!(ran.code, 0, "{agent}: {ran:?}");
        assert!(ran.stderr.contains("the line works"), "{agent}: {ran:?}");
        assert_eq!(status(&lab, agent)["connected"], true, "{agent}");
        assert_eq!(status(&lab, agent)["lastFired"], Value::Null, "only the agent itself shows that it asks");
    }
    let told = files(&lab);
    assert!(told.len() >= AGENTS.len());
    for agent in AGENTS {
        assert_eq!(lab.run(&["connect", agent]).code, 0);
    }
    assert_eq!(files(&lab), told, "a second time changes nothing");
    assert_eq!(lab.run(&["disconnect", "--all"]).code, 0);
    assert_eq!(files(&lab), before);
}

#[test]
fn entries_of_a_program_of_any_name_are_ours() {
    let lab = Lab::new();
    let before = files(&lab);
    for agent in AGENTS {
        assert_eq!(lab.run(&["connect", agent]).code, 0);
    }
    let renamed = lab.write_executable("bin/renamed", "#!/bin/sh\n");
    for file in files(&lab) {
        lab.write(&file, read(&lab, &file).replace(OLLM, renamed.to_str().unwrap()));
    }
    lab.write("home/.ollm/config.yaml", format!("hooks:\n  read: [{}]\n", AGENTS.join(", ")));
    let list = lab.run(&["hook", "list", "--json"]).answer();
    assert!(list.as_array().unwrap().iter().all(|hook| hook["source"] == "builtin"), "{list:#}");
    for agent in AGENTS {
        assert_eq!(status(&lab, agent)["links"][0]["state"], "connected", "{agent}");
    }
    assert_eq!(lab.run(&["disconnect", "--all"]).code, 0);
    fs::remove_file(renamed).unwrap();
    assert_eq!(files(&lab), before);
}

#[test]
fn trying_a_new_connection_fires_no_hook() {
    let lab = Lab::new();
    for event in ["session_start", "before_tool"] {
        lab.user_hook(event, event, "touch fired; echo '{\"decision\": \"block\", \"reason\": \"no\"}'", "");
    }
    for agent in AGENTS {
        let ran = lab.run(&["connect", agent]);
        assert_eq!(ran.code, 0, "{agent}: {ran:?}");
        assert!(!lab.project.join("fired").exists(), "{agent}");
    }
}

#[test]
fn the_list_names_every_agent_on_a_line_of_its_own() {
    let lab = bare_lab();
    lab.run(&["connect", "claude"]);
    insta::assert_snapshot!(lab.screen(&lab.run(&["connect"])));
}

#[test]
fn a_connected_agent_is_answered_in_its_own_words_and_known_to_ask() {
    let lab = Lab::new();
    lab.run(&["connect", "claude"]);
    let line = line(&lab);
    assert!(line.starts_with(&format!("{OLLM} hook run PreToolUse --from claude")), "{line}");
    let passed = call(&lab, &line, "git status");
    assert_eq!((passed.code, passed.stdout.as_str(), passed.stderr.as_str()), (0, "", ""));
    let refused = call(&lab, &line, "rm -rf ~").answer();
    assert_eq!(refused["hookSpecificOutput"]["permissionDecision"], "deny");
    assert!(status(&lab, "claude")["lastFired"].is_string());
}

#[test]
fn what_else_is_in_the_file_stays_to_the_letter_with_its_mode_and_its_link() {
    let lab = Lab::new();
    let text = "\u{feff}{\r\n  \"model\": \"opus\",\r\n  \"hooks\": { \"Stop\": [ {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]} ] }\r\n}\r\n";
    let real = lab.write("home/dotfiles/claude.json", text);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(lab.root.join("home/.claude")).unwrap();
    symlink(&real, lab.root.join(SETTINGS)).unwrap();
    assert_eq!(lab.run(&["connect", "claude"]).code, 0);
    let told = fs::read_to_string(&real).unwrap();
    assert!(
        told.starts_with('\u{feff}') && told.contains("say done") && told.contains("\"model\": \"opus\",\r\n"),
        "{told:?}"
    );
    assert!(lab.root.join(SETTINGS).symlink_metadata().unwrap().is_symlink());
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(lab.run(&["disconnect", "claude"]).code, 0);
    assert_eq!(fs::read_to_string(&real).unwrap(), text);
    assert_eq!(fs::read_dir(lab.root.join("home/dotfiles")).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn later_edits_are_never_overwritten_by_what_was_there_before() {
    let lab = Lab::new();
    lab.write(SETTINGS, "{\"model\": \"opus\"}");
    lab.run(&["connect", "claude"]);
    let edited = read(&lab, SETTINGS).replace("opus", "sonnet");
    lab.write(SETTINGS, &edited);
    lab.run(&["connect", "claude"]);
    assert_eq!(lab.run(&["disconnect", "claude"]).code, 0);
    let left: Value = serde_json::from_str(&read(&lab, SETTINGS)).unwrap();
    assert_eq!(left, json!({"model": "sonnet"}));
    // A file that we made goes, unless more was put into it.
    lab.run(&["connect", "codex"]);
    let own = "home/.codex/hooks.json";
    lab.write(own, read(&lab, own).replacen('{', "{\"description\": \"mine\", ", 1));
    lab.run(&["disconnect", "codex"]);
    assert_eq!(serde_json::from_str::<Value>(&read(&lab, own)).unwrap(), json!({"description": "mine"}));
}

#[test]
fn a_list_on_one_line_is_on_one_line_again_although_somebody_edited_the_file_since() {
    let lab = Lab::new();
    let own =
        "\n  \"hooks\": {\n    \"Stop\": [{\"hooks\":[{\"type\":\"command\",\"command\":\"echo own\"}]}]\n  }\n}\n";
    lab.write(SETTINGS, format!("{{{own}"));
    lab.run(&["connect", "claude"]);
    lab.write(SETTINGS, read(&lab, SETTINGS).replacen('{', "{\n  \"later\": true,", 1));
    assert_eq!(lab.run(&["disconnect", "claude"]).code, 0);
    assert_eq!(read(&lab, SETTINGS), format!("{{\n  \"later\": true,{own}"));
}

#[test]
fn a_file_that_cannot_be_read_keeps_no_other_agent_connected() {
    let lab = Lab::new();
    for agent in ["codex", "gemini", "opencode"] {
        lab.run(&["connect", agent]);
    }
    lab.write(SETTINGS, "{\"hooks\": ");
    let ran = lab.run(&["disconnect", "--all"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("settings.json"), "{ran:?}");
    for agent in ["codex", "gemini", "opencode"] {
        assert_eq!(status(&lab, agent)["links"], json!([]), "{agent}");
    }
}

#[test]
fn a_dry_run_shows_the_difference_and_changes_nothing() {
    let lab = Lab::new();
    let text = "{\"model\": \"opus\"}\n";
    lab.write(SETTINGS, text);
    let ran = lab.run(&["connect", "claude", "--dry-run"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.starts_with("--- ") && ran.stdout.contains("hook run PreToolUse --from claude"), "{ran:?}");
    assert_eq!(read(&lab, SETTINGS), text);
    assert_eq!(status(&lab, "claude")["connected"], false);
}

#[test]
fn a_link_that_leads_nowhere_is_refused_in_a_dry_run_as_well() {
    let lab = Lab::new();
    lab.write("home/.claude/other.json", "{}");
    symlink("nothing.json", lab.root.join(SETTINGS)).unwrap();
    for arguments in [["connect", "claude"].as_slice(), &["connect", "claude", "--dry-run"]] {
        let ran = lab.run(arguments);
        assert!(ran.code == 5 && ran.stderr.contains("is a symbolic link"), "{arguments:?} {ran:?}");
    }
}

#[test]
fn files_that_cannot_be_understood_or_written_are_told_and_left_alone() {
    for (text, why) in [
        ("{\"hooks\": ", "not valid JSON"),
        ("[1]", "not a JSON object"),
        ("{\"hooks\": {}, \"hooks\": {}}", "`hooks` is in it twice"),
    ] {
        let lab = Lab::new();
        lab.write(SETTINGS, text);
        for command in ["connect", "disconnect"] {
            let ran = lab.run(&[command, "claude"]);
            assert_eq!(ran.code, 3, "{ran:?}");
            assert!(ran.stderr.contains(why) && ran.stderr.contains("settings.json"), "{ran:?}");
            assert_eq!(read(&lab, SETTINGS), text);
        }
    }
    let lab = Lab::new();
    fs::create_dir_all(lab.root.join(SETTINGS)).unwrap();
    let ran = lab.run(&["connect", "claude"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    let ran = lab.run(&["connect", "nobody"]);
    assert_eq!(ran.code, 64);
    assert!(ran.stderr.contains("claude, codex, gemini"), "{ran:?}");
}

#[test]
fn a_form_that_the_agent_itself_does_not_read_is_told() {
    let lab = Lab::new();
    lab.write(SETTINGS, "{ // mine\n}");
    let ran = lab.run(&["connect", "claude"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("Claude Code does not read") && ran.stderr.contains("comments"), "{ran:?}");
    lab.write("home/.codex/hooks.json", "{\"description\": \"mine\", \"model\": \"x\"}");
    let ran = lab.run(&["connect", "codex"]);
    assert!(ran.stderr.contains("Codex CLI does not read") && ran.stderr.contains("it has `model`"), "{ran:?}");
    lab.write("home/.codex/hooks.json", "{\"description\": \"mine\"}");
    assert!(!lab.run(&["connect", "codex"]).stderr.contains("does not read"));
}

#[test]
fn a_line_that_was_taken_out_or_leads_nowhere_is_noticed() {
    let lab = Lab::new();
    lab.run(&["connect", "claude"]);
    let text = read(&lab, SETTINGS);
    lab.write(SETTINGS, text.replace(OLLM, "/gone/ollm"));
    let ran = lab.run(&["connect"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("names /gone/ollm, which is gone"), "{ran:?}");
    lab.write(SETTINGS, "{}");
    assert_eq!(status(&lab, "claude")["links"][0]["state"], "removed");
    assert_eq!(lab.run(&["connect", "claude"]).code, 0);
    assert_eq!(status(&lab, "claude")["connected"], true);
    // A request to disconnect entries that the person took out forgets them.
    lab.write(SETTINGS, "{}");
    assert_eq!(lab.run(&["disconnect", "claude"]).code, 0);
    assert_eq!(status(&lab, "claude")["links"], json!([]));
}

#[test]
fn entries_that_the_agent_does_not_run_are_not_called_connected() {
    type Edit = fn(&str) -> String;
    let doubled: Edit = |text| {
        let mut settings: Value = serde_json::from_str(text).unwrap();
        let list = settings["hooks"]["PreToolUse"].as_array_mut().unwrap();
        list.push(list[0].clone());
        settings.to_string()
    };
    let narrowed: Edit = |text| {
        let mut settings: Value = serde_json::from_str(text).unwrap();
        settings["hooks"]["PreToolUse"][0]["matcher"] = "Bash".into();
        settings.to_string()
    };
    let commented: Edit = |text| text.replacen('{', "{ // mine\n", 1);
    let off: Edit = |text| text.replacen('{', "{\"disableAllHooks\": true,", 1);
    for (edit, state, detail) in [
        (commented, "ineffective", "comments"),
        (off, "ineffective", "switched off"),
        (narrowed, "incomplete", ""),
        (doubled, "duplicated", ""),
    ] {
        let lab = Lab::new();
        lab.run(&["connect", "claude"]);
        lab.write(SETTINGS, edit(&read(&lab, SETTINGS)));
        let claude = status(&lab, "claude");
        let link = &claude["links"][0];
        assert_eq!((&link["state"], &claude["connected"]), (&json!(state), &json!(false)), "{claude}");
        assert!(link["detail"].as_str().unwrap_or_default().contains(detail), "{claude}");
        assert_eq!(claude["duplicated"], state == "duplicated");
        assert_eq!(lab.run(&["connect"]).code, 1);
        if detail.is_empty() {
            assert_eq!(lab.run(&["connect", "claude"]).code, 0);
            assert_eq!(status(&lab, "claude")["connected"], true);
        }
    }
}

#[test]
fn an_agent_can_neither_connect_nor_disconnect() {
    let lab = Lab::new().set("CLAUDECODE", "1");
    for command in ["connect", "disconnect"] {
        let ran = lab.run(&[command, "claude"]);
        assert_eq!(ran.code, 4, "{ran:?}");
    }
    assert!(!lab.root.join(SETTINGS).exists());
    assert_eq!(lab.run(&["connect", "--json"]).code, 0, "it may look");
}

#[test]
fn what_hooks_can_do_under_an_agent_is_shown() {
    let lab = bare_lab();
    let ran = lab.run(&["connect", "codex", "--capabilities"]);
    assert!(ran.stdout.lines().any(|line| line.starts_with("PreToolUse") && line.contains("block, modify")), "{ran:?}");
    let events = lab.run(&["connect", "windsurf", "--capabilities", "--json"]).answer()["events"].clone();
    let command = events.as_array().unwrap().iter().find(|event| event["event"] == "pre_run_command").unwrap().clone();
    assert!(command["can"].as_array().unwrap().contains(&json!("block")), "{command}");
}

#[test]
fn an_agent_that_shows_what_we_print_only_on_demand_is_told_to() {
    let lab = Lab::new();
    assert_eq!(lab.run(&["connect", "windsurf"]).code, 0);
    let settings: Value = serde_json::from_str(&read(&lab, "home/.codeium/windsurf/hooks.json")).unwrap();
    let entries: Vec<&Value> = settings["hooks"].as_object().unwrap().values().map(|list| &list[0]).collect();
    assert!(!entries.is_empty() && entries.iter().all(|entry| entry["show_output"] == true), "{settings:#}");
}

#[test]
fn a_hook_of_one_agent_stands_in_the_way_of_another_once_it_is_imported() {
    let lab = Lab::new();
    let script = "grep -q 'git push' && { echo \"no push in $CLAUDE_PROJECT_DIR\" >&2; exit 2; }; exit 0";
    let hook = json!({"matcher": "Bash", "hooks": [{"type": "command", "command": script, "timeout": 5}]});
    lab.write(SETTINGS, json!({"hooks": {"PreToolUse": [hook]}}).to_string());
    let ran = lab.run(&["import", "claude"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let event = json!({"hook_event_name": "BeforeTool", "session_id": "s", "cwd": lab.project, "tool_name": "run_shell_command",
        "tool_input": {"command": "git push"}});
    let ran = lab.event_from("gemini", &event.to_string());
    assert_eq!(ran.answer(), json!({"decision": "deny", "reason": format!("no push in {}", lab.project.display())}));
    assert_eq!(lab.run(&["import", "claude"]).code, 0, "a second time changes nothing");
    lab.write("home/.ollm/hooks/claude.json", "{}");
    assert_eq!(lab.run(&["import", "claude"]).code, 64, "other hooks are not overwritten");
    let ran = lab.run(&["import", "opencode"]);
    assert!(ran.code == 0 && ran.stderr.contains("hooks of opencode are code, which only it can run"), "{ran:?}");
    let ran = lab.run(&["import", "gemini"]);
    assert!(ran.code == 0 && ran.stderr.contains("Gemini CLI has no hooks to take over"), "{ran:?}");
}

#[test]
fn an_installed_agent_is_found_with_its_version() {
    let lab = bare_lab();
    lab.write("lib/claude-code/package.json", "{\"version\": \"2.1.325\"}");
    lab.write_executable("lib/claude-code/cli.js", "#!/usr/bin/env node\n");
    fs::create_dir_all(lab.root.join("no-programs")).unwrap();
    symlink(lab.root.join("lib/claude-code/cli.js"), lab.root.join("no-programs/claude")).unwrap();
    let found = status(&lab, "claude");
    assert_eq!((&found["installed"], &found["version"]), (&json!(true), &json!("2.1.325")));
    for (agent, file, version) in [
        ("codex", "lib/codex/versions/0.166.0", json!("0.166.0")),
        ("opencode", "Cellar/opencode/1.18.33_1/bin/opencode", json!("1.18.33_1")),
        ("goose", "bin-1.2/goose", Value::Null),
    ] {
        let program = lab.write_executable(file, "#!/bin/sh\n");
        symlink(program, lab.root.join("no-programs").join(agent)).unwrap();
        let found = status(&lab, agent);
        assert_eq!((&found["installed"], &found["version"]), (&json!(true), &version), "{agent}");
    }
}

#[test]
fn a_settings_file_that_was_moved_and_linked_since_keeps_its_link_and_loses_our_entries() {
    let lab = bare_lab();
    lab.run(&["connect", "claude"]);
    let moved = lab.root.join("dotfiles.json");
    fs::rename(lab.root.join(SETTINGS), &moved).unwrap();
    symlink(&moved, lab.root.join(SETTINGS)).unwrap();
    assert_eq!(lab.run(&["disconnect", "claude"]).code, 0);
    assert!(lab.root.join(SETTINGS).is_symlink());
    assert_eq!(serde_json::from_str::<Value>(&fs::read_to_string(moved).unwrap()).unwrap(), json!({}));
}

#[test]
fn what_somebody_noted_in_a_file_that_we_made_stays() {
    let lab = bare_lab();
    lab.run(&["connect", "gemini"]);
    let file = "home/.gemini/settings.json";
    lab.write(file, read(&lab, file).replacen('{', "{ // mine", 1));
    assert_eq!(lab.run(&["disconnect", "gemini"]).code, 0);
    assert_eq!(read(&lab, file), "{ // mine\n}\n");
}

#[test]
fn what_somebody_added_to_a_file_of_ours_is_not_lost() {
    let lab = bare_lab();
    let (script, plugin) = ("home/Documents/Cline/Hooks/PreToolUse", "home/.config/opencode/plugins/ollm.js");
    for (agent, file, more) in [("cline", script, "log call\n"), ("opencode", plugin, "// mine\n")] {
        lab.run(&["connect", agent]);
        lab.write(file, read(&lab, file) + more);
        let ran = lab.run(&["disconnect", agent]);
        let kept = ran.stderr.lines().find_map(|line| line.split_once("is kept in ")).expect(&ran.stderr).1;
        assert!(fs::read_to_string(kept).unwrap().ends_with(more), "{ran:?}");
    }
    assert_eq!(read(&lab, script), "#!/bin/sh\nlog call\n");
    assert!(!lab.root.join(plugin).exists());
    // An untouched file needs no copy.
    lab.run(&["connect", "goose"]);
    assert_eq!(lab.run(&["disconnect", "goose"]).stderr, "");
}

#[test]
fn what_stands_around_our_entries_stays_to_the_letter_although_somebody_edited_the_file_since() {
    for text in [
        "{\"model\": \"opus\"}\n",
        "{\n\n  \"model\": \"opus\"\n\n}\n",
        "{\n  \"model\": \"opus\",\r\n  \"tips\": 1\n}",
        "{ \"hooks\": { \"Stop\": [] }, \"model\": \"opus\" }\n",
        "{\"hooks\": {\"Stop\": [{\"hooks\": []}], \"PreToolUse\": []}, \"model\": \"opus\"}\n",
    ] {
        let lab = bare_lab();
        lab.write(SETTINGS, text);
        lab.run(&["connect", "claude"]);
        lab.write(SETTINGS, read(&lab, SETTINGS).replace("opus", "sonnet"));
        assert_eq!(lab.run(&["disconnect", "claude"]).code, 0);
        assert_eq!(read(&lab, SETTINGS), text.replace("opus", "sonnet"));
    }
}

#[test]
fn a_variable_that_moves_an_agents_folder_is_followed() {
    let lab = Lab::new();
    let moved = lab.root.join("elsewhere");
    let lab = lab.set("CODEX_HOME", moved.to_str().unwrap());
    assert_eq!(lab.run(&["connect", "codex"]).code, 0);
    assert!(moved.join("hooks.json").is_file());
}

#[test]
fn whoever_connects_an_agent_is_told_which_guards_are_off() {
    let lab = bare_lab();
    lab.write("home/.ollm/config.yaml", "hooks: {guards: []}\n");
    for arguments in [&["connect"] as &[&str], &["connect", "claude"]] {
        let ran = lab.run(arguments);
        assert!(ran.stderr.contains("guard `destructive-commands` is off"), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn a_settings_file_of_several_names_is_left_alone_and_keeps_them() {
    let lab = bare_lab();
    let text = "{\"model\": \"x\"}\n";
    lab.write(SETTINGS, text);
    let other = lab.root.join("dotfiles.json");
    fs::hard_link(lab.root.join(SETTINGS), &other).unwrap();
    let ran = lab.run(&["connect", "claude"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("settings.json has 2 names"), "{ran:?}");
    assert_eq!((read(&lab, SETTINGS), fs::read_to_string(&other).unwrap()), (text.to_owned(), text.to_owned()));
    assert_eq!(status(&lab, "claude")["connected"], false);
}

#[test]
fn disconnecting_nobody_in_particular_says_how_to_disconnect_all() {
    let ran = bare_lab().run(&["disconnect"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (64, ""), "{ran:?}");
    assert!(ran.stderr.contains("`--all`"), "{ran:?}");
}

#[test]
fn an_agent_whose_entries_were_removed_is_not_counted_as_connected() {
    let lab = bare_lab();
    assert_eq!(lab.run(&["connect", "claude"]).code, 0);
    assert_eq!(lab.run(&["connect", "gemini"]).code, 0);
    lab.write(SETTINGS, "{}\n");
    let seen = lab.run(&["doctor", "--json"]).answer()["lookedAt"]["agents"].clone();
    assert_eq!(seen, "1 connected, 0 of them asked already");
}

#[test]
fn json_says_whether_an_agent_is_connected_with_a_box() {
    let lab = Lab::new();
    assert_eq!(status(&lab, "claude")["box"], "possible");
    let boxed = lab.run(&["connect", "claude", "--box"]);
    let expected = if boxed.code == 0 { "on" } else { "possible" };
    assert_eq!(status(&lab, "claude")["box"], expected, "{boxed:?}");
    assert_eq!(status(&lab, "qwen")["box"], "net only");
}
