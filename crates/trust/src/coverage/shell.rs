//! Finds the code that shell text runs: words in the place of a command, a script or a sourced file.
//!
//! Everything that could run counts, in every branch. Text that cannot be read is uncovered.

mod program;
mod value;
mod wrapper;

use std::path::Path;

use ollm_shell::{
    Assign, Body, Command, List, ListOperator, ParseError, Piece, Redirect, Word, parse, program_variable,
};
use ollm_store::plain_path;

use super::script::Language;
use super::{CoverageError, Edit, FoundName, Replacement, ScriptEdits, Search, edit};
pub(super) use value::Scope;
use value::{FilledWord, MOST_BYTES};
pub(super) use wrapper::runs_a_command;

impl Search<'_> {
    /// A line for a shell: every name in it counts, and names that are only known at run time are reported.
    pub(super) fn shell(&mut self, text: &str) -> Result<Vec<Edit>, CoverageError> {
        self.text(text)?;
        self.edits_of(text, &mut Scope::default())
    }

    /// A script: the files that it sources and starts count.
    pub(super) fn shell_script(&mut self, text: &str, file: Option<&Path>) -> Result<(), CoverageError> {
        let edits = self.edits_of(text, &mut Scope::in_file(file))?;
        if let Some(file) = file.filter(|_| !edits.is_empty()) {
            self.coverage.scripts.push(ScriptEdits { file: file.to_owned(), edits });
        }
        Ok(())
    }

    /// The words of a text that name code and can be replaced by names in the copy.
    pub(super) fn edits_of(&mut self, text: &str, scope: &mut Scope<'_>) -> Result<Vec<Edit>, CoverageError> {
        let outside = std::mem::take(&mut self.edits);
        self.shell_text(text, scope)?;
        let found = std::mem::replace(&mut self.edits, outside);
        let (possible, stuck) = edit::possible(text, found);
        for edit in stuck {
            self.stays(&edit.with, scope.file);
        }
        Ok(possible)
    }

    /// Reports code that runs in place, and so could be replaced after the check.
    pub(super) fn stays(&mut self, with: &Replacement, file: Option<&Path>) {
        let place = self.within(file);
        for code in with.files() {
            let code = self.short(code);
            let what = format!(
                "`{code}`{place} cannot be taken from the copy; name it outside of backticks, here-documents and text that is \
                 put together"
            );
            self.coverage.uncovered.push(what);
        }
    }

    fn shell_text(&mut self, text: &str, scope: &mut Scope<'_>) -> Result<(), CoverageError> {
        match parse(text, scope.depth) {
            Ok(list) => self.apart(&list, scope),
            Err(error) => {
                self.unreadable(text, error, scope);
                Ok(())
            }
        }
    }

    fn unreadable(&mut self, text: &str, error: ParseError, scope: &Scope<'_>) {
        let why = match error {
            ParseError::TooDeep { .. } => "it nests too deep".to_owned(),
            ParseError::Unclosed { opened, .. } => format!("{opened} is never closed"),
            ParseError::Syntax { construct, .. } => format!("{construct} is unusual there"),
        };
        let what = scope.file.map_or_else(|| text.chars().take(60).collect(), |file| self.short(file));
        let line = text.get(..error.at()).unwrap_or_default().matches('\n').count() + 1;
        let what = format!("`{what}` cannot be read as shell text (line {line}: {why}), so anything in it may run");
        self.coverage.uncovered.push(what);
    }

    /// Reads commands that run in a subshell, so their variables and folder changes end with them.
    fn apart(&mut self, list: &List, scope: &mut Scope<'_>) -> Result<(), CoverageError> {
        let (outside, astray) = (scope.assigned(), scope.astray);
        self.list(list, scope)?;
        scope.forget(outside);
        scope.astray = astray;
        Ok(())
    }

    fn list(&mut self, list: &List, scope: &mut Scope<'_>) -> Result<(), CoverageError> {
        let outside = scope.branch;
        scope.depth += 1;
        for step in list {
            for command in &step.pipeline {
                self.shell_command(command, scope)?;
            }
            scope.branch = outside || matches!(step.joint, ListOperator::And | ListOperator::Or);
        }
        scope.depth -= 1;
        scope.branch = outside;
        Ok(())
    }

    fn shell_command(&mut self, command: &Command, scope: &mut Scope<'_>) -> Result<(), CoverageError> {
        let outside = scope.branch;
        scope.depth += 1;
        self.substitutions(command.redirects.iter().filter_map(Redirect::word), scope)?;
        match &command.body {
            Body::Simple { assigns, words } => {
                self.substitutions(assigns.iter().flat_map(|assign| assign.value.iter().chain(&assign.others)), scope)?;
                self.substitutions(words, scope)?;
                self.simple(assigns, words, &command.redirects, scope)?;
            }
            Body::Branches { words, lists, repeats } => {
                self.substitutions(words, scope)?;
                scope.branch |= *repeats || lists.len() > 1 || !words.is_empty();
                for list in lists {
                    self.list(list, scope)?;
                }
            }
            Body::Subshell(list) => self.apart(list, scope)?,
            Body::For { name, words, list } => {
                self.substitutions(words.iter().flatten(), scope)?;
                scope.branch = true;
                scope.assign(name, None);
                self.list(list, scope)?;
            }
            Body::Function { body, .. } => {
                scope.branch = true;
                self.shell_command(body, scope)?;
            }
        }
        scope.depth -= 1;
        scope.branch = outside;
        Ok(())
    }

    /// Reads the commands inside words.
    fn substitutions<'w>(
        &mut self,
        words: impl IntoIterator<Item = &'w Word>,
        scope: &mut Scope<'_>,
    ) -> Result<(), CoverageError> {
        for piece in words.into_iter().flatten() {
            match piece {
                Piece::Output { list, .. } | Piece::Process { list, .. } => self.apart(list, scope)?,
                Piece::Parameter { word, .. } | Piece::Arithmetic(word) | Piece::Opaque(word) => {
                    scope.depth += 1;
                    self.substitutions(std::iter::once(word), scope)?;
                    scope.depth -= 1;
                }
                Piece::Plain(_) | Piece::Quoted(_) | Piece::Variable { .. } | Piece::Hole(_) => {}
            }
        }
        Ok(())
    }

    fn simple(
        &mut self,
        assigns: &[Assign],
        words: &[Word],
        redirects: &[Redirect],
        scope: &mut Scope<'_>,
    ) -> Result<(), CoverageError> {
        for Assign { name, value, .. } in assigns {
            let value = value.as_ref().map(|value| self.filled(value, scope));
            if let Some(value) = &value {
                self.searched(name, &value.text, scope.file)?;
                if value.known && (!words.is_empty() || holds_code(name)) {
                    self.variable_in_text(name, value, "", scope.file)?;
                }
            }
            if words.is_empty() {
                scope.assign(name, value.and_then(FilledWord::value));
            }
        }
        let mut filled = Vec::with_capacity(words.len());
        let mut bytes = 0;
        for word in words {
            let fields = self.fields(word, scope);
            bytes += fields.iter().map(|field| field.text.len()).sum::<usize>();
            if bytes > MOST_BYTES {
                return Err(CoverageError::TooMuch);
            }
            filled.extend(fields);
        }
        let words = self.unwrapped(filled, scope)?;
        let Some((first, args)) = words.split_first() else { return Ok(()) };
        match first.text.as_str() {
            "." | "source" => match args.first() {
                Some(name) => self.sourced(name, scope),
                None => Ok(()),
            },
            "cd" | "pushd" => {
                scope.astray |= !self.enter(args);
                Ok(())
            }
            "export" | "declare" | "typeset" | "readonly" | "local" => {
                for arg in args {
                    let Some((name, value)) = assignment(&arg.text) else { continue };
                    let at_home = value.starts_with('~').then(|| self.at_home(value, scope)).flatten();
                    let text = at_home.map_or_else(|| value.to_owned(), |path| path.text);
                    self.searched(name, &text, scope.file)?;
                    let value = FilledWord { text: format!("{name}={text}"), ..arg.clone() };
                    self.variable_in_text(name, &value, &format!("{name}="), scope.file)?;
                    scope.assign(name, FilledWord { text, ..arg.clone() }.value());
                }
                Ok(())
            }
            "trap" | "alias" => {
                for arg in args {
                    let text = assignment(&arg.text).map_or(arg.text.as_str(), |(_, text)| text);
                    let edits = self.code(text, Language::Shell, scope)?;
                    self.stays(&Replacement::Code { text: text.to_owned(), edits }, scope.file);
                }
                Ok(())
            }
            "eval" => {
                let text: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
                let text = text.join(" ");
                if scope.file.is_none() || args.iter().any(|arg| !arg.certain) {
                    self.made_up(&format!("eval {text}"), scope.file);
                    return Ok(());
                }
                let edits = self.code(&text, Language::Shell, scope)?;
                self.stays(&Replacement::Code { text, edits }, scope.file);
                Ok(())
            }
            _ => self.started(first, args, redirects, scope),
        }
    }

    /// Reads a variable that the text sets. A file that its value names is taken from the copy, or reported to run in
    /// place.
    fn variable_in_text(
        &mut self,
        name: &str,
        value: &FilledWord,
        prefix: &str,
        file: Option<&Path>,
    ) -> Result<(), CoverageError> {
        let text = value.text.get(prefix.len()..).unwrap_or_default();
        self.variable(name, text)?;
        if !holds_code(name) {
            return Ok(());
        }
        if let FoundName::File(code) = self.named(text)? {
            self.names_code(value, prefix, &code, file);
            return Ok(());
        }
        for code in self.every_name(text)? {
            self.stays(&Replacement::File { prefix: String::new(), file: code }, file);
        }
        Ok(())
    }

    fn sourced(&mut self, name: &FilledWord, scope: &Scope<'_>) -> Result<(), CoverageError> {
        if !name.certain {
            self.made_up(&name.text, scope.file);
        }
        if name.known { self.shell_file(name, scope, Some(Language::Shell)) } else { Ok(()) }
    }

    /// Follows `cd`: later names may start from the new folder. Returns false if that folder is unknown or outside.
    fn enter(&mut self, args: &[FilledWord]) -> bool {
        if args.first().is_some_and(|arg| arg.text == "-") {
            return true;
        }
        let target = args.iter().find(|arg| !arg.text.starts_with('-')).filter(|arg| arg.known);
        let Some(target) = target else { return false };
        let mut is_inside = false;
        for folder in self.here.clone() {
            let entered = plain_path(&folder.join(&target.text));
            if !entered.starts_with(&self.places.top) {
                continue;
            }
            is_inside = true;
            if !self.here.contains(&entered) && self.here.len() < 16 {
                self.here.push(entered);
            }
        }
        is_inside && target.certain
    }

    fn code(&mut self, code: &str, language: Language, scope: &mut Scope<'_>) -> Result<Vec<Edit>, CoverageError> {
        match language {
            Language::Shell => self.edits_of(code, scope),
            other => self.read(code, other, None).map(|()| Vec::new()),
        }
    }
}

/// Whether every file that the value of a variable names is code.
fn holds_code(variable: &str) -> bool {
    program_variable(variable).is_some_and(|variable| variable.holds.names_code())
}

/// The name and value of a word that only sets a variable.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let first = name.chars().next()?;
    let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    (plain && !first.is_ascii_digit()).then_some((name, value))
}

#[cfg(test)]
mod tests;
