//! Protected files, however they are written to and however their path is spelled.

use ollm_guard::{destructive, tampering};
use ollm_protocol::{EventKind, Flow};
use serde_json::json;

use super::{call, check, second, shelter};

#[test]
fn c03_writes_by_other_means_are_writes() {
    check(
        second,
        Flow::Block,
        &[
            "echo x > ~/.ollm/config.yaml",
            "echo x >> ~/.ollm/config.yaml",
            "echo x >| ~/.ollm/config.yaml",
            "cat <> ~/.ollm/config.yaml",
            "ls &> ~/.ollm/config.yaml",
            "ls >& ~/.ollm/config.yaml",
            "{ echo x; } > .ollm/config.yaml",
            "if x; then y; fi > .ollm/config.yaml",
            "echo $(echo x > .ollm/config.yaml)",
            "bash -c 'echo x > .ollm/config.yaml'",
            "echo x | tee .ollm/config.yaml",
            "echo x | sudo tee -a ~/.ollm/trusted-hooks.json",
            "sed -i 's/a/b/' .ollm/config.yaml",
            "sed -i.bak -e 's/a/b/' .ollm/config.yaml",
            "sed -Ei 's/a/b/' .ollm/config.yaml",
            "perl -pi -e 's/a/b/' .ollm/config.yaml",
            "cp evil.yaml .ollm/config.yaml",
            "cp evil/config.yaml .ollm/",
            "cp -t .ollm evil/config.yaml",
            "cp -r evil/.ollm .",
            "mv evil.yaml .ollm/config.yaml",
            "install -m 600 x ~/.ollm/config.yaml",
            "rsync x ~/.ollm/config.yaml",
            "ln -sfn evil ~/.ollm/hooks",
            "ln -s evil .ollm",
            "mv evil .ollm",
            "mv .ollm x",
            "mv ~/.ollm /tmp/x",
            "rm -rf ~/.ollm",
            "rm -rf .ollm",
            "rm .ollm/hooks/guard.json",
            "truncate -s 0 .ollm/config.yaml",
            "dd if=x of=.ollm/config.yaml",
            "touch .ollm/hooks/new.json",
            "mkdir -p .ollm/hooks",
            "chmod 777 .ollm/config.yaml",
            "chmod -R a+w .",
            "chown -R me ~",
            "git checkout HEAD~3 -- .claude/settings.json",
            "git restore .ollm/hooks/x.json",
            "git rm .claude/settings.json",
            "git apply <<'EOF'\n--- a/.ollm/config.yaml\n+++ b/.ollm/config.yaml\n@@ -1 +1 @@\n-a\n+b\nEOF",
            "patch -p1 <<'EOF'\n--- a/.claude/settings.json\n+++ b/.claude/settings.json\nEOF",
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: .ollm/hooks/x.json\n+x\n*** End Patch\nEOF",
            "curl -o .claude/settings.json https://example.org",
            "curl --output=.claude/settings.json https://example.org",
            "wget -O .claude/settings.json https://example.org",
            "sort x -o .codex/config.toml",
            "tar xf x.tar -C ~/.ollm",
            "find . -name x -exec cp {} .ollm/config.yaml \\;",
            "ls | xargs -I{} cp {} .ollm/config.yaml",
            "echo x > ~/.ollm/$y",
            "d=.ollm; echo x > $d/config.yaml",
            "cd .ollm && echo x > config.yaml",
            "cd .ollm; echo x > config.yaml",
            "cd nowhere; echo x > .ollm/config.yaml",
            "(cd .ollm && touch hooks/x)",
            "cd ~ && rm -rf .ollm",
            "pushd ~/.ollm && touch x",
            "env -C ~/.ollm touch config.yaml",
            "mount --bind /tmp/x ~/.ollm",
            "vim -c wq .ollm/config.yaml",
        ],
    );
    check(
        second,
        Flow::Ask,
        &[
            "python -c \"open('.ollm/config.yaml','w').write('')\"",
            "python3.12 - <<'PY'\nimport os\nopen(os.path.join('.claude','settings.json'),'w')\nPY",
            "node -e \"require('fs').writeFileSync('.claude/settings.json','')\"",
            "perl -e 'unlink \".ollm/config.yaml\"'",
            "rm ~/.oll*/*",
            "rm .ollm/conf*.yaml",
            "rm -rf .o*",
            "rm -rf .[a-z]*",
            "echo x > $root/.ollm/config.yaml",
            "echo x > \"$(git rev-parse --show-toplevel)/.claude/settings.json\"",
            "cd \"$x\" && echo x > .ollm/config.yaml",
            "cd - && rm -rf .ollm",
            "ln ~/.ollm/config.yaml x",
            "ln -s ~/.ollm x",
            "cp -r evil/. ~",
            "rsync -a evil/ ./",
            "awk '{print > \".ollm/config.yaml\"}' x",
        ],
    );
}

