//! Finds what code in a file starts or executes, apart from loading modules. Such code names files relative to the
//! working folder, so these run in place and are reported. A name that is only known at run time is reported as well.

use std::collections::BTreeSet;
use std::path::Path;

use super::argument::Names;
use super::script::{self, Language};
use super::shell::Scope;
use super::starters::{self, Takes};
use super::{CoverageError, FoundName, Search};

/// Modules and words that Python needs to start anything.
const PYTHON_STARTS: &[&str] = &["subprocess", "os.", "runpy", "asyncio", "ctypes", "from os"];
/// Functions of Python that execute text, or a file that their arguments name.
const PYTHON_EXECUTES: &[&str] =
    &["exec(", "eval(", "execfile(", "compile(", "spec_from_file_location(", "SourceFileLoader(", "load_source("];
/// Words by which Python code adds folders of modules.
const PYTHON_LOOKS_UP: &[&str] = &[
    "sys.path.insert(",
    "sys.path.append(",
    "sys.path.extend(",
    "addsitedir(",
    "sys.path +=",
    "sys.path =",
    "sys.path[:0] =",
    "sys.path[0:0] =",
    "sys.path[0] =",
];
/// Words of Perl, Ruby and similar languages before the name of a file.
const LOADS: &[&str] =
    &["require_relative", "require_once", "include_once", "require", "include", "load", "do", "dofile", "loadfile"];
/// Expressions for the place of the code itself, which is in the copy.
const OWN_PLACE: &[&str] = &["__file__", "__dir__", "__FILE__", "__DIR__", "FindBin", "__dirname", "import.meta"];
/// The most names of one file that are looked up.
const MOST_NAMES: usize = 2_000;
/// The longest call that is read.
const LONGEST_CALL: usize = 2_000;

