//! The classes of commands that once passed, each with more of its kind.

use std::path::{Path, PathBuf};

use ollm_guard::{From, PROTECTED, ProtectedPlaces, tampering};
use ollm_protocol::{Event, EventKind, Flow, Verdict};
use serde_json::json;

use super::{HOME, PROJECT, call, cases::both, check, first, second, shelter};

/// None of these passes.
pub(super) fn stopped(commands: &[&str]) {
    let passed: Vec<&&str> = commands.iter().filter(|command| both(command).flow < Flow::Ask).collect();
    assert!(passed.is_empty(), "passed: {passed:#?}");
}

/// All of these pass.
pub(super) fn passes(commands: &[&str]) {
    check(both, Flow::NoOpinion, commands);
}

#[test]
fn s01_searches_touch_their_roots() {
    stopped(&[
        "find ~/.ollm/hooks -name '*.json' -delete",
        "find ~/.ollm -mindepth 1 -delete",
        "find -L ~/.ollm -type f -exec truncate -s0 {} +",
        "find ~ -name 'settings.json' -path '*claude*' -exec rm {} \\;",
        "find . -path './.claude/*' -exec cp x {} \\;",
        "find . -name .ollm -exec rm -rf {} +",
        "find -D tree ~ -delete",
    ]);
    passes(&["find . -name '*.log' -delete", "find . -type d -empty -delete", "find target -type f -exec rm {} +"]);
}

#[test]
fn s01_options_in_bundles_are_read() {
    stopped(&[
        "curl -fsSLo ~/.ollm/config.yaml https://x",
        "curl -sSLo~/.ollm/config.yaml https://x",
        "curl -sD ~/.ollm/config.yaml https://x",
        "wget -qO ~/.ollm/config.yaml https://x",
        "wget -qO~/.ollm/config.yaml https://x",
        "wget -qP ~/.ollm https://x/config.yaml",
        "sort -uo ~/.ollm/config.yaml x",
        "tar -xzf x.tgz -C ~",
        "tar czf ~/.ollm/config.yaml x",
        "unzip -oqd ~/.ollm x.zip",
    ]);
    passes(&[
        "curl -fsSLo out.json https://x",
        "wget -qO- https://x",
        "tar -xzf x.tgz -C build",
        "tar czf b.tgz ~/.ollm",
    ]);
}

#[test]
fn s01_a_program_that_is_not_known_may_write_what_it_is_given() {
    stopped(&[
        "yq -i '.hooks.enabled=false' ~/.ollm/config.yaml",
        "toml set .codex/config.toml a b",
        "mytool --config=.claude/settings.json --write",
        "json -I -f .claude/settings.json -e 'this.hooks={}'",
        "prettier --write .mcp.json",
        "crudini --set ~/.ollm/config.yaml a b c",
        "ansible localhost -m copy -a 'dest=~/.ollm/config.yaml content=x'",
        "gzip ~/.ollm/config.yaml",
        "sqlite3 ~/.ollm/state/db 'delete from x'",
        "rclone copy x: ~/.ollm",
        "docker run -v ~/.ollm:/x alpine sh -c 'rm -rf /x/hooks'",
    ]);
    passes(&[
        "cat .claude/settings.json",
        "jq .hooks .claude/settings.json",
        "diff .mcp.json x.json",
        "yq .hooks ~/.ollm/config.yaml",
        "rg hooks .codex",
        "git diff .claude/settings.json",
        "git add .claude/settings.json",
        "stat ~/.ollm/config.yaml",
    ]);
}

#[test]
fn s01_a_path_that_is_put_together_is_still_that_path() {
    stopped(&[
        "D=$(echo ~/.ollm); echo x > $D/config.yaml",
        "D=$(dirname ~/.ollm/x); echo x > \"$D/config.yaml\"",
        "D=$(realpath ~/.ollm); rm -rf \"$D\"",
        "D=$(cat where); echo ollm; echo x > \"$D/config.yaml\"",
        "read D <<< ~/.ollm; echo x > $D/config.yaml",
        "D=.ollm; cd ~ && echo x > \"$D\"/config.yaml",
        "printf -v D '%s/.ollm' \"$HOME\"; echo x > $D/config.yaml",
        "for d in ~/.ollm; do echo x > \"$d\"/config.yaml; done",
    ]);
}