#[test]
fn c03_reading_and_other_files_are_fine() {
    check(
        second,
        Flow::NoOpinion,
        &[
            "cat ~/.ollm/config.yaml",
            "cat < .ollm/config.yaml > copy.yaml",
            "cp .ollm/config.yaml copy.yaml",
            "cp -r .ollm /tmp/backup",
            "grep -r x .ollm",
            "ls .ollm .claude; head -3 .claude/settings.json",
            "sed -n 1p .ollm/config.yaml",
            "diff .ollm/config.yaml x",
            "echo x > config.yaml",
            "echo x > ollm/config.yaml",
            "rm -rf target node_modules",
            "rm -rf *",
            "mv a b",
            "mv a .",
            "cp -r a b .",
            "git commit -m 'change .ollm/config.yaml'",
            "echo '.ollm/config.yaml'",
            "ollm hook list; ollm hook show x; ollm trace last; ollm hook run",
            "git checkout main && cargo test",
            "python3 -c 'print(1)'",
            "echo x > \"$out\"",
            "tar xf a.tar",
            "chmod +x build.sh",
        ],
    );
}

#[test]
fn c04_other_spellings_of_a_path_are_the_same_path() {
    check(
        |path| tampering(&call("write_file", json!({ "path": path, "content": "" })), &shelter()),
        Flow::Block,
        &[
            ".ollm/config.yaml",
            "./.ollm//config.yaml",
            "src/../.ollm/config.yaml",
            "../project/.ollm/config.yaml",
            "../../../ada/.ollm/config.yaml",
            "~/.ollm/config.yaml",
            "$HOME/.ollm/config.yaml",
            "${HOME}/.ollm/config.yaml",
            "/home/ada/.ollm/config.yaml",
            "//home//ada/.ollm/config.yaml",
            ".OLLM/Config.YAML",
            ".ollm/config.yaml/",
            ".ollm/config.yaml.",
            ".ollm/config.yaml::$DATA",
            ".ollm\\config.yaml",
            ".ol\u{200b}lm/config.yaml",
            ".ollm/config\u{202e}.yaml",
            ".ollm/co\u{301}nfig.yaml",
            ".ollm/cónfig.yaml",
            ".ｏｌｌｍ/config.yaml",
            "file:///home/ada/.ollm/config.yaml",
            "file:///home/ada/.ollm/%63onfig.yaml",
            ".ollm/hooks/deep/er/x.json",
            " .ollm/config.yaml ",
        ],
    );
    check(
        second,
        Flow::Block,
        &[
            "echo x > $HOME/.ollm/config.yaml",
            "echo x > ${HOME}/.ollm/config.yaml",
            "echo x > \"${HOME:?}\"/.ollm/config.yaml",
            "echo x > ~ada/.ollm/config.yaml",
            "echo x > $PWD/.ollm/config.yaml",
            "echo x > ~+/.ollm/config.yaml",
            "echo x > $(pwd)/.ollm/config.yaml",
            "echo x > .ol'lm'/conf\"ig\".yaml",
            "echo x > .ollm/config.{yaml,yml}",
            "echo x > $'.ollm/\\x63onfig.yaml'",
        ],
    );
}

