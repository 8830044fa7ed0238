//! Finds what code loads by the words that load it: `import`, `from`, `require`. Names in comments and strings count,
//! too.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ollm_protocol::hook::Runs;
use ollm_shell::{Shebang, is_posix_shell, is_shell, program_stem};
use ollm_store::raw::open_regular;
use ollm_store::tree;
use rustix::fs::OFlags;

use super::launch::calls;
use super::{CoverageError, FoundName, Search, command, loader};

/// A language whose ways to load code are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Shell,
    Python,
    Node,
    /// Perl, Ruby and similar languages: quoted file names count.
    Other,
}

/// Suffixes that Node tries for a name.
const NODE_ENDINGS: &[&str] =
    &["", ".js", ".mjs", ".cjs", ".json", ".node", ".ts", "/index.js", "/index.mjs", "/index.cjs", "/package.json"];

/// The most extra names for the loading function that are followed.
const MOST_LOADERS: usize = 16;
/// Suffixes that Perl, Ruby and similar languages try for a name.
const OTHER_ENDINGS: &[&str] = &["", ".rb", ".pm", ".lua"];
/// Words by which Perl, Ruby and similar languages add folders of code.
const LOOKS_UP: &[&str] = &["use lib", "@INC", "$LOAD_PATH", "$:.", "$: <<", "package.path", "include_path"];
/// Suffixes of code for interpreters that are not read here.
const CODE_ENDINGS: &[&str] = &[
    "awk", "bc", "c", "cc", "clj", "cpp", "cr", "cs", "csh", "cxx", "d", "dart", "el", "erl", "exp", "fish", "fs",
    "gdb", "go", "groovy", "h", "hpp", "hs", "java", "jl", "jq", "jsx", "kt", "kts", "lisp", "m4", "mk", "ml", "nim",
    "pm", "ps1", "r", "R", "rs", "s", "S", "scala", "scm", "sed", "sql", "swift", "t", "tcl", "tsx", "vim", "zig",
];

impl Language {
    /// The language of an interpreter, by its name.
    pub(super) fn of_interpreter(command: &str) -> Option<Language> {
        match program_stem(command) {
            shell if is_posix_shell(shell) => Some(Language::Shell),
            shell if is_shell(shell) => Some(Language::Other),
            "python" => Some(Language::Python),
            "node" | "nodejs" | "deno" | "bun" | "tsx" | "ts-node" => Some(Language::Node),
            "perl" | "ruby" | "php" | "lua" => Some(Language::Other),
            _ => None,
        }
    }

    /// The language of a file, by its name and first line.
    pub(super) fn of_file(file: &Path, text: &str) -> Option<Language> {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some(ending) if is_posix_shell(ending) => return Some(Language::Shell),
            Some("py") => return Some(Language::Python),
            Some("js" | "mjs" | "cjs" | "ts" | "mts" | "cts") => return Some(Language::Node),
            Some("pl" | "rb" | "php" | "lua") => return Some(Language::Other),
            Some("json") => return None,
            _ => {}
        }
        let Shebang { program, args, .. } = Shebang::read(text)?;
        // The first word may only start the interpreter, as `nice` does.
        std::iter::once(&program).chain(&args).find_map(|word| Language::of_interpreter(word))
    }

    /// Whether code asks for its own place, to find other files from there.
    pub(super) fn looks_beside_itself(self, text: &str) -> bool {
        let signs: &[&str] = match self {
            Language::Shell => &["$0", "${0", "BASH_SOURCE"],
            Language::Python => &["__file__", "pkgutil", "importlib"],
            Language::Node => &["__dirname", "__filename", "import.meta", "require.main"],
            Language::Other => &["__FILE__", "__DIR__", "__dir__", "FindBin"],
        };
        signs.iter().any(|sign| text.contains(sign))
    }
}

/// The words of a first line that may name files, including the values of its variables.
pub(super) fn first_line(text: &str) -> Vec<String> {
    let Some(Shebang { interpreter, options, variables, program, args, .. }) = Shebang::read(text) else {
        return Vec::new();
    };
    let values = variables.into_iter().map(|(_, value)| value);
    [interpreter].into_iter().chain(options).chain(values).chain([program]).chain(args).collect()
}

