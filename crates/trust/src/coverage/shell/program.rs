//! Finds the code that one started program runs: its script, the code among its arguments, and what it loads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ollm_protocol::hook::{Runs, runs};
use ollm_shell::Redirect;

use super::super::script::Language;
use super::super::{CoverageError, Edit, FoundName, Replacement, Search, command, loader, runner};
use super::value::{FilledWord, MadeOf, Scope};

/// Folders in which every user may create files.
const ANYBODYS: &[&str] = &["/tmp/", "/var/tmp/"];

impl Search<'_> {
    /// Covers the code that a program runs when it is started with these arguments.
    pub(super) fn started(
        &mut self,
        first: &FilledWord,
        args: &[FilledWord],
        redirects: &[Redirect],
        scope: &mut Scope<'_>,
    ) -> Result<(), CoverageError> {
        if !first.certain {
            self.made_up(&first.text, scope.file);
        }
        if !first.known {
            return Ok(());
        }
        let program = &first.text;
        if program.contains('/') {
            self.shell_file(first, scope, None)?;
        }
        let texts: Vec<String> = args.iter().map(|arg| arg.text.clone()).collect();
        let place = self.within(scope.file);
        let uncovered = runner::uncovered(program, &texts, &self.places.top);
        let uncovered = uncovered.map(|what| if place.is_empty() { what } else { format!("{what},{place}") });
        self.coverage.uncovered.extend(uncovered);
        let language = Language::of_interpreter(program);
        self.loaded(program, args, &texts, scope)?;
        let Some(language) = language else { return self.nested(program, args, scope) };
        match runs(program, &texts) {
            Runs::Script(index) => {
                if let Some(script) = args.get(index).filter(|script| !script.certain) {
                    self.made_up(&script.text, scope.file);
                }
                if let Some(script) = args.get(index).filter(|script| script.known) {
                    self.shell_file(script, scope, Some(language))?;
                }
            }
            Runs::Code => self.given_code(program, language, args, &texts, scope)?,
            Runs::Input => self.read_as_code(program, language, redirects, scope)?,
            // `deno eval`
            Runs::Itself => self.inline(program, &texts, language, scope.file),
            Runs::Nothing => {}
        }
        self.old_python(program, None);
        Ok(())
    }

    /// Covers the code that an interpreter gets as an argument.
    fn given_code(
        &mut self,
        program: &str,
        language: Language,
        args: &[FilledWord],
        texts: &[String],
        scope: &mut Scope<'_>,
    ) -> Result<(), CoverageError> {
        let place = self.within(scope.file);
        let code = command::shell_code(texts);
        if language == Language::Shell && code.is_none() {
            self.coverage.uncovered.push(format!("`{program}`{place} runs what it is given"));
        }
        self.inline(program, texts, language, scope.file);
        for module in command::modules(texts, Runs::Itself).into_iter().filter(|_| language == Language::Python) {
            self.module(module)?;
        }
        // If the code comes from a variable, it is only known at run time.
        let made_up = args.iter().find(|arg| !arg.known && arg.text.starts_with('$'));
        if let Some(arg) = made_up.filter(|_| language != Language::Shell && !texts.contains(&"-m".to_owned())) {
            self.made_up(&arg.text, scope.file);
        }
        for (index, arg) in args.iter().enumerate().filter(|(_, arg)| !arg.text.starts_with('-')) {
            // This argument is only a parameter of the text.
            if !arg.known && code.is_some_and(|code| index > code) {
                continue;
            }
            let edits = self.code(&arg.text, language, scope)?;
            let with = Replacement::Code { text: arg.text.clone(), edits };
            if code != Some(index) || with.files().is_empty() {
                continue;
            }
            if arg.made_of == MadeOf::Text {
                self.edits.push(Edit { span: arg.span.clone(), with });
            } else {
                self.stays(&with, scope.file);
            }
        }
        Ok(())
    }

    /// Covers the input that an interpreter reads as its code.
    fn read_as_code(
        &mut self,
        program: &str,
        language: Language,
        redirects: &[Redirect],
        scope: &mut Scope<'_>,
    ) -> Result<(), CoverageError> {
        match input(redirects) {
            Some(Redirect::Read { file, .. }) => {
                let file = self.filled(file, scope);
                if !file.certain {
                    self.made_up(&file.text, scope.file);
                }
                if file.known { self.shell_file(&file, scope, Some(language)) } else { Ok(()) }
            }
            Some(Redirect::Text { .. } | Redirect::Document { .. }) => {
                let word = input(redirects).and_then(Redirect::word);
                let text = word.map(|word| self.filled(word, scope).text).unwrap_or_default();
                let edits = self.code(&text, language, scope)?;
                self.inline_text(program, &text, language, scope.file);
                self.stays(&Replacement::Code { text, edits }, scope.file);
                Ok(())
            }
            _ => {
                let place = self.within(scope.file);
                self.coverage.uncovered.push(format!("`{program}`{place} runs what it reads"));
                Ok(())
            }
        }
    }

    /// Covers the files from which a program takes code, apart from its script.
    fn loaded(
        &mut self,
        program: &str,
        args: &[FilledWord],
        texts: &[String],
        scope: &Scope<'_>,
    ) -> Result<(), CoverageError> {
        let language = Language::of_interpreter(program).unwrap_or(Language::Other);
        for (index, prefix, name) in loader::code_files(program, texts) {
            let Some(arg) = args.get(index) else { continue };
            if !arg.certain {
                self.made_up(name, scope.file);
            }
            if arg.known
                && let Some(file) = self.code_file(name, language)?
            {
                self.names_code(arg, &prefix, &file, scope.file);
            }
        }
        self.looked_up(program, texts)
    }

    /// Replaces a word by the name of the file's copy, unless the word already leads to the copy.
    pub(super) fn names_code(&mut self, word: &FilledWord, prefix: &str, file: &Path, of: Option<&Path>) {
        if !word.certain || word.made_of == MadeOf::OwnPlace {
            return;
        }
        let name = word.text.get(prefix.len()..).unwrap_or_default();
        let meant = self.here.iter().filter_map(|here| here.join(name).canonicalize().ok());
        let meant: BTreeSet<PathBuf> = meant.filter(|path| path.is_file()).collect();
        if word.made_of == MadeOf::Fields {
            self.stays(&Replacement::File { prefix: prefix.to_owned(), file: file.to_owned() }, of);
        } else if meant.len() > 1 {
            self.coverage.uncovered.push(format!("`{name}` may mean a file in more than one folder"));
        } else {
            let with = Replacement::File { prefix: prefix.to_owned(), file: file.to_owned() };
            self.edits.push(Edit { span: word.span.clone(), with });
        }
    }

    /// Covers a file that runs, relative to the working folder or to the script's place.
    pub(super) fn shell_file(
        &mut self,
        word: &FilledWord,
        scope: &Scope<'_>,
        language: Option<Language>,
    ) -> Result<(), CoverageError> {
        let path = word.text.as_str();
        match self.named(path)? {
            // In an unknown folder, the same name may mean another file.
            FoundName::File(_) | FoundName::Nothing if scope.astray && Path::new(path).is_relative() => {
                self.made_up(path, scope.file);
            }
            FoundName::File(file) => {
                self.names_code(word, "", &file, scope.file);
                self.push_code(file, language);
            }
            FoundName::Folder(folder) => self.whole_folder(&folder),
            FoundName::Nothing if is_made_later(path) => self.made_up(path, scope.file),
            FoundName::Nothing => {
                let beside = scope.file.and_then(Path::parent).filter(|_| !path.contains('/')).map(|at| at.join(path));
                if let Some(FoundName::File(file)) = beside.map(|path| self.at(&path)).transpose()? {
                    self.push_code(file, language);
                }
            }
        }
        Ok(())
    }
}

/// Whether a path names a stream, or a file that any user may create before it runs.
fn is_made_later(path: &str) -> bool {
    let is_stream = path.starts_with("/dev/") || path.starts_with("/proc/");
    // A name directly in such a folder is anybody's, also if there is a file now.
    let is_anybodys = |rest: &str| !rest.contains('/') || !Path::new(path).exists();
    is_stream && path != "/dev/null" || ANYBODYS.iter().filter_map(|folder| path.strip_prefix(folder)).any(is_anybodys)
}

/// The input redirection of a command, if there is one.
fn input(redirects: &[Redirect]) -> Option<&Redirect> {
    let is_input = |redirect: &&Redirect| match redirect {
        Redirect::Write { .. } => false,
        Redirect::Read { input, .. }
        | Redirect::Duplicate { input, .. }
        | Redirect::Text { input, .. }
        | Redirect::Document { input, .. } => *input,
    };
    redirects.iter().rev().find(is_input)
}