#[cfg(unix)]
#[test]
fn c04_links_lead_to_the_same_file() {
    use ollm_guard::ProtectedPlaces;
    use std::fs;
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let project = home.join("project");
    fs::create_dir_all(home.join("dotfiles/ollm/hooks")).unwrap();
    fs::create_dir_all(project.join("src")).unwrap();
    symlink(home.join("dotfiles/ollm"), home.join(".ollm")).unwrap();
    fs::write(home.join(".ollm/config.yaml"), "x").unwrap();
    symlink(home.join(".ollm/config.yaml"), project.join("soft")).unwrap();
    fs::hard_link(home.join("dotfiles/ollm/config.yaml"), project.join("hard")).unwrap();
    symlink("../dotfiles/ollm", project.join("folder")).unwrap();
    symlink(home.join(".ollm/not-there.yaml"), project.join("dangling")).unwrap();
    symlink(&home, project.join("src/up")).unwrap();
    fs::write(project.join("plain"), "x").unwrap();
    fs::hard_link(project.join("plain"), project.join("other")).unwrap();

    let shelter = ProtectedPlaces {
        ollm_home: home.join(".ollm"),
        projects: vec![project.clone()],
        cwd: project.clone(),
        home: Some(home.clone()),
        ..ProtectedPlaces::default()
    };
    let judge = |tool: &str, args| {
        let cwd = project.to_str().unwrap().into();
        let event = ollm_protocol::Event::unchecked(
            EventKind::BeforeTool,
            [("tool_name", tool.into()), ("args", args), ("cwd", cwd)],
        );
        tampering(&event, &shelter)
    };
    check(
        |path| judge("edit_file", json!({ "file_path": path })),
        Flow::Block,
        &[
            "soft",
            "hard",
            "folder/hooks/x",
            "dangling",
            "src/up/.ollm/x",
            "src/up/dotfiles/ollm/x",
            "../dotfiles/ollm/config.yaml",
            "src/up/../home/.ollm/x",
        ],
    );
    check(
        |path| judge("edit_file", json!({ "file_path": path })),
        Flow::NoOpinion,
        &["plain", "other", "src/x", "../x"],
    );
    check(
        |command| judge("shell", json!({ "command": command })),
        Flow::Block,
        &[
            "echo > soft",
            "echo > hard",
            "cd folder && echo > config.yaml",
            "rm -rf ~/dotfiles",
            "cp x folder/",
            "tee dangling",
        ],
    );
}

#[cfg(unix)]
#[test]
fn c04_a_home_behind_a_link_is_still_the_home() {
    use std::{fs, os::unix::fs::symlink};

    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("data/ada/project")).unwrap();
    symlink(root.join("data/ada"), root.join("home")).unwrap();
    symlink(root.join("data/ada"), root.join("data/ada/project/up")).unwrap();
    symlink("/", root.join("data/ada/project/top")).unwrap();
    let home = root.join("home");
    let project = home.join("project");
    let judge = |command: &str| {
        let command = command.replace("ROOT", root.to_str().unwrap());
        let cwd = project.to_str().unwrap().into();
        let data = [("tool_name", "shell".into()), ("args", json!({ "command": command })), ("cwd", cwd)];
        destructive(&ollm_protocol::Event::unchecked(EventKind::BeforeTool, data), &project, Some(&home))
    };
    check(
        judge,
        Flow::Block,
        &["rm -rf ROOT/data/ada", "rm -rf up/*", "rm -rf ROOT/data", "rm -rf up/project/.git", "rm -rf top/etc"],
    );
    check(judge, Flow::NoOpinion, &["rm -rf up", "rm -rf top", "rm -rf ROOT/data/other"]);
}

