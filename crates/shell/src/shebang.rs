//! Reads the first line of a script: which program the kernel starts, and what `env` does there.

use crate::line::split_loosely;
use crate::shells::program_name;

/// The options of `env` that take a value.
const VALUED: &str = "uCaP";
const LONG_VALUED: &[&str] = &["--unset", "--chdir", "--argv0"];
const SPLITS: &str = "--split-string";

/// The content of a `#!` line. A line that `env` would refuse is read as its author meant it: `env python3 -u` means
/// `env -S python3 -u`.
///
/// ```
/// use ollm_shell::Shebang;
/// let shebang = Shebang::read("#!/usr/bin/env -S -u LANG MODE=strict bash -e\necho hi\n").unwrap();
/// assert_eq!((shebang.interpreter.as_str(), shebang.program.as_str()), ("/usr/bin/env", "bash"));
/// assert_eq!(shebang.variables, [("MODE".to_owned(), "strict".to_owned())]);
/// assert_eq!((shebang.options.join(" "), shebang.args.join(" ")), ("-u LANG".to_owned(), "-e".to_owned()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shebang {
    /// The program that the kernel starts.
    pub interpreter: String,
    /// The options of `env`, each followed by its value.
    pub options: Vec<String>,
    /// The variables that `env` sets.
    pub variables: Vec<(String, String)>,
    /// The program that reads the script: the interpreter, or the program that `env` starts. Empty if `env` gets no
    /// program.
    pub program: String,
    /// The words between that program and the script.
    pub args: Vec<String>,
}

impl Shebang {
    /// Reads the first line of a script; `None` if it names no interpreter.
    pub fn read(text: &str) -> Option<Shebang> {
        let line = text.lines().next()?.strip_prefix("#!")?.trim();
        let (interpreter, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        if interpreter.is_empty() {
            return None;
        }
        let interpreter = interpreter.to_owned();
        if program_name(&interpreter) != "env" {
            let args = rest.split_whitespace().map(str::to_owned).collect();
            return Some(Shebang { program: interpreter.clone(), interpreter, args, ..Shebang::default() });
        }
        // A text with an open quote is split at blanks.
        let words = split_loosely(rest).unwrap_or_else(|_| rest.split_whitespace().map(str::to_owned).collect());
        let mut shebang = Shebang { interpreter, ..Shebang::default() };
        shebang.read_env(words);
        Some(shebang)
    }

    /// The name that `env` looks up on the search path; `None` if the line itself says where the program is.
    pub fn looked_up(&self) -> Option<&str> {
        let says_where = self.variables.iter().any(|(name, _)| name == "PATH");
        let is_name = self.program != self.interpreter && !self.program.is_empty() && !self.program.contains('/');
        (is_name && !says_where).then_some(&self.program)
    }

    /// The program with its arguments, if the line gives `env` neither options nor variables.
    pub fn command(self) -> (String, Vec<String>) {
        if self.options.is_empty() && self.variables.is_empty() {
            return (self.program, self.args);
        }
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={value}"));
        let words = self.options.into_iter().chain(variables).chain([self.program]).chain(self.args);
        (self.interpreter, words.collect())
    }

    fn read_env(&mut self, words: Vec<String>) {
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next_if(|word| word.starts_with('-') && word != "--") {
            if word == SPLITS || word == "-S" {
                continue;
            }
            let split = word.strip_prefix(SPLITS).and_then(|rest| rest.strip_prefix('='));
            let (option, value) = match split {
                Some(value) => (None, Some(value.to_owned())),
                None => cluster(&word),
            };
            let wants_value = option.as_deref().is_some_and(wants_value);
            self.options.extend(option);
            if wants_value {
                self.options.extend(words.next());
            }
            // The line is already split: text after `S` in one word continues with the next word.
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                let rest: Vec<String> = std::iter::once(value).chain(words).collect();
                return self.read_env(rest);
            }
        }
        words.next_if(|word| word == "--");
        while let Some(word) = words.next_if(|word| word.find('=').is_some_and(|at| at > 0)) {
            let (name, value) = word.split_once('=').unwrap_or_default();
            self.variables.push((name.to_owned(), value.to_owned()));
        }
        self.program = words.next().unwrap_or_default();
        self.args = words.collect();
    }
}

