//! Every command that a real shell runs, the walk has found.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use proptest::prelude::*;

use super::{ScriptAction, walk};
use crate::field::ShellPlace;

/// Scraps of shell grammar, thrown together at random.
const SCRAPS: &[&str] = &[
    "(",
    ")",
    "{ ",
    "; }",
    "$(",
    ")",
    "`",
    "`",
    "\"",
    "\"",
    "'",
    "'",
    "\\",
    "\n",
    "\n",
    " && ",
    " || ",
    " | ",
    " |& ",
    "; ",
    " & ",
    " # ",
    "#",
    " <<E\n",
    "\nE\n",
    " <<'E'\n",
    " <<-E\n",
    "\n\tE\n",
    "if ",
    "; then ",
    "; else ",
    "; fi",
    "for i in a b; do ",
    "; done",
    "case x in x) ",
    "case x in (y|x) ",
    ";; esac",
    "$((",
    "))",
    "((",
    "${x:-",
    "}",
    "${x#",
    "${#",
    "<(",
    " >(",
    "bash -c '",
    "bash -c \"",
    "eval ",
    "eval '",
    "x=",
    "x=(",
    " ",
    " ",
    "[[ ",
    " ]]",
    "echo ",
    "cat ",
    "! ",
    "$'",
    "\\\n",
    "f() { ",
    "; }; f\n",
    "f() ( ",
    "function g { ",
    "; }; g\n",
    " > out ",
    " >> out ",
    " < /dev/null ",
    " 2>&1 ",
    " &> out ",
    "coproc ",
    "time ",
    "=",
    "{a,b}",
    "*",
    "$x",
    "$",
    "1",
    " <<< ",
    "command ",
    "env ",
    "exec ",
    "trap '",
    "' EXIT\n",
    "xargs ",
    "\t",
    "elif ",
    "x+=",
    "export x=",
    "local y=",
    "[ a ",
    " ]",
    "\\`",
    "\\\"",
    "$[",
    "]",
    ";;",
    ";&",
    "echo $(cat <<E\n",
    "\nE\n)",
    "<<\\E\n",
    "<<\"E\"\n",
    "${x:-\"",
    "\"}",
    "${x:-'",
    "'}",
    "\"${x:-",
    "}\"",
    "=~",
    " < ",
    " > ",
    "if ((",
    ")); then ",
    "for ((;0;)); do ",
    "select z in q; do ",
];

fn script() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        3 => prop::sample::select(SCRAPS).prop_map(str::to_owned),
        2 => (0..1000_u32).prop_map(|number| format!("mark {number}")),
    ];
    prop::collection::vec(scrap, 1..14).prop_map(|scraps| scraps.concat())
}

/// The marks a real shell leaves.
fn marks(script: &str, folder: &Path) -> Vec<String> {
    let log = folder.join("log");
    let prelude = folder.join("prelude");
    let _ = fs::remove_file(&log);
    fs::write(&prelude, "mark() { printf '%s\\0' \"$1\" >> \"$LOG\"; }; export -f mark; ulimit -t 1\n").unwrap();
    let bin = folder.join("bin");
    if fs::create_dir(&bin).is_ok() {
        use std::os::unix::fs::PermissionsExt;
        fs::write(bin.join("mark"), "#!/bin/sh\nprintf '%s\\0' \"$1\" >> \"$LOG\"\n").unwrap();
        fs::set_permissions(bin.join("mark"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let mut child = Command::new("timeout");
    child.args(["-k", "1", "2", "bash", "--norc", "-c", script]);
    child.env_clear().env("PATH", path).env("LOG", &log).env("BASH_ENV", &prelude).current_dir(folder);
    let _ = child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    fs::read_to_string(&log).unwrap_or_default().split_terminator('\0').map(str::to_owned).collect()
}

/// Whether the walk saw this mark, or said that it cannot know.
fn seen(deeds: &[ScriptAction], mark: &str) -> bool {
    deeds.iter().any(|deed| is_mark(deed, mark))
}

/// A text with one digit for each number: which number a shell has, only it knows.
fn without_numbers(text: &str) -> String {
    let mut folded = String::new();
    for char in text.chars() {
        match char {
            digit if digit.is_ascii_digit() && folded.ends_with('0') => {}
            digit if digit.is_ascii_digit() => folded.push('0'),
            other => folded.push(other),
        }
    }
    folded
}

fn is_mark(deed: &ScriptAction, mark: &str) -> bool {
    match deed {
        ScriptAction::Unclear(_) => true,
        ScriptAction::Guess(deed) => is_mark(deed, mark),
        ScriptAction::Run(run) => {
            run.name == "mark"
                && run.args.first().map_or(mark.is_empty(), |arg| {
                    arg.known().is_none_or(|text| without_numbers(text) == without_numbers(mark))
                })
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_bash_runs_was_seen(script in script()) {
        let folder = tempfile::tempdir().unwrap();
        let place = ShellPlace::new(vec![folder.path().to_owned()], None);
        let deeds = walk(&script, place);
        for mark in marks(&script, folder.path()) {
            prop_assert!(seen(&deeds, &mark), "bash ran `mark {mark}` in {script:?}, seen: {deeds:?}");
        }
    }
}

/// More cases can be asked for; each one starts a shell.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256)
}