#[test]
fn s01_our_own_program_is_protected() {
    stopped(&[
        "cp /bin/true ~/.cargo/bin/ollm",
        "ln -sf /bin/true ~/.local/bin/ollm",
        "rm ~/.cargo/bin/ollm",
        "install -m755 x ~/.cargo/bin/ollm",
        "chmod -x ~/.cargo/bin/ollm",
    ]);
    let shelter = ProtectedPlaces { executable: Some(PathBuf::from("/opt/tools/ollm")), ..shelter() };
    let judge = |command: &str| tampering(&call("shell", json!({ "command": command })), &shelter);
    check(judge, Flow::Block, &["cp x /opt/tools/ollm", "rm -rf /opt/tools"]);
    check(judge, Flow::NoOpinion, &["/opt/tools/ollm hook list", "ls -l /opt/tools/ollm"]);
    stopped(&["pkill ollm", "pkill -f children-guard", "killall ollm", "kill $(pgrep ollm)"]);
}

#[test]
fn s06_wrappers_that_no_list_has_are_seen_through() {
    stopped(&[
        "hyperfine 'rm -rf ~'",
        "hyperfine --warmup 3 --prepare 'rm -rf ~' ls",
        "npx -c 'rm -rf ~'",
        "strace -u root rm -rf ~",
        "anything --opt value rm -rf ~",
        "anything --exec='rm -rf ~'",
        "anything -c'rm -rf ~'",
        "chronic rm -rf ~",
        "entr -r rm -rf ~",
        "watchexec -- rm -rf ~",
        "time -v rm -rf ~",
        "concurrently 'npm start' 'rm -rf ~'",
        "just --command rm -rf ~",
        "poetry --quiet run rm -rf ~",
        "git -c alias.x='!rm -rf ~' x",
        "git rebase -x 'rm -rf ~' main",
        "git submodule foreach 'rm -rf ~'",
        "git bisect run rm -rf ~",
        "tar cf x --checkpoint=1 --checkpoint-action=exec='rm -rf ~' y",
        "rsync -e 'sh -c \"rm -rf ~\"' a b:",
        "ssh -o ProxyCommand='rm -rf ~' host",
        "make SHELL='rm -rf ~'",
        "python3 -c 'import os; os.system(\"rm -rf ~\")'",
        "python3 -c 'import shutil; shutil.rmtree(\"/home/ada\")'",
        "perl -e 'system(\"rm\", \"-rf\", \"/home/ada\")'",
        "node -e \"require('child_process').execSync('rm -rf ~')\"",
        "awk 'BEGIN { system(\"rm -rf ~\") }'",
        "some-repl <<< 'rm -rf ~'",
        "deno task 'rm -rf ~'",
        "vim -c ':!rm -rf ~' -c q",
        "ed <<< '!rm -rf ~'",
        "mv ~/.ssh /tmp",
    ]);
}

#[test]
fn s06_words_of_programs_that_print_or_search_are_data() {
    passes(&[
        "echo 'rm -rf ~'",
        "grep -rn 'rm -rf ~' docs",
        "rg 'rm -rf /' -g '*.sh'",
        "git commit -m 'never rm -rf ~ again'",
        "git log --grep 'rm -rf /'",
        "git tag -a v1 -m 'rm -rf ~'",
        "gh pr create --title 'x' --body 'do not rm -rf ~'",
        "printf '%s\\n' 'rm -rf ~' >> notes.md",
        "test \"$x\" = 'rm -rf ~'",
        "awk '/rm -rf/ { print }' x.sh",
        "sed -n 's/rm -rf x/y/p' x.sh",
        "jq '.scripts.clean' package.json",
        "python3 -c 'print(\"rm -rf ~\")'",
        "man rm",
        "npm run clean && cargo build --release",
        "pytest -k 'rm and not slow'",
        "docker rm -f web",
        "git rm -rf --cached .",
        "aws s3 rm s3://bucket/x --recursive",
        "kubectl delete pod x",
    ]);
}

