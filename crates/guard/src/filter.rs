//! Reads code of `sed` and `awk`: what it runs, what it writes, and where it is among the arguments.

use ollm_shell::is_shell;

use crate::field::Field;

/// Whether a program is some `awk`.
pub(crate) fn is_awk(name: &str) -> bool {
    name.ends_with("awk")
}

/// Whether a program is some `sed`.
pub(crate) fn is_sed(name: &str) -> bool {
    name.ends_with("sed")
}

/// The scripts among the arguments: those behind options, or else the first that is no option.
pub(crate) fn scripts<'a>(name: &str, args: &'a [Field]) -> Vec<&'a Field> {
    let awk = is_awk(name);
    let (mut scripts, mut first) = (Vec::new(), None);
    let mut named = false;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.text.as_str() {
            "-e" | "--expression" | "--source" => scripts.extend(rest.next()),
            "-f" | "--file" | "--from-file" => {
                named = true;
                rest.next();
            }
            "-v" | "-F" | "--assign" | "--field-separator" if awk => drop(rest.next()),
            "-l" | "--line-length" if !awk => drop(rest.next()),
            text if text.len() > 1 && text.starts_with('-') => {
                // What is attached to an option may be a script, or a bundle may end in `e`.
                scripts.extend(text.contains('e').then_some(arg));
                if !awk && !text.starts_with("--") && text.ends_with('e') {
                    scripts.extend(rest.next());
                }
            }
            _ if first.is_none() => first = Some(arg),
            _ => {}
        }
    }
    let attached = |arg: &&Field| !arg.text.starts_with("--") || arg.text.contains('=');
    scripts.retain(attached);
    if scripts.is_empty() && !named {
        scripts.extend(first);
    }
    // A space tells code from names of files.
    scripts.extend(args.iter().filter(|arg| arg.text.contains([' ', '(', ';', '\n'])));
    scripts
}

/// The values that variables of `awk` get from outside: `-v NAME=VALUE`, `NAME=VALUE`.
pub(crate) fn awk_values<'a>(name: &str, args: &'a [Field]) -> impl Iterator<Item = &'a str> {
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let awk = is_awk(name);
    let values = args.iter().filter_map(move |arg| arg.text.trim_start_matches("-v").split_once('='));
    values.filter(move |(name, _)| awk && is_name(name)).map(|(_, value)| value)
}

/// The files that code writes: `print > "…"`, `w …`.
pub(crate) fn files<'a>(name: &str, code: &'a str) -> Vec<&'a str> {
    if is_awk(name) { awk_files(code) } else { sed_files(code) }
}

fn awk_files(code: &str) -> Vec<&str> {
    let behind = code.split('>').skip(1).filter_map(|behind| behind.trim_start().strip_prefix('"'));
    behind.filter_map(|string| string.split('"').next()).collect()
}

fn sed_files(code: &str) -> Vec<&str> {
    let command = |at: usize| {
        let before = code.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|before| !before.is_ascii_alphabetic() || matches!(before, 'g' | 'p' | 'I'))
    };
    // `W` writes only the first line.
    let marks = code.match_indices("w ").chain(code.match_indices("W "));
    let named = marks.filter(|(at, _)| command(*at)).filter_map(|(at, mark)| {
        code.get(at + mark.len()..)?.split_whitespace().next().filter(|file| !file.ends_with('/'))
    });
    named.collect()
}

/// What `sed` would run: the rest of a line behind its command `e`, or what a substitution with that flag makes.
pub(crate) fn sed_commands(code: &str, begins_with_harm: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
    let parts = code.split(DELIMITERS).filter(|_| substitutes_and_runs(code));
    let behind = code.lines().flat_map(|line| {
        line.match_indices('e').filter_map(move |(at, _)| {
            let before = line.get(..at)?.chars().next_back();
            let command = before.is_none_or(|before| !before.is_ascii_alphabetic());
            let rest = line.get(at + 1..).filter(|_| command)?;
            Some((rest, rest.starts_with(' ')))
        })
    });
    let parts = parts.map(|part| (part, false));
    behind.chain(parts).filter(move |(text, apart)| *apart || begins_with_harm(text)).map(|(text, _)| text)
}

