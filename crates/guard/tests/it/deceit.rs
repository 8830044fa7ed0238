//! An agent that helps itself, hides what it does, or takes another's name.

use ollm_guard::{destructive, tampering};
use ollm_protocol::{EventKind, Flow};
use serde_json::json;
use std::path::Path;

use super::{HOME, PROJECT, call, check, first, second, shell, shelter};

#[test]
fn text_for_a_shell_that_cannot_be_read_to_its_end_may_have_run_before() {
    let nested = "cat <<EOF\n$( true\ntouch $HOME/.ollm/hooks/x\n# end )\nEOF\n";
    let ended = "cat <<EOF\n$( touch .claude/settings.json )\nEOF\n &";
    for code in [nested, ended] {
        for command in [
            format!("less '+!bash -c \"{}\"' x", code.replace('$', "\\$")),
            format!("PAGER='bash <<\"EOT\"\n{code}\nEOT\n' man x"),
            format!("tool --hook='eval \"{}\"'", code.replace('$', "\\$")),
        ] {
            assert!(second(&command).flow >= Flow::Ask, "{command}");
        }
    }
    assert_eq!(first("less '+!bash -c \"if true\"' x").flow, Flow::NoOpinion);
}

#[test]
fn c06_an_agent_cannot_approve_or_switch_off_its_own_guards() {
    check(
        second,
        Flow::Block,
        &[
            "ollm hook trust x",
            "ollm hook untrust x",
            "ollm hook disable builtin:self-protection",
            "ollm hook enable x; ollm hook list",
            "ollm hook remove x",
            "ollm hook add x",
            "ollm hook edit x",
            "ollm --json hook trust x",
            "ollm --home /tmp hook trust x",
            "/usr/local/bin/ollm hook trust x",
            "./target/debug/ollm hook trust",
            "OLLM_HOME=/tmp ollm hook trust x",
            "sudo -u me ollm ext trust x",
            "ollm ext enable x && ollm ext disable y",
            "ollm ext uninstall x",
            "ollm ext set x a b",
            "ollm mcp trust x",
            "ollm mcp untrust x",
            "ollm mcp add x",
            "ollm mcp remove x",
            "ollm config set hooks.enabled false",
            "ollm config unset hooks.guards",
            "ollm --set a=1 --set b=1 --set c=1 --set d=1 --set e=1 --set f=1 --set g=1 hook trust x",
            "ollm config migrate",
            "ollm disconnect claude",
            "yes | ollm hook trust x",
            "bash -c 'ollm hook trust x'",
            "find . -exec ollm hook trust {} \\;",
            "echo x | xargs ollm hook trust",
            "npx ollm hook trust x",
        ],
    );
    check(second, Flow::Ask, &["ollm hook $verb x", "ollm $x"]);
    check(second, Flow::NoOpinion, &["echo ollm hook trust x", "ollm hook plan", "ollm mcp list", "ollm config get x"]);
}

#[test]
fn c07_hidden_characters_are_flagged_and_never_shown_raw() {
    check(
        first,
        Flow::Ask,
        &[
            "echo \u{202e}fr- mr",
            "ls \u{2066}x\u{2069}",
            "l\u{200b}s",
            "ls \u{1b}[2K",
            "ls\u{7}",
            "ls \u{0} x",
            "a\u{200d}b",
            "ls \u{e0041}",
        ],
    );
    check(
        first,
        Flow::NoOpinion,
        &["git commit -m '👨\u{200d}👩\u{200d}👧 done ✔\u{fe0f}'", "echo é ü 漢字", "printf 'a\tb\n'"],
    );
    let reasons = [
        first("rm -rf / '\u{202e}\u{1b}[2K'").reason(),
        second("echo x > '.ollm/hooks/\u{200b}\u{1b}'").reason(),
        tampering(&call("write_file", json!({ "path": ".ollm/hooks/\u{202e}x" })), &shelter()).reason(),
    ];
    for reason in reasons {
        let reason = reason.unwrap();
        assert!(!reason.contains(['\u{202e}', '\u{1b}', '\u{200b}']), "{reason:?}");
    }
}

#[test]
fn c10_an_event_folder_counts_before_the_callers_and_must_be_absolute() {
    let judge = |cwd: &str, command: &str| {
        let data = [("tool_name", "shell".into()), ("args", json!({ "command": command })), ("cwd", cwd.into())];
        let event = ollm_protocol::Event::unchecked(EventKind::BeforeTool, data);
        destructive(&event, Path::new(PROJECT), Some(Path::new(HOME))).flow
    };
    assert_eq!(judge("/home/ada", "rm -rf *"), Flow::Block);
    assert_eq!(judge("/home/ada/x", "rm -rf *"), Flow::NoOpinion);
    assert_eq!(judge("nonsense", "rm -rf .git"), Flow::Block);
}

#[test]
fn a_reason_names_the_offending_command() {
    let verdict = first("cd src && ls | sudo -u root rm -rf -- ~ && echo done");
    assert_eq!(verdict.reasons, ["removes or changes the home folder: rm -rf -- /home/ada"]);
    let verdict = tampering(&shell("echo x > .ollm/config.yaml"), &shelter());
    assert_eq!(verdict.reasons, [".ollm/config.yaml is or holds the protected /home/ada/work/project/.ollm"]);
}
