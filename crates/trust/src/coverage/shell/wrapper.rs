//! Finds the command in the arguments of a program that runs it.

use std::path::Path;

use ollm_shell::wrapper::{OptionValue, Wrapper, wrapper_named};

use super::super::script::Language;
use super::{CoverageError, FilledWord, Scope, Search, assignment};

/// The deepest nesting of searches that is followed.
const DEEPEST: usize = 200;

/// Programs with a command somewhere in their arguments. No table says where it begins.
const RUNNERS: &[&str] =
    &["bwrap", "direnv", "mise", "parallel", "pdm", "pipenv", "poetry", "rye", "script", "su", "uv", "watch"];
/// Programs that run a command for each file they find.
const FINDERS: &[&str] = &["find", "fd", "fdfind", "bfs"];
/// The options of these programs that stand before the command.
const EXECUTES: &[&str] = &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// Whether a program runs the command in its arguments.
pub(in super::super) fn runs_a_command(program: &str) -> bool {
    let name = base(program);
    wrapper(program).is_some() || RUNNERS.contains(&name) || FINDERS.contains(&name)
}

impl Search<'_> {
    /// Skips the wrappers before a command. Their options count, too.
    pub(super) fn unwrapped(
        &mut self,
        mut words: Vec<FilledWord>,
        scope: &mut Scope<'_>,
    ) -> Result<Vec<FilledWord>, CoverageError> {
        let mut around: Option<&'static Wrapper> = None;
        let (mut at, mut operands, mut all_known) = (0, 0, true);
        while let Some(first) = words.get(at) {
            at += 1;
            let found = wrapper(&first.text).filter(|_| operands == 0);
            if let Some(found) = found {
                (around, operands) = (Some(found), found.operands);
            } else if let Some((name, value)) = assignment(&first.text).filter(|_| around.is_some()) {
                if first.known {
                    self.variable(name, value)?;
                }
            } else if first.text.starts_with('-') {
                let Some(wrapper) = around else { continue };
                let option = wrapper.option(&first.text, false);
                all_known &= option.is_some();
                let value = option.and_then(|option| match option.value {
                    OptionValue::Here(text) => Some(FilledWord { text: text.to_owned(), ..first.clone() }),
                    OptionValue::Next => words.get(at).cloned(),
                    // This option only turns placeholders on.
                    OptionValue::None => {
                        (option.name == "replace").then(|| FilledWord { text: String::new(), ..first.clone() })
                    }
                });
                at += usize::from(option.is_some_and(|option| option.value == OptionValue::Next));
                if let Some((option, value)) = option.zip(value) {
                    let name = option.name.to_owned();
                    self.told(wrapper.name, &name, &value, words.get_mut(at..).unwrap_or_default(), scope)?;
                }
            } else if operands > 0 {
                operands -= 1;
            } else {
                at -= 1;
                break;
            }
        }
        // The word after an unknown option may be its value, so the command may begin later.
        let behind = words.get(at..).unwrap_or_default();
        if !all_known && let Some(later) = behind.iter().position(is_interpreter) {
            at += later;
        }
        Ok(words.split_off(at.min(words.len())))
    }

    /// Applies an option of a wrapper to the command that it runs.
    fn told(
        &mut self,
        wrapper: &str,
        option: &str,
        value: &FilledWord,
        command: &mut [FilledWord],
        scope: &mut Scope<'_>,
    ) -> Result<(), CoverageError> {
        match (wrapper, option) {
            ("env", "C" | "chdir") | ("sudo", "D" | "chdir") => {
                scope.astray |= !self.enter(std::slice::from_ref(value));
            }
            ("env", "S" | "split-string") => {
                let edits = self.code(&value.text, Language::Shell, scope)?;
                self.stays(&super::Replacement::Code { text: value.text.clone(), edits }, scope.file);
            }
            ("xargs", "I" | "J" | "i" | "replace") => {
                is_filled_in(command, if value.text.is_empty() { "{}" } else { &value.text });
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the commands in the arguments of a program that is not a wrapper.
    pub(super) fn nested(
        &mut self,
        program: &str,
        args: &[FilledWord],
        scope: &mut Scope<'_>,
    ) -> Result<(), CoverageError> {
        let name = base(program);
        if RUNNERS.contains(&name)
            && let Some(at) = args.iter().position(is_interpreter)
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
            // Up to its end, every word belongs to the command, even if it looks like an option of the search.
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

    fn run(&mut self, words: Vec<FilledWord>, scope: &mut Scope<'_>) -> Result<(), CoverageError> {
        let words = self.unwrapped(words, scope)?;
        match words.split_first() {
            Some((first, args)) => self.started(first, args, &[], scope),
            None => Ok(()),
        }
    }
}

/// Marks words with a placeholder as known only at run time.
fn is_filled_in(words: &mut [FilledWord], placeholder: &str) {
    for word in words.iter_mut().filter(|word| word.text.contains(placeholder)) {
        (word.known, word.certain) = (false, false);
    }
}

fn is_interpreter(word: &FilledWord) -> bool {
    !word.text.contains('/') && Language::of_interpreter(&word.text).is_some()
}

/// The wrapper that a word names. Wrappers that fetch packages or run shell text are left out, as they are reported
/// elsewhere.
fn wrapper(program: &str) -> Option<&'static Wrapper> {
    let left_out = ["bunx", "npx", "parallel", "ssh", "uvx", "watch"];
    wrapper_named(base(program)).filter(|wrapper| !left_out.contains(&wrapper.name))
}

/// The name of a program, if it is bare or in a folder of the system.
fn base(program: &str) -> &str {
    match program.rsplit_once('/') {
        Some((folder, name)) if Path::new(folder).is_absolute() => name,
        _ => program,
    }
}