#[test]
fn s06_options_of_shells_are_read_as_shells_read_them() {
    stopped(&[
        "bash -euo pipefail -c 'rm -rf ~'",
        "bash -eo pipefail -xc 'rm -rf ~'",
        "bash -o errexit -O extglob -c 'rm -rf ~'",
        "bash +O extglob -c 'rm -rf ~'",
        "bash --posix -c 'rm -rf ~'",
        "sh -c -- 'rm -rf ~'",
        "sh -c 'rm -rf \"$1\"' _ ~",
        "sh -c '\"$@\"' _ rm -rf ~",
        "zsh -fc 'rm -rf ~'",
    ]);
    passes(&["bash -euo pipefail -c 'ls'", "sh -c 'wc -l \"$1\"' _ x", "bash -euo pipefail script.sh"]);
}

#[test]
fn s06_values_that_are_not_literals_are_not_known() {
    stopped(&[
        "x=echo; export \"x=rm -rf /\"; $x",
        "x=echo; eval 'x=\"rm -rf ~\"'; $x",
        "x=echo; : ${x:=rm}; $x -rf ~",
        "x=echo; read x < f; $x ~",
        "x=echo; mapfile -t x < f; ${x[0]} ~",
        "declare -n y=x; x=echo; y='rm -rf ~'; $x",
        "x=$(cat f); rm -rf \"$x\"",
        "source ./vars; rm -rf \"$DIR\"",
        "DIR=build; . ./vars; rm -rf \"$DIR\"",
        "DIR=(build); source ./vars; rm -rf \"${DIR[@]}\"",
        "DIR=build; eval \"$(cat vars)\"; rm -rf \"$DIR\"",
        "x=~; eval 'rm -rf \"$x\"'",
        "x=~ sh -c 'rm -rf \"$x\"'",
        "env D=/ sh -c 'rm -rf \"$D\"'",
        "rm -rf \"$DIR/\"*",
        "rm -rf \"$DIR/\"",
        "rm -rf \"$OLDPWD\"",
        "rm -rf \"$XDG_CONFIG_HOME\"",
    ]);
    passes(&[
        "BUILD_DIR=build; rm -rf \"$BUILD_DIR\"",
        ". ./vars; BUILD_DIR=build; rm -rf \"$BUILD_DIR\"",
        "BUILD_DIR=\"$PWD/build\"; mkdir -p $BUILD_DIR && rm -rf \"$BUILD_DIR\"/*",
        "tmp=$(mktemp -d); trap 'rm -rf \"$tmp\"' EXIT",
        "rm -rf \"$DIR\"",
        "\"$CC\" -o x x.c",
        "${CXX:-g++} -c x.cc",
        "$(npm bin)/eslint .",
        "\"$JAVA_HOME/bin/java\" -version",
        "for f in *.o; do rm -f \"$f\"; done",
        "rm -rf build-$(date +%F)",
        "chown -R $(id -u):$(id -g) .",
    ]);
}

#[test]
fn s06_text_with_carriage_returns_classes_and_arithmetic_is_asked_about() {
    stopped(&[
        "echo \\\r\nrm -rf ~",
        "echo a\rrm -rf ~",
        "rm -rf /[[:alpha:]]*",
        "rm -rf /[![:digit:]]*",
        "rm -rf ~/[[:alnum:]_]*/",
        "[[ 'a[$(rm -rf ~)]' -eq 0 ]]",
        "test -v 'a[$(rm -rf ~)]'",
        "let 'a[$(rm -rf ~)]=1'",
        "x='a[$(rm -rf ~)]'; echo $((x))",
        "unset 'a[$(rm -rf ~)]'",
        "PS1='$(rm -rf ~)'; bash -i",
        "PROMPT_COMMAND='rm -rf ~'; bash -i",
    ]);
    passes(&["echo hi\r\nls\r\n", "echo $((1 + 2))", "ls [[:upper:]]*", "[[ $x == *'$('* ]] && echo yes"]);
}

