//! Judges code in the arguments of an interpreter. Files that such code loads from the project have no place in the
//! copy. Instead of finding every way to load a file, the code is uncovered if it has a word that could load one.

use std::path::{Path, PathBuf};

use ollm_process::find_program;

use super::script::Language;
use ollm_store::plain_path;

use super::Search;

/// Options before code, which follows in the next argument or after `=`.
const OPTIONS: &[&str] = &["-c", "-e", "-E", "-r", "-p", "-pe", "--eval", "--print"];
/// The first Python version that can be told not to look for modules in the working folder.
const SAFE_PYTHON: (u32, u32) = (3, 11);

impl Search<'_> {
    /// Reports that code in a program's arguments may load files of the project, unless it clearly loads nothing.
    pub(super) fn inline(&mut self, program: &str, args: &[String], language: Language, file: Option<&Path>) {
        for code in inline_code(program, args) {
            self.inline_text(program, &code, language, file);
        }
    }

    /// Like [`Search::inline`], for code on standard input.
    pub(super) fn inline_text(&mut self, program: &str, code: &str, language: Language, file: Option<&Path>) {
        if let Some(word) = loading_word(code, language) {
            let name = program.rsplit('/').next().unwrap_or_default();
            let place = self.within(file);
            let what = format!(
                "`{word}` in the code for `{name}`{place} may load any file of the project; put the code into a file"
            );
            self.coverage.uncovered.push(what);
        }
    }

    /// Reports a Python version that always takes modules from the working folder, if the code has modules there.
    pub(super) fn old_python(&mut self, command: &str, program: Option<&Path>) {
        if self.coverage.modules.is_none() || Language::of_interpreter(command) != Some(Language::Python) {
            return;
        }
        let found = program.map(Path::to_owned).or_else(|| self.program(command));
        let real = found.and_then(|program| program.canonicalize().ok());
        let version = real.as_deref().and_then(python_version);
        if version.is_none_or(|version| version < SAFE_PYTHON) {
            let what = format!(
                "`{command}` is not known to be Python 3.11 or newer, and an older one takes modules from the project, not \
                 from the copy"
            );
            self.coverage.uncovered.push(what);
        }
    }

    /// The program that a shell starts for a word.
    fn program(&self, word: &str) -> Option<PathBuf> {
        if word.contains('/') {
            return self.here.first().map(|here| plain_path(&here.join(word)));
        }
        find_program(word, &self.places.search_path)
    }
}

/// The version in the name of a program, such as `python3.11`.
fn python_version(program: &Path) -> Option<(u32, u32)> {
    let (major, minor) = program.file_name()?.to_str()?.strip_prefix("python")?.split_once('.')?;
    let digits = minor.split(|letter: char| !letter.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, digits.parse().ok()?))
}

/// The code among the arguments of an interpreter.
fn inline_code(program: &str, args: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    if program.ends_with("deno") && args.first().is_some_and(|arg| arg == "eval") {
        found.extend(args.iter().skip(1).find(|arg| !arg.starts_with('-')).cloned());
    }
    for (index, arg) in args.iter().enumerate().filter(|(_, arg)| arg.starts_with('-')) {
        let is_cluster = !arg.starts_with("--") && arg.ends_with(['c', 'e', 'E']);
        if OPTIONS.contains(&arg.as_str()) || is_cluster {
            found.extend(args.get(index + 1).cloned());
        } else if let Some((_, code)) = arg.split_once('=').filter(|(option, _)| OPTIONS.contains(option)) {
            found.push(code.to_owned());
        } else if !arg.starts_with("--") {
            // `-eCODE`
            found.extend(arg.split_once(['c', 'e', 'E']).map(|(_, code)| code.to_owned()));
        }
    }
    found
}