/// What usually stands between the parts of a substitution.
const DELIMITERS: [char; 4] = ['/', '|', '#', ','];

/// Whether code ends in a substitution whose result is run.
fn substitutes_and_runs(code: &str) -> bool {
    let flags = code.trim_end().rsplit(DELIMITERS).next().unwrap_or_default();
    flags.contains('e') && flags.chars().all(|next| next.is_ascii_alphanumeric())
}

/// Whether code runs text that it reads, which does not stand in the code.
pub(crate) fn runs_data(name: &str, code: &str) -> bool {
    if is_awk(name) { awk_runs_data(code) } else { is_sed(name) && sed_runs_data(code) }
}

fn awk_runs_data(code: &str) -> bool {
    let calls = code.match_indices("system").filter_map(|(at, word)| code.get(at + word.len()..));
    let calls = calls.filter_map(|behind| behind.trim_start().strip_prefix('('));
    let reads = code.match_indices("getline").filter_map(|(at, _)| code.get(..at)?.trim_end().strip_suffix('|'));
    let mut pipes =
        code.split('|').skip(1).filter_map(|behind| behind.trim_start().strip_prefix('"')?.split('"').next());
    calls.into_iter().any(|argument| !argument.trim_start().starts_with('"'))
        || reads.into_iter().any(|command| !command.trim_end().ends_with('"'))
        || pipes.any(is_shell)
}

fn sed_runs_data(code: &str) -> bool {
    code.split([';', '\n', '{', '}']).map(behind_address).any(|command| match command.strip_prefix('s') {
        Some(rest) => {
            let mark = rest.chars().next().filter(|mark| !mark.is_alphanumeric());
            let parts: Vec<&str> = mark.map(|mark| rest.split(mark).collect()).unwrap_or_default();
            matches!(parts.as_slice(), [_, _, .., flags] if parts.len() > 3 && flags.contains('e'))
        }
        None => command == "e",
    })
}

/// A command of `sed` without the lines that it is for.
fn behind_address(command: &str) -> &str {
    let mut rest = command.trim();
    loop {
        let before = rest.len();
        rest =
            rest.trim_start_matches(|next: char| next.is_ascii_digit() || matches!(next, '$' | ',' | '!' | ' ' | '~'));
        if let Some((_, behind)) = rest.strip_prefix('/').and_then(|pattern| pattern.split_once('/')) {
            rest = behind;
        }
        if rest.len() == before {
            return rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_runs_what_stands_behind_e() {
        let harm = |text: &str| text.trim_start().starts_with("rm ");
        let commands = |code| sed_commands(code, harm).collect::<Vec<_>>();
        assert_eq!(commands("1e rm x"), [" rm x"]);
        assert_eq!(commands("s/a/rm x/e"), ["rm x"]);
        assert_eq!(commands("s/a/b/"), [""; 0]);
    }

    #[test]
    fn code_that_runs_what_it_reads_is_told_from_code_that_does_not() {
        for (name, code, runs) in [
            ("sed", "e", true),
            ("sed", "1,3e", true),
            ("gsed", "/x/e; p", true),
            ("sed", "s/^/x/e", true),
            ("sed", "s/e;/x/", false),
            ("sed", "/e/d", false),
            ("sed", "s,the,e,", false),
            ("awk", "{system($0)}", true),
            ("gawk", "{ system (cmd) }", true),
            ("awk", "{ $0 | getline x }", true),
            ("awk", "{ print | \"sh\" }", true),
            ("awk", "{ print | \"sort\" }", false),
            ("awk", "BEGIN { system(\"date\") }", false),
            ("awk", "{ \"date\" | getline x }", false),
        ] {
            assert_eq!(runs_data(name, code), runs, "{name} {code}");
        }
    }
}
