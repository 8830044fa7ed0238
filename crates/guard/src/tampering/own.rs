//! Finds calls by which an agent uses our own command line, program or processes against us.

use ollm_protocol::dialect::AGENTS;

use crate::{
    destructive::Finding,
    field::Field,
    names::Names,
    program::{Arguments, Files},
    text,
    walk::Run,
};

const REASON: &str = "an agent may not approve or switch off its own guards";

/// What of our own command line changes which guards run; without a verb, the whole command does.
const VERBS: &[(&str, &[&str])] = &[
    ("hook", &["add", "disable", "edit", "enable", "remove", "trust", "untrust"]),
    ("ext", &["dev", "disable", "enable", "install", "pin", "remove", "set", "trust", "uninstall", "update"]),
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
        return by_another_name(run);
    }
    if run.args.iter().any(sets_hooks) {
        return Some(Finding::block(format!("{REASON}: {}", run.shown())));
    }
    let words: Vec<&Field> = words(run).collect();
    let has = |wanted: &str| words.iter().any(|word| is(word, wanted));
    let begins = |wanted: &str| words.first().is_some_and(|word| is(word, wanted));
    // Without an agent `connect` lists them.
    let shows = |arg: &Field| matches!(arg.text.as_str(), "--capabilities" | "--dry-run" | "--help" | "-h");
    let only_shows = run.args.iter().any(shows) || (begins("connect") && words.len() == 1);
    let forbidden = VERBS.iter().any(|(noun, verbs)| match verbs {
        [] => begins(noun) && !only_shows,
        verbs => has(noun) && verbs.iter().any(|verb| has(verb)),
    });
    if forbidden {
        return Some(Finding::block(format!("{REASON}: {}", run.shown())));
    }
    words.iter().any(|word| word.open()).then(|| Finding::ask(format!("{REASON}, and this may: {}", run.shown())))
}

/// A program of which nothing is known may be a copy of ours: it is, if it takes the same commands.
fn by_another_name(run: &Run) -> Option<Finding> {
    if (run.program.arguments, run.program.files) != (Arguments::MayRun, Files::MayWrite) {
        return None;
    }
    if replaces_us(run) || loosens_agent(run) {
        return Some(Finding::ask(format!("{REASON}: {}", run.shown())));
    }
    let mut words = words(run);
    let noun = words.next()?;
    // Other agents have hooks of their own.
    let is_noun = |ours: &str| is(noun, ours) || noun.text.strip_suffix('s').is_some_and(|noun| noun == ours);
    let ours = VERBS.iter().find(|(ours, _)| is_noun(ours)).is_some_and(|(noun, verbs)| {
        let Some(verb) = words.next() else { return false };
        match (*noun, verbs) {
            // Many programs have one; ours are named by their keys.
            ("config", _) => verbs.iter().any(|ours| is(verb, ours)) && words.next().is_some_and(is_key),
            (_, []) => AGENTS.iter().any(|agent| is(verb, agent.name)),
            _ => verbs.iter().any(|ours| is(verb, ours)),
        }
    });
    (ours || run.args.iter().any(sets_hooks)).then(|| {
        Finding::ask(format!("{REASON}, and {} may be a copy of ollm, or an agent: {}", run.name, run.shown()))
    })
}

/// Whether a package manager takes our program away, or puts another version in its place.
fn replaces_us(run: &Run) -> bool {
    #[rustfmt::skip]
    const VERBS: &[&str] = &[
        "-R", "-S", "-U", "-e", "-i", "-r", "add", "delete", "erase", "i", "install", "purge", "reinstall", "remove", "rm", "un",
        "uninstall", "unlink", "update", "upgrade",
    ];
    let changes = |arg: &Field| VERBS.contains(&arg.text.as_str());
    let is_ours = |arg: &Field| {
        let (package, _) = arg.text.split_once(['@', '=']).unwrap_or((&arg.text, ""));
        package.eq_ignore_ascii_case("ollm")
    };
    run.args.iter().any(is_ours) && run.args.iter().any(changes)
}

/// Whether another agent is started with less to guard it, or is told to load other code from now on.
fn loosens_agent(run: &Run) -> bool {
    #[rustfmt::skip]
    const VERBS: &[&str] = &[
        "add", "add-json", "disable", "enable", "import", "install", "link", "marketplace", "remove", "set", "uninstall", "update",
    ];
    const NOUNS: &[&str] = &["config", "extension", "extensions", "hooks", "mcp", "plugin", "plugins"];
    let is_agent = || AGENTS.iter().any(|agent| agent.home.programs.contains(&run.name.as_str()));
    let mut words = words(run);
    let noun = words.next().is_some_and(|noun| NOUNS.iter().any(|known| is(noun, known)));
    if noun && words.any(|verb| VERBS.iter().any(|known| is(verb, known))) && is_agent() {
        return true;
    }
    // Whatever editor it is.
    if run.args.iter().any(|arg| arg.text.starts_with("--add-mcp")) {
        return true;
    }
    let loosens = |arg: &Field| {
        let sets = arg.text.contains(['{', '=']);
        let text = || arg.text.to_ascii_lowercase();
        (arg.text.starts_with("--") && (text() == "--yolo" || text().starts_with("--dangerously")))
            || (sets && text().contains("hook"))
    };
    run.args.iter().any(loosens) && is_agent()
}