#[test]
fn s06_what_is_listed_is_what_is_removed() {
    stopped(&[
        "find ~ -type f | xargs rm -f",
        "find ~ -print0 | xargs -0 rm -rf",
        "ls -A ~ | xargs rm -rf",
        "ls -d ~/* | while read -r f; do rm -rf \"$f\"; done",
        "for f in $(find / -type f); do rm -f $f; done",
        "rm -f $(find ~ -type f)",
        "find / -type f | sort | head -100 | xargs rm",
        "cat list | xargs rm -rf",
    ]);
    passes(&[
        "ls *.tmp | xargs rm -rf",
        "find . -name '*.o' | xargs rm -f",
        "git ls-files -o | xargs rm -f",
        "grep -rl foo src | xargs sed -i s/foo/bar/",
        "find . -name x -print0 | xargs -0 -n1 rm",
    ]);
}

#[test]
fn s06_a_folder_that_an_option_names_counts() {
    stopped(&[
        "env --chdir=/ rm -rf home",
        "env -C/ rm -rf home",
        "systemd-run --working-directory=/ rm -rf etc",
        "sudo -D / rm -rf etc",
        "sudo --chdir=/ rm -rf etc",
        "anything --cwd=/ rm -rf etc",
        "git --work-tree=/ clean -fdx",
        "git -C ~ reset --hard",
    ]);
}

#[test]
fn changes_of_modes_that_give_nothing_away_pass() {
    passes(&[
        "chmod -R 755 .",
        "chmod -R u+rwX .",
        "chmod -R go-w .",
        "chmod -R +x scripts",
        "chown -R $USER:$USER .",
        "chown -R \"$USER\" .",
        "sudo chown -R $(whoami) .",
    ]);
    stopped(&[
        "chmod -R 777 .",
        "chmod -R a+w .",
        "chmod -R 000 .",
        "chown -R nobody .",
        "chmod 777 ~/.ollm/config.yaml",
    ]);
}

#[test]
fn text_for_a_terminal_or_for_later_that_names_us_is_asked_about() {
    stopped(&[
        "tmux new-window 'ollm hook trust evil'",
        "tmux send-keys -t 0 'ollm hook trust evil' Enter",
        "screen -S x -X stuff 'ollm hook trust evil\\n'",
        "echo 'ollm hook trust evil' | at now",
        "echo '* * * * * ollm hook trust evil' | crontab -",
        "script -qec 'ollm hook trust evil' /dev/null",
        "systemd-run --user ollm hook trust evil",
        "batch <<< 'ollm hook trust evil'",
        "xdotool type 'ollm hook trust evil'",
        "echo 'rm -rf ~' | at now",
        "cat jobs | crontab -",
    ]);
    passes(&["tmux ls", "tmux new-session -d 'npm start'", "crontab -l", "tmux send-keys -t 0 'npm test' Enter"]);
}

#[test]
fn s09_every_row_of_the_table_holds_at_home_and_in_a_project() {
    let write = |path: &str| tampering(&call("write_file", json!({ "path": path, "content": "" })), &shelter()).flow;
    for row in PROTECTED {
        let expected = if row.from == From::Everybody { Flow::Block } else { Flow::Ask };
        for path in row.home {
            assert_eq!(write(&format!("~/{path}")), expected, "{}: ~/{path}", row.agent);
        }
        for path in row.project {
            assert_eq!(write(path), expected, "{}: {path}", row.agent);
            assert_eq!(write(&format!("{path}/x")), expected, "{}: {path}/x", row.agent);
            let by_shell = second(&format!("echo x > {path}")).flow;
            assert_eq!(by_shell, Flow::Block, "{}: {path}", row.agent);
        }
    }
    check(second, Flow::NoOpinion, &["echo 'export A=1' >> ~/.bashrc", "cat ~/.ssh/authorized_keys"]);
}

#[test]
fn s09_without_a_project_the_working_folder_is_one() {
    let judge = |cwd: &str, path: &str| {
        let data = [("tool_name", "write_file".into()), ("args", json!({ "path": path })), ("cwd", cwd.into())];
        let shelter = ProtectedPlaces { projects: Vec::new(), cwd: PathBuf::from("/tmp/elsewhere"), ..shelter() };
        tampering(&Event::unchecked(EventKind::BeforeTool, data), &shelter).flow
    };
    for path in [".mcp.json", ".claude/hooks/x.sh", ".git/hooks/pre-commit", ".ollm/config.yaml", "opencode.json"] {
        assert_eq!(judge("/tmp/fresh", path), Flow::Block, "{path}");
    }
    assert_eq!(judge("/tmp/fresh", "src/main.rs"), Flow::NoOpinion);
}

