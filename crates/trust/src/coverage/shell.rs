//! Finds the code that shell text runs: words in the place of a command, a script or a sourced file.
//!
//! Everything that could run counts, in every branch. Text that cannot be read is uncovered.

mod value;
mod wrapper;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ollm_protocol::hook::{Runs, runs};
use ollm_shell::{
    Assign, Body, Command, List, ListOperator, ParseError, Piece, Redirect, Word, parse, program_variable,
};
use ollm_store::plain_path;

use super::script::Language;
use super::{CoverageError, Edit, FoundName, Replacement, ScriptEdits, Search, command, edit, loader, runner};
pub(super) use value::Scope;
use value::{FilledWord, MOST_BYTES, MadeOf};
pub(super) use wrapper::runs_a_command;

/// Folders in which every user may create files.
const ANYBODYS: &[&str] = &["/tmp/", "/var/tmp/"];

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

    fn started(
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
            Runs::Code => {
                let code = command::shell_code(&texts);
                if language == Language::Shell && code.is_none() {
                    self.coverage.uncovered.push(format!("`{program}`{place} runs what it is given"));
                }
                self.inline(program, &texts, language, scope.file);
                for module in
                    command::modules(&texts, Runs::Itself).into_iter().filter(|_| language == Language::Python)
                {
                    self.module(module)?;
                }
                // If the code comes from a variable, it is only known at run time.
                let made_up = args.iter().find(|arg| !arg.known && arg.text.starts_with('$'));
                if let Some(arg) = made_up.filter(|_| language != Language::Shell && !texts.contains(&"-m".to_owned()))
                {
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
            }
            Runs::Input => self.read_as_code(program, language, redirects, scope)?,
            // `deno eval`
            Runs::Itself => self.inline(program, &texts, language, scope.file),
            Runs::Nothing => {}
        }
        self.old_python(program, None);
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

    fn code(&mut self, code: &str, language: Language, scope: &mut Scope<'_>) -> Result<Vec<Edit>, CoverageError> {
        match language {
            Language::Shell => self.edits_of(code, scope),
            other => self.read(code, other, None).map(|()| Vec::new()),
        }
    }

    /// Replaces a word by the name of the file's copy, unless the word already leads to the copy.
    fn names_code(&mut self, word: &FilledWord, prefix: &str, file: &Path, of: Option<&Path>) {
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
    fn shell_file(
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

/// Whether a path names a stream, or a missing file that any user may create before it runs.
fn is_made_later(path: &str) -> bool {
    let is_stream = path.starts_with("/dev/") || path.starts_with("/proc/");
    is_stream && path != "/dev/null"
        || ANYBODYS.iter().any(|folder| path.starts_with(folder)) && !Path::new(path).exists()
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
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::super::{CommandLine, Places, files_covered};

    /// The files that a line covers in addition to `run.sh`, and the parts that it leaves uncovered.
    fn covered(line: &str, script: &str) -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir(top.join("lib")).unwrap();
        for (file, text) in [("run.sh", script), ("lib/a", ":\n"), ("lib/b", ":\n"), ("a", ":\n")] {
            fs::write(top.join(file), text).unwrap();
        }
        let places = Places {
            written: top.clone(),
            top: top.clone(),
            here: vec![top.clone()],
            own: Vec::new(),
            search_path: "/usr/bin:/bin".into(),
        };
        let folders = vec![("HOME", top.clone())];
        let line = CommandLine { shell: Some(line.to_owned()), folders, ..CommandLine::default() };
        let coverage = files_covered(&line, None, &places, &mut |_| {}).unwrap();
        let files: BTreeSet<String> =
            coverage.files.iter().map(|file| file.strip_prefix(&top).unwrap().display().to_string()).collect();
        let files: Vec<String> = files.into_iter().filter(|file| file != "run.sh").collect();
        (files.join(" "), coverage.uncovered.join("; "))
    }

    #[test]
    fn files_that_a_script_runs_are_covered() {
        for (script, files) in [
            (". lib/a; ./lib/b 'c d' \"e $X\" >a", "lib/a lib/b"),
            ("if test -f a; then\n  source lib/a\nelse sh ./lib/b\nfi", "lib/a lib/b"),
            ("X=lib; . \"$X/a\" # lib/b", "lib/a"),
            (". \"${X:-lib}/a\"", "lib/a"),
            ("echo \"$(. lib/b)\" <(./a)", "a lib/b"),
            ("f() { . lib/a; }; case x in x) ./lib/b;; esac", "lib/a lib/b"),
            ("sudo -E env X=1 timeout 5 sh lib/a", "lib/a"),
            ("sh -c 'sh -c \". lib/a\"'", "lib/a"),
            ("cat <<'END'\n. lib/a\nEND\n", ""),
            ("cd lib && . ./b", "lib/b"),
            (". \"$(dirname \"$0\")/lib/a\"", "lib/a"),
            ("HERE=$(CDPATH= cd -- \"$(dirname -- \"$0\")/lib\" >/dev/null && pwd -P || exit 1)\n$HERE/a", "lib/a"),
            (". ${0%/*}/lib/a; . ${BASH_SOURCE[0]%/*}/lib/b", "lib/a lib/b"),
            ("S=$(readlink -f \"${BASH_SOURCE[0]:-$0}\"); . \"$(dirname \"$S\")/lib/a\"", "lib/a"),
            (". \"$(git rev-parse --show-toplevel)/lib/a\"", "lib/a"),
            (". ~/lib/a; ~+/lib/b", "lib/a lib/b"),
            ("X=~/lib; . $X/a; export Y=~/lib; sh $Y/b", "lib/a lib/b"),
            ("X='~/lib'; . $X/a; echo a~/lib/b \"~/lib/b\" ~x", ""),
        ] {
            assert_eq!(covered("sh run.sh", script), (files.to_owned(), String::new()), "{script}");
        }
    }

    #[test]
    fn what_depends_on_the_run_or_has_no_place_in_the_copy_is_uncovered() {
        for (script, files, said) in [
            (". $X/a", "", "`${X}/a` in `run.sh`"),
            (". \"$(pick)\"", "", "`$(…)` in `run.sh`"),
            ("X=lib; X=$(pick); . $X/a", "lib/a", "`lib/a` in `run.sh`"),
            ("X=lib; test -f b && X=.; . $X/a", "lib/a", "`lib/a` in `run.sh`"),
            ("X=lib; (X=.); . $X/a", "lib/a", ""),
            ("X=.; X=lib; . $X/a", "lib/a", ""),
            ("for f in a b; do . lib/$f; done", "", "`lib/${f}` in `run.sh`"),
            ("PATH=$PATH:~/lib; tool", "", "`lib` is a folder"),
            (". ~bob/lib/a", "", "`~bob/lib/a` in `run.sh`"),
            ("echo `. lib/a`", "lib/a", "`lib/a` in `run.sh` cannot be taken from the copy"),
            ("sh <<'END'\n. lib/a\nEND\n", "lib/a", "`lib/a` in `run.sh` cannot be taken from the copy"),
            ("bash <<< '. lib/a'", "lib/a", "`lib/a` in `run.sh` cannot be taken from the copy"),
            ("X=1; sh -c \". lib/a; echo $X\"", "lib/a", "`lib/a` in `run.sh` cannot be taken from the copy"),
            ("cd lib && . ./a", "a lib/a", "`./a` may mean a file in more than one folder"),
            ("cd \"$X\" && . ./a", "a", "`./a` in `run.sh` is a name that is made up"),
            ("cd /tmp; . ./a", "a", "`./a` in `run.sh` is a name that is made up"),
            ("(cd \"$X\"); Y=$(cd $X; pwd); . ./a", "a", ""),
        ] {
            let (found, uncovered) = covered("sh run.sh", script);
            assert_eq!(found, files, "{script}");
            assert!(uncovered.starts_with(said) && uncovered.is_empty() == said.is_empty(), "{script}: {uncovered}");
        }
    }

    /// Each text runs project code without naming it, or by a name that is only known at run time.
    #[test]
    fn what_a_script_runs_without_naming_it_is_uncovered_as_in_a_line() {
        for text in [
            "cat lib/a | sh",
            "sed s/x/y/ lib/a | bash",
            "cat lib/a | python3 -",
            "exec < lib/a; sh",
            "sh < \"$X\"",
            "eval \"$(cat lib/a)\"",
            "eval \"$(<lib/a)\"",
            "bash -c \"$(cat lib/a)\"",
            "bash <(cat lib/a)",
            "sh /dev/stdin < lib/a",
            "cp lib/a /tmp/ollm-is-not-here && sh /tmp/ollm-is-not-here",
            "python3 -c \"exec(open('lib/a').read())\"",
            "npm run x",
            "make -s",
            "npx is-safe",
            "python3 -m pytest",
            "eslint .",
            "./gradlew check",
            "for f in lib/*; do sh $f; done",
            "find lib -name a -exec sh {} \\;",
            "ls lib/* | xargs -n1 sh",
            "r() { sh \"$1\"; }; r lib/a",
            "r='sh lib/a'; $r",
            "git -c alias.x='!sh lib/a' x",
            "PATH=\"$X/bin:$PATH\" tool",
        ] {
            for (line, script) in [(text, ""), ("sh run.sh", text)] {
                let (_, uncovered) = covered(line, script);
                assert!(!uncovered.is_empty(), "{line}: {text}");
                assert!(line == text || uncovered.contains("`run.sh`"), "{text}: {uncovered}");
            }
        }
    }

    #[test]
    fn what_a_script_plainly_runs_leaves_nothing_uncovered() {
        for (script, files) in [
            ("sh < lib/a", "lib/a"),
            ("eval '. lib/a' 2>&1 | cat", "lib/a"),
            ("T='git status'; $T --short", ""),
            ("SUDO=; $SUDO ls \"$1\"; ${EDITOR_LIKE:-ls} x", ""),
            ("JQ=$(command -v jq); \"$JQ\" -r .x", ""),
            ("INPUT=$(cat); echo \"$INPUT\" | jq -r .x | grep \"$1\"", ""),
            ("python3 -c 'import json,sys; print(json.load(sys.stdin))'", ""),
            ("cd \"$(mktemp -d)\" && /usr/bin/env ls", ""),
            ("f() { git diff \"$1\"; }; f x; case $1 in *.rs) echo \"$f\";; esac", ""),
            ("for f in *.rs; do rustfmt --check \"$f\" || exit 2; done", ""),
            ("PATH=\"$HOME/.cargo/bin:$PATH\"; find . -name '*.x' -exec rm {} +", ""),
        ] {
            let (found, uncovered) = covered("sh run.sh", script);
            let said =
                if script.starts_with("eval") { "`lib/a` in `run.sh` cannot be taken from the copy" } else { "" };
            assert_eq!(found, files, "{script}");
            assert!(uncovered.starts_with(said) && uncovered.is_empty() == said.is_empty(), "{script}: {uncovered}");
        }
    }

    #[test]
    fn text_that_cannot_be_read_is_uncovered() {
        let deep = format!("{}:{}", "( ".repeat(300), " )".repeat(300));
        let (open, close) = ("( ".repeat(60), " )".repeat(60));
        let deep_code = format!("{open}sh -c '{open}:{close}'{close}");
        let deep_word = format!("X={}x{}", "${X:-".repeat(300), "}".repeat(300));
        for text in [
            "echo 'open",
            "if true; then :",
            "case x in x) :",
            "echo $[1]",
            "cat {x}<<END\n",
            &deep,
            &deep_code,
            &deep_word,
        ] {
            for (line, script) in [(text, ""), ("sh run.sh", text)] {
                let (_, uncovered) = covered(line, script);
                assert!(uncovered.contains("cannot be read as shell text"), "{line}: {uncovered}");
            }
        }
        let (_, uncovered) = covered("sh run.sh", "sh -c 'echo \"open'");
        assert!(uncovered.starts_with("`run.sh` cannot be read as shell text (line 1: a double quote"), "{uncovered}");
    }

    #[test]
    fn a_value_cannot_grow_without_end() {
        let doubled = format!("X=aaaaaaaa\n{}. $X", "X=$X$X\n".repeat(64));
        let long = format!("X={}\n", "a".repeat(4096));
        let many: Vec<String> = (0..20_000).map(|index| format!("A{index}=$X")).collect();
        for script in [doubled, format!("{long}{}\n. $A19999", many.join("\n"))] {
            let (_, uncovered) = covered("sh run.sh", &script);
            assert!(uncovered.contains("made up when it runs"), "{uncovered}");
        }
    }

    /// Files that source one another, and text that nests endlessly: both are read to the end, on the stack of a
    /// thread.
    #[test]
    fn nothing_that_nests_or_leads_back_to_itself_exhausts_the_stack() {
        let pairs = [
            ("bash -c \"", "\""),
            ("eval '", "'"),
            ("$(", ")"),
            ("${a:-", "}"),
            ("( ", " )"),
            ("if ", "; then x; fi"),
            ("sudo env ", ""),
            ("find . -exec ", " \\;"),
            ("xargs ", ""),
            ("trap '", "'"),
            ("f() { ", "; }"),
            ("cat <(", ")"),
            ("x=$x ", ""),
            (". ./run.sh; ", ""),
        ];
        let look = move || {
            for (open, close) in pairs {
                for count in [60, 200, 2000] {
                    let script = format!("{}. ./lib/a{}\n", open.repeat(count), close.repeat(count));
                    covered("sh run.sh", &script);
                }
            }
            covered(". ./run.sh", "x=$(cat <(echo $x)); HOME=~/x; PWD=~+; . $x; . ~/a; . ./run.sh; sh run.sh\n");
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(look).unwrap().join().unwrap();
    }
}