/// The words of a first line that make the interpreter load more code than the script: `-m tool`, `-Ilib`, `-r./x`.
pub(super) fn runs_beside(text: &str) -> Vec<String> {
    let Some(Shebang { program, args, .. }) = Shebang::read(text) else { return Vec::new() };
    let modules = match Language::of_interpreter(&program) {
        Some(Language::Python) => command::modules(&args, Runs::Itself),
        _ => Vec::new(),
    };
    // The first word is a program, or the script.
    let files = loader::code_files(&program, &args).into_iter().filter(|(at, option, _)| *at > 0 || !option.is_empty());
    let files = files.map(|(_, _, name)| name);
    let named = modules.into_iter().chain(files).chain(loader::code_folders(&program, &args));
    named.filter(|name| !name.starts_with('/')).map(str::to_owned).collect()
}

/// Refuses a first line whose interpreter, or whose search path, is relative. The kernel and `env` would look for it in
/// the working folder.
pub(crate) fn absolute_interpreter(file: &Path, text: &str) -> Result<(), CoverageError> {
    let Some(shebang) = Shebang::read(text) else { return Ok(()) };
    let search_paths = shebang.variables.iter().filter(|(name, _)| name == "PATH");
    let places = search_paths.flat_map(|(_, path)| path.split(':'));
    let program = Some(&*shebang.program).filter(|program| program.contains('/'));
    let mut named = std::iter::once(&*shebang.interpreter).chain(program).chain(places);
    match named.find(|name| !name.starts_with('/')) {
        Some(name) => Err(CoverageError::RelativeInterpreter { file: file.to_owned(), name: name.to_owned() }),
        None => Ok(()),
    }
}

/// Whether the beginning of a file shows that it is not text.
pub(crate) fn is_binary(file: &Path) -> bool {
    let mut start = [0; 1024];
    let opened = open_regular(file, OFlags::empty()).ok().flatten();
    let count = opened.and_then(|(mut file, _)| file.read(&mut start).ok()).unwrap_or(0);
    start.get(..count).is_some_and(|start| start.contains(&0))
}

/// Whether a file is code by its name, its mode or its first line.
pub(super) fn looks_like_code(file: &Path) -> bool {
    let executable = || file.metadata().is_ok_and(|meta| tree::is_executable(&meta));
    let first = || {
        let mut start = [0; 128];
        let count = File::open(file).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
        String::from_utf8_lossy(start.get(..count).unwrap_or_default()).into_owned()
    };
    let has_ending = |ending: &std::ffi::OsStr| CODE_ENDINGS.iter().any(|known| ending == *known);
    executable() || file.extension().is_some_and(has_ending) || Language::of_file(file, &first()).is_some()
}

/// The files that Node may load for a name.
pub(super) fn node_files(name: &str) -> Vec<String> {
    NODE_ENDINGS.iter().map(|ending| format!("{name}{ending}")).collect()
}

/// The files that Perl, Ruby and similar languages may load for a name.
pub(super) fn other_files(name: &str) -> Vec<String> {
    OTHER_ENDINGS.iter().map(|ending| format!("{name}{ending}")).collect()
}

