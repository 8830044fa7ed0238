//! Knows programs that take code from a file in their arguments: by an option, or as the first argument.

use ollm_shell::{OTHER_SHELLS, POSIX_SHELLS, program_stem};

/// A program, and the arguments that name its code.
struct Loader {
    names: &'static [&'static str],
    /// Options with a file name: in the next argument, after `=`, or directly after their letter.
    options: &'static [&'static str],
    /// Options with a folder in which code is looked up by other names.
    folders: &'static [&'static str],
    /// Words within an argument that stand before a file name.
    words: &'static [&'static str],
    /// Whether the first argument that is not an option is a script.
    runs_first: bool,
}

const NONE: Loader = Loader { names: &[], options: &[], folders: &[], words: &[], runs_first: false };

const LOADERS: &[Loader] = &[
    Loader {
        names: &["node", "nodejs", "deno", "bun", "tsx", "ts-node"],
        options: &["-r", "--require", "--import", "--loader", "--experimental-loader"],
        ..NONE
    },
    Loader { names: &["ruby"], options: &["-r"], folders: &["-I"], ..NONE },
    Loader { names: &["perl"], folders: &["-I"], ..NONE },
    Loader { names: &["php"], options: &["-f", "--file", "-c"], ..NONE },
    Loader { names: POSIX_SHELLS, options: &["--rcfile", "--init-file"], ..NONE },
    Loader {
        names: &["awk", "gawk", "mawk", "nawk"],
        options: &["-f", "--file", "-i", "--include", "-E", "--exec", "-l", "--load"],
        ..NONE
    },
    Loader { names: &["sed", "gsed"], options: &["-f", "--file"], ..NONE },
    Loader { names: &["jq", "gojq", "jaq"], options: &["-f", "--from-file"], folders: &["-L"], ..NONE },
    Loader {
        names: &["vim", "nvim", "vi", "ex", "view", "gvim"],
        options: &["-S", "-u", "-U", "-s", "-i", "-l"],
        words: &["so", "source", ":so", ":source", "luafile", "pyfile", "py3file", "ru", "runtime"],
        ..NONE
    },
    Loader { names: &["psql"], options: &["-f", "--file"], words: &["\\i", "\\ir", "\\include"], ..NONE },
    Loader { names: &["sqlite3"], options: &["-init", "--init"], words: &[".read", ".load"], ..NONE },
    Loader { names: &["mysql", "mariadb"], words: &["source", "\\."], ..NONE },
    Loader { names: &["gdb", "lldb"], options: &["-x", "--command", "-s"], words: &["source"], ..NONE },
    Loader { names: &["emacs"], options: &["-l", "--load", "--script"], ..NONE },
    Loader { names: &["tar", "gtar"], options: &["-I", "--use-compress-program", "--to-command"], ..NONE },
    Loader {
        names: &[
            "tclsh",
            "expect",
            "wish",
            "bc",
            "dc",
            "m4",
            "Rscript",
            "julia",
            "osascript",
            "gnuplot",
            "guile",
            "groovy",
            "elixir",
            "escript",
            "pwsh",
            "raku",
            "swipl",
            "sbcl",
            "busybox",
            "luajit",
            "wscript",
            "cscript",
            "scala",
            "kotlin",
            "racket",
            "gjs",
            "qjs",
            "ts-node-esm",
        ],
        options: &["-f", "-l", "--load", "-File"],
        runs_first: true,
        ..NONE
    },
    Loader { names: OTHER_SHELLS, runs_first: true, ..NONE },
];

/// The index of an argument, the text before the name in it, and the name.
pub(super) type NamedArgument<'a> = (usize, String, &'a str);

/// The names of files from which a program takes code, apart from an interpreter's script.
pub(super) fn code_files<'a>(command: &str, args: &'a [String]) -> Vec<NamedArgument<'a>> {
    let Some(loader) = loader(command) else { return Vec::new() };
    let mut found = valued(args, loader.options);
    if loader.runs_first
        && let Some((index, arg)) = args.iter().enumerate().find(|(_, arg)| !arg.starts_with('-'))
    {
        found.push((index, String::new(), arg));
    }
    found
}

