//! Languages whose commands are words, as those of a shell are: Tcl, PowerShell and `cmd`.
//!
//! Their commands that run, remove or write something are said in the words of a shell, and judged as those are.

/// A language of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordedLanguage {
    Tcl,
    PowerShell,
    Cmd,
}

/// What code of such a language does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShellLines {
    pub(super) lines: Vec<String>,
    /// Whether it runs text that is not written out.
    pub(super) is_open: bool,
}

const REMOVES: &str = "rm -r -f";

/// Commands of PowerShell and `cmd`, and what they are in a shell.
#[rustfmt::skip]
const VERBS: &[(&str, &str)] = &[
    ("ac", "tee -a"), ("add-content", "tee -a"), ("cd", "cd"), ("chdir", "cd"), ("clc", "truncate -s0"), ("clear-content", "truncate -s0"),
    ("clear-disk", "mkfs /dev/disk0"), ("copy", "cp -r"), ("copy-item", "cp -r"), ("cp", "cp -r"), ("cpi", "cp -r"),
    ("del", REMOVES), ("erase", REMOVES), ("export-clixml", "tee"), ("export-csv", "tee"), ("format", "mkfs /dev/disk0"),
    ("format-volume", "mkfs /dev/disk0"), ("initialize-disk", "mkfs /dev/disk0"), ("mi", "mv"), ("move", "mv"),
    ("move-item", "mv"), ("mv", "mv"), ("new-item", "tee"), ("ni", "tee"), ("out-file", "tee"), ("push-location", "cd"), ("pushd", "cd"), ("rd", REMOVES),
    ("remove-item", REMOVES), ("remove-partition", "mkfs /dev/disk0"), ("ren", "mv"), ("rename-item", "mv"),
    ("restart-computer", "reboot"), ("ri", REMOVES), ("rm", REMOVES), ("rmdir", REMOVES), ("rni", "mv"),
    ("sc", "tee"), ("set-content", "tee"), ("set-location", "cd"), ("sl", "cd"), ("stop-computer", "poweroff"), ("tee", "tee"), ("tee-object", "tee"),
];

/// Words of PowerShell before a command that it starts.
const STARTERS: &[&str] = &["&", ".", "cmd", "saps", "start", "start-process"];

impl WordedLanguage {
    /// The language that an interpreter reads.
    pub(super) fn of(interpreter: &str) -> Option<WordedLanguage> {
        match ollm_shell::program_stem(interpreter) {
            "expect" | "jimsh" | "tclsh" | "wish" => Some(WordedLanguage::Tcl),
            "powershell" | "pwsh" => Some(WordedLanguage::PowerShell),
            "cmd" => Some(WordedLanguage::Cmd),
            _ => None,
        }
    }

    /// What its code does, in the words of a shell.
    pub(super) fn shell_lines(self, code: &str) -> ShellLines {
        let mut found = ShellLines::default();
        match self {
            WordedLanguage::Tcl => tcl(code, &mut found),
            WordedLanguage::PowerShell => powershell(code, &mut found),
            WordedLanguage::Cmd => cmd(code, &mut found),
        }
        found
    }
}

/// Tcl: what it removes may be named anywhere in it, as in `foreach file [glob ~/*] {file delete $file}`.
fn tcl(code: &str, found: &mut ShellLines) {
    let code = code.replace("$::env(HOME)", "~").replace("$env(HOME)", "~");
    let is_end = |next: char| matches!(next, '\n' | ';' | '{' | '}' | '[' | ']' | '"');
    let is_text = |next: char| next.is_ascii_alphanumeric() || "_./~$*?-".contains(next);
    let is_path = |word: &&str| word.chars().all(is_text) && (word.starts_with(['~', '.']) || word.contains('/'));
    for command in code.split(is_end) {
        let words: Vec<&str> =
            command.split_whitespace().skip_while(|word| matches!(*word, "catch" | "eval")).collect();
        let given = |from: usize| {
            let rest = words.get(from..).unwrap_or_default();
            let is_own = |word: &&&str| word.starts_with('-') || **word == "--";
            rest.iter().skip_while(is_own).copied().collect::<Vec<_>>().join(" ")
        };
        match words.as_slice() {
            ["exec" | "spawn" | "exp_spawn" | "system", _, ..] => found.lines.push(given(1)),
            ["file", "delete", ..] => {
                let named: Vec<&str> = code.split(is_end).flat_map(str::split_whitespace).filter(is_path).collect();
                found.lines.push(format!("{REMOVES} {}", named.join(" ")));
            }
            ["file", "rename", ..] => found.lines.push(format!("mv {}", given(2))),
            ["file", "copy", ..] => found.lines.push(format!("cp -r {}", given(2))),
            ["open", file, mode, ..] if mode.to_lowercase().contains(['w', 'a', '+']) => {
                found.lines.push(format!("tee {file}"));
            }
            _ => {}
        }
    }
}