impl Search<'_> {
    /// Finds what a file of code starts or executes.
    pub(super) fn launches(&mut self, text: &str, language: Language, file: &Path) -> Result<(), CoverageError> {
        match language {
            Language::Shell => return Ok(()),
            Language::Python => self.executes(text, file)?,
            Language::Other => self.loads_made_up(text, file),
            Language::Node => {}
        }
        self.started_by_code(text, language, file)?;
        let can_start = language != Language::Python || PYTHON_STARTS.iter().any(|word| text.contains(word));
        let starts = starters::starts(language).filter(|_| can_start);
        let calls: Vec<&str> = starts.flat_map(|start| calls(text, start)).collect();
        let named: BTreeSet<&str> = calls.iter().flat_map(|call| words(call)).collect();
        for name in named.iter().take(MOST_NAMES) {
            if let FoundName::File(found) = self.named(name)? {
                let (code, place) = (self.short(&found), self.short(file));
                self.coverage.uncovered.push(format!("`{code}`, which `{place}` runs, is not taken from the copy"));
                self.push_code(found, None);
            }
        }
        // A call may get its file name from elsewhere in the code.
        let others: BTreeSet<&str> = if calls.is_empty() { BTreeSet::new() } else { words(text).collect() };
        let others = others.difference(&named).filter(|name| is_path(name));
        if named.len().max(others.clone().count()) > MOST_NAMES {
            let short = self.short(file);
            self.coverage.uncovered.push(format!("`{short}` has too many names to look for files among them"));
        }
        for name in others.take(MOST_NAMES) {
            let (known, from_here) = (self.coverage.files.len(), self.from_here);
            if let FoundName::File(found) = self.named(name)? {
                if script::looks_like_code(&found) {
                    self.push_code(found, None);
                } else {
                    self.coverage.files.truncate(known);
                    self.from_here = from_here;
                }
            }
        }
        Ok(())
    }

    /// Reads the commands of calls as shell text, and reports starting functions that are used as values.
    fn started_by_code(&mut self, text: &str, language: Language, file: &Path) -> Result<(), CoverageError> {
        if !matches!(language, Language::Python | Language::Node) {
            return Ok(());
        }
        for passed in starters::passed_on(text, language) {
            self.made_up(passed, Some(file));
        }
        let starters = match language {
            Language::Node => starters::node(text),
            _ if PYTHON_STARTS.iter().any(|word| text.contains(word)) => starters::python(text),
            _ => return Ok(()),
        };
        let names = Names::new(text, language);
        let mut commands = BTreeSet::new();
        for starter in &starters {
            for (_, call, _) in call_sites(text, &starter.start).filter(|(before, ..)| starter.is_meant(before)) {
                if call.trim().is_empty() || is_own_place(call) {
                    continue;
                }
                if starter.takes == Takes::Code {
                    if script::quoted(call).is_none() {
                        self.made_up(&script::shown(&starter.start, call), Some(file));
                    }
                } else if commands.len() < MOST_NAMES {
                    commands.insert(names.command(call, starter.takes));
                }
            }
        }
        for command in commands {
            self.edits_of(&command, &mut Scope::in_file(Some(file)))?;
        }
        Ok(())
    }

    fn executes(&mut self, text: &str, file: &Path) -> Result<(), CoverageError> {
        for start in PYTHON_EXECUTES {
            let is_own = |call: &&str| script::quoted(call).is_some_and(|_| start.len() < 10) || is_own_place(call);
            for call in calls(text, start).into_iter().filter(|call| !is_own(call)) {
                self.made_up(&script::shown(start, call), Some(file));
            }
        }
        for start in PYTHON_LOOKS_UP {
            let found: Vec<&str> = calls(text, start);
            for call in found.into_iter().filter(|call| !is_own_place(call)) {
                let is_plain = starters::is_list_of_literals(call);
                if !is_plain && (call.contains(['"', '\'']) || !is_own_place(text)) {
                    self.made_up(&script::shown(start, call), Some(file));
                }
                for name in words(call) {
                    if let FoundName::Folder(folder) = self.named(name)? {
                        self.whole_folder(&folder);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reports names after `require` and similar words that are not literals.
    fn loads_made_up(&mut self, text: &str, file: &Path) {
        for line in text.lines().map(str::trim_start).filter(|line| !is_own_place(line)) {
            let Some((word, rest)) = LOADS.iter().find_map(|word| Some((*word, line.strip_prefix(word)?))) else {
                continue;
            };
            let Some(name) = rest.strip_prefix([' ', '(']).map(|name| name.trim_start_matches([' ', '('])) else {
                continue;
            };
            let is_variable = name.starts_with('$');
            // `do` begins a block, and `require` takes the name of a module.
            let is_name = !matches!(word, "do" | "require" | "include")
                || file.extension().is_some_and(|end| end == "rb" && word != "do");
            let is_value = is_name && name.starts_with(|first: char| first.is_lowercase()) || name.starts_with("File.");
            let is_filled = name.starts_with('"') && name.contains(['$', '#'])
                || name.starts_with(['"', '\'']) && name.contains(" + ");
            if is_variable || is_value || is_filled {
                self.made_up(line.trim_end(), Some(file));
            }
        }
    }
}

/// Whether a word looks like the path of a script.
fn is_path(word: &str) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '/' | '_' | '-');
    word.chars().all(is_plain) && (word.contains('/') || Language::of_file(Path::new(word), "").is_some())
}

fn is_own_place(text: &str) -> bool {
    OWN_PLACE.iter().any(|sign| text.contains(sign))
}

/// The arguments of each call with this beginning; without a bracket, the rest of the line.
pub(super) fn calls<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let is_method = |before: &str| {
        before.ends_with('.') && matches!(start, "compile(" | "exec(" | "eval(") && !before.ends_with("builtins.")
    };
    let mut found = Vec::new();
    for (_, call, rest) in call_sites(text, start).filter(|(before, ..)| !is_method(before)) {
        // `open` runs a program only if there is a `|` in its argument.
        found.extend(Some(call).filter(|call| start != "open" || call.contains('|')));
        // In backticks and `qx`, the quoted text itself runs.
        if start == "`" || start == "qx" {
            found.extend(rest.split(['`', ')', '}']).next());
        }
    }
    found
}

/// For each call with this beginning: the text before it, its arguments, and the text after its beginning.
fn call_sites<'a>(text: &'a str, start: &str) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
    let has_bracket = start.ends_with('(');
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(start).filter_map(move |(at, start)| {
        let before = text.get(..at).unwrap_or_default();
        let rest = text.get(at + start.len()..).unwrap_or_default();
        let goes_on = !has_bracket && start != "`" && rest.starts_with(is_part);
        if start != "`" && before.ends_with(is_part) || before.ends_with("def ") || goes_on {
            return None;
        }
        let mut depth = 1_usize;
        let end = rest.char_indices().take(LONGEST_CALL).find(|(_, letter)| {
            match letter {
                '(' if has_bracket => depth += 1,
                ')' if has_bracket => depth -= 1,
                '\n' if !has_bracket => depth = 0,
                _ => {}
            }
            depth == 0
        });
        let end = end.map(|(end, _)| end).or_else(|| rest.char_indices().nth(LONGEST_CALL).map(|(end, _)| end));
        Some((before, rest.get(..end.unwrap_or(rest.len()))?, rest))
    })
}

/// The words of a text that may name files, in quotes and outside.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(['"', '\'', '`']).flat_map(str::split_whitespace);
    parts.filter(|word| {
        word.len() < 256 && word.starts_with(|first: char| first.is_alphanumeric() || matches!(first, '.' | '/' | '_'))
    })
}