/// The folders in which a program looks for code.
pub(super) fn code_folders<'a>(command: &str, args: &'a [String]) -> Vec<&'a str> {
    let folders = loader(command).map_or_else(Vec::new, |loader| valued(args, loader.folders));
    folders.into_iter().map(|(_, _, name)| name).collect()
}

/// The names of files in commands that a program gets as text: `sqlite3 x.db ".read a.sql"`.
pub(super) fn code_in_text<'a>(command: &str, args: &'a [String]) -> Vec<&'a str> {
    let words = loader(command).map_or(&[][..], |loader| loader.words);
    let mut found = Vec::new();
    for arg in args {
        let mut parts = arg.split(|letter: char| letter.is_whitespace() || matches!(letter, '\'' | '"' | ';' | '|'));
        while let Some(part) = parts.next() {
            if words.contains(&part.trim_start_matches('+')) {
                found.extend(parts.by_ref().find(|part| !part.is_empty()));
            }
        }
    }
    found
}

fn loader(command: &str) -> Option<&'static Loader> {
    let name = command.rsplit('/').next().unwrap_or_default();
    LOADERS.iter().find(|loader| loader.names.contains(&name) || loader.names.contains(&program_stem(name)))
}

/// The values of options.
fn valued<'a>(args: &'a [String], options: &[&str]) -> Vec<NamedArgument<'a>> {
    let mut found = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        let next = || args.get(index + 1).map(|next| (index + 1, String::new(), next.as_str()));
        if options.contains(&arg.as_str()) {
            found.extend(next());
        } else if let Some((option, value)) = arg.split_once('=').filter(|(option, _)| options.contains(option)) {
            found.push((index, format!("{option}="), value));
        } else if let Some(cluster) = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
            // `-fFILE`, `-nf FILE`
            let letters = options.iter().filter(|option| option.len() == 2).filter_map(|option| option.get(1..));
            let at = letters.filter_map(|letter| cluster.find(letter)).min();
            let Some(at) = at.filter(|at| cluster.bytes().take(*at).all(|byte| byte.is_ascii_alphanumeric())) else {
                continue;
            };
            match cluster.get(at + 1..).filter(|value| !value.is_empty()) {
                Some(value) => found.push((index, format!("-{}", cluster.get(..=at).unwrap_or_default()), value)),
                None => found.extend(next()),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_code_are_found_behind_options_however_they_are_written() {
        for (line, expected) in [
            ("awk -f a.awk data", "1::a.awk"),
            ("awk -fa.awk data", "0:-f:a.awk"),
            ("/usr/bin/sed --file=a.sed", "0:--file=:a.sed"),
            ("sed -nf a.sed x", "1::a.sed"),
            ("sed -i s/a/b/ x", ""),
            ("vim -es -S a.vim", "2::a.vim"),
            ("node -r ./a b.js", "1::./a"),
            ("node --import=./a b.js", "0:--import=:./a"),
            ("tclsh a.tcl x", "0::a.tcl"),
            ("grep -f a b", ""),
        ] {
            let mut words = line.split(' ').map(str::to_owned);
            let command = words.next().unwrap();
            let args: Vec<String> = words.collect();
            let found = code_files(&command, &args);
            let found: Vec<String> = found.iter().map(|(at, before, name)| format!("{at}:{before}:{name}")).collect();
            assert!(found.join(" ").split(' ').any(|found| found == expected), "{line}: {found:?}");
        }
        assert_eq!(code_folders("perl", &["-Ilib".to_owned(), "-Mx".to_owned()]), ["lib"]);
        assert_eq!(code_in_text("sqlite3", &["x.db".to_owned(), ".read  a.sql".to_owned()]), ["a.sql"]);
    }
}
