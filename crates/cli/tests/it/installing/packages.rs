//! Packages of other agents.

use super::*;

#[test]
fn a_claude_code_plugin_runs_its_hooks_and_says_what_is_not_loaded() {
    let lab = Lab::with_default_boxes();
    lab.write("plugin/.claude-plugin/plugin.json", r#"{"name": "guard", "version": "1.0.0", "description": "Guards"}"#);
    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "\"${CLAUDE_PLUGIN_ROOT}\"/scripts/check.sh \"$CLAUDE_PLUGIN_ROOT/words\""}]}]}});
    lab.write("plugin/hooks/hooks.json", hooks.to_string());
    // It finds its files by its variable and by its arguments, also in a box.
    let check = "#!/bin/sh\ncat \"$1\" \"$CLAUDE_PLUGIN_ROOT/more/words\" >&2\nexit 2\n";
    lab.write("plugin/words", "refused by ");
    lab.write("plugin/more/words", "the plugin");
    lab.write_executable("plugin/scripts/check.sh", check);
    lab.write("plugin/skills/review/SKILL.md", "---\nname: review\ndescription: Reviews\n---\nReview it.\n");
    lab.write("plugin/agents/helper.md", "x");
    let ran = installed(&lab, &[lab.root.join("plugin").to_str().unwrap()]);
    insta::assert_snapshot!(lab.screen(&ran));
    approve(&lab);
    let event = lab.event(shell_event("ls"));
    assert_eq!(event.code, 2, "{event:?}");
    assert!(event.answer()["reason"].as_str().unwrap().contains("refused by the plugin"), "{event:?}");
    assert_eq!(lab.run(&["skill", "show", "guard.review"]).code, 0);
}

