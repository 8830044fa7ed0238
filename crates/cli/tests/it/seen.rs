//! What people see, word for word.

use crate::lab::{Lab, hook_file};

/// A home and a project with hooks from several sources, one of each standing.
fn furnished() -> Lab {
    let lab = Lab::new();
    lab.user("guard.sh", "printf '{\"continue\": true}'\n");
    lab.user(
        "guard.json",
        "{\"hooks\": {\n  \"before_tool\": [\n    {\"name\": \"guard\", \"description\": \"Refuses what must not be\", \"matcher\": \"shell|write_*\", \"command\": \"sh\",\n     \"args\": [\"guard.sh\"], \"timeout\": \"2s\", \"onFailure\": \"block\", \"priority\": \"critical\"},\n    {\"name\": \"off\", \"command\": \"sh\", \"args\": [\"guard.sh\"], \"enabled\": false},\n    {\"name\": \"gone\", \"command\": \"sh\", \"args\": [\"gone.sh\"]}\n  ]\n}}\n",
    );
    lab.user_hook("pre-tool-call", "gate", "printf '{\"allow\": true}'\n", "");
    lab.write(
        "home/.config/agent/settings.json",
        "{\"hooks\": {\"PreToolUse\": [{\"matcher\": \"*\", \"hooks\": [{\"type\": \"command\", \"command\": \"echo '{{tool_name}}' >> ~/tools\"}]}]}}",
    );
    lab.workspace_hook("before_tool", "guest", "touch canary\n", r#", "env": {"NODE_OPTIONS": "--require ./x.js"}, "passEnv": ["GITHUB_TOKEN"], "inputs": ["guest.json"], "cwd": "sub""#);
    lab.workspace_hook("before_tool", "known", "exit 0\n", "");
    lab.approve("known");
    lab.workspace_hook("before_tool", "changed", "exit 0\n", r#", "parallel": true"#);
    lab.approve("changed");
    lab.workspace("changed.sh", "exit 1\n");
    lab
}

macro_rules! seen {
    ($lab:expr, $($argument:expr),* $(,)?) => {{
        let lab = &$lab;
        insta::assert_snapshot!(lab.screen(&lab.run(&[$($argument),*])));
    }};
}

#[test]
fn plain_ollm() {
    seen!(Lab::new(),);
}

#[test]
fn help() {
    seen!(Lab::new(), "--help");
}

#[test]
fn hook_help() {
    seen!(Lab::new(), "hook", "--help");
}

#[test]
fn mcp_list_without_servers() {
    seen!(Lab::new(), "mcp", "list");
}

#[test]
fn mcp_list_of_several_sources() {
    let lab = Lab::new();
    lab.write(
        "home/.ollm/settings/mcp.json",
        "{\"mcpServers\": {\n  \"docs\": {\"url\": \"https://example.com/mcp\"},\n  \"off\": {\"command\": \"sh\", \"disabled\": true},\n  \"gone\": {\"command\": \"no-such-server\"},\n  \"odd\": {\"command\": \"npx -y server\", \"timout\": 5}\n}}\n",
    );
    lab.write("project/.ollm/settings/mcp.json", r#"{"mcpServers": {"theirs": {"command": "sh", "trust": true}}}"#);
    seen!(lab, "mcp", "list");
}

#[test]
fn hook_list_without_hooks() {
    seen!(Lab::new(), "hook", "list");
}

#[test]
fn hook_list_of_several_sources() {
    seen!(furnished(), "hook", "list");
}

#[test]
fn hook_list_as_json() {
    seen!(furnished(), "hook", "list", "--json");
}

#[test]
fn hook_list_with_problems() {
    let lab = Lab::with_hook("before_tool", "good", "");
    lab.user("bad.json", "{\"hooks\": {\n\t\"before_tol\": [{\"name\": \"x\", \"command\": \"sh\"}],\n  \"before_tool\": [{\"name\": \"y\", \"command\": \"node;x\"}, {\"name\": \"z\", \"command\": \"sh\", \"timeout\": true}]\n}}\n");
    lab.user("worse.json", "{\"hooks\": {\"before_tool\": [}}\n");
    seen!(lab, "hook", "list");
}

#[test]
fn hook_show() {
    seen!(furnished(), "hook", "show", "guard");
}

#[test]
fn hook_show_of_a_guest() {
    seen!(furnished(), "hook", "show", "guest");
}

#[test]
fn hook_show_of_a_shell_hook_as_json() {
    let lab = furnished();
    let id = lab.planned("PreToolUse").into_iter().find(|hook| hook["dialect"] == "agent").unwrap()["id"].clone();
    seen!(lab, "hook", "show", id.as_str().unwrap(), "--json");
}

#[test]
fn hook_plan() {
    seen!(furnished(), "hook", "plan", "PreToolUse", "--data", r#"{"tool_name": "read_file"}"#);
}

#[test]
fn hook_plan_as_json() {
    let lab = Lab::with_hook("before_tool", "guard", "");
    lab.workspace_hook("before_tool", "guest", "", "");
    seen!(lab, "hook", "plan", "before_tool", "--json");
}

#[test]
fn hook_plan_of_hooks_at_once() {
    let lab = Lab::with_hook("before_tool", "a", "");
    lab.user("b.json", hook_file("before_tool", "b", r#", "parallel": true"#));
    lab.user("c.json", hook_file("before_tool", "c", r#", "parallel": true"#));
    lab.user("b.sh", "");
    lab.user("c.sh", "");
    seen!(lab, "hook", "plan", "before_tool");
}

#[test]
fn hook_trust_without_a_terminal() {
    seen!(furnished(), "hook", "trust", "guest");
}

#[test]
fn hook_trust_with_a_wrong_digest() {
    let digest = format!("sha256:{}", "0".repeat(64));
    seen!(furnished(), "hook", "trust", "guest", "--digest", &digest);
}

#[test]
fn hook_trust_with_the_right_digest() {
    let lab = furnished();
    let digest = lab.digest("guest");
    seen!(lab, "hook", "trust", "guest", "--digest", &digest);
}

#[test]
fn hook_trust_of_what_is_trusted() {
    seen!(furnished(), "hook", "trust", "guard");
}

#[test]
fn hook_trust_of_what_cannot_run() {
    let lab = Lab::new();
    lab.workspace("gone.json", hook_file("before_tool", "gone", ""));
    seen!(lab, "hook", "trust", "gone");
}

#[test]
fn hook_untrust() {
    seen!(furnished(), "hook", "untrust", "known");
}

#[test]
fn hook_untrust_of_what_was_never_approved() {
    seen!(furnished(), "hook", "untrust", "guest");
}

#[test]
fn an_unknown_id() {
    seen!(furnished(), "hook", "show", "gaurd");
}

#[test]
fn an_id_like_no_other() {
    seen!(furnished(), "hook", "trust", "something-else");
}

#[test]
fn demo() {
    let lab = Lab::new();
    let ran = lab.run(&["demo"]);
    assert!(!ran.stdout.contains('\u{1b}'), "no colours where nobody sees them");
    insta::assert_snapshot!(lab.screen(&ran));
    lab.assert_nobody_is_left();
}

#[test]
fn the_demo_leaves_nothing_behind() {
    let lab = Lab::with_default_boxes();
    let temporary = lab.root.join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let lab = lab.set("TMPDIR", temporary.to_str().unwrap());
    assert_eq!(lab.run(&["demo"]).code, 0);
    let names = |folder: &std::path::Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let left = [names(&temporary), names(&lab.home), names(&lab.home.join(".ollm")), names(&lab.project)];
    assert_eq!(left, [&[][..], &[".ollm"], &["hooks"], &[".git"]].map(<[&str]>::to_vec));
}

#[test]
fn demo_as_json() {
    seen!(Lab::new(), "demo", "--json");
}

#[test]
fn a_name_cannot_forge_a_line_of_the_list() {
    let lab = Lab::new();
    lab.workspace("x.sh", "");
    lab.workspace("x.json", "{\"hooks\": {\"before_tool\": [{\"name\": \"x\\nuser:fine.json:before_tool:fine  trusted\\u001b[2K\\u202e\", \"command\": \"sh\", \"args\": [\"x.sh\"]}]}}");
    for arguments in [&["hook", "list"][..], &["hook", "plan", "before_tool"]] {
        let ran = lab.run(arguments);
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{202e}'), "{ran:?}");
        assert!(!ran.stdout.lines().any(|line| line.starts_with("user:")), "{}", ran.stdout);
    }
}

#[test]
fn emit_of_an_event_of_ones_own() {
    let lab =
        Lab::with_hook("custom:deploy", "gatekeeper", r#"printf '{"continue": false, "systemMessage": "not today"}'"#);
    seen!(lab, "emit", "deploy", "--data", r#"{"target": "production"}"#);
}

#[test]
fn emit_of_an_event_of_ones_own_as_json() {
    let lab = Lab::with_hook("custom:deploy", "echo", r#"printf '{"continue": true, "data": %s}' "$(cat)""#);
    let ran = lab.run(&["emit", "deploy", "--data", r#"{"target": "staging"}"#, "--json"]);
    let heard = &ran.answer()["data"]["data"];
    assert_eq!((&heard["eventName"], &heard["data"]), (&"deploy".into(), &serde_json::json!({"target": "staging"})));
    assert_eq!((ran.code, lab.run(&["emit", "release", "--json"]).hook_count()), (0, 0));
}

#[test]
fn emit_with_data_that_is_no_json() {
    seen!(Lab::new(), "emit", "deploy", "--data", "{");
}

#[test]
fn every_shell_has_a_script_that_asks_us() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = Lab::new().run(&["completions", shell]);
        assert!(ran.code == 0 && ran.stdout.contains("ollm") && ran.stdout.contains("COMPLETE"), "{shell}: {ran:?}");
    }
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let lab = Lab::new();
    let folder = lab.project.to_str().unwrap();
    assert_eq!(lab.run(&["man", "--out", folder]).code, 0);
    assert!(lab.project.join("ollm-hook-trust.1").exists());
    assert!(lab.run(&["man"]).stdout.contains(".TH ollm 1"));
    assert_eq!(lab.run(&["man", "--out", "/dev/null/man"]).code, 5);
}

#[test]
fn schemas_that_there_are() {
    seen!(Lab::new(), "schema");
}

#[test]
fn the_schema_of_an_event() {
    seen!(Lab::new(), "schema", "pre-tool-call");
}

#[test]
fn the_schema_of_nothing() {
    seen!(Lab::new(), "schema", "nothing");
}

#[test]
fn ollm_alone_welcomes_and_names_three_ways_to_begin() {
    let lab = Lab::new();
    let ran = lab.run(&[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    insta::assert_snapshot!(lab.screen(&ran));
    lab.user_hook("before_tool", "guard", "exit 0", "");
    let ran = lab.run(&[]);
    assert!(ran.stdout.contains("You have 1 hook and 0 connected agents."), "{ran:?}");
}

/// What a shell is answered that completes these words.
fn completed(lab: &Lab, words: &[&str]) -> Vec<String> {
    let mut command = lab.ollm(&["--", "ollm"]);
    command.args(words).env("COMPLETE", "bash").env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let ran = crate::lab::finish(command, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_the_names_of_what_there_is() {
    let lab = Lab::new();
    lab.user_hook("before_tool", "guard", "exit 0", "");
    assert_eq!(lab.run(&["mcp", "add", "clock", "--", "true"]).code, 0);
    let data = r#"{"tool_name": "shell", "session_id": "talk-1"}"#;
    let trace =
        lab.run(&["hook", "run", "before_tool", "--data", data]).answer()["traceId"].as_str().unwrap().to_owned();
    for (words, offered) in [
        (&["hook", "show", ""][..], "user:guard.json:before_tool:guard"),
        (&["hook", "show", "gu"], "guard"),
        (&["explain", "user"], "user:guard.json:before_tool:guard"),
        (&["explain", "before_t"], "before_tool"),
        (&["trace", "--session", ""], "talk-1"),
        (&["trace", "show", ""], trace.as_str()),
        (&["hook", "test", "--from-trace", ""], trace.as_str()),
        (&["replay", ""], trace.as_str()),
        (&["hook", "plan", "before_t"], "before_tool"),
        (&["mcp", "tools", ""], "clock"),
        (&["connect", "cl"], "claude"),
        (&["config", "get", "hooks.en"], "hooks.enabled"),
        (&["ho"], "hook"),
    ] {
        assert!(completed(&lab, words).iter().any(|line| line == offered), "{words:?}: {:?}", completed(&lab, words));
    }
    let data = r#"{"tool_name": "shell", "session_id": "ollm-test-1"}"#;
    let test =
        lab.run(&["hook", "run", "before_tool", "--data", data]).answer()["traceId"].as_str().unwrap().to_owned();
    assert!(!completed(&lab, &["trace", "show", ""]).contains(&test), "a test of a connection is no event of anybody");
    // The environment does not keep an event from being judged.
    let mut command = lab.ollm(&["hook", "run"]);
    command.env("COMPLETE", "bash");
    let ran = crate::lab::finish(command, crate::lab::shell_event("rm -rf ~").as_bytes());
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[test]
fn help_completes_commands_and_codes_and_the_manual_makes_its_folder() {
    let lab = Lab::new();
    let offered = completed(&lab, &["ollm", "help", ""]);
    for word in ["doctor", "codes", "C003"] {
        assert!(offered.iter().any(|line| line == word), "{word}: {offered:?}");
    }
    let folder = lab.root.join("new/man");
    assert_eq!(lab.run(&["man", "--out", folder.to_str().unwrap()]).code, 0);
    assert!(folder.join("ollm.1").exists());
}

#[test]
fn a_failure_is_told_once_on_a_terminal_and_on_both_streams_elsewhere() {
    let lab = Lab::new();
    for command in [&["hook", "show", "nothing", "--json"] as &[&str], &["hook", "enable", "nothing", "--json"]] {
        let shown = lab.pty(crate::lab::pty::LARGE, command).ends();
        assert_eq!(shown.stdout.matches("no hook").count(), 1, "{shown:?}");
        assert!(shown.stdout.contains("\"code\""), "{shown:?}");
        let ran = lab.run(command);
        assert!(ran.stderr.contains("error[") && ran.stdout.contains("\"code\"") && ran.code == shown.code, "{ran:?}");
    }
}

#[test]
fn a_narrow_terminal_shows_help_and_failures_within_its_edge() {
    let lab = Lab::new();
    let on_screen = |columns: u16, command: &[&str]| {
        let size = crate::lab::pty::Size { rows: 200, columns };
        anstream::adapter::strip_str(&lab.pty(size, command).ends().stdout).to_string()
    };
    let help = on_screen(20, &["hook", "run", "--help"]);
    let is_short = |word: &&str| word.chars().count() <= 10;
    let wide =
        |line: &&str| line.trim_end().chars().count() > 20 && line.split_whitespace().all(|word| is_short(&word));
    assert_eq!(help.lines().find(wide), None, "{help}");
    lab.write("home/.ollm/hooks/x.sh", "exit 0");
    let bad = on_screen(80, &["hook", "add", "before_tool", "x.sh", "--if", "data.args..x"]);
    assert!(
        bad.contains("error[C023]: unexpected `.`") && bad.contains('^') && bad.contains("stays as it was"),
        "{bad}"
    );
    let failure = on_screen(40, &["explain", "nothing-of-this-name"]);
    let first: Vec<&str> = failure.lines().take(2).map(str::trim_end).collect();
    assert_eq!(first, ["error[U012]: `nothing-of-this-name` is", "  neither an event nor a hook nor a"], "{failure}");
}

#[test]
fn completions_are_put_where_the_shell_looks_for_them() {
    let lab = Lab::new();
    for (shell, file) in [
        ("bash", ".local/share/bash-completion/completions/ollm"),
        ("fish", ".config/fish/completions/ollm.fish"),
        ("zsh", ".local/share/zsh/site-functions/_ollm"),
    ] {
        let ran = lab.run(&["completions", "install", shell, "--json"]);
        let place = lab.home.join(file);
        assert_eq!(ran.answer()["changed"][0]["file"], place.display().to_string(), "{ran:?}");
        assert_eq!(ran.answer()["exit"], 0, "the object of every command that changes something: {ran:?}");
        assert_eq!(std::fs::read_to_string(&place).unwrap(), lab.run(&["completions", shell]).stdout);
    }
    for (named, code) in [("/opt/odd", 64), ("/usr/bin/zsh", 0)] {
        let mut command = lab.ollm(&["completions", "install"]);
        command.env("SHELL", named);
        assert_eq!(crate::lab::finish(command, b"").code, code, "{named}");
    }
}
