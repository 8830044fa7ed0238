//! The table of commands whose arguments end in another command, and where that one begins.

use crate::field::{Field, Fields};

/// A command whose arguments end in another command.
pub(super) struct Carrier {
    name: &'static str,
    /// Options that take the next argument as their value.
    valued: &'static [&'static str],
    /// Arguments of its own before the command.
    own: usize,
}

pub(super) const fn carrier(name: &'static str, valued: &'static [&'static str], own: usize) -> Carrier {
    Carrier { name, valued, own }
}

const CARRIERS: &[Carrier] = &[
    carrier("builtin", &[], 0),
    carrier("bunx", &[], 0),
    carrier("busybox", &[], 0),
    carrier("caffeinate", &["-t", "-w"], 0),
    carrier("chroot", &["--userspec", "--groups"], 1),
    carrier("chrt", &[], 1),
    carrier("dbus-run-session", &[], 0),
    carrier("doas", &["-u", "-C"], 0),
    carrier("exec", &["-a"], 0),
    carrier("fakeroot", &[], 0),
    carrier("firejail", &[], 0),
    carrier("gtimeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    carrier("ionice", &["-c", "-n", "--class", "--classdata"], 0),
    carrier("ltrace", &["-o", "-e", "-s"], 0),
    carrier("nice", &["-n", "--adjustment"], 0),
    carrier("nohup", &[], 0),
    carrier("npx", &["-p", "--package"], 0),
    carrier("nsenter", &["-t", "--target", "-S", "-G"], 0),
    carrier("pkexec", &["--user"], 0),
    carrier("prlimit", &[], 0),
    carrier("proot", &["-r", "-b", "-w"], 0),
    carrier("run0", &["-u", "--user"], 0),
    carrier("setarch", &[], 1),
    carrier("setsid", &[], 0),
    carrier("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    carrier("strace", &["-o", "-e", "-s", "-p", "-E", "-P"], 0),
    carrier(
        "sudo",
        &["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group", "--chdir", "--host"],
        0,
    ),
    carrier("systemd-inhibit", &[], 0),
    carrier("systemd-run", &["-u", "-p", "--unit", "--property"], 0),
    carrier("taskset", &[], 1),
    carrier("time", &["-f", "-o", "--format", "--output"], 0),
    carrier("timeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    carrier("toybox", &[], 0),
    carrier("unbuffer", &[], 0),
    carrier("unshare", &["-S", "-G", "-R", "-w"], 0),
    carrier("valgrind", &[], 0),
    carrier("xvfb-run", &["-n", "-s", "-f"], 0),
];

/// Tools with a verb (`run`, `exec`) before the command.
const RUNNERS: &[&str] = &["uv", "poetry", "pipenv", "pdm", "bundle", "mise", "rye", "hatch"];

pub(super) const XARGS: Carrier = carrier(
    "xargs",
    &[
        "-I",
        "-n",
        "-P",
        "-L",
        "-d",
        "-a",
        "-E",
        "-s",
        "-J",
        "-R",
        "--max-args",
        "--max-procs",
        "--delimiter",
        "--arg-file",
    ],
    0,
);

/// The command behind a carrier's name, options and own arguments.
pub(super) fn carried(fields: &[Field], carrier: &Carrier) -> Fields {
    let mut rest = fields.iter().skip(1).peekable();
    let mut own = carrier.own;
    while let Some(field) = rest.peek() {
        let text = field.text.as_str();
        if text.len() > 1 && text.starts_with('-') {
            let valued = carrier.valued.contains(&text);
            rest.next();
            if valued {
                rest.next();
            }
        } else if is_assignment(text) && matches!(carrier.name, "sudo" | "doas") {
            rest.next();
        } else if own > 0 {
            own -= 1;
            rest.next();
        } else {
            break;
        }
    }
    rest.cloned().collect()
}

pub(super) fn verb_of_runner(name: &str, fields: &[Field]) -> Option<usize> {
    let is_verb = |field: &Field| matches!(field.known(), Some("run" | "exec" | "x"));
    if RUNNERS.contains(&name) { fields.iter().position(is_verb) } else { None }
}

/// Whether this is a bundle of one-letter options with this one among them.
pub(super) fn is_cluster(option: &str, letter: char) -> bool {
    option
        .strip_prefix('-')
        .is_some_and(|letters| letters.chars().all(|next| next.is_ascii_alphabetic()) && letters.contains(letter))
}

pub(super) fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|next| next == '_' || next.is_ascii_alphanumeric())
    })
}

/// The carrier of this name: a program that runs the command behind its options.
pub(super) fn find_carrier(name: &str) -> Option<&'static Carrier> {
    CARRIERS.binary_search_by_key(&name, |carrier| carrier.name).ok().and_then(|at| CARRIERS.get(at))
}

#[cfg(test)]
mod tests {
    #[test]
    fn carriers_are_sorted() {
        assert!(super::CARRIERS.is_sorted_by_key(|carrier| carrier.name));
    }
}
