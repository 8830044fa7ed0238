//! Finds what a program, its arguments and its variables name: scripts, code, modules, search folders.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use ollm_protocol::hook::{Runs, runs};
use ollm_shell::{VariableHolds, program_variable, single_quoted};

use super::script::{self, Language};
use super::shell::{self, Scope};
use super::{CommandLine, CoverageError, Edit, FoundName, Replacement, Search, loader, runner};

/// Variables with interpreter options that may name code, which the interpreter looks up when it runs.
const OPTIONS: &[(&str, &str)] = &[("PERL5OPT", "perl"), ("RUBYOPT", "ruby")];

impl Search<'_> {
    pub(super) fn line(&mut self, line: &CommandLine, program: Option<&Path>) -> Result<(), CoverageError> {
        if let Some(text) = &line.shell {
            self.coverage.line = self.shell(text)?;
        } else {
            self.command(line, program)?;
        }
        for (name, value) in &line.env {
            self.variable(name, value)?;
        }
        Ok(())
    }

    fn command(&mut self, line: &CommandLine, program: Option<&Path>) -> Result<(), CoverageError> {
        // A program outside the folder is known by its path. A script behind a link of the folder is covered.
        if let Some(program) = program
            && let Ok(real) = program.canonicalize()
            && let Some(place) = self.place_of(program, &real)
            && (place == real || real.is_file() && !script::is_binary(&real))
        {
            self.cover(&place, real);
            self.push_code(place, None);
        }
        if let Some(environment) = program.and_then(|program| program.ancestors().nth(2))
            && let FoundName::File(_) = self.at(&environment.join("pyvenv.cfg"))?
        {
            let short = self.short(environment);
            self.coverage.uncovered.push(format!("packages in `{short}` are not looked through"));
        }
        let CommandLine { program: command, args, .. } = line;
        let running = runs(command, args);
        for arg in args {
            self.text(arg)?;
        }
        // Other programs may start Python, as in `uv run python -m tool`. Shell text is searched elsewhere.
        if Language::of_interpreter(command) != Some(Language::Shell) {
            for module in modules(args, running) {
                self.module(module)?;
            }
        }
        self.runs(command, args, running)?;
        if shell::runs_a_command(command) {
            self.wrapped(command, args)?;
        }
        self.old_python(command, program);
        let uncovered = runner::uncovered(command, args, &self.places.top);
        self.coverage.uncovered.extend(uncovered);
        Ok(())
    }

    /// Covers the command in a wrapper's arguments, read as a shell would read it.
    fn wrapped(&mut self, command: &str, args: &[String]) -> Result<(), CoverageError> {
        let mut text = single_quoted(command);
        let mut spans = Vec::with_capacity(args.len());
        for arg in args {
            text.push(' ');
            let start = text.len();
            text.push_str(&single_quoted(arg));
            spans.push((start..text.len(), arg));
        }
        for Edit { span, with } in self.edits_of(&text, &mut Scope::default())? {
            match spans.iter().find(|(at, _)| *at == span) {
                Some((_, arg)) => self.coverage.code_arguments.push(((*arg).clone(), with)),
                None => self.stays(&with, None),
            }
        }
        Ok(())
    }

    /// Covers the code among the arguments of a program.
    fn runs(&mut self, command: &str, args: &[String], running: Runs) -> Result<(), CoverageError> {
        let language = Language::of_interpreter(command);
        for (_, prefix, name) in loader::code_files(command, args) {
            self.code_argument(&prefix, name, language.unwrap_or(Language::Other))?;
        }
        self.looked_up(command, args)?;
        match running {
            Runs::Script(index) => {
                if let (Some(arg), Some(language)) = (args.get(index), language) {
                    self.script_argument(arg, language)?;
                }
            }
            Runs::Code => {
                if let Some(language) = language {
                    self.inline(command, args, language, None);
                    let options = || args.iter().take_while(|arg| arg.starts_with('-'));
                    let has_code = || options().any(|arg| arg.contains('c') && !arg.contains('m'));
                    self.coverage.is_inline_python |= language == Language::Python && has_code();
                }
                for (index, arg) in args.iter().enumerate().filter(|(_, arg)| !arg.starts_with('-')) {
                    match language {
                        Some(Language::Shell) => {
                            let edits = self.shell(arg)?;
                            if shell_code(args) == Some(index) && !edits.is_empty() {
                                let with = Replacement::Code { text: arg.clone(), edits };
                                self.coverage.code_arguments.push((arg.clone(), with));
                            }
                        }
                        Some(language) => self.read(arg, language, None)?,
                        None => {}
                    }
                }
            }
            // `deno eval`
            Runs::Itself => {
                if let Some(language) = language {
                    self.inline(command, args, language, None);
                }
            }
            Runs::Input | Runs::Nothing => {}
        }
        Ok(())
    }

    /// Covers the folders in which a program looks for code, and the code files in commands that it gets as text.
    pub(super) fn looked_up(&mut self, command: &str, args: &[String]) -> Result<(), CoverageError> {
        for name in loader::code_folders(command, args) {
            if let FoundName::Folder(folder) = self.named(name)? {
                self.whole_folder(&folder);
            }
        }
        for name in loader::code_in_text(command, args) {
            if let FoundName::File(file) = self.named(name)? {
                self.push_code(file.clone(), None);
                self.stays(&Replacement::File { prefix: String::new(), file }, None);
            }
        }
        Ok(())
    }

    fn script_argument(&mut self, arg: &str, language: Language) -> Result<(), CoverageError> {
        if arg.contains("{{") {
            self.made_up(arg, None);
            return Ok(());
        }
        self.code_argument("", arg, language)
    }

    fn code_argument(&mut self, prefix: &str, name: &str, language: Language) -> Result<(), CoverageError> {
        if let Some(file) = self.code_file(name, language)? {
            let with = Replacement::File { prefix: prefix.to_owned(), file };
            self.coverage.code_arguments.push((format!("{prefix}{name}"), with));
        }
        Ok(())
    }

    /// The file that an interpreter means by a name of code.
    pub(super) fn code_file(&mut self, name: &str, language: Language) -> Result<Option<PathBuf>, CoverageError> {
        let candidates = match language {
            Language::Node => script::node_files(name),
            Language::Other => script::other_files(name),
            Language::Shell | Language::Python => vec![name.to_owned()],
        };
        for candidate in candidates {
            match self.named(&candidate)? {
                FoundName::File(file) => {
                    self.push_code(file.clone(), Some(language));
                    return Ok(Some(file));
                }
                FoundName::Folder(folder) => self.whole_folder(&folder),
                FoundName::Nothing => {}
            }
        }
        Ok(None)
    }

    pub(super) fn variable(&mut self, name: &str, value: &str) -> Result<(), CoverageError> {
        if let Some(variable) = program_variable(name).filter(|variable| variable.holds.names_code()) {
            // A shell runs code that does not name another interpreter.
            let language = (variable.holds != VariableHolds::File).then_some(Language::Shell);
            for file in self.every_name(value)? {
                self.push_code(file, language);
            }
        } else {
            self.text(value)?;
        }
        self.options_in(name, value)?;
        if name == "PYTHONPATH" {
            for part in value.split(':').filter(|part| !part.is_empty()) {
                let FoundName::Folder(folder) = self.named(&self.without_tilde(part))? else { continue };
                // A new file there would take precedence over every module of the same name, so all of them count.
                self.modules_in(&folder)?;
                self.roots.push(folder);
            }
        }
        self.searched(name, value, None)
    }

    /// An entry of a folder list, with the tilde at its start replaced by the home.
    fn without_tilde<'p>(&self, part: &'p str) -> Cow<'p, str> {
        let home = self.folders.iter().find(|(name, _)| *name == "HOME").map(|(_, home)| home);
        match (part.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest).display().to_string().into(),
            _ => part.into(),
        }
    }

    /// Covers the code that an interpreter loads through options in a variable.
    fn options_in(&mut self, name: &str, value: &str) -> Result<(), CoverageError> {
        let Some((_, interpreter)) = OPTIONS.iter().find(|(variable, _)| *variable == name) else { return Ok(()) };
        let options: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
        for (_, _, file) in loader::code_files(interpreter, &options) {
            self.code_file(file, Language::Other)?;
        }
        self.looked_up(interpreter, &options)?;
        if options.iter().any(|option| ["-I", "-M", "-m", "-r"].iter().any(|letter| option.starts_with(letter))) {
            let what = format!("`{name}={value}` leads `{interpreter}` to code that it looks up when it runs");
            self.coverage.uncovered.push(what);
        }
        Ok(())
    }

    /// Covers the folders of a search variable. Unknown expansions are still part of `value`.
    pub(super) fn searched(&mut self, name: &str, value: &str, file: Option<&Path>) -> Result<(), CoverageError> {
        // The modules of Python's folders are covered one by one.
        let is_searched = |name| program_variable(name).is_some_and(|known| known.holds == VariableHolds::Folders);
        if name == "PYTHONPATH" || !is_searched(name) {
            return Ok(());
        }
        for part in value.split(':') {
            // In `PATH`, an empty entry means the working folder.
            let part = if part.is_empty() && name == "PATH" && value.contains(':') { "." } else { part };
            if let FoundName::Folder(folder) = self.named(&self.without_tilde(part))? {
                self.whole_folder(&folder);
            } else if part.contains('$') && part.contains('/') && !part.starts_with("${HOME}/") {
                self.made_up(part, file);
            }
        }
        Ok(())
    }
}

/// The modules that Python must run or import, by its arguments.
pub(super) fn modules(args: &[String], running: Runs) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        match arg.strip_prefix("-m") {
            Some("") => found.extend(args.get(index + 1).map(String::as_str)),
            Some(name) => found.push(name),
            None if running == Runs::Code => {
                let letter = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
                found.extend(arg.split(|other| !letter(other)).filter(|word| !word.is_empty()));
            }
            None => {}
        }
    }
    found
}

/// The index of the argument that a shell runs as text; later arguments are its parameters.
pub(super) fn shell_code(args: &[String]) -> Option<usize> {
    let is_option = |arg: &str| arg.starts_with(['-', '+']);
    let tells = |arg: &String| arg.starts_with('-') && !arg.starts_with("--") && arg.contains('c');
    let option = args.iter().position(tells)?;
    let mut index = option;
    while args.get(index).is_some_and(|arg| is_option(arg)) {
        // `-o` takes the next argument.
        let takes_value = args.get(index).is_some_and(|arg| !arg.starts_with("--") && arg.ends_with(['o', 'O']));
        index += if takes_value { 2 } else { 1 };
    }
    (index < args.len()).then_some(index)
}
