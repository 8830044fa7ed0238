//! Our own command line and our own processes in the hands of an agent.

use crate::{destructive::Finding, field::Field, walk::Run};

/// What of our own command line changes which guards run; without a verb, the whole command does.
const VERBS: &[(&str, &[&str])] = &[
    ("hook", &["add", "disable", "edit", "enable", "remove", "trust", "untrust"]),
    ("ext", &["disable", "enable", "set", "trust", "uninstall"]),
    ("mcp", &["add", "login", "logout", "remove", "review", "trust", "untrust"]),
    ("config", &["migrate", "set", "unset"]),
    ("trust", &["init"]),
    ("connect", &[]),
    ("disconnect", &[]),
    ("import", &[]),
    ("git-hook", &["install", "uninstall"]),
];

/// An agent that runs our own command line to approve or switch off its guards.
pub(super) fn command(run: &Run) -> Option<Finding> {
    const REASON: &str = "an agent may not approve or switch off its own guards";
    if matches!(run.name.as_str(), "pkill" | "killall" | "kill" | "systemctl") {
        return kills(run);
    }
    if types(run) {
        let text: String = run.args.iter().map(|arg| arg.text.to_lowercase()).collect();
        return text
            .contains("ollm")
            .then(|| Finding::ask(format!("{REASON}, and this types for it: {}", run.shown())));
    }
    if run.name != "ollm" {
        return None;
    }
    if run.args.iter().any(|arg| arg.text.trim_start_matches("--set=").starts_with("hooks.")) {
        return Some(Finding::block(format!("{REASON}: {}", run.shown())));
    }
    // Options and their values (`--set KEY=VALUE`) may stand before the command, any number of them.
    let is_option = |arg: &&Field| arg.text.starts_with('-') || (arg.text.contains('=') && !arg.open());
    let words: Vec<&Field> = run.args.iter().filter(|arg| !is_option(arg)).take(6).collect();
    let is = |word: &Field, wanted: &str| word.text.eq_ignore_ascii_case(wanted);
    let has = |wanted: &str| words.iter().any(|word| is(word, wanted));
    let begins = |wanted: &str| words.first().is_some_and(|word| is(word, wanted));
    let forbidden = VERBS.iter().any(|(noun, verbs)| match verbs {
        [] => begins(noun),
        verbs => has(noun) && verbs.iter().any(|verb| has(verb)),
    });
    if forbidden {
        return Some(Finding::block(format!("{REASON}: {}", run.shown())));
    }
    words.iter().any(|word| word.open()).then(|| Finding::ask(format!("{REASON}, and this may: {}", run.shown())))
}

/// Whether a program types text into a terminal or starts something there.
fn types(run: &Run) -> bool {
    #[rustfmt::skip]
    const TYPISTS: &[&str] = &[
        "tmux", "screen", "byobu", "zellij", "kitty", "wezterm", "dtach", "abduco", "xdotool", "ydotool", "wtype",
        "expect", "script", "at", "batch", "crontab", "systemd-run", "ttyd", "tmate", "konsole", "xterm", "osascript",
    ];
    TYPISTS.contains(&run.name.as_str())
}

/// Signals to our processes, by any pattern that fits their names.
fn kills(run: &Run) -> Option<Finding> {
    const OURS: &[&str] = &["ollm", "children-guard", "children-reaper"];
    let ends = run.name != "systemctl" || run.args.iter().any(|arg| matches!(arg.text.as_str(), "stop" | "kill"));
    let plain = |text: &str| text.trim_matches(['^', '$', '.', '*', '[', ']', '(', ')']).to_lowercase();
    let fits = |arg: &&Field| {
        let name = plain(&arg.text);
        !arg.text.starts_with('-')
            && name.len() > 1
            && OURS.iter().any(|ours| ours.contains(&name) || name.contains(ours))
    };
    let hit = run.args.iter().find(fits).filter(|_| ends)?;
    Some(Finding::ask(format!("{} may be a process that guards: {}", hit.shown(), run.shown())))
}
