//! Finds out what an interpreter will run: a script, code in its arguments, or its standard input.

use ollm_shell::{OTHER_SHELLS, POSIX_SHELLS, program_stem};

const NODE_VALUED: &[&str] =
    &["-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--env-file"];

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["node", "nodejs"],
        inline: &["-e", "--eval", "-p", "--print", "-pe"],
        clusters: "",
        valued: NODE_VALUED,
    },
    Interpreter {
        names: &["python", "python3"],
        inline: &[],
        clusters: "cm",
        valued: &["-W", "-X", "--check-hash-based-pycs"],
    },
    Interpreter { names: POSIX_SHELLS, inline: &["--command"], clusters: "c", valued: &["--rcfile", "--init-file"] },
    Interpreter {
        names: OTHER_SHELLS,
        inline: &["--command", "--commands", "--init-command"],
        clusters: "cC",
        valued: &[],
    },
    Interpreter { names: &["perl", "ruby", "php", "lua"], inline: &["-e", "-E", "-r"], clusters: "e", valued: &["-I"] },
];

struct Interpreter {
    names: &'static [&'static str],
    /// Options that are followed by code instead of a script.
    inline: &'static [&'static str],
    /// Letters with the same meaning inside a cluster such as `-ec`.
    clusters: &'static str,
    /// Options whose value is the next argument.
    valued: &'static [&'static str],
}

/// What a command line runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// The program itself; it is not a known interpreter.
    Itself,
    /// The script in the nth argument.
    Script(usize),
    /// Code, or a module, in the arguments.
    Code,
    /// Its standard input. For a hook, that is the event.
    Input,
    /// Nothing; it only prints information about itself.
    Nothing,
}

/// What a program with these arguments runs.
///
/// ```
/// use ollm_protocol::hook::{Runs, runs};
/// assert_eq!(runs("bash", &["-e".into(), "guard.sh".into()]), Runs::Script(1));
/// assert_eq!(runs("/bin/sh", &["-s".into()]), Runs::Input);
/// ```
pub fn runs(command: &str, args: &[String]) -> Runs {
    let name = command.rsplit('/').next().unwrap_or_default();
    let Some(interpreter) = INTERPRETERS.iter().find(|interpreter| interpreter.is_called(name)) else {
        return Runs::Itself;
    };
    let mut args = args.iter().map(String::as_str).enumerate();
    while let Some((index, arg)) = args.next() {
        match arg {
            "-" => return Runs::Input,
            "--" => return args.next().map_or(Runs::Input, |(index, _)| Runs::Script(index)),
            "--version" | "--help" | "-V" | "-v" if index == 0 && args.len() == 0 => return Runs::Nothing,
            _ if !arg.starts_with(['-', '+']) => return Runs::Script(index),
            _ if interpreter.is_inline(arg) => return Runs::Code,
            _ if interpreter.reads_input(arg) => return Runs::Input,
            _ if interpreter.takes_value(arg) => drop(args.next()),
            _ => {}
        }
    }
    Runs::Input
}

impl Interpreter {
    /// Whether it has this name, possibly with a version: `python3.12`.
    fn is_called(&self, name: &str) -> bool {
        self.names.contains(&name) || self.names.contains(&program_stem(name))
    }

    fn is_inline(&self, arg: &str) -> bool {
        let option = arg.split('=').next().unwrap_or_default();
        let in_cluster =
            !arg.starts_with("--") && arg.starts_with('-') && arg.contains(|letter| self.clusters.contains(letter));
        self.inline.contains(&option) || in_cluster
    }

    /// Whether this is a shell's `-s`: the program comes on standard input, and further arguments are its parameters.
    fn reads_input(&self, arg: &str) -> bool {
        self.is_shell() && !arg.starts_with("--") && arg.starts_with('-') && arg.contains('s')
    }

    fn takes_value(&self, arg: &str) -> bool {
        let shell_option = self.is_shell() && !arg.starts_with("--") && arg.ends_with(['o', 'O']);
        self.valued.contains(&arg) || shell_option
    }

    fn is_shell(&self) -> bool {
        self.names == POSIX_SHELLS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_found_behind_options() {
        for (line, expected) in [
            ("guard.sh", Runs::Itself),
            ("python3 guard.py", Runs::Script(0)),
            ("python3.12 -u guard.py x", Runs::Script(1)),
            ("python3 -W ignore guard.py", Runs::Script(2)),
            ("python3 -c code", Runs::Code),
            ("python3 -m module", Runs::Code),
            ("python3", Runs::Input),
            ("python3 -u", Runs::Input),
            ("node -r mod guard.js", Runs::Script(2)),
            ("node --eval code", Runs::Code),
            ("node -", Runs::Input),
            ("bash -eo pipefail guard.sh", Runs::Script(2)),
            ("bash -ec code", Runs::Code),
            ("rbash -c code", Runs::Code),
            ("mksh -o pipefail guard.sh", Runs::Script(2)),
            ("ksh93 guard.sh", Runs::Script(0)),
            ("fish -c code", Runs::Code),
            ("fish guard.fish", Runs::Script(0)),
            ("bash -s guard.sh", Runs::Input),
            ("/bin/sh", Runs::Input),
            ("sh -x", Runs::Input),
            ("sh --", Runs::Input),
            ("sh -- guard.sh", Runs::Script(1)),
            ("sh --version", Runs::Nothing),
            ("npx eslint", Runs::Itself),
        ] {
            let mut words = line.split(' ').map(str::to_owned);
            let command = words.next().unwrap();
            assert_eq!(runs(&command, &words.collect::<Vec<_>>()), expected, "{line}");
        }
    }
}
