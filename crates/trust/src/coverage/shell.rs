//! The code that shell text runs: what stands where a command, a script or a sourced file stands.
//!
//! Whatever could run counts, whichever branch it stands in. Text that cannot be read is uncovered.

mod value;
mod wrapper;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ollm_protocol::hook::{Runs, runs};
use ollm_shell::{Assign, Body, Command, Joint, List, Piece, Redirect, Unreadable, Word, parse};
use ollm_store::plain_path;

use super::script::Language;
use super::{CoverageError, Edit, Found, Replacement, ScriptEdits, Search, command, edit, loader, runner};
pub(super) use value::Scope;
use value::{Filled, MOST_BYTES, MadeOf};
pub(super) use wrapper::runs_a_command;

impl Search<'_> {
    /// A line that a shell runs: every name in it counts, and what is made up is told.
    pub(super) fn shell(&mut self, text: &str) -> Result<Vec<Edit>, CoverageError> {
        self.text(text)?;
        self.edits_of(text, &mut Scope::default())
    }

    /// A script: what it sources and starts counts.
    pub(super) fn shell_script(&mut self, text: &str, file: Option<&Path>) -> Result<(), CoverageError> {
        let edits = self.edits_of(text, &mut Scope::in_file(file))?;
        if let Some(file) = file.filter(|_| !edits.is_empty()) {
            self.coverage.scripts.push(ScriptEdits { file: file.to_owned(), edits });
        }
        Ok(())
    }

    /// The words of a text that name code, and can be replaced by names in the copy.
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

    /// Says that code runs where it is, and so could be exchanged after it was compared.
    pub(super) fn stays(&mut self, with: &Replacement, file: Option<&Path>) {
        for code in with.files() {
            let place = file.map(|file| format!(" in `{}`", self.short(file))).unwrap_or_default();
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

    fn unreadable(&mut self, text: &str, error: Unreadable, scope: &Scope<'_>) {
        let why = match error {
            Unreadable::TooDeep { .. } => "it nests too deep".to_owned(),
            Unreadable::Unclosed { opened, .. } => format!("{opened} is never closed"),
            Unreadable::Syntax { construct, .. } => format!("{construct} is unusual there"),
        };
        let what = scope.file.map_or_else(|| text.chars().take(60).collect(), |file| self.short(file));
        let line = text.get(..error.at()).unwrap_or_default().matches('\n').count() + 1;
        let what = format!("`{what}` cannot be read as shell text (line {line}: {why}), so anything in it may run");
        self.coverage.uncovered.push(what);
    }

    /// Commands whose variables and folder nobody else sees.
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
            scope.branch = outside || matches!(step.joint, Joint::And | Joint::Or);
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

    /// The commands within words.
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
            }
            let value = value.and_then(Filled::value);
            if words.is_empty() {
                scope.assign(name, value);
            } else if let Some(value) = value {
                self.variable(name, &value.text)?;
            }
        }
        let mut filled = Vec::with_capacity(words.len());
        let mut bytes = 0;
        for word in words {
            let word = self.filled(word, scope);
            bytes += word.text.len();
            if bytes > MOST_BYTES {
                return Err(CoverageError::TooMuch);
            }
            filled.push(word);
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
                for (name, value) in args.iter().filter_map(|arg| assignment(&arg.text)) {
                    self.searched(name, value, scope.file)?;
                    self.variable(name, value)?;
                }
                for arg in args {
                    if let Some((name, _)) = assignment(&arg.text) {
                        let text = arg.text.get(name.len() + 1..).unwrap_or_default().to_owned();
                        scope.assign(name, Filled { text, ..arg.clone() }.value());
                    }
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
            "eval" if scope.file.is_none() => {
                let args: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
                self.made_up(&format!("eval {}", args.join(" ")), None);
                Ok(())
            }
            _ => self.started(first, args, redirects, scope),
        }
    }

    fn sourced(&mut self, name: &Filled, scope: &Scope<'_>) -> Result<(), CoverageError> {
        if !name.certain {
            self.made_up(&name.text, scope.file);
        }
        if name.known { self.shell_file(name, scope, Some(Language::Shell)) } else { Ok(()) }
    }

    /// What follows is meant from another folder; false where that is not one of those whose files count.
    fn enter(&mut self, args: &[Filled]) -> bool {
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
        first: &Filled,
        args: &[Filled],
        redirects: &[Redirect],
        scope: &mut Scope<'_>,
    ) -> Result<(), CoverageError> {
        let is_line = scope.file.is_none();
        if is_line && !first.certain {
            self.made_up(&first.text, None);
        }
        if !first.known {
            return Ok(());
        }
        let program = &first.text;
        if program.contains('/') {
            self.shell_file(first, scope, None)?;
        }
        let texts: Vec<String> = args.iter().map(|arg| arg.text.clone()).collect();
        if is_line {
            self.coverage.uncovered.extend(runner::uncovered(program, &texts, &self.places.top));
        }
        let language = Language::of_interpreter(program);
        self.loaded(program, args, &texts, scope)?;
        let Some(language) = language else { return self.nested(program, args, scope) };
        match runs(program, &texts) {
            Runs::Script(index) => {
                if let Some(script) = args.get(index).filter(|script| is_line && !script.certain) {
                    self.made_up(&script.text, None);
                }
                if let Some(script) = args.get(index).filter(|script| script.known) {
                    self.shell_file(script, scope, Some(language))?;
                }
            }
            Runs::Code => {
                let code = command::shell_code(&texts);
                if is_line && language == Language::Shell && code.is_none() {
                    self.coverage.uncovered.push(format!("`{program}` runs what it is given"));
                }
                if is_line {
                    self.inline(program, &texts, language);
                }
                for module in
                    command::modules(&texts, Runs::Itself).into_iter().filter(|_| language == Language::Python)
                {
                    self.module(module)?;
                }
                for (index, arg) in args.iter().enumerate().filter(|(_, arg)| !arg.text.starts_with('-')) {
                    // A parameter of the text.
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
            Runs::Input => match input(redirects) {
                Some(word) => {
                    let text = self.filled(word, scope).text;
                    let edits = self.code(&text, language, scope)?;
                    if is_line {
                        self.inline_text(program, &text, language);
                    }
                    self.stays(&Replacement::Code { text, edits }, scope.file);
                }
                None if is_line => self.coverage.uncovered.push(format!("`{program}` runs what it reads")),
                None => {}
            },
            // `deno eval`
            Runs::Itself if is_line => self.inline(program, &texts, language),
            Runs::Itself | Runs::Nothing => {}
        }
        if is_line {
            self.old_python(program, None);
        }
        Ok(())
    }

    /// The files from which a program takes code that are not its script.
    fn loaded(
        &mut self,
        program: &str,
        args: &[Filled],
        texts: &[String],
        scope: &Scope<'_>,
    ) -> Result<(), CoverageError> {
        let language = Language::of_interpreter(program).unwrap_or(Language::Other);
        for (index, prefix, name) in loader::code_files(program, texts) {
            let Some(arg) = args.get(index) else { continue };
            if !arg.certain && scope.file.is_none() {
                self.made_up(name, None);
            }
            if arg.known
                && let Some(file) = self.code_file(name, language)?
            {
                self.names_code(arg, &prefix, &file);
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

    /// Has a word name the copy of a file, unless it does so anyway.
    fn names_code(&mut self, word: &Filled, prefix: &str, file: &Path) {
        if !word.certain || word.made_of == MadeOf::OwnPlace {
            return;
        }
        let name = word.text.get(prefix.len()..).unwrap_or_default();
        let meant = self.here.iter().filter_map(|here| here.join(name).canonicalize().ok());
        let meant: BTreeSet<PathBuf> = meant.filter(|path| path.is_file()).collect();
        if meant.len() > 1 {
            self.coverage.uncovered.push(format!("`{name}` may mean a file in more than one folder"));
        } else {
            let with = Replacement::File { prefix: prefix.to_owned(), file: file.to_owned() };
            self.edits.push(Edit { span: word.span.clone(), with });
        }
    }

    /// A file that runs, meant from the working folder or from the place of the script.
    fn shell_file(
        &mut self,
        word: &Filled,
        scope: &Scope<'_>,
        language: Option<Language>,
    ) -> Result<(), CoverageError> {
        let path = word.text.as_str();
        match self.named(path)? {
            // The same name may mean another file there.
            Found::File(_) if scope.astray && Path::new(path).is_relative() => self.made_up(path, scope.file),
            Found::File(file) => {
                self.names_code(word, "", &file);
                self.push_code(file, language);
            }
            Found::Folder(folder) => self.whole_folder(&folder),
            Found::Nothing if scope.astray && scope.file.is_none() => self.made_up(path, None),
            Found::Nothing => {
                let beside = scope.file.and_then(Path::parent).filter(|_| !path.contains('/')).map(|at| at.join(path));
                if let Some(Found::File(file)) = beside.map(|path| self.at(&path)).transpose()? {
                    self.push_code(file, language);
                }
            }
        }
        Ok(())
    }
}

/// Text in the command line that a command reads as its input.
fn input(redirects: &[Redirect]) -> Option<&Word> {
    let is_input = |redirect: &&Redirect| match redirect {
        Redirect::Write(_) => false,
        Redirect::Read { input, .. }
        | Redirect::Duplicate { input, .. }
        | Redirect::Text { input, .. }
        | Redirect::Document { input, .. } => *input,
    };
    let last = redirects.iter().rev().find(is_input)?;
    matches!(last, Redirect::Text { .. } | Redirect::Document { .. }).then(|| last.word())?
}

/// A word that only sets a variable.
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

    /// The files that a line covers beside `run.sh`, and what it leaves uncovered.
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
        let line = CommandLine { shell: Some(line.to_owned()), ..CommandLine::default() };
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

    /// Files that source one another and text that nests without end: either is read to an end, on the stack of a thread.
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
