//! What code in a file starts or executes other than by the words that load modules. It names files by the working folder,
//! so these run where they are, which is said; so is a name that is put together when it runs.

use std::collections::BTreeSet;
use std::path::Path;

use super::script::{self, Language};
use super::{CoverageError, Found, Search};

/// What starts another program, or executes text.
const STARTS: &[(Language, &[&str])] = &[
    (
        Language::Python,
        &[
            "run(",
            "Popen(",
            "call(",
            "check_call(",
            "check_output(",
            "getoutput(",
            "getstatusoutput(",
            "system(",
            "popen(",
            "run_path(",
            "create_subprocess_exec(",
            "create_subprocess_shell(",
            "execv(",
            "execve(",
            "execl(",
            "execlp(",
            "execvp(",
            "spawnl(",
            "spawnlp(",
            "spawnv(",
            "spawnvp(",
            "posix_spawn(",
            "CDLL(",
        ],
    ),
    (
        Language::Node,
        &[
            "exec(",
            "execSync(",
            "execFile(",
            "execFileSync(",
            "spawn(",
            "spawnSync(",
            "fork(",
            "Worker(",
            "eval(",
            "runInThisContext(",
            "runInNewContext(",
            "runInContext(",
            "Command(",
            "dlopen(",
        ],
    ),
    (
        Language::Other,
        &[
            "system",
            "exec",
            "spawn",
            "popen",
            "qx",
            "`",
            "open",
            "execute",
            "passthru",
            "shell_exec",
            "capture2",
            "capture3",
        ],
    ),
];
/// Modules and words without which Python starts nothing.
const PYTHON_STARTS: &[&str] = &["subprocess", "os.", "runpy", "asyncio", "ctypes", "from os"];
/// Functions of Python that execute text, or a file that their arguments name.
const PYTHON_EXECUTES: &[&str] =
    &["exec(", "eval(", "execfile(", "compile(", "spec_from_file_location(", "SourceFileLoader(", "load_source("];
/// What leads Python to other folders of modules.
const PYTHON_LOOKS_UP: &[&str] = &["sys.path.insert(", "sys.path.append(", "sys.path.extend(", "addsitedir("];
/// Words of Perl, Ruby and the like behind which the name of a file stands.
const LOADS: &[&str] =
    &["require_relative", "require_once", "include_once", "require", "include", "load", "do", "dofile", "loadfile"];
/// What stands for the place of the code itself, which is in the copy.
const OWN_PLACE: &[&str] = &["__file__", "__dir__", "__FILE__", "__DIR__", "FindBin", "__dirname", "import.meta"];
/// More names in one file are not looked up.
const MOST_NAMES: usize = 2_000;
/// No call is read further.
const LONGEST_CALL: usize = 2_000;

impl Search<'_> {
    /// What a file of code starts or executes.
    pub(super) fn launches(&mut self, text: &str, language: Language, file: &Path) -> Result<(), CoverageError> {
        match language {
            Language::Shell => return Ok(()),
            Language::Python => self.executes(text, file)?,
            Language::Other => self.loads_made_up(text, file),
            Language::Node => {}
        }
        let starts = STARTS.iter().find(|(of, _)| *of == language).map_or(&[][..], |(_, starts)| starts);
        let can_start = language != Language::Python || PYTHON_STARTS.iter().any(|word| text.contains(word));
        let calls: Vec<&str> = starts.iter().filter(|_| can_start).flat_map(|start| calls(text, start)).collect();
        let named: BTreeSet<&str> = calls.iter().flat_map(|call| words(call)).collect();
        for name in named.iter().take(MOST_NAMES) {
            if let Found::File(found) = self.named(name)? {
                let (code, place) = (self.short(&found), self.short(file));
                self.coverage.uncovered.push(format!("`{code}`, which `{place}` runs, is not taken from the copy"));
                self.push_code(found, None);
            }
        }
        // A name may be given to a call from elsewhere.
        let others: BTreeSet<&str> = if calls.is_empty() { BTreeSet::new() } else { words(text).collect() };
        let others = others.difference(&named).filter(|name| is_path(name));
        if named.len().max(others.clone().count()) > MOST_NAMES {
            let short = self.short(file);
            self.coverage.uncovered.push(format!("`{short}` has too many names to look for files among them"));
        }
        for name in others.take(MOST_NAMES) {
            let (known, from_here) = (self.coverage.files.len(), self.from_here);
            if let Found::File(found) = self.named(name)? {
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

    fn executes(&mut self, text: &str, file: &Path) -> Result<(), CoverageError> {
        for start in PYTHON_EXECUTES {
            let is_own = |call: &&str| script::quoted(call).is_some_and(|_| start.len() < 10) || is_own_place(call);
            for call in calls(text, start).into_iter().filter(|call| !is_own(call)) {
                self.made_up(&script::shown(start, call), Some(file));
            }
        }
        for start in PYTHON_LOOKS_UP {
            for call in calls(text, start).into_iter().filter(|call| !is_own_place(call)) {
                if !call.contains(['"', '\'']) && !is_own_place(text) {
                    self.made_up(&script::shown(start, call), Some(file));
                }
                for name in words(call) {
                    if let Found::Folder(folder) = self.named(name)? {
                        self.whole_folder(&folder);
                    }
                }
            }
        }
        Ok(())
    }

    /// Names behind `require` and the like that are no literals.
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

/// The arguments of each call that begins so; without a bracket, the rest of the line.
pub(super) fn calls<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let has_bracket = start.ends_with('(');
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut found = Vec::new();
    for (at, _) in text.match_indices(start) {
        let before = text.get(..at).unwrap_or_default();
        let is_method =
            before.ends_with('.') && matches!(start, "compile(" | "exec(" | "eval(") && !before.ends_with("builtins.");
        let rest = text.get(at + start.len()..).unwrap_or_default();
        let goes_on = !has_bracket && start != "`" && rest.starts_with(is_part);
        if start != "`" && before.ends_with(is_part) || is_method || before.ends_with("def ") || goes_on {
            continue;
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
        let call = rest.get(..end.unwrap_or(rest.len()));
        // `open` runs something behind or before a bar only.
        found.extend(call.filter(|call| start != "open" || call.contains('|')));
        // Where a quote is meant, its own text is what runs.
        if start == "`" || start == "qx" {
            found.extend(rest.split(['`', ')', '}']).next());
        }
    }
    found
}

/// What may name files, in quotes and outside of them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(['"', '\'', '`']).flat_map(str::split_whitespace);
    parts.filter(|word| {
        word.len() < 256 && word.starts_with(|first: char| first.is_alphanumeric() || matches!(first, '.' | '/' | '_'))
    })
}
