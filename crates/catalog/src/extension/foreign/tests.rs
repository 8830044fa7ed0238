use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::extension::find::INSTALL_RECORD;
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

    fn read(&self) -> TranslatedPackage {
        foreign_manifest(&self.root(), &Rules::default()).unwrap().unwrap()
    }

    /// The translation, read by our own reader.
    fn loads(&self) -> TranslatedPackage {
        let read = self.read();
        fs::write(self.root().join(MANIFEST), read.manifest.to_string()).unwrap();
        fs::write(self.root().join(INSTALL_RECORD), json!({"form": read.form}).to_string()).unwrap();
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
    assert_eq!(manifest["mcpServers"]["w"]["env"], Value::Null);
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
fn what_our_model_cannot_express_is_listed_and_hides_nothing_else() {
    let folder = Folder::of(&[
        (
            ".plugin/plugin.json",
            r#"{"name": "open", "settings": [{"name": "1 x", "envVar": "1 X"}, {"name": "Key", "envVar": "OPEN_KEY"}]}"#,
        ),
        (
            "mcp.json",
            r#"{"mcpServers": {
                "good": {"type": "stdio", "command": "sh", "args": ["${PLUGIN_ROOT}/x.sh"]},
                "socket": {"type": "ws", "url": "wss://example.org/x"},
                "web": {"type": "streamable-http", "url": "https://example.org/mcp"},
                "cache": {"type": "stdio", "command": "sh", "args": ["x.sh", "${PLUGIN_DATA}/cache"]}}}"#,
        ),
        (
            "hooks/hooks.json",
            r#"{"hooks": {"PreToolUse": [{"hooks": [
                {"type": "command", "command": "cat \"${CLAUDE_PLUGIN_DATA}\"/state"},
                {"type": "command", "command": "sh ${PLUGIN_ROOT}/x.sh"}]}]}}"#,
        ),
        ("x.sh", ""),
        ("skills/README.md", "What lies here.\n"),
        ("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets\n---\nHello.\n"),
    ]);
    let read = folder.loads();
    let names = |part: &str| -> Vec<String> { read.manifest[part].as_object().unwrap().keys().cloned().collect() };
    assert_eq!(names("mcpServers"), ["good", "web"]);
    assert_eq!(read.manifest["hooks"]["before_tool"].as_array().unwrap().len(), 1);
    assert_eq!(read.manifest["settings"].as_array().unwrap().len(), 1);
    assert_eq!(read.manifest["mcpServers"]["good"]["env"]["PLUGIN_ROOT"], "${OLLM_EXTENSION_ROOT}");
    assert_eq!(read.manifest["mcpServers"]["web"]["env"], Value::Null);
    let left = read.left.join("\n");
    for words in [
        "`socket`: the transport must be",
        "`cache` of mcp.json: it keeps data",
        "a hook at before_tool: it keeps data",
    ] {
        assert!(left.contains(words), "{words}: {left}");
    }
    assert_eq!(read.left.len(), 4, "{left}");
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
        let why = foreign_manifest(&folder.root(), &Rules::default()).unwrap_err();
        assert!(why.contains(word), "{text}: {why}");
    }
    assert_eq!(foreign_manifest(&Folder::of(&[("manifest.json", "{}")]).root(), &Rules::default()), Ok(None));
}

#[test]
fn keys_that_nobody_knows_are_listed_and_a_file_that_is_named_twice_is_read_once() {
    let hook = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}, {"type": "prompt", "prompt": "x"}]}]}}"#;
    let folder = Folder::of(&[
        (
            ".claude-plugin/plugin.json",
            r#"{"name": "a", "displayName": "A", "hooks": ["./hooks/hooks.json", "hooks/more.json"], "settings": {"agent": "x"},
                "mcpServers": ["./.mcp.json"], "experimental": {"x": 1}, "evals": "./evals", "nothing": null, "dependencies": ["b"]}"#,
        ),
        ("hooks/hooks.json", hook),
        ("hooks/more.json", &hook.replace("true", "false")),
        (".mcp.json", r#"{"mcpServers": {"bad name": {"command": "x"}}}"#),
        ("bin/tool", ""),
        ("skills/live/SKILL.md", "---\ndescription: d\n---\nLook: !`git status`\n"),
        ("skills/awk/SKILL.md", "---\ndescription: d\n---\nRun `awk '{print $1}'` on $ARGUMENTS\n"),
    ]);
    let TranslatedPackage { manifest, left, .. } = folder.loads();
    assert_eq!(manifest["hooks"]["after_agent"].as_array().unwrap().len(), 2, "{manifest:#}");
    assert_eq!(manifest["skills"][0]["prompt"], "Run `awk '{print $1}'` on {{arguments}}");
    assert_eq!(manifest["skills"].as_array().unwrap().len(), 1);
    let of = |word: &str| left.iter().filter(|line| line.contains(word)).count();
    let counts = [
        "asks a model",
        "bad name",
        "skills/live",
        "settings of",
        "`dependencies`",
        "`bin`",
        "`experimental`",
        "`evals`",
    ]
    .map(of);
    assert_eq!(counts, [2, 1, 1, 1, 1, 1, 1, 1], "{left:#?}");
    assert_eq!(left.len(), 9, "{left:#?}");
}