/// PowerShell: what a pipe hands to a command was named before it.
fn powershell(code: &str, found: &mut ShellLines) {
    let mut named: Vec<String> = Vec::new();
    let mut items = vec!["$_".to_owned(), "$psitem".to_owned()];
    for statement in code.split([';', '\n', '{', '}']) {
        let mut before: Vec<String> = Vec::new();
        for command in statement.split('|') {
            found.lines.extend(powershell_value(command));
            let words = powershell_words(command);
            let Some((first, rest)) = words.split_first() else { continue };
            let given = rest.join(" ");
            if let ("foreach", [item, ..]) = (first.to_lowercase().as_str(), rest) {
                items.push(item.to_lowercase());
            }
            let is_item = |word: &String| {
                let word = word.trim_matches(['"', '\'']).to_lowercase();
                items.iter().any(|item| {
                    word.strip_prefix(item.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                })
            };
            let verb = first.to_lowercase();
            let verb = verb.strip_suffix(".exe").unwrap_or(&verb);
            match VERBS.binary_search_by_key(&verb, |(name, _)| name).ok().and_then(|at| VERBS.get(at)) {
                Some((_, does)) if !before.is_empty() || rest.iter().any(is_item) => {
                    let own: Vec<&String> = rest.iter().filter(|word| !is_item(word)).chain(&named).collect();
                    let own: Vec<&str> = own.into_iter().map(String::as_str).collect();
                    found.lines.push(format!("{does} {}", own.join(" ")));
                }
                Some((_, does)) => found.lines.push(format!("{does} {given}")),
                None if matches!(verb, "stop-process" | "spps" | "kill") => {
                    let all = matches!(before.as_slice(), [lists] if matches!(&*lists.to_lowercase(), "get-process" | "gps" | "ps"));
                    found.lines.extend(all.then(|| "kill -9 -1".to_owned()));
                }
                None if matches!(verb, "invoke-expression" | "iex") => match quoted(command) {
                    Some(text) if !text.contains('$') => powershell(text, found),
                    _ => found.is_open = true,
                },
                None if STARTERS.contains(&verb) => {
                    let is_name =
                        |word: &&str| ["-filepath", "-argumentlist", "-args"].contains(&&*word.to_lowercase());
                    let plain = given.replace(['"', '\''], " ");
                    let started: Vec<&str> = plain.split_whitespace().filter(|word| !is_name(word)).collect();
                    match verb {
                        "cmd" => cmd(&started.join(" "), found),
                        _ => found.lines.push(started.join(" ")),
                    }
                }
                // A program of the system.
                None => found.lines.push(format!("{first} {given}")),
            }
            named.extend(rest.iter().filter(|word| is_place(word)).cloned());
            before = words;
        }
    }
}

/// The words of a command, without what it is assigned to and without brackets.
fn powershell_words(command: &str) -> Vec<String> {
    let command = command.trim();
    let value =
        command.strip_prefix('$').and_then(|rest| rest.split_once('=')).filter(|(name, _)| !name.trim().contains(' '));
    let command = value.map_or(command, |(_, value)| value);
    let plain = command.replace("$env:", "$").replace("$Env:", "$").replace('\\', "/");
    let started = plain.replacen('&', "& ", usize::from(plain.trim_start().starts_with('&')));
    started
        .split(|next: char| next.is_whitespace() || "(),@".contains(next))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A variable that is set to text: `$x = "~"`.
fn powershell_value(command: &str) -> Option<String> {
    let (name, value) = command.trim().strip_prefix('$')?.split_once('=')?;
    let value = value.trim().trim_matches(['"', '\'']).replace("$env:", "$").replace('\\', "/");
    let is_name = !name.is_empty() && name.trim().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_text = !value.contains(|next: char| next.is_whitespace() || "(){}|;&<>'\"".contains(next));
    (is_name && is_text).then(|| format!("{}={value}", name.trim()))
}

/// The one text in quotes that a command ends with.
fn quoted(command: &str) -> Option<&str> {
    let (_, text) = command.trim().split_once(['"', '\''])?;
    text.strip_suffix(['"', '\''])
}

/// Whether a word names a folder by its place.
fn is_place(word: &str) -> bool {
    let word = word.trim_start_matches(['"', '\'']);
    let drive = word.len() > 1 && word.get(1..2) == Some(":");
    drive
        || word.starts_with(['/', '~'])
        || ["$home", "$userprofile"].iter().any(|home| word.to_lowercase().starts_with(home))
}

/// The shell of Windows: switches begin with a slash.
fn cmd(code: &str, found: &mut ShellLines) {
    let code = code.replace("%USERPROFILE%", "~").replace("%userprofile%", "~").replace('\\', "/");
    for command in code.split(['&', '|', '\n', '"']) {
        let is_switch = |word: &&str| word.starts_with('/') && (word.len() == 2 || word.get(2..3) == Some(":"));
        let words: Vec<&str> = command.split_whitespace().filter(|word| !is_switch(word)).collect();
        let Some((verb, rest)) = words.split_first() else { continue };
        let verb = verb.to_lowercase();
        if let Ok(at) = VERBS.binary_search_by_key(&&*verb, |(name, _)| name)
            && let Some((_, does)) = VERBS.get(at)
        {
            found.lines.push(format!("{does} {}", rest.join(" ")));
        }
    }
}

/// Whether an option hands PowerShell its code in another spelling: `-EncodedCommand`, however short.
pub(super) fn is_encoded(option: &str) -> bool {
    let option = option.to_lowercase();
    let letters = option.trim_start_matches(['-', '/']);
    letters.len() < option.len()
        && (matches!(letters, "e" | "ec") || letters.starts_with("en") && "encodedcommand".starts_with(letters))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(language: WordedLanguage, code: &str) -> Vec<String> {
        language.shell_lines(code).lines
    }

    #[test]
    fn verbs_are_sorted() {
        assert!(VERBS.is_sorted_by_key(|(name, _)| name));
    }

    #[test]
    fn commands_of_tcl_are_those_of_a_shell() {
        let tcl = |code| lines(WordedLanguage::Tcl, code);
        assert_eq!(tcl("exec -ignorestderr -- rm -rf ~"), ["rm -rf ~"]);
        assert_eq!(tcl("foreach f [glob ~/*] {file delete -force $f}"), ["rm -r -f ~/*"]);
        assert_eq!(tcl("file rename -force a b; puts [expr 1 + 2]"), ["mv a b"]);
        assert_eq!(tcl("set f [open a.txt]; set g [open $env(HOME)/b w]"), ["tee ~/b"]);
    }

    #[test]
    fn commands_of_powershell_are_those_of_a_shell() {
        let powershell = |code| lines(WordedLanguage::PowerShell, code);
        assert_eq!(powershell("ri -r -fo $env:HOME"), ["rm -r -f -r -fo $HOME"]);
        assert_eq!(powershell("gci ~ -Recurse | ri -Force"), ["gci ~ -Recurse", "rm -r -f -Force ~"]);
        assert_eq!(powershell("ls ~ | % { Remove-Item $_.FullName }"), ["ls ~", "% ", "rm -r -f ~"]);
        assert_eq!(powershell("Get-Process | Stop-Process"), ["Get-Process ", "kill -9 -1"]);
        assert_eq!(powershell("git rm -r x"), ["git rm -r x"]);
        assert_eq!(powershell("iex 'ri ~'"), ["rm -r -f ~"]);
        assert_eq!(powershell("$d = '~'; sl /; ri $d"), ["d=~", "'~' ", "cd /", "rm -r -f $d"]);
        assert_eq!(powershell("foreach ($f in gci ~) { ri $f }"), ["foreach $f in gci ~", "rm -r -f ~"]);
        assert!(WordedLanguage::PowerShell.shell_lines("iwr x | iex").is_open);
        assert_eq!(powershell("cmd /c 'rd /s /q C:\\x'"), ["rm -r -f C:/x"]);
        assert_eq!(powershell("Start-Process -FilePath rm '-rf /'"), ["rm -rf /"]);
    }

    #[test]
    fn code_in_another_spelling_is_told_by_its_option() {
        assert!(["-e", "-EC", "-enc", "-EncodedCommand"].iter().all(|option| is_encoded(option)));
        assert!(!["-c", "-ExecutionPolicy", "-ep", "e", "-File"].iter().any(|option| is_encoded(option)));
    }
}