#[test]
fn s09_no_other_project_begins_inside_one() {
    stopped(&[
        "mkdir sub/.ollm",
        "mkdir -p a/b/.ollm/hooks",
        "git init sub",
        "git -C sub init",
        "mkdir sub/.git",
        "cp -r x/.ollm sub/",
        "mv x sub/.ollm",
        "echo x > sub/.ollm/config.yaml",
        "cd sub && mkdir .ollm",
    ]);
    let write = |path: &str| tampering(&call("write_file", json!({ "path": path })), &shelter()).flow;
    assert_eq!(write("sub/.ollm/hooks/x.json"), Flow::Ask);
    assert_eq!(write("vendor/x/.git/config"), Flow::Ask);
    passes(&[
        "git init",
        "git clone https://example.org/x",
        "mkdir -p sub/src",
        "rm -rf vendor/x/.git",
        "git init /tmp/x",
    ]);
}

#[test]
fn s14_text_typed_into_a_shell_is_guarded_as_shell_text() {
    let typed = |tool: &str, arg: &str, text: &str| -> Verdict {
        let event = call(tool, json!({ "session_id": 1, arg: text }));
        let first = ollm_guard::destructive(&event, Path::new(PROJECT), Some(Path::new(HOME)));
        let second = tampering(&event, &shelter());
        if first.flow >= second.flow { first } else { second }
    };
    for (tool, arg) in [
        ("write_stdin", "chars"),
        ("write_bash", "input"),
        ("send_command_input", "Input"),
        ("send_keys", "keys"),
        ("write_to_terminal", "command"),
        ("mcp__tmux__send_keys", "keys"),
    ] {
        assert!(typed(tool, arg, "rm -rf ~\n").flow >= Flow::Ask, "{tool}");
        assert!(typed(tool, arg, "echo x > ~/.ollm/config.yaml\n").flow >= Flow::Ask, "{tool}");
        assert!(typed(tool, arg, "ollm hook trust evil\n").flow >= Flow::Ask, "{tool}");
        assert_eq!(typed(tool, arg, "npm test\n").flow, Flow::NoOpinion, "{tool}");
        assert_eq!(typed(tool, arg, "y\n").flow, Flow::NoOpinion, "{tool}");
    }
}

#[test]
fn the_documents_show_the_table_of_what_is_protected() {
    let cell = |prefix: &str, paths: &[&str]| {
        let paths: Vec<String> = paths.iter().map(|path| format!("`{prefix}{path}`")).collect();
        if paths.is_empty() { "–".to_owned() } else { paths.join(", ") }
    };
    let rows = PROTECTED.iter().map(|row| {
        let asks = if row.from == From::FileTools { " (file tools ask)" } else { "" };
        format!("| {}{asks} | {} | {} |\n", row.agent, cell("~/", row.home), cell("", row.project))
    });
    let table: String = rows.collect();
    let docs = include_str!("../../../../docs/security.md");
    assert!(docs.contains(&table), "docs/security.md needs this table:\n{table}");
}

#[test]
fn a_reason_says_what_may_run() {
    let verdict = first("hyperfine 'rm -rf ~'");
    assert_eq!(verdict.flow, Flow::Ask);
    assert_eq!(verdict.reasons, ["removes or changes the home folder: rm -rf /home/ada"]);
}

#[test]
fn s09_a_file_tool_makes_no_repository_of_another_kind() {
    let write = |path: &str| tampering(&call("write_file", json!({ "path": path, "content": "" })), &shelter()).flow;
    for path in [".git", ".git/commondir", ".git/config.worktree", "sub/.git", "sub/.git/HEAD", "sub/.git/refs/x"] {
        assert!(write(path) >= Flow::Ask, "{path}");
    }
    for path in [".gitignore", ".gitattributes", "sub/.gitkeep", "src/git/HEAD"] {
        assert_eq!(write(path), Flow::NoOpinion, "{path}");
    }
}
