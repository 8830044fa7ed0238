//! What an agent may not do with our own command line: the commands refuse it, and so does the guard.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use ollm_guard::{ProtectedPlaces, tampering};
use ollm_protocol::{Event, EventKind, Flow};
use serde_json::json;

use crate::documents::root;
use crate::lab::Lab;

/// Commands that agents may not run, with arguments that let them begin.
const REFUSED: &[&str] = &[
    "hook add before_tool x.sh",
    "hook disable x",
    "hook edit x",
    "hook enable x",
    "hook remove x",
    "hook trust x",
    "hook untrust x",
    "connect claude",
    "disconnect claude",
    "import claude",
    "ext dev x",
    "ext disable x",
    "ext enable x",
    "ext install x",
    "ext pin x",
    "ext set x a=b",
    "ext trust x",
    "ext uninstall x --yes",
    "ext update x",
    "git-hook install",
    "git-hook uninstall",
    "config migrate",
    "config set hooks.enabled false",
    "config unset hooks.enabled",
    "trust init",
    "mcp add x -- y",
    "mcp login x",
    "mcp logout x",
    "mcp remove x",
    "mcp review x --digest x",
    "mcp trust x",
    "mcp untrust x",
];

/// Commands that agents may run: they show or run something, or ask by themselves about the part that guards.
#[rustfmt::skip]
const FREE: &[&str] = &[
    "box", "chat", "completions install", "config get", "config path", "config show", "config validate", "demo", "doctor", "emit",
    "explain",
    "ext index build", "ext info", "ext list", "ext new", "ext reload", "ext search", "ext test", "ext validate", "git-hook run", "git-hook status", "help", "hook convert", "hook list", "hook new", "hook plan",
    "hook run", "hook show", "hook test", "hook trigger", "hook validate", "man", "mcp call", "mcp list", "mcp logs", "mcp prompts",
    "mcp resources", "mcp restart", "mcp start", "mcp status", "mcp stop", "mcp tools", "model list", "model pull",
    "model show", "replay", "run", "schema",
    "session list", "session resume", "session show", "skill list", "skill run", "skill show", "trace export",
    "trace follow", "trace last", "trace list", "trace show", "trace stats", "trust status", "tui", "watch",
];

/// Every command in the reference that has none below it.
pub(crate) fn commands() -> Vec<String> {
    let reference = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let headings = reference.lines().filter_map(|line| line.strip_prefix("## `ollm ")?.strip_suffix('`'));
    let all: Vec<String> = headings.map(str::to_owned).collect();
    let is_leaf = |command: &&String| !all.iter().any(|other| other.starts_with(&format!("{command} ")));
    all.iter().filter(is_leaf).cloned().collect()
}

/// What the guard makes of a command line of ours.
fn judged(line: &str) -> Flow {
    let home = PathBuf::from("/home/ada");
    let shelter = ProtectedPlaces {
        ollm_home: home.join(".ollm"),
        projects: vec![home.join("project")],
        cwd: home.join("project"),
        home: Some(home),
        ..ProtectedPlaces::default()
    };
    let data = [("tool_name", json!("shell")), ("args", json!({ "command": format!("ollm {line}") }))];
    tampering(&Event::unchecked(EventKind::BeforeTool, data), &shelter).flow
}

#[test]
fn s02_the_guard_refuses_the_commands_that_refuse_agents() {
    let commands = commands();
    let refused = |command: &String| {
        let lines = REFUSED.iter().filter(|line| format!("{line} ").starts_with(&format!("{command} ")));
        lines.copied().next()
    };
    let lab = Lab::new().set("OLLM_AGENT", "1");
    for command in &commands {
        let Some(line) = refused(command) else {
            assert!(FREE.contains(&command.as_str()), "`{command}` is in neither list");
            assert_eq!(judged(command), Flow::NoOpinion, "{command}");
            continue;
        };
        assert!(!FREE.contains(&command.as_str()), "`{command}` is in both lists");
        assert_eq!(judged(line), Flow::Block, "{line}");
        let ran = lab.run(&line.split(' ').collect::<Vec<_>>());
        assert!(ran.stderr.contains("an agent may not "), "{line}: {ran:?}");
    }
    let ran = lab.run(&["ext", "new", "zz"]);
    assert!(ran.code != 0 && ran.stderr.contains("an agent may not write extensions of the user"), "{ran:?}");
    assert_eq!(lab.run(&["ext", "new", "zz", "--folder", "drafts"]).code, 0, "it may write one elsewhere");
    let known: BTreeSet<&str> = commands.iter().map(String::as_str).collect();
    let gone: Vec<&&str> = FREE.iter().filter(|command| !known.contains(**command)).collect();
    assert!(gone.is_empty(), "no longer commands: {gone:?}");
}
