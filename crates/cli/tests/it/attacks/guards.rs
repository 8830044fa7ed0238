//! What an attack from outside got past the built-in guards, through the program.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Lab, finish, shell_event};

/// What the guards say about a call that is made in a folder.
fn said(lab: &Lab, folder: &Path, event: &str) -> String {
    let mut command = lab.ollm(&["hook", "run"]);
    command.current_dir(folder);
    finish(command, event.as_bytes()).answer()["flow"].as_str().unwrap().to_owned()
}

fn tool_event(tool: &str, args: &Value) -> String {
    json!({"event": "before_tool", "data": {"tool_name": tool, "args": args}}).to_string()
}

/// None of these commands gets by without a person, and ordinary work does.
fn stopped(commands: &[&str]) {
    let lab = Lab::new();
    lab.write("home/.ollm/config.yaml", "hooks: {}\n");
    let said = |command: &str| said(&lab, &lab.project, &shell_event(command));
    assert_eq!(said("git status"), "no_opinion");
    for command in commands {
        assert!(matches!(said(command).as_str(), "ask" | "block"), "{command}");
    }
}

#[test]
fn s01_one_command_neither_removes_nor_rewrites_our_files() {
    let own = format!("cp /bin/true {}", crate::lab::OLLM);
    stopped(&[
        "find ~/.ollm/hooks -name '*.json' -delete",
        "curl -sSLo ~/.ollm/config.yaml http://localhost",
        "wget -qO ~/.ollm/config.yaml http://localhost",
        "yq -i '.hooks.enabled=false' ~/.ollm/config.yaml",
        "D=$(echo ~/.ollm); echo x > $D/config.yaml",
        "cp /bin/true ~/.cargo/bin/ollm",
        &own,
    ]);
}

#[test]
fn s06_everyday_forms_of_a_destructive_command_are_read() {
    stopped(&[
        "bash -euo pipefail -c 'rm -rf ~'",
        "echo \\\r\nrm -rf ~",
        "rm -rf /[[:alpha:]]*",
        "find ~ -type f | xargs rm -f",
        "find -O3 ~ -delete",
        "env --chdir=/ rm -rf home",
        "time -v rm -rf ~",
        "npx -c 'rm -rf ~'",
        "x=echo; export \"x=rm -rf /\"; $x",
    ]);
}

#[test]
fn s09_files_of_all_agents_are_protected_also_without_a_project() {
    let lab = Lab::new();
    let bare = lab.root.join("bare");
    fs::create_dir(&bare).unwrap();
    let write = |folder: &Path, path: &str| {
        said(&lab, folder, &tool_event("write_file", &json!({"path": path, "content": "x"})))
    };
    for folder in [&lab.project, &bare] {
        assert_eq!(write(folder, "src/main.rs"), "no_opinion");
        for path in [
            ".claude/hooks/x.sh",
            ".qwen/settings.json",
            ".opencode/plugins/x.ts",
            "opencode.json",
            ".kiro/hooks/x.json",
            ".mcp.json",
            ".cursor/mcp.json",
            ".windsurf/hooks.json",
            ".github/hooks/x.json",
            ".git/hooks/pre-commit",
            ".git/config",
            "~/.claude.json",
            "~/.claude/plugins/x",
            "~/.gemini/trustedFolders.json",
            "~/.codex/hooks/x",
            "~/.config/opencode/x",
            "~/.config/goose/config.yaml",
            "~/.ssh/authorized_keys",
            "~/.bashrc",
        ] {
            assert!(matches!(write(folder, path).as_str(), "ask" | "block"), "{path} in {}", folder.display());
        }
    }
}

#[test]
fn s14_text_typed_into_a_shell_is_guarded() {
    let lab = Lab::new();
    let typed =
        |text: &str| said(&lab, &lab.project, &tool_event("write_stdin", &json!({"session_id": 1, "chars": text})));
    assert_eq!(typed("ls\n"), "no_opinion");
    for text in ["rm -rf ~\n", "echo x > ~/.ollm/config.yaml\n", "ollm hook trust evil\n"] {
        assert!(matches!(typed(text).as_str(), "ask" | "block"), "{text}");
    }
}
