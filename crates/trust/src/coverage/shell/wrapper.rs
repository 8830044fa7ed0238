//! Programs that run the command in their arguments.

use std::path::Path;

use super::super::script::Language;
use super::{CoverageError, Filled, Scope, Search, assignment};

/// How deep searches within searches are followed.
const DEEPEST: usize = 200;

/// Programs behind whose options the command stands, with the letters of the options that take the next word.
const WRAPPERS: &[(&str, &str)] = &[
    ("exec", "a"),
    ("command", ""),
    ("builtin", ""),
    ("nohup", ""),
    ("sudo", "ugpCDhrtTRU"),
    ("doas", "uC"),
    ("nice", "n"),
    ("ionice", "cnp"),
    ("time", "fo"),
    ("env", "uCS"),
    ("xargs", "ILnPsdEa"),
    ("timeout", "sk"),
    ("setsid", ""),
    ("stdbuf", "ioe"),
];
/// Long options of theirs that take the next word.
const VALUED: &[&str] = &[
    "--chdir",
    "--split-string",
    "--unset",
    "--user",
    "--group",
    "--signal",
    "--kill-after",
    "--adjustment",
    "--max-args",
    "--max-procs",
    "--delimiter",
    "--arg-file",
    "--input",
    "--output",
    "--error",
];
/// Programs with a command somewhere among their arguments.
const RUNNERS: &[&str] = &[
    "flock",
    "watch",
    "strace",
    "ltrace",
    "uv",
    "poetry",
    "pipenv",
    "pdm",
    "rye",
    "mise",
    "direnv",
    "unshare",
    "chroot",
    "systemd-run",
    "taskset",
    "chrt",
    "prlimit",
    "unbuffer",
    "xvfb-run",
    "script",
    "su",
    "bwrap",
    "firejail",
    "valgrind",
];
/// Programs that run a command for each file they find.
const FINDERS: &[&str] = &["find", "fd", "fdfind", "bfs"];
/// Their options behind which the command stands.
const EXECUTES: &[&str] = &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// Whether a program runs what stands in its arguments.
pub(in super::super) fn runs_a_command(program: &str) -> bool {
    let name = base(program);
    wrapper(program).is_some() || RUNNERS.contains(&name) || FINDERS.contains(&name)
}

