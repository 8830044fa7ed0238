//! The code that shell text runs: what stands where a command, a script or a sourced file stands.
//!
//! The text is split into simple commands by its letters alone; what this misreads is at most a file too many or a name
//! that counts as made up.

use std::path::{Path, PathBuf};

use ollm_protocol::hook::{Runs, runs};

use super::script::Language;
use super::{Found, Search, TooMuch, runner};

/// Words after which a command follows.
const BEFORE: &[&str] = &[
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "exec", "command", "builtin", "nohup", "sudo",
    "nice", "time", "env", "xargs", "timeout", "setsid", "stdbuf",
];
/// Deeper nesting is not read.
const DEEPEST: usize = 8;

/// What is known while text is read.
#[derive(Clone, Default)]
struct Scope<'a> {
    /// The file the text stands in; none for a command line, whose every part somebody wrote for this hook.
    file: Option<&'a Path>,
    /// Variables that the text itself sets.
    set: Vec<(String, String)>,
    depth: usize,
}

impl Search<'_> {
    /// A line that a shell runs: every name in it counts, and what is made up is told.
    pub(super) fn shell(&mut self, text: &str) -> Result<(), TooMuch> {
        self.text(text)?;
        self.commands(text, &mut Scope::default())
    }

    /// A script: what it sources and starts counts.
    pub(super) fn shell_script(&mut self, text: &str, file: Option<&Path>) -> Result<(), TooMuch> {
        self.commands(text, &mut Scope { file, ..Scope::default() })
    }

    fn commands(&mut self, text: &str, scope: &mut Scope<'_>) -> Result<(), TooMuch> {
        if scope.depth > DEEPEST {
            return Ok(());
        }
        for words in split(text) {
            for inner in words.iter().flat_map(|word| substitutions(word)) {
                let mut inside = Scope { depth: scope.depth + 1, ..scope.clone() };
                self.commands(&inner, &mut inside)?;
            }
            self.simple(&words, scope)?;
        }
        Ok(())
    }

    fn simple(&mut self, words: &[String], scope: &mut Scope<'_>) -> Result<(), TooMuch> {
        let mut words = words;
        let mut skipping = false;
        while let Some((first, rest)) = words.split_first() {
            if let Some((name, value)) = assignment(first) {
                if let Some(value) = self.resolved(value, scope) {
                    if rest.is_empty() {
                        scope.set.push((name.to_owned(), value));
                    } else {
                        self.variable(name, &value)?;
                    }
                }
            } else if BEFORE.contains(&first.as_str()) {
                skipping = true;
            } else if !(skipping && (first.starts_with('-') || first.starts_with(|c: char| c.is_ascii_digit()))) {
                break;
            }
            words = rest;
        }
        let Some((first, args)) = words.split_first() else { return Ok(()) };
        match first.as_str() {
            "." | "source" => match args.first() {
                Some(name) => self.sourced(name, scope),
                None => Ok(()),
            },
            "cd" | "pushd" => {
                self.enter(args, scope);
                Ok(())
            }
            "eval" if scope.file.is_none() => {
                self.made_up(&format!("eval {}", args.join(" ")), None);
                Ok(())
            }
            _ => self.started(first, args, scope),
        }
    }

    fn sourced(&mut self, name: &str, scope: &Scope<'_>) -> Result<(), TooMuch> {
        if let Some(path) = self.resolved(name, scope) {
            return self.shell_file(&path, scope, Some(Language::Shell));
        }
        self.made_up(name, scope.file);
        Ok(())
    }

    /// What follows is meant from another folder.
    fn enter(&mut self, args: &[String], scope: &Scope<'_>) {
        let target = args.iter().find(|arg| !arg.starts_with('-')).and_then(|arg| self.resolved(arg, scope));
        let Some(target) = target else { return };
        for folder in self.here.clone() {
            let entered = super::plain(&folder.join(&target));
            if entered.starts_with(&self.places.top) && !self.here.contains(&entered) && self.here.len() < 16 {
                self.here.push(entered);
            }
        }
    }

    fn started(&mut self, first: &str, args: &[String], scope: &mut Scope<'_>) -> Result<(), TooMuch> {
        let Some(program) = self.resolved(first, scope) else {
            if scope.file.is_none() {
                self.made_up(first, None);
            }
            return Ok(());
        };
        if program.contains('/') {
            self.shell_file(&program, scope, None)?;
        }
        if scope.file.is_none() {
            self.coverage.uncovered.extend(runner::uncovered(&program, args, &self.places.top));
        }
        let Some(language) = Language::of_interpreter(&program) else { return Ok(()) };
        let known: Vec<String> = args.iter().map(|arg| self.resolved(arg, scope).unwrap_or_default()).collect();
        match runs(&program, args) {
            Runs::Script(index) => match known.get(index).filter(|path| !path.is_empty()) {
                Some(path) => self.shell_file(path, scope, Some(language))?,
                None if scope.file.is_none() => self.made_up(args.get(index).map_or("", String::as_str), None),
                None => {}
            },
            Runs::Code => {
                for module in super::modules(args, Runs::Itself) {
                    self.module(module)?;
                }
                for code in args.iter().filter(|arg| !arg.starts_with('-')) {
                    match language {
                        Language::Shell => {
                            let mut inside = Scope { depth: scope.depth + 1, ..scope.clone() };
                            self.commands(code, &mut inside)?;
                        }
                        other => self.read(code, other, None)?,
                    }
                }
            }
            Runs::Input if scope.file.is_none() => {
                self.coverage.uncovered.push(format!("`{program}` runs what it reads"));
            }
            Runs::Itself | Runs::Input | Runs::Nothing => {}
        }
        if language == Language::Node {
            self.runs(&program, &known, Runs::Itself)?;
        }
        Ok(())
    }

    /// A file that runs, meant from the working folder or from the place of the script.
    fn shell_file(&mut self, path: &str, scope: &Scope<'_>, language: Option<Language>) -> Result<(), TooMuch> {
        match self.named(path)? {
            Found::File(file) => self.push_code(file, language),
            Found::Folder(folder) => self.whole_folder(&folder),
            Found::Nothing => {
                let beside = scope.file.and_then(Path::parent).filter(|_| !path.contains('/')).map(|at| at.join(path));
                if let Some(Found::File(file)) = beside.map(|path| self.at(&path)).transpose()? {
                    self.push_code(file, language);
                }
            }
        }
        Ok(())
    }

    /// A word with its variables filled in, as far as they are known.
    fn resolved(&self, word: &str, scope: &Scope<'_>) -> Option<String> {
        let mut text = String::new();
        let mut rest = word;
        while let Some(at) = rest.find(['$', '`']) {
            text.push_str(rest.get(..at)?);
            rest = rest.get(at..)?;
            let (value, length) = self.expansion(rest, scope)?;
            text.push_str(&value);
            rest = rest.get(length..)?;
        }
        text.push_str(rest);
        (!text.contains("{{")).then_some(text)
    }

    /// What a `$…` at the beginning stands for, and how long it is.
    fn expansion(&self, text: &str, scope: &Scope<'_>) -> Option<(String, usize)> {
        let here = || self.here.first().map(|here| here.display().to_string());
        let own = || scope.file.and_then(Path::parent).map(|own| own.display().to_string());
        if text.starts_with("$(") {
            let length = closing(text, '(', ')')?;
            let inner = text.get(2..length - 1)?;
            let value = match inner.trim() {
                "pwd" => here(),
                "git rev-parse --show-toplevel" => Some(self.places.top.display().to_string()),
                inner if inner.contains("dirname") && (inner.contains("$0") || inner.contains("BASH_SOURCE")) => {
                    let up = "/..".repeat(inner.matches("/..").count());
                    own().map(|own| format!("{own}{up}"))
                }
                _ => None,
            };
            return value.map(|value| (value, length));
        }
        let (name, length) = if text.starts_with("${") {
            let length = closing(text, '{', '}')?;
            (text.get(2..length - 1)?, length)
        } else {
            let name = text.get(1..)?;
            let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
            (name.get(..end).filter(|name| !name.is_empty())?, end + 1)
        };
        let value = match name {
            "0%/*" | "BASH_SOURCE%/*" | "BASH_SOURCE[0]%/*" => own(),
            _ => self.value(name, scope),
        };
        value.map(|value| (value, length))
    }

    fn value(&self, name: &str, scope: &Scope<'_>) -> Option<String> {
        let (name, default) = name.split_once(":-").map_or((name, None), |(name, default)| (name, Some(default)));
        let set = scope.set.iter().rev().find(|(set, _)| set == name).map(|(_, value)| value.clone());
        let folder =
            || self.folders.iter().find(|(known, _)| *known == name).map(|(_, path)| path.display().to_string());
        let here = || self.here.first().filter(|_| name == "PWD").map(|here: &PathBuf| here.display().to_string());
        set.or_else(folder).or_else(here).or_else(|| default.map(str::to_owned))
    }
}