/// The first word of code that may load or start a file without naming a module.
fn loading_word(code: &str, language: Language) -> Option<&str> {
    let words: &[&str] = match language {
        Language::Shell => return None,
        // Named modules are looked up, and Python takes them from the copy.
        Language::Python => &[
            "exec",
            "execfile",
            "eval",
            "compile",
            "runpy",
            "importlib",
            "__import__",
            "subprocess",
            "system",
            "popen",
            "ctypes",
            "addsitedir",
        ],
        // `require` and `import` of a literal name are looked up.
        Language::Node => &[
            "eval",
            "Function",
            "vm",
            "child_process",
            "exec",
            "execSync",
            "spawn",
            "spawnSync",
            "fork",
            "Worker",
            "createRequire",
            "dlopen",
            "_load",
            "Command",
        ],
        Language::Other => &[
            "require",
            "require_relative",
            "require_once",
            "include",
            "include_once",
            "load",
            "autoload",
            "loadfile",
            "dofile",
            "loadstring",
            "lib",
            "do",
            "eval",
            "exec",
            "system",
            "open",
            "popen",
            "spawn",
            "qx",
        ],
    };
    let signs: &[&str] = match language {
        Language::Shell => &[],
        // With these words, the code changes the folders of modules when it runs.
        Language::Python => &["sys.path", ".path.", ".path[", "import path", "chdir", "meta_path", "path_hooks"],
        Language::Node => &["./", "file:"],
        Language::Other => &["./", "`"],
    };
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let word = code.split(|letter| !is_part(letter)).find(|word| words.contains(word));
    let is_there = |sign: &&str| code.match_indices(*sign).any(|(at, _)| !is_names_of_files(code, at));
    word.or_else(|| signs.iter().copied().find(is_there))
}

/// Whether the word at this place is `os.path`.
fn is_names_of_files(code: &str, at: usize) -> bool {
    code.get(..at).is_some_and(|before| before.ends_with("os"))
        && code.get(at..).is_some_and(|sign| sign.starts_with(".path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_could_load_a_file_is_told_from_code_that_plainly_does_not() {
        for (line, word) in [
            ("node -e|require('./x')", Some("./")),
            ("node --eval=require('fs').readFileSync(0)", None),
            ("node -p|require('child_process').execSync('x')", Some("child_process")),
            ("node -e|console.log(1)|./data.json", None),
            ("deno eval|import('../x.ts')", Some("./")),
            ("bun -e|await import('./x')", Some("./")),
            ("python3 -c|import json,sys; print(json.load(sys.stdin))", None),
            ("python3 -Ic|exec(open('x.py').read())", Some("exec")),
            ("python3 -cimport os; os.system('x')", Some("system")),
            ("python3 -c|import sys; sys.path.insert(0,'x'); import f", Some("sys.path")),
            ("python3 -c|import sys as s; s.path[:0]=['x']; import f", Some(".path[")),
            ("python3 -c|import os; os.chdir('x')", Some("chdir")),
            ("python3 -c|import os; print(os.path.join('a','b'))", None),
            ("ruby -e|require_relative 'x'", Some("require_relative")),
            ("ruby -rjson|-e|puts 1", None),
            ("ruby -e|puts `ls`", Some("`")),
            ("perl -ne|print if /x/", None),
            ("perl -e|do './x.pl'", Some("do")),
            ("perl -Mstrict|-euse lib 'x'; use Helper", Some("lib")),
            ("php -r|include 'x.php';", Some("include")),
        ] {
            let mut args = line.replacen(' ', "|", 1).split('|').map(str::to_owned).collect::<Vec<_>>();
            let program = args.remove(0);
            let language = Language::of_interpreter(&program).unwrap();
            let code = inline_code(&program, &args);
            assert!(!code.is_empty(), "{line}");
            assert_eq!(code.iter().find_map(|code| loading_word(code, language)), word, "{line}");
        }
    }

    #[test]
    fn the_version_of_a_python_is_in_its_name() {
        for (name, version) in [
            ("/usr/bin/python3.11", Some((3, 11))),
            ("/opt/python3.9", Some((3, 9))),
            ("/usr/bin/python3.13t", Some((3, 13))),
            ("/usr/bin/python3", None),
            ("/home/me/.pyenv/shims/python", None),
        ] {
            assert_eq!(python_version(Path::new(name)), version, "{name}");
        }
    }
}