/// Writes packages of three other forms, each with a hook and a part that is not loaded.
fn foreign_packages(lab: &Lab) -> [(&'static str, &'static str); 3] {
    let hook = |event: &str| json!({event: [{"hooks": [{"type": "command", "command": "exit 2"}]}]});
    lab.write("claude/.claude-plugin/plugin.json", r#"{"name": "one", "version": "1.0.0", "description": "x"}"#);
    lab.write("claude/hooks/hooks.json", json!({"hooks": hook("PreToolUse")}).to_string());
    lab.write("claude/agents/helper.md", "x");
    lab.write("gemini/gemini-extension.json", r#"{"name": "two", "version": "1.0.0", "description": "x"}"#);
    lab.write("gemini/hooks/hooks.json", json!({"hooks": hook("BeforeTool")}).to_string());
    lab.write("gemini/agents/helper.md", "x");
    lab.write("open/.plugin/plugin.json", r#"{"name": "three", "version": "1.0.0", "description": "x"}"#);
    lab.write("open/hooks/hooks.json", json!({"hooks": hook("PreToolUse")}).to_string());
    lab.write("open/agents/helper.md", "x");
    [("claude", "Claude Code plugin"), ("gemini", "Gemini CLI extension"), ("open", "Open Plugins plugin")]
}

#[test]
fn packages_of_other_agents_are_checked_and_shown_before_anybody_installs_them() {
    let lab = Lab::new();
    for (folder, form) in foreign_packages(&lab) {
        let path = lab.root.join(folder).to_str().unwrap().to_owned();
        let ran = lab.run(&["ext", "validate", &path]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let left = format!("a part of this {form} is not loaded: sub-agents (`agents`)");
        assert!(ran.stderr.contains(&left) && ran.stderr.contains(&format!("1.0.0 (a {form}) is valid")), "{ran:?}");
        let shown = lab.run(&["ext", "info", &path, "--json"]).answer();
        assert_eq!((&shown["form"], &shown["hookDetails"][0]["events"][0]), (&json!(form), &json!("before_tool")));
        let shown = lab.run(&["ext", "show", &path]);
        assert!(shown.stdout.contains(&format!("form        a {form}")), "{shown:?}");
        assert!(shown.stdout.contains("before_tool") && shown.stdout.contains("it is not installed"), "{shown:?}");
    }
    lab.write("broken/gemini-extension.json", r#"{"name": 7}"#);
    let ran = lab.run(&["ext", "validate", "../broken"]);
    assert!(ran.code == 1 && ran.stderr.contains("gemini-extension.json"), "{ran:?}");
}

#[test]
fn an_author_works_on_a_package_of_another_agent() {
    let lab = Lab::new();
    for (folder, form) in foreign_packages(&lab) {
        let id =
            lab.run(&["ext", "info", &format!("../{folder}"), "--json"]).answer()["hookDetails"][0]["name"].clone();
        let case =
            r#"{"event": "before_tool", "data": {"tool_name": "shell", "args": {}}, "expect": {"flow": "block"}}"#;
        lab.write(&format!("{folder}/cases/{}/refuses.json", id.as_str().unwrap()), case);
        let mut author = lab.pty(crate::lab::pty::WHOLE, &["ext", "dev", &format!("../{folder}")]);
        author.waits_for("[y/N] ").types("y\n");
        author.waits_for("waiting for a change").types("\x03");
        let ran = author.ends();
        assert!(ran.stdout.contains("1 passed, 0 failed"), "{form}: {ran:?}");
    }
}

#[test]
fn a_gemini_cli_extension_is_installed_with_its_servers_and_settings() {
    let lab = Lab::new();
    let manifest = json!({
        "name": "guard", "version": "1.0.0",
        "mcpServers": {"w": {"command": "node", "args": ["${extensionPath}${/}server.js"]}},
        "settings": [{"name": "Key", "description": "Your key", "envVar": "W_KEY", "sensitive": true}],
    });
    lab.write("gemini/gemini-extension.json", manifest.to_string());
    lab.write("gemini/server.js", "");
    installed(&lab, &[lab.root.join("gemini").to_str().unwrap()]);
    let listed = entry(&lab);
    assert_eq!((&listed["mcpServers"], &listed["settings"]), (&json!(["w"]), &json!(["w_key"])));
    assert!(listed["error"].is_null(), "{listed:#}");
}

#[test]
fn a_package_of_another_agent_that_changes_is_updated() {
    let lab = Lab::new();
    let write = |version: &str| {
        lab.write("open/plugin.json", json!({"name": "guard", "version": version}).to_string());
        lab.write("open/skills/greet/SKILL.md", format!("---\nname: greet\ndescription: d\n---\nHello {version}.\n"));
    };
    write("1.0.0");
    installed(&lab, &[lab.root.join("open").to_str().unwrap()]);
    write("1.1.0");
    assert_eq!(lab.run(&["ext", "update", "--yes"]).code, 0);
    assert_eq!(version(&lab), "1.1.0");
}

#[test]
fn what_has_no_counterpart_keeps_no_package_of_another_agent_out() {
    let lab = Lab::new();
    lab.write("plugin/.claude-plugin/plugin.json", json!({"name": "guard", "version": "1.0.0"}).to_string());
    let servers = json!({"good": {"command": "sh", "args": ["x.sh"]}, "socket": {"type": "ws", "url": "wss://e.org"}});
    lab.write("plugin/.mcp.json", json!({"mcpServers": servers}).to_string());
    lab.write("plugin/skills/README.md", "What lies here.\n");
    lab.write("plugin/skills/review/SKILL.md", "---\nname: review\ndescription: Reviews\n---\nReview it.\n");
    let path = lab.root.join("plugin").to_str().unwrap().to_owned();
    let valid = lab.run(&["ext", "validate", &path]);
    assert_eq!(valid.code, 0, "{valid:?}");
    let told = changed(&installed(&lab, &[&path, "--json"]));
    let left = told["notLoaded"].as_array().unwrap();
    assert!(left.len() == 1 && left[0].as_str().unwrap().starts_with("the server `socket`: "), "{told:#}");
    let listed = entry(&lab);
    assert_eq!((&listed["mcpServers"], &listed["error"]), (&json!(["good"]), &Value::Null), "{listed:#}");
    let skills = lab.run(&["skill", "list", "--json"]);
    assert_eq!((skills.answer().as_array().unwrap().len(), skills.stderr.as_str()), (1, ""), "{skills:?}");
}