/// A word that only sets a variable.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let first = name.chars().next()?;
    let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    (plain && !first.is_ascii_digit()).then_some((name, value))
}

/// How long the text in brackets at the beginning is, with the brackets and what stands before them.
fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        if letter == open {
            depth += 1;
        } else if letter == close {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at + letter.len_utf8());
            }
        }
    }
    None
}

/// The commands in a word's `$(…)` and backticks.
fn substitutions(word: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.find("$(") {
        rest = rest.get(at..).unwrap_or_default();
        let Some(length) = closing(rest, '(', ')') else { break };
        found.extend(rest.get(2..length - 1).map(str::to_owned));
        rest = rest.get(length..).unwrap_or_default();
    }
    found.extend(word.split('`').skip(1).step_by(2).map(str::to_owned));
    found
}

/// The simple commands of a text, each as its words without quotes. Redirections and comments are left out.
fn split(text: &str) -> Vec<Vec<String>> {
    let mut splitter = Splitter::default();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                None | Some((_, '\n')) => {}
                Some((_, next)) => splitter.push(next),
            },
            '\'' => {
                splitter.open();
                for (_, inner) in letters.by_ref().take_while(|(_, inner)| *inner != '\'') {
                    splitter.push(inner);
                }
            }
            '"' => {
                splitter.open();
                while let Some((at, inner)) = letters.next() {
                    match inner {
                        '"' => break,
                        '\\' => {
                            if let Some((_, next)) = letters.next() {
                                splitter.push(next);
                            }
                        }
                        '$' if text.get(at..).is_some_and(|rest| rest.starts_with("$(")) => {
                            let length = text.get(at..).and_then(|rest| closing(rest, '(', ')')).unwrap_or(1);
                            splitter.take(text, at, length);
                            while letters.next_if(|(next, _)| *next < at + length).is_some() {}
                        }
                        other => splitter.push(other),
                    }
                }
            }
            '$' if matches!(letters.peek(), Some((_, '(' | '{'))) => {
                let (open, close) = if matches!(letters.peek(), Some((_, '('))) { ('(', ')') } else { ('{', '}') };
                let length = text.get(at..).and_then(|rest| closing(rest, open, close)).unwrap_or(1);
                splitter.take(text, at, length);
                while letters.next_if(|(next, _)| *next < at + length).is_some() {}
            }
            '`' => {
                let length = text.get(at + 1..).and_then(|rest| rest.find('`')).map_or(1, |end| end + 2);
                splitter.take(text, at, length);
                while letters.next_if(|(next, _)| *next < at + length).is_some() {}
            }
            '#' if splitter.word.is_none() => while letters.next_if(|(_, next)| *next != '\n').is_some() {},
            '<' | '>' => splitter.redirect(),
            '&' if splitter.redirects => {}
            ';' | '|' | '&' | '\n' | '(' | ')' => splitter.end_command(),
            letter if letter.is_whitespace() => splitter.end_word(),
            other => splitter.push(other),
        }
    }
    splitter.end_command();
    splitter.commands
}