/// The options before `S` in a word such as `-iS`, and the text after it. A word without `S` is one whole option.
fn cluster(word: &str) -> (Option<String>, Option<String>) {
    let value_at = word.find(|letter| VALUED.contains(letter)).unwrap_or(word.len());
    match word.split_once('S') {
        Some((before, behind)) if !word.starts_with("--") && before.len() < value_at => {
            (Some(before.to_owned()).filter(|before| before.len() > 1), Some(behind.to_owned()))
        }
        _ => (Some(word.to_owned()), None),
    }
}

/// Whether the value of an option is the next word.
fn wants_value(option: &str) -> bool {
    let short = option.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let is_last = |short: &str| short.find(|letter| VALUED.contains(letter)).is_some_and(|at| at + 1 == short.len());
    LONG_VALUED.contains(&option) || short.is_some_and(is_last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_is_read_as_the_kernel_and_env_read_it() {
        for (line, options, variables, program, args) in [
            ("#!/bin/sh", "", "", "/bin/sh", ""),
            ("#! /bin/bash  -e ", "", "", "/bin/bash", "-e"),
            ("#!\t/bin/sh\r", "", "", "/bin/sh", ""),
            ("#!bin/sh", "", "", "bin/sh", ""),
            ("#!/usr/bin/env bash", "", "", "bash", ""),
            ("#!/usr/bin/env python3 -u", "", "", "python3", "-u"),
            ("#!/usr/bin/env -S python3 -u", "", "", "python3", "-u"),
            ("#!/usr/bin/env -Spython3 -u", "", "", "python3", "-u"),
            ("#!/usr/bin/env --split-string=python3 -u", "", "", "python3", "-u"),
            ("#!/usr/bin/env --split-string python3", "", "", "python3", ""),
            ("#!/usr/bin/env -iS bash", "-i", "", "bash", ""),
            ("#!/usr/bin/env -vS-i bash", "-v -i", "", "bash", ""),
            ("#!/usr/bin/env -S -i /bin/sh", "-i", "", "/bin/sh", ""),
            ("#!/usr/bin/env -S - bash", "-", "", "bash", ""),
            ("#!/usr/bin/env -S -u X bash", "-u X", "", "bash", ""),
            ("#!/usr/bin/env -S -uS bash", "-uS", "", "bash", ""),
            ("#!/usr/bin/env -S --unset=X bash", "--unset=X", "", "bash", ""),
            ("#!/usr/bin/env -S --chdir / bash", "--chdir /", "", "bash", ""),
            ("#!/usr/bin/env -S -iC / bash", "-iC /", "", "bash", ""),
            ("#!/usr/bin/env -S FOO=1 BAR= bash -x", "", "FOO=1 BAR=", "bash", "-x"),
            ("#!/usr/bin/env -S -u X FOO='a b' bash", "-u X", "FOO=a b", "bash", ""),
            ("#!/usr/bin/env -S -- bash", "", "", "bash", ""),
            ("#!/usr/bin/env -S bash 'unclosed", "", "", "bash", "'unclosed"),
            ("#!/usr/bin/env", "", "", "", ""),
        ] {
            let read = Shebang::read(line).unwrap();
            let set: Vec<String> = read.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let found = (read.options.join(" "), set.join(" "), read.program, read.args.join(" "));
            assert_eq!(
                found,
                (options.to_owned(), variables.to_owned(), program.to_owned(), args.to_owned()),
                "{line}"
            );
        }
        for none in ["", "#!", "#! ", "# /bin/sh", "echo\n#!/bin/sh", " #!/bin/sh"] {
            assert_eq!(Shebang::read(none), None, "{none}");
        }
    }

    #[test]
    fn only_a_bare_name_behind_env_is_looked_up() {
        for (line, name) in [
            ("#!/usr/bin/env -S -i bash", Some("bash")),
            ("#!/usr/bin/env -S -i /bin/sh", None),
            ("#!/usr/bin/env -S PATH=/x bash", None),
            ("#!/bin/bash", None),
            ("#!/usr/bin/env", None),
        ] {
            assert_eq!(Shebang::read(line).unwrap().looked_up(), name, "{line}");
        }
    }

    #[test]
    fn a_command_keeps_all_that_env_is_told() {
        for (line, program, args) in [
            ("#!/usr/bin/env -S bash -e", "bash", "-e"),
            ("#!/usr/bin/env -S FOO=1 bash", "/usr/bin/env", "FOO=1 bash"),
            ("#!/usr/bin/env -S -i -u X FOO=1 bash -e", "/usr/bin/env", "-i -u X FOO=1 bash -e"),
        ] {
            let (found, words) = Shebang::read(line).unwrap().command();
            assert_eq!((found.as_str(), words.join(" ").as_str()), (program, args), "{line}");
        }
    }
}
