//! What code of other languages takes away.

use std::borrow::Cow;

use super::{
    super::{Feed, Walker, begins_with_harm, is_line, names_harm},
    strings::{call_before, end_of, quoted, strings, unescaped},
    writes::is_written,
};
use crate::{
    field::{Field, is_pattern},
    path,
};

/// Calls that take a file away, or shut it.
#[rustfmt::skip]
pub(super) const REMOVES: &[&str] = &[
    "rmtree", "rmdir", "rm_rf", "rm_r", "rmsync", "unlink", "remove", ".rm(", "rename", "rimraf", "delete", "fileutils", "chmod(", "os.replace", "del_dir", "'del'", "\"del\"",
];

/// Calls to which a string is a pattern, a separator or a message; those that only read the file.
#[rustfmt::skip]
const DATA_CALLS: &[&str] = &[
    "contains(", "count(", "decode(", "encode(", "end_with?(", "endswith(", "environ.get(", "environ[", "exists(", "existssync(",
    "exist?(", "exists?(", "explode(", "file?(", "getenv(", "gsub(", "implode(", "includes(", "index(", "indexof(", "isdir(", "isfile(", "lastindexof(", "log(",
    "match(", "partition(", "print(", "puts", "readfile(", "readfilesync(", "removeprefix(", "removesuffix(", "replace(",
    "replaceall(", "split(", "start_with?(", "startswith(", "strip(", "sub(", "test(", "warn(",
];

/// Calls that take away a folder with all that is in it.
const REMOVES_TREES: &[&str] = &[
    "rmtree",
    "remove_tree",
    "removeall",
    "remove_dir_all",
    "rm_rf",
    "rm_r(",
    "rmsync",
    "rmdirsync",
    ".rm(",
    "rimraf",
    "deltree",
    "delete-directory",
    "directory.delete",
    "directory]::delete",
    "deletedir",
    "deleterecursively",
    "'rf'",
    "\"rf\"",
    "remove-item",
    "removedir",
    "removeitem",
    "removesync",
    "recursive",
    "walk(",
];

/// And so much for the test that it belongs to.
const LONGEST_TEST: usize = 128;

impl Walker {
    /// The files that code may take away: its strings, but for those that say which.
    pub(super) fn guess_removal(&mut self, code: &str, depth: usize) {
        let home = self.place.home.clone();
        let lists = code.contains("glob");
        // What it does in the working folder it does to some of what is there.
        let tests = ["if ", "if(", "filter(", "grep"].iter().any(|test| code.contains(test));
        let narrows = |string: &str| is_pattern(string) && string.bytes().any(|byte| byte.is_ascii_alphanumeric());
        let chooses = tests || (lists && quoted(code).any(|(_, string, _)| narrows(string)));
        let named = |string: Cow<'_, str>| {
            let text = path::spelled(&string, home.as_deref());
            Field { glob: lists && is_pattern(&text), ..Field::literal(text) }
        };
        let (mut compared, mut last) = (false, code);
        let paths = quoted(code).filter_map(|(before, string, behind)| {
            let between = last.len().checked_sub(string.len() + behind.len() + 2).and_then(|length| last.get(..length));
            last = behind;
            // `in ('.git', 'x')`: each of them is.
            let goes_on = compared && between.is_some_and(|between| between.trim() == ",");
            compared = goes_on || is_compared(before, behind);
            let is_path = string.contains(['/', '~', '.', '$']) || !is_line(string);
            let is_here = chooses && string == ".";
            (is_path && !compared && !is_here && !is_data(before, string, behind)).then(|| unescaped(string))
        });
        let paths: Vec<Field> = paths.map(named).collect();
        let bare = self.place.home.as_deref().and_then(|home| home.to_str()).filter(|_| {
            let runs_removal = strings(code).iter().any(|string| begins_with_harm(string));
            (runs_removal || removes_trees(code)) && names_home(code)
        });
        let removal = ["rm", "-r", "-f"].map(Field::literal).into_iter().chain(bare.map(Field::literal));
        self.run(removal.chain(paths).collect(), &Feed::Nothing, depth + 1);
    }
}

