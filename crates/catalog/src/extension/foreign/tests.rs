use std::path::PathBuf;

use ollm_protocol::Rules;
use tempfile::TempDir;

use super::*;
use crate::extension::read::validate;

struct Folder(TempDir);

impl Folder {
    fn of(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        for (path, text) in files {
            let path = folder.root().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn root(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    fn read(&self) -> Foreign {
        foreign_manifest(&self.root()).unwrap().unwrap()
    }

    /// What our own reader makes of the manifest that was written.
    fn loads(&self) -> Foreign {
        let read = self.read();
        fs::write(self.root().join(MANIFEST), read.manifest.to_string()).unwrap();
        let (_, problems) = validate(&self.root(), &Rules::default());
        assert!(problems.is_empty(), "{problems:?}\n{:#}", read.manifest);
        read
    }
}

#[test]
fn a_claude_code_plugin_brings_hooks_servers_skills_and_commands() {
    let folder = Folder::of(&[
        (
            ".claude-plugin/plugin.json",
            r#"{"name": "My_Plugin", "version": "1.2.0", "description": "Does things", "author": {"name": "Ann", "email": "a@e.org"},
                "keywords": ["x"], "mcpServers": {"inline": {"command": "${CLAUDE_PLUGIN_ROOT}/server.sh"}}}"#,
        ),
        (
            "hooks/hooks.json",
            r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
                {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/check.sh", "timeout": 5},
                {"type": "prompt", "prompt": "Is it fine?"}]}]}}"#,
        ),
        (".mcp.json", r#"{"mcpServers": {"time": {"command": "uvx", "args": ["x@1.0", "$CLAUDE_PLUGIN_ROOT/y"]}}}"#),
        ("check.sh", "#!/bin/sh\n"),
        ("server.sh", "#!/bin/sh\n"),
        ("skills/review/SKILL.md", "---\nname: review\ndescription: Reviews\n---\nReview it.\n"),
        ("commands/git/fix.md", "---\ndescription: Fixes\n---\nFix $ARGUMENTS\n"),
        ("commands/live.md", "Look: !`git status`\n"),
        ("agents/a.md", "x"),
    ]);
    let read = folder.loads();
    assert_eq!(read.form, "Claude Code plugin");
    let manifest = &read.manifest;
    assert_eq!(manifest["name"], "my-plugin");
    assert_eq!(manifest["author"], "Ann");
    let hook = &manifest["hooks"]["before_tool"][0];
    assert_eq!(hook["dialect"], "claude");
    let line = hook["action"]["command"].as_str().unwrap();
    assert_eq!(line, "export CLAUDE_PLUGIN_ROOT=\"${OLLM_COPY_DIR}\"; ${OLLM_COPY_DIR}/check.sh");
    assert_eq!(manifest["mcpServers"]["inline"]["command"], "${OLLM_EXTENSION_ROOT}/server.sh");
    assert_eq!(manifest["mcpServers"]["time"]["args"][1], "${OLLM_EXTENSION_ROOT}/y");
    let skills: Vec<&str> =
        manifest["skills"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(skills, ["review", "git-fix"]);
    assert_eq!(manifest["skills"][1]["prompt"], "Fix {{arguments}}");
    let left = read.left.join("\n");
    for word in ["prompt", "commands/live.md: it runs commands", "sub-agents (`agents`)"] {
        assert!(left.contains(word), "{word}: {left}");
    }
}

#[test]
fn a_gemini_cli_extension_brings_servers_settings_hooks_and_commands() {
    let folder = Folder::of(&[
        (
            "gemini-extension.json",
            r#"{"name": "weather", "version": "2.0.0", "contextFileName": "GEMINI.md",
                "mcpServers": {"w": {"command": "node", "args": ["${extensionPath}${/}server.js"], "cwd": "${extensionPath}"}},
                "settings": [{"name": "API Key", "description": "Your key", "envVar": "WEATHER_API_KEY", "sensitive": true}]}"#,
        ),
        ("server.js", ""),
        (
            "hooks/hooks.json",
            r#"{"hooks": {"BeforeTool": [{"matcher": "*", "hooks": [{"type": "command", "command": "sh ${extensionPath}/x.sh"}]}]}}"#,
        ),
        ("x.sh", ""),
        ("commands/ask.toml", "description = \"Asks\"\nprompt = \"Weather in {{args}}?\"\n"),
        ("commands/run.toml", "prompt = \"!{ls}\"\n"),
        ("GEMINI.md", "x"),
    ]);
    let read = folder.loads();
    let manifest = &read.manifest;
    assert_eq!(manifest["mcpServers"]["w"]["args"][0], "${OLLM_EXTENSION_ROOT}/server.js");
    assert_eq!(manifest["hooks"]["before_tool"][0]["action"]["command"], "sh ${OLLM_COPY_DIR}/x.sh");
    assert_eq!(manifest["settings"][0]["name"], "weather_api_key");
    assert_eq!(manifest["skills"][0]["prompt"], "Weather in {{args}}?");
    assert_eq!(read.left.len(), 3, "{:?}", read.left);
}

#[test]
fn an_open_plugin_is_known_by_either_of_its_files() {
    for file in [".plugin/plugin.json", "plugin.json"] {
        let folder = Folder::of(&[
            (file, r#"{"name": "open"}"#),
            ("mcp.json", r#"{"mcpServers": {"x": {"command": "${PLUGIN_ROOT}/x"}}}"#),
            ("x", ""),
            ("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets\n---\nHello.\n"),
        ]);
        let read = folder.loads();
        assert_eq!(read.form, "Open Plugins plugin", "{file}");
        assert_eq!(read.manifest["version"], "0.0.0");
        assert_eq!(read.manifest["skills"][0]["name"], "greet");
        assert_eq!(read.manifest["mcpServers"]["x"]["command"], "${OLLM_EXTENSION_ROOT}/x");
    }
}

#[test]
fn packages_that_make_no_sense_are_refused_with_their_file() {
    for (text, word) in [
        ("{", ".claude-plugin/plugin.json"),
        ("[]", "must be a JSON object"),
        ("{}", "cannot be the name"),
        (r#"{"name": "a", "hooks": "../../x.json"}"#, "leads out"),
        (r#"{"name": "a", "mcpServers": "/etc/passwd"}"#, "leads out"),
    ] {
        let folder = Folder::of(&[(".claude-plugin/plugin.json", text)]);
        let why = foreign_manifest(&folder.root()).unwrap_err();
        assert!(why.contains(word), "{text}: {why}");
    }
    assert_eq!(foreign_manifest(&Folder::of(&[("manifest.json", "{}")]).root()), Ok(None));
}