/// The first words that are neither options nor their values (`--set KEY=VALUE`), any number of which may come first.
fn words(run: &Run) -> impl Iterator<Item = &Field> {
    let is_option = |arg: &Field| arg.text.starts_with('-') || (arg.text.contains('=') && !arg.open());
    run.args.iter().filter(move |arg| !is_option(arg)).take(6)
}

fn is(word: &Field, wanted: &str) -> bool {
    word.text.eq_ignore_ascii_case(wanted)
}

/// Whether a word sets one of the switches of hooks: `hooks.guards=false`, `--set=hooks.guards=false`.
fn sets_hooks(arg: &Field) -> bool {
    let setting = arg.text.strip_prefix("--set=").unwrap_or(&arg.text);
    setting.starts_with("hooks.") && (arg.text.contains('=') || arg.open())
}

/// Whether a word is one of our settings that decide what runs.
fn is_key(word: &Field) -> bool {
    const SECTIONS: &[&str] = &["extensions", "hooks", "mcp"];
    let section = word.text.split('.').next().unwrap_or_default();
    word.open() || SECTIONS.contains(&section)
}

/// Whether a program only looks at a file, and puts its content nowhere.
fn only_looks(name: &str) -> bool {
    #[rustfmt::skip]
    const LOOKERS: &[&str] = &[
        "[", "[[", "b2sum", "basename", "cksum", "cmp", "command", "diff", "dirname", "du", "echo", "exa", "eza", "file", "getfacl",
        "grep", "ldd", "ls", "lsattr", "lsof", "md5sum", "namei", "nm", "objdump", "pgrep", "pidof", "printf", "readelf",
        "readlink", "realpath", "sha1sum", "sha256sum", "sha512sum", "shasum", "size", "stat", "strings", "test", "type",
        "wc", "whereis", "which",
    ];
    crate::program::is_in(LOOKERS, name)
}

/// Our program as the input of another.
pub(super) fn read(file: &Field) -> Finding {
    Finding::ask(format!("{REASON}, and a copy of ollm could: < {}", text::excerpt(&file.shown())))
}

/// A copy of our program has another name, by which no guard knows it.
pub(super) fn copy(run: &Run, is_ours: impl Fn(&Field) -> bool) -> Option<Finding> {
    if run.program.files != Files::Known || run.name == "ollm" || only_looks(&run.name) {
        return None;
    }
    let named = run.args.iter().any(|arg| match arg.text.split_once('=') {
        Some((_, value)) => is_ours(&Field { text: value.to_owned(), ..arg.clone() }),
        None => is_ours(arg),
    });
    named.then(|| Finding::ask(format!("{REASON}, and a copy of ollm could: {}", run.shown())))
}

/// Whether a program types text into a terminal or starts something there.
fn types(run: &Run) -> bool {
    #[rustfmt::skip]
    const TYPISTS: Names<64> = Names::of(&[&[
        "tmux", "screen", "byobu", "zellij", "kitty", "wezterm", "dtach", "abduco", "xdotool", "ydotool", "wtype",
        "expect", "script", "at", "batch", "crontab", "systemd-run", "ttyd", "tmate", "konsole", "xterm", "osascript",
    ]]);
    TYPISTS.tables_with(&run.name) != 0
}

/// The names of our processes.
pub(super) const PROCESSES: &[&str] = &["ollm", "children-guard", "children-reaper"];

/// Signals to our processes, by any pattern that fits their names.
fn kills(run: &Run) -> Option<Finding> {
    let ends = run.name != "systemctl" || run.args.iter().any(|arg| matches!(arg.text.as_str(), "stop" | "kill"));
    let plain = |text: &str| text.trim_matches(['^', '$', '.', '*', '[', ']', '(', ')']).to_lowercase();
    let fits = |arg: &&Field| {
        let name = plain(&arg.text);
        !arg.text.starts_with('-')
            && name.len() > 1
            && PROCESSES.iter().any(|ours| ours.contains(&name) || name.contains(ours))
    };
    let hit = run.args.iter().find(fits).filter(|_| ends)?;
    Some(Finding::ask(format!("{} may be a process that guards: {}", hit.shown(), run.shown())))
}