impl Search<'_> {
    /// The command behind its wrappers; what these are told counts, too.
    pub(super) fn unwrapped(
        &mut self,
        mut words: Vec<Filled>,
        scope: &mut Scope<'_>,
    ) -> Result<Vec<Filled>, CoverageError> {
        let mut around: Option<(&str, &str)> = None;
        let mut at = 0;
        while let Some(first) = words.get(at) {
            at += 1;
            if let Some(found) = wrapper(&first.text) {
                around = Some(found);
            } else if let Some((name, value)) = assignment(&first.text).filter(|_| around.is_some()) {
                if first.known {
                    self.variable(name, value)?;
                }
            } else if first.text.starts_with('-') {
                let Some((name, letters)) = around else { continue };
                let (option, attached) = option(&first.text, letters);
                let last = option.strip_prefix('-').and_then(|letters| letters.chars().last());
                let is_valued = VALUED.contains(&option)
                    || !option.starts_with("--") && last.is_some_and(|last| letters.contains(last));
                let takes_next = attached.is_none() && is_valued;
                let value = match attached {
                    Some(text) => Some(Filled { text: text.to_owned(), ..first.clone() }),
                    None if takes_next => words.get(at).cloned(),
                    None => None,
                };
                at += usize::from(takes_next);
                let option = option.to_owned();
                if let Some(value) = value {
                    self.told(name, &option, &value, words.get_mut(at..).unwrap_or_default(), scope)?;
                }
            } else if !(around.is_some() && first.text.starts_with(|letter: char| letter.is_ascii_digit())) {
                at -= 1;
                break;
            }
        }
        Ok(words.split_off(at.min(words.len())))
    }

    /// What an option of a wrapper means for the command behind it.
    fn told(
        &mut self,
        wrapper: &str,
        option: &str,
        value: &Filled,
        command: &mut [Filled],
        scope: &mut Scope<'_>,
    ) -> Result<(), CoverageError> {
        match (wrapper, option) {
            ("env", "-C" | "--chdir") | ("sudo", "-D" | "--chdir") => {
                scope.astray |= !self.enter(std::slice::from_ref(value));
            }
            ("env", "-S" | "--split-string") => {
                let edits = self.code(&value.text, Language::Shell, scope)?;
                self.stays(&super::Replacement::Code { text: value.text.clone(), edits }, scope.file);
            }
            ("xargs", "-I" | "--replace") => is_filled_in(command, &value.text),
            _ => {}
        }
        Ok(())
    }

    /// The commands among the arguments of a program that is no wrapper.
    pub(super) fn nested(
        &mut self,
        program: &str,
        args: &[Filled],
        scope: &mut Scope<'_>,
    ) -> Result<(), CoverageError> {
        let name = base(program);
        let interpreter = |arg: &Filled| !arg.text.contains('/') && Language::of_interpreter(&arg.text).is_some();
        if RUNNERS.contains(&name)
            && let Some(at) = args.iter().position(interpreter)
        {
            return self.run(args.get(at..).unwrap_or_default().to_vec(), scope);
        }
        if !FINDERS.contains(&name) {
            return Ok(());
        }
        if scope.depth > DEEPEST {
            self.coverage.uncovered.push(format!("`{program}` runs commands that nest too deep"));
            return Ok(());
        }
        let (astray, depth) = (scope.astray, scope.depth);
        scope.depth += 1;
        let mut rest = args;
        while let Some(at) = rest.iter().position(|arg| EXECUTES.contains(&arg.text.as_str())) {
            scope.astray |= rest.get(at).is_some_and(|option| option.text.ends_with("dir"));
            // Up to its end every word is the command's, also those that look like an option of the search.
            let command = rest.get(at + 1..).unwrap_or_default();
            let end = command.iter().position(|arg| matches!(arg.text.as_str(), ";" | "+")).unwrap_or(command.len());
            rest = command.get(end..).unwrap_or_default();
            let mut command = command.get(..end).unwrap_or_default().to_vec();
            is_filled_in(&mut command, "{}");
            self.run(command, scope)?;
        }
        (scope.astray, scope.depth) = (astray, depth);
        Ok(())
    }

    fn run(&mut self, words: Vec<Filled>, scope: &mut Scope<'_>) -> Result<(), CoverageError> {
        let words = self.unwrapped(words, scope)?;
        match words.split_first() {
            Some((first, args)) => self.started(first, args, &[], scope),
            None => Ok(()),
        }
    }
}

/// The words with a placeholder are known only when the command runs.
fn is_filled_in(words: &mut [Filled], placeholder: &str) {
    for word in words.iter_mut().filter(|word| word.text.contains(placeholder)) {
        (word.known, word.certain) = (false, false);
    }
}

/// An option, and the value that stands in the same word.
fn option<'a>(word: &'a str, letters: &str) -> (&'a str, Option<&'a str>) {
    if word.starts_with("--") {
        return word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
    }
    let takes_value = word.get(1..2).is_some_and(|letter| letters.contains(letter));
    match word.get(2..).filter(|rest| takes_value && !rest.is_empty()) {
        Some(rest) => (word.get(..2).unwrap_or_default(), Some(rest)),
        None => (word, None),
    }
}

fn wrapper(program: &str) -> Option<(&'static str, &'static str)> {
    WRAPPERS.iter().copied().find(|(name, _)| *name == base(program))
}

/// The name of a program that is found on the search path or in a folder of the system.
fn base(program: &str) -> &str {
    match program.rsplit_once('/') {
        Some((folder, name)) if Path::new(folder).is_absolute() => name,
        _ => program,
    }
}
