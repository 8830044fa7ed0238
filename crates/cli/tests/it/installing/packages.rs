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