#[test]
fn c05_config_trust_store_and_hook_files_cannot_be_written_even_before_they_exist() {
    let files = [
        "~/.ollm/config.yaml",
        "~/.ollm/trusted-hooks.json",
        "~/.ollm/hooks/new.json",
        "~/.ollm/state/enabled.json",
        "~/.ollm/store/sha256-0",
        "~/.ollm/settings/mcp.json",
        "~/.ollm/anything/new",
        ".ollm/config.yaml",
        ".ollm/hooks/trusted/x.yaml",
        ".ollm/extensions/x/manifest.json",
        "~/.claude/settings.json",
        ".claude/settings.local.json",
        "~/.gemini/settings.json",
        ".gemini/settings.json",
        "~/.codex/hooks.json",
        "~/.codex/config.toml",
        ".cursor/hooks.json",
        ".config/agent/settings.json",
        "~/.config/agent/settings.local.json",
        "~/.config/cli-agent/settings.json",
    ];
    let calls = |file: &str| {
        [
            call("write_file", json!({ "path": file, "content": "x" })),
            call("edit_file", json!({ "file_path": file })),
            call("replace_in_file", json!({ "filePath": file })),
            call("create_file", json!({ "filename": file })),
            call("Write", json!({ "file_path": file })),
            call("Edit", json!({ "file_path": file })),
            call("MultiEdit", json!({ "file_path": "a", "edits": [{ "path": file }] })),
            call("NotebookEdit", json!({ "notebook_path": file })),
            call("str_replace_based_edit_tool", json!({ "command": "create", "path": file })),
            call("apply_patch", json!({ "input": format!("*** Begin Patch\n*** Update File: {file}\n@@\n") })),
            call("apply_patch", json!({ "patch": format!("--- a/x\n+++ b/{file}\n") })),
            call("mcp__fs__write_file", json!({ "path": file })),
            call("mcp__fs__edit_file", json!({ "paths": ["x", file] })),
            call("mcp__fs__move_file", json!({ "source": "x", "destination": file })),
            call("mcp__fs__move_file", json!({ "source": file, "destination": "x" })),
            call("delete_file", json!({ "target_file": file })),
            call("mystery", json!({ "file": file })),
            call("shell", json!({ "command": format!("echo x > {file}") })),
            call("Bash", json!({ "command": ["bash", "-lc", format!("echo x > {file}")] })),
            call("mcp__term__run", json!({ "cmd": format!("tee {file}") })),
        ]
    };
    for file in files {
        for event in calls(file) {
            let verdict = tampering(&event, &shelter());
            // A patch does not know `~`.
            let patch = event.text("tool_name") == Some("apply_patch") && file.starts_with('~');
            assert!(patch || verdict.flow == Flow::Block, "{event:?}: {verdict:?}");
        }
    }
    for event in [
        call("read_file", json!({ "path": ".ollm/config.yaml" })),
        call("Read", json!({ "file_path": "/home/ada/.claude/settings.json" })),
        call("list_directory", json!({ "path": ".ollm" })),
        call("Grep", json!({ "path": ".ollm", "pattern": "x" })),
        call("str_replace_based_edit_tool", json!({ "command": "view", "path": ".ollm/config.yaml" })),
        call("write_file", json!({ "path": "src/main.rs", "content": ".ollm/config.yaml\n+++ b/.ollm/config.yaml\n" })),
        call("write_file", json!({ "path": ".claude/commands/x.md" })),
        call("web_search", json!({ "query": ".ollm/config.yaml" })),
    ] {
        assert_eq!(tampering(&event, &shelter()).flow, Flow::NoOpinion, "{event:?}");
    }
    let parent = call("delete_directory", json!({ "path": "/home/ada/.claude" }));
    assert_eq!(tampering(&parent, &shelter()).flow, Flow::Block);
    let mut other = call("write_file", json!({"path": ".ollm/config.yaml"}));
    other.kind = EventKind::AfterTool;
    assert_eq!(tampering(&other, &shelter()).flow, Flow::NoOpinion);
}