#[derive(Default)]
struct Splitter {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    /// The next word is where output goes to or input comes from.
    redirects: bool,
}

impl Splitter {
    fn open(&mut self) {
        self.word.get_or_insert_default();
    }

    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    fn take(&mut self, text: &str, at: usize, length: usize) {
        let taken = text.get(at..at + length).unwrap_or_default();
        self.word.get_or_insert_default().push_str(taken);
    }

    fn redirect(&mut self) {
        // `2>` names a descriptor, no word.
        if self.word.as_ref().is_some_and(|word| word.chars().all(|letter| letter.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.redirects = true;
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.redirects)
        {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.redirects = false;
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_into_commands() {
        for (text, expected) in [
            ("sh a.sh && ./b 'c d' \"e $X\"", "sh a.sh|./b c d e $X"),
            ("cd srv; . \"$(dirname \"$0\")/lib.sh\" # no", "cd srv|. $(dirname \"$0\")/lib.sh"),
            ("a 2>&1 >out <in | b", "a|b"),
            ("x=$(cat y | z) ./run", "x=$(cat y | z) ./run"),
            ("if test -f a; then\n  source b\nfi", "if test -f a|then|source b|fi"),
        ] {
            let found: Vec<String> = split(text).iter().map(|words| words.join(" ")).collect();
            assert_eq!(found.join("|"), expected, "{text}");
        }
    }
}