/// Whether code takes files away, or names a program that does.
pub(super) fn removes(code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    REMOVES.iter().any(|word| folded.contains(word)) || calls_harm(&folded) || names_harm(&folded)
}

/// Whether the string between these parts of code is what something else is compared with.
fn is_compared(before: &str, behind: &str) -> bool {
    let (before, behind) = (end_of(before, LONGEST_TEST).trim_end(), behind.trim_start());
    let line = before.rsplit(['\n', ';']).next().unwrap_or_default();
    // `for x in ("a", "b")` goes through them.
    let tests = line.rfind("for ").is_none_or(|at| line.rfind("if ").is_some_and(|test| test > at));
    let is_in = || [" in (", " in [", " in {", " in"].iter().any(|end| line.ends_with(end));
    before.ends_with("==")
        || before.ends_with("!=")
        || (tests && is_in())
        || ["==", "!=", "in ", "not in "].iter().any(|start| behind.starts_with(start))
}

/// Whether a string is a pattern, a separator or a message to the call that it is given to, or a file that is only read.
fn is_data(before: &str, string: &str, behind: &str) -> bool {
    let called = call_before(before);
    // `parts.join("/")`, `join("/", parts)`, and not `path.join("/", part)`
    let is_separator =
        string.len() == 1 && called.ends_with("join(") && (behind.starts_with(')') || !called.ends_with(".join("));
    let read = called.ends_with("open(") && !is_written(before, behind);
    (DATA_CALLS.iter().any(|call| called.ends_with(call)) && !called.ends_with("os.replace("))
        || is_separator
        || read
        || behind.starts_with(".join(")
        || behind.starts_with(".split(")
}

/// Whether a call has the name of a program that removes files: `rm("x")`, `await rm(x)`, Julia's `rm.(x)`.
pub(super) fn calls_harm(code: &str) -> bool {
    let called = code.match_indices('(').filter_map(|(at, _)| code.get(..at));
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    called.map(|before| before.strip_suffix('.').unwrap_or(before)).any(|before| {
        ["rm", "unlink", "shred"].iter().any(|name| {
            before.strip_suffix(name).is_some_and(|before| !before.ends_with(is_name) && !before.ends_with('.'))
        })
    })
}

/// Whether code takes folders away.
fn removes_trees(code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    REMOVES_TREES.iter().any(|call| folded.contains(call))
}

/// Whether code names the home, and nothing in it.
fn names_home(code: &str) -> bool {
    let folded = code.to_ascii_lowercase();
    // However a language asks for it: `Path.home()`, `ENV["HOME"]`, `os.UserHomeDir()`, `$HOME`.
    let is_bare = |(at, name): (usize, &str)| {
        let before = folded.get(..at).and_then(|before| before.rsplit([';', '\n']).next()).unwrap_or_default();
        let behind = folded.get(at + name.len()..).unwrap_or_default();
        let word = behind.trim_start_matches(|letter: char| letter == '_' || letter.is_ascii_alphabetic());
        let is_home = matches!(behind.len() - word.len(), 0) || behind.starts_with("dir") || behind.starts_with("_dir");
        let rest = word.trim_start_matches(['"', '\'', '(', ')', ']', '}', ' ']);
        let acts = [".iterdir", ".rglob", ".delete", ".remove"];
        let lists = acts.iter().any(|call| rest.starts_with(call));
        is_home
            && !before.ends_with('/')
            && before.rsplit_once("join(").is_none_or(|(_, given)| given.contains(')'))
            && (lists || !rest.starts_with(['/', '+', '.', '&', '\\', '[']))
    };
    folded.match_indices("home").chain(folded.match_indices("userprofile")).any(is_bare)
}