impl Search<'_> {
    pub(super) fn python(&mut self, text: &str, at: Option<(&Path, &Path)>) -> Result<(), CoverageError> {
        let mut folders: Vec<PathBuf> = match at {
            Some((_, root)) => vec![root.to_owned()],
            None => self.here.clone(),
        };
        folders.extend(self.roots.iter().cloned());
        let beside = at.and_then(|(file, _)| file.parent());
        for (name, items) in imports(text) {
            let dots = name.chars().take_while(|letter| *letter == '.').count();
            let module = name.trim_start_matches('.');
            let within: Vec<PathBuf> = match (dots, beside) {
                (0, _) => folders.clone(),
                (dots, Some(beside)) => beside.ancestors().nth(dots - 1).map(Path::to_owned).into_iter().collect(),
                (_, None) => Vec::new(),
            };
            for folder in within {
                let root = folders.first().cloned().unwrap_or_else(|| folder.clone());
                let mut found = self.module_in(module, &folder, &root)?;
                for item in &items {
                    let dot = if module.is_empty() { "" } else { "." };
                    found |= self.module_in(&format!("{module}{dot}{item}"), &folder, &root)?;
                }
                // Inline code finds modules through the working folder.
                if at.is_none() && found {
                    self.coverage.modules = self.places.here.first().cloned();
                }
            }
        }
        for call in ["import_module(", "__import__(", "run_path(", "run_module("] {
            for rest in calls(text, call) {
                match quoted(rest) {
                    Some(name) => self.loaded_by_name(name, &folders)?,
                    None => self.made_up(&shown(call, rest), at.map(|(file, _)| file)),
                }
            }
        }
        Ok(())
    }

    fn loaded_by_name(&mut self, name: &str, folders: &[PathBuf]) -> Result<(), CoverageError> {
        for folder in folders {
            self.module_in(name, folder, folder)?;
            if let FoundName::File(file) = self.at(&folder.join(name))? {
                self.push_code(file, Some(Language::Python));
            }
        }
        Ok(())
    }

    pub(super) fn node(&mut self, text: &str, file: Option<&Path>) -> Result<(), CoverageError> {
        let beside = file.and_then(Path::parent).map(Path::to_owned);
        let folders: Vec<PathBuf> = beside.map_or_else(|| self.here.clone(), |beside| vec![beside]);
        for folder in folders.iter().flat_map(|folder| folder.ancestors()) {
            // `package.json` says how Node reads the files around it.
            if folder.starts_with(&self.places.top) && folder.join("package.json").is_file() {
                self.coverage.needs_its_place = true;
            }
        }
        let own = own_loaders(text);
        let own: Vec<String> = own.into_iter().map(|name| format!("{name}(")).collect();
        let loaders = ["require(", "import(", "require.resolve(", "module.require(", "Module._load("];
        for call in loaders.into_iter().chain(own.iter().map(String::as_str)) {
            for rest in after(text, call) {
                match quoted(rest) {
                    Some(name) => self.node_name(name, &folders, file)?,
                    // A declaration of such a function, as bundlers write it, loads nothing.
                    None if rest.trim_start().starts_with(')') => {}
                    None => self.made_up(&shown(call, rest), file),
                }
            }
        }
        for rest in after_all(text, "createRequire(") {
            let place = rest.split(')').next().unwrap_or_default();
            let is_beside = place.contains("import.meta") || place.contains("__filename");
            let loaded = rest.get(place.len()..).and_then(|rest| rest.trim_start_matches(')').strip_prefix('('));
            match (is_beside, loaded.map(quoted)) {
                (true, Some(Some(name))) => self.node_name(name, &folders, file)?,
                (true, None) => {}
                _ => self.made_up(&shown("createRequire(", rest), file),
            }
        }
        for word in ["from", "import"] {
            for rest in after(text, word) {
                if let Some(name) = quoted(rest) {
                    self.node_name(name, &folders, file)?;
                }
            }
        }
        Ok(())
    }

    fn node_name(&mut self, name: &str, folders: &[PathBuf], file: Option<&Path>) -> Result<(), CoverageError> {
        for folder in folders {
            if name.starts_with('.') || name.starts_with('/') || name.starts_with("file://") {
                for candidate in node_files(name.strip_prefix("file://").unwrap_or(name)) {
                    if let FoundName::File(found) = self.at(&folder.join(candidate))? {
                        self.push_code(found, Some(Language::Node));
                        break;
                    }
                }
                continue;
            }
            let mut parts = name.split('/');
            let first = parts.next().unwrap_or_default();
            let package = match parts.next() {
                Some(second) if first.starts_with('@') => format!("{first}/{second}"),
                _ => first.to_owned(),
            };
            let top = self.places.top.clone();
            for ancestor in folder.ancestors().take_while(|ancestor| ancestor.starts_with(&top)) {
                if !package.is_empty()
                    && let FoundName::Folder(_) = self.at(&ancestor.join("node_modules").join(&package))?
                {
                    self.coverage.needs_its_place = true;
                    let place = file.map(|file| format!(", which `{}` loads", self.short(file))).unwrap_or_default();
                    let what = format!("`{package}` in node_modules of the project is not looked through{place}");
                    self.coverage.uncovered.push(what);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Covers quoted file names, relative to the code's place or to the working folder.
    pub(super) fn literals(&mut self, text: &str, file: Option<&Path>) -> Result<(), CoverageError> {
        // These words look up code by a module name in a folder.
        if let (Some(file), Some(sign)) = (file, LOOKS_UP.iter().find(|sign| text.contains(*sign))) {
            let short = self.short(file);
            let what = format!("`{sign}` in `{short}` leads to a folder, and anything in it may run");
            self.coverage.uncovered.push(what);
        }
        let beside = file.and_then(Path::parent).map(Path::to_owned);
        let folders: Vec<PathBuf> = beside.into_iter().chain(self.here.clone()).collect();
        for name in text.split(['"', '\'']).filter(|name| !name.contains(char::is_whitespace) && name.len() < 256) {
            for folder in &folders {
                for candidate in other_files(name) {
                    if name.is_empty() {
                        continue;
                    }
                    if let FoundName::File(found) = self.at(&folder.join(candidate))? {
                        self.push_code(found, Some(Language::Other));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The modules that Python code imports, each with the imported names.
fn imports(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let name = |text: &str| -> String {
        text.trim().chars().take_while(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '.')).collect()
    };
    let starts = std::iter::once(0).chain(text.match_indices(['\n', ';', ':']).map(|(at, _)| at + 1));
    for start in starts {
        let rest = text.get(start..).unwrap_or_default().trim_start_matches([' ', '\t']);
        let line = rest.lines().next().unwrap_or_default();
        if let Some(list) = line.strip_prefix("import ") {
            found.extend(list.split(',').map(|one| (name(one), Vec::new())));
        } else if let Some(from) = rest.strip_prefix("from ")
            && let Some((module, list)) = from.split_once("import")
            && !module.contains('\n')
        {
            let list = list.trim_start_matches([' ', '\t']);
            let list = match list.strip_prefix('(') {
                Some(long) => long.split(')').next().unwrap_or_default(),
                None => list.lines().next().unwrap_or_default(),
            };
            let items = list.split(',').map(name).filter(|item| !item.is_empty()).collect();
            found.push((name(module), items));
        }
    }
    found.retain(|(module, items)| !module.is_empty() || !items.is_empty());
    found
}

/// The names that code itself gives to the loading function.
fn own_loaders(text: &str) -> Vec<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
    let mut found = Vec::new();
    for (at, _) in text.match_indices("createRequire(").take(MOST_LOADERS) {
        let before = text.get(..at).unwrap_or_default();
        let before = before.trim_end_matches(|letter| is_part(letter) || letter == '.').trim_end();
        let Some(name) = before.strip_suffix('=').map(str::trim_end) else { continue };
        let name = name.rsplit(|letter| !is_part(letter)).next().unwrap_or_default();
        if !name.is_empty() && name != "require" {
            found.push(name);
        }
    }
    found
}

/// The text after each call of a function, including calls as a method.
fn after_all<'a>(text: &'a str, call: &str) -> Vec<&'a str> {
    text.match_indices(call).filter_map(|(at, call)| text.get(at + call.len()..)).collect()
}

/// The text after each place where a word is not part of a longer word.
fn after<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
    let alone = |at: usize| !text.get(..at).unwrap_or_default().ends_with(|letter| is_part(letter) || letter == '.');
    let places = text.match_indices(word).filter(|(at, _)| alone(*at));
    places.filter_map(|(at, word)| text.get(at + word.len()..)).collect()
}

/// The quoted text at the beginning, if it has no placeholders.
pub(super) fn quoted(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\'' | '`'))?;
    let inner = text.get(1..)?.split(quote).next()?;
    let follows = text.get(inner.len() + 2..).unwrap_or_default().trim_start();
    (!inner.contains("${") && !inner.contains('\n') && !follows.starts_with('+')).then_some(inner)
}

pub(super) fn shown(call: &str, rest: &str) -> String {
    let argument: String = rest.chars().take_while(|letter| !matches!(letter, ')' | '\n')).take(60).collect();
    format!("{call}{argument})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_imports_are_found_in_all_their_forms() {
        let text = "import os, a.b as c\nfrom x import y, z as w\nif 1: import d\n    from . import s\nfrom ..p.q import (\n  r,\n  t)\n";
        let found: Vec<String> =
            imports(text).iter().map(|(name, items)| format!("{name}:{}", items.join(","))).collect();
        assert_eq!(found, ["os:", "a.b:", "x:y,z", "d:", ".:s", "..p.q:r,t"]);
    }

    #[test]
    fn a_name_that_is_put_together_is_no_literal() {
        assert_eq!(quoted("'./x')"), Some("./x"));
        assert_eq!(quoted("\"./x\" + y)"), None);
        assert_eq!(quoted("`./${x}`)"), None);
        assert_eq!(quoted("name)"), None);
    }
}
